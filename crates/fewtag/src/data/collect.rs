//! What every reader hands its sentences to: it makes words of text, BIO of tags, domains of sentences, and keeps the notes.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use crate::data::episodes::EpisodeSize;
use crate::data::text::{self, Label};
use crate::data::{At, Corpus, Findings, Format, Note, Place, Problem, ReadOptions};
use crate::domain::{Domain, Sentence, Token};
use crate::error::{Error, Result};
use crate::scheme::TagReader;
use crate::tag::{Slot, Span, Tag, bio_tags};
use crate::words::{self, Offsets};

/// The sentences of one file on their way to a [`Corpus`].
pub(crate) struct Collector<'a> {
    path: &'a Path,
    options: &'a ReadOptions,
    tags: TagReader,
    slots: HashMap<String, Slot>,
    domains: Vec<Domain>,
    /// The domain of the sentence added last.
    current: usize,
    n_sentences: usize,
    episode_sizes: Vec<EpisodeSize>,
    repaired: Findings,
    notes: Vec<Note>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(path: &'a Path, options: &'a ReadOptions) -> Self {
        Self {
            path,
            options,
            tags: TagReader::new(options.scheme),
            slots: HashMap::new(),
            domains: Vec::new(),
            current: 0,
            n_sentences: 0,
            episode_sizes: Vec::new(),
            repaired: Findings::default(),
            notes: Vec::new(),
        }
    }

    /// The error that `problem` is at `at`.
    pub(crate) fn error(&self, at: At, problem: Problem) -> Error {
        Place::new(self.path, at).error(problem)
    }

    /// Tells that `n` things of the file have no place in a corpus.
    pub(crate) fn ignored(&mut self, what: &'static str, n: usize) {
        if n > 0 {
            self.notes.push(Note::Ignored { what, n });
        }
    }

    /// Notes a problem that was asked to be repaired; else it is an error.
    fn repair(&mut self, problem: Problem, at: impl Fn() -> At) -> Result<()> {
        if !self.options.repair {
            return Err(self.error(at(), problem));
        }
        self.repaired.add(at(), &problem.to_string());
        Ok(())
    }

    /// The tag of the next word of the sentence that [`Collector::add_tokens`] will end.
    pub(crate) fn tag(&mut self, text: &str, at: impl Fn() -> At) -> Result<Tag> {
        let text = self.without_blanks(text, &at)?;
        self.tags.read(&text, &at).map_err(|problem| self.error(at(), problem))
    }

    fn slot(&mut self, name: &str, at: impl Fn() -> At) -> Result<Slot> {
        if let Some(slot) = self.slots.get(name) {
            return Ok(slot.clone());
        }
        let bad = |this: &Self| this.error(at(), Problem::BadSlot { slot: name.to_owned() });
        let slot = Slot::new(&self.without_blanks(name, &at)?).map_err(|_| bad(self))?;
        self.slots.insert(name.to_owned(), slot.clone());
        Ok(slot)
    }

    /// A slot or tag without blanks, if they are to be repaired.
    fn without_blanks<'t>(&mut self, name: &'t str, at: impl Fn() -> At) -> Result<Cow<'t, str>> {
        if !self.options.repair || !name.contains(char::is_whitespace) || name.trim().is_empty() {
            return Ok(name.into());
        }
        self.repair(Problem::BadSlot { slot: name.to_owned() }, at)?;
        Ok(name.split_whitespace().collect::<Vec<_>>().join("_").into())
    }

    /// Adds a sentence whose tags were all read with [`Collector::tag`].
    pub(crate) fn add_tokens(
        &mut self,
        domain: Option<&str>,
        tokens: Vec<Token>,
        at: impl Fn() -> At,
    ) -> Result<()> {
        self.tags.end_sentence(&at);
        self.add(domain, Sentence::new(tokens), at)
    }

    /// Adds a sentence given as words and as many tags.
    pub(crate) fn add_tagged(
        &mut self,
        domain: Option<&str>,
        (words, tags): (Vec<String>, &[impl AsRef<str>]),
        at: impl Fn() -> At,
    ) -> Result<()> {
        let (n_words, n_tags) = (words.len(), tags.len());
        if n_words != n_tags {
            return Err(self.error(at(), Problem::UnequalLengths { n_words, n_tags }));
        }
        let tokens = words.into_iter().zip(tags);
        let tokens =
            tokens.map(|(word, tag)| Ok(Token { word, tag: self.tag(tag.as_ref(), &at)? }));
        let tokens = tokens.collect::<Result<_>>()?;
        self.add_tokens(domain, tokens, at)
    }

    /// Adds a sentence given as words and spans of words, each with its slot as written.
    pub(crate) fn add_spans(
        &mut self,
        domain: Option<&str>,
        (words, spans): (Vec<String>, Vec<(Range<usize>, String)>),
        at: impl Fn() -> At,
    ) -> Result<()> {
        let n_words = words.len();
        let mut fitting = Vec::with_capacity(spans.len());
        for (Range { start, end }, slot) in spans {
            let slot = self.slot(&slot, &at)?;
            if start < end && end <= n_words {
                fitting.push(Span { start, end, slot });
            } else {
                self.repair(Problem::TokenSpanOutside { start, end, n_words }, &at)?;
            }
        }
        let show = |span: &Span| words[span.start..span.end].join(" ");
        let tags = self.bio(fitting, n_words, show, &at)?;
        let tokens = words.into_iter().zip(tags).map(|(word, tag)| Token { word, tag });
        self.add(domain, Sentence::new(tokens.collect()), at)
    }

    /// Adds a sentence given as running text with labels.
    pub(crate) fn add_text(
        &mut self,
        domain: Option<&str>,
        text: Cow<str>,
        labels: Vec<Label>,
        at: impl Fn() -> At,
    ) -> Result<()> {
        let words = words::split(&text, self.options.words);
        self.add_words(domain, (text, words), labels, at)
    }

    /// Adds a sentence given as running text with labels, whose words are known as byte ranges.
    pub(crate) fn add_words(
        &mut self,
        domain: Option<&str>,
        (text, words): (Cow<str>, Vec<Range<usize>>),
        labels: Vec<Label>,
        at: impl Fn() -> At,
    ) -> Result<()> {
        let offsets = Offsets::new(&text);
        let mut spans = Vec::with_capacity(labels.len());
        for label in labels {
            let slot = self.slot(&label.slot, &at)?;
            let covered = match text::covered(&text, &words, &offsets, &label.chars) {
                Ok(covered) => Some(covered),
                Err((repaired, problem)) => {
                    self.repair(problem, &at)?;
                    repaired
                }
            };
            spans.extend(covered.map(|Range { start, end }| Span { start, end, slot }));
        }
        let show = |span: &Span| text[words[span.start].start..words[span.end - 1].end].to_owned();
        let tags = self.bio(spans, words.len(), show, &at)?;
        self.add(domain, Sentence::from_text(text.into_owned(), words, tags), at)
    }

    /// The tags of spans that fit the sentence; `show` is the text of a span for messages.
    fn bio(
        &mut self,
        spans: Vec<Span>,
        n_words: usize,
        show: impl Fn(&Span) -> String,
        at: impl Fn() -> At,
    ) -> Result<Vec<Tag>> {
        let (apart, overlapping) = text::without_overlaps(spans);
        for span in overlapping {
            let (text, slot) = (show(&span), span.slot.to_string());
            self.repair(Problem::SpanOverlaps { text, slot }, &at)?;
        }
        Ok(bio_tags(&apart, n_words))
    }

    fn add(
        &mut self,
        domain: Option<&str>,
        sentence: Result<Sentence>,
        at: impl Fn() -> At,
    ) -> Result<()> {
        let mut sentence = match sentence {
            Ok(sentence) => sentence,
            Err(cause) => return self.repair(Problem::Sentence(Box::new(cause)), at),
        };
        if let At::Line(line) = at() {
            sentence.set_line(line);
        }
        let stem = || self.path.file_stem().map_or("data".into(), |stem| stem.to_string_lossy());
        let name = domain.map_or_else(stem, Into::into);
        if self.domains.get(self.current).is_none_or(|domain| domain.name != name) {
            let known = self.domains.iter().position(|domain| domain.name == name);
            self.current = known.unwrap_or(self.domains.len());
            if known.is_none() {
                self.domains.push(Domain { name: name.into_owned(), sentences: Vec::new() });
            }
        }
        self.domains[self.current].sentences.push(sentence);
        self.n_sentences += 1;
        Ok(())
    }

    /// How many sentences were added so far.
    pub(crate) fn n_sentences(&self) -> usize {
        self.n_sentences
    }

    /// Tells that the sentences added last were an episode.
    pub(super) fn add_episode(&mut self, size: EpisodeSize) {
        self.episode_sizes.push(size);
    }

    /// The corpus, with its tags in BIO.
    pub(crate) fn finish(mut self, format: Format) -> Result<Corpus> {
        if self.domains.is_empty() {
            return Err(self.error(At::File, Problem::NoSentences));
        }
        if self.repaired.n > 0 {
            self.notes.push(Note::Repaired(self.repaired));
        }
        let sentences = self.domains.iter_mut().flat_map(|domain| &mut domain.sentences);
        let scheme = self
            .tags
            .finish(sentences, &mut self.notes)
            .map_err(|(at, problem)| Place::new(self.path, at).error(problem))?;
        let Self { domains, notes, episode_sizes, .. } = self;
        Ok(Corpus { format, scheme, domains, notes, episode_sizes })
    }
}
