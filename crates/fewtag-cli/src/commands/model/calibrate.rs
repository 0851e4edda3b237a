//! `fewtag model calibrate`: probabilities that mean what they say.

use std::io::Write;
use std::path::PathBuf;

use fewtag::encoder::Precision;
use fewtag::eval::{Format, Predictions, Table, Temperature, table};
use fewtag::{Episode, model};

use crate::commands::evaluate::without_examples;
use crate::commands::values;
use crate::progress::warn;
use crate::sources;

/// Fit the temperature of a model, so that its probabilities are honest
///
/// Tags the queries of episodes that the model was not trained on, and finds the temperature, and how it grows with the
/// number of examples per label (give episodes of several numbers of shots), at which the probabilities
/// of the predicted spans fit best how many of them are right; with `--names-only` also what it is where names alone speak,
/// which else is as with examples. It is saved in the model's `fewtag.json`; tags do not change. Prints how honest the probabilities
/// are: spans by their probability, and the expected calibration error.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag model calibrate runs/music episodes.json
  fewtag model calibrate runs/music one-shot/ five-shots/ --names-only one-shot/
  fewtag model calibrate runs/music episodes.json --dry-run --format markdown")]
pub(crate) struct Args {
    /// Model directory written by `fewtag train`
    model: PathBuf,
    /// Episode files (docs/guide/episodes.md), or directories of them; `-` is standard input
    #[arg(required = true)]
    episodes: Vec<PathBuf>,
    /// Episode files or directories of them whose examples are taken away, so that the names of the labels are left; may be
    /// repeated
    #[arg(long, value_name = "EPISODES")]
    names_only: Vec<PathBuf>,
    /// Leave the model as it is
    #[arg(long)]
    dry_run: bool,
    /// In which numbers the encoder computes (docs/reference/engine.md)
    #[arg(long, value_parser = values::precision(), default_value_t)]
    precision: Precision,
    /// How to print the table
    #[arg(long, value_parser = values::table_format(), default_value = Format::Text.name())]
    format: Format,
}

/// Runs the command, writing the table to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    sources::refuse_standard_input_twice(args.episodes.iter().chain(&args.names_only))?;
    let mut all = episodes(&args.episodes)?;
    let named = episodes(&args.names_only)?.into_iter().map(without_examples);
    all.extend(named.collect::<fewtag::Result<Vec<_>>>()?);
    let tagger = model::load_with(&args.model, args.precision)?;
    let predictions = Predictions::new(&tagger, &all)?;
    let temperature = predictions.best_temperature();
    let before = predictions.reliability(tagger.settings().into());
    let after = predictions.reliability(temperature);
    if !args.dry_run {
        model::set_temperature(&args.model, temperature)?;
        let had_one = tagger.settings().temperature_of_names.to_bits() != 1_f32.to_bits();
        if args.names_only.is_empty() && had_one {
            warn("names alone have lost their own temperature: give --names-only to fit it anew");
        }
    }
    let mut summary =
        Table::new("calibration", ["", "temperature", "growth", "of names", "expected error"]);
    for (when, reliability) in [("before", &before), ("after", &after)] {
        let error = 100.0 * reliability.expected_error();
        let Temperature { base, growth, of_names } = reliability.temperature;
        let [base, growth, of_names] = [base, growth, of_names].map(|x| f64::from(x).into());
        summary.push([when.into(), base, growth, of_names, error.into()]);
    }
    out.write_all(table::render(&[summary, after.table()], args.format).as_bytes())?;
    Ok(())
}

fn episodes(paths: &[PathBuf]) -> anyhow::Result<Vec<Episode>> {
    Ok(sources::episodes(paths)?.into_iter().flat_map(|file| file.episodes).collect())
}
