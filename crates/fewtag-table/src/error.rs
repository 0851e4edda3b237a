//! What can go wrong with a file that is tagged.

use std::path::{Path, PathBuf};

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// An error of this crate. The message names the place; the cause is in `source()`.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each field is explained by its message")]
#[non_exhaustive]
pub enum Error {
    /// An error of the library.
    #[error(transparent)]
    Fewtag(#[from] fewtag::Error),
    /// A file could not be read or written.
    #[error("cannot access `{path}`")]
    File { path: PathBuf, source: std::io::Error },
    /// No Parquet, or a kind of it that is not read.
    #[error("`{path}` cannot be read or written as Parquet")]
    Parquet { path: PathBuf, source: parquet::errors::ParquetError },
    /// A table that Arrow does not take.
    #[error("the table cannot be tagged")]
    Arrow(#[from] arrow_schema::ArrowError),
    /// A name that does not say what the file is.
    #[error("`{path}` ends in none of .parquet, .jsonl, .jsonl.gz, .jsonl.zst")]
    Kind { path: PathBuf },
    /// One kind of file in, another out.
    #[error(
        "Parquet becomes Parquet and JSON lines become JSON lines: give `{output}` the ending of `{input}`"
    )]
    OtherKind { input: PathBuf, output: PathBuf },
    /// A column that the file does not have.
    #[error("`{path}` has no column `{column}` ({there}): name the one that holds the texts")]
    NoColumn { path: PathBuf, column: String, there: String },
    /// A column that would stand twice.
    #[error("`{path}` has a column `{column}` already: rename it first")]
    TakenColumn { path: PathBuf, column: &'static str },
    /// What an unfinished run left behind.
    #[error(
        "`{path}` was left by a run with another input, domain or column: remove it, or start anew with --force"
    )]
    OtherRun { path: PathBuf },
    /// A line that no memory should hold.
    #[error("line {line} of `{path}` is longer than {max} bytes")]
    LongLine { path: PathBuf, line: usize, max: u64 },
}

impl Error {
    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::File { path: path.to_owned(), source }
    }

    pub(crate) fn parquet(path: &Path) -> impl FnOnce(parquet::errors::ParquetError) -> Self {
        move |source| Self::Parquet { path: path.to_owned(), source }
    }
}
