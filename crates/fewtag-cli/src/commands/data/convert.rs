//! `fewtag data convert`: labelled sentences from any format to any other.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use fewtag::data::{self, Corpus, Format};
use fewtag::file;
use fewtag::scheme::Scheme;

use super::{ReadArgs, data_format, read_bytes, scheme};
use crate::outputs::{Force, Inputs};

/// Write labelled sentences in another format
///
/// What the new format cannot hold is told on standard error, as is what was not read. The output is written whole or not at all.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag data convert examples/weather.conll weather.rasa.yml
  fewtag data convert examples/weather.conll - --to inline")]
pub(crate) struct Args {
    /// File of labelled sentences in any format (docs/data.md); `-` is standard input
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
    let inputs = Inputs::new([&args.input]);
    if args.output == Path::new("-") {
        inputs.refuse_standard_output()?;
    } else {
        args.force.check(&inputs, [args.output.as_path()])?;
    }
    let (path, bytes) = read_bytes(&args.input)?;
    let corpus = data::parse(path, &bytes, &args.read.options())?;
    tell(&corpus, to);
    let write = |out: &mut dyn Write| {
        if (corpus.format, to) == (Format::Episodes, Format::Episodes) {
            data::write_episodes(out, &corpus.into_episodes(path)?)
        } else {
            data::write(to, args.to_scheme, &corpus.domains, out)
        }
    };
    if args.output == Path::new("-") {
        write(out).context("cannot convert")?;
    } else {
        file::write_atomically_with(&args.output, |file| {
            let mut file = BufWriter::new(file);
            write(&mut file)?;
            file.flush().map_err(fewtag::Error::Write)
        })?;
    }
    Ok(())
}

/// The format that a file's name says: `x.conll`, `x.rasa.yml`.
fn named(path: &Path) -> Option<Format> {
    let name = path.file_name()?.to_str()?;
    name.split('.').skip(1).find_map(|part| part.parse().ok())
}

/// Tells what was not read and what is not kept.
fn tell(corpus: &Corpus, to: Format) {
    let mut err = std::io::stderr().lock();
    // Nobody is left to tell if standard error is gone.
    for note in &corpus.notes {
        let _ = writeln!(err, "note: {note}");
    }
    for loss in corpus.losses(to) {
        let _ = writeln!(err, "lost: {loss}");
    }
}
