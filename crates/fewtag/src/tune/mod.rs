//! Tuning: a domain's own labelled sentences move the weights a little, if that is worth it.
//!
//! ```text
//! sentences ─ folds ─▶ for every run and fold: train on the others ─▶ judge what was left out, at several updates
//!                      the model as it was, on the same folds ────────┘
//!           the way that gained most, if by more than chance ─▶ train on all sentences ─▶ a small difference of weights
//! ```
//!
//! [`Tuning`] is an iterator of [`Event`], one update each; whoever runs it may stop at any time and gets the best so far from
//! [`Tuning::finish`]. What is tried follows from sizes and the allowed minutes ([`Plan`]), never from the clock, so a seed
//! gives the same bits on any number of threads, and in a run that was killed and resumed.
//!
//! Only upper layers and the head move. The rows of the layers below are computed once and kept, so an update costs what moves.
//! Every sentence of a batch is tagged from others of the batch, as it is when the domain is used. Every candidate is judged
//! with its weights as a file would hold them. The model as it was is always a candidate.

mod candidates;
mod event;
mod evidence;
mod folds;
mod job;
mod judge;
mod plan;
mod prepare;
mod record;
mod report;
#[cfg(test)]
mod tests;
mod weights;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use event::{Event, Stage};
pub use evidence::Gain;
pub use plan::{Options, Plan, Run};
pub use report::{Candidate, LabelScores, Report, Verdict};
pub(crate) use weights::TunedWeights;
pub use weights::{Choice, Figures, Score};

use crate::domain::SupportSet;
use crate::encoder::LowerRows;
use crate::error::{Error, Result};
use crate::random::Random;
use crate::settings::ModelSettings;
use crate::tagger::Tagger;
use crate::train::Step;
use candidates::best;
use folds::{Fold, folds};
use job::{Job, Task};
use judge::{Judgement, judge};
use plan::usual_minutes;
use prepare::{key, sizes};
use record::{Record, State, Store, Trial};

/// For the rows of lower layers that are kept, at each depth.
const KEPT_BYTES: usize = 192 << 20;

/// What tuning made.
pub struct Tuned {
    /// The tuned model, or the one that was given if tuning was not worth it.
    pub tagger: Tagger,
    /// What was found out.
    pub report: Report,
}

/// Tunes a model to a domain, one update per call of [`Iterator::next`].
pub struct Tuning {
    base: Tagger,
    support: SupportSet,
    seed: u64,
    plan: Plan,
    folds: Vec<Fold>,
    /// By the number of layers that move.
    below: BTreeMap<usize, Arc<LowerRows>>,
    record: Record,
    store: Option<Store>,
    job: Option<Job>,
    /// Nothing more is tried.
    decided: bool,
    /// The weights of the training on all sentences, and after how many updates: the best so far.
    trained: Option<(Choice, TunedWeights)>,
    failed: bool,
    over: bool,
}

impl Tuning {
    /// Looks at what there is and plans; trains nothing yet. A model that was tuned before starts from the one it was made of.
    ///
    /// # Errors
    ///
    /// [`Error::TooLittle`] if there are too few sentences, [`Error::Untunable`] if the model reads pairs or its layers cannot
    /// be exchanged, and as [`Tagger::adapt`].
    pub fn new(tagger: &Tagger, support: &SupportSet, options: Options) -> Result<Self> {
        Self::check(tagger, support)?;
        let base = tagger.base().clone();
        let sizes = sizes(&base, support)?;
        let minutes = options.minutes.unwrap_or_else(|| usual_minutes(sizes.n_sentences));
        let plan = Plan::new(&sizes, minutes, options.full);
        Self::planned(base, support.clone(), plan, options.seed)
    }

    /// Refuses what [`Tuning::new`] would, and reads nothing with the encoder.
    ///
    /// # Errors
    ///
    /// As [`Tuning::new`].
    pub fn check(tagger: &Tagger, support: &SupportSet) -> Result<()> {
        prepare::check(tagger.base(), support)
    }

    fn planned(base: Tagger, support: SupportSet, mut plan: Plan, seed: u64) -> Result<Self> {
        let random = Random::new(seed).named("folds");
        let folds = folds(&base, &support, plan.n_folds, &random)?;
        plan.n_folds = folds.len();
        let key = key(&base, &support, seed, &plan);
        Ok(Self {
            base,
            support,
            seed,
            plan,
            folds,
            below: BTreeMap::new(),
            record: Record { key, ..Record::default() },
            store: None,
            job: None,
            decided: false,
            trained: None,
            failed: false,
            over: false,
        })
    }

    /// Keeps all that is found out in a directory of its own, and goes on where a run of the same sentences, model and options
    /// stopped that was kept there; the result is the same bit for bit.
    ///
    /// # Errors
    ///
    /// [`Error::OtherRun`] if another run is kept there, [`Error::File`] if the directory cannot be used.
    pub fn keep_in(&mut self, dir: PathBuf) -> Result<()> {
        let store = Store::create(dir)?;
        if let Some(record) = store.load(&self.record.key)? {
            self.record = record;
        }
        store.save(&self.record)?;
        self.store = Some(store);
        Ok(())
    }

    /// Removes what [`Tuning::keep_in`] kept, once the result is written.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if it cannot be removed.
    pub fn forget(dir: &Path) -> Result<()> {
        Store::remove(dir)
    }

    /// What is tried.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Tries nothing more: what is known decides, and the rest is training on all sentences.
    pub fn decide(&mut self) {
        if self.job.as_ref().is_some_and(|job| job.task != Task::Final) {
            self.job = None;
        }
        self.decided = true;
    }

    /// How many sentences have the same words as another, and other labels.
    pub fn n_contradictions(&self) -> usize {
        prepare::n_contradictions(self.support.sentences())
    }

    /// The best so far: the tuned model, or the one that was given.
    ///
    /// # Errors
    ///
    /// None: the settings stay those of a model.
    ///
    /// # Panics
    ///
    /// Never: the weights are those of this model's own layers.
    pub fn finish(self) -> Result<Tuned> {
        let report = self.report();
        let Some((choice, weights)) = self.trained else {
            return Ok(Tuned { tagger: self.base, report });
        };
        let factor = self.record.temperature_factor(choice, &self.plan);
        let tuned = self.base.tuned(weights).expect("weights of this model's own layers");
        let own = tuned.settings();
        let settings = ModelSettings { temperature: own.temperature * factor, ..own.clone() };
        Ok(Tuned { tagger: tuned.with_settings(settings)?, report })
    }

    fn report(&self) -> Report {
        let candidates = self.record.candidates(&self.plan, self.decided);
        let best = best(&candidates);
        let untuned: Vec<&Judgement> = self.record.untuned.iter().collect();
        let tuned = best.map(|at| self.record.judgements(candidates[at].choice, &self.plan));
        let (before, after) = match &tuned {
            Some((before, after)) => (before, Some(&after[..])),
            None => (&untuned, None),
        };
        let worth = best.is_some_and(|at| candidates[at].gain.is_worth_it());
        let wanted = best.map(|at| candidates[at].choice);
        let verdict = match &self.trained {
            Some((choice, _)) if Some(*choice) == wanted => Verdict::Tuned,
            Some(_) => Verdict::TunedLess,
            None if best.is_none() => Verdict::Unknown,
            None if worth => Verdict::Stopped,
            None => Verdict::NotWorthIt,
        };
        let judged: BTreeSet<usize> =
            before.iter().flat_map(|judgement| judgement.sentences.keys().copied()).collect();
        Report {
            verdict,
            judged: judged.len(),
            untuned: evidence::score(before),
            labels: report::labels(before, after),
            failures: self.record.failures(),
            candidates,
            best,
        }
    }

    /// Does the next thing; `None` when nothing is left to do.
    fn advance(&mut self) -> Result<Option<Event>> {
        let fold = self.record.untuned.len();
        if fold < self.folds.len() {
            let judged = judge(&self.base, &self.folds[fold], self.support.sentences())?;
            let f1 = Some(100.0 * judged.total().f1());
            self.record.untuned.push(judged);
            self.save()?;
            return Ok(Some(self.event(Stage::Untuned { fold }, None, f1)));
        }
        loop {
            if self.job.is_none() {
                match self.next_task() {
                    Some((task, choice)) => self.begin(task, choice)?,
                    None => return Ok(None),
                }
            }
            let job = self.job.as_mut().expect("it was just begun");
            match job.step() {
                None => self.end(State::Done)?,
                Some(Ok(step)) => return self.after(&step).map(Some),
                // A run that runs away, or a fold that cannot be learned, is a run that is not worth it.
                Some(Err(error @ (Error::Diverged { .. } | Error::NoQueries { .. }))) => {
                    self.end(State::Failed(error.to_string()))?;
                }
                Some(Err(error)) => return Err(error),
            }
        }
    }

    /// What is to be trained next, and how.
    fn next_task(&self) -> Option<(Task, Choice)> {
        let Plan { runs, updates, .. } = &self.plan;
        if !self.decided {
            for (run, &Run { layers, rate }) in runs.iter().enumerate() {
                let choice = Choice { layers, rate, updates: *updates };
                let over = |fold: &usize| self.record.is_over(run, *fold);
                if let Some(fold) = (0..self.folds.len()).find(|fold| !over(fold)) {
                    return Some((Task::Trial { run, fold }, choice));
                }
            }
        }
        let candidates = self.record.candidates(&self.plan, self.decided);
        let best = &candidates[best(&candidates)?];
        let is_due = best.gain.is_worth_it() && !self.over;
        is_due.then_some((Task::Final, best.choice))
    }

    /// Begins a training, or goes on with one that was kept.
    fn begin(&mut self, task: Task, choice: Choice) -> Result<()> {
        let n_below = self.base.engine().config().num_hidden_layers - choice.layers;
        let below = self.below.entry(choice.layers).or_insert_with(|| {
            let rows = LowerRows::new(&self.base.engine, n_below, KEPT_BYTES);
            Arc::new(rows.expect("checked when tuning began"))
        });
        let sentences = match task {
            Task::Trial { fold, .. } => &self.folds[fold].rest,
            Task::Final => &self.support,
        };
        if let Task::Trial { run, fold } = task
            && !self.record.trials.iter().any(|trial| (trial.run, trial.fold) == (run, fold))
        {
            let (judged, state) = (BTreeMap::new(), State::UnderWay);
            self.record.trials.push(Trial { run, fold, judged, state });
        }
        let seed = Random::new(self.seed).named(&task.name()).at(0);
        let mut job = Job::new(&self.base, Arc::clone(below), (task, choice), sentences, {
            job::config(&self.base, &self.plan, choice, seed)
        })?;
        if let Some(store) = &self.store {
            job.keep_in(store)?;
        }
        let update = job.update();
        self.job = Some(job);
        if update > 0 {
            self.settle(update)?; // It may have been killed between a checkpoint and what follows from it.
        }
        Ok(())
    }

    /// Judges and keeps what an update led to, if it is one after which that is due.
    fn after(&mut self, step: &Step) -> Result<Event> {
        let job = self.job.as_mut().expect("a step of a job");
        let mut f1 = None;
        if job.is_due() {
            job.checkpoint()?;
            f1 = self.settle(step.update)?;
        }
        let job = self.job.as_ref().expect("a step of a job");
        let stage = match job.task {
            Task::Trial { run, fold } => Stage::Trial { run, fold },
            Task::Final => Stage::Final,
        };
        Ok(self.event(stage, Some(step), f1))
    }

    /// Judges the model of a trial, or takes the weights of the last training; gives the F1 of a trial.
    fn settle(&mut self, update: u64) -> Result<Option<f64>> {
        let job = self.job.as_ref().expect("a training is under way");
        let mut f1 = None;
        match job.task {
            Task::Trial { run, fold } => {
                if let Some(tagger) = job.tagger() {
                    let judged = judge(&tagger, &self.folds[fold], self.support.sentences())?;
                    f1 = Some(100.0 * judged.total().f1());
                    self.record.put(run, fold, update, judged);
                }
            }
            Task::Final => {
                let choice = Choice { updates: update, ..job.choice };
                let candidates = self.record.candidates(&self.plan, self.decided);
                let same = |candidate: &&Candidate| candidate.choice == choice;
                let known = candidates.iter().find(same).filter(|c| c.gain.is_worth_it());
                if let (Some(known), Some(mut weights)) = (known, job.weights()) {
                    weights.figures = self.record.figures(known, &self.plan);
                    self.trained = Some((choice, weights));
                }
            }
        }
        self.save()?;
        Ok(f1)
    }

    /// Ends the training that is under way.
    fn end(&mut self, state: State) -> Result<()> {
        let Some(job) = self.job.take() else { return Ok(()) };
        match job.task {
            Task::Trial { run, fold } => self.record.set(run, fold, state),
            Task::Final => self.over = true,
        }
        self.save()?;
        job.forget()
    }

    fn save(&self) -> Result<()> {
        self.store.as_ref().map_or(Ok(()), |store| store.save(&self.record))
    }

    fn event(&self, stage: Stage, step: Option<&Step>, f1: Option<f64>) -> Event {
        let (update, loss) = step.map_or((0, None), |step| (step.update, Some(step.loss)));
        let plan = &self.plan;
        let part = update as f64 / plan.updates as f64;
        let before: f64 = match stage {
            Stage::Untuned { .. } => 0.0,
            Stage::Trial { run, fold } => {
                let earlier: f64 = plan.costs[..run].iter().sum();
                earlier * self.folds.len() as f64 + plan.costs[run] * (fold as f64 + part)
            }
            Stage::Final => {
                let dearest = plan.costs.iter().copied().fold(0.0, f64::max);
                let asked = self.job.as_ref().map_or(plan.updates, |job| job.choice.updates);
                plan.cost() - dearest * (1.0 - update as f64 / asked as f64)
            }
        };
        Event { stage, update, loss, f1, done: before / plan.cost() }
    }
}

impl Iterator for Tuning {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let event = self.advance().transpose();
        self.failed = matches!(event, Some(Err(_)));
        event
    }
}
