//! What can go wrong because of what a user gave us. A message names the place; the cause is in `source()`.

use std::path::PathBuf;

use crate::data::{DataError, Format};
use crate::encoder::Storage;
use crate::plural::Counted;
use crate::tag::Slot;

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
    /// The output did not take what was written to it.
    #[error("cannot write the output")]
    Write(#[source] std::io::Error),
    /// A data file holds something that cannot be read.
    #[error(transparent)]
    Data(Box<DataError>),
    /// Something that the wanted data format has no way to express.
    #[error("{format} cannot express {what}")]
    Unwritable { format: Format, what: String },
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
    /// A label given by its name alone, to a model that reads examples only.
    #[error("label `{slot}` has no example, and this model reads no label names")]
    NamesUnread { slot: Slot },
    /// A label with neither an example nor a name.
    #[error("label `{slot}` has neither an example nor a name that says something")]
    MuteLabel { slot: Slot },
    /// A support set that labels nothing: there is nothing to learn from.
    #[error("the support set labels no slot")]
    EmptySupport,
    /// A domain in which no slot occurs often enough to be sampled.
    #[error(
        "domain `{domain}` has no slot to sample: none occurs in {} or more",
        Counted(*.min_sentences, "sentence")
    )]
    NothingToSample { domain: String, min_sentences: usize },
    /// Two files with a domain of the same name.
    #[error("`{path}` holds domain `{domain}` again: give the files different names")]
    DuplicateDomain { domain: String, path: PathBuf },
    /// A domain whose sentences do not suffice for one episode.
    #[error(
        "domain `{domain}` is too small: a support set of {} leaves {left}, but an episode should have {}",
        Counted(*.support, "sentence"),
        Counted(*.queries, "query")
    )]
    TooFewSentences { domain: String, support: usize, left: usize, queries: usize },
    /// A support set that legal BIO cannot begin to apply.
    #[error(
        "the support set has neither a `B-` tag nor a word outside all slots, so no legal tag fits a first word"
    )]
    NothingBegins,
    /// A sentence, or a pair of them, that the encoder cannot read at once.
    #[error(
        "{what} has {n_pieces} word pieces, the encoder reads at most {max}: shorten or split it"
    )]
    TooLong { what: String, n_pieces: usize, max: usize },
    /// A text beyond all sentences and paragraphs.
    #[error(
        "the text is longer than {max} bytes ({n_bytes}): give one sentence or paragraph at a time"
    )]
    TextTooLong { n_bytes: usize, max: usize },
    /// A tokenizer that belongs to another encoder.
    #[error(
        "the tokenizer knows {n_pieces} pieces, the encoder only {n_vectors}: they do not belong together"
    )]
    VocabularySize { n_pieces: usize, n_vectors: usize },
    /// An episode that a tagger cannot take.
    #[error("episode {at} (domain `{domain}`) cannot be tagged")]
    Episode { at: usize, domain: String, source: Box<Error> },
    /// A setting of a model that means nothing, or that another setting excludes.
    #[error("the model's setting `{setting}` {problem}")]
    Setting { setting: &'static str, problem: &'static str },
    /// A directory that holds an encoder where a model was asked for.
    #[error(
        "`{dir}` is an encoder, not a trained model: it has no `fewtag.json` (`fewtag train` makes a model of it)"
    )]
    EncoderOnly { dir: PathBuf },
    /// A `fewtag.json` that cannot be read.
    #[error("`{path}` describes no model")]
    ModelJson { path: PathBuf, source: serde_json::Error },
    /// A model written by another version of this crate.
    #[error("`{path}` has format {format}, this version reads format {known}")]
    ModelFormat { path: PathBuf, format: u32, known: u32 },
    /// Weights that are not those which a model was saved with.
    #[error(
        "`{path}` is damaged or belongs to another model: its checksum is not that of `fewtag.json`"
    )]
    WeightsChecksum { path: PathBuf },
    /// A file that should be a saved domain.
    #[error("`{path}` is no saved domain")]
    DomainFile { path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
    /// A saved domain of another version of this crate.
    #[error("`{path}` is a saved domain of format {format}, this version reads format {known}")]
    DomainFormat { path: PathBuf, format: u32, known: u32 },
    /// A saved domain with a model that it was not made for.
    #[error(
        "`{path}` was made for the model {wanted}…, this is {found}…: use that model, or learn its examples anew"
    )]
    OtherModel { path: PathBuf, wanted: String, found: String },
    /// A domain of a model that nobody else could have.
    #[error(
        "the model was not loaded from files, so a saved domain could not name it: save it first"
    )]
    UnsavedModel,
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
    /// An encoder directory without weights that we read.
    #[error("`{dir}` holds no `model.safetensors`")]
    NoWeights { dir: PathBuf },
    /// Weights in a format that can run code when it is read.
    #[error(
        "`{path}` is a pickle, which can run code when it is read; convert it where you trust it: \
         `AutoModel.from_pretrained(DIR).save_pretrained(DIR, safe_serialization=True)` in Python's `transformers`"
    )]
    PickledWeights { path: PathBuf },
    /// A list of weight files that cannot be read.
    #[error("`{path}` is no index of weight files")]
    WeightIndex { path: PathBuf, source: serde_json::Error },
    /// A list of weight files that leads elsewhere.
    #[error("`{path}` names `{file}`, which is no file beside it")]
    StrayShard { path: PathBuf, file: String },
    /// A weight file that is malformed.
    #[error("`{path}` is no intact safetensors file")]
    Safetensors { path: PathBuf, source: safetensors::SafeTensorError },
    /// A weight file that cannot hold what `config.json` announces.
    #[error(
        "`{path}` has {n_bytes} bytes in all, too few for the {n_values} parameters of config.json"
    )]
    TooFewWeights { path: PathBuf, n_bytes: u64, n_values: usize },
    /// A weight that `config.json` announces and no file has.
    #[error("`{path}` lacks tensor `{tensor}` of shape {shape:?}, which config.json asks for")]
    MissingTensor { path: PathBuf, tensor: String, shape: Vec<usize> },
    /// A weight that has no place in the encoder, or comes twice.
    #[error(
        "`{path}` has tensor `{tensor}` of shape {shape:?}, for which the encoder of config.json has no (further) place"
    )]
    UnknownTensor { path: PathBuf, tensor: String, shape: Vec<usize> },
    /// A weight of another shape than `config.json` announces.
    #[error("tensor `{tensor}` of `{path}` has shape {found:?}, config.json asks for {expected:?}")]
    TensorShape { path: PathBuf, tensor: String, expected: Vec<usize>, found: Vec<usize> },
    /// A weight of a type that we do not read.
    #[error("tensor `{tensor}` of `{path}` has type {found}, expected F32, F16, BF16 or our I8")]
    TensorType { path: PathBuf, tensor: String, found: String },
    /// A model to be saved whose engine keeps no weights.
    #[error(
        "this model's engine only tags and keeps no weights: save the model that it was made of"
    )]
    NothingToSave,
    /// Models whose weights mean different things.
    #[error(
        "only models of one kind can be averaged, and {what} of model {number} is not that of the first"
    )]
    NotAlike { what: String, number: usize },
    /// A weight that a file of the wanted storage cannot hold.
    #[error("tensor `{tensor}` holds a value that is not finite, or too large for {storage}")]
    Unstorable { tensor: String, storage: Storage },
    /// A weight that is not a number.
    #[error("tensor `{tensor}` of `{path}` holds a value that is not finite: the file is damaged")]
    NonFiniteWeight { path: PathBuf, tensor: String },
    /// A training configuration that is no TOML or has an unknown field.
    #[error("the training configuration cannot be read")]
    ConfigSyntax { source: Box<toml::de::Error> },
    /// A setting out of range.
    #[error("the setting `{field}` must be {wanted}")]
    Config { field: &'static str, wanted: &'static str },
    /// Episode files beside files of other formats.
    #[error("training takes either episode files or domains to draw episodes from, not both")]
    MixedSources,
    /// Episodes without a query to learn from.
    #[error("there is no query to learn from ({skipped} have a tag that their support lacks)")]
    NoQueries { skipped: usize },
    /// Too few labelled sentences to tune a model with.
    #[error("there is too little to tune with: {problem}")]
    TooLittle { problem: String },
    /// A model that cannot be tuned.
    #[error("this model cannot be tuned: {problem}")]
    Untunable { problem: &'static str },
    /// A checkpoint file that is damaged or of another version.
    #[error("the checkpoint file `{path}` is damaged")]
    BadCheckpoint { path: PathBuf, source: Box<dyn std::error::Error + Send + Sync> },
    /// A checkpoint that was written with other settings.
    #[error(
        "the checkpoint `{path}` belongs to a run with other settings; resume with those, or train into another directory"
    )]
    OtherRun { path: PathBuf },
    /// Training whose numbers left all bounds.
    #[error(
        "training diverged at update {update}: loss {loss}, gradient norm {gradient_norm}, λ {scale}; \
         try a lower `optimizer.encoder_rate` or a smaller initial λ"
    )]
    Diverged { update: u64, loss: f64, gradient_norm: f64, scale: f32 },
}

/// The message of an error with those of its causes.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let mut messages: Vec<String> = causes.map(ToString::to_string).collect();
    messages.dedup();
    messages.join(": ")
}
