//! Few-shot sequence labelling: tag text of a domain nobody trained on, from a handful of labelled sentences.
//!
//! Give it one to five labelled sentences per label; it tags new sentences at once, without training, and says how sure it
//! is and which example made it think so. It implements "Few-Shot Sequence Labeling with Label Dependency Transfer and
//! Pair-wise Embedding" on an encoder of its own for the CPU.
//!
//! # Example
//!
//! With the feature `built-in`, a trained model is inside the library:
//!
//! ```
//! # #[cfg(feature = "built-in")] {
//! use fewtag::{SupportSet, Tagger};
//!
//! let support = SupportSet::parse(
//!     "play [nina simone](artist)\n\
//!      i want to hear [blue in green](track) [tonight](time)",
//! )?;
//! let music = Tagger::built_in()?.adapt(&support)?;
//!
//! let answer = music.tag_text("please play miles davis")?;
//! assert_eq!((answer.spans[0].label.as_str(), answer.spans[0].text.as_str()), ("artist", "miles davis"));
//! assert_eq!((answer.spans[0].start, answer.spans[0].end), (12, 23)); // Unicode scalar values
//! # }
//! # Ok::<(), fewtag::Error>(())
//! ```
//!
//! # The nouns
//!
//! - A [`Sentence`] is a list of words with a BIO tag each; [`Sentence::plain`] makes one of running text.
//! - A [`SupportSet`] is the few labelled sentences that a domain is learned from, and labels that have none yet.
//! - A [`Tagger`] is a trained model: immutable, and shared between threads.
//! - An [`Adapted`] is a tagger that has seen a support set. [`Adapted::tag_text`] answers with [`Answer`]s;
//!   [`Adapted::score`] gives what lies beneath: probabilities, the best paths, explanations.
//!
//! # The map
//!
//! | to | see |
//! |---|---|
//! | read and write labelled data in eleven formats | [`data`] |
//! | keep a domain in a file | [`DomainFile`] |
//! | check a support set, and find out what to label next | [`support`] |
//! | draw few-shot episodes | [`sampler`] |
//! | judge a model, and make its probabilities honest | [`eval`] |
//! | train a model | [`train`] |
//! | tune a model to one domain, if that is worth it | [`tune`] |
//! | find a formula of the paper | [`emission`], [`transition`], [`crf`], [`head`] |
//!
//! The library is synchronous and silent: it never prints and never reads the environment, the clock or the network.
//! Same seed, same bytes, whatever the number of threads; an answer does not depend on what else is in its batch.

mod adapted;
pub mod answer;
pub mod crf;
pub mod data;
mod domain;
mod domain_file;
pub mod emission;
pub mod encoder;
pub mod error;
pub mod eval;
mod explain;
pub mod head;
pub mod model;
pub mod sampler;
pub mod scheme;
mod settings;
pub mod support;
pub mod tag;
mod tag_texts;
mod tagger;
pub mod train;
pub mod transition;
pub mod tune;
pub mod words;

// For our other crates, tests and benchmarks; no part of what the library promises.
#[doc(hidden)]
pub mod file;
#[doc(hidden)]
pub mod matrix;
#[doc(hidden)]
pub mod names;
#[doc(hidden)]
pub mod plural;
#[doc(hidden)]
pub mod random;
#[doc(hidden)]
pub mod reading;

pub use adapted::{Adapted, Scored, Tagged, TaggedSpan, adapt_all, score_all};
pub use answer::Answer;
pub use domain::{Domain, Episode, Sentence, SupportSet, Token};
pub use domain_file::DomainFile;
pub use error::{Error, Result};
pub use explain::{Evidence, Explanation, RunnerUp};
pub use matrix::Matrix;
#[doc(hidden)]
pub use random::Random;
pub use settings::{Context, ModelSettings};
pub use tag::{Slot, Span, Tag, TagClass, TagSet};
pub use tag_texts::MAX_TEXT;
pub use tagger::Tagger;
pub use transition::{CollapsedTransitions, TransitionMode};
