//! `y = x Wᵀ + b` in whole numbers, and what is done with `y` while it is in the cache.
//!
//! A tile of up to 6 rows by 32 columns is summed by a [`Kernel`], group after group: in registers as whole numbers, then
//! as floats. Panels are the outer loop: one stays in the cache while all rows pass by.

use std::ops::Range;

use super::panels::{Panel, Panels};
use super::rows::{Rows, Scale};
use super::{GROUP_QUADS, PANEL, QUAD, TILE_ROWS, Unit};
use crate::Fma;
use crate::activation::{self, Activation};

/// What becomes of the product with its bias.
#[derive(Debug, Clone, Copy)]
pub enum Finish<'a> {
    /// It is the result.
    Plain,
    /// The activation is the result.
    Activation(Activation),
    /// This matrix `[m, n]` is added.
    Add(&'a [f32]),
}

/// A product to be computed.
#[derive(Debug, Clone, Copy)]
pub struct Product<'a> {
    /// `x [m, k]`.
    pub rows: &'a Rows,
    /// `Wᵀ [k, n]`.
    pub panels: &'a Panels,
    /// `b [n]`.
    pub bias: &'a [f32],
    /// What follows.
    pub finish: Finish<'a>,
}

impl Product<'_> {
    /// Computes `y [m, n]`.
    ///
    /// # Panics
    ///
    /// If sizes disagree.
    pub fn into(self, y: &mut [f32]) {
        self.columns_into(0..self.n_panels(), y, self.panels.n());
    }

    /// The number of panels: what can be shared between threads.
    #[must_use]
    pub fn n_panels(&self) -> usize {
        self.panels.n_panels()
    }

    /// The columns of some panels.
    #[must_use]
    pub fn columns(&self, panels: &Range<usize>) -> Range<usize> {
        let n = self.panels.n();
        (panels.start * PANEL).min(n)..(panels.end * PANEL).min(n)
    }

    /// Computes the columns of some panels: row `i` of them goes to `y[i · stride..]`.
    ///
    /// # Panics
    ///
    /// If sizes disagree, or if there are more columns than `stride`.
    pub fn columns_into(&self, panels: Range<usize>, y: &mut [f32], stride: usize) {
        let (m, n) = (self.rows.len(), self.panels.n());
        assert_eq!(self.rows.k(), self.panels.k(), "x and W disagree on k");
        assert_eq!(self.bias.len(), n, "one bias a column");
        if let Finish::Add(more) = self.finish {
            assert_eq!(more.len(), m * n, "what is added is [m, n]");
        }
        assert!(self.columns(&panels).len() <= stride, "columns fit a row");
        assert_eq!(y.len(), m * stride, "y has m rows");
        let unit = self.rows.unit();
        let run = Run { product: self, panels, y, stride };
        match unit {
            #[cfg(target_arch = "x86_64")]
            Unit::Avx512Vnni => super::x86::run_avx512_vnni(run),
            #[cfg(target_arch = "x86_64")]
            Unit::AvxVnni => super::x86::run_avx_vnni(run),
            #[cfg(target_arch = "x86_64")]
            Unit::Avx2 => super::x86::run_avx2(run),
            #[cfg(target_arch = "aarch64")]
            Unit::NeonDot => super::neon::run(run),
            _ => {
                let quads = run.narrow();
                run.with(Portable, quads);
            }
        }
    }
}

/// Sums of products of bytes for one tile.
pub(super) trait Kernel: Copy {
    /// What a quad of activations is.
    type Quad;
    /// Whether a multiply-add rounds once, in what follows the sums.
    const IS_FUSED: bool;

    /// Writes to `sums[r, j]`, for `r < R`, what the module's formula sums over the groups. Every group's sum of whole
    /// numbers begins with its zero times `minus_sums`, and is multiplied and added in one rounding.
    fn tile<const R: usize>(self, left: Left<Self::Quad>, panel: Panel, sums: &mut Sums);
}

/// The rows of a tile.
#[derive(Debug)]
pub(super) struct Left<'a, Q> {
    /// Those of all rows, as many for each as a panel has.
    pub(super) quads: &'a [Q],
    /// Those of all rows, one for each group.
    pub(super) scales: &'a [Scale],
}

impl<Q> Left<'_, Q> {
    /// Whether these are `R` rows that are as long as the columns of a panel: then row `r` has its quad `p` at
    /// `r n_quads + p` and the scale of its group `g` at `r n_groups + g`.
    #[inline(always)]
    pub(super) fn fits<const R: usize>(&self, panel: Panel) -> bool {
        let n_groups = panel.quads.len().div_ceil(GROUP_QUADS);
        panel.minus_sums.len() == n_groups
            && self.quads.len() == R * panel.quads.len()
            && self.scales.len() == R * n_groups
    }
}

/// The sums of a tile.
pub(super) type Sums = [[f32; PANEL]; TILE_ROWS];

/// The arguments of a kernel.
pub(super) struct Run<'a> {
    product: &'a Product<'a>,
    panels: Range<usize>,
    y: &'a mut [f32],
    stride: usize,
}

impl<'a> Run<'a> {
    /// The quads of activations as most units read them.
    pub(super) fn narrow(&self) -> &'a [[u8; QUAD]] {
        &self.product.rows.narrow
    }

    /// Widened to 16 bits.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn wide(&self) -> &'a [[u16; QUAD]] {
        &self.product.rows.wide
    }

    /// Runs a kernel on all tiles; `quads` are those of all rows.
    #[inline(always)]
    pub(super) fn with<K: Kernel>(mut self, kernel: K, quads: &[K::Quad]) {
        let Product { rows, panels: right, .. } = self.product;
        let m = rows.len();
        // Tiles as equal as can be: 8 rows are 4 and 4, not 6 and 2.
        let per_tile = m.div_ceil(m.div_ceil(TILE_ROWS).max(1)).max(1);
        let mut sums: Sums = [[0.0; PANEL]; TILE_ROWS];
        for p in self.panels.clone() {
            let panel = right.panel(p);
            let (n_quads, n_groups) = (panel.quads.len(), panel.minus_sums.len());
            for first in (0..m).step_by(per_tile) {
                let n_rows = per_tile.min(m - first);
                let left = Left {
                    quads: &quads[first * n_quads..][..n_rows * n_quads],
                    scales: &rows.scales[first * n_groups..][..n_rows * n_groups],
                };
                tile_of(kernel, n_rows, left, panel, &mut sums);
                self.finish::<K>(p, first, &mut sums[..n_rows]);
            }
        }
    }

    /// Makes numbers of the product of the sums of a tile and writes them.
    #[inline(always)]
    fn finish<K: Kernel>(&mut self, p: usize, first: usize, sums: &mut [[f32; PANEL]]) {
        let Product { panels: right, bias, finish, .. } = self.product;
        let (n, from) = (right.n(), p * PANEL);
        let n_cols = PANEL.min(n - from);
        let steps = right.panel(p).steps;
        let bias = crate::start_of::<PANEL>(&bias[from..]);
        for sums in sums.iter_mut() {
            for j in 0..PANEL {
                sums[j] = sums[j] * steps[j] + bias[j];
            }
        }
        if let Finish::Activation(kind) = finish {
            // All rows in one loop, which has enough to do while it waits for a division.
            activation::apply(*kind, sums.as_flattened_mut(), Fma { is_fused: K::IS_FUSED });
        }
        let at = (p - self.panels.start) * PANEL;
        let out = self.y[first * self.stride..].chunks_mut(self.stride);
        for (r, (sums, out)) in sums.iter().zip(out).enumerate() {
            let out = &mut out[at..][..n_cols];
            match finish {
                Finish::Add(more) => put_sums(out, sums, &more[(first + r) * n + from..]),
                _ => put(out, sums),
            }
        }
    }
}

/// Writes the first numbers of a row of a tile.
#[inline(always)]
fn put(out: &mut [f32], y: &[f32; PANEL]) {
    match out.first_chunk_mut() {
        Some(whole) => *whole = *y,
        None => out.copy_from_slice(&y[..out.len()]),
    }
}

/// Writes the sums with as many others.
#[inline(always)]
fn put_sums(out: &mut [f32], y: &[f32; PANEL], more: &[f32]) {
    // Of a length that the compiler knows, if it is that: else it would go number by number.
    if let (Some(out), Some(more)) = (out.first_chunk_mut::<PANEL>(), more.first_chunk::<PANEL>()) {
        for j in 0..PANEL {
            out[j] = y[j] + more[j];
        }
    } else {
        for ((out, y), more) in out.iter_mut().zip(y).zip(more) {
            *out = y + more;
        }
    }
}

/// One copy of the kernel for each number of rows: their sums stay in registers.
#[inline(always)]
fn tile_of<K: Kernel>(
    kernel: K,
    n_rows: usize,
    left: Left<K::Quad>,
    panel: Panel,
    sums: &mut Sums,
) {
    match n_rows {
        1 => kernel.tile::<1>(left, panel, sums),
        2 => kernel.tile::<2>(left, panel, sums),
        3 => kernel.tile::<3>(left, panel, sums),
        4 => kernel.tile::<4>(left, panel, sums),
        5 => kernel.tile::<5>(left, panel, sums),
        6 => kernel.tile::<6>(left, panel, sums),
        _ => unreachable!("a tile of {n_rows} rows"),
    }
}

/// The definition, in plain loops.
#[derive(Debug, Clone, Copy)]
struct Portable;

impl Kernel for Portable {
    type Quad = [u8; QUAD];
    const IS_FUSED: bool = false;

    #[inline(always)]
    fn tile<const R: usize>(self, left: Left<[u8; QUAD]>, panel: Panel, sums: &mut Sums) {
        let rows = left.quads.chunks_exact(panel.quads.len());
        let scales = left.scales.chunks_exact(panel.minus_sums.len());
        for ((row, scales), sums) in rows.zip(scales).zip(sums) {
            *sums = [0.0; PANEL];
            let of_groups = row.chunks(GROUP_QUADS).zip(panel.groups()).zip(scales);
            for ((row, (quads, minus_sums)), scale) in of_groups {
                let mut whole = minus_sums.map(|minus_sum| scale.zero * minus_sum);
                for (u, columns) in row.iter().zip(quads) {
                    for (whole, q) in whole.iter_mut().zip(columns) {
                        for (&u, &q) in u.iter().zip(q) {
                            *whole += i32::from(u) * i32::from(q);
                        }
                    }
                }
                for (sum, whole) in sums.iter_mut().zip(whole) {
                    *sum = (whole as f32).mul_add(scale.step, *sum);
                }
            }
        }
    }
}
