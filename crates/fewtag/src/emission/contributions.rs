//! Which support word gave how much of an emission: what an explanation is made of.
//!
//! A word's part is its own similarity (MN, NMN, nearest), its part of the log-sum's derivative times the
//! emission (soft), or its share in the prototype: with
//! `c = Σ aₖ·vₖ`, `φ(c) = s·c` and `β(c) = −b·c·c` the emission `a(q)·φ(c) + β(c) + γ(q)` is the sum of
//!
//! ```text
//! partₖ = aₖ·(s·a(q)·vₖ − b·c·vₖ + γ(q))            Σ aₖ = 1
//! ```

use super::references::{Reference, Voice, log_add_exp};
use super::similarity::Side;
use super::{EmissionScorer, Group, ScorerKind, Source, SupportVectors, vector_of};
use crate::matrix::dot;

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
    /// It costs as much as the tag has voices: `groups` was made before, once for all words and tags.
    ///
    /// # Panics
    ///
    /// If `j` or `tag` is out of range, or `groups` was made from another support.
    pub(crate) fn contributions(
        self,
        groups: &[Group],
        support: SupportVectors,
        j: usize,
        tag: usize,
    ) -> Vec<Contribution> {
        if let [Group { query, references }] = groups
            && let Some(mixed) = references.as_mixed()
        {
            return mixed.contributions(query.row(j), tag, support);
        }
        let of_group = |group: &Group| -> Vec<Contribution> {
            let ours = group.references.sums().of_tag(tag);
            if ours.is_empty() {
                return Vec::new();
            }
            let query = self.similarity.query(group.query.row(j));
            if self.kind == ScorerKind::Soft {
                return ours.iter().map(|reference| whole(reference, &query)).collect();
            }
            ours.iter()
                .flat_map(|reference| self.voices_parts(reference, &query, support))
                .collect()
        };
        let parts: Vec<Contribution> = groups.iter().flat_map(of_group).collect();
        match self.kind {
            // `total_cmp` finds the last of equals; reversed, the first wins as in the scorer.
            ScorerKind::Nearest => {
                let nearest = parts.into_iter().rev().max_by(|a, b| a.score.total_cmp(&b.score));
                nearest.into_iter().collect()
            }
            ScorerKind::Soft => softly(parts),
            _ => parts,
        }
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

/// What the only voice of a reference says.
fn whole(reference: &Reference, query: &Side) -> Contribution {
    Contribution { source: reference.voices[0].source, score: reference.score(query) }
}

/// The log-sum of all scores, cut in the proportion in which they would move it.
fn softly(scores: Vec<Contribution>) -> Vec<Contribution> {
    let all = scores.iter().map(|part| part.score);
    let emission = all.fold(f32::NEG_INFINITY, log_add_exp);
    let share = |part: Contribution| {
        let score = (part.score - emission).exp() * emission;
        Contribution { score, ..part }
    };
    scores.into_iter().map(share).collect()
}
