//! What can be wrong with a data file, and where.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::data::Format;
use crate::error::Error;

/// A place in a data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub path: PathBuf,
    /// Where in the file.
    pub at: At,
}

/// A place within a data file. All numbers count from 1, as editors do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum At {
    File,
    Line(usize),
    /// An element of a JSON array.
    Record(usize),
    /// A sentence of a domain, whatever its place in a file.
    Sentence(usize),
    /// A sentence of a named domain, in files that gather sentences by domain.
    Example {
        domain: String,
        number: usize,
    },
    /// A sentence of an episode file.
    Episode {
        domain: String,
        episode: usize,
        part: &'static str,
        sentence: usize,
    },
}

impl Place {
    /// `at` of the file `path`.
    #[must_use]
    pub fn new(path: &Path, at: At) -> Self {
        Self { path: path.to_owned(), at }
    }

    /// The error that `problem` is here.
    #[must_use]
    pub fn error(self, problem: Problem) -> Error {
        Error::Data { place: self, problem: Box::new(problem) }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.at {
            At::File => write!(f, "{path}"),
            At::Line(line) => write!(f, "{path}:{line}"),
            at => write!(f, "{path}: {at}"),
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => write!(f, "the file"),
            Self::Line(line) => write!(f, "line {line}"),
            Self::Record(record) => write!(f, "record {record}"),
            Self::Sentence(sentence) => write!(f, "sentence {sentence}"),
            Self::Example { domain, number } => write!(f, "{domain}, example {number}"),
            Self::Episode { domain, episode, part, sentence } => {
                write!(f, "{domain}, episode {episode}, {part} sentence {sentence}")
            }
        }
    }
}

/// What is wrong at a place of a data file. A message ends in the remedy where there is one.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each field is explained by its message")]
#[non_exhaustive]
pub enum Problem {
    #[error("this is a directory; give the files in it")]
    Directory,
    #[error("the text is UTF-16; save it as UTF-8")]
    Utf16,
    #[error(
        "not UTF-8: byte {byte} of the file (counted from 0) begins no character; save the file as UTF-8"
    )]
    NotUtf8 { byte: usize },
    #[error("no sentences")]
    NoSentences,
    #[error("no data format recognised; name it with --format ({})", Format::names())]
    UnknownFormat,
    #[error("{n_bytes} bytes in one line (at most {most}); this is no list of sentences")]
    LongLine { n_bytes: usize, most: usize },
    #[error("{found} columns where the lines before have {expected}")]
    UnequalColumns { found: usize, expected: usize },
    #[error("`{}` has no tag: a line needs a word and a tag", Excerpt(.line))]
    NoTag { line: String },
    #[error("{n_words} words but {n_tags} tags")]
    UnequalLengths { n_words: usize, n_tags: usize },
    #[error("`seq_ins` has {n_ins} sentences but `seq_outs` has {n_outs}")]
    UnequalParts { n_ins: usize, n_outs: usize },
    #[error(
        "`{}` is no tag (expected `O`, or `B-slot`, `I-slot` and so on; --scheme io takes the whole tag as its slot)",
        Excerpt(.tag)
    )]
    UnknownTag { tag: String },
    #[error("`{}` is no slot name: it must not be empty or contain blanks (--repair writes `_` for a blank)", Excerpt(.slot))]
    BadSlot { slot: String },
    #[error(
        "the label {start}..{end} is no part of a text of {n_chars} characters (offsets count Unicode scalar values)"
    )]
    SpanOutside { start: usize, end: usize, n_chars: usize },
    #[error(
        "the label on words {start}..{end} is no part of a sentence of {n_words} words (--repair leaves it out)"
    )]
    TokenSpanOutside { start: usize, end: usize, n_words: usize },
    #[error("the label `{}` covers no word (--repair leaves it out)", Excerpt(.text))]
    SpanWithoutWord { text: String },
    #[error("the label `{}` cuts the word `{}` (--repair takes the whole word)", Excerpt(.text), Excerpt(.word))]
    SpanCutsWord { text: String, word: String },
    #[error("the label `{slot}` on `{}` overlaps another (--repair leaves it out)", Excerpt(.text))]
    SpanOverlaps { text: String, slot: String },
    #[error("the label {start}..{end} says `{}` but the text there is `{}` (offsets count Unicode scalar values)", Excerpt(.said), Excerpt(.found))]
    SpanDisagrees { start: usize, end: usize, said: String, found: String },
    #[error("the tokens do not stand one after the other in the text: {at}")]
    TokensDisagree { at: String },
    #[error(
        "the tags are no text; numbers have names that the file does not hold, so write the names"
    )]
    NumericTags,
    #[error("`{}`: {fault}; write `\\[` for a bracket that marks nothing", Excerpt(.rest))]
    Markup { rest: String, fault: &'static str },
    #[error("{cause}")]
    Sentence { cause: Box<Error> },
    #[error("not the expected JSON: {cause}")]
    Json { cause: serde_json::Error },
    #[error("not the expected YAML: {cause}")]
    Yaml { cause: Box<serde_saphyr::Error> },
}

/// Text shortened for a message: the fault may be a line of 100 MB.
struct Excerpt<'a>(&'a str);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 80;
        match self.0.char_indices().nth(MOST) {
            None => f.write_str(self.0),
            Some((end, _)) => write!(f, "{}…", &self.0[..end]),
        }
    }
}
