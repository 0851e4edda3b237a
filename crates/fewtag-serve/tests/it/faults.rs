//! Faults of ours: they are answered as such, and the server goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::StatusCode;
use fewtag::encoder::{Bert, BertConfig, Engine, PackedBatch, WordPieces, weights};
use fewtag::{Matrix, Result, Tagger};
use serde_json::json;

use crate::{Server, encoder, example, tagger};

/// An encoder that fails every second time.
struct Faulty(Bert, AtomicUsize);

impl Engine for Faulty {
    fn config(&self) -> &BertConfig {
        self.0.config()
    }

    fn encode_rows(&self, batch: &PackedBatch, rows: &[usize], middle: &[usize]) -> Result<Matrix> {
        assert!(self.1.fetch_add(1, Ordering::Relaxed) % 2 == 1, "a fault of the encoder");
        self.0.encode_rows(batch, rows, middle)
    }
}

#[tokio::test]
async fn a_fault_is_answered_as_internal_and_the_next_request_goes_well() {
    let bert = Bert::new(weights::load(&encoder()).unwrap()).unwrap();
    let sound = tagger();
    let faulty = Tagger::new(
        Arc::new(Faulty(bert, AtomicUsize::new(0))),
        WordPieces::load(&encoder()).unwrap(),
        sound.settings().clone(),
        *sound.head(),
    );
    let server = Server::of(faulty.unwrap(), |_| {}).await;
    server.post("/v1/domains", &json!({"name": "a", "examples": [example("queen")]})).await;
    let internal = (500, "internal".to_owned());
    // Where the support is read, where the text is read, and beside the queue.
    assert_eq!(
        server.post("/v1/domains/a/tag", &json!({"texts": ["play"]})).await.refusal(),
        internal
    );
    assert_eq!(server.get("/v1/domains/a").await.status, StatusCode::OK);
    let mut statuses = Vec::new();
    for _ in 0..4 {
        let answer = server.post("/v1/domains/a/tag", &json!({"texts": ["play"]})).await;
        assert!(answer.headers.contains_key("x-request-id"), "the log is found by it");
        statuses.push(answer.status.as_u16());
    }
    assert_eq!(statuses, [500, 200, 500, 200]);
    assert_eq!(server.get("/v1/domains/a/check").await.refusal(), internal);
}
