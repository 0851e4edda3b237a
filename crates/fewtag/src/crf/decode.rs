//! Best paths: [`viterbi`], the [`n_best`] of them, and the [`greedy`] path of the rule mode.
//!
//! Equal scores go to the lower tag, so an answer never depends on the order of evaluation.

use super::{Move, TransitionScores, best, check};
use crate::matrix::Matrix;

/// One tag per word, and the score of the whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// Tag indices: `[T]`.
    pub tags: Vec<usize>,
    /// `s(y)`.
    pub score: f64,
}

/// The path of the highest score.
///
/// # Panics
///
/// If `scores` and `transitions` disagree on the number of tags.
#[must_use]
pub fn viterbi(scores: &Matrix, transitions: &impl TransitionScores) -> Path {
    check(scores, transitions);
    let mut delta = first_word(scores, transitions);
    let mut came_from: Vec<Vec<usize>> = Vec::with_capacity(scores.n_rows());
    for row in scores.rows().skip(1) {
        let (reached, from): (Vec<f64>, Vec<usize>) =
            transitions.best_arrivals(&delta).into_iter().unzip();
        delta = reached.iter().zip(row).map(|(d, e)| d + f64::from(*e)).collect();
        came_from.push(from);
    }
    let ends = delta.iter().enumerate().map(|(i, d)| (d + transitions.score(Move::End(i)), i));
    let (score, last) = best(ends);
    let mut tags = vec![last];
    for from in came_from.iter().rev() {
        tags.push(from[tags[tags.len() - 1]]);
    }
    tags.reverse();
    Path { tags, score }
}

/// The `n` best paths that are not forbidden, best first; equal scores in the order of their tags.
///
/// # Panics
///
/// If `scores` and `transitions` disagree on the number of tags.
#[must_use]
pub fn n_best(scores: &Matrix, transitions: &impl TransitionScores, n: usize) -> Vec<Path> {
    check(scores, transitions);
    let n_tags = transitions.n_tags();
    let single = |(j, score)| vec![Path { tags: vec![j], score }];
    // ranked[j]: the best prefixes that end in tag j.
    let mut ranked: Vec<Vec<Path>> =
        first_word(scores, transitions).into_iter().enumerate().map(single).collect();
    for row in scores.rows().skip(1) {
        let extended = |j: usize| {
            let arrivals = (0..n_tags).flat_map(|i| {
                let gain = transitions.between(i, j) + f64::from(row[j]);
                ranked[i].iter().map(move |prefix| (prefix.score + gain, prefix))
            });
            best_of(arrivals.collect(), n).into_iter().map(move |(score, prefix)| {
                let tags = prefix.tags.iter().copied().chain([j]).collect();
                Path { tags, score }
            })
        };
        ranked = (0..n_tags).map(|j| extended(j).collect()).collect();
    }
    let ends = ranked.iter().enumerate().flat_map(|(i, paths)| {
        let gain = transitions.score(Move::End(i));
        paths.iter().map(move |path| (path.score + gain, path))
    });
    let paths = best_of(ends.collect(), n).into_iter();
    paths.map(|(score, path)| Path { tags: path.tags.clone(), score }).collect()
}

fn best_of(mut scored: Vec<(f64, &Path)>, n: usize) -> Vec<(f64, &Path)> {
    scored.retain(|(score, _)| *score > f64::NEG_INFINITY);
    scored.sort_by(|(a, p), (b, q)| b.total_cmp(a).then_with(|| p.tags.cmp(&q.tags)));
    scored.truncate(n);
    scored
}

/// Word by word the best tag after the tag just chosen: no look ahead, end scores unused.
///
/// # Panics
///
/// If `scores` and `transitions` disagree on the number of tags.
#[must_use]
pub fn greedy(scores: &Matrix, transitions: &impl TransitionScores) -> Path {
    check(scores, transitions);
    let (mut score, first) = best(indexed(&first_word(scores, transitions)));
    let mut tags = vec![first];
    for row in scores.rows().skip(1) {
        let i = tags[tags.len() - 1];
        let reached = row.iter().enumerate();
        let (gain, j) = best(reached.map(|(j, e)| (transitions.between(i, j) + f64::from(*e), j)));
        score += gain;
        tags.push(j);
    }
    Path { tags, score }
}

/// `start[j] + scores[0, j]`, `[L]`.
fn first_word(scores: &Matrix, transitions: &impl TransitionScores) -> Vec<f64> {
    let row = scores.row(0).iter().enumerate();
    row.map(|(j, e)| transitions.score(Move::Start(j)) + f64::from(*e)).collect()
}

fn indexed(scores: &[f64]) -> impl Iterator<Item = (f64, usize)> {
    scores.iter().copied().zip(0..)
}
