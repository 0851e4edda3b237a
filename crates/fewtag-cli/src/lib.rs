//! The `fewtag` command line: each subcommand is one file in `commands/`.
//!
//! Results go to standard output, progress and warnings to standard error.
//! Exit status: 0 done, 1 failed, 2 wrong usage. It is a library so that the Python package has the whole command too.

mod commands;
mod hints;
mod outputs;
mod progress;
mod sources;

use std::ffi::OsString;
use std::io::Write;

use clap::Parser;

use commands::Command;

/// Few-shot sequence labelling: a handful of labelled sentences in, tagged text out, no training
#[derive(Debug, Parser)]
#[command(name = "fewtag", version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Runs the command of `args`, the first of which is the program's name; gives the exit status.
pub fn main(args: impl Iterator<Item = OsString>) -> u8 {
    let cli = match Cli::try_parse_from(joined(args)) {
        Ok(cli) => cli,
        Err(told) => {
            let _ = told.print(); // Help and versions too; nobody is left to tell if this fails.
            return u8::try_from(told.exit_code()).unwrap_or(2);
        }
    };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let result = commands::run(&cli.command, &mut out).and_then(|()| Ok(out.flush()?));
    match result {
        Ok(()) => 0,
        // A reader that closed the pipe early (`fewtag … | head`) has what it wanted.
        Err(error) if is_broken_pipe(&error) => 0,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            1
        }
    }
}

/// `--explain html` as `--explain=html`. clap could only take every text after `--explain` for its value, or none.
fn joined(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    for arg in args {
        let options_end = joined.iter().any(|before| before == "--");
        match joined.last_mut().filter(|last| !options_end && *last == "--explain") {
            Some(last) if arg == "html" || arg == "text" => {
                last.push("=");
                last.push(arg);
            }
            _ => joined.push(arg),
        }
    }
    joined
}

/// Whether the cause is an output that nobody reads any more, whoever was writing to it.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| {
        let of_json = || cause.downcast_ref().and_then(serde_json::Error::io_error_kind);
        cause.downcast_ref().map(std::io::Error::kind).or_else(of_json)
    };
    error.chain().any(|cause| kind(cause) == Some(std::io::ErrorKind::BrokenPipe))
}
