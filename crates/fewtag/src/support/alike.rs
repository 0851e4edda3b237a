//! Labels that the encoder can hardly tell apart, also where each has a single example.
//!
//! ```text
//! c_a = mean vector of the words labelled a,  c_O = mean vector of the words without a label      [d]
//! likeness(a, b) = cos(c_a − c_O, c_b − c_O)
//! ```
//!
//! Without taking `c_O` away all centres look alike: vectors of words in similar sentences share a large part.

use std::collections::BTreeMap;

use super::leave_one_out::Judgement;
use super::{Finding, FindingKind, Severity};
use crate::domain::SupportSet;
use crate::matrix::{self, Matrix};
use crate::tag::Slot;

/// From this likeness on, two labels are told. In ten 3-shot sets of five corpora this tells one pair that leaving out had not
/// shown already: `departure_date` and `return_date` of flights.
const ALIKE: f32 = 0.9;

/// Pairs of labels that are alike and that leaving out has not already shown to be confused.
pub(super) fn findings(
    support: &SupportSet,
    (words, width): (&[Matrix], usize),
    judgement: &Judgement,
) -> Vec<Finding> {
    let centres = centres(support, words, width);
    let mut findings = Vec::new();
    for (at, (a, centre_a)) in centres.iter().enumerate() {
        for (b, centre_b) in &centres[at + 1..] {
            let likeness = matrix::cosine(centre_a, centre_b);
            if likeness < ALIKE || judgement.confused(a, b).is_some() {
                continue;
            }
            findings.push(Finding {
                severity: Severity::Note,
                kind: FindingKind::Alike,
                labels: vec![a.clone(), b.clone()],
                sentences: Vec::new(),
                message: format!("the words of `{a}` and `{b}` look alike to the encoder (likeness {likeness:.2} of 1)"),
                remedy: "give sentences whose words around the span tell them apart, or make them one label".to_owned(),
            });
        }
    }
    findings
}

/// The centre of each label, seen from the centre of the words without a label.
fn centres(support: &SupportSet, words: &[Matrix], width: usize) -> Vec<(Slot, Vec<f32>)> {
    let mut rows: BTreeMap<Option<&Slot>, Vec<&[f32]>> = BTreeMap::new();
    for (sentence, vectors) in support.sentences().iter().zip(words) {
        for (tag, row) in sentence.tags().zip(vectors.rows()) {
            rows.entry(tag.slot()).or_default().push(&row[..width]);
        }
    }
    let plain = rows.remove(&None).map(matrix::mean);
    let centre = |(slot, rows): (Option<&Slot>, Vec<&[f32]>)| {
        let mut centre = matrix::mean(rows);
        if let Some(plain) = &plain {
            matrix::add_scaled(&mut centre, -1.0, plain);
        }
        Some((slot?.clone(), centre))
    };
    rows.into_iter().filter_map(centre).collect()
}
