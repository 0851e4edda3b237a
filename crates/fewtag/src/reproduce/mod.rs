//! The paper's experiments, to be run again.

pub mod published;
