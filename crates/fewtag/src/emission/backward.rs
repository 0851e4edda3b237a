//! The exact gradients of the emissions in every query, support and label-name vector.
//!
//! They run the scorer's steps in reverse: emissions `[n, L]` → each reference's `φ`, `β` and the
//! query's `a`, `γ` → the vectors that these were made of.

use super::references::Reference;
use super::similarity::Side;
use super::{EmissionScorer, Group, ScorerKind, Source, SupportVectors, vector_of};
use crate::matrix::{Matrix, add_scaled};

/// What a gradient of emissions becomes.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorGradients {
    /// Like the queries: one `[n, d]` in separate, one per support sentence in paired context.
    pub queries: Vec<Matrix>,
    /// One `[mᵢ, d]` per support sentence.
    pub words: Vec<Matrix>,
    /// `[L, d]`, if label names were mixed in.
    pub label_names: Option<Matrix>,
}

/// A group and one of its references.
type Winner = Option<(usize, usize)>;

impl EmissionScorer {
    /// The gradients of all vectors from that of the emissions, `[n, L]`.
    ///
    /// # Panics
    ///
    /// As [`Self::emissions`].
    #[must_use]
    pub fn backward(
        self,
        queries: &[Matrix],
        support: SupportVectors,
        d_emissions: &Matrix,
    ) -> VectorGradients {
        let zeros = |like: &Matrix| Matrix::zeros(like.n_rows(), like.n_cols());
        let mut gradients = VectorGradients {
            queries: queries.iter().map(zeros).collect(),
            words: support.words.iter().map(zeros).collect(),
            label_names: self.label_vectors(support).map(zeros),
        };
        let mean = self.mean_query(queries);
        let groups = self.groups(mean.as_slice(), queries, support);
        let winners = self.winners(&groups, d_emissions);
        for (g, group) in groups.iter().enumerate() {
            let owns = |j: usize, r: usize, tag: usize| {
                winners.as_ref().is_none_or(|w| w[j * d_emissions.n_cols() + tag] == Some((g, r)))
            };
            let (d_query, d_references) = group.references.backward(group.query, d_emissions, owns);
            self.add_query_gradient(&mut gradients.queries, g, &d_query);
            for (reference, d) in group.references.list().iter().zip(&d_references) {
                self.add_reference_gradient(&mut gradients, support, reference, d);
            }
        }
        gradients
    }

    /// For `nearest`: which reference of which group gave each emission, `[n, L]`, the first of equals.
    fn winners(self, groups: &[Group], d_emissions: &Matrix) -> Option<Vec<Winner>> {
        (self.kind == ScorerKind::Nearest).then(|| {
            let n_tags = d_emissions.n_cols();
            let mut winners = vec![None; d_emissions.n_rows() * n_tags];
            let mut best = vec![f32::NEG_INFINITY; winners.len()];
            for (g, group) in groups.iter().enumerate() {
                for (j, row) in group.query.rows().enumerate() {
                    let query = self.similarity.query(row);
                    for (r, reference) in group.references.list().iter().enumerate() {
                        let (at, score) = (j * n_tags + reference.tag, reference.score(&query));
                        if score > best[at] {
                            (best[at], winners[at]) = (score, Some((g, r)));
                        }
                    }
                }
            }
            winners
        })
    }

    fn add_query_gradient(self, queries: &mut [Matrix], group: usize, gradient: &Matrix) {
        if self.kind == ScorerKind::Prototype {
            let share = 1.0 / queries.len() as f32;
            for query in queries {
                add_scaled(query.values_mut(), share, gradient.values());
            }
        } else {
            add_scaled(queries[group].values_mut(), 1.0, gradient.values());
        }
    }

    fn add_reference_gradient(
        self,
        gradients: &mut VectorGradients,
        support: SupportVectors,
        reference: &Reference,
        gradient: &Side,
    ) {
        let centre = reference.centre.as_ref();
        let d_centre = centre.map(|c| self.similarity.reference_backward(c, gradient));
        for voice in &reference.voices {
            let v = vector_of(voice.source, reference.tag, support);
            let own = || self.similarity.reference_backward(v, gradient);
            let d = d_centre.clone().unwrap_or_else(own);
            let row = match voice.source {
                Source::Word(at) => gradients.words[at.sentence].row_mut(at.word),
                Source::LabelName => {
                    let names = gradients.label_names.as_mut();
                    names.expect("label names have a gradient").row_mut(reference.tag)
                }
            };
            add_scaled(row, voice.weight, &d);
        }
    }
}
