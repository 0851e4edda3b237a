//! What follows the emissions, against PyTorch: tag sets, losses and decoded tags in every transition mode.
//!
//! `tests/golden/model_answers.json` is written by `scripts/golden_model.py`, never by this crate. Its episodes
//! are those of `testdata/tiny-episodes.json`.

use std::collections::BTreeMap;

use fewtag::embedder::name_words;
use fewtag::head::Head;
use fewtag::{Episode, ModelSettings, Tag, TagSet};
use serde::Deserialize;

use crate::golden::{self, Rows, assert_close, matrix};

#[derive(Deserialize)]
struct File {
    head: Head,
    label_names: BTreeMap<String, Vec<String>>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    settings: ModelSettings,
    episodes: Vec<Answers>,
}

/// One entry per query.
#[derive(Deserialize)]
struct Answers {
    tags: Vec<String>,
    emissions: Vec<Rows>,
    losses: Vec<f32>,
    predicted: Vec<Vec<String>>,
}

#[test]
fn losses_and_tags_of_the_golden_emissions_agree_with_pytorch() {
    let file: File = golden::read("model_answers.json");
    let episodes = golden::tiny_episodes();
    for Case { settings, episodes: answers } in &file.cases {
        assert_eq!(answers.len(), episodes.len());
        for (episode, answers) in episodes.iter().zip(answers) {
            let tags = settings.tag_set(&episode.support);
            assert_eq!(names(tags.tags()), answers.tags, "{settings:?}");
            check_queries(&file.head, settings, (episode, &tags), answers);
        }
    }
}

fn check_queries(
    head: &Head,
    settings: &ModelSettings,
    (episode, tags): (&Episode, &TagSet),
    answers: &Answers,
) {
    for (q, query) in episode.queries.iter().enumerate() {
        let case = format!("{settings:?}, query {q} of {}", episode.domain);
        let emissions = matrix(&answers.emissions[q]);
        let gold: Vec<usize> = query.tags().filter_map(|tag| tags.index_of(tag)).collect();
        let loss = head.loss(settings, tags, &emissions, &gold);
        assert_close(&case, loss.value as f32, answers.losses[q], 2e-6);
        let path = head.decode(settings, tags, &emissions);
        let decoded = path.into_iter().map(|at| &tags.tags()[at]);
        assert_eq!(names(decoded), answers.predicted[q], "{case}");
    }
}

#[test]
fn tags_are_called_the_same_in_both_implementations() {
    let file: File = golden::read("model_answers.json");
    for (tag, words) in &file.label_names {
        assert_eq!(&name_words(&tag.parse().expect("a tag")), words);
    }
}

fn names<'a>(tags: impl IntoIterator<Item = &'a Tag>) -> Vec<String> {
    tags.into_iter().map(ToString::to_string).collect()
}
