//! Labels by name: tagged from without an example, declared, switched off, kept and refused.

use axum::http::StatusCode;
use fewtag::emission::{ScorerKind, Similarity};
use fewtag::{Context, ModelSettings, Slot, SupportSet, Tagger};
use fewtag_serve::Database;
use serde_json::{Value, json};
use sqlx::migrate::{Migration, MigrationType, Migrator};

use crate::{Server, example, tagger_of};

const TEXT: &str = "play queen tonight";

/// A model that reads label names.
fn reader() -> Tagger {
    tagger_of(ModelSettings {
        context: Context::Separate,
        scorer: ScorerKind::Prototype,
        similarity: Similarity::Projection,
        label_names: 0.5,
        ..ModelSettings::default()
    })
}

async fn servers() -> Vec<Server> {
    let mut servers = vec![Server::of(reader(), |_| {}).await];
    if let Ok(url) = std::env::var("FEWTAG_TEST_POSTGRES") {
        let postgres =
            |config: &mut fewtag_serve::Config| config.database = Database::Postgres(url);
        servers.push(Server::of(reader(), postgres).await);
    }
    servers
}

fn slots(labels: &[&str]) -> Vec<Slot> {
    labels.iter().map(|label| Slot::new(label).unwrap()).collect()
}

/// What the library answers.
fn expected(support: &SupportSet) -> Value {
    let answer = reader().adapt(support).unwrap().tag_text(TEXT).unwrap();
    json!([serde_json::to_value(answer).unwrap()])
}

#[tokio::test]
async fn names_alone_tag_as_the_library_does_in_either_context() {
    let server = Server::of(reader(), |_| {}).await;
    let support = SupportSet::with_labels(Vec::new(), slots(&["artist", "song_title"])).unwrap();
    let renamed = support.clone().named(slots(&["artist"])[0].clone(), Some("tonight".into()));
    let labels = json!(["artist", "song title", "artist"]);
    let cases = [
        (json!({"labels": labels, "texts": [TEXT]}), &support),
        (json!({"labels": labels, "texts": [TEXT], "context": "paired"}), &support),
        (json!({"labels": labels, "support": [], "texts": [TEXT]}), &support),
        (json!({"batch": [{"labels": labels, "texts": [TEXT]}]}), &support),
        (json!({"labels": labels, "meanings": {"artist": " tonight "}, "texts": [TEXT]}), &renamed),
    ];
    for (request, support) in &cases {
        let answer = server.post("/v1/tag", request).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        assert_eq!(answer.json()["results"], expected(support), "{request}");
    }
    let found = |support| !expected(support)[0]["spans"].as_array().unwrap().is_empty();
    assert!(found(&support) || found(&renamed), "there was something to compare");
    let mut explained = cases[0].0.clone();
    explained["explain"] = true.into();
    assert_eq!(server.post("/v1/tag", &explained).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_domain_keeps_its_labels_and_what_they_mean() {
    for server in servers().await {
        let name = format!("labels-{}", std::process::id());
        let path = format!("/v1/domains/{name}");
        let tag = async || {
            let answer = server.post(&format!("{path}/tag"), &json!({"texts": [TEXT]})).await;
            assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
            answer.json()["results"].clone()
        };
        server.post("/v1/domains", &json!({"name": name, "labels": ["time", "song title"]})).await;
        let by_name = |labels: &[&str]| SupportSet::with_labels(Vec::new(), slots(labels)).unwrap();
        assert_eq!(tag().await, expected(&by_name(&["time", "song_title"])));

        // A label whose name is off, and that has no example, is not looked for.
        let off = json!({"labels": ["time", "song title"], "meanings": {"time": null}});
        let put = server.json("PUT", &format!("{path}/labels"), Some("\"1\""), &off).await;
        assert_eq!((put.status, put.etag()), (StatusCode::OK, "\"2\""));
        assert_eq!(tag().await, expected(&by_name(&["song_title"])));
        let stale = server.json("PUT", &format!("{path}/labels"), Some("\"1\""), &off).await;
        assert_eq!(stale.refusal(), (412, "version_conflict".into()));

        // With an example it is, by the example alone.
        server.post(&format!("{path}/examples"), &json!({"examples": [example("john")]})).await;
        let sentences = SupportSet::parse("play [john](artist) [tonight](time)").unwrap();
        let sentences = sentences.sentences().to_vec();
        let both = SupportSet::with_labels(sentences, slots(&["song_title"])).unwrap();
        let both = both.named(slots(&["time"])[0].clone(), None);
        assert_eq!(tag().await, expected(&both));

        let domain = server.get(&path).await.json();
        assert_eq!(domain["labels"], json!(["artist", "song_title", "time"]));
        assert_eq!(domain["declared"], json!(["time", "song_title"]));
        assert_eq!(domain["meanings"], json!({"time": null}));

        // Replaced without a word about labels, they stay; a saved domain takes them along.
        let examples = json!({"examples": [example("mary")]});
        server.json("PUT", &path, Some("*"), &examples).await;
        assert_eq!(server.get(&path).await.json()["declared"], json!(["time", "song_title"]));
        let answers = tag().await;
        let file = server.get(&format!("{path}/export?format=fewtag")).await;
        let everything = json!({"examples": [], "labels": [], "meanings": {}});
        server.json("PUT", &path, Some("*"), &everything).await;
        let nothing = server.post(&format!("{path}/tag"), &json!({"texts": [TEXT]})).await;
        assert_eq!(nothing.refusal(), (422, "nothing_to_learn".into()));
        let import = format!("{path}/import?mode=replace");
        assert_eq!(server.ask("POST", &import, &[], &file.bytes).await.status, StatusCode::OK);
        assert_eq!(tag().await, answers);
        server.ask("DELETE", &path, &[], "").await;
    }
}

#[tokio::test]
async fn labels_that_make_no_sense_are_refused_with_their_place() {
    let server = Server::of(reader(), |config| config.limits.support = 3).await;
    let refuse = async |body: Value| {
        let answer = server.post("/v1/tag", &body).await;
        let place = answer.json()["error"]["where"].as_str().unwrap_or_default().to_owned();
        (answer.refusal().1, place)
    };
    let with = |labels: Value| json!({"labels": labels, "texts": [TEXT]});
    let expect = |code: &str, place: &str| (code.to_owned(), place.to_owned());
    assert_eq!(refuse(with(json!(["a", " "]))).await, expect("invalid_request", "labels[1]"));
    assert_eq!(refuse(with(json!(["a\u{0}"]))).await, expect("invalid_request", "labels[0]"));
    assert_eq!(refuse(with(json!(["a".repeat(201)]))).await, expect("text_too_long", "labels[0]"));
    let many = json!(["a", "b", "c", "d"]);
    assert_eq!(refuse(with(many.clone())).await, expect("support_too_large", "labels"));
    assert_eq!(refuse(with(json!([]))).await, expect("nothing_to_learn", "support"));
    let unknown = json!({"labels": ["a"], "meanings": {"b": "city"}, "texts": [TEXT]});
    assert_eq!(refuse(unknown).await, expect("unknown_label", "meanings"));
    let mute = json!({"labels": ["a"], "meanings": {"a": null}, "texts": [TEXT]});
    assert_eq!(refuse(mute).await.0, "nothing_to_learn");
    let batch = json!({"batch": [{"labels": ["a", ""], "texts": [TEXT]}]});
    assert_eq!(refuse(batch).await, expect("invalid_request", "batch[0].labels[1]"));
    let both = json!({"labels": ["a"], "batch": []});
    assert_eq!(refuse(both).await.0, "invalid_request");

    let made = server.post("/v1/domains", &json!({"name": "a", "labels": many})).await;
    assert_eq!(made.refusal(), (422, "support_too_large".into()));
    server.post("/v1/domains", &json!({"name": "a", "labels": ["city"]})).await;
    let unknown = json!({"labels": ["city"], "meanings": {"town": "city"}});
    let put = server.json("PUT", "/v1/domains/a/labels", None, &unknown).await;
    assert_eq!(put.refusal(), (422, "unknown_label".into()));
    assert_eq!(server.get("/v1/domains/a").await.json()["version"], 1);
}

#[tokio::test]
async fn a_model_that_reads_no_names_says_so_or_waits_for_examples() {
    let server = Server::new().await;
    let answer = server.post("/v1/tag", &json!({"labels": ["artist"], "texts": [TEXT]})).await;
    assert_eq!(answer.refusal(), (422, "nothing_to_learn".into()));
    assert!(answer.text.contains("reads no label names"), "{}", answer.text);
    let made = json!({"name": "a", "labels": ["mood"], "examples": [example("queen")]});
    server.post("/v1/domains", &made).await;
    let answer = server.post("/v1/domains/a/tag", &json!({"texts": [TEXT]})).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
}

#[tokio::test]
async fn a_database_of_the_version_before_is_taken_over() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("old.sqlite");
    sqlx::any::install_default_drivers();
    let url = format!("sqlite://{}?mode=rwc", file.display());
    let pool = sqlx::AnyPool::connect(&url).await.unwrap();
    let sql = include_str!("../../migrations/1_domains.sql");
    let first = Migration::new(1, "domains".into(), MigrationType::Simple, sql.into(), false);
    let old = Migrator { migrations: vec![first].into(), ..Migrator::DEFAULT };
    old.run(&pool).await.unwrap();
    for statement in [
        "INSERT INTO domains VALUES ('music', 4, 2, 1, '[\"artist\"]', 0, 0)",
        "INSERT INTO examples VALUES ('music', 1, 'play queen', '[{\"start\":5,\"end\":10,\"label\":\"artist\"}]', '')",
    ] {
        sqlx::query(statement).execute(&pool).await.unwrap();
    }
    pool.close().await;
    let server = Server::of(reader(), |config| config.database = Database::Sqlite(file)).await;
    let domain = server.get("/v1/domains/music").await.json();
    assert_eq!((&domain["declared"], &domain["meanings"]), (&json!([]), &json!({})));
    let tagged = server.post("/v1/domains/music/tag", &json!({"texts": [TEXT]})).await;
    assert_eq!((tagged.status, tagged.etag()), (StatusCode::OK, "\"4\""));
    let labels = json!({"labels": ["mood"]});
    let put = server.json("PUT", "/v1/domains/music/labels", None, &labels).await;
    assert_eq!(put.etag(), "\"5\"");
}
