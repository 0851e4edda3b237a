//! What clients send, and the one place where it is checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use fewtag::answer::Thresholds;
use fewtag::data::{self, ReadOptions};
use fewtag::{Context, Error, Sentence, SupportSet, Tag, words};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};

use crate::config::Limits;
use crate::error::{ApiError, ApiResult, Code, chain};
use crate::learner::Learner;
use crate::queue::{Item, Wanted};
use crate::store::{Draft, Example, LabelledSpan};

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

/// Examples and texts to tag with them.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "support": [{"text": "play nina simone", "spans": [{"start": 5, "end": 16, "label": "artist"}]}],
    "texts": ["put on some miles davis"],
}))]
pub struct TagRequest {
    /// What to learn from.
    pub support: Option<Vec<NewExample>>,
    /// What to tag.
    pub texts: Option<Vec<String>>,
    /// Several supports with their texts, instead of `support` and `texts`.
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
    pub support: Vec<NewExample>,
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
    /// [`Code::InvalidRequest`] if an option means nothing, or if there is neither or both of `texts` and `batch`.
    pub fn parts(self) -> ApiResult<(Options, Vec<Group>, &'static str)> {
        let options = options(
            (self.threshold, self.thresholds),
            self.explain,
            self.context,
            self.format.as_deref(),
        )?;
        match (self.support, self.texts, self.batch) {
            (Some(support), Some(texts), None) => Ok((options, vec![Group { support, texts }], "")),
            (None, None, Some(batch)) => Ok((options, batch, "batch")),
            _ => {
                let message = "give either `support` and `texts`, or `batch`";
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

/// What tells examples from others: the SHA-256 digest of their JSON.
///
/// # Panics
///
/// Never: examples are JSON.
#[must_use]
pub fn digest(examples: &[NewExample]) -> [u8; 32] {
    Sha256::digest(serde_json::to_vec(examples).expect("examples are JSON")).into()
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

/// The support set of stored examples.
///
/// # Errors
///
/// [`Code::NothingToLearn`] if they label nothing.
pub fn support(examples: &[Example]) -> ApiResult<SupportSet> {
    let sentences = examples.iter().map(|example| label(&example.text, &example.spans));
    Ok(SupportSet::new(sentences.collect::<ApiResult<_>>()?)?)
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

fn check_text(text: &str, limits: &Limits) -> ApiResult<()> {
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

/// A text on its way: what the encoder reads, or what has no words and needs no encoder.
pub enum Prepared {
    /// To be tagged.
    Item(Item),
    /// Nothing to tag.
    Blank(String),
}

/// Cuts texts into words and counts what they cost. Takes time for long texts: not for an async thread.
///
/// # Errors
///
/// [`Code::TextTooLong`], [`Code::UnknownLabel`].
pub fn prepare(
    learner: &Arc<Learner>,
    texts: Vec<String>,
    wanted: &Arc<Wanted>,
    (limits, place): (&Limits, &str),
) -> ApiResult<Vec<Prepared>> {
    if let Some(label) = wanted.thresholds.unknown_label(learner.support().tag_set()) {
        let message = format!("the examples have no label `{label}`");
        return Err(ApiError::new(Code::UnknownLabel, message).at("thresholds"));
    }
    let mut of_support = learner.cost();
    let mut prepare = |(at, text): (usize, String)| {
        let place = || format!("{place}[{at}]");
        check_text(&text, limits).map_err(|error| error.at(place()))?;
        let words = words::split(&text, words::WordSplit::Unicode);
        if words.is_empty() {
            return Ok(Prepared::Blank(text));
        }
        let tags = vec![Tag::O; words.len()];
        let sentence = Sentence::from_text(text, words, tags)?;
        let own = cost(learner, &sentence, wanted, limits).map_err(|error| error.at(place()))?;
        let cost = own + std::mem::take(&mut of_support);
        let (learner, wanted) = (Arc::clone(learner), Arc::clone(wanted));
        Ok(Prepared::Item(Item { learner, sentence, wanted, cost }))
    };
    texts.into_iter().enumerate().map(&mut prepare).collect()
}

/// What it costs to answer a text whose examples are known.
fn cost(
    learner: &Learner,
    sentence: &Sentence,
    wanted: &Wanted,
    limits: &Limits,
) -> ApiResult<usize> {
    let n_words = sentence.n_words();
    let to_score = learner.cost_to_score(n_words);
    if to_score > limits.queue {
        let n_labels = learner.support().tag_set().slots().len();
        let message =
            format!("{n_words} words are too many for the {n_labels} labels of the examples");
        return Err(ApiError::new(Code::TextTooLong, message));
    }
    let to_explain = if wanted.explain { learner.cost_to_explain(n_words) } else { 0 };
    Ok(learner.cost_of(sentence.words())? + to_score + to_explain)
}

/// Refuses more texts than a request may have.
///
/// # Errors
///
/// [`Code::BatchTooLarge`].
pub fn check_batch(n: usize, limits: &Limits) -> ApiResult<()> {
    if n <= limits.batch {
        return Ok(());
    }
    let message = format!("{n} texts; at most {} are taken in a request", limits.batch);
    Err(ApiError::new(Code::BatchTooLarge, message).at("texts"))
}

/// Refuses a request whose explanations alone would fill the queue: what is asked for at once must be done in about the time
/// that others wait for at most, and so must the memory of its answer be bounded.
///
/// # Errors
///
/// [`Code::ExplanationTooLarge`].
pub fn check_explained(prepared: &[Prepared], limits: &Limits) -> ApiResult<()> {
    let cost = |one: &Prepared| match one {
        Prepared::Item(item) if item.wanted.explain => {
            item.learner.cost_to_explain(item.sentence.n_words())
        }
        _ => 0,
    };
    let cost: usize = prepared.iter().map(cost).sum();
    if cost <= limits.queue {
        return Ok(());
    }
    let message = format!(
        "to explain these texts costs up to {cost}, and at most {} is taken (--max-queue): send fewer texts, or tag without `explain`",
        limits.queue
    );
    Err(ApiError::new(Code::ExplanationTooLarge, message).at("explain"))
}
