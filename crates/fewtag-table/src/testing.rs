//! What tests share.

use std::path::Path;

use fewtag::{Adapted, Context, ModelSettings, SupportSet, model};

/// A tagger with a tiny random encoder.
pub(crate) fn adapted() -> Adapted {
    let encoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
    let settings = ModelSettings { context: Context::Separate, ..ModelSettings::default() };
    let support =
        SupportSet::parse("play [nina simone](artist)\nsome [jazz](genre)").expect("text");
    let tagger = model::from_encoder(&encoder, settings, 3).expect("the encoder of the tests");
    tagger.adapt(&support).expect("examples")
}
