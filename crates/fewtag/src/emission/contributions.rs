//! Which support word gave how much of an emission: what an explanation is made of.
//!
//! A word's part is its own similarity (MN, NMN, nearest), its part of the log-sum's derivative times the
//! emission (soft), or its share in the prototype: with
//! `c = Σ aₖ·vₖ`, `φ(c) = s·c` and `β(c) = −b·c·c` the emission `a(q)·φ(c) + β(c) + γ(q)` is the sum of
//!
//! ```text
//! partₖ = aₖ·(s·a(q)·vₖ − b·c·vₖ + γ(q))            Σ aₖ = 1
//! ```

use super::references::{Reference, Voice};
use super::similarity::Side;
use super::{EmissionScorer, Group, ScorerKind, Source, SupportVectors, vector_of};
use crate::matrix::{Matrix, dot};

/// A part of an emission.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contribution {
    /// Who gave it.
    pub source: Source,
    /// How much; the parts of an emission sum to it.
    pub score: f32,
}

impl EmissionScorer {
    /// The parts of `emissions[j, tag]`, in the order of the support; they sum to it.
    ///
    /// # Panics
    ///
    /// As [`Self::emissions`]; if `j` or `tag` is out of range.
    #[must_use]
    pub fn contributions(
        self,
        queries: &[Matrix],
        support: SupportVectors,
        j: usize,
        tag: usize,
    ) -> Vec<Contribution> {
        let mean = self.mean_query(queries);
        let groups = self.groups(mean.as_slice(), queries, support);
        let of_group = |group: &Group| -> Vec<Contribution> {
            let query = self.similarity.query(group.query.row(j));
            let ours = group.references.list().iter().filter(|reference| reference.tag == tag);
            ours.flat_map(|reference| self.voices_parts(reference, &query, support)).collect()
        };
        if self.kind == ScorerKind::Soft {
            return self.soft_contributions(&groups, support, (j, tag));
        }
        let parts: Vec<Contribution> = groups.iter().flat_map(of_group).collect();
        if self.kind == ScorerKind::Nearest {
            // `total_cmp` finds the last of equals; reversed, the first wins as in the scorer.
            let nearest = parts.into_iter().rev().max_by(|a, b| a.score.total_cmp(&b.score));
            return nearest.into_iter().collect();
        }
        parts
    }

    /// The emission, cut in the proportion in which the words would move it.
    fn soft_contributions(
        self,
        groups: &[Group],
        support: SupportVectors,
        (j, tag): (usize, usize),
    ) -> Vec<Contribution> {
        let mut emissions = self.blank(groups[0].query.n_rows(), support);
        for group in groups {
            group.references.score_into(group.query, &mut emissions);
        }
        let emission = emissions.row(j)[tag];
        let shares = self.shares(groups, emissions.n_cols());
        let mut parts = Vec::new();
        for (group, shares) in groups.iter().zip(&shares) {
            for (reference, share) in group.references.list().iter().zip(shares.row(j)) {
                if reference.tag == tag {
                    let source = reference.voices[0].source;
                    parts.push(Contribution { source, score: share * emission });
                }
            }
        }
        parts
    }

    /// The parts that the voices of one reference give.
    fn voices_parts(
        self,
        reference: &Reference,
        q: &Side,
        support: SupportVectors,
    ) -> Vec<Contribution> {
        let share = |voice: &Voice| {
            let v = vector_of(voice.source, reference.tag, support);
            let c = reference.centre.as_deref().unwrap_or(v);
            let (stretch, shrink) = self.similarity.factors(c);
            let alike = stretch * dot(&q.vector, v) - shrink * dot(c, v);
            Contribution { source: voice.source, score: voice.weight * (alike + q.offset) }
        };
        reference.voices.iter().map(share).collect()
    }
}
