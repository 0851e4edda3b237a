//! The playground's files, built into the binary.

use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use crate::error::{ApiError, Code};

/// Name and content of every file in `web/`; `build.rs` writes the table.
const FILES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/web.rs"));

/// Everything a page needs is here; nothing is fetched from elsewhere.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'";

pub(crate) async fn index() -> Response {
    file("index.html")
}

pub(crate) async fn asset(Path(name): Path<String>) -> Response {
    file(&name)
}

fn file(name: &str) -> Response {
    let kind = match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => return missing(name),
    };
    match FILES.iter().find(|(known, _)| *known == name) {
        Some((_, content)) => {
            let headers = [
                (header::CONTENT_TYPE, kind),
                (header::CONTENT_SECURITY_POLICY, POLICY),
                (header::CACHE_CONTROL, "no-cache"),
            ];
            (headers, *content).into_response()
        }
        None => missing(name),
    }
}

fn missing(name: &str) -> Response {
    ApiError::new(Code::NotFound, format!("there is no file `{name}`")).into_response()
}
