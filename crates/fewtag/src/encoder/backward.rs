//! The backward pass: from the gradient by hidden rows to the gradient by every weight.
//!
//! For each layer, from the highest to the lowest that is trained:
//!
//! 1. every group turns `dy` into `dx` and keeps the gradients in between ([`Flow`]), on its own thread;
//! 2. every tile of a weight's gradient is summed over the groups, in order: `dW += dYᵀ X`, `db += Σ rows of dY`.
//!
//! A tile belongs to one thread and the groups depend on the batch alone, so gradients are the same bits for any number
//! of threads.

use fewtag_kernels::add_rows;
use fewtag_kernels::dropout::Place;
use fewtag_kernels::matmul::{Left, Panels, Product, Strips, View, Write};
use rayon::prelude::*;

use super::batch::PackedBatch;
use super::bert::{BufferPools, GroupTrace, PassTrace};
use super::config::BertConfig;
use super::embeddings;
use super::group::SequenceGroup;
use super::layer::{Flow, LayerPass, LayerTrace, Workspace};
use super::parameters::{Embeddings, Gradients, Layer, Linear, Parameters};
use super::pool::Pooled;
use crate::matrix::Matrix;

/// About how many numbers a tile of a weight's gradient has: few enough to share out the work.
const TILE: usize = 48 * 384;

/// The backward pass of one batch.
pub(super) struct BackwardPass<'a> {
    pub(super) parameters: &'a Parameters,
    pub(super) batch: &'a PackedBatch,
    pub(super) trace: &'a PassTrace,
    pub(super) pools: &'a BufferPools,
}

impl BackwardPass<'_> {
    /// See [`super::TrainableEngine::backward`].
    pub(super) fn run(&self, d_hidden: &Matrix, gradients: &mut Gradients) {
        let (config, plan) = (self.parameters.config(), &self.trace.plan);
        let shape = (d_hidden.n_rows(), d_hidden.n_cols());
        let expected = (self.batch.n_pieces(), config.hidden_size);
        assert_eq!(shape, expected, "shape of the gradient rows");
        let groups =
            SequenceGroup::cut_for_training(self.batch).into_iter().zip(&self.trace.groups);
        let mut groups: Vec<GroupBackward> = groups
            .map(|(group, trace)| {
                let dx = group.part(d_hidden.values(), d_hidden.n_cols()).to_vec();
                GroupBackward { group, trace, dx, buffers: self.pools.backward.take() }
            })
            .collect();

        let ids = self.batch.pieces().iter().map(|piece| piece.id);
        let mut gradients = gradients.weights_mut(ids.filter(|_| plan.trains_embeddings));
        self.through_layers(&mut groups, &mut gradients.layers);
        if plan.trains_embeddings {
            self.through_embeddings(groups, &mut gradients.embeddings);
        }
    }

    fn through_layers(&self, groups: &mut [GroupBackward], gradients: &mut [Layer<&mut [f32]>]) {
        let (config, weights) = (self.parameters.config(), self.parameters.weights());
        let plan = &self.trace.plan;
        let mut packed = self.pools.packed.take();
        for l in (plan.kept..config.num_hidden_layers).rev() {
            packed.pack(&weights.layers[l], config, Panels::pack);
            let is_wanted_below = l > plan.kept || plan.trains_embeddings;
            groups.par_iter_mut().with_max_len(1).for_each(|part| {
                let pass = LayerPass {
                    config,
                    weights: &weights.layers[l],
                    packed: &packed,
                    dropout: plan.dropout(l),
                    group: &part.group.clone(),
                    wanted: None,
                };
                part.step(&pass, l - plan.kept);
                if is_wanted_below {
                    pass.through_qkv(&part.buffers.flow, &mut part.dx);
                }
            });
            layer_gradients(config, groups, l - plan.kept, &mut gradients[l]);
        }
    }

    fn through_embeddings(
        &self,
        groups: Vec<GroupBackward>,
        gradients: &mut Embeddings<&mut [f32]>,
    ) {
        let gamma = self.parameters.weights().embeddings.norm.weight;
        for GroupBackward { group, trace, mut dx, .. } in groups {
            if let Some(dropout) = self.trace.plan.dropout(0) {
                dropout.apply(Place::Embeddings, group.rows().start, &mut dx, gamma.len());
            }
            let normalised = trace.embeddings.as_ref().expect("kept where embeddings train");
            embeddings::backward(&group, normalised, gamma, &dx, gradients);
        }
    }
}

/// The backward pass of one group.
struct GroupBackward<'a> {
    group: SequenceGroup<'a>,
    trace: &'a GroupTrace,
    /// The gradient by the rows that the next lower layer put out, `[n, h]`.
    dx: Vec<f32>,
    buffers: Pooled<Buffers>,
}

/// What a group writes in its backward pass, layer after layer.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    flow: Flow,
    inputs: LinearInputs,
    workspace: Workspace,
}

/// What entered each linear layer, as the right factor of `dYᵀ X`.
#[derive(Debug, Default)]
struct LinearInputs {
    qkv: Panels,
    attention_output: Panels,
    up: Panels,
    down: Panels,
}

impl GroupBackward<'_> {
    /// Goes down through kept layer `l` and packs what entered its linear layers.
    fn step(&mut self, pass: &LayerPass, l: usize) {
        let (h, f) = (pass.config.hidden_size, pass.config.intermediate_size);
        let trace = &self.trace.layers[l];
        let Buffers { flow, inputs, workspace } = &mut *self.buffers;
        std::mem::swap(&mut self.dx, &mut flow.d_output);
        pass.backward(trace, flow, &mut self.dx, workspace);
        inputs.qkv.pack(View::new(&trace.input, h));
        inputs.attention_output.pack(View::new(&trace.context, h));
        inputs.up.pack(View::new(&flow.middle, h));
        inputs.down.pack(View::new(&flow.activated, f));
    }
}

/// Adds to the gradients of one layer what all groups contribute; `l` counts from the lowest kept layer.
fn layer_gradients(
    config: &BertConfig,
    groups: &[GroupBackward],
    l: usize,
    gradients: &mut Layer<&mut [f32]>,
) {
    let (h, f) = (config.hidden_size, config.intermediate_size);
    let mut tiles = Vec::new();
    let [qkv, attention_output, up, down] = sources(h, f);
    qkv.cut(&mut gradients.qkv, &mut tiles);
    attention_output.cut(&mut gradients.attention_output, &mut tiles);
    up.cut(&mut gradients.up, &mut tiles);
    down.cut(&mut gradients.down, &mut tiles);
    let norms = || {
        for part in groups {
            let LayerTrace { attention_norm, output_norm, .. } = &*part.trace.layers[l];
            let flow = &part.buffers.flow;
            attention_norm.accumulate(&flow.d_middle, &mut gradients.attention_norm);
            output_norm.accumulate(&flow.d_output, &mut gradients.output_norm);
        }
    };
    let tiles = || tiles.into_par_iter().with_max_len(1).for_each(|tile| tile.sum(groups));
    rayon::join(tiles, norms);
}

/// Where a linear layer's gradient comes from.
#[derive(Clone, Copy)]
struct GradientSource {
    /// `dY [n, out]`.
    d: fn(&Flow) -> &[f32],
    /// `X [n, in]`.
    x: fn(&LinearInputs) -> &Panels,
    n_out: usize,
    n_in: usize,
}

/// The linear layers of a transformer layer: qkv, attention output, up, down.
fn sources(h: usize, f: usize) -> [GradientSource; 4] {
    [
        GradientSource { d: |flow| &flow.d_qkv, x: |x| &x.qkv, n_out: 3 * h, n_in: h },
        GradientSource {
            d: |flow| &flow.d_attention_output,
            x: |x| &x.attention_output,
            n_out: h,
            n_in: h,
        },
        GradientSource { d: |flow| &flow.d_pre, x: |x| &x.up, n_out: f, n_in: h },
        GradientSource { d: |flow| &flow.d_down, x: |x| &x.down, n_out: h, n_in: f },
    ]
}

impl GradientSource {
    /// Cuts the gradient of a linear layer into tiles of whole rows.
    fn cut<'g>(self, gradient: &'g mut Linear<&mut [f32]>, tiles: &mut Vec<Tile<'g>>) {
        let n_rows = TILE.div_ceil(self.n_in);
        let weights = gradient.weight.chunks_mut(n_rows * self.n_in);
        for (i, (weight, bias)) in weights.zip(gradient.bias.chunks_mut(n_rows)).enumerate() {
            tiles.push(Tile { source: self, first_row: i * n_rows, weight, bias });
        }
    }
}

/// Some rows of a linear layer's gradient.
struct Tile<'g> {
    source: GradientSource,
    first_row: usize,
    /// `[rows, in]`.
    weight: &'g mut [f32],
    /// `[rows]`.
    bias: &'g mut [f32],
}

impl Tile<'_> {
    /// `dW += dYᵀ X`, `db += Σ rows of dY`, group after group.
    fn sum(self, groups: &[GroupBackward]) {
        let (n_out, n_rows) = (self.source.n_out, self.bias.len());
        let mut strips = Strips::default();
        for part in groups {
            let d = (self.source.d)(&part.buffers.flow);
            strips.pack_transposed(View::new(d, n_out).cols(self.first_row, n_rows));
            let right = (self.source.x)(&part.buffers.inputs);
            let left = Left::Strips(&strips);
            Product { left, right, write: Write::Add }.into(self.weight);
            add_rows(self.bias, d, n_out, self.first_row);
        }
    }
}
