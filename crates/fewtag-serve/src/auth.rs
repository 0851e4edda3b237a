//! API keys.
//!
//! A key comes as `Authorization: Bearer KEY`, as `X-API-Key: KEY`, or as the password of basic authentication, which is what
//! Label Studio can send. Keys are kept and compared as SHA-256 digests, all of them and in constant time, so that the
//! time of an answer tells nothing about a key.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::App;
use crate::error::{ApiError, ApiResult, Code};

/// What a key allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// To read and to tag.
    Read,
    /// To change domains as well.
    Full,
}

/// The keys that open the server.
#[derive(Clone, Default)]
pub struct Keys(Vec<([u8; 32], Scope)>);

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} keys", self.0.len())
    }
}

impl Keys {
    /// Adds a key.
    pub fn add(&mut self, key: &str, scope: Scope) {
        self.0.push((Sha256::digest(key).into(), scope));
    }

    /// Whether nobody needs a key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn scope(&self, key: &str) -> Option<Scope> {
        let digest: [u8; 32] = Sha256::digest(key).into();
        let (mut read, mut full) = (Choice::from(0), Choice::from(0));
        for (known, scope) in &self.0 {
            let equal = known.ct_eq(&digest);
            match scope {
                Scope::Read => read |= equal,
                Scope::Full => full |= equal,
            }
        }
        match (bool::from(full), bool::from(read)) {
            (true, _) => Some(Scope::Full),
            (_, true) => Some(Scope::Read),
            _ => None,
        }
    }
}

/// Lets a request pass if its key allows it.
pub(crate) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    match allowed(&app, &request) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn allowed(app: &App, request: &Request) -> ApiResult<()> {
    let headers = request.headers();
    let path = request.uri().path();
    if app.config.keys.is_empty() || is_open(path) || request.method() == Method::OPTIONS {
        return Ok(());
    }
    let key = key(headers).ok_or_else(|| {
        ApiError::new(Code::Unauthorized, "send a key: `Authorization: Bearer KEY`")
    })?;
    match app.config.keys.scope(&key) {
        None => Err(ApiError::new(Code::Unauthorized, "this key is not known here")),
        Some(Scope::Read) if changes(request.method(), path) => {
            Err(ApiError::new(Code::ReadOnlyKey, "this key may read and tag, but change nothing"))
        }
        Some(_) => Ok(()),
    }
}

/// What anybody may see: that the server lives, its documentation and the page that asks for the key.
fn is_open(path: &str) -> bool {
    let trees = ["/assets/", "/docs/"];
    matches!(path, "/" | "/health" | "/ready" | "/openapi.json" | "/docs")
        || trees.iter().any(|tree| path.starts_with(tree))
}

fn changes(method: &Method, path: &str) -> bool {
    let tags = path.ends_with("/tag") || matches!(path, "/predict" | "/setup");
    !(matches!(*method, Method::GET | Method::HEAD) || (*method == Method::POST && tags))
}

fn key(headers: &HeaderMap) -> Option<String> {
    if let Some(key) = headers.get("x-api-key") {
        return key.to_str().ok().map(str::to_owned);
    }
    let (scheme, rest) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.trim().to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = base64::engine::general_purpose::STANDARD.decode(rest.trim()).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    text.split_once(':').map(|(_, password)| password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_scope_of_a_key_counts_and_others_are_unknown() {
        let mut keys = Keys::default();
        keys.add("a", Scope::Read);
        keys.add("b", Scope::Full);
        keys.add("a", Scope::Full);
        keys.add("c", Scope::Read);
        assert_eq!(keys.scope("a"), Some(Scope::Full));
        assert_eq!(keys.scope("c"), Some(Scope::Read));
        assert_eq!(keys.scope("d"), None);
        assert_eq!(keys.scope(""), None);
    }

    #[test]
    fn tagging_changes_nothing_and_imports_do() {
        assert!(!changes(&Method::POST, "/v1/tag"));
        assert!(!changes(&Method::POST, "/v1/domains/a/tag"));
        assert!(!changes(&Method::GET, "/v1/domains"));
        assert!(changes(&Method::POST, "/v1/domains/a/import"));
        assert!(changes(&Method::POST, "/webhook"));
        assert!(changes(&Method::DELETE, "/v1/domains/tag"));
    }
}
