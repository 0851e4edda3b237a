//! The model that is built into the binary, so that tagging needs no download.

use std::path::Path;

use fewtag::Tagger;
use fewtag::model::{self, ModelFiles};

const FILES: ModelFiles = ModelFiles {
    fewtag: include_bytes!("../../../models/default/fewtag.json"),
    config: include_bytes!("../../../models/default/config.json"),
    tokenizer: include_bytes!("../../../models/default/tokenizer.json"),
    weights: include_bytes!("../../../models/default/model.safetensors"),
};

/// Loads it; `models/default/README.md` says how it was made.
pub(crate) fn load() -> fewtag::Result<Tagger> {
    model::from_files(&FILES, Path::new("models/default"))
}
