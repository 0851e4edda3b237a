//! Checkpoints: what a killed run needs to go on to bit-identical results.
//!
//! ```text
//! 000400.safetensors       weights and both Adam moments after update 400, flat
//! best-000200.safetensors  the weights with the best dev F1 so far
//! 000400.json              settings and progress; names the two files above with their checksums
//! ```
//!
//! Every file is written beside its place and renamed, the JSON last: a checkpoint exists once its JSON does.
//! The one before it is kept, so when the newest fails a check there is still a good one. Batches and dropout
//! are functions of the seed and the update, so no generator's state is saved.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use serde::{Deserialize, Serialize};

use super::Trainer;
use super::config::Config;
use crate::error::{Error, Result};
use crate::file;

/// The layout of checkpoint files; a change makes old ones unreadable and must raise it.
const FORMAT: u32 = 1;
/// The newest and the one to fall back to.
const KEPT: usize = 2;

/// Named flat arrays, in a fixed order.
type Arrays<'a> = [(&'static str, &'a [f32])];

/// How far a run has come.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// The number of updates done.
    pub update: u64,
    /// The best evaluation so far.
    pub best: Option<Best>,
    /// How many evaluations have passed since the best one.
    pub evaluations_since_best: usize,
    /// How many queries were left out because their support lacks one of their tags.
    pub skipped_queries: u64,
}

/// The best dev evaluation so far.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Best {
    /// After which update.
    pub update: u64,
    /// The mean episode F1 on the dev data, in percent.
    pub f1: f64,
}

/// What a good checkpoint held, and which newer ones were no good.
struct Loaded {
    progress: Progress,
    /// The arrays of the state, in the order they were saved.
    state: Vec<Vec<f32>>,
    /// The arrays of the best weights.
    best: Option<Vec<Vec<f32>>>,
    /// Newer checkpoints that failed a check, with the reason.
    refused: Vec<Error>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format: u32,
    config: Config,
    progress: Progress,
    state: Named,
    best: Option<Named>,
}

/// A file of arrays and the checksums of these.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    file: String,
    sha256: Vec<String>,
}

/// The checkpoints of one run in a directory of their own.
pub struct Checkpoints {
    store: Store,
    /// After which update the best weights on disk were.
    best: Option<u64>,
}

impl Checkpoints {
    /// Makes the directory if it is not there.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if it cannot be made.
    pub fn create(dir: PathBuf) -> Result<Self> {
        Ok(Self { store: Store::create(dir)?, best: None })
    }

    /// Saves where the trainer stands.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if a file cannot be written; the checkpoints before stay good.
    pub fn save(&mut self, trainer: &Trainer) -> Result<()> {
        let best = trainer.progress.best.map(|best| best.update);
        if let (Some(update), Some(weights)) = (best, &trainer.best)
            && self.best != best
        {
            self.store.save_best(update, &weights.arrays())?;
            self.best = best;
        }
        self.store.save(&trainer.config, &trainer.progress, &trainer.state())
    }

    /// Puts the trainer where the newest good checkpoint was saved, or leaves it at its start if there is
    /// none. Returns why newer checkpoints were refused.
    ///
    /// # Errors
    ///
    /// [`Error::OtherRun`] if a checkpoint belongs to other settings, [`Error::BadCheckpoint`] if there are
    /// checkpoints but none is good.
    pub fn resume(&mut self, trainer: &mut Trainer) -> Result<Vec<Error>> {
        let Some(loaded) = self.store.load(&trainer.config)? else { return Ok(Vec::new()) };
        let Loaded { progress, state, best, refused } = loaded;
        let sizes = |arrays: &[Vec<f32>]| arrays.iter().map(Vec::len).collect::<Vec<_>>();
        let expected = trainer.state().map(|(_, values)| values.len());
        let other_best = best.as_deref().is_some_and(|best| sizes(best) != expected[..2]);
        if sizes(&state) != expected || other_best {
            // The settings are the same, so the encoder's directory must hold another encoder now.
            return Err(Error::OtherRun { path: self.store.dir.clone() });
        }
        self.best = progress.best.map(|best| best.update);
        trainer.restore(progress, state, best);
        Ok(refused)
    }

    /// Removes all checkpoints and their directory.
    ///
    /// # Errors
    ///
    /// [`Error::File`] if they cannot be removed.
    pub fn remove(self) -> Result<()> {
        let dir = self.store.dir;
        // Renamed first: of a directory that is removed file by file, an interruption would leave a wreck.
        let doomed = dir.with_file_name(format!("{}checkpoints", file::TEMPORARY));
        std::fs::rename(&dir, &doomed)
            .and_then(|()| std::fs::remove_dir_all(&doomed))
            .map_err(|source| Error::File { path: dir, source })
    }
}

/// Where the checkpoints of one run are kept.
struct Store {
    dir: PathBuf,
    /// The best weights on disk, as the next manifest must name them.
    best: Option<Named>,
}

impl Store {
    /// # Errors
    ///
    /// [`Error::File`] if the directory cannot be made.
    fn create(dir: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(&dir)
            .map_err(|source| Error::File { path: dir.clone(), source })?;
        file::remove_leftovers(&dir)?;
        Ok(Self { dir, best: None })
    }

    /// Writes new best weights; the next [`Store::save`] makes them count.
    fn save_best(&mut self, update: u64, weights: &Arrays<'_>) -> Result<()> {
        self.best = Some(self.write_arrays(format!("best-{update:06}.safetensors"), weights)?);
        Ok(())
    }

    /// Writes a checkpoint and removes those before the previous one.
    fn save(&self, config: &Config, progress: &Progress, state: &Arrays<'_>) -> Result<()> {
        let stem = format!("{:06}", progress.update);
        let manifest = Manifest {
            format: FORMAT,
            config: config.clone(),
            progress: progress.clone(),
            state: self.write_arrays(format!("{stem}.safetensors"), state)?,
            best: self.best.clone(),
        };
        let json = serde_json::to_vec_pretty(&manifest).expect("a manifest has a JSON form");
        file::write_atomically(&self.dir.join(format!("{stem}.json")), &json)?;
        self.prune()
    }

    /// The newest checkpoint that passes every check; `None` if there is none at all.
    ///
    /// # Errors
    ///
    /// [`Error::OtherRun`] if the checkpoint belongs to other settings, and the first refusal if there are
    /// checkpoints but none is good.
    fn load(&mut self, config: &Config) -> Result<Option<Loaded>> {
        let mut refused = Vec::new();
        for path in self.manifests()?.into_iter().rev() {
            match self.read(&path, config) {
                Ok((mut loaded, best)) => {
                    self.best = best;
                    loaded.refused = refused;
                    return Ok(Some(loaded));
                }
                Err(error @ Error::OtherRun { .. }) => return Err(error),
                Err(error) => refused.push(error),
            }
        }
        refused.into_iter().next().map_or(Ok(None), Err)
    }

    fn read(&self, path: &Path, config: &Config) -> Result<(Loaded, Option<Named>)> {
        let bytes = file::read(path)?;
        let damaged = |source: Box<dyn std::error::Error + Send + Sync>| Error::BadCheckpoint {
            path: path.to_owned(),
            source,
        };
        let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|e| damaged(e.into()))?;
        if manifest.format != FORMAT {
            return Err(damaged(format!("it has format {}, not {FORMAT}", manifest.format).into()));
        }
        // The budget changes the speed of a run, never its result.
        if (Config { memory_mib: config.memory_mib, ..manifest.config }) != *config {
            return Err(Error::OtherRun { path: path.to_owned() });
        }
        let state = self.read_arrays(&manifest.state)?;
        let best = manifest.best.as_ref().map(|best| self.read_arrays(best)).transpose()?;
        let loaded = Loaded { progress: manifest.progress, state, best, refused: Vec::new() };
        Ok((loaded, manifest.best))
    }

    /// Writes a safetensors file straight from the arrays: they are the bulk of all memory, so no copy is made.
    fn write_arrays(&self, file: String, arrays: &Arrays<'_>) -> Result<Named> {
        let mut header = serde_json::Map::new();
        let mut sha256 = Vec::new();
        let mut end = 0;
        for (at, (name, values)) in arrays.iter().enumerate() {
            let start = end;
            end += size_of_val(*values);
            let entry = serde_json::json!({
                "dtype": "F32", "shape": [values.len()], "data_offsets": [start, end]
            });
            header.insert(format!("{at}.{name}"), entry); // Its number keeps an array's place.
            sha256.push(file::sha256(bytemuck::cast_slice(values)));
        }
        let mut header = serde_json::Value::Object(header).to_string();
        while !header.len().is_multiple_of(8) {
            header.push(' '); // The format aligns its numbers so.
        }
        file::write_atomically_with(&self.dir.join(&file), |out| {
            let mut write = |bytes: &[u8]| out.write_all(bytes).map_err(Error::Write);
            write(&(header.len() as u64).to_le_bytes())?;
            write(header.as_bytes())?;
            arrays.iter().try_for_each(|(_, values)| write(bytemuck::cast_slice(values)))
        })?;
        Ok(Named { file, sha256 })
    }

    fn read_arrays(&self, named: &Named) -> Result<Vec<Vec<f32>>> {
        let path = self.dir.join(&named.file);
        let bytes = file::read(&path)?;
        let damaged = |source| Error::BadCheckpoint { path: path.clone(), source };
        let tensors = SafeTensors::deserialize(&bytes).map_err(|error| damaged(error.into()))?;
        let mut names = tensors.names();
        names.sort_unstable();
        let mut sha256 = Vec::new();
        let mut arrays = Vec::with_capacity(names.len());
        for name in names {
            let tensor = tensors.tensor(name).map_err(|error| damaged(error.into()))?;
            sha256.push(file::sha256(tensor.data()));
            let (numbers, _) = tensor.data().as_chunks();
            arrays.push(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect());
        }
        if sha256 != named.sha256 {
            return Err(damaged("its checksum is wrong".into()));
        }
        Ok(arrays)
    }

    /// The manifests from oldest to newest.
    fn manifests(&self) -> Result<Vec<PathBuf>> {
        let mut paths = self.files()?;
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        Ok(paths)
    }

    fn files(&self) -> Result<Vec<PathBuf>> {
        let entries = std::fs::read_dir(&self.dir).and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<_>>()
        });
        entries.map_err(|source| Error::File { path: self.dir.clone(), source })
    }

    /// Removes every file that neither of the newest checkpoints names.
    fn prune(&self) -> Result<()> {
        let mut wanted = BTreeSet::new();
        for path in self.manifests()?.into_iter().rev().take(KEPT) {
            if let Ok(manifest) = serde_json::from_slice::<Manifest>(&file::read(&path)?) {
                wanted.insert(self.dir.join(manifest.state.file));
                wanted.extend(manifest.best.map(|best| self.dir.join(best.file)));
            }
            wanted.insert(path);
        }
        for path in self.files()?.into_iter().filter(|path| !wanted.contains(path)) {
            std::fs::remove_file(&path).map_err(|source| Error::File { path, source })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config::parse("encoder = 'e'\ndata.train = ['t']", &[]).unwrap()
    }

    fn progress(update: u64) -> Progress {
        let best = Some(Best { update, f1: 100.0 / 3.0 });
        Progress { update, best, evaluations_since_best: 1, skipped_queries: 2 }
    }

    /// A store with checkpoints after updates 1, 2 and 3, whose numbers are the update.
    fn filled(dir: &Path) -> Store {
        let mut store = Store::create(dir.to_owned()).unwrap();
        for update in 1..=3 {
            let numbers = [update as f32, -0.0, f32::MIN_POSITIVE];
            if update < 3 {
                store.save_best(update, &[("weights", &numbers)]).unwrap();
            }
            store.save(&config(), &progress(update), &[("b", &numbers), ("a", &[1.0])]).unwrap();
        }
        store
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_checkpoint_comes_back_bit_for_bit() {
        let dir = tempfile::tempdir().unwrap();
        let loaded = filled(dir.path()).load(&config()).unwrap().unwrap();
        assert_eq!(loaded.progress, progress(3));
        assert_eq!(loaded.state, [vec![3.0, -0.0, f32::MIN_POSITIVE], vec![1.0]]);
        assert!(loaded.state[0][1].is_sign_negative());
        assert_eq!(loaded.best.unwrap()[0][0].to_bits(), 2f32.to_bits());
        assert!(loaded.refused.is_empty());
    }

    #[test]
    fn only_the_two_newest_checkpoints_and_their_best_weights_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        filled(dir.path());
        assert_eq!(
            names(dir.path()),
            [
                "000002.json",
                "000002.safetensors",
                "000003.json",
                "000003.safetensors",
                "best-000002.safetensors"
            ]
        );
    }

    #[test]
    fn a_damaged_checkpoint_falls_back_to_the_one_before() {
        type Damage = fn(&Path);
        let damages: [Damage; 4] = [
            |dir| std::fs::write(dir.join("000003.json"), "{").unwrap(),
            |dir| std::fs::remove_file(dir.join("000003.safetensors")).unwrap(),
            |dir| std::fs::write(dir.join("000003.safetensors"), [0; 20]).unwrap(),
            |dir| {
                let path = dir.join("000003.safetensors");
                let mut bytes = std::fs::read(&path).unwrap();
                *bytes.last_mut().unwrap() ^= 1;
                std::fs::write(&path, bytes).unwrap();
            },
        ];
        for damage in damages {
            let dir = tempfile::tempdir().unwrap();
            let mut store = filled(dir.path());
            damage(dir.path());
            let loaded = store.load(&config()).unwrap().unwrap();
            assert_eq!((loaded.progress.update, loaded.refused.len()), (2, 1));
            assert!(loaded.refused[0].to_string().contains("000003"), "{}", loaded.refused[0]);
        }
    }

    #[test]
    fn without_a_good_checkpoint_the_newest_refusal_is_the_error() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = filled(dir.path());
        for name in ["000002.json", "000003.json"] {
            std::fs::write(dir.path().join(name), "").unwrap();
        }
        let error = store.load(&config()).err().unwrap();
        assert!(error.to_string().contains("000003.json"), "{error}");
    }

    #[test]
    fn a_checkpoint_of_other_settings_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = filled(dir.path());
        let other = Config { seed: 1, ..config() };
        assert!(matches!(store.load(&other), Err(Error::OtherRun { .. })));
        let smaller = Config { memory_mib: 1, ..config() };
        assert!(store.load(&smaller).unwrap().is_some(), "the budget does not change results");
    }

    #[test]
    fn an_empty_directory_holds_no_checkpoint() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Store::create(dir.path().to_owned()).unwrap().load(&config()).unwrap().is_none());
    }
}
