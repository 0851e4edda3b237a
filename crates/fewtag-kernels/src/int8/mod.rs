//! Products in whole numbers: weights of one byte, activations brought to one byte on the way.
//!
//! ```text
//! W[j, p] ≈ t[j] q[j, p]                q in −127…127, one scale t a column of the product              (Panels)
//! x[i, p] ≈ s[i, g] (u[i, p] − z[i, g]) u in 0…255, one scale s and one zero z a group g of 64 columns  (Rows)
//! y[i, j] = t[j] Σ_g s[i, g] ( Σ_p u[i, p] q[j, p] − z[i, g] Σ_p q[j, p] ) + b[j]      p in g           (Product)
//! ```
//!
//! The sums of a group are exact 32-bit whole numbers. They are made floats of and added, group after group, by
//! multiply-adds that round once, on every machine. So every [`Unit`] gives the same bits, a row does not depend on its
//! neighbours, and the portable code, which is the definition, can be compared with all others without a tolerance.
//!
//! Why groups: the largest number of a row sets its step, so one large column would make all others coarse
//! (`docs/reference/engine.md` has the figures).
//!
//! The trap of AVX2: its product of bytes, `vpmaddubsw`, adds two products in 16 bits and saturates, since
//! 2 · 255 · 127 does not fit. There the bytes are widened and multiplied by `vpmaddwd`, which is exact and needs as many
//! multiplications: the detour over 16 bits would take a second one to add up.

mod panels;
mod product;
mod rows;
mod unit;

#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;

pub use panels::{Matrix, Panels};
pub use product::{Finish, Product};
pub use rows::Rows;
pub use unit::Unit;

/// Bytes of a row that are multiplied with as many of a column and added up by one instruction.
const QUAD: usize = 4;
/// The columns of a panel.
const PANEL: usize = 32;
/// The most rows of a tile.
const TILE_ROWS: usize = 6;
/// The numbers of a row that share a scale. Their sums fit 24 bits, so that floats hold them exactly.
const GROUP: usize = 64;
/// The same in quads.
const GROUP_QUADS: usize = GROUP / QUAD;
