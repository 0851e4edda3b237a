//! The binary, run as its users run it.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod data;
mod domain;
mod encoder;
mod evaluate;
mod model;
mod outputs;
mod pipes;
mod reproduce;
mod sample;
mod score;
mod serve;
mod sources;
mod support;
mod table;
mod tag;
mod train;
mod tune;
mod tune_faults;

use std::path::Path;
use std::process::{Command, Output};

/// Runs `fewtag` with these arguments.
fn fewtag(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fewtag")).args(args).output().unwrap()
}

/// What a run prints that must succeed.
fn success(args: &[&str]) -> String {
    let output = fewtag(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The message of a run that must fail with this exit status and print nothing else.
fn failure(args: &[&str], status: i32) -> String {
    let output = fewtag(args);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), output.stdout.len()),
        (Some(status), 0),
        "{args:?}: {message}"
    );
    message
}

/// The path of a file in `examples/`.
fn example(name: &str) -> String {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    examples.join(name).to_str().unwrap().to_owned()
}

#[test]
fn help_ends_in_two_examples_that_run() {
    let directory = tempfile::tempdir().unwrap();
    let examples = directory.path().join("examples");
    std::fs::create_dir(&examples).unwrap();
    for name in ["weather.conll", "weather_predicted.conll", "music.conll"] {
        std::fs::copy(example(name), examples.join(name)).unwrap();
    }
    let commands: [&[&str]; 5] =
        [&["sample"], &["score"], &["data", "check"], &["data", "convert"], &["data", "stats"]];
    for command in commands {
        let help = success(&[command, &["--help"]].concat());
        let lines: Vec<&str> = help.split_once("Examples:\n").unwrap().1.lines().collect();
        assert_eq!(lines.len(), 2, "{help}");
        for line in lines {
            let args: Vec<&str> = line.split_whitespace().skip(1).collect();
            let mut fewtag = Command::new(env!("CARGO_BIN_EXE_fewtag"));
            let output = fewtag.args(&args).current_dir(directory.path()).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}
