//! The encoder: word pieces in, one vector per piece out, and the way back for gradients.
//!
//! ```text
//! PackedBatch ─ encode ─▶ hidden rows [n_pieces, h] ─ scorer, CRF ─▶ loss
//! Gradients ◀─ backward ─ gradient rows [n_pieces, h] ◀────────────┘
//! ```
//!
//! [`Engine`] is the seam: the model above it sees rows and nothing of how they are computed.
//! Results are the same bits for any number of threads.

mod backward;
pub mod batch;
mod bert;
pub mod config;
mod embeddings;
mod group;
mod layer;
pub mod parameters;
mod pool;
mod shape;
pub mod storage;
pub mod weights;
pub mod word_pieces;

use std::any::Any;
use std::ops::Range;

pub use batch::{PackedBatch, Piece};
pub use bert::Bert;
pub use config::BertConfig;
pub use fewtag_kernels::activation::Activation;
pub use fewtag_kernels::dropout::Dropout;
pub use parameters::{Gradients, Parameters, Tensor};
pub use shape::Shape;
pub(crate) use shape::with_shapes;
pub use storage::Storage;
pub use word_pieces::{Pieces, WordPieces};

use crate::error::Result;
use crate::matrix::Matrix;

/// An encoder that can be run and trained.
pub trait Engine: Send + Sync {
    /// The weights, which also tell the encoder's shape.
    fn parameters(&self) -> &Parameters;

    /// The weights, for an optimiser.
    fn parameters_mut(&mut self) -> &mut Parameters;

    /// What is not trained.
    fn frozen(&self) -> Frozen;

    /// Hidden rows `[n_pieces, h]` after the last of `layers`; nothing is kept.
    ///
    /// # Errors
    ///
    /// If `batch` does not fit the encoder ([`PackedBatch::check`]).
    fn forward(&self, batch: &PackedBatch, input: Input, layers: Range<usize>) -> Result<Matrix>;

    /// The same with dropout and with a trace of what [`Engine::backward`] needs.
    ///
    /// # Errors
    ///
    /// If `batch` does not fit the encoder ([`PackedBatch::check`]).
    fn forward_for_training(
        &self,
        batch: &PackedBatch,
        input: Input,
        layers: Range<usize>,
        dropout: Option<Dropout>,
    ) -> Result<(Matrix, Trace)>;

    /// Adds to `gradients` what the gradient `d_hidden` `[n_pieces, h]` of the loss by the hidden rows makes of
    /// them. Returns the gradient by the input rows, if they were given and not computed from embeddings.
    fn backward(
        &self,
        batch: &PackedBatch,
        trace: &Trace,
        d_hidden: Matrix,
        gradients: &mut Gradients,
    ) -> Option<Matrix>;

    /// The width of a hidden row.
    fn width(&self) -> usize {
        self.parameters().config().hidden_size
    }

    /// The longest sequence the encoder reads.
    fn max_pieces(&self) -> usize {
        self.parameters().config().max_position_embeddings
    }

    /// The number of layers.
    fn n_layers(&self) -> usize {
        self.parameters().config().num_hidden_layers
    }

    /// Hidden rows `[n_pieces, h]` of the last layer.
    ///
    /// # Errors
    ///
    /// If `batch` does not fit the encoder ([`PackedBatch::check`]).
    fn encode(&self, batch: &PackedBatch) -> Result<Matrix> {
        self.forward(batch, Input::Pieces, 0..self.n_layers())
    }

    /// Those of some pieces only, `[rows.len(), h]`. An engine can save what the last layer does for the others.
    ///
    /// # Errors
    ///
    /// If `batch` does not fit the encoder ([`PackedBatch::check`]).
    ///
    /// # Panics
    ///
    /// If `rows` do not increase, or the batch has no such row.
    fn encode_rows(&self, batch: &PackedBatch, rows: &[usize]) -> Result<Matrix> {
        let hidden = self.encode(batch)?;
        let values = rows.iter().flat_map(|&row| hidden.row(row).iter().copied());
        Ok(Matrix::new(values.collect(), hidden.n_cols()))
    }

    /// [`Engine::encode`] with dropout and with a trace of what [`Engine::backward`] needs.
    ///
    /// # Errors
    ///
    /// If `batch` does not fit the encoder ([`PackedBatch::check`]).
    fn encode_for_training(
        &self,
        batch: &PackedBatch,
        dropout: Option<Dropout>,
    ) -> Result<(Matrix, Trace)> {
        self.forward_for_training(batch, Input::Pieces, 0..self.n_layers(), dropout)
    }
}

/// Where a forward pass starts.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// At the embeddings of the batch's pieces.
    Pieces,
    /// At these hidden rows `[n_pieces, h]`, made by lower layers before.
    Rows(Matrix),
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
    pub fn n_layers(self) -> usize {
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
