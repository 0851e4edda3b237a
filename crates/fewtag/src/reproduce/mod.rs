//! The paper's experiments, to be run again.

pub mod budget;
pub mod cache;
pub mod corpora;
pub mod folds;
pub mod plot;
pub mod published;
pub mod results;
pub mod systems;
pub mod tables;
