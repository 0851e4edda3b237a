//! Words to word pieces, with the encoder's own tokenizer, word by word.
//!
//! ```text
//! words   tokyo      restaurants        2030
//! pieces  tokyo      rest ##aurants     203 ##0
//! first   0          1                  3          (piece index of each word)
//! ```
//!
//! Each word goes through the encoder's full pipeline (BERT uncased: clean, strip accents, lower, split
//! punctuation, WordPiece) on its own. A word is later read at its **first** piece, so a word that yields
//! no piece (a lone control character) becomes `[UNK]`: every word has at least one piece.
//!
//! Text is text: a word `[SEP]` is split like any other and never becomes the separator. Truncation and
//! padding that a `tokenizer.json` may prescribe are switched off.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use serde::Deserialize;
use serde_json::Value;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::{Model, Tokenizer};

use super::batch::Piece;
use super::shape::Shape;
use crate::error::{Error, Result};

/// The pieces of one sentence, without `[CLS]` and `[SEP]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces {
    /// Vocabulary indices, `[n_pieces]`.
    pub ids: Vec<u32>,
    /// How the word of each piece is written: a [`Shape`], or all 0 for an encoder that does not see it. `[n_pieces]`
    pub shapes: Vec<u8>,
    /// Where in `ids` each word begins, `[n_words]`, strictly ascending from 0.
    pub first: Vec<usize>,
}

impl Pieces {
    /// The pieces as parts of the first (0) or second (1) segment of a sequence.
    pub(crate) fn of_segment(&self, segment: u8) -> impl Iterator<Item = Piece> {
        let piece = move |(id, shape): (&u32, &u8)| Piece { id: *id, segment: segment + 2 * shape };
        self.ids.iter().zip(&self.shapes).map(piece)
    }
}

/// An encoder's tokenizer.
#[derive(Debug, Clone)]
pub struct WordPieces {
    tokenizer: Tokenizer,
    path: PathBuf,
    cls: u32,
    sep: u32,
    unk: u32,
    /// Whether the shapes of words are told.
    has_shapes: bool,
    /// The pieces of words that were split before: a text has few different words, and splitting takes a while.
    known: Arc<RwLock<Known>>,
}

/// Words and their pieces.
type Known = HashMap<Box<str>, Box<[u32]>>;

/// How many words are remembered, and how long they may be in bytes: at most about 10 MB.
const KNOWN: usize = 1 << 16;
const LONGEST_KNOWN: usize = 48;

impl WordPieces {
    /// Reads `tokenizer.json`, or else `vocab.txt` (with the switches of `tokenizer_config.json`, if there is one).
    ///
    /// # Errors
    ///
    /// If `dir` has neither file, if one is malformed, or if it lacks `[CLS]`, `[SEP]` or `[UNK]`.
    pub fn load(dir: &Path) -> Result<Self> {
        let path = dir.join("tokenizer.json");
        if path.is_file() {
            return Self::from_json(&read(&path)?, &path);
        }
        let path = dir.join("vocab.txt");
        if !path.is_file() {
            return Err(Error::NoTokenizer { dir: dir.to_owned() });
        }
        let config_path = dir.join("tokenizer_config.json");
        let switches = if config_path.is_file() {
            serde_json::from_slice(&read(&config_path)?).map_err(|source| Error::BadTokenizer {
                path: config_path,
                source: source.into(),
            })?
        } else {
            BertSwitches::default()
        };
        Self::from_vocabulary(&read(&path)?, switches, path)
    }

    /// The tokenizer in the bytes of a `tokenizer.json`; `path` is its name in messages.
    ///
    /// # Errors
    ///
    /// If `json` is no tokenizer or lacks `[CLS]`, `[SEP]` or `[UNK]`.
    pub fn from_json(json: &[u8], path: &Path) -> Result<Self> {
        let fail = |source| Error::BadTokenizer { path: path.to_owned(), source };
        Parts::check(json).map_err(fail)?;
        Self::new(Tokenizer::from_bytes(json).map_err(fail)?, path.to_owned())
    }

    fn from_vocabulary(lines: &[u8], switches: BertSwitches, path: PathBuf) -> Result<Self> {
        let model =
            WordPiece::read_bytes(lines).and_then(|ids| WordPiece::builder().vocab(ids).build());
        let model = match model {
            Ok(model) => model,
            Err(source) => return Err(Error::BadTokenizer { path, source }),
        };
        let mut tokenizer = Tokenizer::new(model);
        tokenizer.with_normalizer(Some(BertNormalizer::new(
            true,
            switches.tokenize_chinese_chars,
            switches.strip_accents,
            switches.do_lower_case,
        )));
        tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
        Self::new(tokenizer, path)
    }

    fn new(mut tokenizer: Tokenizer, path: PathBuf) -> Result<Self> {
        tokenizer.with_padding(None);
        if let Err(source) = tokenizer.with_truncation(None) {
            return Err(Error::BadTokenizer { path, source });
        }
        tokenizer.set_encode_special_tokens(true);
        let id_of = |piece: &'static str| {
            let missing = || Error::MissingPiece { path: path.clone(), piece };
            tokenizer.token_to_id(piece).ok_or_else(missing)
        };
        let (cls, sep, unk) = (id_of("[CLS]")?, id_of("[SEP]")?, id_of("[UNK]")?);
        let known = Arc::default();
        Ok(Self { tokenizer, path, cls, sep, unk, has_shapes: false, known })
    }

    /// The same tokenizer, which tells or hides how words are written.
    #[must_use]
    pub(crate) fn with_shapes(self, has_shapes: bool) -> Self {
        Self { has_shapes, ..self }
    }

    /// The pieces of a sentence's words.
    ///
    /// # Errors
    ///
    /// [`Error::BadTokenizer`] if a rule of the tokenizer's own file fails on a word.
    pub fn split<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Result<Pieces> {
        let mut pieces = Pieces { ids: Vec::new(), shapes: Vec::new(), first: Vec::new() };
        let mut new = Vec::new();
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        for word in words {
            pieces.first.push(pieces.ids.len());
            if let Some(ids) = known.get(word) {
                pieces.ids.extend(ids);
            } else {
                let ids = self.split_word(word)?;
                pieces.ids.extend(&ids);
                new.push((word, ids));
            }
            let shape = if self.has_shapes { Shape::of(word) as u8 } else { 0 };
            pieces.shapes.resize(pieces.ids.len(), shape);
        }
        drop(known);
        self.remember(new);
        Ok(pieces)
    }

    /// The pieces of one word, at least one.
    fn split_word(&self, word: &str) -> Result<Vec<u32>> {
        match self.tokenizer.encode_fast(word, false) {
            Ok(encoding) if encoding.is_empty() => Ok(vec![self.unk]),
            Ok(encoding) => Ok(encoding.get_ids().to_vec()),
            Err(source) => Err(Error::BadTokenizer { path: self.path.clone(), source }),
        }
    }

    fn remember(&self, mut words: Vec<(&str, Vec<u32>)>) {
        words.retain(|(word, _)| word.len() <= LONGEST_KNOWN);
        if words.is_empty() {
            return;
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        for (word, ids) in words {
            if known.len() == KNOWN {
                return;
            }
            known.insert(word.into(), ids.into());
        }
    }

    /// The index of `[CLS]`, which opens every sequence.
    #[must_use]
    pub fn cls(&self) -> u32 {
        self.cls
    }

    /// The index of `[SEP]`, which closes every sentence.
    #[must_use]
    pub fn sep(&self) -> u32 {
        self.sep
    }

    /// One more than the largest index that [`WordPieces::split`] can give.
    #[must_use]
    pub fn n_pieces(&self) -> usize {
        let model = self.tokenizer.get_model().get_vocab();
        model.into_values().max().map_or(0, |id| id as usize + 1)
    }

    /// The whole tokenizer as the text of a `tokenizer.json`, to be kept beside a model.
    ///
    /// # Errors
    ///
    /// [`Error::BadTokenizer`] if the tokenizer has a part that cannot be written.
    pub(crate) fn to_json(&self) -> Result<String> {
        self.tokenizer
            .to_string(false)
            .map_err(|source| Error::BadTokenizer { path: self.path.clone(), source })
    }
}

/// The parts of a `tokenizer.json` on which its reader panics if they are damaged: they are read once more, before.
#[derive(Deserialize)]
struct Parts {
    #[serde(default)]
    normalizer: Value,
    #[serde(default, rename = "decoder")]
    _decoder: Value,
}

impl Parts {
    fn check(json: &[u8]) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let Self { normalizer, .. } = serde_json::from_slice(json)?;
        if has_precompiled(&normalizer) {
            return Err("a precompiled normalizer is not that of a BERT encoder".into());
        }
        Ok(())
    }
}

fn has_precompiled(normalizer: &Value) -> bool {
    match normalizer {
        Value::Object(fields) => {
            fields.get("type").is_some_and(|kind| kind == "Precompiled")
                || fields.contains_key("precompiled_charsmap")
                || fields.values().any(has_precompiled)
        }
        Value::Array(all) => all.iter().any(has_precompiled),
        _ => false,
    }
}

/// What `tokenizer_config.json` says about splitting; the defaults are those of BERT uncased.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default)]
struct BertSwitches {
    do_lower_case: bool,
    tokenize_chinese_chars: bool,
    /// `None`: as `do_lower_case`.
    strip_accents: Option<bool>,
}

impl Default for BertSwitches {
    fn default() -> Self {
        Self { do_lower_case: true, tokenize_chinese_chars: true, strip_accents: None }
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOCABULARY: &str =
        "[PAD]\n[UNK]\n[CLS]\n[SEP]\nrest\n##aurant\n##s\ncafe\n[\n]\nsep\n東\n京\nRest\né\ne\n";

    fn dir_with(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    fn plain(ids: &[u32], first: &[usize]) -> Pieces {
        Pieces { ids: ids.to_vec(), shapes: vec![0; ids.len()], first: first.to_vec() }
    }

    #[test]
    fn a_word_that_is_known_is_split_as_it_was() {
        let long = "restaurants".repeat(9);
        let words = ["Tokyo", "restaurants", "\u{1}", long.as_str(), "Tokyo"];
        let word_pieces = uncased();
        let first = word_pieces.split(words).unwrap();
        let known = |word: &str| word_pieces.known.read().unwrap().contains_key(word);
        assert_eq!([words[0], words[2], words[3]].map(known), [true, true, false]);
        assert_eq!(word_pieces.split(words).unwrap(), first);
        // A copy shares what is known and may tell shapes.
        let shaped = word_pieces.clone().with_shapes(true).split(["Tokyo", "tokyo"]).unwrap();
        assert_eq!(shaped.shapes.first(), Some(&1));
        assert_eq!(uncased().split(words).unwrap(), first);
    }

    #[test]
    fn a_piece_has_the_shape_of_its_word_if_shapes_are_told() {
        let words = ["Tokyo", "tokyo", "7"];
        assert_eq!(uncased().split(words).unwrap().shapes.iter().max(), Some(&0));
        let pieces = uncased().with_shapes(true).split(words).unwrap();
        let ends = pieces.first[1..].iter().copied().chain([pieces.ids.len()]);
        for ((start, end), shape) in pieces.first.iter().zip(ends).zip([1, 0, 3]) {
            assert!(pieces.shapes[*start..end].iter().all(|found| *found == shape));
        }
        let types: Vec<u8> = pieces.of_segment(1).map(|piece| piece.segment).collect();
        assert_eq!((types.first(), types.last()), (Some(&3), Some(&7)));
    }

    fn uncased() -> WordPieces {
        WordPieces::load(dir_with(&[("vocab.txt", VOCABULARY)]).path()).unwrap()
    }

    fn refusal(files: &[(&str, &str)]) -> String {
        WordPieces::load(dir_with(files).path()).unwrap_err().to_string()
    }

    fn tiny_encoder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder")
    }

    #[test]
    fn a_word_is_remembered_by_its_first_piece() {
        let pieces = uncased().split(["Restaurants", "cafe", "rest"]).unwrap();
        assert_eq!(pieces, plain(&[4, 5, 6, 7, 4], &[0, 3, 4]));
    }

    #[test]
    fn a_word_passes_the_full_bert_pipeline() {
        let pieces = uncased().split(["CAFÉ", "rest]", "東京", "e\u{301}"]).unwrap();
        assert_eq!(pieces, plain(&[7, 4, 9, 11, 12, 15], &[0, 1, 3, 5]));
    }

    #[test]
    fn a_word_without_pieces_is_unknown() {
        let pieces = uncased().split(["\u{200b}", "cafe", "\u{7}", " ", "xyz"]).unwrap();
        assert_eq!(pieces, plain(&[1, 7, 1, 1, 1], &[0, 1, 2, 3, 4]));
    }

    #[test]
    fn a_separator_in_the_text_is_plain_text() {
        let from_vocabulary = uncased();
        let json = from_vocabulary.to_json().unwrap();
        assert_eq!(from_vocabulary.split(["[SEP]"]).unwrap().ids, [8, 10, 9]);
        let tiny = WordPieces::load(&tiny_encoder()).unwrap();
        assert!(!tiny.split(["[SEP]", "[CLS]"]).unwrap().ids.contains(&tiny.sep()));
        let again = WordPieces::from_json(json.as_bytes(), Path::new("again")).unwrap();
        assert_eq!(again.split(["[SEP]"]).unwrap().ids, [8, 10, 9]);
    }

    #[test]
    fn a_cased_vocabulary_keeps_case_and_accents() {
        let config = r#"{"do_lower_case": false, "unk_token": "[UNK]"}"#;
        let dir = dir_with(&[("vocab.txt", VOCABULARY), ("tokenizer_config.json", config)]);
        let cased = WordPieces::load(dir.path()).unwrap();
        assert_eq!(cased.split(["Rest", "rest", "é"]).unwrap().ids, [13, 4, 14]);
    }

    #[test]
    fn both_files_of_an_encoder_give_the_same_pieces() {
        let vocabulary = std::fs::read_to_string(tiny_encoder().join("vocab.txt")).unwrap();
        let from_vocabulary =
            WordPieces::load(dir_with(&[("vocab.txt", &vocabulary)]).path()).unwrap();
        let from_json = WordPieces::load(&tiny_encoder()).unwrap();
        let words = ["Play", "the", "newest", "JAZZ-album", "by", "Queen!", "☃"];
        assert_eq!(from_json.split(words).unwrap(), from_vocabulary.split(words).unwrap());
        assert_eq!(from_json.n_pieces(), vocabulary.lines().count());
        assert_eq!((from_json.cls(), from_json.sep()), (2, 3));
    }

    #[test]
    fn prescribed_truncation_and_padding_are_ignored() {
        let json = std::fs::read_to_string(tiny_encoder().join("tokenizer.json")).unwrap();
        let json = json
            .replace(r#""truncation":null"#, r#""truncation":{"direction":"Right","max_length":2,"strategy":"LongestFirst","stride":0}"#)
            .replace(r#""padding":null"#, r#""padding":{"strategy":{"Fixed":9},"direction":"Right","pad_to_multiple_of":null,"pad_id":0,"pad_type_id":0,"pad_token":"[PAD]"}"#);
        let strict = WordPieces::from_json(json.as_bytes(), Path::new("strict")).unwrap();
        let plain = WordPieces::load(&tiny_encoder()).unwrap();
        assert_eq!(
            strict.split(["xylophone", "a"]).unwrap(),
            plain.split(["xylophone", "a"]).unwrap()
        );
    }

    #[test]
    fn a_directory_without_a_tokenizer_is_refused() {
        assert!(refusal(&[]).ends_with("holds neither `tokenizer.json` nor `vocab.txt`"));
    }

    #[test]
    fn a_malformed_tokenizer_is_refused_by_name() {
        assert!(refusal(&[("tokenizer.json", "{}")]).contains("tokenizer.json` does not work"));
        let files = [("vocab.txt", VOCABULARY), ("tokenizer_config.json", "[")];
        assert!(refusal(&files).contains("tokenizer_config.json` does not work"));
    }

    #[test]
    fn damage_at_which_the_reader_panics_is_refused() {
        let json = std::fs::read_to_string(tiny_encoder().join("tokenizer.json")).unwrap();
        for (part, damage) in [
            (r#""cleanup":true"#, r#""cleanup":tru"#),
            (r###""prefix":"##""###, r#""prefix":"\ud800""#),
            (r#""type":"BertNormalizer""#, r#""type":"Precompiled","precompiled_charsmap":"AA==""#),
            (
                r#""type":"BertNormalizer""#,
                r#""type":"Sequence","normalizers":[{"type":"Precompiled"}]"#,
            ),
        ] {
            assert!(json.contains(part), "{part}");
            let message = refusal(&[("tokenizer.json", &json.replacen(part, damage, 1))]);
            assert!(message.contains("tokenizer.json` does not work"), "{message}");
        }
    }

    #[test]
    fn a_vocabulary_without_bert_pieces_is_refused() {
        assert!(refusal(&[("vocab.txt", "[UNK]\n[CLS]\n")]).contains("lacks `[SEP]`"));
    }
}
