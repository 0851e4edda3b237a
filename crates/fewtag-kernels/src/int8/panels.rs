//! Weights in bytes, in the order in which products read them.

use super::{GROUP, GROUP_QUADS, PANEL, QUAD};
use crate::vectorised;

/// A matrix `W [n, k]` in bytes: `W[j, p] = scales[j] · values[j, p]`.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    /// `[n, k]` in −127…127, row after row.
    pub values: &'a [i8],
    /// `[n]`.
    pub scales: &'a [f32],
}

impl Matrix<'_> {
    /// Adds row `j` to `x [k]`.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn add_row(&self, j: usize, x: &mut [f32]) {
        let (row, step) = (&self.values[j * x.len()..][..x.len()], self.scales[j]);
        vectorised(
            #[inline(always)]
            || {
                for (x, &q) in x.iter_mut().zip(row) {
                    *x += f32::from(q) * step;
                }
            },
        );
    }
}

/// The right factor `Wᵀ [k, n]` of a linear layer: panel after panel of 32 columns, in a panel quad after quad of
/// `k`, in a quad column after column. What is missing in the last quad and panel is filled up with zeros.
#[derive(Debug, Default)]
pub struct Panels {
    quads: Vec<[[i8; QUAD]; PANEL]>,
    /// `−Σ_p q[j, p]` of every group of every panel: what a zero of the left factor is multiplied with.
    minus_sums: Vec<[i32; PANEL]>,
    /// The scales of every panel.
    steps: Vec<[f32; PANEL]>,
    k: usize,
    n: usize,
}

/// 32 columns as a tile reads them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Panel<'a> {
    pub(super) quads: &'a [[[i8; QUAD]; PANEL]],
    pub(super) minus_sums: &'a [[i32; PANEL]],
    pub(super) steps: &'a [f32; PANEL],
}

impl<'a> Panel<'a> {
    /// The quads of every group, with the sums of its columns.
    #[inline(always)]
    pub(super) fn groups(
        self,
    ) -> impl Iterator<Item = (&'a [[[i8; QUAD]; PANEL]], &'a [i32; PANEL])> {
        self.quads.chunks(GROUP_QUADS).zip(self.minus_sums)
    }
}

impl Panels {
    /// Packs weights that lie side by side: those of queries, keys and values are one factor.
    ///
    /// # Panics
    ///
    /// If a part is not `[n, k]`, or if `k` is 0.
    #[must_use]
    pub fn pack(parts: &[Matrix], k: usize) -> Self {
        assert!(k > 0, "columns without numbers");
        let n = parts.iter().map(|part| part.scales.len()).sum::<usize>();
        let (n_quads, n_panels) = (k.div_ceil(QUAD), n.div_ceil(PANEL));
        let mut packed = Self {
            quads: vec![[[0; QUAD]; PANEL]; n_quads * n_panels],
            minus_sums: vec![[0; PANEL]; n_quads.div_ceil(GROUP_QUADS) * n_panels],
            steps: vec![[0.0; PANEL]; n_panels],
            k,
            n,
        };
        let mut j = 0;
        for part in parts {
            assert_eq!(part.values.len(), part.scales.len() * k, "a part is [n, k]");
            for (values, &step) in part.values.chunks_exact(k).zip(part.scales) {
                packed.set_column(j, values, step);
                j += 1;
            }
        }
        packed
    }

    fn set_column(&mut self, j: usize, values: &[i8], step: f32) {
        let (n_quads, n_groups) = (self.n_quads(), self.n_groups());
        let (panel, column) = (j / PANEL, j % PANEL);
        self.steps[panel][column] = step;
        let of_panel = &mut self.minus_sums[panel * n_groups..][..n_groups];
        for (sums, values) in of_panel.iter_mut().zip(values.chunks(GROUP)) {
            sums[column] = -values.iter().map(|&q| i32::from(q)).sum::<i32>();
        }
        let quads = &mut self.quads[panel * n_quads..][..n_quads];
        for (quad, values) in quads.iter_mut().zip(values.chunks(QUAD)) {
            quad[column][..values.len()].copy_from_slice(values);
        }
    }

    /// The matrix `W [n, k]` that was packed, in floats.
    ///
    /// # Panics
    ///
    /// If `values` is not `[n, k]`.
    pub fn unpack(&self, values: &mut [f32]) {
        assert_eq!(values.len(), self.n * self.k, "the matrix is [n, k]");
        let n_quads = self.n_quads();
        for (j, row) in values.chunks_exact_mut(self.k).enumerate() {
            let (panel, column) = (j / PANEL, j % PANEL);
            let step = self.steps[panel][column];
            let quads = &self.quads[panel * n_quads..][..n_quads];
            let steps = quads.iter().flat_map(|quad| quad[column]);
            for (value, q) in row.iter_mut().zip(steps) {
                *value = f32::from(q) * step;
            }
        }
    }

    /// The length of a column.
    #[must_use]
    pub fn k(&self) -> usize {
        self.k
    }

    /// The number of columns.
    #[must_use]
    pub fn n(&self) -> usize {
        self.n
    }

    /// The number of panels.
    pub(super) fn n_panels(&self) -> usize {
        self.steps.len()
    }

    pub(super) fn panel(&self, p: usize) -> Panel<'_> {
        let (n_quads, n_groups) = (self.n_quads(), self.n_groups());
        Panel {
            quads: &self.quads[p * n_quads..][..n_quads],
            minus_sums: &self.minus_sums[p * n_groups..][..n_groups],
            steps: &self.steps[p],
        }
    }

    fn n_quads(&self) -> usize {
        self.k.div_ceil(QUAD)
    }

    fn n_groups(&self) -> usize {
        self.k.div_ceil(GROUP)
    }
}
