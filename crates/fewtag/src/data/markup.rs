//! Labels written into the text: what the inline form, Rasa and Snips YAML share.
//!
//! ```text
//! inline   play [nina simone](artist)
//! Rasa     play [nina simone](artist)    or  [nina simone]{"entity": "artist"}
//! Snips    play [artist:person](nina simone)
//! ```
//!
//! A backslash before `[ ] ( ) : # \` makes it an ordinary character; we write it before `[`, `]` and `\`, and before the
//! others where they would mean something. Neither Rasa nor Snips knows this rule: without it they cannot express such text at all.

use std::fmt::Write;

use serde::Deserialize;

use crate::data::Problem;
use crate::data::text::{self, Label};
use crate::domain::Sentence;

/// Who reads the markup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Inline,
    Rasa,
    Snips,
}

/// Text without its markup.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Unmarked {
    pub(super) text: String,
    pub(super) labels: Vec<Label<'static>>,
    /// How often a label said more than its slot (a value, a role, a type).
    pub(super) n_extras: usize,
    n_chars: usize,
}

/// Takes the markup out of one line.
pub(super) fn parse(line: &str, dialect: Dialect) -> Result<Unmarked, Problem> {
    let mut done = Unmarked::default();
    let mut rest = line;
    while let Some((c, after)) = next_char(rest) {
        rest = if let Some((stretch, after)) = stretch(rest, dialect)? {
            done.push_stretch(stretch);
            after
        } else {
            done.push(c);
            after
        };
    }
    Ok(done)
}

impl Unmarked {
    fn push(&mut self, c: char) {
        self.text.push(c);
        self.n_chars += 1;
    }

    fn push_stretch(&mut self, stretch: Stretch) {
        let start = self.n_chars;
        stretch.text.chars().for_each(|c| self.push(c));
        self.labels.push(Label { chars: start..self.n_chars, slot: stretch.slot.into() });
        self.n_extras += usize::from(stretch.has_extras);
    }
}

/// One labelled stretch.
struct Stretch {
    text: String,
    slot: String,
    has_extras: bool,
}

/// The stretch at the start of `rest`, if one begins there, and what follows it.
fn stretch(rest: &str, dialect: Dialect) -> Result<Option<(Stretch, &str)>, Problem> {
    let Some(inside) = rest.strip_prefix('[') else { return Ok(None) };
    let fault = |fault| Problem::Markup { rest: rest.to_owned(), fault };
    let Some((first, after)) = until(inside, ']') else {
        return if dialect == Dialect::Rasa { Ok(None) } else { Err(fault("`[` is not closed")) };
    };
    if let (Dialect::Rasa, Some(object)) = (dialect, after.strip_prefix('{')) {
        return entity_stretch(first, &after[..=object.len()]).map(Some);
    }
    if dialect == Dialect::Rasa && after.starts_with("[{") {
        return Err(fault("one stretch with several entities cannot be tagged"));
    }
    match after.strip_prefix('(').and_then(|inside| until(inside, ')')) {
        None if dialect == Dialect::Rasa => Ok(None),
        None => Err(fault("`[…]` is not followed by `(…)`")),
        Some((second, after)) => {
            let (text, label) =
                if dialect == Dialect::Snips { (second, first) } else { (first, second) };
            // The inline form has no extras, so that any slot can be written plainly.
            let slot = if dialect == Dialect::Inline { None } else { until(label, ':') };
            let (slot, has_extras) = slot.map_or((label, false), |(slot, _)| (slot, true));
            Ok(Some((Stretch { text: plain(text), slot: plain(slot), has_extras }, after)))
        }
    }
}

/// Rasa's `[text]{"entity": …}`; `object` begins with its brace.
fn entity_stretch<'t>(text: &str, object: &'t str) -> Result<(Stretch, &'t str), Problem> {
    #[derive(Deserialize)]
    struct Annotation {
        entity: String,
        role: Option<serde::de::IgnoredAny>,
        group: Option<serde::de::IgnoredAny>,
        value: Option<serde::de::IgnoredAny>,
    }
    let mut values = serde_json::Deserializer::from_str(object).into_iter::<Annotation>();
    let missing = || Problem::Markup { rest: object.to_owned(), fault: "no entity" };
    let entity = values.next().ok_or_else(missing)?.map_err(|source| Problem::Json { source })?;
    let has_extras = entity.role.is_some() || entity.group.is_some() || entity.value.is_some();
    let after = &object[values.byte_offset()..];
    Ok((Stretch { text: plain(text), slot: entity.entity, has_extras }, after))
}

/// The next character of `rest`, and what follows it. An escaped character is itself.
fn next_char(rest: &str) -> Option<(char, &str)> {
    let mut chars = rest.chars();
    match chars.next()? {
        '\\' => {
            let after = chars.as_str();
            match chars.next() {
                Some(c) if is_escapable(c) => Some((c, chars.as_str())),
                _ => Some(('\\', after)),
            }
        }
        c => Some((c, chars.as_str())),
    }
}

fn is_escapable(c: char) -> bool {
    "[]():#\\".contains(c)
}

/// `text` up to the first `end` that is not escaped, as written, and what follows it. A bracket that
/// opens before that ends the search: nothing nests.
fn until(text: &str, end: char) -> Option<(&str, &str)> {
    let mut rest = text;
    while let Some((_, after)) = next_char(rest) {
        let so_far = &text[..text.len() - rest.len()];
        if rest.starts_with(end) {
            return Some((so_far, after));
        }
        if rest.starts_with('[') {
            return None;
        }
        rest = after;
    }
    None
}

/// `text` without escapes.
fn plain(text: &str) -> String {
    let mut rest = text;
    std::iter::from_fn(|| {
        let (c, after) = next_char(rest)?;
        rest = after;
        Some(c)
    })
    .collect()
}

/// A sentence as one line of text with its labels written in.
pub(super) fn line(sentence: &Sentence, dialect: Dialect) -> String {
    let (text, marks) = text::marked(sentence);
    let mut out = String::with_capacity(text.len() * 2);
    let mut done = 0;
    for mark in marks {
        escape(&text[done..mark.bytes.start], "[]\\", &mut out);
        done = mark.bytes.end;
        let text = &text[mark.bytes];
        let slot = mark.slot.as_str();
        out.push('[');
        match dialect {
            Dialect::Snips => {
                escape(slot, "[]:\\", &mut out);
                out.push(':');
                escape(slot, "[]:\\", &mut out);
                out.push_str("](");
                escape(text, "[]()\\", &mut out);
                out.push(')');
            }
            Dialect::Rasa if slot.contains(|c: char| "{}".contains(c) || is_escapable(c)) => {
                escape(text, "[]\\", &mut out);
                let entity = serde_json::to_string(slot).expect("a string is JSON");
                let _ = write!(out, "]{{\"entity\": {entity}}}");
            }
            Dialect::Inline | Dialect::Rasa => {
                escape(text, "[]\\", &mut out);
                out.push_str("](");
                escape(slot, "[]()\\", &mut out);
                out.push(')');
            }
        }
    }
    escape(&text[done..], "[]\\", &mut out);
    if dialect == Dialect::Inline && out.starts_with('#') {
        out.insert(0, '\\'); // Else the line could be a comment.
    }
    out
}

/// Appends `text` with a backslash before each of `special`; a line break becomes a blank.
fn escape(text: &str, special: &str, out: &mut String) {
    for c in text.chars() {
        if special.contains(c) {
            out.push('\\');
        }
        out.push(if is_line_break(c) { ' ' } else { c });
    }
}

/// Line breaks of any standard that a reader of lines or of YAML may follow.
fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{0B}' | '\u{0C}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text, and the labels as `start..end:slot`.
    fn read(line: &str, dialect: Dialect) -> (String, String) {
        let done = parse(line, dialect).expect("valid markup");
        let labels = done.labels.iter().map(|label| format!("{:?}:{}", label.chars, label.slot));
        (done.text, labels.collect::<Vec<_>>().join(" "))
    }

    fn fault(line: &str, dialect: Dialect) -> &'static str {
        match parse(line, dialect) {
            Err(Problem::Markup { fault, .. }) => fault,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_three_dialects_say_the_same() {
        let expected = ("é nina s".to_owned(), "2..8:a".to_owned());
        assert_eq!(read("é [nina s](a)", Dialect::Inline), expected);
        assert_eq!(read("é [nina s](a:x)", Dialect::Rasa), expected);
        assert_eq!(read(r#"é [nina s]{"entity": "a", "role": "}"}"#, Dialect::Rasa), expected);
        assert_eq!(read("é [a:b](nina s)", Dialect::Snips), expected);
    }

    #[test]
    fn a_backslash_takes_the_meaning_away() {
        assert_eq!(
            read(r"\[a\](b) \x \\", Dialect::Inline),
            (r"[a](b) \x \".into(), String::new())
        );
        assert_eq!(read(r"[x\]y](a\)b)", Dialect::Inline), ("x]y".into(), "0..3:a)b".into()));
    }

    #[test]
    fn brackets_that_mark_nothing_are_text_to_rasa_and_a_fault_elsewhere() {
        assert_eq!(read("[1] [a [b](c) [", Dialect::Rasa), ("[1] [a b [".into(), "7..8:c".into()));
        assert_eq!(fault("[1] x", Dialect::Inline), "`[…]` is not followed by `(…)`");
        assert_eq!(fault("a [b", Dialect::Inline), "`[` is not closed");
        assert_eq!(fault("[a [b](c)", Dialect::Snips), "`[` is not closed");
        assert_eq!(
            fault(r#"[b][{"entity": "a"}]"#, Dialect::Rasa),
            "one stretch with several entities cannot be tagged"
        );
        assert!(matches!(parse("[b]{x}", Dialect::Rasa), Err(Problem::Json { .. })));
    }
}
