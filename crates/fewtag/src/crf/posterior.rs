//! Probabilities of tags, moves and spans, by the forward–backward algorithm.
//!
//! ```text
//! alpha[t, j] = log Σ exp of all prefixes that end at word t in tag j      (scores[t, j] included)
//! beta[t, i]  = log Σ exp of all suffixes that follow tag i at word t      (scores[t, i] not included)
//! P(yₜ = j)   = exp(alpha[t, j] + beta[t, j] − log Z)
//! ```

use std::ops::Range;

use super::{Move, TransitionScores, forward, log_sum_exp};
use crate::matrix::Matrix;

/// The distribution over the tag paths of one sentence.
#[derive(Debug, Clone)]
pub struct Posterior<'a, S> {
    scores: &'a Matrix,
    transitions: &'a S,
    alpha: Vec<Vec<f64>>,
    beta: Vec<Vec<f64>>,
    log_partition: f64,
}

impl<'a, S: TransitionScores> Posterior<'a, S> {
    /// Runs both recursions once.
    ///
    /// # Panics
    ///
    /// If `scores` and `transitions` disagree on the number of tags, or if every path is forbidden.
    #[must_use]
    pub fn new(scores: &'a Matrix, transitions: &'a S) -> Self {
        let alpha = forward(scores, transitions);
        let beta = backward(scores, transitions);
        let last = alpha.len() - 1;
        let joined = alpha[last].iter().zip(&beta[last]).map(|(a, b)| a + b);
        let log_partition = log_sum_exp(joined);
        assert!(log_partition > f64::NEG_INFINITY, "every path is forbidden");
        Self { scores, transitions, alpha, beta, log_partition }
    }

    /// `log Z`.
    #[must_use]
    pub fn log_partition(&self) -> f64 {
        self.log_partition
    }

    /// `P(yₜ = j)` for every word and tag: `[T, L]`, rows sum to 1.
    #[must_use]
    pub fn marginals(&self) -> Matrix {
        let joined = self.alpha.iter().flatten().zip(self.beta.iter().flatten());
        let values = joined.map(|(a, b)| (a + b - self.log_partition).exp() as f32).collect();
        Matrix::new(values, self.transitions.n_tags())
    }

    /// How often each move is expected: the gradient of `log Z` in the transition scores.
    #[must_use]
    pub(crate) fn expected_moves(&self) -> S::Gradient {
        let mut expected = self.transitions.zero_gradient();
        let marginals = self.marginals();
        let n_words = marginals.n_rows();
        for j in 0..marginals.n_cols() {
            let first = f64::from(marginals.row(0)[j]);
            let last = f64::from(marginals.row(n_words - 1)[j]);
            self.transitions.add(&mut expected, Move::Start(j), first);
            self.transitions.add(&mut expected, Move::End(j), last);
        }
        for t in 1..n_words {
            let after: Vec<f64> =
                self.entering(t).iter().map(|score| score - self.log_partition).collect();
            self.transitions.add_pairs(&mut expected, &self.alpha[t - 1], &after);
        }
        expected
    }

    /// The probability that exactly the words `words` form a span of one slot, given the indices of its
    /// `B` and `I` tags (`None`: the tag set lacks it).
    ///
    /// By `conlleval`'s rules: the span begins with `B`, or with `I` after a tag of another slot; goes on
    /// with `I`; and the next word is no `I` of the slot. In strict BIO only `B` can begin.
    ///
    /// # Panics
    ///
    /// If `words` is empty or reaches beyond the sentence.
    #[must_use]
    pub fn span(&self, words: Range<usize>, begin: Option<usize>, inside: Option<usize>) -> f64 {
        assert!(!words.is_empty() && words.end <= self.alpha.len(), "{words:?} is no span");
        let t = words.start;
        let openings = [
            begin.map(|j| (j, self.alpha[t][j])),
            inside.map(|j| (j, self.open_inside(t, j, begin))),
        ];
        let ways = openings.into_iter().flatten().map(|(first, opening)| {
            let mut score = opening;
            let mut tag = first;
            for t in words.clone().skip(1) {
                let Some(next) = inside else { return f64::NEG_INFINITY };
                score += self.transitions.between(tag, next) + self.score(t, next);
                tag = next;
            }
            score + self.close(words.end, tag, inside)
        });
        let ways: Vec<f64> = ways.collect();
        (log_sum_exp(ways.into_iter()) - self.log_partition).exp()
    }

    /// Log-sum of the prefixes whose word `t` is the slot's `I` and whose word before is not of the slot.
    fn open_inside(&self, t: usize, inside: usize, begin: Option<usize>) -> f64 {
        let arrivals = if t == 0 {
            self.transitions.score(Move::Start(inside))
        } else {
            let before = self.alpha[t - 1].iter().enumerate();
            let others = before.filter(|(i, _)| *i != inside && Some(*i) != begin);
            log_sum_exp(others.map(|(i, a)| a + self.transitions.between(i, inside)))
        };
        arrivals + self.score(t, inside)
    }

    /// Log-sum of the suffixes after `tag` that begin at word `t` with anything but `inside`.
    fn close(&self, t: usize, tag: usize, inside: Option<usize>) -> f64 {
        if t == self.alpha.len() {
            return self.transitions.score(Move::End(tag));
        }
        let after = self.entering(t).into_iter().enumerate();
        let others: Vec<f64> = after
            .filter(|(j, _)| Some(*j) != inside)
            .map(|(j, b)| self.transitions.between(tag, j) + b)
            .collect();
        log_sum_exp(others.into_iter())
    }

    /// Log-sum of the suffixes that begin at word `t` with tag `j`, `scores[t, j]` included: `[L]`.
    fn entering(&self, t: usize) -> Vec<f64> {
        self.scores.row(t).iter().zip(&self.beta[t]).map(|(e, b)| f64::from(*e) + b).collect()
    }

    fn score(&self, t: usize, j: usize) -> f64 {
        f64::from(self.scores.row(t)[j])
    }
}

/// `beta[t][i]`: log-sum of all suffixes that follow tag `i` at word `t`. `[T, L]`
fn backward(scores: &Matrix, transitions: &impl TransitionScores) -> Vec<Vec<f64>> {
    let ends = (0..transitions.n_tags()).map(|i| transitions.score(Move::End(i))).collect();
    let mut beta = vec![ends];
    for t in (1..scores.n_rows()).rev() {
        let row = scores.row(t).iter();
        let after: Vec<f64> =
            row.zip(&beta[beta.len() - 1]).map(|(e, b)| f64::from(*e) + b).collect();
        beta.push(transitions.depart(&after));
    }
    beta.reverse();
    beta
}
