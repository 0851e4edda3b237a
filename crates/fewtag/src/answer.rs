//! Answers for programs: what `fewtag tag --format json` prints and the server sends.
//!
//! ```text
//! {"text", "spans": [{"start", "end", "label", "text", "probability", "explanation"?}]}
//! ```
//!
//! `start` and `end` count Unicode scalar values. Explanations are there if they were asked for.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::adapted::{Scored, Tagged, TaggedSpan};
use crate::domain::{Sentence, SupportSet};
use crate::emission::{Source, WordAt};
use crate::explain::{Evidence, Explanation};
use crate::tag::{self, Span, TagSet};
use crate::words::Offsets;

/// A text and the spans found in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Answer {
    /// The text as it was given.
    pub text: String,
    /// From left to right.
    pub spans: Vec<AnswerSpan>,
}

/// A span for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AnswerSpan {
    /// The first character, in Unicode scalar values.
    pub start: usize,
    /// One past the last character.
    pub end: usize,
    /// The slot.
    pub label: String,
    /// The characters themselves.
    pub text: String,
    /// The probability that exactly these words form a span of this slot, to four decimals.
    pub probability: f64,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Why>,
}

/// Why a span was tagged; `score = examples + transitions`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Why {
    /// The score of the span in its sentence.
    pub score: f64,
    /// What the examples said together: the sum of the scores below.
    pub examples: f64,
    /// What the transitions between tags added.
    pub transitions: f64,
    /// What spoke for the span, the strongest first.
    #[serde(rename = "voices")]
    pub evidence: Vec<AnswerEvidence>,
    /// What came second.
    pub runner_up: Option<AnswerRunnerUp>,
}

/// An example word, or the slot's name, that spoke for a span.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(untagged)]
pub enum AnswerEvidence {
    /// A word of an example.
    Word {
        /// Which example, counted from 0.
        sentence: usize,
        /// Which of its words, counted from 0.
        word: usize,
        /// The word.
        text: String,
        /// How much it gave.
        score: f32,
        /// How much of it to each word of the span.
        words: Vec<f32>,
    },
    /// The name of the slot.
    LabelName {
        /// Always true.
        label_name: bool,
        /// How much it gave.
        score: f32,
        /// How much of it to each word of the span.
        words: Vec<f32>,
    },
}

/// What the words of a span would have been otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AnswerRunnerUp {
    /// The slot; null is no slot.
    pub label: Option<String>,
    /// How much lower its score is.
    pub margin: f64,
}

/// How probable a span must be to be kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Thresholds {
    /// For slots without a threshold of their own.
    pub general: f64,
    /// For these slots.
    pub of_label: BTreeMap<String, f64>,
}

impl Thresholds {
    /// A slot that has a threshold but is not among `tags`.
    #[must_use]
    pub fn unknown_label(&self, tags: &TagSet) -> Option<&str> {
        let slots = tags.slots();
        let known = |label: &str| slots.iter().any(|slot| slot.as_str() == label);
        self.of_label.keys().map(String::as_str).find(|label| !known(label))
    }

    /// Whether the span is probable enough.
    #[must_use]
    pub fn allow(&self, span: &TaggedSpan) -> bool {
        let least = self.of_label.get(span.span.slot.as_str()).copied().unwrap_or(self.general);
        f64::from(span.probability) >= least
    }
}

impl Answer {
    /// The spans of `tagged`, which must be those of `sentence`.
    #[must_use]
    pub fn new(sentence: &Sentence, tagged: &Tagged) -> Self {
        let (text, words) = sentence.text();
        let offsets = Offsets::new(&text);
        let span = |found: &TaggedSpan| {
            let bytes = words[found.span.start].start..words[found.span.end - 1].end;
            let chars = offsets.chars(&bytes);
            AnswerSpan {
                start: chars.start,
                end: chars.end,
                label: found.span.slot.as_str().to_owned(),
                text: text[bytes].to_owned(),
                probability: (f64::from(found.probability) * 1e4).round() / 1e4,
                explanation: None,
            }
        };
        let spans = tagged.spans.iter().map(span).collect();
        Self { text: text.into_owned(), spans }
    }

    /// The same with explanations; `scored` and `tagged` must be those of `sentence`, `support` what they come from.
    #[must_use]
    pub fn explained(
        sentence: &Sentence,
        tagged: &Tagged,
        scored: &Scored,
        support: &SupportSet,
    ) -> Self {
        let mut answer = Self::new(sentence, tagged);
        for (span, why) in answer.spans.iter_mut().zip(scored.explain(tagged)) {
            span.explanation = Some(Why::new(why, support));
        }
        answer
    }
}

impl Why {
    fn new(why: Explanation, support: &SupportSet) -> Self {
        let (score, examples, transitions) = (why.total(), why.emission(), why.transitions);
        let runner_up = why.runner_up.map(|second| AnswerRunnerUp {
            label: second.slot.map(|slot| slot.as_str().to_owned()),
            margin: second.margin,
        });
        let evidence = why.evidence.into_iter();
        let evidence = evidence.map(|one| AnswerEvidence::new(one, support)).collect();
        Self { score, examples, transitions, evidence, runner_up }
    }
}

impl AnswerEvidence {
    fn new(Evidence { source, score, words }: Evidence, support: &SupportSet) -> Self {
        match source {
            Source::LabelName => Self::LabelName { label_name: true, score, words },
            Source::Word(WordAt { sentence, word }) => {
                let text = support.sentences()[sentence].tokens()[word].word.clone();
                Self::Word { sentence, word, text, score, words }
            }
        }
    }

    /// How much it gave.
    #[must_use]
    pub fn score(&self) -> f32 {
        match self {
            Self::Word { score, .. } | Self::LabelName { score, .. } => *score,
        }
    }
}

/// The sentence with the tags of its spans, for the data formats.
#[must_use]
pub fn labelled(sentence: &Sentence, tagged: &Tagged) -> Sentence {
    let spans: Vec<Span> = tagged.spans.iter().map(|found| found.span.clone()).collect();
    sentence.with_tags(tag::bio_tags(&spans, sentence.n_words()))
}
