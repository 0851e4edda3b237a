//! What the JSON formats share: one sweep for duplicate keys, and places for `serde_json`'s errors.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use crate::data::{At, Problem};

/// Reads one JSON document.
///
/// # Errors
///
/// Where it is not JSON, where an object has a key twice, or where it is not a `T`.
pub(super) fn parse<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, (At, Problem)> {
    let fail = |cause: serde_json::Error| (At::Line(cause.line().max(1)), Problem::Json { cause });
    serde_json::from_str::<UniqueKeys>(text).map_err(fail)?;
    serde_json::from_str(text).map_err(fail)
}

/// Appends `text` as a JSON string.
pub(super) fn push(text: &str, out: &mut String) {
    out.push_str(&serde_json::to_string(text).expect("a string is JSON"));
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

/// Any JSON value in which no object has a key twice. `serde_json` alone would take the last one,
/// and never look at the fields we skip.
struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueKeysVisitor)
    }
}

struct UniqueKeysVisitor;

impl<'de> Visitor<'de> for UniqueKeysVisitor {
    type Value = UniqueKeys;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UniqueKeys, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value::<UniqueKeys>()?;
            if let Some(key) = keys.replace(key) {
                return Err(A::Error::custom(format_args!("the key {key:?} occurs twice")));
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
