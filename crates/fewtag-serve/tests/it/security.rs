//! What others may not do: call under a foreign name, fill the memory, or have work done that nobody counts.

use axum::body::Body;
use axum::http::Request;

use crate::Server;

fn code(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
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
