//! Domains as files, in any data format.

use std::path::Path;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use fewtag::answer::Thresholds;
use fewtag::data::{self, ReadOptions};
use fewtag::scheme::Scheme;
use fewtag::{DomainFile, Sentence, Tagger};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa::openapi::schema::Schema;

use super::body::{IfMatch, InDomain, Parameters, Raw, etag, too_large};
use super::domains::{Change, change};
use crate::App;
use crate::config::Limits;
use crate::error::{ApiError, ApiResult, Code, ErrorResponses};
use crate::labels::{check_number, of_support};
use crate::request::{check_support, check_texts, data_format, draft, formats, label};
use crate::service::blocking;
use crate::store::{Content, Draft, Weights};

/// The name of the format of saved domains.
const DOMAIN_FILE: &str = "fewtag";

/// How to read a file.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Import {
    /// A data format, `fewtag` for a saved domain, or `auto` to recognise it.
    #[serde(default)]
    #[param(schema_with = import_formats)]
    format: Option<String>,
    /// Whether the examples are added to those of the domain or take their place.
    #[serde(default)]
    #[param(inline)]
    mode: Mode,
    /// Mend what can be mended, with a note, instead of refusing it.
    #[serde(default)]
    repair: bool,
}

fn import_formats() -> Schema {
    formats(&["auto", DOMAIN_FILE]).into()
}

fn export_formats() -> Schema {
    formats(&[DOMAIN_FILE]).into()
}

/// What an import does to the examples that are there.
#[derive(Debug, Clone, Copy, Default, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It adds to them.
    #[default]
    Append,
    /// It takes their place.
    Replace,
}

/// Which file to write.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Export {
    /// A data format; `spacy` keeps everything and is the default. `fewtag` is a saved domain, which the command and Python
    /// open as it is.
    #[param(schema_with = export_formats)]
    format: Option<String>,
}

/// Import a file of labelled sentences in any data format
#[utoipa::path(
    post, path = "/v1/domains/{name}/import", tag = "files", operation_id = "import",
    params(InDomain, IfMatch, Import),
    request_body(content = String, content_type = "application/octet-stream", description = "The file"),
    responses(
        (status = 200, body = Change, headers(("ETag" = String))),
        ErrorResponses,
    )
)]
pub async fn import(
    State(app): State<App>,
    InDomain { name }: InDomain,
    Parameters(Import { format, mode, repair }): Parameters<Import>,
    if_match: IfMatch,
    Raw(bytes): Raw,
) -> ApiResult<Response> {
    let format = match format.as_deref() {
        None | Some("auto" | DOMAIN_FILE) => None,
        Some(name) => Some(data_format(name)?),
    };
    let (limits, tagger) = (app.config.limits, app.tagger.clone());
    let options = ReadOptions { format, repair, ..ReadOptions::default() };
    let (file, notes) = blocking(move || {
        let (file, notes) = if DomainFile::is_one(&bytes) {
            read_saved(&bytes, &tagger, &limits)?
        } else {
            check_length(&bytes, &limits)?;
            read(&bytes, &options)?
        };
        check_texts(file.examples.iter().map(|draft| draft.text.as_str()), &limits)?;
        Ok((file, notes))
    })
    .await?;
    let n = file.examples.len();
    let changed = app.store.change(&name, if_match.or_any(), |all, _| {
        if matches!(mode, Mode::Replace) {
            all.examples.clear();
        }
        add(all, file);
        check_number(all.declared.labels.len(), &limits).map_err(|error| error.at("body"))?;
        check_support(all.examples.len(), &limits, "body")
    });
    let changed = changed.await?;
    let ids = changed.ids[changed.ids.len() - n..].iter().map(ToString::to_string).collect();
    Ok(change(Change { name, version: changed.version, ids, notes }))
}

/// Adds what a file holds; what it says of a label takes the place of what was said before.
fn add(all: &mut Content, file: Content) {
    all.examples.extend(file.examples);
    for label in file.declared.labels {
        if !all.declared.labels.contains(&label) {
            all.declared.labels.push(label);
        }
    }
    all.declared.meanings.extend(file.declared.meanings);
    all.weights = file.weights;
}

/// Refuses a longer file than other bodies may be: only saved domains, which may be tuned, are longer.
fn check_length(bytes: &[u8], limits: &Limits) -> ApiResult<()> {
    if bytes.len() <= limits.body { Ok(()) } else { Err(too_large(limits.body)) }
}

/// The examples of a file of labelled sentences, and what was repaired.
fn read(bytes: &[u8], options: &ReadOptions) -> ApiResult<(Content, Vec<String>)> {
    let corpus = data::parse(Path::new("file"), bytes, options)?;
    let mut notes = corpus.notes.iter().map(ToString::to_string).collect();
    let sentences: Vec<Sentence> = corpus.into_sentences().collect();
    let examples = examples(&sentences, &mut notes)?;
    Ok((Content { examples, ..Content::default() }, notes))
}

/// The examples and labels of a saved domain, and its weights if it was tuned for this model. Of the rest of its settings nothing is
/// taken: they are its model's.
fn read_saved(bytes: &[u8], tagger: &Tagger, limits: &Limits) -> ApiResult<(Content, Vec<String>)> {
    let domain = DomainFile::from_bytes(bytes, Path::new("file"))?;
    let (declared, mut notes) = (of_support(domain.support()), Vec::new());
    let examples = examples(domain.support().sentences(), &mut notes)?;
    let weights = if domain.figures().is_none() {
        None
    } else if tagger.checksum() == Some(domain.model()) {
        let checked = Weights::checked(&domain, tagger, limits.tuned);
        Some(checked.map_err(|problem| ApiError::new(Code::InvalidData, problem))?)
    } else {
        let note = "it was tuned for another model: its examples are taken, its weights are not";
        notes.push(note.to_owned());
        None
    };
    if weights.is_some() {
        notes.push("its tuned weights are used from now on; `tune/undo` goes back".to_owned());
    }
    Ok((Content { examples, declared, weights }, notes))
}

/// Sentences as the store keeps them; words that a file cuts otherwise than we do are taken whole, with a note.
fn examples(sentences: &[Sentence], notes: &mut Vec<String>) -> ApiResult<Vec<Draft>> {
    let repair = ReadOptions { repair: true, ..ReadOptions::default() };
    let mut examples = Vec::new();
    for sentence in sentences {
        let (text, _) = sentence.text();
        let (sentence, repaired) = data::label_text(&text, data::labels(sentence), &repair)?;
        notes.extend(repaired.iter().map(ToString::to_string));
        examples.push(draft(&sentence, None));
    }
    Ok(examples)
}

/// Export a domain in any data format
#[utoipa::path(
    get, path = "/v1/domains/{name}/export", tag = "files", operation_id = "export",
    params(InDomain, Export),
    responses(
        (status = 200, description = "The file",
         content((String = "text/plain"), (String = "application/octet-stream")),
         headers(("ETag" = String))),
        ErrorResponses,
    )
)]
pub async fn export(
    State(app): State<App>,
    InDomain { name }: InDomain,
    Parameters(Export { format }): Parameters<Export>,
) -> ApiResult<Response> {
    if format.as_deref() == Some(DOMAIN_FILE) {
        let (version, learner) = app.learner(&name, None).await?;
        let (tagger, support) = (learner.tagger(), learner.support().clone());
        let file = DomainFile::new(tagger, support, Thresholds::default())?.to_bytes();
        return Ok(download(&name, DOMAIN_FILE, version, file));
    }
    let domain = app.store.read(&name).await?;
    let format = data_format(format.as_deref().unwrap_or("spacy"))?;
    let sentences = domain.examples.iter().map(|example| label(&example.text, &example.spans));
    let sentences = sentences.collect::<ApiResult<_>>()?;
    let mut file = Vec::new();
    let of = fewtag::Domain { name: name.clone(), sentences };
    data::write(format, Scheme::Iob2, &[of], &mut file)?;
    Ok(download(&name, format.name(), domain.version, file))
}

fn download(name: &str, format: &str, version: i64, file: Vec<u8>) -> Response {
    let kind = match format {
        DOMAIN_FILE => "application/octet-stream",
        _ => "text/plain; charset=utf-8",
    };
    let disposition = format!("attachment; filename=\"{name}.{format}\"");
    let headers =
        [(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, disposition)];
    (etag(version), headers, file).into_response()
}
