//! What tuning leaves behind: a small difference from a model, and what it was found to be worth.

use serde::{Deserialize, Serialize};

use crate::encoder::Difference;
use crate::head::Head;

/// What tuning changed of a model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TunedWeights {
    pub(crate) difference: Difference,
    pub(crate) head: Head,
    pub(crate) figures: Figures,
}

/// What tuning was found to be worth, and how it was done.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Figures {
    /// The F1 of the model as it was, on sentences that were left out.
    pub untuned: Score,
    /// That of the tuned model on the same.
    pub tuned: Score,
    /// How many sentences were left out in turn, and judged.
    pub judged: usize,
    /// What was done.
    pub choice: Choice,
}

/// An F1 and how far it may be off, in per cent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// Of the counts of all judged sentences together.
    pub f1: f64,
    /// Its standard error over the sentences.
    pub spread: f64,
}

/// One way to tune.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// So many of the encoder's upper layers move.
    pub layers: usize,
    /// The highest learning rate of their weights.
    pub rate: f32,
    /// After so many updates.
    pub updates: u64,
}
