//! `fewtag model card`: what can be measured and drawn for a model's card.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use fewtag::encoder::Precision;
use fewtag::eval::{Format, Predictions, table};
use fewtag::{Tagger, file, model};
use fewtag_experiments::card::{self, Measured, Section};

use crate::commands::evaluate::without_examples;
use crate::commands::values;
use crate::outputs::Inputs;
use crate::sources;

/// Measure and draw what belongs into a model's card
///
/// Writes into the model's directory: `transitions.svg`, the learned transition table as a heat map; `reliability.svg`, how
/// often spans are right against how sure the model was, one panel per number of shots; and into its `README.md` a section
/// with both and with the figures: precision, expected calibration error, and in how many sentences without a span none was
/// found. The section is replaced when the command is run again; the rest of the card stays as it is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag model card runs/music
  fewtag model card runs/music --shots 0=episodes.json --shots 1=episodes.json --shots 5=five-shots/")]
pub(crate) struct Args {
    /// Model directory written by `fewtag train`
    model: PathBuf,
    /// Episodes with N shots that the model was not trained on: a file, or a directory of them; may be repeated. With 0
    /// their examples are taken away and the names of the labels are left
    #[arg(long = "shots", value_name = "N=EPISODES", value_parser = shots_and_path)]
    episodes: Vec<(usize, PathBuf)>,
    /// In which numbers the encoder computes (docs/reference/engine.md)
    #[arg(long, value_parser = values::precision(), default_value_t)]
    precision: Precision,
    /// How to print the table
    #[arg(long, value_parser = values::table_format(), default_value = Format::Text.name())]
    format: Format,
}

fn shots_and_path(text: &str) -> Result<(usize, PathBuf), String> {
    let expected = || "expected N=EPISODES, such as 5=episodes.json".to_owned();
    let (shots, path) = text.split_once('=').ok_or_else(expected)?;
    Ok((shots.parse().map_err(|_| expected())?, path.into()))
}

/// Runs the command, writing the figures to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let tagger = model::load_with(&args.model, args.precision)?;
    let mut numbers: Vec<usize> = args.episodes.iter().map(|(shots, _)| *shots).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let measured = numbers.into_iter().map(|shots| measured(&tagger, shots, args));
    let measured = measured.collect::<anyhow::Result<Vec<_>>>()?;
    write(&Section::new(&tagger, &measured), &args.model, None)?;
    if !measured.is_empty() {
        let figures = table::render(&[card::figures(&measured)], args.format);
        out.write_all(figures.as_bytes())?;
    }
    Ok(())
}

/// All episodes of one number of shots.
fn measured(tagger: &Tagger, shots: usize, args: &Args) -> anyhow::Result<Measured> {
    let paths = args.episodes.iter().filter(|(n, _)| *n == shots).map(|(_, path)| path.clone());
    let files = sources::episodes(&paths.collect::<Vec<_>>())?;
    let written = ["README.md", card::TRANSITIONS, card::RELIABILITY];
    let inputs = Inputs::new(files.iter().map(|file| &file.path));
    written.iter().try_for_each(|name| inputs.refuse(&args.model.join(name)))?;
    let mut episodes: Vec<_> = files.into_iter().flat_map(|file| file.episodes).collect();
    if shots == 0 {
        episodes = episodes.into_iter().map(without_examples).collect::<fewtag::Result<_>>()?;
    }
    let predictions = Predictions::new(tagger, &episodes)?;
    let reliability = predictions.reliability(tagger.settings().into());
    Ok(Measured { shots, reliability, without_spans: predictions.without_spans() })
}

/// Writes the pictures and the card in `dir`; `card` is what it says besides, if it is not read from there.
pub(crate) fn write(section: &Section, dir: &Path, card: Option<String>) -> anyhow::Result<()> {
    let path = dir.join("README.md");
    let card = match card {
        Some(card) => card,
        None if path.exists() => std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read `{}`", path.display()))?,
        None => "# A fewtag model\n".to_owned(),
    };
    for (name, picture) in &section.pictures {
        file::write_atomically(&dir.join(name), picture.as_bytes())?;
    }
    file::write_atomically(&path, section.put_into(&card).as_bytes())?;
    Ok(())
}
