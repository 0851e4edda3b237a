//! Examples as Python gives them, gathered one by one.

use std::ops::Range;
use std::path::{Path, PathBuf};

use fewtag::data::{self, Format, ReadOptions};
use fewtag::{DomainFile, Sentence, Tag, Token};
use pyo3::prelude::*;

use crate::errors::{ExamplesError, raise};

/// Labelled sentences.
#[pyclass(module = "fewtag._fewtag")]
#[derive(Default)]
pub(crate) struct Examples {
    pub(crate) sentences: Vec<Sentence>,
}

#[pymethods]
impl Examples {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn __len__(&self) -> usize {
        self.sentences.len()
    }

    /// Adds sentences as a person writes them, one a line: `play [nina simone](artist)`.
    fn add_inline(&mut self, text: &str) -> PyResult<()> {
        let options = ReadOptions { format: Some(Format::Inline), ..ReadOptions::default() };
        self.parse(Path::new("the examples"), text.as_bytes(), &options)
    }

    /// Adds the sentences of a file: a saved domain, or any data format.
    #[pyo3(signature = (path, format=None))]
    fn add_file(&mut self, path: PathBuf, format: Option<&str>) -> PyResult<()> {
        let bytes = fewtag::file::read(&path).map_err(raise)?;
        if format.is_none() && DomainFile::is_one(&bytes) {
            let domain = DomainFile::from_bytes(&bytes, &path).map_err(raise)?;
            self.sentences.extend_from_slice(domain.support().sentences());
            return Ok(());
        }
        let format = format.map(str::parse).transpose().map_err(ExamplesError::new_err)?;
        self.parse(&path, &bytes, &ReadOptions { format, ..ReadOptions::default() })
    }

    /// Adds a text with its spans: first character, one past the last, label.
    fn add_text(&mut self, text: &str, spans: Vec<(usize, usize, String)>) -> PyResult<()> {
        let labels = spans.into_iter().map(|(start, end, label)| (Range { start, end }, label));
        let options = ReadOptions::default();
        let (sentence, _) = data::label_text(text, labels, &options).map_err(|error| {
            let shown: String = text.chars().take(60).collect();
            ExamplesError::new_err(format!("{shown:?}: {}", fewtag::error::chain(&error)))
        })?;
        self.sentences.push(sentence);
        Ok(())
    }

    /// Adds words with their BIO tags.
    fn add_words(&mut self, words: Vec<String>, tags: Vec<String>) -> PyResult<()> {
        if words.len() != tags.len() {
            let message = format!("{} words have {} tags", words.len(), tags.len());
            return Err(ExamplesError::new_err(message));
        }
        let token = |(word, tag): (String, String)| {
            Ok(Token { word, tag: tag.parse::<Tag>().map_err(raise)? })
        };
        let tokens = words.into_iter().zip(tags).map(token).collect::<PyResult<_>>()?;
        self.sentences.push(Sentence::new(tokens).map_err(raise)?);
        Ok(())
    }
}

impl Examples {
    fn parse(&mut self, path: &Path, bytes: &[u8], options: &ReadOptions) -> PyResult<()> {
        let corpus = data::parse(path, bytes, options).map_err(raise)?;
        self.sentences.extend(corpus.into_sentences());
        Ok(())
    }
}
