//! The built-in model of fewtag as bytes: the four files of a model directory.
//!
//! You hardly need this crate itself: the feature `built-in` of `fewtag` reads it. The model's terms are not those of
//! the code: see `LICENSE.md`. How the model was made and how good it is: `README.md`.

/// `fewtag.json`: settings and what was learned above the encoder.
pub const FEWTAG: &[u8] = include_bytes!("fewtag.json");
/// `config.json`: the shape of the encoder.
pub const CONFIG: &[u8] = include_bytes!("config.json");
/// `tokenizer.json`: its word pieces.
pub const TOKENIZER: &[u8] = include_bytes!("tokenizer.json");

/// `model.safetensors`: its weights, put together from the crates that carry a part each.
#[must_use]
pub fn weights() -> Vec<u8> {
    [
        fewtag_model_part_1::BYTES,
        fewtag_model_part_2::BYTES,
        fewtag_model_part_3::BYTES,
        fewtag_model_part_4::BYTES,
        fewtag_model_part_5::BYTES,
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_parts_make_the_file() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/model.safetensors");
        assert!(super::weights() == std::fs::read(path).unwrap());
    }
}
