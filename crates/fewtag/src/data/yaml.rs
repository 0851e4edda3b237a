//! What the YAML formats share: one set of limits, places for errors, and quoted strings.

use std::fmt::Write;

use serde::Deserialize;

use crate::data::{At, Problem};

/// Reads the YAML documents of a file. A key that occurs twice is an error.
pub(super) fn parse<'t, T: Deserialize<'t>>(text: &'t str) -> Result<Vec<T>, (At, Problem)> {
    // The defaults of the crate are made for configuration files; a corpus has more nodes. Anchors,
    // which can blow a small file up, stay limited.
    const MANY: usize = 1 << 30;
    let budget = serde_saphyr::budget! {
        max_events: MANY,
        max_nodes: MANY,
        max_documents: MANY,
        max_total_scalar_bytes: MANY,
    };
    let options = serde_saphyr::options! { budget: budget, with_snippet: false };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|cause| {
        let line = cause.location().map(|location| location.line() as usize);
        let at = line.filter(|line| *line > 0).map_or(At::File, At::Line);
        (at, Problem::Yaml { source: Box::new(cause) })
    })
}

/// Appends `text` as a double-quoted YAML string.
pub(super) fn push(text: &str, out: &mut String) {
    // A JSON string is a YAML string, but for raw characters that YAML does not allow.
    for c in serde_json::to_string(text).expect("a string is JSON").chars() {
        match c {
            '\u{7F}'..='\u{9F}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{FEFF}'
            | '\u{FFFE}'
            | '\u{FFFF}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}
