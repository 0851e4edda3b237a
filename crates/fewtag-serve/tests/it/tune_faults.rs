//! What can come between a tuning and its end: a change of mind, of the examples, of the server; and what is refused.

use std::time::Duration;

use axum::http::StatusCode;
use fewtag::{Context, DomainFile, ModelSettings};
use fewtag_serve::store::{Ended, TuningState};
use fewtag_serve::{Keys, Scope};
use serde_json::{Value, json};

use crate::tune::{
    QUICK, answers, beside, domain, examples, is_over, model, servers, settings, start, support,
    tuning, until,
};
use crate::{Server, drawn};

/// Far longer than a test waits.
const LONG: f64 = 60.0;

fn is_running(status: &Value) -> bool {
    status["state"] == "running"
}

#[tokio::test]
async fn a_cancelled_tuning_leaves_the_domain_as_it_was_and_makes_room() {
    for (server, tagger) in servers(11).await {
        server.app.tuner.stop().await;
        let server = beside(&server, &tagger, |config| config.limits.tunings = 1).await;
        let paths = [
            domain(&server, "first").await,
            domain(&server, "second").await,
            domain(&server, "third").await,
        ];
        let before = answers(&server, &paths[0]).await;
        start(&server, &paths[0], LONG).await;
        until(&server, &paths[0], is_running).await;
        let tune = |path: &str| format!("{path}/tune");
        let again = server.post(&tune(&paths[0]), &json!({})).await;
        assert_eq!(again.refusal(), (409, "tuning_under_way".into()));
        start(&server, &paths[1], LONG).await;
        let full = server.post(&tune(&paths[2]), &json!({})).await;
        assert_eq!(full.refusal(), (429, "too_many_tunings".into()));
        assert_eq!(full.headers["retry-after"], "60");
        assert_eq!(tuning(&server, &paths[1]).await["state"], "queued", "one at a time");

        let cancelled = server.ask("DELETE", &tune(&paths[0]), &[], "").await.json();
        assert_eq!(cancelled["state"], "cancelled");
        assert!(cancelled["ended"].is_i64(), "{cancelled}");
        until(&server, &paths[1], is_running).await;
        assert_eq!(server.get(&paths[0]).await.json()["version"], 1);
        assert_eq!(answers(&server, &paths[0]).await, before);
        let twice = server.ask("DELETE", &tune(&paths[0]), &[], "").await;
        assert_eq!(twice.refusal(), (404, "tuning_not_found".into()));
        // One that waits is cancelled as well, and can be asked for again.
        start(&server, &paths[2], LONG).await;
        for path in [&paths[2], &paths[1]] {
            assert_eq!(server.ask("DELETE", &tune(path), &[], "").await.status, StatusCode::OK);
        }
        start(&server, &paths[2], LONG).await;
        server.ask("DELETE", &tune(&paths[2]), &[], "").await;
    }
}

#[tokio::test]
async fn examples_that_change_meanwhile_keep_their_change_and_get_the_weights() {
    for (server, tagger) in servers(12).await {
        server.app.tuner.stop().await;
        // One that says often how far it has come, so that the change comes before the end.
        let often = Duration::from_millis(600);
        let server = beside(&server, &tagger, |config| config.lease = often).await;
        let path = domain(&server, "changed").await;
        start(&server, &path, QUICK).await;
        until(&server, &path, |status| status["progress"]["done"].is_f64()).await;
        let more = json!({"examples": [{"text": "pay cash", "spans": [{"start": 4, "end": 8, "label": "means"}]}]});
        assert_eq!(server.post(&format!("{path}/examples"), &more).await.json()["version"], 2);
        let status = until(&server, &path, is_over).await;
        assert_eq!(status["state"], "tuned", "{status}");
        assert_eq!((&status["version"], &status["result"]), (&json!(1), &json!(3)));
        let domain = server.get(&path).await.json();
        assert_eq!((&domain["version"], &domain["tuned"]["version"]), (&json!(3), &json!(3)));
        assert_eq!(domain["examples"].as_array().unwrap().len(), 31);
        assert_eq!(domain["labels"], json!(["city", "genre", "means", "time"]));
        answers(&server, &path).await;
    }
}

#[tokio::test]
async fn a_domain_that_is_deleted_takes_its_tuning_along() {
    for (server, _) in servers(13).await {
        let path = domain(&server, "deleted").await;
        start(&server, &path, LONG).await;
        until(&server, &path, is_running).await;
        server.ask("DELETE", &path, &[], "").await;
        let gone = server.get(&format!("{path}/tune")).await;
        assert_eq!(gone.refusal(), (404, "domain_not_found".into()));
        let path = domain(&server, "deleted").await;
        assert_eq!(tuning(&server, &path).await["state"], Value::Null);
        // The worker is free for the new one of the same name.
        start(&server, &path, LONG).await;
        until(&server, &path, is_running).await;
        server.ask("DELETE", &format!("{path}/tune"), &[], "").await;
    }
}

#[tokio::test]
async fn a_tuning_survives_a_server_that_is_told_to_end() {
    for (server, tagger) in servers(14).await {
        let path = domain(&server, "restart").await;
        start(&server, &path, QUICK).await;
        until(&server, &path, is_running).await;
        server.app.tuner.stop().await;
        let status = tuning(&server, &path).await;
        if !is_over(&status) {
            assert_eq!(status["state"], "queued");
        }
        let again = beside(&server, &tagger, |_| {}).await;
        assert_eq!(until(&again, &path, is_over).await["state"], "tuned");
        assert_eq!(again.get(&path).await.json()["version"], 2, "tuned once");
    }
}

#[tokio::test]
async fn a_tuning_whose_server_died_is_taken_over_and_the_dead_write_nothing() {
    for (server, tagger) in servers(15).await {
        server.app.tuner.stop().await; // So that this test is the server that dies.
        let path = domain(&server, "killed").await;
        let name = path.rsplit_once('/').unwrap().1;
        start(&server, &path, QUICK).await;
        let store = &server.app.store;
        let lease = Duration::from_secs(30);
        let dead = store.claim_tuning("dead", lease).await.unwrap().unwrap();
        assert_eq!(dead.domain, name);
        assert!(store.beat(&dead, 1, &json!({"done": 0.3})).await.unwrap());
        assert_eq!(store.claim_tuning("other", lease).await.unwrap(), None, "it is held");
        assert_eq!(tuning(&server, &path).await["progress"]["done"], 0.3);

        let patient = Duration::from_millis(300);
        let again = beside(&server, &tagger, |config| config.lease = patient).await;
        assert_eq!(until(&again, &path, is_over).await["state"], "tuned");
        assert!(!store.beat(&dead, 1, &Value::Null).await.unwrap());
        let (state, message) = (TuningState::Failed, String::new());
        let ended = Ended { state, report: None, message, weights: None };
        assert!(!store.end_tuning(&dead, ended).await.unwrap());
        store.release_tuning(&dead).await.unwrap();
        let status = tuning(&server, &path).await;
        assert_eq!((&status["state"], &status["result"]), (&json!("tuned"), &json!(2)));
    }
}

#[tokio::test]
async fn a_tuning_whose_servers_die_again_and_again_is_reported_as_lost() {
    for (server, tagger) in servers(16).await {
        server.app.tuner.stop().await;
        let path = domain(&server, "lost").await;
        start(&server, &path, LONG).await;
        for claim in ["one", "two", "three"] {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let held = server.app.store.claim_tuning(claim, Duration::ZERO).await.unwrap();
            assert!(held.is_some(), "{claim}");
        }
        let lease = Duration::from_millis(200);
        let again = beside(&server, &tagger, |config| config.lease = lease).await;
        let status = until(&again, &path, is_over).await;
        assert_eq!(status["state"], "lost");
        assert!(status["message"].as_str().unwrap().contains("ended 3 times"), "{status}");
        assert_eq!(again.get(&path).await.json()["version"], 1);
        let metrics = again.get("/metrics").await.text;
        assert!(metrics.contains("fewtag_tunings_total{outcome=\"lost\"} 1"), "{metrics}");
        start(&again, &path, LONG).await;
        again.ask("DELETE", &format!("{path}/tune"), &[], "").await;
    }
}

#[tokio::test]
async fn two_servers_on_one_database_do_not_tune_a_domain_twice() {
    for (server, tagger) in servers(17).await {
        server.app.tuner.stop().await;
        let other = beside(&server, &tagger, |_| {}).await;
        other.app.tuner.stop().await;
        let path = domain(&server, "replicas").await;
        let tune = format!("{path}/tune");
        for round in 0..10 {
            let options = json!({"minutes": LONG});
            let (one, two) =
                tokio::join!(server.post(&tune, &options), other.post(&tune, &options));
            let mut statuses = [one.status.as_u16(), two.status.as_u16()];
            statuses.sort_unstable();
            assert_eq!(statuses, [202, 409], "round {round}");
            let lease = Duration::from_secs(30);
            let (stores, claims) = ([&server.app.store, &other.app.store], ["one", "two"]);
            let claimed = tokio::join!(
                stores[0].claim_tuning(claims[0], lease),
                stores[1].claim_tuning(claims[1], lease)
            );
            let claimed = [claimed.0.unwrap(), claimed.1.unwrap()];
            assert_eq!(claimed.iter().flatten().count(), 1, "round {round}: {claimed:?}");
            assert_eq!(server.ask("DELETE", &tune, &[], "").await.status, StatusCode::OK);
        }
    }
}

#[tokio::test]
async fn what_cannot_be_tuned_is_refused_with_the_reason() {
    let server = Server::of(model(0), |_| {}).await;
    let all = examples(&support());
    let long = json!({"text": format!("{}go", "a ".repeat(600)), "spans": []});
    let alone: Vec<Value> = (0..12)
        .map(|i| json!({"text": format!("say{i} word"), "spans": [{"start": 4 + i.to_string().len(), "end": 8 + i.to_string().len(), "label": format!("l{i}")}]}))
        .collect();
    let too_long = [all.clone(), vec![long]].concat();
    for (name, examples, code, words) in [
        ("few", all[..7].to_vec(), "too_little", "7 labelled sentences, and it takes 10"),
        ("alone", alone, "too_little", "no label stands in two different sentences"),
        ("long", too_long, "text_too_long", "support sentence 31"),
        ("none", Vec::new(), "nothing_to_learn", ""),
    ] {
        let made = server.post("/v1/domains", &json!({"name": name, "examples": examples})).await;
        assert_eq!(made.status, 201, "{name}: {}", made.text);
        let refused = server.post(&format!("/v1/domains/{name}/tune"), &json!({})).await;
        assert_eq!(refused.refusal(), (422, code.into()), "{name}");
        assert!(refused.text.contains(words), "{}", refused.text);
        assert_eq!(tuning(&server, &format!("/v1/domains/{name}")).await["state"], Value::Null);
    }
    let missing = server.post("/v1/domains/missing/tune", &json!({})).await;
    assert_eq!(missing.refusal(), (404, "domain_not_found".into()));
    let path = domain(&server, "options").await;
    for wrong in [
        json!({"minutes": 0}),
        json!({"minutes": -1}),
        json!({"minutes": 61}),
        json!({"full": true}),
    ] {
        let refused = server.post(&format!("{path}/tune"), &wrong).await;
        assert_eq!(refused.refusal(), (422, "invalid_request".into()), "{wrong}");
    }
    let stale = server.json("POST", &format!("{path}/tune"), Some("\"7\""), &json!({})).await;
    assert_eq!(stale.refusal(), (412, "version_conflict".into()));
    let paired = ModelSettings { context: Context::Paired, ..settings(0) };
    let paired = Server::of(drawn(paired, 5), |_| {}).await;
    let path = domain(&paired, "paired").await;
    let refused = paired.post(&format!("{path}/tune"), &json!({})).await;
    assert_eq!(refused.refusal(), (422, "untunable".into()));
    let none = Server::of(model(0), |config| config.limits.tunings = 0).await;
    let path = domain(&none, "off").await;
    let refused = none.post(&format!("{path}/tune"), &json!({})).await;
    assert_eq!(refused.refusal(), (429, "too_many_tunings".into()));
}

#[tokio::test]
async fn only_a_full_key_tunes_and_every_key_may_look() {
    let server = Server::of(model(0), |config| {
        let mut keys = Keys::short();
        keys.add("full", Scope::Full).unwrap();
        keys.add("read", Scope::Read).unwrap();
        config.keys = keys;
    })
    .await;
    let ask = async |method: &str, path: &str, key: &str| {
        let headers = [("x-api-key", key), ("content-type", "application/json")];
        server.ask(method, path, &headers, "{}").await.status.as_u16()
    };
    for (method, path) in [("POST", "/tune"), ("DELETE", "/tune"), ("POST", "/tune/undo")] {
        let path = format!("/v1/domains/none{path}");
        assert_eq!(
            [ask(method, &path, "read").await, ask(method, &path, "full").await],
            [403, 404]
        );
    }
    let path = "/v1/domains/none/tune";
    assert_eq!([ask("GET", path, "wrong").await, ask("GET", path, "read").await], [401, 404]);
}

#[tokio::test]
async fn numbers_that_ran_away_are_never_kept() {
    // λ as large as a number can be: the loss of the first update is no number.
    let sound = model(0);
    let dir = tempfile::tempdir().unwrap();
    let wild = sound.clone().with_scale(f32::MAX);
    fewtag::model::save(&wild, dir.path(), fewtag::encoder::Storage::F32).unwrap();
    let server = Server::of(fewtag::model::load(dir.path()).unwrap(), |_| {}).await;
    let path = domain(&server, "wild").await;
    start(&server, &path, QUICK).await;
    let status = until(&server, &path, is_over).await;
    assert_eq!(status["state"], "failed", "{status}");
    assert!(status["message"].as_str().unwrap().contains("diverged"), "{status}");
    let domain = server.get(&path).await.json();
    assert_eq!((&domain["version"], &domain["tuned"]), (&json!(1), &Value::Null));
}

#[tokio::test]
async fn a_file_with_damaged_or_too_many_weights_is_refused_and_changes_nothing() {
    let (server, tagger) = servers(18).await.swap_remove(0);
    let path = domain(&server, "sound").await;
    start(&server, &path, QUICK).await;
    assert_eq!(until(&server, &path, is_over).await["state"], "tuned");
    let file = server.get(&format!("{path}/export?format=fewtag")).await.bytes;
    // A safetensors file: the length of its head, the head, and the floats before the bytes.
    let mut bad = file.clone();
    let head = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
    bad[8 + head..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
    assert!(DomainFile::from_bytes(&bad, std::path::Path::new("x")).is_ok(), "it looks sound");
    let refused = server.ask("POST", &format!("{path}/import"), &[], &bad).await;
    assert_eq!(refused.refusal(), (422, "invalid_data".into()));
    assert!(refused.text.contains("not finite"), "{}", refused.text);
    let version = &server.get(&path).await.json()["version"];
    assert_eq!(*version, 2);

    let small = Server::of(tagger, |config| config.limits.tuned = 1000).await;
    small.post("/v1/domains", &json!({"name": "to"})).await;
    let refused = small.ask("POST", "/v1/domains/to/import", &[], &file).await;
    assert_eq!(refused.refusal(), (422, "invalid_data".into()));
    assert!(refused.text.contains("--max-tuned"), "{}", refused.text);
    // A tuning whose weights would be too large fails, with the same words.
    let path = domain(&small, "small").await;
    start(&small, &path, QUICK).await;
    let status = until(&small, &path, is_over).await;
    assert_eq!(status["state"], "failed", "{status}");
    assert!(status["message"].as_str().unwrap().contains("--max-tuned"), "{status}");
}
