//! Which tagger a command uses: a model, and how it reads.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use fewtag::encoder::Precision;
use fewtag::{Context, ModelSettings, Tagger};

use super::{hub, values};

/// Which tagger to use
#[derive(Debug, clap::Args)]
pub(crate) struct TaggerArgs {
    /// Model directory written by `fewtag train`, or `owner/name` on the Hugging Face hub [default: the model
    /// built into fewtag]
    #[arg(long, value_name = "DIR|NAME")]
    model: Option<String>,
    /// How query and support are read; paired costs a pass for every support sentence [default: the model's]
    #[arg(long)]
    context: Option<ContextArg>,
    /// In which numbers the encoder computes: f32 takes several times as long (docs/reference/engine.md)
    #[arg(long, value_parser = values::precision(), default_value_t)]
    precision: Precision,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum ContextArg {
    Paired,
    Separate,
}

impl TaggerArgs {
    /// Loads it.
    pub(crate) fn load(&self) -> anyhow::Result<Tagger> {
        let tagger = load(self.model.as_deref(), self.precision)?;
        let context = match self.context {
            None => return Ok(tagger),
            Some(ContextArg::Paired) => Context::Paired,
            Some(ContextArg::Separate) => Context::Separate,
        };
        Ok(tagger.with_settings(ModelSettings { context, ..tagger.settings().clone() })?)
    }
}

/// The model of this directory or name, or the one that is built in.
pub(crate) fn load(model: Option<&str>, precision: Precision) -> anyhow::Result<Tagger> {
    match model {
        Some(name) => find(name)
            .and_then(|dir| Ok(fewtag::model::load_with(&dir, precision)?))
            .with_context(|| format!("cannot use the model `{name}`")),
        None => built_in(precision),
    }
}

#[cfg(feature = "built-in")]
fn built_in(precision: Precision) -> anyhow::Result<Tagger> {
    Ok(fewtag::model::built_in(precision)?)
}

#[cfg(not(feature = "built-in"))]
fn built_in(_: Precision) -> anyhow::Result<Tagger> {
    bail!(
        "this fewtag was built without a model: name one with `--model` (a directory, or `owner/name` on the hub)"
    )
}

/// What a model consists of; its description last, so that a cache which has it has the rest.
const FILES: [&str; 4] = ["config.json", "tokenizer.json", "model.safetensors", "fewtag.json"];

/// The directory of a model: the one of this name, or else the hub's.
fn find(name: &str) -> anyhow::Result<PathBuf> {
    if PathBuf::from(name).is_dir() {
        return Ok(name.into());
    }
    let is_hub_name = name.split('/').count() == 2 && !name.starts_with(['.', '/', '~']);
    if !is_hub_name || name.ends_with('/') {
        bail!("there is no such directory; a model on the Hugging Face hub is named `owner/name`");
    }
    // What was fetched before is used when the hub is out of reach.
    hub::fetch(name, "main", wanted).or_else(|error| {
        hub::cached(name, "main", "fewtag.json").ok_or_else(|| {
            error.context("there is no such directory, and the Hugging Face hub does not give it")
        })
    })
}

/// The files of a model, if a repository has them.
fn wanted<'a>(files: &[&'a str]) -> anyhow::Result<Vec<&'a str>> {
    let find = |wanted: &&str| files.iter().copied().find(|file| file == wanted);
    if let Some(missing) = FILES.iter().find(|wanted| find(wanted).is_none()) {
        bail!(
            "it has no `{missing}`: it is no fewtag model (`fewtag encoder fetch` gets an encoder, `fewtag train` makes a \
             model of it)"
        );
    }
    Ok(FILES.iter().filter_map(find).collect())
}
