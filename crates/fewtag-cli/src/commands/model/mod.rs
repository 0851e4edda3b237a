//! `fewtag model`: what is done to a model after training.

mod calibrate;
pub(super) mod card;
mod convert;

use std::io::Write;

/// Calibrate a trained model, measure it for its card, or store it in fewer bytes
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Calibrate(calibrate::Args),
    Card(card::Args),
    Convert(convert::Args),
}

/// Runs the command, writing its result to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    match &args.command {
        Command::Calibrate(args) => calibrate::run(args, out),
        Command::Card(args) => card::run(args, out),
        Command::Convert(args) => convert::run(args, out),
    }
}
