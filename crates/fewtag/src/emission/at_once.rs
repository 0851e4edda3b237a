//! The emissions of all words and all tags at once, as matrix products: what tagging spends its time with beside the encoder.
//!
//! With `K [M, d]` the words and names of all tags one below the other, `W [L, d]` the regression, `V_t [m, d]` the rows of `K`
//! that are of tag `t`, and `a`, `b`, `c`, `P`, `N` as in `mixed.rs`:
//!
//! ```text
//! Q (K; W)ᵀ   [n, M + L]   every q·v_k and every R
//! q·c = Σ a_k·(q·v_k)      no product of its own
//! A_t V_t     [n, d]       every c, of which |c|² is needed
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
    /// `(K; W)ᵀ [d, M + L]`, `W` only if there is a regression.
    words: Panels,
    n_columns: usize,
    tags: Vec<TagFactors>,
    /// Where the columns of `W` begin.
    regression: Option<usize>,
}

#[derive(Debug)]
struct TagFactors {
    /// Which rows of `K` are the tag's.
    columns: Range<usize>,
    /// `V [m, d]`, unless nobody speaks for the tag.
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
        let rows = tags.iter().map(|tag| &tag.vectors).chain(regression).flat_map(Matrix::rows);
        let rows: Vec<&[f32]> = rows.collect();
        let mut words = Panels::default();
        if !rows.is_empty() {
            words.pack_columns(width, rows.len(), |j| rows[j]);
        }
        let regression = regression.map(|_| start);
        Self { words, n_columns: rows.len(), tags: of_tags, regression }
    }

    /// The emissions `[n, L]` of a query `[n, d]`; `tags` are those that this was made of.
    pub(super) fn emissions(
        &self,
        query: &Matrix,
        tags: &[TagWords],
        (similarity, mix): (Similarity, Mix),
    ) -> Matrix {
        let at_a_time = (MOST / self.n_columns.max(1)).max(FEWEST_ROWS);
        let mut emissions = vec![f32::NEG_INFINITY; query.n_rows() * tags.len()];
        if self.n_columns > 0 {
            let some = query.values().chunks(at_a_time * query.n_cols());
            for (some, into) in some.zip(emissions.chunks_mut(at_a_time * tags.len())) {
                Scores { query: some, factors: self, similarity, mix }.write(tags, into);
            }
        }
        Matrix::new(emissions, tags.len())
    }
}

/// Some words of a query on their way to emissions.
struct Scores<'a> {
    /// `[n, d]`
    query: &'a [f32],
    factors: &'a Factors,
    similarity: Similarity,
    mix: Mix,
}

impl Scores<'_> {
    /// Writes the emissions `[n, L]` of all tags that somebody speaks for.
    fn write(&self, tags: &[TagWords], emissions: &mut [f32]) {
        let Factors { words, n_columns, tags: factors, regression } = self.factors;
        let width = words.k();
        let query = View::new(self.query, width);
        let mut dots = vec![0.0; self.query.len() / width * n_columns];
        Product { left: Left::Rows(query), right: words, write: Write::Set }.into(&mut dots);
        let mut shares = vec![0.0; dots.len()];
        let mut centres = vec![0.0; self.query.len()];
        let rho = self.mix.regression.exp();
        for (t, (tag, factors)) in tags.iter().zip(factors).enumerate() {
            let Some(vectors) = &factors.vectors else { continue };
            let columns = &factors.columns;
            let found = self.attend(tag, columns, &dots, &mut shares);
            let attention = View::new(&shares, *n_columns).cols(columns.start, columns.len());
            let product =
                Product { left: Left::Rows(attention), right: vectors, write: Write::Set };
            product.into(&mut centres);
            let rows = found.iter().zip(centres.chunks_exact(width));
            for (j, (found, centre)) in rows.enumerate() {
                let fitted = regression.map_or(0.0, |start| rho * dots[j * n_columns + start + t]);
                let score = self.mix.score(self.prototype(found, centre), found.nearest);
                emissions[j * tags.len() + t] = score + fitted;
            }
        }
    }

    /// What each word finds among those of a tag; its shares `a` go to `shares`, which lie as `dots [n, M + L]` do.
    fn attend(
        &self,
        tag: &TagWords,
        columns: &Range<usize>,
        dots: &[f32],
        shares: &mut [f32],
    ) -> Vec<Found> {
        let (n_columns, width) = (self.factors.n_columns, self.factors.words.k());
        let (alpha, beta) = (self.mix.attention.exp(), self.mix.sharpness.exp());
        let (mut cosines, mut b) = (vec![0.0; columns.len()], vec![0.0; columns.len()]);
        let rows = dots.chunks_exact(n_columns).zip(shares.chunks_exact_mut(n_columns));
        let rows = rows.zip(self.query.chunks_exact(width));
        let find = |((dots, shares), q): ((&[f32], &mut [f32]), &[f32])| {
            let (dots, a) = (&dots[columns.clone()], &mut shares[columns.clone()]);
            let square = sum_of_squares(q);
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
