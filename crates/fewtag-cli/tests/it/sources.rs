//! What commands read: directories, standard input, and hints that name the option of the command at hand.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::evaluate::{model, path, testdata};
use crate::{example, failure, fewtag, success};

/// Runs with this text as standard input.
fn with_input(args: &[&str], text: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_fewtag"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(text); // It may have refused already.
    child.wait_with_output().unwrap()
}

/// `weather.conll`, `deep/music.conll` and `deep/tiny.json` (episodes), with what is no data.
fn corpora() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("deep")).unwrap();
    fs::copy(example("weather.conll"), dir.path().join("weather.conll")).unwrap();
    fs::copy(example("music.conll"), dir.path().join("deep/music.conll")).unwrap();
    fs::write(dir.path().join("README.md"), "See [the paper](paper.pdf).\n").unwrap();
    fs::write(dir.path().join("deep/notes.bin"), b"\0\x01\x02").unwrap();
    dir
}

/// Runs, and expects the README and the binary to be told as left out.
fn told(args: &[&str]) -> String {
    let output = fewtag(args);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{args:?}: {message}");
    assert!(message.contains("warning: left out as no data: "), "{args:?}: {message}");
    assert!(message.contains("README.md") && message.contains("notes.bin"), "{message}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_command_about_data_takes_a_directory_at_any_depth() {
    let dir = corpora();
    let (all, out) = (path(&dir, ""), tempfile::tempdir().unwrap());
    let json = |text: String| -> Value { serde_json::from_str(&text).unwrap() };
    let names = |rows: &Value| -> Vec<String> {
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| row["domain"].as_str().unwrap().to_owned()).collect()
    };
    let report = json(told(&["data", "check", &all, "--output", "json"]));
    assert_eq!(names(&report["domains"]), ["music", "weather"]);
    let report = json(told(&["data", "stats", &all, "--output", "json"]));
    assert_eq!(names(&report["domains"]), ["music", "weather"]);
    let table = told(&["sample", &all, "--queries", "3", "--out", &path(&out, "episodes.json")]);
    assert!(table.contains("music") && table.contains("weather"), "{table}");
    told(&["data", "convert", &all, &path(&out, "all.hf.jsonl")]);
    let report = json(success(&["data", "check", &path(&out, "all.hf.jsonl"), "--output", "json"]));
    assert_eq!(names(&report["domains"]), ["music", "weather"]);
    let scores = json(told(&["score", &all, &all, "--format", "json"]));
    assert_eq!(names(&scores["scores"]), ["music", "weather", "(average)"]);
    assert_eq!(scores["scores"][2]["f1"], 100.0);
}

#[test]
fn every_command_that_learns_or_judges_takes_a_directory() {
    let (dir, model) = (corpora(), model(1));
    let (all, model) = (path(&dir, ""), path(&model, ""));
    let deep = path(&dir, "deep");
    let told_one = |args: &[&str]| {
        let message = String::from_utf8(fewtag(args).stderr).unwrap();
        assert!(message.contains("left out as no data"), "{args:?}: {message}");
        success(args)
    };
    told(&["tag", "--model", &model, "--support", &all, "rain in paris"]);
    let report = told(&["support", "check", &all, "--model", &model, "--format", "csv"]);
    assert!(report.contains("condition,") && report.contains("artist,"), "{report}");
    let pool = tempfile::tempdir().unwrap();
    fs::write(pool.path().join("a.txt"), "rain in paris\n").unwrap();
    fs::write(pool.path().join("b.txt"), "sun in rome\n").unwrap();
    fs::write(pool.path().join("c.bin"), b"\0").unwrap();
    let pool = path(&pool, "");
    let music = example("music.txt");
    told_one(&["support", "suggest", &music, "--pool", &pool, "--model", &model, "-n", "2"]);
    let tagged = told_one(&[
        "tag",
        "--model",
        &model,
        "--support",
        &music,
        "--input",
        &pool,
        "--format",
        "jsonl",
    ]);
    assert_eq!(tagged.lines().count(), 2, "{tagged}");
    fs::copy(testdata("tiny-episodes.json"), dir.path().join("deep/tiny.json")).unwrap();
    let of_file = success(&["evaluate", &model, &testdata("tiny-episodes.json")]);
    assert_eq!(told_one(&["evaluate", &model, &deep]), of_file);
    told_one(&["model", "calibrate", &model, &deep, "--dry-run"]);
}

#[test]
fn training_leaves_out_what_is_no_data_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("data/deep")).unwrap();
    fs::copy(testdata("tiny-episodes.json"), dir.path().join("data/deep/e.json")).unwrap();
    fs::write(dir.path().join("data/README.md"), "See [the paper](paper.pdf).\n").unwrap();
    let (encoder, data) = (testdata("tiny-encoder"), path(&dir, "data"));
    let config = path(&dir, "train.toml");
    let text = format!(
        "encoder = '{encoder}'\ndata.train = ['{data}']\nmodel.context = 'separate'\noptimizer.updates = 1\n"
    );
    fs::write(&config, text).unwrap();
    let output = fewtag(&["train", "--config", &config, "--out", &path(&dir, "out")]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{message}");
    assert!(
        message.contains("left out as no data: ") && message.contains("README.md"),
        "{message}"
    );
    let inside = path(&dir, "data/out");
    let message = failure(&["crossval", "--config", &config, "--out", &inside, &data], 1);
    assert!(message.contains("which is read: write to another directory"), "{message}");
}

#[test]
fn a_directory_without_data_and_two_domains_of_one_name_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("README.md"), "nothing").unwrap();
    let message = failure(&["data", "check", &path(&dir, "")], 1);
    assert!(message.contains("the directory holds no data"), "{message}");
    for name in ["a", "b"] {
        fs::create_dir(dir.path().join(name)).unwrap();
        fs::copy(example("weather.conll"), dir.path().join(name).join("x.conll")).unwrap();
    }
    let out = tempfile::tempdir().unwrap();
    for args in [
        &["data", "convert", &path(&dir, ""), &path(&out, "x.hf.jsonl")][..],
        &["sample", &path(&dir, ""), "--queries", "3", "--out", &path(&out, "x.json")],
    ] {
        let output = fewtag(args);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{message}");
        assert!(message.contains("holds domain `x` again"), "{message}");
    }
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
}

#[test]
fn a_dash_is_standard_input_in_every_command() {
    let weather = fs::read(example("weather.conll")).unwrap();
    let music = fs::read(example("music.txt")).unwrap();
    let episodes = fs::read(testdata("tiny-episodes.json")).unwrap();
    let (model, out) = (model(1), tempfile::tempdir().unwrap());
    let model = path(&model, "");
    let written = path(&out, "e.json");
    for (args, text) in [
        (&["data", "check", "-"][..], &weather),
        (&["data", "stats", "-"], &weather),
        (&["data", "convert", "-", "-", "--to", "inline"], &weather),
        (&["sample", "-", "--queries", "3", "--out", &written], &weather),
        (&["score", "-", &example("weather_predicted.conll")], &weather),
        (&["score", &example("weather_predicted.conll"), "-"], &weather),
        (&["tag", "--model", &model, "--support", "-", "play it"], &music),
        (&["tag", "--model", &model, "--example", "play [a](b)", "--input", "-"], &music),
        (&["support", "check", "-", "--model", &model], &music),
        (&["support", "suggest", "-", "--pool", &example("music.txt"), "--model", &model], &music),
        (&["support", "suggest", &example("music.txt"), "--pool", "-", "--model", &model], &music),
        (&["evaluate", &model, "-"], &episodes),
        (&["model", "calibrate", &model, "-", "--dry-run"], &episodes),
    ] {
        let output = with_input(args, text);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {message}");
    }
    let manifest: Value =
        serde_json::from_slice(&fs::read(path(&out, "e.manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["inputs"][0]["file"], "stdin");
    assert_eq!(manifest["inputs"][0]["sha256"], fewtag::file::sha256(&weather));
}

#[test]
fn standard_input_is_read_once() {
    let model = model(1);
    let model = path(&model, "");
    for args in [
        &["data", "check", "-", "-"][..],
        &["score", "-", "-"],
        &["tag", "--model", &model, "--support", "-"],
        &["tag", "--model", &model, "--support", "-", "--input", "-"],
        &["support", "suggest", "-", "--pool", "-", "--model", &model],
    ] {
        let output = with_input(args, b"play [nina](artist)\n");
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(message.contains("standard input can"), "{args:?}: {message}");
    }
}

#[test]
fn a_hint_names_the_option_of_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let notes = path(&dir, "notes.txt");
    fs::write(&notes, "no label here\n").unwrap();
    let out = path(&dir, "x.json");
    let support = "; name it with --support-format";
    let format = "; name it with --format";
    for (args, hint) in [
        (&["tag", "--support", &notes, "play it"][..], support),
        (&["support", "check", &notes], support),
        (&["support", "suggest", &notes, "--pool", &notes], support),
        (&["data", "check", &notes], format),
        (&["data", "stats", &notes], format),
        (&["data", "convert", &notes, "-", "--to", "conll"], format),
        (&["sample", &notes, "--out", &out], format),
        (&["score", &notes, &notes], "`fewtag data convert` can be told how to read it"),
    ] {
        let message = failure(args, 1);
        assert!(message.contains("no data format recognised (known are conll, "), "{message}");
        assert!(message.ends_with(&format!("{hint}\n")), "{args:?}: {message}");
    }
    let cut = path(&dir, "cut.jsonl");
    fs::write(&cut, r#"{"text": "play nina simone", "label": [[5, 12, "artist"]]}"#).unwrap();
    for args in [&["tag", "--support", &cut, "play it"][..], &["data", "check", &cut]] {
        let message = failure(args, 1);
        assert!(message.ends_with(" (--repair takes the whole word)\n"), "{message}");
    }
    let plain = path(&dir, "plain.conll");
    fs::write(&plain, "nina\tartist\nsings\tO\n").unwrap();
    let message = failure(&["data", "check", &plain, "--format", "conll", "--scheme", "iob2"], 1);
    assert!(message.ends_with("; --scheme io takes the whole tag as its slot\n"), "{message}");
}

#[test]
fn no_message_of_the_library_names_an_option() {
    fn walk(dir: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if let Ok(text) = fs::read_to_string(&path) {
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
                let named = lines.filter(|line| line.contains(" --") || line.contains("(--"));
                found.extend(named.map(|line| format!("{}: {line}", path.display())));
            }
        }
    }
    let mut found = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../fewtag/src"), &mut found);
    assert_eq!(found, Vec::<String>::new());
}
