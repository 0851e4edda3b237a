//! The library through its public interface.

mod scores;
