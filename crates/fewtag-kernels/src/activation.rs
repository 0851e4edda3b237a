//! The non-linearity of the feed-forward block, and its slope.
//!
//! ```text
//! gelu      y = x Φ(x)                                y' = Φ(x) + x φ(x)
//! gelu_new  y = x σ(2u), u = √(2/π) (x + 0.044715 x³)  y' = σ(2u) + x σ(2u) (1 − σ(2u)) 2u'
//! relu      y = max(x, 0)                             y' = 1 if x > 0 else 0
//! ```
//!
//! `σ(2u) = (1 + tanh u) / 2`. Φ is computed to 1e-7 by Abramowitz and Stegun (1964), 7.1.26.
//! The backward pass starts from the numbers before the activation, so a trace keeps only these.

use serde::{Deserialize, Serialize};

use crate::{exp, vectorised};

/// The non-linearity of the feed-forward block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// `x · Φ(x)` with the exact normal distribution function.
    #[default]
    Gelu,
    /// The tanh approximation of [`Activation::Gelu`].
    #[serde(alias = "gelu_pytorch_tanh")]
    GeluNew,
    /// `max(x, 0)`.
    Relu,
}

/// Adds `bias [f]` to the rows of `pre [n, f]` and writes the activation of the sums to `out [n, f]`.
pub fn forward(kind: Activation, pre: &mut [f32], bias: &[f32], out: &mut [f32]) {
    let kernel = match kind {
        Activation::Gelu => rows_forward::<Gelu>,
        Activation::GeluNew => rows_forward::<GeluNew>,
        Activation::Relu => rows_forward::<Relu>,
    };
    kernel(pre, bias, out);
}

/// From `pre [n, f]` (with bias) writes the activation to `out` and turns the gradient `d` by the activation into
/// the gradient by `pre`.
pub fn backward(kind: Activation, pre: &[f32], out: &mut [f32], d: &mut [f32]) {
    let kernel = match kind {
        Activation::Gelu => rows_backward::<Gelu>,
        Activation::GeluNew => rows_backward::<GeluNew>,
        Activation::Relu => rows_backward::<Relu>,
    };
    kernel(pre, out, d);
}

fn rows_forward<F: Function>(pre: &mut [f32], bias: &[f32], out: &mut [f32]) {
    let rows = pre.chunks_exact_mut(bias.len()).zip(out.chunks_exact_mut(bias.len()));
    vectorised(
        #[inline(always)]
        || {
            for (pre, out) in rows {
                for ((x, b), y) in pre.iter_mut().zip(bias).zip(out) {
                    *x += b;
                    *y = F::value_and_slope(*x).0;
                }
            }
        },
    );
}

fn rows_backward<F: Function>(pre: &[f32], out: &mut [f32], d: &mut [f32]) {
    vectorised(
        #[inline(always)]
        || {
            for ((&x, y), d) in pre.iter().zip(out).zip(d) {
                let (value, slope) = F::value_and_slope(x);
                *y = value;
                *d *= slope;
            }
        },
    );
}

/// A function of one number.
trait Function {
    fn value_and_slope(x: f32) -> (f32, f32);
}

struct Gelu;
struct GeluNew;
struct Relu;

impl Function for Gelu {
    #[inline(always)]
    fn value_and_slope(x: f32) -> (f32, f32) {
        const DENSITY_AT_0: f32 = 0.398_942_3; // 1 / √(2π)
        let bell = exp(-0.5 * x * x);
        // erfc(|x|/√2) / 2 = Φ(-|x|).
        let t = 1.0 / (1.0 + 0.327_591_1 * std::f32::consts::FRAC_1_SQRT_2 * x.abs());
        let mut p = 1.061_405_4;
        for c in [-1.453_152_1, 1.421_413_8, -0.284_496_72, 0.254_829_6] {
            p = p * t + c;
        }
        let tail = 0.5 * p * t * bell;
        let phi = if x < 0.0 { tail } else { 1.0 - tail };
        (x * phi, phi + x * DENSITY_AT_0 * bell)
    }
}

impl Function for GeluNew {
    #[inline(always)]
    fn value_and_slope(x: f32) -> (f32, f32) {
        const TWICE_ROOT: f32 = 1.595_769; // 2 √(2/π)
        let twice_u = TWICE_ROOT * (x + 0.044_715 * x * x * x);
        let slope_of_twice_u = TWICE_ROOT * (1.0 + 3.0 * 0.044_715 * x * x);
        let sigma = 1.0 / (1.0 + exp(-twice_u));
        (x * sigma, sigma + x * sigma * (1.0 - sigma) * slope_of_twice_u)
    }
}

impl Function for Relu {
    #[inline(always)]
    fn value_and_slope(x: f32) -> (f32, f32) {
        if x > 0.0 { (x, 1.0) } else { (0.0, 0.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, normal, numeric_gradient, weighted};

    const KINDS: [Activation; 3] = [Activation::Gelu, Activation::GeluNew, Activation::Relu];

    fn value(kind: Activation, x: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; x.len()];
        forward(kind, &mut x.to_vec(), &vec![0.0; x.len()], &mut out);
        out
    }

    #[test]
    fn values_are_those_of_pytorch() {
        // torch 2.15.0, in double precision: torch.nn.functional.gelu(x), gelu(x, approximate="tanh").
        let x = [-6.0, -3.0, -1.0, -0.1, 0.0, 0.5, 1.0, 2.0, 10.0];
        let gelu = [
            -5.919_526e-9,
            -4.049_694e-3,
            -0.158_655_25,
            -0.046_017_22,
            0.0,
            0.345_731_22,
            0.841_344_8,
            1.954_499_7,
            10.0,
        ];
        let tanh = [
            -8.439_649e-11,
            -3.637_392e-3,
            -0.158_808,
            -0.046_017_25,
            0.0,
            0.345_714,
            0.841_192,
            1.954_597_7,
            10.0,
        ];
        assert_close(&value(Activation::Gelu, &x), &gelu, 3e-7);
        assert_close(&value(Activation::GeluNew, &x), &tanh, 3e-7);
        let relu: Vec<f32> = x.iter().map(|x| x.max(0.0)).collect();
        assert_eq!(value(Activation::Relu, &x), relu);
    }

    #[test]
    fn slopes_equal_finite_differences() {
        for kind in KINDS {
            let (x, weights) = (normal(37, 1), normal(37, 2));
            let expected = numeric_gradient(&x, |x| weighted(&value(kind, x), &weights));
            let (mut out, mut d) = (vec![0.0; 37], weights.clone());
            backward(kind, &x, &mut out, &mut d);
            assert_close(&d, &expected, 2e-3);
            assert_eq!(out, value(kind, &x));
        }
    }

    #[test]
    fn the_bias_is_added_to_every_row() {
        let (mut pre, bias) = (normal(6, 1), [1.0, -1.0, 0.5]);
        let expected: Vec<f32> = pre.iter().zip(bias.iter().cycle()).map(|(x, b)| x + b).collect();
        let mut out = vec![0.0; 6];
        forward(Activation::Relu, &mut pre, &bias, &mut out);
        assert_eq!(pre, expected);
        assert_eq!(out, value(Activation::Relu, &expected));
    }
}
