//! How weights are written: as they are, halved, or as one byte each.
//!
//! ```text
//! f32    every tensor as it is; `transformers` reads the file too
//! f16    matrices rounded to half precision; `transformers` reads the file too
//! int8   a matrix W [r, c] becomes q [r, c] in −127…127 and `row_scales` [r]:  W ≈ row_scales · q
//! ```
//!
//! Biases and layer norms stay f32: they are few and matter much. Whatever the storage, we compute in
//! f32; [`super::weights`] reads all three. The error of an int8 weight is at most half a step, which is
//! 1/254 of the largest weight of its row.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use half::f16;
use safetensors::tensor::{Dtype, View};
use serde::{Deserialize, Serialize};

use super::parameters::{Parameters, Tensor};
use crate::error::{Error, Result};

/// What follows the name of an int8 tensor in the name of its row scales.
pub(super) const ROW_SCALES: &str = ".row_scales";

/// How the matrices of a file are stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// Four bytes a weight, exact.
    #[default]
    F32,
    /// Two bytes a weight.
    F16,
    /// One byte a weight and one scale a row.
    Int8,
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Int8 => "int8",
        })
    }
}

/// The weights as the bytes of a `model.safetensors`.
///
/// # Errors
///
/// [`Error::Unstorable`] if a weight is not finite, or too large for half precision.
///
/// # Panics
///
/// Never: names are distinct and every tensor has the size of its shape.
pub fn to_bytes(parameters: &Parameters, storage: Storage) -> Result<Vec<u8>> {
    let mut stored = Vec::new();
    for (tensor, values) in parameters.tensors() {
        let finite = |x: &f32| match storage {
            Storage::F16 => f16::from_f32(*x).is_finite(),
            Storage::F32 | Storage::Int8 => x.is_finite(),
        };
        if !values.iter().all(finite) {
            return Err(Error::Unstorable { tensor: tensor.name, storage });
        }
        store(tensor, values, storage, &mut stored);
    }
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let views = stored.iter().map(|(name, stored)| (name, stored));
    Ok(safetensors::serialize(views, Some(metadata)).expect("parameters are well-formed tensors"))
}

pub(super) fn store(
    tensor: Tensor,
    values: &[f32],
    storage: Storage,
    file: &mut Vec<(String, Stored)>,
) {
    let Tensor { name, shape, .. } = tensor;
    let storage = if shape.len() == 2 { storage } else { Storage::F32 };
    match storage {
        Storage::F32 => {
            let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
            file.push((name, Stored { dtype: Dtype::F32, shape, bytes }));
        }
        Storage::F16 => {
            let bytes = values.iter().flat_map(|x| f16::from_f32(*x).to_le_bytes()).collect();
            file.push((name, Stored { dtype: Dtype::F16, shape, bytes }));
        }
        Storage::Int8 => {
            let (steps, scales) = in_steps(values, shape[1]);
            let bytes = steps.into_iter().map(i8::cast_unsigned).collect();
            let of_rows = Stored {
                dtype: Dtype::F32,
                shape: vec![shape[0]],
                bytes: scales.iter().flat_map(|x| x.to_le_bytes()).collect(),
            };
            file.push((format!("{name}{ROW_SCALES}"), of_rows));
            file.push((name, Stored { dtype: Dtype::I8, shape, bytes }));
        }
    }
}

/// A matrix with rows of `width` numbers as steps and the size of a step, row by row.
pub(super) fn in_steps(values: &[f32], width: usize) -> (Vec<i8>, Vec<f32>) {
    let rows = values.chunks_exact(width);
    let scales: Vec<f32> = rows.clone().map(row_scale).collect();
    let steps = rows.zip(&scales).flat_map(|(row, scale)| {
        row.iter().map(move |x| (x / scale).round().clamp(-127.0, 127.0) as i8)
    });
    (steps.collect(), scales)
}

/// The step of a row: its largest weight is 127 steps. A row of zeros has any step, so 1.
fn row_scale(row: &[f32]) -> f32 {
    let largest = row.iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    if largest > 0.0 { (largest / 127.0).max(f32::MIN_POSITIVE) } else { 1.0 }
}

/// A tensor on its way into a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Stored {
    pub(super) dtype: Dtype,
    pub(super) shape: Vec<usize>,
    pub(super) bytes: Vec<u8>,
}

impl View for &Stored {
    fn dtype(&self) -> Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::weights;
    use super::*;

    fn tiny() -> Parameters {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
        weights::load(&dir).unwrap()
    }

    fn again(parameters: &Parameters, storage: Storage) -> Parameters {
        let bytes = to_bytes(parameters, storage).unwrap();
        weights::from_bytes(parameters.config(), &bytes, Path::new("again")).unwrap()
    }

    #[test]
    fn f32_is_read_back_as_it_was() {
        assert_eq!(again(&tiny(), Storage::F32), tiny());
    }

    #[test]
    fn rounding_is_bounded_and_happens_once() {
        let exact = tiny();
        for (storage, steps) in [(Storage::F16, 1.0 / 2048.0), (Storage::Int8, 1.0 / 253.0)] {
            let rounded = again(&exact, storage);
            for ((tensor, x), (_, y)) in exact.tensors().zip(rounded.tensors()) {
                let width = if tensor.shape.len() == 2 { tensor.shape[1] } else { x.len() };
                for (x, y) in x.chunks(width).zip(y.chunks(width)) {
                    let largest = x.iter().fold(0.0_f32, |m, v| m.max(v.abs()));
                    let bound = if tensor.shape.len() == 2 { steps * largest } else { 0.0 };
                    let close = x.iter().zip(y).all(|(a, b)| (a - b).abs() <= bound);
                    assert!(close, "{storage} {}", tensor.name);
                }
            }
            assert_eq!(again(&rounded, storage), rounded, "{storage}");
        }
    }

    #[test]
    fn bytes_shrink_as_promised() {
        let size = |storage| to_bytes(&tiny(), storage).unwrap().len();
        assert!(size(Storage::F16) < size(Storage::F32) * 2 / 3);
        assert!(size(Storage::Int8) < size(Storage::F16));
    }

    #[test]
    fn weights_that_a_file_cannot_hold_are_refused() {
        for (value, storage) in
            [(f32::NAN, Storage::F32), (f32::NAN, Storage::Int8), (1e6, Storage::F16)]
        {
            let mut parameters = tiny();
            parameters.values_mut()[3] = value;
            let refused = to_bytes(&parameters, storage).unwrap_err().to_string();
            assert!(refused.contains("word_embeddings") && refused.contains(&storage.to_string()));
        }
    }

    #[test]
    fn int8_without_fitting_row_scales_is_refused() {
        let parameters = tiny();
        let mut file = Vec::new();
        for (tensor, values) in parameters.tensors() {
            store(tensor, values, Storage::Int8, &mut file);
        }
        let scales = file.iter().position(|(name, _)| name.ends_with(ROW_SCALES)).unwrap();
        let load = |file: Vec<(String, Stored)>| {
            let views = file.iter().map(|(name, stored)| (name, stored));
            let bytes = safetensors::serialize(views, None).unwrap();
            weights::from_bytes(parameters.config(), &bytes, Path::new("x"))
                .unwrap_err()
                .to_string()
        };
        let (name, mut stored) = file.remove(scales);
        assert!(load(file.clone()).contains(&format!("lacks tensor `{name}`")));
        stored.shape = vec![1, stored.shape[0]];
        file.push((name.clone(), stored));
        assert!(load(file).contains(&format!("tensor `{name}`")));
    }
}
