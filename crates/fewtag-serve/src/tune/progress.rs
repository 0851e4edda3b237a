//! How far a tuning has come, as clients see it.

use fewtag::tune::{self, Event, Plan};
use serde::Serialize;
use utoipa::ToSchema;

/// How far a tuning has come.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Progress {
    /// The part of all planned work that is done.
    #[schema(minimum = 0, maximum = 1)]
    pub done: f64,
    /// What is being done.
    pub stage: Stage,
    /// For how long this run has been at it, in seconds.
    pub seconds: u64,
    /// How many ways of tuning are tried.
    pub runs: usize,
    /// On how many parts of the sentences each is judged.
    pub folds: usize,
    /// What was seen so far, in the order in which it was seen.
    pub curve: Vec<FoldCurve>,
}

/// A part of tuning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The model as it is is judged.
    Untuned,
    /// Ways of tuning are tried and judged.
    Trial,
    /// The best way is trained on all sentences.
    Final,
}

/// How the F1 of one way of tuning went up or down on the sentences that one fold leaves out, in per cent.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct FoldCurve {
    /// Which way of tuning, from 1.
    pub run: usize,
    /// Which fold, from 1.
    pub fold: usize,
    /// The model as it was.
    pub untuned: f64,
    /// After a quarter, half, three quarters and all of the updates, as far as it has come.
    pub tuned: Vec<f64>,
}

/// Follows the events of a tuning.
pub(super) struct Follower {
    progress: Progress,
    /// By fold.
    untuned: Vec<f64>,
}

impl Follower {
    pub(super) fn new(plan: &Plan) -> Self {
        let (runs, folds) = (plan.runs.len(), plan.n_folds);
        let (stage, curve) = (Stage::Untuned, Vec::new());
        let progress = Progress { done: 0.0, stage, seconds: 0, runs, folds, curve };
        Self { progress, untuned: Vec::new() }
    }

    /// Takes an event into account; gives how far it has come.
    pub(super) fn add(&mut self, event: &Event, seconds: u64) -> &Progress {
        let progress = &mut self.progress;
        (progress.done, progress.seconds) = (event.done, seconds);
        match event.stage {
            tune::Stage::Untuned { .. } => {
                progress.stage = Stage::Untuned;
                self.untuned.extend(event.f1);
            }
            tune::Stage::Trial { run, fold } => {
                progress.stage = Stage::Trial;
                let (run, fold) = (run + 1, fold + 1);
                if progress.curve.last().is_none_or(|last| (last.run, last.fold) != (run, fold)) {
                    let untuned = self.untuned.get(fold - 1).copied().unwrap_or(0.0);
                    progress.curve.push(FoldCurve { run, fold, untuned, tuned: Vec::new() });
                }
                let last = progress.curve.last_mut().expect("it was just put there");
                last.tuned.extend(event.f1);
            }
            tune::Stage::Final => progress.stage = Stage::Final,
        }
        progress
    }
}
