//! Spans found and missed: precision, recall and F1 of a sentence, an episode, a domain.
//!
//! A predicted span is correct if a gold span has the same words and slot; spans are cut by
//! `conlleval`'s rules ([`crate::tag::spans`]).
//!
//! ```text
//! P = correct / predicted    R = correct / gold    F1 = 2PR / (P + R)    0 / 0 = 0, as conlleval has it
//! episode F1           F1 of the counts summed over the episode's sentences
//! sentence-macro F1    F1 of the means of P and R over the episode's sentences (the paper's formula)
//! ```
//!
//! All scores are fractions, `0 ≤ score ≤ 1`. Reference values: `tests/golden/scores.jsonl`.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use super::bigrams::Bigrams;
use crate::tag::{self, Slot, Tag};

/// A sentence with its gold and its predicted tags: one pair per word.
#[derive(Debug, Clone)]
pub struct Judged<'a> {
    pub(super) pairs: Vec<(&'a Tag, &'a Tag)>,
}

impl<'a> Judged<'a> {
    /// Lays `predicted` beside `gold`.
    ///
    /// # Panics
    ///
    /// If one has more words than the other.
    pub fn new<G, P>(gold: G, predicted: P) -> Self
    where
        G: IntoIterator<Item = &'a Tag, IntoIter: ExactSizeIterator>,
        P: IntoIterator<Item = &'a Tag, IntoIter: ExactSizeIterator>,
    {
        let (gold, predicted) = (gold.into_iter(), predicted.into_iter());
        assert_eq!(gold.len(), predicted.len(), "gold and predicted words");
        Self { pairs: gold.zip(predicted).collect() }
    }
}

/// How many spans there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Spans predicted exactly as they are in the gold tags.
    pub correct: usize,
    /// Spans predicted.
    pub predicted: usize,
    /// Spans in the gold tags.
    pub gold: usize,
}

impl Counts {
    /// The share of the predicted spans that is correct.
    pub fn precision(&self) -> f64 {
        ratio(self.correct, self.predicted)
    }

    /// The share of the gold spans that was found.
    pub fn recall(&self) -> f64 {
        ratio(self.correct, self.gold)
    }

    /// The harmonic mean of precision and recall.
    pub fn f1(&self) -> f64 {
        harmonic_mean(self.precision(), self.recall())
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.correct += other.correct;
        self.predicted += other.predicted;
        self.gold += other.gold;
    }
}

pub(super) fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn harmonic_mean(p: f64, r: f64) -> f64 {
    if p + r == 0.0 { 0.0 } else { 2.0 * p * r / (p + r) }
}

/// The counts of every slot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// By slot, gold or predicted.
    pub slots: BTreeMap<Slot, Counts>,
}

impl Tally {
    /// Counts one sentence.
    pub fn of(sentence: &Judged<'_>) -> Self {
        let gold = tag::spans(sentence.pairs.iter().map(|(gold, _)| *gold));
        let predicted = tag::spans(sentence.pairs.iter().map(|(_, predicted)| *predicted));
        let mut tally = Self::default();
        for span in &gold {
            tally.slots.entry(span.slot.clone()).or_default().gold += 1;
        }
        for span in predicted {
            // Spans are sorted and do not overlap, so a start belongs to at most one.
            let same = gold.binary_search_by_key(&span.start, |have| have.start).ok();
            let correct = same.is_some_and(|at| gold[at] == span);
            let counts = tally.slots.entry(span.slot).or_default();
            counts.predicted += 1;
            counts.correct += usize::from(correct);
        }
        tally
    }

    /// The counts of all slots together.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for counts in self.slots.values() {
            total += *counts;
        }
        total
    }
}

impl AddAssign<&Self> for Tally {
    fn add_assign(&mut self, other: &Self) {
        for (slot, counts) in &other.slots {
            *self.slots.entry(slot.clone()).or_default() += *counts;
        }
    }
}

/// What one episode was judged to be.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EpisodeScore {
    /// The number of sentences judged.
    pub n_sentences: usize,
    /// The counts of all sentences together.
    pub tally: Tally,
    /// The mean over the sentences of their precision; 0 for one without predicted spans.
    pub sentence_precision: f64,
    /// The mean over the sentences of their recall; 0 for one without gold spans.
    pub sentence_recall: f64,
    /// The words right and wrong by their gold bi-gram.
    pub bigrams: Bigrams,
}

impl EpisodeScore {
    /// Judges the sentences of one episode.
    pub fn of(sentences: &[Judged<'_>]) -> Self {
        let mut score = Self { n_sentences: sentences.len(), ..Self::default() };
        for sentence in sentences {
            let tally = Tally::of(sentence);
            score.sentence_precision += tally.total().precision();
            score.sentence_recall += tally.total().recall();
            score.tally += &tally;
            score.bigrams.count(sentence);
        }
        let n = sentences.len().max(1) as f64;
        score.sentence_precision /= n;
        score.sentence_recall /= n;
        score
    }

    /// Episode F1: of the counts of all sentences together.
    pub fn f1(&self) -> f64 {
        self.tally.total().f1()
    }

    /// Sentence-macro F1: of the sentences' mean precision and mean recall.
    pub fn sentence_macro_f1(&self) -> f64 {
        harmonic_mean(self.sentence_precision, self.sentence_recall)
    }
}

/// Mean and spread of a number over episodes, domains or seeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// The arithmetic mean; 0 of nothing.
    pub mean: f64,
    /// The standard deviation of a sample (divided by `n − 1`); 0 of fewer than two numbers.
    pub sd: f64,
}

impl Summary {
    /// Summarises the numbers.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
        let numbers: Vec<f64> = numbers.into_iter().collect();
        // From 0: the sum of no numbers is −0.
        let mean = numbers.iter().fold(0.0, |sum, x| sum + x) / numbers.len().max(1) as f64;
        let squares: f64 = numbers.iter().map(|x| (x - mean).powi(2)).sum();
        Self { mean, sd: (squares / numbers.len().saturating_sub(1).max(1) as f64).sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(text: &str) -> Vec<Tag> {
        text.split(' ').map(|tag| tag.parse().unwrap()).collect()
    }

    fn episode(sentences: &[(&str, &str)]) -> EpisodeScore {
        let tags: Vec<_> = sentences.iter().map(|(g, p)| (tags(g), tags(p))).collect();
        let judged: Vec<_> = tags.iter().map(|(g, p)| Judged::new(g, p)).collect();
        EpisodeScore::of(&judged)
    }

    #[test]
    fn a_span_counts_only_if_words_and_slot_agree() {
        let score = episode(&[("B-a I-a O B-b B-c", "B-a I-a O B-c I-c")]);
        assert_eq!(score.tally.total(), Counts { correct: 1, predicted: 2, gold: 3 });
        let c = score.tally.slots[&Slot::new("c").unwrap()];
        assert_eq!(c, Counts { correct: 0, predicted: 1, gold: 1 });
    }

    #[test]
    fn both_episode_measures_follow_their_formulas() {
        // Sentence 1: P 1/1, R 1/2. Sentence 2: P 0/2, R 0/1. Together: P 1/3, R 1/3.
        let score = episode(&[("B-a B-b", "B-a O"), ("B-a O", "B-b B-b")]);
        assert!((score.f1() - 1.0 / 3.0).abs() < 1e-15);
        assert!((score.sentence_macro_f1() - 1.0 / 3.0).abs() < 1e-15);
        assert!((score.sentence_precision - 0.5).abs() < 1e-15);
        assert!((score.sentence_recall - 0.25).abs() < 1e-15);
    }

    #[test]
    fn nothing_to_find_and_nothing_found_is_0() {
        let score = episode(&[("O O", "O O")]);
        assert_eq!((score.f1(), score.sentence_macro_f1()), (0.0, 0.0));
        assert_eq!(
            (EpisodeScore::of(&[]).f1(), EpisodeScore::of(&[]).sentence_macro_f1()),
            (0.0, 0.0)
        );
    }

    #[test]
    fn a_summary_divides_by_n_minus_one() {
        let summary = Summary::of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(summary, Summary { mean: 5.0, sd: (32.0_f64 / 7.0).sqrt() });
        assert_eq!(Summary::of([3.0]), Summary { mean: 3.0, sd: 0.0 });
        assert_eq!(Summary::of([]), Summary { mean: 0.0, sd: 0.0 });
    }

    #[test]
    #[should_panic(expected = "gold and predicted words")]
    fn sentences_of_unequal_length_cannot_be_judged() {
        Judged::new(&tags("O O"), &tags("O"));
    }
}
