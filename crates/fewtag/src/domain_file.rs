//! A saved domain: what a tagger learned, in one small file that the command, the server and Python read alike.
//!
//! ```text
//! music.fewtag = a safetensors file; its metadata has one entry, `fewtag`: a JSON object
//!     format      the version of this layout
//!     model       the checksum of the model that the domain was made for (Tagger::checksum)
//!     settings    how that model reads and decodes here
//!     examples    [{"words", "tags", "text"?, "starts"?}]: where words stand counts Unicode scalar values
//!     labels      labels that are known by their names alone
//!     meanings    names of labels that are not their slot's; null says nothing
//!     thresholds  how probable spans must be
//! ```
//!
//! No weight is in it: a tagger of the same model learns the examples again when the file is opened, and gives the same answers.
//! There is room for tensors; a file that has some is of a later version and refused, not half understood.
//! Reading is bounded ([`MAX_BYTES`]) and runs no code, whatever the file holds.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use safetensors::SafeTensors;
use safetensors::tensor::TensorView;
use serde::{Deserialize, Serialize};

use crate::adapted::Adapted;
use crate::answer::Thresholds;
use crate::domain::{Sentence, SupportSet, Token};
use crate::error::{Error, Result};
use crate::file;
use crate::settings::ModelSettings;
use crate::tag::{Slot, Tag};
use crate::tagger::Tagger;
use crate::words::Offsets;

/// The version of the layout that this crate writes and reads.
const FORMAT: u32 = 1;
/// The longest file that is read.
const MAX_BYTES: u64 = 256 << 20;
/// The entry of the metadata that holds everything.
const ENTRY: &str = "fewtag";

/// Examples and settings of a domain, and which model they were made for.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainFile {
    support: SupportSet,
    settings: ModelSettings,
    thresholds: Thresholds,
    model: String,
}

impl DomainFile {
    /// What `tagger` would learn from `support`; spans less probable than `thresholds` are not wanted.
    ///
    /// # Errors
    ///
    /// [`Error::UnsavedModel`] if the model has no checksum that could be named.
    pub fn new(tagger: &Tagger, support: SupportSet, thresholds: Thresholds) -> Result<Self> {
        let model = tagger.checksum().ok_or(Error::UnsavedModel)?.to_owned();
        Ok(Self { support, settings: tagger.settings().clone(), thresholds, model })
    }

    /// Whether bytes look like a saved domain, sound or not: every other format that we read is text.
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.get(8..).is_some_and(|header| header.starts_with(br#"{"__metadata__":{"fewtag""#))
    }

    /// Reads a file.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if it cannot be read, [`Error::DomainFile`] or [`Error::DomainFormat`] if it is no saved domain.
    pub fn read(path: &Path) -> Result<Self> {
        let fail = |source| Error::File { path: path.to_owned(), source };
        if std::fs::metadata(path).map_err(fail)?.len() > MAX_BYTES {
            return Err(damaged(path, format!("it has more than {MAX_BYTES} bytes")));
        }
        Self::from_bytes(&file::read(path)?, path)
    }

    /// Reads what [`DomainFile::to_bytes`] gave; `path` is only named in errors.
    ///
    /// # Errors
    ///
    /// As [`DomainFile::read`].
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self> {
        /// Read first: another version may have other fields.
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let tensors = SafeTensors::deserialize(bytes)
            .map_err(|source| Error::Safetensors { path: path.to_owned(), source })?;
        let (_, header) = SafeTensors::read_metadata(bytes)
            .map_err(|source| Error::Safetensors { path: path.to_owned(), source })?;
        let json = header.metadata().as_ref().and_then(|metadata| metadata.get(ENTRY));
        let json = json.ok_or_else(|| damaged(path, "it has no entry `fewtag`"))?;
        let fail = |error: serde_json::Error| damaged(path, error);
        let Version { format } = serde_json::from_str(json).map_err(fail)?;
        if format != FORMAT || !tensors.is_empty() {
            let format = if format == FORMAT { FORMAT + 1 } else { format };
            return Err(Error::DomainFormat { path: path.to_owned(), format, known: FORMAT });
        }
        serde_json::from_str::<Content>(json).map_err(fail)?.check(path)
    }

    /// The bytes of the file: the same for the same domain.
    ///
    /// # Panics
    ///
    /// Never: the content is JSON and there is no tensor.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let json = serde_json::to_string(&Content::new(self)).expect("plain structures are JSON");
        let metadata = HashMap::from([(ENTRY.to_owned(), json)]);
        let none = std::iter::empty::<(String, TensorView)>();
        safetensors::serialize(none, Some(metadata)).expect("there is no tensor to refuse")
    }

    /// Writes the file, as a whole or not at all.
    ///
    /// # Errors
    ///
    /// [`Error::File`].
    pub fn write(&self, path: &Path) -> Result<()> {
        file::write_atomically(path, &self.to_bytes())
    }

    /// Teaches `tagger` the domain, with its settings; `path` is only named in errors.
    ///
    /// # Errors
    ///
    /// [`Error::OtherModel`] if the domain was made for another model, and as [`Tagger::adapt`].
    pub fn adapt(&self, tagger: &Tagger, path: &Path) -> Result<Adapted> {
        self.tagger(tagger, path)?.adapt(&self.support)
    }

    /// The tagger with the settings of the domain.
    ///
    /// # Errors
    ///
    /// [`Error::OtherModel`] if the domain was made for another model.
    pub fn tagger(&self, tagger: &Tagger, path: &Path) -> Result<Tagger> {
        if tagger.checksum() != Some(&self.model) {
            let found = tagger.checksum().unwrap_or("one that was never saved");
            let [wanted, found] = [&self.model, found].map(|sum| sum.chars().take(12).collect());
            return Err(Error::OtherModel { path: path.to_owned(), wanted, found });
        }
        tagger.with_settings(self.settings.clone())
    }

    /// The examples, the labels and their names.
    #[must_use]
    pub fn support(&self) -> &SupportSet {
        &self.support
    }

    /// How the model reads and decodes.
    #[must_use]
    pub fn settings(&self) -> &ModelSettings {
        &self.settings
    }

    /// How probable a span must be to be wanted.
    #[must_use]
    pub fn thresholds(&self) -> &Thresholds {
        &self.thresholds
    }

    /// The checksum of the model that it was made for.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }
}

/// What any error becomes, and any text.
type Cause = Box<dyn std::error::Error + Send + Sync>;

fn damaged(path: &Path, problem: impl Into<Cause>) -> Error {
    Error::DomainFile { path: path.to_owned(), source: problem.into() }
}

/// An example that is no labelled sentence.
#[derive(Debug, thiserror::Error)]
#[error("example {at}")]
struct BadExample {
    at: usize,
    source: Cause,
}

/// The JSON object.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    format: u32,
    model: String,
    settings: ModelSettings,
    examples: Vec<Example>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    labels: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    meanings: BTreeMap<String, Option<String>>,
    #[serde(default)]
    threshold: f64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    thresholds: BTreeMap<String, f64>,
}

/// A labelled sentence.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Example {
    words: Vec<String>,
    tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Where the words begin in the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    starts: Vec<usize>,
}

impl Content {
    fn new(domain: &DomainFile) -> Self {
        let DomainFile { support, settings, thresholds, model } = domain;
        let shown: Vec<&Tag> = support.sentences().iter().flat_map(Sentence::tags).collect();
        let has_more = |slot: &Slot| {
            let both = [Tag::B(slot.clone()), Tag::I(slot.clone())];
            let known = |tag: &&Tag| support.tag_set().index_of(tag).is_some();
            both.iter().filter(known).any(|tag| !shown.contains(&tag))
        };
        let given = support.tag_set().slots().into_iter().filter(|slot| has_more(slot));
        let names = support.names().iter();
        Self {
            format: FORMAT,
            model: model.clone(),
            settings: settings.clone(),
            examples: support.sentences().iter().map(Example::new).collect(),
            labels: given.map(ToString::to_string).collect(),
            meanings: names.map(|(slot, name)| (slot.to_string(), name.clone())).collect(),
            threshold: thresholds.general,
            thresholds: thresholds.of_label.clone(),
        }
    }

    fn check(self, path: &Path) -> Result<DomainFile> {
        let place = |at| move |source| damaged(path, BadExample { at, source });
        let sentences = self.examples.into_iter().enumerate();
        let sentences = sentences.map(|(i, example)| example.sentence().map_err(place(i + 1)));
        let labels =
            self.labels.iter().map(|label| Slot::new(label)).collect::<Result<Vec<_>>>()?;
        let mut support = SupportSet::with_labels(sentences.collect::<Result<Vec<_>>>()?, labels)?;
        for (slot, name) in self.meanings {
            support = support.named(Slot::new(&slot)?, name);
        }
        let thresholds = Thresholds { general: self.threshold, of_label: self.thresholds };
        let is_probability = |p: &f64| (0.0..=1.0).contains(p);
        if !is_probability(&thresholds.general) || !thresholds.of_label.values().all(is_probability)
        {
            return Err(damaged(path, "a threshold is a probability: from 0 to 1"));
        }
        self.settings.check()?;
        Ok(DomainFile { support, settings: self.settings, thresholds, model: self.model })
    }
}

impl Example {
    fn new(sentence: &Sentence) -> Self {
        let words = sentence.words().map(str::to_owned).collect();
        let tags = sentence.tags().map(ToString::to_string).collect();
        if !sentence.has_text() {
            return Self { words, tags, text: None, starts: Vec::new() };
        }
        let (text, at) = sentence.text();
        let offsets = Offsets::new(&text);
        let starts = at.iter().map(|word| offsets.char(word.start)).collect();
        Self { words, tags, text: Some(text.into_owned()), starts }
    }

    /// The sentence, or what is wrong.
    fn sentence(self) -> Result<Sentence, Cause> {
        if self.words.len() != self.tags.len() {
            return Err("it has more words than tags, or fewer".into());
        }
        let tags = self.tags.iter().map(|tag| tag.parse()).collect::<Result<Vec<Tag>>>()?;
        let Some(text) = self.text else {
            let tokens = self.words.into_iter().zip(tags);
            let tokens = tokens.map(|(word, tag)| Token { word, tag }).collect();
            return Ok(Sentence::new(tokens)?);
        };
        if self.starts.len() != self.words.len() {
            return Err("it does not say where each word begins".into());
        }
        let (offsets, mut end, mut at) = (Offsets::new(&text), 0, Vec::new());
        for (word, &start) in self.words.iter().zip(&self.starts) {
            let byte = offsets.byte(start).filter(|&byte| byte >= end);
            let byte = byte.filter(|&byte| text[byte..].starts_with(word.as_str()));
            let byte = byte.ok_or_else(|| format!("its text has no `{word}` at {start}"))?;
            end = byte + word.len();
            at.push(byte..end);
        }
        Ok(Sentence::from_text(text, at, tags)?)
    }
}

#[cfg(test)]
mod tests;
