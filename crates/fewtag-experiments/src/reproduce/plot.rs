//! A small picture: bars of scores. Every mark also carries its number.

use maud::{Markup, html};

use crate::svg::{self, Anchor, COLOURS, INK};

const OURS: &str = COLOURS[0];
const PAPER: &str = COLOURS[1];

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
    svg::picture(size, html! { (svg::heading(title)) @for row in rows { (row) } })
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
}
