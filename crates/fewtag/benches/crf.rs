//! What the collapsed table saves: loss with gradients and decoding, plain `O(T·L²)` against `O(T·L)`.
//!
//! ```text
//! cargo bench -p fewtag --bench crf
//! ```

use divan::Bencher;
use fewtag::Random;
use fewtag::crf::{self, TransitionScores};
use fewtag::{CollapsedTransitions, Matrix, Tag, TagSet};

/// Snips has up to 28 tags, Few-NERD 80 and more.
const N_TAGS: [usize; 4] = [10, 28, 80, 200];
const N_WORDS: usize = 16;

fn main() {
    divan::main();
}

fn case(n_tags: usize) -> (TagSet, CollapsedTransitions, Matrix) {
    let name = |j: usize| format!("{}-slot{:03}", ["B", "I"][j % 2], j / 2);
    let tags: Vec<Tag> = (0..n_tags - 1).map(|j| name(j).parse().expect("a tag")).collect();
    let mut random = Random::new(1);
    let table = CollapsedTransitions::random(&mut random);
    let scores = (0..N_WORDS * n_tags).map(|_| 3.0 * random.normal() as f32).collect();
    (TagSet::new(&tags), table, Matrix::new(scores, n_tags))
}

fn loss(bencher: Bencher, scores: &Matrix, transitions: &impl TransitionScores) {
    let gold = vec![0; N_WORDS];
    bencher.bench_local(|| crf::loss(scores, 1.0, transitions, &gold).value);
}

#[divan::bench(args = N_TAGS)]
fn loss_plain(bencher: Bencher, n_tags: usize) {
    let (tags, table, scores) = case(n_tags);
    loss(bencher, &scores, &table.expand(&tags));
}

#[divan::bench(args = N_TAGS)]
fn loss_collapsed(bencher: Bencher, n_tags: usize) {
    let (tags, table, scores) = case(n_tags);
    loss(bencher, &scores, &table.over(&tags));
}

#[divan::bench(args = N_TAGS)]
fn viterbi_plain(bencher: Bencher, n_tags: usize) {
    let (tags, table, scores) = case(n_tags);
    let transitions = table.expand(&tags);
    bencher.bench_local(|| crf::viterbi(&scores, &transitions));
}

#[divan::bench(args = N_TAGS)]
fn viterbi_collapsed(bencher: Bencher, n_tags: usize) {
    let (tags, table, scores) = case(n_tags);
    let transitions = table.over(&tags);
    bencher.bench_local(|| crf::viterbi(&scores, &transitions));
}
