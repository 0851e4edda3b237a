//! A support set that has been, or will be, read by the encoder, and the memory for those of domains.
//!
//! A [`Learner`] is read with the first batch that needs it and then kept. [`Learners`] keeps them by name, version and context, up to
//! a number of bytes; a domain that was not used for the longest time goes first, an older version at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fewtag::{Adapted, Context, SupportSet, Tagger};

use crate::error::{ApiError, ApiResult};

/// A support set and what the encoder made of it.
pub struct Learner {
    tagger: Tagger,
    support: SupportSet,
    adapted: OnceLock<ApiResult<Adapted>>,
    /// The pieces of each support sentence, without special ones.
    n_pieces: Vec<usize>,
}

impl Learner {
    /// A learner that has not been read yet.
    ///
    /// # Errors
    ///
    /// If a word cannot be cut into pieces.
    pub fn new(tagger: &Tagger, support: SupportSet, context: Context) -> ApiResult<Self> {
        let settings = fewtag::ModelSettings { context, ..tagger.settings().clone() };
        let tagger = tagger.with_settings(settings)?;
        let pieces = |s: &fewtag::Sentence| Ok(tagger.word_pieces().split(s.words())?.ids.len());
        let n_pieces = support.sentences().iter().map(pieces).collect::<ApiResult<_>>()?;
        Ok(Self { tagger, support, adapted: OnceLock::new(), n_pieces })
    }

    /// The examples.
    #[must_use]
    pub fn support(&self) -> &SupportSet {
        &self.support
    }

    /// The model, with the context that was asked for.
    #[must_use]
    pub fn tagger(&self) -> &Tagger {
        &self.tagger
    }

    /// What the encoder made of the examples, if it has read them.
    #[must_use]
    pub fn adapted(&self) -> Option<&ApiResult<Adapted>> {
        self.adapted.get()
    }

    /// Keeps what the encoder made of the examples.
    pub fn learned(&self, adapted: fewtag::Result<Adapted>) {
        // Two batches cannot read it at once: there is one worker. If there were, both results are the same.
        let _ = self.adapted.set(adapted.map_err(ApiError::from));
    }

    /// How many pieces the encoder must read before this learner can be used.
    #[must_use]
    pub fn cost(&self) -> usize {
        match self.adapted.get() {
            Some(_) => 0,
            None => self.n_pieces.iter().map(|n| n + 2).sum(),
        }
    }

    /// How many pieces the encoder must read for a text of these words.
    ///
    /// # Errors
    ///
    /// If a word cannot be cut into pieces.
    pub fn cost_of<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> ApiResult<usize> {
        let n = self.tagger.word_pieces().split(words)?.ids.len() + 2;
        Ok(match self.tagger.settings().context {
            Context::Separate => n,
            Context::Paired => self.n_pieces.iter().map(|s| n + s + 1).sum(),
        })
    }

    /// About how many bytes it takes: mostly the vectors of its words, twice.
    fn bytes(&self) -> usize {
        let width = self.tagger.engine().width();
        let sentences = self.support.sentences().iter();
        let words: usize = sentences.map(fewtag::Sentence::n_words).sum();
        words * (2 * width * size_of::<f32>() + 100)
    }
}

/// Which domain, and how it is read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    name: String,
    context: Context,
}

struct Kept {
    version: i64,
    learner: Arc<Learner>,
    bytes: usize,
    used: u64,
}

/// The learners of domains.
pub struct Learners {
    most: usize,
    kept: Mutex<Shelf>,
}

#[derive(Default)]
struct Shelf {
    learners: HashMap<Key, Kept>,
    bytes: usize,
    clock: u64,
}

impl Learners {
    /// Keeps at most `most` bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }

    /// The learner of this version of a domain, if it is kept.
    #[must_use]
    pub fn find(&self, name: &str, version: i64, context: Context) -> Option<Arc<Learner>> {
        let mut shelf = self.shelf();
        shelf.clock += 1;
        let now = shelf.clock;
        let kept = shelf.learners.get_mut(&Key { name: name.to_owned(), context })?;
        if kept.version != version {
            return None;
        }
        kept.used = now;
        Some(Arc::clone(&kept.learner))
    }

    /// Keeps a learner, instead of other versions of its domain and of what was not used for the longest time.
    pub fn keep(&self, name: &str, version: i64, context: Context, of: &Arc<Learner>) {
        let mut shelf = self.shelf();
        shelf.clock += 1;
        let key = Key { name: name.to_owned(), context };
        let kept = Kept { version, learner: Arc::clone(of), bytes: of.bytes(), used: shelf.clock };
        shelf.bytes += kept.bytes;
        if let Some(old) = shelf.learners.insert(key, kept) {
            shelf.bytes -= old.bytes;
        }
        while shelf.bytes > self.most {
            let oldest = shelf.learners.iter().min_by_key(|(_, kept)| kept.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { break };
            if let Some(gone) = shelf.learners.remove(&key) {
                shelf.bytes -= gone.bytes;
            }
        }
    }

    /// How many bytes are kept.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.shelf().bytes
    }

    fn shelf(&self) -> std::sync::MutexGuard<'_, Shelf> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
