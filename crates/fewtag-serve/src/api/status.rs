//! How the server is.

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde::Serialize;
use utoipa::ToSchema;

use crate::App;
use crate::error::{ApiResult, ErrorBody};

/// A word about the server.
#[derive(Debug, Serialize, ToSchema)]
pub struct Status {
    /// `UP`, as Label Studio expects it.
    pub status: &'static str,
}

/// Whether the server lives
#[utoipa::path(
    get, path = "/health", tag = "status", operation_id = "health",
    responses(
        (status = 200, body = Status),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub async fn health() -> axum::Json<Status> {
    axum::Json(Status { status: "UP" })
}

/// Whether the server can answer: its database does
#[utoipa::path(
    get, path = "/ready", tag = "status", operation_id = "ready",
    responses(
        (status = 200, body = Status),
        (status = "4XX", description = "Refused", body = ErrorBody),
        (status = "5XX", description = "It cannot", body = ErrorBody),
    )
)]
pub async fn ready(State(app): State<App>) -> ApiResult<axum::Json<Status>> {
    app.store.ping().await?;
    Ok(health().await)
}

/// Figures for Prometheus
#[utoipa::path(
    get, path = "/metrics", tag = "status", operation_id = "metrics",
    responses(
        (status = 200, description = "The figures", body = String,
         content_type = "application/openmetrics-text"),
        (status = "4XX", description = "Refused", body = ErrorBody),
    )
)]
pub async fn metrics(State(app): State<App>) -> impl IntoResponse {
    let text = app.metrics.text(app.queue.cost_waiting(), app.learners.bytes());
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
}
