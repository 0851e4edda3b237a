//! Reading: the one place that decides which sequences the encoder reads, and what becomes of its rows.
//!
//! ```text
//! plan     Plan::support, Plan::query, Plan::names ─▶ sequences, and which of them are whose
//! embed    embed, embed_for_training               ─▶ one matrix per sequence
//! finish   Beside::vectors, stacked                ─▶ Q, K and the names' vectors, as the scorer wants them
//! back     PlannedSupport::scatter                 ◀─ their gradients, put where they came from
//! ```
//!
//! In separate context the support sentences are read once, and a query by itself; in paired context a query is read
//! beside every support sentence. Tagging, training and the check of a support set all plan, embed and finish here, so they
//! cannot read differently. A query longer than the encoder reads is cut into overlapping windows (`window.rs`).

mod embed;
mod kept;
mod once;
mod row_file;
mod sequence;
mod window;

use std::borrow::Cow;
use std::ops::Range;

pub use embed::{Tape, embed, embed_for_training};
pub(crate) use kept::KeptRows;
pub(crate) use once::Once;
pub(crate) use row_file::RowFile;
pub use sequence::Sequence;
pub(crate) use window::{Window, part};

use crate::domain::{Sentence, SupportSet};
use crate::emission::VectorGradients;
use crate::encoder::{Engine, Pieces};
use crate::error::{Error, Result};
use crate::matrix::{Matrix, add_scaled};
use crate::settings::Context;
use crate::tag::TagSet;
use crate::tagger::Tagger;

/// Where what was read of support sets is kept.
#[derive(Debug)]
pub(crate) enum Kept {
    /// In memory, for other sets.
    Rows(KeptRows),
    /// In a file, for other processes.
    File(RowFile),
}

impl Kept {
    /// [`embed`], where what was read before is not read again.
    pub(crate) fn embed(&self, engine: &dyn Engine, sequences: &[Sequence]) -> Result<Vec<Matrix>> {
        match self {
            Self::Rows(rows) => rows.embed(engine, sequences),
            Self::File(file) => file.embed(engine, sequences),
        }
    }
}

/// Sequences that will be read together; a range of them belongs to whoever had it added.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    sequences: Vec<Sequence>,
}

/// A support set in a plan.
#[derive(Debug)]
pub(crate) struct PlannedSupport {
    pub(crate) beside: Beside,
    /// One sequence per sentence in separate context, none in paired.
    pub(crate) words: Range<usize>,
}

/// What a query is read beside.
#[derive(Debug, Clone)]
pub(crate) enum Beside {
    /// Nothing: the support is read by itself.
    Nothing,
    /// Each support sentence in turn.
    Each(Vec<Pieces>),
}

impl Plan {
    /// All that is planned.
    pub(crate) fn sequences(&self) -> &[Sequence] {
        &self.sequences
    }

    fn add(&mut self, tagger: &Tagger, new: impl IntoIterator<Item = Sequence>) -> Range<usize> {
        let (start, settings) = (self.sequences.len(), tagger.settings());
        let middle = settings.middle.clone().into();
        let complete = |sequence: Sequence| sequence.with_middle(&middle).lexical(settings.lexical);
        self.sequences.extend(new.into_iter().map(complete));
        start..self.sequences.len()
    }

    /// Adds a sentence by itself; `what` names it if it is too long.
    pub(crate) fn alone(
        &mut self,
        tagger: &Tagger,
        sentence: &Sentence,
        what: impl Fn() -> String,
    ) -> Result<Range<usize>> {
        let tokenizer = tagger.word_pieces();
        let sequence = Sequence::alone(&tokenizer.split(sentence.words())?, tokenizer);
        check_length(tagger, &sequence, what)?;
        Ok(self.add(tagger, [sequence]))
    }

    /// Adds what is read of a support set before any query; `what` names its sentence of a number from 0.
    pub(crate) fn support(
        &mut self,
        tagger: &Tagger,
        support: &SupportSet,
        what: impl Fn(usize) -> String,
    ) -> Result<PlannedSupport> {
        let tokenizer = tagger.word_pieces();
        let split = |sentence: &Sentence| tokenizer.split(sentence.words());
        let pieces = support.sentences().iter().map(split).collect::<Result<Vec<_>>>()?;
        let alone: Vec<Sequence> = pieces.iter().map(|s| Sequence::alone(s, tokenizer)).collect();
        for (at, sequence) in alone.iter().enumerate() {
            check_length(tagger, sequence, || what(at))?;
        }
        Ok(match tagger.settings().context {
            Context::Paired if !pieces.is_empty() => {
                PlannedSupport { beside: Beside::Each(pieces), words: 0..0 }
            }
            // Where there is no sentence to be read beside, a query is read alone.
            _ => PlannedSupport { beside: Beside::Nothing, words: self.add(tagger, alone) },
        })
    }

    /// Adds a query, or a window of one.
    pub(crate) fn query(
        &mut self,
        tagger: &Tagger,
        query: &Pieces,
        beside: &Beside,
    ) -> Range<usize> {
        let tokenizer = tagger.word_pieces();
        match beside {
            Beside::Nothing => self.add(tagger, [Sequence::alone(query, tokenizer)]),
            Beside::Each(sentences) => {
                self.add(tagger, sentences.iter().map(|s| Sequence::paired(query, s, tokenizer)))
            }
        }
    }

    /// Adds a whole sentence to learn from, which cannot be cut into windows.
    pub(crate) fn whole_query(
        &mut self,
        tagger: &Tagger,
        query: &Sentence,
        beside: &Beside,
        what: impl Fn() -> String,
    ) -> Result<Range<usize>> {
        let tokenizer = tagger.word_pieces();
        let place = self.query(tagger, &tokenizer.split(query.words())?, beside);
        for sequence in &self.sequences[place.clone()] {
            check_length(tagger, sequence, &what)?;
        }
        Ok(place)
    }

    /// Adds one sequence per tag that gives the vector of its name; none if the tagger does not read names.
    pub(crate) fn names(
        &mut self,
        tagger: &Tagger,
        support: &SupportSet,
        tags: &TagSet,
    ) -> Result<Range<usize>> {
        if !tagger.uses_label_names() {
            return Ok(0..0);
        }
        let tokenizer = tagger.word_pieces();
        let name = |tag| {
            // The vector of a tag without a name is never read.
            let words = support.name_words(tag).unwrap_or_else(|| vec!["nothing".to_owned()]);
            let mut pieces = tokenizer.split(words.iter().map(String::as_str))?;
            pieces.shapes.fill(0); // `GPE` is no shouted word.
            let sequence = Sequence::name(&pieces, tokenizer);
            check_length(tagger, &sequence, || format!("the name of `{tag}`"))?;
            Ok(sequence)
        };
        let names = tags.tags().iter().map(name).collect::<Result<Vec<_>>>()?;
        Ok(self.add(tagger, names))
    }
}

/// Refuses a sequence beyond the encoder's window; `what` names it in the message.
fn check_length(tagger: &Tagger, sequence: &Sequence, what: impl Fn() -> String) -> Result<()> {
    let (n_pieces, max) = (sequence.n_pieces(), tagger.engine().max_pieces());
    if n_pieces > max {
        return Err(Error::TooLong { what: what(), n_pieces, max });
    }
    Ok(())
}

impl Beside {
    /// How many sequences a query becomes.
    pub(crate) fn n_sequences(&self) -> usize {
        match self {
            Self::Nothing => 1,
            Self::Each(sentences) => sentences.len(),
        }
    }

    /// What an encoder of `max` pieces reads at once of a query, so that it fits beside the longest support sentence if
    /// it must.
    pub(crate) fn windows(&self, query: &Pieces, max: usize) -> Result<Vec<Window>> {
        let (beside, what) = match self {
            Self::Nothing => (0, "a word"),
            Self::Each(sentences) => {
                let longest = sentences.iter().map(|s| s.ids.len() + 1).max();
                (longest.unwrap_or(0), "a word beside the longest support sentence")
            }
        };
        let room = max.saturating_sub(beside + 2); // [CLS] and [SEP]
        window::windows(query, room).ok_or_else(|| {
            let ends = query.first.iter().skip(1).copied().chain([query.ids.len()]);
            let longest = query.first.iter().zip(ends).map(|(from, to)| to - from).max();
            let n_pieces = longest.unwrap_or(0) + beside + 2;
            Error::TooLong { what: what.to_owned(), n_pieces, max }
        })
    }

    /// The query's vectors `Qᵢ [n, d]` and, if it was read beside the support, that support's `Kᵢ [mᵢ, d]`, of the rows of
    /// its sequences.
    pub(crate) fn vectors(
        &self,
        rows: impl IntoIterator<Item = Matrix>,
        n_words: usize,
    ) -> (Vec<Matrix>, Vec<Matrix>) {
        match self {
            Self::Nothing => (rows.into_iter().collect(), Vec::new()),
            Self::Each(_) => rows.into_iter().map(|both| both.split_at_row(n_words)).unzip(),
        }
    }
}

impl PlannedSupport {
    /// `Q` and `K` of a query of `n_words` words, whose sequences are `own`, of all rows of the plan.
    pub(crate) fn vectors<'r>(
        &self,
        rows: &'r [Matrix],
        own: &Range<usize>,
        n_words: usize,
    ) -> (Vec<Matrix>, Cow<'r, [Matrix]>) {
        let (queries, words) = self.beside.vectors(rows[own.clone()].iter().cloned(), n_words);
        match self.beside {
            Beside::Nothing => (queries, Cow::Borrowed(&rows[self.words.clone()])),
            Beside::Each(_) => (queries, Cow::Owned(words)),
        }
    }

    /// The transpose of [`PlannedSupport::vectors`]: adds gradients of `Q` and `K` to those of the plan's rows.
    pub(crate) fn scatter(
        &self,
        d: &VectorGradients,
        own: &Range<usize>,
        n_words: usize,
        d_rows: &mut [Matrix],
    ) {
        for (at, d_query) in own.clone().zip(&d.queries) {
            add_scaled(d_rows[at].values_mut(), 1.0, d_query.values());
        }
        // Read beside a query, the rows of the support stand behind those of the query.
        let (place, n_before) = match self.beside {
            Beside::Nothing => (&self.words, 0),
            Beside::Each(_) => (own, n_words),
        };
        for (at, d_words) in place.clone().zip(&d.words) {
            let skipped = n_before * d_words.n_cols();
            add_scaled(&mut d_rows[at].values_mut()[skipped..], 1.0, d_words.values());
        }
    }
}

/// The vectors of names, `[L, d]`, of the rows of their sequences; `None` if none were read.
pub(crate) fn stacked(rows: &[Matrix]) -> Option<Matrix> {
    let n_cols = rows.first()?.n_cols();
    Some(Matrix::new(rows.iter().flat_map(Matrix::values).copied().collect(), n_cols))
}

/// The transpose of [`stacked`]: adds the gradients of the names to those of the rows they came from.
pub(crate) fn scatter_names(d_names: Option<&Matrix>, d_rows: &mut [Matrix]) {
    for (into, d_name) in d_rows.iter_mut().zip(d_names.into_iter().flat_map(Matrix::rows)) {
        add_scaled(into.values_mut(), 1.0, d_name);
    }
}
