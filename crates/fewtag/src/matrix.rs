//! A row-major matrix of `f32`: the shape in which vectors of words and pieces travel.

/// `n_rows × n_cols` numbers, row after row.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Matrix {
    values: Vec<f32>,
    n_cols: usize,
}

impl Matrix {
    /// All zeros, `[n_rows, n_cols]`.
    #[must_use]
    pub fn zeros(n_rows: usize, n_cols: usize) -> Self {
        Self { values: vec![0.0; n_rows * n_cols], n_cols }
    }

    /// Takes `values` as rows of `n_cols` numbers.
    ///
    /// # Panics
    ///
    /// If `values` does not divide into such rows.
    #[must_use]
    pub fn new(values: Vec<f32>, n_cols: usize) -> Self {
        assert!(n_cols > 0 && values.len().is_multiple_of(n_cols), "{} / {n_cols}", values.len());
        Self { values, n_cols }
    }

    /// The number of rows.
    #[must_use]
    pub fn n_rows(&self) -> usize {
        self.values.len() / self.n_cols
    }

    /// The width of a row.
    #[must_use]
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Row `r`, `[n_cols]`.
    #[must_use]
    pub fn row(&self, r: usize) -> &[f32] {
        &self.values[r * self.n_cols..][..self.n_cols]
    }

    /// Row `r`, to be changed.
    pub fn row_mut(&mut self, r: usize) -> &mut [f32] {
        &mut self.values[r * self.n_cols..][..self.n_cols]
    }

    /// The first `n` rows and the rest.
    ///
    /// # Panics
    ///
    /// If there are fewer rows.
    #[must_use]
    pub fn split_at_row(mut self, n: usize) -> (Self, Self) {
        let rest = self.values.split_off(n * self.n_cols);
        let n_cols = self.n_cols;
        (self, Self { values: rest, n_cols })
    }

    /// All rows from first to last.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> + Clone {
        self.values.chunks_exact(self.n_cols)
    }

    /// All numbers, row after row.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All numbers, to be changed.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// Every number multiplied by `factor`.
    #[must_use]
    pub fn scaled(&self, factor: f32) -> Self {
        let values = self.values.iter().map(|value| value * factor).collect();
        Self { values, n_cols: self.n_cols }
    }
}

/// `sum += factor · row`.
pub fn add_scaled(sum: &mut [f32], factor: f32, row: &[f32]) {
    for (sum, value) in sum.iter_mut().zip(row) {
        *sum += factor * value;
    }
}

/// The mean of rows of equal width; empty without rows. `[n_cols]`
pub(crate) fn mean<'a>(rows: impl IntoIterator<Item = &'a [f32]>) -> Vec<f32> {
    let mut sum = Vec::new();
    let mut n_rows = 0;
    for row in rows {
        sum.resize(row.len(), 0.0);
        add_scaled(&mut sum, 1.0, row);
        n_rows += 1;
    }
    for value in &mut sum {
        *value /= n_rows as f32;
    }
    sum
}

/// The cosine of the angle between `a` and `b`; 0 if one of them is 0.
pub(crate) fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    if lengths == 0.0 { 0.0 } else { dot(a, b) / lengths }
}

/// `a·b`. Eight running sums let the compiler use vector registers, and round less than one.
///
/// # Panics
///
/// If the vectors differ in length.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of different width");
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0_f32; 8];
    for (x, y) in a8.iter().zip(b8) {
        for lane in 0..8 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f32>() + rest
}
