//! `fewtag support`: make a good support set.

mod check;
mod suggest;

use std::io::Write;

/// Check labelled examples before trusting them, and find out what to label next
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Check(check::Args),
    Suggest(suggest::Args),
}

/// Runs the subcommand, writing its result to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    match &args.command {
        Command::Check(args) => check::run(args, out),
        Command::Suggest(args) => suggest::run(args, out),
    }
}
