//! Which sentences to label next: those the tagger is unsure of, and unlike what it has seen.
//!
//! ```text
//! unsure(x) = Σₜ H(P(yₜ | x))                  entropy of each word's tag, in nats, summed
//! new(x)    = 1 − max over the support and the sentences chosen before of cos(x̄, s̄),   x̄ = mean vector of the words
//! chosen    = greedily, the largest unsure(x) · new(x)
//! ```
//!
//! The pool is read once, as a stream. Only the [`CANDIDATES`] most unsure sentences are kept to choose from, so
//! memory does not grow with the pool. Pools of up to that size are chosen from as a whole.

use std::collections::HashSet;

use serde::Serialize;

use crate::adapted::{Adapted, Scored, Tagged};
use crate::domain::{Sentence, SupportSet};
use crate::error::Result;
use crate::matrix;

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
    /// How unsure the tagger is of its words: the summed entropy of their tags, in nats.
    pub unsure: f32,
    /// The word it is least sure of, from 0.
    pub word: usize,
    /// The probability of that word's most likely tag.
    pub probability: f32,
    /// How unlike it is to the support and to what was chosen before: 0, the same, to 1.
    pub new: f32,
}

/// A sentence that may be chosen.
struct Candidate {
    number: usize,
    sentence: Sentence,
    tagged: Tagged,
    reason: Reason,
    /// The mean vector of its words, `[d]`.
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
        known.extend(score(adapted, group)?.iter().map(Scored::mean_vector));
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
    Ok(candidates.choose(known, n))
}

fn score<'a>(adapted: &'a Adapted, sentences: &[Sentence]) -> Result<Vec<Scored<'a>>> {
    let words: Vec<Vec<&str>> = sentences.iter().map(|s| s.words().collect()).collect();
    adapted.score_all(&words)
}

/// The most unsure sentences so far.
struct Candidates {
    kept: Vec<Candidate>,
    /// The words of every sentence that must not be offered again.
    seen: HashSet<Vec<String>>,
    most: usize,
}

impl Candidates {
    fn new(support: &SupportSet, n: usize) -> Self {
        let seen = support.sentences().iter().map(words).collect();
        Self { kept: Vec::new(), seen, most: CANDIDATES.max(n) }
    }

    fn offer(&mut self, number: usize, sentence: &Sentence, scored: &Scored) {
        if self.seen.contains(&words(sentence)) {
            return;
        }
        let reason = reason(scored);
        self.seen.insert(words(sentence));
        let (tagged, vector) = (scored.tagged(), scored.mean_vector());
        self.kept.push(Candidate { number, sentence: sentence.clone(), tagged, reason, vector });
        if self.kept.len() >= 2 * self.most {
            self.shrink();
        }
    }

    /// Keeps the most unsure ones.
    fn shrink(&mut self) {
        // The sort is stable: of equally unsure sentences the earlier ones stay.
        self.kept.sort_by(|a, b| b.reason.unsure.total_cmp(&a.reason.unsure));
        for dropped in self.kept.drain(self.most.min(self.kept.len())..) {
            self.seen.remove(&words(&dropped.sentence));
        }
    }

    fn choose(mut self, mut known: Vec<Vec<f32>>, n: usize) -> Vec<Suggestion> {
        self.shrink();
        for candidate in &mut self.kept {
            candidate.reason.new = 1.0;
        }
        let mut chosen = Vec::new();
        loop {
            for candidate in &mut self.kept {
                for vector in &known {
                    let new = 1.0 - matrix::cosine(&candidate.vector, vector);
                    candidate.reason.new = candidate.reason.new.min(new.max(0.0));
                }
            }
            let value = |at: &usize| self.kept[*at].reason.unsure * self.kept[*at].reason.new;
            // `max_by` takes the last of equals, so the earlier ones come last.
            let best = (0..self.kept.len()).rev().max_by(|a, b| value(a).total_cmp(&value(b)));
            let Some(best) = best.filter(|_| chosen.len() < n) else { return chosen };
            let Candidate { number, sentence, tagged, reason, vector } = self.kept.remove(best);
            known = vec![vector];
            chosen.push(Suggestion { number, sentence, tagged, reason });
        }
    }
}

fn words(sentence: &Sentence) -> Vec<String> {
    sentence.words().map(str::to_owned).collect()
}

/// How unsure the tagger is; `new` is not known yet.
fn reason(scored: &Scored) -> Reason {
    let marginals = scored.marginals();
    let entropy =
        |row: &[f32]| -> f32 { row.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum() };
    let entropies: Vec<f32> = marginals.rows().map(entropy).collect();
    let word = (0..entropies.len()).rev().max_by(|&a, &b| entropies[a].total_cmp(&entropies[b]));
    let word = word.expect("a sentence has words");
    let probability = marginals.row(word).iter().copied().fold(0.0, f32::max);
    Reason { unsure: entropies.iter().sum(), word, probability, new: 1.0 }
}
