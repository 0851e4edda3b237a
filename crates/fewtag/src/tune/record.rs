//! What is known so far, and the directory in which it is kept for a run that is killed.
//!
//! ```text
//! record.json            the folds and runs that were judged; written as a whole after each
//! trial-0-2-…/, final-…/ the checkpoints of the training that is under way (`train::Checkpoints`)
//! ```
//!
//! Everything else is a function of sentences, model, seed and plan, whose checksum the record has: another run's is refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::judge::Judgement;
use crate::error::{Error, Result};
use crate::file;
use crate::train::{Checkpoints, Trainer};

/// What was judged so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Record {
    /// What tells this tuning from others.
    pub(super) key: String,
    /// The model as it was, fold by fold.
    pub(super) untuned: Vec<Judgement>,
    /// In the order in which they were begun; the last may be under way.
    pub(super) trials: Vec<Trial>,
}

/// One run on one fold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Trial {
    pub(super) run: usize,
    pub(super) fold: usize,
    /// After so many updates.
    pub(super) judged: BTreeMap<u64, Judgement>,
    pub(super) state: State,
}

/// How a trial stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    UnderWay,
    Done,
    /// With the reason.
    Failed(String),
}

/// A directory in which a run is kept.
pub(super) struct Store(PathBuf);

impl Store {
    /// Makes the directory if it is not there.
    pub(super) fn create(dir: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(&dir)
            .map_err(|source| Error::File { path: dir.clone(), source })?;
        file::remove_leftovers(&dir)?;
        Ok(Self(dir))
    }

    fn path(&self) -> PathBuf {
        self.0.join("record.json")
    }

    /// What an earlier run of the same key knew; nothing if there was none.
    ///
    /// # Errors
    ///
    /// [`Error::OtherRun`] if the directory belongs to other sentences, another model or other settings.
    pub(super) fn load(&self, key: &str) -> Result<Option<Record>> {
        let path = self.path();
        if !path.exists() {
            return Ok(None);
        }
        let damaged = |source: serde_json::Error| Error::BadCheckpoint {
            path: path.clone(),
            source: source.into(),
        };
        let record: Record = serde_json::from_slice(&file::read(&path)?).map_err(damaged)?;
        if record.key != key {
            return Err(Error::OtherRun { path });
        }
        Ok(Some(record))
    }

    pub(super) fn save(&self, record: &Record) -> Result<()> {
        let json = serde_json::to_vec(record).expect("plain structures are JSON");
        file::write_atomically(&self.path(), &json)
    }

    /// The checkpoints of a training, which is put where the newest of them was saved. Damaged ones are passed over: it then
    /// begins earlier, with the same result.
    pub(super) fn training(&self, name: &str, trainer: &mut Trainer) -> Result<Checkpoints> {
        let mut checkpoints = Checkpoints::create(self.0.join(name))?;
        match checkpoints.resume(trainer) {
            Err(Error::BadCheckpoint { .. }) => {
                checkpoints.remove()?;
                Checkpoints::create(self.0.join(name))
            }
            other => other.map(|_| checkpoints),
        }
    }

    /// Removes the directory: what was wanted is written elsewhere.
    pub(super) fn remove(dir: &Path) -> Result<()> {
        std::fs::remove_dir_all(dir).map_err(|source| Error::File { path: dir.to_owned(), source })
    }
}
