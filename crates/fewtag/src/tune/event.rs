//! How far tuning has come.

/// What was done last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event {
    /// In which part.
    pub stage: Stage,
    /// The updates of this training so far.
    pub update: u64,
    /// Its loss, of an update.
    pub loss: Option<f64>,
    /// The F1 on what the fold leaves out, in per cent, if it was judged.
    pub f1: Option<f64>,
    /// The part of all planned work that is done.
    pub done: f64,
}

/// A part of tuning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The model as it was is judged on a fold.
    Untuned {
        /// From 0.
        fold: usize,
    },
    /// A run is tried on a fold.
    Trial {
        /// From 0.
        run: usize,
        /// From 0.
        fold: usize,
    },
    /// The best way is trained on all sentences.
    Final,
}
