//! The emission scorer: how well each query word fits each tag, by its likeness to support words.
//!
//! With `Qᵢ [n, d]` the query as read beside support sentence `i`, `Kᵢ [mᵢ, d]` that sentence, and
//! `words(t)` the support words tagged `t`:
//!
//! ```text
//! MN         E[j, t] = Σ_{(i,k) ∈ words(t)} sim(Qᵢ[j], Kᵢ[k])
//! NMN        E[j, t] = MN / |words(t)|
//! prototype  E[j, t] = sim(q̄ⱼ, c_t),   q̄ⱼ = mean over i of Qᵢ[j]
//!            c_t = (1 − w)·mean of words(t) + w·label name of t          (w = 0: no label names)
//! nearest    E[j, t] = max_{(i,k) ∈ words(t)} sim(Qᵢ[j], Kᵢ[k])
//! soft       E[j, t] = log mean_{(i,k) ∈ words(t)} exp sim(Qᵢ[j], Kᵢ[k])
//! mixed      a prototype that attends to the query and the nearest words, mixed by a gate: see `mixed.rs`
//! fitted     mixed, and a regression that is fitted to the support in closed form, which may also see each word by
//!            itself: see `ridge.rs`
//! ```
//!
//! In separate context there is one `Q` for all `i`, and all but the query is known beforehand: see
//! [`EmissionScorer::references`]. A tag that no support word speaks for is impossible: `-inf`.
//! Every scorer has an exact gradient ([`EmissionScorer::backward`]) and tells which support word
//! gave how much ([`Contribution`]).
//!
//! Sources: section "Emission Scorer" of the paper; label names, Hou et al. (2020, L-TapNet);
//! nearest, SimBERT (the paper) and `StructShot` (Yang and Katiyar, 2020); mixed and fitted are ours.

mod at_once;
mod backward;
mod contributions;
mod mixed;
mod references;
mod ridge;
mod similarity;

pub use backward::VectorGradients;
pub use contributions::Contribution;
pub use mixed::Mix;
pub use references::References;
pub use similarity::Similarity;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::domain::{Sentence, SupportSet};
use crate::matrix::{Matrix, add_scaled};
use crate::tag::{Tag, TagSet};
use mixed::MixedReferences;
use references::{Fold, Reference, Sums, Voice};
use similarity::Side;

/// How the words of a tag are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScorerKind {
    /// Matching network: the sum over the tag's words.
    Mn,
    /// Normalised matching network: the mean over the tag's words, the paper's default.
    #[default]
    Nmn,
    /// The likeness to the mean of the tag's words.
    Prototype,
    /// The likeness to the nearest of the tag's words.
    Nearest,
    /// Between the mean and the nearest: the likelier a word, the more it counts. A tag may mean several things.
    Soft,
    /// A prototype that attends to the query, and the nearest words, by learned scales.
    Mixed,
    /// [`ScorerKind::Mixed`], and a regression that is fitted to the support in closed form.
    Fitted,
}

impl ScorerKind {
    /// Whether a prototype that attends to the query has a part in it.
    pub(crate) fn is_mixed(self) -> bool {
        matches!(self, Self::Mixed | Self::Fitted)
    }

    /// Whether the name of a tag can speak for it.
    pub(crate) fn takes_names(self) -> bool {
        self == Self::Prototype || self.is_mixed()
    }
}

/// Turns word vectors into emissions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EmissionScorer {
    /// How the words of a tag are put together.
    pub kind: ScorerKind,
    /// How two vectors are compared.
    pub similarity: Similarity,
    /// The share `w` of the label name in a prototype, 0 to 1; read by [`ScorerKind::Prototype`], and whether it
    /// is above 0 by [`ScorerKind::Mixed`] and [`ScorerKind::Fitted`].
    pub label_names: f32,
    /// Whether every vector ends in the word by itself, which only the regression of [`ScorerKind::Fitted`] looks at.
    pub lexical: bool,
    /// So many rows of middle layers stand between the last layer's row and the word by itself, for the same regression.
    pub n_middle: usize,
    /// What the words of `B` say in that regression for `I` of their slot, and the other way round, 0 to 1.
    pub siblings: f32,
    /// How fast the nearest words give way as examples come: by `n^−fade` with `n` examples per label.
    pub fade: f32,
    /// What [`ScorerKind::Mixed`] and [`ScorerKind::Fitted`] have learned.
    pub mix: Mix,
}

/// A word of the support set; they are ordered as they stand in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WordAt {
    /// Which support sentence.
    pub sentence: usize,
    /// Which of its words.
    pub word: usize,
}

/// The support words that speak for each tag: `[L]` lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Members {
    of_tag: Vec<Vec<WordAt>>,
    /// Whether the tag's name may speak for it, `[L]`.
    named: Vec<bool>,
    /// The other tag of its slot, `[L]`.
    siblings: Vec<Option<usize>>,
    /// The number of words of `B` tags, and of slots.
    n_begins: usize,
    n_slots: usize,
}

impl Members {
    /// The words of `support` by their tags. A tag of `tags` that no word wears stays empty, except
    /// that an `I` is given the words of its `B`: a tag set holds such an `I` only if it may borrow.
    ///
    /// # Panics
    ///
    /// If `tags` lacks a tag of `support`.
    #[must_use]
    pub fn new(support: &SupportSet, tags: &TagSet) -> Self {
        Self::of(support.sentences().iter().enumerate(), support, tags)
    }

    /// The same for some sentences, each with its number; `support` says which labels have a name.
    pub(crate) fn of<'a>(
        sentences: impl IntoIterator<Item = (usize, &'a Sentence)>,
        support: &SupportSet,
        tags: &TagSet,
    ) -> Self {
        let mut of_tag = vec![Vec::new(); tags.n_tags()];
        for (sentence, labelled) in sentences {
            for (word, tag) in labelled.tags().enumerate() {
                let t = tags.index_of(tag).expect("the tag set covers the support");
                of_tag[t].push(WordAt { sentence, word });
            }
        }
        for (t, tag) in tags.tags().iter().enumerate() {
            if let Tag::I(slot) = tag
                && of_tag[t].is_empty()
                && let Some(begin) = tags.index_of(&Tag::B(slot.clone()))
            {
                let borrowed = of_tag[begin].clone();
                of_tag[t] = borrowed;
            }
        }
        let begins = tags.tags().iter().zip(&of_tag).filter(|(tag, _)| matches!(tag, Tag::B(_)));
        let (n_begins, n_slots) =
            begins.fold((0, 0), |(words, slots), (_, of_tag)| (words + of_tag.len(), slots + 1));
        let named = tags.tags().iter().map(|tag| support.name_words(tag).is_some()).collect();
        let sibling = |tag: &Tag| match tag {
            Tag::O => None,
            Tag::B(slot) => tags.index_of(&Tag::I(slot.clone())),
            Tag::I(slot) => tags.index_of(&Tag::B(slot.clone())),
        };
        let siblings = tags.tags().iter().map(sibling).collect();
        Self { of_tag, named, siblings, n_begins, n_slots }
    }

    /// `n`: how many examples a label has on average, and at least one.
    fn n_examples(&self) -> f32 {
        (self.n_begins as f32 / self.n_slots.max(1) as f32).max(1.0)
    }
}

/// The vectors of a support set.
#[derive(Debug, Clone, Copy)]
pub struct SupportVectors<'a> {
    /// One `Kᵢ [mᵢ, d]` per support sentence.
    pub words: &'a [Matrix],
    /// Which word speaks for which tag.
    pub members: &'a Members,
    /// One row per tag, `[L, d]`; needed if the scorer mixes label names in.
    pub label_names: Option<&'a Matrix>,
}

impl SupportVectors<'_> {
    /// Whether the tag's name may speak for it.
    fn is_named(self, tag: usize) -> bool {
        self.members.named[tag]
    }
}

/// Who gave a part of an emission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// A support word.
    Word(WordAt),
    /// The name of the tag.
    LabelName,
}

/// References with the query that they are compared with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group<'a> {
    pub(crate) query: &'a Matrix,
    pub(crate) references: &'a References,
}

/// What the queries of a sentence are compared with: to make it goes over the whole support, to use it does not.
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    /// What is compared instead of the queries, if it is their mean.
    mean: Option<Matrix>,
    /// Of the whole support for one query, else of each sentence for its own.
    references: Vec<Arc<References>>,
}

impl Comparison {
    /// Which references meet which query; `queries` are those that this was made for.
    pub(crate) fn groups<'a>(&'a self, queries: &'a [Matrix]) -> Vec<Group<'a>> {
        let queries = if self.mean.is_some() { self.mean.as_slice() } else { queries };
        let pairs = queries.iter().zip(&self.references);
        pairs.map(|(query, references)| Group { query, references }).collect()
    }
}

impl EmissionScorer {
    /// The emissions `[n, L]` of a query.
    ///
    /// `queries` is one `[n, d]` in separate context, one per support sentence in paired context.
    ///
    /// # Panics
    ///
    /// If the number of queries is neither, or label names are to be mixed in and missing.
    #[must_use]
    pub fn emissions(self, queries: &[Matrix], support: SupportVectors) -> Matrix {
        self.emissions_by(&self.comparison(queries, support), queries, support)
    }

    /// The same by a comparison that was made before.
    pub(crate) fn emissions_by(
        self,
        comparison: &Comparison,
        queries: &[Matrix],
        support: SupportVectors,
    ) -> Matrix {
        let groups = comparison.groups(queries);
        if let Some(mixed) = groups[0].references.as_mixed() {
            return mixed.emissions(groups[0].query);
        }
        let mut emissions = self.blank(queries[0].n_rows(), support);
        for group in groups {
            group.references.sums().score_into(group.query, &mut emissions);
        }
        emissions
    }

    /// What the support says in separate context about vectors of this width, to be used for any number of queries.
    ///
    /// # Panics
    ///
    /// If label names are to be mixed in and missing.
    #[must_use]
    pub fn references(self, support: SupportVectors, width: usize) -> References {
        match self.kind {
            kind if kind.is_mixed() => {
                References::of_mixed(MixedReferences::new(self, support, width))
            }
            _ => References::of_sums(self.references_where(support, |_| true)),
        }
    }

    /// For prototypes the mean of the queries, which is what they are compared with.
    fn mean_query(self, queries: &[Matrix]) -> Option<Matrix> {
        self.kind.takes_names().then(|| {
            let mut mean = Matrix::zeros(queries[0].n_rows(), queries[0].n_cols());
            for query in queries {
                add_scaled(mean.values_mut(), 1.0 / queries.len() as f32, query.values());
            }
            mean
        })
    }

    /// What the one query of separate context is compared with, where the references are known.
    pub(crate) fn comparison_with(
        self,
        queries: &[Matrix],
        references: Arc<References>,
    ) -> Comparison {
        Comparison { mean: self.mean_query(queries), references: vec![references] }
    }

    /// What `queries` are compared with: all references with the one query, or each sentence's with its own.
    pub(crate) fn comparison(self, queries: &[Matrix], support: SupportVectors) -> Comparison {
        let mean = self.mean_query(queries);
        if mean.is_some() || queries.len() == 1 {
            let references = self.references(support, queries[0].n_cols());
            return Comparison { mean, references: vec![Arc::new(references)] };
        }
        assert_eq!(queries.len(), support.words.len(), "one query per support sentence");
        let of_sentence = |i| {
            let sums = self.references_where(support, move |at: WordAt| at.sentence == i);
            Arc::new(References::of_sums(sums))
        };
        Comparison { mean, references: (0..queries.len()).map(of_sentence).collect() }
    }

    fn references_where(self, support: SupportVectors, wanted: impl Fn(WordAt) -> bool) -> Sums {
        let mut list = Vec::new();
        for (tag, words) in support.members.of_tag.iter().enumerate() {
            let voices: Vec<Voice> = self.voices(words, support.is_named(tag), &wanted);
            match self.kind {
                _ if voices.is_empty() => {}
                ScorerKind::Nearest => list.extend(
                    voices.into_iter().map(|voice| self.reference(tag, vec![voice], support)),
                ),
                ScorerKind::Soft => list.extend(voices.into_iter().map(|voice| {
                    let mut reference = self.reference(tag, vec![voice], support);
                    reference.side.offset -= (words.len() as f32).ln();
                    reference
                })),
                _ => list.push(self.reference(tag, voices, support)),
            }
        }
        let fold = match self.kind {
            ScorerKind::Nearest => Fold::Max,
            ScorerKind::Soft => Fold::LogSumExp,
            _ => Fold::Sum,
        };
        Sums::new(self.similarity, support.members.of_tag.len(), list, fold)
    }

    /// Who speaks for a tag, and with which weight.
    fn voices(
        self,
        words: &[WordAt],
        is_named: bool,
        wanted: &impl Fn(WordAt) -> bool,
    ) -> Vec<Voice> {
        let names = if is_named { self.label_share() } else { 0.0 };
        let weight = match self.kind {
            ScorerKind::Nmn => 1.0 / words.len() as f32,
            ScorerKind::Prototype => (1.0 - names) / words.len() as f32,
            _ => 1.0,
        };
        let spoken = words.iter().copied().filter(|at| wanted(*at));
        let mut voices: Vec<Voice> =
            spoken.map(|at| Voice { source: Source::Word(at), weight }).collect();
        if names > 0.0 {
            // A tag without words has its name alone.
            let weight = if words.is_empty() { 1.0 } else { names };
            voices.push(Voice { source: Source::LabelName, weight });
        }
        voices
    }

    fn reference(self, tag: usize, voices: Vec<Voice>, support: SupportVectors) -> Reference {
        let vector = |voice: &Voice| vector_of(voice.source, tag, support);
        let width = vector(&voices[0]).len();
        let weight = voices.iter().map(|voice| voice.weight).sum();
        if self.kind == ScorerKind::Prototype {
            let mut centre = vec![0.0; width];
            for voice in &voices {
                add_scaled(&mut centre, voice.weight, vector(voice));
            }
            let side = self.similarity.reference(&centre);
            return Reference { tag, voices, centre: Some(centre), side, weight };
        }
        let mut side = Side::zero(width);
        for voice in &voices {
            side.add(voice.weight, &self.similarity.reference(vector(voice)));
        }
        Reference { tag, voices, centre: None, side, weight }
    }

    /// The share of label names: 0 for scorers without prototypes.
    fn label_share(self) -> f32 {
        if self.kind.takes_names() { self.label_names } else { 0.0 }
    }

    fn label_vectors(self, support: SupportVectors<'_>) -> Option<&Matrix> {
        support.label_names.filter(|_| self.label_share() > 0.0)
    }

    /// Emissions before any reference has spoken.
    fn blank(self, n_words: usize, support: SupportVectors) -> Matrix {
        let Members { of_tag, named, .. } = support.members;
        let start = |(words, named): (&Vec<WordAt>, &bool)| {
            let picked = matches!(self.kind, ScorerKind::Nearest | ScorerKind::Soft);
            let spoken = !words.is_empty() || (*named && self.label_share() > 0.0);
            if picked || !spoken { f32::NEG_INFINITY } else { 0.0 }
        };
        let row: Vec<f32> = of_tag.iter().zip(named).map(start).collect();
        Matrix::new(row.repeat(n_words), row.len())
    }
}

fn vector_of(source: Source, tag: usize, support: SupportVectors<'_>) -> &[f32] {
    match source {
        Source::Word(at) => support.words[at.sentence].row(at.word),
        Source::LabelName => {
            support.label_names.expect("label names are embedded when mixed in").row(tag)
        }
    }
}

#[cfg(test)]
mod tests;
