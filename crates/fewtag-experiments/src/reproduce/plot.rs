//! Two small pictures: bars of scores, and the transition table as a heat map. Every mark also carries its number.

use maud::{Markup, html};

use super::results::LearnedTransitions;
use crate::svg::{self, Anchor, COLOURS};

const OURS: &str = COLOURS[0];
const PAPER: &str = COLOURS[1];
const INK: &str = "#222222";

/// One bar: our figure, and the paper's where there is one.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bar {
    /// What the bar stands for.
    pub(super) name: String,
    /// Our score in per cent.
    pub(super) ours: Option<f64>,
    /// The published score in per cent.
    pub(super) paper: Option<f64>,
}

/// Horizontal bars of our scores; a mark across each bar is the published score. The axis is 0 to 100.
pub(super) fn bars(title: &str, bars: &[Bar]) -> Markup {
    const ROW: f64 = 18.0;
    const LEFT: f64 = 180.0;
    let x = |score: f64| LEFT + 1.9 * score.clamp(0.0, 100.0);
    let row = |(r, bar): (usize, &Bar)| {
        let y = 26.0 + ROW * r as f64;
        let words = y + 11.0;
        html! {
            (svg::text((174.0, words), Anchor::End, INK, &bar.name))
            @if let Some(ours) = bar.ours {
                (svg::rectangle((LEFT, y), (x(ours) - LEFT, 14.0), OURS))
                (svg::text((376.0, words), Anchor::Start, OURS, &format!("{ours:.1}")))
            }
            @if let Some(paper) = bar.paper {
                g {
                    title { (format_args!("paper: {paper:.2}")) }
                    (svg::rectangle((x(paper) - 1.5, y), (3.0, 14.0), PAPER))
                }
            }
        }
    };
    let rows = bars.iter().enumerate().map(row);
    let size = (420.0, ROW * bars.len() as f64 + 28.0);
    svg::picture(size, html! { (heading(title)) @for row in rows { (row) } })
}

/// The learned transition scores: rows are where a step comes from, columns where it goes to.
pub(super) fn heat_map(title: &str, learned: &LearnedTransitions) -> Markup {
    let LearnedTransitions { start, between: [o, b, i], end } = *learned;
    // From the start and from O there is no slot to be the same or different: those fields stay blank.
    let rows = [
        ("start", [Some(start[0]), Some(start[1]), None, Some(start[2]), None, None]),
        ("O", [Some(o[0]), Some(o[1]), None, Some(o[3]), None, Some(end[0])]),
        ("B", [Some(b[0]), Some(b[1]), Some(b[2]), Some(b[3]), Some(b[4]), Some(end[1])]),
        ("I", [Some(i[0]), Some(i[1]), Some(i[2]), Some(i[3]), Some(i[4]), Some(end[2])]),
    ];
    let largest =
        rows.iter().flat_map(|(_, row)| row).flatten().fold(1e-6_f32, |m, x| m.max(x.abs()));
    let column = |c: usize| 85.0 + 60.0 * c as f64;
    let field = |c: usize, y: f64, score: f32| {
        let colour = if score >= 0.0 { OURS } else { PAPER };
        let opacity = 0.1 + 0.6 * score.abs() / largest;
        html! {
            g fill-opacity=(format_args!("{opacity:.2}")) {
                (svg::rectangle((column(c) - 29.0, y), (58.0, 32.0), colour))
            }
            (svg::text((column(c), y + 21.0), Anchor::Middle, INK, &format!("{score:.2}")))
        }
    };
    let marks = html! {
        (heading(title))
        @for (c, to) in ["O", "same B", "other B", "same I", "other I", "end"].iter().enumerate() {
            (svg::text((column(c), 40.0), Anchor::Middle, INK, to))
        }
        @for (r, (from, row)) in rows.iter().enumerate() {
            @let y = 48.0 + 34.0 * r as f64;
            (svg::text((48.0, y + 21.0), Anchor::End, INK, from))
            @for (c, score) in row.iter().enumerate() {
                @if let Some(score) = score { (field(c, y, *score)) }
            }
        }
    };
    svg::picture((420.0, 190.0), marks)
}

fn heading(title: &str) -> Markup {
    html! { g font-weight="bold" { (svg::text((4.0, 15.0), Anchor::Start, INK, title)) } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_name_their_numbers_and_escape_their_names() {
        let bar = Bar { name: "MN+P&D <x>".into(), ours: Some(50.0), paper: Some(56.5) };
        let none = Bar { name: "none".into(), ours: None, paper: None };
        let svg = bars("We", &[bar, none]).into_string();
        assert!(svg.contains("MN+P&amp;D &lt;x&gt;") && svg.contains(">50.0<"));
        assert!(svg.contains("paper: 56.50") && svg.contains("width=\"95.0\""));
        assert_eq!(svg.matches("<rect").count(), 1 + 2); // The first is the paper they stand on.
    }

    #[test]
    fn the_heat_map_leaves_impossible_fields_blank() {
        let learned = LearnedTransitions {
            start: [1.0, 0.5, -2.0],
            between: [[0.25; 5], [0.125; 5], [-0.5; 5]],
            end: [0.0; 3],
        };
        let svg = heat_map("NMN+P&D", &learned).into_string();
        assert_eq!(svg.matches("<rect").count(), 1 + 3 + 4 + 6 + 6);
        assert!(svg.contains(">-2.00<") && svg.contains(">0.25<"));
    }
}
