//! The paper's tables with our figures beside the published ones.
//!
//! Every row says whose figures it has: `ours` or `paper`. A cell that was not run is empty, and so is the average of
//! a system with a missing fold: a mean over other domains could not be compared.

use fewtag::Episode;
use fewtag::TagSet;
use fewtag::eval::{Cell, Table};

use super::compare;
use super::published::{Averages, Published};
use super::results::Outcomes;
use super::systems::System;

/// The systems of the ablation, in the order of its rows: the whole model, then the model without each part.
pub const ABLATION: [&str; 5] = ["nmn-pd", "nmn-pw", "nmn-dt", "nmn-pd-fixed-scale", "mn-pd"];
/// The systems of the comparison with transition rules, in the order of its rows.
pub const RULES: [&str; 3] = ["nmn-pw", "nmn-pw-rule", "nmn-pd"];
/// The systems of the bi-gram table: without and with dependency transfer.
pub const BIGRAMS: [&str; 2] = ["nmn-pw", "nmn-pd"];

/// The comparisons that the text draws: is the first better than the second?
pub const COMPARISONS: [[&str; 2]; 12] = [
    ["nmn-pd", "nmn"],
    ["nmn-pd", "nmn-pw"],
    ["nmn-pd", "nmn-dt"],
    ["nmn-pd", "nmn-pd-fixed-scale"],
    ["nmn-pd", "mn-pd"],
    ["nmn-dt", "nmn"],
    ["nmn-pw", "nmn"],
    ["nmn-pw-rule", "nmn-pw"],
    ["nmn-pd", "nmn-pw-rule"],
    ["nmn-pd", "simbert"],
    ["vp", "nmn-pd"],
    ["fitted", "vp"],
];

/// What the tables are drawn from.
#[derive(Debug)]
pub struct Figures<'a> {
    /// What our runs gave.
    pub outcomes: &'a Outcomes,
    /// What the paper prints.
    pub published: &'a Published,
    /// Slot tagging or NER.
    pub task: Task,
    /// The names of the test domains, in the order of the folds.
    pub domains: &'a [String],
    /// The systems to show.
    pub systems: &'a [&'static System],
}

/// The two tasks of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Task {
    /// Slot tagging: Snips, seven domains.
    Slot,
    /// Named entity recognition: four corpora.
    Ner,
}

impl Task {
    /// The published figures of a main table's row: one per domain, then the average.
    fn row(self, row: &super::published::Row) -> &[f64] {
        match self {
            Self::Slot => &row.slot,
            Self::Ner => &row.ner,
        }
    }

    /// Where this task stands at `shots` in [`Averages`].
    fn column(self, shots: usize) -> usize {
        usize::from(shots == 5) + if self == Self::Ner { 2 } else { 0 }
    }
}

impl Figures<'_> {
    /// F1 per domain: a row of ours and a row of the paper's for each system.
    #[must_use]
    pub fn main_table(&self, shots: usize) -> Table {
        let title = match shots {
            1 => "1-shot F1",
            _ => "5-shot F1",
        };
        let head = ["system", "figures"].map(String::from).into_iter();
        let tail = ["average", "sd", "sentence-macro f1", "seeds", "updates", "minutes"];
        let headers = head.chain(self.domains.iter().cloned()).chain(tail.map(String::from));
        let mut table = Table::new(title, headers);
        for system in self.systems {
            self.push_ours(&mut table, system, shots);
            self.push_published(&mut table, system, shots);
        }
        table
    }

    fn push_ours(&self, table: &mut Table, system: &System, shots: usize) {
        let (key, n_folds) = (system.key, self.domains.len());
        let cells: Vec<_> = self.outcomes.of(key, shots).collect();
        if cells.is_empty() {
            return;
        }
        let per_domain = (0..n_folds).map(|fold| {
            self.outcomes.f1(key, shots, fold).map_or(Cell::Empty, |f1| f1.mean.into())
        });
        let average = self.outcomes.average(key, shots, n_folds);
        let macro_f1 = self.outcomes.average_of(key, shots, n_folds, |o| o.sentence_macro_f1);
        let n_seeds = cells.iter().filter(|o| o.cell.fold == cells[0].cell.fold).count();
        let updates = cells.iter().map(|o| o.training.updates).max().unwrap_or(0) as usize;
        let minutes = cells.iter().map(|o| o.seconds).sum::<f64>() / 60.0;
        let tail: [Cell; 6] = [
            average.map_or(Cell::Empty, |average| average.mean.into()),
            average.filter(|_| n_seeds > 1).map_or(Cell::Empty, |average| average.sd.into()),
            macro_f1.map_or(Cell::Empty, |f1| f1.mean.into()),
            n_seeds.into(),
            updates.into(),
            minutes.into(),
        ];
        table.push([system.name.into(), "ours".into()].into_iter().chain(per_domain).chain(tail));
    }

    fn push_published(&self, table: &mut Table, system: &System, shots: usize) {
        let Some(figures) = self.published_row(system, shots) else { return };
        let numbers = figures.iter().map(|&f1| f1.into());
        let head: [Cell; 2] = [system.name.into(), "paper".into()];
        table.push(head.into_iter().chain(numbers).chain(std::iter::repeat_n(Cell::Empty, 5)));
    }

    /// The published F1 of `system` on `fold`, if the paper has these domains; the average stands after the last fold.
    #[must_use]
    pub fn published_f1(&self, system: &System, shots: usize, fold: usize) -> Option<f64> {
        self.published_row(system, shots).map(|figures| figures[fold])
    }

    /// One figure per domain, then their average.
    fn published_row(&self, system: &System, shots: usize) -> Option<&[f64]> {
        let rows = self.published.main_table(shots);
        let row = rows.iter().find(|row| row.system == system.name)?;
        let published = match self.task {
            Task::Slot => &self.published.slot_domains,
            Task::Ner => &self.published.ner_domains,
        };
        (self.domains == published).then(|| self.task.row(row))
    }

    /// What each part of the model is worth: differences from NMN+P&D.
    #[must_use]
    pub fn ablation(&self) -> Table {
        self.averages("ablation", &self.published.ablation, &ABLATION, Some(ABLATION[0]))
    }

    /// Transition rules against dependency transfer.
    #[must_use]
    pub fn rules(&self) -> Table {
        self.averages("rules", &self.published.rules, &RULES, None)
    }

    /// One row per published row; `systems[r]` is the system that row `r` is about.
    fn averages(
        &self,
        title: &'static str,
        published: &[Averages],
        systems: &[&str],
        whole: Option<&str>,
    ) -> Table {
        let headers = ["system", "1-shot ours", "1-shot paper", "5-shot ours", "5-shot paper"];
        let mut table = Table::new(title, headers);
        for (row, system) in published.iter().zip(systems) {
            let whole = whole.filter(|whole| whole != system);
            let pair = |shots: usize| {
                let average = |key| self.outcomes.average(key, shots, self.domains.len());
                let ours = average(system).and_then(|ours| match whole {
                    Some(whole) => Some(ours.mean - average(whole)?.mean),
                    None => Some(ours.mean),
                });
                let paper = row.averages[self.task.column(shots)];
                [ours.map_or(Cell::Empty, Cell::from), paper.into()]
            };
            table.push([row.system.as_str().into()].into_iter().chain(pair(1)).chain(pair(5)));
        }
        table
    }

    /// Differences between systems on the same test episodes, with 95 % intervals; only those of systems that were run.
    #[must_use]
    pub fn comparisons(&self) -> Table {
        let headers = ["shots", "system", "minus", "difference", "from", "to", "folds"];
        let mut table = Table::new("comparisons", headers);
        for (shots, [a, b]) in [1, 5].into_iter().flat_map(|s| COMPARISONS.map(|pair| (s, pair))) {
            let Some(found) = compare::difference(self.outcomes, shots, a, b) else { continue };
            let name = |key| Cell::from(System::find(key).map_or(key, |system| system.name));
            let [low, high] = found.interval;
            let numbers: [Cell; 4] =
                [found.mean.into(), low.into(), high.into(), found.n_folds.into()];
            table.push([shots.into(), name(a), name(b)].into_iter().chain(numbers));
        }
        table
    }

    /// The accuracy of words by their gold bi-gram at one shot, without and with dependency transfer.
    #[must_use]
    pub fn bigrams(&self) -> Table {
        let headers = [
            "group",
            "bi-gram",
            "share ours",
            "share paper",
            "NMN+PW ours",
            "NMN+PW paper",
            "+DT ours",
            "+DT paper",
        ];
        let mut table = Table::new("bi-grams", headers);
        for line in &self.published.bigrams {
            let of = |system: &str| self.bigram(system, &line.bigram);
            let (without, with) = (of(BIGRAMS[0]), of(BIGRAMS[1]));
            let cell = |number: Option<f64>| number.map_or(Cell::Empty, Cell::from);
            table.push([
                line.group.as_str().into(),
                line.bigram.as_str().into(),
                cell(with.map(|(share, _)| share)),
                line.share.into(),
                cell(without.map(|(_, accuracy)| accuracy)),
                line.without.into(),
                cell(with.map(|(_, accuracy)| accuracy)),
                line.with.into(),
            ]);
        }
        table
    }

    /// Share and accuracy of a kind of bi-gram at one shot, over all folds and seeds, in per cent; `None` unless
    /// every fold was run.
    fn bigram(&self, system: &str, name: &str) -> Option<(f64, f64)> {
        self.outcomes.average(system, 1, self.domains.len())?;
        let counts = self.outcomes.of(system, 1).flat_map(|outcome| &outcome.bigrams);
        let all: usize = counts.clone().map(|count| count.words).sum();
        let kind = counts.filter(|count| count.name == name);
        let words: usize = kind.clone().map(|count| count.words).sum();
        let correct: usize = kind.map(|count| count.correct).sum();
        let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole as f64;
        (words > 0).then(|| (percent(words, all), percent(correct, words)))
    }
}

/// The episodes of every domain at some number of shots, in the order of the folds.
pub type EpisodesByDomain = Vec<Vec<Episode>>;

/// The paper's overview of its few-shot data: labels, mean support size and samples, ours beside the paper's.
///
/// `episodes` has those at 1 and at 5 shots; either may be empty.
#[must_use]
pub fn data(published: &Published, names: &[String], episodes: &[EpisodesByDomain; 2]) -> Table {
    let mut headers = ["domain", "labels ours", "labels paper"].map(String::from).to_vec();
    for shots in [1, 5] {
        for number in ["support", "samples"] {
            headers.extend(["ours", "paper"].map(|whose| format!("{shots}-shot {number} {whose}")));
        }
    }
    let mut table = Table::new("data", headers);
    for (d, name) in names.iter().enumerate() {
        let paper = published.data.iter().find(|line| line.domain == *name);
        let paper_cell = |cell: Option<Cell>| cell.unwrap_or(Cell::Empty);
        let of_domain = episodes.iter().filter_map(|by_domain| by_domain.get(d)).flatten();
        let seen = of_domain.flat_map(|episode| episode.support.tag_set().tags());
        let n_labels = TagSet::new(seen).slots().len() + 1; // The paper counts `O`.
        let mut row = vec![
            name.as_str().into(),
            n_labels.into(),
            paper_cell(paper.map(|line| line.labels.into())),
        ];
        for (k, by_domain) in episodes.iter().enumerate() {
            let ours = by_domain.get(d).filter(|episodes| !episodes.is_empty());
            row.extend([
                ours.map_or(Cell::Empty, |episodes| mean_support(episodes).into()),
                paper_cell(paper.map(|line| line.support[k].into())),
                ours.map_or(Cell::Empty, |e| {
                    e.iter().map(|e| e.queries.len()).sum::<usize>().into()
                }),
                paper_cell(paper.map(|line| line.samples[k].into())),
            ]);
        }
        table.push(row);
    }
    table
}

fn mean_support(episodes: &[Episode]) -> f64 {
    let sizes = episodes.iter().map(|episode| episode.support.sentences().len());
    sizes.sum::<usize>() as f64 / episodes.len() as f64
}

#[cfg(test)]
mod tests {
    use fewtag::eval::Format;
    use fewtag::eval::table::render;

    use super::super::results::tests::outcome;
    use super::*;

    /// The main table, the ablation, the rules, the bi-grams and the comparisons as CSV.
    fn csv() -> [String; 5] {
        let cells =
            |system: &'static str, f1: f64| (0..7).map(move |fold| outcome(system, fold, 1, f1));
        let mut all: Vec<_> = cells("nmn-pd", 60.0).chain(cells("nmn-pw", 50.0)).collect();
        all.extend(cells("mn-pd", 40.0).take(6)); // One fold is missing.
        let published = Published::tables();
        let figures = Figures {
            outcomes: &Outcomes(all),
            published: &published,
            task: Task::Slot,
            domains: &published.slot_domains,
            systems: &["mn-pd", "nmn-pd"].map(|key| System::find(key).unwrap()),
        };
        let tables = [
            figures.main_table(1),
            figures.ablation(),
            figures.rules(),
            figures.bigrams(),
            figures.comparisons(),
        ];
        tables.map(|table| render(&[table], Format::Csv))
    }

    #[test]
    fn our_figures_stand_above_the_published_ones() {
        let expected = "\
system,figures,We,Mu,Pl,Bo,Se,Re,Cr,average,sd,sentence-macro f1,seeds,updates,minutes
MN+P&D,ours,40,40,40,40,40,40,,,,,1,0,6
MN+P&D,paper,56.27,53.3,59.14,75.88,54.45,55.33,41.1,56.5,,,,,
NMN+P&D,ours,60,60,60,60,60,60,60,60,,59,1,0,7
NMN+P&D,paper,68.68,53.12,67.39,80.92,71.25,69.32,60.26,67.27,,,,,
";
        assert_eq!(csv()[0], expected);
    }

    #[test]
    fn the_ablation_is_a_difference_and_never_over_other_folds() {
        let [_, ablation, rules, ..] = csv();
        let lines: Vec<&str> = ablation.lines().skip(1).collect();
        assert_eq!(lines[0], "NMN+P&D,60,67.27,,73.27");
        assert_eq!(lines[1], "- dependency transfer,-10,-8.9,,-6.41");
        assert_eq!(lines[4], "- label-wise normalisation,,-10.97,,-17.23");
        assert!(rules.contains("NMN+PW,50,58.37,,66.86"));
    }

    #[test]
    fn comparisons_are_those_of_systems_that_were_run() {
        let [.., comparisons] = csv();
        let expected = "shots,system,minus,difference,from,to,folds
1,NMN+P&D,NMN+PW,10,10,10,7
1,NMN+P&D,MN+P&D,20,20,20,6
";
        assert_eq!(comparisons, expected);
    }

    #[test]
    fn bigram_shares_and_accuracies_are_per_cent() {
        let [.., table, _] = csv();
        assert!(table.contains("Border,O-B,100,21.75,70,71,70,71"), "{table}");
        assert!(table.contains("Inner,B-I,,11.84,,71,,76"), "{table}");
    }

    #[test]
    fn bigrams_of_some_folds_are_not_laid_beside_those_of_all() {
        let published = Published::tables();
        let cells = |system: &'static str, n| (0..n).map(move |fold| outcome(system, fold, 1, 1.0));
        let outcomes = Outcomes(cells("nmn-pd", 7).chain(cells("nmn-pw", 6)).collect());
        let domains = &published.slot_domains;
        let (task, systems) = (Task::Slot, &[]);
        let figures =
            Figures { outcomes: &outcomes, published: &published, task, domains, systems };
        let table = render(&[figures.bigrams()], Format::Csv);
        assert!(table.contains("Border,O-B,100,21.75,,71,70,71"), "{table}");
    }
}
