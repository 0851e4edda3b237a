//! Domains: named examples that are kept, edited and tagged with.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body::{IfMatch, InDomain, Json, OfExample, etag, no_example};
use crate::App;
use crate::error::{ApiError, ApiResult, Code, ErrorResponses};
use crate::labels::{check_meanings, declared};
use crate::request::{NewExample, check_name, check_support, draft, sentences};
use crate::store::{Changed, Content, Domain, DomainInfo, Draft};

/// A domain to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "music",
    "examples": [{"text": "play nina simone", "spans": [{"start": 5, "end": 16, "label": "artist"}]}],
}))]
pub struct NewDomain {
    /// 1 to 100 ASCII letters, digits, `.`, `_` or `-`; begins with a letter or digit.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
    pub name: String,
    /// Its first examples.
    #[serde(default)]
    pub examples: Vec<NewExample>,
    /// Labels to look for by their names, with or without examples.
    #[serde(default)]
    pub labels: Vec<String>,
    /// What labels mean whose own name does not say it; `null`: the name says nothing.
    #[serde(default)]
    pub meanings: BTreeMap<String, Option<String>>,
}

/// Examples of a domain.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "examples": [{"text": "i want to hear naima tonight", "spans": [{"start": 15, "end": 20, "label": "track"}]}],
}))]
pub struct Examples {
    /// Labelled texts.
    pub examples: Vec<NewExample>,
}

/// All that a domain holds.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "examples": [{"text": "play nina simone", "spans": [{"start": 5, "end": 16, "label": "artist"}]}],
    "labels": ["artist", "mood"],
}))]
pub struct Replacement {
    /// Labelled texts.
    pub examples: Vec<NewExample>,
    /// Labels to look for by their names; absent: those that it has.
    pub labels: Option<Vec<String>>,
    /// What labels mean; absent: what they meant.
    pub meanings: Option<BTreeMap<String, Option<String>>>,
}

/// Labels of a domain.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"labels": ["artist", "song title", "slot_17"], "meanings": {"slot_17": "delivery date"}}))]
pub struct Labels {
    /// Labels to look for by their names, with or without examples.
    pub labels: Vec<String>,
    /// What labels mean whose own name does not say it; `null`: the name says nothing.
    #[serde(default)]
    pub meanings: BTreeMap<String, Option<String>>,
}

/// All domains.
#[derive(Debug, Serialize, ToSchema)]
pub struct Domains {
    /// By name.
    pub domains: Vec<DomainInfo>,
}

/// What a change made of a domain.
#[derive(Debug, Serialize, ToSchema)]
pub struct Change {
    /// The domain.
    pub name: String,
    /// Its new version; also the `ETag`.
    pub version: i64,
    /// The ids of the examples that were added or replaced.
    pub ids: Vec<String>,
    /// What was repaired or left out on import.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// List the domains
#[utoipa::path(
    get, path = "/v1/domains", tag = "domains", operation_id = "list_domains",
    responses(
        (status = 200, body = Domains),
        ErrorResponses,
    )
)]
pub async fn list(State(app): State<App>) -> ApiResult<axum::Json<Domains>> {
    Ok(axum::Json(Domains { domains: app.store.list().await? }))
}

/// Make a domain
#[utoipa::path(
    post, path = "/v1/domains", tag = "domains", operation_id = "create_domain",
    request_body = NewDomain,
    responses(
        (status = 201, body = Change, headers(("ETag" = String))),
        ErrorResponses,
    )
)]
pub async fn create(
    State(app): State<App>,
    Json(NewDomain { name, examples, labels, meanings }): Json<NewDomain>,
) -> ApiResult<Response> {
    check_name(&name)?;
    let limits = &app.config.limits;
    let sentences = sentences(&examples, limits, "examples")?;
    let examples = sentences.iter().map(|sentence| draft(sentence, None)).collect();
    let declared = declared(&labels, &meanings, limits, str::to_owned)?;
    let content = Content { examples, declared, weights: None };
    check_meanings(&content)?;
    let changed = app.store.create(&name, content).await?;
    Ok((StatusCode::CREATED, answer(name, changed, |ids| ids.clone())).into_response())
}

/// Read a domain
#[utoipa::path(
    get, path = "/v1/domains/{name}", tag = "domains", operation_id = "read_domain",
    params(InDomain),
    responses(
        (status = 200, body = Domain, headers(("ETag" = String))),
        ErrorResponses,
    )
)]
pub async fn read(State(app): State<App>, InDomain { name }: InDomain) -> ApiResult<Response> {
    let domain = app.store.read(&name).await?;
    Ok((etag(domain.version), axum::Json(domain)).into_response())
}

/// Replace all examples of a domain, and its labels if they are given
///
/// `If-Match` must name the version that is replaced, or be `*`. Examples that name the id of an example which the domain
/// has or had keep it.
#[utoipa::path(
    put, path = "/v1/domains/{name}", tag = "domains", operation_id = "replace_domain",
    params(InDomain, IfMatch),
    request_body = Replacement,
    responses(
        (status = 200, body = Change, headers(("ETag" = String))),
        ErrorResponses,
    )
)]
pub async fn replace(
    State(app): State<App>,
    InDomain { name }: InDomain,
    IfMatch { expected }: IfMatch,
    Json(Replacement { examples, labels, meanings }): Json<Replacement>,
) -> ApiResult<Response> {
    let Some(expected) = expected else {
        let message = "say which version you replace: `If-Match: \"7\"`, or `*` for any";
        return Err(ApiError::new(Code::VersionRequired, message).at("If-Match"));
    };
    let limits = &app.config.limits;
    let sentences = sentences(&examples, limits, "examples")?;
    let (keeps_labels, keeps_meanings) = (labels.is_none(), meanings.is_none());
    let (labels, meanings) = (labels.unwrap_or_default(), meanings.unwrap_or_default());
    let declared = declared(&labels, &meanings, limits, str::to_owned)?;
    let ids: Vec<Option<i64>> =
        examples.iter().map(|example| example.id.as_ref()?.parse().ok()).collect();
    let changed = app.store.change(&name, expected, |all, next_id| {
        let mut seen = std::collections::HashSet::new();
        let mut is_ours = |id: &i64| (1..next_id).contains(id) && seen.insert(*id);
        let ids = ids.into_iter().map(|id| id.filter(&mut is_ours));
        let examples = sentences.iter().zip(ids).map(|(sentence, id)| draft(sentence, id));
        all.examples = examples.collect();
        if !keeps_labels {
            all.declared.labels = declared.labels;
        }
        if !keeps_meanings {
            all.declared.meanings = declared.meanings;
            check_meanings(all)?;
        }
        Ok(())
    });
    let changed = changed.await?;
    Ok(answer(name, changed, |ids| ids.clone()))
}

/// Declare labels by their names
///
/// They take the place of those that were declared before. A model that reads names looks for them at once, also without
/// examples.
#[utoipa::path(
    put, path = "/v1/domains/{name}/labels", tag = "domains", operation_id = "declare_labels",
    params(InDomain, IfMatch),
    request_body = Labels,
    responses(
        (status = 200, body = Change, headers(("ETag" = String))),
        ErrorResponses,
    )
)]
pub async fn declare_labels(
    State(app): State<App>,
    InDomain { name }: InDomain,
    if_match: IfMatch,
    Json(Labels { labels, meanings }): Json<Labels>,
) -> ApiResult<Response> {
    let declared = declared(&labels, &meanings, &app.config.limits, str::to_owned)?;
    let changed = app.store.change(&name, if_match.or_any(), |all, _| {
        all.declared = declared;
        check_meanings(all)
    });
    let changed = changed.await?;
    Ok(answer(name, changed, |_| Vec::new()))
}

/// Delete a domain
#[utoipa::path(
    delete, path = "/v1/domains/{name}", tag = "domains", operation_id = "delete_domain",
    params(InDomain, IfMatch),
    responses(
        (status = 204, description = "It is gone"),
        ErrorResponses,
    )
)]
pub async fn delete(
    State(app): State<App>,
    InDomain { name }: InDomain,
    if_match: IfMatch,
) -> ApiResult<StatusCode> {
    app.store.delete(&name, if_match.or_any()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Add examples
#[utoipa::path(
    post, path = "/v1/domains/{name}/examples", tag = "domains", operation_id = "add_examples",
    params(InDomain, IfMatch),
    request_body = Examples,
    responses(
        (status = 200, body = Change, headers(("ETag" = String))),
        ErrorResponses,
    )
)]
pub async fn add_examples(
    State(app): State<App>,
    InDomain { name }: InDomain,
    if_match: IfMatch,
    Json(Examples { examples }): Json<Examples>,
) -> ApiResult<Response> {
    let limits = app.config.limits;
    let sentences = sentences(&examples, &limits, "examples")?;
    let changed = app.store.change(&name, if_match.or_any(), |all, _| {
        all.examples.extend(sentences.iter().map(|sentence| draft(sentence, None)));
        check_support(all.examples.len(), &limits, "examples")
    });
    let (n, changed) = (examples.len(), changed.await?);
    Ok(answer(name, changed, |ids| ids.split_off(ids.len() - n)))
}

/// Replace an example
#[utoipa::path(
    put, path = "/v1/domains/{name}/examples/{id}", tag = "domains", operation_id = "replace_example",
    params(InDomain, OfExample, IfMatch),
    request_body = NewExample,
    responses(
        (status = 200, body = Change, headers(("ETag" = String))),
        ErrorResponses,
    )
)]
pub async fn replace_example(
    State(app): State<App>,
    InDomain { name }: InDomain,
    OfExample { id }: OfExample,
    if_match: IfMatch,
    Json(example): Json<NewExample>,
) -> ApiResult<Response> {
    let sentences = sentences(&[example], &app.config.limits, "example")?;
    let changed = app.store.change(&name, if_match.or_any(), |all, _| {
        let old = find(&mut all.examples, id)?;
        let source = std::mem::take(&mut old.source);
        *old = Draft { source, ..draft(&sentences[0], Some(id)) };
        Ok(())
    });
    let changed = changed.await?;
    Ok(answer(name, changed, |_| vec![id]))
}

/// Delete an example
#[utoipa::path(
    delete, path = "/v1/domains/{name}/examples/{id}", tag = "domains", operation_id = "delete_example",
    params(InDomain, OfExample, IfMatch),
    responses(
        (status = 200, body = Change, headers(("ETag" = String))),
        ErrorResponses,
    )
)]
pub async fn delete_example(
    State(app): State<App>,
    InDomain { name }: InDomain,
    OfExample { id }: OfExample,
    if_match: IfMatch,
) -> ApiResult<Response> {
    let changed = app.store.change(&name, if_match.or_any(), |all, _| {
        find(&mut all.examples, id)?;
        all.examples.retain(|draft| draft.id != Some(id));
        Ok(())
    });
    let changed = changed.await?;
    Ok(answer(name, changed, |_| Vec::new()))
}

fn find(all: &mut [Draft], id: i64) -> ApiResult<&mut Draft> {
    let found = all.iter_mut().find(|draft| draft.id == Some(id));
    found.ok_or_else(|| no_example(&id.to_string()))
}

/// The answer to a change; `touched` picks the ids to name out of all.
fn answer<T>(
    name: String,
    changed: Changed<T>,
    touched: impl FnOnce(&mut Vec<i64>) -> Vec<i64>,
) -> Response {
    let Changed { version, mut ids, .. } = changed;
    let ids = touched(&mut ids).iter().map(ToString::to_string).collect();
    change(Change { name, version, ids, notes: Vec::new() })
}

pub(super) fn change(change: Change) -> Response {
    (etag(change.version), axum::Json(change)).into_response()
}
