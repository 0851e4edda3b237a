//! The paper's experiments, to be run again.

pub mod cache;
pub mod plot;
pub mod published;
pub mod results;
pub mod systems;
pub mod tables;
