//! Label Studio's ML backend: it asks for predictions and tells every annotation, which becomes an example at once.
//!
//! The examples of a project live in the domain `label-studio-ID`. An annotation keeps its example: changed, it
//! changes it, deleted, it deletes it.

mod region;

use std::sync::Arc;

use axum::extract::State;
use fewtag::Answer;
use futures_util::TryStreamExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::body::Json;
use crate::App;
use crate::error::{ApiError, ApiResult, Code, ErrorResponses};
use crate::prepare::{check_batch, prepare};
use crate::replies::replies;
use crate::request::{NewExample, check_name, check_support, draft, sentences};
use crate::service::blocking;
use crate::store::{Content, Draft, Expected};
use region::{LabelConfig, span};

/// Tasks to predict.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Predict {
    /// What Label Studio shows: `{"id": 1, "data": {"text": "…"}}`.
    pub tasks: Vec<Task>,
    /// The project, as `ID` or `ID.TIME`.
    #[serde(default)]
    pub project: Option<String>,
    /// The project's labelling configuration, in XML.
    #[serde(default)]
    pub label_config: Option<String>,
}

/// A task.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Task {
    /// What is labelled.
    #[schema(value_type = Object)]
    pub data: serde_json::Map<String, Value>,
}

/// The predictions of the tasks, in their order.
#[derive(Debug, Serialize, ToSchema)]
pub struct Predictions {
    /// One for each task.
    pub results: Vec<Prediction>,
    /// The domain and its version.
    pub model_version: String,
}

/// The prediction of a task.
#[derive(Debug, Serialize, ToSchema)]
pub struct Prediction {
    /// Regions as Label Studio draws them.
    #[schema(value_type = Vec<Object>)]
    pub result: Vec<Value>,
    /// The lowest probability of a span; 1 without spans.
    pub score: f64,
    /// The domain and its version.
    pub model_version: String,
}

/// What Label Studio says when a project is connected.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Setup {
    /// The project, as `ID` or `ID.TIME`.
    #[serde(default)]
    pub project: Option<String>,
}

/// What the backend answers to it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelVersion {
    /// The domain and its version.
    pub model_version: String,
}

/// Something that happened in Label Studio.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Event {
    /// `ANNOTATION_CREATED`, `ANNOTATION_UPDATED`, `ANNOTATIONS_DELETED`; others change nothing.
    pub action: String,
    /// The project.
    #[serde(default)]
    pub project: Option<Project>,
    /// The task that was annotated.
    #[serde(default)]
    pub task: Option<Task>,
    /// The annotation.
    #[serde(default)]
    pub annotation: Option<Annotation>,
    /// The annotations that were deleted.
    #[serde(default)]
    pub annotations: Vec<Id>,
}

/// A project.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Project {
    /// Its number.
    pub id: i64,
    /// Its labelling configuration, in XML.
    #[serde(default)]
    pub label_config: String,
}

/// Something with a number.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Id {
    /// The number.
    pub id: i64,
}

/// An annotation.
#[derive(Debug, Deserialize, ToSchema)]
pub struct Annotation {
    /// Its number.
    pub id: i64,
    /// Its regions.
    #[schema(value_type = Vec<Object>)]
    pub result: Vec<Region>,
    /// Whether the annotator skipped the task.
    #[serde(default)]
    pub was_cancelled: bool,
}

/// A region of a text, or something else that was annotated.
#[derive(Debug, Deserialize)]
pub struct Region {
    #[serde(default)]
    value: Value,
}

/// Predict tasks of Label Studio
#[utoipa::path(
    post, path = "/predict", tag = "label studio", operation_id = "predict",
    request_body = Predict,
    responses(
        (status = 200, body = Predictions),
        ErrorResponses,
    )
)]
pub async fn predict(
    State(app): State<App>,
    Json(request): Json<Predict>,
) -> ApiResult<axum::Json<Predictions>> {
    let name = domain_of(request.project.as_deref())?;
    let config = LabelConfig::read(request.label_config.as_deref().unwrap_or_default());
    let limits = app.config.limits;
    check_batch(request.tasks.len(), &limits)?;
    let texts =
        request.tasks.iter().map(|task| text(task, &config.key)).collect::<ApiResult<Vec<_>>>()?;
    let (version, answers) = match app.learner(&name, None).await {
        Ok((version, learner)) => {
            let prepared =
                blocking(move || prepare(&learner, texts, &Arc::default(), (&limits, "tasks")));
            let replies = replies(&app, prepared.await?)?.map_ok(|reply| reply.answer);
            (version, replies.try_collect::<Vec<_>>().await?)
        }
        // Before the first annotation there is nothing to say, and nothing wrong.
        Err(ApiError { code: Code::DomainNotFound | Code::NothingToLearn, .. }) => {
            (0, texts.into_iter().map(|text| Answer { text, spans: Vec::new() }).collect())
        }
        Err(error) => return Err(error),
    };
    let model_version = model_version(&name, version);
    let results = answers.iter().map(|answer| config.prediction(answer, &model_version)).collect();
    Ok(axum::Json(Predictions { results, model_version }))
}

/// Connect a project of Label Studio
#[utoipa::path(
    post, path = "/setup", tag = "label studio", operation_id = "setup",
    request_body = Setup,
    responses(
        (status = 200, body = ModelVersion),
        ErrorResponses,
    )
)]
pub async fn setup(
    State(app): State<App>,
    Json(request): Json<Setup>,
) -> ApiResult<axum::Json<ModelVersion>> {
    let name = domain_of(request.project.as_deref())?;
    let version = match app.store.version(&name).await {
        Err(ApiError { code: Code::DomainNotFound, .. }) => 0,
        version => version?,
    };
    Ok(axum::Json(ModelVersion { model_version: model_version(&name, version) }))
}

/// Learn from what happened in Label Studio
#[utoipa::path(
    post, path = "/webhook", tag = "label studio", operation_id = "webhook",
    request_body = Event,
    responses(
        (status = 200, body = ModelVersion),
        ErrorResponses,
    )
)]
pub async fn webhook(
    State(app): State<App>,
    Json(event): Json<Event>,
) -> ApiResult<axum::Json<ModelVersion>> {
    let name = domain_of(event.project.as_ref().map(|it| it.id.to_string()).as_deref())?;
    let config = event.project.as_ref().map_or("", |project| &project.label_config);
    let version = match (event.action.as_str(), event.annotation, event.task) {
        ("ANNOTATION_CREATED" | "ANNOTATION_UPDATED", Some(annotation), Some(task)) => {
            let text = text(&task, &LabelConfig::read(config).key)?;
            learn(&app, &name, annotation, text).await?
        }
        ("ANNOTATIONS_DELETED", ..) => {
            let gone: Vec<String> = event.annotations.iter().map(|it| source(it.id)).collect();
            let changed = app.store.change(&name, Expected::Any, |all, _| {
                all.examples.retain(|draft| !gone.contains(&draft.source));
                Ok(())
            });
            changed.await?.version
        }
        _ => 0,
    };
    Ok(axum::Json(ModelVersion { model_version: model_version(&name, version) }))
}

/// Makes an annotation an example, in the place of what it was before.
async fn learn(app: &App, name: &str, annotation: Annotation, text: String) -> ApiResult<i64> {
    let limits = app.config.limits;
    let spans = annotation.result.iter().filter_map(|region| span(&region.value, &text)).collect();
    let example = NewExample { id: None, text, spans };
    let sentences = sentences(&[example], &limits, "annotation")?;
    let source = source(annotation.id);
    match app.store.create(name, Content::default()).await {
        Ok(_) | Err(ApiError { code: Code::DomainExists, .. }) => {}
        Err(error) => return Err(error),
    }
    let changed = app.store.change(name, Expected::Any, |all, _| {
        let all = &mut all.examples;
        let before = all.iter().position(|draft| draft.source == source);
        let id = before.and_then(|at| all.remove(at).id);
        if !annotation.was_cancelled {
            all.push(Draft { source, ..draft(&sentences[0], id) });
        }
        check_support(all.len(), &limits, "annotation")
    });
    Ok(changed.await?.version)
}

fn model_version(domain: &str, version: i64) -> String {
    format!("{domain}@{version}")
}

fn source(annotation: i64) -> String {
    format!("label-studio:{annotation}")
}

fn domain_of(project: Option<&str>) -> ApiResult<String> {
    let id = project.and_then(|project| project.split('.').next()).unwrap_or("0");
    let name = format!("label-studio-{id}");
    check_name(&name)?;
    Ok(name)
}

/// The text of a task: at the key that the configuration names, or at `text`, or the only string there is.
fn text(task: &Task, key: &str) -> ApiResult<String> {
    let strings: Vec<&str> = task.data.values().filter_map(Value::as_str).collect();
    let named = [key, "text"].iter().find_map(|key| task.data.get(*key)?.as_str());
    let only = (strings.len() == 1).then(|| strings[0]);
    named.or(only).map(str::to_owned).ok_or_else(|| {
        ApiError::new(Code::InvalidRequest, "the task has no `text`").at("tasks.data")
    })
}
