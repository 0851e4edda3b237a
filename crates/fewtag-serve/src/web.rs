//! The playground's files, built into the binary.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

use crate::error::{ApiError, Code};

/// Name and content of every file in `web/`; `build.rs` writes the table.
const FILES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/web.rs"));

/// The `ETag` of each of them, made of its content: a browser that has a file is not sent it again.
static TAGS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let tag = |(_, content): &(&str, &str)| {
        format!("\"{}\"", URL_SAFE_NO_PAD.encode(Sha256::digest(content)))
    };
    FILES.iter().map(tag).collect()
});

/// Everything a page needs is here; nothing is fetched from elsewhere.
const POLICY: &str = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'";

pub(crate) async fn index(headers: HeaderMap) -> Response {
    file("index.html", &headers)
}

pub(crate) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    file(&name, &headers)
}

fn file(name: &str, asked: &HeaderMap) -> Response {
    let kind = match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => return missing(name),
    };
    let Some(at) = FILES.iter().position(|(known, _)| *known == name) else { return missing(name) };
    let tag = TAGS[at].as_str();
    let always = [
        (header::ETAG, tag),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::CACHE_CONTROL, "no-cache"), // That is: ask whether it has changed.
    ];
    if is_known(tag, asked) {
        return (StatusCode::NOT_MODIFIED, always).into_response();
    }
    (always, [(header::CONTENT_TYPE, kind)], FILES[at].1).into_response()
}

/// Whether the browser has the file with this tag: `If-None-Match` is `*` or a list of tags, weak or not.
fn is_known(tag: &str, asked: &HeaderMap) -> bool {
    let lists = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|list| list.to_str().ok());
    let mut tags = lists.flat_map(|list| list.split(',')).map(str::trim);
    tags.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

fn missing(name: &str) -> Response {
    ApiError::new(Code::NotFound, format!("there is no file `{name}`")).into_response()
}
