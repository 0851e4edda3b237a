//! `fewtag tag --output`: files of rows, and runs that are killed.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::{example, failure, fewtag, success};

#[test]
fn a_killed_run_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let row = |i: usize| format!("{{\"id\":{i},\"text\":\"play miles davis {i}\"}}\n");
    std::fs::write(path("in.jsonl"), (0..400).map(row).collect::<String>()).unwrap();
    let music = example("music.txt");
    let args = |output: &str| {
        let rest = ["--output", output, "--rows", "8"].map(ToOwned::to_owned);
        let first = ["tag", "--support", &music, "--input", &path("in.jsonl")];
        [first.map(ToOwned::to_owned).to_vec(), rest.to_vec()].concat()
    };
    let (whole, output) = (path("whole.jsonl"), path("out.jsonl"));
    let words = args(&whole);
    success(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let mut child = Command::new(env!("CARGO_BIN_EXE_fewtag"))
        .args(args(&output))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let second_part = dir.path().join("out.jsonl.partial/000001");
    while !second_part.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it could be killed");
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!dir.path().join("out.jsonl").exists());
    let words = args(&output);
    let again = fewtag(&words.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(again.status.success());
    let told = String::from_utf8(again.stderr).unwrap();
    assert!(told.contains("rows were done by an earlier run"), "{told}");
    assert_eq!(std::fs::read(output).unwrap(), std::fs::read(whole).unwrap());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3, "no part is left");
}

#[test]
fn what_makes_no_sense_is_told_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (input, output) = (path("in.jsonl"), path("out.jsonl"));
    std::fs::write(&input, "{\"text\": \"play sade\"}\n").unwrap();
    let none = failure(&tag(&["--output", &output]), 1);
    assert!(none.contains("give it with --input"), "{none}");
    let other = failure(&tag(&["--input", &input, "--output", &path("out.parquet")]), 1);
    assert!(other.contains("Parquet becomes Parquet"), "{other}");
    let itself = failure(&tag(&["--input", &input, "--output", &input]), 1);
    assert!(itself.contains("it is also read"), "{itself}");
    let usage = failure(&tag(&["--input", &input, "--output", &output, "--explain"]), 2);
    assert!(usage.contains("--explain"), "{usage}");
    success(&tag(&["--input", &input, "--output", &output]));
    let again = failure(&tag(&["--input", &input, "--output", &output]), 1);
    assert!(again.contains("--force replaces it"), "{again}");
    success(&tag(&["--input", &input, "--output", &output, "--force"]));
}

fn tag<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    [&["tag", "--label", "artist"], rest].concat()
}
