//! The library through its public interface.

mod corpora;
mod formats;
mod golden;
mod golden_crf;
mod golden_emission;
mod golden_encoder;
mod golden_head;
mod golden_tagger;
mod golden_training;
mod refusals;
mod sampling;
mod scores;
mod support;
mod tagger;
