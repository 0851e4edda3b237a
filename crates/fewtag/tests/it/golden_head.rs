//! What follows the emissions, against PyTorch: tag sets, losses and decoded tags in every transition mode.
//!
//! `tests/golden/model_answers.json` is written by `scripts/golden_model.py`, never by this crate. Its episodes
//! are those of `testdata/tiny-episodes.json`.

use fewtag::head::Head;
use fewtag::names::name_words;
use fewtag::{Episode, ModelSettings, Slot, Tag, TagSet};

use crate::golden::{self, Answers, AnswersFile, Case, assert_close, matrix, names};

#[test]
fn losses_and_tags_of_the_golden_emissions_agree_with_pytorch() {
    let file: AnswersFile = golden::read("model_answers.json");
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
    let file: AnswersFile = golden::read("model_answers.json");
    for (tag, words) in &file.label_names {
        let tag: Tag = tag.parse().expect("a tag");
        let label = tag.slot().map_or("", Slot::as_str);
        assert_eq!(name_words(&tag, label).as_ref(), Some(words));
    }
}
