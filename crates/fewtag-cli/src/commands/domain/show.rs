//! `fewtag domain show`: what a saved domain holds.

use std::io::Write;
use std::path::PathBuf;

use fewtag::data::{Format, Writer};
use fewtag::plural::Counted;
use fewtag::tune::Figures;
use fewtag::{Context, DomainFile};

use crate::commands::answers::shown;
use crate::commands::data::data_format;

/// Show what a saved domain holds, or print its examples in a data format
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag domain show music.fewtag
  fewtag domain show music.fewtag --format inline > examples.txt")]
pub(crate) struct Args {
    /// A saved domain
    file: PathBuf,
    /// Print the examples in this data format instead
    #[arg(long, value_parser = data_format())]
    format: Option<Format>,
}

/// Runs the command, writing to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let domain = DomainFile::read(&args.file)?;
    let support = domain.support();
    if let Some(format) = args.format {
        let mut writer = Writer::new(format, out);
        support.sentences().iter().try_for_each(|sentence| writer.sentence(sentence))?;
        writer.finish()?;
        return Ok(());
    }
    let slots = support.tag_set().slots();
    let labels: Vec<String> = slots.iter().map(|slot| shown(slot.as_str())).collect();
    writeln!(out, "{}", Counted(support.sentences().len(), "example"))?;
    writeln!(out, "{}: {}", Counted(labels.len(), "label"), labels.join(", "))?;
    let context = match domain.settings().context {
        Context::Paired => "paired",
        Context::Separate => "separate",
    };
    writeln!(out, "context: {context}")?;
    let thresholds = domain.thresholds();
    if thresholds.general > 0.0 {
        writeln!(out, "threshold: {}", thresholds.general)?;
    }
    for (label, least) in &thresholds.of_label {
        writeln!(out, "threshold of {}: {least}", shown(label))?;
    }
    writeln!(out, "model: {}", shown(domain.model()))?;
    if let Some(Figures { untuned, tuned, judged, choice }) = domain.figures() {
        let (layers, judged) = (Counted(choice.layers, "layer"), Counted(*judged, "sentence"));
        writeln!(out, "tuned: {layers}, {} updates at {:e}", choice.updates, choice.rate)?;
        writeln!(
            out,
            "F1 on {judged} that were left out in turn: {:.1} ± {:.1}, untuned {:.1} ± {:.1}",
            tuned.f1, tuned.spread, untuned.f1, untuned.spread
        )?;
    }
    Ok(())
}
