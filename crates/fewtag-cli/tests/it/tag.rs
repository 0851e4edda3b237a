//! `fewtag tag` with the built-in model: what it prints, and what it refuses.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use fewtag::encoder::Storage;
use fewtag::{Context, ModelSettings, file, model};
use serde_json::Value;

use crate::{example, failure, success};

const EXAMPLE: [&str; 2] = ["--example", "play [nina simone](artist) [tonight](time)"];

fn tag(args: &[&str]) -> String {
    success(&[&["tag"], &EXAMPLE[..], args].concat())
}

/// Starts `fewtag tag` with pipes on all sides.
fn start(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_fewtag"))
        .args([&["tag"], &EXAMPLE[..], args].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs `fewtag tag` with these bytes on standard input.
fn tag_stdin(args: &[&str], input: &[u8]) -> (Option<i32>, String, String) {
    let mut child = start(args);
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_default_model_finds_an_artist_it_was_never_told_about() {
    let answer = json(&tag(&["--format", "jsonl", "please play miles davis"]));
    let span = &answer["spans"][0];
    assert_eq!((&span["label"], &span["text"]), (&"artist".into(), &"miles davis".into()));
    assert_eq!((&span["start"], &span["end"]), (&12.into(), &23.into()));
    assert!(span["probability"].as_f64().unwrap() > 0.5, "{answer}");
}

#[test]
fn offsets_count_unicode_scalar_values() {
    let text = "🎷🎷 play\tmiles davis";
    let answer = json(&tag(&["--format", "jsonl", text]));
    for span in answer["spans"].as_array().unwrap() {
        let at = |key: &str| span[key].as_u64().unwrap() as usize;
        let inner: String = text.chars().skip(at("start")).take(at("end") - at("start")).collect();
        assert_eq!(span["text"], inner);
    }
    assert_eq!(answer["text"], text);
}

#[test]
fn an_explanation_adds_up_to_the_score() {
    let answer = json(&tag(&["--explain", "--format", "jsonl", "play miles davis"]));
    for span in answer["spans"].as_array().unwrap() {
        let why = &span["explanation"];
        let number = |value: &Value| value.as_f64().unwrap();
        let voices: f64 =
            why["voices"].as_array().unwrap().iter().map(|v| number(&v["score"])).sum();
        assert!((voices - number(&why["examples"])).abs() < 1e-4, "{why}");
        let total = number(&why["examples"]) + number(&why["transitions"]);
        assert!((total - number(&why["score"])).abs() < 1e-9, "{why}");
        assert!(number(&why["runner_up"]["margin"]) > 0.0, "{why}");
    }
}

#[test]
fn every_data_format_is_written_and_read_again() {
    let directory = tempfile::tempdir().unwrap();
    for format in [
        "conll",
        "hf",
        "spacy",
        "gliner",
        "rasa",
        "snips",
        "snips-yaml",
        "doccano",
        "labelstudio",
        "inline",
    ] {
        let written = tag(&["--format", format, "play miles davis", "play some jazz tonight"]);
        let path = directory.path().join(format);
        std::fs::write(&path, &written).unwrap();
        let report = success(&["data", "check", path.to_str().unwrap()]);
        assert!(report.split_whitespace().any(|word| word == format), "{format}: {report}");
    }
}

#[test]
fn a_threshold_drops_what_is_less_probable() {
    let spans = |args: &[&str]| {
        let all = [&["--format", "jsonl", "play miles davis"], args].concat();
        json(&tag(&all))["spans"].as_array().unwrap().len()
    };
    assert_eq!((spans(&[]), spans(&["--threshold", "1"])), (1, 0));
    assert_eq!((spans(&["--threshold", "time=1"]), spans(&["--threshold", "artist=1"])), (1, 0));
    let message = failure(&[&["tag", "--threshold", "genre=1", "a"], &EXAMPLE[..]].concat(), 1);
    assert!(message.contains("no slot `genre` (artist, time)"), "{message}");
}

#[test]
fn lines_are_answered_in_order_and_a_bad_one_is_named() {
    let (status, out, _) = tag_stdin(&["--format", "jsonl"], b"play a\n\nplay b\r\nplay c");
    let texts: Vec<Value> = out.lines().map(|line| json(line)["text"].clone()).collect();
    assert_eq!((status, texts), (Some(0), vec!["play a".into(), "play b".into(), "play c".into()]));

    let (status, out, err) = tag_stdin(&["--format", "jsonl"], b"play a\n\xff\nplay b\n");
    assert_eq!((status, out.lines().count()), (Some(1), 1));
    assert!(err.contains("standard input:2") && err.contains("UTF-8"), "{err}");
    let (status, out, err) =
        tag_stdin(&["--format", "jsonl", "--keep-going"], b"play a\n\xff\nplay b\n");
    assert_eq!((status, out.lines().count()), (Some(0), 2));
    assert!(err.contains("standard input:2: skipped"), "{err}");
}

#[test]
fn an_answer_comes_before_the_next_line_is_given() {
    let mut child = start(&["--format", "jsonl"]);
    let mut input = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for text in ["play a", "play b"] {
        writeln!(input, "{text}").unwrap();
        input.flush().unwrap();
        // This would wait for ever if the answer waited for the end of the input.
        assert_eq!(json(&answers.next().unwrap().unwrap())["text"], text);
    }
    drop(input);
    assert!(answers.next().is_none() && child.wait().unwrap().success());
}

#[test]
fn json_lines_give_texts_or_tokens() {
    let input = b"{\"text\": \"play miles\"}\n{\"tokens\": [\"play\", \"miles davis\"]}\n";
    let (status, out, _) = tag_stdin(&["--jsonl", "--format", "conll"], input);
    assert_eq!((status, out.lines().count()), (Some(0), 6));
    let (status, _, err) = tag_stdin(&["--jsonl"], b"play\n");
    assert_eq!(status, Some(1));
    assert!(err.contains("expected a JSON object"), "{err}");
}

#[test]
fn nothing_to_learn_from_is_refused_with_a_remedy() {
    assert!(failure(&["tag", "hello"], 1).contains("--support FILE or --example"));
    let message = failure(&["tag", "--example", "no span here", "hello"], 1);
    assert!(
        message.contains("labels no slot") && message.contains("[nina simone](artist)"),
        "{message}"
    );
    assert!(failure(&["tag", "--support", "nowhere.txt", "hello"], 1).contains("nowhere.txt"));
    assert!(
        failure(&["tag", "--model", "nowhere", "--example", "[a](b)", "hello"], 1)
            .contains("nowhere")
    );
}

#[test]
fn odd_texts_are_tagged_without_a_fuss() {
    let long = "play some jazz ".repeat(1667); // 5,001 words
    let odd = ["x", "\u{1}\u{7}", "שלום עולם", "\u{202e}abc", "😀", "a\u{0}b", long.as_str()];
    let input = odd.join("\n");
    let (status, out, err) = tag_stdin(&["--format", "jsonl"], input.as_bytes());
    assert_eq!(status, Some(0), "{err}");
    // The line of control characters alone has no word.
    assert_eq!(out.lines().count(), odd.len() - 1);
    assert!(err.contains("overlapping windows"), "{err}");
}

#[test]
fn the_page_of_explanations_is_self_contained() {
    let page = success(&[
        "tag",
        "--support",
        &example("music.txt"),
        "--explain=html",
        "play <b>miles davis</b> tonight",
    ]);
    assert!(page.starts_with("<!doctype html>") && page.contains("&lt;"), "{page}");
    assert!(!page.contains("http") && !page.contains("<b>"), "{page}");
    assert!(tag(&["--explain", "html", "play a"]).starts_with("<!doctype html>"));
    assert!(tag(&["--explain", "play html"]).starts_with("play"));
}

#[test]
fn control_characters_never_reach_the_terminal() {
    let escape = '\u{1b}';
    let example = format!("play [nina{escape}](artist{escape}) {escape}now");
    let text = format!("play {escape}miles");
    let out = success(&["tag", "--example", &example, "--explain", &text]);
    assert!(out.contains("artist") && !out.contains(escape), "{out}");
}

#[test]
fn examples_are_read_as_the_data_commands_read_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("support.jsonl");
    // The label cuts `simone`.
    std::fs::write(&path, r#"{"text": "play nina simone", "label": [[5, 12, "artist"]]}"#).unwrap();
    let path = path.to_str().unwrap();
    let message = failure(&["tag", "--support", path, "play a"], 1);
    assert!(message.contains("--repair"), "{message}");
    success(&["tag", "--support", path, "--repair", "play a"]);
    let conll = tag(&["--words", "blank", "--format", "conll", "play a, b"]);
    assert!(conll.contains("a,"), "{conll}");
}

#[test]
fn a_thousand_slots_can_be_learned() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("support.txt");
    let lines: Vec<String> = (0..1000).map(|n| format!("word [thing{n}](slot{n})")).collect();
    std::fs::write(&path, lines.join("\n")).unwrap();
    let out = success(&["tag", "--support", path.to_str().unwrap(), "word thing7"]);
    assert!(out.starts_with("word"), "{out}");
}

/// An untrained model over the tiny encoder, saved in `dir`.
fn tiny_model(dir: &Path) {
    let encoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
    let settings = ModelSettings { context: Context::Separate, ..ModelSettings::default() };
    let tagger = model::from_encoder(&encoder, settings, 1).unwrap();
    model::save(&tagger, dir, Storage::F32).unwrap();
}

fn refusal_of_model(dir: &Path) -> String {
    let model = ["tag", "--model", dir.to_str().unwrap(), "play it"];
    failure(&[&model[..], &EXAMPLE[..]].concat(), 1)
}

#[test]
fn a_truncated_model_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["model.safetensors", "tokenizer.json", "config.json", "fewtag.json"] {
        tiny_model(dir.path());
        let path = dir.path().join(name);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        let message = refusal_of_model(dir.path());
        assert!(message.contains(name) && !message.contains("panicked"), "{name}: {message}");
    }
}

#[test]
fn a_model_with_a_weight_that_is_no_number_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    tiny_model(dir.path());
    let path = dir.path().join("model.safetensors");
    let mut bytes = std::fs::read(&path).unwrap();
    let sum = file::sha256(&bytes);
    let last = bytes.len() - 4;
    bytes[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    // Whoever wrote it also made the checksum fit.
    let description = dir.path().join("fewtag.json");
    let text = std::fs::read_to_string(&description).unwrap();
    std::fs::write(&description, text.replace(&sum, &file::sha256(&bytes))).unwrap();
    let message = refusal_of_model(dir.path());
    assert!(message.contains("not finite") && message.contains("model.safetensors"), "{message}");
}

#[test]
fn ten_thousand_examples_can_be_learned_from() {
    let dir = tempfile::tempdir().unwrap();
    tiny_model(dir.path());
    let support = dir.path().join("support.txt");
    let lines: Vec<String> = (0..10_000).map(|n| format!("play [song {n}](track) now")).collect();
    std::fs::write(&support, lines.join("\n")).unwrap();
    let [model, support] = [dir.path(), &support].map(|path| path.to_str().unwrap());
    let out = success(&["tag", "--model", model, "--support", support, "play song 7 now"]);
    assert_eq!(out.lines().count(), 1, "{out}");
}

#[test]
fn an_empty_support_file_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("empty.txt");
    for text in ["", "\n\n"] {
        std::fs::write(&path, text).unwrap();
        let message = failure(&["tag", "--support", path.to_str().unwrap(), "hello"], 1);
        assert!(message.contains("empty.txt"), "{message}");
    }
}

#[test]
fn a_line_that_cannot_be_tagged_does_not_spoil_its_batch() {
    let long_word = "x".repeat(2000); // More pieces than the encoder reads, in one word.
    let input = format!("play a\n{long_word}\nplay b\n");
    let (_, alone, _) = tag_stdin(&["--format", "jsonl"], b"play a\nplay b\n");
    let (status, together, err) =
        tag_stdin(&["--format", "jsonl", "--keep-going"], input.as_bytes());
    assert_eq!(status, Some(0), "{err}");
    let lines: Vec<&str> = together.lines().filter(|line| !line.contains(&long_word)).collect();
    assert_eq!(lines, alone.lines().collect::<Vec<_>>(), "{err}");
}

/// Many examples, one of them with this artist: more than are read at once without a look at the cache.
fn many_examples(artist: &str) -> String {
    let example =
        |i| format!("play [the song number {i}](title) of [artist {}](artist) please", i * 7);
    let mut examples: Vec<String> = (0..600).map(example).collect();
    examples[100] = format!("play something by [{artist}](artist)");
    examples.join("\n") + "\n"
}

/// The answer to a sentence, learned from this file with the cache at this place.
fn with_cache(cache: &Path, support: &Path, more: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_fewtag"))
        .args(["tag", "--precision", "int8", "--format", "jsonl", "--support"])
        .arg(support)
        .args(more)
        .arg("play the song number 12 of miles davis")
        .env("FEWTAG_CACHE", cache)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn examples_that_were_read_before_change_no_answer() {
    let directory = tempfile::tempdir().unwrap();
    let [support, cache] = ["support.txt", "cache"].map(|name| directory.path().join(name));
    let kept = cache.join("examples");
    std::fs::write(&support, many_examples("nina simone")).unwrap();
    let expected = with_cache(&cache, &support, &["--no-cache"]);
    assert!(!cache.exists(), "nothing is kept unasked");
    assert_eq!(with_cache(&cache, &support, &[]), expected);
    let bytes = std::fs::read(&kept).unwrap();
    assert_eq!(with_cache(&cache, &support, &[]), expected);
    assert!(std::fs::read(&kept).unwrap() == bytes, "nothing was new");

    std::fs::write(&support, many_examples("miles davis")).unwrap();
    let changed = with_cache(&cache, &support, &[]);
    assert_eq!(changed, with_cache(&cache, &support, &["--no-cache"]));
    assert_ne!(changed, expected);
    let grown = std::fs::metadata(&kept).unwrap().len() - bytes.len() as u64;
    assert!((1..40_000).contains(&grown), "one example was added, {grown} bytes");

    std::fs::write(&kept, &bytes[..bytes.len() / 2]).unwrap();
    assert_eq!(with_cache(&cache, &support, &[]), changed, "half a file");
    assert_eq!(with_cache(&support.join("below"), &support, &[]), changed, "no directory");
    assert_eq!(with_cache(Path::new(""), &support, &[]), changed, "no place");
}
