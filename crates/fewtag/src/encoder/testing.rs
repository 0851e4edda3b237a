//! What tests of the engines share: weights and sequences.

use fewtag_kernels::testing::normal;

use super::batch::{PackedBatch, Piece};
use super::config::tests::odd_config;
use super::parameters::Parameters;
use crate::random::Random;

/// Weights of odd sizes that are large enough for every part to matter.
pub(super) fn odd_parameters() -> Parameters {
    let mut parameters = Parameters::zeros(&odd_config());
    for (seed, (tensor, values)) in parameters.tensors_mut().enumerate() {
        let shift = f32::from(u8::from(tensor.name.ends_with("LayerNorm.weight")));
        let draws = normal(values.len(), seed as u64);
        values.iter_mut().zip(draws).for_each(|(value, x)| *value = shift + 0.3 * x);
    }
    parameters
}

/// Sequences of these lengths, their second halves of the second segment.
pub(super) fn odd_batch(lengths: &[usize], seed: u64) -> PackedBatch {
    let mut random = Random::new(seed);
    let mut batch = PackedBatch::new();
    for &n in lengths {
        let segment = |i| u8::from(2 * i > n);
        batch.push((0..n).map(|i| Piece { id: random.below(31) as u32, segment: segment(i) }));
    }
    batch
}
