//! Weights in bytes: those of a file that holds bytes as they are, all others rounded to them.

use std::collections::BTreeMap;

use fewtag_kernels::int8::Matrix;

use super::super::config::BertConfig;
use super::super::parameters::{Parameters, Tensor, Weights};
use super::super::storage::in_steps;
use super::super::weights::{StoredTensor, Target};
use crate::error::Result;

/// One or more tensors that lie side by side.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Numbers {
    /// Biases and layer norms: they are few and matter much.
    Floats(Vec<f32>),
    /// A matrix: its steps, and the size of a step for each row.
    Steps { values: Vec<i8>, scales: Vec<f32> },
}

impl Numbers {
    fn len(&self) -> usize {
        match self {
            Self::Floats(values) => values.len(),
            Self::Steps { values, .. } => values.len(),
        }
    }

    /// Puts `next` behind.
    fn append(&mut self, next: Self) {
        match (self, next) {
            (Self::Floats(all), Self::Floats(next)) => all.extend(next),
            (Self::Steps { values, scales }, Self::Steps { values: next, scales: of_next }) => {
                values.extend(next);
                scales.extend(of_next);
            }
            _ => unreachable!("neighbours in a role are of one kind"),
        }
    }

    /// The numbers of a bias or a norm.
    pub(super) fn floats(&self) -> &[f32] {
        match self {
            Self::Floats(values) => values,
            Self::Steps { .. } => unreachable!("matrices alone are in steps"),
        }
    }

    /// A matrix.
    pub(super) fn matrix(&self) -> Matrix<'_> {
        match self {
            Self::Steps { values, scales } => Matrix { values, scales },
            Self::Floats(_) => unreachable!("every matrix is in steps"),
        }
    }
}

/// Tensors on their way to their roles, by their place in the flat buffer of [`Parameters`].
#[derive(Debug, Default)]
pub(super) struct Gathered(BTreeMap<usize, Numbers>);

impl Gathered {
    /// The weights of an encoder in floats, rounded.
    pub(super) fn rounded(parameters: &Parameters) -> Self {
        let mut gathered = Self::default();
        for (tensor, values) in parameters.tensors() {
            gathered.put(&tensor, values.to_vec());
        }
        gathered
    }

    fn put(&mut self, tensor: &Tensor, values: Vec<f32>) {
        let numbers = match tensor.shape[..] {
            [_, width] => {
                let (values, scales) = in_steps(&values, width);
                Numbers::Steps { values, scales }
            }
            _ => Numbers::Floats(values),
        };
        self.0.insert(tensor.place.start, numbers);
    }

    /// All weights by their role.
    pub(super) fn weights(mut self, config: &BertConfig) -> Weights<Numbers> {
        Weights::carve(config, |n| {
            let mut next = || self.0.pop_first().expect("every tensor was gathered").1;
            let mut numbers = next();
            while numbers.len() < n {
                numbers.append(next());
            }
            numbers
        })
    }
}

impl Target for Gathered {
    fn take(&mut self, tensor: &Tensor, stored: &StoredTensor) -> Result<()> {
        match stored.steps()? {
            Some((values, scales)) if tensor.shape.len() == 2 => {
                let numbers = Numbers::Steps { values: values.to_vec(), scales };
                self.0.insert(tensor.place.start, numbers);
            }
            _ => {
                let mut values = vec![0.0; tensor.place.len()];
                stored.fill(&mut values)?;
                self.put(tensor, values);
            }
        }
        Ok(())
    }

    fn take_zero(&mut self, tensor: &Tensor) {
        self.put(tensor, vec![0.0; tensor.place.len()]);
    }
}
