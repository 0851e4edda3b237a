//! Domains as files, in any data format.

use std::path::Path;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use fewtag::answer::Thresholds;
use fewtag::data::{self, ReadOptions};
use fewtag::scheme::Scheme;
use fewtag::{DomainFile, Sentence};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa::openapi::schema::Schema;

use super::body::{IfMatch, InDomain, Parameters, Raw, etag};
use super::domains::{Change, change};
use crate::App;
use crate::error::{ApiResult, ErrorResponses};
use crate::labels::{check_number, of_domain, of_support};
use crate::request::{check_support, check_texts, data_format, draft, formats, label};
use crate::service::blocking;
use crate::store::{Content, Declared};

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
    let limits = app.config.limits;
    let options = ReadOptions { format, repair, ..ReadOptions::default() };
    let (file, notes) = blocking(move || {
        let (file, notes) = read(&bytes, &options)?;
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
}

/// What is said of a domain that was tuned.
const TUNED: &str = "the domain was tuned; its examples are taken, its weights are not";

/// The examples of a file, and the labels of a saved domain; words that the file cuts otherwise than we do are taken whole, with
/// a note.
fn read(bytes: &[u8], options: &ReadOptions) -> ApiResult<(Content, Vec<String>)> {
    let mut declared = Declared::default();
    let (sentences, mut notes): (Vec<Sentence>, Vec<String>) = if DomainFile::is_one(bytes) {
        // Its settings and its model are another's; a domain of the server has examples and labels.
        let domain = DomainFile::from_bytes(bytes, Path::new("file"))?;
        declared = of_support(domain.support());
        let tuned = domain.figures().map(|_| TUNED.to_owned());
        (domain.support().sentences().to_vec(), tuned.into_iter().collect())
    } else {
        let corpus = data::parse(Path::new("file"), bytes, options)?;
        let notes = corpus.notes.iter().map(ToString::to_string).collect();
        (corpus.into_sentences().collect(), notes)
    };
    let repair = ReadOptions { repair: true, ..ReadOptions::default() };
    let mut examples = Vec::new();
    for sentence in &sentences {
        let (text, _) = sentence.text();
        let (sentence, repaired) = data::label_text(&text, data::labels(sentence), &repair)?;
        notes.extend(repaired.iter().map(ToString::to_string));
        examples.push(draft(&sentence, None));
    }
    Ok((Content { examples, declared }, notes))
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
    let domain = app.store.read(&name).await?;
    if format.as_deref() == Some(DOMAIN_FILE) {
        let of = of_domain(&app.tagger, &domain)?;
        let file = DomainFile::new(&app.tagger, of, Thresholds::default())?.to_bytes();
        return Ok(download(&name, DOMAIN_FILE, domain.version, file));
    }
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
