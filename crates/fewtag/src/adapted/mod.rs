//! A tagger that has seen the support set of a domain.
//!
//! ```text
//! support sets ─ adapt_all ─▶ one Adapted each        queries of any of them ─ score_all ─▶ one Scored each
//! words ─ Adapted::score ─▶ Scored (emissions [T, L]) ─ Scored::tagged ─▶ Tagged (tags, spans, probabilities)
//! ```
//!
//! What is read of support and query is decided in [`crate::reading`]: in separate context the support was read once and
//! became [`References`], in paired context each query is read beside every support sentence. Many sets and sentences are
//! read together, because the encoder is busiest so; an answer does not depend on what else was read, and what cannot be read
//! fails alone. Of a sentence in several windows each word is compared as its window reads it, and the tags are chosen over
//! the whole.

mod scored;

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

pub use scored::{Scored, Tagged, TaggedSpan};

use crate::answer::Answer;
use crate::domain::{Sentence, SupportSet};
use crate::emission::{EmissionScorer, Members, References, SupportVectors};
use crate::error::{Error, Result};
use crate::matrix::Matrix;
use crate::reading::{self, Beside, KeptRows, Plan, PlannedSupport, Window};
use crate::tag::TagSet;
use crate::tagger::Tagger;
use scored::Part;

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
    beside: Beside,
    /// The support, where it was read by itself.
    read: Option<ReadSupport>,
    /// What was read of sentences, if it is kept.
    kept: Option<Arc<KeptRows>>,
}

/// A support set that was read by itself.
#[derive(Clone)]
struct ReadSupport {
    /// One matrix per sentence.
    words: Arc<[Matrix]>,
    references: References,
}

/// The vectors of a support set read by itself, from which taggers for all or some of its sentences are made.
#[derive(Clone)]
pub(crate) struct SupportRows {
    /// One matrix per sentence, `[mᵢ, d]`.
    pub(crate) words: Arc<[Matrix]>,
    /// The vectors of the tags' names, `[L, d]`, if they are used.
    pub(crate) names: Option<Matrix>,
}

impl Tagger {
    /// Teaches the tagger the slots of a new domain from a few labelled sentences.
    ///
    /// # Errors
    ///
    /// [`Error::NothingBegins`] if legal BIO leaves no way to tag a word, [`Error::TooLong`] if a support
    /// sentence does not fit the encoder, [`Error::NamesUnread`] or [`Error::MuteLabel`] if a label has neither an
    /// example nor a name that this model reads.
    pub fn adapt(&self, support: &SupportSet) -> Result<Adapted> {
        adapt_all(&[(self, support)])?.swap_remove(0)
    }

    /// Refuses a support set that [`Tagger::adapt`] would refuse, before anything is read.
    pub(crate) fn can_adapt(&self, support: &SupportSet) -> Result<()> {
        Planned::new(self, support, &mut Plan::default()).map(drop)
    }
}

/// Teaches many domains at once, each as [`Tagger::adapt`] would.
///
/// The outer error is the encoder's; the inner ones are of single support sets.
///
/// # Errors
///
/// As [`Tagger::adapt`].
///
/// # Panics
///
/// If the taggers do not share their encoder.
pub fn adapt_all(wanted: &[(&Tagger, &SupportSet)]) -> Result<Vec<Result<Adapted>>> {
    let Some((first, _)) = wanted.first() else { return Ok(Vec::new()) };
    assert!(wanted.iter().all(|(tagger, _)| tagger.shares_encoder(first)), "one encoder for all");
    let mut plan = Plan::default();
    let planned: Vec<Result<Planned>> =
        wanted.iter().map(|(tagger, support)| Planned::new(tagger, support, &mut plan)).collect();
    let mut rows = match &first.kept {
        Some(kept) => kept.embed(first.engine(), plan.sequences())?,
        None => reading::embed(first.engine(), plan.sequences())?,
    };
    Ok(planned.into_iter().map(|one| one.map(|it| it.finish(&mut rows))).collect())
}

/// Scores many sentences at once, each as [`Adapted::score`] would.
///
/// The outer error is the encoder's; the inner ones are of single sentences.
///
/// # Errors
///
/// As [`Adapted::score`].
///
/// # Panics
///
/// If the adapted taggers do not share their encoder.
pub fn score_all<'a, W: AsRef<str>>(
    queries: &[(&'a Adapted, &[W])],
) -> Result<Vec<Result<Scored<'a>>>> {
    let Some((first, _)) = queries.first() else { return Ok(Vec::new()) };
    let shared = |adapted: &Adapted| adapted.tagger.shares_encoder(&first.tagger);
    assert!(queries.iter().all(|(adapted, _)| shared(adapted)), "one encoder for all");
    let mut plan = Plan::default();
    let planned: Vec<_> = queries.iter().map(|(it, words)| it.plan(words, &mut plan)).collect();
    let engine = first.tagger.engine();
    let mut rows = match &first.kept {
        Some(kept) => kept.embed(engine, plan.sequences())?,
        None => reading::embed(engine, plan.sequences())?,
    };
    let mut take = |windows: Vec<(Window, Range<usize>)>| -> Vec<(Window, Vec<Matrix>)> {
        let rows = |(window, place)| (window, taken(&mut rows, place));
        windows.into_iter().map(rows).collect()
    };
    let read: Vec<Result<_>> = planned.into_iter().map(|windows| windows.map(&mut take)).collect();
    let adapted: Vec<&'a Adapted> = queries.iter().map(|(adapted, _)| *adapted).collect();
    let finish = |(adapted, windows): (&'a Adapted, Result<Vec<_>>)| {
        let part = |(window, rows)| Part::new(adapted, window, rows);
        Ok(Scored::new(adapted, windows?.into_iter().map(part).collect()))
    };
    Ok(adapted.into_par_iter().zip(read).map(finish).collect())
}

/// Takes some of the rows that were read; nobody asks for them again.
fn taken(rows: &mut [Matrix], place: Range<usize>) -> Vec<Matrix> {
    rows[place].iter_mut().map(std::mem::take).collect()
}

/// A support set on its way through the encoder.
struct Planned<'a> {
    tagger: &'a Tagger,
    support: &'a SupportSet,
    tags: TagSet,
    sentences: PlannedSupport,
    names: Range<usize>,
}

impl<'a> Planned<'a> {
    fn new(tagger: &'a Tagger, support: &'a SupportSet, plan: &mut Plan) -> Result<Self> {
        tagger.check_labels(support)?;
        let tags = tagger.settings().tag_set(support);
        if !tagger.can_begin(support, &tags) {
            return Err(Error::NothingBegins);
        }
        let what = |at| format!("support sentence {}", at + 1);
        let sentences = plan.support(tagger, support, what)?;
        let names = plan.names(tagger, support, &tags)?;
        Ok(Self { tagger, support, tags, sentences, names })
    }

    /// Takes what the encoder made of the sequences.
    fn finish(self, rows: &mut [Matrix]) -> Adapted {
        let Self { tagger, support, tags, sentences, names } = self;
        let names = reading::stacked(&rows[names]);
        let members = Members::new(support, &tags);
        match sentences.beside {
            Beside::Nothing => {
                let words = taken(rows, sentences.words).into();
                Adapted::of_rows(tagger, support, (tags, members), SupportRows { words, names })
            }
            beside @ Beside::Each(_) => {
                let tagger = tagger.clone().at(support.examples_per_label());
                Adapted { tagger, tags, members, names, beside, read: None, kept: None }
            }
        }
    }
}

impl Adapted {
    /// For separate context, of a support set whose vectors are there; `members` says which of them are its words.
    pub(crate) fn of_rows(
        tagger: &Tagger,
        support: &SupportSet,
        (tags, members): (TagSet, Members),
        SupportRows { words, names }: SupportRows,
    ) -> Self {
        let tagger = tagger.clone().at(support.examples_per_label());
        let vectors =
            SupportVectors { words: &words, members: &members, label_names: names.as_ref() };
        let scorer = tagger.settings().emission_scorer(tagger.head());
        let references = scorer.references(vectors, tagger.row_width());
        let read = Some(ReadSupport { words, references });
        Self { tagger, tags, members, names, beside: Beside::Nothing, read, kept: None }
    }

    /// The same, which keeps about so many bytes of what it reads of sentences: one that comes again is not read again, as
    /// long as not too much came between. Answers are the same.
    #[must_use]
    pub fn keeping(self, bytes: usize) -> Self {
        Self { kept: Some(Arc::new(KeptRows::new(bytes))), ..self }
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
        GROUP.div_ceil(self.beside.n_sequences())
    }

    /// What the support says about the words of a sentence, before tags are chosen.
    ///
    /// # Errors
    ///
    /// As [`Adapted::tag`].
    pub fn score<W: AsRef<str>>(&self, words: &[W]) -> Result<Scored<'_>> {
        score_all(&[(self, words)])?.swap_remove(0)
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
        score_all(&queries)?.into_iter().collect()
    }

    /// What the words say, whose vectors `[T, d]` were read alone: for separate context.
    pub(crate) fn score_rows(&self, words: &Matrix) -> Scored<'_> {
        let all = 0..words.n_rows();
        let window = Window { words: all.clone(), owned: all };
        Scored::new(self, vec![Part::new(self, window, vec![words.clone()])])
    }

    /// Adds a query to a plan; says in which windows, and where in the plan each of them is.
    fn plan<W: AsRef<str>>(
        &self,
        words: &[W],
        plan: &mut Plan,
    ) -> Result<Vec<(Window, Range<usize>)>> {
        if words.is_empty() {
            return Err(Error::EmptySentence);
        }
        let tokenizer = self.tagger.word_pieces();
        let pieces = tokenizer.split(words.iter().map(AsRef::as_ref))?;
        let windows = self.beside.windows(&pieces, self.tagger.engine().max_pieces())?;
        let place = |window: Window| {
            let place =
                plan.query(&self.tagger, &reading::part(&pieces, &window.words), &self.beside);
            (window, place)
        };
        Ok(windows.into_iter().map(place).collect())
    }

    fn scorer(&self) -> EmissionScorer {
        self.tagger.settings().emission_scorer(self.tagger.head())
    }

    fn vectors<'a>(&'a self, words: &'a [Matrix]) -> SupportVectors<'a> {
        SupportVectors { words, members: &self.members, label_names: self.names.as_ref() }
    }
}
