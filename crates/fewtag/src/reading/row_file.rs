//! Rows of support sets in a file: a set that comes again with a changed example is read as far as it is new, also by the
//! next process.
//!
//! ```text
//! file    MAGIC, then records, those used last first
//! record  digest of model, precision and sequence [16] ─ rows u32 ─ columns u32 ─ digest of the numbers [16] ─ numbers f32, little-endian
//! ```
//!
//! A cache, so nothing depends on it: what is missing or damaged is read by the encoder, what cannot be written is not kept.
//! The file is replaced as a whole, so of two processes that write at the same time one is the last.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::Sequence;
use super::embed::{self, distinct, spread};
use crate::encoder::Engine;
use crate::error::{Error, Result};
use crate::file;
use crate::matrix::Matrix;

/// What a file starts with; another version has another.
const MAGIC: &[u8; 16] = b"fewtag rows 1\n\0\0";
/// Below so many pieces a set is read as fast as it is found: some 0.3 seconds of one core in int8.
const FEWEST_PIECES: usize = 4096;

/// The first half of a SHA-256.
type Digest = [u8; 16];

/// Where rows of support sets are kept.
#[derive(Debug)]
pub(crate) struct RowFile {
    path: PathBuf,
    /// What all sequences are hashed after: the model and how it computes.
    model: Sha256,
    most: u64,
    fewest_pieces: usize,
}

impl RowFile {
    /// A file that takes at most about `most` bytes; it need not exist. `checksum` is the model's.
    pub(crate) fn new(path: &Path, most: u64, checksum: &str, engine: &dyn Engine) -> Self {
        let model = Sha256::new()
            .chain_update(checksum)
            .chain_update(engine.precision().name())
            .chain_update(std::env::consts::ARCH); // Where numbers may be rounded otherwise.
        Self { path: path.to_owned(), model, most, fewest_pieces: FEWEST_PIECES }
    }

    /// [`embed::embed`], where what the file has is not read again. What is new is added to the file. Words by themselves are
    /// not kept: they are looked up faster than read from a file.
    pub(crate) fn embed(&self, engine: &dyn Engine, sequences: &[Sequence]) -> Result<Vec<Matrix>> {
        if sequences.iter().map(Sequence::n_pieces).sum::<usize>() < self.fewest_pieces {
            return embed::embed(engine, sequences);
        }
        let in_context: Vec<Sequence> =
            sequences.iter().map(|sequence| sequence.clone().lexical(false)).collect();
        let (different, places) = distinct(&in_context);
        let digests: Vec<Digest> = different.iter().map(|s| self.digest(s)).collect();
        let widths: Vec<usize> = different.iter().map(|s| s.n_read(engine.width())).collect();
        let mut found = self.read(&digests, &widths);
        let is_new = |(_, digest): &(&Sequence, &Digest)| !found.contains_key(*digest);
        let new = different.iter().zip(&digests).filter(is_new);
        let (new, new_digests): (Vec<Sequence>, Vec<Digest>) =
            new.map(|(sequence, digest)| (sequence.clone(), *digest)).unzip();
        if !new.is_empty() {
            found.extend(new_digests.into_iter().zip(embed::embed(engine, &new)?));
            // A cache that cannot be written is one that is not there.
            let _ = self.write(&digests, &found);
        }
        let take = |digest| found.remove(digest).expect("it was found or read");
        let rows = spread(digests.iter().map(take).collect(), &places);
        let complete = |(sequence, rows): (&Sequence, Matrix)| sequence.completed(rows, engine);
        Ok(sequences.iter().zip(rows).map(complete).collect())
    }

    /// What a sequence is found by.
    fn digest(&self, sequence: &Sequence) -> Digest {
        let mut digest = self.model.clone();
        sequence.hash_into(|bytes| digest.update(bytes));
        half(digest)
    }

    /// The rows that the file has of some sequences; those that are not what was written are left out.
    fn read(&self, digests: &[Digest], widths: &[usize]) -> HashMap<Digest, Matrix> {
        let wanted: HashMap<&Digest, usize> = digests.iter().zip(widths.iter().copied()).collect();
        let mut found = HashMap::with_capacity(digests.len());
        let Some(mut records) = Records::open(&self.path) else { return found };
        while let Some(record) = records.next_record() {
            let is_wanted = wanted.get(&record.digest) == Some(&record.n_cols);
            let Some(numbers) = records.numbers(&record, is_wanted) else { break };
            if is_wanted && half(Sha256::new().chain_update(&numbers)) == record.of_numbers {
                let (numbers, _) = numbers.as_chunks();
                let values = numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
                found.insert(record.digest, Matrix::new(values, record.n_cols));
            }
        }
        found
    }

    /// Writes these rows, and behind them what the file had of others, as far as there is room.
    fn write(&self, digests: &[Digest], rows: &HashMap<Digest, Matrix>) -> Result<()> {
        if let Some(directory) = self.path.parent() {
            let fail = |source| Error::File { path: directory.to_owned(), source };
            std::fs::create_dir_all(directory).map_err(fail)?;
        }
        file::write_atomically_with(&self.path, |file| {
            let mut out = Bounded { out: BufWriter::new(file), room: self.most };
            out.out.write_all(MAGIC).map_err(Error::Write)?;
            for digest in digests {
                let numbers: Vec<u8> =
                    rows[digest].values().iter().flat_map(|x| x.to_le_bytes()).collect();
                let of_numbers = half(Sha256::new().chain_update(&numbers));
                let n_cols = rows[digest].n_cols();
                out.put(
                    &Record { digest: *digest, n_rows: rows[digest].n_rows(), n_cols, of_numbers },
                    &numbers,
                )?;
            }
            let mut others = Records::open(&self.path);
            while let Some(records) = &mut others
                && let Some(record) = records.next_record()
                && let Some(numbers) = records.numbers(&record, !rows.contains_key(&record.digest))
            {
                if !numbers.is_empty() {
                    out.put(&record, &numbers)?;
                }
            }
            out.out.flush().map_err(Error::Write)
        })
    }
}

fn half(digest: Sha256) -> Digest {
    *digest.finalize().first_chunk().expect("a SHA-256 has 32 bytes")
}

/// What stands before the numbers of a sequence.
struct Record {
    digest: Digest,
    n_rows: usize,
    n_cols: usize,
    of_numbers: Digest,
}

impl Record {
    const BYTES: usize = 40;

    fn n_bytes(&self) -> u64 {
        self.n_rows as u64 * self.n_cols as u64 * size_of::<f32>() as u64
    }

    fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.digest);
        bytes[16..20].copy_from_slice(&(self.n_rows as u32).to_le_bytes());
        bytes[20..24].copy_from_slice(&(self.n_cols as u32).to_le_bytes());
        bytes[24..].copy_from_slice(&self.of_numbers);
        bytes
    }

    fn of_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let digest = |at: usize| std::array::from_fn(|i| bytes[at + i]);
        let number =
            |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i])) as usize;
        Self { digest: digest(0), n_rows: number(16), n_cols: number(20), of_numbers: digest(24) }
    }
}

/// The records of a file, one after the other, as far as they are whole.
struct Records {
    file: BufReader<File>,
    /// The bytes that were not read yet.
    left: u64,
}

impl Records {
    /// `None` if there is no such file.
    fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let left = file.metadata().ok().filter(std::fs::Metadata::is_file)?.len();
        let mut file = BufReader::with_capacity(1 << 16, file);
        let mut magic = [0; MAGIC.len()];
        file.read_exact(&mut magic).ok()?;
        (magic == *MAGIC).then(|| Self { file, left: left - MAGIC.len() as u64 })
    }

    fn next_record(&mut self) -> Option<Record> {
        let mut bytes = [0; Record::BYTES];
        self.file.read_exact(&mut bytes).ok()?;
        self.left = self.left.checked_sub(bytes.len() as u64)?;
        let record = Record::of_bytes(&bytes);
        // A length that is no longer what was written must not ask for memory that nobody has.
        (record.n_cols > 0 && record.n_bytes() <= self.left).then_some(record)
    }

    /// The numbers of the record that was met last, or nothing of those that nobody wants.
    fn numbers(&mut self, record: &Record, is_wanted: bool) -> Option<Vec<u8>> {
        self.left -= record.n_bytes();
        if !is_wanted {
            self.file.seek_relative(record.n_bytes().try_into().ok()?).ok()?;
            return Some(Vec::new());
        }
        let mut bytes = vec![0; usize::try_from(record.n_bytes()).ok()?];
        self.file.read_exact(&mut bytes).ok()?;
        Some(bytes)
    }
}

/// A file that takes no more than there is room for.
struct Bounded<W> {
    out: W,
    room: u64,
}

impl<W: Write> Bounded<W> {
    /// Writes a record unless it is too long.
    fn put(&mut self, record: &Record, numbers: &[u8]) -> Result<()> {
        let Some(room) = self.room.checked_sub(record.n_bytes() + Record::BYTES as u64) else {
            return Ok(());
        };
        self.room = room;
        self.out.write_all(&record.to_bytes()).map_err(Error::Write)?;
        self.out.write_all(numbers).map_err(Error::Write)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::encoder::{BertConfig, PackedBatch, Piece, Pieces, Precision, WordPieces};

    /// An encoder that counts the pieces it reads; a row is the id of its piece, twice.
    struct Counting(BertConfig, Precision, AtomicUsize);

    impl Engine for Counting {
        fn config(&self) -> &BertConfig {
            &self.0
        }

        fn precision(&self) -> Precision {
            self.1
        }

        fn encode_rows(
            &self,
            batch: &PackedBatch,
            rows: &[usize],
            _middle: &[usize],
        ) -> Result<Matrix> {
            self.2.fetch_add(batch.n_pieces(), Ordering::Relaxed);
            let ids = rows.iter().flat_map(|&row| [batch.pieces()[row].id as f32; 2]);
            Ok(Matrix::new(ids.collect(), 2))
        }

        fn embeddings(&self, pieces: &[Piece]) -> Option<Matrix> {
            Some(Matrix::new(pieces.iter().flat_map(|piece| [piece.id as f32, 0.5]).collect(), 2))
        }
    }

    fn engine(precision: Precision) -> Counting {
        let json = r#"{"hidden_size": 2, "num_hidden_layers": 1, "num_attention_heads": 1,
            "intermediate_size": 1, "vocab_size": 300, "max_position_embeddings": 9}"#;
        Counting(BertConfig::from_json(json).unwrap(), precision, AtomicUsize::new(0))
    }

    /// Sentences of one word each, which are three pieces.
    fn sequences(ids: impl IntoIterator<Item = u32>) -> Vec<Sequence> {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
        let tokenizer = WordPieces::load(&dir).unwrap();
        let one = |id| Pieces { ids: vec![id], shapes: vec![0], first: vec![0] };
        ids.into_iter().map(|id| Sequence::alone(&one(id), &tokenizer)).collect()
    }

    /// How many sentences the encoder had to read, by a new process with this file.
    fn n_read(path: &Path, most: u64, model: &str, ids: &[u32]) -> usize {
        n_read_in(Precision::Int8, path, most, model, ids)
    }

    fn n_read_in(precision: Precision, path: &Path, most: u64, model: &str, ids: &[u32]) -> usize {
        let engine = engine(precision);
        let file = RowFile { fewest_pieces: 0, ..RowFile::new(path, most, model, &engine) };
        let rows = file.embed(&engine, &sequences(ids.iter().copied())).unwrap();
        let expected: Vec<Matrix> =
            ids.iter().map(|&id| Matrix::new(vec![id as f32; 2], 2)).collect();
        assert_eq!(rows, expected);
        engine.2.load(Ordering::Relaxed) / 3
    }

    const ROOM: u64 = 1 << 20;

    #[test]
    fn words_by_themselves_are_added_to_the_rows_that_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        for n_read in [2, 0] {
            let engine = engine(Precision::Int8);
            let file = RowFile { fewest_pieces: 0, ..RowFile::new(&path, ROOM, "m", &engine) };
            let lexical: Vec<Sequence> =
                sequences([1, 2]).into_iter().map(|sequence| sequence.lexical(true)).collect();
            let rows = file.embed(&engine, &lexical).unwrap();
            assert_eq!(rows[1].values(), [2.0, 2.0, 2.0, 0.5]);
            assert_eq!(engine.2.load(Ordering::Relaxed) / 3, n_read);
        }
        assert_eq!(n_read(&path, ROOM, "m", &[1, 2]), 0);
    }

    #[test]
    fn a_changed_example_is_read_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("made/when/needed");
        assert_eq!(n_read(&path, ROOM, "m", &[1, 2, 3, 2]), 3);
        assert_eq!(n_read(&path, ROOM, "m", &[1, 2, 3, 2]), 0);
        assert_eq!(n_read(&path, ROOM, "m", &[3, 9, 1, 1]), 1);
        assert_eq!(n_read(&path, ROOM, "m", &[2, 9]), 0, "what was not asked for is kept too");
    }

    #[test]
    fn rows_of_another_model_or_precision_are_not_used() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        assert_eq!(n_read(&path, ROOM, "m", &[1, 2]), 2);
        assert_eq!(n_read(&path, ROOM, "other", &[1, 2]), 2);
        assert_eq!(n_read_in(Precision::F32, &path, ROOM, "m", &[1, 2]), 2);
        assert_eq!(n_read(&path, ROOM, "m", &[1, 2]), 0, "they stay beside each other");
    }

    #[test]
    fn whatever_is_damaged_is_read_again_and_the_answer_is_right() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        n_read(&path, ROOM, "m", &[1, 2, 3]);
        let whole = std::fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0x41;
            std::fs::write(&path, changed).unwrap();
            assert!((1..=3).contains(&n_read(&path, ROOM, "m", &[1, 2, 3])), "byte {at}");
            std::fs::write(&path, &whole[..at]).unwrap();
            assert!((1..=3).contains(&n_read(&path, ROOM, "m", &[1, 2, 3])), "cut at {at}");
        }
        std::fs::write(&path, "somebody else's file").unwrap();
        assert_eq!(n_read(&path, ROOM, "m", &[1, 2, 3]), 3);
        assert_eq!(n_read(&path, ROOM, "m", &[1, 2, 3]), 0);
    }

    #[test]
    fn the_file_does_not_outgrow_its_room_and_keeps_what_came_last() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        let room = 4 * (Record::BYTES as u64 + 8);
        n_read(&path, room, "m", &[1, 2, 3]);
        n_read(&path, room, "m", &[7, 8, 9]);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), MAGIC.len() as u64 + room);
        assert_eq!(n_read(&path, room, "m", &[7, 8, 9, 1]), 0);
        assert_eq!(n_read(&path, room, "m", &[2]), 1);
        assert_eq!(n_read(&path, room, "m", &[11, 12, 13, 14, 15, 16]), 6, "more than fit");
        assert_eq!(n_read(&path, room, "m", &[11, 12, 13, 14, 15, 16]), 2);
    }

    #[test]
    fn a_place_that_cannot_be_written_or_read_costs_nothing_but_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "no directory").unwrap();
        for path in [path.join("rows"), directory.path().to_owned()] {
            assert_eq!(n_read(&path, ROOM, "m", &[1, 2]), 2);
            assert_eq!(n_read(&path, ROOM, "m", &[1, 2]), 2);
        }
    }

    #[test]
    fn many_at_once_do_not_disturb_each_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows");
        std::thread::scope(|scope| {
            for first in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    for turn in 0..20 {
                        n_read(path, ROOM, "m", &[first, 10 + first, 20 + turn]);
                    }
                });
            }
        });
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(n_read(&path, ROOM, "m", &[39]) <= 1);
    }

    #[test]
    fn a_small_set_is_read_without_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let (path, engine) = (directory.path().join("rows"), engine(Precision::F32));
        let file = RowFile::new(&path, ROOM, "m", &engine);
        file.embed(&engine, &sequences([1, 2])).unwrap();
        assert!(!path.exists());
    }
}
