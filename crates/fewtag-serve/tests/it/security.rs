//! What others may not do: call under a foreign name, fill the memory, or have work done that nobody counts.

use axum::body::Body;
use axum::http::Request;

use crate::Server;

fn code(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test]
async fn a_method_that_a_client_made_up_makes_no_series_of_figures() {
    let server = Server::new().await;
    for n in 0..20 {
        server.ask(&format!("BREW{n}"), "/v1/domains", &[], "").await;
        server.ask(&format!("BREW{n}"), &format!("/coffee/{n}"), &[], "").await;
    }
    server.ask("DELETE", "/v1/domains/a", &[], "").await;
    let text = server.get("/metrics").await.text;
    let mut methods: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("fewtag_requests_total{method=\"")?.split('"').next())
        .collect();
    methods.sort_unstable();
    assert_eq!(methods, ["DELETE", "other", "other"], "{text}");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_not_taken_for_a_long_one() {
    let server = Server::new().await;
    let broken = std::io::Error::other("the limit of another's patience");
    let body = futures_util::stream::iter([Err::<axum::body::Bytes, _>(broken)]);
    let request = Request::post("/v1/tag")
        .header("host", "localhost")
        .header("content-type", "application/json");
    let answer = server.send(request.body(Body::from_stream(body)).unwrap()).await;
    assert_eq!(answer.refusal(), code(400, "invalid_json"));
}

#[tokio::test]
async fn pages_of_the_playground_are_sent_once() {
    let server = Server::new().await;
    let mut tags = Vec::new();
    for path in ["/", "/assets/app.js", "/assets/style.css", "/assets/icon.svg"] {
        let page = server.get(path).await;
        let tag = page.etag().to_owned();
        assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 10, "{path}: {tag}");
        for known in [tag.clone(), format!("\"x\", W/{tag}"), "*".to_owned()] {
            for method in ["GET", "HEAD"] {
                let answer = server.ask(method, path, &[("if-none-match", &known)], "").await;
                assert_eq!((answer.status.as_u16(), answer.text.as_str()), (304, ""), "{known}");
                assert_eq!(
                    (answer.etag(), &answer.headers["cache-control"]),
                    (&*tag, &page.headers["cache-control"])
                );
            }
        }
        for other in ["\"x\"", "", tag.trim_matches('"')] {
            let answer = server.ask("GET", path, &[("if-none-match", other)], "").await;
            assert_eq!((answer.status.as_u16(), &answer.text), (200, &page.text), "{other}");
        }
        tags.push(tag);
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), 4, "every content has its own");
    let missing = server.ask("GET", "/assets/no.js", &[("if-none-match", "*")], "").await;
    assert_eq!(missing.refusal(), code(404, "not_found"));
}
