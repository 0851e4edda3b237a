//! The server, asked as its clients ask, with a tiny random model.
//!
//! Everything runs on SQLite; if `FEWTAG_TEST_POSTGRES` names a PostgreSQL server, the API loop runs there as well
//! (`scripts/with_postgres.sh` starts one).

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod answers;
mod domains;
mod faults;
mod labels;
mod refusals;
mod security;
mod tune;
mod tune_faults;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use fewtag::encoder::Storage;
use fewtag::{Context, ModelSettings, Tagger, model};
use fewtag_serve::{App, Config, Database, Limits, router, start};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tower::ServiceExt;

/// A server with a database of its own.
struct Server {
    router: Router,
    app: App,
    _dir: TempDir,
}

/// What was answered.
struct Answered {
    status: StatusCode,
    headers: HeaderMap,
    text: String,
    bytes: Vec<u8>,
}

impl Answered {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }

    fn etag(&self) -> &str {
        self.headers["etag"].to_str().unwrap()
    }

    /// Status and code of a refusal.
    fn refusal(&self) -> (u16, String) {
        let body = self.json();
        assert!(body["error"]["message"].is_string(), "{body}");
        (self.status.as_u16(), body["error"]["code"].as_str().unwrap().to_owned())
    }
}

fn encoder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder")
}

fn tagger() -> Tagger {
    tagger_of(ModelSettings { context: Context::Separate, ..ModelSettings::default() })
}

fn tagger_of(settings: ModelSettings) -> Tagger {
    drawn(settings, 7)
}

/// A model with weights of this seed.
fn drawn(settings: ModelSettings, seed: u64) -> Tagger {
    let dir = tempfile::tempdir().unwrap();
    // From files, so that it has the checksum that saved domains name.
    model::save(
        &model::from_encoder(&encoder(), settings, seed).unwrap(),
        dir.path(),
        Storage::F32,
    )
    .unwrap();
    model::load(dir.path()).unwrap()
}

impl Server {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Config)) -> Self {
        Self::of(tagger(), change).await
    }

    async fn of(tagger: Tagger, change: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = Database::Sqlite(dir.path().join("domains.sqlite"));
        let mut config = Config { database, ..Config::default() };
        change(&mut config);
        let app = start(config, tagger).await.unwrap();
        Self { router: router(Arc::clone(&app)), app, _dir: dir }
    }

    async fn limited(change: impl FnOnce(&mut Limits)) -> Self {
        Self::with(|config| change(&mut config.limits)).await
    }

    async fn send(&self, request: Request<Body>) -> Answered {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Answered { status, headers, text, bytes: bytes.to_vec() }
    }

    async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> Answered {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "host") {
            request = request.header("host", "localhost");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::from(body.as_ref().to_vec())).unwrap()).await
    }

    async fn get(&self, path: &str) -> Answered {
        self.ask("GET", path, &[], "").await
    }

    async fn post(&self, path: &str, body: &Value) -> Answered {
        self.json("POST", path, None, body).await
    }

    /// Sends JSON, perhaps for one version only.
    async fn json(
        &self,
        method: &str,
        path: &str,
        version: Option<&str>,
        body: &Value,
    ) -> Answered {
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(version.map(|version| ("if-match", version)));
        self.ask(method, path, &headers, &body.to_string()).await
    }
}

/// "play QUEEN tonight": an artist and a time.
fn example(artist: &str) -> Value {
    let end = 5 + artist.chars().count();
    json!({
        "text": format!("play {artist} tonight"),
        "spans": [{"start": 5, "end": end, "label": "artist"}, {"start": end + 1, "end": end + 8, "label": "time"}],
    })
}
