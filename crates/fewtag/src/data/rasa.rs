//! Rasa's NLU training data in YAML.
//!
//! ```text
//! version: "3.1"
//! nlu:
//! - intent: PlayMusic
//!   examples: |
//!     - play [nina](artist)
//!     - play [nina]{"entity": "artist", "role": "singer"}
//! ```
//!
//! An intent is a domain. Values, roles and groups of entities are not kept, nor are synonyms, lookups
//! and regular expressions; a note says so. `examples` may also be a list of `text` with metadata.

use serde::Deserialize;

use crate::data::markup::{self, Dialect};
use crate::data::{At, Codec, Collector, Format, Render, UNNAMED, check_line, yaml};
use crate::domain::Sentence;
use crate::error::{Error, Result};
use crate::scheme::Scheme;

pub(super) struct Rasa;

#[derive(Deserialize)]
struct File {
    nlu: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    intent: Option<String>,
    examples: Option<Examples>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Examples {
    Block(String),
    List(Vec<Example>),
}

#[derive(Deserialize)]
struct Example {
    text: String,
}

impl Codec for Rasa {
    fn read(&self, text: &str, into: &mut Collector) -> Result<()> {
        let files: Vec<File> =
            yaml::parse(text).map_err(|(at, problem)| into.error(at, problem))?;
        let (mut n_items, mut n_extras) = (0, 0);
        for Item { intent, examples } in files.into_iter().flat_map(|file| file.nlu) {
            let (Some(domain), Some(examples)) = (intent, examples) else {
                n_items += 1;
                continue;
            };
            for (i, example) in examples.texts().into_iter().enumerate() {
                let at = || At::Example { domain: domain.clone(), number: i + 1 };
                let unmarked =
                    check_line(&example).and_then(|()| markup::parse(&example, Dialect::Rasa));
                let unmarked = unmarked.map_err(|problem| into.error(at(), problem))?;
                n_extras += unmarked.n_extras;
                into.add_text(Some(&domain), unmarked.text.into(), unmarked.labels, at)?;
            }
        }
        into.ignored("synonyms, lookups and regular expressions", n_items);
        into.ignored("values, roles and groups of entities", n_extras);
        Ok(())
    }

    fn renderer(&self, _: Scheme) -> Box<dyn Render + Send> {
        Box::new(Intents)
    }
}

impl Examples {
    fn texts(self) -> Vec<String> {
        match self {
            Self::Block(text) => {
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                lines.map(|line| line.strip_prefix('-').unwrap_or(line).trim().to_owned()).collect()
            }
            Self::List(list) => {
                list.into_iter().map(|example| example.text.trim().to_owned()).collect()
            }
        }
    }
}

struct Intents;

impl Render for Intents {
    fn begin(&mut self, out: &mut String) {
        out.push_str("version: \"3.1\"\n\nnlu:\n");
    }

    fn begin_domain(&mut self, name: Option<&str>, out: &mut String) {
        out.push_str("- intent: ");
        yaml::push(name.unwrap_or(UNNAMED), out);
        out.push_str("\n  examples: |\n");
    }

    fn sentence(&mut self, sentence: &Sentence, out: &mut String) -> Result<()> {
        let line = markup::line(sentence, Dialect::Rasa);
        // A block of YAML has no escapes.
        let raw = |c: char| {
            c.is_control() && c != '\t' || matches!(c, '\u{FEFF}' | '\u{FFFE}' | '\u{FFFF}')
        };
        if let Some(c) = line.chars().find(|c| raw(*c)) {
            let what = format!("the character {c:?}");
            return Err(Error::Unwritable { format: Format::Rasa, what });
        }
        out.extend(["    - ", &line, "\n"]);
        Ok(())
    }
}
