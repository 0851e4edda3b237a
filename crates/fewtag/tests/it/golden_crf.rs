//! The CRF and the expansion of collapsed transitions against PyTorch, case by case.
//!
//! `tests/golden/{crf,transitions}.json` are written by `scripts/golden_model.py`, never by this crate.

use fewtag::CollapsedTransitions;
use fewtag::crf::{self, Posterior, Transitions};
use fewtag::{Tag, TagSet};
use serde::Deserialize;

use crate::golden::{self, Rows, assert_all_close, assert_close, matrix, numbers};

#[derive(Deserialize)]
struct CrfCase {
    name: String,
    emissions: Rows,
    #[serde(flatten)]
    transitions: GoldenTransitions,
    gold: Vec<usize>,
    best_path: Vec<usize>,
    best_score: f32,
    log_partition: f32,
    loss: f32,
    marginals: Rows,
    d_emissions: Rows,
    d_start: Vec<Option<f32>>,
    d_between: Rows,
    d_end: Vec<Option<f32>>,
}

#[derive(Deserialize)]
struct GoldenTransitions {
    start: Vec<Option<f32>>,
    between: Rows,
    end: Vec<Option<f32>>,
}

impl GoldenTransitions {
    fn expanded(&self) -> Transitions {
        Transitions {
            start: numbers(&self.start),
            between: matrix(&self.between),
            end: numbers(&self.end),
        }
    }
}

#[test]
fn sums_paths_and_gradients_agree_with_pytorch() {
    for case in golden::read::<Vec<CrfCase>>("crf.json") {
        let name = case.name.as_str();
        let (scores, transitions) = (matrix(&case.emissions), case.transitions.expanded());
        let best = crf::viterbi(&scores, &transitions);
        assert_eq!(best.tags, case.best_path, "{name}");
        assert_close(name, best.score as f32, case.best_score, 1e-6);
        let posterior = Posterior::new(&scores, &transitions);
        assert_close(name, posterior.log_partition() as f32, case.log_partition, 1e-6);
        assert_all_close(
            name,
            posterior.marginals().values(),
            matrix(&case.marginals).values(),
            1e-6,
        );

        let loss = crf::loss(&scores, 1.0, &transitions, &case.gold);
        assert_close(name, loss.value as f32, case.loss, 1e-6);
        assert_all_close(name, loss.emissions.values(), matrix(&case.d_emissions).values(), 1e-6);
        let below = loss.transitions;
        assert_all_close(name, &below.start, &numbers(&case.d_start), 1e-6);
        assert_all_close(name, below.between.values(), matrix(&case.d_between).values(), 1e-6);
        assert_all_close(name, &below.end, &numbers(&case.d_end), 1e-6);
    }
}

#[derive(Deserialize)]
struct TransitionCase {
    tags: Vec<String>,
    collapsed: CollapsedTransitions,
    expanded: GoldenTransitions,
    above: GoldenTransitions,
    below: CollapsedTransitions,
}

#[test]
fn transitions_expand_and_collapse_as_in_pytorch() {
    for case in golden::read::<Vec<TransitionCase>>("transitions.json") {
        let name = case.tags.join(" ");
        let tags: Vec<Tag> = case.tags.iter().map(|tag| tag.parse().expect("a tag")).collect();
        let set = TagSet::new(&tags);
        assert_eq!(set.tags(), tags, "the order of tags");
        assert_eq!(case.collapsed.expand(&set), case.expanded.expanded(), "{name}");
        let below = CollapsedTransitions::collapse(&case.above.expanded(), &set);
        assert_all_close(&name, below.as_slice(), case.below.as_slice(), 1e-6);
    }
}
