//! What others may not do: call under a foreign name, fill the memory, or have work done that nobody counts.

use axum::body::Body;
use axum::http::Request;
use serde_json::{Value, json};

use crate::{Server, example};

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

/// A domain in which 300 words speak for a label.
async fn wide_domain(server: &Server) {
    let examples: Vec<Value> = (0..300).map(|n| example(&format!("queen{n}"))).collect();
    let made = server.post("/v1/domains", &json!({"name": "wide", "examples": examples})).await;
    assert_eq!(made.status, 201, "{}", made.text);
}

/// Room is made just after an answer is sent.
async fn wait_for(server: &Server, cost: usize) {
    while server.app.queue.cost_waiting() > cost {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_explanation_takes_room_in_the_queue() {
    let server = Server::limited(|limits| limits.queue = 50).await;
    wide_domain(&server).await;
    let ask = |explain: bool| {
        let server = &server;
        let request = json!({"texts": ["play john tonight"], "explain": explain});
        async move { server.post("/v1/domains/wide/tag", &request).await }
    };
    // The first request reads the examples, for which it may take the whole queue.
    assert_eq!(ask(false).await.status, 200);
    wait_for(&server, 0).await;
    let room = server.app.queue.reserve(40).unwrap();
    assert_eq!(ask(false).await.status, 200, "there is room for the text");
    wait_for(&server, 40).await;
    assert_eq!(ask(true).await.refusal(), code(429, "overloaded"));
    drop(room);
    assert_eq!(ask(true).await.status, 200);
}

#[tokio::test]
async fn what_is_dearer_to_explain_than_the_queue_is_long_is_refused() {
    let server = Server::limited(|limits| limits.queue = 50).await;
    wide_domain(&server).await;
    let ask = |texts: Value, explain: bool| {
        let server = &server;
        let request = json!({"texts": texts, "explain": explain});
        async move {
            wait_for(server, 0).await;
            server.post("/v1/domains/wide/tag", &request).await
        }
    };
    let (long, many) = (json!(["play john tonight ".repeat(10)]), json!(vec!["play john"; 20]));
    for texts in [long, many] {
        let answer = ask(texts.clone(), true).await;
        assert_eq!(answer.refusal(), code(422, "explanation_too_large"));
        assert_eq!(answer.json()["error"]["where"], "explain");
        assert_eq!(ask(texts.clone(), false).await.status, 200, "they can be tagged");
        wait_for(&server, 0).await;
        let file = json!({"texts": texts, "explain": true, "format": "conll"});
        let answer = server.post("/v1/domains/wide/tag", &file).await;
        assert_eq!(answer.status, 200, "a file has no place for explanations: {}", answer.text);
    }
    let support: Vec<Value> = (0..300).map(|n| example(&format!("queen{n}"))).collect();
    let group = json!({"support": support, "texts": ["play john tonight".repeat(3)]});
    wait_for(&server, 0).await;
    let batch = json!({"batch": [group, group, group, group], "explain": true});
    let answer = server.post("/v1/tag", &batch).await;
    assert_eq!(answer.refusal(), code(422, "explanation_too_large"), "groups count together");
}

#[tokio::test]
async fn many_labels_cannot_make_a_text_fill_the_memory() {
    let server = Server::limited(|limits| limits.queue = 1).await;
    let example = |n: usize| json!({"text": "play queen", "spans": [{"start": 5, "end": 10, "label": format!("l{n}")}]});
    let support: Vec<Value> = (0..100).map(example).collect();
    let ask = async |n_words: usize| {
        let request = json!({"support": support, "texts": ["a", "a ".repeat(n_words)]});
        wait_for(&server, 0).await;
        server.post("/v1/tag", &request).await
    };
    assert_eq!(ask(10).await.status, 200);
    let answer = ask(200).await;
    assert_eq!(answer.refusal(), code(422, "text_too_long"));
    assert_eq!(answer.json()["error"]["where"], "texts[1]");
}
