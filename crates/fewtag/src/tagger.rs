//! The trained model: `tagger.adapt(&support)?.tag(&words)?` is the whole way from examples to tags.
//!
//! A [`Tagger`] is immutable and cheap to clone; its clones share the encoder, also between threads.
//! [`Tagger::adapt`] (in `adapted`) changes no weight: it reads the support once (separate context) or keeps its
//! pieces, to be paired with each query.

use std::sync::Arc;

use crate::domain::SupportSet;
use crate::encoder::{BertConfig, Engine, LowerRows, Precision, Shape, Upper, WordPieces};
use crate::error::{Error, Result};
use crate::head::Head;
use crate::reading::{Kept, KeptRows, RowFile};
use crate::settings::ModelSettings;
use crate::tag::{Tag, TagClass, TagSet};
use crate::transition::TransitionMode;
use crate::tune::{Figures, TunedWeights};

/// What a tuned model was made of.
pub(crate) struct Tuned {
    base: Tagger,
    weights: TunedWeights,
}

/// An encoder, the head above it and the settings they were made for.
#[derive(Clone)]
pub struct Tagger {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) word_pieces: Arc<WordPieces>,
    pub(crate) settings: ModelSettings,
    pub(crate) head: Head,
    /// What was read of support sets, if it is kept.
    pub(crate) kept: Option<Arc<Kept>>,
    /// Of the files that it was loaded from; `None` once something was learned.
    pub(crate) checksum: Option<Arc<str>>,
    /// If it was tuned to a domain: from which model, and how.
    pub(crate) tuned: Option<Arc<Tuned>>,
}

impl Tagger {
    /// Puts a model together.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`] if the settings make no sense, [`Error::VocabularySize`] if the tokenizer gives
    /// pieces that the encoder has no vector for.
    pub fn new(
        engine: Arc<dyn Engine>,
        word_pieces: WordPieces,
        settings: ModelSettings,
        head: Head,
    ) -> Result<Self> {
        let word_pieces = fitting(engine.config(), word_pieces, &settings)?;
        check_embeddings(&*engine, &settings)?;
        let word_pieces = Arc::new(word_pieces);
        Ok(Self { engine, word_pieces, settings, head, kept: None, checksum: None, tuned: None })
    }

    /// The model that is built into the library: a few-shot tagger for English text. It computes in the default
    /// [`Precision`]; [`crate::model::built_in`] takes another.
    ///
    /// # Errors
    ///
    /// None, unless this version and the model's do not belong together.
    #[cfg(feature = "built-in")]
    pub fn built_in() -> Result<Self> {
        crate::model::built_in(Precision::default())
    }

    /// The model in a directory that `fewtag train` wrote. It computes in the default [`Precision`];
    /// [`crate::model::load_with`] takes another.
    ///
    /// # Errors
    ///
    /// As [`crate::model::load`].
    pub fn load(dir: &std::path::Path) -> Result<Self> {
        crate::model::load_with(dir, Precision::default())
    }

    /// Refuses a label that neither an example nor a name speaks for.
    pub(crate) fn check_labels(&self, support: &SupportSet) -> Result<()> {
        let shown = support.shown_slots();
        for slot in support.tag_set().slots().into_iter().filter(|slot| !shown.contains(*slot)) {
            if !self.uses_label_names() {
                return Err(Error::NamesUnread { slot: slot.clone() });
            }
            if support.name_words(&Tag::B(slot.clone())).is_none() {
                return Err(Error::MuteLabel { slot: slot.clone() });
            }
        }
        Ok(())
    }

    /// Whether a support set leaves a legal tag for a first word.
    pub(crate) fn can_begin(&self, support: &SupportSet, tags: &TagSet) -> bool {
        let constrained =
            self.settings.constrained || self.settings.transitions == TransitionMode::Rule;
        let has_outside = support.sentences().iter().any(|s| s.tags().any(|tag| *tag == Tag::O));
        let begins = tags.tags().iter().any(|tag| tag.class() == TagClass::B);
        !constrained || begins || has_outside || self.uses_label_names()
    }

    /// The same model, which keeps about so many bytes of what it reads of support sets: one that comes again with a
    /// changed example is then read as far as it is new. Its clones share them.
    #[must_use]
    pub fn keeping(self, bytes: usize) -> Self {
        Self { kept: Some(Arc::new(Kept::Rows(KeptRows::new(bytes)))), ..self }
    }

    /// The same model, which keeps what it reads of large support sets in a file of at most about so many bytes, where the
    /// next process finds it: a set that comes again with a changed example is then read as far as it is new. Answers are
    /// the same.
    ///
    /// The file is a cache: it need not exist, its directory neither; what in it is damaged or of another model is passed
    /// over, and what cannot be written is not kept. A model without a [`Tagger::checksum`] keeps nothing.
    #[must_use]
    pub fn keeping_in(self, file: &std::path::Path, bytes: u64) -> Self {
        let Some(checksum) = &self.checksum else { return self };
        let kept = RowFile::new(file, bytes, checksum, &*self.engine);
        Self { kept: Some(Arc::new(Kept::File(kept))), ..self }
    }

    /// Whether both run on the very same encoder, and so can be asked together ([`crate::score_all`]).
    #[must_use]
    pub fn shares_encoder(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.engine, &other.engine)
    }

    /// The same model with other settings, such as another context or constrained decoding.
    ///
    /// # Errors
    ///
    /// [`Error::Setting`] if they make no sense.
    pub fn with_settings(&self, settings: ModelSettings) -> Result<Self> {
        settings.check()?;
        check_middle(self.engine.config(), &settings)?;
        check_embeddings(&*self.engine, &settings)?;
        Ok(Self { settings, ..self.clone() })
    }

    /// The same model with the temperature that so many examples per label ask for.
    pub(crate) fn at(mut self, examples_per_label: f32) -> Self {
        self.settings.temperature = self.settings.temperature_at(examples_per_label);
        self
    }

    /// The same model, known by this checksum.
    pub(crate) fn with_checksum(self, checksum: &str) -> Self {
        Self { checksum: Some(checksum.into()), ..self }
    }

    /// What tells this model from others: a checksum of the files it was loaded from, whatever settings were changed since.
    /// `None` if it was trained and not yet saved and loaded.
    #[must_use]
    pub fn checksum(&self) -> Option<&str> {
        self.checksum.as_deref()
    }

    /// The choices that make this model.
    #[must_use]
    pub fn settings(&self) -> &ModelSettings {
        &self.settings
    }

    /// What was learned above the encoder.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The same model with another λ.
    #[must_use]
    pub fn with_scale(mut self, scale: f32) -> Self {
        self.head.scale = scale;
        self.checksum = None;
        self
    }

    /// The model that it was tuned from; itself if it was not.
    #[must_use]
    pub fn base(&self) -> &Self {
        self.tuned.as_ref().map_or(self, |tuned| &tuned.base)
    }

    /// What tuning changed, if it was tuned to a domain.
    pub(crate) fn tuned_weights(&self) -> Option<&TunedWeights> {
        self.tuned.as_ref().map(|tuned| &tuned.weights)
    }

    /// What tuning was found to be worth, if it was tuned to a domain.
    #[must_use]
    pub fn figures(&self) -> Option<&Figures> {
        self.tuned_weights().map(|weights| &weights.figures)
    }

    /// About how many bytes of memory it takes that it does not share with the model that it was tuned from: its layers as floats, and
    /// the bytes that say how they differ.
    #[must_use]
    pub fn own_bytes(&self) -> usize {
        let stored = self.tuned_weights().map_or(0, |weights| weights.difference.n_bytes());
        stored * (1 + size_of::<f32>())
    }

    /// This model tuned: its lower layers are shared. It keeps the checksum of the model that it was made of.
    ///
    /// # Errors
    ///
    /// What is wrong, if the weights are not for this model.
    pub(crate) fn tuned(&self, weights: TunedWeights) -> Result<Self, String> {
        let n_below = weights.difference.n_below();
        if n_below > self.engine.config().num_hidden_layers {
            return Err(format!("it leaves {n_below} layers alone, the model has fewer"));
        }
        let below = LowerRows::new(&self.engine, n_below, 0);
        let below = below.ok_or("the layers of this model's encoder cannot be exchanged")?;
        self.tuned_above(Arc::new(below), weights)
    }

    /// As [`Tagger::tuned`] above the rows of this model's own lower layers.
    pub(crate) fn tuned_above(
        &self,
        below: Arc<LowerRows>,
        weights: TunedWeights,
    ) -> Result<Self, String> {
        let mut layers = below.upper();
        weights.difference.add_to(&mut layers)?;
        let (engine, head) = (Arc::new(Upper::new(below, layers)), weights.head);
        let tuned = Some(Arc::new(Tuned { base: self.clone(), weights }));
        Ok(Self { engine, head, kept: None, tuned, ..self.clone() })
    }

    /// The encoder.
    #[must_use]
    pub fn engine(&self) -> &dyn Engine {
        &*self.engine
    }

    /// How many numbers it keeps of a word that it reads: those of the encoder's last layer, and as many again of each middle
    /// layer and of the word by itself.
    #[must_use]
    pub fn row_width(&self) -> usize {
        self.engine.width() * (1 + self.settings.middle.len() + usize::from(self.settings.lexical))
    }

    /// The tokenizer.
    #[must_use]
    pub fn word_pieces(&self) -> &WordPieces {
        &self.word_pieces
    }

    /// Whether it reads the names of labels, and so can tag from them alone.
    #[must_use]
    pub fn uses_label_names(&self) -> bool {
        self.settings.scorer.takes_names() && self.settings.label_names > 0.0
    }
}

/// Refuses settings that ask for words by themselves of an encoder that only reads sentences.
fn check_embeddings(engine: &dyn Engine, settings: &ModelSettings) -> Result<()> {
    if settings.lexical && engine.embeddings(&[]).is_none() {
        let problem = "needs an encoder with a table of word pieces";
        return Err(Error::Setting { setting: "lexical", problem });
    }
    Ok(())
}

/// Refuses middle layers that an encoder of this shape does not have.
fn check_middle(config: &BertConfig, settings: &ModelSettings) -> Result<()> {
    if settings.middle.last().is_some_and(|&layer| layer >= config.num_hidden_layers) {
        let problem = "must be layers below the encoder's last";
        return Err(Error::Setting { setting: "middle", problem });
    }
    Ok(())
}

/// Checks that settings, tokenizer and an encoder of this shape belong together; gives the tokenizer as they want it.
pub(crate) fn fitting(
    config: &BertConfig,
    word_pieces: WordPieces,
    settings: &ModelSettings,
) -> Result<WordPieces> {
    settings.check()?;
    check_middle(config, settings)?;
    if settings.case && config.type_vocab_size < 2 * Shape::COUNT {
        let problem = "needs an encoder with rows for the shapes of words";
        return Err(Error::Setting { setting: "case", problem });
    }
    let word_pieces = word_pieces.with_shapes(settings.case);
    let (n_pieces, n_vectors) = (word_pieces.n_pieces(), config.vocab_size);
    if n_pieces > n_vectors {
        return Err(Error::VocabularySize { n_pieces, n_vectors });
    }
    Ok(word_pieces)
}
