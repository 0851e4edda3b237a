//! `fewtag domain save`: examples and settings become one file.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use fewtag::plural::Counted;
use fewtag::{DomainFile, SupportSet};

use crate::commands::learn::LearnArgs;
use crate::commands::threshold::{Threshold, thresholds};
use crate::outputs::{Force, Inputs};

/// Save examples, settings and which model they are for in one file
///
/// `fewtag tag --domain`, the server's import and Python's `fewtag.open` read it (docs/guide/domains.md). It holds no weights, unless
/// it is made of a domain that was tuned: a few kilobytes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag domain save --support examples/music.txt music.fewtag
  fewtag domain save --support examples/music.txt --label mood --threshold 0.4 music.fewtag
  fewtag domain save --domain music.fewtag --example 'something [calm](mood)' more.fewtag")]
pub(crate) struct Args {
    /// The file to write; by habit it ends in `.fewtag`
    output: PathBuf,
    /// Start from this saved domain, tuned or not: the examples and labels given here are added to its own
    #[arg(long, value_name = "FILE", conflicts_with = "context")]
    domain: Option<PathBuf>,
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
    let inputs = Inputs::new(args.learn.support.iter().chain(&args.domain));
    args.force.check(&inputs, [args.output.as_path()])?;
    let (mut support, mut tagger) = (args.learn.support()?, args.learn.tagger.load()?);
    let mut thresholds_of_domain = None;
    if let Some(path) = &args.domain {
        let domain = DomainFile::read(path)?;
        support = joined(domain.support(), &support)?;
        tagger = domain.tagger(&tagger, path)?;
        thresholds_of_domain = Some(domain.thresholds().clone());
    }
    let thresholds = match thresholds_of_domain {
        Some(own) if args.threshold.is_empty() => own,
        _ => thresholds(&args.threshold, support.tag_set())?,
    };
    // What cannot be learned from is told now and not when the file is opened.
    tagger.adapt(&support).context("cannot learn from the examples")?;
    let n_labels = support.tag_set().slots().len();
    let n_examples = support.sentences().len();
    DomainFile::new(&tagger, support, thresholds)?.write(&args.output)?;
    let (examples, labels) = (Counted(n_examples, "example"), Counted(n_labels, "label"));
    writeln!(out, "{}: {examples}, {labels}", args.output.display())?;
    Ok(())
}

/// The examples, labels and names of both.
fn joined(first: &SupportSet, second: &SupportSet) -> fewtag::Result<SupportSet> {
    let sentences = [first.sentences(), second.sentences()].concat();
    let slots = [first, second].map(|set| set.tag_set().slots().into_iter().cloned());
    // A label that either knows by name alone stays one; those with examples are found in them.
    let shown = [first.shown_slots(), second.shown_slots()];
    let given =
        slots.into_iter().flatten().filter(|slot| !shown.iter().any(|set| set.contains(slot)));
    let joined = SupportSet::with_labels(sentences, given.collect::<Vec<_>>())?;
    let names = first.names().iter().chain(second.names());
    Ok(names.fold(joined, |joined, (slot, name)| joined.named(slot.clone(), name.clone())))
}
