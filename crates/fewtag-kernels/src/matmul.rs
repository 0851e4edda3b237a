//! Matrix products: `C = A B` or `C += A B` with `A [m, k]`, `B [k, n]`, `C [m, n]`.
//!
//! `B` is first brought into [`Panels`]: strips of 16 columns (32 for AVX-512), so that the inner loop reads it from
//! front to back. Weights are packed once and serve every row. `A` is read as it lies, or, where its transpose is
//! stored, as [`Strips`] of 6 rows. The inner loop keeps a tile of `C` in registers: 6 rows by 2 vectors use 12 of
//! the 16 registers of AVX2. AVX-512 has 32, enough for two tiles one below the other, which read a panel once for both.
//!
//! ```text
//! C[i, j] = Σ over blocks of ( Σ over p in the block of A[i, p] B[p, j] ), from left to right
//! ```
//!
//! The blocks depend on `k` only. So a number of `C` depends on its row of `A` and its column of `B` and on
//! nothing else, bit for bit: neither on other rows, nor on how rows are shared between threads, nor on the width of
//! the machine's vectors, as long as they multiply and add in one rounding.
//!
//! Method: Goto and van de Geijn (2008), "Anatomy of high-performance matrix multiplication".

use pulp::{Arch, Simd, WithSimd};

use crate::start_of;

/// The rows of a register tile.
const TILE_ROWS: usize = 6;
/// The vectors in a row of a register tile.
const TILE_VECTORS: usize = 2;
/// The columns of a panel: one tile of AVX2 vectors, several of shorter ones.
const PANEL: usize = 16;
/// The columns of a panel for AVX-512.
const WIDE_PANEL: usize = 32;
/// The longest block of `k`: a panel of it (24 KiB) stays in the first cache. Shorter ones visit `C` more often.
const MAX_BLOCK: usize = 384;

/// A matrix stored in rows that lie `stride` numbers apart: a whole one, or some columns of it.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    values: &'a [f32],
    n_rows: usize,
    n_cols: usize,
    stride: usize,
}

impl<'a> View<'a> {
    /// A whole matrix of `n_cols` columns.
    pub fn new(values: &'a [f32], n_cols: usize) -> Self {
        Self { values, n_rows: values.len() / n_cols, n_cols, stride: n_cols }
    }

    /// Columns `start..start + n_cols` of this matrix.
    ///
    /// # Panics
    ///
    /// If it has fewer columns.
    #[must_use]
    pub fn cols(self, start: usize, n_cols: usize) -> Self {
        assert!(start + n_cols <= self.n_cols, "columns {start}+{n_cols} of {}", self.n_cols);
        Self { values: &self.values[start..], n_cols, ..self }
    }

    #[inline(always)]
    fn row(&self, r: usize) -> &'a [f32] {
        &self.values[r * self.stride..][..self.n_cols]
    }
}

/// A cut of `0..k` into blocks as equal as can be, of at most [`MAX_BLOCK`].
#[derive(Debug, Clone, Copy, Default)]
struct Blocks {
    k: usize,
    len: usize,
}

impl Blocks {
    fn new(k: usize) -> Self {
        Self { k, len: k.div_ceil(k.div_ceil(MAX_BLOCK)) }
    }

    /// Where each block starts, and its length.
    #[inline(always)]
    fn iter(self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.k).step_by(self.len).map(move |start| (start, self.len.min(self.k - start)))
    }
}

/// The right factor `B [k, n]`: block after block of `k`, panel after panel of columns, row after row.
///
/// The last panel is filled up with zeros.
#[derive(Debug)]
pub struct Panels {
    values: Vec<f32>,
    blocks: Blocks,
    n: usize,
    /// Whether panels have [`WIDE_PANEL`] columns: the machine that packs is the one that multiplies.
    is_wide: bool,
}

impl Default for Panels {
    fn default() -> Self {
        let is_wide = Arch::new().dispatch(HasWideVectors);
        Self { values: Vec::new(), blocks: Blocks::default(), n: 0, is_wide }
    }
}

/// Asks for the length of the machine's vectors.
struct HasWideVectors;

impl WithSimd for HasWideVectors {
    type Output = bool;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> bool {
        is_wide::<S>()
    }
}

/// Whether a tile of such vectors has [`WIDE_PANEL`] columns.
const fn is_wide<S: Simd>() -> bool {
    TILE_VECTORS * S::F32_LANES == WIDE_PANEL
}

impl Panels {
    /// The number of rows of `B`.
    pub fn k(&self) -> usize {
        self.blocks.k
    }

    /// Packs `B` from its transpose `[n, k]`: the weight of a linear layer, for `x Wᵀ`.
    pub fn pack_transposed(&mut self, b: View) {
        self.pack_columns(b.n_cols, b.n_rows, |j| b.row(j));
    }

    /// Packs `B [k, n]` from its columns, which may lie anywhere.
    pub fn pack_columns<'b>(&mut self, k: usize, n: usize, column: impl Fn(usize) -> &'b [f32]) {
        if self.is_wide {
            self.pack_columns_as::<WIDE_PANEL>(k, n, &column);
        } else {
            self.pack_columns_as::<PANEL>(k, n, &column);
        }
    }

    fn pack_columns_as<'b, const WIDTH: usize>(
        &mut self,
        k: usize,
        n: usize,
        column: &impl Fn(usize) -> &'b [f32],
    ) {
        self.pack_panels::<WIDTH>(k, n, |panel, p, j| {
            if j + WIDTH > n {
                panel.as_flattened_mut().fill(0.0);
            }
            for (at, j) in (j..n.min(j + WIDTH)).enumerate() {
                for (row, &x) in panel.iter_mut().zip(&column(j)[p..]) {
                    row[at] = x;
                }
            }
        });
    }

    /// Packs `B [k, n]` as it is.
    pub fn pack(&mut self, b: View) {
        if self.is_wide { self.pack_as::<WIDE_PANEL>(b) } else { self.pack_as::<PANEL>(b) }
    }

    fn pack_as<const WIDTH: usize>(&mut self, b: View) {
        self.pack_panels::<WIDTH>(b.n_rows, b.n_cols, |panel, p, j| {
            for (r, row) in panel.iter_mut().enumerate() {
                *row = start_of(&b.row(p + r)[j..]);
            }
        });
    }

    /// `fill` gets every panel, to be overwritten, with its first row and column in `B`.
    fn pack_panels<const WIDTH: usize>(
        &mut self,
        k: usize,
        n: usize,
        mut fill: impl FnMut(&mut [[f32; WIDTH]], usize, usize),
    ) {
        assert!(k > 0 && n > 0, "an empty factor");
        (self.blocks, self.n) = (Blocks::new(k), n);
        self.values.resize(k * n.next_multiple_of(WIDTH), 0.0);
        let (mut rest, _) = self.values.as_chunks_mut::<WIDTH>();
        for (p, len) in self.blocks.iter() {
            for j in (0..n).step_by(WIDTH) {
                let (panel, others) = rest.split_at_mut(len);
                fill(panel, p, j);
                rest = others;
            }
        }
    }
}

/// The left factor `A [m, k]` where its transpose is stored: block after block of `k`, strip after strip of rows.
#[derive(Debug, Default)]
pub struct Strips {
    values: Vec<f32>,
    blocks: Blocks,
    m: usize,
}

impl Strips {
    /// Packs `A` from its transpose `[k, m]`.
    pub fn pack_transposed(&mut self, a: View) {
        let (k, m) = (a.n_rows, a.n_cols);
        (self.blocks, self.m) = (Blocks::new(k), m);
        self.values.resize(k * m.next_multiple_of(TILE_ROWS), 0.0);
        let (mut rest, _) = self.values.as_chunks_mut::<TILE_ROWS>();
        for (p, len) in self.blocks.iter() {
            for i in (0..m).step_by(TILE_ROWS) {
                let (strip, others) = rest.split_at_mut(len);
                for (r, column) in strip.iter_mut().enumerate() {
                    *column = start_of(&a.row(p + r)[i..]);
                }
                rest = others;
            }
        }
    }

    /// The strip of rows `i..i + 6` in the block that starts at `p`.
    #[inline(always)]
    fn strip(&self, i: usize, (p, len): (usize, usize)) -> &[[f32; TILE_ROWS]] {
        let n_strips = self.m.div_ceil(TILE_ROWS);
        let (columns, _) = self.values.as_chunks::<TILE_ROWS>();
        &columns[p * n_strips + i / TILE_ROWS * len..][..len]
    }
}

/// The left factor `A [m, k]`.
#[derive(Debug, Clone, Copy)]
pub enum Left<'a> {
    /// Stored in rows.
    Rows(View<'a>),
    /// Packed from its transpose.
    Strips(&'a Strips),
}

/// What becomes of the numbers that `C` holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// `C = A B`.
    Set,
    /// `C += A B`.
    Add,
}

/// A product to be computed.
#[derive(Debug)]
pub struct Product<'a> {
    /// `A [m, k]`.
    pub left: Left<'a>,
    /// `B [k, n]`.
    pub right: &'a Panels,
    /// Whether `C` is written or added to.
    pub write: Write,
}

impl Product<'_> {
    /// Computes a whole matrix `C [m, n]`.
    pub fn into(self, c: &mut [f32]) {
        let stride = self.right.n;
        self.into_cols(c, stride);
    }

    /// Computes the first columns of a matrix whose rows lie `stride` numbers apart.
    pub fn into_cols(self, c: &mut [f32], stride: usize) {
        Arch::new().dispatch(Run { product: self, c, stride });
    }
}

/// The arguments of the kernel.
struct Run<'a, 'c> {
    product: Product<'a>,
    c: &'c mut [f32],
    stride: usize,
}

impl WithSimd for Run<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        assert_eq!(self.product.right.is_wide, is_wide::<S>(), "panels of another machine");
        match (self.product.left, is_wide::<S>()) {
            (Left::Rows(a), true) => self.run::<S, _, WIDE_PANEL>(simd, a),
            (Left::Rows(a), false) => self.run::<S, _, PANEL>(simd, a),
            (Left::Strips(a), true) => self.run::<S, _, WIDE_PANEL>(simd, a),
            (Left::Strips(a), false) => self.run::<S, _, PANEL>(simd, a),
        }
    }
}

impl Run<'_, '_> {
    #[inline(always)]
    fn run<S: Simd, A: Factor, const WIDTH: usize>(self, simd: S, a: A) {
        let Self { product: Product { right, write, .. }, c, stride } = self;
        let (m, k) = a.shape();
        assert_eq!(k, right.blocks.k, "A and B disagree on k");
        let (mut rest, _) = right.values.as_chunks::<WIDTH>();
        for (p, len) in right.blocks.iter() {
            let write = if p == 0 { write } else { Write::Add };
            for j in (0..right.n).step_by(WIDTH) {
                let (panel, others) = rest.split_at(len);
                rest = others;
                let six_rows = |i| a.six_rows(i, (p, len));
                let mut i = 0;
                while i < m {
                    let shape = (m - i, WIDTH.min(right.n - j));
                    let place = Place { c: &mut c[i * stride + j..], stride, shape, write };
                    if is_wide::<S>() && m - i > TILE_ROWS {
                        put_two_tiles(simd, [six_rows(i), six_rows(i + TILE_ROWS)], panel, place);
                        i += 2 * TILE_ROWS;
                    } else {
                        put_tiles(simd, &six_rows(i), panel, place);
                        i += TILE_ROWS;
                    }
                }
            }
        }
    }
}

/// The left factor, as it is stored.
trait Factor: Copy {
    /// 6 of its rows in a block of `k`.
    type SixRows: Numbers;

    /// `m` and `k`.
    fn shape(self) -> (usize, usize);

    /// Rows `i..i + 6` in a block that starts at `p`. What stands for rows beyond the last does not matter.
    fn six_rows(self, i: usize, block: (usize, usize)) -> Self::SixRows;
}

/// The numbers of 6 rows.
trait Numbers {
    /// That of row `r` and column `p`.
    fn number(&self, r: usize, p: usize) -> f32;
}

impl<'a> Factor for View<'a> {
    type SixRows = [&'a [f32]; TILE_ROWS];

    #[inline(always)]
    fn shape(self) -> (usize, usize) {
        (self.n_rows, self.n_cols)
    }

    #[inline(always)]
    fn six_rows(self, i: usize, (p, len): (usize, usize)) -> Self::SixRows {
        let row = |r: usize| &self.row((i + r).min(self.n_rows - 1))[p..][..len];
        [row(0), row(1), row(2), row(3), row(4), row(5)]
    }
}

impl Numbers for [&[f32]; TILE_ROWS] {
    #[inline(always)]
    fn number(&self, r: usize, p: usize) -> f32 {
        self[r][p]
    }
}

impl<'a> Factor for &'a Strips {
    type SixRows = &'a [[f32; TILE_ROWS]];

    #[inline(always)]
    fn shape(self) -> (usize, usize) {
        (self.m, self.blocks.k)
    }

    #[inline(always)]
    fn six_rows(self, i: usize, block: (usize, usize)) -> Self::SixRows {
        self.strip(i, block)
    }
}

impl Numbers for &[[f32; TILE_ROWS]] {
    #[inline(always)]
    fn number(&self, r: usize, p: usize) -> f32 {
        self[p][r]
    }
}

/// Where the sums of one panel's columns belong.
struct Place<'c> {
    /// `C` from their first number on.
    c: &'c mut [f32],
    stride: usize,
    /// How many rows `C` has from there on, and how many of the panel's columns.
    shape: (usize, usize),
    write: Write,
}

/// Two vectors of 6 rows of `C`.
type Tile<S> = [[<S as Simd>::f32s; TILE_VECTORS]; TILE_ROWS];

/// Computes 6 rows of all columns of a panel.
#[inline(always)]
fn put_tiles<S: Simd, const WIDTH: usize>(
    simd: S,
    a: &impl Numbers,
    panel: &[[f32; WIDTH]],
    place: Place,
) {
    let width = TILE_VECTORS * S::F32_LANES;
    if width == WIDTH {
        return place.put::<S, WIDTH>(simd, &tile(simd, a, panel, 0));
    }
    let mut sums = [[0.0; WIDTH]; TILE_ROWS];
    for j in (0..WIDTH).step_by(width) {
        let tile: Tile<S> = tile(simd, a, panel, j);
        for (sums, tile) in sums.iter_mut().zip(&tile) {
            sums[j..][..width].copy_from_slice(bytemuck::cast_slice(tile));
        }
    }
    place.put_numbers(&sums);
}

/// Computes 12 rows of a panel that is as wide as a tile.
#[inline(always)]
fn put_two_tiles<S: Simd, const WIDTH: usize>(
    simd: S,
    [above, below]: [impl Numbers; 2],
    panel: &[[f32; WIDTH]],
    place: Place,
) {
    let mut sums = [no_sums(simd); 2];
    for (p, b) in panel.iter().enumerate() {
        let (b, _) = S::as_simd_f32s(b);
        add_products(simd, &mut sums[0], &above, p, b);
        add_products(simd, &mut sums[1], &below, p, b);
    }
    let Place { c, stride, shape: (n_rows, n_cols), write } = place;
    let (c_above, c_below) = c.split_at_mut(TILE_ROWS * stride);
    Place { c: c_above, shape: (TILE_ROWS, n_cols), stride, write }.put::<S, WIDTH>(simd, &sums[0]);
    let shape = (n_rows - TILE_ROWS, n_cols);
    Place { c: c_below, shape, stride, write }.put::<S, WIDTH>(simd, &sums[1]);
}

/// Two vectors of 6 rows, from column `j` of the panel on.
#[inline(always)]
fn tile<S: Simd, const WIDTH: usize>(
    simd: S,
    a: &impl Numbers,
    panel: &[[f32; WIDTH]],
    j: usize,
) -> Tile<S> {
    let mut sums = no_sums(simd);
    for (p, b) in panel.iter().enumerate() {
        let (b, _) = S::as_simd_f32s(&b[j..]);
        add_products(simd, &mut sums, a, p, b);
    }
    sums
}

#[inline(always)]
fn no_sums<S: Simd>(simd: S) -> Tile<S> {
    [[simd.splat_f32s(0.0); TILE_VECTORS]; TILE_ROWS]
}

/// Adds `A[.., p] B[p, ..]`.
#[inline(always)]
fn add_products<S: Simd>(simd: S, sums: &mut Tile<S>, a: &impl Numbers, p: usize, b: &[S::f32s]) {
    for (r, sums) in sums.iter_mut().enumerate() {
        let a = simd.splat_f32s(a.number(r, p));
        for v in 0..TILE_VECTORS {
            sums[v] = simd.mul_add_e_f32s(a, b[v], sums[v]);
        }
    }
}

impl Place<'_> {
    /// Writes what `C` has of a tile; a whole one straight from the registers.
    #[inline(always)]
    fn put<S: Simd, const WIDTH: usize>(self, simd: S, tile: &Tile<S>) {
        let Self { c, stride, shape: (n_rows, n_cols), write } = self;
        if n_rows < TILE_ROWS || n_cols < WIDTH {
            let mut sums = [[0.0; WIDTH]; TILE_ROWS];
            for (sums, tile) in sums.iter_mut().zip(tile) {
                sums.copy_from_slice(bytemuck::cast_slice(tile));
            }
            return Place { c, ..self }.put_numbers(&sums);
        }
        for (r, tile) in tile.iter().enumerate() {
            let (row, _) = S::as_mut_simd_f32s(&mut c[r * stride..][..WIDTH]);
            for (c, &sum) in row.iter_mut().zip(tile) {
                *c = if write == Write::Set { sum } else { simd.add_f32s(*c, sum) };
            }
        }
    }

    /// Writes what `C` has of some sums.
    #[inline(always)]
    fn put_numbers<const WIDTH: usize>(self, sums: &[[f32; WIDTH]; TILE_ROWS]) {
        let Self { c, stride, shape: (n_rows, n_cols), write } = self;
        for (row, sums) in c.chunks_mut(stride).zip(sums).take(n_rows) {
            match write {
                Write::Set => row[..n_cols].copy_from_slice(&sums[..n_cols]),
                Write::Add => crate::add_plain(&mut row[..n_cols], sums),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_close, normal};

    /// `A B` by the definition, in double precision.
    fn plain(a: &[f32], b: &[f32], k: usize, n: usize) -> Vec<f32> {
        a.chunks_exact(k)
            .flat_map(|row| {
                (0..n).map(move |j| {
                    let terms = row.iter().zip(b[j..].iter().step_by(n));
                    terms.map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>() as f32
                })
            })
            .collect()
    }

    fn transpose(a: &[f32], n_cols: usize) -> Vec<f32> {
        (0..n_cols).flat_map(|j| a[j..].iter().step_by(n_cols).copied()).collect()
    }

    /// A sum of 700 products of normal numbers is about 26, and its partial sums are rounded 700 times.
    const TOLERANCE: f32 = 1e-4;

    const SIZES: [[usize; 3]; 8] = [
        [1, 1, 1],
        [6, 16, 256],
        [7, 17, 257],
        [5, 15, 3],
        [13, 40, 700],
        [12, 32, 31],
        [1, 33, 512],
        [64, 8, 5],
    ];

    #[test]
    fn every_storage_gives_the_plain_product_at_odd_sizes() {
        for [m, n, k] in SIZES {
            let (a, b) = (normal(m * k, 1), normal(k * n, 2));
            let expected = plain(&a, &b, k, n);
            let (a_transposed, b_transposed) = (transpose(&a, k), transpose(&b, n));

            let mut strips = Strips::default();
            strips.pack_transposed(View::new(&a_transposed, m));
            let (mut packed, mut packed_transposed) = (Panels::default(), Panels::default());
            packed.pack(View::new(&b, n));
            packed_transposed.pack_transposed(View::new(&b_transposed, k));

            for right in [&packed, &packed_transposed] {
                for left in [Left::Rows(View::new(&a, k)), Left::Strips(&strips)] {
                    let mut c = vec![f32::NAN; m * n];
                    Product { left, right, write: Write::Set }.into(&mut c);
                    assert_close(&c, &expected, TOLERANCE);
                    Product { left, right, write: Write::Add }.into(&mut c);
                    let twice: Vec<f32> = expected.iter().map(|x| 2.0 * x).collect();
                    assert_close(&c, &twice, TOLERANCE);
                }
            }
        }
    }

    /// The product by the vectors of `simd`, with panels packed for them.
    fn product_with<S: Simd>(simd: S, [m, n, k]: [usize; 3]) -> Vec<f32> {
        let (a, b) = (normal(m * k, 1), normal(k * n, 2));
        let mut right = Panels { is_wide: is_wide::<S>(), ..Panels::default() };
        right.pack(View::new(&b, n));
        let mut c = vec![0.0; m * n];
        let left = Left::Rows(View::new(&a, k));
        let product = Product { left, right: &right, write: Write::Set };
        Run { product, c: &mut c, stride: n }.with_simd(simd);
        c
    }

    #[test]
    fn the_portable_kernel_gives_the_plain_product() {
        for [m, n, k] in SIZES {
            let (a, b) = (normal(m * k, 1), normal(k * n, 2));
            let c = product_with(pulp::Scalar, [m, n, k]);
            assert_close(&c, &plain(&a, &b, k, n), TOLERANCE);
        }
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn longer_vectors_change_no_bit() {
        let (Some(avx2), Some(avx512)) = (pulp::x86::V3::try_new(), pulp::x86::V4::try_new())
        else {
            return; // Nothing to compare on this machine.
        };
        for sizes in SIZES {
            assert_eq!(product_with(avx2, sizes), product_with(avx512, sizes));
        }
    }

    #[test]
    fn parts_of_wider_matrices_are_read_and_written() {
        let (a, b) = (normal(4 * 9, 1), normal(3 * 11, 2));
        let part = |x: &[f32], width: usize, start: usize, n: usize| -> Vec<f32> {
            x.chunks_exact(width).flat_map(|row| row[start..start + n].to_vec()).collect()
        };
        let mut right = Panels::default();
        right.pack(View::new(&b, 11).cols(4, 5));
        let left = Left::Rows(View::new(&a, 9).cols(2, 3));
        let mut c = vec![7.0; 4 * 8];
        Product { left, right: &right, write: Write::Set }.into_cols(&mut c[1..], 8);
        let expected = plain(&part(&a, 9, 2, 3), &part(&b, 11, 4, 5), 3, 5);
        assert_close(&part(&c, 8, 1, 5), &expected, 1e-5);
        assert_eq!(part(&c, 8, 0, 1), [7.0; 4]);
        assert_eq!(part(&c, 8, 6, 2), [7.0; 8]);
    }

    #[test]
    fn a_row_of_the_product_does_not_depend_on_other_rows() {
        let (m, n, k) = (29, 50, 700);
        let (a, b) = (normal(m * k, 1), normal(k * n, 2));
        let mut right = Panels::default();
        right.pack(View::new(&b, n));
        let product = |a: &[f32]| {
            let mut c = vec![0.0; a.len() / k * n];
            let left = Left::Rows(View::new(a, k));
            Product { left, right: &right, write: Write::Set }.into(&mut c);
            c
        };
        let whole = product(&a);
        for i in 0..m {
            assert_eq!(product(&a[i * k..][..k]), whole[i * n..][..n], "row {i}");
        }
        assert_eq!(product(&a[..17 * k]), whole[..17 * n]);
    }
}
