//! The ridge: what a linear regression from word vectors to tags says, fitted to the support in closed form.
//!
//! With `v_k` the vectors of a tag's words and name, `ω_k = 1` for a word and `κ` for the name, `σ` the share of siblings and `t'`
//! the other tag of `t`'s slot:
//!
//! ```text
//! w_k = ω_k / √(Σ of the tag's ω)
//! S   = λ·C⁻² + Σ over all tags and their k of w_k·v_k·v_kᵀ        [d, d]
//! W_t = S⁻¹ · Σ over the k of t of w_k·v_k                         [d]
//! R_t = q·(W_t + σ·W_t') = Σ over the k of t of w_k·(S⁻¹q)·v_k + σ·Σ over those of t' of the same
//! ```
//!
//! `W` minimises the squared error of `q·W` to the words' tags, each word weighed by `w_k`, plus `λ|C⁻¹W|²`. So it hears the
//! directions that tell tags apart, and not those in which all words of a domain are alike: what prototypes and nearest
//! words cannot know, and what more examples say better. A tag of many words, as `O` is, counts for the root of their number.
//! The words of `B` and `I` of a slot have much in common; with `σ = 1` the regression tells slots apart, with `σ = 0` tags.
//! `R` is a sum over the words of its slot, so explanations stay exact.
//!
//! A vector may have more than the last layer's row: rows of middle layers, and the word by itself, so that the regression also
//! knows which words it has seen. `C = diag(c)` says how much a column has to say: `c = 1 − 1/√n` with `n` examples per label for
//! the middle layers, which know much about few words and mislead from one example, and `1` for all others. It is one more
//! factor of every vector:
//!
//! ```text
//! S⁻¹ = C·(λ·I + Σ w_k·(C·v_k)·(C·v_k)ᵀ)⁻¹·C
//! ```
//!
//! With fewer vectors than numbers in them, `V [n, d]` of the rows `C·v_k` and `D = diag(w)`, a smaller system says the same (Woodbury):
//!
//! ```text
//! S⁻¹b = C·(b' − Vᵀ·M⁻¹·V·b') / λ    b' = C·b    M = λ·D⁻¹ + V·Vᵀ   [n, n]
//! ```
//!
//! The way back, with `D_t` the gradient by `W_t` and `B_t = S⁻¹·D_t`:
//!
//! ```text
//! ∂v_k = w_k·(B_t − Σ_u (W_u·v_k)·B_u + (B_u·v_k)·W_u)      ∂w_k = B_t·v_k − Σ_u (W_u·v_k)·(B_u·v_k)
//! ∂λ   = −Σ_u (C⁻¹·B_u)·(C⁻¹·W_u)      where c is not 0
//! ```
//!
//! Source: Bertinetto et al. (2019), "Meta-learning with differentiable closed-form solvers".

use fewtag_kernels::matmul::{Left, Panels, Product, Strips, View, Write};
use rayon::prelude::*;

use super::mixed::{Mix, TagWords};
use super::{SupportVectors, vector_of};
use crate::matrix::{Matrix, add_scaled, dot};

/// So many vectors are multiplied at a time: bounds the memory of a large support.
const GROUP: usize = 4096;
/// So many columns of them by as many others: what one task computes.
const COLUMNS: usize = 192;

/// The regression of one support set.
#[derive(Debug, Clone)]
pub(super) struct Ridge {
    inverse: Inverse,
    /// `w_k`, tag by tag.
    weights: Vec<Vec<f32>>,
    /// `W`, `[L, d]`.
    solution: Matrix,
    /// `W_t + σ·W_t'`, `[L, d]`.
    shared: Matrix,
}

/// The words and names of all tags, whose whole vectors stand in the support.
#[derive(Debug, Clone, Copy)]
pub(super) struct Voices<'a> {
    pub tags: &'a [TagWords],
    pub support: SupportVectors<'a>,
}

impl<'a> Voices<'a> {
    /// `v_k` of a tag, `[d]`.
    fn vector(self, tag: usize, k: usize) -> &'a [f32] {
        vector_of(self.tags[tag].sources[k], tag, self.support)
    }
}

/// Which tags speak for each other, and how much.
#[derive(Debug, Clone, Copy)]
pub(super) struct Siblings<'a> {
    /// The other tag of its slot, `[L]`.
    pub of_tag: &'a [Option<usize>],
    /// `σ`.
    pub share: f32,
}

impl Siblings<'_> {
    /// The rows `x_t + σ·x_t'`.
    fn mixed(self, x: &Matrix) -> Matrix {
        let mut mixed = x.clone();
        for (t, sibling) in self.of_tag.iter().enumerate() {
            if let Some(sibling) = sibling {
                add_scaled(mixed.row_mut(t), self.share, x.row(*sibling));
            }
        }
        mixed
    }
}

/// What becomes of the gradient of a regression.
pub(super) struct RidgeGradients {
    /// One `[m, d]` per tag, for the vectors of its words and name.
    pub vectors: Vec<Matrix>,
    /// By `ln λ`.
    pub ridge: f32,
    /// By `ln κ`.
    pub name: f32,
}

impl Ridge {
    /// `columns` are the `c` of every column, `[d]`.
    pub(super) fn new(voices: Voices, siblings: Siblings, mix: Mix, columns: Vec<f32>) -> Self {
        let (weights, width) = (voices.tags.iter().map(weights).collect::<Vec<_>>(), columns.len());
        let inverse = Inverse::new(voices, &weights, mix.ridge.exp(), columns);
        let mut solution = Matrix::zeros(weights.len(), width);
        for (t, weights) in weights.iter().enumerate() {
            let mut sum = vec![0.0; width];
            for (k, w) in weights.iter().enumerate() {
                add_scaled(&mut sum, *w, voices.vector(t, k));
            }
            solution.row_mut(t).copy_from_slice(&inverse.solve(&sum));
        }
        let shared = siblings.mixed(&solution);
        Self { inverse, weights, solution, shared }
    }

    /// `R_t`.
    pub(super) fn score(&self, q: &[f32], tag: usize) -> f32 {
        dot(q, self.shared.row(tag))
    }

    /// Every `W_t + σ·W_t'`, `[L, d]`.
    pub(super) fn solutions(&self) -> &Matrix {
        &self.shared
    }

    /// `W_t + σ·W_t'`.
    pub(super) fn solution(&self, tag: usize) -> &[f32] {
        self.shared.row(tag)
    }

    /// The parts of `q·W_t`, one for each of the tag's words and its name.
    pub(super) fn parts(&self, q: &[f32], tag: usize, voices: Voices) -> Vec<f32> {
        let solved = self.inverse.solve(q);
        let parts = self.weights[tag].iter().enumerate();
        parts.map(|(k, w)| w * dot(&solved, voices.vector(tag, k))).collect()
    }

    /// The gradients from those of `W_t + σ·W_t'`, `[L, d]`.
    pub(super) fn backward(
        &self,
        voices: Voices,
        siblings: Siblings,
        mix: Mix,
        d_shared: &Matrix,
    ) -> RidgeGradients {
        // What `W_t` does for its sibling comes back as what the sibling does for it.
        let d_solution = siblings.mixed(d_shared);
        let solved: Vec<Vec<f32>> = d_solution.rows().map(|d| self.inverse.solve(d)).collect();
        let both: Vec<(&[f32], &[f32])> =
            solved.iter().map(Vec::as_slice).zip(self.solution.rows()).collect();
        let inner: f32 = both.iter().map(|(b, w)| self.inverse.inner(b, w)).sum();
        let zeros = |tag: &TagWords| Matrix::zeros(tag.vectors.n_rows(), d_solution.n_cols());
        let vectors = voices.tags.iter().map(zeros).collect();
        let mut gradients = RidgeGradients { vectors, ridge: -mix.ridge.exp() * inner, name: 0.0 };
        for (t, tag) in voices.tags.iter().enumerate() {
            let slopes = tag.weight_slopes();
            for (k, &weight) in self.weights[t].iter().enumerate() {
                let (v, d_v) = (voices.vector(t, k), gradients.vectors[t].row_mut(k));
                let mut d_weight = dot(&solved[t], v);
                add_scaled(d_v, weight, &solved[t]);
                for (b, w) in &both {
                    let (by_b, by_w) = (dot(b, v), dot(w, v));
                    add_scaled(d_v, -weight * by_w, b);
                    add_scaled(d_v, -weight * by_b, w);
                    d_weight -= by_b * by_w;
                }
                gradients.name += d_weight * slopes.as_ref().map_or(0.0, |slopes| slopes[k]);
            }
        }
        gradients
    }
}

/// `w_k` of a tag's words and name.
fn weights(tag: &TagWords) -> Vec<f32> {
    let counts = tag.counts();
    let total: f32 = counts.iter().sum();
    counts.iter().map(|count| count / total.sqrt()).collect()
}

impl TagWords {
    /// `ω_k`.
    fn counts(&self) -> Vec<f32> {
        self.log_weights.iter().map(|log| log.exp()).collect()
    }

    /// The derivatives of `w_k` by `ln κ`, if the tag's name speaks.
    fn weight_slopes(&self) -> Option<Vec<f32>> {
        let counts = self.counts();
        let total: f32 = counts.iter().sum();
        let name = self.name()?;
        let slope = |(k, count): (usize, &f32)| {
            let own = if k == name { *count } else { 0.0 };
            (own - 0.5 * count * counts[name] / total) / total.sqrt()
        };
        Some(counts.iter().enumerate().map(slope).collect())
    }
}

/// `S⁻¹`.
#[derive(Debug, Clone)]
struct Inverse {
    system: System,
    /// `c`, `[d]`.
    columns: Vec<f32>,
}

/// `C⁻¹·S⁻¹·C⁻¹`, by the smaller of two systems.
#[derive(Debug, Clone)]
enum System {
    /// The root of `λ·I + VᵀDV`.
    Whole(Root),
    /// The root of `M`.
    Few { root: Root, vectors: Matrix, lambda: f64 },
}

impl Inverse {
    fn new(voices: Voices, weights: &[Vec<f32>], lambda: f32, columns: Vec<f32>) -> Self {
        let c = &columns;
        let rows = weights.iter().enumerate().flat_map(|(t, w)| {
            let weighed = move |(k, w): (usize, &f32)| (voices.vector(t, k), *w);
            w.iter().enumerate().map(weighed).map(|(v, weight)| Weighed { v, c, weight })
        });
        Self { system: System::new(&rows.collect::<Vec<_>>(), lambda, c.len()), columns }
    }

    /// `S⁻¹ b`.
    fn solve(&self, b: &[f32]) -> Vec<f32> {
        let stretched = |b: &[f32]| b.iter().zip(&self.columns).map(|(b, c)| b * c).collect();
        let b: Vec<f32> = stretched(b);
        stretched(&self.system.solve(&b))
    }

    /// `(C⁻¹·a)·(C⁻¹·b)`, for `a` and `b` that are `S⁻¹` times something, and so 0 where `c` is.
    fn inner(&self, a: &[f32], b: &[f32]) -> f32 {
        let columns = a.iter().zip(b).zip(&self.columns).filter(|(_, c)| **c > 0.0);
        columns.map(|((a, b), c)| a * b / (c * c)).sum()
    }
}

impl System {
    fn new(rows: &[Weighed], lambda: f32, width: usize) -> Self {
        if rows.len() >= width {
            let mut s = gram(rows, width);
            (0..width).for_each(|i| s[i * width + i] += lambda);
            return Self::Whole(Root::new(&s, width));
        }
        let n = rows.len();
        let vectors = Matrix::new(stacked(rows, width, |_| 1.0), width);
        let mut m = products(&vectors);
        for (i, row) in rows.iter().enumerate() {
            m[i * n + i] += lambda / row.weight;
        }
        Self::Few { root: Root::new(&m, n), vectors, lambda: lambda.into() }
    }

    fn solve(&self, b: &[f32]) -> Vec<f32> {
        let b: Vec<f64> = b.iter().map(|x| f64::from(*x)).collect();
        let solved = match self {
            Self::Whole(root) => root.solve(b),
            Self::Few { root, vectors, lambda } => {
                let along = |v: &[f32]| v.iter().zip(&b).map(|(v, b)| f64::from(*v) * b).sum();
                let coefficients = root.solve(vectors.rows().map(along).collect());
                let mut rest = b.clone();
                for (c, v) in coefficients.iter().zip(vectors.rows()) {
                    rest.iter_mut().zip(v).for_each(|(x, v)| *x -= c * f64::from(*v));
                }
                rest.into_iter().map(|x| x / lambda).collect()
            }
        };
        solved.into_iter().map(|x| x as f32).collect()
    }
}

/// `v_k`, `c` and `w_k`.
struct Weighed<'a> {
    v: &'a [f32],
    c: &'a [f32],
    weight: f32,
}

impl Weighed<'_> {
    /// `C·v_k`.
    fn values(&self) -> impl Iterator<Item = f32> {
        self.v.iter().zip(self.c).map(|(v, c)| v * c)
    }
}

/// `Σ w_k·(C·v_k)·(C·v_k)ᵀ`, `[d, d]`; what lies far below the diagonal is not computed.
fn gram(rows: &[Weighed], width: usize) -> Vec<f32> {
    let mut sum = vec![0.0; width * width];
    for group in rows.chunks(GROUP) {
        let plain = stacked(group, width, |_| 1.0);
        let weighed = stacked(group, width, |row| row.weight);
        let packed = |i| {
            let mut panels = Panels::default();
            panels.pack(block(&weighed, width, i));
            panels
        };
        let panels: Vec<Panels> =
            (0..width.div_ceil(COLUMNS)).into_par_iter().map(packed).collect();
        sum.par_chunks_mut(COLUMNS * width).enumerate().for_each(|(i, sum)| {
            let mut strips = Strips::default();
            strips.pack_transposed(block(&plain, width, i));
            for (j, right) in panels.iter().enumerate().skip(i) {
                let product = Product { left: Left::Strips(&strips), right, write: Write::Add };
                product.into_cols(&mut sum[j * COLUMNS..], width);
            }
        });
    }
    sum
}

/// The columns of task `i`.
fn block(values: &[f32], width: usize, i: usize) -> View<'_> {
    View::new(values, width).cols(i * COLUMNS, COLUMNS.min(width - i * COLUMNS))
}

/// The rows `C·v_k`, each times a factor, `[n, d]`.
fn stacked(rows: &[Weighed], width: usize, factor: impl Fn(&Weighed) -> f32 + Sync) -> Vec<f32> {
    let mut values = vec![0.0; rows.len() * width];
    values.par_chunks_exact_mut(width).zip(rows).for_each(|(into, row)| {
        let factor = factor(row);
        into.iter_mut().zip(row.values()).for_each(|(into, x)| *into = factor * x);
    });
    values
}

/// `V·Vᵀ`, `[n, n]`.
fn products(vectors: &Matrix) -> Vec<f32> {
    let mut products = vec![0.0; vectors.n_rows() * vectors.n_rows()];
    if products.is_empty() {
        return products; // Nobody speaks.
    }
    let view = View::new(vectors.values(), vectors.n_cols());
    let mut panels = Panels::default();
    panels.pack_transposed(view);
    Product { left: Left::Rows(view), right: &panels, write: Write::Set }.into(&mut products);
    products
}

/// The upper triangle `U` of a positive matrix `S = UᵀU` (Cholesky), in double precision.
#[derive(Debug, Clone)]
struct Root {
    /// Row after row, `[d, d]`; what lies below the diagonal is not read.
    rows: Vec<f64>,
    width: usize,
}

/// So many rows are taken off all that follow at a time, while they are near.
const BLOCK: usize = 16;

impl Root {
    fn new(s: &[f32], width: usize) -> Self {
        let mut rows: Vec<f64> = s.iter().map(|x| f64::from(*x)).collect();
        for start in (0..width).step_by(BLOCK) {
            let end = (start + BLOCK).min(width);
            for j in start..end {
                let (above, below) = rows.split_at_mut((j + 1) * width);
                let row = &mut above[j * width..];
                // Rounding may take a positive matrix below 0 only where λ is nothing beside the words.
                let root = row[j].max(f64::MIN_POSITIVE).sqrt();
                row[j..].iter_mut().for_each(|x| *x /= root);
                for (i, next) in (j + 1..end).zip(below.chunks_exact_mut(width)) {
                    take_off(&mut next[i..], &row[i..]);
                }
            }
            let (above, below) = rows.split_at_mut(end * width);
            let block = &above[start * width..];
            below.par_chunks_exact_mut(width).zip(end..width).for_each(|(next, i)| {
                block.chunks_exact(width).for_each(|row| take_off(&mut next[i..], &row[i..]));
            });
        }
        Self { rows, width }
    }

    /// The solution of `S x = b`.
    fn solve(&self, b: Vec<f64>) -> Vec<f64> {
        let mut x = b;
        let rows = || self.rows.chunks_exact(self.width.max(1)).enumerate();
        for (j, row) in rows() {
            x[j] /= row[j];
            let known = x[j];
            x[j + 1..].iter_mut().zip(&row[j + 1..]).for_each(|(x, u)| *x -= known * u);
        }
        for (j, row) in rows().rev() {
            let rest: f64 = row[j + 1..].iter().zip(&x[j + 1..]).map(|(u, x)| u * x).sum();
            x[j] = (x[j] - rest) / row[j];
        }
        x
    }
}

/// Takes the first number of `row` times `row` off `next`.
fn take_off(next: &mut [f64], row: &[f64]) {
    let factor = row[0];
    next.iter_mut().zip(row).for_each(|(x, y)| *x -= factor * y);
}
