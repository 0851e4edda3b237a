//! `fewtag crossval`: the paper's protocol. Every domain in turn is the test domain, the next one the dev
//! domain, and all others are trained on.
//!
//! ```text
//! OUT/NAME/seed-0/…             one training run per test domain and seed (see `fewtag train`)
//! OUT/NAME/seed-0/result.json   its test scores: a cell that has them is not run again
//! ```

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use fewtag::data::Wanted;
use fewtag::eval::evaluate;
use fewtag::eval::{Cell, Format, Summary, Table, table};
use fewtag::train::{DevScores, source};
use fewtag::{file, model};
use serde::{Deserialize, Serialize};

use super::train::{ConfigArgs, is_finished, train};
use super::values;
use crate::{outputs, sources};

/// Train and test with every domain held out in turn; running it again goes on with the missing cells
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag crossval --config configs/snips-1shot.toml --out runs/snips data/episodes/snips_1shot
  fewtag crossval --config configs/snips-1shot.toml --out runs/snips --seeds 0,1,2 --folds 1,5 data/episodes/snips_1shot")]
pub(crate) struct Args {
    /// Files of one domain each (episodes, or sentences to draw them from), or directories of such files
    #[arg(required = true)]
    domains: Vec<PathBuf>,
    #[command(flatten)]
    settings: ConfigArgs,
    /// Directory for the runs
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// One run per seed and fold
    #[arg(long, value_delimiter = ',', default_value = "0")]
    seeds: Vec<u64>,
    /// Which test domains, counted from 1; all unless given
    #[arg(long, value_delimiter = ',')]
    folds: Vec<usize>,
    /// How to print the table
    #[arg(long, value_parser = values::table_format(), default_value = Format::Text.name())]
    format: Format,
}

/// The test scores of one run, means over episodes in per cent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scores {
    test: PathBuf,
    dev: PathBuf,
    seed: u64,
    f1: f64,
    sentence_macro_f1: f64,
}

/// Runs what is missing and writes the table of all folds to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    ensure!(
        !args.domains.iter().any(|path| sources::is_standard_input(path)),
        "every fold reads the domains again, which standard input cannot give: name files"
    );
    let files = sources::files(&args.domains, Wanted::Data)?;
    outputs::refuse_inside(&args.out, &args.domains)?;
    ensure!(
        files.len() >= 3,
        "a fold needs a test, a dev and a training domain: give three files or more"
    );
    let folds =
        if args.folds.is_empty() { (1..=files.len()).collect() } else { args.folds.clone() };
    let mut rows = Vec::new();
    for fold in folds {
        ensure!(
            (1..=files.len()).contains(&fold),
            "there is no fold {fold}: {} files",
            files.len()
        );
        let mut cells = Vec::new();
        for &seed in &args.seeds {
            cells.push(cell(args, &files, fold - 1, seed)?);
        }
        rows.push((name(&files[fold - 1]), cells));
    }
    out.write_all(table::render(&[summary(&rows)], args.format).as_bytes())?;
    Ok(())
}

fn name(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The scores of one fold and seed, from its result file or from a run.
fn cell(args: &Args, files: &[PathBuf], test: usize, seed: u64) -> anyhow::Result<Scores> {
    let dir = args.out.join(name(&files[test])).join(format!("seed-{seed}"));
    let result = dir.join("result.json");
    if result.exists() {
        let bytes = file::read(&result)?;
        return serde_json::from_slice(&bytes).with_context(|| {
            format!("`{}` is damaged: remove it to run the cell again", result.display())
        });
    }
    let dev = (test + 1) % files.len();
    let mut config = args.settings.read()?;
    config.seed = seed;
    config.data.dev = vec![files[dev].clone()];
    config.data.train = (0..files.len())
        .filter(|at| ![test, dev].contains(at))
        .map(|at| files[at].clone())
        .collect();
    if !is_finished(&dir) {
        train(&config, &dir, dir.join("metrics.jsonl").exists())?;
    }
    let read = source::read(&files[test..=test], &[])?;
    let episodes = source::test_episodes(read, &config.data.shots)?;
    let report = evaluate(&model::load(&dir)?, &episodes, || ())?.report;
    let DevScores { f1, sentence_macro_f1 } = DevScores::of(&report);
    let (test, dev) = (files[test].clone(), files[dev].clone());
    let scores = Scores { test, dev, seed, f1, sentence_macro_f1 };
    file::write_atomically(&result, &serde_json::to_vec_pretty(&scores)?)?;
    Ok(scores)
}

/// One row per test domain, mean and deviation over the seeds; then the average over domains.
fn summary(rows: &[(String, Vec<Scores>)]) -> Table {
    let headers = ["test domain", "seeds", "f1", "f1 sd", "sentence-macro f1", "sentence-macro sd"];
    let mut table = Table::new("cross-validation", headers);
    let over = |cells: &[Scores], score: fn(&Scores) -> f64| Summary::of(cells.iter().map(score));
    let mut means = Vec::new();
    for (name, cells) in rows {
        let f1 = over(cells, |scores| scores.f1);
        let sentence_macro = over(cells, |scores| scores.sentence_macro_f1);
        let numbers = [f1.mean, f1.sd, sentence_macro.mean, sentence_macro.sd];
        let head = [Cell::from(name.as_str()), cells.len().into()];
        table.push(head.into_iter().chain(numbers.map(Cell::from)));
        means.push([f1.mean, sentence_macro.mean]);
    }
    if rows.len() > 1 {
        let [f1, sentence_macro] = [0, 1].map(|at| Summary::of(means.iter().map(|row| row[at])));
        let numbers = [f1.mean, f1.sd, sentence_macro.mean, sentence_macro.sd];
        let head = [Cell::from("(average)"), Cell::Empty];
        table.push(head.into_iter().chain(numbers.map(Cell::from)));
    }
    table
}
