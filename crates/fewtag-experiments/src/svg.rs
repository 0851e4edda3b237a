//! What all our pictures share: SVG 1.1 without scripts or fonts, so that it opens in any browser and in a Markdown page.

use maud::{Markup, Render, html};

/// Okabe and Ito's colours, which colour-blind readers can tell apart.
pub(crate) const COLOURS: [&str; 7] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"];

/// The colour of words: dark, unless a picture of its own is shown on a dark page.
pub(crate) const INK: &str = "currentColor";

/// A picture of some width and height, in pixels.
pub(crate) fn picture((width, height): (f64, f64), marks: impl Render) -> Markup {
    html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(width) height=(height) color="#222222"
            viewBox={ "0 0 " (width) " " (height) } font-family="sans-serif" font-size="12" {
            rect class="paper" width="100%" height="100%" fill="white" {}
            (marks)
        }
    }
}

/// A picture in a file of its own, which follows the light or dark theme of its reader. The name is for those who do not
/// see it. (Within a page its style would speak for the page.)
pub(crate) fn file(size: (f64, f64), name: &str, marks: impl Render) -> String {
    const STYLE: &str = "@media (prefers-color-scheme: dark) { svg { color: #eeeeee } .paper { fill: #161616 } .drawn { filter: brightness(1.7) } }";
    picture(size, html! { title { (name) } style { (STYLE) } (marks) }).into_string()
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

/// What stands above a picture.
pub(crate) fn heading(title: &str) -> Markup {
    html! { g font-weight="bold" { (text((4.0, 15.0), Anchor::Start, INK, title)) } }
}

/// A filled rectangle.
pub(crate) fn rectangle((x, y): (f64, f64), (width, height): (f64, f64), colour: &str) -> Markup {
    html! {
        rect x=(pixels(x)) y=(pixels(y)) width=(pixels(width)) height=(pixels(height)) fill=(colour) {}
    }
}

/// A thin grey line.
pub(crate) fn line((x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Markup {
    html! { line x1=(pixels(x1)) y1=(pixels(y1)) x2=(pixels(x2)) y2=(pixels(y2)) stroke=(INK) stroke-opacity="0.15" {} }
}

/// A line through points.
pub(crate) fn polyline(points: impl Iterator<Item = (f64, f64)>, colour: &str) -> Markup {
    let points: Vec<String> = points.map(|(x, y)| format!("{},{}", pixels(x), pixels(y))).collect();
    html! { polyline fill="none" stroke=(colour) stroke-width="1.5" points=(points.join(" ")) {} }
}

/// A line of dashes: what should be.
pub(crate) fn dashes((x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Markup {
    html! {
        line x1=(pixels(x1)) y1=(pixels(y1)) x2=(pixels(x2)) y2=(pixels(y2))
            stroke=(INK) stroke-dasharray="4 4" stroke-opacity="0.6" {}
    }
}

/// A filled dot that says something when it is pointed at.
pub(crate) fn dot((x, y): (f64, f64), radius: f64, colour: &str, words: &str) -> Markup {
    html! {
        circle cx=(pixels(x)) cy=(pixels(y)) r=(pixels(radius)) fill=(colour) fill-opacity="0.8" { title { (words) } }
    }
}

/// A tenth of a pixel is as fine as a screen shows.
fn pixels(x: f64) -> String {
    format!("{x:.1}")
}
