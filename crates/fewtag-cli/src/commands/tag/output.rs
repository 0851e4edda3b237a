//! Answers as people or programs read them.

use std::io::Write;

use fewtag::data::Writer;
use fewtag::{Scored, Sentence, SupportSet, Tagged};

use super::explain;
use super::html::Page;
use crate::commands::answers;

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
                writeln!(out, "{}", answers::marked(answer.sentence, answer.tagged, *colour))?;
                if let Some(support) = explain {
                    out.write_all(explain::text(answer, support).as_bytes())?;
                }
            }
            Self::Json { out, n_written, explain } => {
                let start = if *n_written == 0 { "[\n" } else { ",\n" };
                *n_written += 1;
                out.write_all(start.as_bytes())?;
                serde_json::to_writer(out, &json(answer, *explain))?;
            }
            Self::Jsonl { out, explain } => {
                serde_json::to_writer(&mut **out, &json(answer, *explain))?;
                writeln!(out)?;
            }
            Self::Data(writer) => {
                writer.sentence(&fewtag::answer::labelled(answer.sentence, answer.tagged))?;
            }
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

fn json(
    Answer { sentence, tagged, scored }: Answer,
    explain: Option<&SupportSet>,
) -> fewtag::Answer {
    match explain {
        None => fewtag::Answer::new(sentence, tagged),
        Some(support) => fewtag::Answer::explained(sentence, tagged, scored, support),
    }
}
