//! Training: source domains in, a tagger for any domain out.
//!
//! ```text
//! Batches ─▶ loss and gradients ─▶ AdamW ─▶ Step        one update
//!               every so many updates: dev F1, the best weights are kept, a checkpoint may be saved
//! ```
//!
//! [`Trainer`] is an iterator of [`Step`]. It ends after the last update, or when the dev F1 has not improved
//! for a while. Every step is a function of the settings and the step before: no clock, no shared generator,
//! no dependence on threads. So a run resumed from a checkpoint gives the same bits as an uninterrupted one.

mod batches;
mod card;
mod checkpoint;
pub mod config;
mod loss;
#[doc(hidden)] // For our baselines and benchmarks.
pub mod optimizer;
pub mod source;
mod splits;
mod trainee;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use checkpoint::{Best, Checkpoints, Progress};
pub(crate) use splits::alike;
pub use trainee::Trainee;

use crate::data::{self, Wanted};
use crate::domain::{Episode, SupportSet};
use crate::encoder::{Bert, Dropout, WordPieces, weights, with_shapes};
use crate::error::{Error, Result};
use crate::eval::{EpisodeScore, Report, Summary, evaluate};
use crate::head::Head;
use crate::random::Random;
use crate::tagger::Tagger;
use batches::{Batch, Batches};
use config::{Config, Data, Optimizer};
use loss::{BatchLoss, ModelGradients, Pass};
use optimizer::{AdamW, Part, Rates, Schedule};
use source::Read;

/// A loss beyond this is no loss of a tag sequence any more: the weights have run away.
const EXPLODED: f64 = 1e6;

/// What one update did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Its number, from 1.
    pub update: u64,
    /// The mean loss of the batch, before the update.
    pub loss: f64,
    /// λ after the update.
    pub scale: f32,
    /// The global norm of the gradient before clipping.
    pub gradient_norm: f64,
    /// How many pieces the encoder read.
    pub n_pieces: usize,
    /// The scores on the dev data, if they were due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dev: Option<DevScores>,
}

/// Scores on the dev data: means over the episodes of a domain, then over domains, in per cent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DevScores {
    /// The headline measure, by which the best weights are chosen.
    pub f1: f64,
    /// The measure of the paper's formula.
    pub sentence_macro_f1: f64,
}

impl DevScores {
    /// The means of a report.
    #[must_use]
    pub fn of(report: &Report) -> Self {
        let mean = |score: fn(&EpisodeScore) -> f64| {
            let domains = report.domains.iter().map(|domain| domain.over_episodes(score).mean);
            100.0 * Summary::of(domains).mean
        };
        let f1 = mean(EpisodeScore::f1);
        Self { f1, sentence_macro_f1: mean(EpisodeScore::sentence_macro_f1) }
    }
}

/// Runs the updates of a training run, one per call of [`Iterator::next`].
pub struct Trainer {
    config: Config,
    model: Trainee,
    batches: Batches,
    dev: Vec<Episode>,
    test: Vec<Episode>,
    n_updates: u64,
    gradients: ModelGradients,
    optimizer: AdamW,
    progress: Progress,
    /// The weights with the best dev F1 so far.
    best: Option<Weights>,
    left_out: LeftOut,
    failed: bool,
}

/// What a run leaves out of the files that its settings name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// The files of directories that are no data.
    pub files: Vec<PathBuf>,
    /// How many sentences are longer than `data.max_words`.
    pub n_long_sentences: usize,
}

/// What training changes.
#[derive(Debug, Clone, PartialEq)]
struct Weights {
    encoder: Vec<f32>,
    head: Head,
}

impl Weights {
    fn new(encoder: Vec<f32>, head: &[f32]) -> Self {
        let mut weights = Self { encoder, head: Head::ZERO };
        weights.head.as_mut_slice().copy_from_slice(head);
        weights
    }

    fn arrays(&self) -> [(&'static str, &[f32]); 2] {
        [("encoder", &self.encoder), ("head", self.head.as_slice())]
    }
}

/// What a run made.
pub struct Trained {
    /// The model with the best weights.
    pub tagger: Tagger,
    /// How it was made.
    pub config: Config,
    /// How far the run came.
    pub progress: Progress,
    /// The scores of these weights on the dev data.
    pub dev: Report,
    /// Their scores on the test data.
    pub test: Report,
}

impl Trainer {
    /// Reads the encoder and the data that the settings name.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if a setting is out of range, and whatever is wrong with the files.
    pub fn new(config: Config) -> Result<Self> {
        config.check()?;
        let Data { train, dev, test, leave_out, shots, max_words, .. } = &config.data;
        let mut left_out = LeftOut::default();
        let mut read = |paths: &[PathBuf], domains: &[String]| {
            let found = data::find(paths, Wanted::Data)?;
            let (read, n_long) = source::read(&found.files, domains)?.without_long(*max_words);
            left_out.files.extend(found.left_out);
            left_out.n_long_sentences += n_long;
            Ok::<Read, Error>(read)
        };
        let (train, dev, test) = (read(train, leave_out)?, read(dev, &[])?, read(test, &[])?);
        let test = source::test_episodes(test, shots)?;
        let mut parameters = weights::load(&config.encoder)?;
        if config.layers > 0 {
            parameters = parameters.lowest(config.layers);
        }
        if config.model.case {
            parameters = with_shapes(parameters);
        }
        let mut engine = Bert::new(parameters)?;
        engine.freeze(config.optimizer.frozen());
        let random = &mut Random::new(config.seed).named("head");
        let head = Head { mix: config.mix, ..Head::new(&config.model, random) };
        let word_pieces = WordPieces::load(&config.encoder)?;
        let model = Trainee::new(engine, word_pieces, config.model.clone(), head)?;
        Ok(Self { test, left_out, ..Self::start(config, model, train, dev)? })
    }

    /// Starts from a model and data that are already there; what the settings say about encoder and files
    /// is not read.
    ///
    /// # Errors
    ///
    /// [`Error::NoQueries`] if no query can be learnt from, [`Error::Config`] if the run has no length, and
    /// whatever makes a domain unfit to draw episodes from.
    pub fn start(config: Config, model: Trainee, train: Read, dev: Read) -> Result<Self> {
        let Config { data, optimizer, evaluation, .. } = &config;
        let batches = Batches::new(train, data, optimizer.batch, config.seed)?;
        let dev = source::judged_episodes(dev, &data.shots, evaluation)?;
        Self::assemble(config, model, batches, dev)
    }

    /// Learns one domain, whose sentences are tagged from each other; judging is left to whoever asks.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the run has no length.
    pub(crate) fn on_domain(config: Config, model: Trainee, support: SupportSet) -> Result<Self> {
        let batches = Batches::of_domain(support, &config);
        Self::assemble(config, model, batches, Vec::new())
    }

    fn assemble(
        config: Config,
        model: Trainee,
        batches: Batches,
        dev: Vec<Episode>,
    ) -> Result<Self> {
        let optimizer = &config.optimizer;
        let n_updates = match (optimizer.updates, batches.epoch()) {
            (Some(updates), _) => updates,
            (None, Some(epoch)) => times(epoch, optimizer.epochs),
            (None, None) => {
                let wanted = "given: drawn episodes have no epochs";
                return Err(Error::Config { field: "optimizer.updates", wanted });
            }
        };
        let engine = model.engine();
        let shape = engine.parameters().config();
        let gradients = ModelGradients::zeros(shape);
        let trained = engine.frozen().trained(shape);
        let optimizer = AdamW::new(trained.len() + Head::ZERO.as_slice().len())
            .correcting_bias(config.optimizer.bias_correction);
        Ok(Self {
            config,
            model,
            batches,
            dev,
            test: Vec::new(),
            n_updates,
            gradients,
            optimizer,
            progress: Progress::default(),
            best: None,
            left_out: LeftOut::default(),
            failed: false,
        })
    }

    /// The number of updates of the whole run, unless it stops early.
    pub fn n_updates(&self) -> u64 {
        self.n_updates
    }

    /// How far the run has come.
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// What the settings name and the run does not read.
    pub fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// The model in training.
    pub(crate) fn model(&self) -> &Trainee {
        &self.model
    }

    /// The model with its present weights; the next update panics unless it has been dropped.
    pub fn tagger(&self) -> Tagger {
        self.model.tagger()
    }

    /// Whether the last update was one after which the model is judged and a checkpoint makes sense.
    pub fn checkpoint_is_due(&self) -> bool {
        let update = self.progress.update;
        update.is_multiple_of(self.config.evaluation.every) || update == self.n_updates
    }

    /// The model with the best weights, or the last ones if there is no dev data, and its scores.
    ///
    /// # Errors
    ///
    /// As [`evaluate`].
    pub fn finish(mut self) -> Result<Trained> {
        if let Some(best) = self.best.take() {
            self.set_weights(&best);
        }
        let Self { config, model, progress, .. } = self;
        let tagger = model.tagger();
        let dev = evaluate(&tagger, &self.dev, || ())?.report;
        let test = evaluate(&tagger, &self.test, || ())?.report;
        Ok(Trained { tagger, config, progress, dev, test })
    }

    fn is_done(&self) -> bool {
        let Progress { update, evaluations_since_best, .. } = self.progress;
        let patience = self.config.evaluation.patience;
        let gave_up = patience > 0 && evaluations_since_best >= patience;
        self.failed || update >= self.n_updates || gave_up
    }

    /// One update, and the evaluation after it if it is due.
    fn learn(&mut self, batch: &Batch) -> Result<Step> {
        self.gradients.clear();
        let pass = self.pass();
        let BatchLoss { loss, n_pieces } =
            loss::backward(&self.model, batch, pass, &mut self.gradients)?;
        let [encoder_norm, head_norm] = self.gradients.norms();
        let gradient_norm = encoder_norm.hypot(head_norm);
        self.diagnose(loss, gradient_norm)?;
        self.update([encoder_norm, head_norm]);
        self.progress.update += 1;
        self.progress.skipped_queries += batch.n_skipped as u64;
        let dev = self.judge()?;
        let (update, scale) = (self.progress.update, self.model.head.scale);
        Ok(Step { update, loss, scale, gradient_norm, n_pieces, dev })
    }

    /// Moves the weights along the gradients, whose norms in encoder and head are these.
    fn update(&mut self, [encoder_norm, head_norm]: [f64; 2]) {
        let Optimizer {
            encoder_rate,
            head_rate,
            transition_rate,
            scale_rate,
            mix_rate,
            weight_decay,
            warmup,
            clip,
            clip_apart,
            ..
        } = self.config.optimizer;
        let (mut clipping, mut head_clipping) = (encoder_norm.hypot(head_norm), 1.0);
        if clip_apart {
            clipping = encoder_norm;
            let scale = |norm| optimizer::clip_scale(norm, clip);
            head_clipping = scale(head_norm) / scale(encoder_norm);
        }
        self.gradients.head.as_mut_slice().iter_mut().for_each(|d| *d *= head_clipping);
        let n_updates = self.n_updates;
        let warm_up = times(n_updates, warmup.into());
        let factor = Schedule { warm_up, n_updates }.factor(self.progress.update);
        let rates = Rates { learning_rate: encoder_rate, weight_decay }.scaled(factor);
        let head_rates = [scale_rate, transition_rate, mix_rate]
            .map(|rate| rate.unwrap_or(head_rate))
            .map(|learning_rate| Rates { learning_rate, weight_decay: 0.0 }.scaled(factor));

        let mut head = self.model.head;
        let engine = self.model.engine_mut();
        let frozen = engine.frozen();
        let parameters = engine.parameters_mut();
        let mut parts =
            optimizer::encoder_parts(parameters, &self.gradients.encoder, frozen, rates);
        for ((values, gradient), rates) in
            head.parts_mut().into_iter().zip(self.gradients.head.parts()).zip(head_rates)
        {
            parts.push(Part { values, gradient: Some(gradient), rates });
        }
        self.optimizer.update(parts, optimizer::clip_scale(clipping, clip));
        self.model.head = head;
    }

    /// Dropout and memory of the next update.
    fn pass(&self) -> Pass {
        let rate = self.config.optimizer.dropout;
        let seed = Random::new(self.config.seed).named("dropout").at(self.progress.update);
        // Weights, gradients and two moments take their part of the memory first.
        let n_bytes = 4 * size_of_val(self.model.engine().parameters().values());
        let budget = (self.config.memory_mib << 20).saturating_sub(n_bytes);
        Pass { dropout: (rate > 0.0).then_some(Dropout { rate, seed }), budget }
    }

    /// Stops a run whose numbers have left all bounds, before they reach the weights.
    fn diagnose(&self, loss: f64, gradient_norm: f64) -> Result<()> {
        if loss.is_finite() && loss < EXPLODED && gradient_norm.is_finite() {
            return Ok(());
        }
        let (update, scale) = (self.progress.update + 1, self.model.head.scale);
        Err(Error::Diverged { update, loss, gradient_norm, scale })
    }

    /// Scores the model on the dev data if that is due, and keeps its weights if they are the best so far.
    fn judge(&mut self) -> Result<Option<DevScores>> {
        if !self.checkpoint_is_due() || self.dev.is_empty() {
            return Ok(None);
        }
        let scores = DevScores::of(&evaluate(&self.tagger(), &self.dev, || ())?.report);
        if self.progress.best.is_none_or(|best| scores.f1 > best.f1) {
            self.progress.best = Some(Best { update: self.progress.update, f1: scores.f1 });
            self.progress.evaluations_since_best = 0;
            self.best = Some(self.weights());
        } else {
            self.progress.evaluations_since_best += 1;
        }
        Ok(Some(scores))
    }

    /// What a checkpoint holds besides the progress.
    fn state(&self) -> [(&'static str, &[f32]); 4] {
        let [first, second] = self.optimizer.moments();
        let encoder = self.model.engine().parameters().values();
        let head = self.model.head.as_slice();
        [("encoder", encoder), ("head", head), ("first_moment", first), ("second_moment", second)]
    }

    /// The opposite of [`Trainer::state`]: arrays of the same number and sizes.
    fn restore(&mut self, progress: Progress, state: Vec<Vec<f32>>, best: Option<Vec<Vec<f32>>>) {
        let mut state = state.into_iter();
        let mut next = || state.next().expect("a state has four arrays");
        self.set_weights(&Weights::new(next(), &next()));
        self.optimizer = AdamW::resume(progress.update, next(), next())
            .correcting_bias(self.config.optimizer.bias_correction);
        self.gradients.encoder.set_all_seen();
        self.progress = progress;
        self.best = best.map(|mut arrays| Weights::new(std::mem::take(&mut arrays[0]), &arrays[1]));
    }

    fn weights(&self) -> Weights {
        let encoder = self.model.engine().parameters().values().to_vec();
        Weights { encoder, head: self.model.head }
    }

    fn set_weights(&mut self, weights: &Weights) {
        let values = self.model.engine_mut().parameters_mut().values_mut();
        values.copy_from_slice(&weights.encoder);
        self.model.head = weights.head;
    }
}

/// `n · factor`, rounded.
#[expect(clippy::cast_sign_loss, reason = "the settings are checked: no factor is negative")]
fn times(n: u64, factor: f64) -> u64 {
    (n as f64 * factor).round() as u64
}

impl Iterator for Trainer {
    type Item = Result<Step>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done() {
            return None;
        }
        let batch = self.batches.at(self.progress.update);
        let step = batch.and_then(|batch| self.learn(&batch));
        self.failed = step.is_err();
        Some(step)
    }
}

#[cfg(test)]
mod tests;
