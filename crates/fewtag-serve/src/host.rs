//! Under which names the server answers, and to which pages.
//!
//! A browser lets a page talk to the server that its name leads to. Whoever owns `evil.example` may let that name lead to
//! 127.0.0.1 once the page is loaded, and our server is then what the browser takes for the page's own (DNS rebinding). The
//! page cannot choose `Host`, though: it stays `evil.example`. So a request is answered only if it is for
//!
//! ```text
//! localhost, 127.0.0.0/8, [::1]      the loopback names
//! --host                             where the server listens; if that is every address, every address
//! --public-host                      what else it is called
//! ```
//!
//! An address needs no list against rebinding, because no DNS is asked for it. Ports are not compared: they are forwarded and
//! mapped. Clients of HTTP/1.0 may name no host; browsers are none of them.
//!
//! A browser also tells which page calls (`Origin`): our own, which is one at the name that was asked for, or one of `--origin`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;

use crate::App;
use crate::config::Config;
use crate::error::{ApiError, ApiResult, Code};

/// A name or an address of a server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Host {
    /// In lower case, without a dot at the end.
    Name(String),
    /// An address; never one of IPv4 in the clothes of IPv6.
    Address(IpAddr),
}

/// Where a page comes from: `https://name` or `https://name:port`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Origin {
    scheme: String,
    at: Authority,
}

/// What `Host` and `Origin` name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Authority {
    host: Host,
    port: Option<u16>,
}

/// What is no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a host is a name or an address, without scheme, port or path: `tags.example.org`")]
pub struct NoHost;

/// What is no origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "an origin is what browsers send: scheme, name and perhaps a port, without a path or a `/` at the end: `https://pages.example.org`"
)]
pub struct NoOrigin;

impl Host {
    /// As it stands before the port in an address: that of IPv6 in brackets.
    fn bracketed(text: &str) -> Option<Self> {
        if let Some(inside) = text.strip_prefix('[') {
            let address: Ipv6Addr = inside.strip_suffix(']')?.parse().ok()?;
            return Some(Self::Address(IpAddr::V6(address).to_canonical()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_label = |label: &str| !label.is_empty() && label.chars().all(letter);
        name.split('.').all(is_label).then(|| Self::Name(name.to_ascii_lowercase()))
    }
}

impl FromStr for Host {
    type Err = NoHost;

    fn from_str(text: &str) -> Result<Self, NoHost> {
        let bare = text.parse::<Ipv6Addr>().map(|it| Self::Address(IpAddr::V6(it).to_canonical()));
        bare.ok().or_else(|| Self::bracketed(text)).ok_or(NoHost)
    }
}

impl TryFrom<String> for Host {
    type Error = NoHost;

    fn try_from(text: String) -> Result<Self, NoHost> {
        text.parse()
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(f),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl Authority {
    fn parse(text: &str) -> Option<Self> {
        let port_at = text.rfind(':').filter(|at| text.rfind(']').is_none_or(|end| *at > end));
        let (host, port) = match port_at {
            None => (text, None),
            Some(at) if at + 1 == text.len() => (&text[..at], None), // RFC 3986 lets a port be empty.
            Some(at) => {
                let port = &text[at + 1..];
                let is_number = port.bytes().all(|digit| digit.is_ascii_digit());
                (&text[..at], Some(port.parse().ok().filter(|_| is_number)?))
            }
        };
        Some(Self { host: Host::bracketed(host)?, port })
    }
}

impl Origin {
    /// Whether this is the page of a server that was asked for at `asked`.
    fn is_at(&self, asked: &Authority) -> bool {
        let usual = usual_port(&self.scheme);
        let port = |at: &Authority| at.port.or(usual);
        usual.is_some() && self.at.host == asked.host && port(&self.at) == port(asked)
    }
}

fn usual_port(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

impl FromStr for Origin {
    type Err = NoOrigin;

    fn from_str(text: &str) -> Result<Self, NoOrigin> {
        let (scheme, at) = text.split_once("://").ok_or(NoOrigin)?;
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        if !scheme.starts_with(|c: char| c.is_ascii_alphabetic()) || !scheme.chars().all(letter) {
            return Err(NoOrigin);
        }
        let scheme = scheme.to_ascii_lowercase();
        let mut at = Authority::parse(at).ok_or(NoOrigin)?;
        at.port = at.port.filter(|port| usual_port(&scheme) != Some(*port)); // Browsers leave it out.
        Ok(Self { scheme, at })
    }
}

impl TryFrom<String> for Origin {
    type Error = NoOrigin;

    fn try_from(text: String) -> Result<Self, NoOrigin> {
        text.parse()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, at: Authority { host, port } } = self;
        write!(f, "{scheme}://{host}")?;
        port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Lets a request pass if it is for this server and comes from a page that may call.
pub(crate) async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    let allowed = asked_for(&request).and_then(|asked| {
        check_host(asked.as_ref(), &app.config)?;
        check_origin(request.headers(), asked.as_ref(), &app.config.origins)
    });
    match allowed {
        Ok(()) => next.run(request).await,
        Err(error) => error.into_response(),
    }
}

/// The server that a request is for: what its target names, or else `Host` (RFC 9112, 3.2).
fn asked_for(request: &Request) -> ApiResult<Option<Authority>> {
    let invalid = |message| ApiError::new(Code::InvalidHost, message).at("Host");
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, None) = (hosts.next(), hosts.next()) else {
        return Err(invalid("send one `Host`, not several"));
    };
    let named = match (request.uri().authority(), host) {
        (Some(target), _) => Authority::parse(target.as_str()),
        (None, Some(host)) => host.to_str().ok().and_then(Authority::parse),
        (None, None) if request.version() < Version::HTTP_11 => return Ok(None),
        (None, None) => return Err(invalid("send a `Host`")),
    };
    named.map(Some).ok_or_else(|| invalid("`Host` is a name or an address, and perhaps a port"))
}

fn check_host(asked: Option<&Authority>, config: &Config) -> ApiResult<()> {
    let Some(Authority { host, .. }) = asked else { return Ok(()) };
    if is_ours(host, config) {
        return Ok(());
    }
    let message = format!(
        "this server is not called `{host}` (if it should be, start it with --public-host {host})"
    );
    Err(ApiError::new(Code::HostNotAllowed, message).at("Host"))
}

fn is_ours(host: &Host, config: &Config) -> bool {
    let listen = config.listen.ip().to_canonical();
    let always = match host {
        Host::Name(name) => name == "localhost",
        Host::Address(address) => {
            address.is_loopback() || listen.is_unspecified() || *address == listen
        }
    };
    always || config.public_hosts.contains(host)
}

/// Without this, any page could change the domains of a server without keys on the reader's own machine.
fn check_origin(
    headers: &HeaderMap,
    asked: Option<&Authority>,
    allowed: &[Origin],
) -> ApiResult<()> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let text = origin.to_str().unwrap_or_default();
    let may_call = |origin: Origin| {
        allowed.contains(&origin) || asked.is_some_and(|asked| origin.is_at(asked))
    };
    if text.parse().is_ok_and(may_call) {
        return Ok(());
    }
    let message = format!("pages of `{text}` may not call this server (--origin allows them)");
    Err(ApiError::new(Code::OriginNotAllowed, message).at("Origin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_or_an_address_and_nothing_else() {
        for (text, shown) in [
            ("Tags.Example.ORG", "tags.example.org"),
            ("tags.example.org.", "tags.example.org"),
            ("my_box-2", "my_box-2"),
            ("10.0.0.7", "10.0.0.7"),
            ("::1", "[::1]"),
            ("[2001:DB8::1]", "[2001:db8::1]"),
            ("::ffff:10.0.0.7", "10.0.0.7"),
        ] {
            assert_eq!(text.parse::<Host>().map(|host| host.to_string()), Ok(shown.to_owned()));
        }
        for text in [
            "",
            " ",
            ".",
            "a..b",
            "a.b..",
            "https://a.b",
            "a.b:80",
            "a.b/",
            "*",
            "*.a.b",
            "a b",
            "a@b",
            "[a]",
            "[::1",
            "::1]",
            "[1.2.3.4]",
            "[fe80::1%eth0]",
            "bücher.example",
        ] {
            assert_eq!(text.parse::<Host>(), Err(NoHost), "{text}");
        }
    }

    #[test]
    fn an_origin_is_what_browsers_send() {
        for (text, sent) in [
            ("https://pages.example.org", "https://pages.example.org"),
            ("HTTPS://Pages.Example.org:443", "https://pages.example.org"),
            ("http://pages.example.org:80", "http://pages.example.org"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://[::1]:3000", "http://[::1]:3000"),
            ("moz-extension://0f3c", "moz-extension://0f3c"),
        ] {
            assert_eq!(
                text.parse::<Origin>().map(|origin| origin.to_string()),
                Ok(sent.to_owned())
            );
        }
        for text in [
            "",
            "*",
            "null",
            "pages.example.org",
            "https://",
            "https://a.b/",
            "https://a.b/x",
            "://a.b",
            "https://a.b:x",
            "https://a.b:99999",
            "https://a.b:+1",
            "https://u@a.b",
            "https://*.a.b",
            "ht tp://a.b",
            "https://a.b\n",
            "https://bücher.example",
        ] {
            assert_eq!(text.parse::<Origin>(), Err(NoOrigin), "{text}");
        }
    }
}
