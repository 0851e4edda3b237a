//! Numbers and comparisons for tests of numeric code, here and above.

use crate::dropout::value;

/// `n` numbers of N(0, 1), by Box and Muller (1958).
#[must_use]
pub fn normal(n: usize, seed: u64) -> Vec<f32> {
    let unit = |counter: usize| (value(seed, counter as u64) >> 11) as f64 / (1_u64 << 53) as f64;
    let draw = |i: usize| {
        let radius = (-2.0 * (1.0 - unit(2 * i)).ln()).sqrt();
        radius * (std::f64::consts::TAU * unit(2 * i + 1)).cos()
    };
    (0..n).map(|i| draw(i) as f32).collect()
}

/// Compares number by number: relatively where the value is large, absolutely near zero.
///
/// # Panics
///
/// If an error is above `tolerance`.
pub fn assert_close(ours: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(ours.len(), expected.len(), "lengths differ");
    for (i, (a, b)) in ours.iter().zip(expected).enumerate() {
        let error = (a - b).abs() / b.abs().max(1.0);
        assert!(error <= tolerance, "at {i}: {a}, expected {b}, error {error:.1e}");
    }
}

/// The gradient of `loss` at `x` by central differences.
pub fn numeric_gradient(x: &[f32], mut loss: impl FnMut(&[f32]) -> f64) -> Vec<f32> {
    const STEP: f32 = 1e-2;
    let n = x.len();
    let mut x = x.to_vec();
    let slope = |i: usize| {
        let at = x[i];
        x[i] = at + STEP;
        let above = loss(&x);
        x[i] = at - STEP;
        let below = loss(&x);
        x[i] = at;
        ((above - below) / f64::from(2.0 * STEP)) as f32
    };
    (0..n).map(slope).collect()
}

/// `Σ x y` in double precision: a loss whose gradient by `x` is `y`.
#[must_use]
pub fn weighted(x: &[f32], y: &[f32]) -> f64 {
    x.iter().zip(y).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum()
}
