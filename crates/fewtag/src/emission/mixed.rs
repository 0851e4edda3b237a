//! The mixed scorer: a prototype that attends to the query, and the nearest example words.
//!
//! With `v_k` the vectors of `words(t)` and of the tag's name, `w_k = 1` for a word and `κ` for the name:
//!
//! ```text
//! a_k = w_k·exp(α·q·v_k) / Σ …      c = Σ a_k·v_k        P = sim(q, c)
//! b_k = w_k·exp(β·cos_k) / Σ …      cos_k = cos(q, v_k)  N = Σ b_k·cos_k
//! E   = (1 − g)·P + g·ν·N                                (mixed)
//! E   = (1 − g)·P + g·ν·N + ρ·R     R as in `ridge.rs`   (fitted)
//! ```
//!
//! A plain prototype is the mean of all that a tag means; here the words near the query have the say, so a tag
//! may mean several things, and more examples never blur it. The name counts as `κ` words: alone it is the whole
//! prototype, and it fades as examples come. With `α = 0` that is `(κ·name + Σ words) / (κ + n)`.
//!
//! The nearest words say most when there are few: with `n` examples per label on average, at least one, and the setting `fade`,
//! `g·n^−fade` stands for `g`.
//!
//! `α, β, ν, κ, ρ, λ > 0` and `0 < g < 1` are learned; [`Mix`] holds their logarithms and the logit of `g`.
//! In paired context the query is the mean of its readings, as for prototypes. Where vectors have more than the last layer's row,
//! `P` and `N` look at that alone.
//!
//! A word's part of an emission is `(1 − g)·a_k·(s·a(q)·v_k − b·c·v_k + γ(q)) + g·ν·b_k·cos_k`; the first is its
//! part of a prototype (see `contributions.rs`), and the parts sum to `E`, with those of the regression.

use std::sync::Arc;

use bytemuck::{Pod, Zeroable};
use fewtag_kernels::softmax::weighed_softmax;
use serde::{Deserialize, Serialize};

use super::at_once::Factors;
use super::ridge::{Ridge, RidgeGradients, Siblings, Voices};
use super::similarity::{Side, inverse, norm};
use super::{
    Contribution, EmissionScorer, ScorerKind, Source, SupportVectors, VectorGradients, vector_of,
};
use crate::matrix::{Matrix, add_scaled, dot};

/// What the mixed scorer learns, as numbers without bounds. A gradient is another such set.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[repr(C)]
pub struct Mix {
    /// `ln α`: how narrowly the prototype attends to the query.
    pub attention: f32,
    /// `ln β`: how narrowly the nearest words are chosen.
    pub sharpness: f32,
    /// `ln ν`: what a cosine is worth.
    pub nearness: f32,
    /// The logit of `g`, the share of the nearest words.
    pub gate: f32,
    /// `ln κ`: how many words a name counts for.
    pub name: f32,
    /// `ln ρ`: what the regression is worth.
    pub regression: f32,
    /// `ln λ`: how much it holds back.
    pub ridge: f32,
}

impl Mix {
    /// All zeros: where a gradient starts.
    pub const ZERO: Self = Self {
        attention: 0.0,
        sharpness: 0.0,
        nearness: 0.0,
        gate: 0.0,
        name: 0.0,
        regression: 0.0,
        ridge: 0.0,
    };
}

impl Mix {
    /// The numbers, as an optimiser wants them.
    #[must_use]
    pub fn as_slice(&self) -> &[f32] {
        bytemuck::cast_slice(std::slice::from_ref(self))
    }

    /// The numbers, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        bytemuck::cast_slice_mut(std::slice::from_mut(self))
    }
}

impl Default for Mix {
    /// Where training starts: `α = 0.2`, `β = ν = 20`, `g = 0.3`, `κ = ½`, `ρ = 5`, `λ = 50`.
    fn default() -> Self {
        Self {
            attention: 0.2_f32.ln(),
            sharpness: 20.0_f32.ln(),
            nearness: 20.0_f32.ln(),
            gate: (0.3_f32 / 0.7).ln(),
            name: 0.5_f32.ln(),
            regression: 5.0_f32.ln(),
            ridge: 50.0_f32.ln(),
        }
    }
}

/// The words of one tag, and its name if that speaks too.
#[derive(Debug, Clone)]
pub(super) struct TagWords {
    pub(super) sources: Vec<Source>,
    /// Their last layer's rows, `[m, h]`.
    pub(super) vectors: Matrix,
    /// `1/|v_k|`, `[m]`
    pub(super) inverse_lengths: Vec<f32>,
    /// `ln w_k`, `[m]`
    pub(super) log_weights: Vec<f32>,
}

impl TagWords {
    /// Which of the vectors is the name's.
    pub(super) fn name(&self) -> Option<usize> {
        self.sources.iter().position(|source| *source == Source::LabelName)
    }
}

/// What the support says, tag by tag.
#[derive(Debug, Clone)]
pub(super) struct MixedReferences {
    /// Its `gate` is as faded as the support is large.
    scorer: EmissionScorer,
    /// The derivative of its `gate` by the one that is learned.
    gate_slope: f32,
    tags: Vec<TagWords>,
    /// The other tag of its slot, `[L]`.
    siblings: Vec<Option<usize>>,
    ridge: Option<Ridge>,
    /// The same once more, for many words at once.
    factors: Arc<Factors>,
    /// `h`: so many numbers of a vector are compared.
    width: usize,
}

/// A query word: its vector, its side of the similarity and `1/|q|`.
struct QueryWord<'a> {
    vector: &'a [f32],
    side: Side,
    inverse_length: f32,
}

/// What a query word finds among the words of a tag, in the names of the module comment.
struct Comparison {
    dots: Vec<f32>,
    a: Vec<f32>,
    c: Vec<f32>,
    cosines: Vec<f32>,
    b: Vec<f32>,
    n: f32,
    p: f32,
}

impl MixedReferences {
    pub(super) fn new(learned: EmissionScorer, support: SupportVectors, n_cols: usize) -> Self {
        let n = support.members.n_examples();
        let (mix, gate_slope) = learned.mix.faded(n.powf(-learned.fade));
        let scorer = EmissionScorer { mix, ..learned };
        let width = n_cols / (1 + scorer.n_middle + usize::from(scorer.lexical));
        let names = scorer.label_vectors(support).is_some();
        let of_tag = |(tag, words): (usize, &Vec<super::WordAt>)| {
            let words = words.iter().map(|at| (Source::Word(*at), 0.0));
            let name = names.then_some((Source::LabelName, scorer.mix.name));
            let name = name.filter(|_| support.is_named(tag));
            let (sources, log_weights): (Vec<Source>, Vec<f32>) = words.chain(name).unzip();
            let row = |source: &Source| &vector_of(*source, tag, support)[..width];
            let vectors = Matrix::new(sources.iter().flat_map(row).copied().collect(), width);
            let inverse_lengths = vectors.rows().map(|v| inverse(norm(v))).collect();
            TagWords { sources, vectors, inverse_lengths, log_weights }
        };
        let tags: Vec<TagWords> = support.members.of_tag.iter().enumerate().map(of_tag).collect();
        let is_fitted = scorer.kind == ScorerKind::Fitted;
        let siblings = support.members.siblings.clone();
        let shares = Siblings { of_tag: &siblings, share: scorer.siblings };
        let mut columns = vec![1.0; n_cols];
        columns[width..][..width * scorer.n_middle].fill(1.0 - n.sqrt().recip());
        let voices = Voices { tags: &tags, support };
        let ridge = is_fitted.then(|| Ridge::new(voices, shares, scorer.mix, columns));
        let factors = Arc::new(Factors::new(&tags, ridge.as_ref().map(Ridge::solutions), width));
        Self { scorer, gate_slope, tags, siblings, ridge, factors, width }
    }

    /// The emissions `[n, L]` of a query `[n, d]`.
    pub(super) fn emissions(&self, query: &Matrix) -> Matrix {
        let EmissionScorer { similarity, mix, .. } = self.scorer;
        self.factors.emissions(query, &self.tags, (similarity, mix))
    }

    /// The gradients of the query `[n, d]`, of every support vector and of the learned numbers.
    pub(super) fn backward(
        &self,
        (query, support): (&Matrix, SupportVectors),
        d_emissions: &Matrix,
        gradients: &mut VectorGradients,
    ) -> Matrix {
        let mut d_query = Matrix::zeros(query.n_rows(), query.n_cols());
        let mut d_mix = Mix::ZERO;
        for (t, tag) in self.tags.iter().enumerate() {
            let mut d_vectors = Matrix::zeros(tag.vectors.n_rows(), self.width);
            for (j, row) in query.rows().enumerate() {
                let d = d_emissions.row(j)[t];
                let q = self.query_word(row);
                let Some(found) = self.compare(&q, tag).filter(|_| d != 0.0) else { continue };
                let mut back =
                    Backward { tag, q: &q, found, d_q: &mut d_query.row_mut(j)[..self.width] };
                back.prototype(self.scorer, d, &mut d_vectors, &mut d_mix);
                back.nearest(self.scorer.mix, d, &mut d_vectors, &mut d_mix);
            }
            for (source, d) in tag.sources.iter().zip(d_vectors.rows()) {
                add_scaled(gradients.of(*source, t), 1.0, d);
            }
        }
        d_mix.gate *= self.gate_slope;
        add_scaled(gradients.mix.as_mut_slice(), 1.0, d_mix.as_slice());
        if let Some(ridge) = &self.ridge {
            let voices = Voices { tags: &self.tags, support };
            let both = (query, d_emissions);
            self.regression_backward((ridge, voices), both, &mut d_query, gradients);
        }
        d_query
    }

    /// Through `R`.
    fn regression_backward(
        &self,
        (ridge, voices): (&Ridge, Voices),
        (query, d_emissions): (&Matrix, &Matrix),
        d_query: &mut Matrix,
        gradients: &mut VectorGradients,
    ) {
        let mix = self.scorer.mix;
        let rho = mix.regression.exp();
        let mut d_solution = Matrix::zeros(self.tags.len(), query.n_cols());
        for (j, q) in query.rows().enumerate() {
            for t in (0..self.tags.len()).filter(|t| !self.tags[*t].sources.is_empty()) {
                let d = rho * d_emissions.row(j)[t];
                gradients.mix.regression += d * ridge.score(q, t);
                add_scaled(d_query.row_mut(j), d, ridge.solution(t));
                add_scaled(d_solution.row_mut(t), d, q);
            }
        }
        let siblings = Siblings { of_tag: &self.siblings, share: self.scorer.siblings };
        let RidgeGradients { vectors, ridge, name } =
            ridge.backward(voices, siblings, mix, &d_solution);
        gradients.mix.ridge += ridge;
        gradients.mix.name += name;
        for (t, (tag, d_vectors)) in self.tags.iter().zip(&vectors).enumerate() {
            for (source, d) in tag.sources.iter().zip(d_vectors.rows()) {
                add_scaled(gradients.of(*source, t), 1.0, d);
            }
        }
    }

    /// The parts of an emission of word `row`, in the order of the support, which is the one that this was made of.
    pub(super) fn contributions(
        &self,
        row: &[f32],
        tag: usize,
        support: SupportVectors,
    ) -> Vec<Contribution> {
        let voices = Voices { tags: &self.tags, support };
        let (t, q, tag) = (tag, self.query_word(row), &self.tags[tag]);
        let Some(found) = self.compare(&q, tag) else { return Vec::new() };
        let (gate, nu) = (self.scorer.mix.share(), self.scorer.mix.nearness.exp());
        let (stretch, shrink) = self.scorer.similarity.factors(&found.c);
        let fitted = self.ridge.as_ref().map(|ridge| ridge.parts(row, t, voices));
        let rho = self.scorer.mix.regression.exp();
        let part = |(k, v): (usize, &[f32])| {
            let alike =
                stretch * dot(&q.side.vector, v) - shrink * dot(&found.c, v) + q.side.offset;
            let near = nu * found.b[k] * found.cosines[k];
            let fitted = fitted.as_ref().map_or(0.0, |parts| rho * parts[k]);
            let score = (1.0 - gate) * found.a[k] * alike + gate * near + fitted;
            Contribution { source: tag.sources[k], score }
        };
        let own = tag.vectors.rows().enumerate().map(part).collect();
        self.with_sibling(own, row, t, voices)
    }

    /// The parts of an emission with those that the other tag of its slot gives to the regression.
    fn with_sibling(
        &self,
        own: Vec<Contribution>,
        row: &[f32],
        tag: usize,
        voices: Voices,
    ) -> Vec<Contribution> {
        let share = self.scorer.siblings * self.scorer.mix.regression.exp();
        let sibling = self.siblings[tag].filter(|_| share > 0.0);
        let (Some(ridge), Some(sibling)) = (&self.ridge, sibling) else { return own };
        let sources = &self.tags[sibling].sources;
        let theirs = sources.iter().zip(ridge.parts(row, sibling, voices));
        let theirs =
            theirs.map(|(source, part)| Contribution { source: *source, score: share * part });
        let mut parts: Vec<Contribution> = own.into_iter().chain(theirs).collect();
        parts.sort_by_key(|part| part.source);
        // A word may speak for both, and the name of a label is one.
        parts.dedup_by(|next, first| {
            let same = next.source == first.source;
            first.score += if same { next.score } else { 0.0 };
            same
        });
        parts
    }

    fn query_word<'a>(&self, vector: &'a [f32]) -> QueryWord<'a> {
        let vector = &vector[..self.width];
        let side = self.scorer.similarity.query(vector);
        QueryWord { vector, side, inverse_length: inverse(norm(vector)) }
    }

    /// `None` if nobody speaks for the tag.
    fn compare(&self, q: &QueryWord, tag: &TagWords) -> Option<Comparison> {
        if tag.sources.is_empty() {
            return None;
        }
        let Mix { attention, sharpness, .. } = self.scorer.mix;
        let dots: Vec<f32> = tag.vectors.rows().map(|v| dot(q.vector, v)).collect();
        let inverse_lengths = tag.inverse_lengths.iter();
        let cosines: Vec<f32> =
            dots.iter().zip(inverse_lengths).map(|(d, v)| d * v * q.inverse_length).collect();
        let a = softmax(&dots, attention.exp(), &tag.log_weights);
        let b = softmax(&cosines, sharpness.exp(), &tag.log_weights);
        let mut c = vec![0.0; q.vector.len()];
        // What is left out sums to less than the rounding of the rest.
        let least = 1e-8 / a.len() as f32;
        for (share, v) in a.iter().zip(tag.vectors.rows()).filter(|(share, _)| **share > least) {
            add_scaled(&mut c, *share, v);
        }
        let reference = self.scorer.similarity.reference(&c);
        let p = dot(&q.side.vector, &reference.vector) + reference.offset + q.side.offset;
        let n = dot(&b, &cosines);
        Some(Comparison { dots, a, c, cosines, b, n, p })
    }
}

/// The way back from the emission of one query word and one tag.
struct Backward<'a> {
    tag: &'a TagWords,
    q: &'a QueryWord<'a>,
    found: Comparison,
    d_q: &'a mut [f32],
}

impl Backward<'_> {
    /// Through `P`: the similarity, the centre, the attention.
    fn prototype(
        &mut self,
        scorer: EmissionScorer,
        d: f32,
        d_vectors: &mut Matrix,
        d_mix: &mut Mix,
    ) {
        let Self { tag, q, found, d_q } = self;
        let EmissionScorer { similarity, mix, .. } = scorer;
        let (gate, alpha) = (mix.share(), mix.attention.exp());
        d_mix.gate -= d * gate * (1.0 - gate) * found.p;
        let d = d * (1.0 - gate);

        let scaled = |v: &[f32]| v.iter().map(|x| d * x).collect();
        let reference = similarity.reference(&found.c);
        let d_side = Side { vector: scaled(&reference.vector), offset: d };
        add_scaled(d_q, 1.0, &similarity.query_backward(q.vector, &d_side));
        let d_reference = Side { vector: scaled(&q.side.vector), offset: d };
        let d_c = similarity.reference_backward(&found.c, &d_reference);

        let d_a: Vec<f32> = tag.vectors.rows().map(|v| dot(&d_c, v)).collect();
        let mean = dot(&found.a, &d_a);
        for (k, v) in tag.vectors.rows().enumerate() {
            let d_logit = found.a[k] * (d_a[k] - mean);
            d_mix.attention += alpha * d_logit * found.dots[k];
            if tag.sources[k] == Source::LabelName {
                d_mix.name += d_logit;
            }
            add_scaled(d_q, alpha * d_logit, v);
            let d_v = d_vectors.row_mut(k);
            add_scaled(d_v, found.a[k], &d_c);
            add_scaled(d_v, alpha * d_logit, q.vector);
        }
    }

    /// Through `N`: the cosines and who is near.
    fn nearest(&mut self, mix: Mix, d: f32, d_vectors: &mut Matrix, d_mix: &mut Mix) {
        let Self { tag, q, found, d_q } = self;
        let (gate, beta, nu) = (mix.share(), mix.sharpness.exp(), mix.nearness.exp());
        d_mix.gate += d * gate * (1.0 - gate) * nu * found.n;
        d_mix.nearness += d * gate * nu * found.n;
        let d = d * gate * nu;
        for (k, v) in tag.vectors.rows().enumerate() {
            let (cosine, inverse_length) = (found.cosines[k], tag.inverse_lengths[k]);
            let d_logit = d * found.b[k] * (cosine - found.n);
            d_mix.sharpness += beta * d_logit * cosine;
            if tag.sources[k] == Source::LabelName {
                d_mix.name += d_logit;
            }
            // cos = q·v/|q||v|: across the one, along the other.
            let d_cosine = d * found.b[k] + beta * d_logit;
            let lengths = inverse_length * q.inverse_length;
            add_scaled(d_q, d_cosine * lengths, v);
            add_scaled(d_q, -d_cosine * cosine * q.inverse_length.powi(2), q.vector);
            let d_v = d_vectors.row_mut(k);
            add_scaled(d_v, d_cosine * lengths, q.vector);
            add_scaled(d_v, -d_cosine * cosine * inverse_length.powi(2), v);
        }
    }
}

impl Mix {
    /// `g`.
    fn share(self) -> f32 {
        1.0 / (1.0 + (-self.gate).exp())
    }

    /// With `g` times `factor`, which is at most 1, and the derivative of its `gate` by this one.
    fn faded(self, factor: f32) -> (Self, f32) {
        if factor >= 1.0 {
            return (self, 1.0);
        }
        let g = self.share();
        let faded = g * factor;
        (Self { gate: (faded / (1.0 - faded)).ln(), ..self }, (1.0 - g) / (1.0 - faded))
    }

    /// `E` without the regression.
    pub(super) fn score(self, p: f32, n: f32) -> f32 {
        let gate = self.share();
        (1.0 - gate) * p + gate * self.nearness.exp() * n
    }
}

fn softmax(x: &[f32], factor: f32, shifts: &[f32]) -> Vec<f32> {
    let mut shares = vec![0.0; x.len()];
    weighed_softmax(x, factor, shifts, &mut shares);
    shares
}
