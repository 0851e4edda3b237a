//! `fewtag encoder`: get an encoder, and look at one.

mod fetch;
mod info;

use std::io::Write;

/// Get an encoder from the Hugging Face hub, or look at one on disk
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Fetch(fetch::Args),
    Info(info::Args),
}

/// Runs the subcommand, writing its result to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    match &args.command {
        Command::Fetch(args) => fetch::run(args, out),
        Command::Info(args) => info::run(args, out),
    }
}
