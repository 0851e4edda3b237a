//! `fewtag evaluate`: its tables, predictions and results, and what it refuses.

use std::path::Path;
use std::process::Command;

use fewtag::encoder::Storage;
use fewtag::{Context, ModelSettings, model};
use serde_json::Value;
use tempfile::TempDir;

use crate::{failure, success};

pub(crate) fn testdata(name: &str) -> String {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    testdata.join(name).to_str().unwrap().to_owned()
}

/// A directory with an untrained model of this seed.
pub(crate) fn model(seed: u64) -> TempDir {
    let settings = ModelSettings { context: Context::Separate, ..ModelSettings::default() };
    let tagger = model::from_encoder(Path::new(&testdata("tiny-encoder")), settings, seed).unwrap();
    let dir = tempfile::tempdir().unwrap();
    model::save(&tagger, dir.path(), Storage::F32).unwrap();
    dir
}

pub(crate) fn path(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).to_str().unwrap().to_owned()
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn predictions_score_as_the_evaluation_says_in_every_format() {
    let (model, episodes) = (model(1), testdata("tiny-episodes.json"));
    let dir = path(&model, "");
    let plain = success(&["evaluate", &dir, &episodes, "--format", "json"]);
    for format in ["conll", "episodes"] {
        let file = path(&model, &format!("predictions.{format}"));
        let args = ["evaluate", &dir, &episodes, "--format", "json", "--predictions", &file];
        let tables = success(&[&args[..], &["--predictions-format", format]].concat());
        assert_eq!(tables, plain);
        assert_eq!(success(&["score", &episodes, &file, "--format", "json"]), plain, "{format}");
    }
}

#[test]
fn results_name_the_model_its_settings_and_the_data() {
    let (model, episodes) = (model(1), testdata("tiny-episodes.json"));
    let file = path(&model, "results.json");
    let printed = success(&[
        "evaluate",
        &path(&model, ""),
        &episodes,
        "--results",
        &file,
        "--set",
        "constrained=true",
        "--first",
        "2",
        "--format",
        "json",
        "--table",
        "scores",
    ]);
    let results = json(&std::fs::read_to_string(&file).unwrap());
    assert_eq!(results["scores"], json(&printed)["scores"]);
    assert!(json(&printed).get("slots").is_none() && results.get("slots").is_some());
    assert_eq!(results["settings"]["constrained"], true);
    assert_eq!(results["settings"]["context"], "separate");
    assert_eq!(results["data"][0]["name"], "tiny-episodes.json");
    assert_eq!(results["data"][0]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(results["first"], 2);
    let episodes: u64 = results["scores"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["episodes"].as_u64())
        .sum();
    assert_eq!(episodes, 2);
}

#[test]
fn seeds_are_averaged() {
    let (one, two, episodes) = (model(1), model(2), testdata("tiny-episodes.json"));
    let f1 = |args: &[&str], table: &str| -> Vec<f64> {
        let args = [&["evaluate"], args, &[&episodes, "--format", "json"]].concat();
        let tables = json(&success(&args));
        tables[table].as_array().unwrap().iter().map(|row| row["f1"].as_f64().unwrap()).collect()
    };
    let (first, second) = (path(&one, ""), path(&two, ""));
    let alone = [f1(&[&first], "scores"), f1(&[&second], "scores")];
    let together = f1(&[&first, "--also", &second], "seeds");
    let means = alone[0].iter().zip(&alone[1]).map(|(a, b)| f64::midpoint(*a, *b));
    assert_eq!(together.len(), alone[0].len());
    assert!(together.iter().zip(means).all(|(a, b)| (a - b).abs() < 1e-9));
}

#[test]
fn scores_do_not_depend_on_the_number_of_threads() {
    let (model, episodes) = (model(1), testdata("tiny-episodes.json"));
    let with_threads = |n: &str| {
        let mut fewtag = Command::new(env!("CARGO_BIN_EXE_fewtag"));
        let args = [
            "evaluate",
            &path(&model, ""),
            &episodes,
            "--set",
            "context=paired",
            "--format",
            "csv",
        ];
        fewtag.args(args).env("RAYON_NUM_THREADS", n).output().unwrap().stdout
    };
    assert!(!with_threads("1").is_empty());
    assert_eq!(with_threads("1"), with_threads("3"));
}

#[test]
fn an_encoder_is_judged_untrained_only_if_asked() {
    let (encoder, episodes) = (testdata("tiny-encoder"), testdata("tiny-episodes.json"));
    let message = failure(&["evaluate", &encoder, &episodes], 1);
    assert!(message.contains("is an encoder, not a trained model"), "{message}");
    let simbert = ["scorer=nearest", "similarity=cosine", "transitions=none", "context=separate"];
    let set: Vec<&str> = simbert.iter().flat_map(|change| ["--set", change]).collect();
    let args = [&["evaluate", &encoder, &episodes, "--untrained"], &set[..]].concat();
    assert!(success(&args).contains("(average)"));
}

#[test]
fn settings_that_do_not_exist_or_make_no_sense_are_refused() {
    let (model, episodes) = (model(1), testdata("tiny-episodes.json"));
    let refusal = |set: &str| failure(&["evaluate", &path(&model, ""), &episodes, "--set", set], 1);
    assert!(refusal("colour=red").contains("unknown field `colour`"));
    assert!(refusal("scorer=best").contains("unknown variant `best`"));
    assert!(refusal("constrained").contains("`constrained` is not KEY=VALUE"));
    assert!(refusal("label_names=0.5").contains("`label_names` needs"));
}

#[test]
fn files_that_are_no_episodes_are_refused() {
    let model = model(1);
    let file = path(&model, "data.conll");
    std::fs::write(&file, "rain\tO\n").unwrap();
    let message = failure(&["evaluate", &path(&model, ""), &file], 1);
    assert!(message.contains("data.conll"), "{message}");
}
