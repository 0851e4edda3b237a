//! Snips' YAML: an intent a document, label and text swapped against Rasa.
//!
//! ```text
//! ---
//! type: intent
//! name: PlayMusic
//! utterances:
//!   - play [artist:person](nina)
//! ```
//!
//! An intent is a domain. What stands behind the colon is the type of the slot and is not kept; we write the
//! slot's name in its place. Documents of `type: entity` are skipped with a note.

use serde::Deserialize;

use crate::data::markup::{self, Dialect};
use crate::data::{At, Codec, Collector, Render, UNNAMED, check_line, yaml};
use crate::domain::Sentence;
use crate::error::Result;
use crate::scheme::Scheme;

pub(super) struct SnipsYaml;

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "type")]
    kind: String,
    name: String,
    #[serde(default)]
    utterances: Vec<String>,
}

impl Codec for SnipsYaml {
    fn read(&self, text: &str, into: &mut Collector) -> Result<()> {
        let documents: Vec<Document> =
            yaml::parse(text).map_err(|(at, problem)| into.error(at, problem))?;
        let (intents, others): (Vec<_>, Vec<_>) =
            documents.into_iter().partition(|document| document.kind == "intent");
        for Document { name, utterances, .. } in intents {
            for (i, utterance) in utterances.iter().enumerate() {
                let at = || At::Example { domain: name.clone(), number: i + 1 };
                let unmarked =
                    check_line(utterance).and_then(|()| markup::parse(utterance, Dialect::Snips));
                let unmarked = unmarked.map_err(|problem| into.error(at(), problem))?;
                into.add_text(Some(&name), unmarked.text.into(), unmarked.labels, at)?;
            }
        }
        into.ignored("documents that are no intent", others.len());
        Ok(())
    }

    fn renderer(&self, _: Scheme) -> Box<dyn Render + Send> {
        Box::new(Intents)
    }
}

struct Intents;

impl Render for Intents {
    fn begin_domain(&mut self, name: Option<&str>, out: &mut String) {
        out.push_str("---\ntype: intent\nname: ");
        yaml::push(name.unwrap_or(UNNAMED), out);
        out.push_str("\nutterances:\n");
    }

    fn sentence(&mut self, sentence: &Sentence, out: &mut String) -> Result<()> {
        out.push_str("  - ");
        yaml::push(&markup::line(sentence, Dialect::Snips), out);
        out.push('\n');
        Ok(())
    }
}
