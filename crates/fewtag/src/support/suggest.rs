//! Which sentences to label next: those that stand for many of which the tagger is unsure.
//!
//! ```text
//! unsure(x)  = mean over the words of H(P(yₜ | x)), the entropy of a word's tag, in nats
//! covered(x) = max over the support and the sentences chosen before of cos(x̄, s̄),   x̄ = mean vector of the words
//! gain(c)    = Σ over the pool of unsure(x) · max(0, cos(x̄, c̄) − covered(x))
//! ```
//!
//! Sentences are chosen greedily by their gain (facility location): one that resembles many unsure sentences which
//! nothing covers yet. The most unsure sentences themselves are often odd ones, and a prototype is no better for an odd example.
//!
//! The pool is read once, as a stream, and at most [`CANDIDATES`] of its sentences are kept, every one as likely
//! (reservoir sampling, always with the same seed). So memory does not grow with the pool.

use std::collections::HashSet;

use rayon::prelude::*;
use serde::Serialize;

use crate::adapted::{Adapted, Scored, Tagged};
use crate::domain::{Sentence, SupportSet};
use crate::error::Result;
use crate::matrix;
use crate::random::Random;

/// How many sentences are kept to choose from.
pub const CANDIDATES: usize = 2000;

/// A sentence that is worth labelling.
#[derive(Debug, Clone)]
pub struct Suggestion {
    /// Its number in the pool, from 1.
    pub number: usize,
    /// The sentence.
    pub sentence: Sentence,
    /// What the tagger would say now: a start for whoever labels it.
    pub tagged: Tagged,
    /// Why it was chosen.
    pub reason: Reason,
}

/// Why a sentence was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reason {
    /// How unsure the tagger is of its words: the mean entropy of their tags, in nats.
    pub unsure: f32,
    /// The word it is least sure of, from 0.
    pub word: usize,
    /// The probability of that word's most likely tag.
    pub probability: f32,
    /// How unlike it is to the support and to what was chosen before: 0, the same, to 1.
    pub new: f32,
    /// How many sentences of the pool it resembles more than anything labelled or chosen before.
    pub stands_for: usize,
}

/// A sentence that may be chosen.
struct Candidate {
    number: usize,
    sentence: Sentence,
    tagged: Tagged,
    reason: Reason,
    /// The mean vector of its words, of length 1. `[d]`
    vector: Vec<f32>,
}

/// Chooses at most `n` sentences of `pool` to be labelled, the most useful first. Sentences of the support and
/// repeated ones are never chosen.
///
/// # Errors
///
/// The first error of the pool, or a sentence that cannot be tagged.
pub fn suggest<E: From<crate::Error>>(
    adapted: &Adapted,
    support: &SupportSet,
    pool: impl IntoIterator<Item = Result<Sentence, E>>,
    n: usize,
) -> Result<Vec<Suggestion>, E> {
    let mut known: Vec<Vec<f32>> = Vec::new();
    for group in support.sentences().chunks(adapted.group_size()) {
        known.extend(score(adapted, group)?.iter().map(direction));
    }
    let mut candidates = Candidates::new(support, n);
    let mut pool = pool.into_iter().enumerate().peekable();
    while pool.peek().is_some() {
        let group =
            pool.by_ref().take(adapted.group_size()).map(|(i, sentence)| Ok((i + 1, sentence?)));
        let (numbers, sentences): (Vec<usize>, Vec<Sentence>) =
            group.collect::<Result<Vec<_>, E>>()?.into_iter().unzip();
        let scored = score(adapted, &sentences)?;
        for ((number, sentence), scored) in numbers.into_iter().zip(&sentences).zip(&scored) {
            candidates.offer(number, sentence, scored);
        }
    }
    Ok(choose(&candidates.kept, &known, n))
}

fn score<'a>(adapted: &'a Adapted, sentences: &[Sentence]) -> Result<Vec<Scored<'a>>> {
    let words: Vec<Vec<&str>> = sentences.iter().map(|s| s.words().collect()).collect();
    adapted.score_all(&words)
}

/// The mean vector of a sentence's words, of length 1. `[d]`
fn direction(scored: &Scored) -> Vec<f32> {
    let mut vector = scored.mean_vector();
    let length = matrix::dot(&vector, &vector).sqrt().max(f32::MIN_POSITIVE);
    for value in &mut vector {
        *value /= length;
    }
    vector
}

/// A sample of the pool, each distinct sentence as likely.
struct Candidates {
    kept: Vec<Candidate>,
    /// The words of the support and of the kept sentences.
    seen: HashSet<Vec<String>>,
    most: usize,
    /// How many were offered.
    n_offered: usize,
    random: Random,
}

impl Candidates {
    fn new(support: &SupportSet, n: usize) -> Self {
        let seen = support.sentences().iter().map(words).collect();
        let random = Random::new(0).named("suggest");
        Self { kept: Vec::new(), seen, most: CANDIDATES.max(n), n_offered: 0, random }
    }

    fn offer(&mut self, number: usize, sentence: &Sentence, scored: &Scored) {
        if self.seen.contains(&words(sentence)) {
            return;
        }
        self.n_offered += 1;
        let full = self.kept.len() == self.most;
        let at = if full { self.random.below(self.n_offered) } else { self.kept.len() };
        if at >= self.most {
            return;
        }
        self.seen.insert(words(sentence));
        let candidate = Candidate {
            number,
            sentence: sentence.clone(),
            tagged: scored.tagged(),
            reason: reason(scored),
            vector: direction(scored),
        };
        if full {
            let dropped = std::mem::replace(&mut self.kept[at], candidate);
            self.seen.remove(&words(&dropped.sentence));
        } else {
            self.kept.push(candidate);
        }
    }
}

/// Takes the candidate with the largest gain, `n` times; `known` are the directions of the support.
fn choose(pool: &[Candidate], known: &[Vec<f32>], n: usize) -> Vec<Suggestion> {
    let nearest =
        |x: &Candidate| known.iter().map(|s| matrix::dot(&x.vector, s)).fold(0.0, f32::max);
    let mut covered: Vec<f32> = pool.par_iter().map(nearest).collect();
    let mut left: Vec<usize> = (0..pool.len()).collect();
    let mut chosen = Vec::new();
    while chosen.len() < n && !left.is_empty() {
        // In the order of the pool, so that the first of equals is taken whatever the threads do.
        let gains: Vec<f32> = left.par_iter().map(|&c| gain(pool, &covered, c)).collect();
        let best = (0..left.len()).rev().max_by(|&a, &b| gains[a].total_cmp(&gains[b]));
        let c = left.remove(best.expect("a candidate is left"));
        let Candidate { number, ref sentence, ref tagged, reason, ref vector } = pool[c];
        let new = (1.0 - covered[c]).max(0.0);
        let mut stands_for = 0;
        for (x, covered) in pool.iter().zip(&mut covered) {
            let likeness = matrix::dot(&x.vector, vector);
            stands_for += usize::from(likeness > *covered);
            *covered = covered.max(likeness);
        }
        let reason = Reason { new, stands_for, ..reason };
        let (sentence, tagged) = (sentence.clone(), tagged.clone());
        chosen.push(Suggestion { number, sentence, tagged, reason });
    }
    chosen
}

/// How much better the unsure part of the pool is covered with candidate `c`.
fn gain(pool: &[Candidate], covered: &[f32], c: usize) -> f32 {
    let of = |(x, covered): (&Candidate, &f32)| {
        x.reason.unsure * (matrix::dot(&x.vector, &pool[c].vector) - covered).max(0.0)
    };
    pool.iter().zip(covered).map(of).sum()
}

fn words(sentence: &Sentence) -> Vec<String> {
    sentence.words().map(str::to_owned).collect()
}

/// How unsure the tagger is; the rest is not known yet.
fn reason(scored: &Scored) -> Reason {
    let marginals = scored.marginals();
    let entropy =
        |row: &[f32]| -> f32 { row.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum() };
    let entropies: Vec<f32> = marginals.rows().map(entropy).collect();
    let word = (0..entropies.len()).rev().max_by(|&a, &b| entropies[a].total_cmp(&entropies[b]));
    let word = word.expect("a sentence has words");
    let probability = marginals.row(word).iter().copied().fold(0.0, f32::max);
    let unsure = entropies.iter().sum::<f32>() / entropies.len() as f32;
    Reason { unsure, word, probability, new: 1.0, stands_for: 0 }
}
