//! Rows of activations in bytes: 64 neighbours have the scale and the zero that fit them best.
//!
//! ```text
//! top = max(0, max x),  bottom = min(0, min x),  s = (top − bottom) / 255
//! z = round(−bottom / s),  u = round(x / s) + z, kept within 0…255
//! ```
//!
//! Zero is exact, so zeros stay zeros. A group with a number that is not finite has the scale NaN, and so
//! everything computed from its row is NaN: a fault shows and is not rounded away.

use super::{GROUP, QUAD, Unit};
use crate::{start_of, vectorised};

/// The left factor `x [m, k]` in bytes.
#[derive(Debug)]
pub struct Rows {
    unit: Unit,
    m: usize,
    k: usize,
    /// `u [m, k]`, every row filled up to whole quads, unless the unit wants them wide.
    pub(super) narrow: Vec<[u8; QUAD]>,
    /// The same in 16 bits.
    pub(super) wide: Vec<[u16; QUAD]>,
    /// `s` and `z [m, n_groups]`.
    pub(super) scales: Vec<Scale>,
}

/// How the bytes of a group are read: `x ≈ step (u − zero)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    pub(super) step: f32,
    pub(super) zero: i32,
}

impl Rows {
    /// Without rows, for products by `unit`.
    #[must_use]
    pub fn new(unit: Unit) -> Self {
        let (narrow, wide, scales) = (Vec::new(), Vec::new(), Vec::new());
        Self { unit, m: 0, k: 0, narrow, wide, scales }
    }

    /// The unit that multiplies them.
    #[must_use]
    pub fn unit(&self) -> Unit {
        self.unit
    }

    /// The number of columns.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// The number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.m
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.m == 0
    }

    /// Replaces all rows by those of `x [m, k]`.
    ///
    /// # Panics
    ///
    /// If `k` is 0.
    pub fn quantise(&mut self, x: &[f32], k: usize) {
        assert!(k > 0, "rows without numbers");
        let (m, n_quads) = (x.len() / k, k.div_ceil(QUAD));
        (self.m, self.k) = (m, k);
        self.scales.resize(m * k.div_ceil(GROUP), Scale { step: 0.0, zero: 0 });
        let Self { narrow, wide, scales, .. } = self;
        if self.unit.is_wide() {
            wide.resize(m * n_quads, [0; QUAD]);
            quantise_rows(x.chunks_exact(k), wide.chunks_exact_mut(n_quads), scales);
        } else {
            narrow.resize(m * n_quads, [0; QUAD]);
            quantise_rows(x.chunks_exact(k), narrow.chunks_exact_mut(n_quads), scales);
        }
    }
}

fn quantise_rows<'x, 'o, T: Narrow + 'o>(
    x: impl Iterator<Item = &'x [f32]>,
    out: impl Iterator<Item = &'o mut [[T; QUAD]]>,
    scales: &mut [Scale],
) {
    vectorised(
        #[inline(always)]
        || {
            let mut scales = scales.iter_mut();
            for (x, out) in x.zip(out) {
                let groups = x.chunks(GROUP).zip(out.as_flattened_mut().chunks_mut(GROUP));
                for ((x, out), scale) in groups.zip(&mut scales) {
                    let (found, bytes) = quantised(x);
                    *scale = found;
                    match out.first_chunk_mut() {
                        Some(whole) => *whole = bytes,
                        None => out.copy_from_slice(&bytes[..out.len()]),
                    }
                }
            }
        },
    );
}

/// A whole number of 0…255 in 8 or 16 bits.
pub(super) trait Narrow: Copy {
    fn narrow(x: i32) -> Self;
}

impl Narrow for u8 {
    #[inline(always)]
    fn narrow(x: i32) -> Self {
        x.cast_unsigned() as Self
    }
}

impl Narrow for u16 {
    #[inline(always)]
    fn narrow(x: i32) -> Self {
        x.cast_unsigned() as Self
    }
}

/// Groups whose numbers all lie closer together than this are zeros: the inverse of their step would overflow.
const SMALLEST_RANGE: f32 = 1e-30;

/// The bytes of a group, filled up with those of zeros, and how to read them.
#[inline(always)]
pub(super) fn quantised<T: Narrow>(x: &[f32]) -> (Scale, [T; GROUP]) {
    /// Adding this number leaves no bits after the point, so that the sum is rounded to a whole number, ties to even.
    const ROUNDER: f32 = 12_582_912.0; // 1.5 · 2²³
    let rounded = |x: f32| (x + ROUNDER).to_bits().cast_signed() - ROUNDER.to_bits().cast_signed();

    let (bottom, top) = extremes(x);
    let range = top - bottom;
    let (per_unit, step) = if !range.is_finite() {
        (0.0, f32::NAN)
    } else if range < SMALLEST_RANGE {
        (0.0, 0.0)
    } else {
        (255.0 / range, range / 255.0)
    };
    if per_unit == 0.0 {
        return (Scale { step, zero: 0 }, [T::narrow(0); GROUP]);
    }
    let zero = rounded(-bottom * per_unit);
    let mut bytes = [T::narrow(0); GROUP];
    for (u, x) in bytes.iter_mut().zip(start_of::<GROUP>(x)) {
        *u = T::narrow((rounded(x * per_unit) + zero).clamp(0, 255));
    }
    (Scale { step, zero }, bytes)
}

/// The smallest and the largest number, or 0 if that is beyond. Not finite if one of them is not.
///
/// Compared as bit patterns: as signed numbers these order positive floats, as unsigned ones negative floats by
/// their size, and in both NaN is beyond infinity. A comparison of floats would lose it.
///
/// Over a slice and not an array: a loop of known length would be unrolled into one comparison after the other before it is
/// made one of vectors.
#[inline(always)]
fn extremes(x: &[f32]) -> (f32, f32) {
    let top = x.iter().fold(0, |top, x| x.to_bits().cast_signed().max(top));
    let bottom = x.iter().fold(0, |bottom, x| x.to_bits().max(bottom));
    let bottom = if bottom >> 31 == 1 { f32::from_bits(bottom) } else { 0.0 };
    (bottom, f32::from_bits(top.cast_unsigned()))
}
