//! Tagging: with the examples of the request, or with a domain.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use fewtag::data::Writer;
use fewtag::{Answer, Context};
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use serde::Serialize;
use tokio::sync::oneshot;
use utoipa::ToSchema;

use super::body::{InDomain, Json, etag};
use crate::App;
use crate::error::{ApiError, ApiResult, Code, ErrorResponses};
use crate::learner::{Key, Learner, Owner};
use crate::queue::{Item, Replies, Reply};
use crate::request::{
    self, DomainTagRequest, NewExample, Options, Output, Prepared, TagRequest, check_batch,
    check_explained, prepare,
};

/// What was found in each text, in the order of the texts.
#[derive(Debug, Serialize, ToSchema)]
pub struct Results {
    /// One for each text; those of a batch one group after the other.
    pub results: Vec<Answer>,
    /// The version of the domain that answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
}

/// Tag texts with the examples of the request
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
    let (wanted, context) = (Arc::clone(&options.wanted), context(&app, &options));
    let asked = App::clone(&app);
    let prepared = blocking(move || {
        let mut all = Vec::new();
        for (at, group) in groups.into_iter().enumerate() {
            let inside = |field: &str| match place {
                "" => field.to_owned(),
                place => format!("{place}[{at}].{field}"),
            };
            let learner = learner_of(&asked, &group.support, context, inside("support"))?;
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
    let (version, learner) = learner(&app, &name, context(&app, &options)).await?;
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
    let (version, learner) = learner(&app, &name, app.tagger.settings().context).await?;
    let report = blocking(move || {
        let sentences = learner.support().sentences();
        let costs = sentences.iter().map(|sentence| learner.cost_of(sentence.words()));
        let _room = app.queue.reserve(costs.sum::<ApiResult<usize>>()?)?;
        Ok(fewtag::support::check(learner.tagger(), sentences)?)
    });
    let report = report.await?;
    Ok((etag(version), axum::Json(report)).into_response())
}

fn context(app: &App, options: &Options) -> Context {
    options.context.unwrap_or(app.tagger.settings().context)
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

/// The current version of a domain and its learner, from memory if it has not changed.
pub(super) async fn learner(
    app: &App,
    name: &str,
    context: Context,
) -> ApiResult<(i64, Arc<Learner>)> {
    let version = app.store.version(name).await?;
    let key = Key { owner: Owner::Domain(name.to_owned()), context };
    if let Some(learner) = known(app, &key, version) {
        return Ok((version, learner));
    }
    let domain = app.store.read(name).await?; // Perhaps a newer version already.
    let (version, tagger) = (domain.version, app.tagger.clone());
    let learner = blocking(move || {
        let support = request::support(&domain.examples)?;
        Ok(Arc::new(Learner::new(&tagger, support, context)?))
    })
    .await?;
    Ok((version, app.learners.keep(key, version, learner)))
}

/// The learner of a request's examples, from memory if a request before had the same; `place` is where they stand.
fn learner_of(
    app: &App,
    examples: &[NewExample],
    context: Context,
    place: String,
) -> ApiResult<Arc<Learner>> {
    let key = Key { owner: Owner::Request(request::digest(examples)), context };
    if let Some(learner) = known(app, &key, 0) {
        return Ok(learner);
    }
    let sentences = request::sentences(examples, &app.config.limits, &place)?;
    let set =
        fewtag::SupportSet::new(sentences).map_err(|error| ApiError::from(error).at(place))?;
    let learner = Arc::new(Learner::new(&app.tagger, set, context)?);
    Ok(app.learners.keep(key, 0, learner))
}

fn known(app: &App, key: &Key, version: i64) -> Option<Arc<Learner>> {
    let learner = app.learners.find(key, version);
    let counter =
        if learner.is_some() { &app.metrics.cache_hits } else { &app.metrics.cache_misses };
    counter.inc();
    learner
}

/// Runs what takes long where it does not keep others waiting.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> ApiResult<T> + Send + 'static,
) -> ApiResult<T> {
    let failed = |_| Err(ApiError::new(Code::Internal, "the request could not be prepared"));
    tokio::task::spawn_blocking(work).await.unwrap_or_else(failed)
}

/// A part of a request: in the queue, or to be put there, with the texts that need no encoder at their places.
struct Part {
    blanks: Vec<Option<String>>,
    waiting: Waiting,
}

enum Waiting {
    Admitted(Replies),
    Pending(Vec<Item>),
}

/// How many parts of a request wait in the queue while their answers are read.
const AHEAD: usize = 4;

/// The answers in the order of the texts.
///
/// A long request is cut into parts of about a batch. The first is admitted or refused at once; the others wait for
/// room, and only some of them at a time, so that a long request does not shut out short ones.
pub(super) fn replies(
    app: &App,
    prepared: Vec<Prepared>,
) -> ApiResult<impl Stream<Item = ApiResult<Reply>> + Send + use<>> {
    let mut parts = parts(prepared, app.config.limits.batch_cost);
    if let Some(first) = parts.first_mut()
        && let Waiting::Pending(items) = &mut first.waiting
    {
        first.waiting = Waiting::Admitted(app.queue.admit(std::mem::take(items))?);
    }
    let app = App::clone(app);
    let admitted = stream::iter(parts).map(move |Part { blanks, waiting }| {
        let app = App::clone(&app);
        async move {
            let replies = match waiting {
                Waiting::Admitted(replies) => replies,
                Waiting::Pending(items) => app.queue.wait(items).await?,
            };
            Ok::<_, ApiError>((blanks, replies))
        }
    });
    let in_order = admitted.buffered(AHEAD).map_ok(|(blanks, replies)| {
        let mut replies = replies.into_iter();
        let slot = |blank: Option<String>| match blank {
            Some(text) => Slot::Blank(text),
            None => Slot::Text(replies.next()),
        };
        let slots: Vec<Slot> = blanks.into_iter().map(slot).collect();
        stream::iter(slots).then(Slot::reply)
    });
    Ok(in_order.try_flatten())
}

enum Slot {
    Blank(String),
    Text(Option<oneshot::Receiver<ApiResult<Reply>>>),
}

impl Slot {
    async fn reply(self) -> ApiResult<Reply> {
        let lost = || Err(ApiError::new(Code::Internal, "the text was not tagged"));
        match self {
            Self::Blank(text) => {
                Ok(Reply { answer: Answer { text, spans: Vec::new() }, labelled: None })
            }
            Self::Text(None) => lost(),
            Self::Text(Some(reply)) => reply.await.unwrap_or_else(|_| lost()),
        }
    }
}

/// Cuts texts into parts of about `cost`.
fn parts(prepared: Vec<Prepared>, cost: usize) -> Vec<Part> {
    let mut parts: Vec<Part> = Vec::new();
    let mut room = 0;
    for one in prepared {
        if room == 0 || parts.is_empty() {
            parts.push(Part { blanks: Vec::new(), waiting: Waiting::Pending(Vec::new()) });
            room = cost;
        }
        let Some(Part { blanks, waiting: Waiting::Pending(items) }) = parts.last_mut() else {
            unreachable!("a new part is pending")
        };
        match one {
            Prepared::Blank(text) => blanks.push(Some(text)),
            Prepared::Item(item) => {
                room = room.saturating_sub(item.cost);
                blanks.push(None);
                items.push(item);
            }
        }
    }
    parts
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
