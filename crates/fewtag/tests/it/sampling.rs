//! Support sets of our own corpora, and of the paper's if it was fetched (`scripts/fetch_data.py snips`).
//!
//! `tests/golden/sampling.json` is written by `scripts/golden_sampling.py`, never by this crate.

use std::collections::HashMap;
use std::path::PathBuf;

use fewtag::data::{self, ReadOptions};
use fewtag::sampler::{Duplicates, EpisodeSettings, MIN_SENTENCES, SEED, Sampler};
use fewtag::{Domain, Random, Tag};
use serde::Deserialize;

use crate::{corpora, golden};

/// The paper's average |S|: file, 1-shot, 5-shot.
const PAPER: [(&str, f64, f64); 7] = [
    ("weather", 6.15, 28.91),
    ("music", 7.66, 34.43),
    ("playlist", 2.96, 13.84),
    ("book", 4.34, 19.83),
    ("searchscreen", 4.29, 19.27),
    ("restaurant", 9.41, 41.58),
    ("creativework", 1.30, 5.28),
];

fn samplers(files: &[PathBuf]) -> Vec<Sampler> {
    let read =
        |file: &PathBuf| data::read_domains(file, &ReadOptions::default()).expect("readable");
    let domains = files.iter().flat_map(read);
    domains
        .map(|domain| Sampler::new(domain, MIN_SENTENCES, Duplicates::Keep).expect("slots"))
        .collect()
}

/// The paper's corpus in the order of [`PAPER`], or nothing where it was not fetched.
fn snips() -> Vec<Sampler> {
    let files = corpora::public("snips");
    let of = |(name, ..): &(&str, f64, f64)| {
        files.iter().find(|file| file.file_stem().is_some_and(|stem| stem == *name)).cloned()
    };
    samplers(&PAPER.iter().filter_map(of).collect::<Vec<_>>())
}

/// A row of `tests/golden/sampling.json`.
#[derive(Deserialize)]
struct Case {
    corpus: String,
    shots: usize,
    mean_support: f64,
}

#[test]
fn average_support_sizes_are_those_of_the_reference() {
    for case in golden::read::<Vec<Case>>("sampling.json") {
        let sampler = &samplers(&[corpora::in_repository(&case.corpus)])[0];
        let settings = EpisodeSettings { shots: case.shots, ..EpisodeSettings::default() };
        let mean = sampler.mean_support(&settings, SEED, 10_000);
        let error = (mean / case.mean_support - 1.0).abs();
        assert!(error < 0.01, "{}, {} shots: {mean}", case.corpus, case.shots);
    }
}

/// How many of the 14 cells of the paper's table our averages over `n` episodes meet within 10 %.
fn cells_met(samplers: &[Sampler], seed: u64, n: usize) -> usize {
    let cells = samplers
        .iter()
        .zip(PAPER)
        .flat_map(|(sampler, (_, one, five))| [(sampler, 1, one), (sampler, 5, five)]);
    let met = cells.filter(|(sampler, shots, paper)| {
        let settings = EpisodeSettings { shots: *shots, ..EpisodeSettings::default() };
        (sampler.mean_support(&settings, seed, n) / paper - 1.0).abs() <= 0.1
    });
    met.count()
}

#[test]
fn average_support_sizes_are_those_of_the_paper() {
    let samplers = snips();
    if samplers.is_empty() {
        return; // Told; ours are compared with a reference above.
    }
    assert!(cells_met(&samplers, SEED, 100) >= 13, "the paper's 100 episodes");
    // Creative Work lies at the edge (its expectation is 1.19 and 5.82), so 100 episodes of another seed
    // may miss it twice. Without that luck:
    assert!(cells_met(&samplers, SEED, 2000) >= 13, "twenty times as many");
}

/// In how many of the sentences each tag occurs, counted once per sentence.
fn counts(domain: &Domain, chosen: impl Iterator<Item = usize>) -> HashMap<&Tag, usize> {
    let mut counts = HashMap::new();
    for s in chosen {
        let tags: std::collections::HashSet<&Tag> = domain.sentences[s].tags().collect();
        for tag in tags {
            *counts.entry(tag).or_insert(0) += 1;
        }
    }
    counts
}

#[test]
fn every_support_set_satisfies_the_papers_criteria() {
    let own = ["examples/weather.conll", "testdata/corpora/flights.conll"];
    let own = samplers(&own.map(corpora::in_repository));
    assert!(own.iter().all(|sampler| sampler.left_out().count() == 0), "all tags are sampled");
    for (sampler, shots) in own.iter().chain(&snips()).flat_map(|it| [(it, 1), (it, 5)]) {
        let domain = sampler.domain();
        let available = counts(domain, 0..domain.sentences.len());
        let holds = |support: &[usize], without: Option<usize>| {
            let counts = counts(domain, support.iter().copied().filter(|s| Some(*s) != without));
            available.iter().all(|(tag, n)| counts.get(tag).unwrap_or(&0) >= n.min(&shots))
        };
        for (seed, keep) in (0..40).flat_map(|seed| [(seed, 0.0), (seed, 0.2)]) {
            let settings = EpisodeSettings { shots, keep, ..EpisodeSettings::default() };
            let support = sampler.support(&settings, &mut Random::new(seed));
            assert!(holds(&support, None), "criterion (1), {}, seed {seed}", domain.name);
            if keep == 0.0 {
                let minimal = support.iter().all(|s| !holds(&support, Some(*s)));
                assert!(minimal, "criterion (2), {}, seed {seed}", domain.name);
            }
        }
    }
}
