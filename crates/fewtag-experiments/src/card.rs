//! The part of a model's card that is drawn and measured: the learned transitions, and how honest its probabilities are.
//!
//! It stands between two comments in the card, which people else write themselves, and is put there again as often as
//! something is measured anew. The pictures are files beside the card.

use std::fmt::Write;

use fewtag::eval::{Cell, Format, Reliability, Table, WithoutSpans, table};
use fewtag::{CollapsedTransitions, Tagger, TransitionMode};

use crate::{heat_map, reliability};

const BEGIN: &str = "<!-- measured: written by `fewtag model card` -->";
const END: &str = "<!-- end of what was measured -->";

/// The picture of the transition table.
pub const TRANSITIONS: &str = "transitions.svg";
/// The picture of the probabilities.
pub const RELIABILITY: &str = "reliability.svg";

/// What was measured with one number of examples per label.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The number of shots of the episodes.
    pub shots: usize,
    /// How honest the probabilities are.
    pub reliability: Reliability,
    /// What became of sentences without a span.
    pub without_spans: WithoutSpans,
}

/// The measured part of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    markdown: String,
    /// The files beside the card: name and content.
    pub pictures: Vec<(&'static str, String)>,
}

impl Section {
    /// What can be said of a model; `measured` in the order in which it is shown.
    #[must_use]
    pub fn new(tagger: &Tagger, measured: &[Measured]) -> Self {
        let mut section = Self { markdown: String::new(), pictures: Vec::new() };
        if let Some(table) = learned(tagger) {
            section.add_transitions(&table);
        }
        if !measured.is_empty() {
            section.add_measured(measured);
        }
        section
    }

    /// The card with this part: in the place of an earlier one, or else at the end.
    #[must_use]
    pub fn put_into(&self, card: &str) -> String {
        let section = format!("{BEGIN}\n\n{}\n{END}", self.markdown);
        let places = card.find(BEGIN).zip(card.find(END)).filter(|(begin, end)| begin < end);
        match places {
            Some((begin, end)) => {
                format!("{}{section}{}", &card[..begin], &card[end + END.len()..])
            }
            None => format!("{}\n\n{section}\n", card.trim_end()),
        }
    }

    fn add_transitions(&mut self, table: &CollapsedTransitions) {
        let svg = heat_map::file("What may follow what: learned scores", table);
        self.pictures.push((TRANSITIONS, svg));
        let _ = writeln!(
            self.markdown,
            "## What did it learn about labels that follow each other?\n\n\
             ![the transition table as a heat map]({TRANSITIONS})\n\n\
             Rows are where a step comes from, columns where it goes to; the deeper the blue, the more welcome, the deeper the \
             orange, the less. A dash is a move that BIO forbids."
        );
    }

    fn add_measured(&mut self, measured: &[Measured]) {
        let title = |one: &Measured| {
            let error = 100.0 * one.reliability.expected_error();
            format!("{}: calibration error {error:.1}", shots(one.shots))
        };
        let panels: Vec<(String, &Reliability)> =
            measured.iter().map(|one| (title(one), &one.reliability)).collect();
        self.pictures
            .push((RELIABILITY, reliability::file("How sure and how often right", &panels)));
        let table = table::render(&[figures(measured)], Format::Markdown);
        // Of a table in a page of its own, the page says what it is.
        let table = table.find('|').map_or("", |start| &table[start..]);
        if !self.markdown.is_empty() {
            self.markdown.push('\n');
        }
        let _ = writeln!(
            self.markdown,
            "## How sure is it, and how often is it right?\n\n\
             ![share of right spans against their probability, one panel per number of shots]({RELIABILITY})\n\n\
             A dot is a tenth of the probabilities, its area the number of spans; on the dashed line they would be honest. The \
             expected calibration error is the mean distance from it.\n\n{table}\n\
             The last two columns are of sentences in which there is nothing to find."
        );
    }
}

/// The numbers, one row per number of shots. All but counts are per cent.
#[must_use]
pub fn figures(measured: &[Measured]) -> Table {
    let headers = [
        "examples per label",
        "spans predicted",
        "of them right, %",
        "expected calibration error, points",
        "sentences without a span",
        "of them left so, %",
    ];
    let mut table = Table::new("measured", headers);
    for Measured { shots, reliability, without_spans } in measured {
        let WithoutSpans { sentences, left_alone, .. } = *without_spans;
        let percent = |part: f64| Cell::from(100.0 * part);
        let left_alone = match sentences {
            0 => Cell::Empty,
            _ => percent(left_alone as f64 / sentences as f64),
        };
        table.push([
            (*shots).into(),
            reliability.n_spans().into(),
            percent(reliability.precision()),
            percent(reliability.expected_error()),
            sentences.into(),
            left_alone,
        ]);
    }
    table
}

/// The transition scores as decoding uses them, if they are learned.
fn learned(tagger: &Tagger) -> Option<CollapsedTransitions> {
    let (settings, table) = (tagger.settings(), tagger.head().transitions);
    match settings.transitions {
        TransitionMode::Transfer if settings.constrained => Some(table.constrained()),
        TransitionMode::Transfer => Some(table),
        TransitionMode::Rule | TransitionMode::None => None,
    }
}

fn shots(n: usize) -> String {
    match n {
        0 => "names alone".to_owned(),
        1 => "1 shot".to_owned(),
        n => format!("{n} shots"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(markdown: &str) -> Section {
        Section { markdown: markdown.to_owned(), pictures: Vec::new() }
    }

    #[test]
    fn a_section_is_appended_once_and_then_replaced_where_it_stands() {
        let first = section("one\n").put_into("# Card\n");
        assert_eq!(first, format!("# Card\n\n{BEGIN}\n\none\n\n{END}\n"));
        let between = format!("{first}\n## Limits\n");
        let second = section("two\n").put_into(&between);
        assert_eq!(second, between.replace("one", "two"));
        assert_eq!(section("two\n").put_into(&second), second);
    }
}
