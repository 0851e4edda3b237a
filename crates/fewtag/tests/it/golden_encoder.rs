//! The tiny encoder of `testdata/` against PyTorch in float64: `tests/golden/encoder.origin.md`.

use std::path::Path;

use fewtag::Matrix;
use fewtag::encoder::{
    Activation, Bert, Engine, Frozen, Gradients, PackedBatch, Parameters, Piece, TrainableEngine,
    weights,
};
use fewtag::train::optimizer::{
    AdamW, Rates, Schedule, clip_scale, encoder_parts, squared_gradient_norm,
};
use safetensors::SafeTensors;
use serde::Deserialize;

use crate::golden::{assert_all_close, assert_close, read, testdata};

#[derive(Deserialize)]
struct Golden {
    batches: Vec<Vec<Sequence>>,
    training: Training,
}

#[derive(Deserialize)]
struct Training {
    updates: u64,
    warm_up: u64,
    peak_rate: f32,
    decay: f32,
    clip: f32,
    losses: Vec<f32>,
    gradient_norms: Vec<f32>,
    rates: Vec<f32>,
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
    weights::load(&testdata("tiny-encoder")).expect("the tiny encoder")
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
        let (ours, _) = bert.encode_for_training(batch, &[], None).expect("a batch that fits");
        assert_all_close(activation, ours.values(), &reference, 2e-6);
    }
}

#[test]
fn a_distilbert_under_its_own_names_agrees_with_transformers() {
    #[derive(Deserialize)]
    struct Golden {
        sequences: Vec<Hidden>,
    }
    #[derive(Deserialize)]
    struct Hidden {
        ids: Vec<u32>,
        hidden: Vec<Vec<f32>>,
    }
    let golden: Golden = read("distilbert.json");
    let parameters = weights::load(&testdata("tiny-distilbert")).expect("the tiny DistilBERT");
    let bert = Bert::new(parameters).expect("a shape");
    for Hidden { ids, hidden } in &golden.sequences {
        let mut batch = PackedBatch::new();
        batch.push(ids.iter().map(|&id| Piece { id, segment: 0 }));
        let ours = bert.encode(&batch).expect("a batch that fits");
        assert_all_close("hidden", ours.values(), &hidden.concat(), 2e-6);
    }
}

#[test]
fn every_gradient_agrees_with_pytorch() {
    let (tensors, batch) = (Tensors::read(), &batches()[0]);
    for (bert, activation) in encoders() {
        let (_, trace) = bert.encode_for_training(batch, &[], None).expect("a batch that fits");
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

#[test]
fn ten_updates_agree_with_pytorch() {
    let (tensors, batches) = (Tensors::read(), batches());
    let training = read::<Golden>("encoder.json").training;
    let mut bert = Bert::new(tiny_weights()).expect("a shape");
    let mut gradients = Gradients::zeros(bert.parameters().config());
    let mut adam = AdamW::new(bert.parameters().values().len());
    let schedule = Schedule { warm_up: training.warm_up, n_updates: training.updates };
    let peak = Rates { learning_rate: training.peak_rate, weight_decay: training.decay };
    for update in 0..training.updates as usize {
        let batch = update % batches.len();
        let target = tensors.rows(&format!("target.{batch}"), bert.width());
        gradients.clear();
        let loss = accumulate(&bert, &batches[batch], &target, &mut gradients);
        let norm = squared_gradient_norm(&gradients).sqrt();
        let rates = peak.scaled(schedule.factor(update as u64));
        assert_close(&format!("loss {update}"), loss, training.losses[update], 1e-5);
        assert_close(&format!("norm {update}"), norm as f32, training.gradient_norms[update], 1e-4);
        assert_close(&format!("rate {update}"), rates.learning_rate, training.rates[update], 1e-8);
        let parts = encoder_parts(bert.parameters_mut(), &gradients, Frozen::Nothing, rates);
        adam.update(parts, clip_scale(norm, training.clip));
    }
    for (tensor, ours) in bert.parameters().tensors() {
        let reference = tensors.named(&format!("updated.{}", tensor.name));
        // Adam divides by the size of the gradient, so the noise around the key bias' true 0 moves it fully.
        if !tensor.name.ends_with("key.bias") {
            assert_all_close(&tensor.name, ours, &reference, 1e-4);
        }
    }
}

/// The mean squared distance between hidden rows and target rows; adds its gradient.
fn accumulate(bert: &Bert, batch: &PackedBatch, target: &Matrix, gradients: &mut Gradients) -> f32 {
    let (mut hidden, trace) =
        bert.encode_for_training(batch, &[], None).expect("a batch that fits");
    let n_rows = hidden.n_rows() as f32;
    let mut loss = 0.0;
    for (h, t) in hidden.values_mut().iter_mut().zip(target.values()) {
        let difference = *h - t;
        loss += f64::from(difference * difference);
        *h = 2.0 * difference / n_rows;
    }
    bert.backward(batch, &trace, hidden, gradients);
    loss as f32 / n_rows
}
