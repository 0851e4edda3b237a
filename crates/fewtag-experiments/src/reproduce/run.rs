//! One cell: a system learns from the source domains of a fold and is tested on its test domain.
//!
//! Nothing here reads the clock; whoever calls says how long a cell took.

use std::collections::BTreeSet;
use std::path::PathBuf;

use fewtag::Tag;
use fewtag::Tagger;
use fewtag::TransitionMode;
use fewtag::data::{self, ReadOptions};
use fewtag::encoder::{BertConfig, weights};
use fewtag::eval::evaluate;
use fewtag::eval::{DomainScores, EpisodeScore, Judged};
use fewtag::file;
use fewtag::model;
use fewtag::train::Trainer;
use fewtag::train::config::Config;
use fewtag::{Episode, Sentence};
use rayon::prelude::*;

use super::budget::Budget;
use super::cache::Inputs;
use super::corpora::Corpus;
use super::folds::Fold;
use super::results::{Cell, Training, rounded};
use super::systems::{Learner, System};
use crate::baselines::bi_lstm::BiLstmSettings;
use crate::baselines::glove::WordVectors;
use crate::baselines::transfer_bert::{self, TransferBert, TransferBertSettings};
use crate::baselines::word_table;
use crate::error::{Error, Result};

/// What all cells of a grid share.
#[derive(Debug)]
pub struct Setup {
    corpora: Vec<Corpus>,
    encoder: HashedPath,
    glove: Option<HashedPath>,
    plan: Plan,
    /// Where tables of word vectors are kept.
    scratch: PathBuf,
}

/// How every cell is run.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// How much a cell may cost.
    pub budget: Budget,
    /// Settings of the model that replace those of its systems, each a field and its value.
    pub changes: Vec<(String, String)>,
}

/// A file or directory that training starts from, and the hash of its numbers.
#[derive(Debug)]
struct HashedPath {
    path: PathBuf,
    hash: String,
}

/// The width from which an encoder has the paper's learning rate; smaller ones want more.
const BASE_WIDTH: usize = 768;
const SMALL_ENCODER_RATE: f32 = 1e-4;
/// The width of the vectors of WPZ, and of Bi-LSTM without GloVe: that of the GloVe set.
const RANDOM_WIDTH: usize = 50;
/// The points of a learning curve, at most.
const CURVE_POINTS: u64 = 50;

impl Setup {
    /// Cells over `corpora`; `scratch` is a directory for tables of word vectors.
    ///
    /// # Errors
    ///
    /// If the encoder's weights or the GloVe file cannot be read.
    pub fn new(
        corpora: Vec<Corpus>,
        encoder: PathBuf,
        glove: Option<PathBuf>,
        plan: Plan,
        scratch: PathBuf,
    ) -> Result<Self> {
        let mut hash = String::new();
        for weights in weights::weight_files(&encoder)? {
            hash += &file::sha256(&file::read(&weights)?);
        }
        let glove = match glove {
            Some(path) => Some(HashedPath { hash: file::sha256(&file::read(&path)?), path }),
            None => None,
        };
        Ok(Self { corpora, encoder: HashedPath { path: encoder, hash }, glove, plan, scratch })
    }

    /// The domains, in the order of the folds.
    #[must_use]
    pub fn corpora(&self) -> &[Corpus] {
        &self.corpora
    }

    /// What decides the outcome of `cell`.
    ///
    /// # Errors
    ///
    /// If the test episodes cannot be read, or the system's settings are wrong.
    pub fn inputs(&self, system: &System, cell: &Cell) -> Result<Inputs> {
        let fold = Fold::new(cell.fold, self.corpora.len());
        let hash = |domain: usize| self.corpora[domain].hash.clone();
        let n_queries = self.test(&fold)?.iter().map(|episode| episode.queries.len()).sum();
        let settings = match system.learner {
            Learner::BiLstm | Learner::RandomBiLstm => system.config.to_owned(),
            Learner::TransferBert => {
                let (updates, batch) = (self.plan.budget.updates(), self.plan.budget.batch());
                format!("{}updates = {updates}\nbatch = {batch}\n", system.config)
            }
            _ => self.config(system, cell)?.to_toml(),
        };
        let mut inputs = Inputs::new(cell.clone(), settings, (hash(fold.test), n_queries));
        let glove = || self.glove.as_ref().map(|glove| glove.hash.clone()).unwrap_or_default();
        inputs.encoder = match system.learner {
            Learner::RandomVectors | Learner::RandomBiLstm => String::new(),
            Learner::Glove | Learner::BiLstm => glove(),
            Learner::Untrained | Learner::Model | Learner::TransferBert => {
                self.encoder.hash.clone()
            }
        };
        if system.learner.learns_from_sources() {
            inputs.train = fold.train.iter().map(|&domain| hash(domain)).collect();
            let looks = self.plan.budget.updates_between_looks().is_some();
            inputs.dev = if looks { hash(fold.dev) } else { String::new() };
        }
        Ok(inputs)
    }

    /// Runs `cell`: the scores on its test domain, and how it was trained. `on_step` hears of each update on the
    /// source domains: its number and that of the last.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with the files; [`Error::NoGlove`] if the system needs vectors that were not given.
    pub fn run(
        &self,
        system: &System,
        cell: &Cell,
        on_step: &mut dyn FnMut(u64, u64),
    ) -> Result<(DomainScores, Training)> {
        let fold = Fold::new(cell.fold, self.corpora.len());
        let test = self.test(&fold)?;
        match system.learner {
            Learner::BiLstm | Learner::RandomBiLstm => {
                let settings: BiLstmSettings = parse(system)?;
                let glove = self.glove.as_ref().filter(|_| system.learner == Learner::BiLstm);
                let vectors = self.word_vectors(glove, cell.seed)?;
                let tag = |episode: &Episode| Ok(settings.tag(episode, &vectors, cell.seed));
                Ok((self.judge(&fold, &test, tag)?, Training::default()))
            }
            Learner::TransferBert => {
                let (system, training) = self.transfer(system, &fold, cell.seed, on_step)?;
                let tag = |episode: &Episode| system.tag(episode, cell.seed);
                Ok((self.judge(&fold, &test, tag)?, training))
            }
            _ => self.run_model(system, cell, &test, on_step),
        }
    }

    /// Runs a cell whose learner is the model.
    fn run_model(
        &self,
        system: &System,
        cell: &Cell,
        test: &[Episode],
        on_step: &mut dyn FnMut(u64, u64),
    ) -> Result<(DomainScores, Training)> {
        let mut config = self.config(system, cell)?;
        let mut training = Training::default();
        let tagger = if system.learner == Learner::Untrained {
            model::from_encoder(&self.encoder.path, config.model, cell.seed)?
        } else {
            let fold = Fold::new(cell.fold, self.corpora.len());
            let path = |domain: usize| self.corpora[domain].path.clone();
            config.encoder = self.encoder_of(system, cell)?;
            config.data.train = fold.train.iter().map(|&domain| path(domain)).collect();
            if self.plan.budget.updates_between_looks().is_some() {
                config.data.dev = vec![path(fold.dev)];
            }
            train(Trainer::new(config)?, &mut training, on_step)?
        };
        let mut report = evaluate(&tagger, test, || ())?.report;
        Ok((report.domains.swap_remove(0), training))
    }

    /// Fine-tunes TransferBERT on the source domains.
    fn transfer(
        &self,
        system: &System,
        fold: &Fold,
        seed: u64,
        on_step: &mut dyn FnMut(u64, u64),
    ) -> Result<(TransferBert, Training)> {
        let mut settings: TransferBertSettings = parse(system)?;
        settings.batch = self.plan.budget.batch();
        if settings.rate.is_none() && self.is_small()? {
            settings.rate = Some(SMALL_ENCODER_RATE);
        }
        let mut sentences: Vec<Sentence> = Vec::new();
        for &domain in &fold.train {
            let episodes = data::read_episodes(&self.corpora[domain].path)?;
            sentences.extend(episodes.into_iter().flat_map(|episode| episode.queries));
        }
        let n_updates = self.plan.budget.updates();
        let mut curve = Curve::of(n_updates);
        let mut system = TransferBert::load(&self.encoder.path, settings)?;
        system.train(&sentences, transfer_bert::Plan { n_updates, seed }, |update, loss| {
            curve.push(update, loss);
            on_step(update, n_updates);
        })?;
        let training = Training { updates: n_updates, losses: curve.points, ..Training::default() };
        Ok((system, training))
    }

    /// Lays the tags that `tag` gives to the queries of every episode beside the gold ones.
    fn judge(
        &self,
        fold: &Fold,
        episodes: &[Episode],
        tag: impl Fn(&Episode) -> Result<Vec<Vec<Tag>>> + Sync,
    ) -> Result<DomainScores> {
        let score = |episode: &Episode| {
            let predicted = tag(episode)?;
            let pairs = episode.queries.iter().zip(&predicted);
            let judged: Vec<Judged> =
                pairs.map(|(gold, tags)| Judged::new(gold.tags(), tags)).collect();
            Ok(EpisodeScore::of(&judged))
        };
        let episodes = episodes.par_iter().map(score).collect::<Result<_>>()?;
        Ok(DomainScores { name: self.corpora[fold.test].name.clone(), episodes })
    }

    fn test(&self, fold: &Fold) -> Result<Vec<Episode>> {
        Ok(data::read_episodes(&self.corpora[fold.test].path)?)
    }

    /// The settings of a system whose learner is the model, without the paths.
    fn config(&self, system: &System, cell: &Cell) -> Result<Config> {
        let budget = self.plan.budget;
        let mut values = vec![
            ("optimizer.updates", budget.updates().to_string()),
            ("optimizer.batch", budget.batch().to_string()),
            ("evaluation.patience", "0".into()),
        ];
        if let Some(updates) = budget.updates_between_looks() {
            values.push(("evaluation.every", updates.to_string()));
        }
        if Config::parse(system.config, &[])?.model.transitions == TransitionMode::Transfer {
            values.push(("optimizer.transition_rate", budget.transition_rate().to_string()));
        }
        if system.learner == Learner::Model && self.is_small()? {
            values.push(("optimizer.encoder_rate", SMALL_ENCODER_RATE.to_string()));
        }
        let changes = self.plan.changes.iter().map(|(field, value)| (&field[..], &value[..]));
        let values: Vec<(&str, &str)> =
            values.iter().map(|(field, value)| (*field, &value[..])).chain(changes).collect();
        let config = Config::parse(system.config, &values)?;
        Ok(Config { seed: cell.seed, ..config })
    }

    fn is_small(&self) -> Result<bool> {
        let path = self.encoder.path.join("config.json");
        let bytes = file::read(&path)?;
        Ok(BertConfig::from_json(file::text(&path, &bytes)?)?.hidden_size < BASE_WIDTH)
    }

    /// The directory of the encoder that a system starts from; a table of word vectors is made if need be.
    fn encoder_of(&self, system: &System, cell: &Cell) -> Result<PathBuf> {
        let glove = match (system.learner, &self.glove) {
            (Learner::RandomVectors, _) => None,
            (Learner::Glove, Some(glove)) => Some(glove),
            (Learner::Glove, None) => return Err(Error::NoGlove),
            _ => return Ok(self.encoder.path.clone()),
        };
        let hashes: String = self.corpora.iter().map(|corpus| corpus.hash.as_str()).collect();
        let source = glove.map_or("", |glove| &glove.hash);
        let key = file::sha256(format!("{hashes} {source} {}", cell.seed).as_bytes());
        let dir = self.scratch.join(key);
        word_table::write(&dir, &self.words()?, &self.word_vectors(glove, cell.seed)?)?;
        Ok(dir)
    }

    /// The vectors of every word of the corpora.
    fn word_vectors(&self, glove: Option<&HashedPath>, seed: u64) -> Result<WordVectors> {
        match glove {
            Some(glove) => WordVectors::read(&glove.path, &self.words()?, seed),
            None => Ok(WordVectors::random(RANDOM_WIDTH, seed)),
        }
    }

    /// Every word of the corpora.
    fn words(&self) -> Result<BTreeSet<String>> {
        let mut words = BTreeSet::new();
        for corpus in &self.corpora {
            let sentences = data::read_sentences(&corpus.path, &ReadOptions::default())?;
            words.extend(sentences.iter().flat_map(Sentence::words).map(String::from));
        }
        Ok(words)
    }
}

/// Trains to the end, noting the course and what was learned.
fn train(
    mut trainer: Trainer,
    training: &mut Training,
    on_step: &mut dyn FnMut(u64, u64),
) -> Result<Tagger> {
    let n_updates = trainer.n_updates();
    let mut curve = Curve::of(n_updates);
    for step in trainer.by_ref() {
        let step = step?;
        curve.push(step.update, step.loss);
        training.dev.extend(step.dev.map(|dev| (step.update, dev.f1)));
        training.updates = step.update;
        on_step(step.update, n_updates);
    }
    training.losses = curve.points;
    let tagger = trainer.finish()?.tagger;
    training.scale = Some(tagger.head().scale);
    if tagger.settings().transitions == TransitionMode::Transfer {
        training.transitions = Some((&tagger.head().transitions).into());
    }
    Ok(tagger)
}

/// The settings of a baseline.
fn parse<S: serde::de::DeserializeOwned>(system: &System) -> Result<S> {
    toml::from_str(system.config)
        .map_err(|source| fewtag::Error::ConfigSyntax { source: Box::new(source) }.into())
}

/// A learning curve: means over runs of updates.
#[derive(Debug)]
struct Curve {
    points: Vec<(u64, f64)>,
    /// The updates between two points.
    step: u64,
    sum: f64,
    n: u64,
}

impl Curve {
    /// That of `n_updates` updates.
    fn of(n_updates: u64) -> Self {
        let step = n_updates.div_ceil(CURVE_POINTS).next_multiple_of(10);
        Self { points: Vec::new(), step, sum: 0.0, n: 0 }
    }

    fn push(&mut self, update: u64, loss: f64) {
        self.sum += loss;
        self.n += 1;
        if update.is_multiple_of(self.step) {
            self.points.push((update, rounded(self.sum / self.n as f64)));
            (self.sum, self.n) = (0.0, 0);
        }
    }
}
