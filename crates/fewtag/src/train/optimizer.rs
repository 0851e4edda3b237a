//! `AdamW`: Adam with weight decay apart from the gradient, its schedule, and clipping of the global gradient norm.
//!
//! ```text
//! g ← g · min(1, max_norm / (‖g‖ + 1e-6)),  η = rate · factor(t)
//! m ← β₁ m + (1 − β₁) g,  v ← β₂ v + (1 − β₂) g²
//! w ← w (1 − η · decay) − η · m / (1 − β₁ᵗ) / (√(v / (1 − β₂ᵗ)) + ε),  t = 1, 2, …
//! ```
//!
//! The authors of the paper had no `1 − βᵗ`: a setting leaves it out.
//!
//! Every number is updated by itself and norms are summed in a fixed order, so results do not depend on threads.
//!
//! Method: Loshchilov and Hutter (2019). The arithmetic and the order of steps are those of `torch.optim.AdamW`,
//! `clip_grad_norm_` and `transformers.get_linear_schedule_with_warmup`.

use fewtag_kernels::adamw;
use rayon::prelude::*;

use crate::encoder::{Frozen, Gradients, Parameters};

const BETA_1: f32 = 0.9;
const BETA_2: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// The most numbers that one task updates.
const CHUNK: usize = 1 << 15;

/// How fast a part of the model learns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rates {
    /// η.
    pub learning_rate: f32,
    /// How much of a weight is lost in an update, before it is multiplied by η.
    pub weight_decay: f32,
}

impl Rates {
    /// The same at another point of the schedule.
    #[must_use]
    pub fn scaled(self, factor: f32) -> Self {
        Self { learning_rate: self.learning_rate * factor, ..self }
    }
}

/// Some numbers to be updated.
#[derive(Debug)]
pub struct Part<'a> {
    /// The weights.
    pub values: &'a mut [f32],
    /// Their gradient, as long as `values`; `None` if it is and always was zero.
    pub gradient: Option<&'a [f32]>,
    /// How fast they learn.
    pub rates: Rates,
}

/// The state of the optimiser: the number of updates done and two moments for every number it trains.
#[derive(Debug, Clone, PartialEq)]
pub struct AdamW {
    n_updates: u64,
    first: Vec<f32>,
    second: Vec<f32>,
    /// Whether moments are divided by `1 − βᵗ`; without, the first steps are larger.
    corrects_bias: bool,
}

impl AdamW {
    /// At the start of training `n_values` numbers.
    #[must_use]
    pub fn new(n_values: usize) -> Self {
        Self::resume(0, vec![0.0; n_values], vec![0.0; n_values])
    }

    /// After `n_updates` updates, with the moments they left behind.
    ///
    /// # Panics
    ///
    /// If the moments differ in length.
    #[must_use]
    pub(crate) fn resume(n_updates: u64, first: Vec<f32>, second: Vec<f32>) -> Self {
        assert_eq!(first.len(), second.len(), "two moments for every number");
        Self { n_updates, first, second, corrects_bias: true }
    }

    /// The same with or without the correction of the moments, as the paper's authors had it.
    #[must_use]
    pub(crate) fn correcting_bias(self, corrects_bias: bool) -> Self {
        Self { corrects_bias, ..self }
    }

    /// The number of updates done.
    pub fn n_updates(&self) -> u64 {
        self.n_updates
    }

    /// The moments `m` and `v`, in the order of the parts.
    pub(crate) fn moments(&self) -> [&[f32]; 2] {
        [&self.first, &self.second]
    }

    /// Updates all parts, which must come in the same order every time, with their gradients times `gradient_scale`.
    ///
    /// # Panics
    ///
    /// If the parts are together not as long as the moments.
    pub fn update(&mut self, parts: Vec<Part>, gradient_scale: f32) {
        self.n_updates += 1;
        let (mut first, mut second) = (self.first.as_mut_slice(), self.second.as_mut_slice());
        let mut chunks = Vec::new();
        for part in parts {
            let mut start = 0;
            for values in part.values.chunks_mut(CHUNK) {
                let gradient = part.gradient.map(|gradient| &gradient[start..][..values.len()]);
                start += values.len();
                let (m, v);
                (m, first) = first.split_at_mut(values.len());
                (v, second) = second.split_at_mut(values.len());
                chunks.push(Chunk { values, gradient, m, v, rates: part.rates });
            }
        }
        assert!(first.is_empty(), "{} numbers without a part", first.len());
        let t = i32::try_from(self.n_updates).unwrap_or(i32::MAX);
        let correction = |beta: f32| 1.0 - f64::from(beta).powi(t);
        let corrections =
            if self.corrects_bias { [BETA_1, BETA_2].map(correction) } else { [1.0; 2] };
        chunks.into_par_iter().for_each(|chunk| chunk.update(corrections, gradient_scale));
    }
}

/// A part small enough for one task, with its moments.
struct Chunk<'a> {
    values: &'a mut [f32],
    gradient: Option<&'a [f32]>,
    m: &'a mut [f32],
    v: &'a mut [f32],
    rates: Rates,
}

impl Chunk<'_> {
    fn update(self, [correction_1, correction_2]: [f64; 2], scale: f32) {
        let Self { values, gradient, m, v, rates } = self;
        let update = adamw::Update {
            betas: [BETA_1, BETA_2],
            epsilon: EPSILON,
            gradient_scale: scale,
            keep: 1.0 - rates.learning_rate * rates.weight_decay,
            step: (f64::from(rates.learning_rate) / correction_1) as f32,
            root: correction_2.sqrt() as f32,
        };
        match gradient {
            Some(gradient) => update.run(values, gradient, m, v),
            None => update.decay(values),
        }
    }
}

/// The trained tensors of an encoder as parts, bottom up. Biases and layer norms do not decay.
///
/// Rows of the word table that never had a gradient are parts without one.
pub fn encoder_parts<'a>(
    parameters: &'a mut Parameters,
    gradients: &'a Gradients,
    frozen: Frozen,
    rates: Rates,
) -> Vec<Part<'a>> {
    let (h, n_rows) = (parameters.config().hidden_size, parameters.config().vocab_size);
    let trained = frozen.trained(parameters.config());
    let mut parts = Vec::new();
    let tensors = parameters.tensors_mut().zip(gradients.parameters().tensors());
    for ((tensor, mut values), (_, mut gradient)) in tensors {
        let weight_decay = if tensor.decays() { rates.weight_decay } else { 0.0 };
        let rates = Rates { weight_decay, ..rates };
        if tensor.place.start < trained.start {
            continue;
        }
        if tensor.place == (0..n_rows * h) {
            for run in gradients.seen().chunk_by(|a, b| a == b) {
                let (row_values, row_gradient);
                (row_values, values) = values.split_at_mut(run.len() * h);
                (row_gradient, gradient) = gradient.split_at(run.len() * h);
                parts.push(Part {
                    values: row_values,
                    gradient: run[0].then_some(row_gradient),
                    rates,
                });
            }
        } else {
            parts.push(Part { values, gradient: Some(gradient), rates });
        }
    }
    parts
}

/// `‖x‖²`, in a fixed order.
pub fn squared_norm(x: &[f32]) -> f64 {
    let sums: Vec<f64> =
        x.par_chunks(CHUNK).map(|chunk| sum_of_squares(chunk.chunks(1024))).collect();
    sums.iter().sum()
}

/// The squared norm of several rows, one after the other: short sums in single precision, their sum in double.
fn sum_of_squares<'a>(rows: impl Iterator<Item = &'a [f32]>) -> f64 {
    rows.map(|row| f64::from(fewtag_kernels::sum_of_squares(row))).sum()
}

/// The squared norm of all gradients of an encoder; untouched rows of the word table are skipped.
pub fn squared_gradient_norm(gradients: &Gradients) -> f64 {
    let h = gradients.parameters().config().hidden_size;
    let (word, rest) = gradients.parameters().values().split_at(gradients.touched().len() * h);
    let rows = word.chunks_exact(h).zip(gradients.touched());
    let touched = rows.filter(|(_, touched)| **touched).map(|(row, _)| row);
    sum_of_squares(touched) + squared_norm(rest)
}

/// What to multiply gradients of this norm with, so that it becomes at most `max_norm`.
pub fn clip_scale(norm: f64, max_norm: f32) -> f32 {
    (f64::from(max_norm) / (norm + 1e-6)).min(1.0) as f32
}

/// A linear rise of the learning rate from 0, then a linear fall to 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// The number of updates of the rise.
    pub warm_up: u64,
    /// The number of all updates.
    pub n_updates: u64,
}

impl Schedule {
    /// What to multiply the learning rate with in the update after `done` updates.
    pub fn factor(&self, done: u64) -> f32 {
        let ratio = |a: u64, b: u64| (a as f64 / b.max(1) as f64) as f32;
        if done < self.warm_up {
            ratio(done, self.warm_up)
        } else {
            ratio(self.n_updates.saturating_sub(done), self.n_updates.saturating_sub(self.warm_up))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::encoder::odd_config;
    use fewtag_kernels::testing::{assert_close, normal};

    use super::*;

    const RATES: Rates = Rates { learning_rate: 0.1, weight_decay: 0.01 };

    #[test]
    fn three_updates_are_those_of_pytorch() {
        // torch 2.15.0, float64: AdamW([w], lr=0.1, weight_decay=0.01), gradients [1, -2, 0], [0.5, 2, 0], [-3, 1e-3, 0].
        let mut w = [1.0, -1.0, 0.5];
        let mut adam = AdamW::new(3);
        let gradients = [[1.0, -2.0, 0.0], [0.5, 2.0, 0.0], [-3.0, 1e-3, 0.0]];
        for gradient in &gradients {
            adam.update(vec![Part { values: &mut w, gradient: Some(gradient), rates: RATES }], 1.0);
        }
        assert_close(&w, &[0.838_800_5, -0.906_551_8, 0.498_501_5], 1e-6);
        assert_eq!(adam.n_updates(), 3);
    }

    #[test]
    fn without_correction_the_first_steps_are_those_of_the_bare_moments() {
        // By hand: m = 0.1, v = 0.001 and m = 0.14, v = 0.001 249 after gradients 1 and 0.5; no decay.
        let rates = Rates { learning_rate: 0.1, weight_decay: 0.0 };
        let mut w = [1.0];
        let mut adam = AdamW::new(1).correcting_bias(false);
        let mut expected = 1.0;
        for (gradient, m, v) in [(1.0, 0.1, 0.001_f64), (0.5, 0.14, 0.001_249)] {
            adam.update(vec![Part { values: &mut w, gradient: Some(&[gradient]), rates }], 1.0);
            expected -= 0.1 * m / (v.sqrt() + 1e-8);
            assert_close(&w, &[expected as f32], 1e-5); // In f32 1 − β₂ is 0.001 000 05.
        }
    }

    #[test]
    fn clipped_gradients_have_the_greatest_norm_allowed() {
        assert!((clip_scale(0.5, 1.0) - 1.0).abs() < 1e-7);
        assert!((clip_scale(4.0, 1.0) - 0.25).abs() < 1e-6);
    }

    #[test]
    fn the_norm_is_summed_over_all_numbers() {
        let x = normal(100_000, 1);
        let expected: f64 = x.iter().map(|&x| f64::from(x).powi(2)).sum();
        assert!((squared_norm(&x) / expected - 1.0).abs() < 1e-7);
    }

    #[test]
    fn the_schedule_rises_and_falls() {
        let schedule = Schedule { warm_up: 2, n_updates: 6 };
        let factors: Vec<f32> = (0..8).map(|done| schedule.factor(done)).collect();
        assert_eq!(factors, [0.0, 0.5, 1.0, 0.75, 0.5, 0.25, 0.0, 0.0]);
    }

    /// Gradients that touch the given word rows and everything else.
    fn gradients(rows: &[u32]) -> Gradients {
        let mut gradients = Gradients::zeros(&odd_config());
        let weights = gradients.weights_mut(rows.iter().copied());
        for &row in rows {
            weights.embeddings.word[row as usize * 15..][..15].copy_from_slice(&normal(15, 5));
        }
        for layer in weights.layers {
            layer.up.weight.fill(0.5);
            layer.up.bias.fill(-0.5);
        }
        gradients
    }

    #[test]
    fn word_rows_without_gradient_are_updated_like_all_others() {
        let start = Parameters::zeros(&odd_config());
        let (mut sparse, mut dense) = (start.clone(), start);
        let n = sparse.values().len();
        for (a, b) in sparse.values_mut().iter_mut().zip(normal(n, 4)) {
            *a = b;
        }
        dense.values_mut().copy_from_slice(sparse.values());
        let (mut adam, mut dense_adam) = (AdamW::new(n), AdamW::new(n));
        let mut history = gradients(&[3, 4, 30]);
        for rows in [vec![3, 4, 30], vec![], vec![4, 7]] {
            history.clear();
            let now = gradients(&rows);
            let copy = history.weights_mut(rows.iter().copied());
            let flat = now.parameters().weights();
            copy.embeddings.word.copy_from_slice(flat.embeddings.word);
            for (copy, layer) in copy.layers.into_iter().zip(flat.layers) {
                copy.up.weight.copy_from_slice(layer.up.weight);
                copy.up.bias.copy_from_slice(layer.up.bias);
            }
            adam.update(encoder_parts(&mut sparse, &history, Frozen::Nothing, RATES), 0.5);

            let tensors = dense.tensors_mut().zip(now.parameters().tensors());
            let parts = tensors.map(|((tensor, values), (_, gradient))| {
                let weight_decay = if tensor.decays() { RATES.weight_decay } else { 0.0 };
                Part { values, gradient: Some(gradient), rates: Rates { weight_decay, ..RATES } }
            });
            dense_adam.update(parts.collect(), 0.5);
        }
        assert_eq!(sparse, dense);
        assert_eq!(adam, dense_adam);
    }

    #[test]
    fn the_gradient_norm_of_an_encoder_is_that_of_its_buffer() {
        let gradients = gradients(&[0, 9, 30]);
        let whole = squared_norm(gradients.parameters().values());
        assert!((squared_gradient_norm(&gradients) / whole - 1.0).abs() < 1e-6);
    }

    #[test]
    fn frozen_tensors_are_no_parts() {
        let gradients = gradients(&[1]);
        let mut parameters = Parameters::zeros(&odd_config());
        let mut n_values = |frozen: Frozen| -> usize {
            let parts = encoder_parts(&mut parameters, &gradients, frozen, RATES);
            let n = parts.iter().map(|part| part.values.len()).sum();
            assert_eq!(n, frozen.trained(&odd_config()).len());
            n
        };
        let layer = 4 * 15 * 15 + 2 * 15 * 21 + 9 * 15 + 21;
        assert_eq!(n_values(Frozen::Embeddings), 2 * layer);
        assert_eq!(n_values(Frozen::Layers(1)), layer);
        assert_eq!(n_values(Frozen::Layers(2)), 0);
        assert_eq!(n_values(Frozen::Nothing), 2 * layer + (31 + 19 + 2 + 2) * 15);
    }
}
