//! `fewtag model average`: one model of several seeds.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use fewtag::encoder::Storage;
use fewtag::{Tagger, model};

use crate::outputs::{Force, Inputs};

/// Average models that were trained from the same encoder with other seeds
///
/// The mean of their weights is often better than each of them, and costs no more than one. Settings are those of the first
/// model; `fewtag evaluate` shows what it is worth, and `fewtag model calibrate` makes its probabilities honest again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag train --config train.toml --out runs/one --seed 1
  fewtag train --config train.toml --out runs/two --seed 2
  fewtag model average runs/one runs/two --out runs/both")]
pub(crate) struct Args {
    /// Model directories written by `fewtag train`
    #[arg(required = true, num_args = 2.., value_name = "MODEL")]
    models: Vec<PathBuf>,
    /// Directory of the average, in f32; made if it is missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    #[command(flatten)]
    force: Force,
}

/// Runs the command, writing what it did to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let inputs = args.models.iter().fold(Inputs::new([]), |all, dir| all.and_model(dir));
    args.force.check_directory(&inputs, &args.out, &super::FILES)?;
    let load = |dir: &PathBuf| {
        model::load(dir).with_context(|| format!("cannot use the model `{}`", dir.display()))
    };
    let models: Vec<Tagger> = args.models.iter().map(load).collect::<anyhow::Result<_>>()?;
    model::save(&model::average(&models)?, &args.out, Storage::F32)?;
    writeln!(out, "{}: the mean of {} models", args.out.display(), models.len())?;
    Ok(())
}
