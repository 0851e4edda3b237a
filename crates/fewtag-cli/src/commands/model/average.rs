//! `fewtag model average`: one model of several seeds.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use fewtag::encoder::Storage;
use fewtag::{Tagger, model};

use crate::outputs::{Force, Inputs};

/// Average models that were trained from the same encoder with other seeds
///
/// The mean of their weights is often better than each of them, and costs no more than one. Settings are those of the first
/// model; `fewtag evaluate` shows what it is worth, and `fewtag model calibrate` makes its probabilities honest again, which
/// those of the first model's temperature need not be.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag train --config train.toml --out runs/one --seed 1
  fewtag train --config train.toml --out runs/two --seed 2
  fewtag model average runs/one runs/two --out runs/both")]
pub(crate) struct Args {
    /// Model directories written by `fewtag train`
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<PathBuf>,
    /// Directory of the average, in f32; made if it is missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    force: Force,
}

/// Runs the command, writing what it did to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    ensure!(args.models.len() > 1, "one model is its own average: give two or more");
    let inputs = args.models.iter().fold(Inputs::new([]), |all, dir| all.and_model(dir));
    args.force.check_directory(&inputs, &args.out, &super::FILES)?;
    let load = |dir: &PathBuf| {
        model::load(dir).with_context(|| format!("cannot use the model `{}`", dir.display()))
    };
    let models: Vec<Tagger> = args.models.iter().map(load).collect::<anyhow::Result<_>>()?;
    model::save(&model::average(&models)?, &args.out, Storage::F32)?;
    let (dir, n) = (args.out.display(), models.len());
    writeln!(out, "{dir}: the mean of {n} models; `fewtag model calibrate` fits its temperature")?;
    Ok(())
}
