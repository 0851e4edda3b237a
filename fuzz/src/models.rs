//! What a model, an encoder, word vectors and a training run are read from.

use std::collections::BTreeSet;
use std::path::Path;

use fewtag::DomainFile;
use fewtag::encoder::{BertConfig, Int8Bert, Precision, WordPieces, weights};
use fewtag::model::{self, ModelFiles};
use fewtag::train::config::Config;
use fewtag_experiments::baselines::glove::WordVectors;

use crate::Target;

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/tiny-encoder");

/// A file by what it holds.
pub fn target(name: &str) -> Option<Target> {
    let target: Target = match name {
        "tokenizer" => Box::new(tokenizer),
        "vocabulary" => Box::new(in_directory("vocab.txt", vocabulary)),
        "encoder_config" => Box::new(encoder_config),
        "safetensors" => Box::new(safetensors()),
        "fewtag_json" => Box::new(fewtag_json()),
        "domain_file" => Box::new(domain_file),
        "npy" => Box::new(in_directory("vectors.npy", vectors)),
        "glove" => Box::new(in_directory("vectors.txt", vectors)),
        "train_toml" => Box::new(train_toml),
        _ => return None,
    };
    Some(target)
}

/// Words of every kind that a tokenizer treats apart.
const WORDS: [&str; 8] =
    ["", "a", "Straße", "[SEP]", "東京", "e\u{301}", "\u{200d}\u{1f469}", "don't"];

fn tokenizer(bytes: &[u8]) {
    if let Ok(pieces) = WordPieces::from_json(bytes, Path::new("fuzz")) {
        let _ = pieces.split(WORDS);
    }
}

/// What is read is written so that it is read as the same.
fn domain_file(bytes: &[u8]) {
    if let Ok(domain) = DomainFile::from_bytes(bytes, Path::new("fuzz")) {
        let again = DomainFile::from_bytes(&domain.to_bytes(), Path::new("fuzz"));
        assert_eq!(again.expect("what was written is read"), domain);
    }
}

/// A target that finds its input in a file of this name, in a directory of its own.
fn in_directory(name: &'static str, read: fn(&Path)) -> impl Fn(&[u8]) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    std::fs::write(dir.path().join("words.txt"), "the\nof\nto\n").expect("a writable directory");
    move |bytes| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).expect("a writable directory");
        read(&path);
    }
}

fn vocabulary(path: &Path) {
    let dir = path.parent().expect("a file lies in a directory");
    if let Ok(pieces) = WordPieces::load(dir) {
        let _ = pieces.split(WORDS);
    }
}

fn vectors(path: &Path) {
    let words = BTreeSet::from(["the".to_owned(), "Of".to_owned(), "none".to_owned()]);
    if let Ok(vectors) = WordVectors::read(path, &words, 0) {
        assert_eq!(vectors.vector("the").len(), vectors.width());
    }
}

fn encoder_config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(config) = BertConfig::from_json(text) {
        // No file is as small as this: whatever the shape, it is refused before memory is taken for it.
        assert!(weights::from_bytes(&config, &[0; 8], Path::new("fuzz")).is_err());
    }
}

/// The shape of `corpus/safetensors`: the smallest encoder there can be.
const SMALLEST: &str = r#"{"hidden_size": 1, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 1,
    "vocab_size": 1, "max_position_embeddings": 1, "type_vocab_size": 1}"#;

fn safetensors() -> impl Fn(&[u8]) {
    let config = BertConfig::from_json(SMALLEST).expect("a valid shape");
    move |bytes| {
        let _ = weights::from_bytes(&config, bytes, Path::new("fuzz"));
        let _ = Int8Bert::from_bytes(&config, bytes, Path::new("fuzz"));
    }
}

fn fewtag_json() -> impl Fn(&[u8]) {
    let read =
        |name: &str| std::fs::read(Path::new(TINY).join(name)).expect("a file of the repository");
    let [config, tokenizer, weights] =
        ["config.json", "tokenizer.json", "model.safetensors"].map(read);
    move |bytes| {
        let files =
            ModelFiles { fewtag: bytes, config: &config, tokenizer: &tokenizer, weights: &weights };
        let _ = model::from_files(&files, Path::new("fuzz"), Precision::F32);
    }
}

fn train_toml(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(config) = Config::parse(text, &[("seed", "1"), ("optimizer.batch", "2")]) else {
        return;
    };
    let again = Config::parse(&config.to_toml(), &[]).expect("what was written is read");
    // Not `==`: a number that is none is not itself.
    assert_eq!(again.to_toml(), config.to_toml());
    let _ = config.check();
}
