//! What can be wrong with a data file, and where.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::data::Format;
use crate::error::Error;
use crate::plural::Counted;

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
        Error::Data(Box::new(DataError { place: self, problem }))
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

/// A problem and its place, in one message: apart, neither says enough. So the cause is that of the problem.
#[derive(Debug)]
pub struct DataError {
    /// Where.
    pub place: Place,
    /// What.
    pub problem: Problem,
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

impl std::error::Error for DataError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.problem.source()
    }
}

/// What is wrong at a place of a data file. A message ends in what to change in the file, where that is clear;
/// [`Problem::remedy`] is what whoever reads it can do.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each field is explained by its message")]
#[non_exhaustive]
pub enum Problem {
    #[error("this is a directory, not a file")]
    Directory,
    #[error("the directory holds no data")]
    NoData,
    #[error("the text is UTF-16; save it as UTF-8")]
    Utf16,
    #[error(
        "not UTF-8: byte {byte} of the file (counted from 0) begins no character; save the file as UTF-8"
    )]
    NotUtf8 { byte: usize },
    #[error("no sentences")]
    NoSentences,
    #[error("no data format recognised (known are {})", Format::names())]
    UnknownFormat,
    #[error("{n_bytes} bytes in one line (at most {most}); this is no list of sentences")]
    LongLine { n_bytes: usize, most: usize },
    #[error("{} where the lines before have {expected}", Counted(*.found, "column"))]
    UnequalColumns { found: usize, expected: usize },
    #[error("`{}` has no tag: a line needs a word and a tag", Excerpt(.line))]
    NoTag { line: String },
    #[error("{} but {}", Counted(*.n_words, "word"), Counted(*.n_tags, "tag"))]
    UnequalLengths { n_words: usize, n_tags: usize },
    #[error("`seq_ins` has {} but `seq_outs` has {n_outs}", Counted(*.n_ins, "sentence"))]
    UnequalParts { n_ins: usize, n_outs: usize },
    #[error(
        "`{}` is no tag (expected `O`, or `B-slot`, `I-slot` and so on)",
        Excerpt(.tag)
    )]
    UnknownTag { tag: String },
    #[error("`{}` is no slot name: it must not be empty or contain blanks", Excerpt(.slot))]
    BadSlot { slot: String },
    #[error(
        "the label {start}..{end} is no part of a text of {} (offsets count Unicode scalar values)",
        Counted(*.n_chars, "character")
    )]
    SpanOutside { start: usize, end: usize, n_chars: usize },
    #[error(
        "the label on words {start}..{end} is no part of a sentence of {}", Counted(*.n_words, "word")
    )]
    TokenSpanOutside { start: usize, end: usize, n_words: usize },
    #[error("the label `{}` covers no word", Excerpt(.text))]
    SpanWithoutWord { text: String },
    #[error("the label `{}` cuts the word `{}`", Excerpt(.text), Excerpt(.word))]
    SpanCutsWord { text: String, word: String },
    #[error("the label `{slot}` on `{}` overlaps another", Excerpt(.text))]
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
    #[error(transparent)]
    Sentence(Box<Error>),
    #[error("not the expected JSON")]
    Json { source: serde_json::Error },
    #[error("not the expected YAML")]
    Yaml { source: Box<serde_saphyr::Error> },
}

/// What helps against a problem if the file stays as it is. How it is asked for is known to the program that reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Remedy {
    /// To name the format: [`ReadOptions::format`](crate::data::ReadOptions::format).
    Format,
    /// To name the scheme [`Io`](crate::scheme::Scheme::Io), in which a whole tag may be a slot.
    WholeTags,
    /// To ask for repairs ([`ReadOptions::repair`](crate::data::ReadOptions::repair)), which do this.
    Repair(&'static str),
}

impl Problem {
    /// What helps if the file stays as it is.
    #[must_use]
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::UnknownFormat => Some(Remedy::Format),
            Self::UnknownTag { .. } => Some(Remedy::WholeTags),
            Self::BadSlot { slot } if !slot.trim().is_empty() => {
                Some(Remedy::Repair("writes `_` for a blank"))
            }
            Self::SpanOutside { .. }
            | Self::TokenSpanOutside { .. }
            | Self::SpanWithoutWord { .. }
            | Self::SpanOverlaps { .. } => Some(Remedy::Repair("leaves it out")),
            Self::SpanCutsWord { .. } => Some(Remedy::Repair("takes the whole word")),
            _ => None,
        }
    }
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
