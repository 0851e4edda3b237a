//! The learned transition scores as a heat map: rows are where a step comes from, columns where it goes to.
//!
//! Blue is welcome, orange unwelcome, the deeper the more. A dash is a move that legal BIO forbids; a field is blank where
//! there is no such move: from the start and from `O` no slot is the same or different.

use fewtag::CollapsedTransitions;
use maud::{Markup, html};

use crate::svg::{self, Anchor, COLOURS, INK};

const WELCOME: &str = COLOURS[0];
const UNWELCOME: &str = COLOURS[1];
const SIZE: (f64, f64) = (420.0, 190.0);

/// The picture, to be part of a page.
pub(crate) fn picture(title: &str, table: &CollapsedTransitions) -> Markup {
    svg::picture(SIZE, marks(title, table))
}

/// The picture as a file of its own.
pub(crate) fn file(title: &str, table: &CollapsedTransitions) -> String {
    svg::file(SIZE, title, marks(title, table))
}

fn marks(title: &str, table: &CollapsedTransitions) -> Markup {
    let CollapsedTransitions { start, between: [o, b, i], end } = *table;
    let rows = [
        ("start", [Some(start[0]), Some(start[1]), None, Some(start[2]), None, None]),
        ("O", [Some(o[0]), Some(o[1]), None, Some(o[3]), None, Some(end[0])]),
        ("B", [Some(b[0]), Some(b[1]), Some(b[2]), Some(b[3]), Some(b[4]), Some(end[1])]),
        ("I", [Some(i[0]), Some(i[1]), Some(i[2]), Some(i[3]), Some(i[4]), Some(end[2])]),
    ];
    let scores = rows.iter().flat_map(|(_, row)| row).flatten().filter(|score| score.is_finite());
    let largest = scores.fold(1e-6_f32, |largest, score| largest.max(score.abs()));
    html! {
        (svg::heading(title))
        @for (c, to) in ["O", "same B", "other B", "same I", "other I", "end"].iter().enumerate() {
            (svg::text((column(c), 40.0), Anchor::Middle, INK, to))
        }
        @for (r, (from, row)) in rows.iter().enumerate() {
            @let y = 48.0 + 34.0 * r as f64;
            (svg::text((48.0, y + 21.0), Anchor::End, INK, from))
            @for (c, score) in row.iter().enumerate() {
                @if let Some(score) = score { (field((column(c), y), *score, largest)) }
            }
        }
    }
}

/// The middle of a column.
fn column(c: usize) -> f64 {
    85.0 + 60.0 * c as f64
}

fn field((x, y): (f64, f64), score: f32, largest: f32) -> Markup {
    let words = |words: &str| svg::text((x, y + 21.0), Anchor::Middle, INK, words);
    if !score.is_finite() {
        return words("–");
    }
    let colour = if score >= 0.0 { WELCOME } else { UNWELCOME };
    let opacity = 0.1 + 0.6 * score.abs() / largest;
    html! {
        g fill-opacity=(format_args!("{opacity:.2}")) {
            (svg::rectangle((x - 29.0, y), (58.0, 32.0), colour))
        }
        (words(&format!("{score:.2}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: CollapsedTransitions = CollapsedTransitions {
        start: [1.0, 0.5, -2.0],
        between: [[0.25; 5], [0.125; 5], [-0.5; 5]],
        end: [0.0; 3],
    };

    #[test]
    fn the_heat_map_leaves_impossible_fields_blank() {
        let svg = picture("NMN+P&D", &TABLE).into_string();
        assert_eq!(svg.matches("<rect").count(), 1 + 3 + 4 + 6 + 6);
        assert!(svg.contains(">-2.00<") && svg.contains(">0.25<"));
    }

    #[test]
    fn what_bio_forbids_is_a_dash_and_no_number() {
        let svg = file("legal", &TABLE.constrained());
        assert_eq!(svg.matches(">–<").count(), 4);
        assert_eq!(svg.matches("<rect").count(), 1 + 2 + 3 + 5 + 5);
        assert!(!svg.contains("inf") && !svg.contains("NaN") && !svg.contains("<script"), "{svg}");
    }
}
