//! One self-contained HTML page: the tables, bars per domain, learning curves and the learned transitions.

use fewtag::eval::Table;
use fewtag::eval::table::escape_html;

use super::plot::{self, Bar};
use super::results::{LearnedTransitions, Outcome};
use super::systems::System;
use super::tables::Figures;
use crate::curves::{self, Curve, Panel};

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:1300px;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;font-size:13px}th,td{padding:2px 8px;border-bottom:1px solid #ddd;text-align:left}\
.n{text-align:right;font-variant-numeric:tabular-nums}svg{max-width:100%}\
table{display:block;overflow-x:auto}tr:nth-child(even){background:#f6f6f6}.curves{max-width:760px}\
:root{color-scheme:light;background:#fff}";

/// The whole page. `notes` are sentences about how the figures came to be, one paragraph each.
#[must_use]
pub fn html(figures: &Figures, tables: &[Table], notes: &[String]) -> String {
    let paragraph = |note: &String| format!("<p>{}</p>\n", escape_html(note));
    let notes: String = notes.iter().map(paragraph).collect();
    let tables: String = tables.iter().map(Table::html).collect();
    let pictures: String = [1, 5].map(|shots| pictures(figures, shots)).concat();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>fewtag reproduce</title>\n<style>{STYLE}</style>\n\
         <h1>The paper's tables, reproduced</h1>\n{notes}{tables}{pictures}</html>\n"
    )
}

fn pictures(figures: &Figures, shots: usize) -> String {
    let systems: Vec<_> =
        figures.systems.iter().filter(|s| figures.outcomes.of(s.key, shots).count() > 0).collect();
    if systems.is_empty() {
        return String::new();
    }
    let mut html = format!(
        "<h2>{shots}-shot F1 per domain</h2>\n<p>Bars are our figures, marks across them the paper's.</p>\n"
    );
    let average = |system: &&&'static System| Bar {
        name: system.name.into(),
        ours: figures.outcomes.average(system.key, shots, figures.domains.len()).map(|f1| f1.mean),
        paper: figures.published_f1(system, shots, figures.domains.len()),
    };
    html += &plot::bars("average", &systems.iter().map(average).collect::<Vec<_>>());
    for (fold, domain) in figures.domains.iter().enumerate() {
        let bar = |system: &&&'static System| Bar {
            name: system.name.into(),
            ours: figures.outcomes.f1(system.key, shots, fold).map(|f1| f1.mean),
            paper: figures.published_f1(system, shots, fold),
        };
        html += &plot::bars(domain, &systems.iter().map(bar).collect::<Vec<_>>());
    }
    let curve = |system: &&&'static System| {
        let points = mean_losses(figures.outcomes.of(system.key, shots));
        (!points.is_empty()).then(|| Curve { name: system.name.into(), points })
    };
    let curves: Vec<Curve> = systems.iter().filter_map(curve).collect();
    if !curves.is_empty() {
        // A panel tells four curves apart.
        let panel = |curves: &[Curve]| Panel { title: "loss".into(), curves: curves.to_vec() };
        let panels: Vec<Panel> = curves.chunks(4).map(panel).collect();
        html += "<h2>Learning curves, mean over folds</h2>\n";
        html += "<div class=\"curves\">";
        html += &curves::svg(&panels);
        html += "</div>\n";
    }
    for system in &systems {
        if let Some(learned) = mean_transitions(figures.outcomes.of(system.key, shots)) {
            html +=
                &plot::heat_map(&format!("{}: transitions, {shots}-shot", system.name), &learned);
        }
    }
    html
}

/// The mean over the cells of their losses at each update that all have.
fn mean_losses<'a>(cells: impl Iterator<Item = &'a Outcome>) -> Vec<(u64, f64)> {
    let curves: Vec<&[(u64, f64)]> = cells.map(|o| &o.training.losses[..]).collect();
    let n_points = curves.iter().map(|curve| curve.len()).min().unwrap_or(0);
    let mean = |at: usize| {
        let sum: f64 = curves.iter().map(|curve| curve[at].1).sum();
        (curves[0][at].0, sum / curves.len() as f64)
    };
    (0..n_points).map(mean).collect()
}

/// The mean over the cells of their learned transitions, if they have any.
fn mean_transitions<'a>(cells: impl Iterator<Item = &'a Outcome>) -> Option<LearnedTransitions> {
    let learned: Vec<&LearnedTransitions> =
        cells.filter_map(|outcome| outcome.training.transitions.as_ref()).collect();
    let n = learned.len() as f32;
    let mean = |number: &dyn Fn(&LearnedTransitions) -> f32| {
        learned.iter().map(|t| number(t)).sum::<f32>() / n
    };
    (!learned.is_empty()).then(|| LearnedTransitions {
        start: std::array::from_fn(|i| mean(&|t| t.start[i])),
        between: std::array::from_fn(|i| std::array::from_fn(|j| mean(&|t| t.between[i][j]))),
        end: std::array::from_fn(|i| mean(&|t| t.end[i])),
    })
}
