//! The binary, run as its users run it.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod encoder;
