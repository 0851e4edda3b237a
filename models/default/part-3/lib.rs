//! One part of the weights of fewtag's built-in model. The crate `fewtag-model` puts them together, and has its terms.

/// This part's bytes.
pub const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/weights.part"));
