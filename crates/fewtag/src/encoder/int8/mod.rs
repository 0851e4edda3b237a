//! BERT in whole numbers: the engine that tags fastest.
//!
//! Weights take one byte each, in memory as in the file, and every product of a linear layer is one of bytes
//! (`fewtag_kernels::int8`). It gives hidden rows and cannot be trained. Like [`Bert`](super::Bert) it gives the same bits for any number
//! of threads and whatever else a batch holds, and beyond that the same for every vector unit that multiplies and adds
//! in one rounding.

mod layer;
mod share;
mod weights;

use std::path::Path;

use fewtag_kernels::int8::Unit;
use fewtag_kernels::layer_norm::{Norm, normalise_rows};
use rayon::prelude::*;

use self::layer::{LayerPass, PackedLayer, Workspace, owned, slices};
use self::share::with_others;
use self::weights::{Gathered, Numbers};
use super::batch::{PackedBatch, Piece};
use super::config::BertConfig;
use super::embeddings::lookups;
use super::group::SequenceGroup;
use super::layer::keep_rows;
use super::middle::MiddleRows;
use super::parameters::{Embeddings, Parameters};
use super::pool::Pool;
use super::weights::read_into;
use super::{Engine, Layered, Precision};
use crate::error::Result;
use crate::matrix::Matrix;

/// The rows a group should have: weights are read four times as fast as floats, and what a group computes must stay in
/// the second cache (1 MB: 160 rows of 1,536 floats).
const GROUP_ROWS: usize = 128;

/// A BERT encoder in whole numbers.
#[derive(Debug)]
pub struct Int8Bert {
    config: BertConfig,
    tables: Tables,
    layers: Vec<PackedLayer>,
    unit: Unit,
    workspaces: Pool<Workspace>,
}

/// The tables below the first layer.
#[derive(Debug)]
struct Tables {
    word: Numbers,
    position: Numbers,
    segment: Numbers,
    norm: Norm<Vec<f32>>,
}

impl Int8Bert {
    /// Rounds the weights of an encoder to bytes.
    ///
    /// # Errors
    ///
    /// [`crate::Error::EncoderConfig`] if the shape is none that this engine computes.
    pub fn new(parameters: &Parameters) -> Result<Self> {
        Self::assemble(parameters.config(), Gathered::rounded(parameters))
    }

    /// The encoder of shape `config` in the bytes of one safetensors file; `path` is its name in messages. Matrices
    /// that the file holds in bytes are taken as they are.
    ///
    /// # Errors
    ///
    /// If the bytes are no such file, or if the weights are not exactly those that `config` describes.
    pub fn from_bytes(config: &BertConfig, bytes: &[u8], path: &Path) -> Result<Self> {
        let mut gathered = Gathered::default();
        read_into(&mut gathered, config, bytes, path)?;
        Self::assemble(config, gathered)
    }

    fn assemble(config: &BertConfig, gathered: Gathered) -> Result<Self> {
        config.check()?;
        let weights = gathered.weights(config);
        let Embeddings { word, position, segment, norm } = weights.embeddings;
        let layers = weights.layers.par_iter().map(|layer| PackedLayer::new(layer, config));
        Ok(Self {
            layers: layers.collect(),
            config: config.clone(),
            tables: Tables { word, position, segment, norm: owned(&norm) },
            unit: Unit::best(),
            workspaces: Pool::default(),
        })
    }

    /// The same encoder with products of another unit: for measurements, the answers are the same.
    #[must_use]
    pub fn with_unit(self, unit: Unit) -> Self {
        Self { unit, workspaces: Pool::default(), ..self }
    }

    /// The rows of all pieces above the lowest `n_layers` layers, or the wanted ones, with those of middle layers behind them.
    fn through(
        &self,
        n_layers: usize,
        batch: &PackedBatch,
        wanted: Option<&[usize]>,
        middle: &[usize],
    ) -> Result<Matrix> {
        let layers = &self.layers[..n_layers];
        batch.check(&self.config)?;
        let n_threads = rayon::current_num_threads();
        let groups = SequenceGroup::cut_for_threads(batch, GROUP_ROWS, n_threads);
        let width = self.config.hidden_size * (1 + middle.len());
        if let [group] = &groups[..] {
            let wanted = wanted.map(|rows| group.own(rows));
            let run = || self.run((layers, middle), group, wanted.as_deref(), n_threads);
            return Ok(Matrix::new(with_others(n_threads, run), width));
        }
        let n_threads = n_threads / groups.len().max(1);
        let groups = groups.into_par_iter().with_max_len(1);
        let rows: Vec<Vec<f32>> = groups
            .map(|group| {
                let wanted = wanted.map(|rows| group.own(rows));
                self.run((layers, middle), &group, wanted.as_deref(), n_threads)
            })
            .collect();
        Ok(Matrix::new(rows.concat(), width))
    }

    /// Hidden rows of a group, `[n, h]`, or the wanted ones, with those of middle layers behind them.
    fn run(
        &self,
        (layers, middle): (&[PackedLayer], &[usize]),
        group: &SequenceGroup,
        wanted: Option<&[usize]>,
        n_threads: usize,
    ) -> Vec<f32> {
        let mut x = self.tables.rows(group, self.config.layer_norm_eps);
        if let (Some(wanted), true) = (wanted, layers.is_empty()) {
            keep_rows(&mut x, wanted, self.config.hidden_size);
        }
        let mut middle = MiddleRows::new(middle, wanted, self.config.hidden_size);
        let mut workspace = self.workspaces.take_or(|| Workspace::new(self.unit));
        for (l, layer) in layers.iter().enumerate() {
            let wanted = wanted.filter(|_| l + 1 == layers.len());
            let pass = LayerPass { config: &self.config, layer, group, wanted, n_threads };
            pass.run(&mut x, &mut workspace);
            middle.look(l + 1, &x);
        }
        middle.behind(x)
    }

    /// Hidden rows `[n_pieces, h]` of the last layer.
    ///
    /// # Errors
    ///
    /// If `batch` does not fit the encoder ([`PackedBatch::check`]).
    pub fn encode(&self, batch: &PackedBatch) -> Result<Matrix> {
        self.through(self.layers.len(), batch, None, &[])
    }
}

impl Engine for Int8Bert {
    fn config(&self) -> &BertConfig {
        &self.config
    }

    fn precision(&self) -> Precision {
        Precision::Int8
    }

    fn encode_rows(&self, batch: &PackedBatch, rows: &[usize], middle: &[usize]) -> Result<Matrix> {
        assert!(rows.is_sorted_by(|a, b| a < b), "wanted rows increase");
        assert!(rows.last().is_none_or(|&row| row < batch.n_pieces()), "wanted rows exist");
        self.through(self.layers.len(), batch, Some(rows), middle)
    }

    fn embeddings(&self, pieces: &[Piece]) -> Option<Matrix> {
        Some(self.tables.alone(pieces, self.config.layer_norm_eps))
    }

    fn layered(&self) -> Option<&dyn Layered> {
        Some(self)
    }
}

impl Layered for Int8Bert {
    fn encode_below(
        &self,
        batch: &PackedBatch,
        n_layers: usize,
        middle: &[usize],
    ) -> Result<Matrix> {
        self.through(n_layers, batch, None, middle)
    }

    fn upper(&self, n_below: usize) -> Parameters {
        let mut upper = Parameters::zeros(&self.config.upper(n_below));
        for (into, layer) in upper.weights_mut().layers.into_iter().zip(&self.layers[n_below..]) {
            layer.unpack(into);
        }
        upper
    }
}

impl Tables {
    /// The rows `x [n, h]` of a group below the first layer.
    fn rows(&self, group: &SequenceGroup, epsilon: f32) -> Vec<f32> {
        let h = self.norm.weight.len();
        let mut x = vec![0.0; group.rows().len() * h];
        for (at, x) in lookups(group).zip(x.chunks_exact_mut(h)) {
            self.word.matrix().add_row(at.word, x);
            self.segment.matrix().add_row(at.segment, x);
            self.position.matrix().add_row(at.position, x);
        }
        normalise_rows(&mut x, &slices(&self.norm), epsilon);
        x
    }

    /// The rows `[n, h]` of pieces that stand nowhere: without their positions.
    fn alone(&self, pieces: &[Piece], epsilon: f32) -> Matrix {
        let h = self.norm.weight.len();
        let mut rows = Matrix::zeros(pieces.len(), h);
        for (piece, x) in pieces.iter().zip(rows.values_mut().chunks_exact_mut(h)) {
            self.word.matrix().add_row(piece.id as usize, x);
            self.segment.matrix().add_row(piece.segment.into(), x);
        }
        normalise_rows(rows.values_mut(), &slices(&self.norm), epsilon);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::tests::odd_config;
    use super::super::testing::{odd_batch, odd_parameters};
    use super::super::{Bert, Storage, storage};
    use super::*;
    use crate::error::Error;

    fn batch(lengths: &[usize]) -> PackedBatch {
        odd_batch(lengths, 9)
    }

    fn in_bytes(parameters: &Parameters) -> Vec<u8> {
        storage::to_bytes(parameters, Storage::Int8).unwrap()
    }

    #[test]
    fn embeddings_are_those_of_floats() {
        let (stored, path) = (in_bytes(&odd_parameters()), Path::new("stored"));
        let floats = super::super::weights::from_bytes(&odd_config(), &stored, path).unwrap();
        let ours = Int8Bert::from_bytes(&odd_config(), &stored, path).unwrap();
        let pieces = [3, 0, 7].map(|id| Piece { id, segment: u8::from(id == 7) });
        let expected = Bert::new(floats).unwrap().embeddings(&pieces).unwrap();
        let ours = ours.embeddings(&pieces).unwrap();
        let both = ours.values().iter().zip(expected.values());
        assert!(both.clone().count() > 0 && both.clone().all(|(a, b)| (a - b).abs() < 1e-5));
    }

    #[test]
    fn hidden_rows_are_close_to_those_of_floats() {
        let batch = batch(&[7, 1, 9, 4]);
        // The weights of a file in bytes are the same in both, so that what differs is the arithmetic.
        let stored = in_bytes(&odd_parameters());
        let path = Path::new("stored");
        let floats = super::super::weights::from_bytes(&odd_config(), &stored, path).unwrap();
        let floats = Bert::new(floats).unwrap().encode(&batch).unwrap();
        let ours = Int8Bert::from_bytes(&odd_config(), &stored, path).unwrap();
        let ours = ours.encode(&batch).unwrap();
        let squares = |x: &[f32]| x.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>();
        let off: Vec<f32> = ours.values().iter().zip(floats.values()).map(|(a, b)| a - b).collect();
        let share = (squares(&off) / squares(floats.values())).sqrt();
        assert!(share > 1e-4 && share < 0.03, "off by {share}");
    }

    #[test]
    fn bytes_of_a_file_are_taken_as_they_are() {
        let batch = batch(&[7, 4]);
        let rounded = Int8Bert::new(&odd_parameters()).unwrap();
        let load =
            |bytes: &[u8]| Int8Bert::from_bytes(&odd_config(), bytes, Path::new("x")).unwrap();
        let from_bytes = load(&in_bytes(&odd_parameters()));
        let from_floats = load(&storage::to_bytes(&odd_parameters(), Storage::F32).unwrap());
        let expected = rounded.encode(&batch).unwrap();
        assert_eq!(from_bytes.encode(&batch).unwrap(), expected);
        assert_eq!(from_floats.encode(&batch).unwrap(), expected);
    }

    #[test]
    fn a_file_that_does_not_fit_is_refused() {
        let mut bytes = in_bytes(&odd_parameters());
        bytes.truncate(bytes.len() - 1);
        assert!(Int8Bert::from_bytes(&odd_config(), &bytes, Path::new("cut")).is_err());
        let deeper = BertConfig { num_hidden_layers: 1, ..odd_config() };
        let bytes = in_bytes(&odd_parameters());
        let refused = Int8Bert::from_bytes(&deeper, &bytes, Path::new("x")).unwrap_err();
        assert!(matches!(refused, Error::UnknownTensor { .. }), "{refused}");
    }

    #[test]
    fn a_sequence_does_not_depend_on_its_batch_nor_on_threads() {
        let engine = Int8Bert::new(&odd_parameters()).unwrap();
        let lengths = [7, 1, 9, 4, 19].repeat(20);
        let together = batch(&lengths);
        let run = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| engine.encode(&together).unwrap())
        };
        let hidden = run(1);
        for threads in [2, 3, 8] {
            assert_eq!(run(threads), hidden, "{threads} threads");
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        for rows in together.sequences().step_by(7) {
            let mut alone = PackedBatch::new();
            alone.push(together.pieces()[rows.clone()].iter().copied());
            let expected = rows.flat_map(|row| hidden.row(row).to_vec()).collect();
            let alone = pool.install(|| engine.encode(&alone).unwrap());
            assert_eq!(alone, Matrix::new(expected, 15));
        }
    }

    #[test]
    fn every_unit_gives_the_same_rows() {
        let batch = batch(&[7, 1, 9, 4]);
        let expected = Int8Bert::new(&odd_parameters()).unwrap().encode(&batch).unwrap();
        for unit in Unit::available().filter(|&unit| unit != Unit::Portable) {
            let engine = Int8Bert::new(&odd_parameters()).unwrap().with_unit(unit);
            assert_eq!(engine.encode(&batch).unwrap(), expected, "{unit:?}");
        }
    }

    #[test]
    fn the_upper_layers_come_out_as_they_went_in() {
        let stored = in_bytes(&odd_parameters());
        let path = Path::new("stored");
        let floats = super::super::weights::from_bytes(&odd_config(), &stored, path).unwrap();
        let int8 = Int8Bert::from_bytes(&odd_config(), &stored, path).unwrap();
        for n_below in 0..=2 {
            assert_eq!(int8.upper(n_below), floats.upper(n_below), "{n_below}");
        }
    }

    #[test]
    fn wanted_rows_are_those_of_all() {
        let engine = Int8Bert::new(&odd_parameters()).unwrap();
        let batch = batch(&[17, 3, 19, 8].repeat(20));
        let hidden = engine.encode(&batch).unwrap();
        let every_third: Vec<usize> = (1..batch.n_pieces()).step_by(3).collect();
        for rows in [every_third, vec![0, batch.n_pieces() - 1]] {
            let expected = rows.iter().flat_map(|&row| hidden.row(row).to_vec()).collect();
            assert_eq!(engine.encode_rows(&batch, &rows, &[]).unwrap(), Matrix::new(expected, 15));
        }
    }

    #[test]
    fn rows_of_a_middle_layer_stand_behind_those_of_the_last() {
        let engine = Int8Bert::new(&odd_parameters()).unwrap();
        for batch in [batch(&[17, 3, 19, 8].repeat(20)), batch(&[5])] {
            let (last, first) =
                (engine.encode(&batch).unwrap(), engine.encode_below(&batch, 1, &[]).unwrap());
            let rows: Vec<usize> = (1..batch.n_pieces()).step_by(3).collect();
            let both = |&row: &usize| [last.row(row), first.row(row)].concat();
            let expected = Matrix::new(rows.iter().flat_map(both).collect(), 30);
            assert_eq!(engine.encode_rows(&batch, &rows, &[1]).unwrap(), expected);
        }
    }
}
