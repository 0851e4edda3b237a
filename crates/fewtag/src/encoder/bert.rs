//! BERT on packed batches: the engine for the CPU.
//!
//! A batch is cut into groups of whole sequences, and each group goes through all layers on one thread. Rows do not
//! depend on the cut (see `fewtag_kernels::matmul`), so hidden rows are the same bits for any number of threads and whatever
//! else the batch holds.
//!
//! Reference: Devlin et al. (2019); the arithmetic is that of Hugging Face's `BertModel` without its pooler.

use std::sync::OnceLock;

use fewtag_kernels::dropout::LayerDropout;
use fewtag_kernels::layer_norm::Normalised;
use fewtag_kernels::matmul::Panels;
use rayon::prelude::*;

use super::backward::BackwardPass;
use super::batch::{PackedBatch, Piece};
use super::config::BertConfig;
use super::group::{GROUP_ROWS, SequenceGroup};
use super::layer::{LayerPass, LayerTrace, PackedLayer, Workspace, keep_rows};
use super::middle::MiddleRows;
use super::parameters::{Gradients, Parameters, Weights};
use super::pool::{Pool, Pooled};
use super::{Dropout, Engine, Frozen, Layered, Trace, TrainableEngine, backward, embeddings};
use crate::error::Result;
use crate::matrix::Matrix;
use crate::random::Random;

/// A BERT encoder.
#[derive(Debug)]
pub struct Bert {
    parameters: Parameters,
    frozen: Frozen,
    /// The weights in the order in which products read them; made when first needed.
    packed: OnceLock<Vec<Pooled<PackedLayer>>>,
    pools: BufferPools,
}

/// The buffers of earlier passes, to be used again.
#[derive(Debug, Default)]
pub(super) struct BufferPools {
    pub(super) packed: Pool<PackedLayer>,
    traces: Pool<LayerTrace>,
    workspaces: Pool<Workspace>,
    pub(super) backward: Pool<backward::Buffers>,
}

impl Bert {
    /// # Errors
    ///
    /// [`Error::EncoderConfig`](crate::Error::EncoderConfig) if the shape is none.
    pub fn new(parameters: Parameters) -> Result<Self> {
        parameters.config().check()?;
        Ok(Self {
            parameters,
            frozen: Frozen::default(),
            packed: OnceLock::new(),
            pools: BufferPools::default(),
        })
    }

    /// An untrained encoder: matrices from N(0, 0.02²), biases 0, scales of norms 1, as BERT starts.
    ///
    /// # Errors
    ///
    /// [`Error::EncoderConfig`](crate::Error::EncoderConfig) if the shape is none.
    pub fn random(config: &BertConfig, seed: u64) -> Result<Self> {
        config.check()?;
        let mut parameters = Parameters::zeros(config);
        for (tensor, values) in parameters.tensors_mut() {
            let mut random = Random::new(seed).named(&tensor.name);
            if tensor.decays() {
                values.fill_with(|| 0.02 * random.normal() as f32);
            } else if tensor.name.ends_with("LayerNorm.weight") {
                values.fill(1.0);
            }
        }
        Self::new(parameters)
    }

    /// Leaves a lower part of the encoder out of training.
    pub fn freeze(&mut self, frozen: Frozen) {
        self.frozen = frozen;
    }

    fn packed(&self) -> &[Pooled<PackedLayer>] {
        self.packed.get_or_init(|| {
            let (config, weights) = (self.parameters.config(), self.parameters.weights());
            let layers = weights.layers.par_iter();
            let packed = layers.map(|layer| {
                let mut packed = self.pools.packed.take();
                packed.pack(layer, config, Panels::pack_transposed);
                packed
            });
            packed.collect()
        })
    }

    /// The last layer's rows of all pieces, `[n_pieces, h]`.
    ///
    /// # Errors
    ///
    /// If `batch` does not fit the encoder ([`PackedBatch::check`]).
    pub fn encode(&self, batch: &PackedBatch) -> Result<Matrix> {
        self.infer(batch, None, &[])
    }

    /// Some layers alone, which take rows that lower ones made: an encoder without embeddings.
    pub(super) fn of_layers(parameters: Parameters) -> Self {
        let (packed, pools) = (OnceLock::new(), BufferPools::default());
        Self { parameters, frozen: Frozen::Embeddings, packed, pools }
    }

    /// Runs all layers without keeping anything.
    fn infer(
        &self,
        batch: &PackedBatch,
        wanted: Option<Vec<usize>>,
        middle: &[usize],
    ) -> Result<Matrix> {
        batch.check(self.parameters.config())?;
        Ok(self.infer_from(Start::Embeddings, batch, wanted, middle))
    }

    /// The same from any start, of a batch that was checked.
    pub(super) fn infer_from(
        &self,
        start: Start,
        batch: &PackedBatch,
        wanted: Option<Vec<usize>>,
        middle: &[usize],
    ) -> Matrix {
        let n_layers = self.parameters.config().num_hidden_layers;
        let plan = PassPlan { wanted, ..PassPlan::tagging(n_layers, middle) };
        let groups =
            SequenceGroup::cut_for_threads(batch, GROUP_ROWS, rayon::current_num_threads());
        self.run(start, groups, plan).0
    }

    /// As [`TrainableEngine::encode_for_training`] from any start, of a batch that was checked.
    pub(super) fn train_from(
        &self,
        start: Start,
        batch: &PackedBatch,
        middle: &[usize],
        dropout: Option<Dropout>,
    ) -> (Matrix, Trace) {
        let n_layers = self.parameters.config().num_hidden_layers;
        let plan = PassPlan {
            kept: self.frozen.n_layers().min(n_layers),
            trains_embeddings: self.frozen == Frozen::Nothing,
            dropout,
            ..PassPlan::tagging(n_layers, middle)
        };
        let (hidden, trace) = self.run(start, SequenceGroup::cut_for_training(batch), plan);
        (hidden, Trace::new(trace))
    }

    /// Runs the layers of the plan on every group of a batch that was checked.
    fn run(&self, start: Start, groups: Vec<SequenceGroup>, plan: PassPlan) -> (Matrix, PassTrace) {
        let config = self.parameters.config();
        let pass = ForwardPass {
            config,
            weights: self.parameters.weights(),
            packed: self.packed(),
            start,
            plan: &plan,
            pools: &self.pools,
        };
        let groups = groups.into_par_iter().with_max_len(1);
        let (rows, groups): (Vec<_>, Vec<_>) = groups.map(|group| pass.run(&group)).unzip();
        let width = config.hidden_size * (1 + plan.middle.len());
        (Matrix::new(rows.concat(), width), PassTrace { plan, groups })
    }
}

impl Layered for Bert {
    fn encode_below(
        &self,
        batch: &PackedBatch,
        n_layers: usize,
        middle: &[usize],
    ) -> Result<Matrix> {
        batch.check(self.parameters.config())?;
        let groups =
            SequenceGroup::cut_for_threads(batch, GROUP_ROWS, rayon::current_num_threads());
        Ok(self.run(Start::Embeddings, groups, PassPlan::tagging(n_layers, middle)).0)
    }

    fn upper(&self, n_below: usize) -> Parameters {
        self.parameters.upper(n_below)
    }
}

impl Engine for Bert {
    fn config(&self) -> &BertConfig {
        self.parameters.config()
    }

    fn encode_rows(&self, batch: &PackedBatch, rows: &[usize], middle: &[usize]) -> Result<Matrix> {
        assert!(rows.is_sorted_by(|a, b| a < b), "wanted rows increase");
        assert!(rows.last().is_none_or(|&row| row < batch.n_pieces()), "wanted rows exist");
        self.infer(batch, Some(rows.to_vec()), middle)
    }

    fn embeddings(&self, pieces: &[Piece]) -> Option<Matrix> {
        let epsilon = self.parameters.config().layer_norm_eps;
        Some(embeddings::alone(&self.parameters.weights().embeddings, pieces, epsilon))
    }

    fn to_save(&self) -> Option<&Parameters> {
        Some(&self.parameters)
    }

    fn layered(&self) -> Option<&dyn Layered> {
        Some(self)
    }
}

impl TrainableEngine for Bert {
    fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        self.packed.take();
        &mut self.parameters
    }

    fn frozen(&self) -> Frozen {
        self.frozen
    }

    fn encode_for_training(
        &self,
        batch: &PackedBatch,
        middle: &[usize],
        dropout: Option<Dropout>,
    ) -> Result<(Matrix, Trace)> {
        batch.check(self.config())?;
        Ok(self.train_from(Start::Embeddings, batch, middle, dropout))
    }

    fn backward(
        &self,
        batch: &PackedBatch,
        trace: &Trace,
        d_hidden: Matrix,
        gradients: &mut Gradients,
    ) {
        let trace: &PassTrace = trace.record().expect("the trace was made by this engine");
        let (parameters, pools) = (&self.parameters, &self.pools);
        BackwardPass { parameters, batch, trace, pools }.run(&d_hidden, gradients);
    }
}

/// What enters the lowest layer of a forward pass.
#[derive(Debug, Clone, Copy)]
pub(super) enum Start<'a> {
    /// The embeddings of the batch's pieces.
    Embeddings,
    /// Rows `[n_pieces, h]` that lower layers made.
    Rows(&'a Matrix),
}

/// What a forward pass does and keeps.
#[derive(Debug)]
pub(super) struct PassPlan {
    /// So many of the lowest layers are run.
    n_layers: usize,
    /// The layers from here on keep a trace.
    pub(super) kept: usize,
    /// Whether the embeddings ask for a gradient.
    pub(super) trains_embeddings: bool,
    pub(super) dropout: Option<Dropout>,
    /// The rows that somebody reads, if not all.
    wanted: Option<Vec<usize>>,
    /// The layers whose rows are read besides those of the last.
    middle: Vec<usize>,
}

impl PassPlan {
    /// Runs so many layers and keeps nothing.
    fn tagging(n_layers: usize, middle: &[usize]) -> Self {
        let (wanted, middle) = (None, middle.to_vec());
        Self { n_layers, kept: n_layers, trains_embeddings: false, dropout: None, wanted, middle }
    }

    pub(super) fn dropout(&self, layer: usize) -> Option<LayerDropout> {
        self.dropout.map(|dropout| LayerDropout::new(dropout, layer))
    }
}

/// What a training pass keeps.
#[derive(Debug)]
pub(super) struct PassTrace {
    pub(super) plan: PassPlan,
    pub(super) groups: Vec<GroupTrace>,
}

/// What one group keeps.
#[derive(Debug)]
pub(super) struct GroupTrace {
    pub(super) embeddings: Option<Normalised>,
    /// Of the layers from `kept` on.
    pub(super) layers: Vec<Pooled<LayerTrace>>,
}

/// A forward pass, shared by all groups.
struct ForwardPass<'a> {
    config: &'a BertConfig,
    weights: Weights<&'a [f32]>,
    packed: &'a [Pooled<PackedLayer>],
    start: Start<'a>,
    plan: &'a PassPlan,
    pools: &'a BufferPools,
}

impl ForwardPass<'_> {
    fn run(&self, group: &SequenceGroup) -> (Vec<f32>, GroupTrace) {
        let (mut x, embeddings) = self.first_rows(group);
        let mut trace = GroupTrace { embeddings, layers: Vec::new() };
        let n_layers = self.plan.n_layers;
        let wanted = self.plan.wanted.as_ref().map(|rows| group.own(rows));
        if let (Some(wanted), 0) = (&wanted, n_layers) {
            keep_rows(&mut x, wanted, self.config.hidden_size);
        }
        let h = self.config.hidden_size;
        let mut middle = MiddleRows::new(&self.plan.middle, wanted.as_deref(), h);
        let mut passing = self.pools.traces.take();
        let mut workspace = self.pools.workspaces.take();
        for l in 0..n_layers {
            let is_last = l + 1 == n_layers;
            let pass = LayerPass {
                config: self.config,
                weights: &self.weights.layers[l],
                packed: &self.packed[l],
                dropout: self.plan.dropout(l),
                group,
                wanted: wanted.as_deref().filter(|_| is_last),
            };
            if l < self.plan.kept {
                x = pass.forward(x, &mut passing, &mut workspace);
            } else {
                let mut kept = self.pools.traces.take();
                x = pass.forward(x, &mut kept, &mut workspace);
                trace.layers.push(kept);
            }
            middle.look(l + 1, &x);
        }
        (middle.behind(x), trace)
    }

    /// What enters the lowest layer, and what the embeddings keep of it if they are trained.
    fn first_rows(&self, group: &SequenceGroup) -> (Vec<f32>, Option<Normalised>) {
        let rows = match self.start {
            Start::Rows(rows) => return (group.part(rows.values(), rows.n_cols()).to_vec(), None),
            Start::Embeddings => &self.weights.embeddings,
        };
        let epsilon = self.config.layer_norm_eps;
        let (x, normalised) = embeddings::forward(rows, group, epsilon, self.plan.dropout(0));
        (x, self.plan.trains_embeddings.then_some(normalised))
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::tests::odd_config;
    use super::super::testing::{odd_batch, odd_parameters};
    use super::*;
    use crate::error::Error;
    use fewtag_kernels::testing::{assert_close, normal, weighted};

    /// An encoder whose weights are large enough for every part to matter.
    fn bert() -> Bert {
        Bert::new(odd_parameters()).unwrap()
    }

    fn batch(lengths: &[usize]) -> PackedBatch {
        odd_batch(lengths, 9)
    }

    const LENGTHS: [usize; 4] = [7, 1, 9, 4];
    const DROPOUT: Option<Dropout> = Some(Dropout { rate: 0.2, seed: 3 });

    /// Hidden rows, and the gradients of `Σ hidden · d_hidden` for fixed numbers `d_hidden`.
    fn train(bert: &Bert, batch: &PackedBatch, dropout: Option<Dropout>) -> (Matrix, Gradients) {
        let (hidden, trace) = bert.encode_for_training(batch, &[], dropout).unwrap();
        let mut gradients = Gradients::zeros(bert.parameters.config());
        bert.backward(batch, &trace, d_hidden(batch), &mut gradients);
        (hidden, gradients)
    }

    fn d_hidden(batch: &PackedBatch) -> Matrix {
        Matrix::new(normal(batch.n_pieces() * 15, 77), 15)
    }

    fn in_threads<R: Send>(n: usize, run: impl FnOnce() -> R + Send) -> R {
        rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(run)
    }

    #[test]
    fn every_gradient_equals_finite_differences_with_and_without_dropout() {
        const STEP: f32 = 4e-3;
        let (mut bert, batch) = (bert(), batch(&LENGTHS));
        let weights = d_hidden(&batch);
        for dropout in [None, DROPOUT] {
            let (_, gradients) = train(&bert, &batch, dropout);
            for (tensor, gradient) in gradients.parameters().tensors() {
                let mut loss_at = |i: usize, x: f32| {
                    bert.parameters_mut().values_mut()[tensor.place.start + i] = x;
                    let (hidden, _) = bert.encode_for_training(&batch, &[], dropout).unwrap();
                    weighted(hidden.values(), weights.values())
                };
                // Some numbers of each tensor, over its whole length.
                for i in (0..gradient.len()).step_by((gradient.len() / 23).max(1)) {
                    let x = tests::bert().parameters.values()[tensor.place.start + i];
                    let slope =
                        (loss_at(i, x + STEP) - loss_at(i, x - STEP)) / f64::from(2.0 * STEP);
                    loss_at(i, x);
                    let error = (f64::from(gradient[i]) - slope).abs() / slope.abs().max(1.0);
                    assert!(error < 2e-2, "{}[{i}]: {}, {slope}", tensor.name, gradient[i]);
                }
            }
        }
    }

    #[test]
    fn a_training_pass_without_dropout_encodes_like_inference() {
        let (bert, batch) = (bert(), batch(&LENGTHS));
        assert_eq!(train(&bert, &batch, None).0, bert.encode(&batch).unwrap());
        assert_ne!(train(&bert, &batch, DROPOUT).0, bert.encode(&batch).unwrap());
        let all: Vec<usize> = (0..batch.n_pieces()).collect();
        let (hidden, _) = bert.encode_for_training(&batch, &[1], None).unwrap();
        assert_eq!(hidden, bert.encode_rows(&batch, &all, &[1]).unwrap());
    }

    #[test]
    fn the_number_of_threads_does_not_change_a_bit() {
        // Enough rows for several groups.
        let (bert, batch) = (bert(), batch(&[17, 3, 19, 8].repeat(20)));
        let run =
            |n| in_threads(n, || (bert.encode(&batch).unwrap(), train(&bert, &batch, DROPOUT)));
        let one = run(1);
        assert_eq!(one, run(2));
        assert_eq!(one, run(5));
    }

    #[test]
    fn a_sequence_does_not_see_its_neighbours() {
        let (bert, many) = (bert(), batch(&[17, 3, 19, 8].repeat(20)));
        let hidden = bert.encode(&many).unwrap();
        for s in [0, 1, 40, 79] {
            let mut alone = PackedBatch::new();
            alone.push(many.pieces()[many.rows(s)].iter().copied());
            let rows = many.rows(s);
            assert_eq!(
                bert.encode(&alone).unwrap().values(),
                &hidden.values()[rows.start * 15..rows.end * 15],
                "sequence {s}"
            );
        }
    }

    #[test]
    fn wanted_rows_are_those_of_the_whole_batch() {
        let (bert, batch) = (bert(), batch(&[17, 3, 19, 8].repeat(20)));
        let hidden = bert.encode(&batch).unwrap();
        let every_third: Vec<usize> = (1..batch.n_pieces()).step_by(3).collect();
        for rows in [every_third, vec![0, batch.n_pieces() - 1]] {
            let expected = rows.iter().flat_map(|&row| hidden.row(row).to_vec()).collect();
            assert_eq!(bert.encode_rows(&batch, &rows, &[]).unwrap(), Matrix::new(expected, 15));
        }
    }

    #[test]
    fn rows_of_a_middle_layer_stand_behind_those_of_the_last() {
        let bert = self::bert();
        for batch in [batch(&[17, 3, 19, 8].repeat(20)), batch(&[5])] {
            let (last, first) =
                (bert.encode(&batch).unwrap(), bert.encode_below(&batch, 1, &[]).unwrap());
            let rows: Vec<usize> = (1..batch.n_pieces()).step_by(3).collect();
            let both = |&row: &usize| [last.row(row), first.row(row)].concat();
            let expected = Matrix::new(rows.iter().flat_map(both).collect(), 30);
            assert_eq!(bert.encode_rows(&batch, &rows, &[1]).unwrap(), expected);
        }
    }

    #[test]
    fn gradients_accumulate() {
        let (bert, batch) = (bert(), batch(&LENGTHS));
        let (_, once) = train(&bert, &batch, None);
        let (_, trace) = bert.encode_for_training(&batch, &[], None).unwrap();
        let mut twice = once.clone();
        bert.backward(&batch, &trace, d_hidden(&batch), &mut twice);
        let expected: Vec<f32> = once.parameters().values().iter().map(|g| 2.0 * g).collect();
        assert_close(twice.parameters().values(), &expected, 1e-5);
        twice.clear();
        assert_eq!(twice.parameters(), &Parameters::zeros(bert.parameters.config()));
    }

    #[test]
    fn frozen_parts_get_no_gradient_and_the_others_the_same() {
        let (mut bert, batch) = (bert(), batch(&LENGTHS));
        let (_, expected) = train(&bert, &batch, DROPOUT);
        for (frozen, prefixes) in [
            (Frozen::Embeddings, vec!["embeddings"]),
            (Frozen::Layers(1), vec!["embeddings", "encoder.layer.0."]),
            (Frozen::Layers(2), vec!["embeddings", "encoder"]),
        ] {
            bert.freeze(frozen);
            let (_, gradients) = train(&bert, &batch, DROPOUT);
            let both = gradients.parameters().tensors().zip(expected.parameters().tensors());
            for ((tensor, ours), (_, all)) in both {
                if prefixes.iter().any(|prefix| tensor.name.starts_with(prefix)) {
                    assert!(ours.iter().all(|&g| g == 0.0), "{frozen:?}: {}", tensor.name);
                } else {
                    assert_eq!(ours, all, "{frozen:?}: {}", tensor.name);
                }
            }
        }
    }

    #[test]
    fn a_batch_that_does_not_fit_is_an_error() {
        let bert = bert();
        assert!(matches!(bert.encode(&PackedBatch::new()), Err(Error::EmptyBatch)));
        let long = batch(&[20]);
        assert!(matches!(bert.encode(&long), Err(Error::TooManyPieces { .. })));
        assert!(matches!(
            bert.encode_for_training(&long, &[], None).err(),
            Some(Error::TooManyPieces { .. })
        ));
    }

    #[test]
    fn changed_weights_are_used() {
        let (mut bert, batch) = (bert(), batch(&LENGTHS));
        let before = bert.encode(&batch).unwrap();
        bert.parameters_mut().weights_mut().layers[0].up.weight.fill(0.1);
        assert_ne!(bert.encode(&batch).unwrap(), before);
    }

    #[test]
    fn a_seed_fixes_a_random_encoder() {
        let [a, b, c] = [1, 1, 2].map(|seed| Bert::random(&odd_config(), seed).unwrap().parameters);
        assert_eq!(a, b);
        assert_ne!(a, c);
    }
}
