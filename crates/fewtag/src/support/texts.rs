//! What the sentences themselves show, before any model reads them.
//!
//! Words are compared without regard to case, as the built-in encoder reads them.

use std::collections::{BTreeMap, HashMap};

use super::{Finding, FindingKind, Severity, listed};
use crate::domain::Sentence;
use crate::tag::{Slot, Span, Tag, TagClass};

/// Spans of more words are not looked for elsewhere: they hardly occur twice.
const MAX_SPAN: usize = 8;

/// All findings of this kind.
pub(super) fn findings(sentences: &[Sentence]) -> Vec<Finding> {
    let mut findings = same_words(sentences);
    findings.extend(unlabelled_elsewhere(sentences));
    findings.extend(weak_labels(sentences));
    findings.extend(no_plain_words(sentences));
    findings
}

/// Sentences with the same words: duplicates if their tags agree too, else contradictions.
fn same_words(sentences: &[Sentence]) -> Vec<Finding> {
    let mut by_words: BTreeMap<Vec<String>, Vec<usize>> = BTreeMap::new();
    for (i, sentence) in sentences.iter().enumerate() {
        by_words.entry(lower(sentence)).or_default().push(i);
    }
    let mut findings = Vec::new();
    for same in by_words.values().filter(|same| same.len() > 1) {
        let numbers: Vec<usize> = same.iter().map(|i| i + 1).collect();
        let first = &sentences[same[0]];
        let differs = same.iter().find(|&&i| !sentences[i].tags().eq(first.tags()));
        findings.push(match differs {
            None => Finding {
                severity: Severity::Note,
                kind: FindingKind::Duplicate,
                labels: Vec::new(),
                message: format!("sentences {} are the same", listed(&numbers)),
                remedy: "keep one: the others teach nothing new but count again".to_owned(),
                sentences: numbers,
            },
            Some(&other) => Finding {
                severity: Severity::Error,
                kind: FindingKind::Contradiction,
                labels: labels_of([first, &sentences[other]]),
                message: format!(
                    "sentences {} have the same words but are labelled differently",
                    listed(&numbers)
                ),
                remedy: "decide which labels are meant and delete the other sentence".to_owned(),
                sentences: numbers,
            },
        });
    }
    findings
}

fn labels_of<'a>(sentences: impl IntoIterator<Item = &'a Sentence>) -> Vec<Slot> {
    let spans = sentences.into_iter().flat_map(Sentence::spans);
    let mut labels: Vec<Slot> = spans.map(|span| span.slot).collect();
    labels.sort_unstable();
    labels.dedup();
    labels
}

/// The words of spans that stand without a label in another sentence.
fn unlabelled_elsewhere(sentences: &[Sentence]) -> Vec<Finding> {
    let mut spans: HashMap<String, (Slot, usize)> = HashMap::new();
    for (i, sentence) in sentences.iter().enumerate() {
        let words = lower(sentence);
        for Span { start, end, slot } in sentence.spans() {
            if end - start <= MAX_SPAN {
                spans.entry(words[start..end].join(" ")).or_insert((slot, i + 1));
            }
        }
    }
    let mut plain: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (i, sentence) in sentences.iter().enumerate() {
        for text in plain_runs(sentence) {
            if spans.contains_key(&text) {
                let places = plain.entry(text).or_default();
                if places.last() != Some(&(i + 1)) {
                    places.push(i + 1);
                }
            }
        }
    }
    let finding = |(text, places): (String, Vec<usize>)| {
        let (slot, labelled) = spans[&text].clone();
        let many = if places.len() > 1 { "sentences" } else { "sentence" };
        Finding {
            severity: Severity::Warning,
            kind: FindingKind::UnlabelledElsewhere,
            message: format!(
                "`{text}` is `{slot}` in sentence {labelled} and has no label in {many} {}",
                listed(&places)
            ),
            remedy: "label it there too, unless it means something else there".to_owned(),
            labels: vec![slot],
            sentences: [labelled].into_iter().chain(places).collect(),
        }
    };
    plain.into_iter().map(finding).collect()
}

/// Every run of at most [`MAX_SPAN`] words without a label.
fn plain_runs(sentence: &Sentence) -> Vec<String> {
    let words = lower(sentence);
    let plain: Vec<bool> = sentence.tags().map(|tag| *tag == Tag::O).collect();
    let mut runs = Vec::new();
    for start in 0..words.len() {
        let length = plain[start..].iter().take(MAX_SPAN).take_while(|plain| **plain).count();
        runs.extend((1..=length).map(|n| words[start..start + n].join(" ")));
    }
    runs
}

/// Labels with a single sentence, and labels that never begin.
fn weak_labels(sentences: &[Sentence]) -> Vec<Finding> {
    let mut places: BTreeMap<Slot, Vec<usize>> = BTreeMap::new();
    let mut begins: BTreeMap<Slot, bool> = BTreeMap::new();
    for (i, sentence) in sentences.iter().enumerate() {
        for tag in sentence.tags() {
            if let Some(slot) = tag.slot() {
                let places = places.entry(slot.clone()).or_default();
                if places.last() != Some(&(i + 1)) {
                    places.push(i + 1);
                }
                *begins.entry(slot.clone()).or_default() |= tag.class() == TagClass::B;
            }
        }
    }
    let mut findings = Vec::new();
    for (slot, sentences) in places {
        if !begins[&slot] {
            findings.push(Finding {
                severity: Severity::Warning,
                kind: FindingKind::NoBegin,
                labels: vec![slot.clone()],
                sentences: sentences.clone(),
                message: format!("no span of `{slot}` begins with `B-{slot}`"),
                remedy: format!("tag the first word of each span `B-{slot}`"),
            });
        }
        if sentences.len() == 1 {
            findings.push(Finding {
                severity: Severity::Warning,
                kind: FindingKind::SingleExample,
                message: format!(
                    "`{slot}` occurs in one sentence only, so nothing shows whether it is learned"
                ),
                remedy: format!("add another sentence with `{slot}`, worded differently"),
                labels: vec![slot],
                sentences,
            });
        }
    }
    findings
}

fn no_plain_words(sentences: &[Sentence]) -> Option<Finding> {
    let labelled = sentences.iter().any(|s| s.tags().any(|tag| *tag != Tag::O));
    let plain = sentences.iter().any(|s| s.tags().any(|tag| *tag == Tag::O));
    (labelled && !plain).then(|| Finding {
        severity: Severity::Warning,
        kind: FindingKind::NoPlainWords,
        labels: Vec::new(),
        sentences: Vec::new(),
        message: "every word carries a label, so every word of a text will get one".to_owned(),
        remedy: "give whole sentences, with the words around the spans".to_owned(),
    })
}

fn lower(sentence: &Sentence) -> Vec<String> {
    sentence.words().map(str::to_lowercase).collect()
}
