//! Finished cells on disk, so that a killed run goes on where it stopped.
//!
//! ```text
//! key = sha256(what decides the outcome)      DIR/key.json = { what decides it, the outcome }
//! ```
//!
//! Whatever can change an outcome is part of [`Inputs`]: a changed setting, file or encoder gives another key, and
//! exactly the cells it touches are run again. Files are written whole or not at all.

use std::path::{Path, PathBuf};

use fewtag::file;
use serde::{Deserialize, Serialize};

use super::results::{Cell, Outcome};
use crate::error::{Error, Result};

/// Raised when a change of the program changes what cells give.
const VERSION: u32 = 1;

/// Everything that decides the outcome of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    version: u32,
    /// The cell.
    pub cell: Cell,
    /// The settings of the system, with the budget applied.
    pub settings: String,
    /// The encoder or the word vectors that training starts from: the hash of their file.
    pub encoder: String,
    /// The test episodes: the hash of their file and how many of them are used.
    pub test: (String, usize),
    /// The hash of the dev domain's file; empty if the system does not look at it.
    pub dev: String,
    /// The hashes of the source domains' files; empty if the system does not learn from them.
    pub train: Vec<String>,
}

impl Inputs {
    /// The inputs of a `cell` tested on `test`, with nothing else that decides its outcome yet.
    #[must_use]
    pub fn new(cell: Cell, settings: String, test: (String, usize)) -> Self {
        let (encoder, dev, train) = (String::new(), String::new(), Vec::new());
        Self { version: VERSION, cell, settings, encoder, test, dev, train }
    }

    fn key(&self) -> String {
        let json = serde_json::to_vec(self).expect("inputs have a JSON form");
        file::sha256(&json)
    }
}

/// The outcomes of finished cells.
#[derive(Debug, Clone)]
pub struct Cache {
    dir: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    inputs: Inputs,
    outcome: Outcome,
}

impl Cache {
    /// Opens the directory, making it if need be.
    ///
    /// # Errors
    ///
    /// [`fewtag::Error::File`] if it cannot be made.
    pub fn open(dir: &Path) -> Result<Self> {
        std::fs::create_dir_all(dir).map_err(|source| Error::file(dir, source))?;
        Ok(Self { dir: dir.into() })
    }

    /// The outcome of a cell with exactly these inputs, if it was finished before.
    ///
    /// # Errors
    ///
    /// [`fewtag::Error::File`] if the file is there but cannot be read, [`Error::CachedCell`] if it is damaged.
    pub fn load(&self, inputs: &Inputs) -> Result<Option<Outcome>> {
        let path = self.path(inputs);
        if !path.exists() {
            return Ok(None);
        }
        let entry: Entry = serde_json::from_slice(&file::read(&path)?)
            .map_err(|source| Error::CachedCell { path: path.clone(), source })?;
        Ok(Some(entry.outcome))
    }

    /// Keeps the outcome of a finished cell.
    ///
    /// # Errors
    ///
    /// [`fewtag::Error::File`] if it cannot be written.
    ///
    /// # Panics
    ///
    /// Never: an outcome has a JSON form.
    pub fn store(&self, inputs: &Inputs, outcome: &Outcome) -> Result<()> {
        let entry = Entry { inputs: inputs.clone(), outcome: outcome.clone() };
        let json = serde_json::to_vec_pretty(&entry).expect("outcomes have a JSON form");
        Ok(file::write_atomically(&self.path(inputs), &json)?)
    }

    fn path(&self, inputs: &Inputs) -> PathBuf {
        self.dir.join(format!("{}.json", inputs.key()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::outcome;
    use super::*;

    fn inputs(settings: &str) -> Inputs {
        Inputs::new(outcome("nmn", 0, 1, 0.0).cell, settings.into(), ("hash".into(), 20))
    }

    #[test]
    fn a_finished_cell_comes_back_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(&dir.path().join("new")).unwrap();
        assert_eq!(cache.load(&inputs("a")).unwrap(), None);
        let mut done = outcome("nmn", 0, 1, 100.0 / 3.0);
        done.training.scale = Some(0.1);
        done.training.losses = vec![(10, 1.0 / 7.0)];
        cache.store(&inputs("a"), &done).unwrap();
        assert_eq!(cache.load(&inputs("a")).unwrap(), Some(done));
    }

    #[test]
    fn any_changed_input_is_another_cell() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path()).unwrap();
        let stored = inputs("a");
        cache.store(&stored, &outcome("nmn", 0, 1, 1.0)).unwrap();
        let changes: [fn(&mut Inputs); 7] = [
            |i| i.settings.push('b'),
            |i| i.encoder.push('b'),
            |i| i.test.0.push('b'),
            |i| i.test.1 += 1,
            |i| i.dev.push('b'),
            |i| i.train.push("b".into()),
            |i| i.cell.seed += 1,
        ];
        for change in changes {
            let mut changed = stored.clone();
            change(&mut changed);
            assert_eq!(cache.load(&changed).unwrap(), None, "{changed:?}");
        }
    }

    #[test]
    fn a_damaged_file_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::open(dir.path()).unwrap();
        std::fs::write(cache.path(&inputs("a")), b"{\"inputs\":").unwrap();
        let error = cache.load(&inputs("a")).unwrap_err();
        assert!(matches!(error, Error::CachedCell { .. }) && error.to_string().contains(".json"));
    }
}
