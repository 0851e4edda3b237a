//! One sequence for the encoder, and which of its rows are word vectors.
//!
//! ```text
//! paired    [CLS] q [SEP] sᵢ [SEP]   segments 0…0 1…1   → Qᵢ [n, d] and Kᵢ [mᵢ, d], stacked
//! alone     [CLS] x [SEP]            segment 0          → X [n, d]
//! name      [CLS] words [SEP]        segment 0          → the mean of all its pieces, [1, d]
//! ```
//!
//! A word's vector is the last layer's row of its first piece. A model may want more beside it: the rows of middle layers, and
//! the word by itself, the mean of its pieces' embeddings. Then a row is `[last, middle…, by itself]`, `h` numbers each, and what
//! stands beside the first has no gradient, as if all below were frozen. A name is no word of a text, and has zeros there.

use std::ops::Range;
use std::sync::Arc;

use crate::encoder::{Engine, Piece, Pieces, WordPieces};
use crate::matrix::{self, Matrix, add_scaled};

/// One sequence for the encoder, and which of its rows are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Sequence {
    pub(super) pieces: Vec<Piece>,
    /// Positions of pieces, increasing.
    wanted: Vec<usize>,
    /// Whether the wanted rows become one, their mean.
    is_mean: bool,
    /// The layers whose rows follow those of the last.
    pub(super) middle: Arc<[usize]>,
    /// Whether each row is followed by its word's embeddings.
    is_lexical: bool,
}

impl Sequence {
    /// `[CLS] sentence [SEP]`: one row per word.
    #[must_use]
    pub fn alone(sentence: &Pieces, tokenizer: &WordPieces) -> Self {
        let wanted = sentence.first.iter().map(|first| first + 1).collect();
        Self { pieces: framed(sentence, tokenizer), wanted, ..Self::default() }
    }

    /// `[CLS] name [SEP]`: one row, the mean over the pieces of a label's name.
    #[must_use]
    pub fn name(name: &Pieces, tokenizer: &WordPieces) -> Self {
        let wanted = (1..=name.ids.len()).collect();
        Self { pieces: framed(name, tokenizer), wanted, is_mean: true, ..Self::default() }
    }

    /// `[CLS] query [SEP] support [SEP]`: the rows of the query's words, then those of the support's.
    #[must_use]
    pub fn paired(query: &Pieces, support: &Pieces, tokenizer: &WordPieces) -> Self {
        let mut pieces = framed(query, tokenizer);
        let start = pieces.len();
        pieces.extend(support.of_segment(1));
        pieces.push(Piece { id: tokenizer.sep(), segment: 1 });
        let of_query = query.first.iter().map(|first| first + 1);
        let of_support = support.first.iter().map(|first| first + start);
        let wanted = of_query.chain(of_support).collect();
        Self { pieces, wanted, ..Self::default() }
    }

    /// The same sequence, whose rows are followed by those of these layers.
    pub(super) fn with_middle(self, layers: &Arc<[usize]>) -> Self {
        Self { middle: Arc::clone(layers), ..self }
    }

    /// The same sequence, whose rows are followed by their words' embeddings or not.
    pub(super) fn lexical(self, is_lexical: bool) -> Self {
        Self { is_lexical, ..self }
    }

    /// The number of rows that are read off the encoder.
    pub(super) fn n_wanted(&self) -> usize {
        self.wanted.len()
    }

    /// The number of pieces, special ones included.
    #[must_use]
    pub fn n_pieces(&self) -> usize {
        self.pieces.len()
    }

    /// Hands all that tells it from others to a hash.
    pub(super) fn hash_into(&self, mut hash: impl FnMut(&[u8])) {
        hash(&[u8::from(self.is_mean)]);
        for n in [self.pieces.len(), self.wanted.len()].iter().chain(&self.wanted) {
            hash(&(*n as u64).to_le_bytes());
        }
        for Piece { id, segment } in &self.pieces {
            hash(&id.to_le_bytes());
            hash(&[*segment]);
        }
        self.middle.iter().for_each(|layer| hash(&(*layer as u64).to_le_bytes()));
    }

    /// How many numbers an encoder of width `h` gives for a row.
    pub(super) fn n_read(&self, h: usize) -> usize {
        h * (1 + self.middle.len())
    }

    /// The rows of the wanted pieces in a batch where the sequence starts at row `start`.
    pub(super) fn rows(&self, start: usize) -> impl Iterator<Item = usize> {
        self.wanted.iter().map(move |at| start + at)
    }

    /// The answer from the rows of `hidden` that hold the wanted pieces.
    pub(super) fn gather(&self, hidden: &Matrix, rows: impl Iterator<Item = usize>) -> Matrix {
        let rows = rows.map(|row| hidden.row(row));
        if self.is_mean {
            let (mut mean, h) = (Matrix::zeros(1, hidden.n_cols()), self.width(hidden));
            rows.for_each(|row| add_scaled(&mut mean.row_mut(0)[..h], self.weight(), &row[..h]));
            return mean;
        }
        Matrix::new(rows.flatten().copied().collect(), hidden.n_cols())
    }

    /// `h`, of rows that the encoder gave.
    fn width(&self, rows: &Matrix) -> usize {
        rows.n_cols() / (1 + self.middle.len())
    }

    /// The answer with the embeddings of its words behind it, if they are wanted.
    pub(super) fn completed(&self, rows: Matrix, engine: &dyn Engine) -> Matrix {
        if !self.is_lexical {
            return rows;
        }
        let n_cols = rows.n_cols() + self.width(&rows);
        let mut values = Vec::with_capacity(rows.n_rows() * n_cols);
        if self.is_mean {
            values.extend_from_slice(rows.values());
            values.resize(n_cols, 0.0);
            return Matrix::new(values, n_cols);
        }
        let embeddings = engine.embeddings(&self.pieces).expect("the model's encoder has them");
        let of_word = |pieces: Range<usize>| matrix::mean(pieces.map(|at| embeddings.row(at)));
        for (row, pieces) in rows.rows().zip(self.words()) {
            values.extend_from_slice(row);
            values.extend(of_word(pieces));
        }
        Matrix::new(values, n_cols)
    }

    /// The pieces of each word.
    fn words(&self) -> Vec<Range<usize>> {
        let separator = self.pieces.last().expect("a sequence is framed").id;
        let until = |from: usize| {
            let rest = self.pieces[from..].iter();
            from + rest.take_while(|piece| piece.id != separator).count()
        };
        let next = self.wanted.iter().skip(1).copied().chain([usize::MAX]);
        self.wanted.iter().zip(next).map(|(&from, next)| from..until(from).min(next)).collect()
    }

    /// The transpose of [`Sequence::gather`]: puts the gradients of the answer where it came from, in a sequence that starts
    /// at row `start`.
    pub(super) fn scatter(&self, d_read: &Matrix, d_hidden: &mut Matrix, start: usize) {
        let width = d_hidden.n_cols();
        for (n, row) in self.rows(start).enumerate() {
            let d = d_read.row(if self.is_mean { 0 } else { n });
            add_scaled(d_hidden.row_mut(row), self.weight(), &d[..width]);
        }
    }

    /// The weight of a wanted row in its row of the answer.
    fn weight(&self) -> f32 {
        if self.is_mean { 1.0 / self.wanted.len() as f32 } else { 1.0 }
    }
}

/// `[CLS] inner [SEP]` in segment 0.
fn framed(inner: &Pieces, tokenizer: &WordPieces) -> Vec<Piece> {
    let edge = |id| Piece { id, segment: 0 };
    [edge(tokenizer.cls())]
        .into_iter()
        .chain(inner.of_segment(0))
        .chain([edge(tokenizer.sep())])
        .collect()
}
