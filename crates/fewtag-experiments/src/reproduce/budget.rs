//! How much a cell may cost.
//!
//! | | quick | medium | full | a number N |
//! |---|---|---|---|---|
//! | presentations of a query | 200 | 1,600 | 20,000 | N |
//! | updates | 100 of 2 | 400 of 4 | 5,000 of 4 | N / 4 of 4 |
//! | highest rate of the transitions | 0.025 | 0.006 25 | 0.001 | 2.5 / updates, at least 0.001 |
//! | weights kept | the last | the last | the best on the dev domain | the best on the dev domain |
//!
//! `full` is what the authors' settings amount to: two passes over 10,000 queries, looked at four times a pass. The
//! smaller ones are for seeing that a table comes out and in which order its rows stand. Every budget is tested on
//! all episodes: that is cheap. What they cost is in `docs/lab/reproduce.md`.

use std::fmt;
use std::str::FromStr;

/// How much a cell may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    updates: u64,
    /// The queries of an update.
    batch: usize,
    /// How often the dev domain is looked at; 0: never, the last weights are kept.
    looks: u64,
}

const QUICK: Budget = Budget { updates: 100, batch: 2, looks: 0 };
const MEDIUM: Budget = Budget { updates: 400, batch: 4, looks: 0 };
const FULL: Budget = Budget { updates: 5000, batch: 4, looks: 8 };
const NAMED: [(&str, Budget); 3] = [("quick", QUICK), ("medium", MEDIUM), ("full", FULL)];
/// The fewest presentations that make two updates between two looks.
const FEWEST: u64 = 64;
/// A random table travels as far as in 2,500 updates at the paper's rate, 0.001.
const TRAVEL: f32 = 2.5;
const PAPERS_RATE: f32 = 1e-3;

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some((_, budget)) = NAMED.into_iter().find(|(name, _)| *name == text) {
            return Ok(budget);
        }
        match text.parse::<u64>() {
            Ok(n) if n >= FEWEST => {
                Ok(Self { updates: n / FULL.batch as u64, batch: FULL.batch, looks: FULL.looks })
            }
            _ => Err(format!(
                "a budget is `quick`, `medium`, `full` or a number of queries from {FEWEST}"
            )),
        }
    }
}

/// Its name on the command line.
impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMED.into_iter().find(|(_, budget)| budget == self) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{}", self.presentations()),
        }
    }
}

impl Budget {
    /// How often a query is learned from.
    #[must_use]
    pub fn presentations(self) -> u64 {
        self.updates * self.batch as u64
    }

    /// One sentence about what it means, for the tables.
    #[must_use]
    pub fn note(self) -> String {
        let Self { updates, batch, looks } = self;
        let kept = match looks {
            0 => "the last weights".into(),
            _ => format!("the best weights of {looks} looks at the dev domain"),
        };
        format!("Budget {self}: {updates} updates of {batch} queries, {kept}, all test episodes.")
    }

    /// The updates on the source domains.
    #[must_use]
    pub fn updates(self) -> u64 {
        self.updates
    }

    /// The number of queries per update.
    #[must_use]
    pub fn batch(self) -> usize {
        self.batch
    }

    /// The highest learning rate of the transitions.
    #[must_use]
    pub fn transition_rate(self) -> f32 {
        (TRAVEL / self.updates as f32).max(PAPERS_RATE)
    }

    /// After how many updates the dev domain is looked at; `None` if it is not.
    #[must_use]
    pub fn updates_between_looks(self) -> Option<u64> {
        (self.looks > 0).then(|| (self.updates / self.looks).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_budgets_and_print_as_they_are_given() {
        for text in ["quick", "medium", "full", "5000"] {
            assert_eq!(text.parse::<Budget>().unwrap().to_string(), text);
        }
        assert_eq!("20000".parse::<Budget>().unwrap(), FULL);
        assert!("63".parse::<Budget>().unwrap_err().contains("from 64"));
        assert!("fast".parse::<Budget>().is_err());
    }

    #[test]
    fn the_full_budget_is_that_of_the_authors() {
        let updates = |budget: Budget| budget.updates_between_looks();
        assert_eq!((FULL.presentations(), updates(FULL)), (20_000, Some(625)));
        assert_eq!((MEDIUM.presentations(), updates(MEDIUM)), (1_600, None));
        for (budget, rate) in [(QUICK, 0.025), (MEDIUM, 0.006_25), (FULL, 0.001)] {
            assert!((budget.transition_rate() / rate - 1.0).abs() < 1e-6, "{budget}");
        }
    }
}
