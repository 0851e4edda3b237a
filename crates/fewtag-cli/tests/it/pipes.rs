//! A reader that has seen enough (`fewtag … | head`) is no failure.

use std::process::{Command, Stdio};

use fewtag::data::Format;

use crate::evaluate::{model, path, testdata};
use crate::example;

/// Runs with an output that is closed before the first byte comes.
fn into_nothing(args: &[&str]) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fewtag"))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), message.as_str()), (Some(0), ""), "{args:?}");
}

#[test]
fn every_format_of_answers_ends_quietly() {
    let model = model(1);
    let dir = path(&model, "");
    let names = Format::ALL.map(Format::name);
    let formats = names.iter().chain(&["text", "json", "jsonl"]);
    let example = ["--example", "play [nina simone](artist) [now](time)"];
    let (pool, support) = (path(&model, "pool.txt"), crate::example("music.txt"));
    // More than the output buffer holds, so that a write in the midst fails and not only the flush after it.
    let lines = "will it rain in paris tomorrow or will it only be cloudy\n".repeat(200);
    std::fs::write(&pool, lines).unwrap();
    for format in formats {
        let tag = ["tag", "--model", &dir, "--format", format, "--input", &pool];
        into_nothing(&[&tag[..], &example].concat());
        let suggest = ["support", "suggest", &support, "--pool", &pool, "--model", &dir];
        into_nothing(&[&suggest[..], &["--format", format]].concat());
    }
    let explained = ["tag", "--model", &dir, "--explain", "html", "--input", &pool];
    into_nothing(&[&explained[..], &example].concat());
}

#[test]
fn every_format_of_data_ends_quietly() {
    let dir = tempfile::tempdir().unwrap();
    let large = path(&dir, "large.conll");
    std::fs::write(&large, "rain\tO\nin\tO\nparis\tB-city\n\n".repeat(5_000)).unwrap();
    for format in Format::ALL {
        for file in [&large, &example("weather.conll")] {
            let convert = ["data", "convert", file, "-", "--to", format.name(), "--words", "blank"];
            let mut child = Command::new(env!("CARGO_BIN_EXE_fewtag"))
                .args(convert)
                .stdout(Stdio::piped())
                .stderr(Stdio::null()) // It may say what is lost.
                .spawn()
                .unwrap();
            drop(child.stdout.take());
            assert_eq!(child.wait().unwrap().code(), Some(0), "{convert:?}");
        }
    }
}

#[test]
fn every_command_ends_quietly() {
    let model = model(1);
    let (dir, weather) = (path(&model, ""), example("weather.conll"));
    let (encoder, episodes) = (testdata("tiny-encoder"), testdata("tiny-episodes.json"));
    let out = path(&model, "episodes.json");
    for args in [
        &["data", "check", &weather][..],
        &["data", "check", &weather, "--output", "json"],
        &["data", "stats", &weather],
        &["score", &weather, &example("weather_predicted.conll")],
        &["sample", &weather, "--queries", "5", "--out", &out],
        &["encoder", "info", &encoder],
        &["evaluate", &dir, &episodes],
        &["model", "calibrate", &dir, &episodes, "--dry-run"],
        &["support", "check", &example("music.txt"), "--model", &dir],
        &["support", "check", &example("music.txt"), "--model", &dir, "--format", "json"],
        &["completions", "bash"],
        &["completions", "elvish"],
        &["completions", "fish"],
        &["completions", "powershell"],
        &["completions", "zsh"],
        &["completions", "man"],
        &["--help"],
        &["tag", "--help"],
        &["--version"],
    ] {
        into_nothing(args);
    }
}
