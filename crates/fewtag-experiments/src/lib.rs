//! The experiments around fewtag: the systems that the paper compares with, its tables run again, and their pictures.
//!
//! A researcher needs this and a user of the tagger does not, so it is a crate of its own above the library. Like the
//! library it is synchronous and silent: it never prints and never reads the environment, the clock or the network.
//!
//! [`reproduce`] runs the grid of systems, folds and seeds; [`baselines`] are the systems that are not settings of the
//! model; [`curves`] draws how a training run went; [`card`] is what is measured and drawn for the card of a model.

pub mod baselines;
pub mod card;
pub mod curves;
pub mod error;
mod heat_map;
mod reliability;
pub mod reproduce;
mod svg;

pub use error::{Error, Result};
