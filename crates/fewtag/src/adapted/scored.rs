//! What an adapted tagger says about a sentence: emissions, tags, spans, probabilities, and who spoke for them.

use std::sync::OnceLock;

use super::Adapted;
use crate::crf::{self, Path, SlotTransitions};
use crate::emission::{Comparison, Contribution, Group};
use crate::matrix::{self, Matrix};
use crate::reading::Window;
use crate::tag::{self, Span, Tag, TagSet};

/// The tags of a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct Tagged {
    /// One tag per word.
    pub tags: Vec<Tag>,
    /// The spans that the tags form, from left to right.
    pub spans: Vec<TaggedSpan>,
    /// In how many windows the sentence was read; 1 unless it is longer than the encoder reads.
    pub n_windows: usize,
}

/// A span that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct TaggedSpan {
    /// Where, and which slot.
    pub span: Span,
    /// The probability that exactly these words form a span of this slot, summed over all tag paths.
    pub probability: f32,
}

/// A sentence whose words have been compared with the support.
pub struct Scored<'a> {
    adapted: &'a Adapted,
    emissions: Matrix,
    parts: Vec<Part>,
}

/// A window of a sentence; mostly the whole.
pub(super) struct Part {
    window: Window,
    emissions: Matrix,
    queries: Vec<Matrix>,
    /// The support as read beside this window; none in separate context.
    words: Vec<Matrix>,
    /// What an explanation needs of it, made when the first is asked for; in separate context the support has it.
    comparison: OnceLock<Comparison>,
}

impl Part {
    /// Compares the query's vectors in a window with those of the support.
    pub(super) fn new(adapted: &Adapted, window: Window, rows: Vec<Matrix>) -> Self {
        let (queries, words) = adapted.beside.vectors(rows, window.words.len());
        let emissions = match &adapted.read {
            Some(read) => read.references.emissions(&queries[0]),
            None => adapted.scorer().emissions(&queries, adapted.vectors(&words)),
        };
        Self { window, emissions, queries, words, comparison: OnceLock::new() }
    }
}

impl<'a> Scored<'a> {
    pub(super) fn new(adapted: &'a Adapted, parts: Vec<Part>) -> Self {
        let owned = |part: &Part| -> Vec<f32> {
            let Window { words, owned } = &part.window;
            let rows = owned.clone().map(|word| word - words.start);
            rows.flat_map(|row| part.emissions.row(row).iter().copied()).collect()
        };
        let emissions = Matrix::new(parts.iter().flat_map(owned).collect(), adapted.tags.n_tags());
        Self { adapted, emissions, parts }
    }

    /// The tags that a word can get.
    #[must_use]
    pub fn tag_set(&self) -> &TagSet {
        &self.adapted.tags
    }

    /// λ.
    pub(crate) fn scale(&self) -> f64 {
        self.adapted.tagger.head().scale.into()
    }

    /// The transition scores that decoding uses.
    pub(crate) fn transitions(&self) -> SlotTransitions {
        let Adapted { tagger, tags, .. } = self.adapted;
        tagger.head().decoding_table(tagger.settings()).over(tags)
    }

    /// The emissions `[T, L]`, before scaling.
    #[must_use]
    pub fn emissions(&self) -> &Matrix {
        &self.emissions
    }

    /// Chooses the tags.
    pub(crate) fn tags(&self) -> Vec<Tag> {
        let Adapted { tagger, tags, .. } = self.adapted;
        let path = tagger.head().decode(tagger.settings(), tags, &self.emissions);
        path.into_iter().map(|j| tags.tags()[j].clone()).collect()
    }

    /// Chooses the tags and says how sure the model is of each span.
    #[must_use]
    pub fn tagged(&self) -> Tagged {
        let tags = self.tags();
        let spans = tag::spans(&tags);
        let probabilities = self.probabilities(&spans).into_iter();
        let spans = spans.into_iter().zip(probabilities);
        Tagged {
            tags,
            spans: spans.map(|(span, probability)| TaggedSpan { span, probability }).collect(),
            n_windows: self.parts.len(),
        }
    }

    /// The probability of each span, whether it was chosen or not.
    ///
    /// # Panics
    ///
    /// If a span is empty or reaches beyond the sentence.
    #[must_use]
    pub fn probabilities(&self, spans: &[Span]) -> Vec<f32> {
        let Adapted { tagger, tags, .. } = self.adapted;
        tagger.head().span_probabilities(tagger.settings(), tags, &self.emissions, spans)
    }

    /// The probability of every tag for each word, `[T, L]`: rows sum to 1.
    #[must_use]
    pub fn marginals(&self) -> Matrix {
        let Adapted { tagger, tags, .. } = self.adapted;
        tagger.head().marginals(tagger.settings(), tags, &self.emissions)
    }

    /// The vectors of the words as they were read in their sentence, in paired context the mean over the support sentences.
    /// `[T, h]`
    pub(crate) fn word_vectors(&self) -> Matrix {
        let width = self.adapted.tagger.engine().width();
        let of_word = |word| {
            let (part, at) = self.part_of(word);
            matrix::mean(part.queries.iter().map(|query| &query.row(at)[..width]))
        };
        let values = (0..self.emissions.n_rows()).flat_map(of_word).collect();
        Matrix::new(values, width)
    }

    /// The `n` best tag paths with their scores, best first (of [`crate::TransitionMode::Rule`] those of
    /// the whole sentence, not the greedy one).
    #[must_use]
    pub fn n_best(&self, n: usize) -> Vec<Path> {
        let scores = self.emissions.scaled(self.adapted.tagger.head().scale);
        crf::n_best(&scores, &self.transitions(), n)
    }

    /// Who gave how much of the emission of `tag` (an index of the tag set) for word `word`.
    ///
    /// # Panics
    ///
    /// If `word` or `tag` is out of range.
    #[must_use]
    pub fn contributions(&self, word: usize, tag: usize) -> Vec<Contribution> {
        let (part, at) = self.part_of(word);
        let scorer = self.adapted.scorer();
        if let Some(read) = &self.adapted.read {
            let group = Group { query: &part.queries[0], references: &read.references };
            return scorer.contributions(&[group], self.adapted.vectors(&read.words), at, tag);
        }
        let support = self.adapted.vectors(&part.words);
        let make = || scorer.comparison(&part.queries, support);
        let groups = part.comparison.get_or_init(make).groups(&part.queries);
        scorer.contributions(&groups, support, at, tag)
    }

    /// The window that speaks for a word, and which of its words that is.
    fn part_of(&self, word: usize) -> (&Part, usize) {
        let owner = self.parts.iter().find(|part| part.window.owned.contains(&word));
        let part = owner.expect("a word of the sentence");
        (part, word - part.window.words.start)
    }
}
