//! Faults of `fewtag tune`: kills, a full disk, odd sentences, numbers that run away. Clear words, and nothing is lost.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::tune::{model, save_model, sentences, start};
use crate::{failure, fewtag, success};

fn path(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).to_str().unwrap().to_owned()
}

#[test]
fn a_run_that_is_killed_twenty_times_ends_in_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    let model = model(dir.path());
    let support = sentences(dir.path(), "support.txt", 0..10);
    let (whole, killed) = (path(&dir, "whole.fewtag"), path(&dir, "killed.fewtag"));
    success(&["tune", "--support", &support, "--model", &model, "--out", &whole]);
    let resume = ["tune", "--support", &support, "--model", &model, "--out", &killed, "--resume"];
    let kept = dir.path().join("killed.fewtag.tuning");
    for n_kills in 0..20 {
        let before = contents(&kept);
        let mut child = start(&resume);
        while contents(&kept) == before {
            assert!(
                child.try_wait().unwrap().is_none(),
                "it came to its end after {n_kills} kills"
            );
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!Path::new(&killed).exists(), "after {n_kills} kills");
    }
    success(&resume);
    assert!(std::fs::read(&killed).unwrap() == std::fs::read(&whole).unwrap());
    assert!(!kept.exists());
}

/// A record, and checkpoints with their sizes.
type Contents = (Vec<u8>, Vec<(PathBuf, u64)>);

/// What a run has found out so far, and the names and sizes of its checkpoints; temporary files are no progress.
fn contents(kept: &Path) -> Option<Contents> {
    let record = std::fs::read(kept.join("record.json")).ok()?;
    let mut files = Vec::new();
    for directory in std::fs::read_dir(kept).ok()?.flatten() {
        for file in std::fs::read_dir(directory.path()).into_iter().flatten().flatten() {
            let is_temporary = file.file_name().to_string_lossy().starts_with('.');
            if let (false, Ok(about)) = (is_temporary, file.metadata()) {
                files.push((file.path(), about.len()));
            }
        }
    }
    files.sort();
    Some((record, files))
}

/// The limit on the size of files stands for a full disk: writing fails in the same way.
#[cfg(unix)]
#[test]
fn a_full_disk_is_told_with_the_file_and_the_run_goes_on_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let model = model(dir.path());
    let support = sentences(dir.path(), "support.txt", 0..24);
    let (whole, full) = (path(&dir, "whole.fewtag"), path(&dir, "full.fewtag"));
    let tune = |out: &str, more: &[&str]| {
        let args = ["tune", "--support", &support, "--model", &model, "--out", out, "--seed", "3"];
        [&args[..], more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let run = |args: &[String]| {
        success(&args.iter().map(String::as_str).collect::<Vec<_>>());
    };
    run(&tune(&whole, &[]));
    // The record of what was judged stays below it, the arrays of a checkpoint do not.
    let limit = "trap '' XFSZ; ulimit -f 16; exec \"$@\"";
    let output = std::process::Command::new("sh")
        .args(["-c", limit, "sh", env!("CARGO_BIN_EXE_fewtag")])
        .args(tune(&full, &[]))
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("cannot access") && message.contains("full.fewtag.tuning"),
        "{message}"
    );
    assert!(!Path::new(&full).exists(), "no half of a domain");
    assert!(dir.path().join("full.fewtag.tuning/record.json").exists());

    run(&tune(&full, &["--resume"]));
    assert!(std::fs::read(&full).unwrap() == std::fs::read(&whole).unwrap());
}

#[test]
fn contradictory_sentences_are_told_and_tuned_with_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (support, out) = (path(&dir, "odd.txt"), path(&dir, "odd.fewtag"));
    let mut text = "go to [rome](city)\ngo to [rome](genre)\n".repeat(3);
    text.extend((0..9).map(|i| format!("hear [jazz](genre) in [paris](city) now{i}\n")));
    std::fs::write(&support, text).unwrap();
    let model = model(dir.path());
    let args = ["tune", "--support", &support, "--model", &model, "--out", &out];
    let output = fewtag(&[&args[..], &["--minutes", "0.05"]].concat());
    let [said, warned] = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    assert!(output.status.success(), "{warned}");
    assert!(warned.contains("6 sentences have the words of another and other labels"), "{warned}");
    assert!(said.contains("odd.fewtag: 15 examples"), "{said}");
}

#[test]
fn a_sentence_that_is_too_long_is_named_and_nothing_is_left_behind() {
    let dir = tempfile::tempdir().unwrap();
    let (support, out) = (sentences(dir.path(), "long.txt", 0..20), path(&dir, "long.fewtag"));
    let mut text = std::fs::read_to_string(&support).unwrap();
    text.extend(["far ".repeat(600).as_str(), "[rome](city)\n"]);
    std::fs::write(&support, text).unwrap();
    let model = model(dir.path());
    let message = failure(&["tune", "--support", &support, "--model", &model, "--out", &out], 1);
    assert!(message.contains("support sentence 21"), "{message}");
    assert!(!Path::new(&out).exists() && !dir.path().join("long.fewtag.tuning").exists());
}

#[test]
fn numbers_that_run_away_are_told_and_the_domain_is_saved_untuned() {
    let dir = tempfile::tempdir().unwrap();
    let (support, out) = (sentences(dir.path(), "wild.txt", 0..12), path(&dir, "wild.fewtag"));
    let model = path(&dir, "wild");
    save_model(Path::new(&model), |tagger| tagger.with_scale(f32::MAX));
    let said = success(&["tune", "--support", &support, "--model", &model, "--out", &out]);
    assert!(said.contains("a run was given up: training diverged"), "{said}");
    assert!(said.contains("the domain is saved untuned"), "{said}");
    let saved = fewtag::DomainFile::read(Path::new(&out)).unwrap();
    assert!(saved.figures().is_none());
    assert!(success(&["domain", "show", &out]).contains("12 examples"));
}
