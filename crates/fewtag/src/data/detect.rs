//! Which format a file has, judged by its content.

use std::path::Path;

use crate::data::{At, Format, Place, Problem, conll};
use crate::error::Result;
use crate::file;

/// The format of a file with this content.
///
/// # Errors
///
/// If the content is no text or no known format.
pub fn detect(path: &Path, bytes: &[u8]) -> Result<Format> {
    detect_text(path, file::text(path, bytes)?)
}

pub(super) fn detect_text(path: &Path, text: &str) -> Result<Format> {
    let start = text.trim_ascii_start();
    if start.is_empty() {
        return Err(Place::new(path, At::File).error(Problem::NoSentences));
    }
    // No JSON string can hold this: its quotes would have a backslash.
    if start.starts_with('{') && start.contains("\"seq_ins\"") {
        return Ok(Format::Episodes);
    }
    if looks_like_conll(text) {
        return Ok(Format::Conll);
    }
    Err(Place::new(path, At::File).error(Problem::UnknownFormat))
}

/// Whether one of the first lines ends in a tag.
fn looks_like_conll(text: &str) -> bool {
    const LOOK_AT: usize = 100;
    let last_column = |line: &str| {
        line.split_ascii_whitespace().skip(1).last().is_some_and(conll::looks_like_tag)
    };
    text.lines().take(LOOK_AT).any(last_column)
}
