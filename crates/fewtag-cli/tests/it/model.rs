//! `fewtag model`: conversion, calibration and the card of a model directory.

use serde_json::Value;

use crate::evaluate::{json, model, path, testdata};
use crate::{failure, fewtag, success};

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
fn an_average_of_two_seeds_is_a_model_and_never_replaces_one_of_them() {
    let models = [model(1), model(2)];
    let [one, two] = models.each_ref().map(|model| path(model, ""));
    let both = path(&models[0], "both");
    let said = success(&["model", "average", &one, &two, "--out", &both]);
    assert!(said.contains("the mean of 2 models"), "{said}");
    success(&["evaluate", &both, &testdata("tiny-episodes.json")]);
    let again = failure(&["model", "average", &one, &two, "--out", &both], 1);
    assert!(again.contains("--force"), "{again}");
    failure(&["model", "average", &one, &two, "--out", &two, "--force"], 1);
    let alone = failure(&["model", "average", &one, "--out", &both, "--force"], 1);
    assert!(alone.contains("two or more"), "{alone}");
    success(&["model", "average", &one, "--force", "--out", &both, &two]);
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

#[test]
fn names_alone_are_calibrated_apart() {
    let model = tempfile::tempdir().unwrap();
    crate::tune::save_model(model.path(), |tagger| tagger);
    let (dir, episodes) = (path(&model, ""), testdata("tiny-episodes.json"));
    let calibrated = |more: &[&str]| {
        success(&[&["model", "calibrate", &dir, &episodes], more].concat());
        json(&std::fs::read_to_string(path(&model, "fewtag.json")).unwrap())["settings"].clone()
    };
    let shown = calibrated(&[]);
    assert!(shown.get("temperature_of_names").is_none(), "{shown}");
    let both = calibrated(&["--names-only", &episodes]);
    assert!(both["temperature_of_names"].as_f64().is_some(), "{both}");
    assert_eq!(both["temperature"], shown["temperature"]);
    let told = fewtag(&["model", "calibrate", &dir, &episodes]).stderr;
    assert!(String::from_utf8(told).unwrap().contains("give --names-only"));
    let message = failure(&["model", "calibrate", &dir, "-", "--names-only", "-"], 1);
    assert!(message.contains("`-` stands twice"), "{message}");
    let nameless = self::model(1);
    let nameless = path(&nameless, "");
    let message =
        failure(&["model", "calibrate", &nameless, &episodes, "--names-only", &episodes], 1);
    assert!(message.contains("label names"), "{message}");
}

#[test]
fn the_card_gets_its_pictures_and_keeps_what_people_wrote() {
    let (model, episodes) = (model(1), testdata("tiny-episodes.json"));
    let dir = path(&model, "");
    std::fs::write(path(&model, "README.md"), "# Mine\n\nby hand\n").unwrap();
    let read = |name: &str| std::fs::read_to_string(path(&model, name)).unwrap();
    let shots = format!("1={episodes}");
    let card = ["model", "card", &dir, "--shots", &shots, "--format", "json"];
    let printed = json(&success(&card));
    assert_eq!(printed["measured"][0]["examples_per_label"], 1);
    let first = read("README.md");
    assert!(first.starts_with("# Mine\n\nby hand\n"), "{first}");
    for name in ["transitions.svg", "reliability.svg"] {
        assert!(first.contains(&format!("]({name})")) && read(name).starts_with("<svg"), "{first}");
    }
    assert!(read("reliability.svg").contains("1 shot: calibration error"));
    success(&card);
    assert_eq!(read("README.md"), first);
    // Without episodes there is a table to draw and nothing to measure.
    success(&["model", "card", &dir]);
    assert!(!read("README.md").contains("reliability.svg"));
    let message = failure(&["model", "card", &dir, "--shots", &episodes], 2);
    assert!(message.contains("expected N=EPISODES"), "{message}");
}

/// What a reader of the card expects of any table that is worth to be shipped.
#[cfg(feature = "built-in")]
#[test]
fn the_built_in_model_learned_plausible_transitions() {
    let tagger = fewtag::Tagger::built_in().unwrap();
    assert!(tagger.settings().constrained, "`I` after `O` is forbidden");
    let fewtag::CollapsedTransitions { start, between: [o, b, i], end: _ } =
        tagger.head().transitions.constrained();
    let best = |row: &[f32]| (0..row.len()).max_by(|x, y| row[*x].total_cmp(&row[*y])).unwrap();
    // The columns: O, same B, other B, same I, other I.
    assert_eq!(best(&start), 0, "a sentence rather starts with O: {start:?}");
    assert_eq!(best(&[o[0], o[1], o[3]]), 0, "O is rather followed by O: {o:?}");
    assert!(start[2] == f32::NEG_INFINITY && o[3] == f32::NEG_INFINITY, "no I without its B");
    assert_eq!(best(&b), 3, "B likes its own I: {b:?}");
    assert_eq!(best(&i), 3, "I likes its own I: {i:?}");
    assert!(b[4] == f32::NEG_INFINITY && i[4] == f32::NEG_INFINITY, "no I of another slot");
    assert!(b[1] < b[0] && i[1] < i[0], "the same slot hardly begins again at once: {b:?} {i:?}");
}
