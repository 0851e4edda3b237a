//! A file of any size is tagged part by part; a run that was killed goes on where it was.
//!
//! ```text
//! corpus.parquet ─ rows k·N … (k+1)·N ─▶ tagged.parquet.partial/00000k ─ all there ─▶ tagged.parquet
//! ```
//!
//! A part is written as a whole or not at all, so what is there is done. `plan.json` beside the parts says which input, domain and
//! column they belong to; parts of another run are refused, not mixed in. Memory does not grow with the file.

mod jsonl;
mod parquet;

use std::fs;
use std::path::{Path, PathBuf};

use ::parquet::basic::ZstdLevel;
use fewtag::answer::Thresholds;
use fewtag::{Adapted, file};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// How many rows are tagged together: a batch between two reports of progress.
const BATCH: usize = 256;

/// What is to be done.
pub struct Job<'a> {
    /// What is tagged with.
    pub adapted: &'a Adapted,
    /// How probable spans must be.
    pub thresholds: &'a Thresholds,
    /// What tells this domain and these thresholds from others.
    pub identity: String,
    /// The file to tag.
    pub input: &'a Path,
    /// The file to write.
    pub output: &'a Path,
    /// The column, or the field of each line, that holds the texts.
    pub column: &'a str,
    /// How many rows a part has; in Parquet it is a row group.
    pub rows: usize,
    /// Whether parts of another run are thrown away instead of refused.
    pub start_anew: bool,
}

/// How far a run has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Rows that are done.
    pub rows: usize,
    /// Of them, rows that an earlier run had done.
    pub kept: usize,
    /// Of them, rows that could not be tagged.
    pub failed: usize,
    /// How much of the input is read, and how much there is: rows of Parquet, bytes of JSON lines.
    pub read: (u64, u64),
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Parquet,
    Lines(jsonl::Packing),
}

impl Kind {
    fn of(path: &Path) -> Result<Self> {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        let ends = |end: &str| name.ends_with(end);
        let lines = |end: &str| ends(&format!(".jsonl{end}")) || ends(&format!(".ndjson{end}"));
        match () {
            () if ends(".parquet") || ends(".pq") => Ok(Self::Parquet),
            () if lines("") => Ok(Self::Lines(jsonl::Packing::Plain)),
            () if lines(".gz") => Ok(Self::Lines(jsonl::Packing::Gzip)),
            () if lines(".zst") => Ok(Self::Lines(jsonl::Packing::Zstd)),
            () => Err(Error::Kind { path: path.to_owned() }),
        }
    }
}

/// Tags a file; `progress` is told after every batch.
///
/// # Errors
///
/// [`Error`]; what was done by then is kept for the next run.
pub fn tag_file(job: &Job, progress: &mut dyn FnMut(Progress)) -> Result<Progress> {
    let parts = Parts::open(job)?;
    let done = match (Kind::of(job.input)?, Kind::of(job.output)?) {
        (Kind::Parquet, Kind::Parquet) => parquet::tag(job, &parts, progress),
        (Kind::Lines(from), Kind::Lines(to)) => jsonl::tag(job, (from, to), &parts, progress),
        _ => Err(Error::OtherKind { input: job.input.into(), output: job.output.into() }),
    }?;
    parts.remove()?;
    Ok(done)
}

/// Checks that a run of these files would make sense, before anything is loaded.
///
/// # Errors
///
/// [`Error::Kind`], [`Error::OtherKind`].
pub fn check_names(input: &Path, output: &Path) -> Result<()> {
    match (Kind::of(input)?, Kind::of(output)?) {
        (Kind::Parquet, Kind::Parquet) | (Kind::Lines(_), Kind::Lines(_)) => Ok(()),
        _ => Err(Error::OtherKind { input: input.into(), output: output.into() }),
    }
}

/// Which run the parts belong to.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Plan {
    format: u32,
    input_bytes: u64,
    input_modified: Option<u128>,
    column: String,
    rows: usize,
    domain: String,
    output: String,
}

impl Plan {
    fn new(job: &Job) -> Result<Self> {
        let found = fs::metadata(job.input).map_err(Error::file(job.input))?;
        let since = |at: std::time::SystemTime| at.duration_since(std::time::UNIX_EPOCH).ok();
        let modified = found.modified().ok().and_then(since);
        Ok(Self {
            format: 1,
            input_bytes: found.len(),
            input_modified: modified.map(|time| time.as_nanos()),
            column: job.column.to_owned(),
            rows: job.rows,
            domain: job.identity.clone(),
            output: format!("{:?}", Kind::of(job.output)?),
        })
    }
}

/// The finished parts of a run.
struct Parts {
    dir: PathBuf,
}

impl Parts {
    /// Those of this run, perhaps none.
    fn open(job: &Job) -> Result<Self> {
        let plan = Plan::new(job)?;
        let mut dir = job.output.as_os_str().to_owned();
        dir.push(".partial");
        let parts = Self { dir: dir.into() };
        let path = parts.dir.join("plan.json");
        let same = |bytes: &[u8]| serde_json::from_slice(bytes).is_ok_and(|old: Plan| old == plan);
        match fs::read(&path) {
            Ok(bytes) if same(&bytes) => {
                file::remove_leftovers(&parts.dir)?;
                return Ok(parts);
            }
            Ok(_) if !job.start_anew => return Err(Error::OtherRun { path: parts.dir }),
            _ => {}
        }
        if job.start_anew && parts.dir.is_dir() {
            parts.remove()?;
        }
        fs::create_dir_all(&parts.dir).map_err(Error::file(&parts.dir))?;
        let json = serde_json::to_vec_pretty(&plan).expect("a plan is JSON");
        file::write_atomically(&path, &json)?;
        Ok(parts)
    }

    fn path(&self, part: usize) -> PathBuf {
        self.dir.join(format!("{part:06}"))
    }

    fn is_done(&self, part: usize) -> bool {
        self.path(part).is_file()
    }

    fn remove(&self) -> Result<()> {
        fs::remove_dir_all(&self.dir).map_err(Error::file(&self.dir))
    }
}

/// Writes a file as a whole or not at all, by what may fail in more ways than files do.
fn write_whole(path: &Path, fill: impl FnOnce(&mut fs::File) -> Result<()>) -> Result<()> {
    let mut failed = None;
    let written = file::write_atomically_with(path, |file| {
        fill(file).map_err(|error| {
            failed = Some(error);
            fewtag::Error::Write(std::io::Error::other("told below"))
        })
    });
    written.map_err(|error| failed.unwrap_or(error.into()))
}

/// Strong enough to be worth it, fast enough not to be felt.
fn zstd_level() -> ZstdLevel {
    ZstdLevel::try_new(3).expect("a level of zstd")
}

#[cfg(test)]
mod tests;
