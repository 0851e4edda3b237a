//! Every data format: read as its own tool writes it, written and read again, and fed with rubbish.

use std::path::{Path, PathBuf};

use fewtag::data::{self, Format, Note, ReadOptions};
use fewtag::scheme::Scheme;
use fewtag::words::WordSplit;
use fewtag::{Domain, Sentence, Tag, Token};
use proptest::prelude::*;
use rayon::prelude::*;

use crate::corpora;

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/formats").join(name)
}

const FILES: [(Format, &str); 11] = [
    (Format::Conll, "corpus.conll"),
    (Format::Episodes, "corpus.episodes.json"),
    (Format::Hf, "corpus.hf.jsonl"),
    (Format::Spacy, "corpus.spacy.jsonl"),
    (Format::Doccano, "corpus.doccano.jsonl"),
    (Format::LabelStudio, "corpus.labelstudio.json"),
    (Format::Gliner, "corpus.gliner.json"),
    (Format::Rasa, "corpus.rasa.yml"),
    (Format::SnipsJson, "corpus.snips.json"),
    (Format::SnipsYaml, "corpus.snips-yaml.yml"),
    (Format::Inline, "corpus.inline.txt"),
];

fn expected() -> Vec<Domain> {
    data::read_domains(&testdata("corpus.conll"), &ReadOptions::default()).expect("a valid file")
}

#[test]
fn every_format_is_recognised_and_read_as_the_same_corpus() {
    let expected = expected();
    assert_eq!(expected.iter().map(|d| d.sentences.len()).collect::<Vec<_>>(), [2, 3]);
    assert_eq!(FILES.map(|(format, _)| format), Format::ALL);
    for (format, file) in FILES {
        let corpus = data::read(&testdata(file), &ReadOptions::default()).unwrap();
        assert_eq!(corpus.format, format, "{file}");
        assert_eq!(corpus.domains, expected, "{file}");
    }
}

#[test]
fn what_is_left_out_is_told() {
    let notes = |file| data::read(&testdata(file), &ReadOptions::default()).unwrap().notes;
    let ignored = |what, n| Note::Ignored { what, n };
    assert_eq!(notes("corpus.conll"), []);
    assert_eq!(
        notes("corpus.labelstudio.json"),
        [ignored("tasks without an annotation", 1), ignored("results that label no text", 1)]
    );
    assert_eq!(
        notes("corpus.rasa.yml"),
        [
            ignored("synonyms, lookups and regular expressions", 2),
            ignored("values, roles and groups of entities", 3)
        ]
    );
    assert_eq!(notes("corpus.snips-yaml.yml"), [ignored("documents that are no intent", 1)]);
}

/// Writes and reads again; words are restored by splitting at blanks where the format does not keep them.
fn round_trip(domains: &[Domain], format: Format, path: &Path) -> Vec<Domain> {
    let mut bytes = Vec::new();
    data::write(format, Scheme::Iob2, domains, &mut bytes).expect("a writable corpus");
    let options = ReadOptions { words: WordSplit::Blank, ..ReadOptions::default() };
    let corpus = data::parse(path, &bytes, &options).expect("a valid file");
    assert_eq!(corpus.format, format, "{}", path.display());
    corpus.domains
}

#[test]
fn text_survives_a_round_trip_through_the_formats_that_keep_it() {
    let expected =
        data::read_domains(&testdata("corpus.snips.json"), &ReadOptions::default()).unwrap();
    for format in Format::ALL.into_iter().filter(|format| format.keeps_text()) {
        let mut bytes = Vec::new();
        data::write(format, Scheme::Iob2, &expected, &mut bytes).unwrap();
        let again = data::parse(Path::new("x"), &bytes, &ReadOptions::default()).unwrap();
        assert_eq!(again.domains, expected, "{format}");
        let texts = |domains: &[Domain]| -> Vec<String> {
            let sentences = domains.iter().flat_map(|domain| &domain.sentences);
            sentences.map(|sentence| sentence.text().0.into_owned()).collect()
        };
        assert_eq!(texts(&again.domains), texts(&expected), "{format}");
    }
}

#[test]
fn every_tagging_scheme_survives_the_formats_that_have_one() {
    let expected = expected();
    for format in [Format::Conll, Format::Hf] {
        for scheme in [Scheme::Iob1, Scheme::Iobes, Scheme::Bilou] {
            let mut bytes = Vec::new();
            data::write(format, scheme, &expected, &mut bytes).unwrap();
            let corpus = data::parse(Path::new("x"), &bytes, &ReadOptions::default()).unwrap();
            assert_eq!((corpus.scheme, corpus.domains), (Some(scheme), expected.clone()));
        }
    }
}

#[test]
fn a_first_word_that_is_a_byte_order_mark_is_not_lost() {
    let tokens = ["\u{feff}", "\u{feff}a"].map(|word| Token { word: word.into(), tag: Tag::O });
    let domain =
        Domain { name: "x".into(), sentences: vec![Sentence::new(tokens.into()).unwrap()] };
    for format in [Format::Conll, Format::Inline] {
        let mut bytes = Vec::new();
        data::write(format, Scheme::Iob2, std::slice::from_ref(&domain), &mut bytes).unwrap();
        let options =
            ReadOptions { format: Some(format), words: WordSplit::Blank, ..ReadOptions::default() };
        let again = data::parse(Path::new("x"), &bytes, &options).unwrap();
        assert_eq!(again.domains, std::slice::from_ref(&domain), "{format}");
    }
}

#[test]
fn all_corpora_survive_a_round_trip_through_every_format() {
    round_trip_all(&corpora::own(), 1);
    round_trip_all(&corpora::public(""), 20);
}

#[test]
#[ignore = "needs data/ (scripts/fetch_data.py) and takes a minute in a debug build; run it with --release"]
fn every_sentence_of_the_public_corpora_survives_a_round_trip_through_every_format() {
    round_trip_all(&corpora::public(""), 1);
}

/// Takes every `step`th sentence.
fn round_trip_all(files: &[PathBuf], step: usize) {
    files.par_iter().for_each(|path| {
        let mut corpus = data::read(path, &ReadOptions::default()).expect("a valid file");
        assert_eq!(corpus.notes, [], "{}", path.display());
        for domain in &mut corpus.domains {
            domain.sentences = domain.sentences.iter().step_by(step).cloned().collect();
        }
        Format::ALL.into_par_iter().for_each(|format| {
            // A single domain is named by its file where the format need not name it.
            let path = path.with_file_name(format!("{}.x", corpus.domains[0].name));
            let again = round_trip(&corpus.domains, format, &path);
            assert!(again == corpus.domains, "{} as {format}", path.display());
        });
    });
}

#[test]
fn all_episodes_survive_a_round_trip() {
    let own =
        corpora::own().into_iter().filter(|path| path.extension().is_some_and(|end| end == "json"));
    let own: Vec<PathBuf> = own.collect();
    assert_eq!(own.len(), 2);
    let public = corpora::public("episodes");
    own.par_iter().chain(&public).for_each(|path| {
        let episodes = data::read_episodes(path).unwrap();
        assert!(!episodes.is_empty(), "{}", path.display());
        let directory = tempfile::tempdir().unwrap();
        let copy = directory.path().join("copy.json");
        fewtag::file::write_atomically_with(&copy, |file| data::write_episodes(file, &episodes))
            .unwrap();
        assert!(data::read_episodes(&copy).unwrap() == episodes, "{}", path.display());
    });
}

/// Words of every kind but those with white space or control characters.
fn any_word() -> impl Strategy<Value = String> {
    let word = prop_oneof!["[a-z]{1,5}", r#"[\[\](){}:#"'\\,.|>&*!%@`~?-]{1,4}"#, "\\PC{1,4}"];
    word.prop_filter("white space", |word| !word.contains(char::is_whitespace))
}

fn any_sentence() -> impl Strategy<Value = Sentence> {
    let slot = prop_oneof!["[a-z]{1,3}", r"[a-z][\[\](){}:#./_\\-]{1,3}"];
    prop::collection::vec((any_word(), prop::option::of((slot, any::<bool>()))), 1..6).prop_map(
        |words| {
            let mut tokens: Vec<Token> = Vec::new();
            for (word, slot) in words {
                let tag = match (slot, tokens.last().and_then(|before| before.tag.slot())) {
                    (None, _) => "O".to_owned(),
                    (Some((_, true)), Some(before)) => format!("I-{before}"),
                    (Some((slot, _)), _) => format!("B-{slot}"),
                };
                tokens.push(Token { word, tag: tag.parse().expect("a valid tag") });
            }
            Sentence::new(tokens).expect("a valid sentence")
        },
    )
}

proptest! {
    #[test]
    fn any_sentence_survives_a_round_trip(
        sentences in prop::collection::vec(any_sentence(), 1..4),
        names in prop::sample::subsequence(vec!["a b", "c:\"d\"", "é- #"], 1..=3),
    ) {
        let domain = |name: &&str| Domain { name: (*name).to_owned(), sentences: sentences.clone() };
        let domains: Vec<Domain> = names.iter().map(domain).collect();
        for format in Format::ALL {
            let mut bytes = Vec::new();
            data::write(format, Scheme::Iob2, &domains, &mut bytes).unwrap();
            let options = ReadOptions { format: Some(format), words: WordSplit::Blank, ..ReadOptions::default() };
            let path = PathBuf::from(format!("{}.x", domains[0].name));
            let corpus = data::parse(&path, &bytes, &options);
            let corpus = corpus.map_err(|error| TestCaseError::fail(format!("{format}: {error}\n{}", String::from_utf8_lossy(&bytes))))?;
            prop_assert_eq!(&corpus.domains, &domains, "{}\n{}", format, String::from_utf8_lossy(&bytes));
        }
    }

    #[test]
    fn no_reader_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), repair: bool) {
        for format in Format::ALL.map(Some).into_iter().chain([None]) {
            let options = ReadOptions { format, repair, ..ReadOptions::default() };
            let _ = data::parse(Path::new("x"), &bytes, &options);
        }
    }

    /// Files that are nearly right get further into a reader than random bytes.
    #[test]
    fn no_reader_panics_on_a_damaged_file(
        (_, file) in prop::sample::select(FILES.to_vec()),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..8, "[\\PC\\n]{0,3}|[0-9]{1,20}"), 1..4),
        repair: bool,
    ) {
        let mut text = std::fs::read_to_string(testdata(file)).unwrap();
        for (at, n_removed, put) in damage {
            let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
            let from = at.index(starts.len());
            let to = (from + n_removed).min(starts.len() - 1);
            text.replace_range(starts[from]..starts[to], &put);
        }
        for format in Format::ALL.map(Some).into_iter().chain([None]) {
            let options = ReadOptions { format, repair, ..ReadOptions::default() };
            let _ = data::parse(Path::new("x"), text.as_bytes(), &options);
        }
    }
}
