//! `fewtag support check` and `suggest` with the built-in model.

use serde_json::Value;

use crate::{example, failure, success};

fn file(directory: &tempfile::TempDir, name: &str, text: &str) -> String {
    let path = directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_check_names_line_finding_and_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let text = "# my examples\nplay [nina simone](artist)\n\nplay nina simone\nput on [some jazz](genre)\n";
    let path = file(&directory, "support.txt", text);
    let report = success(&["support", "check", &path]);
    assert!(report.contains(&format!("{path}:2")), "{report}");
    assert!(report.contains("labelled differently") && report.contains("delete"), "{report}");
    let message = failure_after_report(&["support", "check", &path, "--strict"]);
    assert!(message.contains("--strict"), "{message}");
}

fn failure_after_report(args: &[&str]) -> String {
    let output = crate::fewtag(args);
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_check_is_json_for_programs() {
    let report = success(&["support", "check", &example("music.txt"), "--format", "json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["n_sentences"].as_u64(), report["n_judged"].as_u64());
    assert_eq!(report["lines"].as_array().unwrap().len() as u64, report["n_sentences"]);
    for finding in report["findings"].as_array().unwrap() {
        assert!(finding["message"].is_string() && finding["remedy"].is_string(), "{finding}");
    }
}

#[test]
fn suggestions_are_printed_with_provisional_labels_in_every_form() {
    let directory = tempfile::tempdir().unwrap();
    let pool =
        "what is the weather like\nturn it up\n\nplay some billie holiday tonight\nplay it\n";
    let pool = file(&directory, "pool.txt", pool);
    let support = example("music.txt");
    let suggest = |more: &[&str]| {
        success(&[&["support", "suggest", &support, "--pool", &pool, "-n", "2"], more].concat())
    };
    let text = suggest(&[]);
    assert!(text.starts_with("  1. ") && text.contains("stands for"), "{text}");
    let json: Value = serde_json::from_str(&suggest(&["--format", "json"])).unwrap();
    let chosen = json.as_array().unwrap();
    assert_eq!(chosen.len(), 2);
    assert!(chosen[0]["reason"]["unsure"].as_f64().unwrap() > 0.0, "{json}");
    assert!(chosen[0]["spans"].is_array() && chosen[0]["number"].is_u64(), "{json}");
    let inline = file(&directory, "inline.txt", &suggest(&["--format", "inline"]));
    success(&["data", "check", &inline, "--format", "inline"]); // Without any label it could be plain text.
}

#[test]
fn a_bad_line_of_the_pool_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let pool = directory.path().join("pool.txt");
    std::fs::write(&pool, b"play it\n\xff\n").unwrap();
    let pool = pool.to_str().unwrap();
    let message = failure(&["support", "suggest", &example("music.txt"), "--pool", pool], 1);
    assert!(message.contains("pool.txt:2") && message.contains("UTF-8"), "{message}");
}
