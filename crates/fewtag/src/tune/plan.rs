//! How much is tried: a function of sizes and of the time that is allowed, never of the clock.
//!
//! ```text
//! job    = U updates of one run (layers, rate) on the sentences of one fold, judged at U/4, U/2, 3U/4 and U
//! plan   = runs × folds jobs, and one more on all sentences
//! cost   = multiplications: pieces × layers that move × weights of a layer × 3 (up once, down twice)
//! ```
//!
//! So the same sentences, seed and minutes give the same result on every machine and any number of threads; on a slow one it takes
//! longer, and whoever runs it may stop early.

use super::weights::Choice;

/// Sentences per update.
const BATCH: usize = 48;
/// Multiplications a second that are counted on: what two cores with AVX2 do, all else included (with AVX-512 half as many again).
const SPEED: f64 = 4.0e10;
/// From so many sentences on, a part that is left out once says enough.
const MANY: usize = 200;
/// How often a run is judged.
const STOPS: u64 = 4;

/// What a user may choose.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Options {
    /// Where every random number comes from.
    pub seed: u64,
    /// About how long it may take on two cores; unset: 1 minute for 50 sentences, at most 15.
    pub minutes: Option<f64>,
    /// Whether all layers move: for thousands of sentences.
    pub full: bool,
}

/// What is known of the sentences and the model before anything is tried.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sizes {
    pub(super) n_sentences: usize,
    /// Of all sentences together.
    pub(super) n_pieces: usize,
    /// Of the names of all tags together.
    pub(super) name_pieces: usize,
    /// The encoder's.
    pub(super) n_layers: usize,
    /// Weights of a layer.
    pub(super) layer: usize,
}

/// One way to train, before it is known when to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Run {
    /// So many of the encoder's upper layers move.
    pub layers: usize,
    /// The highest learning rate of their weights.
    pub rate: f32,
}

/// What is tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// In the order in which they are tried.
    pub runs: Vec<Run>,
    /// Each run is judged on so many folds.
    pub n_folds: usize,
    /// The number of updates of a run.
    pub updates: u64,
    /// At most so many sentences per update.
    pub batch: usize,
    /// What a job costs beside the others, by run.
    pub(super) costs: Vec<f64>,
}

impl Plan {
    /// As much as fits into the time.
    pub(super) fn new(sizes: &Sizes, minutes: f64, full: bool) -> Self {
        let runs = runs(sizes.n_layers, full);
        let shapes: &[(usize, usize)] = if sizes.n_sentences < MANY {
            &[(3, 10), (3, 5), (2, 5), (1, 5), (1, 4), (1, 3), (1, 2)]
        } else {
            &[(3, 2), (3, 1), (2, 1), (1, 1)]
        };
        let batch = sizes.n_sentences.min(BATCH);
        let mut updates = wanted_updates(sizes.n_sentences);
        loop {
            let of_shape = |&(n_runs, n_folds): &(usize, usize)| {
                let runs = runs[..n_runs.min(runs.len())].to_vec();
                let costs = runs.iter().map(|run| sizes.job(*run, updates, batch)).collect();
                Self { runs, n_folds, updates, batch, costs }
            };
            let fits = |plan: &Self| plan.cost() <= minutes * 60.0 * SPEED;
            let last = of_shape(shapes.last().expect("there are shapes"));
            match shapes.iter().map(of_shape).find(fits) {
                Some(plan) => return plan,
                None if updates <= 2 * STOPS => return last,
                None => updates = (updates / 2).next_multiple_of(STOPS),
            }
        }
    }

    /// The cost of everything, the last job on all sentences included.
    pub(super) fn cost(&self) -> f64 {
        let dearest = self.costs.iter().copied().fold(0.0, f64::max);
        self.costs.iter().sum::<f64>() * self.n_folds as f64 + dearest
    }

    /// The part of the cost that the last job, on all sentences, may take.
    #[must_use]
    pub fn final_share(&self) -> f64 {
        self.costs.iter().copied().fold(0.0, f64::max) / self.cost()
    }

    /// After which updates a run is judged.
    pub(super) fn every(&self) -> u64 {
        self.updates / STOPS
    }

    /// All ways to tune that are compared.
    pub fn choices(&self) -> impl Iterator<Item = (usize, Choice)> {
        let stops = (1..=STOPS).map(|stop| stop * self.every());
        let runs = self.runs.iter().enumerate();
        runs.flat_map(move |(at, &Run { layers, rate })| {
            stops.clone().map(move |updates| (at, Choice { layers, rate, updates }))
        })
    }
}

/// The minutes that people wait for, unless they say otherwise.
pub(super) fn usual_minutes(n_sentences: usize) -> f64 {
    (n_sentences as f64 / 50.0).powf(0.85).clamp(1.0, 15.0)
}

/// More sentences say more, but not all of them have to come as often: the square root of their number.
#[expect(clippy::cast_sign_loss, reason = "a root of a ratio above 1")]
fn wanted_updates(n_sentences: usize) -> u64 {
    let batches = (n_sentences as f64 / BATCH as f64).max(1.0);
    ((40.0 * batches.sqrt()) as u64).next_multiple_of(STOPS)
}

/// The runs, the most promising first.
fn runs(n_layers: usize, full: bool) -> Vec<Run> {
    let run = |layers: usize, rate: f32| Run { layers: layers.min(n_layers), rate };
    if full {
        return [1e-4, 3e-4, 3e-5].map(|rate| run(n_layers, rate)).to_vec();
    }
    vec![run(2, 3e-4), run(2, 1e-4), run(1, 5e-4)]
}

impl Sizes {
    /// What one job costs.
    fn job(&self, Run { layers, .. }: Run, updates: u64, batch: usize) -> f64 {
        let of_batch = self.n_pieces as f64 * batch as f64 / self.n_sentences as f64;
        let an_update = 3.0 * (of_batch + self.name_pieces as f64);
        let judging = (self.n_pieces + self.name_pieces) as f64;
        let pieces = updates as f64 * an_update + STOPS as f64 * judging;
        pieces * layers as f64 * self.layer as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(n_sentences: usize) -> Sizes {
        // Sentences of 13 words, five labels, the built-in model.
        let layer = 4 * 384 * 384 + 2 * 384 * 1536;
        Sizes { n_sentences, n_pieces: 17 * n_sentences, name_pieces: 50, n_layers: 6, layer }
    }

    #[test]
    fn a_plan_fits_its_time() {
        for n in [10, 25, 50, 100, 199, 200, 500, 1000, 5000] {
            let minutes = usual_minutes(n);
            let plan = Plan::new(&sizes(n), minutes, false);
            assert!(plan.cost() <= minutes * 60.0 * SPEED, "{n}: {plan:?}");
            assert!(plan.updates >= 40 && plan.updates.is_multiple_of(STOPS), "{n}: {plan:?}");
            let enough = if n < MANY { 3 } else { 1 };
            assert!(plan.n_folds >= enough, "{n}: {plan:?}");
        }
    }

    #[test]
    fn more_time_tries_more_and_too_little_still_something() {
        let cost = |minutes| Plan::new(&sizes(100), minutes, false).cost();
        assert!(cost(10.0) > cost(2.0) && cost(2.0) > cost(0.1));
        let least = Plan::new(&sizes(100), 0.0, true);
        assert_eq!((least.runs.len(), least.n_folds, least.updates), (1, 2, 8));
    }

    #[test]
    fn an_encoder_may_have_fewer_layers_than_a_run_wants() {
        let flat = Sizes { n_layers: 1, ..sizes(50) };
        assert!(Plan::new(&flat, 60.0, false).runs.iter().all(|run| run.layers == 1));
        assert!(Plan::new(&sizes(50), 60.0, true).runs.iter().all(|run| run.layers == 6));
    }

    #[test]
    fn every_stop_of_every_run_is_a_choice() {
        let plan = Plan::new(&sizes(50), 60.0, false);
        assert_eq!(plan.choices().count(), 4 * plan.runs.len());
        assert_eq!(plan.choices().map(|(_, choice)| choice.updates).max(), Some(plan.updates));
    }
}
