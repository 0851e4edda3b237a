//! `fewtag data`: look at labelled sentences, and carry them from one format to another.

mod check;
mod convert;
mod stats;

use std::io::{Read, Write};
use std::path::Path;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use fewtag::data::{self, Corpus, Format, ReadOptions};
use fewtag::scheme::Scheme;
use fewtag::words::WordSplit;
use fewtag::{Sentence, file};

use crate::progress::warn;

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
    #[command(flatten)]
    text: TextArgs,
}

/// How the examples of a command are read whose `--format` is that of its answers
#[derive(Debug, clap::Args)]
pub(crate) struct SupportArgs {
    /// The format of the labelled sentences; recognised from their content unless given
    #[arg(long, value_name = "FORMAT", value_parser = data_format())]
    support_format: Option<Format>,
    #[command(flatten)]
    text: TextArgs,
}

/// How labels and words are understood, whatever the format
#[derive(Debug, Clone, Copy, clap::Args)]
struct TextArgs {
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
        self.text.options(self.format)
    }

    /// Reads a file, or standard input for `-`.
    fn read(&self, path: &Path) -> anyhow::Result<Corpus> {
        let (path, bytes) = read_bytes(path)?;
        Ok(data::parse(path, &bytes, &self.options())?)
    }
}

impl SupportArgs {
    /// The labelled sentences of a file; what is odd about them is told as a warning.
    pub(crate) fn read(&self, path: &Path) -> anyhow::Result<Vec<Sentence>> {
        Ok(sentences(path, data::read(path, &self.text.options(self.support_format))?))
    }

    /// The sentences of `text`, a word or more of which are marked as in `play [nina simone](artist)`; `option` is where it
    /// was given.
    pub(crate) fn parse_inline(&self, option: &str, text: &str) -> anyhow::Result<Vec<Sentence>> {
        let options = self.text.options(Some(Format::Inline));
        let path = Path::new(option);
        Ok(sentences(path, data::parse(path, text.as_bytes(), &options)?))
    }

    /// Where words end.
    pub(crate) fn words(&self) -> WordSplit {
        self.text.words
    }
}

impl TextArgs {
    fn options(self, format: Option<Format>) -> ReadOptions {
        let Self { scheme, words, repair } = self;
        ReadOptions { format, scheme, repair, words }
    }
}

fn sentences(path: &Path, corpus: Corpus) -> Vec<Sentence> {
    for note in &corpus.notes {
        warn(&format!("{}: {note}", path.display()));
    }
    corpus.into_sentences().collect()
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
