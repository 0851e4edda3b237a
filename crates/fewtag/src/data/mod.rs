//! Labelled sentences in every common format, read and written.
//!
//! ```text
//! file ─ detect ─▶ Format ─ Codec::read ─▶ Corpus (domains, notes)
//! Domain ─ Writer ─ Codec::renderer ─▶ bytes, a sentence at a time
//! ```
//!
//! Each format is one file of this module and stands behind the trait [`Codec`]. All of them speak BIO tags
//! inside; other tagging schemes are recognised on reading (see [`crate::scheme`]). A file holds one domain,
//! named by its stem, unless it names its domains. What a file holds and we do not keep is told in [`Note`]s;
//! what cannot be read is an [`crate::Error`] that names path and place. Character offsets in files count
//! Unicode scalar values.

mod check;
mod collect;
mod conll;
mod detect;
mod doccano;
mod episodes;
mod files;
mod gliner;
mod hf;
mod inline;
mod json;
mod label_studio;
mod loss;
mod markup;
mod note;
mod problem;
mod rasa;
mod snips_json;
mod snips_yaml;
mod spacy;
mod support;
mod text;
mod write;
mod yaml;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use crate::domain::{Domain, Episode, Sentence};
use crate::error::Result;
use crate::file;
use crate::scheme::Scheme;
use crate::words::WordSplit;

pub use check::{Check, EpisodeCheck, SlotCounts};
pub use detect::detect;
pub use episodes::EpisodeWriter;
pub use files::{Found, Wanted, find};
pub use loss::Loss;
pub use note::{Findings, Note};
pub use problem::{At, DataError, Place, Problem, Remedy};
pub use write::{Writer, write};

use collect::Collector;
use episodes::EpisodeSize;
use write::Render;

/// A format of labelled sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// A word and its tag in columns, a blank line between sentences.
    Conll,
    /// The official episode JSON of the paper's authors.
    Episodes,
    /// JSON Lines with `tokens` and `ner_tags`, as Hugging Face datasets are exported.
    Hf,
    /// spaCy's and Prodigy's JSON Lines with `text` and `spans`.
    Spacy,
    /// doccano's JSON Lines with `text` and `label`.
    Doccano,
    /// Label Studio's JSON export.
    LabelStudio,
    /// GLiNER's JSON with `tokenized_text` and `ner`.
    Gliner,
    /// Rasa's NLU YAML: `[Nina](artist)`.
    Rasa,
    /// Snips' JSON, a sentence in chunks.
    SnipsJson,
    /// Snips' YAML: `[artist:type](Nina)`.
    SnipsYaml,
    /// A sentence a line, for people at a terminal: `play [nina simone](artist)`.
    Inline,
}

impl Format {
    /// Every format.
    pub const ALL: [Self; 11] = [
        Self::Conll,
        Self::Episodes,
        Self::Hf,
        Self::Spacy,
        Self::Doccano,
        Self::LabelStudio,
        Self::Gliner,
        Self::Rasa,
        Self::SnipsJson,
        Self::SnipsYaml,
        Self::Inline,
    ];

    /// The name as it is written on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Conll => "conll",
            Self::Episodes => "episodes",
            Self::Hf => "hf",
            Self::Spacy => "spacy",
            Self::Doccano => "doccano",
            Self::LabelStudio => "labelstudio",
            Self::Gliner => "gliner",
            Self::Rasa => "rasa",
            Self::SnipsJson => "snips",
            Self::SnipsYaml => "snips-yaml",
            Self::Inline => "inline",
        }
    }

    /// Whether a file of this format says where words begin and end.
    #[must_use]
    pub(crate) fn keeps_words(self) -> bool {
        matches!(self, Self::Conll | Self::Episodes | Self::Hf | Self::Gliner | Self::Spacy)
    }

    /// Whether a file of this format holds the running text, with its white space.
    #[must_use]
    pub fn keeps_text(self) -> bool {
        matches!(self, Self::Spacy | Self::Doccano | Self::LabelStudio | Self::SnipsJson)
    }

    /// Whether a file of this format holds a tag per word, and so also tags that continue nothing.
    #[must_use]
    pub fn keeps_tags(self) -> bool {
        matches!(self, Self::Conll | Self::Episodes | Self::Hf)
    }

    /// All names, separated by commas.
    #[must_use]
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Whether a file of this format always names its domains.
    #[must_use]
    pub(crate) fn gathers_by_domain(self) -> bool {
        matches!(self, Self::Episodes | Self::Rasa | Self::SnipsJson | Self::SnipsYaml)
    }

    fn codec(self) -> &'static dyn Codec {
        match self {
            Self::Conll => &conll::Conll,
            Self::Episodes => &episodes::Episodes,
            Self::Hf => &hf::Hf,
            Self::Spacy => &spacy::Spacy,
            Self::Doccano => &doccano::Doccano,
            Self::LabelStudio => &label_studio::LabelStudio,
            Self::Gliner => &gliner::Gliner,
            Self::Rasa => &rasa::Rasa,
            Self::SnipsJson => &snips_json::SnipsJson,
            Self::SnipsYaml => &snips_yaml::SnipsYaml,
            Self::Inline => &inline::Inline,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|format| format.name() == text);
        found.ok_or_else(|| format!("`{text}` is no data format ({})", Self::names()))
    }
}

/// How to read a file. The default finds out what it can and repairs nothing.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// The format, if it is not to be recognised from the content.
    pub format: Option<Format>,
    /// The tagging scheme, if it is not to be recognised from the tags.
    pub scheme: Option<Scheme>,
    /// Whether to mend what can be mended, with a [`Note`], instead of refusing it.
    pub repair: bool,
    /// How running text becomes words.
    pub words: WordSplit,
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corpus {
    /// The format it was read as.
    pub format: Format,
    /// The tagging scheme of the file; `None` if it has no tags but `O`, or marks spans and not words.
    pub scheme: Option<Scheme>,
    /// The domains in the order of their first sentence, each with at least one sentence.
    /// Of an episode file they hold the sentences of all supports and queries.
    pub domains: Vec<Domain>,
    /// What is worth telling about the file.
    pub notes: Vec<Note>,
    /// How the sentences of an episode file divide into episodes.
    episode_sizes: Vec<EpisodeSize>,
}

impl Corpus {
    /// The sentences of all domains.
    pub fn sentences(&self) -> impl Iterator<Item = &Sentence> {
        self.domains.iter().flat_map(|domain| &domain.sentences)
    }

    /// The sentences of all domains, without the rest.
    pub fn into_sentences(self) -> impl Iterator<Item = Sentence> {
        self.domains.into_iter().flat_map(|domain| domain.sentences)
    }
}

/// Reads a file of labelled sentences.
///
/// # Errors
///
/// [`crate::Error::File`] or [`crate::Error::Data`], which names the place.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Corpus> {
    parse(path, &file::read(path)?, options)
}

/// Reads labelled sentences from memory; `path` names them in errors and, by its stem, their domain.
///
/// # Errors
///
/// As [`read`].
pub fn parse(path: &Path, bytes: &[u8], options: &ReadOptions) -> Result<Corpus> {
    let text = file::text(path, bytes)?;
    let format = match options.format {
        Some(format) => format,
        None => detect::detect_text(path, text)?,
    };
    let mut collector = Collector::new(path, options);
    format.codec().read(text, &mut collector)?;
    collector.finish(format)
}

/// Makes a sentence of a text and its labels, each a range of Unicode scalar values and a slot, with the checks of
/// every reader; notes say what was repaired, if `options` ask for it.
///
/// # Errors
///
/// [`crate::Error::Data`] if a label does not fit the text.
pub fn label_text(
    text: &str,
    labels: impl IntoIterator<Item = (Range<usize>, String)>,
    options: &ReadOptions,
) -> Result<(Sentence, Vec<Note>)> {
    let mut collector = Collector::new(Path::new("text"), options);
    let label = |(chars, slot): (Range<usize>, String)| text::Label { chars, slot: slot.into() };
    let labels = labels.into_iter().map(label).collect();
    collector.add_text(None, text.into(), labels, || At::File)?;
    let Corpus { mut domains, notes, .. } = collector.finish(Format::Spacy)?;
    Ok((domains.swap_remove(0).sentences.swap_remove(0), notes))
}

/// The labels of a sentence in its text, as [`label_text`] takes them.
#[must_use]
pub fn labels(sentence: &Sentence) -> Vec<(Range<usize>, String)> {
    let (_, marks) = text::marked(sentence);
    marks.into_iter().map(|mark| (mark.chars, mark.slot.to_string())).collect()
}

/// Reads the domains of a file.
///
/// # Errors
///
/// As [`read`].
pub fn read_domains(path: &Path, options: &ReadOptions) -> Result<Vec<Domain>> {
    Ok(read(path, options)?.domains)
}

/// Reads the sentences of a file, whatever their domains: what a support file is read with.
///
/// # Errors
///
/// As [`read`].
pub fn read_sentences(path: &Path, options: &ReadOptions) -> Result<Vec<Sentence>> {
    Ok(read(path, options)?.into_sentences().collect())
}

/// Reads the episodes of an episode file.
///
/// # Errors
///
/// As [`read`]; also if a support set labels no slot.
pub fn read_episodes(path: &Path) -> Result<Vec<Episode>> {
    parse_episodes(path, &file::read(path)?)
}

/// Reads episodes from memory; `path` names them in errors.
///
/// # Errors
///
/// As [`read_episodes`].
pub fn parse_episodes(path: &Path, bytes: &[u8]) -> Result<Vec<Episode>> {
    let options = ReadOptions { format: Some(Format::Episodes), ..ReadOptions::default() };
    parse(path, bytes, &options)?.into_episodes(path)
}

/// Writes episodes in the official JSON.
///
/// # Errors
///
/// [`crate::Error::Write`] if `out` fails.
///
/// # Panics
///
/// If the episodes of a domain do not stand together.
pub fn write_episodes<'a>(
    out: impl std::io::Write,
    episodes: impl IntoIterator<Item = &'a Episode>,
) -> Result<()> {
    let mut writer = EpisodeWriter::new(out);
    for episode in episodes {
        writer.episode(episode)?;
    }
    writer.finish().map(|_| ())
}

/// The name of a domain in formats that must name it, if whoever writes does not.
const UNNAMED: &str = "sentences";

/// The most bytes in a line of the formats made of lines.
const MAX_LINE: usize = 1 << 23;

fn check_line(line: &str) -> Result<(), Problem> {
    match line.len() {
        0..=MAX_LINE => Ok(()),
        n_bytes => Err(Problem::LongLine { n_bytes, most: MAX_LINE }),
    }
}

/// What a format is: how it is read, and how it is written.
trait Codec: Sync {
    /// Reads every sentence of `text` into `into`.
    fn read(&self, text: &str, into: &mut Collector) -> Result<()>;

    /// Something that writes one file; `scheme` is for formats with a tag per word.
    fn renderer(&self, scheme: Scheme) -> Box<dyn Render + Send>;
}
