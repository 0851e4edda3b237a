//! One self-contained HTML page: the tables, bars per domain, learning curves and the learned transitions.

use fewtag::eval::Table;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::plot::{self, Bar};
use super::results::{LearnedTransitions, Outcome};
use super::systems::System;
use super::tables::Figures;
use crate::curves::{self, Curve, Panel};
use crate::heat_map;

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:1300px;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;font-size:13px}th,td{padding:2px 8px;border-bottom:1px solid #ddd;text-align:left}\
.n{text-align:right;font-variant-numeric:tabular-nums}svg{max-width:100%}\
table{display:block;overflow-x:auto}tr:nth-child(even){background:#f6f6f6}\
:root{color-scheme:light;background:#fff}";

/// The whole page. `notes` are sentences about how the figures came to be, one paragraph each.
#[must_use]
pub fn html(figures: &Figures, tables: &[Table], notes: &[String]) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { "fewtag reproduce" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "The paper's tables, reproduced" }
                @for note in notes { p { (note) } }
                @for shown in tables { (table(shown)) }
                @for shots in [1, 5] { (pictures(figures, shots)) }
            }
        }
    };
    page.into_string()
}

fn table(table: &Table) -> Markup {
    let class = |c: usize| table.is_numeric(c).then_some("n");
    html! {
        h2 { (table.title()) }
        table {
            tr { @for (c, header) in table.headers().iter().enumerate() { th class=[class(c)] { (header) } } }
            @for row in table.rows() {
                tr { @for (c, cell) in row.iter().enumerate() { td class=[class(c)] { (cell.shown()) } } }
            }
        }
    }
}

fn pictures(figures: &Figures, shots: usize) -> Markup {
    let systems: Vec<&System> = (figures.systems.iter().copied())
        .filter(|system| figures.outcomes.of(system.key, shots).count() > 0)
        .collect();
    if systems.is_empty() {
        return html! {};
    }
    let bars = |title: &str, bar: &dyn Fn(&System) -> Bar| {
        plot::bars(title, &systems.iter().map(|system| bar(system)).collect::<Vec<_>>())
    };
    let n_folds = figures.domains.len();
    let average = |system: &System| Bar {
        name: system.name.into(),
        ours: figures.outcomes.average(system.key, shots, n_folds).map(|f1| f1.mean),
        paper: figures.published_f1(system, shots, n_folds),
    };
    let on_fold = |system: &System, fold: usize| Bar {
        name: system.name.into(),
        ours: figures.outcomes.f1(system.key, shots, fold).map(|f1| f1.mean),
        paper: figures.published_f1(system, shots, fold),
    };
    html! {
        h2 { (shots) "-shot F1 per domain" }
        p { "Bars are our figures, marks across them the paper's." }
        (bars("average", &average))
        @for (fold, domain) in figures.domains.iter().enumerate() {
            (bars(domain, &|system| on_fold(system, fold)))
        }
        (learning_curves(figures, &systems, shots))
        @for system in &systems {
            @if let Some(learned) = mean_transitions(figures.outcomes.of(system.key, shots)) {
                (heat_map::picture(&format!("{}: transitions, {shots}-shot", system.name), &learned.into()))
            }
        }
    }
}

fn learning_curves(figures: &Figures, systems: &[&System], shots: usize) -> Markup {
    let curve = |system: &&System| {
        let points = mean_losses(figures.outcomes.of(system.key, shots));
        (!points.is_empty()).then(|| Curve { name: system.name.into(), points })
    };
    let curves: Vec<Curve> = systems.iter().filter_map(curve).collect();
    // A panel tells four curves apart.
    let panel = |curves: &[Curve]| Panel { title: "loss".into(), curves: curves.to_vec() };
    let panels: Vec<Panel> = curves.chunks(4).map(panel).collect();
    html! {
        @if !panels.is_empty() {
            h2 { "Learning curves, mean over folds" }
            div { (curves::picture(&panels)) }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_escape_their_words_and_mark_their_numbers() {
        let mut shown = Table::new("t", ["a", "b"]);
        shown.push(["P&D <".into(), 1.5.into()]);
        let html = table(&shown).into_string();
        assert!(html.contains("<tr><td>P&amp;D &lt;</td><td class=\"n\">1.50</td></tr>"), "{html}");
    }
}
