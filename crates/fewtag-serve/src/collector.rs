//! The HTTP client that traces are sent with: the one that also fetches models, so that a build has no second one.
//!
//! It blocks, which is right where it is used: the exporter has a thread of its own.

use std::time::Duration;

use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{
    OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_EXPORTER_OTLP_TIMEOUT_DEFAULT,
    OTEL_EXPORTER_OTLP_TRACES_TIMEOUT,
};

/// The longest answer of a collector that is read: it says little.
const MAX_ANSWER: u64 = 4 << 20;

/// Sends requests to a collector, over TLS if its address says so.
#[derive(Debug)]
pub(crate) struct Collector(ureq::Agent);

impl Collector {
    /// A client that gives up after `timeout`.
    pub(crate) fn new(timeout: Duration) -> Self {
        let config =
            ureq::Agent::config_builder().timeout_global(Some(timeout)).http_status_as_error(false); // The exporter judges the status: some are worth another try.
        Self(config.build().new_agent())
    }
}

#[async_trait::async_trait]
impl HttpClient for Collector {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let (head, body) = self.0.run(Request::from_parts(head, &body[..]))?.into_parts();
        let body = body.into_with_config().limit(MAX_ANSWER).read_to_vec()?;
        Ok(Response::from_parts(head, body.into()))
    }
}

/// How long a collector may take: the milliseconds of the variables that OpenTelemetry has for it, or its 10 seconds.
pub(crate) fn timeout() -> Duration {
    let set = |name| std::env::var(name).ok()?.parse().ok().map(Duration::from_millis);
    set(OTEL_EXPORTER_OTLP_TRACES_TIMEOUT)
        .or_else(|| set(OTEL_EXPORTER_OTLP_TIMEOUT))
        .unwrap_or(OTEL_EXPORTER_OTLP_TIMEOUT_DEFAULT)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::time::Duration;

    use futures_util::FutureExt;

    use super::*;

    /// What a collector that answers `answer` to one request gives, and what it was sent.
    fn exchange(answer: &'static str) -> (Result<Response<Bytes>, HttpError>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1/traces", listener.local_addr().unwrap());
        let collector = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut sent, mut buffer) = (Vec::new(), [0; 1024]);
            while !sent.ends_with(b"spans") {
                let n = stream.read(&mut buffer).unwrap();
                assert!(n > 0, "the client hung up");
                sent.extend_from_slice(&buffer[..n]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(sent).unwrap().to_lowercase()
        });
        let request = Request::post(url).header("x-key", "k").body(Bytes::from("spans")).unwrap();
        let sending = Collector::new(Duration::from_secs(10)).send_bytes(request).now_or_never();
        (sending.expect("it blocks"), collector.join().unwrap())
    }

    #[test]
    fn a_request_is_sent_as_it_is() {
        let (answer, sent) = exchange("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        assert_eq!(answer.unwrap().body(), "ok");
        assert!(sent.starts_with("post /v1/traces http/1.1\r\n"), "{sent}");
        assert!(sent.contains("x-key: k\r\n") && sent.contains("content-length: 5\r\n"), "{sent}");
    }

    #[test]
    fn a_refusal_is_an_answer() {
        let answer = "HTTP/1.1 503 Busy\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n";
        let answer = exchange(answer).0.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["retry-after"]),
            (503, &"3".parse().unwrap())
        );
    }
}
