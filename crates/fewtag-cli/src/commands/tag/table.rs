//! `fewtag tag --input corpus.parquet --output tagged.parquet`: a file of any size, part by part.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use fewtag::DomainFile;
use fewtag::plural::Counted;
use fewtag_table::files::check_names;
use fewtag_table::{Job, Progress, tag_file};
use indicatif::{ProgressBar, ProgressStyle};

use super::Args;
use crate::commands::values;
use crate::outputs::{Force, Inputs};
use crate::progress::warn;

/// How a file becomes a tagged file
#[derive(Debug, clap::Args)]
pub(super) struct TableArgs {
    /// Write the rows of the one `--input` file here with their spans: `.parquet`, or `.jsonl`, also `.jsonl.gz` and `.jsonl.zst`.
    /// A run that was killed goes on where it was when it is started again
    #[arg(long, value_name = "FILE", conflicts_with_all = ["text", "jsonl", "format", "explain", "keep_going"])]
    output: Option<PathBuf>,
    /// The column, or the field of each JSON object, that holds the texts
    #[arg(long, value_name = "NAME", default_value = "text", requires = "output")]
    column: String,
    /// How many rows are finished at a time, and make a row group of the output
    #[arg(long, value_name = "N", default_value = "16384", value_parser = values::at_least_one(), requires = "output")]
    rows: usize,
    #[command(flatten)]
    force: Force,
}

impl TableArgs {
    /// Where to write, if a file is to be tagged.
    pub(super) fn output(&self) -> Option<&Path> {
        self.output.as_deref()
    }
}

/// Runs the command.
pub(super) fn run(args: &Args, output: &Path) -> anyhow::Result<()> {
    let TableArgs { column, rows, force, .. } = &args.table;
    let [input] = &args.input[..] else {
        bail!("--output takes the rows of one file: give it with --input");
    };
    ensure!(input.is_file(), "`{}` is no file: --output takes the rows of one", input.display());
    check_names(input, output)?;
    force.check(&Inputs::new(&args.input), [output])?;
    let super::Learned { adapted, tagger, support, thresholds } = super::learn(args)?;
    let adapted = adapted.keeping(super::KEPT_BYTES);
    let identity = DomainFile::new(&tagger, support, thresholds.clone())
        .map(|domain| fewtag::file::sha256(&domain.to_bytes()))?;
    let job = Job {
        adapted: &adapted,
        thresholds: &thresholds,
        identity,
        input,
        output,
        column,
        rows: *rows,
        start_anew: force.is_on(),
    };
    let bar = bar();
    let done = tag_file(&job, &mut |done| show(&bar, done)).context("the run is not finished")?;
    bar.finish_and_clear();
    if done.kept > 0 {
        warn(&format!("{} were done by an earlier run", Counted(done.kept, "row")));
    }
    if done.failed > 0 {
        warn(&format!("not tagged, see `error`: {}", Counted(done.failed, "row")));
    }
    Ok(())
}

/// On a terminal how far it has come.
fn bar() -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {percent} %, {msg}, {eta} left")
        .expect("the template is well-formed");
    ProgressBar::new(1).with_style(style)
}

fn show(bar: &ProgressBar, Progress { rows, kept, read: (read, all), .. }: Progress) {
    bar.set_length(all.max(1));
    bar.set_position(read);
    let rate = (rows - kept) as f64 / bar.elapsed().as_secs_f64().max(1e-3);
    bar.set_message(format!("{rows} rows, {rate:.0} a second"));
}
