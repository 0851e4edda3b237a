//! Rows of sequences that may come again: a domain whose tenth example was changed has nine that were read before.
//!
//! Two generations: what is asked for goes to the young one. When that has half of the bytes, it becomes the old one, and
//! what nobody asked for since the last change is forgotten.

use std::collections::HashMap;
use std::mem::{size_of, take};
use std::sync::{Mutex, PoisonError};

use super::{Sequence, embed};
use crate::encoder::Engine;
use crate::error::Result;
use crate::matrix::Matrix;

/// Rows by the sequences they were read of, up to a number of bytes.
#[derive(Debug)]
pub(crate) struct KeptRows {
    most: usize,
    generations: Mutex<Generations>,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Sequence, Matrix>,
    bytes: usize,
    old: HashMap<Sequence, Matrix>,
}

impl KeptRows {
    /// Keeps about `most` bytes.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, generations: Mutex::default() }
    }

    /// [`embed`], where what was read before is not read again.
    pub(crate) fn embed(&self, engine: &dyn Engine, sequences: &[Sequence]) -> Result<Vec<Matrix>> {
        let mut kept = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        let known: Vec<Option<Matrix>> = sequences.iter().map(|s| kept.known(s)).collect();
        drop(kept); // Others may look while the encoder reads.
        let unknown = sequences.iter().zip(&known).filter(|(_, rows)| rows.is_none());
        let unknown: Vec<Sequence> = unknown.map(|(sequence, _)| sequence.clone()).collect();
        let read = embed(engine, &unknown)?;
        let mut kept = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        for (sequence, rows) in unknown.into_iter().zip(&read) {
            kept.keep(sequence, rows.clone(), self.most / 2);
        }
        let mut read = read.into_iter();
        let all = known.into_iter().map(|rows| rows.or_else(|| read.next()));
        Ok(all.map(|rows| rows.expect("what was not known was read")).collect())
    }
}

impl Generations {
    fn known(&mut self, sequence: &Sequence) -> Option<Matrix> {
        if let Some((sequence, rows)) = self.old.remove_entry(sequence) {
            self.bytes += bytes(&sequence, &rows);
            self.young.insert(sequence, rows);
        }
        self.young.get(sequence).cloned()
    }

    fn keep(&mut self, sequence: Sequence, rows: Matrix, most: usize) {
        let n = bytes(&sequence, &rows);
        if self.bytes + n > most {
            self.old = take(&mut self.young);
            self.bytes = 0;
        }
        if n <= most && self.young.insert(sequence, rows).is_none() {
            self.bytes += n;
        }
    }
}

/// About how much an entry takes.
fn bytes(sequence: &Sequence, rows: &Matrix) -> usize {
    size_of_val(rows.values()) + sequence.n_pieces() * 24 + 4 * size_of::<Matrix>()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::encoder::{BertConfig, PackedBatch, Pieces, WordPieces};

    /// An encoder that counts the pieces it reads; their rows are their ids.
    struct Counting(BertConfig, AtomicUsize);

    impl Engine for Counting {
        fn config(&self) -> &BertConfig {
            &self.0
        }

        fn encode_rows(
            &self,
            batch: &PackedBatch,
            rows: &[usize],
            _middle: &[usize],
        ) -> Result<Matrix> {
            self.1.fetch_add(batch.n_pieces(), Ordering::Relaxed);
            let ids = rows.iter().map(|&row| batch.pieces()[row].id as f32);
            Ok(Matrix::new(ids.collect(), 1))
        }
    }

    impl Counting {
        fn new() -> Self {
            let json = r#"{"hidden_size": 1, "num_hidden_layers": 1, "num_attention_heads": 1,
                "intermediate_size": 1, "vocab_size": 300, "max_position_embeddings": 9}"#;
            Self(BertConfig::from_json(json).unwrap(), AtomicUsize::new(0))
        }

        fn n_read(&self) -> usize {
            self.1.swap(0, Ordering::Relaxed)
        }
    }

    fn sequences(ids: impl IntoIterator<Item = u32>) -> Vec<Sequence> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
        let tokenizer = WordPieces::load(&dir).unwrap();
        let one = |id| Pieces { ids: vec![id], shapes: vec![0], first: vec![0] };
        ids.into_iter().map(|id| Sequence::alone(&one(id), &tokenizer)).collect()
    }

    fn rows(ids: impl IntoIterator<Item = u32>) -> Vec<Matrix> {
        ids.into_iter().map(|id| Matrix::new(vec![id as f32], 1)).collect()
    }

    #[test]
    fn only_what_is_new_is_read() {
        let (kept, engine) = (KeptRows::new(1 << 20), Counting::new());
        assert_eq!(kept.embed(&engine, &sequences([1, 2, 3, 2])).unwrap(), rows([1, 2, 3, 2]));
        assert_eq!(engine.n_read(), 9);
        assert_eq!(kept.embed(&engine, &sequences([3, 9, 1])).unwrap(), rows([3, 9, 1]));
        assert_eq!(engine.n_read(), 3);
    }

    #[test]
    fn what_nobody_asks_for_is_forgotten_and_what_is_asked_for_stays() {
        let one = bytes(&sequences([0])[0], &rows([0])[0]);
        let (kept, engine) = (KeptRows::new(20 * one), Counting::new());
        for id in 0..200 {
            kept.embed(&engine, &sequences([7, 50 + id])).unwrap();
        }
        assert_eq!(engine.n_read(), 3 * 201, "7 once, the others once");
        kept.embed(&engine, &sequences([7, 249])).unwrap();
        assert_eq!(engine.n_read(), 0);
        kept.embed(&engine, &sequences([60])).unwrap();
        assert_eq!(engine.n_read(), 3);
        let generations = kept.generations.lock().unwrap();
        assert!(generations.young.len() + generations.old.len() <= 20);
    }
}
