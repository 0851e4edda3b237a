//! The learning curves of a run as one small SVG picture.
//!
//! Panels stand above one another and share the x axis (updates). A panel scales its y axis to its own
//! values; round marks on both axes come from [`marks`].

use maud::{Markup, html};

use crate::svg::{self, Anchor, COLOURS};

/// One panel: a title and its curves.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// What the y axis shows.
    pub title: String,
    /// The curves, each `(update, value)` in order of update. Values that are not finite are left out.
    pub curves: Vec<Curve>,
}

/// One line of a [`Panel`].
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// The name in the legend.
    pub name: String,
    /// `(update, value)`, in order of update.
    pub points: Vec<(u64, f64)>,
}

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 230.0;
/// Room for the marks of the y axis, the title, and the marks of the x axis.
const LEFT: f64 = 60.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 30.0;
const RIGHT: f64 = 20.0;
const BLACK: &str = "#000000";

/// Draws the panels from top to bottom.
#[must_use]
pub fn svg(panels: &[Panel]) -> String {
    picture(panels).into_string()
}

/// [`svg`], to be part of a page.
pub(crate) fn picture(panels: &[Panel]) -> Markup {
    let last = panels.iter().flat_map(|panel| &panel.curves).flat_map(|curve| &curve.points);
    let last_update = last.map(|point| point.0).max().unwrap_or(1).max(1) as f64;
    let scale = |at: usize, panel| Scale::new(HEIGHT * at as f64, last_update, panel);
    let marks = html! {
        @for (at, panel) in panels.iter().enumerate() { (scale(at, panel).draw(panel)) }
    };
    svg::picture((WIDTH, HEIGHT * panels.len() as f64), marks)
}

/// Where a panel stands and how its values map to the page.
struct Scale {
    top: f64,
    bottom: f64,
    last_update: f64,
    low: f64,
    high: f64,
}

impl Scale {
    fn new(offset: f64, last_update: f64, panel: &Panel) -> Self {
        let finite = |value: &f64| value.is_finite();
        let values = panel.curves.iter().flat_map(|curve| &curve.points).map(|point| point.1);
        let (low, high) = values
            .filter(finite)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) = if low > high { (0.0, 1.0) } else { (low, high) };
        // A flat curve still needs an axis of some height.
        let pad = ((high - low) * 0.05).max(1e-3 * high.abs()).max(1e-6);
        let (top, bottom) = (offset + TOP, offset + HEIGHT - BOTTOM);
        Self { top, bottom, last_update, low: low - pad, high: high + pad }
    }

    fn x(&self, update: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * update / self.last_update
    }

    fn y(&self, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * (value - self.low) / (self.high - self.low)
    }

    fn draw(&self, panel: &Panel) -> Markup {
        let (top, bottom, right) = (self.top, self.bottom, WIDTH - RIGHT);
        html! {
            @for mark in marks(self.low, self.high) {
                @let y = self.y(mark);
                (svg::line((LEFT, y), (right, y)))
                (svg::text((LEFT - 6.0, y + 4.0), Anchor::End, BLACK, &mark.to_string()))
            }
            @for mark in marks(0.0, self.last_update) {
                @let x = self.x(mark);
                (svg::line((x, top), (x, bottom)))
                (svg::text((x, bottom + 16.0), Anchor::Middle, BLACK, &mark.to_string()))
            }
            (svg::text((LEFT, top - 10.0), Anchor::Start, BLACK, &panel.title))
            (self.curves(&panel.curves))
        }
    }

    /// The lines, and their names from right to left above them. After the last colour they come again.
    fn curves(&self, curves: &[Curve]) -> Markup {
        let place = |point: &(u64, f64)| (self.x(point.0 as f64), self.y(point.1));
        let room = |curve: &Curve| 7.0 * (curve.name.chars().count() as f64 + 2.0);
        let mut right = WIDTH - RIGHT;
        let draw = |(number, curve): (usize, &Curve)| {
            let (at, colour) = ((right, self.top - 10.0), COLOURS[number % COLOURS.len()]);
            right -= room(curve);
            let points = curve.points.iter().filter(|point| point.1.is_finite());
            html! {
                (svg::polyline(points.map(place), colour))
                (svg::text(at, Anchor::End, colour, &curve.name))
            }
        };
        html! { @for drawn in curves.iter().enumerate().rev().map(draw) { (drawn) } }
    }
}

/// Three to eight round numbers between `low` and `high`: multiples of 1, 2 or 5 times a power of ten.
fn marks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|unit| unit * power);
    let step = step.into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power);
    let digits = (-step.log10().floor()).max(0.0) as i32;
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    let round = |value: f64| (value * 10f64.powi(digits)).round() / 10f64.powi(digits);
    (first..=last).map(|n| round(n as f64 * step)).collect()
}

/// A running mean over the last `window` values, which makes a noisy loss readable.
#[must_use]
pub fn smoothed(points: &[(u64, f64)], window: usize) -> Vec<(u64, f64)> {
    (0..points.len())
        .map(|at| {
            let recent = &points[(at + 1).saturating_sub(window)..=at];
            (points[at].0, recent.iter().map(|point| point.1).sum::<f64>() / recent.len() as f64)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_curve_is_drawn_however_many() {
        let curve = |n: u64| Curve { name: format!("run {n}"), points: vec![(0, 1.0), (n, 2.0)] };
        let panel = Panel { title: "f1".to_owned(), curves: (1..=9).map(curve).collect() };
        let picture = svg(&[panel]);
        assert_eq!(picture.matches("<polyline").count(), 9);
        assert!((1..=9).all(|n| picture.contains(&format!(">run {n}<"))));
    }

    #[test]
    fn marks_are_round_and_lie_within_the_axis() {
        assert_eq!(marks(0.0, 1000.0), [0.0, 500.0, 1000.0]);
        assert_eq!(marks(0.31, 0.69), [0.4, 0.5, 0.6]);
        for (low, high) in [(0.0, 7.0), (-3.2, 11.9), (1e-4, 2e-4), (40.0, 61.8)] {
            let marks = marks(low, high);
            assert!((2..=8).contains(&marks.len()), "{low} {high}: {marks:?}");
            assert!(
                marks.iter().all(|mark| (low..=high).contains(mark)),
                "{low} {high}: {marks:?}"
            );
        }
    }

    #[test]
    fn a_picture_names_its_panels_and_survives_odd_values() {
        let curve = |points: &[(u64, f64)]| Curve { name: "a<b".into(), points: points.to_vec() };
        let odd = [(0, 1.0), (1, f64::NAN), (2, f64::INFINITY), (3, 1.0)];
        let panels = [
            Panel { title: "loss".into(), curves: vec![curve(&odd)] },
            Panel { title: "empty".into(), curves: vec![curve(&[])] },
        ];
        let picture = svg(&panels);
        assert!(picture.contains(">loss<") && picture.contains("a&lt;b"));
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    }

    #[test]
    fn smoothing_averages_what_came_before() {
        let points = [(1, 1.0), (2, 3.0), (3, 5.0)];
        assert_eq!(smoothed(&points, 2), [(1, 1.0), (2, 2.0), (3, 4.0)]);
    }
}
