//! Tagging: with the examples of the request, or with a domain.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use fewtag::Answer;
use fewtag::data::Writer;
use futures_util::{Stream, StreamExt, TryStreamExt};
use serde::Serialize;
use utoipa::ToSchema;

use super::body::{InDomain, Json, etag};
use crate::App;
use crate::error::{ApiResult, ErrorResponses};
use crate::prepare::{check_batch, check_explained, prepare};
use crate::queue::Reply;
use crate::replies::replies;
use crate::request::{DomainTagRequest, Options, Output, TagRequest};
use crate::service::blocking;

/// What was found in each text, in the order of the texts.
#[derive(Debug, Serialize, ToSchema)]
pub struct Results {
    /// One for each text; those of a batch one group after the other.
    pub results: Vec<Answer>,
    /// The version of the domain that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
}

/// Tag texts with the examples, or the names of labels, of the request
///
/// `Accept: application/x-ndjson`, or `"format": "jsonl"`, answers one result a line as soon as it is known. A data format
/// answers labelled data as text.
#[utoipa::path(
    post, path = "/v1/tag", tag = "tag", operation_id = "tag",
    request_body = TagRequest,
    responses(
        (status = 200, content(
            (Results = "application/json"),
            (String = "application/x-ndjson"),
            (String = "text/plain"),
        )),
        ErrorResponses,
    )
)]
pub async fn tag(
    State(app): State<App>,
    headers: HeaderMap,
    Json(request): Json<TagRequest>,
) -> ApiResult<Response> {
    let (options, groups, place) = request.parts()?;
    let limits = app.config.limits;
    check_batch(groups.iter().map(|group| group.texts.len()).sum(), &limits)?;
    app.queue.check(groups.iter().flat_map(|group| &group.texts))?;
    let (wanted, context) = (Arc::clone(&options.wanted), options.context);
    let asked = App::clone(&app);
    let prepared = blocking(move || {
        let mut all = Vec::new();
        for (at, group) in groups.into_iter().enumerate() {
            let inside = |field: &str| match place {
                "" => field.to_owned(),
                place => format!("{place}[{at}].{field}"),
            };
            let learner = asked.learner_of(&group, context, inside)?;
            all.extend(prepare(&learner, group.texts, &wanted, (&limits, &inside("texts")))?);
        }
        check_explained(&all, &limits)?;
        Ok(all)
    })
    .await?;
    let replies = replies(&app, prepared)?;
    respond(replies, output(&options, &headers), None).await
}

/// Tag texts with a domain
#[utoipa::path(
    post, path = "/v1/domains/{name}/tag", tag = "tag", operation_id = "tag_domain",
    params(InDomain),
    request_body = DomainTagRequest,
    responses(
        (status = 200, content(
            (Results = "application/json"),
            (String = "application/x-ndjson"),
            (String = "text/plain"),
        ), headers(("ETag" = String))),
        ErrorResponses,
    )
)]
pub async fn tag_domain(
    State(app): State<App>,
    InDomain { name }: InDomain,
    headers: HeaderMap,
    Json(request): Json<DomainTagRequest>,
) -> ApiResult<Response> {
    let (options, texts) = request.parts()?;
    let limits = app.config.limits;
    check_batch(texts.len(), &limits)?;
    app.queue.check(&texts)?;
    let (version, learner) = app.learner(&name, options.context).await?;
    let wanted = Arc::clone(&options.wanted);
    let prepared = blocking(move || {
        let prepared = prepare(&learner, texts, &wanted, (&limits, "texts"))?;
        check_explained(&prepared, &limits)?;
        Ok(prepared)
    });
    let prepared = prepared.await?;
    let replies = replies(&app, prepared)?;
    respond(replies, output(&options, &headers), Some(version)).await
}

/// Check the examples of a domain
///
/// Each example is tagged from the others; contradictions, forgotten labels and labels that are taken for each other are
/// found. Sentences are numbered from 1, in the order of the examples.
#[utoipa::path(
    get, path = "/v1/domains/{name}/check", tag = "domains", operation_id = "check_domain",
    params(InDomain),
    responses(
        (status = 200, description = "As `fewtag support check --format json` prints it", body = Object,
         headers(("ETag" = String))),
        ErrorResponses,
    )
)]
pub async fn check_domain(
    State(app): State<App>,
    InDomain { name }: InDomain,
) -> ApiResult<Response> {
    let (version, report) = app.check(&name).await?;
    Ok((etag(version), axum::Json(report)).into_response())
}

fn output(options: &Options, headers: &HeaderMap) -> Output {
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    match options.output {
        Output::Json if accept.is_some_and(|it| it.contains("application/x-ndjson")) => {
            Output::Lines
        }
        output => output,
    }
}

async fn respond(
    replies: impl Stream<Item = ApiResult<Reply>> + Send + 'static,
    output: Output,
    version: Option<i64>,
) -> ApiResult<Response> {
    let tag = version.map(etag).into_iter().flatten();
    let mut response = match output {
        Output::Json => {
            let results = replies.map_ok(|reply| reply.answer).try_collect().await?;
            axum::Json(Results { results, version }).into_response()
        }
        Output::Lines => {
            let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
            (kind, Body::from_stream(replies.map(line))).into_response()
        }
        Output::Data(format) => {
            let replies: Vec<Reply> = replies.try_collect().await?;
            let mut writer = Writer::new(format, Vec::new());
            for sentence in replies.iter().filter_map(|reply| reply.labelled.as_ref()) {
                writer.sentence(sentence)?;
            }
            let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
            (kind, writer.finish()?).into_response()
        }
    };
    response.headers_mut().extend(tag);
    Ok(response)
}

/// An answer, or the error in its place, as a line.
fn line(reply: ApiResult<Reply>) -> Result<Bytes, serde_json::Error> {
    let mut line = match reply {
        Ok(reply) => serde_json::to_vec(&reply.answer),
        Err(error) => serde_json::to_vec(&error.body()),
    }?;
    line.push(b'\n');
    Ok(line.into())
}
