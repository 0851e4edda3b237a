//! Which sentences to label next: those whose words resemble many others of which the tagger is unsure.
//!
//! ```text
//! unsure(w)  = H(P(y_w | x)), the entropy of the tag of word w in its sentence x, in nats
//! covered(w) = max over the words v of the support and of the sentences chosen before of cos(w, v)
//! gain(c)    = Σ over the pool's words w of unsure(w) · max(0, max over the words v of c of cos(w, v) − covered(w))
//! ```
//!
//! Sentences are chosen greedily by their gain (facility location over words). Words, not sentences, are what a support set
//! teaches; and the most unsure ones by themselves are often odd, from which nothing else can be learned.
//!
//! The pool is read once, as a stream, and at most [`CANDIDATES`] of its sentences are kept, every one as likely
//! (reservoir sampling, always with the same seed), each with at most [`WORDS`] vectors. So memory does not grow with the pool.

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
/// How many words of a sentence are compared: those that the tagger is least sure of.
const WORDS: usize = 32;
/// How many words of the pool are to be covered: those that the tagger is least sure of.
const TARGETS: usize = 1500;

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
    /// How unlike its words are to those of the support and of what was chosen before: 0, the same, to 1.
    pub new: f32,
    /// How many of the pool's unsure words have their nearest likeness in it, before anything labelled or chosen earlier.
    pub stands_for: usize,
}

/// A sentence that may be chosen.
struct Candidate {
    number: usize,
    sentence: Sentence,
    tagged: Tagged,
    reason: Reason,
    /// The words that the tagger is least sure of, from the least sure on.
    words: Vec<Word>,
}

/// A word of the pool.
struct Word {
    /// Its vector, scaled to length 1. `[d]`
    vector: Vec<f32>,
    /// The entropy of its tag, in nats.
    unsure: f32,
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
        known.extend(score(adapted, group)?.iter().flat_map(directions));
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
    Ok(choose(&candidates.kept, known, n))
}

fn score<'a>(adapted: &'a Adapted, sentences: &[Sentence]) -> Result<Vec<Scored<'a>>> {
    let words: Vec<Vec<&str>> = sentences.iter().map(|s| s.words().collect()).collect();
    adapted.score_all(&words)
}

/// The vectors of a sentence's words, each scaled to length 1. `[T][d]`
fn directions(scored: &Scored) -> Vec<Vec<f32>> {
    let direction = |row: &[f32]| {
        let length = matrix::dot(row, row).sqrt().max(f32::MIN_POSITIVE);
        row.iter().map(|value| value / length).collect()
    };
    scored.word_vectors().rows().map(direction).collect()
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
        let seen = support.sentences().iter().map(texts).collect();
        let random = Random::new(0).named("suggest");
        Self { kept: Vec::new(), seen, most: CANDIDATES.max(n), n_offered: 0, random }
    }

    fn offer(&mut self, number: usize, sentence: &Sentence, scored: &Scored) {
        if self.seen.contains(&texts(sentence)) {
            return;
        }
        self.n_offered += 1;
        let full = self.kept.len() == self.most;
        let at = if full { self.random.below(self.n_offered) } else { self.kept.len() };
        if at >= self.most {
            return;
        }
        self.seen.insert(texts(sentence));
        let (words, reason) = unsure(scored);
        let (sentence, tagged) = (sentence.clone(), scored.tagged());
        let candidate = Candidate { number, sentence, tagged, reason, words };
        if full {
            let dropped = std::mem::replace(&mut self.kept[at], candidate);
            self.seen.remove(&texts(&dropped.sentence));
        } else {
            self.kept.push(candidate);
        }
    }
}

/// Takes the candidate with the largest gain, `n` times; `known` are the words of the support.
fn choose(pool: &[Candidate], mut known: Vec<Vec<f32>>, n: usize) -> Vec<Suggestion> {
    let mut targets: Vec<&Word> = pool.iter().flat_map(|candidate| &candidate.words).collect();
    targets.sort_by(|a, b| b.unsure.total_cmp(&a.unsure));
    targets.truncate(TARGETS);
    let to_targets = |candidate: &Candidate| -> Vec<f32> {
        let words = candidate.words.iter().map(|word| &word.vector);
        targets.iter().map(|target| likeness(&target.vector, words.clone())).collect()
    };
    let likenesses: Vec<Vec<f32>> = pool.par_iter().map(to_targets).collect(); // [candidates][targets]
    let mut covered: Vec<f32> =
        targets.par_iter().map(|target| likeness(&target.vector, &known)).collect();
    let mut left: Vec<usize> = (0..pool.len()).collect();
    let mut chosen = Vec::new();
    while chosen.len() < n && !left.is_empty() {
        // In the order of the pool, so that the first of equals is taken whatever the threads do.
        let gain = |&c: &usize| gain(&targets, &covered, &likenesses[c]);
        let gains: Vec<f32> = left.par_iter().map(gain).collect();
        let best = (0..left.len()).rev().max_by(|&a, &b| gains[a].total_cmp(&gains[b]));
        let c = left.remove(best.expect("a candidate is left"));
        let mut stands_for = 0;
        for (covered, likeness) in covered.iter_mut().zip(&likenesses[c]) {
            stands_for += usize::from(likeness > covered);
            *covered = covered.max(*likeness);
        }
        let Candidate { number, ref sentence, ref tagged, reason, ref words } = pool[c];
        let old: f32 = words.iter().map(|word| likeness(&word.vector, &known)).sum();
        let new = (1.0 - old / words.len() as f32).clamp(0.0, 1.0);
        known.extend(words.iter().map(|word| word.vector.clone()));
        let reason = Reason { new, stands_for, ..reason };
        let (sentence, tagged) = (sentence.clone(), tagged.clone());
        chosen.push(Suggestion { number, sentence, tagged, reason });
    }
    chosen
}

/// The cosine of a word and the nearest of `others`, 0 if there is none; all are of length 1.
fn likeness<'a>(word: &[f32], others: impl IntoIterator<Item = &'a Vec<f32>>) -> f32 {
    others.into_iter().map(|other| matrix::dot(word, other)).fold(0.0, f32::max)
}

/// How much better the unsure words are covered with a candidate of these likenesses to them.
fn gain(targets: &[&Word], covered: &[f32], likenesses: &[f32]) -> f32 {
    let better = covered.iter().zip(likenesses).map(|(covered, new)| (new - covered).max(0.0));
    targets.iter().zip(better).map(|(target, better)| target.unsure * better).sum()
}

fn texts(sentence: &Sentence) -> Vec<String> {
    sentence.words().map(str::to_owned).collect()
}

/// The words of which the tagger is least sure, and how unsure it is of the sentence; the other reasons are not known yet.
fn unsure(scored: &Scored) -> (Vec<Word>, Reason) {
    let marginals = scored.marginals();
    let entropy =
        |row: &[f32]| -> f32 { row.iter().filter(|p| **p > 0.0).map(|p| -p * p.ln()).sum() };
    let entropies: Vec<f32> = marginals.rows().map(entropy).collect();
    let mut order: Vec<usize> = (0..entropies.len()).collect();
    order.sort_by(|&a, &b| entropies[b].total_cmp(&entropies[a]));
    order.truncate(WORDS);
    let word = order[0]; // A sentence has words.
    let probability = marginals.row(word).iter().copied().fold(0.0, f32::max);
    let unsure = entropies.iter().sum::<f32>() / entropies.len() as f32;
    let mut vectors = directions(scored);
    let words = order
        .into_iter()
        .map(|at| Word { vector: std::mem::take(&mut vectors[at]), unsure: entropies[at] });
    (words.collect(), Reason { unsure, word, probability, new: 1.0, stands_for: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag::Tag;

    fn candidate(number: usize, words: &[([f32; 2], f32)]) -> Candidate {
        let token = |n: usize| crate::Token { word: n.to_string(), tag: Tag::O };
        let sentence = Sentence::new((0..words.len()).map(token).collect()).expect("words");
        let tagged = Tagged { tags: vec![Tag::O; words.len()], spans: Vec::new(), n_windows: 1 };
        let reason = Reason { unsure: 0.0, word: 0, probability: 1.0, new: 1.0, stands_for: 0 };
        let word = |&(vector, unsure): &([f32; 2], f32)| Word { vector: vector.to_vec(), unsure };
        let words = words.iter().map(word).collect();
        Candidate { number, sentence, tagged, reason, words }
    }

    /// Unit vectors: `EAST` and `NEAR_EAST` are alike (0.8), `NORTH` is unlike `EAST`.
    const EAST: [f32; 2] = [1.0, 0.0];
    const NEAR_EAST: [f32; 2] = [0.8, 0.6];
    const NORTH: [f32; 2] = [0.0, 1.0];

    #[test]
    fn a_sentence_stands_for_the_unsure_words_that_nothing_known_resembles() {
        let pool = [
            candidate(1, &[(EAST, 1.0)]),                    // Known already.
            candidate(2, &[(NORTH, 0.1), (EAST, 0.0)]),      // Nearly sure.
            candidate(3, &[(NEAR_EAST, 0.9), (EAST, 0.0)]),  // 0.2 left, unsure; 0.6 of the next.
            candidate(4, &[(NORTH, 1.0), (NEAR_EAST, 0.9)]), // All that is left.
        ];
        let chosen = choose(&pool, vec![EAST.to_vec()], 4);
        let numbers: Vec<usize> = chosen.iter().map(|suggestion| suggestion.number).collect();
        // After 4 nothing is left to gain, and the order of the pool decides.
        assert_eq!(numbers, [4, 1, 2, 3]);
        let Reason { new, stands_for, .. } = chosen[0].reason;
        assert_eq!(stands_for, 4, "both NORTH and both NEAR_EAST");
        assert!((new - 0.6).abs() < 1e-6, "1 and 0.2 on average: {new}");
        assert_eq!(chosen[1].reason.stands_for, 0);
    }
}
