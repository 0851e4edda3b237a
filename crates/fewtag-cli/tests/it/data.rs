//! `fewtag data`: the reports it prints, the files it writes, and what it refuses.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::{example, failure, fewtag, success};

fn corpus(name: &str) -> String {
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/formats");
    formats.join(name).to_str().unwrap().to_owned()
}

#[test]
fn check_prints_a_report_for_people() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("odd.conll");
    fs::write(&file, "hi O\nnina B-a\n\nhi O\nnina O\n\nhi O\nnina B-a\n\nyou O\nI I-b\n").unwrap();
    let report = Command::new(env!("CARGO_BIN_EXE_fewtag"))
        .args(["data", "check", "odd.conll", "--shots", "2"])
        .current_dir(directory.path())
        .output()
        .unwrap();
    let expected = "\
domains

file       format  scheme  domain  sentences  words  slots  spans
---------  ------  ------  ------  ---------  -----  -----  -----
odd.conll  conll   iob2    odd             4      8      2      3

slots

domain  slot  spans  sentences
------  ----  -----  ---------
odd     a         2          2
odd     b         1          1

findings

file       domain  finding                      n  detail
---------  ------  ---------------------------  -  ---------------------------------------------------------------
odd.conll          remark                       1  the tags could be iob2 or iob1; read as iob2 (--scheme decides)
odd.conll          illegal tags                 1  line 11: I-b
odd.conll  odd     duplicates                   1  sentence 3: as sentence 1
odd.conll  odd     same words, other tags       1  sentence 2: as sentence 1
odd.conll  odd     tags too rare for the shots  3  O (3), B-a (1), I-b (1)
";
    assert_eq!(String::from_utf8(report.stdout).unwrap(), expected);
    assert!(report.status.success());
}

#[test]
fn strict_makes_findings_fail() {
    let clean = ["data", "check", &example("weather.conll"), "--shots", "1", "--strict"];
    assert!(success(&clean).contains("\nweather  city"));
    let rare = fewtag(&["data", "check", &corpus("corpus.conll"), "--strict", "--output", "json"]);
    assert_eq!(rare.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&rare.stdout).unwrap();
    assert_eq!(report["findings"][0]["finding"], "tags too rare for the shots");
    let message = String::from_utf8(rare.stderr).unwrap();
    assert_eq!(message, "error: 2 findings, and --strict allows none\n");
    let one = fewtag(&["data", "check", &example("weather.conll"), "--shots", "15", "--strict"]);
    let message = String::from_utf8(one.stderr).unwrap();
    assert_eq!(message, "error: 1 finding, and --strict allows none\n");
}

#[test]
fn check_looks_into_episodes() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("e.json").to_str().unwrap().to_owned();
    let part = |word, tag| format!("{{\"seq_ins\": [[\"{word}\"]], \"seq_outs\": [[\"{tag}\"]]}}");
    let (support, leak, new) = (part("a", "B-x"), part("a", "B-x"), part("b", "B-y"));
    let episodes =
        [leak, new].map(|query| format!("{{\"support\": {support}, \"query\": {query}}}"));
    fs::write(&file, format!("{{\"D\": [{}]}}", episodes.join(","))).unwrap();
    let report = success(&["data", "check", &file, "--shots", "1", "--output", "csv"]);
    assert!(report.contains("queries in their own support,1,"), "{report}");
    assert!(report.contains("queries with a tag the support lacks,1,"), "{report}");
    assert!(!report.contains("duplicates"), "{report}");
}

#[test]
fn convert_carries_every_format_to_every_other() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let conll = fs::read_to_string(corpus("corpus.conll")).unwrap();
    let sources = ["episodes.json", "hf.jsonl", "spacy.jsonl", "doccano.jsonl", "labelstudio.json"];
    let sources = sources.into_iter().chain([
        "gliner.json",
        "rasa.yml",
        "snips.json",
        "snips-yaml.yml",
        "inline.txt",
    ]);
    for source in sources {
        let other = path(&format!("x.{source}"));
        success(&["data", "convert", &corpus("corpus.conll"), &other]);
        success(&["data", "convert", &other, &path("again.conll"), "--words", "blank", "--force"]);
        let again = fs::read_to_string(path("again.conll")).unwrap();
        let words = |text: &str| {
            text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(words(&again), words(&conll), "{source}");
    }
}

#[test]
fn convert_says_what_is_lost() {
    let output = fewtag(&["data", "convert", &corpus("corpus.rasa.yml"), "-", "--to", "conll"]);
    let expected = "\
note: not read: synonyms, lookups and regular expressions (2)
note: not read: values, roles and groups of entities (3)
lost: the white space between words (4 sentences)
";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), expected);
    let expected = fs::read_to_string(corpus("corpus.conll")).unwrap() + "\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn convert_reads_standard_input_and_writes_any_scheme() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fewtag"))
        .args(["data", "convert", "-", "-", "--to", "conll", "--to-scheme", "iobes"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"play [nina simone](artist) [live](kind)\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"play\tO\nnina\tB-artist\nsimone\tE-artist\nlive\tS-kind\n\n");
}

#[test]
fn episodes_stay_episodes() {
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.episodes.json").to_str().unwrap().to_owned();
    let output = fewtag(&["data", "convert", &corpus("corpus.episodes.json"), &copy]);
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    let read = |path: &str| fewtag::data::read_episodes(Path::new(path)).unwrap();
    assert_eq!(read(&copy), read(&corpus("corpus.episodes.json")));
}

#[test]
fn what_cannot_be_converted_leaves_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("bad.conll"), "play O\nsome O\nnina\n").unwrap();
    let message = failure(&["data", "convert", &path("bad.conll"), &path("out.hf.jsonl")], 1);
    assert!(
        message.ends_with("bad.conll:3: `nina` has no tag: a line needs a word and a tag\n"),
        "{message}"
    );
    fs::write(
        path("tab.hf.jsonl"),
        "{\"tokens\": [\"a\", \"b\\tc\"], \"ner_tags\": [\"O\", \"O\"]}",
    )
    .unwrap();
    let message = failure(&["data", "convert", &path("tab.hf.jsonl"), &path("out.conll")], 1);
    assert_eq!(message, "error: conll cannot express the word \"b\\tc\"\n");
    let message = failure(&["data", "convert", &path("bad.conll"), &path("out.txt")], 1);
    assert!(message.contains("names no data format; add --to FORMAT"), "{message}");
    let mut left: Vec<_> =
        fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["bad.conll", "tab.hf.jsonl"]);
}

#[test]
fn a_missing_file_is_one_clear_line() {
    let message = failure(&["data", "check", "no/such.conll"], 1);
    assert_eq!(
        message,
        "error: cannot access `no/such.conll`: No such file or directory (os error 2)\n"
    );
}

#[test]
fn unknown_names_are_wrong_usage() {
    let message = failure(&["data", "check", "x", "--format", "xml"], 2);
    assert!(message.contains("possible values: conll, episodes, hf"), "{message}");
}

#[test]
fn stats_prints_the_two_tables_of_the_paper() {
    let files = [example("weather.conll"), example("music.conll")];
    let args = ["data", "stats", &files[0], &files[1], "--shots", "1,2", "--output", "json"];
    let report: Value = serde_json::from_str(&success(&args)).unwrap();
    let weather = &report["domains"][0];
    assert_eq!(
        (weather["domain"].as_str(), weather["sentences"].as_u64()),
        (Some("weather"), Some(20))
    );
    assert_eq!(weather["labels"], 4);
    let sizes = &report["average_support_size"][1];
    assert_eq!(sizes["domain"], "music");
    assert!(sizes["1_shot"].as_f64().unwrap() < sizes["2_shot"].as_f64().unwrap());
    let warnings = String::from_utf8(fewtag(&args).stderr).unwrap();
    let expected =
        "warning: music: left out with 1 sentence, because they occur in fewer than 2: I-year\n";
    assert_eq!(warnings, expected);
}
