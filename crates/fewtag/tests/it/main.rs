//! The library through its public interface.

mod golden_lstm;
mod scores;
