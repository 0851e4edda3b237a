//! `fewtag domain`: keep what was learned in a file.

mod save;
mod show;

use std::io::Write;

/// Keep examples, settings and which model they are for in one file, and look into such files
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Save(save::Args),
    Show(show::Args),
}

/// Runs the subcommand, writing its result to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    match &args.command {
        Command::Save(args) => save::run(args, out),
        Command::Show(args) => show::run(args, out),
    }
}
