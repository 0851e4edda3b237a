//! The paper's experiments, to be run again: `fewtag reproduce`.
//!
//! ```text
//! corpora ─ folds ─▶ cells (system × fold × seed) ─ run, cache ─▶ Outcomes ─ published ─▶ tables, compare, page
//! ```
//!
//! A cell is a function of its [`cache::Inputs`] alone, so it is run once and then remembered. [`cells`] keeps what
//! many runs gave in one file, from which the tables can be drawn again.

pub mod budget;
pub mod cache;
pub mod cells;
pub mod compare;
pub mod corpora;
pub mod folds;
pub mod growth;
pub mod page;
pub mod plot;
pub mod published;
pub mod results;
pub mod run;
pub mod systems;
pub mod tables;
