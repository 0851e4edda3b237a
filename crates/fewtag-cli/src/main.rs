//! The binary: everything is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    fewtag_cli::main(std::env::args_os()).into()
}
