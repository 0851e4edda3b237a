//! Attention of one sequence: every head `e` compares its `q`, `k`, `v [l, d]`, three column ranges of `qkv [l, 3h]`.
//!
//! ```text
//! S = q kᵀ / √d,  P = softmax of the rows of S,  P̃ = dropout(P),  context = P̃ v
//! dv = P̃ᵀ dc,  dP = dropout(dc vᵀ),  dS = P (dP − Σ_j P dP) / √d,  dq = dS k,  dk = dSᵀ q
//! ```
//!
//! `P [heads, l, l]` is kept for the way back; `docs/reference/engine.md` derives it.

use std::ops::Range;

use crate::dropout::{LayerDropout, Place};
use crate::matmul::{Left, Panels, Product, Strips, View, Write};
use crate::softmax::{softmax, softmax_backward};

/// How the width of a row is shared between heads.
#[derive(Debug, Clone, Copy)]
pub struct Heads {
    /// The number of heads.
    pub n: usize,
    /// The width `d` of one head.
    pub size: usize,
}

impl Heads {
    /// The width `h` of a row.
    fn width(self) -> usize {
        self.n * self.size
    }

    /// `q`, `k` and `v [l, d]` of one head.
    fn parts(self, qkv: &[f32], head: usize) -> [View<'_>; 3] {
        let (h, d) = (self.width(), self.size);
        [0, 1, 2].map(|part| View::new(qkv, 3 * h).cols(part * h + head * d, d))
    }
}

/// Buffers that the heads use in turn.
#[derive(Debug, Default)]
pub struct Scratch {
    right: Panels,
    left: Strips,
    dropped: Vec<f32>,
    d_scores: Vec<f32>,
}

/// One sequence in attention.
#[derive(Debug, Clone, Copy)]
pub struct Attention<'a> {
    /// How the width is shared.
    pub heads: Heads,
    /// Queries, keys and values of the sequence, `[l, 3h]`.
    pub qkv: &'a [f32],
    /// In training, what is dropped from the probabilities.
    pub dropout: Option<LayerDropout>,
    /// The row of the batch at which the sequence starts.
    pub first_row: usize,
}

impl Attention<'_> {
    /// The number of pieces.
    fn len(&self) -> usize {
        self.qkv.len() / (3 * self.heads.width())
    }

    fn scale(&self) -> f32 {
        1.0 / (self.heads.size as f32).sqrt()
    }

    /// Computes `probabilities [heads, l, l]` and `context [l, h]`.
    pub fn forward(&self, probabilities: &mut [f32], context: &mut [f32], scratch: &mut Scratch) {
        let into = (context, self.heads.width());
        self.heads(0..self.heads.n, probabilities, into, scratch);
    }

    /// [`Attention::forward`] of some of the heads: `probabilities [heads, l, l]`, and the columns of the context that are
    /// theirs to the start of rows of `stride` numbers.
    ///
    /// # Panics
    ///
    /// If sizes disagree.
    pub fn heads(
        &self,
        heads: Range<usize>,
        probabilities: &mut [f32],
        (context, stride): (&mut [f32], usize),
        scratch: &mut Scratch,
    ) {
        let l = self.len();
        let first = heads.start;
        for (head, p) in heads.zip(probabilities.chunks_exact_mut(l * l)) {
            let [q, k, v] = self.heads.parts(self.qkv, head);
            scratch.right.pack_transposed(k);
            Product { left: Left::Rows(q), right: &scratch.right, write: Write::Set }.into(p);
            softmax(p, l, self.scale());

            let p = self.drop_out(p, head, &mut scratch.dropped);
            scratch.right.pack(v);
            let left = Left::Rows(View::new(p, l));
            let product = Product { left, right: &scratch.right, write: Write::Set };
            product.into_cols(&mut context[(head - first) * self.heads.size..], stride);
        }
    }

    /// Turns the gradient `d_context [l, h]` into `d_qkv [l, 3h]`.
    pub fn backward(
        &self,
        probabilities: &[f32],
        d_context: &[f32],
        d_qkv: &mut [f32],
        scratch: &mut Scratch,
    ) {
        let (l, h, d) = (self.len(), self.heads.width(), self.heads.size);
        for (head, p) in probabilities.chunks_exact(l * l).enumerate() {
            let [q, k, v] = self.heads.parts(self.qkv, head);
            let d_context = View::new(d_context, h).cols(head * d, d);
            let mut into = |part: usize, left: Left, right: &Panels| {
                let product = Product { left, right, write: Write::Set };
                product.into_cols(&mut d_qkv[part * h + head * d..], 3 * h);
            };

            let dropped = self.drop_out(p, head, &mut scratch.dropped);
            scratch.left.pack_transposed(View::new(dropped, l));
            scratch.right.pack(d_context);
            into(2, Left::Strips(&scratch.left), &scratch.right);

            scratch.d_scores.resize(l * l, 0.0);
            let d_scores = &mut scratch.d_scores[..l * l];
            scratch.right.pack_transposed(v);
            let left = Left::Rows(d_context);
            Product { left, right: &scratch.right, write: Write::Set }.into(d_scores);
            if let Some(dropout) = self.dropout {
                dropout.apply(Place::Attention { head }, self.first_row, d_scores, l);
            }
            softmax_backward(p, d_scores, l, self.scale());

            scratch.right.pack(k);
            into(0, Left::Rows(View::new(d_scores, l)), &scratch.right);
            scratch.left.pack_transposed(View::new(d_scores, l));
            scratch.right.pack(q);
            into(1, Left::Strips(&scratch.left), &scratch.right);
        }
    }

    /// `P̃`: in `dropped`, or `P` itself without dropout.
    fn drop_out<'p>(&self, p: &'p [f32], head: usize, dropped: &'p mut Vec<f32>) -> &'p [f32] {
        let Some(dropout) = self.dropout else { return p };
        dropped.clear();
        dropped.extend_from_slice(p);
        dropout.apply(Place::Attention { head }, self.first_row, dropped, self.len());
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dropout::Dropout;
    use crate::testing::{assert_close, normal, numeric_gradient, weighted};

    const HEADS: Heads = Heads { n: 3, size: 5 };

    fn dropout(rate: f32) -> Option<LayerDropout> {
        (rate > 0.0).then(|| LayerDropout::new(Dropout { rate, seed: 5 }, 1))
    }

    fn attention(qkv: &[f32], rate: f32) -> Attention<'_> {
        Attention { heads: HEADS, qkv, dropout: dropout(rate), first_row: 11 }
    }

    fn forward(qkv: &[f32], rate: f32) -> (Vec<f32>, Vec<f32>) {
        let l = qkv.len() / 45;
        let (mut p, mut context) = (vec![0.0; 3 * l * l], vec![0.0; l * 15]);
        attention(qkv, rate).forward(&mut p, &mut context, &mut Scratch::default());
        (p, context)
    }

    /// The formula of the module comment, number by number in double precision, without dropout.
    fn plain(qkv: &[f32]) -> Vec<f32> {
        let l = qkv.len() / 45;
        let at = |i: usize, part: usize, e: usize, x: usize| {
            f64::from(qkv[i * 45 + part * 15 + e * 5 + x])
        };
        let mut context = vec![0.0; l * 15];
        for e in 0..3 {
            for i in 0..l {
                let score = |j| (0..5).map(|x| at(i, 0, e, x) * at(j, 1, e, x)).sum::<f64>();
                let weights: Vec<f64> = (0..l).map(|j| (score(j) / 5.0_f64.sqrt()).exp()).collect();
                let z: f64 = weights.iter().sum();
                for x in 0..5 {
                    let mean: f64 = (0..l).map(|j| weights[j] * at(j, 2, e, x)).sum();
                    context[i * 15 + e * 5 + x] = (mean / z) as f32;
                }
            }
        }
        context
    }

    #[test]
    fn context_equals_the_plain_formula_at_any_length() {
        for l in [1, 2, 7, 8, 9, 19, 40] {
            let qkv = normal(l * 45, 1);
            assert_close(&forward(&qkv, 0.0).1, &plain(&qkv), 1e-5);
        }
    }

    #[test]
    fn some_heads_are_those_of_all() {
        let (l, qkv) = (9, normal(9 * 45, 1));
        let (all_p, all) = forward(&qkv, 0.0);
        for heads in [0..1, 1..3, 2..3] {
            let n = heads.len();
            let (mut p, mut context) = (vec![0.0; n * l * l], vec![0.0; l * n * 5]);
            let mut scratch = Scratch::default();
            let into = (&mut context[..], n * 5);
            attention(&qkv, 0.0).heads(heads.clone(), &mut p, into, &mut scratch);
            assert_eq!(p, all_p[heads.start * l * l..][..p.len()]);
            for (row, all) in context.chunks_exact(n * 5).zip(all.chunks_exact(15)) {
                assert_eq!(*row, all[heads.start * 5..heads.end * 5]);
            }
        }
    }

    #[test]
    fn large_scores_do_not_overflow() {
        let qkv: Vec<f32> = normal(9 * 45, 1).iter().map(|x| 1e3 * x).collect();
        let (p, _) = forward(&qkv, 0.0);
        assert!(p.chunks_exact(9).all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-5));
    }

    #[test]
    fn gradients_equal_finite_differences_with_and_without_dropout() {
        for l in [1, 3, 9] {
            for rate in [0.0, 0.3] {
                let (qkv, d_context) = (normal(l * 45, 1), normal(l * 15, 2));
                let (p, _) = forward(&qkv, rate);
                let mut d_qkv = vec![f32::NAN; qkv.len()];
                let mut scratch = Scratch::default();
                attention(&qkv, rate).backward(&p, &d_context, &mut d_qkv, &mut scratch);
                let loss = |qkv: &[f32]| weighted(&forward(qkv, rate).1, &d_context);
                assert_close(&d_qkv, &numeric_gradient(&qkv, loss), 2e-3);
            }
        }
    }
}
