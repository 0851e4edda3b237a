//! `fewtag encoder fetch`: an encoder from the Hugging Face hub, through the hub's own cache.

use std::io::Write;

use anyhow::{Context, bail};

use crate::commands::hub;

/// Download an encoder from the Hugging Face hub and print its directory
///
/// Files go to the cache that all Hugging Face tools share (`HF_HOME`); what is there already is not downloaded
/// again, and an interrupted download continues. `HF_ENDPOINT` names another hub.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag encoder fetch sentence-transformers/all-MiniLM-L6-v2
  fewtag encoder fetch google-bert/bert-base-uncased --revision 86b5e0934494bd15c9632b12f734a8a67f723594")]
pub(crate) struct Args {
    /// The encoder's name on the hub
    name: String,
    /// A branch, tag or commit; a commit gives the same files for ever
    #[arg(long, default_value = "main")]
    revision: String,
}

/// Downloads the files and writes their directory to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let dir = hub::fetch(&args.name, &args.revision, wanted)
        .with_context(|| format!("cannot fetch `{}`, revision `{}`", args.name, args.revision))?;
    writeln!(out, "{}", dir.display())?;
    Ok(())
}

/// Those of an encoder's files that we read: shape, tokenizer and weights.
fn wanted<'a>(files: &[&'a str]) -> anyhow::Result<Vec<&'a str>> {
    let has = |name: &str| files.contains(&name);
    let weights = |file: &str| {
        if has("model.safetensors") {
            file == "model.safetensors"
        } else {
            file == "model.safetensors.index.json" || is_shard(file)
        }
    };
    if !has("config.json") || !(has("tokenizer.json") || has("vocab.txt")) {
        bail!(
            "it has no `config.json`, or neither `tokenizer.json` nor `vocab.txt`: it is no encoder that we can use"
        );
    }
    if !files.iter().any(|file| weights(file)) {
        bail!(
            "it has no weights in the safetensors format; other revisions (`--revision refs/pr/1`) may have, or \
             convert it in Python: `AutoModel.from_pretrained(NAME).save_pretrained(DIR)`"
        );
    }
    let kept = ["config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt"];
    Ok(files.iter().copied().filter(|file| kept.contains(file) || weights(file)).collect())
}

/// Whether a file is one part of split weights: `model-00001-of-00002.safetensors`.
fn is_shard(file: &str) -> bool {
    let number = file.strip_prefix("model-").and_then(|rest| rest.strip_suffix(".safetensors"));
    number.is_some_and(|number| !number.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_files_of_an_encoder_are_fetched() {
        let files = [
            ".gitattributes",
            "1_Pooling/config.json",
            "config.json",
            "model.safetensors",
            "onnx/model.onnx",
            "pytorch_model.bin",
            "tf_model.h5",
            "tokenizer.json",
            "tokenizer_config.json",
            "vocab.txt",
        ];
        let expected = [
            "config.json",
            "model.safetensors",
            "tokenizer.json",
            "tokenizer_config.json",
            "vocab.txt",
        ];
        assert_eq!(wanted(&files).unwrap(), expected);
    }

    #[test]
    fn split_weights_are_fetched_with_their_index() {
        let files = [
            "config.json",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "model.safetensors.index.json",
            "other/model-1.safetensors",
            "vocab.txt",
        ];
        assert_eq!(wanted(&files).unwrap(), [files[0], files[1], files[2], files[3], files[5]]);
    }

    #[test]
    fn pickles_alone_are_refused_with_a_way_out() {
        let error = wanted(&["config.json", "pytorch_model.bin", "vocab.txt"]).unwrap_err();
        assert!(error.to_string().contains("safetensors"), "{error}");
    }

    #[test]
    fn what_is_no_encoder_is_refused() {
        assert!(wanted(&["config.json", "model.safetensors"]).is_err());
        assert!(wanted(&["vocab.txt", "model.safetensors"]).is_err());
    }
}
