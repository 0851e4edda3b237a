//! The corpora that properties are shown on: small ones of our own, always, and the public ones if they were fetched.

use std::io::Write;
use std::path::{Path, PathBuf};

use fewtag::data::{self, Wanted};

/// A file or directory of the repository.
pub(crate) fn in_repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

/// Our own corpora and episodes.
pub(crate) fn own() -> Vec<PathBuf> {
    [
        "examples/weather.conll",
        "examples/music.conll",
        "testdata/corpora/flights.conll",
        "testdata/corpora/odd.conll",
        "testdata/formats/corpus.conll",
        "testdata/formats/corpus.episodes.json",
        "testdata/tiny-episodes.json",
    ]
    .map(in_repository)
    .into()
}

/// The public corpora in this directory of `data/`; none if they were not fetched, which is told.
pub(crate) fn public(name: &str) -> Vec<PathBuf> {
    let dir = in_repository("data").join(name);
    if !dir.exists() {
        // Not `eprintln!`, which a test that passes does not show.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: the part of a test on `data/{name}`, which is not there (scripts/fetch_data.py)"
        );
        return Vec::new();
    }
    data::find(&[dir], Wanted::Data).expect("a directory of corpora").files
}
