//! What tuning added to the upper layers of an encoder, small enough for a file of a domain.
//!
//! ```text
//! matrix W [r, c]     W = base + row_scales · q,  q in −127…127     one byte a weight
//! bias, layer norm    the difference in f32
//! ```
//!
//! The difference is much smaller than the weights, so a byte says it more finely than it could say the weights themselves. Names
//! and tensors are those of an int8 model file ([`super::storage`]), numbered as in the whole encoder.

use std::collections::BTreeMap;

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use super::parameters::{Parameters, Tensor};
use super::storage::{ROW_SCALES, Storage, Stored, store};

/// The difference of the layers above the lowest `n_below`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Difference {
    n_below: usize,
    /// As the file has them.
    tensors: BTreeMap<String, Stored>,
}

impl Difference {
    /// What `tuned` has more than `base`, rounded; both are layers above the lowest `n_below`. `None` if a number is
    /// not finite.
    ///
    /// # Panics
    ///
    /// If they differ in shape.
    pub(crate) fn between(base: &Parameters, tuned: &Parameters, n_below: usize) -> Option<Self> {
        assert_eq!(base.config(), tuned.config(), "layers of one shape");
        let mut tensors = Vec::new();
        for ((tensor, from), (_, to)) in base.tensors().zip(tuned.tensors()) {
            if is_table(&tensor) {
                continue;
            }
            let difference: Vec<f32> = to.iter().zip(from).map(|(to, from)| to - from).collect();
            if !difference.iter().all(|x| x.is_finite()) {
                return None;
            }
            let name = renumbered(&tensor.name, n_below);
            store(Tensor { name, ..tensor }, &difference, Storage::Int8, &mut tensors);
        }
        Some(Self { n_below, tensors: tensors.into_iter().collect() })
    }

    /// The number of layers below.
    pub(crate) fn n_below(&self) -> usize {
        self.n_below
    }

    /// How many bytes it has in a file.
    pub(crate) fn n_bytes(&self) -> usize {
        self.tensors.values().map(|stored| stored.bytes.len()).sum()
    }

    /// What a file holds.
    pub(crate) fn tensors(&self) -> &BTreeMap<String, Stored> {
        &self.tensors
    }

    /// Takes the tensors of a file; whether they are the right ones shows when they are added to a base.
    pub(crate) fn read(file: &SafeTensors, n_below: usize) -> Self {
        let stored = |view: TensorView| Stored {
            dtype: view.dtype(),
            shape: view.shape().to_vec(),
            bytes: view.data().to_vec(),
        };
        let tensors = file.iter().map(|(name, view)| (name.to_owned(), stored(view))).collect();
        Self { n_below, tensors }
    }

    /// Adds it to the layers that it was made of.
    ///
    /// # Errors
    ///
    /// What is wrong with it, if it is not exactly for layers of this shape.
    pub(crate) fn add_to(&self, base: &mut Parameters) -> Result<(), String> {
        let mut used = 0;
        for (tensor, values) in base.tensors_mut().filter(|(tensor, _)| !is_table(tensor)) {
            let name = renumbered(&tensor.name, self.n_below);
            let is_matrix = tensor.shape.len() == 2;
            let dtype = if is_matrix { Dtype::I8 } else { Dtype::F32 };
            let bytes = self.bytes(&name, dtype, &tensor.shape)?;
            used += 1;
            if is_matrix {
                let scales =
                    self.bytes(&format!("{name}{ROW_SCALES}"), Dtype::F32, &tensor.shape[..1])?;
                used += 1;
                let width = tensor.shape[1];
                let rows = values.chunks_exact_mut(width).zip(bytes.chunks_exact(width));
                for ((row, steps), scale) in rows.zip(floats(scales)) {
                    for (value, &q) in row.iter_mut().zip(steps) {
                        *value += scale * f32::from(q.cast_signed());
                    }
                }
            } else {
                values.iter_mut().zip(floats(bytes)).for_each(|(value, x)| *value += x);
            }
            if !values.iter().all(|x| x.is_finite()) {
                return Err(format!("its tensor `{name}` holds a value that is not finite"));
            }
        }
        if used != self.tensors.len() {
            return Err("it has tensors that this model has no place for".to_owned());
        }
        Ok(())
    }

    fn bytes(&self, name: &str, dtype: Dtype, shape: &[usize]) -> Result<&[u8], String> {
        let found =
            self.tensors.get(name).ok_or_else(|| format!("it lacks the tensor `{name}`"))?;
        if found.dtype != dtype || found.shape != shape {
            return Err(format!("its tensor `{name}` has not the shape of the model's"));
        }
        Ok(&found.bytes)
    }
}

/// Layers alone have no tables, but a norm that nothing reads.
fn is_table(tensor: &Tensor) -> bool {
    tensor.name.starts_with("embeddings.")
}

/// `encoder.layer.0.…` of the upper layers as the whole encoder calls it.
fn renumbered(name: &str, n_below: usize) -> String {
    const LAYER: &str = "encoder.layer.";
    let rest = name.strip_prefix(LAYER).expect("a tensor of a layer");
    let (number, rest) = rest.split_once('.').expect("a layer has a number");
    let number: usize = number.parse().expect("a layer has a number");
    format!("{LAYER}{}.{rest}", number + n_below)
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> {
    let (numbers, _) = bytes.as_chunks();
    numbers.iter().map(|number| f32::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::super::odd_config;
    use super::*;
    use fewtag_kernels::testing::normal;

    fn upper(seed: u64, size: f32) -> Parameters {
        let mut parameters = Parameters::zeros(&odd_config()).upper(1);
        let draws = normal(parameters.values().len(), seed);
        parameters.values_mut().iter_mut().zip(draws).for_each(|(x, draw)| *x = size * draw);
        parameters
    }

    /// A base, and the same moved a little.
    fn moved() -> (Parameters, Parameters) {
        let (base, step) = (upper(1, 0.3), upper(2, 0.003));
        let mut tuned = base.clone();
        tuned.values_mut().iter_mut().zip(step.values()).for_each(|(x, step)| *x += step);
        (base, tuned)
    }

    #[test]
    fn a_difference_says_more_than_bytes_of_the_weights_would() {
        let (base, tuned) = moved();
        let mut again = base.clone();
        Difference::between(&base, &tuned, 1).unwrap().add_to(&mut again).unwrap();
        for ((tensor, x), (_, y)) in tuned.tensors().zip(again.tensors()) {
            if is_table(&tensor) {
                continue;
            }
            let off = x.iter().zip(y).map(|(x, y)| (x - y).abs()).fold(0.0, f32::max);
            // Four deviations of a step of 0.003, half a 127th of it.
            assert!(off < 0.003 * 4.0 / 127.0, "{}: {off}", tensor.name);
        }
    }

    #[test]
    fn tensors_are_called_as_in_the_whole_encoder() {
        let (base, tuned) = moved();
        let difference = Difference::between(&base, &tuned, 1).unwrap();
        let names: Vec<&String> = difference.tensors().keys().collect();
        assert!(names.iter().all(|name| name.starts_with("encoder.layer.1.")), "{names:?}");
        let whole = Parameters::zeros(&odd_config());
        let known: Vec<String> = whole.tensors().map(|(tensor, _)| tensor.name).collect();
        let plain = names.iter().filter(|name| !name.ends_with(ROW_SCALES));
        assert_eq!(plain.filter(|name| known.contains(name)).count(), 16);
    }

    #[test]
    fn a_difference_of_another_shape_is_refused() {
        let (base, tuned) = moved();
        let good = Difference::between(&base, &tuned, 1).unwrap();
        let refusal = |change: &dyn Fn(&mut Difference)| {
            let mut bad = good.clone();
            change(&mut bad);
            bad.add_to(&mut base.clone()).unwrap_err()
        };
        let bias = "encoder.layer.1.intermediate.dense.bias";
        let lacking = refusal(&|bad| drop(bad.tensors.remove(bias)));
        assert!(lacking.contains(&format!("lacks the tensor `{bias}`")), "{lacking}");
        let other = refusal(&|bad| bad.tensors.get_mut(bias).unwrap().shape = vec![3, 7]);
        assert!(other.contains("shape"), "{other}");
        let more = refusal(&|bad| {
            let stored = bad.tensors[bias].clone();
            bad.tensors.insert("more".into(), stored);
        });
        assert!(more.contains("no place"), "{more}");
        let infinite = refusal(&|bad| {
            bad.tensors.get_mut(bias).unwrap().bytes[..4].copy_from_slice(&f32::NAN.to_le_bytes());
        });
        assert!(infinite.contains("not finite"), "{infinite}");
    }

    #[test]
    fn weights_that_ran_away_have_no_difference() {
        let (base, mut tuned) = moved();
        *tuned.values_mut().last_mut().unwrap() = f32::INFINITY;
        assert!(Difference::between(&base, &tuned, 1).is_none());
    }
}
