//! Bi-LSTM: a bidirectional LSTM tagger that learns from one support set alone.
//!
//! ```text
//! h_t = [→lstm(x)_t, ←lstm(x)_t]      tag_t = argmax softmax(h_t · W)
//! ```
//!
//! `x` is `[T, d]`, fixed word vectors; both directions together give `h [T, 2·n_hidden]`. Nothing is
//! transferred: [`BiLstmSettings::tag`] starts every support set from random weights and takes a fixed number of Adam's
//! updates, each on the whole support set.
//!
//! Source: the paper's baseline, after Huang et al. (2015) but without their CRF, which a few sentences cannot train.

use fewtag::Matrix;
use fewtag::Random;
use fewtag::Tag;
use fewtag::train::optimizer::{AdamW, Part, Rates};
use fewtag::{Episode, SupportSet};
use serde::Deserialize;

use super::classifier::Classifier;
use super::glove::WordVectors;
use super::lstm::Lstm;

/// The weights of the tagger, or the gradients by them.
#[derive(Debug, Clone)]
pub struct BiLstm {
    /// Reads the sentence from its first word on.
    pub left_to_right: Lstm,
    /// Reads it from its last word back.
    pub right_to_left: Lstm,
    /// Turns both outputs into tag scores.
    pub output: Classifier,
}

/// The gradients by the weights of a [`BiLstm`], each of the shape of its weights.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "named after the weights")]
pub struct Gradients {
    pub left_to_right: Matrix,
    pub right_to_left: Matrix,
    pub output: Matrix,
}

impl Gradients {
    fn parts(&self) -> [&Matrix; 3] {
        [&self.left_to_right, &self.right_to_left, &self.output]
    }
}

impl BiLstm {
    /// Random weights: `U(−1/√n_hidden, 1/√n_hidden)`, as PyTorch starts an LSTM.
    #[must_use]
    pub fn random(n_inputs: usize, n_hidden: usize, n_tags: usize, random: &mut Random) -> Self {
        let bound = 1.0 / (n_hidden as f64).sqrt();
        let mut lstm = || {
            let (n_rows, n_cols) = (n_inputs + n_hidden + 1, 4 * n_hidden);
            let draw = |_| (bound * (2.0 * random.unit() - 1.0)) as f32;
            Lstm::new(Matrix::new((0..n_rows * n_cols).map(draw).collect(), n_cols))
        };
        let (left_to_right, right_to_left) = (lstm(), lstm());
        Self {
            left_to_right,
            right_to_left,
            output: Classifier::random(2 * n_hidden, n_tags, random),
        }
    }

    /// The scores of all tags for every word of `inputs [T, n_inputs]`: `[T, n_tags]`.
    #[must_use]
    pub fn scores(&self, inputs: &Matrix) -> Matrix {
        self.output.scores(&self.read(inputs))
    }

    /// The best tag of every word.
    #[must_use]
    pub fn decode(&self, inputs: &Matrix) -> Vec<usize> {
        self.output.decode(&self.read(inputs))
    }

    fn read(&self, inputs: &Matrix) -> Matrix {
        let there = self.left_to_right.forward(inputs);
        let back = self.right_to_left.forward(&reversed(inputs));
        side_by_side(there.outputs(), &reversed(back.outputs()))
    }

    /// The summed cross-entropy of a sentence whose words should carry the tags `gold`; adds its gradients.
    #[must_use]
    pub fn loss(&self, inputs: &Matrix, gold: &[usize], gradients: &mut Gradients) -> f32 {
        let there = self.left_to_right.forward(inputs);
        let back = self.right_to_left.forward(&reversed(inputs));
        let words = side_by_side(there.outputs(), &reversed(back.outputs()));
        let loss = self.output.loss(&words, gold, &mut gradients.output);
        let (d_there, d_back) = halves(&loss.d_words);
        // The word vectors are fixed, so what would change them is dropped.
        let _ = self.left_to_right.backward(&there, &d_there, &mut gradients.left_to_right);
        let _ =
            self.right_to_left.backward(&back, &reversed(&d_back), &mut gradients.right_to_left);
        loss.value
    }

    fn parts_mut(&mut self) -> [&mut Matrix; 3] {
        let Self { left_to_right, right_to_left, output } = self;
        [left_to_right.weights_mut(), right_to_left.weights_mut(), output.weights_mut()]
    }

    /// Gradients of zero.
    #[must_use]
    pub fn no_gradients(&self) -> Gradients {
        let like = |weights: &Matrix| Matrix::zeros(weights.n_rows(), weights.n_cols());
        Gradients {
            left_to_right: like(self.left_to_right.weights()),
            right_to_left: like(self.right_to_left.weights()),
            output: like(self.output.weights()),
        }
    }
}

/// How a [`BiLstm`] is trained on a support set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BiLstmSettings {
    /// The width of one direction.
    pub hidden: usize,
    /// The number of updates, each on the whole support set.
    pub updates: u64,
    /// Adam's learning rate.
    pub rate: f32,
}

impl Default for BiLstmSettings {
    fn default() -> Self {
        Self { hidden: 64, updates: 60, rate: 1e-2 }
    }
}

impl BiLstmSettings {
    /// Learns the support set, starting from random weights, and tags the queries.
    #[must_use]
    pub fn tag(&self, episode: &Episode, vectors: &WordVectors, seed: u64) -> Vec<Vec<Tag>> {
        let tags = episode.support.tag_set();
        let tagger = self.train(&episode.support, vectors, seed);
        let names =
            |indices: Vec<usize>| indices.into_iter().map(|j| tags.tags()[j].clone()).collect();
        episode
            .queries
            .iter()
            .map(|query| names(tagger.decode(&vectors.embed(query.words()))))
            .collect()
    }

    fn train(&self, support: &SupportSet, vectors: &WordVectors, seed: u64) -> BiLstm {
        let tags = support.tag_set();
        let index = |tag: &Tag| tags.index_of(tag).expect("the tag set covers its support");
        let sentences: Vec<(Matrix, Vec<usize>)> = support
            .sentences()
            .iter()
            .map(|s| (vectors.embed(s.words()), s.tags().map(index).collect()))
            .collect();
        let mut random = Random::new(seed);
        let mut tagger = BiLstm::random(vectors.width(), self.hidden, tags.n_tags(), &mut random);
        let n_values = tagger.parts_mut().iter().map(|weights| weights.values().len()).sum();
        let mut adam = AdamW::new(n_values);
        let rates = Rates { learning_rate: self.rate, weight_decay: 0.0 };
        for _ in 0..self.updates {
            let mut gradients = tagger.no_gradients();
            for (inputs, gold) in &sentences {
                let _ = tagger.loss(inputs, gold, &mut gradients);
            }
            let mut parts = Vec::new();
            for (weights, gradient) in tagger.parts_mut().into_iter().zip(gradients.parts()) {
                let (values, gradient) = (weights.values_mut(), Some(gradient.values()));
                parts.push(Part { values, gradient, rates });
            }
            adam.update(parts, 1.0 / sentences.len() as f32);
        }
        tagger
    }
}

fn reversed(rows: &Matrix) -> Matrix {
    let values = (0..rows.n_rows()).rev().flat_map(|r| rows.row(r)).copied().collect();
    Matrix::new(values, rows.n_cols())
}

/// `[T, a]` and `[T, b]` as `[T, a + b]`.
fn side_by_side(left: &Matrix, right: &Matrix) -> Matrix {
    let values = left.rows().zip(right.rows()).flat_map(|(l, r)| l.iter().chain(r)).copied();
    Matrix::new(values.collect(), left.n_cols() + right.n_cols())
}

/// `[T, 2·n]` as two times `[T, n]`: the inverse of [`side_by_side`].
fn halves(rows: &Matrix) -> (Matrix, Matrix) {
    let n = rows.n_cols() / 2;
    let half = |from: usize| {
        let values = rows.rows().flat_map(|row| &row[from..from + n]).copied().collect();
        Matrix::new(values, n)
    };
    (half(0), half(n))
}

#[cfg(test)]
mod tests {
    use fewtag::{Sentence, Token};

    use super::*;

    fn sentence(text: &str) -> Sentence {
        let token = |pair: &str| {
            let (word, tag) = pair.split_once('/').unwrap();
            Token { word: word.into(), tag: tag.parse().unwrap() }
        };
        Sentence::new(text.split(' ').map(token).collect()).unwrap()
    }

    #[test]
    fn it_learns_its_support_by_heart_and_the_same_way_every_time() {
        let support =
            ["rain/O in/O new/B-city york/I-city", "sun/O on/O monday/B-day", "in/O paris/B-city"];
        let sentences: Vec<Sentence> = support.into_iter().map(sentence).collect();
        let support = SupportSet::new(sentences.clone()).unwrap();
        let episode = Episode { domain: "weather".into(), support, queries: sentences };
        let vectors = WordVectors::random(20, 1);
        let settings = BiLstmSettings { hidden: 12, updates: 40, ..BiLstmSettings::default() };
        let tags = settings.tag(&episode, &vectors, 1);
        for (query, tags) in episode.queries.iter().zip(&tags) {
            assert!(query.tags().eq(tags), "{tags:?}");
        }
        assert_eq!(tags, settings.tag(&episode, &vectors, 1));
    }
}
