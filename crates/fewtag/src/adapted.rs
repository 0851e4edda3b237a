//! A tagger that has seen the support set of a domain, and what it says about a sentence.
//!
//! ```text
//! words ─ Adapted::score ─▶ Scored (emissions [T, L]) ─ Scored::tagged ─▶ Tagged (tags, spans, probabilities)
//! ```
//!
//! In separate context the support was read once and became [`References`]; in paired context each
//! query is read beside every support sentence. Sentences are read in groups, but an answer does not depend
//! on what else is in its group. A sentence longer than the encoder reads is cut into overlapping windows
//! (`window.rs`): each word is compared as its window reads it, and the tags are chosen over the whole.

use std::sync::OnceLock;

use crate::answer::Answer;
use crate::batch;
use crate::crf::{self, Path, SlotTransitions};
use crate::domain::{Sentence, SupportSet};
use crate::embedder::Sequence;
use crate::emission::{Comparison, Contribution, Group, Members, References, SupportVectors};
use crate::encoder::Pieces;
use crate::error::{Error, Result};
use crate::matrix::{self, Matrix};
use crate::settings::Context;
use crate::tag::{self, Span, Tag, TagSet};
use crate::tagger::Tagger;
use crate::window::{self, Window};

/// How many sequences are read at a time: bounds the memory of [`Adapted::tag_all`].
const GROUP: usize = 256;

/// A tagger for the slots of one support set.
#[derive(Clone)]
pub struct Adapted {
    tagger: Tagger,
    tags: TagSet,
    members: Members,
    /// The vectors of the tags' names, `[L, d]`, if they are used.
    names: Option<Matrix>,
    support: Support,
}

/// What is kept of the support set.
#[derive(Clone)]
enum Support {
    Separate { words: Vec<Matrix>, references: References },
    Paired { sentences: Vec<Pieces> },
}

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

/// A support set on its way through the encoder.
pub(crate) struct Reading<'a> {
    tagger: Tagger,
    tags: TagSet,
    members: Members,
    support: &'a SupportSet,
    sentences: Vec<Pieces>,
}

impl<'a> Reading<'a> {
    /// Adds the sequences that must be read to `sequences`: the tags' names, then the support sentences.
    pub(crate) fn new(
        tagger: Tagger,
        support: &'a SupportSet,
        tags: TagSet,
        sequences: &mut Vec<Sequence>,
    ) -> Result<Self> {
        let frame = tagger.word_pieces();
        let split = |sentence: &crate::Sentence| frame.split(sentence.words());
        let sentences = support.sentences().iter().map(split).collect::<Result<Vec<_>>>()?;
        let alone = sentences.iter().map(|s| Sequence::alone(s, frame)).collect::<Vec<_>>();
        for (at, sequence) in alone.iter().enumerate() {
            tagger.check_length(sequence, || format!("support sentence {}", at + 1))?;
        }
        if tagger.uses_label_names() {
            sequences.extend(tagger.name_sequences(support, &tags)?);
        }
        if tagger.settings().context == Context::Separate {
            sequences.extend(alone);
        }
        let members = Members::new(support, &tags);
        Ok(Self { tagger, tags, members, support, sentences })
    }

    /// Takes what the encoder made of the sequences.
    pub(crate) fn finish(self, read: &mut impl Iterator<Item = Matrix>) -> Adapted {
        let Self { tagger, tags, members, support, sentences } = self;
        let tagger = tagger.at(support.examples_per_label());
        let names = tagger.uses_label_names().then(|| {
            let rows: Vec<Matrix> = read.by_ref().take(tags.n_tags()).collect();
            let values = rows.iter().flat_map(|row| row.values().iter().copied()).collect();
            Matrix::new(values, tagger.engine().width())
        });
        let support = match tagger.settings().context {
            Context::Paired => Support::Paired { sentences },
            Context::Separate => {
                let words: Vec<Matrix> = read.by_ref().take(support.sentences().len()).collect();
                let label_names = names.as_ref();
                let vectors = SupportVectors { words: &words, members: &members, label_names };
                let width = tagger.engine().width();
                let scorer = tagger.settings().emission_scorer(tagger.head());
                let references = scorer.references(vectors, width);
                Support::Separate { words, references }
            }
        };
        Adapted { tagger, tags, members, names, support }
    }
}

impl Adapted {
    pub(crate) fn tagger(&self) -> &Tagger {
        &self.tagger
    }

    /// The tags that a word can get.
    #[must_use]
    pub fn tag_set(&self) -> &TagSet {
        &self.tags
    }

    /// Tags one sentence.
    ///
    /// # Errors
    ///
    /// [`Error::EmptySentence`] without words, [`Error::TooLong`] if a single word, or the support sentence it
    /// is read beside, does not fit the encoder.
    pub fn tag<W: AsRef<str>>(&self, words: &[W]) -> Result<Tagged> {
        Ok(self.score(words)?.tagged())
    }

    /// Tags running text, and says where in it the spans are, in Unicode scalar values. Text without a word has none.
    ///
    /// # Errors
    ///
    /// As [`Adapted::tag`].
    pub fn tag_text(&self, text: &str) -> Result<Answer> {
        let sentence = match Sentence::plain(text) {
            Err(Error::EmptySentence) => {
                return Ok(Answer { text: text.to_owned(), spans: Vec::new() });
            }
            other => other?,
        };
        let words: Vec<&str> = sentence.words().collect();
        Ok(Answer::new(&sentence, &self.tag(&words)?))
    }

    /// Tags many sentences, each as [`Adapted::tag`] would, and faster.
    ///
    /// # Errors
    ///
    /// As [`Adapted::tag`], for the first sentence that cannot be tagged.
    pub fn tag_all<W: AsRef<str>>(&self, sentences: &[Vec<W>]) -> Result<Vec<Tagged>> {
        let mut tagged = Vec::with_capacity(sentences.len());
        for group in sentences.chunks(self.group_size()) {
            tagged.extend(self.score_all(group)?.iter().map(Scored::tagged));
        }
        Ok(tagged)
    }

    /// How many sentences are best scored together: enough for all cores, few enough for the memory.
    #[must_use]
    pub fn group_size(&self) -> usize {
        GROUP.div_ceil(self.sequences_per_query())
    }

    /// What the support says about the words of a sentence, before tags are chosen.
    ///
    /// # Errors
    ///
    /// As [`Adapted::tag`].
    pub fn score<W: AsRef<str>>(&self, words: &[W]) -> Result<Scored<'_>> {
        batch::score_all(&[(self, words)])?.swap_remove(0)
    }

    /// As [`Adapted::score`] for each of a few sentences, which are read together; memory grows with them
    /// (see [`Adapted::group_size`]).
    ///
    /// # Errors
    ///
    /// As [`Adapted::tag`], for the first sentence that cannot be tagged.
    pub fn score_all<W, S>(&self, sentences: &[S]) -> Result<Vec<Scored<'_>>>
    where
        W: AsRef<str>,
        S: AsRef<[W]>,
    {
        let queries: Vec<_> = sentences.iter().map(|words| (self, words.as_ref())).collect();
        batch::score_all(&queries)?.into_iter().collect()
    }

    /// Adds the sequences of a query to `sequences`; says which windows they are.
    pub(crate) fn prepare<W: AsRef<str>>(
        &self,
        words: &[W],
        sequences: &mut Vec<Sequence>,
    ) -> Result<Vec<Window>> {
        if words.is_empty() {
            return Err(Error::EmptySentence);
        }
        let pieces = self.tagger.word_pieces().split(words.iter().map(AsRef::as_ref))?;
        let windows = self.windows(&pieces)?;
        for window in &windows {
            self.add_sequences(&window::part(&pieces, &window.words), sequences);
        }
        Ok(windows)
    }

    /// Takes what the encoder made of the sequences of [`Adapted::prepare`].
    pub(crate) fn finish(
        &self,
        windows: Vec<Window>,
        read: &mut impl Iterator<Item = Matrix>,
    ) -> Scored<'_> {
        let per_query = self.sequences_per_query();
        let part = |window| self.part(read.by_ref().take(per_query).collect(), window);
        Scored::new(self, windows.into_iter().map(part).collect())
    }

    /// What the encoder reads at once, so that it fits beside the longest support sentence if it must.
    fn windows(&self, pieces: &Pieces) -> Result<Vec<Window>> {
        let max = self.tagger.engine().max_pieces();
        let longest = |sentences: &[Pieces]| sentences.iter().map(|s| s.ids.len() + 1).max();
        let (beside, what) = match &self.support {
            Support::Separate { .. } => (0, "a word"),
            Support::Paired { sentences } => {
                (longest(sentences).unwrap_or(0), "a word beside the longest support sentence")
            }
        };
        let room = max.saturating_sub(beside + 2); // [CLS] and [SEP]
        window::windows(pieces, room).ok_or_else(|| {
            let ends = pieces.first.iter().skip(1).copied().chain([pieces.ids.len()]);
            let longest = pieces.first.iter().zip(ends).map(|(from, to)| to - from).max();
            let n_pieces = longest.unwrap_or(0) + beside + 2;
            Error::TooLong { what: what.to_owned(), n_pieces, max }
        })
    }

    pub(crate) fn sequences_per_query(&self) -> usize {
        match &self.support {
            Support::Separate { .. } => 1,
            Support::Paired { sentences } => sentences.len(),
        }
    }

    fn add_sequences(&self, query: &Pieces, sequences: &mut Vec<Sequence>) {
        let frame = self.tagger.word_pieces();
        match &self.support {
            Support::Separate { .. } => sequences.push(Sequence::alone(query, frame)),
            Support::Paired { sentences } => {
                sequences.extend(sentences.iter().map(|s| Sequence::paired(query, s, frame)));
            }
        }
    }

    /// Turns what the encoder read for a window into emissions.
    fn part(&self, read: Vec<Matrix>, window: Window) -> Part {
        match &self.support {
            Support::Separate { references, .. } => {
                let emissions = references.emissions(&read[0]);
                Part { window, emissions, queries: read, words: None, comparison: OnceLock::new() }
            }
            Support::Paired { .. } => {
                let halves = read.into_iter().map(|rows| rows.split_at_row(window.words.len()));
                let (queries, words): (Vec<Matrix>, Vec<Matrix>) = halves.unzip();
                let scorer = self.tagger.settings().emission_scorer(self.tagger.head());
                let emissions = scorer.emissions(&queries, self.vectors(&words));
                Part { window, emissions, queries, words: Some(words), comparison: OnceLock::new() }
            }
        }
    }

    fn vectors<'a>(&'a self, words: &'a [Matrix]) -> SupportVectors<'a> {
        SupportVectors { words, members: &self.members, label_names: self.names.as_ref() }
    }
}

/// A sentence whose words have been compared with the support.
pub struct Scored<'a> {
    adapted: &'a Adapted,
    emissions: Matrix,
    parts: Vec<Part>,
}

/// A window of a sentence; mostly the whole.
struct Part {
    window: Window,
    emissions: Matrix,
    queries: Vec<Matrix>,
    /// The support as read beside this window; `None` in separate context.
    words: Option<Vec<Matrix>>,
    /// What an explanation needs of it, made when the first is asked for; in separate context the support has it.
    comparison: OnceLock<Comparison>,
}

impl<'a> Scored<'a> {
    fn new(adapted: &'a Adapted, parts: Vec<Part>) -> Self {
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

    /// Chooses the tags and says how sure the model is of each span.
    #[must_use]
    pub fn tagged(&self) -> Tagged {
        let Adapted { tagger, tags, .. } = self.adapted;
        let path = tagger.head().decode(tagger.settings(), tags, &self.emissions);
        let tags: Vec<Tag> = path.iter().map(|&j| tags.tags()[j].clone()).collect();
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

    /// The vectors of the words as they were read, in paired context the mean over the support sentences. `[T, d]`
    pub(crate) fn word_vectors(&self) -> Matrix {
        let of_word = |word| {
            let (part, at) = self.part_of(word);
            matrix::mean(part.queries.iter().map(|query| query.row(at)))
        };
        let values = (0..self.emissions.n_rows()).flat_map(of_word).collect();
        Matrix::new(values, self.adapted.tagger.engine().width())
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
        let tagger = &self.adapted.tagger;
        let scorer = tagger.settings().emission_scorer(tagger.head());
        match (&part.words, &self.adapted.support) {
            (Some(words), _) => {
                let support = self.adapted.vectors(words);
                let make = || scorer.comparison(&part.queries, support);
                let groups = part.comparison.get_or_init(make).groups(&part.queries);
                scorer.contributions(&groups, support, at, tag)
            }
            (None, Support::Separate { words, references }) => {
                let group = Group { query: &part.queries[0], references };
                scorer.contributions(&[group], self.adapted.vectors(words), at, tag)
            }
            (None, Support::Paired { .. }) => unreachable!("paired support is read with the query"),
        }
    }

    /// The window that speaks for a word, and which of its words that is.
    fn part_of(&self, word: usize) -> (&Part, usize) {
        let owner = self.parts.iter().find(|part| part.window.owned.contains(&word));
        let part = owner.expect("a word of the sentence");
        (part, word - part.window.words.start)
    }
}
