//! Saved domains: what comes back, and one refusal each.

use std::path::PathBuf;

use super::*;
use safetensors::tensor::TensorView;

use crate::encoder::Storage;
use crate::error::chain;
use crate::model;
use crate::settings::Context;

fn tagger(seed: u64) -> Tagger {
    let encoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
    let settings = ModelSettings {
        context: Context::Separate,
        scorer: crate::emission::ScorerKind::Prototype,
        label_names: 0.5,
        ..ModelSettings::default()
    };
    let dir = tempfile::tempdir().unwrap();
    let untrained = model::from_encoder(&encoder, settings, seed).unwrap();
    assert!(matches!(
        DomainFile::new(&untrained, support(), Thresholds::default()),
        Err(Error::UnsavedModel)
    ));
    model::save(&untrained, dir.path(), Storage::F32).unwrap();
    model::load(dir.path()).unwrap()
}

/// Running text, bare words, a label without example and names for labels.
fn support() -> SupportSet {
    let token = |word: &str, tag: &str| Token { word: word.into(), tag: tag.parse().unwrap() };
    let words = vec![token("can't", "O"), token("rock'n'roll", "B-genre")];
    let mut sentences =
        SupportSet::parse("Pläy  [Nina Simone](artist)!").unwrap().sentences().to_vec();
    sentences.push(Sentence::new(words).unwrap());
    let slot = |name| Slot::new(name).unwrap();
    let support = SupportSet::with_labels(sentences, [slot("time"), slot("genre")]).unwrap();
    support.named(slot("artist"), Some("musician".into())).named(slot("genre"), None)
}

fn saved() -> DomainFile {
    let thresholds = Thresholds { general: 0.25, of_label: [("time".to_owned(), 0.5)].into() };
    DomainFile::new(&tagger(1), support(), thresholds).unwrap()
}

fn read(bytes: &[u8]) -> Result<DomainFile> {
    DomainFile::from_bytes(bytes, Path::new("x.fewtag"))
}

/// A file with this JSON inside.
fn file_of(json: String) -> Vec<u8> {
    let none = std::iter::empty::<(String, TensorView)>();
    safetensors::serialize(none, Some(HashMap::from([(ENTRY.to_owned(), json)]))).unwrap()
}

fn refusal(change: impl Fn(String) -> String) -> String {
    let json = serde_json::to_string(&Content::new(&saved())).unwrap();
    let changed = change(json.clone());
    assert_ne!(changed, json, "the test changes something");
    chain(&read(&file_of(changed)).unwrap_err())
}

#[test]
fn a_domain_comes_back_as_it_was() {
    let (before, dir) = (saved(), tempfile::tempdir().unwrap());
    let path = dir.path().join("music.fewtag");
    before.write(&path).unwrap();
    let after = DomainFile::read(&path).unwrap();
    assert_eq!(after, before);
    assert_eq!(after.support().tag_set(), before.support().tag_set());
    let texts = |domain: &DomainFile| -> Vec<String> {
        domain.support().sentences().iter().map(|s| s.text().0.into_owned()).collect()
    };
    assert_eq!(texts(&after), texts(&before));
    assert_eq!(after.to_bytes(), before.to_bytes());
    assert!(DomainFile::is_one(&after.to_bytes()));
    assert!(!DomainFile::is_one(b"play [nina simone](artist)"));
}

#[test]
fn an_opened_domain_answers_as_the_one_that_was_saved() {
    let (tagger, domain) = (tagger(1), saved());
    let opened = read(&domain.to_bytes()).unwrap().adapt(&tagger, Path::new("x")).unwrap();
    let learned = tagger.adapt(&support()).unwrap();
    for text in ["Play Miles Davis tonight", "can't rock'n'roll"] {
        assert_eq!(opened.tag_text(text).unwrap(), learned.tag_text(text).unwrap());
    }
}

#[test]
fn another_model_is_refused_and_other_settings_of_the_same_are_not() {
    let tagger = tagger(1);
    let paired = ModelSettings { context: Context::Paired, ..tagger.settings().clone() };
    let paired = tagger.with_settings(paired).unwrap();
    assert_eq!(
        saved().tagger(&paired, Path::new("x")).unwrap().settings().context,
        Context::Separate
    );
    let error = saved().adapt(&self::tagger(2), Path::new("x.fewtag")).err().unwrap().to_string();
    assert!(error.contains("x.fewtag") && error.contains("use that model"), "{error}");
}

#[test]
fn a_model_that_learns_is_no_longer_the_one_of_its_files() {
    assert!(tagger(1).checksum().is_some());
    assert_eq!(tagger(1).with_scale(0.7).checksum(), None);
}

#[test]
fn what_is_no_saved_domain_is_refused() {
    let bytes = saved().to_bytes();
    for n in [0, 7, 8, 20, bytes.len() - 1] {
        assert!(read(&bytes[..n]).is_err(), "{n} bytes");
    }
    assert!(read(&[bytes, vec![0]].concat()).is_err());
    let none = std::iter::empty::<(String, TensorView)>();
    assert!(read(&safetensors::serialize(none, None).unwrap()).is_err());
    let path = PathBuf::from("/nonexistent/x.fewtag");
    assert!(matches!(DomainFile::read(&path), Err(Error::File { .. })));
}

#[test]
fn a_later_version_is_refused_before_its_fields_are_read() {
    let message = read(&file_of(r#"{"format": 3, "new": 1}"#.into())).unwrap_err().to_string();
    assert!(message.contains("format 3") && message.contains("reads format 2"), "{message}");
    let json = serde_json::to_string(&Content::new(&saved())).unwrap();
    let tensor = TensorView::new(safetensors::Dtype::F32, vec![1], &[0; 4]).unwrap();
    let metadata = HashMap::from([(ENTRY.to_owned(), json)]);
    let odd = safetensors::serialize([("layer", tensor)], Some(metadata)).unwrap();
    assert!(chain(&read(&odd).unwrap_err()).contains("contradict"));
}

#[test]
fn every_part_is_checked() {
    let change = |from: &'static str, to: &'static str| move |json: String| json.replace(from, to);
    assert!(refusal(change(r#""B-genre""#, r#""genre""#)).contains("example 2"));
    assert!(refusal(change(r#""Nina""#, r#""Nino""#)).contains("no `Nino` at 6"));
    assert!(refusal(change(r#""starts":[0,"#, r#""starts":["#)).contains("where each word begins"));
    assert!(refusal(change(r#""can't","#, "")).contains("more words than tags"));
    assert!(refusal(change(r#""threshold":0.25"#, r#""threshold":2.5"#)).contains("probability"));
    assert!(refusal(change(r#""labels":["#, r#""labels":["a b","#)).contains("no slot name"));
    assert!(refusal(change(r#""model":"#, r#""modell":"#)).contains("modell"));
}
