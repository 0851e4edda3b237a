//! Is one system better than another? Differences on the same test episodes, with intervals.
//!
//! ```text
//! difference = mean over folds, of the mean over episodes, of the mean over seeds of  F1(a) − F1(b)
//! interval   = 2.5 and 97.5 per cent of that mean when the episodes of every fold are drawn again, 2,000 times
//! ```
//!
//! Only folds and seeds that both have count. The interval tells what other episodes would have given, not what other
//! seeds of training would: for that look at the spread over seeds.

use fewtag::Random;

use super::results::{Outcome, Outcomes};

/// A difference of mean F1, in points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// Its value.
    pub mean: f64,
    /// The ends of its 95 % interval.
    pub interval: [f64; 2],
    /// The folds that both systems have.
    pub n_folds: usize,
}

const DRAWS: usize = 2000;
const SEED: u64 = 7;

/// `a` minus `b` at `shots`; `None` if they have no fold and seed in common.
#[must_use]
pub fn difference(outcomes: &Outcomes, shots: usize, a: &str, b: &str) -> Option<Difference> {
    let pairs = outcomes.of(a, shots).filter_map(|first| {
        let twin = |o: &&Outcome| o.cell.fold == first.cell.fold && o.cell.seed == first.cell.seed;
        Some((first.cell.fold, gains(first, outcomes.of(b, shots).find(twin)?)?))
    });
    let mut folds: Vec<(usize, Vec<Vec<f64>>)> = Vec::new();
    for (fold, gains) in pairs {
        match folds.iter_mut().find(|(have, _)| *have == fold) {
            Some((_, seeds)) => seeds.push(gains),
            None => folds.push((fold, vec![gains])),
        }
    }
    let folds: Vec<Vec<f64>> = folds.iter().map(|(_, seeds)| mean_of_rows(seeds)).collect();
    if folds.is_empty() {
        return None;
    }
    let mut random = Random::new(SEED);
    let mut draw = || mean(folds.iter().map(|gains| redrawn_mean(gains, &mut random)));
    let mut means: Vec<f64> = (0..DRAWS).map(|_| draw()).collect();
    means.sort_unstable_by(f64::total_cmp);
    let value = mean(folds.iter().map(|gains| mean(gains.iter().copied())));
    Some(Difference {
        mean: value,
        interval: [means[DRAWS / 40], means[DRAWS - 1 - DRAWS / 40]],
        n_folds: folds.len(),
    })
}

/// The gain on each episode; `None` if the two were tested on different ones.
fn gains(a: &Outcome, b: &Outcome) -> Option<Vec<f64>> {
    let (a, b) = (&a.episode_f1, &b.episode_f1);
    (!a.is_empty() && a.len() == b.len()).then(|| a.iter().zip(b).map(|(a, b)| a - b).collect())
}

fn mean_of_rows(rows: &[Vec<f64>]) -> Vec<f64> {
    (0..rows[0].len()).map(|e| mean(rows.iter().map(|row| row[e]))).collect()
}

fn redrawn_mean(gains: &[f64], random: &mut Random) -> f64 {
    mean((0..gains.len()).map(|_| gains[random.below(gains.len())]))
}

fn mean(numbers: impl ExactSizeIterator<Item = f64>) -> f64 {
    let n = numbers.len() as f64;
    numbers.sum::<f64>() / n
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::outcome;
    use super::*;

    fn with_episodes(system: &str, fold: usize, seed: u64, episode_f1: &[f64]) -> Outcome {
        Outcome { episode_f1: episode_f1.to_vec(), ..outcome(system, fold, seed, 0.0) }
    }

    #[test]
    fn a_constant_gain_has_no_spread_and_a_missing_fold_does_not_count() {
        let outcomes = Outcomes(vec![
            with_episodes("a", 0, 1, &[3.0, 4.0]),
            with_episodes("b", 0, 1, &[1.0, 2.0]),
            with_episodes("a", 1, 1, &[9.0]),
            with_episodes("a", 2, 1, &[7.0]),
            with_episodes("b", 2, 1, &[1.0]),
        ]);
        let found = difference(&outcomes, 1, "a", "b").unwrap();
        assert_eq!(found, Difference { mean: 4.0, interval: [4.0, 4.0], n_folds: 2 });
        assert_eq!(difference(&outcomes, 5, "a", "b"), None);
    }

    #[test]
    fn the_interval_is_about_two_standard_errors_wide() {
        let mut random = Random::new(3);
        let gains: Vec<f64> = (0..100).map(|_| 1.0 + 5.0 * random.normal()).collect();
        let outcomes =
            Outcomes(vec![with_episodes("a", 0, 1, &gains), with_episodes("b", 0, 1, &[0.0; 100])]);
        let Difference { mean, interval: [low, high], .. } =
            difference(&outcomes, 1, "a", "b").unwrap();
        assert!(low < mean && mean < high);
        // 2 · 1.96 · 5 / √100 is 1.96; the sample's own spread varies by some 7 %.
        assert!((1.6..2.4).contains(&(high - low)), "{low} {high}");
    }

    #[test]
    fn seeds_are_averaged_before_episodes_are_drawn() {
        let outcomes = Outcomes(vec![
            with_episodes("a", 0, 1, &[2.0, 0.0]),
            with_episodes("a", 0, 2, &[0.0, 2.0]),
            with_episodes("b", 0, 1, &[0.0, 0.0]),
            with_episodes("b", 0, 2, &[0.0, 0.0]),
        ]);
        let found = difference(&outcomes, 1, "a", "b").unwrap();
        assert_eq!((found.mean, found.interval), (1.0, [1.0, 1.0]));
    }
}
