//! The loss of a batch and its gradient in every weight.
//!
//! ```text
//! sequences ─ encoder ─▶ Q, K, names ─ scorer ─▶ E ─ λ, transitions, CRF ─▶ mean over queries of log Z − s(gold)
//! ```
//!
//! All sequences of a batch run through the encoder together; in separate context a support sentence is read
//! once for all queries of its episode, and its gradients are summed. So are those of sentences that episodes share. Without transitions the same CRF with a
//! table of zeros is the softmax of every word by itself, summed over the words.

use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::batches::Batch;
use super::optimizer;
use super::trainee::Trainee;
use crate::domain::{Episode, Sentence};
use crate::emission::{
    Comparison, EmissionScorer, Members, References, SupportVectors, VectorGradients,
};
use crate::encoder::{BertConfig, Dropout, Gradients};
use crate::error::Result;
use crate::head::Head;
use crate::matrix::{Matrix, add_scaled};
use crate::reading::{self, Once, Plan, PlannedSupport, Sequence};
use crate::settings::Context;
use crate::tag::{TagClass, TagSet};
use crate::tagger::Tagger;

/// The gradient of a batch's loss.
#[derive(Debug)]
pub(super) struct ModelGradients {
    pub encoder: Gradients,
    pub head: Head,
}

impl ModelGradients {
    pub(super) fn zeros(config: &BertConfig) -> Self {
        Self { encoder: Gradients::zeros(config), head: Head::ZERO }
    }

    /// The norms of the encoder's and of the head's part.
    pub(super) fn norms(&self) -> [f64; 2] {
        let head = optimizer::squared_norm(self.head.as_slice());
        [optimizer::squared_gradient_norm(&self.encoder).sqrt(), head.sqrt()]
    }

    pub(super) fn clear(&mut self) {
        self.encoder.clear();
        self.head = Head::ZERO;
    }
}

/// How a batch is run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pass {
    pub dropout: Option<Dropout>,
    /// Bytes for activations.
    pub budget: usize,
}

/// What a batch cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BatchLoss {
    /// The mean over the queries.
    pub loss: f64,
    /// How many pieces the encoder read.
    pub n_pieces: usize,
}

/// Adds the gradient of the batch's mean loss to `gradients`.
pub(super) fn backward(
    model: &Trainee,
    batch: &Batch,
    pass: Pass,
    gradients: &mut ModelGradients,
) -> Result<BatchLoss> {
    let (tagger, mut plan) = (model.tagger(), Plan::default());
    let episodes = batch
        .episodes
        .iter()
        .map(|episode| PlannedEpisode::new(&tagger, episode, batch.names, &mut plan))
        .collect::<Result<Vec<_>>>()?;
    let engine = model.engine();
    let once = batch.overlap.then(|| Once::of(plan.sequences()));
    let sequences = once.as_ref().map_or(plan.sequences(), Once::sequences);
    let (rows, tape) = reading::embed_for_training(engine, sequences, pass.dropout, pass.budget)?;
    let rows = match &once {
        Some(once) => once.spread(&rows),
        None => rows,
    };
    let mut d_rows: Vec<Matrix> =
        rows.iter().map(|one| Matrix::zeros(one.n_rows(), one.n_cols())).collect();
    let n_queries: usize = batch.episodes.iter().map(|episode| episode.queries.len()).sum();
    let share = 1.0 / n_queries as f32;
    // What is compared with is made once an episode, where all its queries share it.
    let references: Vec<Option<Arc<References>>> =
        episodes.par_iter().map(|episode| episode.references(&rows, &tagger)).collect();
    let references = episodes.iter().zip(&references);
    let queries: Vec<_> = references
        .flat_map(|(it, shared)| (0..it.queries.len()).map(move |q| (it, q, shared)))
        .collect();
    let judge = |&(episode, q, shared): &(&PlannedEpisode, usize, &Option<Arc<References>>)| {
        episode.judge(q, &rows, (&tagger, shared.clone()), share)
    };
    let judged: Vec<QueryLoss> = queries.par_iter().map(judge).collect();
    let mut loss = 0.0;
    // In order, so that sums do not depend on who was ready first.
    for ((episode, q, _), judged) in queries.iter().zip(&judged) {
        loss += judged.loss;
        add_scaled(gradients.head.as_mut_slice(), 1.0, judged.head.as_slice());
        episode.add(*q, &judged.vectors, &mut d_rows);
    }
    if let Some(once) = &once {
        d_rows = once.gathered(&d_rows);
    }
    tape.backward(engine, &d_rows, &mut gradients.encoder);
    let n_pieces = sequences.iter().map(Sequence::n_pieces).sum();
    Ok(BatchLoss { loss, n_pieces })
}

/// Where the vectors of an episode lie among those of its batch.
struct PlannedEpisode<'a> {
    queries: &'a [Sentence],
    tags: TagSet,
    members: Members,
    support: PlannedSupport,
    of_query: Vec<Range<usize>>,
    /// One per tag, or none.
    names: Range<usize>,
}

impl<'a> PlannedEpisode<'a> {
    /// Adds an episode to a plan: support, queries, names, in this order, in which gradients are summed.
    fn new(tagger: &Tagger, episode: &'a Episode, names: bool, plan: &mut Plan) -> Result<Self> {
        let Episode { domain, support, queries, .. } = episode;
        let what = || format!("a training sentence of domain `{domain}`");
        let tags = tagger.settings().tag_set(support);
        let members = Members::new(support, &tags);
        let sentences = plan.support(tagger, support, |_| what())?;
        let of_query = queries
            .iter()
            .map(|query| plan.whole_query(tagger, query, &sentences.beside, what))
            .collect::<Result<_>>()?;
        let names = if names { plan.names(tagger, support, &tags)? } else { 0..0 };
        Ok(Self { queries, tags, members, support: sentences, of_query, names })
    }

    /// What the queries are compared with, if it is the same for all of them: in separate context.
    fn references(&self, rows: &[Matrix], tagger: &Tagger) -> Option<Arc<References>> {
        let is_shared = tagger.settings().context == Context::Separate && !self.queries.is_empty();
        is_shared.then(|| {
            let (_, words) =
                self.support.vectors(rows, &self.of_query[0], self.queries[0].n_words());
            let names = reading::stacked(&rows[self.names.clone()]);
            let support = self.vectors(&words, names.as_ref());
            Arc::new(scorer(tagger, support).references(support, rows[0].n_cols()))
        })
    }

    fn vectors<'v>(
        &'v self,
        words: &'v [Matrix],
        label_names: Option<&'v Matrix>,
    ) -> SupportVectors<'v> {
        SupportVectors { words, members: &self.members, label_names }
    }

    /// The loss of query `q` and its gradients, each times `share`.
    fn judge(
        &self,
        q: usize,
        rows: &[Matrix],
        (tagger, shared): (&Tagger, Option<Arc<References>>),
        share: f32,
    ) -> QueryLoss {
        let query = &self.queries[q];
        let names = reading::stacked(&rows[self.names.clone()]);
        let (queries, words) = self.support.vectors(rows, &self.of_query[q], query.n_words());
        let support = self.vectors(&words, names.as_ref());
        let scorer = scorer(tagger, support);
        let comparison = match shared {
            Some(references) => scorer.comparison_with(&queries, references),
            None => scorer.comparison(&queries, support),
        };
        let emit = Emit { scorer, comparison, queries: &queries, support };
        QueryLoss::new(tagger, share, &emit, (&self.tags, query))
    }

    /// Adds the gradients of query `q` to those of the rows of its batch.
    fn add(&self, q: usize, d: &VectorGradients, d_rows: &mut [Matrix]) {
        self.support.scatter(d, &self.of_query[q], self.queries[q].n_words(), d_rows);
        reading::scatter_names(d.label_names.as_ref(), &mut d_rows[self.names.clone()]);
    }
}

/// The scorer of a batch, which may do without label names.
fn scorer(tagger: &Tagger, support: SupportVectors) -> EmissionScorer {
    let mut scorer = tagger.settings().emission_scorer(tagger.head());
    if support.label_names.is_none() {
        scorer.label_names = 0.0;
    }
    scorer
}

/// A query, and what it is compared with.
struct Emit<'a> {
    scorer: EmissionScorer,
    comparison: Comparison,
    queries: &'a [Matrix],
    support: SupportVectors<'a>,
}

impl Emit<'_> {
    fn emissions(&self) -> Matrix {
        self.scorer.emissions_by(&self.comparison, self.queries, self.support)
    }

    fn backward(&self, d_emissions: &Matrix) -> VectorGradients {
        self.scorer.backward_by(&self.comparison, self.queries, self.support, d_emissions)
    }
}

/// What scorer, λ, transitions and CRF say of one query, times its share in the batch.
struct QueryLoss {
    loss: f64,
    head: Head,
    vectors: VectorGradients,
}

impl QueryLoss {
    fn new(tagger: &Tagger, share: f32, emit: &Emit, (tags, gold): (&TagSet, &Sentence)) -> Self {
        let settings = tagger.settings();
        let gold: Vec<usize> = gold
            .tags()
            .map(|tag| tags.index_of(tag).expect("queries with other tags were left out"))
            .collect();
        let emissions = emit.emissions();
        let without = |loss| {
            let nothing = Matrix::zeros(emissions.n_rows(), emissions.n_cols());
            let vectors = emit.backward(&nothing);
            Self { loss, head: Head::ZERO, vectors }
        };
        if settings.legal_loss && !is_legal(tags, &gold) {
            return without(0.0); // No path that decoding may take: nothing to learn.
        }
        // Of weights that have run away; the CRF would refuse it. An impossible tag has an honest -inf.
        let sane = |emission: &f32| emission * tagger.head().scale < f32::INFINITY;
        if !emissions.values().iter().all(sane) {
            return without(f64::NAN);
        }
        let loss = tagger.head().loss(settings, tags, &emissions, &gold);
        let vectors = emit.backward(&loss.emissions.scaled(share));
        let mut head = Head::ZERO;
        add_scaled(head.as_mut_slice(), share, loss.head.as_slice());
        head.mix = vectors.mix;
        Self { loss: f64::from(share) * loss.value, head, vectors }
    }
}

/// Whether no `I` stands where BIO forbids it.
fn is_legal(tags: &TagSet, gold: &[usize]) -> bool {
    let mut before = None;
    gold.iter().all(|&j| {
        let tag = &tags.tags()[j];
        let continues = std::mem::replace(&mut before, tag.slot()) == tag.slot();
        tag.class() != TagClass::I || continues
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use crate::data;
    use crate::emission::{ScorerKind, Similarity};
    use crate::encoder::{Bert, WordPieces, weights};
    use crate::random::Random;
    use crate::settings::ModelSettings;
    use crate::transition::TransitionMode;

    const ALL_FIT: Pass = Pass { dropout: None, budget: usize::MAX };

    fn testdata(name: &str) -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
    }

    fn model(settings: ModelSettings) -> Trainee {
        let dir = testdata("tiny-encoder");
        let engine = Bert::new(weights::load(&dir).unwrap()).unwrap();
        let head = Head::new(&settings, &mut Random::new(3));
        Trainee::new(engine, WordPieces::load(&dir).unwrap(), settings, head).unwrap()
    }

    /// Two queries of one episode and one of another.
    fn batch() -> Batch {
        let mut episodes = data::read_episodes(&testdata("tiny-episodes.json")).unwrap();
        episodes.truncate(2);
        episodes[0].queries.truncate(2);
        episodes[1].queries.truncate(1);
        Batch { episodes, names: true, overlap: false, n_skipped: 0 }
    }

    #[test]
    fn sentences_that_episodes_share_may_be_read_once() {
        let episode = batch().episodes.swap_remove(0);
        let asked_twice = Batch { episodes: vec![episode.clone(), episode], ..batch() };
        for settings in every_kind_of_model() {
            let model = model(settings);
            let gradients = |overlap| {
                let batch = Batch { overlap, ..asked_twice.clone() };
                let mut gradients = ModelGradients::zeros(model.engine().config());
                let loss = backward(&model, &batch, ALL_FIT, &mut gradients).unwrap();
                (loss, gradients)
            };
            let ((apart, expected), (once, ours)) = (gradients(false), gradients(true));
            assert_eq!(2 * once.n_pieces, apart.n_pieces);
            assert!((once.loss - apart.loss).abs() < 1e-6);
            let both = ours.encoder.parameters().values().iter();
            let both = both.zip(expected.encoder.parameters().values());
            let largest = both.clone().fold(0.0_f32, |max, (_, x)| max.max(x.abs()));
            assert!(both.clone().all(|(a, b)| (a - b).abs() <= 1e-5 * largest.max(1.0)));
        }
    }

    fn run(model: &Trainee, pass: Pass) -> (BatchLoss, ModelGradients) {
        let mut gradients = ModelGradients::zeros(model.engine().config());
        let loss = backward(model, &batch(), pass, &mut gradients).unwrap();
        (loss, gradients)
    }

    fn every_kind_of_model() -> Vec<ModelSettings> {
        use ScorerKind::{Fitted, Mixed, Mn, Nmn, Prototype};
        use Similarity::{Cosine, Dot, Projection, SquaredDistance};
        use TransitionMode::{None, Rule, Transfer};
        let mut all = Vec::new();
        for context in [Context::Paired, Context::Separate] {
            for (scorer, similarity, label_names, transitions) in [
                (Mn, Cosine, 0.0, Transfer),
                (Nmn, Dot, 0.0, Rule),
                (Prototype, SquaredDistance, 0.0, None),
                (Prototype, Projection, 0.5, Transfer),
                (Mixed, Projection, 0.5, Transfer),
                (Fitted, Projection, 0.5, Transfer),
            ] {
                let scale = 0.3;
                let settings = ModelSettings {
                    context,
                    scorer,
                    similarity,
                    label_names,
                    transitions,
                    scale,
                    ..ModelSettings::default()
                };
                all.push(settings.clone());
                if scorer == Fitted {
                    let lexical =
                        ModelSettings { lexical: true, siblings: 0.5, fade: 0.5, ..settings };
                    all.push(lexical.clone());
                    all.push(ModelSettings { middle: vec![1], ..lexical });
                }
            }
        }
        all
    }

    #[test]
    fn gradients_of_the_whole_model_equal_finite_differences() {
        for settings in every_kind_of_model() {
            let mut model = model(settings.clone());
            let (_, gradients) = run(&model, ALL_FIT);
            let mut direction = direction(&model);
            if settings.lexical {
                stay_above(&model, &settings.middle, &mut direction);
            }
            let slope: f64 = gradients
                .encoder
                .parameters()
                .values()
                .iter()
                .zip(&direction)
                .map(|(g, d)| f64::from(*g) * f64::from(*d))
                .sum();
            let mut loss_at = |step: f32| {
                let values = model.engine_mut().parameters_mut().values_mut();
                add_scaled(values, step, &direction);
                let loss = run(&model, ALL_FIT).0.loss;
                add_scaled(model.engine_mut().parameters_mut().values_mut(), -step, &direction);
                loss
            };
            let step = 1.0 / 512.0;
            let difference = (loss_at(step) - loss_at(-step)) / (2.0 * f64::from(step));
            let error = (slope - difference).abs() / difference.abs().max(1.0);
            assert!(error < 5e-3, "{settings:?}: {slope} or {difference}");
        }
    }

    /// Words by themselves have no gradient in the tables that they come from, rows of a middle layer none in what is below.
    fn stay_above(model: &Trainee, middle: &[usize], direction: &mut [f32]) {
        let tensors = model.engine().parameters().tensors();
        let is_below = |name: &str| {
            let of_layer = |layer| name.starts_with(&format!("encoder.layer.{layer}."));
            name.starts_with("embeddings.")
                || middle.last().is_some_and(|&top| (0..top).any(of_layer))
        };
        let n_below =
            tensors.filter(|(tensor, _)| is_below(&tensor.name)).map(|(_, values)| values.len());
        direction[..n_below.sum()].fill(0.0);
    }

    /// `tests/golden/model_gradients.json`, written by `scripts/golden_model.py`.
    #[derive(serde::Deserialize)]
    struct Golden {
        head: Head,
        cases: Vec<GoldenGradients>,
    }

    #[derive(serde::Deserialize)]
    struct GoldenGradients {
        settings: ModelSettings,
        loss: f64,
        head: Head,
        /// The norm of every tensor of the encoder.
        norms: BTreeMap<String, f64>,
        /// All numbers of small tensors.
        small: BTreeMap<String, Vec<f32>>,
    }

    #[test]
    fn gradients_of_the_whole_model_agree_with_pytorch() {
        let file = include_str!("../../tests/golden/model_gradients.json");
        let Golden { head, cases } = serde_json::from_str(file).unwrap();
        let episodes = data::read_episodes(&testdata("tiny-episodes.json")).unwrap();
        let batch = Batch { episodes, names: true, overlap: false, n_skipped: 0 };
        for golden in cases {
            let mut model = model(golden.settings.clone());
            model.head = head;
            let mut ours = ModelGradients::zeros(model.engine().config());
            let loss = backward(&model, &batch, ALL_FIT, &mut ours).unwrap().loss;
            let what = |name: &str| format!("{name}, {:?}", golden.settings);
            assert_close(&what("loss"), &[loss as f32], &[golden.loss as f32]);
            assert_close(&what("head"), ours.head.as_slice(), golden.head.as_slice());
            for (tensor, values) in ours.encoder.parameters().tensors() {
                let norm = optimizer::squared_norm(values).sqrt();
                let name = what(&tensor.name);
                assert_close(&name, &[norm as f32], &[golden.norms[&tensor.name] as f32]);
                if let Some(numbers) = golden.small.get(&tensor.name) {
                    assert_close(&name, values, numbers);
                }
            }
        }
    }

    /// Relative where a number is large, absolute near zero.
    fn assert_close(what: &str, ours: &[f32], reference: &[f32]) {
        assert_eq!(ours.len(), reference.len(), "{what}");
        for (ours, reference) in ours.iter().zip(reference) {
            let error = (ours - reference).abs() / reference.abs().max(1.0);
            assert!(error < 1e-5, "{what}: ours {ours}, reference {reference}, error {error:.1e}");
        }
    }

    #[test]
    fn a_sentence_beyond_the_encoders_window_is_refused_with_its_domain() {
        let mut batch = batch();
        let long =
            batch.episodes[1].queries[0].tokens().iter().cycle().take(600).cloned().collect();
        batch.episodes[1].queries[0] = Sentence::new(long).unwrap();
        let model = model(ModelSettings::default());
        let mut gradients = ModelGradients::zeros(model.engine().config());
        let error = backward(&model, &batch, ALL_FIT, &mut gradients).unwrap_err();
        assert!(error.to_string().contains(&batch.episodes[1].domain), "{error}");
    }

    /// A random direction in the space of the encoder's weights.
    fn direction(model: &Trainee) -> Vec<f32> {
        let mut random = Random::new(9);
        model.engine().parameters().values().iter().map(|_| 0.1 * random.normal() as f32).collect()
    }

    #[test]
    fn activations_that_do_not_fit_change_no_bit() {
        for settings in every_kind_of_model() {
            let model = model(settings);
            let dropout = Some(Dropout { rate: 0.1, seed: 5 });
            let (kept_loss, kept) = run(&model, Pass { dropout, budget: usize::MAX });
            let (again_loss, again) = run(&model, Pass { dropout, budget: 0 });
            assert_eq!(kept_loss, again_loss);
            assert_eq!(kept.encoder, again.encoder);
            assert_eq!(kept.head, again.head);
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let in_pool = |n_threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
            let dropout = Some(Dropout { rate: 0.1, seed: 5 });
            let model = model(ModelSettings::default());
            pool.install(|| run(&model, Pass { dropout, budget: usize::MAX }))
        };
        let (one, three) = (in_pool(1), in_pool(3));
        assert_eq!(one.0, three.0);
        assert_eq!((one.1.encoder, one.1.head), (three.1.encoder, three.1.head));
    }
}
