//! The library through its public interface.

mod golden;
mod golden_crf;
mod scores;
