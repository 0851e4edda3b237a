//! `fewtag data`: look at labelled sentences, and carry them from one format to another.

mod check;
mod convert;
mod stats;

use std::io::{Read, Write};
use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use fewtag::data::{self, Corpus, Format, ReadOptions};
use fewtag::file;
use fewtag::scheme::Scheme;
use fewtag::words::WordSplit;

/// Check, convert and count labelled sentences in any common format
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Check(check::Args),
    Convert(convert::Args),
    Stats(stats::Args),
}

/// Runs the subcommand, writing its result to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    match &args.command {
        Command::Check(args) => check::run(args, out),
        Command::Convert(args) => convert::run(args, out),
        Command::Stats(args) => stats::run(args, out),
    }
}

/// How files of labelled sentences are read
#[derive(Debug, clap::Args)]
pub(crate) struct ReadArgs {
    /// The format of the input; recognised from its content unless given
    #[arg(long, value_parser = data_format())]
    format: Option<Format>,
    /// The tagging scheme of the input; recognised from its tags unless given
    #[arg(long, value_parser = scheme())]
    scheme: Option<Scheme>,
    /// How running text becomes words: at Unicode's word boundaries, or at blanks only
    #[arg(long, value_parser = word_split(), default_value = "unicode")]
    words: WordSplit,
    /// Mend what can be mended (labels that cut words or overlap, blanks in slots) instead of refusing it
    #[arg(long)]
    repair: bool,
}

impl ReadArgs {
    /// The same, as the library takes it.
    pub(crate) fn options(&self) -> ReadOptions {
        let Self { format, scheme, words, repair } = *self;
        ReadOptions { format, scheme, repair, words }
    }

    /// Reads a file, or standard input for `-`.
    fn read(&self, path: &Path) -> anyhow::Result<Corpus> {
        let (path, bytes) = read_bytes(path)?;
        Ok(data::parse(path, &bytes, &self.options())?)
    }
}

/// The content of a file, or of standard input for `-`, and how errors should name it.
fn read_bytes(path: &Path) -> anyhow::Result<(&Path, Vec<u8>)> {
    if path != Path::new("-") {
        return Ok((path, file::read(path)?));
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok((Path::new("stdin"), bytes))
}

/// Parses the name of a data format; the names are listed in the help and completed by shells.
pub(crate) fn data_format() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse::<Format>())
}

fn scheme() -> impl TypedValueParser<Value = Scheme> {
    PossibleValuesParser::new(Scheme::ALL.map(Scheme::name)).try_map(|name| name.parse::<Scheme>())
}

fn word_split() -> impl TypedValueParser<Value = WordSplit> {
    PossibleValuesParser::new(["unicode", "blank"])
        .map(|name| if name == "blank" { WordSplit::Blank } else { WordSplit::Unicode })
}
