//! How a word is written: what an uncased encoder would not see.
//!
//! The encoder's table of segments gets a row for each segment and shape: row `segment + 2·shape`. The new rows
//! start as those of their segments, so at first nothing changes, and training tells them apart. A directory with
//! such a table is still a plain BERT with `type_vocab_size` 12.

use super::config::BertConfig;
use super::parameters::Parameters;

/// How a word is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Shape {
    /// `word`, and letters without case.
    Lower,
    /// `Word`, `I`
    Capitalised,
    /// `WORD`
    Shouted,
    /// `12`, `3.5`
    Digits,
    /// `iPhone`, `B2`
    Mixed,
    /// `,`
    Other,
}

impl Shape {
    /// How many there are.
    pub(crate) const COUNT: usize = 6;

    /// The shape of a word.
    pub(crate) fn of(word: &str) -> Self {
        let letters = || word.chars().filter(|c| c.is_alphabetic());
        let n_upper = letters().filter(|c| c.is_uppercase()).count();
        let n_letters = letters().count();
        let has_digit = word.chars().any(char::is_numeric);
        let starts_upper = letters().next().is_some_and(char::is_uppercase);
        match (n_letters, n_upper) {
            (0, _) if has_digit => Self::Digits,
            (0, _) => Self::Other,
            _ if has_digit => Self::Mixed,
            (_, 0) => Self::Lower,
            (_, 1) if starts_upper => Self::Capitalised,
            (n, upper) if n == upper => Self::Shouted,
            _ => Self::Mixed,
        }
    }
}

/// The same encoder with a row for each segment and shape; unchanged if it has them.
#[must_use]
pub(crate) fn with_shapes(parameters: Parameters) -> Parameters {
    let n_types = 2 * Shape::COUNT;
    let config = parameters.config();
    if config.type_vocab_size >= n_types {
        return parameters;
    }
    let mut wider = Parameters::zeros(&BertConfig { type_vocab_size: n_types, ..config.clone() });
    for ((_, into), (_, from)) in wider.tensors_mut().zip(parameters.tensors()) {
        into.chunks_exact_mut(from.len()).for_each(|rows| rows.copy_from_slice(from));
    }
    wider
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::encoder::{Bert, PackedBatch, Piece, weights};

    fn tiny() -> Parameters {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
        weights::load(&dir).unwrap()
    }

    fn encode(parameters: Parameters, shape: u8) -> Vec<f32> {
        let mut batch = PackedBatch::new();
        batch.push((0..9).map(|id| Piece { id, segment: u8::from(id > 4) + 2 * shape }));
        Bert::new(parameters).unwrap().encode(&batch).unwrap().values().to_vec()
    }

    #[test]
    fn a_word_has_the_shape_in_which_it_is_written() {
        use Shape::{Capitalised, Digits, Lower, Mixed, Other, Shouted};
        let shapes = ["rome", "Rome", "ROME", "1.5", "iPhone", "?"].map(Shape::of);
        assert_eq!(shapes, [Lower, Capitalised, Shouted, Digits, Mixed, Other]);
    }

    #[test]
    fn an_encoder_that_learns_shapes_starts_with_the_answers_it_had() {
        let before = encode(tiny(), 0);
        for shape in 0..Shape::COUNT as u8 {
            assert_eq!(encode(with_shapes(tiny()), shape), before);
        }
        let wide = with_shapes(tiny());
        assert_eq!(with_shapes(wide.clone()), wide);
    }

    #[test]
    fn the_lowest_layers_are_those_of_the_whole() {
        let whole = tiny();
        let n_layers = whole.config().num_hidden_layers;
        let lowest = whole.clone().lowest(n_layers - 1);
        assert_eq!(lowest.config().num_hidden_layers, n_layers - 1);
        let kept: Vec<_> = whole
            .tensors()
            .filter(|(tensor, _)| !tensor.name.contains(&format!("layer.{}.", n_layers - 1)))
            .map(|(tensor, values)| (tensor.name, values.to_vec()))
            .collect();
        let ours: Vec<_> =
            lowest.tensors().map(|(tensor, values)| (tensor.name, values.to_vec())).collect();
        assert!(ours == kept && kept.len() < whole.tensors().count());
        assert!(Bert::new(lowest).is_ok());
        assert_eq!(whole.clone().lowest(99), whole);
    }
}
