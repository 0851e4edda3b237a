//! Is tuning worth it? F1 on sentences that were left out, and how far chance may have a hand in it.
//!
//! ```text
//! F1      of the counts of all judged sentences together; one judged several times counts as often
//! gain    F1 of a candidate − F1 of the model as it was, on the same sentences
//! spread  the standard error by the jackknife: √((n − 1)/n · Σᵢ (θ₋ᵢ − mean)²), θ₋ᵢ without sentence i
//! ```
//!
//! Sentences, not folds, are what chance draws: folds are few and share what they learn from. The gain is paired, so what is
//! hard for both models does not count. A candidate is preferred to the model as it was only if its gain is larger
//! than its standard error.
//!
//! Source: Efron and Tibshirani (1993), "An introduction to the bootstrap", chapter 11.

use std::collections::BTreeMap;

use serde::Serialize;

use super::judge::{Judgement, counts_of};
use super::weights::Score;
use crate::eval::Counts;

/// The difference of two models on the same sentences, in per cent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Gain {
    /// F1 of the one minus that of the other.
    pub f1: f64,
    /// Its standard error.
    pub spread: f64,
}

impl Gain {
    /// Whether it is more than chance.
    #[must_use]
    pub fn is_worth_it(&self) -> bool {
        self.f1 > 0.0 && self.f1 > self.spread
    }
}

/// F1 and spread of a model over some folds.
pub(super) fn score(judgements: &[&Judgement]) -> Score {
    let sentences: Vec<[Counts; 1]> =
        by_sentence(judgements).into_values().map(|counts| [counts]).collect();
    let (f1, spread) = with_spread(&sentences, |[counts]| counts.f1());
    Score { f1: 100.0 * f1, spread: 100.0 * spread }
}

/// What a candidate gains over another model; both were judged on the same folds.
pub(super) fn gain(before: &[&Judgement], after: &[&Judgement]) -> Gain {
    let (before, after) = (by_sentence(before), by_sentence(after));
    assert!(before.keys().eq(after.keys()), "both are judged on the same sentences");
    let pairs: Vec<[Counts; 2]> =
        before.into_values().zip(after.into_values()).map(|(a, b)| [a, b]).collect();
    let (f1, spread) = with_spread(&pairs, |[before, after]| after.f1() - before.f1());
    Gain { f1: 100.0 * f1, spread: 100.0 * spread }
}

/// The counts of each sentence, summed over labels and rounds.
fn by_sentence(judgements: &[&Judgement]) -> BTreeMap<usize, Counts> {
    let mut sums: BTreeMap<usize, Counts> = BTreeMap::new();
    for (&number, counts) in judgements.iter().flat_map(|judgement| &judgement.sentences) {
        let sum = sums.entry(number).or_default();
        for counts in counts.values() {
            *sum += counts_of(*counts);
        }
    }
    sums
}

/// The counts of each label, summed over sentences.
pub(super) fn by_label(judgements: &[&Judgement]) -> BTreeMap<String, Counts> {
    let mut sums: BTreeMap<String, Counts> = BTreeMap::new();
    let sentences = judgements.iter().flat_map(|judgement| judgement.sentences.values());
    for (label, counts) in sentences.flatten() {
        *sums.entry(label.clone()).or_default() += counts_of(*counts);
    }
    sums
}

/// A statistic of summed counts, and its standard error over the sentences.
fn with_spread<const N: usize>(
    sentences: &[[Counts; N]],
    statistic: impl Fn([Counts; N]) -> f64,
) -> (f64, f64) {
    let mut total = [Counts::default(); N];
    for counts in sentences {
        total.iter_mut().zip(counts).for_each(|(total, counts)| *total += *counts);
    }
    let without = |left_out: &[Counts; N]| {
        let mut rest = total;
        for (rest, left_out) in rest.iter_mut().zip(left_out) {
            rest.correct -= left_out.correct;
            rest.predicted -= left_out.predicted;
            rest.gold -= left_out.gold;
        }
        statistic(rest)
    };
    let values: Vec<f64> = sentences.iter().map(without).collect();
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (statistic(total), ((n - 1.0) / n * squares).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Sentences with one gold span each, found with this probability.
    fn judgement(p: f64, n: usize, seed: u64) -> Judgement {
        let mut random = Random::new(seed);
        let mut counts = || [usize::from(random.unit() < p), 1, 1];
        let sentences = (0..n).map(|i| (i, BTreeMap::from([("a".to_owned(), counts())])));
        Judgement { sentences: sentences.collect(), ..Judgement::default() }
    }

    #[test]
    fn the_spread_of_a_share_is_the_one_that_textbooks_have() {
        // With one span a sentence, F1 is the share of sentences that are right.
        let judged = judgement(0.7, 200, 3);
        let Score { f1, spread } = score(&[&judged]);
        let p = f1 / 100.0;
        let expected = 100.0 * (p * (1.0 - p) / 199.0).sqrt();
        assert!((spread - expected).abs() < 1e-6, "{spread} {expected}");
    }

    #[test]
    fn a_gain_by_chance_alone_is_mostly_refused_and_a_real_one_is_not() {
        let accepted = |p: f64| {
            let worth = |seed: &u64| {
                let (before, after) = (judgement(0.6, 100, *seed), judgement(p, 100, 1000 + seed));
                gain(&[&before], &[&after]).is_worth_it()
            };
            (0..200).filter(worth).count()
        };
        let (same, better) = (accepted(0.6), accepted(0.8));
        assert!(same < 50, "{same} of 200 by chance; one standard error lets 16 in 100 pass");
        assert!(better > 190, "{better} of 200");
    }

    #[test]
    fn a_model_gains_nothing_over_itself() {
        let judged = judgement(0.5, 50, 1);
        let gain = gain(&[&judged], &[&judged]);
        assert_eq!(gain, Gain { f1: 0.0, spread: 0.0 });
        assert!(!gain.is_worth_it());
    }

    #[test]
    fn a_sentence_judged_twice_counts_twice_and_varies_once() {
        let judged = judgement(0.5, 50, 1);
        let (once, twice) = (score(&[&judged]), score(&[&judged, &judged]));
        assert!((once.f1 - twice.f1).abs() < 1e-9 && (once.spread - twice.spread).abs() < 1e-9);
        assert_eq!(by_label(&[&judged, &judged])["a"].gold, 100);
    }
}
