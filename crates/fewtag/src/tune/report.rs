//! What tuning found out, for people: both models side by side, label by label.

use serde::Serialize;

use super::evidence::{Gain, by_label, gain, score};
use super::judge::Judgement;
use super::weights::{Choice, Score};
use crate::eval::{Cell, Table};

/// What was found out.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Report {
    /// What became of it.
    pub verdict: Verdict,
    /// How many sentences were left out in turn, and judged.
    pub judged: usize,
    /// The model as it was.
    pub untuned: Score,
    /// Every way of tuning that was judged, in the order in which they were tried; the curve of each run.
    pub candidates: Vec<Candidate>,
    /// Which of them gained most.
    pub best: Option<usize>,
    /// Label by label: the model as it was, and the best candidate.
    pub labels: Vec<LabelScores>,
    /// Why runs failed, if some did.
    pub failures: Vec<String>,
}

/// What became of tuning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The domain was tuned.
    Tuned,
    /// It was, with fewer updates than gained most: the training on all sentences was stopped.
    TunedLess,
    /// Nothing gained more than chance would: the model stays as it was.
    NotWorthIt,
    /// It would have been worth it, but the training on all sentences was stopped before it came to anything.
    Stopped,
    /// It was stopped before anything was judged.
    Unknown,
}

/// A way of tuning, and what it was worth on sentences that were left out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Candidate {
    /// What was done.
    pub choice: Choice,
    /// On how many folds it was judged.
    pub n_folds: usize,
    /// Its F1.
    pub score: Score,
    /// Over the model as it was, on the same sentences.
    pub gain: Gain,
}

/// The scores of one label, in per cent.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct LabelScores {
    /// The label.
    pub label: String,
    /// Its gold spans in the judged sentences.
    pub n_spans: usize,
    /// F1 of the model as it was.
    pub untuned: f64,
    /// F1 of the best candidate.
    pub tuned: Option<f64>,
}

impl Candidate {
    pub(super) fn new(choice: Choice, before: &[&Judgement], after: &[&Judgement]) -> Self {
        let n_folds = after.len();
        Self { choice, n_folds, score: score(after), gain: gain(before, after) }
    }
}

/// Label by label: a model as it was, and a candidate on the same folds.
pub(super) fn labels(before: &[&Judgement], after: Option<&[&Judgement]>) -> Vec<LabelScores> {
    let after = after.map(by_label);
    let percent = |f1: f64| 100.0 * f1;
    by_label(before)
        .into_iter()
        .map(|(label, counts)| LabelScores {
            n_spans: counts.gold,
            untuned: percent(counts.f1()),
            tuned: after.as_ref().map(|after| after.get(&label).map_or(0.0, |c| percent(c.f1()))),
            label,
        })
        .collect()
}

impl Report {
    /// The candidate that gained most.
    #[must_use]
    pub fn best(&self) -> Option<&Candidate> {
        self.best.map(|at| &self.candidates[at])
    }

    /// F1 label by label and of all together, with its standard error.
    #[must_use]
    pub fn table(&self) -> Table {
        let headers = ["label", "spans", "untuned f1", "tuned f1", "gain"];
        let mut table = Table::new("on sentences that were left out", headers);
        let number = |number: Option<f64>| number.map_or(Cell::Empty, Cell::from);
        for LabelScores { label, n_spans, untuned, tuned } in &self.labels {
            let gain = tuned.map(|tuned| tuned - untuned);
            table.push([
                label.as_str().into(),
                (*n_spans).into(),
                (*untuned).into(),
                number(*tuned),
                number(gain),
            ]);
        }
        let best = self.best();
        let all: usize = self.labels.iter().map(|label| label.n_spans).sum();
        let row = |name: &str, spans: Cell, numbers: [Option<f64>; 3]| {
            [name.into(), spans].into_iter().chain(numbers.map(number)).collect::<Vec<Cell>>()
        };
        let f1 = [Some(self.untuned.f1), best.map(|b| b.score.f1), best.map(|b| b.gain.f1)];
        table.push(row("all labels", all.into(), f1));
        let spread =
            [Some(self.untuned.spread), best.map(|b| b.score.spread), best.map(|b| b.gain.spread)];
        table.push(row("± standard error", Cell::Empty, spread));
        table
    }

    /// What every way of tuning that was tried was worth.
    #[must_use]
    pub fn curve(&self) -> Table {
        let headers = ["layers", "rate", "updates", "folds", "f1", "gain", "± standard error"];
        let mut table = Table::new("what was tried", headers);
        for Candidate { choice, n_folds, score, gain } in &self.candidates {
            table.push([
                choice.layers.into(),
                format!("{:e}", choice.rate).as_str().into(),
                usize::try_from(choice.updates).unwrap_or(usize::MAX).into(),
                (*n_folds).into(),
                score.f1.into(),
                gain.f1.into(),
                gain.spread.into(),
            ]);
        }
        table
    }
}
