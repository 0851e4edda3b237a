//! Shares that sum to 1: those of attention, and those of words that speak for a tag.

use crate::{dot, exp, in_pairs, sum, vectorised, vectorised_fma};

/// Numbers of a row of probabilities that go together: it is short, and a longer run would leave much of it over.
const SHORT: usize = 8;

/// Turns every row of scores into probabilities: the softmax of `scale · scores`.
pub(crate) fn softmax(scores: &mut [f32], l: usize, scale: f32) {
    vectorised_fma(
        #[inline(always)]
        |fma| {
            for row in scores.chunks_exact_mut(l) {
                let max = maximum(row);
                for x in row {
                    *x = (*x - max) * scale;
                }
            }
            // All rows in one loop: the rest of a short row would be slow.
            for x in scores.iter_mut() {
                *x = exp(*x, fma);
            }
            for row in scores.chunks_exact_mut(l) {
                let norm = 1.0 / sum::<SHORT>(row);
                for x in row {
                    *x *= norm;
                }
            }
        },
    );
}

/// Writes `exp(factor · x + shift)`, divided by their sum, to `shares`.
///
/// # Panics
///
/// If there are not as many shifts and shares as numbers.
pub fn weighed_softmax(x: &[f32], factor: f32, shifts: &[f32], shares: &mut [f32]) {
    assert!(x.len() == shifts.len() && x.len() == shares.len(), "one shift and one share a number");
    vectorised_fma(
        #[inline(always)]
        |fma| {
            for ((share, x), shift) in shares.iter_mut().zip(x).zip(shifts) {
                *share = factor * x + shift;
            }
            let max = maximum(shares);
            for share in shares.iter_mut() {
                *share = exp(*share - max, fma);
            }
            let norm = 1.0 / sum::<SHORT>(shares);
            for share in shares {
                *share *= norm;
            }
        },
    );
}

/// The largest number of a row; the last ones are perhaps looked at twice.
#[inline(always)]
fn maximum(row: &[f32]) -> f32 {
    let Some(&last) = row.last_chunk::<SHORT>() else {
        return row.iter().copied().fold(f32::NEG_INFINITY, larger);
    };
    let mut max = last;
    for chunk in row.as_chunks::<SHORT>().0 {
        for (max, &x) in max.iter_mut().zip(chunk) {
            *max = larger(*max, x);
        }
    }
    in_pairs(max, larger)
}

#[inline(always)]
fn larger(x: f32, y: f32) -> f32 {
    if x > y { x } else { y }
}

/// Turns gradients by probabilities `p` into gradients by the scores before scaling.
pub(crate) fn softmax_backward(p: &[f32], d: &mut [f32], l: usize, scale: f32) {
    vectorised(
        #[inline(always)]
        || {
            for (p, d) in p.chunks_exact(l).zip(d.chunks_exact_mut(l)) {
                let mean = dot(p, d);
                for (p, d) in p.iter().zip(d) {
                    *d = (*d - mean) * p * scale;
                }
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, normal};

    #[test]
    fn weighed_shares_are_those_of_the_formula_at_any_length() {
        for n in [1, 2, 7, 8, 9, 100] {
            let (x, shifts) = (normal(n, 1), normal(n, 2));
            let mut shares = vec![f32::NAN; n];
            weighed_softmax(&x, 30.0, &shifts, &mut shares);
            let weight =
                |(x, shift): (&f32, &f32)| (30.0 * f64::from(*x) + f64::from(*shift)).exp();
            let weights: Vec<f64> = x.iter().zip(&shifts).map(weight).collect();
            let sum: f64 = weights.iter().sum();
            let expected: Vec<f32> = weights.iter().map(|w| (w / sum) as f32).collect();
            assert_close(&shares, &expected, 1e-5);
        }
    }

    #[test]
    fn large_numbers_do_not_overflow() {
        let mut shares = [0.0; 3];
        weighed_softmax(&[1e4, 1e4, -1e4], 100.0, &[0.0; 3], &mut shares);
        assert_eq!(shares[..2], [0.5; 2]);
        assert!(shares[2] < 1e-30);
    }
}
