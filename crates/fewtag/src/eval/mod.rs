//! Evaluation: what predictions are worth, and the tables that say so.
//!
//! ```text
//! tagger, episodes ─ evaluate ─▶ Evaluation (a Report and what was tagged)
//! Judged (gold and predicted tags of a sentence) ─▶ EpisodeScore ─▶ DomainScores ─▶ Report ─▶ Table
//! tagger, episodes ─ Predictions ─▶ Temperature, Reliability: are the probabilities honest?
//! ```
//!
//! `metrics.rs` counts spans by `conlleval`'s rules, `bigrams.rs` words by their gold bi-gram, [`table`]
//! prints, `calibrate.rs` fits the temperature, `reliability.rs` says how honest probabilities are. Scores are fractions in the types and per cent in the tables, as the paper has them.

mod bigrams;
mod calibrate;
mod evaluate;
mod metrics;
mod reliability;
pub mod table;

pub use bigrams::{Bigram, Bigrams};
pub(crate) use calibrate::log_loss;
pub use calibrate::{Predictions, Temperature};
pub use evaluate::{Evaluation, evaluate};
pub use metrics::{Counts, EpisodeScore, Judged, Summary, Tally};
pub use reliability::{Bin, Reliability, WithoutSpans};
pub use table::{Cell, Format, Table};

use metrics::ratio;

/// The scores of a domain's episodes.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainScores {
    /// The domain's name.
    pub name: String,
    /// One score per episode.
    pub episodes: Vec<EpisodeScore>,
}

impl DomainScores {
    /// Mean and spread of a number over the episodes, e.g. `domain.over_episodes(EpisodeScore::f1)`.
    pub fn over_episodes(&self, number: impl Fn(&EpisodeScore) -> f64) -> Summary {
        Summary::of(self.episodes.iter().map(number))
    }

    /// The counts of all episodes together.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for episode in &self.episodes {
            tally += &episode.tally;
        }
        tally
    }
}

/// The scores of several domains.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// The domains in the order in which they are shown.
    pub domains: Vec<DomainScores>,
}

const SCORE_HEADERS: [&str; 9] = [
    "domain",
    "episodes",
    "sentences",
    "precision",
    "recall",
    "f1",
    "f1 sd",
    "sentence-macro f1",
    "sentence-macro sd",
];

impl Report {
    /// Adds the score of an episode to its domain; a new domain comes last.
    pub fn add(&mut self, domain: &str, episode: EpisodeScore) {
        match self.domains.iter_mut().find(|scores| scores.name == domain) {
            Some(scores) => scores.episodes.push(episode),
            None => {
                self.domains
                    .push(DomainScores { name: domain.to_owned(), episodes: vec![episode] });
            }
        }
    }

    /// The three tables: [`Report::scores`], [`Report::slots`] and [`Report::bigrams`].
    pub fn tables(&self) -> [Table; 3] {
        [self.scores(), self.slots(), self.bigrams()]
    }

    /// One row per domain: means and standard deviations over its episodes; then their average.
    ///
    /// The average is the mean of the rows above it, its deviation that between domains.
    pub fn scores(&self) -> Table {
        let mut table = Table::new("scores", SCORE_HEADERS);
        let rows: Vec<[f64; 6]> = self.domains.iter().map(score_row).collect();
        for (domain, numbers) in self.domains.iter().zip(&rows) {
            let sentences: usize = domain.episodes.iter().map(|e| e.n_sentences).sum();
            let head =
                [domain.name.as_str().into(), domain.episodes.len().into(), sentences.into()];
            table.push(head.into_iter().chain(numbers.map(Cell::from)));
        }
        if rows.len() > 1 {
            let over_domains = |c: usize| Summary::of(rows.iter().map(|row| row[c]));
            let (f1, macro_f1) = (over_domains(2), over_domains(4));
            table.push([
                "(average)".into(),
                Cell::Empty,
                Cell::Empty,
                over_domains(0).mean.into(),
                over_domains(1).mean.into(),
                f1.mean.into(),
                f1.sd.into(),
                macro_f1.mean.into(),
                macro_f1.sd.into(),
            ]);
        }
        table
    }

    /// One row per slot of each domain, its episodes counted together; then the domain's total.
    pub fn slots(&self) -> Table {
        let headers =
            ["domain", "slot", "gold", "predicted", "correct", "precision", "recall", "f1"];
        let mut table = Table::new("slots", headers);
        for domain in &self.domains {
            let tally = domain.tally();
            // No slot has a blank in its name.
            let slots = tally.slots.iter().map(|(slot, counts)| (slot.as_str(), *counts));
            for (slot, counts) in slots.chain([("all slots", tally.total())]) {
                table.push([
                    domain.name.as_str().into(),
                    slot.into(),
                    counts.gold.into(),
                    counts.predicted.into(),
                    counts.correct.into(),
                    percent(counts.precision()).into(),
                    percent(counts.recall()).into(),
                    percent(counts.f1()).into(),
                ]);
            }
        }
        table
    }

    /// One row per kind of gold bi-gram that occurs, all domains counted together; then all words.
    pub fn bigrams(&self) -> Table {
        let mut bigrams = Bigrams::default();
        for episode in self.domains.iter().flat_map(|domain| &domain.episodes) {
            bigrams += &episode.bigrams;
        }
        let mut table =
            Table::new("bi-grams", ["group", "bi-gram", "words", "proportion", "accuracy"]);
        for kind in bigrams.kinds().filter(|kind| kind.words > 0).chain([bigrams.all()]) {
            table.push([
                kind.group.into(),
                kind.name.into(),
                kind.words.into(),
                percent(ratio(kind.words, bigrams.all().words)).into(),
                percent(kind.accuracy()).into(),
            ]);
        }
        table
    }
}

/// The numbers of a domain in the order of [`SCORE_HEADERS`], in per cent.
fn score_row(domain: &DomainScores) -> [f64; 6] {
    let f1 = domain.over_episodes(EpisodeScore::f1);
    let macro_f1 = domain.over_episodes(EpisodeScore::sentence_macro_f1);
    [
        domain.over_episodes(|episode| episode.tally.total().precision()).mean,
        domain.over_episodes(|episode| episode.tally.total().recall()).mean,
        f1.mean,
        f1.sd,
        macro_f1.mean,
        macro_f1.sd,
    ]
    .map(percent)
}

fn percent(fraction: f64) -> f64 {
    100.0 * fraction
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tag::Tag;

    fn domain(name: &str, episodes: &[(&str, &str)]) -> DomainScores {
        let tags =
            |text: &str| -> Vec<Tag> { text.split(' ').map(|t| t.parse().unwrap()).collect() };
        let score = |(gold, predicted): &(&str, &str)| {
            EpisodeScore::of(&[Judged::new(&tags(gold), &tags(predicted))])
        };
        DomainScores { name: name.into(), episodes: episodes.iter().map(score).collect() }
    }

    #[test]
    fn a_report_reads_as_three_tables() {
        let weather = domain("weather", &[("O B-city", "O B-city"), ("O B-city", "B-city O")]);
        let music = domain("music", &[("B-artist I-artist", "B-artist I-artist")]);
        let report = Report { domains: vec![weather, music] };
        let expected = "\
scores

domain     episodes  sentences  precision  recall      f1  f1 sd  sentence-macro f1  sentence-macro sd
---------  --------  ---------  ---------  ------  ------  -----  -----------------  -----------------
weather           2          2      50.00   50.00   50.00  70.71              50.00              70.71
music             1          1     100.00  100.00  100.00   0.00             100.00               0.00
(average)                           75.00   75.00   75.00  35.36              75.00              35.36

slots

domain   slot       gold  predicted  correct  precision  recall      f1
-------  ---------  ----  ---------  -------  ---------  ------  ------
weather  city          2          2        1      50.00   50.00   50.00
weather  all slots     2          2        1      50.00   50.00   50.00
music    artist        1          1        1     100.00  100.00  100.00
music    all slots     1          1        1     100.00  100.00  100.00

bi-grams

group   bi-gram  words  proportion  accuracy
------  -------  -----  ----------  --------
Border  O-B          2       33.33     50.00
Inner   B-I          1       16.67    100.00
Start   S-B          1       16.67    100.00
Start   S-O          2       33.33     50.00
All                  6      100.00     66.67
";
        assert_eq!(table::render(&report.tables(), Format::Text), expected);
    }
}
