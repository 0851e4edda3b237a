//! JSON Lines as Prodigy and spaCy's converters have them: text, and labels on characters.
//!
//! ```text
//! {"text": "play nina", "spans": [{"start": 5, "end": 9, "label": "artist"}],
//!  "tokens": [{"text": "play", "start": 0, "end": 4, "id": 0}, …]}
//! ```
//!
//! (One line in the file.) If `tokens` are given they are the words; we always write them, so a round trip restores the words.
//! Records that Prodigy's annotator rejected or skipped (`"answer"`) are left out with a note. `domain` is optional.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

use serde::Deserialize;

use crate::data::text::{self, Label};
use crate::data::{Codec, Collector, Problem, Render, json};
use crate::domain::Sentence;
use crate::error::Result;
use crate::scheme::Scheme;
use crate::words::Offsets;

pub(super) struct Spacy;

#[derive(Deserialize)]
struct SpacyExample<'t> {
    #[serde(borrow)]
    text: Cow<'t, str>,
    #[serde(borrow, default)]
    spans: Vec<RawSpan<'t>>,
    tokens: Option<Vec<RawToken>>,
    answer: Option<String>,
    domain: Option<String>,
}

#[derive(Deserialize)]
struct RawSpan<'t> {
    start: usize,
    end: usize,
    #[serde(borrow)]
    label: Cow<'t, str>,
}

#[derive(Deserialize)]
struct RawToken {
    start: usize,
    end: usize,
}

impl Codec for Spacy {
    fn read(&self, text: &str, into: &mut Collector) -> Result<()> {
        let mut n_unaccepted = 0;
        json::read_records(text, into, |record: SpacyExample, into, at| {
            if record.answer.is_some_and(|answer| answer != "accept") {
                n_unaccepted += 1;
                return Ok(());
            }
            let labels = record.spans.into_iter();
            let labels = labels.map(|span| Label { chars: span.start..span.end, slot: span.label });
            let (domain, labels) = (record.domain.as_deref(), labels.collect());
            match record.tokens {
                None => into.add_text(domain, record.text, labels, at),
                Some(tokens) => {
                    let words = token_ranges(&record.text, &tokens);
                    let words = words.map_err(|problem| into.error(at(), problem))?;
                    into.add_words(domain, (record.text, words), labels, at)
                }
            }
        })?;
        into.ignored("records that the annotator did not accept", n_unaccepted);
        Ok(())
    }

    fn renderer(&self, _: Scheme) -> Box<dyn Render + Send> {
        Box::new(json::Records::lines(push_record))
    }
}

/// The bytes of each token.
fn token_ranges(text: &str, tokens: &[RawToken]) -> Result<Vec<Range<usize>>, Problem> {
    let offsets = Offsets::new(text);
    let mut ranges = Vec::with_capacity(tokens.len());
    let mut end_before = 0;
    for token in tokens {
        match (offsets.byte(token.start), offsets.byte(token.end)) {
            (Some(start), Some(end)) if end_before <= start && start < end => {
                // Prodigy makes tokens of line breaks; they are no words.
                if !text[start..end].trim().is_empty() {
                    ranges.push(start..end);
                }
                end_before = end;
            }
            _ => {
                let at = format!("{}..{}", token.start, token.end);
                return Err(Problem::TokensDisagree { at });
            }
        }
    }
    Ok(ranges)
}

fn push_record(sentence: &Sentence, domain: Option<&str>, _number: usize, out: &mut String) {
    let (text, marks) = text::marked(sentence);
    out.push_str("{\"text\": ");
    json::push(&text, out);
    out.push_str(", \"spans\": ");
    json::push_list(marks, out, |mark, out| {
        json::push_range(&mark.chars, out);
        out.push_str(", \"label\": ");
        json::push(mark.slot.as_str(), out);
        out.push('}');
    });
    out.push_str(", \"tokens\": ");
    let offsets = Offsets::new(&text);
    json::push_list(sentence.text().1.iter().enumerate(), out, |(id, word), out| {
        json::push_range(&offsets.chars(word), out);
        out.push_str(", \"text\": ");
        json::push(&text[word.clone()], out);
        let _ = write!(out, ", \"id\": {id}}}");
    });
    json::push_domain(domain, out);
    out.push('}');
}
