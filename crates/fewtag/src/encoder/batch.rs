//! Sequences of word pieces packed one after the other: real pieces only, no padding and no mask.
//!
//! ```text
//! rows      [CLS] play it [SEP] [CLS] stop [SEP]
//! starts     0                   4              7
//! position   0     1    2  3     0     1    2
//! ```
//!
//! A linear layer is one product over all rows; only attention looks at the starts.

use std::ops::Range;

use super::config::BertConfig;
use crate::error::{Error, Result};

/// One word piece: its place in the vocabulary and the segment it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Piece {
    /// Index into the vocabulary.
    pub id: u32,
    /// 0 or, for the second sentence of a pair, 1.
    pub segment: u8,
}

/// Sequences of pieces, one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackedBatch {
    pieces: Vec<Piece>,
    /// Where each sequence starts, and at last the number of pieces.
    starts: Vec<usize>,
}

impl Default for PackedBatch {
    fn default() -> Self {
        Self { pieces: Vec::new(), starts: vec![0] }
    }
}

impl PackedBatch {
    /// Without sequences.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a sequence and returns its rows.
    ///
    /// # Panics
    ///
    /// If the sequence has no piece.
    pub fn push(&mut self, sequence: impl IntoIterator<Item = Piece>) -> Range<usize> {
        let start = self.pieces.len();
        self.pieces.extend(sequence);
        assert!(self.pieces.len() > start, "a sequence has at least one piece");
        self.starts.push(self.pieces.len());
        start..self.pieces.len()
    }

    /// All pieces; a piece's position here is its row everywhere.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The number of rows.
    #[must_use]
    pub fn n_pieces(&self) -> usize {
        self.pieces.len()
    }

    /// The number of sequences.
    #[must_use]
    pub(crate) fn n_sequences(&self) -> usize {
        self.starts.len() - 1
    }

    /// The rows of sequence `s`.
    #[must_use]
    pub fn rows(&self, s: usize) -> Range<usize> {
        self.starts[s]..self.starts[s + 1]
    }

    /// The rows of every sequence.
    pub fn sequences(&self) -> impl ExactSizeIterator<Item = Range<usize>> {
        self.starts.windows(2).map(|pair| pair[0]..pair[1])
    }

    /// # Errors
    ///
    /// If there is no sequence, or one that an encoder of this shape cannot read.
    pub fn check(&self, config: &BertConfig) -> Result<()> {
        if self.n_sequences() == 0 {
            return Err(Error::EmptyBatch);
        }
        for (sequence, rows) in self.sequences().enumerate() {
            let (n_pieces, max) = (rows.len(), config.max_position_embeddings);
            if n_pieces > max {
                return Err(Error::TooManyPieces { sequence, n_pieces, max });
            }
            for Piece { id, segment } in &self.pieces[rows] {
                let limits = [
                    (*id as usize, config.vocab_size, "piece"),
                    (usize::from(*segment), config.type_vocab_size, "segment"),
                ];
                for (index, n, what) in limits {
                    if index >= n {
                        return Err(Error::PieceOutOfRange { sequence, what, index, n });
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::tests::odd_config;
    use super::*;

    fn piece(id: u32, segment: u8) -> Piece {
        Piece { id, segment }
    }

    #[test]
    fn sequences_keep_their_rows() {
        let mut batch = PackedBatch::new();
        assert_eq!(batch.push([piece(1, 0), piece(2, 0)]), 0..2);
        assert_eq!(batch.push([piece(3, 1)]), 2..3);
        assert_eq!(batch.sequences().collect::<Vec<_>>(), [0..2, 2..3]);
        assert_eq!(batch.rows(1), 2..3);
        assert!(batch.check(&odd_config()).is_ok());
    }

    #[test]
    fn an_empty_batch_is_refused() {
        let refused = PackedBatch::new().check(&odd_config());
        assert!(matches!(refused, Err(Error::EmptyBatch)));
    }

    #[test]
    fn a_sequence_longer_than_the_position_table_is_refused() {
        let mut batch = PackedBatch::new();
        batch.push([piece(0, 0); 19]);
        assert!(batch.check(&odd_config()).is_ok());
        batch.push([piece(0, 0); 20]);
        let refused = batch.check(&odd_config());
        assert!(matches!(
            refused,
            Err(Error::TooManyPieces { sequence: 1, n_pieces: 20, max: 19 })
        ));
    }

    #[test]
    fn pieces_and_segments_out_of_range_are_refused() {
        for (bad, expected) in [(piece(31, 0), "piece"), (piece(0, 2), "segment")] {
            let mut batch = PackedBatch::new();
            batch.push([piece(30, 1), bad]);
            match batch.check(&odd_config()) {
                Err(Error::PieceOutOfRange { sequence: 0, what, .. }) => assert_eq!(what, expected),
                other => panic!("{other:?}"),
            }
        }
    }
}
