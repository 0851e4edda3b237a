//! `fewtag model`: what is done to a model after training.

mod average;
mod calibrate;
pub(super) mod card;
mod convert;

use std::io::Write;

/// The files of a model.
const FILES: [&str; 4] = ["fewtag.json", "config.json", "tokenizer.json", "model.safetensors"];

/// Calibrate a trained model, measure it for its card, store it in fewer bytes, or average several
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Average(average::Args),
    Calibrate(calibrate::Args),
    Card(card::Args),
    Convert(convert::Args),
}

/// Runs the command, writing its result to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    match &args.command {
        Command::Average(args) => average::run(args, out),
        Command::Calibrate(args) => calibrate::run(args, out),
        Command::Card(args) => card::run(args, out),
        Command::Convert(args) => convert::run(args, out),
    }
}
