//! TransferBERT: a token classifier, fine-tuned on the source domains and then on each support set.
//!
//! ```text
//! scores = encoder(words) · W + bias      [T, L]: one row per word, read at its first piece
//! source domains   L = all their tags; updates of a few sentences each
//! support set      L = its tags, W new; the encoder starts from the source domains' weights each time
//! ```
//!
//! Both stages minimise the cross-entropy of the words. Only the encoder is transferred: the tags of the source
//! domains say nothing of a new domain's.
//!
//! Source: the paper's baseline, after the NER setting of Devlin et al. (2019).

use std::path::Path;

use fewtag::Matrix;
use fewtag::Random;
use fewtag::encoder::{Bert, Dropout, Engine, Gradients, TrainableEngine, WordPieces, weights};
use fewtag::reading::{self, Sequence};
use fewtag::train::optimizer::{self, AdamW, Part, Rates, Schedule};
use fewtag::{Episode, Sentence};
use fewtag::{Tag, TagSet};
use serde::Deserialize;

use super::classifier::Classifier;
use crate::error::Result;

/// How both stages are trained.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TransferBertSettings {
    /// The highest learning rate of the encoder in both stages; unset: 1e-5, the paper's.
    pub rate: Option<f32>,
    /// That of the classifier, which starts from nothing.
    pub head_rate: f32,
    /// Sentences per update on the source domains.
    pub batch: usize,
    /// Updates on each support set, all of its sentences at once.
    pub support_updates: u64,
    /// The dropout rate inside the encoder.
    pub dropout: f32,
}

impl Default for TransferBertSettings {
    fn default() -> Self {
        Self { rate: None, head_rate: 1e-3, batch: 4, support_updates: 20, dropout: 0.1 }
    }
}

const PAPERS_RATE: f32 = 1e-5;
const WEIGHT_DECAY: f32 = 0.01;
const MAX_NORM: f32 = 1.0;
/// The activations of a few sentences always fit, so none is computed twice.
const MEMORY: usize = usize::MAX / 4;

/// An encoder that learns from source domains, and then, again and again, from a support set.
pub struct TransferBert {
    engine: Bert,
    word_pieces: WordPieces,
    settings: TransferBertSettings,
}

impl TransferBert {
    /// Reads the encoder in `dir`.
    ///
    /// # Errors
    ///
    /// Whatever is wrong with its files.
    pub fn load(dir: &Path, settings: TransferBertSettings) -> Result<Self> {
        let engine = Bert::new(weights::load(dir)?)?;
        Ok(Self { engine, word_pieces: WordPieces::load(dir)?, settings })
    }

    /// Fine-tunes the encoder on the sentences of the source domains; `on_step` hears of each update and its loss.
    ///
    /// # Errors
    ///
    /// If a sentence is too long for the encoder.
    pub fn train(
        &mut self,
        sentences: &[Sentence],
        plan: Plan,
        mut on_step: impl FnMut(u64, f64),
    ) -> Result<()> {
        let tags = TagSet::new(sentences.iter().flat_map(Sentence::tags));
        let mut stage = Stage::new(&self.engine, tags, &self.settings, plan);
        let mut order: Vec<&Sentence> = Vec::new();
        for update in 1..=plan.n_updates {
            if order.len() < self.settings.batch {
                order = sentences.iter().collect();
                stage.random.shuffle(&mut order);
            }
            let batch = order.split_off(order.len().saturating_sub(self.settings.batch));
            on_step(update, stage.step(&mut self.engine, &self.word_pieces, &batch)?);
        }
        Ok(())
    }

    /// Fine-tunes a copy of the encoder on the support set of `episode`, and tags its queries.
    ///
    /// # Errors
    ///
    /// If a sentence is too long for the encoder.
    pub fn tag(&self, episode: &Episode, seed: u64) -> Result<Vec<Vec<Tag>>> {
        let mut engine = Bert::new(self.engine.parameters().clone())?;
        let tags = episode.support.tag_set().clone();
        let plan = Plan { n_updates: self.settings.support_updates, seed };
        let mut stage = Stage::new(&engine, tags, &self.settings, plan);
        let support: Vec<&Sentence> = episode.support.sentences().iter().collect();
        for _ in 0..plan.n_updates {
            let _ = stage.step(&mut engine, &self.word_pieces, &support)?;
        }
        let queries: Vec<&Sentence> = episode.queries.iter().collect();
        let words = reading::embed(&engine, &sequences(&queries, &self.word_pieces)?)?;
        let names = |j: usize| stage.tags.tags()[j].clone();
        let decode = |words| stage.classifier.decode(words).into_iter().map(names).collect();
        Ok(words.iter().map(decode).collect())
    }
}

/// How long a stage is, and where its random numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Plan {
    pub n_updates: u64,
    pub seed: u64,
}

/// A classifier above an encoder, and what trains both.
struct Stage {
    tags: TagSet,
    classifier: Classifier,
    gradients: Gradients,
    optimizer: AdamW,
    schedule: Schedule,
    settings: TransferBertSettings,
    random: Random,
}

impl Stage {
    fn new(engine: &Bert, tags: TagSet, settings: &TransferBertSettings, plan: Plan) -> Self {
        let mut random = Random::new(plan.seed);
        let classifier = Classifier::random(engine.width(), tags.n_tags(), &mut random);
        let n_values = engine.parameters().values().len() + classifier.weights().values().len();
        Self {
            tags,
            classifier,
            gradients: Gradients::zeros(engine.config()),
            optimizer: AdamW::new(n_values),
            schedule: Schedule { warm_up: plan.n_updates / 10, n_updates: plan.n_updates },
            settings: settings.clone(),
            random,
        }
    }

    /// One update on `sentences`; gives their mean loss before it.
    fn step(
        &mut self,
        engine: &mut Bert,
        word_pieces: &WordPieces,
        sentences: &[&Sentence],
    ) -> Result<f64> {
        let dropout = Dropout { rate: self.settings.dropout, seed: self.random.next_u64() };
        let sequences = sequences(sentences, word_pieces)?;
        let (words, tape) = reading::embed_for_training(engine, &sequences, Some(dropout), MEMORY)?;
        let (n_rows, n_tags) = (engine.width() + 1, self.tags.n_tags());
        let mut d_classifier = Matrix::zeros(n_rows, n_tags);
        let mut loss = 0.0;
        let mut d_words = Vec::with_capacity(words.len());
        for (sentence, words) in sentences.iter().zip(&words) {
            let index = |tag| self.tags.index_of(tag).expect("the tag set covers its sentences");
            let gold: Vec<usize> = sentence.tags().map(index).collect();
            let part = self.classifier.loss(words, &gold, &mut d_classifier);
            loss += f64::from(part.value);
            d_words.push(part.d_words);
        }
        self.gradients.clear();
        tape.backward(engine, &d_words, &mut self.gradients);
        self.update(engine, &d_classifier, 1.0 / sentences.len() as f32);
        Ok(loss / sentences.len() as f64)
    }

    /// Changes the weights by gradients that are `share` of the summed ones.
    fn update(&mut self, engine: &mut Bert, d_classifier: &Matrix, share: f32) {
        let square = optimizer::squared_gradient_norm(&self.gradients)
            + optimizer::squared_norm(d_classifier.values());
        let norm = f64::from(share) * square.sqrt();
        let factor = self.schedule.factor(self.optimizer.n_updates());
        let rates =
            |learning_rate, weight_decay| Rates { learning_rate, weight_decay }.scaled(factor);
        let encoder = rates(self.settings.rate.unwrap_or(PAPERS_RATE), WEIGHT_DECAY);
        let frozen = engine.frozen();
        let mut parts =
            optimizer::encoder_parts(engine.parameters_mut(), &self.gradients, frozen, encoder);
        parts.push(Part {
            values: self.classifier.weights_mut().values_mut(),
            gradient: Some(d_classifier.values()),
            rates: rates(self.settings.head_rate, WEIGHT_DECAY),
        });
        self.optimizer.update(parts, share * optimizer::clip_scale(norm, MAX_NORM));
    }
}

fn sequences(sentences: &[&Sentence], word_pieces: &WordPieces) -> Result<Vec<Sequence>> {
    let sequence = |sentence: &&Sentence| {
        Ok(Sequence::alone(&word_pieces.split(sentence.words())?, word_pieces))
    };
    sentences.iter().map(sequence).collect()
}

#[cfg(test)]
mod tests {
    use fewtag::data;

    use super::*;

    fn tiny() -> (TransferBert, Vec<Episode>) {
        let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
        // A tiny encoder needs large steps and no dropout.
        let settings = TransferBertSettings {
            rate: Some(1e-2),
            head_rate: 1e-1,
            dropout: 0.0,
            ..TransferBertSettings::default()
        };
        let system = TransferBert::load(&testdata.join("tiny-encoder"), settings).unwrap();
        (system, data::read_episodes(&testdata.join("tiny-episodes.json")).unwrap())
    }

    #[test]
    fn the_loss_on_the_source_domains_falls() {
        let (mut system, episodes) = tiny();
        let sentences = episodes[0].queries.clone();
        let mut losses = Vec::new();
        let plan = Plan { n_updates: 30, seed: 1 };
        system.train(&sentences, plan, |_, loss| losses.push(loss)).unwrap();
        assert_eq!(losses.len(), 30);
        assert!(losses[29] < 0.2 * losses[0], "{losses:?}");
    }

    #[test]
    fn it_learns_a_support_set_and_leaves_itself_as_it_was() {
        let (system, mut episodes) = tiny();
        let mut episode = episodes.swap_remove(0);
        episode.queries = episode.support.sentences().to_vec();
        let first = system.tag(&episode, 1).unwrap();
        for (query, tags) in episode.queries.iter().zip(&first) {
            assert!(query.tags().eq(tags), "{tags:?}");
        }
        assert_eq!(system.tag(&episode, 1).unwrap(), first);
    }
}
