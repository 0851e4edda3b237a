//! `fewtag model convert`: the same model in fewer bytes.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use fewtag::encoder::Storage;
use fewtag::model;

use crate::outputs::{Force, Inputs};

/// Store a model in other numbers: f32, f16 or int8
///
/// f16 halves the size of f32, int8 (one byte a weight, one scale a row) quarters it. Whatever the storage, the model
/// computes in f32; `fewtag evaluate` shows what the rounding costs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag model convert runs/music models/music --storage int8
  fewtag model convert models/music music-f32 --storage f32")]
pub(crate) struct Args {
    /// Model directory written by `fewtag train`
    model: PathBuf,
    /// Directory of the converted model; made if it is missing
    out: PathBuf,
    /// How weights are stored
    #[arg(long, value_parser = storage())]
    storage: Storage,
    #[command(flatten)]
    force: Force,
}

fn storage() -> impl TypedValueParser<Value = Storage> {
    const ALL: [(&str, Storage); 3] =
        [("f32", Storage::F32), ("f16", Storage::F16), ("int8", Storage::Int8)];
    PossibleValuesParser::new(ALL.map(|(name, _)| name)).map(|name| {
        let found = ALL.into_iter().find(|(known, _)| *known == name);
        found.expect("clap lets only these names pass").1
    })
}

/// Runs the command, writing both sizes to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let inputs = Inputs::new([]).and_model(&args.model);
    args.force.check_directory(&inputs, &args.out, &super::FILES)?;
    model::save(&model::load(&args.model)?, &args.out, args.storage)?;
    for dir in [&args.model, &args.out] {
        writeln!(out, "{:>12} bytes  {}", weight_bytes(dir)?, dir.display())?;
    }
    Ok(())
}

fn weight_bytes(dir: &Path) -> anyhow::Result<u64> {
    let path = dir.join("model.safetensors");
    let metadata = std::fs::metadata(&path);
    Ok(metadata.with_context(|| format!("cannot access `{}`", path.display()))?.len())
}
