//! The ridge: what a linear regression from word vectors to tags says, fitted to the support in closed form.
//!
//! With `v_k` the vectors of a tag's words and name, `ω_k = 1` for a word and `κ` for the name:
//!
//! ```text
//! w_k = ω_k / √(Σ of the tag's ω)
//! S   = λ·I + Σ over all tags and their k of w_k·v_k·v_kᵀ          [d, d]
//! W_t = S⁻¹ · Σ over the k of t of w_k·v_k                         [d]
//! R_t = q·W_t = Σ over the k of t of w_k·(S⁻¹q)·v_k
//! ```
//!
//! `W` minimises the squared error of `q·W` to the words' tags, each word weighed by `w_k`, plus `λ|W|²`. So it hears the
//! directions that tell tags apart, and not those in which all words of a domain are alike: what prototypes and nearest
//! words cannot know, and what more examples say better. A tag of many words, as `O` is, counts for the root of their number.
//! `R` is a sum over the words of its tag, so explanations stay exact.
//!
//! The way back, with `D_t` the gradient by `W_t` and `B_t = S⁻¹·D_t`:
//!
//! ```text
//! ∂v_k = w_k·(B_t − Σ_u (W_u·v_k)·B_u + (B_u·v_k)·W_u)      ∂w_k = B_t·v_k − Σ_u (W_u·v_k)·(B_u·v_k)
//! ∂λ   = −Σ_u B_u·W_u
//! ```
//!
//! Source: Bertinetto et al. (2019), "Meta-learning with differentiable closed-form solvers".

use fewtag_kernels::matmul::{Left, Panels, Product, Strips, View, Write};

use super::mixed::{Mix, TagWords};
use crate::matrix::{Matrix, add_scaled, dot};

/// So many vectors are multiplied at a time: bounds the memory of a large support.
const GROUP: usize = 4096;

/// The regression of one support set.
#[derive(Debug, Clone)]
pub(super) struct Ridge {
    /// `S = UᵀU`.
    root: Root,
    /// `w_k`, tag by tag.
    weights: Vec<Vec<f32>>,
    /// `W`, `[L, d]`.
    solution: Matrix,
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
    pub(super) fn new(tags: &[TagWords], mix: Mix, width: usize) -> Self {
        let weights: Vec<Vec<f32>> = tags.iter().map(weights).collect();
        let mut s = gram(tags, &weights, width);
        for i in 0..width {
            s[i * width + i] += mix.ridge.exp();
        }
        let root = Root::new(&s, width);
        let mut solution = Matrix::zeros(tags.len(), width);
        for (t, (tag, weights)) in tags.iter().zip(&weights).enumerate() {
            let mut sum = vec![0.0; width];
            for (w, v) in weights.iter().zip(tag.vectors.rows()) {
                add_scaled(&mut sum, *w, v);
            }
            solution.row_mut(t).copy_from_slice(&root.solve(&sum));
        }
        Self { root, weights, solution }
    }

    /// `R_t`.
    pub(super) fn score(&self, q: &[f32], tag: usize) -> f32 {
        dot(q, self.solution.row(tag))
    }

    /// `W`, `[L, d]`.
    pub(super) fn solutions(&self) -> &Matrix {
        &self.solution
    }

    /// `W_t`.
    pub(super) fn solution(&self, tag: usize) -> &[f32] {
        self.solution.row(tag)
    }

    /// The parts of `R_t`, one for each of the tag's words and its name.
    pub(super) fn parts(&self, q: &[f32], tag: usize, words: &TagWords) -> Vec<f32> {
        let solved = self.root.solve(q);
        let parts = self.weights[tag].iter().zip(words.vectors.rows());
        parts.map(|(w, v)| w * dot(&solved, v)).collect()
    }

    /// The gradients from those of `W`, `[L, d]`.
    pub(super) fn backward(
        &self,
        tags: &[TagWords],
        mix: Mix,
        d_solution: &Matrix,
    ) -> RidgeGradients {
        let solved: Vec<Vec<f32>> = d_solution.rows().map(|d| self.root.solve(d)).collect();
        let both: Vec<(&[f32], &[f32])> =
            solved.iter().map(Vec::as_slice).zip(self.solution.rows()).collect();
        let inner: f32 = both.iter().map(|(b, w)| dot(b, w)).sum();
        let zeros = |tag: &TagWords| Matrix::zeros(tag.vectors.n_rows(), d_solution.n_cols());
        let vectors = tags.iter().map(zeros).collect();
        let mut gradients = RidgeGradients { vectors, ridge: -mix.ridge.exp() * inner, name: 0.0 };
        for (t, tag) in tags.iter().enumerate() {
            let slopes = tag.weight_slopes();
            for (k, v) in tag.vectors.rows().enumerate() {
                let weight = self.weights[t][k];
                let d_v = gradients.vectors[t].row_mut(k);
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

/// `Σ w_k·v_k·v_kᵀ` over all tags, `[d, d]`.
fn gram(tags: &[TagWords], weights: &[Vec<f32>], width: usize) -> Vec<f32> {
    let mut sum = vec![0.0; width * width];
    let (mut strips, mut panels) = (Strips::default(), Panels::default());
    let rows = tags.iter().zip(weights).flat_map(|(tag, w)| tag.vectors.rows().zip(w));
    let rows: Vec<(&[f32], &f32)> = rows.collect();
    for group in rows.chunks(GROUP) {
        let plain: Vec<f32> = group.iter().flat_map(|(v, _)| v.iter().copied()).collect();
        let weighed: Vec<f32> =
            group.iter().flat_map(|(v, w)| v.iter().map(move |x| **w * x)).collect();
        strips.pack_transposed(View::new(&plain, width));
        panels.pack(View::new(&weighed, width));
        let left = Left::Strips(&strips);
        Product { left, right: &panels, write: Write::Add }.into(&mut sum);
    }
    sum
}

/// The upper triangle `U` of a positive matrix `S = UᵀU` (Cholesky), in double precision.
#[derive(Debug, Clone)]
struct Root {
    /// Row after row, `[d, d]`; what lies below the diagonal is not read.
    rows: Vec<f64>,
    width: usize,
}

impl Root {
    fn new(s: &[f32], width: usize) -> Self {
        let mut rows: Vec<f64> = s.iter().map(|x| f64::from(*x)).collect();
        for j in 0..width {
            let (above, below) = rows.split_at_mut((j + 1) * width);
            let row = &mut above[j * width..];
            // Rounding may take a positive matrix below 0 only where λ is nothing beside the words.
            let root = row[j].max(f64::MIN_POSITIVE).sqrt();
            row[j..].iter_mut().for_each(|x| *x /= root);
            for (i, next) in (j + 1..).zip(below.chunks_exact_mut(width)) {
                let factor = row[i];
                next[i..].iter_mut().zip(&row[i..]).for_each(|(x, y)| *x -= factor * y);
            }
        }
        Self { rows, width }
    }

    /// `S⁻¹ b`.
    fn solve(&self, b: &[f32]) -> Vec<f32> {
        let mut x: Vec<f64> = b.iter().map(|x| f64::from(*x)).collect();
        let rows = || self.rows.chunks_exact(self.width).enumerate();
        for (j, row) in rows() {
            x[j] /= row[j];
            let known = x[j];
            x[j + 1..].iter_mut().zip(&row[j + 1..]).for_each(|(x, u)| *x -= known * u);
        }
        for (j, row) in rows().rev() {
            let rest: f64 = row[j + 1..].iter().zip(&x[j + 1..]).map(|(u, x)| u * x).sum();
            x[j] = (x[j] - rest) / row[j];
        }
        x.into_iter().map(|x| x as f32).collect()
    }
}
