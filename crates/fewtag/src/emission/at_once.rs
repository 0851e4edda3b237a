//! The emissions of all words and all tags at once, as matrix products: what tagging spends its time with beside the encoder.
//!
//! With `K [M, h]` the words and names of all tags one below the other, `V_t [m, h]` its rows that are of tag `t`, `W [L, d]` the
//! regression, `Q [n, d]` a query and `Q_h [n, h]` its first half or all of it, and `a`, `b`, `c`, `P`, `N` as in `mixed.rs`:
//!
//! ```text
//! Q_h Kᵀ      [n, M]       every q·v_k
//! q·c = Σ a_k·(q·v_k)      no product of its own
//! A_t V_t     [n, h]       every c, of which |c|² is needed
//! Q Wᵀ        [n, L]       every R
//! ```
//!
//! A row depends on its own word alone, so an answer does not depend on its neighbours.

use std::ops::Range;

use fewtag_kernels::matmul::{Left, Panels, Product, View, Write};
use fewtag_kernels::softmax::weighed_softmax;
use fewtag_kernels::sum_of_squares;

use super::mixed::{Mix, TagWords};
use super::similarity::{Similarity, inverse};
use crate::matrix::{Matrix, dot};

/// At most so many likenesses are computed at a time, or those of [`FEWEST_ROWS`] words: bounds the memory of a long text.
const MOST: usize = 1 << 20;
/// The rows of a tile of products.
const FEWEST_ROWS: usize = 6;

/// What queries are multiplied with.
#[derive(Debug)]
pub(super) struct Factors {
    /// `Kᵀ [h, M]`
    words: Panels,
    n_words: usize,
    tags: Vec<TagFactors>,
    /// `Wᵀ [d, L]`
    regression: Option<Panels>,
    /// `h`
    width: usize,
}

#[derive(Debug)]
struct TagFactors {
    /// Which rows of `K` are the tag's.
    columns: Range<usize>,
    /// `V [m, h]`, unless nobody speaks for the tag.
    vectors: Option<Panels>,
}

impl Factors {
    /// `regression` is `W [L, d]`.
    pub(super) fn new(tags: &[TagWords], regression: Option<&Matrix>, width: usize) -> Self {
        let mut start = 0;
        let of_tag = |tag: &TagWords| {
            let columns = start..start + tag.vectors.n_rows();
            start = columns.end;
            let vectors = (!columns.is_empty()).then(|| {
                let mut vectors = Panels::default();
                vectors.pack(View::new(tag.vectors.values(), width));
                vectors
            });
            TagFactors { columns, vectors }
        };
        let of_tags = tags.iter().map(of_tag).collect();
        let regression = regression.map(|w| {
            let mut panels = Panels::default();
            panels.pack_transposed(View::new(w.values(), w.n_cols()));
            panels
        });
        let rows: Vec<&[f32]> = tags.iter().flat_map(|tag| tag.vectors.rows()).collect();
        let mut words = Panels::default();
        if !rows.is_empty() {
            words.pack_columns(width, rows.len(), |j| rows[j]);
        }
        Self { words, n_words: rows.len(), tags: of_tags, regression, width }
    }

    /// The emissions `[n, L]` of a query `[n, d]`; `tags` are those that this was made of.
    pub(super) fn emissions(
        &self,
        query: &Matrix,
        tags: &[TagWords],
        (similarity, mix): (Similarity, Mix),
    ) -> Matrix {
        let at_a_time = (MOST / self.n_words.max(1)).max(FEWEST_ROWS);
        let mut emissions = vec![f32::NEG_INFINITY; query.n_rows() * tags.len()];
        if self.n_words > 0 {
            let some = query.values().chunks(at_a_time * query.n_cols());
            for (some, into) in some.zip(emissions.chunks_mut(at_a_time * tags.len())) {
                let scores =
                    Scores { query: some, n_cols: query.n_cols(), factors: self, similarity, mix };
                scores.write(tags, into);
            }
        }
        Matrix::new(emissions, tags.len())
    }
}

/// Some words of a query on their way to emissions.
struct Scores<'a> {
    /// `[n, d]`
    query: &'a [f32],
    /// `d`
    n_cols: usize,
    factors: &'a Factors,
    similarity: Similarity,
    mix: Mix,
}

impl Scores<'_> {
    /// Writes the emissions `[n, L]` of all tags that somebody speaks for.
    fn write(&self, tags: &[TagWords], emissions: &mut [f32]) {
        let Factors { words, n_words, tags: factors, regression, width } = self.factors;
        let n_rows = self.query.len() / self.n_cols;
        let query = View::new(self.query, self.n_cols);
        let product = |left: View, right: &Panels, into: &mut [f32]| {
            Product { left: Left::Rows(left), right, write: Write::Set }.into(into);
        };
        let mut dots = vec![0.0; n_rows * n_words];
        product(query.cols(0, *width), words, &mut dots);
        let mut fitted = vec![0.0; n_rows * tags.len()];
        if let Some(regression) = regression {
            product(query, regression, &mut fitted);
        }
        let mut shares = vec![0.0; dots.len()];
        let mut centres = vec![0.0; n_rows * width];
        let rho = self.mix.regression.exp();
        for (t, (tag, factors)) in tags.iter().zip(factors).enumerate() {
            let Some(vectors) = &factors.vectors else { continue };
            let columns = &factors.columns;
            let found = self.attend(tag, columns, &dots, &mut shares);
            let attention = View::new(&shares, *n_words).cols(columns.start, columns.len());
            product(attention, vectors, &mut centres);
            let rows = found.iter().zip(centres.chunks_exact(*width));
            for (j, (found, centre)) in rows.enumerate() {
                let at = j * tags.len() + t;
                let score = self.mix.score(self.prototype(found, centre), found.nearest);
                emissions[at] = score + rho * fitted[at];
            }
        }
    }

    /// What each word finds among those of a tag; its shares `a` go to `shares`, which lie as `dots [n, M]` do.
    fn attend(
        &self,
        tag: &TagWords,
        columns: &Range<usize>,
        dots: &[f32],
        shares: &mut [f32],
    ) -> Vec<Found> {
        let Factors { n_words, width, .. } = self.factors;
        let (alpha, beta) = (self.mix.attention.exp(), self.mix.sharpness.exp());
        let (mut cosines, mut b) = (vec![0.0; columns.len()], vec![0.0; columns.len()]);
        let rows = dots.chunks_exact(*n_words).zip(shares.chunks_exact_mut(*n_words));
        let rows = rows.zip(self.query.chunks_exact(self.n_cols));
        let find = |((dots, shares), q): ((&[f32], &mut [f32]), &[f32])| {
            let (dots, a) = (&dots[columns.clone()], &mut shares[columns.clone()]);
            let square = sum_of_squares(&q[..*width]);
            let inverse_length = inverse(square.sqrt());
            for ((cosine, dot), v) in cosines.iter_mut().zip(dots).zip(&tag.inverse_lengths) {
                *cosine = dot * v * inverse_length;
            }
            weighed_softmax(dots, alpha, &tag.log_weights, a);
            weighed_softmax(&cosines, beta, &tag.log_weights, &mut b);
            Found { square, dot: dot(a, dots), nearest: dot(&b, &cosines) }
        };
        rows.map(find).collect()
    }

    /// `P`.
    fn prototype(&self, found: &Found, centre: &[f32]) -> f32 {
        self.similarity.of_products(found.dot, found.square, sum_of_squares(centre))
    }
}

/// What a word finds among those of a tag.
struct Found {
    /// `|q|²`
    square: f32,
    /// `q·c`
    dot: f32,
    /// `N`
    nearest: f32,
}
