//! A support set that has been, or will be, read by the encoder, and the memory for those that may come again.
//!
//! A [`Learner`] is read with the first batch that needs it and then kept. [`Learners`] keeps those of domains by name and
//! version, those of requests by their examples, up to a number of bytes; what was not used for the longest time goes
//! first, an older version of a domain at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use fewtag::{Adapted, Context, SupportSet, Tag, Tagger};
use lru::LruCache;

use crate::error::{ApiError, ApiResult};

/// A support set and what the encoder made of it.
pub struct Learner {
    tagger: Tagger,
    /// Which weights the tagger has: the version of the domain that brought them, 0 for those of the server's model.
    weights: i64,
    support: SupportSet,
    adapted: OnceLock<ApiResult<Adapted>>,
    /// The pieces of each support sentence, without special ones.
    n_pieces: Vec<usize>,
    /// The pieces of the names of its tags, with special ones; 0 if the model reads no names.
    n_name_pieces: usize,
    /// What a word can be compared with to explain its tag: the words of the commonest one, and the other slots.
    n_compared: usize,
}

/// How many scores of a word for a tag take as long as the encoder takes to read a piece. A score is one product as long as a
/// vector, a piece is some ten thousand, done faster. A guess on the safe side, as is the next.
const SCORES_PER_PIECE: usize = 5_000;
/// The same for comparisons of an explanation: three products, and the JSON of a voice.
const COMPARISONS_PER_PIECE: usize = 100;

/// Bytes of what a tuned model keeps of the examples that it read, so that a changed example is read alone.
pub(crate) const KEPT_OF_TUNED: usize = 4 << 20;

impl Learner {
    /// A learner that has not been read yet; `weights` tells the tagger from others of its domain.
    ///
    /// # Errors
    ///
    /// If a word cannot be cut into pieces.
    pub fn new(
        (tagger, weights): (&Tagger, i64),
        support: SupportSet,
        context: Context,
    ) -> ApiResult<Self> {
        let settings = fewtag::ModelSettings { context, ..tagger.settings().clone() };
        let tagger = tagger.with_settings(settings)?;
        let pieces = |s: &fewtag::Sentence| Ok(tagger.word_pieces().split(s.words())?.ids.len());
        let n_pieces = support.sentences().iter().map(pieces).collect::<ApiResult<_>>()?;
        let n_name_pieces = n_name_pieces(&tagger, &support)?;
        let n_compared = n_voices(&support) + support.tag_set().slots().len();
        let adapted = OnceLock::new();
        Ok(Self { tagger, weights, support, adapted, n_pieces, n_name_pieces, n_compared })
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
            None => self.n_pieces.iter().map(|n| n + 2).sum::<usize>() + self.n_name_pieces,
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
            Context::Paired if !self.n_pieces.is_empty() => {
                self.n_pieces.iter().map(|s| n + s + 1).sum()
            }
            // Without examples there is nothing to be read beside.
            _ => n,
        })
    }

    /// What it costs to score so many words for each tag, in pieces that the encoder could read meanwhile: nothing worth
    /// mentioning, unless there are thousands of labels.
    #[must_use]
    pub fn cost_to_score(&self, n_words: usize) -> usize {
        n_words.saturating_mul(self.support.tag_set().n_tags()) / SCORES_PER_PIECE
    }

    /// What it costs at most to explain a text of so many words, in pieces that the encoder could read meanwhile. Which words
    /// there will be something to explain about is not known yet.
    #[must_use]
    pub fn cost_to_explain(&self, n_words: usize) -> usize {
        n_words.saturating_mul(self.n_compared).div_ceil(COMPARISONS_PER_PIECE)
    }

    /// About how many bytes it takes: mostly the vectors of its words, twice, and tuned layers.
    fn bytes(&self) -> usize {
        let width = self.tagger.row_width();
        let sentences = self.support.sentences().iter();
        let words: usize = sentences.map(fewtag::Sentence::n_words).sum();
        let names = self.support.tag_set().n_tags();
        let kept = if self.weights == 0 { 0 } else { KEPT_OF_TUNED };
        (words + names) * (2 * width * size_of::<f32>() + 100) + self.tagger.own_bytes() + kept
    }
}

/// How much the encoder reads of the names of the tags.
fn n_name_pieces(tagger: &Tagger, support: &SupportSet) -> ApiResult<usize> {
    if !tagger.uses_label_names() {
        return Ok(0);
    }
    let mut n_pieces = 0;
    for tag in tagger.settings().tag_set(support).tags() {
        let words = support.name_words(tag).unwrap_or_default();
        n_pieces += tagger.word_pieces().split(words.iter().map(String::as_str))?.ids.len() + 2;
    }
    Ok(n_pieces)
}

/// How many words speak for the commonest tag that is explained.
fn n_voices(support: &SupportSet) -> usize {
    let mut of_tag: HashMap<&Tag, usize> = HashMap::new();
    let tags = support.sentences().iter().flat_map(fewtag::Sentence::tags);
    for tag in tags.filter(|tag| tag.slot().is_some()) {
        *of_tag.entry(tag).or_default() += 1;
    }
    of_tag.into_values().max().unwrap_or(0)
}

/// Whose examples.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Owner {
    /// A domain, by its name.
    Domain(String),
    /// A request, by the SHA-256 digest of its examples: they cannot be passed off for another's.
    Request([u8; 32]),
}

/// Whose examples, and how they are read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// Whose.
    pub owner: Owner,
    /// How.
    pub context: Context,
}

struct Entry {
    version: i64,
    learner: Arc<Learner>,
    bytes: usize,
}

/// The learners that are kept.
pub struct Learners {
    most: usize,
    kept: Mutex<Shelf>,
}

struct Shelf {
    /// Bounded by bytes, which this type does not count, so not by number.
    learners: LruCache<Key, Entry>,
    bytes: usize,
}

impl Shelf {
    fn find(&mut self, key: &Key, version: i64) -> Option<Arc<Learner>> {
        let kept = self.learners.get(key).filter(|kept| kept.version == version)?;
        Some(Arc::clone(&kept.learner))
    }
}

impl Learners {
    /// Keeps at most `most` bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, kept: Mutex::new(Shelf { learners: LruCache::unbounded(), bytes: 0 }) }
    }

    /// The learner of this version, if it is kept.
    #[must_use]
    pub fn find(&self, key: &Key, version: i64) -> Option<Arc<Learner>> {
        self.shelf().find(key, version)
    }

    /// The model of the version that is kept, if it has these weights.
    #[must_use]
    pub fn tagger(&self, key: &Key, weights: i64) -> Option<Tagger> {
        let shelf = self.shelf();
        let kept = shelf.learners.peek(key).filter(|kept| kept.learner.weights == weights)?;
        Some(kept.learner.tagger.clone())
    }

    /// Keeps a learner, instead of other versions and of what was not used for the longest time. If another request was faster, its
    /// learner is answered: two that are the same would both be read.
    pub fn keep(&self, key: Key, version: i64, learner: Arc<Learner>) -> Arc<Learner> {
        let mut shelf = self.shelf();
        if let Some(known) = shelf.find(&key, version) {
            return known;
        }
        let bytes = learner.bytes();
        shelf.bytes += bytes;
        let kept = Entry { version, learner: Arc::clone(&learner), bytes };
        if let Some(old) = shelf.learners.put(key, kept) {
            shelf.bytes -= old.bytes;
        }
        while shelf.bytes > self.most
            && let Some((_, gone)) = shelf.learners.pop_lru()
        {
            shelf.bytes -= gone.bytes;
        }
        learner
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
