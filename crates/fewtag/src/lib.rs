//! Few-shot sequence labelling: tag text of a domain nobody trained on, from a handful of labelled sentences.
//!
//! The library implements "Few-Shot Sequence Labeling with Label Dependency Transfer and Pair-wise
//! Embedding" and is synchronous and silent: it never prints and never reads the environment, the clock
//! or the network. Start at [`domain`] for the nouns; `ARCHITECTURE.md` in the repository is the map.

pub mod adapted;
pub mod answer;
pub mod batch;
pub mod calibrate;
pub mod crf;
pub mod data;
pub mod domain;
pub mod embedder;
pub mod emission;
pub mod encoder;
pub mod error;
pub mod eval;
pub mod evaluate;
pub mod explain;
pub mod file;
pub mod head;
pub mod matrix;
pub mod model;
pub mod names;
pub mod plural;
pub mod random;
pub mod sampler;
pub mod scheme;
pub mod settings;
pub mod support;
pub mod tag;
pub mod tagger;
pub mod train;
pub mod transition;
mod window;
pub mod words;

pub use adapted::{Adapted, Scored, Tagged, TaggedSpan};
pub use answer::Answer;
pub use domain::{Domain, Episode, Sentence, SupportSet, Token};
pub use error::{Error, Result};
pub use explain::{Evidence, Explanation, RunnerUp};
pub use matrix::Matrix;
pub use random::Random;
pub use settings::{Context, ModelSettings};
pub use tag::{Slot, Span, Tag, TagClass, TagSet};
pub use tagger::Tagger;
pub use transition::{CollapsedTransitions, TransitionMode};
