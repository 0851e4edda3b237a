//! One test per error code, and for the limits, keys and bodies that lead there.

use axum::body::{Body, Bytes};
use axum::http::Request;
use fewtag_serve::{Keys, Scope};
use futures_util::StreamExt;
use serde_json::json;

use crate::{Server, example};

async fn refused(server: &Server, path: &str, body: serde_json::Value) -> (u16, String) {
    server.post(path, &body).await.refusal()
}

fn code(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test]
async fn malformed_bodies_are_refused_with_their_place() {
    let server = Server::new().await;
    let is_json = [("content-type", "application/json")];
    for broken in ["", "{", "{}}", "\u{0}", "{\"texts\": [", "{\"format\": \"\u{1}\"}"] {
        let answer = server.ask("POST", "/v1/tag", &is_json, broken).await;
        assert_eq!(answer.refusal(), code(400, "invalid_json"), "{broken:.20}");
    }
    let wrong = json!({"support": [example("queen")], "texts": [7]});
    let answer = server.post("/v1/tag", &wrong).await;
    assert_eq!(answer.refusal(), code(422, "invalid_request"));
    assert_eq!(answer.json()["error"]["where"], "texts[0]");
    for wrong in [
        json!({"support": [], "texts": [], "batch": []}),
        json!({"support": [], "texts": [], "unknown": 1}),
        json!({"support": [example("queen")], "texts": [], "threshold": 2}),
        json!({"support": [example("queen")], "texts": [], "format": "word"}),
    ] {
        assert_eq!(refused(&server, "/v1/tag", wrong).await, code(422, "invalid_request"));
    }
    let plain = server.ask("POST", "/v1/tag", &[("content-type", "text/plain")], "{}").await;
    assert_eq!(plain.refusal(), code(415, "unsupported_media_type"));
}

#[tokio::test]
async fn examples_are_checked_with_their_place() {
    let server = Server::new().await;
    let wrong = [
        json!({"text": "play queen", "spans": [{"start": 5, "end": 7, "label": "artist"}]}),
        json!({"text": "play queen", "spans": [{"start": 5, "end": 70, "label": "artist"}]}),
        json!({"text": "play queen", "spans": [{"start": 5, "end": 10, "label": "an artist"}]}),
        json!({"text": " ", "spans": []}),
        json!({"text": "a\u{0}b", "spans": []}),
    ];
    for wrong in wrong {
        let answer = server
            .post("/v1/tag", &json!({"support": [example("queen"), wrong], "texts": []}))
            .await;
        assert_eq!(answer.refusal(), code(422, "invalid_example"));
        let place = answer.json()["error"]["where"].as_str().unwrap().to_owned();
        assert!(place.starts_with("support[1]"), "{place}");
    }
    let nothing = json!({"support": [{"text": "play"}], "texts": ["play"]});
    assert_eq!(refused(&server, "/v1/tag", nothing).await, code(422, "nothing_to_learn"));
    let label =
        json!({"support": [example("queen")], "texts": ["play"], "thresholds": {"city": 0.5}});
    assert_eq!(refused(&server, "/v1/tag", label).await, code(422, "unknown_label"));
    let name = json!({"name": "no/name"});
    assert_eq!(refused(&server, "/v1/domains", name).await, code(422, "invalid_domain_name"));
}

#[tokio::test]
async fn each_limit_has_its_own_error() {
    let server = Server::limited(|limits| {
        limits.body = 2000;
        limits.text = 30;
        limits.support = 2;
        limits.batch = 3;
    })
    .await;
    let tag = |support: usize, texts: &[&str]| {
        let support: Vec<_> = (0..support).map(|_| example("queen")).collect();
        json!({"support": support, "texts": texts})
    };
    let long = "play ".repeat(10);
    assert_eq!(refused(&server, "/v1/tag", tag(1, &[&long])).await, code(422, "text_too_long"));
    assert_eq!(refused(&server, "/v1/tag", tag(3, &[])).await, code(422, "support_too_large"));
    assert_eq!(refused(&server, "/v1/tag", tag(1, &["a"; 4])).await, code(422, "batch_too_large"));
    let huge = json!({"texts": ["x".repeat(3000)]});
    assert_eq!(refused(&server, "/v1/tag", huge).await, code(413, "body_too_large"));
    server.post("/v1/domains", &json!({"name": "a", "examples": [example("queen")]})).await;
    let more = json!({"examples": [example("queen"), example("john")]});
    assert_eq!(
        refused(&server, "/v1/domains/a/examples", more).await,
        code(422, "support_too_large")
    );
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let server = Server::new().await;
    assert_eq!(server.get("/nowhere").await.refusal(), code(404, "not_found"));
    assert_eq!(server.get("/assets/nothing.js").await.refusal(), code(404, "not_found"));
    assert_eq!(server.get("/v1/domains/a").await.refusal(), code(404, "domain_not_found"));
    let wrong = server.ask("PATCH", "/v1/domains", &[], "").await;
    assert_eq!(wrong.refusal(), code(405, "method_not_allowed"));
    assert!(wrong.headers.contains_key("allow"));
    server.post("/v1/domains", &json!({"name": "a"})).await;
    for id in ["7", "x"] {
        let answer = server.ask("DELETE", &format!("/v1/domains/a/examples/{id}"), &[], "").await;
        assert_eq!(answer.refusal(), code(404, "example_not_found"));
    }
    let again = json!({"name": "a"});
    assert_eq!(refused(&server, "/v1/domains", again).await, code(409, "domain_exists"));
}

#[tokio::test]
async fn files_that_cannot_be_read_or_written_are_refused() {
    let server = Server::new().await;
    server.post("/v1/domains", &json!({"name": "a"})).await;
    let bad = server.ask("POST", "/v1/domains/a/import?format=doccano", &[], "{").await;
    assert_eq!(bad.refusal(), code(422, "invalid_data"));
    let format = server.get("/v1/domains/a/export?format=word").await;
    assert_eq!(format.refusal(), code(422, "invalid_request"));
    let bell = json!({"examples": [{"text": "play \u{7} queen"}]});
    assert_eq!(server.post("/v1/domains/a/examples", &bell).await.status, 200);
    let file = server.get("/v1/domains/a/export?format=rasa").await;
    assert_eq!(file.refusal(), code(422, "unwritable"));
}

#[tokio::test]
async fn keys_open_what_they_are_for() {
    let server = Server::with(|config| {
        config.keys = Keys::short();
        config.keys.add("full", Scope::Full).unwrap();
        config.keys.add("read", Scope::Read).unwrap();
    })
    .await;
    for path in ["/health", "/ready", "/", "/openapi.json"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    let missing = server.get("/v1/domains").await;
    assert_eq!(missing.refusal(), code(401, "unauthorized"));
    assert!(missing.headers.contains_key("www-authenticate"));
    let basic_full = "Basic dXNlcjpmdWxs"; // user:full
    let cases = [
        ("authorization", "Bearer wrong", 401, 401),
        ("x-api-key", "", 401, 401),
        ("authorization", "Bearer ", 401, 401),
        ("authorization", "Digest full", 401, 401),
        ("authorization", "Bearer read", 200, 403),
        ("x-api-key", "read", 200, 403),
        ("authorization", "Bearer full", 200, 201),
        ("authorization", basic_full, 200, 409),
    ];
    for (header, key, reads, changes) in cases {
        let read = server.ask("GET", "/v1/domains", &[(header, key)], "").await;
        assert_eq!(read.status, reads, "{key}");
        let headers = [(header, key), ("content-type", "application/json")];
        let made = server.ask("POST", "/v1/domains", &headers, r#"{"name": "a"}"#).await;
        assert_eq!(made.status, changes, "{key}");
        if changes == 403 {
            assert_eq!(made.refusal().1, "read_only_key");
        }
        let tag = json!({"support": [example("queen")], "texts": ["play"]}).to_string();
        assert_eq!(server.ask("POST", "/v1/tag", &headers, &tag).await.status, reads);
    }
}

#[tokio::test]
async fn pages_of_others_may_not_call() {
    let server =
        Server::with(|config| config.origins.push("https://ours.example".parse().unwrap())).await;
    let ask = |origin| {
        let headers = [("origin", origin), ("host", "localhost:8080")];
        let server = &server;
        async move { server.ask("GET", "/v1/domains", &headers, "").await }
    };
    assert_eq!(ask("https://evil.example").await.refusal(), code(403, "origin_not_allowed"));
    for foreign in [
        "http://localhost",
        "http://localhost:3000",
        "http://127.0.0.1:8080",
        "null",
        "",
        "file://",
    ] {
        assert_eq!(ask(foreign).await.refusal(), code(403, "origin_not_allowed"), "{foreign}");
    }
    for own in ["http://localhost:8080", "https://localhost:8080"] {
        assert_eq!(ask(own).await.status, 200, "{own}"); // The second: a proxy speaks TLS for us.
    }
    let ours = ask("https://ours.example").await;
    assert_eq!(ours.headers["access-control-allow-origin"], "https://ours.example");
}

#[tokio::test]
async fn a_server_that_others_reach_needs_a_key() {
    let config = fewtag_serve::Config {
        listen: ([0, 0, 0, 0], 0).into(),
        ..fewtag_serve::Config::default()
    };
    let error = fewtag_serve::start(config, crate::tagger()).await.err().unwrap();
    assert!(error.to_string().contains("--api-key"), "{error}");
}

#[tokio::test]
async fn a_slow_body_is_given_up() {
    let server =
        Server::limited(|limits| limits.patience = std::time::Duration::from_millis(50)).await;
    let first = futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from_static(b"{"))]);
    let body = Body::from_stream(first.chain(futures_util::stream::pending()));
    let request = Request::post("/v1/tag").header("host", "localhost");
    let request = request.header("content-type", "application/json");
    let answer = server.send(request.body(body).unwrap()).await;
    assert_eq!(answer.refusal(), code(408, "request_timeout"));
}

#[tokio::test]
async fn too_much_is_refused_with_a_time_to_wait() {
    let none = Server::limited(|limits| limits.concurrency = 0).await;
    let answer = none.get("/v1/domains").await;
    assert_eq!(answer.refusal(), code(429, "too_many_requests"));
    assert!(answer.headers.contains_key("retry-after"));

    let server = Server::limited(|limits| limits.queue = 40).await;
    let room = server.app.queue.reserve(35).unwrap();
    let tag = json!({"support": [example("queen")], "texts": ["play john tonight"]});
    let answer = server.post("/v1/tag", &tag).await;
    assert_eq!(answer.refusal(), code(429, "overloaded"));
    assert!(answer.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    let blank = json!({"support": [example("queen")], "texts": ["", " "]});
    assert_eq!(server.post("/v1/tag", &blank).await.status, 200, "nothing to read needs no room");
    drop(room);
    assert_eq!(server.post("/v1/tag", &tag).await.status, 200);
}

#[tokio::test]
async fn a_database_that_is_gone_is_said_so() {
    let server = Server::new().await;
    server.app.store.close().await;
    let answer = server.get("/v1/domains").await;
    assert_eq!(answer.refusal(), code(503, "storage_unavailable"));
    assert_eq!(server.get("/ready").await.status, 503);
    assert_eq!(server.get("/health").await.status, 200);
}

#[test]
fn every_code_has_a_test_and_a_line_in_the_documentation() {
    let document = serde_json::to_value(fewtag_serve::openapi()).unwrap();
    let codes = document["components"]["schemas"]["Code"]["enum"].as_array().unwrap();
    let tests = [
        include_str!("domains.rs"),
        include_str!("faults.rs"),
        include_str!("refusals.rs"),
        include_str!("security.rs"),
        include_str!("tune.rs"),
        include_str!("tune_faults.rs"),
        include_str!("../../../fewtag-cli/tests/it/serve.rs"), // What needs a process of its own.
    ];
    let page = include_str!("../../../../docs/guide/server.md");
    for code in codes.iter().map(|code| code.as_str().unwrap()) {
        assert!(
            tests.iter().any(|test| test.contains(&format!("\"{code}\""))),
            "no test of {code}"
        );
        assert!(page.contains(&format!("`{code}`")), "{code} is not in docs/guide/server.md");
    }
}
