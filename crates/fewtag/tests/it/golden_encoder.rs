//! The tiny encoder of `testdata/` against PyTorch in float64: `tests/golden/encoder.origin.md`.

use std::path::{Path, PathBuf};

use fewtag::Matrix;
use fewtag::encoder::{
    Activation, Bert, Engine, Gradients, PackedBatch, Parameters, Piece, weights,
};
use safetensors::SafeTensors;
use serde::Deserialize;

use crate::golden::{assert_all_close, read};

#[derive(Deserialize)]
struct Golden {
    batches: Vec<Vec<Sequence>>,
}

#[derive(Deserialize)]
struct Sequence {
    ids: Vec<u32>,
    segments: Vec<u8>,
}

/// The tensors beside `encoder.json`.
struct Tensors(Vec<u8>);

impl Tensors {
    fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/encoder.safetensors");
        Self(std::fs::read(path).expect("a golden file"))
    }

    fn named(&self, name: &str) -> Vec<f32> {
        let file = SafeTensors::deserialize(&self.0).expect("a safetensors file");
        let bytes = file.tensor(name).unwrap_or_else(|_| panic!("no tensor {name}")).data();
        bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect()
    }

    /// `[n_pieces, h]`
    fn rows(&self, name: &str, width: usize) -> Matrix {
        Matrix::new(self.named(name), width)
    }
}

fn batches() -> Vec<PackedBatch> {
    let golden: Golden = read("encoder.json");
    golden.batches.iter().map(|batch| packed(batch)).collect()
}

fn packed(sequences: &[Sequence]) -> PackedBatch {
    let mut batch = PackedBatch::new();
    for Sequence { ids, segments } in sequences {
        batch.push(ids.iter().zip(segments).map(|(&id, &segment)| Piece { id, segment }));
    }
    batch
}

fn tiny_weights() -> Parameters {
    let dir: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
    weights::load(&dir).expect("the tiny encoder")
}

/// The tiny encoder with each non-linearity, and the name the golden file gives it.
fn encoders() -> impl Iterator<Item = (Bert, &'static str)> {
    let kinds =
        [(Activation::Gelu, "gelu"), (Activation::GeluNew, "gelu_new"), (Activation::Relu, "relu")];
    kinds.into_iter().map(|(activation, name)| {
        let weights = tiny_weights();
        let mut config = weights.config().clone();
        config.hidden_act = activation;
        let mut parameters = Parameters::zeros(&config);
        parameters.values_mut().copy_from_slice(weights.values());
        (Bert::new(parameters).expect("a shape"), name)
    })
}

#[test]
fn hidden_states_agree_with_pytorch() {
    let (tensors, batch) = (Tensors::read(), &batches()[0]);
    for (bert, activation) in encoders() {
        let reference = tensors.named(&format!("hidden.{activation}"));
        let ours = bert.encode(batch).expect("a batch that fits");
        assert_all_close(activation, ours.values(), &reference, 2e-6);
        let (ours, _) = bert.encode_for_training(batch, None).expect("a batch that fits");
        assert_all_close(activation, ours.values(), &reference, 2e-6);
    }
}

#[test]
fn every_gradient_agrees_with_pytorch() {
    let (tensors, batch) = (Tensors::read(), &batches()[0]);
    for (bert, activation) in encoders() {
        let (_, trace) = bert.encode_for_training(batch, None).expect("a batch that fits");
        let mut gradients = Gradients::zeros(bert.parameters().config());
        let d_hidden = tensors.rows("target.0", bert.width());
        bert.backward(batch, &trace, d_hidden, &mut gradients);
        for (tensor, ours) in gradients.parameters().tensors() {
            let reference = tensors.named(&format!("gradient.{activation}.{}", tensor.name));
            assert_relative(&format!("{activation} {}", tensor.name), ours, &reference, 1e-5);
        }
    }
}

/// `|ours − reference| / |reference|` over a whole tensor.
fn assert_relative(case: &str, ours: &[f32], reference: &[f32], tolerance: f32) {
    assert_eq!(ours.len(), reference.len(), "{case}");
    let norm = |values: &mut dyn Iterator<Item = f32>| values.map(|x| x * x).sum::<f32>().sqrt();
    let difference = norm(&mut ours.iter().zip(reference).map(|(a, b)| a - b));
    // The key bias has the true gradient 0: a constant added to all keys changes no attention.
    let scale = norm(&mut reference.iter().copied()).max(1.0);
    assert!(difference <= tolerance * scale, "{case}: {:.1e}", difference / scale);
}
