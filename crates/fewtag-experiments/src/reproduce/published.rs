//! The figures the paper prints, to be laid beside ours.
//!
//! They are data (`published.toml`), copied as printed: a printed average may differ from the mean of its row in
//! the last digits.

use serde::Deserialize;

/// All tables of the paper.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The short names of the slot tagging domains, in the order of the columns and of the folds.
    pub slot_domains: Vec<String>,
    /// The short names of the NER domains, in the order of the columns and of the folds.
    pub ner_domains: Vec<String>,
    /// F1 at one shot.
    pub one_shot: Vec<Row>,
    /// F1 at five shots.
    pub five_shot: Vec<Row>,
    /// What each part is worth.
    pub ablation: Vec<Averages>,
    /// Transition rules against dependency transfer.
    pub rules: Vec<Averages>,
    /// Accuracy per pair of tag classes.
    pub bigrams: Vec<Bigram>,
    /// Corpora and episodes.
    pub data: Vec<DomainData>,
}

/// One system of a main table, F1 in percent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// The system's name.
    pub system: String,
    /// `[7 + 1]`: one figure per slot tagging domain, then their average.
    pub slot: Vec<f64>,
    /// `[4 + 1]`: one figure per NER domain, then their average.
    pub ner: Vec<f64>,
}

/// One system of a table of averages, F1 in percent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Averages {
    /// The system's name; one that starts with `-` is a difference from the first row.
    pub system: String,
    /// Slot tagging at 1 and 5 shots, NER at 1 and 5 shots.
    pub averages: [f64; 4],
}

/// One line of the bi-gram table, in percent.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bigram {
    /// `Border`, `Inner` or `Start`.
    pub group: String,
    /// The classes of two neighbouring words.
    pub bigram: String,
    /// How many of all words it accounts for.
    pub share: f64,
    /// The accuracy of NMN+PW.
    pub without: f64,
    /// The accuracy with dependency transfer.
    pub with: f64,
}

/// One domain of the data tables.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DomainData {
    /// Its short name.
    pub domain: String,
    /// Sentences of the corpus.
    pub sentences: usize,
    /// Labels of the corpus, as the paper counts them.
    pub labels: usize,
    /// Mean support size at 1 and 5 shots.
    pub support: [f64; 2],
    /// Queries at 1 and 5 shots.
    pub samples: [usize; 2],
}

impl Published {
    /// The paper's tables.
    ///
    /// # Panics
    ///
    /// Never: the file is part of the program and tested.
    #[must_use]
    pub fn tables() -> Self {
        toml::from_str(include_str!("published.toml")).expect("the file is tested")
    }

    /// The main table at `shots`, which is 1 or 5.
    #[must_use]
    pub fn main_table(&self, shots: usize) -> &[Row] {
        if shots == 1 { &self.one_shot } else { &self.five_shot }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_agree_with_their_printed_averages() {
        let tables = Published::tables();
        for row in tables.one_shot.iter().chain(&tables.five_shot) {
            for (figures, n_domains) in [(&row.slot, 7), (&row.ner, 4)] {
                let (average, domains) = figures.split_last().unwrap();
                assert_eq!(domains.len(), n_domains, "{}", row.system);
                let mean = domains.iter().sum::<f64>() / domains.len() as f64;
                // The largest slip of the paper: NMN+P&D at 5 shots, 73.27 for 73.34.
                assert!((mean - average).abs() < 0.08, "{}: {mean} {average}", row.system);
            }
        }
    }

    #[test]
    fn averages_are_those_of_the_method_page() {
        let tables = Published::tables();
        let averages = |rows: &[Row]| -> Vec<f64> { rows.iter().map(|row| row.slot[7]).collect() };
        assert_eq!(
            averages(&tables.one_shot),
            [21.37, 40.67, 25.81, 13.47, 23.50, 55.51, 36.82, 56.05, 56.50, 65.24, 67.27]
        );
        assert_eq!(
            averages(&tables.five_shot),
            [45.70, 52.96, 34.27, 18.82, 31.53, 62.61, 49.03, 63.78, 56.04, 68.36, 73.27]
        );
        let rules: Vec<[f64; 2]> =
            tables.rules.iter().map(|row| [row.averages[0], row.averages[1]]).collect();
        assert_eq!(rules, [[58.37, 66.86], [62.77, 72.42], [67.27, 73.27]]);
    }

    #[test]
    fn the_small_tables_agree_with_the_main_ones() {
        let tables = Published::tables();
        let ours = [&tables.one_shot, &tables.five_shot].map(|rows| rows.last().unwrap());
        let expected = vec![ours[0].slot[7], ours[1].slot[7], ours[0].ner[4], ours[1].ner[4]];
        assert_eq!(tables.ablation[0].averages.to_vec(), expected);
        assert_eq!(tables.rules[2].averages.to_vec(), expected);
        let shares: f64 = tables.bigrams.iter().map(|line| line.share).sum();
        assert!((shares - 100.0).abs() < 0.1, "{shares}");
        let domains: Vec<&String> = tables.data.iter().map(|line| &line.domain).collect();
        assert!(domains.into_iter().eq(tables.slot_domains.iter().chain(&tables.ner_domains)));
    }
}
