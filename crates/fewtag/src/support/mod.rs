//! Support sets in the making: what is wrong or weak in one, and which sentences to label next.
//!
//! ```text
//! sentences ─ check ─▶ Report: labels (found again when left out?), confusions, findings with remedies
//! pool      ─ suggest ─▶ the sentences that would teach most
//! ```
//!
//! A support set is small and made by hand, so a single slip in it shows in every answer. [`check`] looks at the texts
//! (`texts.rs`), tags each sentence from all the others (`leave_one_out.rs`) and compares the labels' centres
//! (`alike.rs`). Sentences are numbered from 1, in the order in which they were given.

mod alike;
mod leave_one_out;
mod suggest;
mod texts;

use serde::Serialize;

use crate::adapted::SupportRows;
use crate::domain::{Sentence, SupportSet};
use crate::error::{Error, Result};
use crate::reading::{self, Plan};
use crate::tag::Slot;
use crate::tagger::Tagger;

pub use suggest::{CANDIDATES, Reason, Suggestion, suggest};

use leave_one_out::Judgement;

/// What there is to say about a support set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// How many sentences were given.
    pub n_sentences: usize,
    /// How many of them were tagged from the others.
    pub n_judged: usize,
    /// Every label, by name.
    pub labels: Vec<LabelReport>,
    /// What was taken for what when sentences were tagged from the others, the most frequent first.
    pub confusions: Vec<Confusion>,
    /// What should be looked at, the gravest first.
    pub findings: Vec<Finding>,
}

/// One label of a support set. Scores are fractions, `None` if no span could be judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelReport {
    /// Its name.
    pub label: Slot,
    /// In how many sentences it occurs.
    pub n_sentences: usize,
    /// How many spans carry it.
    pub n_spans: usize,
    /// How many of them were judged: those whose label also occurs in the sentences they were tagged from.
    pub n_judged: usize,
    /// The share of its predicted spans that is right.
    pub precision: Option<f64>,
    /// The share of its judged spans that was found.
    pub recall: Option<f64>,
    /// The harmonic mean of both.
    pub f1: Option<f64>,
}

/// Spans of one label that were taken for another; `None` is no label. The same label twice: its words were cut otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Confusion {
    /// The label that was given.
    pub gold: Option<Slot>,
    /// The label that was predicted from the other sentences.
    pub predicted: Option<Slot>,
    /// How often.
    pub n: usize,
    /// In which sentences.
    pub sentences: Vec<usize>,
}

/// Something to look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How grave it is.
    pub severity: Severity,
    /// What kind of thing it is.
    pub kind: FindingKind,
    /// The labels concerned.
    pub labels: Vec<Slot>,
    /// The sentences concerned.
    pub sentences: Vec<usize>,
    /// What was found.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The set contradicts itself or cannot be used as it is.
    Error,
    /// Answers will likely be worse for it.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// The name, as in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// What kind of thing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FindingKind {
    /// No word carries a label.
    NothingLabelled,
    /// A sentence has more pieces than the encoder reads.
    TooLong,
    /// Sentences with the same words and different labels.
    Contradiction,
    /// A label none of whose spans begins with `B`.
    NoBegin,
    /// No word is without a label, so that every word will get one.
    NoPlainWords,
    /// The words of a span stand without a label in another sentence.
    UnlabelledElsewhere,
    /// Labels that are taken for each other when sentences are tagged from the others.
    Confused,
    /// Labels whose words the encoder sees as nearly the same.
    Alike,
    /// A label that is mostly not found when its sentences are tagged from the others.
    HardToFind,
    /// A label in one sentence only.
    SingleExample,
    /// Sentences that occur more than once.
    Duplicate,
}

/// Looks for what is wrong or weak in labelled sentences that a tagger is to learn from.
///
/// With `n` sentences this reads each of them once in separate context, and `n²` pairs, at most 10,000, in paired context.
///
/// # Errors
///
/// If the tokenizer or the encoder fails. A fault of the sentences is a finding, not an error.
pub fn check(tagger: &Tagger, sentences: &[Sentence]) -> Result<Report> {
    let mut findings = texts::findings(sentences);
    let mut read = Vec::new(); // The numbers of the sentences that the encoder can read, from 0.
    let mut plan = Plan::default();
    for (i, sentence) in sentences.iter().enumerate() {
        match plan.alone(tagger, sentence, String::new) {
            Err(Error::TooLong { n_pieces, max, .. }) => {
                findings.push(too_long(i + 1, n_pieces, max));
            }
            other => {
                other?;
                read.push(i);
            }
        }
    }
    let readable: Vec<Sentence> = read.iter().map(|&i| sentences[i].clone()).collect();
    let mut judgement = Judgement::default();
    match SupportSet::new(readable) {
        Err(Error::EmptySupport) => findings.push(nothing_labelled()),
        Err(other) => return Err(other),
        Ok(support) => {
            let names = plan.names(tagger, &support, &tagger.settings().tag_set(&support))?;
            let mut words = reading::embed(tagger.engine(), plan.sequences())?;
            let names = reading::stacked(&words[names]);
            words.truncate(read.len());
            let rows = SupportRows { words: words.into(), names };
            judgement = leave_one_out::judge(tagger, &support, &rows)?;
            judgement.renumber(&read);
            findings.extend(judgement.findings());
            let width = tagger.engine().width();
            findings.extend(alike::findings(&support, (&rows.words, width), &judgement));
        }
    }
    findings.sort_by_key(|finding| (finding.severity, finding.kind));
    Ok(Report {
        n_sentences: sentences.len(),
        n_judged: judgement.n_judged,
        labels: judgement.labels(sentences),
        confusions: judgement.confusions(),
        findings,
    })
}

fn too_long(number: usize, n_pieces: usize, max: usize) -> Finding {
    Finding {
        severity: Severity::Error,
        kind: FindingKind::TooLong,
        labels: Vec::new(),
        sentences: vec![number],
        message: format!("it has {n_pieces} word pieces; the encoder reads at most {max}"),
        remedy: "shorten it, or split it into sentences".to_owned(),
    }
}

fn nothing_labelled() -> Finding {
    Finding {
        severity: Severity::Error,
        kind: FindingKind::NothingLabelled,
        labels: Vec::new(),
        sentences: Vec::new(),
        message: "no word carries a label".to_owned(),
        remedy: "mark at least one span of each label, as in `play [nina simone](artist)`"
            .to_owned(),
    }
}

/// `2`, `2 and 5`, `2, 5 and 7`, `2, 5, 7 and 12 more`.
fn listed(numbers: &[usize]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> = numbers.iter().take(SHOWN).map(ToString::to_string).collect();
    match (numbers.len(), shown.split_last()) {
        (n, _) if n > SHOWN => format!("{} and {} more", shown.join(", "), n - SHOWN),
        (_, Some((last, before))) if !before.is_empty() => {
            format!("{} and {last}", before.join(", "))
        }
        _ => shown.concat(),
    }
}
