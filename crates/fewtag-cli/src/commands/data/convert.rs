//! `fewtag data convert`: labelled sentences from any format to any other.

use std::collections::HashSet;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use fewtag::data::{self, Corpus, Format};
use fewtag::scheme::Scheme;
use fewtag::{Domain, Episode, Error, file};

use super::{ReadArgs, data_format, scheme};
use crate::outputs::{Force, Inputs};
use crate::{hints, sources};

/// Write labelled sentences in another format
///
/// What the new format cannot hold is told on standard error, as is what was not read. The output is written whole or not at all.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag data convert examples/weather.conll weather.rasa.yml
  fewtag data convert examples/weather.conll - --to inline")]
pub(crate) struct Args {
    /// File of labelled sentences in any format (docs/reference/data.md), or a directory of them; `-` is standard input
    input: PathBuf,
    /// File to write; `-` is standard output
    output: PathBuf,
    /// The format to write; unless given, the file's name must hold it, as in `x.conll` or `x.rasa.yml`
    #[arg(long, value_parser = data_format())]
    to: Option<Format>,
    /// The tagging scheme to write, in the formats `conll` and `hf`
    #[arg(long, value_parser = scheme(), default_value = Scheme::Iob2.name())]
    to_scheme: Scheme,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs the command; `out` is written to only if it is asked for.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let Some(to) = args.to.or_else(|| named(&args.output)) else {
        bail!("`{}` names no data format; add --to FORMAT", args.output.display());
    };
    if args.to_scheme != Scheme::Iob2 && !matches!(to, Format::Conll | Format::Hf) {
        bail!("{to} has no choice of tagging schemes; --to-scheme is for conll and hf");
    }
    let files = args.read.files(std::slice::from_ref(&args.input))?;
    let to_standard_output = args.output == Path::new("-");
    if !to_standard_output {
        args.force.check(&Inputs::new(&files), [args.output.as_path()])?;
    }
    let content = read(args, &files, to)?;
    let write = |out: &mut dyn Write| match content {
        Content::Episodes(episodes) => data::write_episodes(out, &episodes),
        Content::Domains(domains) => data::write(to, args.to_scheme, &domains, out),
    };
    if to_standard_output {
        write(out).context("cannot convert")?;
    } else {
        file::write_atomically_with(&args.output, |file| {
            let mut file = BufWriter::new(file);
            write(&mut file)?;
            file.flush().map_err(Error::Write)
        })?;
    }
    Ok(())
}

/// What is written.
enum Content {
    /// Episodes that stay episodes.
    Episodes(Vec<Episode>),
    Domains(Vec<Domain>),
}

/// Reads all files, and tells what is not kept of them.
fn read(args: &Args, files: &[PathBuf], to: Format) -> anyhow::Result<Content> {
    let mut corpora = Vec::new();
    let mut names = HashSet::new();
    for path in files {
        let corpus = args.read.read(path)?;
        tell(path, files.len() > 1, &corpus, to);
        if let Some(again) = corpus.domains.iter().find(|domain| names.contains(&domain.name)) {
            let (domain, path) = (again.name.clone(), path.clone());
            return Err(Error::DuplicateDomain { domain, path }.into());
        }
        names.extend(corpus.domains.iter().map(|domain| domain.name.clone()));
        corpora.push((path, corpus));
    }
    let are_episodes = corpora.iter().all(|(_, corpus)| corpus.format == Format::Episodes);
    if !are_episodes || to != Format::Episodes {
        let domains = corpora.into_iter().flat_map(|(_, corpus)| corpus.domains);
        return Ok(Content::Domains(domains.collect()));
    }
    let mut episodes = Vec::new();
    for (path, corpus) in corpora {
        episodes.extend(corpus.into_episodes(sources::name(path))?);
    }
    Ok(Content::Episodes(episodes))
}

/// The format that a file's name says: `x.conll`, `x.rasa.yml`.
fn named(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?;
    name.split('.').skip(1).find_map(|part| part.parse().ok())
}

/// Tells what was not read and what is not kept, with the file if there are several.
fn tell(path: &Path, one_of_many: bool, corpus: &Corpus, to: Format) {
    let mut err = std::io::stderr().lock();
    let file = if one_of_many { format!("{}: ", path.display()) } else { String::new() };
    // Nobody is left to tell if standard error is gone.
    for note in &corpus.notes {
        let _ = writeln!(err, "note: {file}{}", hints::note(note));
    }
    for loss in corpus.losses(to) {
        let _ = writeln!(err, "lost: {file}{}", hints::loss(&loss));
    }
}
