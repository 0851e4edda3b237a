//! A softmax classifier of single words: the output layer of Bi-LSTM and TransferBERT.
//!
//! ```text
//! scores[t, j] = Σ_k x[t, k]·W[k, j] + bias[j]        loss = −Σ_t log softmax(scores[t])[gold_t]
//! ```
//!
//! `x` is `[T, d]`; `W` and the bias are one matrix `[d + 1, L]`, the bias its last row.
//! The gradient by the scores is `softmax − one-hot(gold)`, exact and bounded.

use fewtag::Random;
use fewtag::matrix::{Matrix, add_scaled, dot};

/// `W` and the bias.
#[derive(Debug, Clone)]
pub struct Classifier {
    weights: Matrix,
}

/// The loss of one sentence and what it asks to change.
#[derive(Debug)]
pub struct Loss {
    /// The cross-entropy, summed over the words.
    pub value: f32,
    /// `∂loss/∂x`, `[T, d]`.
    pub d_words: Matrix,
}

impl Classifier {
    /// Takes `W` with the bias as its last row, `[d + 1, L]`.
    #[must_use]
    pub fn new(weights: Matrix) -> Self {
        Self { weights }
    }

    /// Small random weights N(0, 0.02²), as BERT starts its output layers, and no bias.
    #[must_use]
    pub fn random(width: usize, n_tags: usize, random: &mut Random) -> Self {
        let mut weights = Matrix::zeros(width + 1, n_tags);
        for w in &mut weights.values_mut()[..width * n_tags] {
            *w = (0.02 * random.normal()) as f32;
        }
        Self { weights }
    }

    /// `W` with the bias as its last row, `[d + 1, L]`.
    #[must_use]
    pub fn weights(&self) -> &Matrix {
        &self.weights
    }

    /// The same, to be changed.
    pub fn weights_mut(&mut self) -> &mut Matrix {
        &mut self.weights
    }

    /// The scores of all tags for every word, `[T, L]`.
    ///
    /// # Panics
    ///
    /// If `words` is not `[T, d]`.
    #[must_use]
    pub fn scores(&self, words: &Matrix) -> Matrix {
        let width = words.n_cols();
        assert_eq!(width + 1, self.weights.n_rows(), "width of the word vectors");
        let mut scores = Matrix::zeros(words.n_rows(), self.weights.n_cols());
        for (t, word) in words.rows().enumerate() {
            let scores = scores.row_mut(t);
            scores.copy_from_slice(self.weights.row(width));
            for (&x, row) in word.iter().zip(self.weights.rows()) {
                add_scaled(scores, x, row);
            }
        }
        scores
    }

    /// The best tag of every word; ties go to the lower tag.
    #[must_use]
    pub fn decode(&self, words: &Matrix) -> Vec<usize> {
        let best = |row: &[f32]| {
            (0..row.len()).fold(0, |best, j| if row[j] > row[best] { j } else { best })
        };
        self.scores(words).rows().map(best).collect()
    }

    /// The loss of a sentence whose words should carry the tags `gold`, adding `∂loss/∂W` to `d_weights`.
    ///
    /// # Panics
    ///
    /// If `gold` has not one tag per word, or `d_weights` not the shape of `W`.
    #[must_use]
    pub fn loss(&self, words: &Matrix, gold: &[usize], d_weights: &mut Matrix) -> Loss {
        assert_eq!(words.n_rows(), gold.len(), "one gold tag per word");
        assert_eq!(d_weights.values().len(), self.weights.values().len(), "gradient shape");
        let width = words.n_cols();
        let mut scores = self.scores(words);
        let mut d_words = Matrix::zeros(words.n_rows(), width);
        let mut value = 0.0;
        for (t, &gold) in gold.iter().enumerate() {
            let row = scores.row_mut(t);
            value -= log_softmax(row)[gold];
            let d_scores = softmax_minus_gold(row, gold);
            for (k, &x) in words.row(t).iter().enumerate() {
                add_scaled(d_weights.row_mut(k), x, &d_scores);
                d_words.row_mut(t)[k] = dot(self.weights.row(k), &d_scores);
            }
            add_scaled(d_weights.row_mut(width), 1.0, &d_scores);
        }
        Loss { value, d_words }
    }
}

/// `softmax(scores) − one-hot(gold)`, `[L]`: the gradient of the cross-entropy by the scores.
fn softmax_minus_gold(scores: &[f32], gold: usize) -> Vec<f32> {
    let mut gradient: Vec<f32> = log_softmax(scores).into_iter().map(f32::exp).collect();
    gradient[gold] -= 1.0;
    gradient
}

/// `scores − log Σ exp scores`, shifted by the maximum so that no `exp` overflows.
fn log_softmax(scores: &[f32]) -> Vec<f32> {
    let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let log_sum = max + scores.iter().map(|x| (x - max).exp()).sum::<f32>().ln();
    scores.iter().map(|x| x - log_sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: f32 = 1e-2;

    fn any(n_rows: usize, n_cols: usize, random: &mut Random) -> Matrix {
        Matrix::new((0..n_rows * n_cols).map(|_| random.normal() as f32).collect(), n_cols)
    }

    #[test]
    fn gradients_equal_finite_differences() {
        let mut random = Random::new(5);
        let mut classifier = Classifier::new(any(4, 3, &mut random));
        let mut words = any(2, 3, &mut random);
        let gold = [2, 0];
        let mut d_weights = Matrix::zeros(4, 3);
        let loss = classifier.loss(&words, &gold, &mut d_weights);
        let value = |classifier: &Classifier, words: &Matrix| {
            classifier.loss(words, &gold, &mut Matrix::zeros(4, 3)).value
        };
        for k in 0..12 {
            let mut at = |shift: f32| {
                classifier.weights_mut().values_mut()[k] += shift;
                let value = value(&classifier, &words);
                classifier.weights_mut().values_mut()[k] -= shift;
                value
            };
            let slope = (at(STEP) - at(-STEP)) / (2.0 * STEP);
            assert!((slope - d_weights.values()[k]).abs() < 2e-3, "weight {k}");
        }
        for k in 0..6 {
            let mut at = |shift: f32| {
                words.values_mut()[k] += shift;
                let value = value(&classifier, &words);
                words.values_mut()[k] -= shift;
                value
            };
            let slope = (at(STEP) - at(-STEP)) / (2.0 * STEP);
            assert!((slope - loss.d_words.values()[k]).abs() < 2e-3, "word {k}");
        }
    }

    #[test]
    fn huge_scores_do_not_overflow() {
        let classifier = Classifier::new(Matrix::new(vec![1e4, -1e4, 0.0, 0.0], 2));
        let words = Matrix::new(vec![1.0], 1);
        let loss = classifier.loss(&words, &[1], &mut Matrix::zeros(2, 2));
        assert!((loss.value - 2e4).abs() < 1.0);
        assert_eq!(classifier.decode(&words), [0]);
    }

    #[test]
    fn equal_scores_go_to_the_lower_tag() {
        let classifier = Classifier::new(Matrix::zeros(2, 3));
        assert_eq!(classifier.decode(&Matrix::new(vec![1.0, 2.0], 1)), [0, 0]);
    }
}
