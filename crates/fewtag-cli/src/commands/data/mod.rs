//! `fewtag data`: look at labelled sentences, and carry them from one format to another.

mod check;
mod convert;
mod stats;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use fewtag::data::{self, Corpus, Format, ReadOptions, Wanted};
use fewtag::scheme::Scheme;
use fewtag::words::WordSplit;
use fewtag::{DomainFile, Sentence};

use crate::progress::warn;
use crate::{hints, sources};

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

    /// An error of reading with these options, with what helps.
    pub(crate) fn hinted(error: fewtag::Error) -> anyhow::Error {
        hints::reading(error, "--format")
    }

    /// The files among `paths` and in the directories among them.
    pub(crate) fn files(&self, paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
        sources::files(paths, wanted(self.format))
    }

    /// Reads a file, or standard input for `-`.
    fn read(&self, path: &Path) -> anyhow::Result<Corpus> {
        let corpus = data::parse(sources::name(path), &sources::read(path)?, &self.options());
        corpus.map_err(Self::hinted)
    }
}

/// What is read of a directory if all is to be read as `format`.
fn wanted(format: Option<Format>) -> Wanted {
    format.map_or(Wanted::Data, Wanted::ReadAs)
}

impl SupportArgs {
    /// The files among `paths` and in the directories among them.
    pub(crate) fn files(&self, paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
        sources::files(paths, wanted(self.support_format))
    }

    /// The labelled sentences of a file; what is odd about them is told as a warning.
    pub(crate) fn read(&self, path: &Path) -> anyhow::Result<Vec<Sentence>> {
        self.parse(sources::name(path), &sources::read(path)?, self.support_format)
    }

    /// The sentences of `text`, a word or more of which are marked as in `play [nina simone](artist)`; `option` is where it
    /// was given.
    pub(crate) fn parse_inline(&self, option: &str, text: &str) -> anyhow::Result<Vec<Sentence>> {
        self.parse(Path::new(option), text.as_bytes(), Some(Format::Inline))
    }

    fn parse(
        &self,
        path: &Path,
        bytes: &[u8],
        format: Option<Format>,
    ) -> anyhow::Result<Vec<Sentence>> {
        if format.is_none() && DomainFile::is_one(bytes) {
            let domain = DomainFile::from_bytes(bytes, path)?;
            if domain.figures().is_some() {
                let path = path.display();
                warn(&format!(
                    "{path} was tuned; only its examples are used here (--domain uses it as a whole)"
                ));
            }
            return Ok(domain.support().sentences().to_vec());
        }
        let corpus = data::parse(path, bytes, &self.text.options(format))
            .map_err(|error| hints::reading(error, "--support-format"))?;
        warn_of_notes(path, &corpus);
        Ok(corpus.into_sentences().collect())
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

/// Tells what is odd about a file.
pub(crate) fn warn_of_notes(path: &Path, corpus: &Corpus) {
    for note in &corpus.notes {
        warn(&format!("{}: {}", path.display(), hints::note(note)));
    }
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
