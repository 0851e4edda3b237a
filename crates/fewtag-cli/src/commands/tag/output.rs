//! Answers as people or programs read them.

use std::fmt::Write as _;
use std::io::Write;
use std::str::FromStr;

use fewtag::data::{self, Writer};
use fewtag::words::Offsets;
use fewtag::{Scored, Sentence, SupportSet, Tag, Tagged, tag};
use serde_json::{Value, json};

use super::explain;
use super::html::Page;

const BOLD: &str = "\u{1b}[1;36m";
const YELLOW: &str = "\u{1b}[33m";
const FAINT: &str = "\u{1b}[2m";
const RESET: &str = "\u{1b}[0m";

/// What `--format` may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputFormat {
    /// For people at a terminal.
    Text,
    /// One JSON array.
    Json,
    /// One JSON object a line.
    Jsonl,
    /// A format of labelled data.
    Data(data::Format),
}

impl FromStr for OutputFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "jsonl" => Ok(Self::Jsonl),
            _ => text.parse().map(Self::Data).map_err(|_| {
                format!(
                    "`{text}` is no output format (text, json, jsonl, {})",
                    data::Format::names()
                )
            }),
        }
    }
}

/// Writes answers one after the other.
pub(super) enum Output<'a, W: Write> {
    Text { out: &'a mut W, colour: bool, explain: Option<&'a SupportSet> },
    Json { out: &'a mut W, n_written: usize, explain: Option<&'a SupportSet> },
    Jsonl { out: &'a mut W, explain: Option<&'a SupportSet> },
    Data(Writer<&'a mut W>),
    Html { out: &'a mut W, page: Page<'a> },
}

/// An answer: the sentence, its tags, and the scores behind them.
#[derive(Clone, Copy)]
pub(super) struct Answer<'a> {
    pub(super) sentence: &'a Sentence,
    pub(super) tagged: &'a Tagged,
    pub(super) scored: &'a Scored<'a>,
}

impl<W: Write> Output<'_, W> {
    /// Writes one answer.
    pub(super) fn write(&mut self, answer: Answer) -> anyhow::Result<()> {
        match self {
            Self::Text { out, colour, explain } => {
                writeln!(out, "{}", marked(answer, *colour))?;
                if let Some(support) = explain {
                    out.write_all(explain::text(answer, support).as_bytes())?;
                }
            }
            Self::Json { out, n_written, explain } => {
                let start = if *n_written == 0 { "[\n" } else { ",\n" };
                *n_written += 1;
                write!(out, "{start}{}", as_json(answer, *explain))?;
            }
            Self::Jsonl { out, explain } => writeln!(out, "{}", as_json(answer, *explain))?,
            Self::Data(writer) => writer.sentence(&labelled(answer)?)?,
            Self::Html { page, .. } => page.add(answer),
        }
        Ok(())
    }

    /// Makes what was written visible.
    pub(super) fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Text { out, .. } | Self::Json { out, .. } | Self::Jsonl { out, .. } => {
                out.flush()
            }
            Self::Data(writer) => writer.get_mut().flush(),
            Self::Html { .. } => Ok(()), // The page is written at the end.
        }
    }

    /// Writes what follows the last answer.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Json { out, n_written: 0, .. } => writeln!(out, "[]")?,
            Self::Json { out, .. } => writeln!(out, "\n]")?,
            Self::Data(writer) => {
                writer.finish()?;
            }
            Self::Html { out, page } => out.write_all(page.finish().as_bytes())?,
            Self::Text { .. } | Self::Jsonl { .. } => {}
        }
        Ok(())
    }
}

/// The sentence with its spans marked: `put on some [miles davis](artist 0.93)`, in colours if wanted.
fn marked(Answer { sentence, tagged, .. }: Answer, colour: bool) -> String {
    let (text, words) = sentence.text();
    // A control character in the text could change the terminal.
    let shown = |part: &str| part.replace(|c: char| c.is_control() && c != '\t', "\u{fffd}");
    let mut line = String::new();
    let mut done = 0;
    for found in &tagged.spans {
        let (start, end) = (words[found.span.start].start, words[found.span.end - 1].end);
        let (inner, slot, p) = (shown(&text[start..end]), &found.span.slot, found.probability);
        line.push_str(&shown(&text[done..start]));
        // Writing to a string cannot fail.
        let _ = if colour {
            write!(line, "{BOLD}{inner}{RESET} {YELLOW}{slot}{RESET} {FAINT}{p:.2}{RESET}")
        } else {
            write!(line, "[{inner}]({slot} {p:.2})")
        };
        done = end;
    }
    line.push_str(&shown(&text[done..]));
    line
}

/// `{"text", "spans": [{"start", "end", "label", "text", "probability"}]}`, offsets in Unicode scalar values.
fn as_json(answer: Answer, explain: Option<&SupportSet>) -> Value {
    let (text, words) = answer.sentence.text();
    let offsets = Offsets::new(&text);
    let mut explanations = explain.map(|support| explain::json(answer, support).into_iter());
    let span = |found: &fewtag::TaggedSpan| {
        let bytes = words[found.span.start].start..words[found.span.end - 1].end;
        let chars = offsets.chars(&bytes);
        let mut value = json!({
            "start": chars.start,
            "end": chars.end,
            "label": found.span.slot.as_str(),
            "text": &text[bytes],
            "probability": (f64::from(found.probability) * 1e4).round() / 1e4,
        });
        if let Some(why) = explanations.as_mut().and_then(Iterator::next) {
            value["explanation"] = why;
        }
        value
    };
    let spans: Vec<Value> = answer.tagged.spans.iter().map(span).collect();
    json!({"text": text, "spans": spans})
}

/// The sentence with the tags of its spans, for the data formats.
fn labelled(Answer { sentence, tagged, .. }: Answer) -> fewtag::Result<Sentence> {
    let spans: Vec<tag::Span> = tagged.spans.iter().map(|found| found.span.clone()).collect();
    let tags: Vec<Tag> = tag::bio_tags(&spans, sentence.n_words());
    let (text, words) = sentence.text();
    if sentence.has_text() {
        return Sentence::from_text(text.into_owned(), words.into_owned(), tags);
    }
    let tokens = sentence.words().zip(tags);
    Sentence::new(tokens.map(|(word, tag)| fewtag::Token { word: word.to_owned(), tag }).collect())
}
