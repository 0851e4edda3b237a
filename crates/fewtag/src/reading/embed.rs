//! Sequences through the encoder, for tagging and for training.
//!
//! Sequences run through the encoder in chunks of about [`CHUNK`] pieces. The cut depends on the sequences alone, and
//! gradients are added chunk by chunk in order; so neither the number of threads nor the memory for activations changes a
//! bit of the result. Activations that do not fit the budget are computed again during the backward pass.

use std::collections::HashMap;
use std::ops::Range;

use super::Sequence;
use crate::encoder::{BertConfig, Dropout, Engine, Gradients, PackedBatch, Trace, TrainableEngine};
use crate::error::Result;
use crate::matrix::Matrix;
use crate::random::Random;

/// Pieces per chunk: enough rows to keep the matrix products busy, few enough that their activations stay
/// around 200 MB for a small encoder.
const CHUNK: usize = 1024;

/// Reads every sequence; the answer for one is its wanted rows, `[n_wanted, d]` (`[1, d]` for a name), where `d` is `h`, or
/// more for a model that wants rows of middle layers and words by themselves too.
///
/// # Errors
///
/// Whatever the engine refuses, such as a sequence longer than its position table.
pub fn embed(engine: &dyn Engine, sequences: &[Sequence]) -> Result<Vec<Matrix>> {
    let (different, places) = distinct(sequences);
    if different.len() == sequences.len() {
        return embed_each(engine, sequences);
    }
    Ok(spread(embed_each(engine, &different)?, &places))
}

/// What was read of different sequences, for each of the sequences that are at these places of them. The last that has it gets
/// it as it is: two copies of a large support set are much memory.
pub(super) fn spread(mut read: Vec<Matrix>, places: &[usize]) -> Vec<Matrix> {
    let mut left = vec![0; read.len()];
    for &place in places {
        left[place] += 1;
    }
    let give = |&place: &usize| {
        left[place] -= 1;
        if left[place] == 0 { std::mem::take(&mut read[place]) } else { read[place].clone() }
    };
    places.iter().map(give).collect()
}

/// The sequences without repetitions, and which of them each one is: real text repeats itself.
pub(super) fn distinct(sequences: &[Sequence]) -> (Vec<Sequence>, Vec<usize>) {
    let mut different = Vec::new();
    let mut place_of: HashMap<&Sequence, usize> = HashMap::with_capacity(sequences.len());
    let place = |sequence| {
        *place_of.entry(sequence).or_insert_with(|| {
            different.push(Sequence::clone(sequence));
            different.len() - 1
        })
    };
    let places = sequences.iter().map(place).collect();
    (different, places)
}

fn embed_each(engine: &dyn Engine, sequences: &[Sequence]) -> Result<Vec<Matrix>> {
    let mut read = Vec::with_capacity(sequences.len());
    for chunk in chunks(sequences) {
        let sequences = &sequences[chunk];
        let batch = packed(sequences);
        let placed = sequences.iter().zip(batch.sequences());
        let wanted: Vec<usize> = placed.flat_map(|(s, place)| s.rows(place.start)).collect();
        let hidden = engine.encode_rows(&batch, &wanted, &sequences[0].middle)?;
        let mut rows = 0..hidden.n_rows();
        let gathered = |s: &Sequence| {
            let rows = s.gather(&hidden, rows.by_ref().take(s.n_wanted()));
            s.completed(rows, engine)
        };
        read.extend(sequences.iter().map(gathered));
    }
    Ok(read)
}

/// What the backward pass needs to know of a forward pass for training.
pub struct Tape<'a> {
    sequences: &'a [Sequence],
    chunks: Vec<Chunk>,
}

struct Chunk {
    range: Range<usize>,
    batch: PackedBatch,
    dropout: Option<Dropout>,
    /// The activations, if they fit the budget; otherwise they are computed again.
    trace: Option<Trace>,
}

/// Like [`embed`], but with dropout and a [`Tape`] whose activations take at most about `budget` bytes.
///
/// # Errors
///
/// As [`embed`].
pub fn embed_for_training<'a>(
    engine: &dyn TrainableEngine,
    sequences: &'a [Sequence],
    dropout: Option<Dropout>,
    budget: usize,
) -> Result<(Vec<Matrix>, Tape<'a>)> {
    let mut read = Vec::with_capacity(sequences.len());
    let mut tape = Tape { sequences, chunks: Vec::new() };
    let mut kept = 0;
    for (at, range) in chunks(sequences).into_iter().enumerate() {
        let batch = packed(&sequences[range.clone()]);
        let dropout = dropout
            .map(|Dropout { rate, seed }| Dropout { rate, seed: Random::new(seed).at(at as u64) });
        let (hidden, trace) =
            engine.encode_for_training(&batch, &sequences[range.start].middle, dropout)?;
        let placed = sequences[range.clone()].iter().zip(batch.sequences());
        let gathered = |(s, place): (&Sequence, Range<usize>)| {
            s.completed(s.gather(&hidden, s.rows(place.start)), engine)
        };
        read.extend(placed.map(gathered));
        let bytes = trace_bytes(engine.parameters().config(), &batch);
        // Room for one more trace stays free, for a chunk that is computed again beside the kept ones.
        let keep = kept + 2 * bytes <= budget;
        kept += if keep { bytes } else { 0 };
        tape.chunks.push(Chunk { range, batch, dropout, trace: keep.then_some(trace) });
    }
    Ok((read, tape))
}

impl Tape<'_> {
    /// Adds the gradients of the encoder's parameters to `gradients`, given those of the rows that
    /// [`embed_for_training`] gave, one matrix per sequence of the same shape.
    ///
    /// # Panics
    ///
    /// If `engine` is not the one of the forward pass, or `d_read` has another number of matrices than there are sequences.
    pub fn backward(
        self,
        engine: &dyn TrainableEngine,
        d_read: &[Matrix],
        gradients: &mut Gradients,
    ) {
        assert_eq!(d_read.len(), self.sequences.len(), "one gradient per sequence");
        for Chunk { range, batch, dropout, trace } in self.chunks {
            let middle = &self.sequences[range.start].middle;
            let again = || engine.encode_for_training(&batch, middle, dropout);
            let trace = trace.unwrap_or_else(|| again().expect("it was read once already").1);
            let mut d_hidden = Matrix::zeros(batch.n_pieces(), engine.width());
            for (n, at) in range.enumerate() {
                self.sequences[at].scatter(&d_read[at], &mut d_hidden, batch.rows(n).start);
            }
            engine.backward(&batch, &trace, d_hidden, gradients);
        }
    }
}

/// How much a trace of `batch` takes: per layer and piece its input, queries, keys, values, context, two
/// normalised rows and the row before the activation; and the attention probabilities of every head.
fn trace_bytes(config: &BertConfig, batch: &PackedBatch) -> usize {
    let per_piece = 7 * config.hidden_size + config.intermediate_size;
    let n_probabilities: usize = batch.sequences().map(|rows| rows.len().pow(2)).sum();
    let n_numbers = batch.n_pieces() * per_piece + n_probabilities * config.num_attention_heads;
    n_numbers * config.num_hidden_layers * size_of::<f32>()
}

/// Cuts the sequences into runs of at most [`CHUNK`] pieces, or of one sequence that is longer, of which the same layers are read.
fn chunks(sequences: &[Sequence]) -> Vec<Range<usize>> {
    let mut chunks: Vec<Range<usize>> = Vec::new();
    let mut n_pieces = 0;
    for (at, sequence) in sequences.iter().enumerate() {
        n_pieces += sequence.n_pieces();
        match chunks.last_mut() {
            Some(chunk)
                if n_pieces <= CHUNK && sequences[chunk.start].middle == sequence.middle =>
            {
                chunk.end = at + 1;
            }
            _ => {
                n_pieces = sequence.n_pieces();
                chunks.push(at..at + 1);
            }
        }
    }
    chunks
}

fn packed(sequences: &[Sequence]) -> PackedBatch {
    let mut batch = PackedBatch::new();
    for sequence in sequences {
        batch.push(sequence.pieces.iter().copied());
    }
    batch
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::encoder::{Bert, Layered, Piece, Pieces, WordPieces, weights};

    /// An encoder whose row for a piece is `[id, segment, row in the batch]`.
    struct Echo(BertConfig);

    impl Engine for Echo {
        fn config(&self) -> &BertConfig {
            &self.0
        }

        fn encode_rows(
            &self,
            batch: &PackedBatch,
            rows: &[usize],
            _middle: &[usize],
        ) -> Result<Matrix> {
            let row = |&row: &usize| {
                let Piece { id, segment } = batch.pieces()[row];
                [id as f32, f32::from(segment), row as f32]
            };
            Ok(Matrix::new(rows.iter().flat_map(row).collect(), 3))
        }
    }

    fn echo() -> Echo {
        let json = r#"{"hidden_size": 3, "num_hidden_layers": 1, "num_attention_heads": 1,
            "intermediate_size": 1, "vocab_size": 300, "max_position_embeddings": 9}"#;
        Echo(BertConfig::from_json(json).unwrap())
    }

    fn word_pieces() -> WordPieces {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
        WordPieces::load(&dir).unwrap()
    }

    fn pieces(ids: &[u32], first: &[usize]) -> Pieces {
        Pieces { ids: ids.to_vec(), shapes: vec![0; ids.len()], first: first.to_vec() }
    }

    #[test]
    fn words_are_read_at_their_first_piece() {
        let tokenizer = word_pieces();
        let (cls, sep) = (tokenizer.cls(), tokenizer.sep());
        let query = pieces(&[10, 11, 12], &[0, 2]);
        let support = pieces(&[20, 21, 22], &[0, 1]);
        let alone = Sequence::alone(&query, &tokenizer);
        let paired = Sequence::paired(&query, &support, &tokenizer);
        let ids: Vec<u32> = paired.pieces.iter().map(|piece| piece.id).collect();
        assert_eq!(ids, [cls, 10, 11, 12, sep, 20, 21, 22, sep]);

        let read = embed(&echo(), &[alone, paired]).unwrap();
        assert_eq!(read[0].values(), [10.0, 0.0, 1.0, 12.0, 0.0, 3.0]);
        // The second sequence starts at row 5.
        let of_query = [[10.0, 0.0, 6.0], [12.0, 0.0, 8.0]];
        let of_support = [[20.0, 1.0, 10.0], [21.0, 1.0, 11.0]];
        assert_eq!(read[1].values(), [of_query, of_support].as_flattened().as_flattened());
    }

    #[test]
    fn a_sequence_that_comes_again_is_read_once() {
        let tokenizer = word_pieces();
        let [first, second] = [10, 20].map(|id| Sequence::alone(&pieces(&[id], &[0]), &tokenizer));
        let again = [&first, &second, &first, &second, &second].map(Clone::clone);
        let read = embed(&echo(), &again).unwrap();
        // The last number is the row of the batch: that of the first time.
        let [of_first, of_second] = [[10.0, 0.0, 1.0], [20.0, 0.0, 4.0]];
        for (read, expected) in
            read.iter().zip([of_first, of_second, of_first, of_second, of_second])
        {
            assert_eq!(read.values(), expected);
        }
        // The same pieces read as a name are another sequence.
        let name = Sequence::name(&pieces(&[10, 14], &[0]), &tokenizer);
        let alone = Sequence::alone(&pieces(&[10, 14], &[0]), &tokenizer);
        assert_eq!(embed(&echo(), &[name, alone]).unwrap()[1].values()[2..], [5.0]);
    }

    #[test]
    fn a_name_is_the_mean_of_its_pieces() {
        let name = Sequence::name(&pieces(&[10, 14], &[0]), &word_pieces());
        assert_eq!(embed(&echo(), &[name]).unwrap()[0].values(), [12.0, 0.0, 1.5]);
    }

    #[test]
    fn a_row_may_be_followed_by_its_word_by_itself() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
        let engine = Bert::new(weights::load(&dir).unwrap()).unwrap();
        let (tokenizer, h) = (word_pieces(), engine.width());
        let (query, support) = (pieces(&[10, 11, 12], &[0, 2]), pieces(&[20, 21, 22], &[0, 1]));
        let alone = |ids: &[u32], segment| {
            let pieces: Vec<Piece> = ids.iter().map(|&id| Piece { id, segment }).collect();
            crate::matrix::mean(engine.embeddings(&pieces).unwrap().rows())
        };
        let both = Sequence::paired(&query, &support, &tokenizer);
        let words =
            [alone(&[10, 11], 0), alone(&[12], 0), alone(&[20], 1), alone(&[21, 22], 1)].to_vec();
        let name = Sequence::name(&query, &tokenizer);
        for (sequence, words) in [(both, words), (name, vec![vec![0.0; h]])] {
            let read = |lexical| embed(&engine, &[sequence.clone().lexical(lexical)]).unwrap();
            let (plain, lexical) = (&read(false)[0], &read(true)[0]);
            assert_eq!((plain.n_cols(), lexical.n_cols()), (h, 2 * h));
            for ((row, plain), word) in lexical.rows().zip(plain.rows()).zip(&words) {
                assert_eq!((&row[..h], &row[h..]), (plain, &word[..]));
            }
            assert_eq!(lexical.n_rows(), words.len());
        }
    }

    #[test]
    fn rows_of_a_middle_layer_stand_between_the_last_and_the_word_by_itself() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
        let engine = Bert::new(weights::load(&dir).unwrap()).unwrap();
        let (tokenizer, h) = (word_pieces(), engine.width());
        let query = pieces(&[10, 11, 12], &[0, 2]);
        let first = |sequence: &Sequence| {
            engine.encode_below(&packed(std::slice::from_ref(sequence)), 1, &[]).unwrap()
        };
        let sentence = Sequence::alone(&query, &tokenizer).lexical(true);
        let name = Sequence::name(&query, &tokenizer).lexical(true);
        let middle = [sentence.clone(), name.clone()].map(|s| s.with_middle(&[1].into()));
        let plain = embed(&engine, &[sentence.clone(), name]).unwrap();
        // Sequences of which other layers are read are no neighbours in a batch.
        let mixed = [&middle[0], &sentence, &middle[1]].map(Clone::clone);
        let read = embed(&engine, &mixed).unwrap();
        assert_eq!(read[1], plain[0]);
        for (word, piece) in [1, 3].into_iter().enumerate() {
            let (last, alone) = plain[0].row(word).split_at(h);
            let expected = [last, first(&sentence).row(piece), alone].concat();
            assert_eq!(read[0].row(word), expected);
        }
        let (last, zeros) = plain[1].row(0).split_at(h);
        assert_eq!(read[2].row(0), [last, zeros, zeros].concat());
        let (trained, _) =
            embed_for_training(&engine, &mixed, None, usize::MAX).expect("sequences that fit");
        assert_eq!(trained, read);
    }

    #[test]
    fn chunks_hold_whole_sequences_in_order() {
        let tokenizer = word_pieces();
        let of = |n: usize| Sequence::name(&pieces(&vec![7; n - 2], &[0]), &tokenizer);
        let sequences = [of(CHUNK + 5), of(CHUNK - 3), of(3), of(3), of(CHUNK)];
        assert_eq!(chunks(&sequences), [0..1, 1..3, 3..4, 4..5]);
        assert!(chunks(&[]).is_empty());
    }

    /// About 3,000 pieces on the tiny encoder, a gradient for every wanted row, and that of the encoder.
    fn gradients(run: impl FnOnce(&Bert, &[Sequence], &[Matrix], &mut Gradients)) -> Gradients {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
        let engine = Bert::new(weights::load(&dir).unwrap()).unwrap();
        let (tokenizer, mut random) = (word_pieces(), Random::new(4));
        let mut some = |n: usize| {
            let ids: Vec<u32> = (0..n).map(|_| random.below(200) as u32).collect();
            pieces(&ids, &(0..n).step_by(2).collect::<Vec<_>>())
        };
        let sequences: Vec<Sequence> = (0..60)
            .map(|i| match i % 3 {
                0 => Sequence::alone(&some(40 + i), &tokenizer),
                1 => Sequence::paired(&some(30), &some(i), &tokenizer),
                _ => Sequence::name(&some(5), &tokenizer),
            })
            .collect();
        assert!(chunks(&sequences).len() >= 3);
        let mut random = Random::new(6);
        let mut d_read = embed(&engine, &sequences).unwrap();
        d_read.iter_mut().flat_map(Matrix::values_mut).for_each(|d| *d = random.normal() as f32);
        let mut gradients = Gradients::zeros(engine.config());
        run(&engine, &sequences, &d_read, &mut gradients);
        gradients
    }

    #[test]
    fn several_chunks_have_the_gradients_of_one_batch() {
        let chunked = gradients(|engine, sequences, d_read, gradients| {
            let (_, tape) = embed_for_training(engine, sequences, None, usize::MAX).unwrap();
            tape.backward(engine, d_read, gradients);
        });
        let whole = gradients(|engine, sequences, d_read, gradients| {
            let batch = packed(sequences);
            let (_, trace) = engine.encode_for_training(&batch, &[], None).unwrap();
            let mut d_hidden = Matrix::zeros(batch.n_pieces(), engine.width());
            for (n, sequence) in sequences.iter().enumerate() {
                sequence.scatter(&d_read[n], &mut d_hidden, batch.rows(n).start);
            }
            engine.backward(&batch, &trace, d_hidden, gradients);
        });
        let both = chunked.parameters().tensors().zip(whole.parameters().tensors());
        for ((tensor, chunked), (_, whole)) in both {
            let largest = whole.iter().fold(0.0_f32, |max, g| max.max(g.abs()));
            // Sums of 3,000 products in another order.
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 3e-6 * largest.max(1.0);
            assert!(chunked.iter().zip(whole).all(near), "{}", tensor.name);
        }
    }

    #[test]
    fn chunks_that_are_computed_again_change_no_bit() {
        let with_budget = |share: Option<usize>| {
            gradients(|engine, sequences, d_read, gradients| {
                let whole = trace_bytes(engine.config(), &packed(sequences));
                let budget = share.map_or(usize::MAX, |percent| whole * percent / 100);
                let dropout = Some(Dropout { rate: 0.1, seed: 5 });
                let (_, tape) = embed_for_training(engine, sequences, dropout, budget).unwrap();
                let n_kept = tape.chunks.iter().filter(|chunk| chunk.trace.is_some()).count();
                match share {
                    None => assert_eq!(n_kept, tape.chunks.len()),
                    Some(0) => assert_eq!(n_kept, 0),
                    Some(_) => assert!((1..tape.chunks.len()).contains(&n_kept), "{n_kept}"),
                }
                tape.backward(engine, d_read, gradients);
            })
        };
        let kept = with_budget(None);
        assert!(kept == with_budget(Some(0)));
        assert!(kept == with_budget(Some(90)));
    }
}
