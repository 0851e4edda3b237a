//! The way down: from the gradient by hidden rows to the gradient by every weight.
//!
//! For each layer, from the highest to the lowest that is trained:
//!
//! 1. every group turns `dy` into `dx` and keeps the gradients in between ([`Flow`]), on its own thread;
//! 2. every tile of a weight's gradient is summed over the groups, in order: `dW += dYᵀ X`, `db += Σ rows of dY`.
//!
//! A tile belongs to one thread and the groups depend on the batch alone, so gradients are the same bits for any number
//! of threads.

use rayon::prelude::*;

use super::batch::PackedBatch;
use super::bert::{Below, GroupTrace, Record};
use super::config::BertConfig;
use super::embeddings;
use super::group::Group;
use super::kernels::dropout::Place;
use super::kernels::matmul::{Left, Panels, Product, Strips, View, Write};
use super::kernels::{add, vectorised};
use super::layer::{Flow, LayerPass, LayerTrace, PackedLayer, Workspace};
use super::parameters::{Gradients, Layer, Linear, Parameters};
use crate::matrix::Matrix;

/// About how many numbers a tile of a weight's gradient has: few enough to share out the work.
const TILE: usize = 48 * 384;

/// Runs the way down; see [`super::Engine::backward`].
pub(super) fn run(
    parameters: &Parameters,
    batch: &PackedBatch,
    record: &Record,
    d_hidden: &Matrix,
    gradients: &mut Gradients,
) -> Option<Matrix> {
    let (config, weights) = (parameters.config(), parameters.weights());
    let (h, way) = (config.hidden_size, &record.way);
    let shape = (d_hidden.n_rows(), d_hidden.n_cols());
    assert_eq!(shape, (batch.n_pieces(), h), "shape of the gradient rows");
    let groups = Group::cut(batch).into_iter().zip(&record.groups);
    let mut groups: Vec<Descent> =
        groups.map(|(group, trace)| Descent::new(group, trace, d_hidden)).collect();

    let ids = batch.pieces().iter().map(|piece| piece.id);
    let mut gradients = gradients.weights_mut(ids.filter(|_| way.below == Below::Embeddings));
    for l in (way.kept..way.layers.end).rev() {
        let packed = PackedLayer::straight(&weights.layers[l], config);
        let is_lowest = l == way.kept;
        groups.par_iter_mut().with_max_len(1).for_each(|descent| {
            let pass = LayerPass {
                config,
                weights: &weights.layers[l],
                packed: &packed,
                dropout: way.dropout(l),
                group: &descent.group.clone(),
            };
            descent.step(&pass, l - way.kept);
            if !is_lowest || way.below != Below::Nothing {
                pass.through_qkv(&descent.flow, &mut descent.dx);
            }
        });
        layer_gradients(config, &groups, l - way.kept, &mut gradients.layers[l]);
    }
    match way.below {
        Below::Nothing => None,
        Below::Rows => {
            let rows: Vec<_> = groups.into_iter().map(|descent| descent.dx).collect();
            Some(Matrix::new(rows.concat(), h))
        }
        Below::Embeddings => {
            for Descent { group, trace, mut dx, .. } in groups {
                if let Some(dropout) = way.dropout(0) {
                    dropout.apply(Place::Embeddings, group.rows().start, &mut dx, h);
                }
                let normalised = trace.embeddings.as_ref().expect("kept where embeddings train");
                let gamma = weights.embeddings.norm.weight;
                embeddings::backward(&group, normalised, gamma, &dx, &mut gradients.embeddings);
            }
            None
        }
    }
}

/// One group on its way down.
struct Descent<'a> {
    group: Group<'a>,
    trace: &'a GroupTrace,
    /// The gradient by the rows that the next lower layer put out, `[n, h]`.
    dx: Vec<f32>,
    flow: Flow,
    inputs: LinearInputs,
    workspace: Workspace,
}

/// What entered each linear layer, as the right factor of `dYᵀ X`.
#[derive(Default)]
struct LinearInputs {
    qkv: Panels,
    attention_output: Panels,
    up: Panels,
    down: Panels,
}

impl<'a> Descent<'a> {
    fn new(group: Group<'a>, trace: &'a GroupTrace, d_hidden: &Matrix) -> Self {
        Self {
            dx: group.part(d_hidden.values(), d_hidden.n_cols()).to_vec(),
            group,
            trace,
            flow: Flow::default(),
            inputs: LinearInputs::default(),
            workspace: Workspace::default(),
        }
    }

    /// Goes down through kept layer `l` and packs what entered its linear layers.
    fn step(&mut self, pass: &LayerPass, l: usize) {
        let (h, f) = (pass.config.hidden_size, pass.config.intermediate_size);
        let trace = &self.trace.layers[l];
        self.flow.d_output = std::mem::take(&mut self.dx);
        self.dx = pass.backward(trace, &mut self.flow, &mut self.workspace);
        self.inputs.qkv.pack(View::new(&trace.input, h));
        self.inputs.attention_output.pack(View::new(&trace.context, h));
        self.inputs.up.pack(View::new(&self.flow.middle, h));
        self.inputs.down.pack(View::new(&self.flow.activated, f));
    }
}

/// Adds to the gradients of one layer what all groups contribute; `l` counts from the lowest kept layer.
fn layer_gradients(
    config: &BertConfig,
    groups: &[Descent],
    l: usize,
    gradients: &mut Layer<&mut [f32]>,
) {
    let (h, f) = (config.hidden_size, config.intermediate_size);
    let mut tiles = Vec::new();
    let linear = |d: fn(&Flow) -> &[f32], x: fn(&LinearInputs) -> &Panels, n_out, n_in| Source {
        d,
        x,
        n_out,
        n_in,
    };
    let sources = [
        (linear(|flow| &flow.d_qkv, |x| &x.qkv, 3 * h, h), &mut gradients.qkv),
        (
            linear(|flow| &flow.d_attention_output, |x| &x.attention_output, h, h),
            &mut gradients.attention_output,
        ),
        (linear(|flow| &flow.d_pre, |x| &x.up, f, h), &mut gradients.up),
        (linear(|flow| &flow.d_down, |x| &x.down, h, f), &mut gradients.down),
    ];
    for (source, gradient) in sources {
        source.cut(gradient, &mut tiles);
    }
    let norms = || {
        for descent in groups {
            let LayerTrace { attention_norm, output_norm, .. } = &descent.trace.layers[l];
            attention_norm.accumulate(&descent.flow.d_middle, &mut gradients.attention_norm);
            output_norm.accumulate(&descent.flow.d_output, &mut gradients.output_norm);
        }
    };
    let tiles = || tiles.into_par_iter().with_max_len(1).for_each(|tile| tile.sum(groups));
    rayon::join(tiles, norms);
}

/// Where a linear layer's gradient comes from.
#[derive(Clone, Copy)]
struct Source {
    /// `dY [n, out]`.
    d: fn(&Flow) -> &[f32],
    /// `X [n, in]`.
    x: fn(&LinearInputs) -> &Panels,
    n_out: usize,
    n_in: usize,
}

impl Source {
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
    source: Source,
    first_row: usize,
    /// `[rows, in]`.
    weight: &'g mut [f32],
    /// `[rows]`.
    bias: &'g mut [f32],
}

impl Tile<'_> {
    /// `dW += dYᵀ X`, `db += Σ rows of dY`, group after group.
    fn sum(self, groups: &[Descent]) {
        let (n_out, n_rows) = (self.source.n_out, self.bias.len());
        let mut strips = Strips::default();
        for descent in groups {
            let d = (self.source.d)(&descent.flow);
            strips.pack_transposed(View::new(d, n_out).cols(self.first_row, n_rows));
            let right = (self.source.x)(&descent.inputs);
            let left = Left::Strips(&strips);
            Product { left, right, write: Write::Add }.into(self.weight);
            vectorised(
                #[inline(always)]
                || {
                    for row in d.chunks_exact(n_out) {
                        add(self.bias, &row[self.first_row..][..n_rows]);
                    }
                },
            );
        }
    }
}
