//! The linear-chain CRF: scoring, summing over and decoding the tag paths of one sentence.
//!
//! A path `y` over `T` words and `L` tags has the score
//!
//! ```text
//! s(y) = start[y₀] + Σₜ scores[t, yₜ] + Σₜ between[yₜ₋₁, yₜ] + end[y_T₋₁]
//! ```
//!
//! where `scores = λ·E` are the scaled emissions `[T, L]`. A sentence is never padded: it has exactly
//! `T ≥ 1` rows, so there is no mask. An entry may be `-inf` (forbidden); a sum over forbidden paths only
//! is `-inf`, never NaN. Sums run in `f64` and in log space: with dot products of BERT vectors a path
//! scores thousands, and the loss is a small difference of two such numbers.
//!
//! The recursions are written once, over [`TransitionScores`]. [`Transitions`] is the plain
//! `O(T·L²)` form and the reference; [`SlotTransitions`] does the same in `O(T·L)`.
//!
//! Method: Lafferty et al. (2001). Tests: enumeration of all paths, finite differences.

mod decode;
mod posterior;
mod slots;

pub use decode::{Path, greedy, n_best, viterbi};
pub use posterior::Posterior;
pub use slots::SlotTransitions;

use crate::matrix::Matrix;

/// Transition scores, each on its own: the plain form and the reference.
#[derive(Debug, Clone, PartialEq)]
pub struct Transitions {
    /// Score of beginning with a tag: `[L]`.
    pub start: Vec<f32>,
    /// Score of moving from tag (row) to tag (column): `[L, L]`.
    pub between: Matrix,
    /// Score of ending with a tag: `[L]`.
    pub end: Vec<f32>,
}

/// A step of a path that transitions put a score on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// Beginning with a tag.
    Start(usize),
    /// Going from a tag to a tag.
    Between(usize, usize),
    /// Ending with a tag.
    End(usize),
}

/// What the recursions need to know about transitions.
///
/// The provided methods are the plain `O(L²)` steps; an implementation that knows more may do better.
pub trait TransitionScores {
    /// The shape of a gradient of these scores.
    type Gradient;

    /// The number of tags, `L`.
    fn n_tags(&self) -> usize;

    /// The score of one move.
    fn score(&self, step: Move) -> f64;

    /// A gradient of zeros.
    fn zero_gradient(&self) -> Self::Gradient;

    /// Adds `amount` to the gradient of the score of one move.
    fn add(&self, gradient: &mut Self::Gradient, step: Move, amount: f64);

    /// `out[j] = log Σᵢ exp(before[i] + between[i, j])`, `[L]` to `[L]`.
    fn arrive(&self, before: &[f64]) -> Vec<f64> {
        let arrivals = |j| before.iter().enumerate().map(move |(i, a)| a + self.between(i, j));
        (0..self.n_tags()).map(|j| log_sum_exp(arrivals(j))).collect()
    }

    /// `out[i] = log Σⱼ exp(between[i, j] + after[j])`, `[L]` to `[L]`.
    fn depart(&self, after: &[f64]) -> Vec<f64> {
        let departures = |i| after.iter().enumerate().map(move |(j, b)| self.between(i, j) + b);
        (0..self.n_tags()).map(|i| log_sum_exp(departures(i))).collect()
    }

    /// For each tag the best `before[i] + between[i, j]` and its `i`, the lowest of equals.
    fn best_arrivals(&self, before: &[f64]) -> Vec<(f64, usize)> {
        let arrivals = |j| before.iter().enumerate().map(move |(i, a)| (a + self.between(i, j), i));
        (0..self.n_tags()).map(|j| best(arrivals(j))).collect()
    }

    /// Adds `exp(before[i] + between[i, j] + after[j])` to the gradient of every `between[i, j]`.
    fn add_pairs(&self, gradient: &mut Self::Gradient, before: &[f64], after: &[f64]) {
        for (i, a) in before.iter().enumerate() {
            for (j, b) in after.iter().enumerate() {
                let probability = (a + self.between(i, j) + b).exp();
                self.add(gradient, Move::Between(i, j), probability);
            }
        }
    }

    /// The score of going from tag `i` to tag `j`.
    fn between(&self, i: usize, j: usize) -> f64 {
        self.score(Move::Between(i, j))
    }
}

impl TransitionScores for Transitions {
    type Gradient = Self;

    fn n_tags(&self) -> usize {
        self.start.len()
    }

    fn score(&self, step: Move) -> f64 {
        f64::from(match step {
            Move::Start(j) => self.start[j],
            Move::Between(i, j) => self.between.row(i)[j],
            Move::End(i) => self.end[i],
        })
    }

    fn zero_gradient(&self) -> Self {
        let n = self.n_tags();
        Self { start: vec![0.0; n], between: Matrix::zeros(n, n), end: vec![0.0; n] }
    }

    fn add(&self, gradient: &mut Self, step: Move, amount: f64) {
        *match step {
            Move::Start(j) => &mut gradient.start[j],
            Move::Between(i, j) => &mut gradient.between.row_mut(i)[j],
            Move::End(i) => &mut gradient.end[i],
        } += amount as f32;
    }
}

/// The score of one path, the formula of the module comment.
///
/// # Panics
///
/// If `path` has not one tag per word.
#[must_use]
pub fn path_score(scores: &Matrix, transitions: &impl TransitionScores, path: &[usize]) -> f64 {
    check(scores, transitions);
    assert_eq!(path.len(), scores.n_rows(), "one tag per word");
    let words = scores.rows().zip(path).map(|(row, &j)| f64::from(row[j])).sum::<f64>();
    words + moves(path).map(|step| transitions.score(step)).sum::<f64>()
}

/// The log of the summed, exponentiated scores of all `L^T` paths.
///
/// # Panics
///
/// If `scores` and `transitions` disagree on the number of tags.
#[must_use]
pub fn log_partition(scores: &Matrix, transitions: &impl TransitionScores) -> f64 {
    let alpha = forward(scores, transitions);
    let last = &alpha[alpha.len() - 1];
    log_sum_exp(last.iter().enumerate().map(|(i, a)| a + transitions.score(Move::End(i))))
}

/// The loss of one sentence and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Loss<G> {
    /// `log Z − s(gold)`, at least 0.
    pub value: f64,
    /// Gradient of the emissions before scaling: `[T, L]`.
    pub emissions: Matrix,
    /// Gradient of the scale λ.
    pub scale: f32,
    /// Gradient of the transition scores.
    pub transitions: G,
}

/// The negative log-likelihood of the path `gold` with `scores = scale · emissions`, and its exact gradients.
///
/// # Panics
///
/// If `gold` has not one tag per word, or is forbidden: its loss would be infinite.
#[must_use]
pub fn loss<S: TransitionScores>(
    emissions: &Matrix,
    scale: f32,
    transitions: &S,
    gold: &[usize],
) -> Loss<S::Gradient> {
    let scores = emissions.scaled(scale);
    let posterior = Posterior::new(&scores, transitions);
    let gold_score = path_score(&scores, transitions, gold);
    assert!(gold_score > f64::NEG_INFINITY, "the gold path is forbidden");

    let mut d_scores = posterior.marginals();
    let mut d_transitions = posterior.expected_moves();
    for (t, &j) in gold.iter().enumerate() {
        d_scores.row_mut(t)[j] -= 1.0;
    }
    for step in moves(gold) {
        transitions.add(&mut d_transitions, step, -1.0);
    }
    // A forbidden emission has no share in the loss; -inf · 0 would be NaN.
    let shares = emissions.values().iter().zip(d_scores.values()).filter(|(e, _)| e.is_finite());
    Loss {
        value: posterior.log_partition() - gold_score,
        scale: shares.map(|(e, d)| f64::from(*e) * f64::from(*d)).sum::<f64>() as f32,
        emissions: d_scores.scaled(scale),
        transitions: d_transitions,
    }
}

/// The moves of a path in order: start, between each two words, end.
fn moves(path: &[usize]) -> impl Iterator<Item = Move> {
    let between = path.windows(2).map(|pair| Move::Between(pair[0], pair[1]));
    let end = path.last().map(|&i| Move::End(i));
    path.first().map(|&j| Move::Start(j)).into_iter().chain(between).chain(end)
}

/// `alpha[t][j]`: log-sum of all prefixes that end at word `t` in tag `j`. `[T, L]`
fn forward(scores: &Matrix, transitions: &impl TransitionScores) -> Vec<Vec<f64>> {
    check(scores, transitions);
    let mut alpha: Vec<Vec<f64>> = Vec::with_capacity(scores.n_rows());
    for row in scores.rows() {
        let mut here = match alpha.last() {
            Some(before) => transitions.arrive(before),
            None => (0..row.len()).map(|j| transitions.score(Move::Start(j))).collect(),
        };
        here.iter_mut().zip(row).for_each(|(a, e)| *a += f64::from(*e));
        alpha.push(here);
    }
    alpha
}

fn check(scores: &Matrix, transitions: &impl TransitionScores) {
    assert_eq!(scores.n_cols(), transitions.n_tags(), "scores and transitions: tag sets differ");
    assert!(scores.n_rows() > 0, "a sentence has at least one word");
}

/// `log Σ exp x`, shifted by the maximum so that no `exp` overflows.
fn log_sum_exp(scores: impl Iterator<Item = f64> + Clone) -> f64 {
    let max = scores.clone().fold(f64::NEG_INFINITY, f64::max);
    if max == f64::NEG_INFINITY {
        return max; // Every path is forbidden; `max - max` would be NaN.
    }
    max + scores.map(|x| (x - max).exp()).sum::<f64>().ln()
}

/// The highest score with its tag, the first of equals.
fn best(scored: impl Iterator<Item = (f64, usize)>) -> (f64, usize) {
    scored.reduce(|best, next| if next.0 > best.0 { next } else { best }).expect("at least one tag")
}

#[cfg(test)]
mod tests;
