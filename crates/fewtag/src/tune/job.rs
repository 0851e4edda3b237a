//! One training of tuning: a trial on a fold, or the last one on all sentences.

use std::path::PathBuf;
use std::sync::Arc;

use super::Plan;
use super::record::Store;
use super::weights::{Choice, Figures, Score, TunedWeights};
use crate::domain::SupportSet;
use crate::encoder::{Difference, LowerRows, Parameters, Upper};
use crate::error::Result;
use crate::tagger::Tagger;
use crate::train::config::{Config, Data, Evaluation, Optimizer};
use crate::train::{Checkpoints, Step, Trainee, Trainer};

/// For activations; a batch needs a tenth of it.
const MEMORY_MIB: usize = 512;
/// How fast λ, the transitions and the mix learn.
const HEAD_RATE: f32 = 3e-3;

/// What is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// A run on what a fold leaves.
    Trial { run: usize, fold: usize },
    /// The best run on all sentences.
    Final,
}

impl Task {
    /// The name of its random numbers, and with the way of tuning that of its directory.
    pub(super) fn name(self) -> String {
        match self {
            Self::Trial { run, fold } => format!("trial-{run}-{fold}"),
            Self::Final => "final".to_owned(),
        }
    }
}

/// A training under way.
pub(super) struct Job {
    pub(super) task: Task,
    /// Until when.
    pub(super) choice: Choice,
    base: Tagger,
    below: Arc<LowerRows>,
    /// The layers as they were.
    layers: Parameters,
    trainer: Trainer,
    checkpoints: Option<Checkpoints>,
}

impl Job {
    pub(super) fn new(
        base: &Tagger,
        below: Arc<LowerRows>,
        (task, choice): (Task, Choice),
        sentences: &SupportSet,
        config: Config,
    ) -> Result<Self> {
        let layers = below.upper();
        let engine = Upper::new(Arc::clone(&below), layers.clone());
        let model = Trainee::of(base, engine);
        let trainer = Trainer::on_domain(config, model, sentences.clone())?;
        let base = base.clone();
        Ok(Self { task, choice, base, below, layers, trainer, checkpoints: None })
    }

    /// Goes on where a killed run stopped.
    pub(super) fn keep_in(&mut self, store: &Store) -> Result<()> {
        // What was best may be another way when more was tried.
        let Choice { layers, rate, .. } = self.choice;
        let name = format!("{}-{layers}-{rate:e}", self.task.name());
        self.checkpoints = Some(store.training(&name, &mut self.trainer)?);
        Ok(())
    }

    /// The next update; none after the last one that is wanted.
    pub(super) fn step(&mut self) -> Option<Result<Step>> {
        if self.trainer.progress().update >= self.choice.updates {
            return None;
        }
        self.trainer.next()
    }

    /// The updates so far.
    pub(super) fn update(&self) -> u64 {
        self.trainer.progress().update
    }

    /// Whether the last update was one after which the model is judged.
    pub(super) fn is_due(&self) -> bool {
        self.trainer.checkpoint_is_due()
    }

    /// What was changed so far, as a file would hold it; none if a number has run away. The figures are still to come.
    pub(super) fn weights(&self) -> Option<TunedWeights> {
        let (engine, n_below) = (self.trainer.model().engine(), self.below.n_layers());
        let difference = Difference::between(&self.layers, engine.parameters(), n_below)?;
        let unknown = Score { f1: 0.0, spread: 0.0 };
        let figures = Figures { untuned: unknown, tuned: unknown, judged: 0, choice: self.choice };
        Some(TunedWeights { difference, head: *self.trainer.model().head(), figures })
    }

    /// The model with these weights.
    pub(super) fn tagger(&self) -> Option<Tagger> {
        self.base.tuned_above(Arc::clone(&self.below), self.weights()?).ok()
    }

    /// Saves where the training stands.
    pub(super) fn checkpoint(&mut self) -> Result<()> {
        match &mut self.checkpoints {
            Some(checkpoints) => checkpoints.save(&self.trainer),
            None => Ok(()),
        }
    }

    /// Removes the checkpoints.
    pub(super) fn forget(self) -> Result<()> {
        self.checkpoints.map_or(Ok(()), Checkpoints::remove)
    }
}

/// How a job trains.
pub(super) fn config(base: &Tagger, plan: &Plan, choice: Choice, seed: u64) -> Config {
    Config {
        seed,
        encoder: PathBuf::new(),
        layers: 0,
        memory_mib: MEMORY_MIB,
        data: Data::default(),
        model: base.settings().clone(),
        mix: base.head().mix,
        optimizer: Optimizer {
            encoder_rate: choice.rate,
            head_rate: HEAD_RATE,
            weight_decay: 0.0, // Towards the model as it was would make sense, towards zero does not.
            clip_apart: true,
            batch: plan.batch,
            updates: Some(plan.updates),
            ..Optimizer::default()
        },
        evaluation: Evaluation { every: plan.every(), patience: 0, ..Evaluation::default() },
    }
}
