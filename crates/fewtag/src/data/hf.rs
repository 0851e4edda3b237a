//! JSON Lines with a tag per token, as Hugging Face datasets are exported.
//!
//! ```text
//! {"tokens": ["play", "nina", "simone"], "ner_tags": ["O", "B-artist", "I-artist"]}
//! ```
//!
//! `tags` is read as `ner_tags`. `domain` is optional; other fields are skipped. A JSON array of such records is read, too.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::data::{Codec, Collector, Problem, Render, json};
use crate::domain::Sentence;
use crate::error::Result;
use crate::scheme::Scheme;

pub(super) struct Hf;

#[derive(Deserialize)]
struct HfExample<'t> {
    tokens: Vec<String>,
    #[serde(borrow)]
    ner_tags: Option<Vec<RawTag<'t>>>,
    #[serde(borrow)]
    tags: Option<Vec<RawTag<'t>>>,
    domain: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawTag<'t> {
    Text(#[serde(borrow)] Cow<'t, str>),
    Number(IgnoredAny),
}

impl Codec for Hf {
    fn read(&self, text: &str, into: &mut Collector) -> Result<()> {
        json::read_records(text, into, |record: HfExample, into, at| {
            let tags = record.ner_tags.or(record.tags).unwrap_or_default();
            let tags: Option<Vec<&str>> = tags.iter().map(RawTag::text).collect();
            let tags = tags.ok_or_else(|| into.error(at(), Problem::NumericTags))?;
            into.add_tagged(record.domain.as_deref(), (record.tokens, &tags), at)
        })
    }

    fn renderer(&self, scheme: Scheme) -> Box<dyn Render + Send> {
        Box::new(Lines { scheme, domain: None })
    }
}

impl RawTag<'_> {
    fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Number(_) => None,
        }
    }
}

struct Lines {
    scheme: Scheme,
    domain: Option<String>,
}

impl Render for Lines {
    fn begin_domain(&mut self, name: Option<&str>, _: &mut String) {
        self.domain = name.map(str::to_owned);
    }

    fn sentence(&mut self, sentence: &Sentence, out: &mut String) -> Result<()> {
        out.push_str("{\"tokens\": ");
        json::push_list(sentence.words(), out, json::push);
        out.push_str(", \"ner_tags\": ");
        json::push_list(self.scheme.write(sentence), out, |tag, out| json::push(&tag, out));
        json::push_domain(self.domain.as_deref(), out);
        out.push_str("}\n");
        Ok(())
    }
}
