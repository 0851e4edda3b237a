//! The paper's analysis of bi-grams: how often a word's tag is right, by its gold tag and the one before.
//!
//! ```text
//! Border   O-O  O-B  O-I  B-O  I-O    and B-I/I-B: from one span straight into another
//! Inner    B-I  I-I                   within one span
//! Start    S-B  S-I  S-O              the first word of a sentence
//! ```
//!
//! `O-I` and `S-I` are illegal in BIO; they are counted because gold files have them. The paper's row
//! `B-I/I-B` holds every step between two spans, also `B-B`, and `I-I` into another slot.

use std::ops::AddAssign;

use super::metrics::{Judged, ratio};
use crate::tag::{Tag, TagClass};

/// Words and correct words by the kind of their bi-gram.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bigrams {
    counts: [WordCounts; KINDS.len()],
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct WordCounts {
    words: usize,
    correct: usize,
}

/// Group and name in the order of the paper's table.
const KINDS: [(&str, &str); 11] = [
    ("Border", "O-O"),
    ("Border", "O-B"),
    ("Border", "O-I"),
    ("Border", "B-O"),
    ("Border", "I-O"),
    ("Border", "B-I/I-B"),
    ("Inner", "B-I"),
    ("Inner", "I-I"),
    ("Start", "S-B"),
    ("Start", "S-I"),
    ("Start", "S-O"),
];

/// One kind of bi-gram with its numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bigram {
    /// `Border`, `Inner`, `Start` or `All`.
    pub group: &'static str,
    /// The classes of the gold tags, as `O-B`.
    pub name: &'static str,
    /// The words whose gold tags are such a bi-gram.
    pub words: usize,
    /// How many of them were tagged right.
    pub correct: usize,
}

impl Bigram {
    /// The share of the words that was tagged right.
    pub fn accuracy(&self) -> f64 {
        ratio(self.correct, self.words)
    }
}

impl Bigrams {
    /// Counts the words of one sentence.
    pub fn count(&mut self, sentence: &Judged<'_>) {
        let mut previous = None;
        for (gold, predicted) in &sentence.pairs {
            let counts = &mut self.counts[kind(previous, gold)];
            counts.words += 1;
            counts.correct += usize::from(gold == predicted);
            previous = Some(*gold);
        }
    }

    /// All kinds together: every word, its accuracy being that of the words.
    pub fn all(&self) -> Bigram {
        let sum = |number: fn(&WordCounts) -> usize| self.counts.iter().map(number).sum();
        Bigram { group: "All", name: "", words: sum(|n| n.words), correct: sum(|n| n.correct) }
    }

    /// The kinds in the order of the paper's table.
    pub fn kinds(&self) -> impl Iterator<Item = Bigram> {
        KINDS.into_iter().zip(self.counts).map(|((group, name), WordCounts { words, correct })| {
            Bigram { group, name, words, correct }
        })
    }
}

impl AddAssign<&Self> for Bigrams {
    fn add_assign(&mut self, other: &Self) {
        for (counts, more) in self.counts.iter_mut().zip(&other.counts) {
            counts.words += more.words;
            counts.correct += more.correct;
        }
    }
}

/// The position in [`KINDS`] of a word tagged `tag` after one tagged `previous` (`None`: the first word).
fn kind(previous: Option<&Tag>, tag: &Tag) -> usize {
    use TagClass::{B, I, O};
    match (previous.map(Tag::class), tag.class()) {
        (Some(O), O) => 0,
        (Some(O), B) => 1,
        (Some(O), I) => 2,
        (Some(B), O) => 3,
        (Some(I), O) => 4,
        (Some(B), I) if tag.may_follow(previous) => 6,
        (Some(I), I) if tag.may_follow(previous) => 7,
        (Some(B | I), B | I) => 5,
        (None, B) => 8,
        (None, I) => 9,
        (None, O) => 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_keyed_by_the_gold_bigram() {
        let tags =
            |text: &str| -> Vec<Tag> { text.split(' ').map(|t| t.parse().unwrap()).collect() };
        let gold = tags("O O B-a I-a I-a I-b B-b B-b O I-a O B-a O");
        let predicted = tags("O B-a B-a I-a O O O O O O O O O");
        let mut bigrams = Bigrams::default();
        bigrams.count(&Judged::new(&gold, &predicted));
        let first = tags("I-a");
        bigrams.count(&Judged::new(&first, &first));
        let seen: Vec<_> = bigrams.kinds().map(|b| (b.name, b.words, b.correct)).collect();
        let expected = [
            ("O-O", 1, 0),
            ("O-B", 2, 1),
            ("O-I", 1, 0),
            ("B-O", 2, 2),
            ("I-O", 1, 1),
            ("B-I/I-B", 3, 0),
            ("B-I", 1, 1),
            ("I-I", 1, 0),
            ("S-B", 0, 0),
            ("S-I", 1, 1),
            ("S-O", 1, 1),
        ];
        assert_eq!(seen, expected);
        assert_eq!((bigrams.all().words, bigrams.all().correct), (14, 7));
    }
}
