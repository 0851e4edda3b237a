//! The experiments through their public interface.

mod golden_lstm;
