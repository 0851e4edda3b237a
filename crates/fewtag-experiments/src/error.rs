//! What can go wrong in an experiment beyond what can go wrong in the library.

use std::path::PathBuf;

use fewtag::plural::Counted;

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of this crate. The message names the place; the cause is in `source()`.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each field is explained by its message")]
#[non_exhaustive]
pub enum Error {
    /// Whatever the library refuses, in its own words.
    #[error(transparent)]
    Library(#[from] fewtag::Error),
    /// A file that should hold word vectors and does not.
    #[error("no word vectors in `{path}`: {reason}")]
    WordVectors { path: PathBuf, reason: String },
    /// An experiment without a test, a dev and a source domain.
    #[error(
        "`{dir}` has {}; an experiment needs at least 3: test, dev and source",
        Counted(*.n_domains, "domain")
    )]
    TooFewDomains { dir: PathBuf, n_domains: usize },
    /// A system over GloVe vectors without any.
    #[error("WPZ+GloVe needs a file of GloVe vectors")]
    NoGlove,
    /// A finished cell of an experiment that cannot be read again.
    #[error("`{path}` is damaged: delete it, and its cell will be run again")]
    CachedCell { path: PathBuf, source: serde_json::Error },
    /// A file of finished cells with a line that is none.
    #[error("`{path}`, line {line}: no finished cell; delete the line")]
    Cells { path: PathBuf, line: usize, source: serde_json::Error },
}

impl Error {
    /// `path` could not be read or written.
    pub(crate) fn file(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Library(fewtag::Error::File { path: path.into(), source })
    }
}
