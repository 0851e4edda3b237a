//! What is answered: the same as the library says, however it was asked and whatever it was batched with.

use fewtag::{Answer, SupportSet};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::{Server, example, tagger};

const TEXTS: [&str; 5] =
    ["play anna tonight", "please play some jazz", "book a table in paris", "🎷 play mary", ""];

/// What the library says.
fn expected(artists: &[&str], text: &str) -> Value {
    let sentence = |artist: &&str| {
        let spans = serde_json::from_value::<Vec<fewtag_serve::store::LabelledSpan>>(
            example(artist)["spans"].clone(),
        );
        fewtag_serve::request::label(example(artist)["text"].as_str().unwrap(), &spans.unwrap())
            .unwrap()
    };
    let support = SupportSet::new(artists.iter().map(sentence).collect()).unwrap();
    let words = fewtag::words::split(text, fewtag::words::WordSplit::Unicode);
    if words.is_empty() {
        return json!({"text": text, "spans": []});
    }
    let tags = vec![fewtag::Tag::O; words.len()];
    let query = fewtag::Sentence::from_text(text.into(), words, tags).unwrap();
    let words: Vec<&str> = query.words().collect();
    let tagged = tagger().adapt(&support).unwrap().tag(&words).unwrap();
    serde_json::to_value(Answer::new(&query, &tagged)).unwrap()
}

#[tokio::test]
async fn answers_are_the_librarys_batched_or_not() {
    let supports: [&[&str]; 3] = [&["queen"], &["john", "new york"], &["queen", "mary", "jazz"]];
    let one_by_one = Server::limited(|limits| limits.batch_cost = 1).await;
    let batched = Server::limited(|limits| limits.batch_cost = 100_000).await;
    let request = |artists: &[&str]| {
        let support: Vec<Value> = artists.iter().map(|artist| example(artist)).collect();
        json!({"support": support, "texts": TEXTS})
    };
    for server in [&one_by_one, &batched] {
        let asked = (0..24).map(|n| {
            let artists = supports[n % supports.len()];
            async move { (artists, server.post("/v1/tag", &request(artists)).await) }
        });
        for (artists, answer) in join_all(asked).await {
            let wanted: Vec<Value> = TEXTS.iter().map(|text| expected(artists, text)).collect();
            assert_eq!(answer.json()["results"], Value::from(wanted));
        }
    }
}

#[tokio::test]
async fn examples_that_come_again_are_read_once_and_answer_the_same() {
    let server = Server::new().await;
    let request = |artist: &str, context: &str| json!({"support": [example(artist)], "texts": TEXTS, "context": context});
    let first = server.post("/v1/tag", &request("queen", "separate")).await;
    let again = server.post("/v1/tag", &request("queen", "separate")).await;
    assert_eq!(first.json(), again.json());
    for other in [request("john", "separate"), request("queen", "paired")] {
        assert_ne!(server.post("/v1/tag", &other).await.json(), first.json());
    }
    let text = server.get("/metrics").await.text;
    for line in ["fewtag_cache_hits_total 1", "fewtag_cache_misses_total 3"] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn a_batch_may_mix_supports() {
    let server = Server::new().await;
    let group = |artist: &str| json!({"support": [example(artist)], "texts": [TEXTS[0]]});
    let answer = server.post("/v1/tag", &json!({"batch": [group("queen"), group("john")]})).await;
    let wanted = json!([expected(&["queen"], TEXTS[0]), expected(&["john"], TEXTS[0])]);
    assert_eq!(answer.json()["results"], wanted);
    let wrong = json!({"batch": [group("queen"), {"support": [], "texts": []}]});
    assert_eq!(server.post("/v1/tag", &wrong).await.json()["error"]["where"], "batch[1].support");
}

#[tokio::test]
async fn lines_and_data_formats_hold_the_same_answers() {
    // Many parts, so that later ones wait for room.
    let server = Server::limited(|limits| {
        limits.batch_cost = 8;
        limits.queue = 40;
    })
    .await;
    let request = json!({"support": [example("queen")], "texts": TEXTS});
    let accept = [("content-type", "application/json"), ("accept", "application/x-ndjson")];
    let lines = server.ask("POST", "/v1/tag", &accept, &request.to_string()).await;
    assert_eq!(lines.headers["content-type"], "application/x-ndjson");
    let lines: Vec<Value> =
        lines.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let wanted: Vec<Value> = TEXTS.iter().map(|text| expected(&["queen"], text)).collect();
    assert_eq!(lines, wanted);
    let mut conll = request.clone();
    conll["format"] = "conll".into();
    let file = server.post("/v1/tag", &conll).await;
    assert_eq!(file.text.split("\n\n").filter(|sentence| !sentence.is_empty()).count(), 4);
}

#[tokio::test]
async fn thresholds_drop_spans_and_explanations_add_up() {
    let server = Server::new().await;
    let ask = |options: Value| {
        let mut request = json!({"support": [example("queen"), example("john")], "texts": TEXTS});
        request.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        let server = &server;
        async move { server.post("/v1/tag", &request).await.json()["results"].clone() }
    };
    let n_spans = |results: &Value| -> usize {
        results.as_array().unwrap().iter().map(|it| it["spans"].as_array().unwrap().len()).sum()
    };
    let all = ask(json!({"explain": true})).await;
    assert!(n_spans(&all) > 0);
    assert_eq!(n_spans(&ask(json!({"threshold": 1})).await), 0);
    for span in all.as_array().unwrap().iter().flat_map(|it| it["spans"].as_array().unwrap()) {
        let why = &span["explanation"];
        let number = |value: &Value| value.as_f64().unwrap();
        let voices = why["voices"].as_array().unwrap();
        let sum: f64 = voices.iter().map(|voice| number(&voice["score"])).sum();
        assert!((sum + number(&why["transitions"]) - number(&why["score"])).abs() < 1e-3);
        for voice in voices {
            let parts: f64 = voice["words"].as_array().unwrap().iter().map(number).sum();
            assert!((parts - number(&voice["score"])).abs() < 1e-4);
        }
    }
    let paired = ask(json!({"context": "paired"})).await;
    assert_eq!(paired.as_array().unwrap().len(), TEXTS.len());
}

#[tokio::test]
async fn the_figures_tell_of_requests_batches_and_memory() {
    let server = Server::new().await;
    server.post("/v1/domains", &json!({"name": "a", "examples": [example("queen")]})).await;
    for _ in 0..2 {
        server.post("/v1/domains/a/tag", &json!({"texts": TEXTS})).await;
    }
    let text = server.get("/metrics").await.text;
    for line in [
        "fewtag_requests_total{method=\"POST\",route=\"/v1/domains/{name}/tag\",status=\"200\"} 2",
        "fewtag_cache_hits_total 1",
        "fewtag_cache_misses_total 1",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}
