//! The update of `AdamW`, number by number; see `train::optimizer` of the library for the whole.

use crate::vectorised;

/// What an update has in common for all its numbers.
#[derive(Debug, Clone, Copy)]
pub struct Update {
    /// β₁ and β₂.
    pub betas: [f32; 2],
    /// ε.
    pub epsilon: f32,
    /// What the gradient is multiplied with.
    pub gradient_scale: f32,
    /// What is left of a weight after its decay, `1 − η · decay`.
    pub keep: f32,
    /// `η / (1 − β₁ᵗ)`.
    pub step: f32,
    /// `√(1 − β₂ᵗ)`.
    pub root: f32,
}

impl Update {
    /// Updates weights `w` and their moments `m` and `v` by the gradient `g`, all of one length.
    pub fn run(&self, w: &mut [f32], g: &[f32], m: &mut [f32], v: &mut [f32]) {
        let Self { betas: [beta_1, beta_2], epsilon, gradient_scale, keep, step, root } = *self;
        vectorised(
            #[inline(always)]
            || {
                for ((w, g), (m, v)) in w.iter_mut().zip(g).zip(m.iter_mut().zip(v)) {
                    let g = g * gradient_scale;
                    *m = beta_1 * *m + (1.0 - beta_1) * g;
                    *v = beta_2 * *v + (1.0 - beta_2) * (g * g);
                    *w = *w * keep - step * (*m / (v.sqrt() / root + epsilon));
                }
            },
        );
    }

    /// The update of weights whose gradient and moments are zero: nothing is left of it but the decay.
    pub fn decay(&self, w: &mut [f32]) {
        for w in w {
            *w *= self.keep;
        }
    }
}
