//! How much a cell may cost.
//!
//! | | quick | full |
//! |---|---|---|
//! | updates of 4 queries | 100 | one epoch, about 2,500 |
//! | weights kept | the last | the best on the dev domain |
//! | test episodes per domain | 20, with 10 queries each | all |
//!
//! `quick` is for seeing that a table comes out and in which order its rows stand. Its figures are not the paper's: a
//! cell sees 400 queries instead of 10,000. What it costs is in `docs/reproduce.md`.

use serde::{Deserialize, Serialize};

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

    /// The updates on the source domains; `None` if they follow from the number of queries.
    #[must_use]
    pub fn updates(self) -> Option<u64> {
        match self {
            Self::Quick => Some(QUICK_UPDATES),
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
