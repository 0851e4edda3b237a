//! Which format a file has, judged by its content.
//!
//! JSON is judged by the keys of its first record, YAML by its first keys, lines by whether they end in a
//! tag or hold a marked word.

use std::path::Path;

use serde_json::Value;

use crate::data::{At, Format, Place, Problem, conll};
use crate::error::Result;
use crate::file;

/// The format of a file with this content; `path` is only named in errors.
///
/// # Errors
///
/// If the content is no text or no known format.
pub fn detect(path: &Path, bytes: &[u8]) -> Result<Format> {
    detect_text(path, file::text(path, bytes)?)
}

pub(super) fn detect_text(path: &Path, text: &str) -> Result<Format> {
    let start = text.trim_start();
    if start.is_empty() {
        return Err(Place::new(path, At::File).error(Problem::NoSentences));
    }
    let found = json_format(start).or_else(|| yaml_format(start)).or_else(|| line_format(start));
    found.ok_or_else(|| Place::new(path, At::File).error(Problem::UnknownFormat))
}

fn json_format(text: &str) -> Option<Format> {
    // No JSON string can hold this (its quotes would have a backslash), and it saves parsing the file twice.
    if text.starts_with('{') && text.contains("\"seq_ins\"") {
        return Some(Format::Episodes);
    }
    let first = text.strip_prefix('[').unwrap_or(text);
    if !first.trim_start().starts_with('{') {
        return None;
    }
    let first = serde_json::Deserializer::from_str(first).into_iter::<Value>().next()?.ok()?;
    let has = |key| first.get(key).is_some();
    if has("tokenized_text") {
        Some(Format::Gliner)
    } else if has("data") || has("annotations") || has("completions") {
        Some(Format::LabelStudio)
    } else if has("tokens") && (has("ner_tags") || has("tags")) {
        Some(Format::Hf)
    } else if has("text") && (has("spans") || has("tokens")) {
        Some(Format::Spacy)
    } else if has("text") && (has("label") || has("labels") || has("entities")) {
        Some(Format::Doccano)
    } else {
        is_snips(&first).then_some(Format::SnipsJson)
    }
}

/// Whether the first intent has an utterance in chunks, or the file lists intents.
fn is_snips(file: &Value) -> bool {
    let first_value = || file.as_object()?.values().next()?.as_array()?.first();
    file.get("intents").is_some() || first_value().is_some_and(|value| value.get("data").is_some())
}

fn yaml_format(text: &str) -> Option<Format> {
    const LOOK_AT: usize = 1000;
    let mut lines = text.lines().take(LOOK_AT).map(str::trim_end);
    lines.find_map(|line| match line {
        "nlu:" => Some(Format::Rasa),
        "type: intent" | "utterances:" => Some(Format::SnipsYaml),
        _ => None,
    })
}

fn line_format(text: &str) -> Option<Format> {
    const LOOK_AT: usize = 100;
    let ends_in_tag = |line: &&str| {
        let last = line.split_ascii_whitespace().skip(1).last();
        last.is_some_and(conll::looks_like_tag)
    };
    let lines: Vec<&str> =
        text.lines().filter(|line| !line.trim().is_empty()).take(LOOK_AT).collect();
    // Most lines must: a sentence may end in `vitamin B-12`, and a line of a corpus may lack its tag.
    if lines.iter().copied().filter(ends_in_tag).count() * 2 > lines.len() {
        Some(Format::Conll)
    } else {
        text.contains("](").then_some(Format::Inline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_columns_if_most_end_in_a_tag() {
        let found = |text: &str| detect(Path::new("x"), text.as_bytes()).ok();
        assert_eq!(found("a B-x\nb\nc O\n"), Some(Format::Conll));
        assert_eq!(found("# one\n-DOCSTART- O\n\na O\nb O\n"), Some(Format::Conll));
        assert_eq!(found("give me vitamin B-12\n[nina](artist)\n"), Some(Format::Inline));
        assert_eq!(found("[nina](artist) sings\n"), Some(Format::Inline));
        assert_eq!(found("no label here\n"), None);
    }
}
