//! The binary, run as its users run it.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod encoder;
mod sample;
mod score;

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
