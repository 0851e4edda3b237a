//! Tuning a domain: a job in the background, how it stands, and the way back.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::body::{IfMatch, InDomain, Json};
use super::domains::{Change, change};
use crate::App;
use crate::error::{ApiResult, ErrorResponses};
use crate::store::TuneOptions;
use crate::tune::TuningStatus;

/// Tune a domain
///
/// Ten examples or more move the upper layers of the model a little, in the background, if sentences that were left out say that
/// it is worth it. Until the end the domain is used as it is; the tuned weights make a new version of it. Examples that
/// change meanwhile keep their change.
#[utoipa::path(
    post, path = "/v1/domains/{name}/tune", tag = "tune", operation_id = "tune_domain",
    params(InDomain, IfMatch),
    request_body = TuneOptions,
    responses(
        (status = 202, description = "It waits for its turn, or has begun", body = TuningStatus),
        ErrorResponses,
    )
)]
pub async fn start(
    State(app): State<App>,
    InDomain { name }: InDomain,
    if_match: IfMatch,
    Json(options): Json<TuneOptions>,
) -> ApiResult<Response> {
    let status = app.start_tuning(&name, &if_match.or_any(), options).await?;
    Ok((StatusCode::ACCEPTED, axum::Json(status)).into_response())
}

/// How the tuning of a domain stands: progress, the curve, and what was found out
#[utoipa::path(
    get, path = "/v1/domains/{name}/tune", tag = "tune", operation_id = "read_tuning",
    params(InDomain),
    responses(
        (status = 200, body = TuningStatus),
        ErrorResponses,
    )
)]
pub async fn read(
    State(app): State<App>,
    InDomain { name }: InDomain,
) -> ApiResult<axum::Json<TuningStatus>> {
    Ok(axum::Json(app.tuning(&name).await?))
}

/// Cancel the tuning of a domain, which stays as it was
#[utoipa::path(
    delete, path = "/v1/domains/{name}/tune", tag = "tune", operation_id = "cancel_tuning",
    params(InDomain),
    responses(
        (status = 200, body = TuningStatus),
        ErrorResponses,
    )
)]
pub async fn cancel(
    State(app): State<App>,
    InDomain { name }: InDomain,
) -> ApiResult<axum::Json<TuningStatus>> {
    Ok(axum::Json(app.cancel_tuning(&name).await?))
}

/// Go back to the weights before the latest tuning
///
/// A new version of the domain; its examples stay.
#[utoipa::path(
    post, path = "/v1/domains/{name}/tune/undo", tag = "tune", operation_id = "undo_tuning",
    params(InDomain, IfMatch),
    responses(
        (status = 200, body = Change, headers(("ETag" = String))),
        ErrorResponses,
    )
)]
pub async fn undo(
    State(app): State<App>,
    InDomain { name }: InDomain,
    if_match: IfMatch,
) -> ApiResult<Response> {
    let version = app.store.undo_tuning(&name, if_match.or_any()).await?;
    Ok(change(Change { name, version, ids: Vec::new(), notes: Vec::new() }))
}
