//! API keys.
//!
//! A key comes as `Authorization: Bearer KEY`, as `X-API-Key: KEY`, or as the password of basic authentication, which is what
//! Label Studio can send. Keys are kept and compared as SHA-256 digests, all of them and in constant time, so that the
//! time of an answer tells nothing about a key.
//!
//! What a route asks of a key is said where the routes are (`api/mod.rs`), not here.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::App;
use crate::error::{ApiError, ApiResult, Code};

/// What a key allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// To read and to tag.
    Read,
    /// To change domains as well.
    Full,
}

impl Scope {
    /// Its name in the `OpenAPI` document.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Full => "full",
        }
    }
}

/// The fewest characters of a key: 16 hexadecimal digits are 64 bits, more than can be tried over a network.
pub const SHORTEST: usize = 16;

/// Why something is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Nothing, or blanks.
    #[error("the key is empty: everybody could send it (`openssl rand -hex 16` makes a good one)")]
    Blank,
    /// It could be guessed.
    #[error(
        "the key has {0} characters, fewer than {SHORTEST}: it could be guessed (`openssl rand -hex 16` makes a good one, --short-keys takes this one)"
    )]
    Short(usize),
    /// It could not be sent.
    #[error(
        "the key holds what no header can: write it in visible ASCII characters, without blanks at its ends"
    )]
    Unsendable,
}

/// The keys that open the server.
#[derive(Clone)]
pub struct Keys {
    list: Vec<([u8; 32], Scope)>,
    shortest: usize,
}

impl Default for Keys {
    fn default() -> Self {
        Self { list: Vec::new(), shortest: SHORTEST }
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} keys", self.list.len())
    }
}

impl Keys {
    /// No keys, to which also short ones may be added.
    #[must_use]
    pub fn short() -> Self {
        Self { list: Vec::new(), shortest: 1 }
    }

    /// Adds a key.
    ///
    /// # Errors
    ///
    /// [`KeyError`] if it is no key, or one that is too easily guessed.
    pub fn add(&mut self, key: &str, scope: Scope) -> Result<(), KeyError> {
        let visible = |c: char| c == ' ' || c.is_ascii_graphic();
        match key.chars().count() {
            _ if key.trim().is_empty() => Err(KeyError::Blank),
            _ if key.trim() != key || !key.chars().all(visible) => Err(KeyError::Unsendable),
            n if n < self.shortest => Err(KeyError::Short(n)),
            _ => {
                self.list.push((Sha256::digest(key).into(), scope));
                Ok(())
            }
        }
    }

    /// Whether nobody needs a key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn scope(&self, key: &str) -> Option<Scope> {
        let digest: [u8; 32] = Sha256::digest(key).into();
        let (mut read, mut full) = (Choice::from(0), Choice::from(0));
        for (known, scope) in &self.list {
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

/// Lets a request pass if its key allows what the route asks for.
pub(crate) async fn check(
    State((app, wanted)): State<(App, Scope)>,
    request: Request,
    next: Next,
) -> Response {
    match allowed(&app.config.keys, request.headers(), wanted) {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

fn allowed(keys: &Keys, headers: &HeaderMap, wanted: Scope) -> ApiResult<()> {
    if keys.is_empty() {
        return Ok(());
    }
    let key = key(headers).ok_or_else(|| {
        ApiError::new(Code::Unauthorized, "send a key: `Authorization: Bearer KEY`")
    })?;
    match keys.scope(&key) {
        None => Err(ApiError::new(Code::Unauthorized, "this key is not known here")),
        Some(scope) if scope < wanted => {
            Err(ApiError::new(Code::ReadOnlyKey, "this key may read and tag, but change nothing"))
        }
        Some(_) => Ok(()),
    }
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
        let mut keys = Keys::short();
        for (key, scope) in
            [("a", Scope::Read), ("b", Scope::Full), ("a", Scope::Full), ("c", Scope::Read)]
        {
            keys.add(key, scope).unwrap();
        }
        assert_eq!(keys.scope("a"), Some(Scope::Full));
        assert_eq!(keys.scope("c"), Some(Scope::Read));
        assert_eq!(keys.scope("d"), None);
        assert_eq!(keys.scope(""), None);
    }

    #[test]
    fn what_everybody_could_send_or_nobody_is_no_key() {
        for (key, short, usual) in [
            ("", Err(KeyError::Blank), Err(KeyError::Blank)),
            (" \t", Err(KeyError::Blank), Err(KeyError::Blank)),
            ("\u{2003}", Err(KeyError::Blank), Err(KeyError::Blank)),
            ("x", Ok(()), Err(KeyError::Short(1))),
            ("fifteen letters", Ok(()), Err(KeyError::Short(15))),
            ("sixteen letters!", Ok(()), Ok(())),
            (" a blank in front", Err(KeyError::Unsendable), Err(KeyError::Unsendable)),
            ("a line that ends\n", Err(KeyError::Unsendable), Err(KeyError::Unsendable)),
            ("schlüssel schlüssel", Err(KeyError::Unsendable), Err(KeyError::Unsendable)),
        ] {
            assert_eq!(Keys::short().add(key, Scope::Read), short, "{key:?}");
            assert_eq!(Keys::default().add(key, Scope::Full), usual, "{key:?}");
        }
    }
}
