//! All weights of an encoder in one flat buffer, and the names they have outside.
//!
//! The order is bottom up: embeddings, then layer after layer, so that a frozen lower part is a prefix.
//! Query, key and value weights lie side by side and are used as one matrix `[3h, h]`.
//! A linear layer computes `y = x Wᵀ + b` with `W [out, in]`, as in PyTorch.
//!
//! [`Weights::carve`] is the only place that knows the order; values, gradients and Adam's moments
//! share it, and so do the [`Tensor`] names under which files store them.

use std::ops::Range;

pub(super) use fewtag_kernels::layer_norm::Norm;

use super::config::BertConfig;

/// Weight `[out, in]` and bias `[out]` of a linear layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Linear<T> {
    /// `[out, in]`, row after row.
    pub weight: T,
    /// `[out]`.
    pub bias: T,
}

/// The tables below the first layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings<T> {
    /// `[vocab_size, h]`.
    pub word: T,
    /// `[max_position_embeddings, h]`.
    pub position: T,
    /// `[type_vocab_size, h]`.
    pub segment: T,
    /// Over the sum of the three.
    pub norm: Norm<T>,
}

/// The weights of one transformer layer.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer<T> {
    /// Query, key and value: `[3h, h]`.
    pub qkv: Linear<T>,
    /// After attention: `[h, h]`.
    pub attention_output: Linear<T>,
    /// After the first residual sum.
    pub attention_norm: Norm<T>,
    /// Into the feed-forward block: `[f, h]`.
    pub up: Linear<T>,
    /// Out of it: `[h, f]`.
    pub down: Linear<T>,
    /// After the second residual sum.
    pub output_norm: Norm<T>,
}

/// All weights; `T` is a view of one: a slice, or its place in the flat buffer.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights<T> {
    /// Below the first layer.
    pub embeddings: Embeddings<T>,
    /// From the lowest to the highest.
    pub layers: Vec<Layer<T>>,
}

impl<T> Weights<T> {
    /// Cuts a buffer into weights: `take(n)` hands out its next `n` numbers.
    pub(super) fn carve(config: &BertConfig, mut take: impl FnMut(usize) -> T) -> Self {
        let (h, f) = (config.hidden_size, config.intermediate_size);
        Self {
            embeddings: Embeddings {
                word: take(config.vocab_size * h),
                position: take(config.max_position_embeddings * h),
                segment: take(config.type_vocab_size * h),
                norm: Norm { weight: take(h), bias: take(h) },
            },
            layers: (0..config.num_hidden_layers)
                .map(|_| Layer {
                    qkv: Linear { weight: take(3 * h * h), bias: take(3 * h) },
                    attention_output: Linear { weight: take(h * h), bias: take(h) },
                    attention_norm: Norm { weight: take(h), bias: take(h) },
                    up: Linear { weight: take(f * h), bias: take(f) },
                    down: Linear { weight: take(h * f), bias: take(h) },
                    output_norm: Norm { weight: take(h), bias: take(h) },
                })
                .collect(),
        }
    }
}

/// The places of all weights in the flat buffer.
pub(super) fn places(config: &BertConfig) -> Weights<Range<usize>> {
    let mut end = 0;
    Weights::carve(config, |n| {
        end += n;
        end - n..end
    })
}

/// One tensor as files know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tensor {
    /// The name in a Hugging Face file, without a `bert.` prefix.
    pub name: String,
    /// One or two sizes.
    pub shape: Vec<usize>,
    /// Its place in the flat buffer.
    pub place: Range<usize>,
}

impl Tensor {
    /// Whether weight decay applies: to matrices, not to biases and layer norms.
    #[must_use]
    pub(crate) fn decays(&self) -> bool {
        self.shape.len() == 2
    }
}

/// The tensors of an encoder in the order of the flat buffer; together they cover it without gaps.
#[must_use]
pub(super) fn tensors(config: &BertConfig) -> Vec<Tensor> {
    let (h, f) = (config.hidden_size, config.intermediate_size);
    let weights = places(config);
    let mut names = Names { tensors: Vec::new() };

    let tables = weights.embeddings;
    names.add("embeddings.word_embeddings.weight", &[config.vocab_size, h], tables.word);
    let n_positions = config.max_position_embeddings;
    names.add("embeddings.position_embeddings.weight", &[n_positions, h], tables.position);
    let n_segments = config.type_vocab_size;
    names.add("embeddings.token_type_embeddings.weight", &[n_segments, h], tables.segment);
    names.norm("embeddings", h, tables.norm);

    for (l, layer) in weights.layers.into_iter().enumerate() {
        let block = format!("encoder.layer.{l}");
        names.qkv(&format!("{block}.attention.self"), h, &layer.qkv);
        names.linear(&format!("{block}.attention.output.dense"), [h, h], layer.attention_output);
        names.norm(&format!("{block}.attention.output"), h, layer.attention_norm);
        names.linear(&format!("{block}.intermediate.dense"), [f, h], layer.up);
        names.linear(&format!("{block}.output.dense"), [h, f], layer.down);
        names.norm(&format!("{block}.output"), h, layer.output_norm);
    }
    names.tensors
}

/// Gathers the tensors of [`tensors`].
struct Names {
    tensors: Vec<Tensor>,
}

impl Names {
    fn add(&mut self, name: &str, shape: &[usize], place: Range<usize>) {
        debug_assert_eq!(shape.iter().product::<usize>(), place.len(), "{name}");
        self.tensors.push(Tensor { name: name.to_owned(), shape: shape.to_vec(), place });
    }

    fn linear(&mut self, name: &str, [n_out, n_in]: [usize; 2], linear: Linear<Range<usize>>) {
        self.add(&format!("{name}.weight"), &[n_out, n_in], linear.weight);
        self.add(&format!("{name}.bias"), &[n_out], linear.bias);
    }

    fn norm(&mut self, name: &str, h: usize, norm: Norm<Range<usize>>) {
        self.add(&format!("{name}.LayerNorm.weight"), &[h], norm.weight);
        self.add(&format!("{name}.LayerNorm.bias"), &[h], norm.bias);
    }

    /// Files keep the three parts of the fused matrix apart.
    fn qkv(&mut self, name: &str, h: usize, qkv: &Linear<Range<usize>>) {
        let third = |i: usize, of: &Range<usize>| {
            let n = of.len() / 3;
            of.start + i * n..of.start + (i + 1) * n
        };
        for (i, part) in ["query", "key", "value"].into_iter().enumerate() {
            self.add(&format!("{name}.{part}.weight"), &[h, h], third(i, &qkv.weight));
        }
        for (i, part) in ["query", "key", "value"].into_iter().enumerate() {
            self.add(&format!("{name}.{part}.bias"), &[h], third(i, &qkv.bias));
        }
    }
}

/// All weights of an encoder, or one number for each of them: gradients, Adam's moments.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    config: BertConfig,
    values: Vec<f32>,
}

impl Parameters {
    /// All zeros.
    #[must_use]
    pub fn zeros(config: &BertConfig) -> Self {
        let mut n_values = 0;
        Weights::carve(config, |n| n_values += n);
        Self { config: config.clone(), values: vec![0.0; n_values] }
    }

    /// The lowest `n_layers` layers, or all if there are no more.
    #[must_use]
    pub(crate) fn lowest(mut self, n_layers: usize) -> Self {
        if n_layers < self.config.num_hidden_layers {
            self.config.num_hidden_layers = n_layers;
            let mut n_values = 0;
            Weights::carve(&self.config, |n| n_values += n);
            self.values.truncate(n_values); // The order is bottom up.
        }
        self
    }

    /// The layers above the lowest `n_below`: an encoder of the same width whose tables have no rows.
    ///
    /// # Panics
    ///
    /// If there are fewer layers.
    #[must_use]
    pub(crate) fn upper(&self, n_below: usize) -> Self {
        let mut upper = Self::zeros(&self.config.upper(n_below));
        let from = places(&self.config).layers.get(n_below).map_or(self.values.len(), |layer| {
            layer.qkv.weight.start // The order is bottom up.
        });
        let n_before = upper.values.len() - (self.values.len() - from);
        upper.values[n_before..].copy_from_slice(&self.values[from..]);
        upper
    }

    /// The shape these parameters have.
    #[must_use]
    pub fn config(&self) -> &BertConfig {
        &self.config
    }

    /// The flat buffer.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The flat buffer, to be changed.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// Every tensor with its numbers, in the order of the flat buffer.
    pub fn tensors(&self) -> impl Iterator<Item = (Tensor, &[f32])> {
        tensors(&self.config).into_iter().map(|tensor| {
            let values = &self.values[tensor.place.clone()];
            (tensor, values)
        })
    }

    /// Every tensor with its numbers, to be changed.
    pub(crate) fn tensors_mut(&mut self) -> impl Iterator<Item = (Tensor, &mut [f32])> {
        let mut rest = self.values.as_mut_slice();
        tensors(&self.config).into_iter().map(move |tensor| {
            let values = cut_mut(&mut rest, tensor.place.len());
            (tensor, values)
        })
    }

    /// The weights by their role.
    #[must_use]
    pub fn weights(&self) -> Weights<&[f32]> {
        let mut rest = self.values.as_slice();
        Weights::carve(&self.config, |n| cut(&mut rest, n))
    }

    /// The weights by their role, to be changed.
    pub fn weights_mut(&mut self) -> Weights<&mut [f32]> {
        let mut rest = self.values.as_mut_slice();
        Weights::carve(&self.config, |n| cut_mut(&mut rest, n))
    }
}

/// The next `n` numbers of a buffer that the layout covers.
fn cut<'a>(rest: &mut &'a [f32], n: usize) -> &'a [f32] {
    rest.split_off(..n).expect("the layout covers the buffer")
}

/// The same, to be changed.
#[expect(clippy::mut_mut, reason = "the buffer is advanced in place, as `split_off_mut` does")]
fn cut_mut<'a>(rest: &mut &'a mut [f32], n: usize) -> &'a mut [f32] {
    rest.split_off_mut(..n).expect("the layout covers the buffer")
}

/// The gradient of the loss by every parameter, summed over what was accumulated since [`Gradients::clear`].
///
/// The word table is by far the largest tensor and a batch touches few of its rows; knowing which ones makes
/// clearing and updating cheap.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradients {
    parameters: Parameters,
    /// For each row of the word table, whether it was written to since the last clearing.
    touched: Vec<bool>,
    /// The same since the beginning.
    seen: Vec<bool>,
}

impl Gradients {
    /// All zeros.
    #[must_use]
    pub fn zeros(config: &BertConfig) -> Self {
        let none = vec![false; config.vocab_size];
        Self { parameters: Parameters::zeros(config), touched: none.clone(), seen: none }
    }

    /// The gradients; rows of the word table that [`Gradients::touched`] denies are zero.
    #[must_use]
    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// For each row of the word table, whether it was written to since the last clearing.
    #[must_use]
    pub fn touched(&self) -> &[bool] {
        &self.touched
    }

    /// For each row of the word table, whether it was ever written to.
    #[must_use]
    pub fn seen(&self) -> &[bool] {
        &self.seen
    }

    /// Says that every row of the word table may have had a gradient before: training continues an earlier run.
    pub(crate) fn set_all_seen(&mut self) {
        self.seen.fill(true);
    }

    /// The gradients by role, for a backward pass that writes to the word rows of `ids` only.
    pub fn weights_mut(&mut self, ids: impl IntoIterator<Item = u32>) -> Weights<&mut [f32]> {
        for id in ids {
            self.touched[id as usize] = true;
            self.seen[id as usize] = true;
        }
        self.parameters.weights_mut()
    }

    /// Sets all gradients to zero.
    pub fn clear(&mut self) {
        let h = self.parameters.config.hidden_size;
        let (word, rest) = self.parameters.values.split_at_mut(self.touched.len() * h);
        rest.fill(0.0);
        for (row, touched) in word.chunks_exact_mut(h).zip(&mut self.touched) {
            if std::mem::take(touched) {
                row.fill(0.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::config::tests::odd_config;
    use super::*;

    #[test]
    fn tensors_cover_the_buffer_once_and_in_order() {
        let parameters = Parameters::zeros(&odd_config());
        let mut end = 0;
        let mut names = BTreeSet::new();
        for (tensor, values) in parameters.tensors() {
            assert_eq!(tensor.place.start, end, "{}", tensor.name);
            assert_eq!(tensor.shape.iter().product::<usize>(), values.len(), "{}", tensor.name);
            end = tensor.place.end;
            assert!(names.insert(tensor.name));
        }
        assert_eq!(end, parameters.values().len());
        assert_eq!(names.len(), 5 + 2 * 16);
    }

    #[test]
    fn names_and_roles_are_the_same_numbers() {
        let mut parameters = Parameters::zeros(&odd_config());
        for (tensor, values) in parameters.tensors_mut() {
            if tensor.name == "encoder.layer.1.attention.self.key.bias" {
                values.fill(7.0);
            }
        }
        let weights = parameters.weights();
        let bias = weights.layers[1].qkv.bias;
        assert_eq!(bias, [[0.0; 15], [7.0; 15], [0.0; 15]].as_flattened());
    }

    #[test]
    fn a_published_encoder_has_its_published_size() {
        let config = BertConfig {
            hidden_size: 384,
            num_hidden_layers: 6,
            num_attention_heads: 12,
            intermediate_size: 1536,
            vocab_size: 30522,
            max_position_embeddings: 512,
            ..odd_config()
        };
        // all-MiniLM-L6-v2 states 22,713,216 parameters; its pooler, which we do not use, has 384·385.
        assert_eq!(Parameters::zeros(&config).values().len(), 22_713_216 - 384 * 385);
    }
}
