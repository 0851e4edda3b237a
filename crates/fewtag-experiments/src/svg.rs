//! What all our pictures share: SVG 1.1 without scripts or fonts, so that it opens in any browser and in a Markdown page.

use maud::{Markup, Render, html};

/// Okabe and Ito's colours, which colour-blind readers can tell apart.
pub(crate) const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// A picture of some width and height, in pixels.
pub(crate) fn picture((width, height): (f64, f64), marks: impl Render) -> Markup {
    html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height)
            viewBox={ "0 0 " (width) " " (height) } font-family="sans-serif" font-size="12" {
            rect width="100%" height="100%" fill="white" {}
            (marks)
        }
    }
}

/// Where a text stands: at its `start`, `middle` or `end`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// Words at a point.
pub(crate) fn text((x, y): (f64, f64), anchor: Anchor, colour: &str, words: &str) -> Markup {
    let anchor = match anchor {
        Anchor::Start => "start",
        Anchor::Middle => "middle",
        Anchor::End => "end",
    };
    html! { text x=(pixels(x)) y=(pixels(y)) text-anchor=(anchor) fill=(colour) { (words) } }
}

/// A filled rectangle.
pub(crate) fn rectangle((x, y): (f64, f64), (width, height): (f64, f64), colour: &str) -> Markup {
    html! {
        rect x=(pixels(x)) y=(pixels(y)) width=(pixels(width)) height=(pixels(height)) fill=(colour) {}
    }
}

/// A thin grey line.
pub(crate) fn line((x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Markup {
    html! { line x1=(pixels(x1)) y1=(pixels(y1)) x2=(pixels(x2)) y2=(pixels(y2)) stroke="#dddddd" {} }
}

/// A line through points.
pub(crate) fn polyline(points: impl Iterator<Item = (f64, f64)>, colour: &str) -> Markup {
    let points: Vec<String> = points.map(|(x, y)| format!("{},{}", pixels(x), pixels(y))).collect();
    html! { polyline fill="none" stroke=(colour) stroke-width="1.5" points=(points.join(" ")) {} }
}

/// A tenth of a pixel is as fine as a screen shows.
fn pixels(x: f64) -> String {
    format!("{x:.1}")
}
