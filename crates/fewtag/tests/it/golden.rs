//! Reading golden files and comparing with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fewtag::encoder::{Bert, WordPieces, weights};
use fewtag::head::Head;
use fewtag::{Episode, Matrix, ModelSettings, Tag, Tagger, data};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Rows of a golden file; `null` is minus infinity.
pub(crate) type Rows = Vec<Vec<Option<f32>>>;

/// The content of `tests/golden/{name}`.
pub(crate) fn read<T: DeserializeOwned>(name: &str) -> T {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let text = std::fs::read_to_string(path).expect("a golden file");
    serde_json::from_str(&text).expect("a golden file of this form")
}

/// `model_answers.json`: what the reference says about the tiny episodes.
#[derive(Deserialize)]
pub(crate) struct AnswersFile {
    pub(crate) head: Head,
    pub(crate) label_names: BTreeMap<String, Vec<String>>,
    pub(crate) cases: Vec<Case>,
}

#[derive(Deserialize)]
pub(crate) struct Case {
    pub(crate) settings: ModelSettings,
    pub(crate) episodes: Vec<Answers>,
}

/// One entry per query.
#[derive(Deserialize)]
pub(crate) struct Answers {
    pub(crate) tags: Vec<String>,
    pub(crate) emissions: Vec<Rows>,
    pub(crate) losses: Vec<f32>,
    pub(crate) predicted: Vec<Vec<String>>,
}

/// The episodes that the golden files of the model are about.
pub(crate) fn tiny_episodes() -> Vec<Episode> {
    data::read_episodes(&testdata("tiny-episodes.json")).expect("the tiny episodes")
}

/// A file or directory of `testdata/`.
pub(crate) fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
}

/// An encoder with a given head and the default settings.
pub(crate) fn tagger(encoder: &Path, head: Head) -> Tagger {
    let engine = Bert::new(weights::load(encoder).expect("weights")).expect("an encoder");
    let word_pieces = WordPieces::load(encoder).expect("a tokenizer");
    Tagger::new(Arc::new(engine), word_pieces, ModelSettings::default(), head).expect("a tagger")
}

/// `[n, d]`
pub(crate) fn matrix(rows: &Rows) -> Matrix {
    Matrix::new(rows.iter().flat_map(|row| numbers(row)).collect(), rows[0].len())
}

/// `[n]`
pub(crate) fn numbers(values: &[Option<f32>]) -> Vec<f32> {
    values.iter().map(|x| x.unwrap_or(f32::NEG_INFINITY)).collect()
}

/// Tags as they are written.
pub(crate) fn names<'a>(tags: impl IntoIterator<Item = &'a Tag>) -> Vec<String> {
    tags.into_iter().map(ToString::to_string).collect()
}

/// Number by number; relative where the value is large, absolute near zero.
pub(crate) fn assert_all_close(case: &str, ours: &[f32], reference: &[f32], tolerance: f32) {
    assert_eq!(ours.len(), reference.len(), "{case}");
    for (at, (&ours, &reference)) in ours.iter().zip(reference).enumerate() {
        assert_close(&format!("{case}, number {at}"), ours, reference, tolerance);
    }
}

/// Relative where the value is large, absolute near zero.
pub(crate) fn assert_close(case: &str, ours: f32, reference: f32, tolerance: f32) {
    let error = (ours - reference).abs() / reference.abs().max(1.0);
    assert!(error <= tolerance, "{case}: ours {ours}, reference {reference}, error {error:.1e}");
}
