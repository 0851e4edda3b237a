//! The non-linearity of the feed-forward block, and its slope.
//!
//! ```text
//! gelu      y = x Φ(x)                                y' = Φ(x) + x φ(x)
//! gelu_new  y = x σ(2u), u = √(2/π) (x + 0.044715 x³)  y' = σ(2u) + x σ(2u) (1 − σ(2u)) 2u'
//! relu      y = max(x, 0)                             y' = 1 if x > 0 else 0
//! ```
//!
//! `σ(2u) = (1 + tanh u) / 2`.
//! The backward pass starts from the numbers before the activation, so a trace keeps only these.

use serde::{Deserialize, Serialize};

use crate::{Fma, exp, vectorised_fma};

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

/// The activation of `x`, within a kernel.
#[inline(always)]
pub(crate) fn apply(kind: Activation, x: &mut [f32], fma: Fma) {
    match kind {
        Activation::Gelu => each::<Gelu>(x, fma),
        Activation::GeluNew => each::<GeluNew>(x, fma),
        Activation::Relu => each::<Relu>(x, fma),
    }
}

#[inline(always)]
fn each<F: Function>(x: &mut [f32], fma: Fma) {
    for x in x {
        *x = F::value_and_slope(*x, fma).0;
    }
}

fn rows_forward<F: Function>(pre: &mut [f32], bias: &[f32], out: &mut [f32]) {
    let rows = pre.chunks_exact_mut(bias.len()).zip(out.chunks_exact_mut(bias.len()));
    vectorised_fma(
        #[inline(always)]
        |fma| {
            for (pre, out) in rows {
                for ((x, b), y) in pre.iter_mut().zip(bias).zip(out) {
                    *x += b;
                    *y = F::value_and_slope(*x, fma).0;
                }
            }
        },
    );
}

fn rows_backward<F: Function>(pre: &[f32], out: &mut [f32], d: &mut [f32]) {
    vectorised_fma(
        #[inline(always)]
        |fma| {
            for ((&x, y), d) in pre.iter().zip(out).zip(d) {
                let (value, slope) = F::value_and_slope(x, fma);
                *y = value;
                *d *= slope;
            }
        },
    );
}

/// A function of one number.
trait Function {
    fn value_and_slope(x: f32, fma: Fma) -> (f32, f32);
}

struct Gelu;
struct GeluNew;
struct Relu;

impl Function for Gelu {
    #[inline(always)]
    fn value_and_slope(x: f32, fma: Fma) -> (f32, f32) {
        const DENSITY_AT_0: f32 = 0.398_942_3; // 1 / √(2π)
        let phi = normal_distribution(x, fma);
        let bell = exp(-0.5 * x * x, fma);
        (x * phi, fma.mul_add(x * DENSITY_AT_0, bell, phi))
    }
}

/// `Φ(x) = ½ + x P(x²) / Q(x²)`, and 0 below -5.4. The polynomials minimise the largest error of `x Φ(x)`; they were
/// found by least squares in double precision, again and again with more weight where the error was large.
#[inline(always)]
fn normal_distribution(x: f32, fma: Fma) -> f32 {
    const END: f32 = 5.4;
    let y = x.clamp(-END, END);
    let z = y * y;
    let mut p = 2.277_697e-8;
    for c in [6.490_403e-6, 1.762_663_2e-4, 4.722_4e-3, 3.449_207_5e-2, 0.398_942_05] {
        p = fma.mul_add(p, z, c);
    }
    let mut q = 1.208_664_2e-6;
    for c in [7.651_039e-5, 1.925_491_8e-3, 2.902_790_2e-2, 0.253_123_1, 1.0] {
        q = fma.mul_add(q, z, c);
    }
    if x > -END { fma.mul_add(y, p / q, 0.5) } else { 0.0 }
}

impl Function for GeluNew {
    #[inline(always)]
    fn value_and_slope(x: f32, fma: Fma) -> (f32, f32) {
        const TWICE_ROOT: f32 = 1.595_769; // 2 √(2/π)
        let twice_u = TWICE_ROOT * (x + 0.044_715 * x * x * x);
        let slope_of_twice_u = TWICE_ROOT * (1.0 + 3.0 * 0.044_715 * x * x);
        let sigma = 1.0 / (1.0 + exp(-twice_u, fma));
        (x * sigma, sigma + x * sigma * (1.0 - sigma) * slope_of_twice_u)
    }
}

impl Function for Relu {
    #[inline(always)]
    fn value_and_slope(x: f32, _: Fma) -> (f32, f32) {
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

    /// `½ + φ(x) (x + x³/3 + x⁵/(3·5) + …)`, in double precision.
    fn series(x: f64) -> f64 {
        let mut term = x;
        let mut sum = x;
        for odd in (3..400).step_by(2) {
            term *= x * x / f64::from(odd);
            sum += term;
        }
        0.5 + sum * (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt()
    }

    #[test]
    fn gelu_is_exact_to_1e_6_and_near_zero_to_3e_7() {
        for fma in Fma::BOTH {
            for i in -8_000..=8_000 {
                let x = i as f32 / 1e3;
                let expected = f64::from(x) * series(f64::from(x));
                let error = (f64::from(Gelu::value_and_slope(x, fma).0) - expected).abs();
                let bound = if x.abs() < 2.0 { 3e-7 } else { 1e-6 * expected.abs().max(1.0) };
                assert!(error < bound, "gelu {x}: error {error:.1e}");
            }
            assert!(Gelu::value_and_slope(f32::NAN, fma).0.is_nan());
        }
        assert_close(&value(Activation::Gelu, &[-100.0, 100.0]), &[0.0, 100.0], 3e-7);
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
