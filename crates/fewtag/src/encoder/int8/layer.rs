//! One transformer layer in whole numbers: the formulas of [`super::super::layer`], up only and without dropout.
//!
//! What enters a product is brought to bytes row by row. Attention, norms and activation are computed in floats.

use std::ops::Range;

use super::super::config::BertConfig;
use super::super::group::SequenceGroup;
use super::super::layer::keep_rows;
use super::super::parameters::{Layer, Linear};
use super::share::{in_parts, put_columns};
use super::weights::Numbers;
use fewtag_kernels::attention::{Attention, Heads, Scratch};
use fewtag_kernels::int8::{Finish, Panels, Product, Rows, Unit};
use fewtag_kernels::layer_norm::{Norm, normalise_rows};

/// Multiplications of bytes that are worth a part of their own: some 5 µs where handing one over takes 1.
const WORTH_A_PART: usize = 1 << 20;
/// The same for floats, of which there are fewer a second.
const FLOATS_WORTH_A_PART: usize = 1 << 18;

/// A linear layer as products read it.
#[derive(Debug)]
struct PackedLinear {
    panels: Panels,
    bias: Vec<f32>,
}

impl PackedLinear {
    fn new(linear: &Linear<Numbers>, k: usize) -> Self {
        let panels = Panels::pack(&[linear.weight.matrix()], k);
        Self { panels, bias: linear.bias.floats().to_vec() }
    }

    /// `y = x Wᵀ + b` and what follows, its columns shared between `n_threads` if that pays.
    fn run(&self, rows: &Rows, finish: Finish, n_threads: usize, y: &mut Vec<f32>) {
        let (m, n) = (rows.len(), self.panels.n());
        y.resize(m * n, 0.0);
        let product = Product { rows, panels: &self.panels, bias: &self.bias, finish };
        let n_panels = product.n_panels();
        let n_parts = n_threads.min(m * rows.k() * n / WORTH_A_PART).min(n_panels);
        if n_parts < 2 {
            return product.into(y);
        }
        let own = |panels| product.columns_into(panels, y, n);
        let part = |panels: Range<usize>| {
            let columns = product.columns(&panels);
            let mut part = vec![0.0; m * columns.len()];
            product.columns_into(panels, &mut part, columns.len());
            (columns, part)
        };
        for (columns, part) in in_parts(n_panels, n_parts, own, part) {
            put_columns(y, n, &columns, &part);
        }
    }
}

/// The weights of a layer.
#[derive(Debug)]
pub(super) struct PackedLayer {
    qkv: PackedLinear,
    attention_output: PackedLinear,
    attention_norm: Norm<Vec<f32>>,
    up: PackedLinear,
    down: PackedLinear,
    output_norm: Norm<Vec<f32>>,
}

impl PackedLayer {
    pub(super) fn new(layer: &Layer<Numbers>, config: &BertConfig) -> Self {
        let (h, f) = (config.hidden_size, config.intermediate_size);
        Self {
            qkv: PackedLinear::new(&layer.qkv, h),
            attention_output: PackedLinear::new(&layer.attention_output, h),
            attention_norm: owned(&layer.attention_norm),
            up: PackedLinear::new(&layer.up, h),
            down: PackedLinear::new(&layer.down, f),
            output_norm: owned(&layer.output_norm),
        }
    }
}

impl PackedLayer {
    /// Writes the weights, as floats, to where they belong.
    pub(super) fn unpack(&self, into: Layer<&mut [f32]>) {
        let linear = |from: &PackedLinear, into: Linear<&mut [f32]>| {
            from.panels.unpack(into.weight);
            into.bias.copy_from_slice(&from.bias);
        };
        let norm = |from: &Norm<Vec<f32>>, into: Norm<&mut [f32]>| {
            into.weight.copy_from_slice(&from.weight);
            into.bias.copy_from_slice(&from.bias);
        };
        linear(&self.qkv, into.qkv);
        linear(&self.attention_output, into.attention_output);
        norm(&self.attention_norm, into.attention_norm);
        linear(&self.up, into.up);
        linear(&self.down, into.down);
        norm(&self.output_norm, into.output_norm);
    }
}

/// Scale and shift of a norm.
pub(super) fn owned(norm: &Norm<Numbers>) -> Norm<Vec<f32>> {
    Norm { weight: norm.weight.floats().to_vec(), bias: norm.bias.floats().to_vec() }
}

/// The same as slices.
pub(super) fn slices(norm: &Norm<Vec<f32>>) -> Norm<&[f32]> {
    Norm { weight: &norm.weight, bias: &norm.bias }
}

/// Buffers that the layers of a group use in turn.
#[derive(Debug)]
pub(super) struct Workspace {
    rows: Rows,
    qkv: Vec<f32>,
    probabilities: Vec<f32>,
    context: Vec<f32>,
    middle: Vec<f32>,
    activated: Vec<f32>,
    attention: Scratch,
}

impl Workspace {
    pub(super) fn new(unit: Unit) -> Self {
        let [qkv, probabilities, context, middle, activated] = [const { Vec::new() }; 5];
        let (rows, attention) = (Rows::new(unit), Scratch::default());
        Self { rows, qkv, probabilities, context, middle, activated, attention }
    }
}

impl Default for Workspace {
    fn default() -> Self {
        Self::new(Unit::best())
    }
}

/// A layer about to be run on a group.
pub(super) struct LayerPass<'a> {
    pub(super) config: &'a BertConfig,
    pub(super) layer: &'a PackedLayer,
    pub(super) group: &'a SequenceGroup<'a>,
    /// If only some rows of the result are wanted, these.
    pub(super) wanted: Option<&'a [usize]>,
    /// How many threads may share a product: several if there are fewer groups than threads.
    pub(super) n_threads: usize,
}

impl LayerPass<'_> {
    /// Turns `x [n, h]` into the layer's output, `[n, h]`, or its wanted rows.
    pub(super) fn run(&self, x: &mut Vec<f32>, workspace: &mut Workspace) {
        let (h, f) = (self.config.hidden_size, self.config.intermediate_size);
        let Self { layer, n_threads, .. } = *self;
        let epsilon = self.config.layer_norm_eps;
        let Workspace { rows, qkv, context, .. } = workspace;
        rows.quantise(x, h);
        layer.qkv.run(rows, Finish::Plain, n_threads, qkv);
        context.resize(x.len(), 0.0);
        self.attend(workspace);
        let Workspace { rows, context, middle, activated, .. } = workspace;
        if let Some(wanted) = self.wanted {
            keep_rows(x, wanted, h);
            keep_rows(context, wanted, h);
        }
        rows.quantise(context, h);
        layer.attention_output.run(rows, Finish::Add(x), n_threads, middle);
        normalise_rows(middle, &slices(&layer.attention_norm), epsilon);
        rows.quantise(middle, h);
        layer.up.run(rows, Finish::Activation(self.config.hidden_act), n_threads, activated);
        rows.quantise(activated, f);
        layer.down.run(rows, Finish::Add(middle), n_threads, x);
        normalise_rows(x, &slices(&layer.output_norm), epsilon);
    }

    /// `context` from `qkv`, one sequence after the other.
    fn attend(&self, workspace: &mut Workspace) {
        let (h, n_heads) = (self.config.hidden_size, self.config.num_attention_heads);
        let heads = Heads { n: n_heads, size: self.config.head_size() };
        let Workspace { qkv, probabilities, context, attention, .. } = workspace;
        for sequence in self.group.sequences() {
            let part =
                |width: usize| -> Range<usize> { sequence.start * width..sequence.end * width };
            let squares = sequence.len().pow(2);
            probabilities.resize(n_heads * squares, 0.0);
            let of_sequence =
                Attention { heads, qkv: &qkv[part(3 * h)], dropout: None, first_row: 0 };
            let context = &mut context[part(h)];
            let n_parts = self.n_threads.min(2 * squares * h / FLOATS_WORTH_A_PART).min(n_heads);
            if n_parts < 2 {
                of_sequence.forward(probabilities, context, attention);
                continue;
            }
            let own = |heads| of_sequence.heads(heads, probabilities, (context, h), attention);
            let others = in_parts(n_heads, n_parts, own, |own: Range<usize>| {
                let columns = own.start * heads.size..own.end * heads.size;
                let mut probabilities = vec![0.0; own.len() * squares];
                let mut context = vec![0.0; sequence.len() * columns.len()];
                let into = (&mut context[..], columns.len());
                of_sequence.heads(own, &mut probabilities, into, &mut Scratch::default());
                (columns, context)
            });
            for (columns, part) in others {
                put_columns(context, h, &columns, &part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fewtag_kernels::testing::normal;

    #[test]
    fn a_product_shared_between_threads_is_the_same() {
        let (m, n, k) = (250, 1200, 256);
        let steps = normal(n * k, 1).iter().map(|x| (40.0 * x) as i8).collect();
        let weight = Numbers::Steps { values: steps, scales: vec![0.01; n] };
        let linear = Linear { weight, bias: Numbers::Floats(normal(n, 2)) };
        let linear = PackedLinear::new(&linear, k);
        let mut rows = Rows::new(Unit::best());
        rows.quantise(&normal(m * k, 3), k);
        let more = normal(m * n, 4);
        let run = |n_threads| {
            let mut y = Vec::new();
            linear.run(&rows, Finish::Add(&more), n_threads, &mut y);
            y
        };
        assert!(m * n * k / WORTH_A_PART >= 4, "large enough to be shared");
        for n_threads in [2, 3, 4, 64] {
            assert_eq!(run(n_threads), run(1), "{n_threads}");
        }
    }
}
