//! How alike two vectors are, in a form that can be summed before the query is known.
//!
//! Every similarity splits into a part of the query and a part of the reference (`[d]` and a number each):
//!
//! ```text
//! sim(q, c) = a(q)·φ(c) + β(c) + γ(q)
//!                        a(q)     φ(c)     β(c)      γ(q)
//! dot                    q        c        0         0
//! cosine                 q/|q|    c/|c|    0         0
//! squared distance (−)   q        2c       −|c|²     −|q|²
//! projection             q        c/|c|    −|c|/2    0
//! ```
//!
//! So a sum of similarities to many words is one product with the sum of their `φ`, which in
//! separate context is known before the query. The zero vector has no direction: `c/|c|` is 0 there.
//!
//! Sources: dot product, the paper; squared distance, prototypical networks (Snell et al., 2017);
//! projection `q·c/|c| − |c|/2`, Zhu et al. (2020).

use serde::{Deserialize, Serialize};

use crate::matrix::{add_scaled, dot};

/// How alike a query vector and a reference vector are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Similarity {
    /// `q·c`: the paper's.
    #[default]
    Dot,
    /// `q·c / |q||c|`.
    Cosine,
    /// `−|q − c|²`.
    SquaredDistance,
    /// `q·c/|c| − |c|/2`: the projection on the reference, less half its length.
    Projection,
}

/// One side of a similarity: a vector and a number, or the gradients of both.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Side {
    /// `a(q)` or `φ(c)`, `[d]`.
    pub(super) vector: Vec<f32>,
    /// `γ(q)` or `β(c)`.
    pub(super) offset: f32,
}

impl Side {
    pub(super) fn zero(width: usize) -> Self {
        Self { vector: vec![0.0; width], offset: 0.0 }
    }

    pub(super) fn add(&mut self, weight: f32, other: &Self) {
        add_scaled(&mut self.vector, weight, &other.vector);
        self.offset += weight * other.offset;
    }
}

impl Similarity {
    /// `a(q)` and `γ(q)`.
    pub(super) fn query(self, q: &[f32]) -> Side {
        match self {
            Self::Dot | Self::Projection => Side { vector: q.to_vec(), offset: 0.0 },
            Self::Cosine => Side { vector: scaled(inverse(norm(q)), q), offset: 0.0 },
            Self::SquaredDistance => Side { vector: q.to_vec(), offset: -dot(q, q) },
        }
    }

    /// `φ(c)` and `β(c)`.
    pub(super) fn reference(self, c: &[f32]) -> Side {
        let (stretch, shrink) = self.factors(c);
        Side { vector: scaled(stretch, c), offset: -shrink * dot(c, c) }
    }

    /// The numbers `s` and `b` of `φ(c) = s·c` and `β(c) = −b·|c|²`.
    pub(super) fn factors(self, c: &[f32]) -> (f32, f32) {
        match self {
            Self::Dot => (1.0, 0.0),
            Self::Cosine => (inverse(norm(c)), 0.0),
            Self::SquaredDistance => (2.0, 1.0),
            Self::Projection => (inverse(norm(c)), 0.5 * inverse(norm(c))),
        }
    }

    /// `sim(q, c)` from `q·c`, `|q|²` and `|c|²`.
    pub(super) fn of_products(self, dot: f32, q: f32, c: f32) -> f32 {
        match self {
            Self::Dot => dot,
            Self::Cosine => dot * inverse(q.sqrt()) * inverse(c.sqrt()),
            Self::SquaredDistance => 2.0 * dot - c - q,
            Self::Projection => dot * inverse(c.sqrt()) - 0.5 * c.sqrt(),
        }
    }

    /// The gradient of `q` from those of `a(q)` and `γ(q)`.
    pub(super) fn query_backward(self, q: &[f32], gradient: &Side) -> Vec<f32> {
        match self {
            Self::Dot | Self::Projection => gradient.vector.clone(),
            Self::Cosine => direction_backward(q, &gradient.vector),
            Self::SquaredDistance => {
                let mut d = gradient.vector.clone();
                add_scaled(&mut d, -2.0 * gradient.offset, q);
                d
            }
        }
    }

    /// The gradient of `c` from those of `φ(c)` and `β(c)`.
    pub(super) fn reference_backward(self, c: &[f32], gradient: &Side) -> Vec<f32> {
        match self {
            Self::Dot => gradient.vector.clone(),
            Self::Cosine => direction_backward(c, &gradient.vector),
            Self::SquaredDistance => {
                let mut d = scaled(2.0, &gradient.vector);
                add_scaled(&mut d, -2.0 * gradient.offset, c);
                d
            }
            Self::Projection => {
                let mut d = direction_backward(c, &gradient.vector);
                add_scaled(&mut d, -0.5 * gradient.offset * inverse(norm(c)), c);
                d
            }
        }
    }
}

/// The gradient of `v` from that of `u = v/|v|`: the part across `v`, `(g − u(u·g)) / |v|`.
fn direction_backward(v: &[f32], gradient: &[f32]) -> Vec<f32> {
    let inverse = inverse(norm(v));
    let mut d = scaled(inverse, gradient);
    add_scaled(&mut d, -inverse.powi(3) * dot(v, gradient), v);
    d
}

/// `1/x`, and 0 for 0.
pub(super) fn inverse(x: f32) -> f32 {
    if x > 0.0 { x.recip() } else { 0.0 }
}

pub(super) fn norm(v: &[f32]) -> f32 {
    dot(v, v).sqrt()
}

fn scaled(factor: f32, v: &[f32]) -> Vec<f32> {
    v.iter().map(|x| factor * x).collect()
}
