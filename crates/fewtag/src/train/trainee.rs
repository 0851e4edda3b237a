//! A model in training: an encoder that can learn and that nobody else holds, and what a tagger has besides.

use std::sync::Arc;

use crate::encoder::{TrainableEngine, WordPieces};
use crate::error::Result;
use crate::head::Head;
use crate::settings::ModelSettings;
use crate::tagger::{Tagger, fitting};

/// What a [`Trainer`](super::Trainer) changes.
pub struct Trainee {
    engine: Arc<dyn TrainableEngine>,
    word_pieces: Arc<WordPieces>,
    settings: ModelSettings,
    pub(super) head: Head,
}

impl Trainee {
    /// Puts a model together.
    ///
    /// # Errors
    ///
    /// As [`Tagger::new`].
    pub fn new(
        engine: impl TrainableEngine + 'static,
        word_pieces: WordPieces,
        settings: ModelSettings,
        head: Head,
    ) -> Result<Self> {
        let word_pieces = Arc::new(fitting(engine.config(), word_pieces, &settings)?);
        Ok(Self { engine: Arc::new(engine), word_pieces, settings, head })
    }

    /// A loaded model over an engine that can learn and reads as the model's own.
    pub(crate) fn of(tagger: &Tagger, engine: impl TrainableEngine + 'static) -> Self {
        Self {
            engine: Arc::new(engine),
            word_pieces: Arc::clone(&tagger.word_pieces),
            settings: tagger.settings.clone(),
            head: tagger.head,
        }
    }

    /// What is learned above the encoder.
    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    /// The model as it is: good for tagging, and to be dropped before the next update.
    pub(super) fn tagger(&self) -> Tagger {
        let Self { engine, word_pieces, settings, head } = self;
        Tagger {
            engine: Arc::clone(engine) as _,
            word_pieces: Arc::clone(word_pieces),
            settings: settings.clone(),
            head: *head,
            kept: None,
            checksum: None,
            tuned: None,
        }
    }

    pub(crate) fn engine(&self) -> &dyn TrainableEngine {
        &*self.engine
    }

    /// The encoder, to be changed.
    ///
    /// # Panics
    ///
    /// If a tagger of this model is alive: it would change under its feet.
    pub(super) fn engine_mut(&mut self) -> &mut dyn TrainableEngine {
        Arc::get_mut(&mut self.engine).expect("nobody else uses the encoder while it is trained")
    }
}
