//! What the JSON formats share: a sweep for duplicate keys, records in arrays or lines, and the writing of both.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::{self, Write};
use std::marker::PhantomData;
use std::ops::Range;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::data::{At, Collector, Problem, Render, check_line};
use crate::domain::Sentence;
use crate::error::Result;

/// Reads one JSON document.
///
/// # Errors
///
/// Where it is not JSON, where an object has a key twice, or where it is not a `T`.
pub(super) fn parse<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, (At, Problem)> {
    let fail =
        |source: serde_json::Error| (At::Line(source.line().max(1)), Problem::Json { source });
    serde_json::from_str::<UniqueKeys>(text).map_err(fail)?;
    serde_json::from_str(text).map_err(fail)
}

/// Reads records that stand in a JSON array or, one a line, in JSON Lines.
pub(super) fn read_records<'t, T: Deserialize<'t>>(
    text: &'t str,
    into: &mut Collector,
    mut add: impl FnMut(T, &mut Collector, &dyn Fn() -> At) -> Result<()>,
) -> Result<()> {
    if text.trim_start().starts_with('[') {
        let records: Vec<T> = parse(text).map_err(|(at, problem)| into.error(at, problem))?;
        for (i, record) in records.into_iter().enumerate() {
            add(record, into, &|| At::Record(i + 1))?;
        }
        return Ok(());
    }
    for (i, line) in text.lines().enumerate() {
        let at = || At::Line(i + 1);
        let record = check_line(line).and_then(|()| {
            if line.trim().is_empty() {
                Ok(None)
            } else {
                parse(line).map(Some).map_err(|(_, problem)| problem)
            }
        });
        if let Some(record) = record.map_err(|problem| into.error(at(), problem))? {
            add(record, into, &at)?;
        }
    }
    Ok(())
}

/// A JSON object as its entries, in the order of the file.
pub(super) struct InOrder<T>(pub(super) Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for InOrder<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrderVisitor(PhantomData))
    }
}

struct InOrderVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for InOrderVisitor<T> {
    type Value = InOrder<T>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object with a key per domain")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<InOrder<T>, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = map.next_entry()? {
            entries.push(entry);
        }
        Ok(InOrder(entries))
    }
}

/// Appends `text` as a JSON string.
pub(super) fn push(text: &str, out: &mut String) {
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        out.extend(["\"", text, "\""]);
    } else {
        out.push_str(&serde_json::to_string(text).expect("a string is JSON"));
    }
}

/// Appends `[item, item, …]`.
pub(super) fn push_list<T>(
    items: impl IntoIterator<Item = T>,
    out: &mut String,
    mut push_item: impl FnMut(T, &mut String),
) {
    out.push('[');
    for (i, item) in items.into_iter().enumerate() {
        out.push_str(if i > 0 { ", " } else { "" });
        push_item(item, out);
    }
    out.push(']');
}

/// Appends `{"start": 5, "end": 9`, an object that goes on.
pub(super) fn push_range(range: &Range<usize>, out: &mut String) {
    let _ = write!(out, "{{\"start\": {}, \"end\": {}", range.start, range.end);
}

/// Appends the last field of a record, if its domain has a name.
pub(super) fn push_domain(domain: Option<&str>, out: &mut String) {
    if let Some(domain) = domain {
        out.push_str(", \"domain\": ");
        push(domain, out);
    }
}

/// Appends a sentence of a domain, the `number`th of the file, as a JSON object.
type PushRecord = fn(sentence: &Sentence, domain: Option<&str>, number: usize, out: &mut String);

/// Writes records into a JSON array or as JSON Lines.
pub(super) struct Records {
    push: PushRecord,
    /// What stands before the first record, between two, behind each (so that a line is
    /// whole as soon as it is written) and behind the last.
    frame: [&'static str; 4],
    domain: Option<String>,
    n: usize,
}

impl Records {
    pub(super) fn array(push: PushRecord) -> Self {
        Self { push, frame: ["[\n", ",\n", "", "\n]\n"], domain: None, n: 0 }
    }

    pub(super) fn lines(push: PushRecord) -> Self {
        Self { push, frame: ["", "", "\n", ""], domain: None, n: 0 }
    }
}

impl Render for Records {
    fn begin(&mut self, out: &mut String) {
        out.push_str(self.frame[0]);
    }

    fn begin_domain(&mut self, name: Option<&str>, _: &mut String) {
        self.domain = name.map(str::to_owned);
    }

    fn sentence(&mut self, sentence: &Sentence, out: &mut String) -> Result<()> {
        out.push_str(if self.n > 0 { self.frame[1] } else { "" });
        self.n += 1;
        (self.push)(sentence, self.domain.as_deref(), self.n, out);
        out.push_str(self.frame[2]);
        Ok(())
    }

    fn end(&mut self, out: &mut String) {
        out.push_str(self.frame[3]);
    }
}

/// Any JSON value in which no object has a key twice. `serde_json` alone would take the last one,
/// and never look at the fields we skip.
struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueKeysVisitor)
    }
}

/// A key, borrowed from the file unless it has escapes.
#[derive(serde::Deserialize, PartialEq, Eq, Hash)]
struct Key<'t>(#[serde(borrow)] Cow<'t, str>);

struct UniqueKeysVisitor;

impl<'de> Visitor<'de> for UniqueKeysVisitor {
    type Value = UniqueKeys;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UniqueKeys, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<Key>()? {
            map.next_value::<UniqueKeys>()?;
            if let Some(key) = keys.replace(key) {
                return Err(A::Error::custom(format_args!("the key {:?} occurs twice", key.0)));
            }
        }
        Ok(UniqueKeys)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<UniqueKeys, A::Error> {
        while seq.next_element::<UniqueKeys>()?.is_some() {}
        Ok(UniqueKeys)
    }

    fn visit_bool<E>(self, _: bool) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_i64<E>(self, _: i64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_u64<E>(self, _: u64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_f64<E>(self, _: f64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_str<E>(self, _: &str) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_unit<E>(self) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }
}
