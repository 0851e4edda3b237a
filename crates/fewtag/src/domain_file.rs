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
//!     tuned       what `fewtag tune` changed besides the tensors, and what it was worth (format 2)
//! ```
//!
//! A tagger of the same model learns the examples again when the file is opened, and gives the same answers. A domain that was tuned
//! (format 2) also has tensors: what tuning added to the upper layers of that model ([`Difference`]). One that was not is
//! written as format 1, which versions before tuning read. Nothing is half understood: what is of a later version is refused.
//! Reading is bounded ([`MAX_BYTES`]) and runs no code, whatever the file holds.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};

use crate::adapted::Adapted;
use crate::answer::Thresholds;
use crate::domain::{Sentence, SupportSet, Token};
use crate::encoder::Difference;
use crate::error::{Error, Result};
use crate::file;
use crate::head::Head;
use crate::settings::ModelSettings;
use crate::tag::{Slot, Tag};
use crate::tagger::Tagger;
use crate::tune::{Figures, TunedWeights};
use crate::words::Offsets;

/// The version of the layout of a tuned domain, the latest that this crate writes and reads.
const FORMAT: u32 = 2;
/// The version of all others.
const UNTUNED_FORMAT: u32 = 1;
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
    tuned: Option<TunedWeights>,
}

impl DomainFile {
    /// What `tagger` would learn from `support`; spans less probable than `thresholds` are not wanted.
    ///
    /// # Errors
    ///
    /// [`Error::UnsavedModel`] if the model has no checksum that could be named.
    pub fn new(tagger: &Tagger, support: SupportSet, thresholds: Thresholds) -> Result<Self> {
        let model = tagger.checksum().ok_or(Error::UnsavedModel)?.to_owned();
        let (settings, tuned) = (tagger.settings().clone(), tagger.tuned_weights().cloned());
        Ok(Self { support, settings, thresholds, model, tuned })
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
        if !(UNTUNED_FORMAT..=FORMAT).contains(&format) {
            return Err(Error::DomainFormat { path: path.to_owned(), format, known: FORMAT });
        }
        serde_json::from_str::<Content>(json).map_err(fail)?.check(&tensors, path)
    }

    /// The bytes of the file: the same for the same domain.
    ///
    /// # Panics
    ///
    /// Never: the content is JSON and the tensors are well-formed.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let json = serde_json::to_string(&Content::new(self)).expect("plain structures are JSON");
        let metadata = HashMap::from([(ENTRY.to_owned(), json)]);
        let tensors = self.tuned.iter().flat_map(|tuned| tuned.difference.tensors());
        safetensors::serialize(tensors, Some(metadata)).expect("tensors of whole numbers of bytes")
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

    /// The tagger with the settings of the domain, and tuned if the domain was. What does not change is shared with `tagger`.
    ///
    /// # Errors
    ///
    /// [`Error::OtherModel`] if the domain was made for another model, [`Error::DomainFile`] if it was tuned and its tensors are
    /// not for this one.
    pub fn tagger(&self, tagger: &Tagger, path: &Path) -> Result<Tagger> {
        let tagger = tagger.base();
        if tagger.checksum() != Some(&self.model) {
            let found = tagger.checksum().unwrap_or("one that was never saved");
            let [wanted, found] = [&self.model, found].map(|sum| sum.chars().take(12).collect());
            return Err(Error::OtherModel { path: path.to_owned(), wanted, found });
        }
        match &self.tuned {
            None => tagger.with_settings(self.settings.clone()),
            Some(weights) => {
                let tuned = tagger.tuned(weights.clone());
                tuned
                    .map_err(|problem| damaged(path, problem))?
                    .with_settings(self.settings.clone())
            }
        }
    }

    /// The same domain with other examples, such as one more: its weights stay as they are.
    #[must_use]
    pub fn with_support(self, support: SupportSet) -> Self {
        Self { support, ..self }
    }

    /// What tuning was found to be worth, if the domain was tuned.
    #[must_use]
    pub fn figures(&self) -> Option<&Figures> {
        self.tuned.as_ref().map(|tuned| &tuned.figures)
    }

    /// How many bytes of the file are what tuning added to the model; none if the domain was not tuned.
    #[must_use]
    pub fn tuned_bytes(&self) -> usize {
        self.tuned.as_ref().map_or(0, |tuned| tuned.difference.n_bytes())
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tuned: Option<TunedContent>,
}

/// What was tuned, besides the tensors.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TunedContent {
    /// So many of the encoder's lowest layers are the model's own.
    layers_below: usize,
    head: Head,
    figures: Figures,
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
        let DomainFile { support, settings, thresholds, model, tuned } = domain;
        let shown: Vec<&Tag> = support.sentences().iter().flat_map(Sentence::tags).collect();
        let has_more = |slot: &Slot| {
            let both = [Tag::B(slot.clone()), Tag::I(slot.clone())];
            let known = |tag: &&Tag| support.tag_set().index_of(tag).is_some();
            both.iter().filter(known).any(|tag| !shown.contains(&tag))
        };
        let given = support.tag_set().slots().into_iter().filter(|slot| has_more(slot));
        let names = support.names().iter();
        Self {
            format: if tuned.is_some() { FORMAT } else { UNTUNED_FORMAT },
            model: model.clone(),
            settings: settings.clone(),
            examples: support.sentences().iter().map(Example::new).collect(),
            labels: given.map(ToString::to_string).collect(),
            meanings: names.map(|(slot, name)| (slot.to_string(), name.clone())).collect(),
            threshold: thresholds.general,
            thresholds: thresholds.of_label.clone(),
            tuned: tuned.as_ref().map(|TunedWeights { difference, head, figures }| TunedContent {
                layers_below: difference.n_below(),
                head: *head,
                figures: *figures,
            }),
        }
    }

    fn check(self, tensors: &SafeTensors, path: &Path) -> Result<DomainFile> {
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
        let tuned = self.tuned.map(|tuned| tuned.check(tensors, path)).transpose()?;
        if (self.format == FORMAT) != tuned.is_some() || (tuned.is_none() && !tensors.is_empty()) {
            return Err(damaged(path, "its format, its tensors and `tuned` contradict each other"));
        }
        Ok(DomainFile { support, settings: self.settings, thresholds, model: self.model, tuned })
    }
}

impl TunedContent {
    fn check(self, tensors: &SafeTensors, path: &Path) -> Result<TunedWeights> {
        let Self { layers_below, head, figures } = self;
        if !head.as_slice().iter().all(|x| x.is_finite()) {
            return Err(damaged(path, "a number of its `head` is not finite"));
        }
        Ok(TunedWeights { difference: Difference::read(tensors, layers_below), head, figures })
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
