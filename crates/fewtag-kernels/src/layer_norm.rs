//! Layer normalisation of a row `z [h]`:
//!
//! ```text
//! x̂ = (z − mean z) r,  r = 1 / √(var z + ε),  y = γ x̂ + β
//! t = γ dy,  dz = r (t − mean t − x̂ mean(t x̂)),  dγ += dy x̂,  dβ += dy
//! ```
//!
//! `x̂ [n, h]` and `r [n]` are kept for the way back; `docs/reference/engine.md` derives it.

use crate::{LANES, dot, sum, vectorised};

/// Scale and shift of a layer normalisation, each `[h]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Norm<T> {
    /// The scale γ.
    pub weight: T,
    /// The shift β.
    pub bias: T,
}

/// What the backward pass needs of a normalisation of `n` rows.
#[derive(Debug, Default)]
pub struct Normalised {
    /// `[n, h]`.
    x_hat: Vec<f32>,
    /// `[n]`.
    r: Vec<f32>,
}

impl Normalised {
    /// Normalises the rows `z [n, h]` into `y [n, h]`.
    pub fn forward(&mut self, z: &[f32], norm: &Norm<&[f32]>, epsilon: f32, y: &mut [f32]) {
        let h = norm.weight.len();
        self.x_hat.resize(z.len(), 0.0);
        self.r.resize(z.len() / h, 0.0);
        let rows = z.chunks_exact(h).zip(self.x_hat.chunks_exact_mut(h)).zip(&mut self.r);
        vectorised(
            #[inline(always)]
            || {
                for ((z, x_hat), r) in rows {
                    *r = normalise(z, epsilon, x_hat);
                }
            },
        );
        self.output(norm, y);
    }

    /// `y = γ x̂ + β`, `[n, h]`, once more.
    pub fn output(&self, norm: &Norm<&[f32]>, y: &mut [f32]) {
        let h = norm.weight.len();
        let rows = self.x_hat.chunks_exact(h).zip(y.chunks_exact_mut(h));
        vectorised(
            #[inline(always)]
            || {
                for (x_hat, y) in rows {
                    let columns = x_hat.iter().zip(norm.weight).zip(norm.bias);
                    for (y, ((x, gamma), beta)) in y.iter_mut().zip(columns) {
                        *y = x * gamma + beta;
                    }
                }
            },
        );
    }

    /// Turns the gradient `dy [n, h]` into `dz [n, h]`.
    pub fn backward(&self, dy: &[f32], gamma: &[f32], dz: &mut [f32]) {
        let h = gamma.len();
        let rows = dy.chunks_exact(h).zip(self.x_hat.chunks_exact(h)).zip(&self.r);
        vectorised(
            #[inline(always)]
            || {
                for (((dy, x_hat), &r), dz) in rows.zip(dz.chunks_exact_mut(h)) {
                    for ((t, dy), gamma) in dz.iter_mut().zip(dy).zip(gamma) {
                        *t = dy * gamma;
                    }
                    let mean = sum::<LANES>(dz) / h as f32;
                    let slope = dot(dz, x_hat) / h as f32;
                    for (t, x) in dz.iter_mut().zip(x_hat) {
                        *t = (*t - mean - x * slope) * r;
                    }
                }
            },
        );
    }

    /// Adds to `d` what `dy [n, h]` makes of dγ and dβ, row after row.
    pub fn accumulate(&self, dy: &[f32], d: &mut Norm<&mut [f32]>) {
        let h = d.weight.len();
        let rows = dy.chunks_exact(h).zip(self.x_hat.chunks_exact(h));
        vectorised(
            #[inline(always)]
            || {
                for (dy, x_hat) in rows {
                    let sums = d.weight.iter_mut().zip(d.bias.iter_mut());
                    for ((gamma, beta), (dy, x)) in sums.zip(dy.iter().zip(x_hat)) {
                        *gamma += dy * x;
                        *beta += dy;
                    }
                }
            },
        );
    }
}

/// Normalises the rows `z [n, h]` in place, without a way back.
pub fn normalise_rows(z: &mut [f32], norm: &Norm<&[f32]>, epsilon: f32) {
    let h = norm.weight.len();
    vectorised(
        #[inline(always)]
        || {
            for z in z.chunks_exact_mut(h) {
                let mean = sum::<LANES>(z) / h as f32;
                for z in z.iter_mut() {
                    *z -= mean;
                }
                let r = 1.0 / (dot(z, z) / h as f32 + epsilon).sqrt();
                for ((z, gamma), beta) in z.iter_mut().zip(norm.weight).zip(norm.bias) {
                    *z = *z * r * gamma + beta;
                }
            }
        },
    );
}

/// Writes `x̂` of one row and returns `r`.
#[inline(always)]
fn normalise(z: &[f32], epsilon: f32, x_hat: &mut [f32]) -> f32 {
    let h = z.len() as f32;
    let mean = sum::<LANES>(z) / h;
    for (x, z) in x_hat.iter_mut().zip(z) {
        *x = z - mean;
    }
    // From the centred values: the difference of two large sums would lose the digits.
    let r = 1.0 / (dot(x_hat, x_hat) / h + epsilon).sqrt();
    for x in x_hat {
        *x *= r;
    }
    r
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, normal, numeric_gradient, weighted};

    const EPSILON: f32 = 1e-5;

    /// The formula of the module comment in double precision.
    fn plain(z: &[f32], gamma: &[f32], beta: &[f32]) -> Vec<f32> {
        let h = gamma.len();
        z.chunks_exact(h)
            .flat_map(|z| {
                let z: Vec<f64> = z.iter().copied().map(f64::from).collect();
                let mean = z.iter().sum::<f64>() / h as f64;
                let var = z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / h as f64;
                let r = 1.0 / (var + f64::from(EPSILON)).sqrt();
                (0..h).map(move |j| {
                    ((z[j] - mean) * r * f64::from(gamma[j]) + f64::from(beta[j])) as f32
                })
            })
            .collect()
    }

    fn run(z: &[f32], gamma: &[f32], beta: &[f32]) -> (Normalised, Vec<f32>) {
        let (mut normalised, mut y) = (Normalised::default(), vec![0.0; z.len()]);
        normalised.forward(z, &Norm { weight: gamma, bias: beta }, EPSILON, &mut y);
        (normalised, y)
    }

    #[test]
    fn rows_are_normalised_at_any_width() {
        for h in [1, 5, 8, 15, 33, 100] {
            let (z, gamma, beta) = (normal(3 * h, 1), normal(h, 2), normal(h, 3));
            assert_close(&run(&z, &gamma, &beta).1, &plain(&z, &gamma, &beta), 1e-5);
        }
    }

    #[test]
    fn rows_in_place_are_the_same_bits() {
        for h in [1, 5, 33, 100] {
            let (mut z, gamma, beta) = (normal(3 * h, 1), normal(h, 2), normal(h, 3));
            let (_, expected) = run(&z, &gamma, &beta);
            normalise_rows(&mut z, &Norm { weight: &gamma, bias: &beta }, EPSILON);
            assert_eq!(z, expected);
        }
    }

    #[test]
    fn gradients_equal_finite_differences() {
        for h in [2, 5, 15, 33] {
            let (z, gamma, beta, dy) =
                (normal(2 * h, 1), normal(h, 2), normal(h, 3), normal(2 * h, 4));
            let loss = |z: &[f32], g: &[f32], b: &[f32]| weighted(&run(z, g, b).1, &dy);
            let (normalised, _) = run(&z, &gamma, &beta);

            let mut dz = vec![0.0; z.len()];
            normalised.backward(&dy, &gamma, &mut dz);
            // Two numbers a row: x̂ is ±1 wherever z goes, and differences see the rounding only.
            let tolerance = if h == 2 { 2e-2 } else { 5e-3 };
            assert_close(&dz, &numeric_gradient(&z, |z| loss(z, &gamma, &beta)), tolerance);

            let (mut d_gamma, mut d_beta) = (vec![0.0; h], vec![0.0; h]);
            let mut d = Norm { weight: d_gamma.as_mut_slice(), bias: d_beta.as_mut_slice() };
            normalised.accumulate(&dy, &mut d);
            assert_close(&d_gamma, &numeric_gradient(&gamma, |g| loss(&z, g, &beta)), 1e-3);
            assert_close(&d_beta, &numeric_gradient(&beta, |b| loss(&z, &gamma, b)), 1e-3);
        }
    }
}
