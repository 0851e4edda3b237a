//! What every reader hands its sentences to: it sorts them into domains and keeps the notes.

use std::path::Path;

use crate::data::{At, Corpus, Format, Note, Place, Problem, ReadOptions};
use crate::domain::{Domain, Sentence, Token};
use crate::error::{Error, Result};
use crate::scheme::TagReader;
use crate::tag::Tag;

/// The sentences of one file on their way to a [`Corpus`].
pub(crate) struct Collector<'a> {
    path: &'a Path,
    tags: TagReader,
    domains: Vec<Domain>,
    /// The domain of the sentence added last.
    current: usize,
    notes: Vec<Note>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(path: &'a Path, options: &'a ReadOptions) -> Self {
        let tags = TagReader::new(options.scheme);
        Self { path, tags, domains: Vec::new(), current: 0, notes: Vec::new() }
    }

    /// The error that `problem` is at `at`.
    pub(crate) fn error(&self, at: At, problem: Problem) -> Error {
        Place::new(self.path, at).error(problem)
    }

    /// The tag of the next word of the sentence that [`Collector::add_tokens`] will end.
    pub(crate) fn tag(&mut self, text: &str, at: impl Fn() -> At) -> Result<Tag> {
        self.tags.read(text, &at).map_err(|problem| self.error(at(), problem))
    }

    /// Adds a sentence whose tags were all read with [`Collector::tag`].
    pub(crate) fn add_tokens(
        &mut self,
        domain: Option<&str>,
        tokens: Vec<Token>,
        at: impl Fn() -> At,
    ) -> Result<()> {
        self.tags.end_sentence(&at);
        let sentence = Sentence::new(tokens).map_err(|cause| self.sentence_error(at(), cause))?;
        self.add(domain, sentence);
        Ok(())
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

    fn sentence_error(&self, at: At, cause: Error) -> Error {
        self.error(at, Problem::Sentence { cause: Box::new(cause) })
    }

    fn add(&mut self, domain: Option<&str>, sentence: Sentence) {
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
    }

    /// Tells that `n` things of the file have no place in a corpus.
    pub(crate) fn ignored(&mut self, what: &'static str, n: usize) {
        if n > 0 {
            self.notes.push(Note::Ignored { what, n });
        }
    }

    /// The corpus, with its tags in BIO.
    pub(crate) fn finish(mut self, format: Format) -> Result<Corpus> {
        if self.domains.is_empty() {
            return Err(self.error(At::File, Problem::NoSentences));
        }
        let sentences = self.domains.iter_mut().flat_map(|domain| &mut domain.sentences);
        let scheme = self
            .tags
            .finish(sentences, &mut self.notes)
            .map_err(|(at, problem)| Place::new(self.path, at).error(problem))?;
        Ok(Corpus { format, scheme, domains: self.domains, notes: self.notes })
    }
}
