//! Our scores against seqeval and conlleval, file by file (origin: `tests/golden/scores.origin.md`).

use std::collections::BTreeMap;

use fewtag::Tag;
use fewtag::eval::{Counts, EpisodeScore, Judged};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    gold: Vec<String>,
    predicted: Vec<String>,
    /// Correct, predicted and gold spans.
    slots: BTreeMap<String, [usize; 3]>,
    /// Precision, recall, F1.
    episode: [f64; 3],
    sentence_macro: [f64; 3],
    /// Correct words and all words.
    bigrams: BTreeMap<String, [usize; 2]>,
}

fn cases() -> impl Iterator<Item = (usize, Case, EpisodeScore)> {
    let file = include_str!("../golden/scores.jsonl");
    file.lines().enumerate().map(|(n, line)| {
        let case: Case = serde_json::from_str(line).expect("valid golden file");
        let tags = |sentence: &String| -> Vec<Tag> {
            sentence.split(' ').map(|tag| tag.parse().expect("a BIO tag")).collect()
        };
        let gold: Vec<_> = case.gold.iter().map(tags).collect();
        let predicted: Vec<_> = case.predicted.iter().map(tags).collect();
        let judged: Vec<_> = gold.iter().zip(&predicted).map(|(g, p)| Judged::new(g, p)).collect();
        let score = EpisodeScore::of(&judged);
        (n + 1, case, score)
    })
}

#[test]
fn there_are_enough_cases() {
    assert!(cases().count() >= 2000);
}

#[test]
fn counts_agree_with_conlleval() {
    for (line, case, score) in cases() {
        let ours: BTreeMap<String, [usize; 3]> = score
            .tally
            .slots
            .iter()
            .map(|(slot, Counts { correct, predicted, gold })| {
                (slot.to_string(), [*correct, *predicted, *gold])
            })
            .collect();
        assert_eq!(ours, case.slots, "line {line}");
    }
}

#[test]
fn both_measures_agree_with_seqeval() {
    for (line, case, score) in cases() {
        let total = score.tally.total();
        let episode = [total.precision(), total.recall(), score.f1()];
        let sentence_macro =
            [score.sentence_precision, score.sentence_recall, score.sentence_macro_f1()];
        let ours = episode.iter().chain(&sentence_macro);
        for (ours, reference) in ours.zip(case.episode.iter().chain(&case.sentence_macro)) {
            assert!((ours - reference).abs() < 1e-9, "line {line}: {ours}, reference {reference}");
        }
    }
}

#[test]
fn bigrams_agree_with_the_reference() {
    for (line, case, score) in cases() {
        let name = |group: &str, name: &str| match group {
            "Inner" => format!("inner {name}"),
            _ => name.to_owned(),
        };
        let ours: BTreeMap<String, [usize; 2]> = score
            .bigrams
            .kinds()
            .filter(|kind| kind.words > 0)
            .map(|kind| (name(kind.group, kind.name), [kind.correct, kind.words]))
            .collect();
        assert_eq!(ours, case.bigrams, "line {line}");
    }
}
