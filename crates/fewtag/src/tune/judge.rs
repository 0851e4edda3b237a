//! What a model makes of sentences that it did not learn from.
//!
//! As `support check` has it, a span whose label the others do not show cannot be found; it is not judged, and neither is
//! what was predicted in its place. Besides the counts, the log loss of the spans' probabilities is kept at some temperatures:
//! sums over folds say which one is honest.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::folds::Fold;
use crate::adapted::Scored;
use crate::domain::Sentence;
use crate::error::Result;
use crate::eval::{Counts, log_loss};
use crate::settings::ModelSettings;
use crate::tag::{self, Slot, Span};
use crate::tagger::Tagger;

/// What the model's own temperature is multiplied by, in steps of the fourth root of 2.
pub(super) fn factors() -> impl Iterator<Item = f32> {
    (-8_i16..=8).map(|step| (f32::from(step) / 4.0).exp2())
}

/// The counts of judged sentences, and how honest the probabilities were.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Judgement {
    /// By the number of the sentence and the label: correct, predicted, gold.
    pub(super) sentences: BTreeMap<usize, BTreeMap<String, [usize; 3]>>,
    /// How many spans were predicted.
    pub(super) n_spans: usize,
    /// The log loss of their probabilities at each of the [`factors`].
    pub(super) log_losses: Vec<f64>,
}

impl Judgement {
    /// The counts of all sentences and labels.
    pub(super) fn total(&self) -> Counts {
        let mut total = Counts::default();
        for counts in self.sentences.values().flat_map(BTreeMap::values) {
            total += counts_of(*counts);
        }
        total
    }
}

/// The counts of a record.
pub(super) fn counts_of([correct, predicted, gold]: [usize; 3]) -> Counts {
    Counts { correct, predicted, gold }
}

/// Tags the sentences that a fold leaves out from the others.
///
/// # Errors
///
/// Whatever the tagger refuses.
pub(super) fn judge(tagger: &Tagger, fold: &Fold, sentences: &[Sentence]) -> Result<Judgement> {
    let adapted = tagger.adapt(&fold.rest)?;
    let slots = adapted.tag_set().slots();
    let known: BTreeSet<&Slot> = slots.into_iter().collect();
    let mut judgement =
        Judgement { log_losses: vec![0.0; factors().count()], ..Judgement::default() };
    for group in fold.left_out.chunks(adapted.group_size()) {
        let words: Vec<Vec<&str>> = group.iter().map(|&i| sentences[i].words().collect()).collect();
        let scored = adapted.score_all(&words)?;
        let judged: Vec<_> = group
            .par_iter()
            .zip(&scored)
            .map(|(&i, scored)| judge_one(tagger, fold, &known, (&sentences[i], scored)))
            .collect();
        for (&i, (counts, n_spans, log_losses)) in group.iter().zip(judged) {
            judgement.sentences.insert(i, counts);
            judgement.n_spans += n_spans;
            judgement.log_losses.iter_mut().zip(log_losses).for_each(|(sum, loss)| *sum += loss);
        }
    }
    Ok(judgement)
}

/// The counts of a sentence by label, the number of spans predicted, and the log loss at each of the [`factors`].
fn judge_one(
    tagger: &Tagger,
    fold: &Fold,
    known: &BTreeSet<&Slot>,
    (gold, scored): (&Sentence, &Scored),
) -> (BTreeMap<String, [usize; 3]>, usize, Vec<f64>) {
    let (gold, unknown): (Vec<Span>, Vec<Span>) =
        gold.spans().into_iter().partition(|span| known.contains(&span.slot));
    let overlap = |a: &Span, b: &Span| a.start < b.end && b.start < a.end;
    let mut predicted = tag::spans(&scored.tags());
    predicted.retain(|span| !unknown.iter().any(|gold| overlap(span, gold)));
    let mut counts: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    for span in &predicted {
        let counts = counts.entry(span.slot.to_string()).or_default();
        counts[0] += usize::from(gold.contains(span));
        counts[1] += 1;
    }
    for span in &gold {
        counts.entry(span.slot.to_string()).or_default()[2] += 1;
    }
    let temperature = tagger.settings().temperature_at(fold.rest.examples_per_label());
    let loss = |factor: f32| {
        let settings =
            ModelSettings { temperature: temperature * factor, ..tagger.settings().clone() };
        let (tags, emissions) = (scored.tag_set(), scored.emissions());
        let p = tagger.head().span_probabilities(&settings, tags, emissions, &predicted);
        let right = predicted.iter().map(|span| gold.contains(span));
        p.into_iter().zip(right).map(|(p, right)| log_loss(p.into(), right)).sum()
    };
    let log_losses = factors().map(loss).collect();
    (counts, predicted.len(), log_losses)
}
