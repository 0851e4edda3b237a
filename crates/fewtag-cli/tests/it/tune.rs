//! `fewtag tune`, and tuned domains where other commands read them.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::{failure, success};

/// A tiny model that was never trained, so that there is something to learn.
pub(crate) fn model(dir: &Path) -> String {
    let dir = dir.join("model");
    save_model(&dir, |tagger| tagger);
    dir.to_str().unwrap().to_owned()
}

/// The same in this directory, changed.
pub(crate) fn save_model(dir: &Path, change: impl FnOnce(fewtag::Tagger) -> fewtag::Tagger) {
    let encoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
    let settings = fewtag::ModelSettings {
        context: fewtag::Context::Separate,
        scorer: fewtag::emission::ScorerKind::Prototype,
        similarity: fewtag::emission::Similarity::Projection,
        label_names: 0.5,
        borrow: true,
        constrained: true,
        legal_loss: true,
        ..fewtag::ModelSettings::default()
    };
    let tagger = change(fewtag::model::from_encoder(&encoder, settings, 1).unwrap());
    fewtag::model::save(&tagger, dir, fewtag::encoder::Storage::Int8).unwrap();
}

/// Sentences whose labels follow from the word before.
pub(crate) fn sentences(dir: &Path, name: &str, numbers: std::ops::Range<usize>) -> String {
    let words = ["paris", "jazz", "noon", "rome", "blues", "nine"];
    let mut text = String::new();
    for i in numbers {
        let [a, b] = [words[i % 6], words[(i / 2 + 1) % 6]];
        let line = match i % 3 {
            0 => format!("go to [{a}](city) now{i} and hear [{b}](genre)"),
            1 => format!("hear some [{b} {a}](genre) to day{i}"),
            _ => format!("at [{a}](time) go to [{b}](city) please{i}"),
        };
        writeln!(text, "{line}").unwrap();
    }
    let path = dir.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_domain_is_tuned_saved_shown_judged_and_used() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (model, file) = (model(dir.path()), path("music.fewtag"));
    let support = sentences(dir.path(), "support.txt", 0..24);
    let test = sentences(dir.path(), "test.txt", 30..60);
    let given = ["tune", "--support", &support, "--model", &model, "--out", &file];
    let tune = [&given[..], &["--minutes", "0.05"]].concat();
    let said = success(&tune);
    assert!(said.contains("all labels") && said.contains("± standard error"), "{said}");
    assert!(
        said.contains("what was tried") && said.contains("music.fewtag: 24 examples"),
        "{said}"
    );
    assert!(!dir.path().join("music.fewtag.tuning").exists());

    assert!(failure(&tune, 1).contains("--force replaces it"));

    let shown = success(&["domain", "show", &file]);
    assert!(shown.contains("24 examples"), "{shown}");
    let of = |table: &str| {
        success(&["evaluate", "--domain", &file, "--model", &model, &test, "--table", table])
    };
    assert!(of("scores").contains("music") && of("slots").contains("all slots"));
    let text = "go to oslo now";
    assert!(success(&["tag", "--domain", &file, "--model", &model, text]).contains("oslo"));
    let more = path("more.fewtag");
    let example = "pay with [cash](means) today";
    success(&["domain", "save", "--domain", &file, "--model", &model, "--example", example, &more]);
    let shown = success(&["domain", "show", &more]);
    assert!(shown.contains("25 examples") && shown.contains("means"), "{shown}");
}

#[test]
fn what_is_too_little_or_in_the_way_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (model, file) = (model(dir.path()), path("music.fewtag"));
    let few = sentences(dir.path(), "few.txt", 0..7);
    let message = failure(&["tune", "--support", &few, "--model", &model, "--out", &file], 1);
    assert!(
        message.contains("7 labelled sentences") && message.contains("label more"),
        "{message}"
    );
    assert!(!dir.path().join("music.fewtag.tuning").exists());
    let support = sentences(dir.path(), "support.txt", 0..20);
    let none = path("none/music.fewtag");
    assert!(failure(&["tune", "--support", &support, "--out", &none], 1).contains("none"));
    let minutes = ["tune", "--support", &support, "--out", &file, "--minutes", "0"];
    assert!(failure(&minutes, 2).contains("--minutes"));
    std::fs::create_dir(dir.path().join("music.fewtag.tuning")).unwrap();
    let there = failure(&["tune", "--support", &support, "--model", &model, "--out", &file], 1);
    assert!(there.contains("--resume goes on"), "{there}");
}

pub(crate) fn start(args: &[&str]) -> Child {
    let mut fewtag = Command::new(env!("CARGO_BIN_EXE_fewtag"));
    fewtag.args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_the_best_so_far_and_resume_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let model = model(dir.path());
    let support = sentences(dir.path(), "support.txt", 0..40);
    let file = path("music.fewtag");
    let given = ["tune", "--support", &support, "--model", &model, "--out", &file];
    let args = [&given[..], &["--minutes", "0.1"]].concat();
    let mut child = start(&args);
    let kept = dir.path().join("music.fewtag.tuning/record.json");
    while !kept.exists() && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let status = child.wait().unwrap();
    assert!(status.success(), "it ends as it should: {status}");
    let shown = success(&["domain", "show", &file]);
    assert!(shown.contains("40 examples"), "{shown}");
    if kept.exists() {
        success(&[&args[..], &["--resume"]].concat());
    }
    assert!(!kept.exists());
}
