//! `fewtag sample`: what it writes, and what it refuses.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::{example, failure, success};

fn sample(out: &Path, more: &[&str]) -> String {
    let files = [example("weather.conll"), example("music.conll")];
    let mut args = vec!["sample", &files[0], &files[1], "--out", out.to_str().unwrap()];
    args.extend(["--episodes", "4", "--queries", "3"]);
    args.extend(more);
    success(&args)
}

fn sha256(path: &Path) -> String {
    let digest: [u8; 32] = Sha256::digest(fs::read(path).unwrap()).into();
    digest.map(|byte| format!("{byte:02x}")).concat()
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_every_machine() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("episodes.json");
    sample(&out, &[]);
    // A change of this checksum changes everybody's episodes: it belongs into the changelog.
    let expected = "a27a57bb56397161be340dbb0d876442adb72bc06f1621b7ae008d6c44bd177d";
    assert_eq!(sha256(&out), expected);
    sample(&out, &["--seed", "1", "--force"]);
    assert_ne!(sha256(&out), expected);
}

#[test]
fn the_manifest_names_settings_seed_and_checksums() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("episodes.json");
    sample(&out, &["--shots", "2", "--seed", "9", "--keep", "0"]);
    let manifest = fs::read(directory.path().join("episodes.manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let settings = json!({
        "shots": 2, "episodes": 4, "queries": 3, "keep": 0.0, "min_sentences": 2, "keep_duplicates": false
    });
    assert_eq!(manifest["settings"], settings);
    assert_eq!(manifest["seed"], 9);
    assert_eq!(manifest["output"], json!({"file": "episodes.json", "sha256": sha256(&out)}));
    let weather = example("weather.conll");
    let input = json!({"file": "weather.conll", "sha256": sha256(Path::new(&weather))});
    assert_eq!(manifest["inputs"][0], input);
    let music = &manifest["domains"][1];
    assert_eq!(music["left_out"], json!(["I-year"]));
    assert_eq!(music["sentences"], 19, "one has the year of two words");
    assert_eq!(music["left_out_sentences"], json!({"rare": 1, "duplicates": 0}));
}

#[test]
fn episodes_have_the_official_form_and_the_asked_size() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("episodes.json");
    let table = sample(&out, &[]);
    let row: Vec<&str> = table.lines().nth(4).unwrap().split_whitespace().collect();
    assert_eq!(row[..5], ["weather", "20", "0", "4", "3"], "{table}");
    let row: Vec<&str> = table.lines().nth(5).unwrap().split_whitespace().collect();
    assert_eq!(row[..5], ["music", "19", "1", "4", "3"], "{table}");
    let file: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
    for domain in ["weather", "music"] {
        let episodes = file[domain].as_array().unwrap();
        assert_eq!(episodes.len(), 4);
        for episode in episodes {
            assert_eq!(episode["query"]["seq_ins"].as_array().unwrap().len(), 3);
            assert!(!episode["support"]["seq_outs"].as_array().unwrap().is_empty());
        }
    }
}

#[test]
fn a_failure_leaves_the_old_file_and_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("episodes.json");
    fs::write(&out, "old").unwrap();
    let weather = example("weather.conll");
    let args = ["sample", &weather, "--queries", "20", "--out", out.to_str().unwrap(), "--force"];
    let message = failure(&args, 1);
    assert!(message.contains("domain `weather` is too small: a support set of"), "{message}");
    assert_eq!(fs::read(&out).unwrap(), b"old");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn mistakes_are_named() {
    let weather = example("weather.conll");
    for (args, status, expected) in [
        (&[weather.as_str(), &weather][..], 1, "holds domain `weather` again"),
        (&[&weather, "--min-sentences", "99"], 1, "none occurs in 99 sentences or more"),
        (&["nowhere.conll"], 1, "cannot access `nowhere.conll`"),
        (&[&weather, "--shots", "0"], 2, "0 is not in 1.."),
        (&[&weather, "--keep", "1.5"], 2, "expected a number from 0 to 1"),
        (&[&weather, "--format", "rasa"], 1, "weather.conll"),
        (&[], 2, "required"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("x.json");
        let mut all = vec!["sample", "--queries", "1", "--out", out.to_str().unwrap()];
        all.extend(args);
        let message = failure(&all, status);
        assert!(message.contains(expected), "{message}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "{expected}");
    }
}

#[test]
fn the_output_directory_must_exist() {
    let weather = example("weather.conll");
    let message = failure(&["sample", &weather, "--queries", "1", "--out", "no/where/x.json"], 1);
    let expected = "error: cannot write `no/where/x.json` into `no/where`: No such file or directory (os error 2)\n";
    assert_eq!(message, expected);
}

/// Three sentences ten times each, one of them also with other tags.
fn repeating() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let paris = "rain\tO\nin\tO\nparis\tB-city\n\n";
    let rome = "sun\tO\nin\tO\nrome\tB-city\n\n";
    let oslo = "snow\tO\nin\tO\noslo\tB-city\n\n";
    let other = "snow\tB-what\nin\tO\noslo\tB-city\n\nfog\tB-what\nin\tO\nrome\tB-city\n\n";
    let text = [paris, rome, oslo].concat().repeat(10) + other;
    fs::write(directory.path().join("c.conll"), text).unwrap();
    directory
}

#[test]
fn what_is_sampled_passes_the_strict_check() {
    let directory = repeating();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (corpus, out) = (path("c.conll"), path("e.json"));
    let sample = ["sample", &corpus, "--episodes", "200", "--queries", "1", "--out", &out];
    let output = crate::fewtag(&sample);
    let warnings = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{warnings}");
    let expected =
        "warning: c: left out as repeating another: 27 sentences (--keep-duplicates keeps them)\n";
    assert_eq!(warnings, expected);
    let leaks = |report: &str| report.contains("queries in their own support");
    let report = success(&["data", "check", &out]);
    assert!(!leaks(&report), "{report}");
    // The paper's way finds the same words in support and query.
    success(&[&sample[..], &["--keep-duplicates", "--force"]].concat());
    assert!(leaks(&success(&["data", "check", &out])));
    let example_out = path("weather.json");
    success(&["sample", &example("weather.conll"), "--queries", "5", "--out", &example_out]);
    success(&["data", "check", &example_out, "--strict"]);
}

#[test]
fn the_papers_duplicates_keep_their_bytes() {
    let directory = repeating();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let out = path("e.json");
    let sample = ["sample", &path("c.conll"), "--episodes", "5", "--queries", "2", "--out", &out];
    success(&[&sample[..], &["--keep-duplicates"]].concat());
    // As fewtag drew them before it left out duplicates.
    let expected = "8759c507f0d676c37c2a4379569031d937af6c6bc45dda150255de5afb46c371";
    assert_eq!(sha256(Path::new(&out)), expected);
    success(&[&sample[..], &["--force"]].concat());
    assert_ne!(sha256(Path::new(&out)), expected);
}

#[test]
fn check_and_sample_agree_on_what_is_too_rare() {
    let directory = tempfile::tempdir().unwrap();
    let report = success(&["data", "check", &example("music.conll"), "--output", "json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    let finding = &report["findings"][0];
    assert_eq!(finding["finding"], "tags too rare for the shots");
    let named = |text: &str| -> Vec<String> {
        text.split(", ").map(|tag| tag.split(' ').next().unwrap().to_owned()).collect()
    };
    let mut checked = named(finding["detail"].as_str().unwrap());
    let out = directory.path().join("e.json");
    let music = example("music.conll");
    let args = ["sample", &music, "--shots", "5", "--queries", "1", "--out", out.to_str().unwrap()];
    success(&args);
    let manifest = fs::read(directory.path().join("e.manifest.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    let sampled = ["left_out", "scarce"].iter().flat_map(|kind| {
        let tags = manifest["domains"][0][kind].as_array().unwrap().iter();
        tags.map(|tag| tag.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    });
    let mut sampled: Vec<String> = sampled.collect();
    checked.sort();
    sampled.sort();
    assert!(sampled.len() > 1, "{manifest}");
    assert_eq!(checked, sampled);
}

#[test]
fn no_episodes_have_a_mean_of_zero() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("e.json");
    let (weather, out) = (example("weather.conll"), out.to_str().unwrap());
    let table = success(&["sample", &weather, "--episodes", "0", "--queries", "1", "--out", out]);
    assert!(table.trim_end().ends_with("  0.00"), "{table}");
}
