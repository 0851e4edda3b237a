//! Domains from their making to their end, in each database.

use axum::http::StatusCode;
use fewtag_serve::Database;
use serde_json::{Value, json};

use crate::{Server, example};

/// A name that no other run has used: the PostgreSQL database outlives a test.
fn name(test: &str) -> String {
    format!("{test}-{}", std::process::id())
}

async fn servers() -> Vec<Server> {
    let mut servers = vec![Server::new().await];
    if let Ok(url) = std::env::var("FEWTAG_TEST_POSTGRES") {
        servers.push(Server::with(|config| config.database = Database::Postgres(url)).await);
    }
    servers
}

#[tokio::test]
async fn a_domain_is_made_edited_tagged_with_and_deleted() {
    for server in servers().await {
        let name = name("loop");
        let path = format!("/v1/domains/{name}");
        let made = json!({"name": name, "examples": [example("queen")]});
        let made = server.post("/v1/domains", &made).await;
        assert_eq!((made.status, made.etag()), (StatusCode::CREATED, "\"1\""));

        let more = json!({"examples": [example("john"), example("🎷 mary")]});
        let added = server.post(&format!("{path}/examples"), &more).await.json();
        assert_eq!((&added["version"], &added["ids"]), (&2.into(), &json!(["2", "3"])));

        let changed = format!("{path}/examples/2");
        assert_eq!(server.json("PUT", &changed, None, &example("anna")).await.etag(), "\"3\"");
        assert_eq!(
            server.ask("DELETE", &format!("{path}/examples/1"), &[], "").await.etag(),
            "\"4\""
        );
        let domain = server.get(&path).await.json();
        assert_eq!(domain["labels"], json!(["artist", "time"]));
        let texts: Vec<&Value> =
            domain["examples"].as_array().unwrap().iter().map(|it| &it["text"]).collect();
        assert_eq!(texts, ["play anna tonight", "play 🎷 mary tonight"]);
        let list = server.get("/v1/domains").await.json();
        let info =
            list["domains"].as_array().unwrap().iter().find(|it| it["name"] == name.as_str());
        assert_eq!(info.unwrap()["examples"], 2);

        let tagged = server.post(&format!("{path}/tag"), &json!({"texts": ["play queen"]})).await;
        assert_eq!((tagged.etag(), &tagged.json()["version"]), ("\"4\"", &4.into()));
        let report = server.get(&format!("{path}/check")).await;
        assert_eq!(report.json()["n_sentences"], 2);

        assert_eq!(server.ask("DELETE", &path, &[], "").await.status, StatusCode::NO_CONTENT);
        assert_eq!(server.get(&path).await.status, StatusCode::NOT_FOUND);
        // Versions and ids go on where they were: what a client remembers of the old domain fits no state of the new.
        let again = json!({"name": name, "examples": [example("a")]});
        let again = server.post("/v1/domains", &again).await.json();
        assert_eq!((&again["version"], &again["ids"]), (&6.into(), &json!(["4"])));
        server.ask("DELETE", &path, &[], "").await;
    }
}

#[tokio::test]
async fn two_editors_do_not_overwrite_each_other() {
    for server in servers().await {
        let name = name("editors");
        let path = format!("/v1/domains/{name}");
        server.post("/v1/domains", &json!({"name": name, "examples": [example("queen")]})).await;
        let put = json!({"examples": [example("john")]});
        let no_version = server.json("PUT", &path, None, &put).await;
        assert_eq!(no_version.refusal(), (428, "version_required".into()));
        assert_eq!(server.json("PUT", &path, Some("\"1\""), &put).await.etag(), "\"2\"");
        for stale in ["\"1\"", "W/\"2\"", "2", "\"x\", \"7\""] {
            for (method, path) in [
                ("PUT", path.clone()),
                ("POST", format!("{path}/examples")),
                ("DELETE", path.clone()),
            ] {
                let answer = server.json(method, &path, Some(stale), &put).await;
                assert_eq!(answer.refusal(), (412, "version_conflict".into()), "{method} {stale}");
            }
        }
        assert_eq!(server.json("PUT", &path, Some("\"1\", \"2\""), &put).await.etag(), "\"3\"");
        assert_eq!(server.json("PUT", &path, Some("*"), &put).await.etag(), "\"4\"");
        server.ask("DELETE", &path, &[], "").await;
    }
}

#[tokio::test]
async fn changes_at_the_same_time_are_all_kept() {
    for server in servers().await {
        let name = name("many");
        let path = format!("/v1/domains/{name}");
        server.post("/v1/domains", &json!({"name": name})).await;
        let add = async |artist: String| {
            let body = json!({"examples": [example(&artist)]});
            server.post(&format!("{path}/examples"), &body).await.status
        };
        let added = futures_util::future::join_all((0..20).map(|n| add(format!("queen{n}"))));
        assert!(added.await.iter().all(|status| *status == StatusCode::OK));
        let domain = server.get(&path).await.json();
        assert_eq!(domain["examples"].as_array().unwrap().len(), 20);
        assert_eq!(domain["version"], 21);
        server.ask("DELETE", &path, &[], "").await;
    }
}

#[tokio::test]
async fn a_change_is_used_at_once_and_a_second_server_sees_it() {
    for server in servers().await {
        let name = name("replicas");
        let database = server.app.config.database.clone();
        let other = Server::with(|config| config.database = database).await;
        let path = format!("/v1/domains/{name}");
        server.post("/v1/domains", &json!({"name": name, "examples": [example("queen")]})).await;
        let tag = json!({"texts": ["play queen"], "explain": true});
        let before = other.post(&format!("{path}/tag"), &tag).await.json();
        assert_eq!(before["version"], 1);
        server.post(&format!("{path}/examples"), &json!({"examples": [example("john")]})).await;
        for server in [&server, &other] {
            let after = server.post(&format!("{path}/tag"), &tag).await.json();
            assert_eq!(after["version"], 2);
            assert_ne!(after["results"], before["results"]);
        }
        server.ask("DELETE", &path, &[], "").await;
    }
}

#[tokio::test]
async fn a_domain_survives_every_format_that_can_hold_it() {
    let server = Server::new().await;
    let examples = json!([example("queen"), example("new york")]);
    server.post("/v1/domains", &json!({"name": "a", "examples": examples})).await;
    let before = server.get("/v1/domains/a").await.json()["examples"].clone();
    for format in fewtag::data::Format::ALL {
        if format == fewtag::data::Format::Episodes {
            continue; // An episode file divides sentences into support and queries, which a domain does not.
        }
        let file = server.get(&format!("/v1/domains/a/export?format={format}")).await;
        assert_eq!(file.status, 200, "{format}: {}", file.text);
        for named in ["auto", format.name()] {
            let path = format!("/v1/domains/a/import?format={named}&mode=replace");
            let read = server.ask("POST", &path, &[], &file.text).await;
            assert_eq!(read.status, 200, "{format} as {named}: {}", read.text);
            let after = server.get("/v1/domains/a").await.json()["examples"].clone();
            for (before, after) in before.as_array().unwrap().iter().zip(after.as_array().unwrap())
            {
                assert_eq!((&before["text"], &before["spans"]), (&after["text"], &after["spans"]));
            }
        }
    }
    server.ask("POST", "/v1/domains/a/import?mode=append", &[], "play [bach](artist)").await;
    assert_eq!(server.get("/v1/domains/a").await.json()["examples"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_domain_travels_as_a_saved_domain() {
    let server = Server::new().await;
    let examples = json!([example("queen"), example("new york")]);
    server.post("/v1/domains", &json!({"name": "a", "examples": examples})).await;
    server.post("/v1/domains", &json!({"name": "b"})).await;
    let file = server.get("/v1/domains/a/export?format=fewtag").await;
    assert_eq!(file.headers["content-disposition"], "attachment; filename=\"a.fewtag\"");
    let saved = fewtag::DomainFile::from_bytes(&file.bytes, std::path::Path::new("a")).unwrap();
    assert_eq!(Some(saved.model()), server.app.tagger.checksum());
    for named in ["auto", "fewtag"] {
        let path = format!("/v1/domains/b/import?format={named}&mode=replace");
        let read = server.ask("POST", &path, &[], &file.bytes).await;
        assert_eq!(read.status, 200, "{}", read.text);
        let texts = |domain: &Value| {
            let all = domain["examples"].as_array().unwrap().iter();
            all.map(|one| (one["text"].clone(), one["spans"].clone())).collect::<Vec<_>>()
        };
        let [a, b] = ["a", "b"].map(|name| format!("/v1/domains/{name}"));
        assert_eq!(texts(&server.get(&b).await.json()), texts(&server.get(&a).await.json()));
    }
    let half = &file.bytes[..file.bytes.len() / 2];
    let refused = server.ask("POST", "/v1/domains/b/import", &[], half).await;
    assert_eq!(
        (refused.status.as_u16(), &refused.json()["error"]["code"]),
        (422, &json!("invalid_data"))
    );
    server.post("/v1/domains", &json!({"name": "empty"})).await;
    assert_eq!(server.get("/v1/domains/empty/export?format=fewtag").await.status, 422);
}

#[tokio::test]
async fn an_annotation_of_label_studio_becomes_an_example() {
    let server = Server::new().await;
    let event = |action: &str, end: usize| {
        json!({
            "action": action, "project": {"id": 3}, "task": {"id": 9, "data": {"text": "play new york"}},
            "annotation": {"id": 5, "result": [{"type": "labels", "value": {"start": 5, "end": end, "labels": ["artist"]}}]},
        })
    };
    let predict = json!({"tasks": [{"id": 1, "data": {"body": "play queen"}}], "project": "3.17",
        "label_config": "<View><Labels name=\"ner\" toName=\"doc\"/><Text name=\"doc\" value=\"$body\"/></View>"});
    let none = server.post("/predict", &predict).await.json();
    assert_eq!(none["results"][0]["result"], json!([]));
    assert_eq!(server.post("/setup", &json!({"project": "3.17", "schema": ""})).await.status, 200);
    for (action, end, wanted) in
        [("ANNOTATION_CREATED", 8, 8), ("ANNOTATION_UPDATED", 13, 13), ("TASKS_CREATED", 8, 13)]
    {
        assert_eq!(server.post("/webhook", &event(action, end)).await.status, 200);
        let domain = server.get("/v1/domains/label-studio-3").await.json();
        let examples = domain["examples"].as_array().unwrap();
        assert_eq!((examples.len(), &examples[0]["spans"][0]["end"]), (1, &wanted.into()));
    }
    let answer = server.post("/predict", &predict).await.json();
    for region in answer["results"][0]["result"].as_array().unwrap() {
        assert_eq!((&region["from_name"], &region["to_name"]), (&"ner".into(), &"doc".into()));
    }
    let gone =
        json!({"action": "ANNOTATIONS_DELETED", "project": {"id": 3}, "annotations": [{"id": 5}]});
    assert_eq!(server.post("/webhook", &gone).await.status, 200);
    let domain = server.get("/v1/domains/label-studio-3").await.json();
    assert_eq!(domain["examples"], json!([]));
}

#[tokio::test]
async fn label_studio_and_we_mean_the_same_characters_beside_emoji() {
    let server = Server::new().await;
    let text = "🎷 play queen";
    for (id, start) in [(1, 7), (2, 8)] {
        // By characters, as Label Studio counts now, and by UTF-16 units, as it did.
        let value =
            json!({"start": start, "end": start + 5, "text": "queen", "labels": ["artist"]});
        let event = json!({
            "action": "ANNOTATION_CREATED", "task": {"data": {"body": text, "note": ""}},
            "project": {"id": 4, "label_config": "<Text name=\"t\" value=\"$body\"/>"},
            "annotation": {"id": id, "result": [{"value": value}, {"value": {"choices": ["good"]}}]},
        });
        assert_eq!(server.post("/webhook", &event).await.status, 200);
    }
    let domain = server.get("/v1/domains/label-studio-4").await.json();
    for example in domain["examples"].as_array().unwrap() {
        assert_eq!(example["spans"], json!([{"start": 7, "end": 12, "label": "artist"}]));
    }
    let predict = json!({"tasks": [{"data": {"text": text}}], "project": "4"});
    let answer = server.post("/predict", &predict).await.json();
    let regions = answer["results"][0]["result"].as_array().unwrap();
    assert!(!regions.is_empty());
    for region in regions {
        let at = |key: &str| region["value"][key].as_u64().unwrap() as usize;
        let quote: String = text.chars().skip(at("start")).take(at("end") - at("start")).collect();
        assert_eq!(region["value"]["text"], quote.as_str());
    }
}

#[tokio::test]
async fn the_committed_document_is_the_generated_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/openapi.json");
    let generated = fewtag_serve::openapi().to_pretty_json().unwrap() + "\n";
    if std::env::var_os("FEWTAG_WRITE_OPENAPI").is_some() {
        std::fs::write(path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(path).unwrap();
    assert_eq!(
        committed, generated,
        "FEWTAG_WRITE_OPENAPI=1 cargo test -p fewtag-serve writes it anew"
    );
}

/// Needs the script that started PostgreSQL to stop and start it again; the other tests on it must not run meanwhile.
#[tokio::test]
#[ignore = "stops the database: scripts/with_postgres.sh cargo test -p fewtag-serve -- --ignored"]
async fn while_postgresql_is_away_requests_are_told_so_and_go_well_again_afterwards() {
    let url = std::env::var("FEWTAG_TEST_POSTGRES").unwrap();
    let ctl = std::env::var("FEWTAG_TEST_POSTGRES_CTL").unwrap();
    let control = |what: &str| {
        assert!(std::process::Command::new(&ctl).arg(what).status().unwrap().success());
    };
    let server = Server::with(|config| config.database = Database::Postgres(url)).await;
    let name = name("outage");
    let made = json!({"name": name, "examples": [example("queen")]});
    assert_eq!(server.post("/v1/domains", &made).await.status, StatusCode::CREATED);
    let path = format!("/v1/domains/{name}");
    let tag = json!({"texts": ["play queen"]});
    let tag_path = format!("{path}/tag");
    let load = || futures_util::future::join_all((0..8).map(|_| server.post(&tag_path, &tag)));
    control("stop");
    for answer in load().await {
        assert_eq!(answer.refusal(), (503, "storage_unavailable".into()));
    }
    let stateless = json!({"support": [example("queen")], "texts": ["play john"]});
    assert_eq!(server.post("/v1/tag", &stateless).await.status, StatusCode::OK);
    control("start");
    for answer in load().await {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    }
    assert_eq!(server.get(&path).await.json()["version"], 1);
}
