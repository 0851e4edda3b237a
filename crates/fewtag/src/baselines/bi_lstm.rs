//! Bi-LSTM: a bidirectional LSTM tagger that learns from one support set alone.
//!
//! ```text
//! h_t = [→lstm(x)_t, ←lstm(x)_t]      tag_t = argmax softmax(h_t · W)
//! ```
//!
//! `x` is `[T, d]`, fixed word vectors; both directions together give `h [T, 2·n_hidden]`. Nothing is
//! transferred from other domains.
//!
//! Source: the paper's baseline, after Huang et al. (2015) but without their CRF, which a few sentences cannot train.

use super::classifier::Classifier;
use super::lstm::Lstm;
use crate::matrix::Matrix;
use crate::random::Random;

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
