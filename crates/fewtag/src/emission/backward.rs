//! The exact gradients of the emissions in every query, support and label-name vector.
//!
//! They run the scorer's steps in reverse: emissions `[n, L]` → each reference's `φ`, `β` and the
//! query's `a`, `γ` → the vectors that these were made of.

use super::references::Reference;
use super::similarity::Side;
use super::{
    Comparison, EmissionScorer, Group, Mix, ScorerKind, Source, SupportVectors, vector_of,
};
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
    /// The learned numbers of the mixed scorer; zero for others.
    pub mix: Mix,
}

impl VectorGradients {
    /// The gradient of the vector that stands for `source` and speaks for `tag`.
    pub(super) fn of(&mut self, source: Source, tag: usize) -> &mut [f32] {
        match source {
            Source::Word(at) => self.words[at.sentence].row_mut(at.word),
            Source::LabelName => {
                self.label_names.as_mut().expect("label names have a gradient").row_mut(tag)
            }
        }
    }
}

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
        self.backward_by(&self.comparison(queries, support), queries, support, d_emissions)
    }

    /// The same by a comparison that was made before.
    pub(crate) fn backward_by(
        self,
        comparison: &Comparison,
        queries: &[Matrix],
        support: SupportVectors,
        d_emissions: &Matrix,
    ) -> VectorGradients {
        let zeros = |like: &Matrix| Matrix::zeros(like.n_rows(), like.n_cols());
        let mut gradients = VectorGradients {
            queries: queries.iter().map(zeros).collect(),
            words: support.words.iter().map(zeros).collect(),
            label_names: self.label_vectors(support).map(zeros),
            mix: Mix::ZERO,
        };
        let groups = comparison.groups(queries);
        if let Some(mixed) = groups[0].references.as_mixed() {
            let d_query = mixed.backward((groups[0].query, support), d_emissions, &mut gradients);
            self.add_query_gradient(&mut gradients.queries, 0, &d_query);
            return gradients;
        }
        let shares = self.shares(&groups, d_emissions.n_cols());
        for (g, group) in groups.iter().enumerate() {
            let share = |j: usize, r: usize| shares.get(g).map_or(1.0, |share| share.row(j)[r]);
            let (d_query, d_references) =
                group.references.sums().backward(group.query, d_emissions, share);
            self.add_query_gradient(&mut gradients.queries, g, &d_query);
            for (reference, d) in group.references.sums().list().iter().zip(&d_references) {
                self.add_reference_gradient(&mut gradients, support, reference, d);
            }
        }
        gradients
    }

    /// How much of each reference's score is in the emission of its tag, `[n, n_references]` per group: the
    /// derivative of a maximum (1 for the first of the greatest) or of a log-sum (its part in the sum).
    /// Nothing for scorers that sum: there it is 1.
    fn shares(self, groups: &[Group], n_tags: usize) -> Vec<Matrix> {
        if !matches!(self.kind, ScorerKind::Nearest | ScorerKind::Soft) {
            return Vec::new();
        }
        let n_words = groups[0].query.n_rows();
        let mut emissions = Matrix::new(vec![f32::NEG_INFINITY; n_words * n_tags], n_tags);
        for group in groups {
            group.references.sums().score_into(group.query, &mut emissions);
        }
        let mut open = vec![true; n_words * n_tags]; // Nobody was found to be the nearest yet.
        let mut of_group = |group: &Group| {
            let list = group.references.sums().list();
            let mut shares = Matrix::zeros(n_words, list.len().max(1));
            for (j, row) in group.query.rows().enumerate() {
                let query = self.similarity.query(row);
                for (reference, share) in list.iter().zip(shares.row_mut(j)) {
                    let below = reference.score(&query) - emissions.row(j)[reference.tag];
                    *share = match self.kind {
                        ScorerKind::Soft => below.exp(),
                        _ if below < 0.0 => 0.0,
                        _ if std::mem::take(&mut open[j * n_tags + reference.tag]) => 1.0,
                        _ => 0.0,
                    };
                }
            }
            shares
        };
        groups.iter().map(&mut of_group).collect()
    }

    fn add_query_gradient(self, queries: &mut [Matrix], group: usize, gradient: &Matrix) {
        if self.kind.takes_names() {
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
            add_scaled(gradients.of(voice.source, reference.tag), voice.weight, &d);
        }
    }
}
