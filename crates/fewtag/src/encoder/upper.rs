//! An encoder whose upper layers are its own, and whose lower ones are another's.
//!
//! ```text
//! pieces ─ the lowest n layers of a shared encoder (LowerRows) ─▶ rows [n_pieces, h] ─ own layers ─▶ hidden rows
//! ```
//!
//! A domain that was tuned has a few megabytes of its own; hundreds of them share one encoder. While a domain is tuned, the
//! same sentences come again and again, so the rows below are computed once and kept: an update costs what moves. Rows
//! depend on their sequence alone, so what is kept changes no bit. Below there is no dropout.

use std::borrow::Cow;
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
    /// Of each sequence, `[n, h]`, or wider with those of middle layers.
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

    /// The rows that enter the layers above, with those of middle layers behind them, `[n_pieces, h·(1 + middle.len())]`.
    fn of(&self, batch: &PackedBatch, middle: &[usize]) -> Result<Matrix> {
        if self.most == 0 {
            return self.layered().encode_below(batch, self.n_layers, middle);
        }
        let width = self.engine.width() * (1 + middle.len());
        batch.check(self.engine.config())?;
        let known: Vec<Option<Arc<[f32]>>> = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            let pieces = batch.sequences().map(|rows| &batch.pieces()[rows]);
            let known = |pieces: &[Piece]| kept.rows.get(pieces).cloned();
            let is_wide = |pieces: &[Piece], rows: &[f32]| rows.len() == pieces.len() * width;
            pieces.map(|pieces| known(pieces).filter(|rows| is_wide(pieces, rows))).collect()
        };
        let mut new = PackedBatch::new();
        for (rows, _) in batch.sequences().zip(&known).filter(|(_, known)| known.is_none()) {
            new.push(batch.pieces()[rows].iter().copied());
        }
        let read = if new.n_pieces() > 0 {
            self.layered().encode_below(&new, self.n_layers, middle)?
        } else {
            Matrix::default()
        };
        self.keep(&new, &read);
        let mut next = new.sequences();
        let mut values = Vec::with_capacity(batch.n_pieces() * width);
        for known in known {
            if let Some(rows) = known {
                values.extend_from_slice(&rows);
            } else {
                let rows = next.next().expect("every new sequence was read");
                values.extend_from_slice(&read.values()[rows.start * width..rows.end * width]);
            }
        }
        Ok(Matrix::new(values, width))
    }

    fn keep(&self, batch: &PackedBatch, rows: &Matrix) {
        let width = rows.n_cols();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for at in batch.sequences() {
            let n = at.len() * width;
            if kept.n_numbers + n > self.most {
                return; // What does not fit is read again each time.
            }
            let pieces = batch.pieces()[at.clone()].into();
            let rows = rows.values()[at.start * width..at.end * width].into();
            let replaced = kept.rows.insert(pieces, rows).map_or(0, |rows| rows.len());
            kept.n_numbers = kept.n_numbers + n - replaced;
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

    /// What of some middle layers lies below, and what above, counted from its own lowest.
    fn parted<'m>(&self, middle: &'m [usize]) -> (&'m [usize], Vec<usize>) {
        let n_below = self.below.n_layers;
        let (below, above) = middle.split_at(middle.partition_point(|&layer| layer <= n_below));
        (below, above.iter().map(|layer| layer - n_below).collect())
    }

    /// What enters the own layers `[n_pieces, h]`, of rows that may have those of middle layers behind them.
    fn entering<'m>(&self, below: &'m Matrix) -> Cow<'m, Matrix> {
        let h = self.below.engine.width();
        if below.n_cols() == h {
            return Cow::Borrowed(below);
        }
        let values = below.rows().flat_map(|row| &row[..h]).copied().collect();
        Cow::Owned(Matrix::new(values, h))
    }

    /// Rows of the own layers with those of middle layers below, of the same pieces, between the last and the others.
    fn joined(&self, own: Matrix, below: &Matrix, rows: impl Iterator<Item = usize>) -> Matrix {
        let (h, n_cols) = (self.below.engine.width(), own.n_cols() + below.n_cols());
        if below.n_cols() == h {
            return own;
        }
        let mut values = Vec::with_capacity(own.n_rows() * (n_cols - h));
        for (own, below) in own.rows().zip(rows.map(|row| below.row(row))) {
            values.extend_from_slice(&own[..h]);
            values.extend_from_slice(&below[h..]);
            values.extend_from_slice(&own[h..]);
        }
        Matrix::new(values, n_cols - h)
    }
}

impl Engine for Upper {
    fn config(&self) -> &BertConfig {
        self.below.engine.config()
    }

    fn encode_rows(&self, batch: &PackedBatch, rows: &[usize], middle: &[usize]) -> Result<Matrix> {
        assert!(rows.is_sorted_by(|a, b| a < b), "wanted rows increase");
        assert!(rows.last().is_none_or(|&row| row < batch.n_pieces()), "wanted rows exist");
        let (middle, above) = self.parted(middle);
        let below = self.below.of(batch, middle)?;
        let start = Start::Rows(&self.entering(&below));
        let own = self.layers.infer_from(start, batch, Some(rows.to_vec()), &above);
        Ok(self.joined(own, &below, rows.iter().copied()))
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
        middle: &[usize],
        dropout: Option<Dropout>,
    ) -> Result<(Matrix, Trace)> {
        let (middle, above) = self.parted(middle);
        let below = self.below.of(batch, middle)?;
        let start = Start::Rows(&self.entering(&below));
        let (own, trace) = self.layers.train_from(start, batch, &above, dropout);
        Ok((self.joined(own, &below, 0..below.n_rows()), trace))
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
        for n_below in 0..=2 {
            for bytes in [0, 600, 1 << 20] {
                let below = Arc::new(LowerRows::new(&whole, n_below, bytes).unwrap());
                let upper = Upper::new(Arc::clone(&below), below.upper());
                for middle in [&[][..], &[1], &[1], &[]] {
                    let expected = whole.encode_rows(&batch, &rows, middle).unwrap();
                    let ours = upper.encode_rows(&batch, &rows, middle).unwrap();
                    assert_eq!(ours, expected, "{n_below} below, {bytes} bytes kept, {middle:?}");
                    let all: Vec<usize> = (0..batch.n_pieces()).collect();
                    let (ours, _) = upper.encode_for_training(&batch, middle, None).unwrap();
                    assert_eq!(ours, whole.encode_rows(&batch, &all, middle).unwrap());
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
            let (hidden, trace) = engine.encode_for_training(&batch, &[], None).unwrap();
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
        let read = |lengths: &[usize]| below.of(&batch(lengths, 3), &[]).unwrap();
        let first = read(&[5, 6]);
        let both = read(&[5, 6, 4]);
        assert_eq!(both.values()[..first.values().len()], *first.values());
        assert_eq!(below.kept.lock().unwrap().rows.len(), 3);
        let expected = bert().encode_below(&batch(&[5, 6, 4], 3), 1, &[]).unwrap();
        assert_eq!(both, expected);
    }

    #[test]
    fn an_engine_in_bytes_can_lie_below() {
        let int8: Arc<dyn Engine> = Arc::new(Int8Bert::new(bert().parameters()).unwrap());
        let below = Arc::new(LowerRows::new(&int8, 1, 0).unwrap());
        let upper = Upper::new(Arc::clone(&below), below.upper());
        let batch = batch(&[7, 4], 9);
        let rows: Vec<usize> = (0..11).collect();
        let ours = upper.encode_rows(&batch, &rows, &[]).unwrap();
        let expected = bert().encode_rows(&batch, &rows, &[]).unwrap();
        let off = ours.values().iter().zip(expected.values()).map(|(a, b)| (a - b).abs());
        assert!(off.fold(0.0, f32::max) < 0.3, "close to floats");
    }

    #[test]
    fn a_batch_that_does_not_fit_is_an_error() {
        let whole: Arc<dyn Engine> = Arc::new(bert());
        for bytes in [0, 1 << 20] {
            let below = Arc::new(LowerRows::new(&whole, 1, bytes).unwrap());
            let upper = Upper::new(Arc::clone(&below), below.upper());
            assert!(upper.encode_rows(&batch(&[20], 1), &[0], &[]).is_err());
            assert!(upper.encode_for_training(&PackedBatch::new(), &[], None).is_err());
        }
    }
}
