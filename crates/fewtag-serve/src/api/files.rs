//! Domains as files, in any data format.

use std::path::Path;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use fewtag::data::{self, ReadOptions};
use fewtag::scheme::Scheme;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa::openapi::schema::Schema;

use super::body::{IfMatch, InDomain, Parameters, Raw, etag};
use super::domains::{Change, change};
use crate::App;
use crate::error::{ApiResult, ErrorResponses};
use crate::request::{check_support, check_texts, data_format, draft, formats, label};
use crate::service::blocking;
use crate::store::Draft;

/// How to read a file.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Import {
    /// A data format, or `auto` to recognise it.
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
    formats(&["auto"]).into()
}

fn export_formats() -> Schema {
    formats(&[]).into()
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
    /// A data format; `spacy` keeps everything and is the default.
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
        None | Some("auto") => None,
        Some(name) => Some(data_format(name)?),
    };
    let limits = app.config.limits;
    let options = ReadOptions { format, repair, ..ReadOptions::default() };
    let (drafts, notes) = blocking(move || {
        let (drafts, notes) = read(&bytes, &options)?;
        check_texts(drafts.iter().map(|draft| draft.text.as_str()), &limits)?;
        Ok((drafts, notes))
    })
    .await?;
    let n = drafts.len();
    let changed = app.store.change(&name, if_match.or_any(), |all, _| {
        if matches!(mode, Mode::Replace) {
            all.clear();
        }
        all.extend(drafts);
        check_support(all.len(), &limits, "body")
    });
    let changed = changed.await?;
    let ids = changed.ids[changed.ids.len() - n..].iter().map(ToString::to_string).collect();
    Ok(change(Change { name, version: changed.version, ids, notes }))
}

/// The examples of a file; words that the file cuts otherwise than we do are taken whole, with a note.
fn read(bytes: &[u8], options: &ReadOptions) -> ApiResult<(Vec<Draft>, Vec<String>)> {
    let corpus = data::parse(Path::new("file"), bytes, options)?;
    let mut notes: Vec<String> = corpus.notes.iter().map(ToString::to_string).collect();
    let repair = ReadOptions { repair: true, ..ReadOptions::default() };
    let mut drafts = Vec::new();
    for sentence in corpus.sentences() {
        let (text, _) = sentence.text();
        let (sentence, repaired) = data::label_text(&text, data::labels(sentence), &repair)?;
        notes.extend(repaired.iter().map(ToString::to_string));
        drafts.push(draft(&sentence, None));
    }
    Ok((drafts, notes))
}

/// Export a domain in any data format
#[utoipa::path(
    get, path = "/v1/domains/{name}/export", tag = "files", operation_id = "export",
    params(InDomain, Export),
    responses(
        (status = 200, description = "The file", body = String, content_type = "text/plain",
         headers(("ETag" = String))),
        ErrorResponses,
    )
)]
pub async fn export(
    State(app): State<App>,
    InDomain { name }: InDomain,
    Parameters(Export { format }): Parameters<Export>,
) -> ApiResult<Response> {
    let format = data_format(format.as_deref().unwrap_or("spacy"))?;
    let domain = app.store.read(&name).await?;
    let sentences = domain.examples.iter().map(|example| label(&example.text, &example.spans));
    let sentences = sentences.collect::<ApiResult<_>>()?;
    let mut file = Vec::new();
    let of = fewtag::Domain { name: name.clone(), sentences };
    data::write(format, Scheme::Iob2, &[of], &mut file)?;
    let disposition = format!("attachment; filename=\"{name}.{format}\"");
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()),
        (header::CONTENT_DISPOSITION, disposition),
    ];
    Ok((etag(domain.version), headers, file).into_response())
}
