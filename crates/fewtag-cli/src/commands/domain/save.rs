//! `fewtag domain save`: examples and settings become one file.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use fewtag::DomainFile;
use fewtag::plural::Counted;

use crate::commands::learn::LearnArgs;
use crate::commands::threshold::{Threshold, thresholds};
use crate::outputs::{Force, Inputs};

/// Save examples, settings and which model they are for in one file
///
/// `fewtag tag --domain`, the server's import and Python's `fewtag.open` read it (docs/guide/domains.md). It holds no weights: a few
/// kilobytes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag domain save --support examples/music.txt music.fewtag
  fewtag domain save --support examples/music.txt --label mood --threshold 0.4 music.fewtag")]
pub(crate) struct Args {
    /// The file to write; by habit it ends in `.fewtag`
    output: PathBuf,
    #[command(flatten)]
    learn: LearnArgs,
    /// Spans less probable than this are not wanted; `SLOT=P` for one slot; may be repeated
    #[arg(long, value_name = "[SLOT=]P")]
    threshold: Vec<Threshold>,
    #[command(flatten)]
    force: Force,
}

/// Runs the command, saying on `out` what was saved.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    args.force.check(&Inputs::new(&args.learn.support), [args.output.as_path()])?;
    let support = args.learn.support()?;
    let thresholds = thresholds(&args.threshold, support.tag_set())?;
    let tagger = args.learn.tagger.load()?;
    // What cannot be learned from is told now and not when the file is opened.
    tagger.adapt(&support).context("cannot learn from the examples")?;
    let n_labels = support.tag_set().slots().len();
    let n_examples = support.sentences().len();
    DomainFile::new(&tagger, support, thresholds)?.write(&args.output)?;
    let (examples, labels) = (Counted(n_examples, "example"), Counted(n_labels, "label"));
    writeln!(out, "{}: {examples}, {labels}", args.output.display())?;
    Ok(())
}
