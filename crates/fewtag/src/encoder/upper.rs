//! An encoder whose upper layers are its own, and whose lower ones are another's.
//!
//! ```text
//! pieces ─ the lowest n layers of a shared encoder (LowerRows) ─▶ rows [n_pieces, h] ─ own layers ─▶ hidden rows
//! ```
//!
//! A domain that was tuned has a few megabytes of its own; hundreds of them share one encoder. While a domain is tuned, the
//! same sentences come again and again, so the rows below are computed once and kept: an update costs what moves. Rows
//! depend on their sequence alone, so what is kept changes no bit. Below there is no dropout.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::batch::{PackedBatch, Piece};
use super::bert::{Bert, Start};
use super::config::BertConfig;
use super::parameters::{Gradients, Parameters};
use super::{Dropout, Engine, Frozen, Layered, Trace, TrainableEngine};
use crate::error::Result;
use crate::matrix::Matrix;

/// What the lower layers of a shared encoder make of sequences.
pub(crate) struct LowerRows {
    engine: Arc<dyn Engine>,
    n_layers: usize,
    /// At most so many numbers are kept.
    most: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// `[n, h]` of each sequence.
    rows: HashMap<Box<[Piece]>, Arc<[f32]>>,
    n_numbers: usize,
}

impl LowerRows {
    /// Those of the lowest `n_layers` layers; about `bytes` of what is read are kept. `None` if the engine's layers cannot be
    /// parted.
    pub(crate) fn new(engine: &Arc<dyn Engine>, n_layers: usize, bytes: usize) -> Option<Self> {
        engine.layered()?;
        let (engine, most) = (Arc::clone(engine), bytes / size_of::<f32>());
        Some(Self { engine, n_layers, most, kept: Mutex::default() })
    }

    fn layered(&self) -> &dyn Layered {
        self.engine.layered().expect("checked when it was made")
    }

    /// The weights of the layers above.
    pub(crate) fn upper(&self) -> Parameters {
        self.layered().upper(self.n_layers)
    }

    /// The number of layers below.
    pub(crate) fn n_layers(&self) -> usize {
        self.n_layers
    }

    /// The rows `[n_pieces, h]` that enter the layers above.
    fn of(&self, batch: &PackedBatch) -> Result<Matrix> {
        if self.most == 0 {
            return self.layered().encode_below(batch, self.n_layers);
        }
        batch.check(self.engine.config())?;
        let known: Vec<Option<Arc<[f32]>>> = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let pieces = batch.sequences().map(|rows| &batch.pieces()[rows]);
            pieces.map(|pieces| kept.rows.get(pieces).cloned()).collect()
        };
        let mut new = PackedBatch::new();
        for (rows, _) in batch.sequences().zip(&known).filter(|(_, known)| known.is_none()) {
            new.push(batch.pieces()[rows].iter().copied());
        }
        let read = if new.n_pieces() > 0 {
            self.layered().encode_below(&new, self.n_layers)?
        } else {
            Matrix::default()
        };
        self.keep(&new, &read);
        let (h, mut next) = (self.engine.width(), new.sequences());
        let mut values = Vec::with_capacity(batch.n_pieces() * h);
        for known in known {
            if let Some(rows) = known {
                values.extend_from_slice(&rows);
            } else {
                let rows = next.next().expect("every new sequence was read");
                values.extend_from_slice(&read.values()[rows.start * h..rows.end * h]);
            }
        }
        Ok(Matrix::new(values, h))
    }

    fn keep(&self, batch: &PackedBatch, rows: &Matrix) {
        let h = self.engine.width();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for at in batch.sequences() {
            let n = at.len() * h;
            if kept.n_numbers + n > self.most {
                return; // What does not fit is read again each time.
            }
            let pieces = batch.pieces()[at.clone()].into();
            let rows = rows.values()[at.start * h..at.end * h].into();
            if kept.rows.insert(pieces, rows).is_none() {
                kept.n_numbers += n;
            }
        }
    }
}

/// The upper layers above [`LowerRows`]: an engine that tags and learns.
pub(crate) struct Upper {
    below: Arc<LowerRows>,
    layers: Bert,
}

impl Upper {
    /// Puts layers above others.
    ///
    /// # Panics
    ///
    /// If they have not the shape of those that they replace.
    pub(crate) fn new(below: Arc<LowerRows>, layers: Parameters) -> Self {
        let expected = below.engine.config().upper(below.n_layers);
        assert_eq!(*layers.config(), expected, "layers that fit above");
        Self { below, layers: Bert::of_layers(layers) }
    }
}

impl Engine for Upper {
    fn config(&self) -> &BertConfig {
        self.below.engine.config()
    }

    fn encode_rows(&self, batch: &PackedBatch, rows: &[usize]) -> Result<Matrix> {
        assert!(rows.is_sorted_by(|a, b| a < b), "wanted rows increase");
        assert!(rows.last().is_none_or(|&row| row < batch.n_pieces()), "wanted rows exist");
        let below = self.below.of(batch)?;
        Ok(self.layers.infer_from(Start::Rows(&below), batch, Some(rows.to_vec())))
    }

    fn embeddings(&self, pieces: &[Piece]) -> Option<Matrix> {
        self.below.engine.embeddings(pieces)
    }
}

impl TrainableEngine for Upper {
    fn parameters(&self) -> &Parameters {
        self.layers.parameters()
    }

    fn parameters_mut(&mut self) -> &mut Parameters {
        self.layers.parameters_mut()
    }

    fn frozen(&self) -> Frozen {
        Frozen::Embeddings // Of its own parameters, whose embeddings have no rows.
    }

    fn encode_for_training(
        &self,
        batch: &PackedBatch,
        dropout: Option<Dropout>,
    ) -> Result<(Matrix, Trace)> {
        let below = self.below.of(batch)?;
        Ok(self.layers.train_from(Start::Rows(&below), batch, dropout))
    }

    fn backward(
        &self,
        batch: &PackedBatch,
        trace: &Trace,
        d_hidden: Matrix,
        gradients: &mut Gradients,
    ) {
        self.layers.backward(batch, trace, d_hidden, gradients);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Int8Bert;
    use super::super::testing::{odd_batch as batch, odd_parameters};
    use super::*;
    use fewtag_kernels::testing::normal;

    fn bert() -> Bert {
        Bert::new(odd_parameters()).unwrap()
    }

    #[test]
    fn layers_above_their_own_lower_ones_are_the_whole() {
        let whole: Arc<dyn Engine> = Arc::new(bert());
        let batch = batch(&[7, 1, 9, 4], 9);
        let rows = [0, 3, 8, 20];
        let expected = whole.encode_rows(&batch, &rows).unwrap();
        for n_below in 0..=2 {
            for bytes in [0, 600, 1 << 20] {
                let below = Arc::new(LowerRows::new(&whole, n_below, bytes).unwrap());
                let upper = Upper::new(Arc::clone(&below), below.upper());
                for _ in 0..2 {
                    let ours = upper.encode_rows(&batch, &rows).unwrap();
                    assert_eq!(ours, expected, "{n_below} below, {bytes} bytes kept");
                }
            }
        }
    }

    #[test]
    fn gradients_are_those_of_an_encoder_with_a_frozen_lower_part() {
        let mut frozen = bert();
        frozen.freeze(Frozen::Layers(1));
        let whole: Arc<dyn Engine> = Arc::new(bert());
        let below = Arc::new(LowerRows::new(&whole, 1, 1 << 20).unwrap());
        let upper = Upper::new(Arc::clone(&below), below.upper());
        let batch = batch(&[7, 1, 9, 4], 9);
        let d_hidden = Matrix::new(normal(batch.n_pieces() * 15, 77), 15);
        let run = |engine: &dyn TrainableEngine| {
            let (hidden, trace) = engine.encode_for_training(&batch, None).unwrap();
            let mut gradients = Gradients::zeros(engine.parameters().config());
            engine.backward(&batch, &trace, d_hidden.clone(), &mut gradients);
            (hidden, gradients)
        };
        let ((hidden, gradients), (expected_hidden, expected)) = (run(&upper), run(&frozen));
        assert_eq!(hidden, expected_hidden);
        assert_eq!(*gradients.parameters(), expected.parameters().upper(1));
        assert!(gradients.parameters().values().iter().any(|g| *g != 0.0));
    }

    #[test]
    fn what_is_new_in_a_batch_is_read_beside_what_is_kept() {
        let whole: Arc<dyn Engine> = Arc::new(bert());
        let below = LowerRows::new(&whole, 1, 1 << 20).unwrap();
        let read = |lengths: &[usize]| below.of(&batch(lengths, 3)).unwrap();
        let first = read(&[5, 6]);
        let both = read(&[5, 6, 4]);
        assert_eq!(both.values()[..first.values().len()], *first.values());
        assert_eq!(below.kept.lock().unwrap().rows.len(), 3);
        let expected = bert().encode_below(&batch(&[5, 6, 4], 3), 1).unwrap();
        assert_eq!(both, expected);
    }

    #[test]
    fn an_engine_in_bytes_can_lie_below() {
        let int8: Arc<dyn Engine> = Arc::new(Int8Bert::new(bert().parameters()).unwrap());
        let below = Arc::new(LowerRows::new(&int8, 1, 0).unwrap());
        let upper = Upper::new(Arc::clone(&below), below.upper());
        let batch = batch(&[7, 4], 9);
        let rows: Vec<usize> = (0..11).collect();
        let ours = upper.encode_rows(&batch, &rows).unwrap();
        let expected = bert().encode_rows(&batch, &rows).unwrap();
        let off = ours.values().iter().zip(expected.values()).map(|(a, b)| (a - b).abs());
        assert!(off.fold(0.0, f32::max) < 0.3, "close to floats");
    }

    #[test]
    fn a_batch_that_does_not_fit_is_an_error() {
        let whole: Arc<dyn Engine> = Arc::new(bert());
        for bytes in [0, 1 << 20] {
            let below = Arc::new(LowerRows::new(&whole, 1, bytes).unwrap());
            let upper = Upper::new(Arc::clone(&below), below.upper());
            assert!(upper.encode_rows(&batch(&[20], 1), &[0]).is_err());
            assert!(upper.encode_for_training(&PackedBatch::new(), None).is_err());
        }
    }
}
