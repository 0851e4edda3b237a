//! How F1 grows with the budget: a row for each system and encoder, a column for each number of presentations.
//!
//! A row is the mean over the folds that it has at all of its budgets, so that its figures can be compared.

use fewtag::eval::{Cell, Summary, Table};

use super::budget::Budget;
use super::cells::{Cells, Conditions, Finished};
use super::systems::System;

/// The table of the cells at `shots` that differ from `like` in encoder and budget alone.
#[must_use]
pub fn table(cells: &Cells, like: &Conditions, shots: usize) -> Table {
    let same = |c: &Conditions| c.domains == like.domains && c.changes == like.changes;
    let trained: Vec<&Finished> = (cells.all().iter())
        .filter(|cell| same(&cell.conditions) && cell.outcome.cell.shots == shots)
        .filter(|cell| cell.outcome.training.updates > 0)
        .collect();
    let sizes = distinct(trained.iter().map(|cell| size(cell)));
    let names = distinct(trained.iter().map(|cell| name(cell)));
    let head = ["system", "encoder", "folds"].map(String::from).into_iter();
    let mut table = Table::new("budgets", head.chain(sizes.iter().map(u64::to_string)));
    for (key, encoder) in names {
        let own = trained.iter().copied().filter(|cell| name(cell) == (key, encoder));
        let row = Row::new(own.collect(), like.domains.len());
        if row.sizes.len() < 2 || row.folds.is_empty() {
            continue;
        }
        let system = System::find(key).map_or(key, |system| system.name);
        let folds: Vec<&str> = row.folds.iter().map(|&fold| &like.domains[fold][..]).collect();
        let head: [Cell; 3] = [system.into(), encoder.into(), folds.join(" ").as_str().into()];
        table.push(head.into_iter().chain(sizes.iter().map(|&size| row.figure(size))));
    }
    table
}

fn size(cell: &Finished) -> u64 {
    cell.conditions.budget.parse().map_or(0, Budget::presentations)
}

/// The system and the encoder.
fn name(cell: &Finished) -> (&str, &str) {
    (&cell.outcome.cell.system, &cell.conditions.encoder)
}

fn distinct<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut items: Vec<T> = items.collect();
    items.sort_unstable();
    items.dedup();
    items
}

struct Row<'a> {
    cells: Vec<&'a Finished>,
    sizes: Vec<u64>,
    folds: Vec<usize>,
}

impl<'a> Row<'a> {
    fn new(cells: Vec<&'a Finished>, n_folds: usize) -> Self {
        let sizes = distinct(cells.iter().map(|cell| size(cell)));
        let mut row = Self { cells, sizes, folds: Vec::new() };
        let whole = |&fold: &usize| row.sizes.iter().all(|&size| row.f1(size, fold).is_some());
        row.folds = (0..n_folds).filter(whole).collect();
        row
    }

    /// The mean over the seeds on one fold.
    fn f1(&self, at: u64, fold: usize) -> Option<f64> {
        let cells = self.cells.iter().filter(|c| size(c) == at && c.outcome.cell.fold == fold);
        let f1: Vec<f64> = cells.map(|cell| cell.outcome.f1).collect();
        (!f1.is_empty()).then(|| Summary::of(f1).mean)
    }

    fn figure(&self, size: u64) -> Cell {
        if !self.sizes.contains(&size) {
            return Cell::Empty;
        }
        Summary::of(self.folds.iter().filter_map(|&fold| self.f1(size, fold))).mean.into()
    }
}

#[cfg(test)]
mod tests {
    use fewtag::eval::Format;
    use fewtag::eval::table::render;

    use super::super::results::tests::outcome;
    use super::*;

    #[test]
    fn a_row_is_over_the_folds_that_all_its_budgets_have() {
        let conditions = |budget: &str| Conditions {
            encoder: "tiny".into(),
            budget: budget.into(),
            changes: Vec::new(),
            domains: ["We", "Mu", "Pl"].map(String::from).to_vec(),
        };
        let mut cells = Cells::default();
        let mut insert = |budget: &str, system: &str, fold: usize, f1: f64| {
            let mut outcome = outcome(system, fold, 1, f1);
            outcome.training.updates = 10;
            cells.insert(Finished { conditions: conditions(budget), outcome });
        };
        for (fold, f1) in [(0, 10.0), (1, 99.0), (2, 20.0)] {
            insert("medium", "vp", fold, f1);
        }
        insert("5000", "vp", 0, 30.0);
        insert("5000", "vp", 2, 50.0);
        insert("full", "nmn", 0, 1.0); // One budget alone says nothing of growth.
        let table = render(&[table(&cells, &conditions("full"), 1)], Format::Csv);
        let expected = "system,encoder,folds,1600,5000,20000\n\
             \"WPZ+BERT+DT, projection\",tiny,We Pl,15,40,\n";
        assert_eq!(table, expected);
    }
}
