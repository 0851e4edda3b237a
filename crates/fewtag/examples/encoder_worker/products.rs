//! What our products can do at best: those of the linear layers and nothing between them.

use std::time::Instant;

use fewtag::encoder::BertConfig;
use fewtag_kernels::matmul::{Left, Panels, Product, View, Write};

/// As many rows as a group of sequences has.
const ROWS: usize = 384;
/// The best of so many rounds counts.
const ROUNDS: usize = 7;

/// Floating-point operations per second of all layers' products on one thread; a multiply-add is two.
pub(crate) fn flops_per_second(config: &BertConfig) -> f64 {
    let (h, f) = (config.hidden_size, config.intermediate_size);
    let shapes = [(h, 3 * h), (h, h), (h, f), (f, h)];
    let layers = (0..config.num_hidden_layers).flat_map(|_| shapes);
    let factors: Vec<(usize, Panels)> = layers
        .map(|(k, n)| {
            let mut panels = Panels::default();
            panels.pack(View::new(&vec![0.01; k * n], n));
            (n, panels)
        })
        .collect();
    let (a, mut c) = (vec![0.01; ROWS * f.max(h)], vec![0.0; ROWS * f.max(3 * h)]);
    let mut round = || {
        let start = Instant::now();
        for (n, right) in &factors {
            let left = Left::Rows(View::new(&a[..ROWS * right.k()], right.k()));
            Product { left, right, write: Write::Set }.into(&mut c[..ROWS * n]);
        }
        start.elapsed().as_secs_f64()
    };
    let seconds = (0..ROUNDS).map(|_| round()).fold(f64::INFINITY, f64::min);
    let n_products: usize = factors.iter().map(|(n, right)| ROWS * n * right.k()).sum();
    2.0 * n_products as f64 / seconds
}
