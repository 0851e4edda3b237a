//! One test per refusal: what cannot be read is named with its place, and `repair` mends what can be mended.

use std::path::Path;

use fewtag::data::{self, Corpus, Format, Note, ReadOptions};
use fewtag::error::chain;

fn parse(format: Format, bytes: impl AsRef<[u8]>, repair: bool) -> fewtag::Result<Corpus> {
    let options = ReadOptions { format: Some(format), repair, ..ReadOptions::default() };
    data::parse(Path::new("f"), bytes.as_ref(), &options)
}

#[track_caller]
fn refused(format: Format, bytes: impl AsRef<[u8]>, message: &str) {
    let error = chain(&parse(format, bytes, false).expect_err("a refusal"));
    assert!(error.starts_with(message), "{error}");
}

/// The words and tags of the first sentence after a repair.
#[track_caller]
fn repaired(format: Format, text: &str) -> String {
    let corpus = parse(format, text, true).expect("a repair");
    assert!(
        matches!(&corpus.notes[..], [Note::Repaired(found), ..] if found.n == 1),
        "{:?}",
        corpus.notes
    );
    let tokens = corpus.domains[0].sentences[0].tokens().iter();
    tokens.map(|token| format!("{}/{}", token.word, token.tag)).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_error_of_the_parser_is_the_source() {
    let error = parse(Format::Spacy, "{", false).expect_err("a refusal");
    assert_eq!(error.to_string(), "f:1: not the expected JSON");
    assert!(std::error::Error::source(&error).expect("a cause").is::<serde_json::Error>());
    let error = parse(Format::Rasa, "nlu: 3\n", false).expect_err("a refusal");
    assert_eq!(error.to_string(), "f:1: not the expected YAML");
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn a_missing_file_is_refused() {
    let error = data::read(Path::new("no/such/file"), &ReadOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "cannot access `no/such/file`");
}

#[test]
fn a_directory_is_refused() {
    let error = data::read(Path::new("."), &ReadOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), ".: this is a directory, not a file");
}

#[test]
fn empty_files_are_refused() {
    for text in ["", " \n\n", "\u{FEFF}"] {
        let error =
            data::parse(Path::new("f"), text.as_bytes(), &ReadOptions::default()).unwrap_err();
        assert_eq!(error.to_string(), "f: no sentences");
    }
}

#[test]
fn an_unknown_format_is_refused_with_the_names_of_those_known() {
    for text in ["just a text\n", "{\"a\": 1}", "[1, 2]", "{\"text\": \"a\"}", "{"] {
        let error =
            data::parse(Path::new("f"), text.as_bytes(), &ReadOptions::default()).unwrap_err();
        let message = "f: no data format recognised (known are conll, episodes, hf, ";
        assert!(error.to_string().starts_with(message), "{error}");
    }
}

#[test]
fn invalid_utf8_is_refused_with_its_byte() {
    refused(Format::Conll, b"play O\nnin\xE4 O\n", "f:2: not UTF-8: byte 10 of the file");
}

#[test]
fn utf16_is_refused() {
    refused(Format::Conll, b"\xFF\xFEp\0", "f: the text is UTF-16; save it as UTF-8");
}

#[test]
fn byte_order_marks_and_crlf_are_read() {
    let corpus = parse(Format::Conll, "\u{FEFF}play\tO\r\n\r\nnina\tB-a\r\n", false).unwrap();
    let words: Vec<&str> = corpus.sentences().flat_map(fewtag::Sentence::words).collect();
    assert_eq!(words, ["play", "nina"]);
    assert_eq!(corpus.domains[0].sentences[1].spans()[0].slot.as_str(), "a");
}

#[test]
fn duplicate_json_keys_are_refused_in_every_json_format() {
    for format in [Format::Hf, Format::Spacy, Format::Doccano] {
        refused(
            format,
            "{\"x\": {\"k\": 1, \"k\": 2}}",
            "f:1: not the expected JSON: the key \"k\" occurs twice",
        );
    }
    for format in [Format::Gliner, Format::LabelStudio] {
        refused(
            format,
            "[{\"x\": 1,\n\"x\": 2}]",
            "f:2: not the expected JSON: the key \"x\" occurs twice",
        );
    }
    for format in [Format::Episodes, Format::SnipsJson] {
        refused(
            format,
            "{\"x\": [],\n\"x\": []}",
            "f:2: not the expected JSON: the key \"x\" occurs twice",
        );
    }
}

#[test]
fn duplicate_yaml_keys_are_refused() {
    refused(Format::Rasa, "nlu: []\nnlu: []\n", "f:2: not the expected YAML: ");
    refused(Format::SnipsYaml, "type: intent\nname: a\nname: b\n", "f:3: not the expected YAML: ");
}

#[test]
fn lines_of_100_mb_are_refused() {
    let long = "x".repeat(100_000_000);
    let line = "bytes in one line (at most 8388608)";
    refused(Format::Inline, &long, &format!("f:1: 100000000 {line}"));
    refused(Format::Hf, format!("{{\"tokens\": [\"{long}\"]}}"), &format!("f:1: 100000016 {line}"));
    let example = format!("f: a, example 1: 100000000 {line}");
    refused(Format::Rasa, format!("nlu:\n- intent: a\n  examples: |\n    - {long}\n"), &example);
    refused(Format::SnipsYaml, format!("type: intent\nname: a\nutterances:\n- {long}\n"), &example);
}

#[test]
fn broken_json_is_refused_with_its_line() {
    refused(
        Format::Hf,
        "{\"tokens\": [\"a\"], \"ner_tags\": [\"O\"]}\n{\"tokens\"\n",
        "f:2: not the expected JSON: EOF",
    );
    refused(Format::Spacy, "{\"text\": 1}", "f:1: not the expected JSON: invalid type");
}

#[test]
fn broken_yaml_is_refused_with_its_line() {
    refused(Format::Rasa, "nlu:\n- intent: [\n", "f:");
    refused(Format::Rasa, "nlu: 3\n", "f:1: not the expected YAML: ");
}

#[test]
fn unequal_words_and_tags_are_refused() {
    refused(
        Format::Hf,
        "{\"tokens\": [\"a\", \"b\"], \"ner_tags\": [\"O\"]}",
        "f:1: 2 words but 1 tag",
    );
}

#[test]
fn tags_as_numbers_are_refused() {
    refused(
        Format::Hf,
        "{\"tokens\": [\"a\"], \"ner_tags\": [3]}",
        "f:1: the tags are no text; numbers have names",
    );
}

#[test]
fn a_sentence_without_words_is_refused_or_left_out() {
    let text = "{\"text\": \" \", \"label\": []}\n{\"text\": \"b\", \"label\": []}";
    refused(Format::Doccano, text, "f:1: a sentence has no words");
    assert_eq!(repaired(Format::Doccano, text), "b/O");
}

#[test]
fn a_label_with_blanks_is_refused_or_joined() {
    let text = "{\"text\": \"play nina\", \"label\": [[5, 9, \"the artist\"]]}";
    refused(
        Format::Doccano,
        text,
        "f:1: `the artist` is no slot name: it must not be empty or contain blanks",
    );
    assert_eq!(repaired(Format::Doccano, text), "play/O nina/B-the_artist");
    assert_eq!(repaired(Format::Conll, "nina\tB-the artist\n"), "nina/B-the_artist");
    refused(Format::Inline, "play [nina]()", "f:1: `` is no slot name");
}

#[test]
fn a_label_that_cuts_a_word_is_refused_or_widened() {
    let text = "play [nin](artist)a";
    refused(Format::Inline, text, "f:1: the label `nin` cuts the word `nina`");
    assert_eq!(repaired(Format::Inline, text), "play/O nina/B-artist");
}

#[test]
fn a_label_without_a_word_is_refused_or_left_out() {
    let text =
        "{\"text\": \"play  nina\", \"spans\": [{\"start\": 4, \"end\": 6, \"label\": \"a\"}]}";
    refused(Format::Spacy, text, "f:1: the label `  ` covers no word");
    assert_eq!(repaired(Format::Spacy, text), "play/O nina/O");
}

#[test]
fn a_label_beyond_the_text_is_refused_or_left_out() {
    for (start, end) in [(0, 3), (1, 1), (2, 1), (7, 8)] {
        let text = format!("{{\"text\": \"é!\", \"label\": [[{start}, {end}, \"a\"]]}}");
        refused(
            Format::Doccano,
            &text,
            &format!("f:1: the label {start}..{end} is no part of a text of 2 characters"),
        );
        assert_eq!(repaired(Format::Doccano, &text), "é/O !/O");
    }
}

#[test]
fn overlapping_labels_are_refused_or_left_out() {
    let text = "{\"text\": \"a b c\", \"label\": [[2, 5, \"y\"], [0, 3, \"x\"]]}";
    refused(Format::Doccano, text, "f:1: the label `y` on `b c` overlaps another");
    assert_eq!(repaired(Format::Doccano, text), "a/B-x b/I-x c/O");
    let text = "[{\"tokenized_text\": [\"a\", \"b\"], \"ner\": [[0, 0, \"x\"], [0, 1, \"y\"]]}]";
    refused(Format::Gliner, text, "f: record 1: the label `x` on `a` overlaps another");
    assert_eq!(repaired(Format::Gliner, text), "a/B-y b/I-y");
}

#[test]
fn a_label_on_words_beyond_the_sentence_is_refused_or_left_out() {
    for (first, last) in [(0, 1), (1, 0), (0, usize::MAX)] {
        let text =
            format!("[{{\"tokenized_text\": [\"a\"], \"ner\": [[{first}, {last}, \"x\"]]}}]");
        refused(Format::Gliner, &text, &format!("f: record 1: the label on words {first}.."));
        assert_eq!(repaired(Format::Gliner, &text), "a/O");
    }
}

#[test]
fn a_label_whose_text_stands_elsewhere_is_refused() {
    // Label Studio's browser may count UTF-16 units: one more per emoji.
    let value = "{\"start\": 3, \"end\": 7, \"text\": \"nina\", \"labels\": [\"a\"]}";
    let text = format!(
        "[{{\"data\": {{\"text\": \"🎷 nina s\"}}, \"annotations\": [{{\"result\": [{{\"value\": {value}}}]}}]}}]"
    );
    refused(
        Format::LabelStudio,
        &text,
        "f: record 1: the label 3..7 says `nina` but the text there is `ina `",
    );
}

#[test]
fn tokens_that_are_not_in_the_text_are_refused() {
    let tokens = "[{\"start\": 0, \"end\": 2}, {\"start\": 1, \"end\": 3}]";
    let text = format!("{{\"text\": \"abc\", \"spans\": [], \"tokens\": {tokens}}}");
    refused(
        Format::Spacy,
        text,
        "f:1: the tokens do not stand one after the other in the text: 1..3",
    );
}

#[test]
fn brackets_that_mark_nothing_are_refused() {
    refused(
        Format::Inline,
        "play [nina] now",
        "f:1: `[nina] now`: `[…]` is not followed by `(…)`; write `\\[`",
    );
}

#[test]
fn rejected_records_of_prodigy_are_left_out() {
    let text = "{\"text\": \"a\", \"spans\": [], \"answer\": \"reject\"}\n{\"text\": \"b\", \"spans\": [], \"answer\": \"accept\"}";
    let corpus = parse(Format::Spacy, text, false).unwrap();
    assert_eq!(corpus.sentences().count(), 1);
    assert_eq!(
        corpus.notes,
        [Note::Ignored { what: "records that the annotator did not accept", n: 1 }]
    );
}
