//! What one cell of the grid gave, and the cells of a grid together.
//!
//! A *cell* is one system trained and tested on one fold with one seed. Scores are per cent.

use fewtag::CollapsedTransitions;
use fewtag::eval::{Bigrams, DomainScores, EpisodeScore, Summary};
use serde::{Deserialize, Serialize};

/// Which cell of the grid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The system, by its key.
    pub system: String,
    /// The shots of the episodes.
    pub shots: usize,
    /// The fold, from 0: the test domain's place among the domains.
    pub fold: usize,
    /// Where the cell's random numbers come from.
    pub seed: u64,
}

/// What a cell gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The cell.
    pub cell: Cell,
    /// The mean episode F1 on the test domain.
    pub f1: f64,
    /// The mean sentence-macro F1, the paper's formula.
    pub sentence_macro_f1: f64,
    /// The F1 of every test episode, to a hundredth.
    pub episode_f1: Vec<f64>,
    /// The test words by their gold bi-gram.
    pub bigrams: Vec<BigramCount>,
    /// What was learned on the source domains.
    pub training: Training,
    /// Wall-clock seconds of training and test together.
    pub seconds: f64,
}

/// The test words of one kind of bi-gram.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BigramCount {
    /// The classes of the gold tags, as `O-B`.
    pub name: String,
    /// All words.
    pub words: usize,
    /// Those tagged right.
    pub correct: usize,
}

/// The course and the result of training; empty for a system that does not learn from source domains.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// The number of updates.
    pub updates: u64,
    /// `(update, loss)`, each loss the mean since the point before.
    pub losses: Vec<(u64, f64)>,
    /// `(update, F1 on the dev domain)`.
    pub dev: Vec<(u64, f64)>,
    /// The scale λ of the emissions at the end.
    pub scale: Option<f32>,
    /// The learned transitions: start, from O, B, I to O, sB, dB, sI, dI, and end.
    pub transitions: Option<LearnedTransitions>,
}

/// The numbers of [`CollapsedTransitions`], to be stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "as in CollapsedTransitions")]
pub struct LearnedTransitions {
    pub start: [f32; 3],
    pub between: [[f32; 5]; 3],
    pub end: [f32; 3],
}

impl From<&CollapsedTransitions> for LearnedTransitions {
    fn from(learned: &CollapsedTransitions) -> Self {
        Self { start: learned.start, between: learned.between, end: learned.end }
    }
}

impl From<LearnedTransitions> for CollapsedTransitions {
    fn from(LearnedTransitions { start, between, end }: LearnedTransitions) -> Self {
        Self { start, between, end }
    }
}

impl Outcome {
    /// Sums up the test scores of a cell.
    #[must_use]
    pub fn new(cell: Cell, scores: &DomainScores, training: Training, seconds: f64) -> Self {
        let mut bigrams = Bigrams::default();
        for episode in &scores.episodes {
            bigrams += &episode.bigrams;
        }
        let count = |kind: fewtag::eval::Bigram| BigramCount {
            name: kind.name.to_owned(),
            words: kind.words,
            correct: kind.correct,
        };
        Self {
            cell,
            f1: 100.0 * scores.over_episodes(EpisodeScore::f1).mean,
            sentence_macro_f1: 100.0 * scores.over_episodes(EpisodeScore::sentence_macro_f1).mean,
            episode_f1: scores.episodes.iter().map(|e| rounded(100.0 * e.f1())).collect(),
            bigrams: bigrams.kinds().map(count).collect(),
            training,
            seconds,
        }
    }
}

/// To a hundredth: more digits say nothing and fill files.
pub(super) fn rounded(number: f64) -> f64 {
    (100.0 * number).round() / 100.0
}

/// The outcomes of a grid.
#[derive(Debug, Clone, Default)]
pub struct Outcomes(pub Vec<Outcome>);

impl Outcomes {
    /// The outcomes of `system` at `shots`.
    pub fn of(&self, system: &str, shots: usize) -> impl Iterator<Item = &Outcome> + Clone {
        self.0.iter().filter(move |o| o.cell.system == system && o.cell.shots == shots)
    }

    /// Mean and spread over the seeds of the F1 of `system` on `fold`; `None` if no such cell was run.
    #[must_use]
    pub fn f1(&self, system: &str, shots: usize, fold: usize) -> Option<Summary> {
        let seeds = self.of(system, shots).filter(|o| o.cell.fold == fold).map(|o| o.f1);
        (seeds.clone().count() > 0).then(|| Summary::of(seeds))
    }

    /// Mean and spread over the seeds of the average over all `n_folds` folds; `None` unless every fold was run.
    ///
    /// A seed that misses a fold is left out of the spread, never averaged over fewer folds.
    #[must_use]
    pub fn average(&self, system: &str, shots: usize, n_folds: usize) -> Option<Summary> {
        self.average_of(system, shots, n_folds, |outcome| outcome.f1)
    }

    /// As [`Outcomes::average`], for any number of an outcome.
    pub fn average_of(
        &self,
        system: &str,
        shots: usize,
        n_folds: usize,
        number: impl Fn(&Outcome) -> f64,
    ) -> Option<Summary> {
        let cells: Vec<&Outcome> = self.of(system, shots).collect();
        let mut seeds: Vec<u64> = cells.iter().map(|o| o.cell.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let complete = seeds.into_iter().filter_map(|seed| {
            let folds = cells.iter().filter(|o| o.cell.seed == seed);
            (folds.clone().count() == n_folds).then(|| Summary::of(folds.map(|o| number(o))).mean)
        });
        let averages: Vec<f64> = complete.collect();
        (!averages.is_empty()).then(|| Summary::of(averages))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn outcome(system: &str, fold: usize, seed: u64, f1: f64) -> Outcome {
        let cell = Cell { system: system.into(), shots: 1, fold, seed };
        Outcome {
            cell,
            f1,
            sentence_macro_f1: f1 - 1.0,
            episode_f1: vec![f1; 20],
            bigrams: vec![BigramCount { name: "O-B".into(), words: 10, correct: 7 }],
            training: Training::default(),
            seconds: 60.0,
        }
    }

    #[test]
    fn averages_are_over_folds_first_and_then_over_seeds() {
        let outcomes = Outcomes(vec![
            outcome("a", 0, 1, 10.0),
            outcome("a", 1, 1, 20.0),
            outcome("a", 0, 2, 20.0),
            outcome("a", 1, 2, 30.0),
            outcome("a", 0, 3, 99.0),
        ]);
        let average = outcomes.average("a", 1, 2).unwrap();
        assert!((average.mean - 20.0).abs() < 1e-9 && (average.sd - 50_f64.sqrt()).abs() < 1e-9);
        assert!((outcomes.f1("a", 1, 0).unwrap().mean - 43.0).abs() < 1e-9);
        assert_eq!(outcomes.average("a", 1, 3), None);
        assert_eq!(outcomes.average("b", 1, 2), None);
        assert_eq!(outcomes.f1("a", 5, 0), None);
    }
}
