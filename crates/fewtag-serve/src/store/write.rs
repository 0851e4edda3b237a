//! What happens inside the transaction of a change.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use super::{Content, Declared, Draft, Expected, not_found, now};
use crate::error::ApiResult;

/// A domain that nobody else can change.
pub(super) struct Locked {
    /// Of this change.
    pub(super) version: i64,
    /// The id of the next example.
    pub(super) next_id: i64,
    /// What it knows of its labels.
    pub(super) declared: Declared,
}

/// Takes the next version of a domain, and with it the right to change it until the transaction ends.
pub(super) async fn lock(
    connection: &mut AnyConnection,
    name: &str,
    expected: &Expected,
) -> ApiResult<Locked> {
    let row = sqlx::query(
        "UPDATE domains SET version = version + 1, updated = $2 WHERE name = $1 AND deleted = 0 \
         RETURNING version, next_id, declared",
    )
    .bind(name)
    .bind(now())
    .fetch_optional(connection)
    .await?
    .ok_or_else(|| not_found(name))?;
    let version: i64 = row.try_get(0)?;
    expected.check(name, version - 1)?;
    Ok(Locked { version, next_id: row.try_get(1)?, declared: parsed(&row, 2)? })
}

/// Writes what differs between `before` and `after`, and what the domain's row says about its examples; answers the
/// ids of `after`.
pub(super) async fn write(
    connection: &mut AnyConnection,
    name: &str,
    mut next_id: i64,
    before: &[Draft],
    Content { examples: mut after, declared, .. }: Content,
) -> Result<Vec<i64>, sqlx::Error> {
    let mut ids = Vec::with_capacity(after.len());
    for draft in &mut after {
        let id = *draft.id.get_or_insert(next_id);
        next_id = next_id.max(id + 1);
        ids.push(id);
    }
    let kept: BTreeSet<i64> = ids.iter().copied().collect();
    for id in before.iter().filter_map(|draft| draft.id).filter(|id| !kept.contains(id)) {
        let delete = sqlx::query("DELETE FROM examples WHERE domain = $1 AND id = $2");
        delete.bind(name).bind(id).execute(&mut *connection).await?;
    }
    let known: HashMap<_, _> = before.iter().map(|draft| (draft.id, draft)).collect();
    let changed = after.iter().zip(&ids).filter(|(draft, _)| known.get(&draft.id) != Some(draft));
    for (draft, id) in changed {
        sqlx::query(
            "INSERT INTO examples (domain, id, text, spans, source) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (domain, id) DO UPDATE SET text = $3, spans = $4, source = $5",
        )
        .bind(name)
        .bind(id)
        .bind(&draft.text)
        .bind(json(&draft.spans))
        .bind(&draft.source)
        .execute(&mut *connection)
        .await?;
    }
    let spans = after.iter().flat_map(|draft| &draft.spans);
    let labels = spans.map(|span| &span.label).chain(&declared.labels);
    let labels: BTreeSet<&str> = labels.map(String::as_str).collect();
    let n_examples = i64::try_from(ids.len()).unwrap_or(i64::MAX);
    let update = "UPDATE domains SET next_id = $2, n_examples = $3, labels = $4, declared = $5 WHERE name = $1";
    let update = sqlx::query(update).bind(name).bind(next_id).bind(n_examples);
    update.bind(json(&labels)).bind(json(&declared)).execute(connection).await?;
    Ok(ids)
}

pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("plain structures are JSON")
}

pub(super) fn parsed<T: serde::de::DeserializeOwned>(
    row: &AnyRow,
    column: usize,
) -> Result<T, sqlx::Error> {
    let text: String = row.try_get(column)?;
    serde_json::from_str(&text).map_err(|error| sqlx::Error::Decode(error.into()))
}
