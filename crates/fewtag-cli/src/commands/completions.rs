//! `fewtag completions`: shell completions and the man page, generated from the commands themselves.

use std::io::Write;

use clap::CommandFactory;

/// Print shell completions, or the manual page
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag completions bash > ~/.local/share/bash-completion/completions/fewtag
  fewtag completions man > fewtag.1")]
pub(crate) struct Args {
    /// For which shell, or `man` for the manual page
    #[arg(value_enum)]
    target: Target,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Target {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
    Man,
}

/// Writes the script to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    use clap_complete::Shell;
    let shell = match args.target {
        Target::Man => {
            clap_mangen::Man::new(crate::Cli::command()).render(out)?;
            return Ok(());
        }
        Target::Bash => Shell::Bash,
        Target::Elvish => Shell::Elvish,
        Target::Fish => Shell::Fish,
        Target::Powershell => Shell::PowerShell,
        Target::Zsh => Shell::Zsh,
    };
    // Into memory first: the generator panics if its output fails.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut crate::Cli::command(), "fewtag", &mut script);
    out.write_all(&script)?;
    Ok(())
}
