//! Below the first layer: the sum of a piece's three embeddings, normalised.
//!
//! ```text
//! z = word[id] + segment[s] + position[p],  x = dropout(LayerNorm(z))
//! ```

use fewtag_kernels::add;
use fewtag_kernels::dropout::{LayerDropout, Place};
use fewtag_kernels::layer_norm::{Normalised, normalise_rows};

use super::batch::Piece;
use super::group::SequenceGroup;
use super::parameters::Embeddings;
use crate::matrix::Matrix;

/// The rows of the three tables that one piece adds up.
pub(super) struct Lookup {
    pub(super) word: usize,
    pub(super) segment: usize,
    pub(super) position: usize,
}

/// What each piece of a group looks up, in the order of rows.
pub(super) fn lookups(group: &SequenceGroup) -> impl Iterator<Item = Lookup> {
    group.sequences.clone().flat_map(|s| {
        let pieces = &group.batch.pieces()[group.batch.rows(s)];
        pieces.iter().enumerate().map(|(position, piece)| Lookup {
            word: piece.id as usize,
            segment: piece.segment.into(),
            position,
        })
    })
}

/// The rows `x [n, h]` of a group.
pub(super) fn forward(
    tables: &Embeddings<&[f32]>,
    group: &SequenceGroup,
    epsilon: f32,
    dropout: Option<LayerDropout>,
) -> (Vec<f32>, Normalised) {
    let h = tables.norm.weight.len();
    let mut z = Vec::with_capacity(group.rows().len() * h);
    for at in lookups(group) {
        let row = z.len();
        z.extend_from_slice(&tables.word[at.word * h..][..h]);
        add(&mut z[row..], &tables.segment[at.segment * h..][..h]);
        add(&mut z[row..], &tables.position[at.position * h..][..h]);
    }
    let (mut normalised, mut x) = (Normalised::default(), vec![0.0; z.len()]);
    normalised.forward(&z, &tables.norm, epsilon, &mut x);
    if let Some(dropout) = dropout {
        dropout.apply(Place::Embeddings, group.rows().start, &mut x, h);
    }
    (x, normalised)
}

/// The rows `[n, h]` of pieces that stand nowhere: without their positions.
pub(super) fn alone(tables: &Embeddings<&[f32]>, pieces: &[Piece], epsilon: f32) -> Matrix {
    let h = tables.norm.weight.len();
    let mut rows = Matrix::zeros(pieces.len(), h);
    for (piece, z) in pieces.iter().zip(rows.values_mut().chunks_exact_mut(h)) {
        add(z, &tables.word[piece.id as usize * h..][..h]);
        add(z, &tables.segment[usize::from(piece.segment) * h..][..h]);
    }
    normalise_rows(rows.values_mut(), &tables.norm, epsilon);
    rows
}

/// Adds to `gradients` what the gradient `dx [n, h]` by a group's rows makes of them, row after row.
pub(super) fn backward(
    group: &SequenceGroup,
    normalised: &Normalised,
    gamma: &[f32],
    dx: &[f32],
    gradients: &mut Embeddings<&mut [f32]>,
) {
    let h = gamma.len();
    normalised.accumulate(dx, &mut gradients.norm);
    let mut dz = vec![0.0; dx.len()];
    normalised.backward(dx, gamma, &mut dz);
    for (at, dz) in lookups(group).zip(dz.chunks_exact(h)) {
        add(&mut gradients.word[at.word * h..][..h], dz);
        add(&mut gradients.segment[at.segment * h..][..h], dz);
        add(&mut gradients.position[at.position * h..][..h], dz);
    }
}
