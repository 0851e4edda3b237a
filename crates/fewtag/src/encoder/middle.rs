//! Rows above middle layers, which stand behind those of the last: `[last, middle₁, middle₂, …]`, `h` numbers each.

/// The rows of a group above some layers, taken while they pass.
pub(super) struct MiddleRows<'a> {
    layers: &'a [usize],
    /// The rows that somebody reads, if not all.
    wanted: Option<&'a [usize]>,
    h: usize,
    taken: Vec<Vec<f32>>,
}

impl<'a> MiddleRows<'a> {
    /// Of layers that increase and lie below the last, unless all rows are wanted.
    pub(super) fn new(layers: &'a [usize], wanted: Option<&'a [usize]>, h: usize) -> Self {
        assert!(layers.is_sorted_by(|a, b| a < b), "middle layers increase");
        Self { layers, wanted, h, taken: Vec::new() }
    }

    /// Looks at the rows `[n, h]` above the lowest `n_layers` layers.
    pub(super) fn look(&mut self, n_layers: usize, x: &[f32]) {
        if self.layers.get(self.taken.len()) != Some(&n_layers) {
            return;
        }
        self.taken.push(match self.wanted {
            None => x.to_vec(),
            Some(rows) => {
                rows.iter().flat_map(|row| &x[row * self.h..][..self.h]).copied().collect()
            }
        });
    }

    /// The rows `[n, h]` of the last layer with those that were taken behind them.
    pub(super) fn behind(self, last: Vec<f32>) -> Vec<f32> {
        assert_eq!(self.taken.len(), self.layers.len(), "there are such layers");
        if self.taken.is_empty() { last } else { side_by_side(&last, &self.taken, self.h) }
    }
}

/// `[first, others…]`, row by row.
fn side_by_side(first: &[f32], others: &[Vec<f32>], h: usize) -> Vec<f32> {
    let mut values = Vec::with_capacity(first.len() * (1 + others.len()));
    for (n, row) in first.chunks_exact(h).enumerate() {
        values.extend_from_slice(row);
        for other in others {
            values.extend_from_slice(&other[n * h..][..h]);
        }
    }
    values
}
