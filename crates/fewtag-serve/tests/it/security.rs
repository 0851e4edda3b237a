//! What others may not do: call under a foreign name, fill the memory, or have work done that nobody counts.

use axum::body::Body;
use axum::http::Request;
use fewtag_serve::{Keys, Scope};
use serde_json::{Value, json};

use crate::{Answered, Server, example};

fn code(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

async fn asked_as(server: &Server, host: &str) -> Answered {
    server.ask("GET", "/v1/domains", &[("host", host)], "").await
}

#[tokio::test]
async fn a_page_behind_a_rebound_name_reads_and_changes_nothing() {
    let server = Server::new().await;
    server.post("/v1/domains", &json!({"name": "secret"})).await;
    for (method, path) in [
        ("GET", "/"),
        ("GET", "/v1/domains"),
        ("GET", "/metrics"),
        ("GET", "/health"),
        ("GET", "/ready"),
        ("GET", "/docs/"),
        ("GET", "/openapi.json"),
        ("GET", "/nowhere"),
        ("POST", "/v1/domains"),
        ("POST", "/predict"),
        ("POST", "/webhook"),
        ("DELETE", "/v1/domains/secret"),
        ("OPTIONS", "/v1/domains"),
        ("OPTIONS", "*"),
    ] {
        let headers = [
            ("host", "evil.example:8080"),
            ("origin", "http://evil.example:8080"),
            ("content-type", "application/json"),
        ];
        let answer = server.ask(method, path, &headers, r#"{"name": "theirs"}"#).await;
        assert_eq!(answer.refusal(), code(421, "host_not_allowed"), "{method} {path}");
    }
    let names = server.get("/v1/domains").await.json();
    assert_eq!(names["domains"].as_array().unwrap().len(), 1, "{names}");
}

#[tokio::test]
async fn names_of_the_server_are_known_in_whatever_way_they_are_written() {
    let server = Server::new().await;
    for ours in [
        "localhost",
        "LOCALHOST:8080",
        "localhost.",
        "localhost.:9000",
        "localhost:",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.8.9.10",
        "[::1]",
        "[::1]:8080",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]:8080",
    ] {
        assert_eq!(asked_as(&server, ours).await.status, 200, "{ours}");
    }
    for foreign in [
        "evil.example",
        "localhost.evil.example",
        "evil.localhost",
        "localhost.localdomain",
        "127.0.0.1.evil.example",
        "2130706433",
        "0x7f.1",
        "192.168.0.7",
        "0.0.0.0:8080",
        "[::]:8080",
        "[2001:db8::1]",
    ] {
        let answer = asked_as(&server, foreign).await;
        assert_eq!(answer.refusal(), code(421, "host_not_allowed"), "{foreign}");
        let message = answer.json()["error"]["message"].to_string();
        assert!(message.contains("--public-host"), "{message}");
    }
    for senseless in [
        "",
        ":8080",
        ".",
        "localhost..",
        "localhost:http",
        "localhost:80800",
        "localhost:80:80",
        "localhost:+80",
        "me@localhost",
        "localhost/",
        "localhost, evil.example",
        "http://localhost",
        "::1",
        "[::1",
        "[::1]x",
        "[localhost]",
        "*",
    ] {
        let answer = asked_as(&server, senseless).await;
        assert_eq!(answer.refusal(), code(400, "invalid_host"), "{senseless}");
    }
}

#[tokio::test]
async fn a_server_answers_to_its_address_and_its_public_names() {
    let keys = || {
        let mut keys = Keys::default();
        keys.add("a key that is long", Scope::Full).unwrap();
        keys
    };
    let on = async |listen: [u8; 4]| {
        Server::with(|config| {
            config.listen = (listen, 8080).into();
            config.keys = keys();
            config.public_hosts = vec!["Tags.Example.org".parse().unwrap()];
        })
        .await
    };
    // 401 is an answer: the name was not in the way.
    for (listen, host, status) in [
        ([10, 0, 0, 7], "10.0.0.7:8080", 401),
        ([10, 0, 0, 7], "10.0.0.8:8080", 421),
        ([10, 0, 0, 7], "localhost", 401),
        ([10, 0, 0, 7], "tags.example.org", 401),
        ([10, 0, 0, 7], "tags.example.org.:443", 401),
        ([10, 0, 0, 7], "other.example.org", 421),
        ([0, 0, 0, 0], "10.0.0.8:8080", 401),
        ([0, 0, 0, 0], "[2001:db8::1]:8080", 401),
        ([0, 0, 0, 0], "other.example.org", 421),
    ] {
        let answer = asked_as(&on(listen).await, host).await;
        assert_eq!(answer.status, status, "{listen:?} {host}");
    }
    let server = on([10, 0, 0, 7]).await;
    for (origin, status) in
        [("https://tags.example.org", 401), ("https://tags.example.org:444", 403)]
    {
        let headers = [("host", "tags.example.org:443"), ("origin", origin)];
        let answer = server.ask("GET", "/v1/domains", &headers, "").await;
        assert_eq!(answer.status, status, "{origin}");
    }
}

#[tokio::test]
async fn a_page_that_may_call_is_told_so_before_and_others_are_not() {
    let server =
        Server::with(|config| config.origins.push("https://ours.example:443".parse().unwrap()))
            .await;
    let preflight = async |origin: &str| {
        let headers = [
            ("origin", origin),
            ("access-control-request-method", "PUT"),
            ("access-control-request-headers", "x-api-key"),
            ("access-control-request-private-network", "true"),
        ];
        server.ask("OPTIONS", "/v1/domains/a", &headers, "").await
    };
    let ours = preflight("https://ours.example").await;
    assert_eq!(ours.status, 200);
    assert_eq!(ours.headers["access-control-allow-origin"], "https://ours.example");
    assert!(ours.headers["access-control-allow-methods"].to_str().unwrap().contains("PUT"));
    assert!(!ours.headers.contains_key("access-control-allow-private-network"));
    let others = preflight("https://evil.example").await;
    assert_eq!(others.refusal(), code(403, "origin_not_allowed"));
    assert!(!others.headers.contains_key("access-control-allow-origin"));
    let upgrade = [
        ("origin", "https://evil.example"),
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    for path in ["/", "/v1/domains", "/metrics"] {
        let answer = server.ask("GET", path, &upgrade, "").await;
        assert_eq!(answer.refusal(), code(403, "origin_not_allowed"), "{path}");
        assert_eq!(
            server.ask("GET", path, &upgrade[1..], "").await.status,
            200,
            "nothing is upgraded"
        );
    }
}

#[tokio::test]
async fn each_route_wants_the_key_that_the_document_says() {
    let server = Server::with(|config| {
        config.keys.add("a key for everything", Scope::Full).unwrap();
        config.keys.add("a key for reading", Scope::Read).unwrap();
    })
    .await;
    let document = server.get("/openapi.json").await.json();
    let mut n_operations = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            n_operations += 1;
            let place = format!("{method} {path}");
            // By hand, because it is what the table of routes must agree with.
            let wanted = match place.as_str() {
                "get /health" | "get /ready" => json!([{}]),
                "post /v1/tag"
                | "post /v1/domains/{name}/tag"
                | "post /predict"
                | "post /setup" => {
                    json!([{"key": ["read"]}, {}])
                }
                _ if method == "get" => json!([{"key": ["read"]}, {}]),
                _ => json!([{"key": ["full"]}, {}]),
            };
            assert_eq!(operation["security"], wanted, "{place}");
            let ask = async |key: &str| {
                let path = path.replace("{name}", "a").replace("{id}", "1");
                let headers = [("x-api-key", key), ("content-type", "application/json")];
                server.ask(&method.to_uppercase(), &path, &headers, "{").await.status.as_u16()
            };
            let scope = wanted[0]["key"][0].as_str();
            assert_eq!(ask("").await == 401, scope.is_some(), "{place} without a key");
            assert_eq!(ask("a key for reading").await == 403, scope == Some("full"), "{place}");
            assert!(![401, 403].contains(&ask("a key for everything").await), "{place}");
        }
    }
    assert_eq!(n_operations, 24);
    for (method, path) in
        [("GET", "/nowhere"), ("POST", "/v1/nowhere/tag"), ("PATCH", "/v1/domains")]
    {
        let status = server.ask(method, path, &[], "").await.status.as_u16();
        assert!([404, 405].contains(&status), "{method} {path}: {status}");
    }
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
