//! `fewtag encoder info`: what an encoder directory holds, and what it costs in memory.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use fewtag::encoder::{Activation, WordPieces, weights};
use fewtag::file;

/// Show an encoder's architecture, size and checksum
///
/// The directory is read and checked exactly as training does it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag encoder info encoders/minilm-l6
  fewtag encoder info \"$(fewtag encoder fetch google-bert/bert-base-uncased)\"")]
pub(crate) struct Args {
    /// Directory with `config.json`, `model.safetensors` and `tokenizer.json` or `vocab.txt`
    dir: PathBuf,
}

/// Writes one line per property to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let unusable = || format!("cannot use the encoder in `{}`", args.dir.display());
    let parameters = weights::load(&args.dir).with_context(unusable)?;
    let word_pieces = WordPieces::load(&args.dir).with_context(unusable)?;
    let config = parameters.config();
    anyhow::ensure!(
        word_pieces.n_pieces() <= config.vocab_size,
        "the tokenizer in `{}` knows {} pieces, the encoder {}: they do not belong together",
        args.dir.display(),
        word_pieces.n_pieces(),
        config.vocab_size,
    );
    let activation = match config.hidden_act {
        Activation::Gelu => "gelu",
        Activation::GeluNew => "gelu_new",
        Activation::Relu => "relu",
    };
    let n_values = parameters.values().len();
    writeln!(out, "architecture  BERT, {} layers", config.num_hidden_layers)?;
    writeln!(out, "width         {}, {} heads", config.hidden_size, config.num_attention_heads)?;
    writeln!(out, "feed-forward  {}, {activation}", config.intermediate_size)?;
    writeln!(out, "vocabulary    {} pieces", config.vocab_size)?;
    writeln!(out, "longest text  {} pieces", config.max_position_embeddings)?;
    writeln!(out, "parameters    {n_values} (without pooler and heads)")?;
    writeln!(out, "memory        {} MB of weights in f32", megabytes(n_values))?;
    // Weights, gradients and Adam's two moments.
    writeln!(out, "training      {} MB, and activations", megabytes(4 * n_values))?;
    for path in weights::weight_files(&args.dir)? {
        let name = path.file_name().unwrap_or_default().display();
        writeln!(out, "sha256        {}  {name}", file::sha256_of_file(&path)?)?;
    }
    Ok(())
}

/// Rounded to whole megabytes of 10⁶ bytes, at least 1.
fn megabytes(n_values: usize) -> usize {
    (n_values * size_of::<f32>()).div_ceil(1_000_000)
}
