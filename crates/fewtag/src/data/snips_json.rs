//! Snips' JSON: a sentence as chunks of text, some with their slot.
//!
//! ```text
//! {"PlayMusic": [{"data": [{"text": "play "}, {"text": "nina", "entity": "artist"}]}]}
//! {"intents": {"PlayMusic": {"utterances": [{"data": [{"text": "nina", "slot_name": "artist"}]}]}}}
//! ```
//!
//! The first form is that of the published benchmark, and what we write; the second is that of the
//! Snips library. An intent is a domain. `slot_name`, if there is one, is the slot, else `entity`.

use serde::Deserialize;

use crate::data::text::{self, Label};
use crate::data::{At, Codec, Collector, Render, UNNAMED, json};
use crate::domain::Sentence;
use crate::error::Result;
use crate::scheme::Scheme;

pub(super) struct SnipsJson;

#[derive(Deserialize)]
struct Library {
    intents: json::InOrder<Intent>,
}

#[derive(Deserialize)]
struct Intent {
    utterances: Vec<Utterance>,
}

#[derive(Deserialize)]
struct Utterance {
    data: Vec<Chunk>,
}

#[derive(Deserialize)]
struct Chunk {
    text: String,
    slot_name: Option<String>,
    entity: Option<String>,
}

impl Codec for SnipsJson {
    fn read(&self, text: &str, into: &mut Collector) -> Result<()> {
        let fail = |(at, problem)| into.error(at, problem);
        let intents: Vec<(String, Vec<Utterance>)> = if is_library(text) {
            let library: Library = json::parse(text).map_err(fail)?;
            library.intents.0.into_iter().map(|(name, intent)| (name, intent.utterances)).collect()
        } else {
            json::parse::<json::InOrder<_>>(text).map_err(fail)?.0
        };
        for (domain, utterances) in intents {
            for (i, utterance) in utterances.into_iter().enumerate() {
                let at = || At::Example { domain: domain.clone(), number: i + 1 };
                let (text, labels) = joined(utterance.data);
                into.add_text(Some(&domain), text.into(), labels, at)?;
            }
        }
        Ok(())
    }

    fn renderer(&self, _: Scheme) -> Box<dyn Render + Send> {
        Box::new(Intents { n_domains: 0, n_sentences: 0 })
    }
}

/// Whether a file lists intents and utterances by these names: no JSON string can hold them, for its
/// quotes would have a backslash.
fn is_library(text: &str) -> bool {
    text.contains("\"intents\"") && text.contains("\"utterances\"")
}

fn joined(chunks: Vec<Chunk>) -> (String, Vec<Label<'static>>) {
    let mut text = String::new();
    let mut labels = Vec::new();
    let mut n_chars = 0;
    for chunk in chunks {
        let start = n_chars;
        n_chars += chunk.text.chars().count();
        text.push_str(&chunk.text);
        if let Some(slot) = chunk.slot_name.or(chunk.entity) {
            labels.push(Label { chars: start..n_chars, slot: slot.into() });
        }
    }
    (text, labels)
}

struct Intents {
    n_domains: usize,
    n_sentences: usize,
}

impl Render for Intents {
    fn begin(&mut self, out: &mut String) {
        out.push('{');
    }

    fn begin_domain(&mut self, name: Option<&str>, out: &mut String) {
        out.push_str(if self.n_domains > 0 { ",\n" } else { "" });
        json::push(name.unwrap_or(UNNAMED), out);
        out.push_str(": [");
        (self.n_domains, self.n_sentences) = (self.n_domains + 1, 0);
    }

    fn sentence(&mut self, sentence: &Sentence, out: &mut String) -> Result<()> {
        let (text, marks) = text::marked(sentence);
        out.push_str(if self.n_sentences > 0 { ",\n" } else { "\n" });
        self.n_sentences += 1;
        let mut chunks = Vec::new();
        let mut done = 0;
        for mark in marks {
            chunks.push((&text[done..mark.bytes.start], None));
            done = mark.bytes.end;
            chunks.push((&text[mark.bytes], Some(mark.slot)));
        }
        chunks.push((&text[done..], None));
        chunks.retain(|(text, _)| !text.is_empty());
        out.push_str("{\"data\": ");
        json::push_list(chunks, out, |(text, slot), out| {
            out.push_str("{\"text\": ");
            json::push(text, out);
            if let Some(slot) = slot {
                out.push_str(", \"entity\": ");
                json::push(slot.as_str(), out);
            }
            out.push('}');
        });
        out.push('}');
        Ok(())
    }

    fn end_domain(&mut self, out: &mut String) {
        out.push_str("\n]");
    }

    fn end(&mut self, out: &mut String) {
        out.push_str("}\n");
    }
}
