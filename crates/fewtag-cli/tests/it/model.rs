//! `fewtag model`: conversion and calibration of a model directory.

use serde_json::Value;

use crate::evaluate::{json, model, path, testdata};
use crate::{failure, success};

#[test]
fn a_converted_model_is_smaller_and_works() {
    let model = model(1);
    let (dir, small) = (path(&model, ""), path(&model, "small"));
    success(&["model", "convert", &dir, &small, "--storage", "int8"]);
    let size = |dir: &str| {
        std::fs::metadata(std::path::Path::new(dir).join("model.safetensors")).unwrap().len()
    };
    assert!(size(&small) * 2 < size(&dir));
    success(&["evaluate", &small, &testdata("tiny-episodes.json")]);
    failure(&["model", "convert", &dir, &small, "--storage", "int4"], 2);
}

#[test]
fn calibration_changes_the_temperature_and_no_tag() {
    let (model, episodes) = (model(1), testdata("tiny-episodes.json"));
    let dir = path(&model, "");
    let tags = || success(&["evaluate", &dir, &episodes, "--format", "json"]);
    let settings = || json(&std::fs::read_to_string(path(&model, "fewtag.json")).unwrap());
    let (tags_before, before) = (tags(), settings());
    let calibrate = ["model", "calibrate", &dir, &episodes, "--format", "json"];
    let dry = success(&[&calibrate[..], &["--dry-run"]].concat());
    assert_eq!(settings(), before);
    let printed = success(&calibrate);
    assert_eq!(printed, dry);
    let rows: Value = json(&printed)["calibration"].clone();
    assert_eq!(rows[0]["temperature"], 1.0);
    let after = settings()["settings"]["temperature"].as_f64().unwrap();
    assert!((rows[1]["temperature"].as_f64().unwrap() - after).abs() < 1e-6);
    assert_ne!(before["settings"]["temperature"].as_f64(), Some(after));
    assert_eq!(tags(), tags_before);
}
