//! One transformer layer over the rows `x [n, h]` of a group of sequences, up and down.
//!
//! ```text
//! up    qkv = x Wqkvᵀ + b                            down  dz₂ = norm₂(dy)           du = dropout(dz₂)
//!       c = attention(qkv)                                 da = du Wdown,            dpre = act'(pre) da
//!       y₁ = norm₁(x + dropout(c Woᵀ + b))                 dy₁ = dz₂ + dpre Wup
//!       pre = y₁ Wupᵀ + b,  a = act(pre)                   dz₁ = norm₁(dy₁)          do = dropout(dz₁)
//!       y = norm₂(y₁ + dropout(a Wdownᵀ + b))              dqkv = attention(do Wo),  dx = dz₁ + dqkv Wqkv
//! ```
//!
//! Weight gradients need all groups and come after this, in `weight_gradients`, from what [`Flow`] holds.

use std::ops::Range;

use fewtag_kernels::attention::{Attention, Heads, Scratch};
use fewtag_kernels::dropout::{LayerDropout, Place};
use fewtag_kernels::layer_norm::Normalised;
use fewtag_kernels::matmul::{Left, Panels, Product, View, Write};
use fewtag_kernels::{activation, add, add_bias};

use super::config::BertConfig;
use super::group::SequenceGroup;
use super::parameters::Layer;

/// The weights of a layer as right factors of products: forwards `Wᵀ`, backwards `W`.
#[derive(Debug, Default)]
pub(super) struct PackedLayer {
    qkv: Panels,
    attention_output: Panels,
    up: Panels,
    down: Panels,
}

impl PackedLayer {
    /// Packs all weights: [`Panels::pack_transposed`] for `x Wᵀ`, [`Panels::pack`] for `dy W`.
    pub(super) fn pack(
        &mut self,
        layer: &Layer<&[f32]>,
        config: &BertConfig,
        pack: fn(&mut Panels, View),
    ) {
        let (h, f) = (config.hidden_size, config.intermediate_size);
        let Self { qkv, attention_output, up, down } = self;
        let attention = || {
            pack(qkv, View::new(layer.qkv.weight, h));
            pack(attention_output, View::new(layer.attention_output.weight, h));
        };
        let feed_forward = || {
            rayon::join(
                || pack(up, View::new(layer.up.weight, h)),
                || pack(down, View::new(layer.down.weight, f)),
            )
        };
        rayon::join(attention, feed_forward);
    }
}

/// What a layer computed in the forward pass and needs in the backward pass.
#[derive(Debug, Default)]
pub(super) struct LayerTrace {
    /// `x [n, h]`.
    pub(super) input: Vec<f32>,
    /// `[n, 3h]`.
    qkv: Vec<f32>,
    /// `[heads, l, l]` for one sequence after the other.
    probabilities: Vec<f32>,
    /// `c [n, h]`.
    pub(super) context: Vec<f32>,
    /// Of `norm₁`.
    pub(super) attention_norm: Normalised,
    /// `[n, f]`.
    pre: Vec<f32>,
    /// Of `norm₂`.
    pub(super) output_norm: Normalised,
}

/// What a layer computed in the backward pass and its weight gradients need.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// `dy [n, h]`.
    pub(super) d_output: Vec<f32>,
    /// `du [n, h]`.
    pub(super) d_down: Vec<f32>,
    /// `a [n, f]`.
    pub(super) activated: Vec<f32>,
    /// `dpre [n, f]`.
    pub(super) d_pre: Vec<f32>,
    /// `y₁ [n, h]`.
    pub(super) middle: Vec<f32>,
    /// `dy₁ [n, h]`.
    pub(super) d_middle: Vec<f32>,
    /// `do [n, h]`.
    pub(super) d_attention_output: Vec<f32>,
    /// `[n, 3h]`.
    pub(super) d_qkv: Vec<f32>,
}

/// Buffers that the layers of a group use in turn.
#[derive(Debug, Default)]
pub(super) struct Workspace {
    sum: Vec<f32>,
    middle: Vec<f32>,
    activated: Vec<f32>,
    d_context: Vec<f32>,
    attention: Scratch,
}

/// A layer about to be run on a group.
pub(super) struct LayerPass<'a> {
    pub(super) config: &'a BertConfig,
    pub(super) weights: &'a Layer<&'a [f32]>,
    /// Transposed forwards, straight backwards.
    pub(super) packed: &'a PackedLayer,
    pub(super) dropout: Option<LayerDropout>,
    pub(super) group: &'a SequenceGroup<'a>,
    /// If only some rows of `y` are wanted, these; the others take part in attention and go no further.
    pub(super) wanted: Option<&'a [usize]>,
}

impl LayerPass<'_> {
    /// Runs the layer on `x [n, h]` and returns `y [n, h]`, or its wanted rows; `trace` is overwritten, its buffers are reused.
    pub(super) fn forward(
        &self,
        x: Vec<f32>,
        trace: &mut LayerTrace,
        workspace: &mut Workspace,
    ) -> Vec<f32> {
        let (h, f) = (self.config.hidden_size, self.config.intermediate_size);
        let epsilon = self.config.layer_norm_eps;
        let mut y = std::mem::replace(&mut trace.input, x);

        let n_read = trace.input.len() / h;
        multiply(&trace.input, &self.packed.qkv, sized(&mut trace.qkv, n_read * 3 * h));
        add_bias(&mut trace.qkv, self.weights.qkv.bias);
        self.attend(trace, &mut workspace.attention);
        if let Some(wanted) = self.wanted {
            keep_rows(&mut trace.input, wanted, h);
            keep_rows(&mut trace.context, wanted, h);
        }
        let n = trace.input.len() / h;
        let sum = sized(&mut workspace.sum, n * h);
        let middle = sized(&mut workspace.middle, n * h);
        let activated = sized(&mut workspace.activated, n * f);
        multiply(&trace.context, &self.packed.attention_output, sum);
        self.add_residual(Place::AttentionOutput, sum, &trace.input);
        trace.attention_norm.forward(sum, &self.weights.attention_norm, epsilon, middle);

        multiply(middle, &self.packed.up, sized(&mut trace.pre, n * f));
        let bias = self.weights.up.bias;
        activation::forward(self.config.hidden_act, &mut trace.pre, bias, activated);
        multiply(activated, &self.packed.down, sum);
        self.add_residual(Place::Output, sum, middle);
        let output = sized(&mut y, n * h);
        trace.output_norm.forward(sum, &self.weights.output_norm, epsilon, output);
        y
    }

    /// Turns the gradient `flow.d_output` by `y` into the other parts of `flow`, and into the gradient `dx` by `x`,
    /// `[n, h]`, before the contribution of `d_qkv` ([`LayerPass::through_qkv`]).
    pub(super) fn backward(
        &self,
        trace: &LayerTrace,
        flow: &mut Flow,
        dx: &mut Vec<f32>,
        workspace: &mut Workspace,
    ) {
        let (h, f) = (self.config.hidden_size, self.config.intermediate_size);
        let n = flow.d_output.len() / h;
        let d_middle = sized(&mut flow.d_middle, n * h);
        trace.output_norm.backward(&flow.d_output, self.weights.output_norm.weight, d_middle);
        self.drop_out(Place::Output, d_middle, &mut flow.d_down);
        let d_pre = sized(&mut flow.d_pre, n * f);
        multiply(&flow.d_down, &self.packed.down, d_pre);
        let activated = sized(&mut flow.activated, n * f);
        activation::backward(self.config.hidden_act, &trace.pre, activated, d_pre);
        add_product(d_pre, &self.packed.up, d_middle);

        let norm = &self.weights.attention_norm;
        trace.attention_norm.output(norm, sized(&mut flow.middle, n * h));
        trace.attention_norm.backward(d_middle, norm.weight, sized(dx, n * h));
        self.drop_out(Place::AttentionOutput, dx, &mut flow.d_attention_output);
        let d_context = sized(&mut workspace.d_context, n * h);
        multiply(&flow.d_attention_output, &self.packed.attention_output, d_context);
        let d_qkv = sized(&mut flow.d_qkv, n * 3 * h);
        let mut rest = trace.probabilities.as_slice();
        for rows in self.group.sequences() {
            let p;
            (p, rest) = rest.split_at(self.config.num_attention_heads * rows.len().pow(2));
            let (dc, d_qkv) = (&d_context[times(&rows, h)], &mut d_qkv[times(&rows, 3 * h)]);
            self.attention(trace, &rows).backward(p, dc, d_qkv, &mut workspace.attention);
        }
    }

    /// Completes the gradient `dx [n, h]`; not needed below the lowest trained layer.
    pub(super) fn through_qkv(&self, flow: &Flow, dx: &mut [f32]) {
        add_product(&flow.d_qkv, &self.packed.qkv, dx);
    }

    /// `context` from `qkv`, one sequence after the other.
    fn attend(&self, trace: &mut LayerTrace, scratch: &mut Scratch) {
        let (h, heads) = (self.config.hidden_size, self.config.num_attention_heads);
        let n_probabilities = self.group.sequences().map(|rows| heads * rows.len().pow(2)).sum();
        let mut probabilities = std::mem::take(&mut trace.probabilities);
        let mut context = std::mem::take(&mut trace.context);
        context.resize(trace.input.len(), 0.0);
        let mut rest = sized(&mut probabilities, n_probabilities);
        for rows in self.group.sequences() {
            let p;
            (p, rest) = rest.split_at_mut(heads * rows.len().pow(2));
            let c = &mut context[times(&rows, h)];
            self.attention(trace, &rows).forward(p, c, scratch);
        }
        (trace.probabilities, trace.context) = (probabilities, context);
    }

    fn attention<'t>(&self, trace: &'t LayerTrace, rows: &Range<usize>) -> Attention<'t> {
        let config = self.config;
        Attention {
            heads: Heads { n: config.num_attention_heads, size: config.head_size() },
            qkv: &trace.qkv[times(rows, 3 * config.hidden_size)],
            dropout: self.dropout,
            first_row: self.group.rows().start + rows.start,
        }
    }

    /// `sum = residual + dropout(sum + bias)`.
    fn add_residual(&self, place: Place, sum: &mut [f32], residual: &[f32]) {
        let linear = match place {
            Place::Output => &self.weights.down,
            _ => &self.weights.attention_output,
        };
        add_bias(sum, linear.bias);
        if let Some(dropout) = self.dropout {
            dropout.apply(place, self.group.rows().start, sum, linear.bias.len());
        }
        add(sum, residual);
    }

    /// `out = dropout(d)`: the way back through dropout is dropout of the gradient.
    fn drop_out(&self, place: Place, d: &[f32], out: &mut Vec<f32>) {
        out.clear();
        out.extend_from_slice(d);
        if let Some(dropout) = self.dropout {
            dropout.apply(place, self.group.rows().start, out, self.config.hidden_size);
        }
    }
}

/// A range of rows as a range of numbers.
fn times(rows: &Range<usize>, width: usize) -> Range<usize> {
    rows.start * width..rows.end * width
}

/// Leaves only some rows of `x [n, h]`, in increasing order.
pub(super) fn keep_rows(x: &mut Vec<f32>, rows: &[usize], h: usize) {
    for (to, from) in rows.iter().enumerate() {
        x.copy_within(from * h..(from + 1) * h, to * h);
    }
    x.truncate(rows.len() * h);
}

/// The buffer at another length; what it holds is about to be overwritten.
fn sized(buffer: &mut Vec<f32>, len: usize) -> &mut [f32] {
    buffer.resize(len, 0.0);
    buffer
}

/// `c = a b`.
fn multiply(a: &[f32], b: &Panels, c: &mut [f32]) {
    Product { left: Left::Rows(View::new(a, b.k())), right: b, write: Write::Set }.into(c);
}

/// `c += a b`.
fn add_product(a: &[f32], b: &Panels, c: &mut [f32]) {
    Product { left: Left::Rows(View::new(a, b.k())), right: b, write: Write::Add }.into(c);
}
