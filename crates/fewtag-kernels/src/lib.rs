//! The numeric kernels of the encoder, each with its backward pass beside it.
//!
//! They are a crate of their own so that a development build can optimise them and nothing else: unoptimised vector
//! code is hundreds of times slower.
//!
//! All but [`matmul`] are plain loops over slices. `vectorised` compiles them a second time for the vector unit
//! of the machine and chooses at run time; sums have a fixed order, so both versions give the
//! same bits. In [`matmul`] and where [`exp`] is used they differ in the last bits, because AVX2 machines multiply and
//! add in one rounding.

#![allow(
    clippy::inline_always,
    reason = "a function is compiled for the vector unit only if inlined"
)]

pub mod activation;
pub mod adamw;
pub mod attention;
pub mod dropout;
pub mod int8;
pub mod layer_norm;
pub mod matmul;
pub mod softmax;
pub mod testing;

use pulp::{Arch, Simd, WithSimd};

/// Runs a kernel with the widest vectors that this machine has.
///
/// `kernel` and what it calls must be `#[inline(always)]` to be compiled for them.
#[inline(always)]
pub(crate) fn vectorised<R>(kernel: impl FnOnce() -> R) -> R {
    Arch::new().dispatch(kernel)
}

/// [`vectorised`] for a kernel of multiply-adds.
#[inline(always)]
pub(crate) fn vectorised_fma<R>(kernel: impl FnOnce(Fma) -> R) -> R {
    struct Kernel<F>(F);
    impl<R, F: FnOnce(Fma) -> R> WithSimd for Kernel<F> {
        type Output = R;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> R {
            let fma = Fma { is_fused: S::F32_LANES > 1 };
            simd.vectorize(
                #[inline(always)]
                || (self.0)(fma),
            )
        }
    }
    Arch::new().dispatch(Kernel(kernel))
}

/// The multiply-add of the machine's vector unit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fma {
    /// Whether it rounds once. Without a vector unit that would take a call of the C library.
    is_fused: bool,
}

impl Fma {
    #[cfg(test)]
    pub(crate) const BOTH: [Self; 2] = [Self { is_fused: false }, Self { is_fused: true }];

    /// `a b + c`.
    #[inline(always)]
    pub(crate) fn mul_add(self, a: f32, b: f32, c: f32) -> f32 {
        if self.is_fused { a.mul_add(b, c) } else { a * b + c }
    }
}

/// Independent partial sums, enough to keep the adders of a vector unit busy.
const LANES: usize = 32;

/// `Σ x`, in `N` interleaved partial sums that are then added in pairs.
#[inline(always)]
pub(crate) fn sum<const N: usize>(x: &[f32]) -> f32 {
    let mut sums = [0.0; N];
    let (chunks, rest) = x.as_chunks::<N>();
    for chunk in chunks {
        add_plain(&mut sums, chunk);
    }
    // Filled up with zeros: an index that the compiler does not know would keep the sums in memory.
    add_plain(&mut sums, &start_of::<N>(rest));
    in_pairs(sums, plus)
}

/// `Σ x y`, in the order of [`sum`].
#[inline(always)]
pub(crate) fn dot(x: &[f32], y: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let (x_chunks, x_rest) = x.as_chunks::<LANES>();
    let (y_chunks, y_rest) = y.as_chunks::<LANES>();
    for (x, y) in x_chunks.iter().zip(y_chunks) {
        add_products(&mut sums, x, y);
    }
    add_products(&mut sums, &start_of(x_rest), &start_of(y_rest));
    in_pairs(sums, plus)
}

#[inline(always)]
fn add_products(sums: &mut [f32; LANES], x: &[f32; LANES], y: &[f32; LANES]) {
    for ((sum, x), y) in sums.iter_mut().zip(x).zip(y) {
        *sum += x * y;
    }
}

/// Joins the halves number by number until one is left.
#[inline(always)]
pub(crate) fn in_pairs<const N: usize>(mut x: [f32; N], join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut n = N;
    while n > 1 {
        n /= 2;
        for i in 0..n {
            x[i] = join(x[i], x[i + n]);
        }
    }
    x[0]
}

#[inline(always)]
fn plus(x: f32, y: f32) -> f32 {
    x + y
}

/// The first `N` numbers, filled up with zeros. Copies of a length that the compiler knows need no call.
#[inline(always)]
pub(crate) fn start_of<const N: usize>(x: &[f32]) -> [f32; N] {
    x.first_chunk().copied().unwrap_or_else(|| {
        let mut filled = [0.0; N];
        filled[..x.len()].copy_from_slice(x);
        filled
    })
}

/// `Σ x²`, in single precision and a fixed order.
pub fn sum_of_squares(x: &[f32]) -> f32 {
    vectorised(
        #[inline(always)]
        || dot(x, x),
    )
}

/// `x += y`, for as many numbers as the shorter one has.
pub fn add(x: &mut [f32], y: &[f32]) {
    vectorised(
        #[inline(always)]
        || add_plain(x, y),
    );
}

/// [`add`] within a kernel.
#[inline(always)]
pub(crate) fn add_plain(x: &mut [f32], y: &[f32]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += y;
    }
}

/// Adds all rows of `x [n, width]`, from column `first` on, to `sums`, row after row.
pub fn add_rows(sums: &mut [f32], x: &[f32], width: usize, first: usize) {
    vectorised(
        #[inline(always)]
        || x.chunks_exact(width).for_each(|row| add_plain(sums, &row[first..])),
    );
}

/// `row += bias` for every row of `x`.
pub fn add_bias(x: &mut [f32], bias: &[f32]) {
    vectorised(
        #[inline(always)]
        || x.chunks_exact_mut(bias.len()).for_each(|row| add_plain(row, bias)),
    );
}

/// `exp x` with a relative error below 2e-7, without branches. Below -87 the result is about 1e-38, not 0.
///
/// Method: `x = n ln 2 + r`, then Cephes' polynomial for `exp r`.
#[inline(always)]
pub(crate) fn exp(x: f32, fma: Fma) -> f32 {
    /// Adding this number leaves no bits after the point, so that the sum is rounded to a whole number.
    const ROUNDER: f32 = 12_582_912.0; // 1.5 · 2²³
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.3, 88.0);
    let shifted = fma.mul_add(x, std::f32::consts::LOG2_E, ROUNDER);
    let n = shifted - ROUNDER;
    let r = fma.mul_add(n, -LN_2_LOW, fma.mul_add(n, -LN_2_HIGH, x));
    let mut p = 1.987_569_1e-4;
    for c in [1.398_2e-3, 8.333_452e-3, 4.166_58e-2, 0.166_666_66, 0.5] {
        p = fma.mul_add(p, r, c);
    }
    let mantissa = fma.mul_add(p, r * r, r) + 1.0;
    // The low bits of `shifted` are n; moved to the exponent they multiply by 2ⁿ.
    f32::from_bits(mantissa.to_bits().wrapping_add(shifted.to_bits() << 23))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, normal, weighted};

    #[test]
    fn sums_equal_plain_sums_at_any_length() {
        for n in [0, 1, 7, 31, 32, 33, 100] {
            let (x, y) = (normal(n, 1), normal(n, 2));
            assert_close(&[sum::<LANES>(&x)], &[x.iter().sum()], 1e-5);
            assert_close(&[dot(&x, &y)], &[weighted(&x, &y) as f32], 1e-5);
        }
    }

    #[test]
    fn vectorised_sums_are_the_same_bits() {
        let (x, y) = (normal(1001, 1), normal(1001, 2));
        assert_eq!(vectorised(|| sum::<LANES>(&x)).to_bits(), sum::<LANES>(&x).to_bits());
        assert_eq!(vectorised(|| dot(&x, &y)).to_bits(), dot(&x, &y).to_bits());
    }

    #[test]
    fn exp_is_exact_to_2e_7() {
        for fma in Fma::BOTH {
            for i in -8_700..8_800 {
                let x = i as f32 / 100.0;
                let expected = f64::from(x).exp();
                let error = (f64::from(exp(x, fma)) - expected).abs() / expected;
                assert!(error < 2e-7, "exp {x}: error {error:.1e}");
            }
            assert!(exp(f32::NEG_INFINITY, fma) < 1e-37);
            assert!(exp(1e9, fma).is_finite());
        }
    }
}
