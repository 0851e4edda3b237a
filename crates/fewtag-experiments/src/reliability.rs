//! How honest probabilities are, drawn: one panel per number of shots, side by side.
//!
//! A dot is a tenth of the probabilities: how sure the model was on average, and how often it was right. Its area is the number
//! of spans. Honest probabilities lie on the dashed line.

use fewtag::eval::{Bin, Reliability};
use maud::{Markup, html};

use crate::svg::{self, Anchor, COLOURS, INK};

const PER_ROW: usize = 3;
const PANEL: (f64, f64) = (250.0, 270.0);
/// The square that the dots lie in, within a panel.
const CORNER: (f64, f64) = (46.0, 30.0);
const SIDE: f64 = 190.0;
const COLOUR: &str = COLOURS[0];

/// Draws one panel for each title.
pub(crate) fn file(name: &str, panels: &[(String, &Reliability)]) -> String {
    let n_rows = panels.len().div_ceil(PER_ROW);
    let size = (PANEL.0 * panels.len().min(PER_ROW) as f64, PANEL.1 * n_rows as f64);
    let place = |at: usize| (PANEL.0 * (at % PER_ROW) as f64, PANEL.1 * (at / PER_ROW) as f64);
    let marks = html! {
        @for (at, (title, reliability)) in panels.iter().enumerate() {
            @let (x, y) = place(at);
            g transform=(format_args!("translate({x} {y})")) { (panel(title, reliability)) }
        }
    };
    svg::file(size, name, marks)
}

fn panel(title: &str, reliability: &Reliability) -> Markup {
    let place = |p: f64, right: f64| (CORNER.0 + SIDE * p, CORNER.1 + SIDE * (1.0 - right));
    let most = reliability.bins.iter().map(|bin| bin.spans).max().unwrap_or(0).max(1) as f64;
    let filled = || reliability.bins.iter().filter(|bin| bin.spans > 0);
    let at = |bin: &Bin| place(bin.mean_probability(), bin.share_right());
    let dot = |bin: &Bin| {
        let percent = |share: f64| 100.0 * share;
        let (sure, right) = (percent(bin.mean_probability()), percent(bin.share_right()));
        let words = format!("{} spans: {sure:.1} % sure, {right:.1} % right", bin.spans);
        // The area is the number; none is too small to be seen.
        svg::dot(at(bin), (9.0 * (bin.spans as f64 / most).sqrt()).max(1.5), COLOUR, &words)
    };
    html! {
        (svg::heading(title))
        @for mark in [0.0, 0.25, 0.5, 0.75, 1.0] {
            @let words = format!("{:.0}", 100.0 * mark);
            @let (low, left) = (place(mark, 0.0), place(0.0, mark));
            (svg::line(low, place(mark, 1.0)))
            (svg::line(left, place(1.0, mark)))
            (svg::text((low.0, low.1 + 15.0), Anchor::Middle, INK, &words))
            (svg::text((left.0 - 5.0, left.1 + 4.0), Anchor::End, INK, &words))
        }
        (svg::dashes(place(0.0, 0.0), place(1.0, 1.0)))
        g class="drawn" {
            (svg::polyline(filled().map(at), COLOUR))
            @for bin in filled() { (dot(bin)) }
        }
        (svg::text((CORNER.0 + SIDE / 2.0, CORNER.1 + SIDE + 33.0), Anchor::Middle, INK, "probability, %"))
        g transform=(format_args!("rotate(-90 14 {0}) translate(14 {0})", CORNER.1 + SIDE / 2.0)) {
            (svg::text((0.0, 0.0), Anchor::Middle, INK, "right, %"))
        }
    }
}

#[cfg(test)]
mod tests {
    use fewtag::eval::Temperature;

    use super::*;

    #[test]
    fn a_dot_lies_where_its_numbers_are() {
        let mut bins = [Bin::default(); 10];
        bins[7] = Bin { spans: 100, right: 50, probability: 75.0 };
        bins[9] = Bin { spans: 25, right: 25, probability: 25.0 };
        let temperature = Temperature::ONE;
        let reliability = Reliability { temperature, bins };
        let panels = ["1 shot", "a<b"].map(|title| (title.to_owned(), &reliability));
        let svg = file("honest?", &panels);
        assert_eq!(svg.matches("<circle").count(), 4);
        // 46 + 190·0.75 and 30 + 190·(1 − 0.5); a quarter of the spans is half the radius.
        assert!(svg.contains("cx=\"188.5\" cy=\"125.0\" r=\"9.0\""), "{svg}");
        assert!(svg.contains("cx=\"236.0\" cy=\"30.0\" r=\"4.5\""), "{svg}");
        assert!(svg.contains("100 spans: 75.0 % sure, 50.0 % right"));
        assert!(svg.contains("a&lt;b") && svg.contains("prefers-color-scheme"));
        assert!(!svg.contains("<script"));
    }
}
