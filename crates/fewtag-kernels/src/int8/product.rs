//! `y = x Wᵀ + b` in whole numbers, and what is done with `y` while it is in the cache.
//!
//! A tile of up to 12 rows by 32 columns is summed in registers by a [`Kernel`], put aside as whole numbers, and made
//! floats of. Panels are the outer loop: one stays in the first cache while all rows pass by.

use std::ops::Range;

use super::panels::{Column, Panels};
use super::rows::{Rows, Scale};
use super::{PANEL, QUAD, TILE_ROWS, Unit};
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
        self.columns_into(0..self.panels.columns.len(), y);
    }

    /// The number of panels: what can be shared between threads.
    #[must_use]
    pub fn n_panels(&self) -> usize {
        self.panels.columns.len()
    }

    /// The columns of some panels.
    #[must_use]
    pub fn columns(&self, panels: &Range<usize>) -> Range<usize> {
        let n = self.panels.n();
        (panels.start * PANEL).min(n)..(panels.end * PANEL).min(n)
    }

    /// Computes the columns of some panels, `y [m, n_columns]`.
    ///
    /// # Panics
    ///
    /// If sizes disagree.
    pub fn columns_into(&self, panels: Range<usize>, y: &mut [f32]) {
        let (m, n) = (self.rows.len(), self.panels.n());
        assert_eq!(self.rows.k(), self.panels.k(), "x and W disagree on k");
        assert_eq!(self.bias.len(), n, "one bias a column");
        if let Finish::Add(more) = self.finish {
            assert_eq!(more.len(), m * n, "what is added is [m, n]");
        }
        let stride = self.columns(&panels).len();
        assert_eq!(y.len(), m * stride, "y is [m, n]");
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
    /// The most rows of a tile.
    const ROWS: usize;
    /// Whether a multiply-add rounds once, in what follows the sums.
    const IS_FUSED: bool;

    /// Writes to `sums[r, j]` the sum over all quads `p` of `rows[r · stride + p]` times `panel[p]`'s column `j`, for
    /// `r < R`. There are `panel.len()` quads in each of the `R` rows.
    fn tile<const R: usize>(
        self,
        rows: &[Self::Quad],
        panel: &[[[i8; QUAD]; PANEL]],
        sums: &mut Sums,
    );
}

/// The sums of a tile.
pub(super) type Sums = [[i32; PANEL]; TILE_ROWS];

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
        let (m, n_quads) = (rows.len(), right.n_quads());
        assert_eq!(quads.len(), m * n_quads, "rows of whole quads");
        // Tiles as equal as can be: 14 rows are 7 and 7, not 12 and 2.
        let per_tile = m.div_ceil(m.div_ceil(K::ROWS).max(1)).max(1);
        let mut sums: Sums = [[0; PANEL]; TILE_ROWS];
        for p in self.panels.clone() {
            let panel = &right.quads[p * n_quads..][..n_quads];
            for first in (0..m).step_by(per_tile) {
                let n_rows = per_tile.min(m - first);
                let rows = &quads[first * n_quads..][..n_rows * n_quads];
                tile_of(kernel, n_rows, rows, panel, &mut sums);
                self.finish::<K>(p, first, &sums[..n_rows]);
            }
        }
    }

    /// Makes floats of the sums of a tile and writes them.
    #[inline(always)]
    fn finish<K: Kernel>(&mut self, p: usize, first: usize, sums: &[[i32; PANEL]]) {
        let Product { rows, panels: right, bias, finish } = self.product;
        let bias = &bias[p * PANEL..];
        let n_cols = PANEL.min(bias.len());
        let at = (p - self.panels.start) * PANEL;
        let bias = crate::start_of::<PANEL>(bias);
        let tile = Tile { column: &right.columns[p], bias: &bias };
        let out = self.y[first * self.stride..].chunks_mut(self.stride);
        let of_rows = rows.scales[first..].iter().zip(sums).zip(out).enumerate();
        for (r, ((&scale, sums), out)) in of_rows {
            let mut y = tile.floats(scale, sums);
            match finish {
                Finish::Plain => {}
                Finish::Activation(kind) => {
                    activation::apply(*kind, &mut y, Fma { is_fused: K::IS_FUSED });
                }
                Finish::Add(more) => {
                    let row = &more[(first + r) * right.n() + p * PANEL..];
                    let more = crate::start_of::<PANEL>(&row[..n_cols]);
                    crate::add_plain(&mut y, &more);
                }
            }
            match out[at..].first_chunk_mut() {
                Some(whole) if n_cols == PANEL => *whole = y,
                _ => out[at..at + n_cols].copy_from_slice(&y[..n_cols]),
            }
        }
    }
}

/// What is common to the rows of a tile.
struct Tile<'a> {
    column: &'a Column,
    bias: &'a [f32; PANEL],
}

impl Tile<'_> {
    #[inline(always)]
    fn floats(&self, scale: Scale, sums: &[i32; PANEL]) -> [f32; PANEL] {
        let mut y = [0.0; PANEL];
        for j in 0..PANEL {
            let whole = sums[j] - scale.zero * self.column.sums[j];
            y[j] = whole as f32 * (scale.step * self.column.steps[j]) + self.bias[j];
        }
        y
    }
}

/// One copy of the kernel for each number of rows: their sums stay in registers.
#[inline(always)]
fn tile_of<K: Kernel>(
    kernel: K,
    n_rows: usize,
    rows: &[K::Quad],
    panel: &[[[i8; QUAD]; PANEL]],
    sums: &mut Sums,
) {
    match n_rows {
        1 => kernel.tile::<1>(rows, panel, sums),
        2 => kernel.tile::<2>(rows, panel, sums),
        3 => kernel.tile::<3>(rows, panel, sums),
        4 => kernel.tile::<4>(rows, panel, sums),
        5 => kernel.tile::<5>(rows, panel, sums),
        6 => kernel.tile::<6>(rows, panel, sums),
        _ if K::ROWS <= 6 => unreachable!("a tile of {n_rows} rows"),
        7 => kernel.tile::<7>(rows, panel, sums),
        8 => kernel.tile::<8>(rows, panel, sums),
        9 => kernel.tile::<9>(rows, panel, sums),
        10 => kernel.tile::<10>(rows, panel, sums),
        11 => kernel.tile::<11>(rows, panel, sums),
        12 => kernel.tile::<12>(rows, panel, sums),
        _ => unreachable!("a tile of {n_rows} rows"),
    }
}

/// The definition, in plain loops.
#[derive(Debug, Clone, Copy)]
struct Portable;

impl Kernel for Portable {
    type Quad = [u8; QUAD];
    const ROWS: usize = 6;
    const IS_FUSED: bool = false;

    #[inline(always)]
    fn tile<const R: usize>(
        self,
        rows: &[[u8; QUAD]],
        panel: &[[[i8; QUAD]; PANEL]],
        sums: &mut Sums,
    ) {
        for (row, sums) in rows.chunks_exact(panel.len()).zip(&mut sums[..R]) {
            *sums = [0; PANEL];
            for (u, columns) in row.iter().zip(panel) {
                for (sum, q) in sums.iter_mut().zip(columns) {
                    for (&u, &q) in u.iter().zip(q) {
                        *sum += i32::from(u) * i32::from(q);
                    }
                }
            }
        }
    }
}
