//! Tuning in the background: whole jobs of a tiny model, in each database, beside the library's own tuning.

use std::path::Path;
use std::time::Duration;

use axum::http::StatusCode;
use fewtag::answer::Thresholds;
use fewtag::emission::{ScorerKind, Similarity};
use fewtag::tune::{Options, Tuned, Tuning};
use fewtag::{Answer, Context, DomainFile, ModelSettings, SupportSet, Tagger};
use fewtag_serve::{Config, Database};
use serde_json::{Value, json};

use crate::{Server, drawn};

/// A plan that is quickly done, and gains something with [`model`].
pub(crate) const QUICK: f64 = 0.0003;

/// A tiny model that was never trained, so that there is something to learn. Those of other numbers tag alike, but are other models: on
/// PostgreSQL the servers of one test do not take the tunings of another.
pub(crate) fn model(number: u8) -> Tagger {
    drawn(settings(number), 5)
}

pub(crate) fn settings(number: u8) -> ModelSettings {
    ModelSettings {
        context: Context::Separate,
        scorer: ScorerKind::Prototype,
        similarity: Similarity::Dot,
        borrow: true,
        constrained: true,
        legal_loss: true,
        temperature: 1.0 + f32::from(number) / 100.0,
        ..ModelSettings::default()
    }
}

/// Thirty sentences whose labels follow from the word before.
pub(crate) fn support() -> SupportSet {
    let words = ["paris", "jazz", "noon", "rome", "blues", "nine"];
    let line = |i: usize| {
        let [a, b] = [words[i % 6], words[(i / 2 + 1) % 6]];
        match i % 3 {
            0 => format!("go to [{a}](city) now{i} and hear [{b}](genre)"),
            1 => format!("hear some [{b} {a}](genre) to day{i}"),
            _ => format!("at [{a}](time) go to [{b}](city) please{i}"),
        }
    };
    SupportSet::parse(&(0..30).map(line).collect::<Vec<_>>().join("\n")).unwrap()
}

/// Sentences as a request has them.
pub(crate) fn examples(support: &SupportSet) -> Vec<Value> {
    let example = |sentence| {
        let draft = fewtag_serve::request::draft(sentence, None);
        json!({"text": draft.text, "spans": draft.spans})
    };
    support.sentences().iter().map(example).collect()
}

/// A server of the model of this number in each database.
pub(crate) async fn servers(number: u8) -> Vec<(Server, Tagger)> {
    let tagger = model(number);
    let mut servers = vec![(Server::of(tagger.clone(), |_| {}).await, tagger.clone())];
    if let Ok(url) = std::env::var("FEWTAG_TEST_POSTGRES") {
        let change = |config: &mut Config| config.database = Database::Postgres(url);
        servers.push((Server::of(tagger.clone(), change).await, tagger));
    }
    servers
}

/// Another server of the same model on the same database.
pub(crate) async fn beside(
    server: &Server,
    tagger: &Tagger,
    change: impl FnOnce(&mut Config),
) -> Server {
    let database = server.app.config.database.clone();
    Server::of(tagger.clone(), |config| {
        config.database = database;
        change(config);
    })
    .await
}

/// A new domain with the thirty sentences; its address.
pub(crate) async fn domain(server: &Server, test: &str) -> String {
    let name = format!("{test}-{}", std::process::id());
    let path = format!("/v1/domains/{name}");
    server.ask("DELETE", &path, &[], "").await;
    let made = json!({"name": name, "examples": examples(&support())});
    assert_eq!(server.post("/v1/domains", &made).await.status, StatusCode::CREATED);
    path
}

pub(crate) async fn tuning(server: &Server, path: &str) -> Value {
    server.get(&format!("{path}/tune")).await.json()
}

/// Asks until the tuning of a domain stands as wanted.
pub(crate) async fn until(server: &Server, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..12_000 {
        let status = tuning(server, path).await;
        if wanted(&status) {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it does not come to that: {}", tuning(server, path).await);
}

pub(crate) fn is_over(status: &Value) -> bool {
    !matches!(status["state"].as_str(), Some("queued" | "running"))
}

pub(crate) async fn start(server: &Server, path: &str, minutes: f64) {
    let started = server.post(&format!("{path}/tune"), &json!({"minutes": minutes})).await;
    assert_eq!(started.status, StatusCode::ACCEPTED, "{}", started.text);
}

const TEXTS: [&str; 3] = ["hear some soul and go to oslo", "at ten go to lima", "go to rome now"];

pub(crate) async fn answers(server: &Server, path: &str) -> Value {
    let answers = server.post(&format!("{path}/tag"), &json!({"texts": TEXTS})).await.json();
    answers["results"].clone()
}

fn expected(file: &DomainFile, tagger: &Tagger) -> Value {
    let adapted = file.adapt(tagger, Path::new("x")).unwrap();
    let answers: Vec<Answer> = TEXTS.iter().map(|text| adapted.tag_text(text).unwrap()).collect();
    as_sent(&answers)
}

/// What a client reads.
fn as_sent(value: &impl serde::Serialize) -> Value {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

/// What the library makes of the thirty sentences: the tuned domain and the report.
fn tuned_by_the_library(tagger: &Tagger) -> (DomainFile, Value) {
    let options = Options { minutes: Some(QUICK), ..Options::default() };
    let mut tuning = Tuning::new(tagger, &support(), options).unwrap();
    assert!(tuning.by_ref().all(|event| event.is_ok()));
    let Tuned { tagger, report } = tuning.finish().unwrap();
    let file = DomainFile::new(&tagger, support(), Thresholds::default()).unwrap();
    (file, as_sent(&report))
}

#[tokio::test]
async fn a_domain_is_tuned_used_at_once_grown_and_brought_back() {
    for (server, tagger) in servers(1).await {
        let path = domain(&server, "tuned").await;
        let other = beside(&server, &tagger, |_| {}).await;
        let untuned = answers(&server, &path).await;
        assert_eq!(tuning(&server, &path).await["state"], Value::Null);
        start(&server, &path, QUICK).await;
        let status = until(&server, &path, is_over).await;
        let (file, report) = tuned_by_the_library(&tagger);
        assert_eq!((&status["state"], &status["report"]), (&json!("tuned"), &report), "{status}");
        assert_eq!((&status["version"], &status["result"]), (&json!(1), &json!(2)));
        assert_eq!(status["tuned"]["figures"], as_sent(&file.figures()));
        let curve = status["progress"]["curve"].as_array().unwrap();
        assert_eq!(curve.len(), 2, "two folds: {status}");
        assert!(curve.iter().all(|fold| fold["tuned"].as_array().unwrap().len() == 4), "{status}");

        let read = server.get(&path).await;
        assert_eq!((read.etag(), &read.json()["tuned"]), ("\"2\"", &status["tuned"]));
        assert_ne!(expected(&file, &tagger), untuned);
        for server in [&server, &other] {
            assert_eq!(answers(server, &path).await, expected(&file, &tagger));
        }

        // An example of a new label counts at once, and the weights stay.
        let more = SupportSet::parse("pay with [cash](means) today").unwrap();
        let added = json!({"examples": examples(&more)});
        server.post(&format!("{path}/examples"), &added).await;
        let sentences = [support().sentences(), more.sentences()].concat();
        let grown = file.clone().with_support(SupportSet::new(sentences.clone()).unwrap());
        assert_eq!(answers(&server, &path).await, expected(&grown, &tagger));
        assert_eq!(server.get(&path).await.json()["tuned"], status["tuned"]);
        assert_eq!(server.get(&format!("{path}/check")).await.status, 200);

        let undo = format!("{path}/tune/undo");
        let stale = server.ask("POST", &undo, &[("if-match", "\"2\"")], "").await;
        assert_eq!(stale.refusal(), (412, "version_conflict".into()));
        assert_eq!(server.ask("POST", &undo, &[], "").await.etag(), "\"4\"");
        let set = SupportSet::new(sentences).unwrap();
        let plain = DomainFile::new(&tagger, set, Thresholds::default()).unwrap();
        for server in [&server, &other] {
            assert_eq!(answers(server, &path).await, expected(&plain, &tagger));
        }
        let again = server.ask("POST", &undo, &[], "").await;
        assert_eq!(again.refusal(), (409, "not_tuned".into()));
        assert_eq!(server.get(&path).await.json()["version"], 4);
        let metrics = [&server, &other].map(|server| server.get("/metrics"));
        let metrics = futures_util::future::join_all(metrics).await;
        let counted =
            |one: &&crate::Answered| one.text.contains("fewtag_tunings_total{outcome=\"tuned\"} 1");
        assert_eq!(metrics.iter().filter(counted).count(), 1, "one of the two servers tuned it");
    }
}

#[tokio::test]
async fn one_step_goes_back_to_the_tuning_before() {
    for (server, _) in servers(2).await {
        let path = domain(&server, "twice").await;
        let mut seen = vec![answers(&server, &path).await];
        for seed in [0, 5, 7] {
            let options = json!({"minutes": QUICK, "seed": seed});
            server.post(&format!("{path}/tune"), &options).await;
            let status = until(&server, &path, is_over).await;
            assert_eq!(status["state"], "tuned", "{status}");
            seen.push(answers(&server, &path).await);
        }
        let undo = format!("{path}/tune/undo");
        assert_eq!(server.ask("POST", &undo, &[], "").await.status, 200);
        assert_eq!(answers(&server, &path).await, seen[2]);
        // Older weights are not kept: the next step goes to the model as it was.
        assert_eq!(server.ask("POST", &undo, &[], "").await.status, 200);
        assert_eq!(answers(&server, &path).await, seen[0]);
        assert_eq!(server.get(&path).await.json()["tuned"], Value::Null);
    }
}

#[tokio::test]
async fn texts_of_tuned_and_other_domains_are_answered_together_as_alone() {
    let (server, _) = servers(3).await.swap_remove(0);
    let [tuned, plain] = [domain(&server, "a").await, domain(&server, "b").await];
    start(&server, &tuned, QUICK).await;
    assert_eq!(until(&server, &tuned, is_over).await["state"], "tuned");
    let alone = [answers(&server, &tuned).await, answers(&server, &plain).await];
    assert_ne!(alone[0], alone[1]);
    let paths: Vec<&String> = [&tuned, &plain].into_iter().cycle().take(40).collect();
    let all = futures_util::future::join_all(paths.iter().map(|path| answers(&server, path))).await;
    for (at, answer) in all.iter().enumerate() {
        assert_eq!(*answer, alone[at % 2]);
    }
}

#[tokio::test]
async fn a_tuned_domain_travels_with_its_weights() {
    let (server, tagger) = servers(4).await.swap_remove(0);
    let path = domain(&server, "from").await;
    start(&server, &path, QUICK).await;
    assert_eq!(until(&server, &path, is_over).await["state"], "tuned");
    let file = server.get(&format!("{path}/export?format=fewtag")).await.bytes;
    let (by_the_library, _) = tuned_by_the_library(&tagger);
    assert_eq!(DomainFile::from_bytes(&file, Path::new("x")).unwrap(), by_the_library);

    server.post("/v1/domains", &json!({"name": "to"})).await;
    let read = server.ask("POST", "/v1/domains/to/import?mode=replace", &[], &file).await;
    assert_eq!(read.status, 200, "{}", read.text);
    assert!(read.json()["notes"][0].as_str().unwrap().contains("tune/undo"), "{}", read.text);
    assert_eq!(answers(&server, "/v1/domains/to").await, answers(&server, &path).await);
    let status = tuning(&server, "/v1/domains/to").await;
    assert_eq!((&status["state"], &status["tuned"]["version"]), (&Value::Null, &json!(2)));

    // For a server of another model the weights are nothing; its answers are those of the examples.
    let other = Server::of(model(100), |_| {}).await;
    other.post("/v1/domains", &json!({"name": "to"})).await;
    let read = other.ask("POST", "/v1/domains/to/import", &[], &file).await.json();
    assert!(read["notes"][0].as_str().unwrap().contains("another model"), "{read}");
    assert_eq!(other.get("/v1/domains/to").await.json()["tuned"], Value::Null);
    assert_eq!(other.get("/v1/domains/to").await.json()["examples"].as_array().unwrap().len(), 30);
}

#[tokio::test]
async fn weights_count_for_the_model_that_they_were_made_for() {
    for (server, tagger) in servers(5).await {
        let path = domain(&server, "models").await;
        start(&server, &path, QUICK).await;
        assert_eq!(until(&server, &path, is_over).await["state"], "tuned");
        let tuned = answers(&server, &path).await;
        let model = model(101);
        let other = beside(&server, &model, |_| {}).await;
        assert_eq!(other.get(&path).await.json()["tuned"], Value::Null);
        assert_eq!(answers(&other, &path).await.as_array().unwrap().len(), TEXTS.len());
        let again = beside(&server, &tagger, |_| {}).await;
        assert_eq!(answers(&again, &path).await, tuned);
    }
}
