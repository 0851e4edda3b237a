//! Products in whole numbers: weights of one byte, activations brought to one byte row by row on the way.
//!
//! ```text
//! W[j, p] ≈ t[j] q[j, p]          q in −127…127, one scale t a column of the product     (Panels)
//! x[i, p] ≈ s[i] (u[i, p] − z[i]) u in 0…255, one scale s and one zero z a row          (Rows)
//! y[i, j] = s[i] t[j] ( Σ_p u[i, p] q[j, p] − z[i] Σ_p q[j, p] ) + b[j]                    (Product)
//! ```
//!
//! The sums are exact 32-bit whole numbers, and what makes floats of them has one order of operations. So every
//! [`Unit`] gives the same bits, a row does not depend on its neighbours, and the portable code, which is the
//! definition, can be compared with all others without a tolerance.
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
const TILE_ROWS: usize = 12;
/// The longest sum that fits 32 bits whatever its numbers are.
pub const MAX_K: usize = 1 << 16;
