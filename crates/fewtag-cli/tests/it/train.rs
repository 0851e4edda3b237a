//! `fewtag train` and `fewtag crossval`: what they write, refuse and survive.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fewtag::Random;
use tempfile::TempDir;

use crate::{failure, success};

fn testdata(name: &str) -> String {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    testdata.join(name).to_str().unwrap().to_owned()
}

/// A directory with `train.toml`: a short run on the tiny encoder.
fn run_dir(extra: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (encoder, episodes) = (testdata("tiny-encoder"), testdata("tiny-episodes.json"));
    let config = format!(
        "encoder = '{encoder}'\n\
         data = {{ train = ['{episodes}'], dev = ['{episodes}'] }}\n\
         model = {{ context = 'separate', scorer = 'prototype', similarity = 'projection' }}\n\
         evaluation = {{ every = 5, episodes = 1, queries = 2, patience = 0 }}\n\
         optimizer.encoder_rate = 1e-3\noptimizer.batch = 1\n{extra}\n"
    );
    std::fs::write(dir.path().join("train.toml"), config).unwrap();
    dir
}

fn path(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).to_str().unwrap().to_owned()
}

fn train(dir: &TempDir, out: &str, more: &[&str]) -> String {
    let (config, out) = (path(dir, "train.toml"), path(dir, out));
    success(&[&["train", "--config", &config, "--out", &out], more].concat())
}

#[test]
fn a_run_writes_a_model_with_its_card_curves_and_metrics() {
    let dir = run_dir("optimizer.updates = 4");
    let printed = train(&dir, "out", &["--set", "model.label_names=0.5"]);
    assert!(printed.contains("dev data") && printed.contains("(average)"), "{printed}");
    let out = |name: &str| std::fs::read_to_string(dir.path().join("out").join(name)).unwrap();
    assert_eq!(out("metrics.jsonl").lines().count(), 4);
    assert!(out("train.toml").contains("label_names = 0.5"));
    assert!(out("README.md").contains("4 updates"));
    assert!(out("README.md").contains("](transitions.svg)"));
    for picture in ["curves.svg", "transitions.svg"] {
        assert!(out(picture).starts_with("<svg"));
    }
    assert!(!dir.path().join("out/checkpoints").exists());
    let episodes = testdata("tiny-episodes.json");
    success(&["evaluate", &path(&dir, "out"), &episodes]);
}

#[test]
fn a_directory_with_a_run_is_not_overwritten() {
    let dir = run_dir("optimizer.updates = 2");
    train(&dir, "out", &[]);
    let (config, out) = (path(&dir, "train.toml"), path(&dir, "out"));
    let message = failure(&["train", "--config", &config, "--out", &out], 1);
    assert!(message.contains("already holds a run"), "{message}");
    let message = failure(&["train", "--config", &config, "--out", &out, "--resume"], 1);
    assert!(message.contains("nothing to resume"), "{message}");
}

#[test]
fn wrong_settings_are_refused_with_file_and_field() {
    let dir = run_dir("optimizer.lr = 1");
    let (config, out) = (path(&dir, "train.toml"), path(&dir, "out"));
    let message = failure(&["train", "--config", &config, "--out", &out], 1);
    assert!(message.contains("train.toml") && message.contains("`lr`"), "{message}");
    let set = ["train", "--config", &config, "--out", &out, "--set", "seed"];
    assert!(failure(&set, 2).contains("FIELD=VALUE"));
}

/// Starts a run that can be resumed.
fn start(dir: &TempDir, out: &str) -> Child {
    let args =
        ["train", "--resume", "--config", &path(dir, "train.toml"), "--out", &path(dir, out)];
    let mut fewtag = Command::new(env!("CARGO_BIN_EXE_fewtag"));
    fewtag.args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn n_lines(metrics: &Path) -> usize {
    std::fs::read_to_string(metrics).map_or(0, |text| text.lines().count())
}

#[test]
fn a_run_killed_twenty_times_ends_in_the_same_bytes() {
    // So many updates that no processor is through with them before the last kill.
    const KILLS: usize = 20;
    const UPDATES: usize = 600;
    let dir = run_dir(&format!("optimizer.updates = {UPDATES}"));
    train(&dir, "whole", &[]);
    let metrics = dir.path().join("killed/metrics.jsonl");
    let mut random = Random::new(20);
    for kill in 0..KILLS {
        let mut child = start(&dir, "killed");
        // Some die while they start or before their first checkpoint, most somewhere behind it.
        let until = n_lines(&metrics) / 5 * 5 + random.below(8);
        while kill % 5 != 0 && n_lines(&metrics) < until && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        // As long as it takes to start, or as a few updates take.
        let at_most = if kill % 5 == 0 { 30_000 } else { 5_000 };
        std::thread::sleep(Duration::from_micros(random.below(at_most) as u64));
        assert!(child.try_wait().unwrap().is_none(), "the run ended before kill {kill}");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    train(&dir, "killed", &["--resume"]);
    for name in ["model.safetensors", "fewtag.json", "README.md"] {
        let read = |out: &str| std::fs::read(dir.path().join(out).join(name)).unwrap();
        assert!(read("whole") == read("killed"), "{name} differs");
    }
    assert_eq!(n_lines(&metrics), UPDATES);
}

/// The limit on the size of files stands for a full disk: writing fails in the same way.
#[cfg(unix)]
#[test]
fn a_full_disk_stops_the_run_and_the_last_checkpoint_survives() {
    let dir = run_dir("optimizer.updates = 40");
    train(&dir, "whole", &[]);
    let mut child = start(&dir, "full");
    while n_lines(&dir.path().join("full/metrics.jsonl")) < 12 {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();

    // Settings and metrics stay below it, the arrays of a checkpoint do not.
    let limit = "trap '' XFSZ; ulimit -f 64; exec \"$@\"";
    let fewtag = env!("CARGO_BIN_EXE_fewtag");
    let (config, out) = (path(&dir, "train.toml"), path(&dir, "full"));
    let args = ["-c", limit, "sh", fewtag, "train", "--config", &config, "--out", &out, "--resume"];
    let output = Command::new("sh").args(args).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("cannot access") && message.contains(".safetensors"), "{message}");

    train(&dir, "full", &["--resume"]);
    let read = |out: &str| std::fs::read(dir.path().join(out).join("model.safetensors")).unwrap();
    assert!(read("whole") == read("full"));
}

#[test]
fn temporary_files_of_a_killed_run_are_gone_after_the_next_start() {
    let dir = run_dir("optimizer.updates = 2");
    let checkpoints = dir.path().join("out/checkpoints");
    std::fs::create_dir_all(&checkpoints).unwrap();
    let leftovers = [checkpoints.join(".fewtag-a"), dir.path().join("out/.fewtag-b")];
    for path in &leftovers {
        std::fs::write(path, "half").unwrap();
    }
    train(&dir, "out", &[]);
    assert!(leftovers.iter().all(|path| !path.exists()));
}

#[test]
fn a_damaged_checkpoint_is_named_and_the_one_before_it_used() {
    let dir = run_dir("optimizer.updates = 40");
    train(&dir, "whole", &[]);
    let mut child = start(&dir, "damaged");
    while n_lines(&dir.path().join("damaged/metrics.jsonl")) < 12 {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let entries = std::fs::read_dir(dir.path().join("damaged/checkpoints")).unwrap();
    let mut states: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    states
        .retain(|path| path.with_extension("json").exists() && path.extension().unwrap() != "json");
    let newest = states.iter().max().unwrap();
    std::fs::write(newest, "not tensors").unwrap();

    let args = ["--config", &path(&dir, "train.toml"), "--out", &path(&dir, "damaged"), "--resume"];
    let output = crate::fewtag(&[&["train"], &args[..]].concat());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{message}");
    assert!(message.contains("is damaged") && message.contains("older checkpoint"), "{message}");
    let read = |out: &str| std::fs::read(dir.path().join(out).join("model.safetensors")).unwrap();
    assert!(read("whole") == read("damaged"));
}

#[test]
fn crossval_holds_out_every_domain_once_and_does_not_repeat_a_cell() {
    let dir = run_dir("optimizer.updates = 2");
    let domains = dir.path().join("domains");
    std::fs::create_dir(&domains).unwrap();
    for name in ["a.json", "b.json", "c.json"] {
        std::fs::copy(testdata("tiny-episodes.json"), domains.join(name)).unwrap();
    }
    let (config, out) = (path(&dir, "train.toml"), path(&dir, "out"));
    let args =
        ["crossval", "--config", &config, "--out", &out, "--seeds", "0,1", &path(&dir, "domains")];
    let printed = success(&args);
    assert!(
        ["a  ", "b  ", "c  ", "(average)"].iter().all(|row| printed.contains(row)),
        "{printed}"
    );
    let result = std::fs::read_to_string(dir.path().join("out/c/seed-1/result.json")).unwrap();
    assert!(result.contains("c.json") && result.contains("a.json"), "{result}");
    let cell = dir.path().join("out/a/seed-0");
    let trained = std::fs::metadata(cell.join("model.safetensors")).unwrap().modified().unwrap();
    std::fs::remove_file(cell.join("result.json")).unwrap();
    assert_eq!(success(&args), printed, "a trained cell is only scored again");
    let still = std::fs::metadata(cell.join("model.safetensors")).unwrap().modified().unwrap();
    assert_eq!(trained, still);
}
