//! What a support set says about each tag, once the query is left out.
//!
//! ```text
//! E[j, t] = Σ, max or log Σ exp over the references r of tag t of   a(qⱼ)·φ_r + β_r + weight_r·γ(qⱼ)
//! ```
//!
//! A prototype is one reference; so is a whole sum of similarities, because `φ` and `β` sum
//! (see [`super::similarity`]). The nearest and the soft scorer keep one reference per word.

use super::Source;
use super::mixed::MixedReferences;
use super::similarity::{Side, Similarity};
use crate::matrix::{Matrix, add_scaled, dot};

/// What a support set says, ready for any query in separate context.
#[derive(Debug, Clone)]
pub struct References(Kind);

#[derive(Debug, Clone)]
enum Kind {
    Sums(Sums),
    Mixed(Box<MixedReferences>),
}

impl References {
    pub(super) fn of_sums(sums: Sums) -> Self {
        Self(Kind::Sums(sums))
    }

    pub(super) fn of_mixed(mixed: MixedReferences) -> Self {
        Self(Kind::Mixed(Box::new(mixed)))
    }

    /// Those of the mixed scorer.
    pub(super) fn as_mixed(&self) -> Option<&MixedReferences> {
        match &self.0 {
            Kind::Mixed(mixed) => Some(mixed),
            Kind::Sums(_) => None,
        }
    }

    /// Those of all other scorers.
    pub(super) fn sums(&self) -> &Sums {
        match &self.0 {
            Kind::Sums(sums) => sums,
            Kind::Mixed(_) => panic!("the mixed scorer has a way of its own"),
        }
    }

    /// The emissions `[n, L]` of a query `[n, d]`.
    #[must_use]
    pub fn emissions(&self, query: &Matrix) -> Matrix {
        match &self.0 {
            Kind::Sums(sums) => sums.emissions(query),
            Kind::Mixed(mixed) => mixed.emissions(query),
        }
    }
}

/// The references of all tags whose scores are put together by a sum, a maximum or a log-sum.
#[derive(Debug, Clone)]
pub(super) struct Sums {
    similarity: Similarity,
    n_tags: usize,
    list: Vec<Reference>,
    fold: Fold,
}

/// How several references of one tag are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    Sum,
    Max,
    LogSumExp,
}

/// Somebody who speaks for a tag.
#[derive(Debug, Clone)]
pub(super) struct Voice {
    pub(super) source: Source,
    pub(super) weight: f32,
}

/// Something a query word is compared with.
#[derive(Debug, Clone)]
pub(super) struct Reference {
    pub(super) tag: usize,
    pub(super) voices: Vec<Voice>,
    /// The weighted sum of the voices, if they are mixed before they are compared. `[d]`
    pub(super) centre: Option<Vec<f32>>,
    /// `φ` and `β`.
    pub(super) side: Side,
    /// How often `γ(q)` counts: the sum of the voices' weights.
    pub(super) weight: f32,
}

impl Reference {
    pub(super) fn score(&self, query: &Side) -> f32 {
        dot(&query.vector, &self.side.vector) + self.side.offset + self.weight * query.offset
    }
}

impl Sums {
    /// `list` must be in the order of the tags.
    pub(super) fn new(
        similarity: Similarity,
        n_tags: usize,
        list: Vec<Reference>,
        fold: Fold,
    ) -> Self {
        debug_assert!(list.is_sorted_by_key(|reference| reference.tag), "sorted by tag");
        Self { similarity, n_tags, list, fold }
    }

    pub(super) fn list(&self) -> &[Reference] {
        &self.list
    }

    /// The references of one tag. They are found without a look at the others, which may be many.
    pub(super) fn of_tag(&self, tag: usize) -> &[Reference] {
        let start = self.list.partition_point(|reference| reference.tag < tag);
        let n = self.list[start..].partition_point(|reference| reference.tag == tag);
        &self.list[start..start + n]
    }

    fn emissions(&self, query: &Matrix) -> Matrix {
        let mut row = vec![f32::NEG_INFINITY; self.n_tags];
        if self.fold == Fold::Sum {
            self.list.iter().for_each(|reference| row[reference.tag] = 0.0);
        }
        let mut emissions = Matrix::new(row.repeat(query.n_rows()), self.n_tags);
        self.score_into(query, &mut emissions);
        emissions
    }

    /// Adds to (or raises) the emissions `[n, L]` what these references say about `query [n, d]`.
    pub(super) fn score_into(&self, query: &Matrix, emissions: &mut Matrix) {
        for (j, row) in query.rows().enumerate() {
            let query = self.similarity.query(row);
            let emissions = emissions.row_mut(j);
            for reference in &self.list {
                let emission = &mut emissions[reference.tag];
                let score = reference.score(&query);
                *emission = match self.fold {
                    Fold::Sum => *emission + score,
                    Fold::Max => emission.max(score),
                    Fold::LogSumExp => log_add_exp(*emission, score),
                };
            }
        }
    }

    /// The gradients of the query `[n, d]` and of each reference's `φ` and `β`.
    ///
    /// `share(j, r)` says how much of reference `r`'s score is in the emission of word `j` and its tag.
    pub(super) fn backward(
        &self,
        query: &Matrix,
        d_emissions: &Matrix,
        share: impl Fn(usize, usize) -> f32,
    ) -> (Matrix, Vec<Side>) {
        let width = query.n_cols();
        let mut d_query = Matrix::zeros(query.n_rows(), width);
        let mut d_references = vec![Side::zero(width); self.list.len()];
        for (j, row) in query.rows().enumerate() {
            let side = self.similarity.query(row);
            let mut d_side = Side::zero(width);
            for (r, (reference, d)) in self.list.iter().zip(&mut d_references).enumerate() {
                let gradient = share(j, r) * d_emissions.row(j)[reference.tag];
                if gradient == 0.0 {
                    continue;
                }
                add_scaled(&mut d.vector, gradient, &side.vector);
                d.offset += gradient;
                add_scaled(&mut d_side.vector, gradient, &reference.side.vector);
                d_side.offset += gradient * reference.weight;
            }
            d_query.row_mut(j).copy_from_slice(&self.similarity.query_backward(row, &d_side));
        }
        (d_query, d_references)
    }
}

/// `log(exp a + exp b)`; `a` may be `-inf`, `b` is finite.
pub(super) fn log_add_exp(a: f32, b: f32) -> f32 {
    a.max(b) + (-(a - b).abs()).exp().ln_1p()
}
