//! The cells of the tables: those that are finished, and running the others.

use std::io::Write;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use fewtag_experiments::reproduce::cache::{Cache, Inputs};
use fewtag_experiments::reproduce::corpora::Corpus;
use fewtag_experiments::reproduce::results::{Cell, Outcome};
use fewtag_experiments::reproduce::run::{Plan, Setup};
use fewtag_experiments::reproduce::systems::System;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use super::{Args, TableName};

/// The cells of the tables at one number of shots.
pub(super) struct Grid<'a> {
    args: &'a Args,
    cache: &'a Cache,
    shots: usize,
    setup: Setup,
}

/// A cell that is still to be run.
struct Pending {
    system: &'static System,
    cell: Cell,
    inputs: Inputs,
}

impl<'a> Grid<'a> {
    pub(super) fn new(
        args: &'a Args,
        cache: &'a Cache,
        shots: usize,
        corpora: Vec<Corpus>,
    ) -> anyhow::Result<Self> {
        if let Some(fold) = args.folds.iter().find(|fold| **fold == 0 || **fold > corpora.len()) {
            bail!("there is no fold {fold}: there are {} domains", corpora.len());
        }
        let (encoder, glove) = (args.encoder.clone(), args.glove.clone());
        let plan = Plan { budget: args.budget, changes: args.changes.clone() };
        let setup = Setup::new(corpora, encoder, glove, plan, args.cache.join("vectors"))?;
        Ok(Self { args, cache, shots, setup })
    }

    /// Runs what is not finished; `keep` gets the outcomes of all cells, each as soon as it is there.
    pub(super) fn run(
        &self,
        keep: &mut dyn FnMut(Outcome) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let (finished, pending) = self.split()?;
        finished.into_iter().try_for_each(&mut *keep)?;
        let start = Instant::now();
        let bar = bar(pending.len())?;
        for (n, Pending { system, cell, inputs }) in pending.iter().enumerate() {
            let domain = &self.setup.corpora()[cell.fold].name;
            let name = format!("{}, {}-shot {domain}, seed {}", system.name, self.shots, cell.seed);
            bar.set_message(name.clone());
            let cell_start = Instant::now();
            let mut on_step =
                |update, n_updates| bar.set_position(CELL * n as u64 + CELL * update / n_updates);
            let (scores, training) = self
                .setup
                .run(system, cell, &mut on_step)
                .with_context(|| format!("cannot run {name}"))?;
            let seconds = cell_start.elapsed().as_secs_f64();
            let outcome = Outcome::new(cell.clone(), &scores, training, seconds);
            self.cache.store(inputs, &outcome)?;
            let left = start.elapsed() / (n as u32 + 1) * (pending.len() - n - 1) as u32;
            bar.suspend(|| report(&name, &outcome, (n + 1, pending.len()), left));
            keep(outcome)?;
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// The finished cells, and those to be run.
    fn split(&self) -> anyhow::Result<(Vec<Outcome>, Vec<Pending>)> {
        let (mut finished, mut pending) = (Vec::new(), Vec::new());
        let n_folds = self.setup.corpora().len();
        let folds = (0..n_folds)
            .filter(|f| self.args.folds.is_empty() || self.args.folds.contains(&(f + 1)));
        for system in self.args.systems() {
            let shown = |table: &TableName| {
                table.shots() == Some(self.shots)
                    && (table.systems().contains(&system) || !self.args.systems.is_empty())
            };
            let must_run = !self.args.finished && self.args.tables.iter().any(shown);
            for (fold, &seed) in
                folds.clone().flat_map(|f| self.args.seeds.iter().map(move |s| (f, s)))
            {
                let cell = Cell { system: system.key.into(), shots: self.shots, fold, seed };
                let inputs = self.setup.inputs(system, &cell)?;
                match self.cache.load(&inputs)? {
                    Some(outcome) => finished.push(outcome),
                    None if must_run => pending.push(Pending { system, cell, inputs }),
                    None => {}
                }
            }
        }
        Ok((finished, pending))
    }
}

/// The length of a cell on the progress bar.
const CELL: u64 = 1000;

/// Shown on a terminal only; indicatif stays silent elsewhere.
fn bar(n_cells: usize) -> anyhow::Result<ProgressBar> {
    let style = "{bar:30} {percent}% of all cells  {elapsed} gone, {eta} left  {msg}";
    let bar = ProgressBar::new(CELL * n_cells as u64);
    Ok(bar.with_style(ProgressStyle::with_template(style)?))
}

/// A line for people about a finished cell, on standard error.
fn report(name: &str, outcome: &Outcome, (n, of): (usize, usize), left: Duration) {
    let (f1, seconds, left) = (outcome.f1, outcome.seconds, HumanDuration(left));
    let _ = writeln!(
        std::io::stderr(),
        "cell {n} of {of}: {name}: F1 {f1:.2} in {seconds:.0} s, about {left} left"
    );
}
