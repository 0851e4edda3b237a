//! What clients send: the checks of a body alone, which is fast, and the whole server behind its router.

use std::path::Path;
use std::sync::Mutex;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use fewtag::{Context, ModelSettings, model};
use fewtag_serve::api::{domains, label_studio};
use fewtag_serve::request::{self, DomainTagRequest, NewExample, TagRequest};
use fewtag_serve::{Config, Database, Limits, router, start};
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

use crate::Target;

/// `bodies` or `server`.
pub fn target(name: &str) -> Option<Target> {
    match name {
        "bodies" => Some(Box::new(bodies)),
        "server" => Some(Box::new(served())),
        _ => None,
    }
}

/// Reads `bytes` as every body there is.
fn bodies(bytes: &[u8]) {
    let limits = Limits::default();
    let check = |examples: &[NewExample]| {
        if let Ok(sentences) = request::sentences(examples, &limits, "examples") {
            for sentence in &sentences {
                let draft = request::draft(sentence, None);
                request::label(&draft.text, &draft.spans).expect("what was taken is taken again");
            }
        }
    };
    if let Some(Ok((_, groups, _))) = read::<TagRequest>(bytes).map(TagRequest::parts) {
        for group in groups {
            let _ = request::digest(&group);
            check(&group.support);
            let _ = request::check_texts(group.texts.iter().map(String::as_str), &limits);
        }
    }
    let _ = read::<DomainTagRequest>(bytes).map(DomainTagRequest::parts);
    if let Some(domain) = read::<domains::NewDomain>(bytes) {
        let _ = request::check_name(&domain.name);
        check(&domain.examples);
    }
    if let Some(examples) = read::<domains::Examples>(bytes) {
        check(&examples.examples);
    }
    if let Some(example) = read::<NewExample>(bytes) {
        check(&[example]);
    }
    let _ = read::<label_studio::Predict>(bytes);
    let _ = read::<label_studio::Setup>(bytes);
    let _ = read::<label_studio::Event>(bytes);
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(bytes).ok()
}

/// Where a body may be sent; the first byte of an input chooses.
const ROUTES: [(&str, &str); 12] = [
    ("POST", "/v1/tag"),
    ("POST", "/v1/domains"),
    ("PUT", "/v1/domains/fuzz"),
    ("POST", "/v1/domains/fuzz/examples"),
    ("PUT", "/v1/domains/fuzz/examples/1"),
    ("POST", "/v1/domains/fuzz/tag"),
    ("POST", "/v1/domains/fuzz/import"),
    ("POST", "/v1/domains/fuzz/import?mode=replace&repair=true"),
    ("POST", "/predict"),
    ("POST", "/setup"),
    ("POST", "/webhook"),
    ("GET", "/v1/domains/fuzz/export?format=conll"),
];

/// A server whose domains are forgotten now and then, so that memory and disk stay small.
fn served() -> impl Fn(&[u8]) {
    const REQUESTS: usize = 2_000;
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let state = Mutex::new((fresh(&runtime), 0));
    move |bytes| {
        let Some((&first, body)) = bytes.split_first() else { return };
        let mut state = state.lock().expect("a panic ends the process");
        if state.1 == REQUESTS {
            *state = (fresh(&runtime), 0);
        }
        state.1 += 1;
        let (method, path) = ROUTES[usize::from(first) % ROUTES.len()];
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "127.0.0.1:8080")
            .header("content-type", "application/json")
            .body(Body::from(body.to_vec()))
            .expect("a valid request");
        runtime.block_on(async {
            let answer = state.0.1.clone().oneshot(request).await.expect("a router always answers");
            assert_ne!(answer.status(), 500, "{method} {path}");
            let _ = answer.into_body().collect().await;
        });
    }
}

fn fresh(runtime: &Runtime) -> (tempfile::TempDir, Router) {
    let encoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/tiny-encoder");
    let settings = ModelSettings { context: Context::Separate, ..ModelSettings::default() };
    let tagger = model::from_encoder(&encoder, settings, 7).expect("a file of the repository");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let database = Database::Sqlite(dir.path().join("domains.sqlite"));
    let app = runtime.block_on(start(Config { database, ..Config::default() }, tagger));
    (dir, router(app.expect("a server that starts")))
}
