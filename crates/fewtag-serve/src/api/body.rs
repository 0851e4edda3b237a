//! Requests as handlers want them, with refusals in our shape.

use axum::body::{Body, Bytes};
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, FromRequestParts, Query, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, header};
use http_body_util::LengthLimitError;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;

use crate::App;
use crate::config::Limits;
use crate::error::{ApiError, ApiResult, Code};
use crate::request::check_name;
use crate::store::Expected;

/// A JSON body.
pub struct Json<T>(pub T);

impl<T: DeserializeOwned> FromRequest<App> for Json<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> ApiResult<Self> {
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let message = "send JSON, with `Content-Type: application/json`";
            return Err(ApiError::new(Code::UnsupportedMediaType, message));
        }
        let limits = &app.config.limits;
        parse(&read(request.into_body(), limits.body, limits).await?).map(Self)
    }
}

/// A file, which may be a tuned domain: longer by its weights than other bodies may be.
pub struct Raw(pub Bytes);

impl FromRequest<App> for Raw {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &App) -> ApiResult<Self> {
        let limits = &app.config.limits;
        read(request.into_body(), limits.body + limits.tuned, limits).await.map(Self)
    }
}

async fn read(body: Body, most: usize, limits: &Limits) -> ApiResult<Bytes> {
    let read = tokio::time::timeout(limits.patience, axum::body::to_bytes(body, most));
    match read.await {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) => Err(match std::error::Error::source(&error) {
            Some(cause) if cause.is::<LengthLimitError>() => too_large(most),
            _ => ApiError::new(Code::InvalidJson, "the body broke off"),
        }),
        Err(_) => {
            let message = format!("the body took longer than {} s", limits.patience.as_secs());
            Err(ApiError::new(Code::RequestTimeout, message))
        }
    }
}

pub(super) fn too_large(most: usize) -> ApiError {
    ApiError::new(Code::BodyTooLarge, format!("the body has more than {most} bytes"))
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    // Serde would take a list for an object whose fields have no names.
    if bytes.trim_ascii_start().starts_with(b"[") {
        return Err(ApiError::new(Code::InvalidRequest, "send a JSON object, not a list"));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let parsed = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        refused(error.inner()).at(path)
    })?;
    json.end().map_err(|error| refused(&error))?;
    Ok(parsed)
}

fn refused(error: &serde_json::Error) -> ApiError {
    let code = match error.classify() {
        serde_json::error::Category::Data => Code::InvalidRequest,
        _ => Code::InvalidJson,
    };
    ApiError::new(code, error.to_string())
}

/// The domain of a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub struct InDomain {
    /// The domain's name.
    #[param(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", example = "music")]
    pub name: String,
}

/// The example of a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub struct OfExample {
    /// The example's id.
    #[param(value_type = String, example = "1")]
    pub id: i64,
}

impl FromRequestParts<App> for InDomain {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> ApiResult<Self> {
        let name = in_path(parts, "name").await?;
        check_name(&name)?;
        Ok(Self { name })
    }
}

impl FromRequestParts<App> for OfExample {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> ApiResult<Self> {
        let id = in_path(parts, "id").await?;
        Ok(Self { id: id.parse().map_err(|_| no_example(&id))? })
    }
}

/// The part of the path that stands for `{name}`.
async fn in_path(parts: &mut Parts, name: &str) -> ApiResult<String> {
    let path = RawPathParams::from_request_parts(parts, &()).await;
    let path = path.map_err(|error| ApiError::new(Code::NotFound, error.body_text()))?;
    let found = path.iter().find(|(key, _)| *key == name);
    Ok(found.expect("a route has the parameters of its handler").1.to_owned())
}

pub(super) fn no_example(id: &str) -> ApiError {
    ApiError::new(Code::ExampleNotFound, format!("the domain has no example `{id}`"))
}

/// The part of an address after `?`.
pub struct Parameters<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<App> for Parameters<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> ApiResult<Self> {
        let query = Query::<T>::from_request_parts(parts, app).await;
        let refused =
            |error: QueryRejection| ApiError::new(Code::InvalidRequest, error.body_text());
        query.map(|Query(parameters)| Self(parameters)).map_err(refused)
    }
}

/// The version that a change is meant for, if the client says so.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub struct IfMatch {
    /// The version that is to be changed, as its `ETag`, or `*` for any.
    #[param(rename = "If-Match", value_type = Option<String>)]
    pub expected: Option<Expected>,
}

impl IfMatch {
    /// Without a word about it, any version.
    pub fn or_any(self) -> Expected {
        self.expected.unwrap_or(Expected::Any)
    }
}

impl FromRequestParts<App> for IfMatch {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> ApiResult<Self> {
        Ok(Self { expected: expected(&parts.headers) })
    }
}

/// `"7"`, `"7", "8"` or `*`; what is no version of ours matches none.
fn expected(headers: &HeaderMap) -> Option<Expected> {
    let text = headers.get(header::IF_MATCH)?.to_str().unwrap_or_default();
    if text.trim() == "*" {
        return Some(Expected::Any);
    }
    let version = |tag: &str| tag.trim().strip_prefix('"')?.strip_suffix('"')?.parse().ok();
    Some(Expected::OneOf(text.split(',').filter_map(version).collect()))
}

/// A version as an `ETag`.
pub(super) fn etag(version: i64) -> [(header::HeaderName, HeaderValue); 1] {
    let tag = format!("\"{version}\"").parse().expect("digits in quotes make a header");
    [(header::ETAG, tag)]
}
