//! The encoder: word pieces in, one vector per piece out, and the way back for gradients.
//!
//! ```text
//! PackedBatch ─ encode ─▶ hidden rows [n_pieces, h] ─ scorer, CRF ─▶ loss
//! Gradients ◀─ backward ─ gradient rows [n_pieces, h] ◀────────────┘
//! ```
//!
//! [`Engine`] is the seam for tagging, [`TrainableEngine`] for training: the model above them sees rows and nothing of how
//! they are computed.
//! Results are the same bits for any number of threads.

mod backward;
mod batch;
mod bert;
mod config;
mod difference;
mod embeddings;
mod group;
mod int8;
mod layer;
mod middle;
mod parameters;
mod pool;
mod precision;
mod shape;
pub mod storage;
mod tensor_names;
#[cfg(test)]
mod testing;
mod upper;
pub mod weights;
mod word_pieces;

use std::any::Any;
use std::ops::Range;

pub use batch::{PackedBatch, Piece};
pub use bert::Bert;
pub use config::BertConfig;
#[cfg(test)]
pub(crate) use config::tests::odd_config;
pub(crate) use difference::Difference;
pub use fewtag_kernels::activation::Activation;
pub use fewtag_kernels::dropout::Dropout;
pub use int8::Int8Bert;
pub use parameters::{Gradients, Parameters, Tensor};
pub use precision::Precision;
pub(crate) use shape::{Shape, with_shapes};
pub use storage::Storage;
pub(crate) use upper::{LowerRows, Upper};
pub use word_pieces::{Pieces, WordPieces};

use crate::error::Result;
use crate::matrix::Matrix;

/// An encoder that reads: all that tagging needs.
pub trait Engine: Send + Sync {
    /// Its shape.
    fn config(&self) -> &BertConfig;

    /// The last layer's rows of some pieces of a batch, each followed by its rows above the lowest `m` layers for every
    /// `m` of `middle`, `[rows.len(), h·(1 + middle.len())]`.
    ///
    /// # Errors
    ///
    /// If `batch` does not fit the encoder ([`PackedBatch::check`]).
    ///
    /// # Panics
    ///
    /// If `rows` or `middle` do not increase, the batch has no such row, or there are not more layers than those of `middle`.
    fn encode_rows(&self, batch: &PackedBatch, rows: &[usize], middle: &[usize]) -> Result<Matrix>;

    /// In which numbers it computes.
    fn precision(&self) -> Precision {
        Precision::F32
    }

    /// The embeddings of pieces outside any sequence, `LayerNorm(word[id] + segment[s])`, `[n, h]`; none if the engine has
    /// no tables of them.
    ///
    /// # Panics
    ///
    /// If the encoder has no such piece or segment.
    fn embeddings(&self, _pieces: &[Piece]) -> Option<Matrix> {
        None
    }

    /// The weights that saving a model writes; none if the engine does not keep them.
    fn to_save(&self) -> Option<&Parameters> {
        None
    }

    /// Itself, if its upper layers can be exchanged: for a domain that was tuned.
    fn layered(&self) -> Option<&dyn Layered> {
        None
    }

    /// The width of a hidden row.
    fn width(&self) -> usize {
        self.config().hidden_size
    }

    /// The longest sequence the encoder reads.
    fn max_pieces(&self) -> usize {
        self.config().max_position_embeddings
    }
}

/// An encoder whose lower layers can be run by themselves.
pub trait Layered: Engine {
    /// The rows of all pieces above the lowest `n_layers` layers, each followed by those above the layers of `middle`,
    /// `[n_pieces, h·(1 + middle.len())]`; they depend neither on threads nor on what else the batch holds.
    ///
    /// # Errors
    ///
    /// If `batch` does not fit the encoder ([`PackedBatch::check`]).
    ///
    /// # Panics
    ///
    /// If there are fewer layers, or `middle` does not increase or reaches beyond them.
    fn encode_below(
        &self,
        batch: &PackedBatch,
        n_layers: usize,
        middle: &[usize],
    ) -> Result<Matrix>;

    /// The weights of the layers above the lowest `n_below`, as an encoder whose tables have no rows.
    ///
    /// # Panics
    ///
    /// If there are fewer layers.
    fn upper(&self, n_below: usize) -> Parameters;
}

/// An encoder that can be trained, too: gradient rows in, gradients of its weights out.
pub trait TrainableEngine: Engine {
    /// The weights; of an encoder whose lower layers are another's ([`Layered`]) its own alone.
    fn parameters(&self) -> &Parameters;

    /// The weights, for an optimiser.
    fn parameters_mut(&mut self) -> &mut Parameters;

    /// What is not trained.
    fn frozen(&self) -> Frozen;

    /// The last layer's rows of all pieces, followed by those above the layers of `middle` as in [`Engine::encode_rows`],
    /// with dropout and with a trace of what [`TrainableEngine::backward`] needs.
    ///
    /// # Errors
    ///
    /// If `batch` does not fit the encoder ([`PackedBatch::check`]).
    fn encode_for_training(
        &self,
        batch: &PackedBatch,
        middle: &[usize],
        dropout: Option<Dropout>,
    ) -> Result<(Matrix, Trace)>;

    /// Adds to `gradients` what the gradient `d_hidden` `[n_pieces, h]` of the loss by the last layer's rows makes of them.
    /// The rows of middle layers pass none back.
    fn backward(
        &self,
        batch: &PackedBatch,
        trace: &Trace,
        d_hidden: Matrix,
        gradients: &mut Gradients,
    );
}

/// The lower part of an encoder that training leaves as it is and that costs no backward work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Frozen {
    /// Everything is trained.
    #[default]
    Nothing,
    /// The embeddings.
    Embeddings,
    /// The embeddings and the lowest `n` layers.
    Layers(usize),
}

impl Frozen {
    /// The number of frozen layers.
    pub(crate) fn n_layers(self) -> usize {
        match self {
            Self::Nothing | Self::Embeddings => 0,
            Self::Layers(n) => n,
        }
    }

    /// The part of the flat buffer of [`Parameters`] that is trained: all above what is frozen.
    #[must_use]
    pub fn trained(self, config: &BertConfig) -> Range<usize> {
        let places = parameters::places(config);
        let (below, layers) = (places.embeddings.norm.bias.end, places.layers);
        let end = layers.last().map_or(below, |layer| layer.output_norm.bias.end);
        match self {
            Self::Nothing => 0..end,
            Self::Embeddings | Self::Layers(_) => {
                let lowest = layers.get(self.n_layers());
                lowest.map_or(end, |layer| layer.qkv.weight.start)..end
            }
        }
    }
}

/// What a training pass keeps for its way back; only the engine that made it can read it.
pub struct Trace(Box<dyn Any + Send + Sync>);

impl Trace {
    /// Wraps an engine's own record.
    #[must_use]
    pub fn new(record: impl Any + Send + Sync) -> Self {
        Self(Box::new(record))
    }

    /// The record, if it is a `T`.
    #[must_use]
    pub fn record<T: Any>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}
