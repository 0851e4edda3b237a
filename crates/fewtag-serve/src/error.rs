//! What the server refuses, in one shape: `{"error": {"code", "message", "where"?}}`.
//!
//! A code is stable: programs may rely on it. The message is for people and may change.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Every way in which a request can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "`status` gives each its status; the names say the rest")]
pub enum Code {
    InvalidJson,
    InvalidHost,
    InvalidRequest,
    InvalidExample,
    InvalidData,
    InvalidDomainName,
    NothingToLearn,
    UnknownLabel,
    TextTooLong,
    SupportTooLarge,
    BatchTooLarge,
    ExplanationTooLarge,
    Unwritable,
    TooLittle,
    Untunable,
    Unauthorized,
    ReadOnlyKey,
    OriginNotAllowed,
    NotFound,
    DomainNotFound,
    ExampleNotFound,
    TuningNotFound,
    MethodNotAllowed,
    RequestTimeout,
    DomainExists,
    TuningUnderWay,
    NotTuned,
    VersionConflict,
    BodyTooLarge,
    UnsupportedMediaType,
    HostNotAllowed,
    VersionRequired,
    TooManyRequests,
    TooManyTunings,
    Overloaded,
    Internal,
    StorageUnavailable,
    StorageFull,
}

impl Code {
    /// The status that goes with the code.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::InvalidJson | Self::InvalidHost => StatusCode::BAD_REQUEST,
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::ReadOnlyKey | Self::OriginNotAllowed => StatusCode::FORBIDDEN,
            Self::NotFound
            | Self::DomainNotFound
            | Self::ExampleNotFound
            | Self::TuningNotFound => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::DomainExists | Self::TuningUnderWay | Self::NotTuned => StatusCode::CONFLICT,
            Self::VersionConflict => StatusCode::PRECONDITION_FAILED,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::InvalidRequest
            | Self::InvalidExample
            | Self::InvalidData
            | Self::InvalidDomainName
            | Self::NothingToLearn
            | Self::UnknownLabel
            | Self::TextTooLong
            | Self::SupportTooLarge
            | Self::BatchTooLarge
            | Self::ExplanationTooLarge
            | Self::Unwritable
            | Self::TooLittle
            | Self::Untunable => StatusCode::UNPROCESSABLE_ENTITY,
            Self::HostNotAllowed => StatusCode::MISDIRECTED_REQUEST,
            Self::VersionRequired => StatusCode::PRECONDITION_REQUIRED,
            Self::TooManyRequests | Self::TooManyTunings | Self::Overloaded => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            Self::StorageUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
        }
    }
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// What programs look at.
    pub code: Code,
    /// What people read.
    pub message: String,
    /// The part of the request that is meant, such as `support[0].spans[1]`.
    pub place: Option<String>,
    /// After how many seconds another try may go well.
    pub retry_after: Option<u64>,
}

/// The body of every refusal.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// What is wrong.
    pub error: ErrorDetail,
}

/// The refusals of an operation, for the `OpenAPI` document.
#[derive(utoipa::IntoResponses)]
pub enum ErrorResponses {
    /// Refused
    #[response(status = "4XX")]
    Refused(ErrorBody),
    /// Failed
    #[response(status = "5XX")]
    Failed(ErrorBody),
}

/// What is wrong with a request.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ErrorDetail {
    /// For programs; stable.
    pub code: Code,
    /// For people.
    pub message: String,
    /// The part of the request that is meant, such as `support[0].spans[1]`.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
}

/// `Result` with an [`ApiError`].
pub type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    /// A refusal of the whole request.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), place: None, retry_after: None }
    }

    /// The same, about this part of the request.
    #[must_use]
    pub fn at(self, place: impl Into<String>) -> Self {
        Self { place: Some(place.into()), ..self }
    }

    /// The same, with a time to wait.
    #[must_use]
    pub fn retry_after(self, seconds: u64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// The body of the answer.
    #[must_use]
    pub fn body(&self) -> ErrorBody {
        let Self { code, message, place, .. } = self.clone();
        ErrorBody { error: ErrorDetail { code, message, place } }
    }
}

pub(crate) use fewtag::error::chain;

/// Errors of the library are what the examples or the texts caused.
impl From<fewtag::Error> for ApiError {
    fn from(error: fewtag::Error) -> Self {
        use fewtag::Error as E;
        let code = match &error {
            E::EmptySupport | E::NothingBegins | E::NamesUnread { .. } | E::MuteLabel { .. } => {
                Code::NothingToLearn
            }
            E::TooLong { .. } | E::TooManyPieces { .. } => Code::TextTooLong,
            E::EmptySentence | E::EmptyWord { .. } | E::BadSlot { .. } | E::BadTag { .. } => {
                Code::InvalidExample
            }
            E::Data { .. }
            | E::DomainFile { .. }
            | E::DomainFormat { .. }
            | E::Safetensors { .. } => Code::InvalidData,
            E::Unwritable { .. } => Code::Unwritable,
            E::TooLittle { .. } => Code::TooLittle,
            E::Untunable { .. } => Code::Untunable,
            _ => Code::Internal,
        };
        Self::new(code, chain(&error))
    }
}

impl From<sqlx::Error> for ApiError {
    fn from(error: sqlx::Error) -> Self {
        tracing::error!(error = chain(&error), "the database failed");
        if takes_nothing_more(&error) {
            let message = "the disk of the database takes nothing more; nothing was changed";
            return Self::new(Code::StorageFull, message);
        }
        let message = "the database does not answer; nothing was changed, try again";
        Self::new(Code::StorageUnavailable, message).retry_after(1)
    }
}

/// Whether the database's disk is full: `SQLITE_FULL`, `SQLITE_IOERR_WRITE` (beyond a quota or a limit of files' sizes) or
/// PostgreSQL's `disk_full`.
fn takes_nothing_more(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code);
    code.is_some_and(|code| matches!(&*code, "13" | "778" | "53100"))
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.code.status(), Json(self.body())).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code == Code::Unauthorized {
            let challenge = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
