//! What every fuzz target does: no input may make a reader or a writer panic.
//!
//! `cargo +nightly fuzz run conll -- -max_total_time=60`, and so for every format.
//! `testdata/formats/` is a good first corpus.

use std::path::Path;

use fewtag::data::{self, Format, ReadOptions};
use fewtag::scheme::Scheme;

/// Reads `bytes` as `format`, strictly and with repairs, and writes what was read.
pub fn read_and_write(format: Format, bytes: &[u8]) {
    for repair in [false, true] {
        let options = ReadOptions { format: Some(format), repair, ..ReadOptions::default() };
        if let Ok(corpus) = data::parse(Path::new("fuzz"), bytes, &options) {
            let _ = data::write(format, Scheme::Iob2, &corpus.domains, std::io::sink());
        }
    }
    let _ = data::detect(Path::new("fuzz"), bytes);
}
