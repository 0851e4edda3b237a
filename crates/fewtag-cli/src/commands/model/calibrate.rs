//! `fewtag model calibrate`: probabilities that mean what they say.

use std::io::Write;
use std::path::PathBuf;

use fewtag::eval::{Format, table};
use fewtag::eval::{Predictions, Temperature};
use fewtag::{Episode, model};

use crate::commands::values;
use crate::sources;

/// Fit the temperature of a model, so that its probabilities are honest
///
/// Tags the queries of episodes that the model was not trained on, and finds the temperature, and how it grows with the
/// number of examples per label (give episodes of several numbers of shots), at which the probabilities
/// of the predicted spans fit best how many of them are right. It is saved in the model's `fewtag.json`; tags do not
/// change. Prints how honest the probabilities are: spans by their probability, and the expected calibration error.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag model calibrate runs/music episodes.json
  fewtag model calibrate runs/music episodes.json --dry-run --format markdown")]
pub(crate) struct Args {
    /// Model directory written by `fewtag train`
    model: PathBuf,
    /// Episode files (docs/guide/episodes.md), or directories of them; `-` is standard input
    #[arg(required = true)]
    episodes: Vec<PathBuf>,
    /// Leave the model as it is
    #[arg(long)]
    dry_run: bool,
    /// How to print the table
    #[arg(long, value_parser = values::table_format(), default_value = Format::Text.name())]
    format: Format,
}

/// Runs the command, writing the table to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let files = sources::episodes(&args.episodes)?;
    let episodes: Vec<Episode> = files.into_iter().flat_map(|file| file.episodes).collect();
    let tagger = model::load(&args.model)?;
    let predictions = Predictions::new(&tagger, &episodes)?;
    let temperature = predictions.best_temperature();
    let before = predictions.reliability(tagger.settings().into());
    let after = predictions.reliability(temperature);
    if !args.dry_run {
        model::set_temperature(&args.model, temperature)?;
    }
    let mut summary =
        fewtag::eval::Table::new("calibration", ["", "temperature", "growth", "expected error"]);
    for (when, reliability) in [("before", &before), ("after", &after)] {
        let error = 100.0 * reliability.expected_error();
        let Temperature { base, growth } = reliability.temperature;
        summary.push([when.into(), f64::from(base).into(), f64::from(growth).into(), error.into()]);
    }
    out.write_all(table::render(&[summary, after.table()], args.format).as_bytes())?;
    Ok(())
}
