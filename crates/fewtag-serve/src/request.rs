//! What clients send, and where it is checked; texts to be tagged are checked in `prepare.rs`, names of labels in `labels.rs`.

use std::collections::BTreeMap;
use std::sync::Arc;

use fewtag::answer::Thresholds;
use fewtag::data::{self, ReadOptions};
use fewtag::{Context, Error, Sentence};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};

use crate::config::Limits;
use crate::error::{ApiError, ApiResult, Code, chain};
use crate::queue::Wanted;
use crate::store::{Draft, LabelledSpan};

/// A labelled text.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"text": "play nina simone", "spans": [{"start": 5, "end": 16, "label": "artist"}]}))]
pub struct NewExample {
    /// Of an example that the domain has or had: it keeps its id. Otherwise the server gives one.
    #[serde(default)]
    pub id: Option<String>,
    /// The text.
    pub text: String,
    /// Its labels; words outside them are examples of "no slot".
    #[serde(default)]
    pub spans: Vec<LabelledSpan>,
}

/// How query and support are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ContextName {
    /// Each alone.
    Separate,
    /// The query beside every example: a pass of the encoder for each.
    Paired,
}

/// Examples or names of labels, and texts to tag with them.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "support": [{"text": "play nina simone", "spans": [{"start": 5, "end": 16, "label": "artist"}]}],
    "texts": ["put on some miles davis"],
}))]
pub struct TagRequest {
    /// What to learn from.
    pub support: Option<Vec<NewExample>>,
    /// Labels to look for by their names, with or without examples.
    #[schema(example = json!(["artist", "song title"]))]
    pub labels: Option<Vec<String>>,
    /// What labels mean whose own name does not say it; `null`: the name says nothing.
    pub meanings: Option<BTreeMap<String, Option<String>>>,
    /// What to tag.
    pub texts: Option<Vec<String>>,
    /// Several groups of `support`, `labels`, `meanings` and `texts`, instead of these.
    pub batch: Option<Vec<Group>>,
    /// Drop spans less probable than this.
    #[schema(minimum = 0, maximum = 1)]
    pub threshold: Option<f64>,
    /// The same for single slots.
    pub thresholds: Option<BTreeMap<String, f64>>,
    /// Say which examples spoke for each span.
    pub explain: Option<bool>,
    /// The model's own if absent.
    pub context: Option<ContextName>,
    /// `json`, `jsonl` or a data format.
    #[schema(schema_with = answer_formats)]
    pub format: Option<String>,
}

/// A support and the texts to tag with it.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// What to learn from.
    #[serde(default)]
    pub support: Vec<NewExample>,
    /// Labels to look for by their names, with or without examples.
    #[serde(default)]
    pub labels: Vec<String>,
    /// What labels mean whose own name does not say it; `null`: the name says nothing.
    #[serde(default)]
    pub meanings: BTreeMap<String, Option<String>>,
    /// What to tag.
    pub texts: Vec<String>,
}

// It repeats the options of `TagRequest`: serde's `flatten` would let unknown fields pass.
/// Texts to tag with a domain.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"texts": ["put on some miles davis"], "explain": true}))]
pub struct DomainTagRequest {
    /// What to tag.
    pub texts: Vec<String>,
    /// Drop spans less probable than this.
    #[schema(minimum = 0, maximum = 1)]
    pub threshold: Option<f64>,
    /// The same for single slots.
    pub thresholds: Option<BTreeMap<String, f64>>,
    /// Say which examples spoke for each span.
    pub explain: Option<bool>,
    /// The model's own if absent.
    pub context: Option<ContextName>,
    /// `json`, `jsonl` or a data format.
    #[schema(schema_with = answer_formats)]
    pub format: Option<String>,
}

/// How answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// One JSON object.
    Json,
    /// One JSON object a line.
    Lines,
    /// Labelled data.
    Data(data::Format),
}

/// The options of a request, checked.
#[derive(Debug, Clone)]
pub struct Options {
    /// What each answer holds.
    pub wanted: Arc<Wanted>,
    /// How texts are read, if it was said.
    pub context: Option<Context>,
    /// How answers are written.
    pub output: Output,
}

impl TagRequest {
    /// The options, and the supports with their texts.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidRequest`] if an option means nothing, if there is neither or both of `texts` and `batch`, or nothing to
    /// learn from.
    pub fn parts(self) -> ApiResult<(Options, Vec<Group>, &'static str)> {
        let options = options(
            (self.threshold, self.thresholds),
            self.explain,
            self.context,
            self.format.as_deref(),
        )?;
        let has_own = self.support.is_some() || self.labels.is_some();
        match (self.texts, self.batch) {
            (Some(texts), None) if has_own => {
                let support = self.support.unwrap_or_default();
                let (labels, meanings) = (self.labels, self.meanings);
                let (labels, meanings) = (labels.unwrap_or_default(), meanings.unwrap_or_default());
                Ok((options, vec![Group { support, labels, meanings, texts }], ""))
            }
            (None, Some(batch)) if !has_own && self.meanings.is_none() => {
                Ok((options, batch, "batch"))
            }
            _ => {
                let message = "give either `texts` with `support` or `labels` or both, or `batch`";
                Err(ApiError::new(Code::InvalidRequest, message))
            }
        }
    }
}

impl DomainTagRequest {
    /// The options and the texts.
    ///
    /// # Errors
    ///
    /// [`Code::InvalidRequest`] if an option means nothing.
    pub fn parts(self) -> ApiResult<(Options, Vec<String>)> {
        let thresholds = (self.threshold, self.thresholds);
        let format = self.format.as_deref();
        Ok((options(thresholds, self.explain, self.context, format)?, self.texts))
    }
}

fn options(
    (general, of_label): (Option<f64>, Option<BTreeMap<String, f64>>),
    explain: Option<bool>,
    context: Option<ContextName>,
    format: Option<&str>,
) -> ApiResult<Options> {
    let thresholds =
        Thresholds { general: general.unwrap_or(0.0), of_label: of_label.unwrap_or_default() };
    if !thresholds.of_label.values().chain([&thresholds.general]).all(|p| (0.0..=1.0).contains(p)) {
        let message = "a threshold is a probability: from 0 to 1";
        return Err(ApiError::new(Code::InvalidRequest, message).at("threshold"));
    }
    let context = context.map(|name| match name {
        ContextName::Separate => Context::Separate,
        ContextName::Paired => Context::Paired,
    });
    let output = match format {
        None | Some("json") => Output::Json,
        Some("jsonl") => Output::Lines,
        Some(name) => Output::Data(data_format(name)?),
    };
    // A file of data has no place for explanations: they would be made for nobody.
    let explain = explain.unwrap_or(false) && !matches!(output, Output::Data(_));
    let wanted = Wanted { thresholds, explain };
    Ok(Options { wanted: Arc::new(wanted), context, output })
}

/// For the document: the data formats and these names.
pub(crate) fn formats(more: &[&str]) -> ObjectBuilder {
    let names = more.iter().copied().chain(data::Format::ALL.iter().map(|it| it.name()));
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names))
}

fn answer_formats() -> Schema {
    let format = formats(&["json", "jsonl"]);
    let absent = ObjectBuilder::new().schema_type(Type::Null);
    let what = "`json`, `jsonl` or a data format.";
    OneOfBuilder::new().description(Some(what)).item(absent).item(format).into()
}

/// A data format by its name.
///
/// # Errors
///
/// [`Code::InvalidRequest`] if there is none of this name.
pub fn data_format(name: &str) -> ApiResult<data::Format> {
    name.parse().map_err(|message| ApiError::new(Code::InvalidRequest, message).at("format"))
}

/// A domain's name.
///
/// # Errors
///
/// [`Code::InvalidDomainName`] if it could not stand in an address.
pub fn check_name(name: &str) -> ApiResult<()> {
    let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let fits = (1..=100).contains(&name.len())
        && name.chars().all(letter)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if fits {
        return Ok(());
    }
    let message = "a domain's name has 1 to 100 ASCII letters, digits, `.`, `_` or `-`, and begins with a letter or digit";
    Err(ApiError::new(Code::InvalidDomainName, message).at("name"))
}

/// What tells examples and labels from others: the SHA-256 digest of their JSON.
///
/// # Panics
///
/// Never: examples are JSON.
#[must_use]
pub fn digest(group: &Group) -> [u8; 32] {
    let Group { support, labels, meanings, texts: _ } = group;
    let json = serde_json::to_vec(&(support, labels, meanings));
    Sha256::digest(json.expect("examples are JSON")).into()
}

/// Checks the number of examples and each of them; `place` is where they stand in the request.
///
/// # Errors
///
/// [`Code::SupportTooLarge`], [`Code::TextTooLong`], [`Code::InvalidExample`].
pub fn sentences(
    examples: &[NewExample],
    limits: &Limits,
    place: &str,
) -> ApiResult<Vec<Sentence>> {
    check_support(examples.len(), limits, place)?;
    let checked = examples.iter().enumerate();
    checked.map(|(at, example)| sentence(example, limits, &format!("{place}[{at}]"))).collect()
}

/// Refuses more examples than a domain may have.
///
/// # Errors
///
/// [`Code::SupportTooLarge`].
pub fn check_support(n: usize, limits: &Limits, place: &str) -> ApiResult<()> {
    if n <= limits.support {
        return Ok(());
    }
    let message = format!("{n} examples; at most {} are taken", limits.support);
    Err(ApiError::new(Code::SupportTooLarge, message).at(place))
}

fn sentence(example: &NewExample, limits: &Limits, place: &str) -> ApiResult<Sentence> {
    check_text(&example.text, limits).map_err(|error| error.at(format!("{place}.text")))?;
    label(&example.text, &example.spans).map_err(|error| error.at(place))
}

/// The labelled sentence of a text.
///
/// # Errors
///
/// [`Code::InvalidExample`] if a label does not fit the text.
pub fn label(text: &str, spans: &[LabelledSpan]) -> ApiResult<Sentence> {
    let labels = spans.iter().map(|span| (span.start..span.end, span.label.clone()));
    match data::label_text(text, labels, &ReadOptions::default()) {
        Ok((sentence, _)) => Ok(sentence),
        Err(Error::Data(found)) => Err(ApiError::new(Code::InvalidExample, chain(&found.problem))),
        Err(error) => Err(error.into()),
    }
}

/// A sentence as the store keeps it.
#[must_use]
pub fn draft(sentence: &Sentence, id: Option<i64>) -> Draft {
    let spans = data::labels(sentence).into_iter();
    let spans = spans.map(|(at, label)| LabelledSpan { start: at.start, end: at.end, label });
    let text = sentence.text().0.into_owned();
    Draft { id, text, spans: spans.collect(), source: String::new() }
}

/// Checks each of many texts.
///
/// # Errors
///
/// [`Code::TextTooLong`], [`Code::InvalidExample`].
pub fn check_texts<'a>(texts: impl IntoIterator<Item = &'a str>, limits: &Limits) -> ApiResult<()> {
    let mut texts = texts.into_iter().enumerate();
    texts.try_for_each(|(at, text)| {
        check_text(text, limits).map_err(|error| error.at(format!("sentence {}", at + 1)))
    })
}

pub(crate) fn check_text(text: &str, limits: &Limits) -> ApiResult<()> {
    if text.contains('\0') {
        return Err(ApiError::new(Code::InvalidExample, "a text holds no NUL character"));
    }
    let n = text.chars().count();
    if n > limits.text {
        let message = format!("the text has {n} characters, at most {} are taken", limits.text);
        return Err(ApiError::new(Code::TextTooLong, message));
    }
    Ok(())
}
