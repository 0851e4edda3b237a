//! GLiNER's training JSON: tokens, and labels by their first and last token.
//!
//! ```text
//! [{"tokenized_text": ["play", "nina", "simone"], "ner": [[1, 2, "artist"]]}]
//! ```
//!
//! The last token is **included**: `[1, 1, …]` labels one token. `domain` is optional; JSON Lines are read, too.

use std::fmt::Write;

use serde::Deserialize;

use crate::data::{Codec, Collector, Render, json};
use crate::domain::Sentence;
use crate::error::Result;
use crate::scheme::Scheme;

pub(super) struct Gliner;

#[derive(Deserialize)]
struct GlinerExample {
    tokenized_text: Vec<String>,
    ner: Vec<(usize, usize, String)>,
    domain: Option<String>,
}

impl Codec for Gliner {
    fn read(&self, text: &str, into: &mut Collector) -> Result<()> {
        json::read_records(text, into, |record: GlinerExample, into, at| {
            let spans = record.ner.into_iter();
            let spans = spans.map(|(first, last, slot)| (first..last.saturating_add(1), slot));
            into.add_spans(record.domain.as_deref(), (record.tokenized_text, spans.collect()), at)
        })
    }

    fn renderer(&self, _: Scheme) -> Box<dyn Render + Send> {
        Box::new(json::Records::array(push_record))
    }
}

fn push_record(sentence: &Sentence, domain: Option<&str>, _number: usize, out: &mut String) {
    out.push_str("{\"tokenized_text\": ");
    json::push_list(sentence.words(), out, json::push);
    out.push_str(", \"ner\": ");
    json::push_list(sentence.spans(), out, |span, out| {
        let _ = write!(out, "[{}, {}, ", span.start, span.end - 1);
        json::push(span.slot.as_str(), out);
        out.push(']');
    });
    json::push_domain(domain, out);
    out.push('}');
}
