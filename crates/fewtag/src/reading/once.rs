//! Sequences that come more than once in a batch of training and are read once: their rows are handed out again, and the
//! gradients of all that had them are summed.

use super::Sequence;
use super::embed::distinct;
use crate::matrix::{Matrix, add_scaled};

/// Sequences without repetitions, and which of them each one was.
#[derive(Debug)]
pub(crate) struct Once {
    sequences: Vec<Sequence>,
    places: Vec<usize>,
}

impl Once {
    pub(crate) fn of(all: &[Sequence]) -> Self {
        let (sequences, places) = distinct(all);
        Self { sequences, places }
    }

    /// The sequences to read.
    pub(crate) fn sequences(&self) -> &[Sequence] {
        &self.sequences
    }

    /// What was read, for each of the sequences as they came.
    pub(crate) fn spread(&self, rows: &[Matrix]) -> Vec<Matrix> {
        self.places.iter().map(|&place| rows[place].clone()).collect()
    }

    /// The transpose of [`Once::spread`], summed in the order in which the sequences came.
    pub(crate) fn gathered(&self, d_rows: &[Matrix]) -> Vec<Matrix> {
        let mut sums: Vec<Option<Matrix>> = vec![None; self.sequences.len()];
        for (&place, d) in self.places.iter().zip(d_rows) {
            match &mut sums[place] {
                Some(sum) => add_scaled(sum.values_mut(), 1.0, d.values()),
                none => *none = Some(d.clone()),
            }
        }
        sums.into_iter().map(|sum| sum.expect("every sequence came from somewhere")).collect()
    }
}
