//! No command writes over what it reads, or over what is there without being told.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::evaluate::{model, path, testdata};
use crate::{example, failure, success};

/// A directory with a copy of a corpus, `c.conll`, and a link to it, `link.conll`.
fn corpus() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::copy(example("weather.conll"), dir.path().join("c.conll")).unwrap();
    fs::hard_link(dir.path().join("c.conll"), dir.path().join("link.conll")).unwrap();
    dir
}

/// The files of a directory, by name, with their content.
fn content(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.to_str().unwrap().to_owned(), fs::read(&path).unwrap()))
        .collect();
    files.sort();
    files
}

#[test]
fn an_input_is_never_overwritten() {
    let dir = corpus();
    let (before, file) = (content(dir.path()), path(&dir, "c.conll"));
    for output in [path(&dir, "c.conll"), path(&dir, "link.conll")] {
        for args in [
            &["sample", &file, "--queries", "5", "--out", &output, "--force"][..],
            &["data", "convert", &file, &output, "--force"],
        ] {
            let message = failure(args, 1);
            assert!(message.contains("it is also read"), "{args:?}: {message}");
            assert_eq!(content(dir.path()), before, "{args:?}");
        }
    }
    // The manifest beside the episodes would fall on it too.
    fs::rename(&file, path(&dir, "c.manifest.json")).unwrap();
    let (file, out) = (path(&dir, "c.manifest.json"), path(&dir, "c.json"));
    let args = ["sample", &file, "--format", "conll", "--queries", "5", "--out", &out, "--force"];
    assert!(failure(&args, 1).contains("it is also read"));
    assert!(!Path::new(&out).exists());
}

#[test]
fn an_existing_output_needs_force() {
    let dir = corpus();
    fs::write(path(&dir, "old.conll"), "labelled O\nby O\nhand O\n").unwrap();
    let (before, file, old) = (content(dir.path()), path(&dir, "c.conll"), path(&dir, "old.conll"));
    for args in
        [&["sample", &file, "--queries", "5", "--out", &old][..], &["data", "convert", &file, &old]]
    {
        let message = failure(args, 1);
        assert!(message.contains("old.conll` is there already: --force replaces it"), "{message}");
        assert_eq!(content(dir.path()), before, "{args:?}");
        success(&[args, &["--force"]].concat());
        assert_ne!(content(dir.path()), before, "{args:?}");
        fs::write(&old, "labelled O\nby O\nhand O\n").unwrap();
        let _ = fs::remove_file(path(&dir, "old.manifest.json"));
    }
}

#[test]
fn an_evaluation_overwrites_neither_model_nor_episodes_nor_itself() {
    let model = model(1);
    let (dir, episodes) = (path(&model, ""), path(&model, "episodes.json"));
    fs::copy(testdata("tiny-episodes.json"), &episodes).unwrap();
    let before = content(model.path());
    let weights = path(&model, "model.safetensors");
    for (flags, expected) in [
        (&["--results", &weights, "--force"][..], "it is also read"),
        (&["--predictions", &episodes, "--force"], "it is also read"),
        (&["--results", &path(&model, "x"), "--predictions", &path(&model, "x")], "written twice"),
        (&["--results", &path(&model, "none/x")], "none/x"),
    ] {
        let message = failure(&[&["evaluate", &dir, &episodes], flags].concat(), 1);
        assert!(message.contains(expected), "{message}");
        assert_eq!(content(model.path()), before, "{flags:?}");
    }
    let results = path(&model, "results.json");
    let evaluate = ["evaluate", &dir, &episodes, "--results", &results];
    success(&evaluate);
    assert!(failure(&evaluate, 1).contains("--force replaces it"));
    success(&[&evaluate[..], &["--force"]].concat());
}

#[test]
fn a_model_is_not_converted_over_itself_or_another() {
    let (one, two) = (model(1), model(2));
    let (from, to) = (path(&one, ""), path(&two, ""));
    let before = [content(one.path()), content(two.path())];
    let convert = |to: &str, more: &[&str]| {
        [&["model", "convert", &from, to, "--storage", "int8"], more].concat().join("\n")
    };
    let refused = |args: String| failure(&args.split('\n').collect::<Vec<_>>(), 1);
    assert!(refused(convert(&from, &["--force"])).contains("it is also read"));
    assert!(refused(convert(&path(&one, "."), &["--force"])).contains("it is also read"));
    assert!(refused(convert(&to, &[])).contains("--force replaces it"));
    assert_eq!([content(one.path()), content(two.path())], before);
    success(&convert(&to, &["--force"]).split('\n').collect::<Vec<_>>());
    assert_ne!(content(two.path()), before[1]);
}

#[test]
fn training_does_not_write_into_its_encoder_or_another_model() {
    let dir = tempfile::tempdir().unwrap();
    let encoder = path(&dir, "encoder");
    fs::create_dir(&encoder).unwrap();
    for entry in fs::read_dir(testdata("tiny-encoder")).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), Path::new(&encoder).join(entry.file_name())).unwrap();
    }
    let episodes = testdata("tiny-episodes.json");
    let config = path(&dir, "train.toml");
    let text =
        format!("encoder = '{encoder}'\ndata.train = ['{episodes}']\noptimizer.updates = 1\n");
    fs::write(&config, text).unwrap();
    let before = content(Path::new(&encoder));
    let message = failure(&["train", "--config", &config, "--out", &encoder], 1);
    assert!(message.contains("it is also read"), "{message}");
    assert_eq!(content(Path::new(&encoder)), before);
    let other = path(&dir, "other");
    fs::create_dir(&other).unwrap();
    fs::write(path(&dir, "other/README.md"), "mine").unwrap();
    let message = failure(&["train", "--config", &config, "--out", &other], 1);
    assert!(message.contains("README.md` is there already: choose another"), "{message}");
    assert_eq!(fs::read(path(&dir, "other/README.md")).unwrap(), b"mine");
}

/// Runs with standard input and output redirected as a shell does it.
#[cfg(unix)]
fn redirected(args: &[&str], input: &Path, output: &Path) -> String {
    let append = fs::OpenOptions::new().append(true).open(output).unwrap();
    let mut fewtag = Command::new(env!("CARGO_BIN_EXE_fewtag"));
    let fewtag = fewtag.args(args).stdin(fs::File::open(input).unwrap()).stdout(append);
    let output = fewtag.stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

#[cfg(unix)]
#[test]
fn a_redirection_does_not_hide_that_two_files_are_one() {
    let dir = corpus();
    let file = dir.path().join("c.conll");
    let before = content(dir.path());
    let name = path(&dir, "c.conll");
    let convert = ["data", "convert", "-", &name, "--force"];
    let other = path(&dir, "other");
    fs::write(&other, "").unwrap();
    let message = redirected(&convert, &file, Path::new(&other));
    assert!(message.contains("it is also read"), "{message}");
    fs::remove_file(&other).unwrap();
    for args in [
        &["data", "convert", "-", "-", "--to", "inline"][..],
        &["data", "convert", &name, "-", "--to", "inline"],
        &["tag", "--example", "play [nina](artist)"],
        &["support", "suggest", &example("music.txt"), "--pool", &name],
    ] {
        let message = redirected(args, &file, &file);
        assert!(message.contains("is read and printed into"), "{args:?}: {message}");
        assert_eq!(content(dir.path()), before, "{args:?}");
    }
}
