//! Every sentence tagged from all the others: does the set teach what it shows?
//!
//! ```text
//! fold f = the sentences i with i mod F = f,  F = min(n, 200)
//! tags of sentence i = what a tagger says that learned from all sentences outside the fold of i
//! ```
//!
//! Up to 200 sentences a fold is one sentence. In separate context each sentence is read once: only the
//! references are made anew for each fold. In paired context a sentence is read beside all others, so at most 10,000
//! pairs are read, of sentences spread evenly. A span whose label no other fold has cannot be found; it is not
//! judged, and neither is what was predicted in its place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Confusion, Finding, FindingKind, LabelReport, Severity};
use crate::adapted::{Adapted, SupportRows};
use crate::domain::{Sentence, SupportSet};
use crate::emission::Members;
use crate::error::{Error, Result};
use crate::eval::Counts;
use crate::matrix::Matrix;
use crate::settings::Context;
use crate::tag::{self, Slot, Span, Tag, TagSet};
use crate::tagger::Tagger;

const MAX_FOLDS: usize = 200;
const MAX_PAIRS: usize = 10_000;
/// Labels are confused if this share of the rarer one's spans is.
const CONFUSED: f64 = 0.25;
/// A label with a lower F1 is hard to find.
const HARD: f64 = 0.5;

/// What leaving out showed.
#[derive(Debug, Default)]
pub(super) struct Judgement {
    pub(super) n_judged: usize,
    counts: BTreeMap<Slot, Counts>,
    /// By gold and predicted label: the sentence of each case.
    confused: BTreeMap<(Option<Slot>, Option<Slot>), Vec<usize>>,
}

/// Tags the sentences from each other; `rows` are their vectors when read alone, and those of the names of their tags.
pub(super) fn judge(
    tagger: &Tagger,
    support: &SupportSet,
    rows: &SupportRows,
) -> Result<Judgement> {
    let sentences = support.sentences();
    let n_folds = sentences.len().min(MAX_FOLDS);
    let step = match tagger.settings().context {
        Context::Separate => 1,
        Context::Paired => (sentences.len() * sentences.len()).div_ceil(MAX_PAIRS).max(1),
    };
    let mut judgement = Judgement::default();
    for fold in 0..n_folds {
        let left_out: Vec<usize> =
            (fold..sentences.len()).step_by(n_folds).filter(|i| i.is_multiple_of(step)).collect();
        let others: Vec<usize> = (0..sentences.len()).filter(|i| i % n_folds != fold).collect();
        let rest = support.with_sentences(others.iter().map(|&i| sentences[i].clone()).collect());
        let rest = match rest {
            Err(Error::EmptySupport) => continue, // No label is left: nothing can be judged.
            other => other?,
        };
        let tags = tagger.settings().tag_set(&rest);
        if left_out.is_empty() || !tagger.can_begin(&rest, &tags) {
            continue;
        }
        let adapted = match tagger.settings().context {
            Context::Paired => tagger.adapt(&rest)?,
            Context::Separate => adapt_to_some(tagger, support, (&others, &rest), rows),
        };
        for i in left_out {
            let answer = match tagger.settings().context {
                Context::Paired => adapted.score(&sentences[i].words().collect::<Vec<_>>())?.tags(),
                Context::Separate => adapted.score_rows(&rows.words[i]).tags(),
            };
            judgement.add(i, &sentences[i], &answer, &tags);
        }
    }
    Ok(judgement)
}

/// As [`Tagger::adapt`] to `rest`, which are the sentences `others` of a support set, without reading anything again.
fn adapt_to_some(
    tagger: &Tagger,
    support: &SupportSet,
    (others, rest): (&[usize], &SupportSet),
    rows: &SupportRows,
) -> Adapted {
    let (full, tags) = (tagger.settings().tag_set(support), tagger.settings().tag_set(rest));
    let names = rows.names.as_ref().map(|vectors| {
        let row = |tag| vectors.row(full.index_of(tag).expect("a part of the tags")).iter();
        Matrix::new(tags.tags().iter().flat_map(row).copied().collect(), vectors.n_cols())
    });
    let numbered = others.iter().copied().zip(rest.sentences());
    let members = Members::of(numbered, rest, &tags);
    let rows = SupportRows { words: Arc::clone(&rows.words), names };
    Adapted::of_rows(tagger, rest, (tags, members), rows)
}

impl Judgement {
    fn add(&mut self, number: usize, sentence: &Sentence, answer: &[Tag], tags: &TagSet) {
        self.n_judged += 1;
        let slots: BTreeSet<&Slot> = tags.slots().into_iter().collect();
        let (known, unknown): (Vec<Span>, Vec<Span>) =
            sentence.spans().into_iter().partition(|span| slots.contains(&span.slot));
        let mut predicted = tag::spans(answer);
        predicted.retain(|span| !unknown.iter().any(|gold| overlap(span, gold) > 0));
        for gold in &known {
            let hit = predicted.contains(gold);
            let counts = self.counts.entry(gold.slot.clone()).or_default();
            counts.gold += 1;
            counts.correct += usize::from(hit);
            if !hit {
                let most = predicted.iter().max_by_key(|span| overlap(span, gold));
                let instead = most.filter(|span| overlap(span, gold) > 0);
                self.confuse(Some(gold), instead, number);
            }
        }
        for span in &predicted {
            self.counts.entry(span.slot.clone()).or_default().predicted += 1;
            if known.iter().all(|gold| overlap(span, gold) == 0) {
                self.confuse(None, Some(span), number);
            }
        }
    }

    fn confuse(&mut self, gold: Option<&Span>, predicted: Option<&Span>, number: usize) {
        let slot = |span: Option<&Span>| span.map(|span| span.slot.clone());
        self.confused.entry((slot(gold), slot(predicted))).or_default().push(number);
    }

    /// Replaces each sentence's number `i` by `numbers[i] + 1`: as the user counts.
    pub(super) fn renumber(&mut self, numbers: &[usize]) {
        for number in self.confused.values_mut().flatten() {
            *number = numbers[*number] + 1;
        }
    }

    /// The labels of all sentences, judged or not.
    pub(super) fn labels(&self, sentences: &[Sentence]) -> Vec<LabelReport> {
        let mut seen: BTreeMap<Slot, (usize, BTreeSet<usize>)> = BTreeMap::new();
        for (i, sentence) in sentences.iter().enumerate() {
            for span in sentence.spans() {
                let (n_spans, places) = seen.entry(span.slot).or_default();
                *n_spans += 1;
                places.insert(i);
            }
        }
        let report = |(label, (n_spans, places)): (Slot, (usize, BTreeSet<usize>))| {
            let counts = self.counts.get(&label).copied().unwrap_or_default();
            let judged = (counts.gold > 0).then_some(counts);
            LabelReport {
                label,
                n_sentences: places.len(),
                n_spans,
                n_judged: counts.gold,
                precision: judged.map(|counts| counts.precision()),
                recall: judged.map(|counts| counts.recall()),
                f1: judged.map(|counts| counts.f1()),
            }
        };
        seen.into_iter().map(report).collect()
    }

    /// What was taken for what, the most frequent first.
    pub(super) fn confusions(&self) -> Vec<Confusion> {
        let confusion =
            |((gold, predicted), places): (&(Option<Slot>, Option<Slot>), &Vec<usize>)| {
                let sentences: BTreeSet<usize> = places.iter().copied().collect();
                let (gold, predicted) = (gold.clone(), predicted.clone());
                Confusion {
                    gold,
                    predicted,
                    n: places.len(),
                    sentences: sentences.into_iter().collect(),
                }
            };
        let mut confusions: Vec<Confusion> = self.confused.iter().map(confusion).collect();
        confusions.sort_by_key(|confusion| std::cmp::Reverse(confusion.n));
        confusions
    }

    /// Whether spans of the two labels are taken for each other, and in which sentences.
    pub(super) fn confused(&self, a: &Slot, b: &Slot) -> Option<BTreeSet<usize>> {
        let cases = |gold: &Slot, predicted: &Slot| {
            self.confused.get(&(Some(gold.clone()), Some(predicted.clone()))).into_iter().flatten()
        };
        let places: Vec<usize> = cases(a, b).chain(cases(b, a)).copied().collect();
        let gold = |slot: &Slot| self.counts.get(slot).map_or(0, |counts| counts.gold);
        let rarer = gold(a).min(gold(b)).max(1);
        (places.len() >= 2 && places.len() as f64 >= CONFUSED * rarer as f64)
            .then(|| places.into_iter().collect())
    }

    /// Labels that are confused or hard to find.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let labels: Vec<&Slot> = self.counts.keys().collect();
        for (at, a) in labels.iter().enumerate() {
            for b in &labels[at + 1..] {
                let Some(places) = self.confused(a, b) else { continue };
                findings.push(Finding {
                    severity: Severity::Warning,
                    kind: FindingKind::Confused,
                    labels: vec![(*a).clone(), (*b).clone()],
                    message: format!("`{a}` and `{b}` are taken for each other when a sentence is tagged from the others"),
                    remedy: "give more sentences whose words around the span tell them apart, or make them one label".to_owned(),
                    sentences: places.into_iter().collect(),
                });
            }
        }
        for (slot, counts) in &self.counts {
            if counts.gold >= 2 && counts.f1() < HARD {
                findings.push(self.hard(slot, *counts));
            }
        }
        findings
    }

    fn hard(&self, slot: &Slot, counts: Counts) -> Finding {
        let concerns = |(gold, predicted): &(Option<Slot>, Option<Slot>)| {
            gold.as_ref() == Some(slot) || predicted.as_ref() == Some(slot)
        };
        let cases = self.confused.iter().filter(|(pair, _)| concerns(pair));
        let places: BTreeSet<usize> =
            cases.flat_map(|(_, places)| places.iter().copied()).collect();
        let Counts { gold, predicted, correct } = counts;
        Finding {
            severity: Severity::Warning,
            kind: FindingKind::HardToFind,
            labels: vec![slot.clone()],
            sentences: places.into_iter().collect(),
            message: format!(
                "tagged from the other sentences, {correct} of {gold} spans of `{slot}` are found, with {} wrong ones",
                predicted - correct
            ),
            remedy: format!(
                "add sentences with `{slot}` in other words, and look at those named here"
            ),
        }
    }
}

/// How many words two spans share.
fn overlap(a: &Span, b: &Span) -> usize {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}
