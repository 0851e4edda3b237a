//! doccano's JSON Lines for sequence labelling.
//!
//! ```text
//! {"text": "play nina", "label": [[5, 9, "artist"]]}
//! {"text": "play nina", "entities": [{"start_offset": 5, "end_offset": 9, "label": "artist"}]}
//! ```
//!
//! `labels` is read as `label`; the second form is what doccano exports with relations, and is read only.
//! `domain` is optional; other fields are skipped.

use std::borrow::Cow;
use std::fmt::Write;

use serde::Deserialize;

use crate::data::text::{self, Label};
use crate::data::{Codec, Collector, Render, json};
use crate::domain::Sentence;
use crate::error::Result;
use crate::scheme::Scheme;

pub(super) struct Doccano;

#[derive(Deserialize)]
struct DoccanoExample<'t> {
    #[serde(borrow)]
    text: Cow<'t, str>,
    #[serde(borrow, alias = "labels", default)]
    label: Vec<(usize, usize, Cow<'t, str>)>,
    #[serde(borrow, default)]
    entities: Vec<Entity<'t>>,
    domain: Option<String>,
}

#[derive(Deserialize)]
struct Entity<'t> {
    start_offset: usize,
    end_offset: usize,
    #[serde(borrow)]
    label: Cow<'t, str>,
}

impl Codec for Doccano {
    fn read(&self, text: &str, into: &mut Collector) -> Result<()> {
        json::read_records(text, into, |record: DoccanoExample, into, at| {
            let entities = record.entities.into_iter();
            let entities = entities.map(|e| (e.start_offset, e.end_offset, e.label));
            let labels = record.label.into_iter().chain(entities);
            let labels = labels.map(|(start, end, slot)| Label { chars: start..end, slot });
            into.add_text(record.domain.as_deref(), record.text, labels.collect(), at)
        })
    }

    fn renderer(&self, _: Scheme) -> Box<dyn Render + Send> {
        Box::new(json::Records::lines(push_record))
    }
}

fn push_record(sentence: &Sentence, domain: Option<&str>, _number: usize, out: &mut String) {
    let (text, marks) = text::marked(sentence);
    out.push_str("{\"text\": ");
    json::push(&text, out);
    out.push_str(", \"label\": ");
    json::push_list(marks, out, |mark, out| {
        let _ = write!(out, "[{}, {}, ", mark.chars.start, mark.chars.end);
        json::push(mark.slot.as_str(), out);
        out.push(']');
    });
    json::push_domain(domain, out);
    out.push('}');
}
