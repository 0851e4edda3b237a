//! What can go wrong because of what a user gave us. A message names the place; the cause is in `source()`.

use std::path::PathBuf;

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of this crate. The message names the place; the cause is in `source()`.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each field is explained by its message")]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    #[error("cannot access `{path}`")]
    File { path: PathBuf, source: std::io::Error },
    /// A slot name that no format could carry.
    #[error("`{slot}` is no slot name: it must not be empty or contain blanks")]
    BadSlot { slot: String },
    /// A tag that is neither `O` nor `B-slot` nor `I-slot`.
    #[error("`{tag}` is no BIO tag (expected `O`, `B-slot` or `I-slot`)")]
    BadTag { tag: String },
    /// A sentence without words.
    #[error("a sentence has no words")]
    EmptySentence,
    /// A word without characters.
    #[error("word {at} of a sentence is empty")]
    EmptyWord { at: usize },
    /// A support set that labels nothing: there is nothing to learn from.
    #[error("the support set labels no slot")]
    EmptySupport,
    /// A domain in which no slot occurs often enough to be sampled.
    #[error(
        "domain `{domain}` has no slot to sample: none occurs in {min_sentences} sentences or more"
    )]
    NothingToSample { domain: String, min_sentences: usize },
    /// A domain whose sentences do not suffice for one episode.
    #[error(
        "domain `{domain}` is too small: a support set of {support} sentences leaves {left}, \
         but an episode should have {queries} queries"
    )]
    TooFewSentences { domain: String, support: usize, left: usize, queries: usize },
    /// An encoder directory without a tokenizer.
    #[error("`{dir}` holds neither `tokenizer.json` nor `vocab.txt`")]
    NoTokenizer { dir: PathBuf },
    /// A tokenizer file that is malformed, or a rule in it that failed.
    #[error("the tokenizer `{path}` does not work")]
    BadTokenizer { path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
    /// A tokenizer without a piece that every BERT needs.
    #[error("the vocabulary of `{path}` lacks `{piece}`: it is not that of a BERT encoder")]
    MissingPiece { path: PathBuf, piece: &'static str },
    /// A `config.json` that cannot be read.
    #[error("the encoder's config.json is not understood")]
    EncoderConfigJson { source: serde_json::Error },
    /// A `config.json` whose values make no encoder that we can run.
    #[error("the encoder's config.json: `{field}`: {problem}")]
    EncoderConfig { field: &'static str, problem: String },
    /// A batch without sequences.
    #[error("there is nothing to encode: the batch has no sequence")]
    EmptyBatch,
    /// A sequence that the position table does not reach.
    #[error(
        "sequence {sequence} of a batch has {n_pieces} pieces, the encoder reads at most {max}: shorten or split it"
    )]
    TooManyPieces { sequence: usize, n_pieces: usize, max: usize },
    /// A piece or segment that the encoder has no embedding for.
    #[error(
        "sequence {sequence} of a batch has {what} {index}, the encoder knows {n}: does the vocabulary belong to it?"
    )]
    PieceOutOfRange { sequence: usize, what: &'static str, index: usize, n: usize },
    /// A weight that is not a number.
    #[error("tensor `{tensor}` holds a value that is not finite: the file is damaged")]
    NonFiniteWeight { tensor: String },
}
