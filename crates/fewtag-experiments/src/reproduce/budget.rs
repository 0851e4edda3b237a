//! How much a cell may cost.
//!
//! | | quick | medium | full |
//! |---|---|---|---|
//! | updates | 100 of 2 queries | 400 of 4 | one epoch, about 2,500 of 4 |
//! | highest rate of the transitions | 0.025 | 0.006 25 | 0.001 |
//! | weights kept | the last | the last | the best on the dev domain |
//! | test episodes per domain | 20, with 10 queries each | 50 | all |
//!
//! `quick` is for seeing that a table comes out and in which order its rows stand. Its figures are not the paper's: a
//! cell sees 200 queries instead of 10,000. `medium` sees 1,600. What they cost is in `docs/lab/reproduce.md`.

use fewtag::Episode;
use fewtag::train::config::Optimizer;
use serde::{Deserialize, Serialize};

/// How much a cell may cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Budget {
    /// A fixed small number of updates.
    Quick,
    /// A fixed number of updates, eight times the queries of [`Budget::Quick`].
    Medium,
    /// As the paper: an epoch, and the best weights on the dev domain.
    Full,
}

/// A budget that is fixed in advance and looks at no dev domain.
struct Fixed {
    updates: u64,
    /// The queries of an update.
    batch: usize,
    /// The highest rate of the transitions: the random table travels as far as in 2,500 updates at the paper's 0.001.
    transition_rate: f32,
    test_episodes: usize,
    test_queries: usize,
}

const QUICK: Fixed = Fixed {
    updates: 100,
    batch: 2, // Half of the paper's: the cost of a pair-wise cell is that of its queries.
    transition_rate: 0.025,
    test_episodes: 20,
    test_queries: 10,
};

const MEDIUM: Fixed = Fixed {
    updates: 400,
    batch: 4,
    transition_rate: 0.006_25,
    test_episodes: 50,
    test_queries: 20,
};

impl Budget {
    fn fixed(self) -> Option<Fixed> {
        match self {
            Self::Quick => Some(QUICK),
            Self::Medium => Some(MEDIUM),
            Self::Full => None,
        }
    }

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Medium => "medium",
            Self::Full => "full",
        }
    }

    /// One sentence about what it means, for the tables.
    #[must_use]
    pub fn note(self) -> String {
        let name = self.name();
        match self.fixed() {
            Some(Fixed { updates, batch, test_episodes, test_queries, .. }) => format!(
                "Budget {name}: {updates} updates of {batch} queries, the last weights, and \
                 {test_episodes} test episodes with {test_queries} queries each."
            ),
            None => format!(
                "Budget {name}: one epoch, the best weights on the dev domain, and all test episodes."
            ),
        }
    }

    /// The updates on the source domains; `None` if they follow from the number of queries.
    #[must_use]
    pub fn updates(self) -> Option<u64> {
        self.fixed().map(|fixed| fixed.updates)
    }

    /// The number of queries per update.
    #[must_use]
    pub fn batch(self) -> usize {
        self.fixed().map_or(Optimizer::default().batch, |fixed| fixed.batch)
    }

    /// The highest learning rate of the transitions; `None` if it is that of the settings.
    #[must_use]
    pub fn transition_rate(self) -> Option<f32> {
        self.fixed().map(|fixed| fixed.transition_rate)
    }

    /// Whether the dev domain is looked at.
    #[must_use]
    pub fn uses_dev(self) -> bool {
        self.fixed().is_none()
    }

    /// The episodes to test on: all, or the first queries of the first ones.
    #[must_use]
    pub fn test(self, mut episodes: Vec<Episode>) -> Vec<Episode> {
        if let Some(Fixed { test_episodes, test_queries, .. }) = self.fixed() {
            episodes.truncate(test_episodes);
            for episode in &mut episodes {
                episode.queries.truncate(test_queries);
            }
        }
        episodes
    }
}
