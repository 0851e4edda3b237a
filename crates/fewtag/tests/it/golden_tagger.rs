//! The whole model against PyTorch: from words to emissions and tags.
//!
//! `tests/golden/model_answers.json` comes from `scripts/golden_model.py`, `simbert_minilm.json` from
//! `scripts/reference/simbert.py`, neither from this crate.

use std::collections::BTreeMap;
use std::path::Path;

use fewtag::TransitionMode;
use fewtag::emission::{ScorerKind, Similarity};
use fewtag::eval::EpisodeScore;
use fewtag::eval::evaluate;
use fewtag::head::Head;
use fewtag::{Context, Episode, ModelSettings, Tagger, data};
use serde::Deserialize;

use crate::golden::{self, Answers, AnswersFile, assert_all_close, matrix, names};

#[test]
fn emissions_and_tags_of_the_whole_model_agree_with_pytorch() {
    let file: AnswersFile = golden::read("model_answers.json");
    let episodes = golden::tiny_episodes();
    let tagger = golden::tagger(&golden::testdata("tiny-encoder"), file.head);
    for case in &file.cases {
        let tagger = tagger.with_settings(case.settings.clone()).expect("sensible settings");
        for (episode, answers) in episodes.iter().zip(&case.episodes) {
            check(&tagger, episode, answers);
        }
    }
}

fn check(tagger: &Tagger, episode: &Episode, answers: &Answers) {
    let adapted = tagger.adapt(&episode.support).expect("a support set");
    for (q, query) in episode.queries.iter().enumerate() {
        let case = format!("{:?}, query {q} of {}", tagger.settings(), episode.domain);
        let words: Vec<&str> = query.words().collect();
        let scored = adapted.score(&words).expect("a short sentence");
        let reference = matrix(&answers.emissions[q]);
        assert_all_close(&case, scored.emissions().values(), reference.values(), 1e-5);
        assert_eq!(names(&scored.tagged().tags), answers.predicted[q], "{case}");
    }
}

/// Means over the episodes of a file, in per cent.
#[derive(Deserialize)]
struct Means {
    episode_f1: f64,
    sentence_macro_f1: f64,
}

/// Takes minutes without optimisation: `cargo test --release -p fewtag --test it -- --ignored simbert`.
#[test]
#[ignore = "needs encoders/minilm-l6 (scripts/fetch_encoders.py) and data/episodes (scripts/fetch_data.py)"]
fn simbert_on_the_official_episodes_agrees_with_python() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let simbert = ModelSettings {
        context: Context::Separate,
        scorer: ScorerKind::Nearest,
        similarity: Similarity::Cosine,
        transitions: TransitionMode::None,
        ..ModelSettings::default()
    };
    let head = Head { scale: 1.0, ..Head::ZERO };
    let tagger = golden::tagger(&root.join("encoders/minilm-l6"), head);
    let tagger = tagger.with_settings(simbert).expect("sensible settings");
    for (name, means) in golden::read::<BTreeMap<String, Means>>("simbert_minilm.json") {
        let path = root.join("data/episodes").join(&name);
        let episodes = data::read_episodes(&path).expect("official episodes");
        let report = evaluate(&tagger, &episodes, || ()).expect("tagged episodes").report;
        let mean =
            |score: fn(&EpisodeScore) -> f64| 100.0 * report.domains[0].over_episodes(score).mean;
        let f1 = mean(EpisodeScore::f1);
        let sentence_macro_f1 = mean(EpisodeScore::sentence_macro_f1);
        assert!((f1 - means.episode_f1).abs() < 0.05, "{name}: {f1}");
        assert!(
            (sentence_macro_f1 - means.sentence_macro_f1).abs() < 0.05,
            "{name}: {sentence_macro_f1}"
        );
    }
}
