//! How much a cell may cost.
//!
//! | | quick | full |
//! |---|---|---|
//! | updates | 100 of 2 queries | one epoch, about 2,500 of 4 |
//! | highest rate of the transitions | 0.025 | 0.001 |
//! | weights kept | the last | the best on the dev domain |
//! | test episodes per domain | 20, with 10 queries each | all |
//!
//! `quick` is for seeing that a table comes out and in which order its rows stand. Its figures are not the paper's: a
//! cell sees 200 queries instead of 10,000. What it costs is in `docs/reproduce.md`.

use serde::{Deserialize, Serialize};

use crate::config::Optimizer;
use crate::domain::Episode;

/// How much a cell may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Budget {
    /// A fixed small number of updates.
    Quick,
    /// As the paper: an epoch, and the best weights on the dev domain.
    Full,
}

const QUICK_UPDATES: u64 = 100;
/// Half of the paper's: the cost of a pair-wise cell is that of its queries.
const QUICK_BATCH: usize = 2;
/// 25 times the default: in 100 updates the random table then travels as far as in 2,500.
const QUICK_TRANSITION_RATE: f32 = 0.025;
const QUICK_EPISODES: usize = 20;
const QUICK_QUERIES: usize = 10;

impl Budget {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }

    /// One sentence about what it means, for the tables.
    #[must_use]
    pub fn note(self) -> String {
        match self {
            Self::Quick => format!(
                "Budget quick: {QUICK_UPDATES} updates of {QUICK_BATCH} queries, the last weights, and \
                 {QUICK_EPISODES} test episodes with {QUICK_QUERIES} queries each."
            ),
            Self::Full => "Budget full: one epoch, the best weights on the dev domain, and all \
                           test episodes."
                .to_owned(),
        }
    }

    /// The updates on the source domains; `None` if they follow from the number of queries.
    #[must_use]
    pub fn updates(self) -> Option<u64> {
        match self {
            Self::Quick => Some(QUICK_UPDATES),
            Self::Full => None,
        }
    }

    /// The number of queries per update.
    #[must_use]
    pub fn batch(self) -> usize {
        match self {
            Self::Quick => QUICK_BATCH,
            Self::Full => Optimizer::default().batch,
        }
    }

    /// The highest learning rate of the transitions; `None` if it is that of the settings.
    #[must_use]
    pub fn transition_rate(self) -> Option<f32> {
        match self {
            Self::Quick => Some(QUICK_TRANSITION_RATE),
            Self::Full => None,
        }
    }

    /// Whether the dev domain is looked at.
    #[must_use]
    pub fn uses_dev(self) -> bool {
        self == Self::Full
    }

    /// The episodes to test on: all, or the first queries of the first ones.
    #[must_use]
    pub fn test(self, mut episodes: Vec<Episode>) -> Vec<Episode> {
        if self == Self::Quick {
            episodes.truncate(QUICK_EPISODES);
            for episode in &mut episodes {
                episode.queries.truncate(QUICK_QUERIES);
            }
        }
        episodes
    }
}
