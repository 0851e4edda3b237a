//! The products of bytes of ARM's processors.

#![expect(
    unsafe_code,
    reason = "the instruction has no stable intrinsic, and it is used after asking for it"
)]

use std::arch::aarch64::{
    int8x16_t, int32x4_t, vdupq_n_s32, vld1q_s8, vreinterpretq_s8_s32, vst1q_s32,
};
use std::arch::{asm, is_aarch64_feature_detected};

use super::product::{Kernel, Run, Sums};
use super::{PANEL, QUAD};

pub(super) fn has_dot() -> bool {
    is_aarch64_feature_detected!("dotprod")
}

/// Runs on a machine that [`has_dot`].
pub(super) fn run(run: Run) {
    assert!(has_dot(), "no dot products of bytes");
    let quads = run.narrow();
    run.with(NeonDot, quads);
}

/// A tile of 6 rows by 4 vectors uses 24 of 32 registers.
#[derive(Debug, Clone, Copy)]
struct NeonDot;

/// Columns of a vector.
const LANES: usize = 4;

impl Kernel for NeonDot {
    type Quad = [u8; QUAD];
    const ROWS: usize = 6;
    const IS_FUSED: bool = true;

    /// Both factors of `sdot` are signed, so 128 is taken from the activations and `128 Σ q` added at the end.
    #[inline(always)]
    fn tile<const R: usize>(
        self,
        rows: &[[u8; QUAD]],
        panel: &[[[i8; QUAD]; PANEL]],
        sums: &mut Sums,
    ) {
        let n_quads = panel.len();
        assert!(rows.len() == R * n_quads, "R rows of whole quads");
        for j in (0..PANEL).step_by(4 * LANES) {
            // SAFETY: 16 columns of a quad are four vectors of 16 bytes, `r n_quads + p` is below `rows.len()`, 16
            // sums are four vectors, and only `run` calls this.
            unsafe {
                let mut tile = [[vdupq_n_s32(0); 4]; R];
                let mut of_weights = [vdupq_n_s32(0); 4];
                let ones = vreinterpretq_s8_s32(vdupq_n_s32(0x0101_0101));
                for (p, columns) in panel.iter().enumerate() {
                    let columns = columns[j..j + 4 * LANES].as_ptr();
                    let mut q = [ones; 4];
                    for (v, (q, sum)) in q.iter_mut().zip(&mut of_weights).enumerate() {
                        *q = vld1q_s8(columns.add(v * LANES).cast());
                        *sum = dot(*sum, ones, *q);
                    }
                    for (r, tile) in tile.iter_mut().enumerate() {
                        let u = i32::from_le_bytes(*rows.get_unchecked(r * n_quads + p));
                        let signed = u ^ i32::from_le_bytes([0x80; QUAD]);
                        let u = vreinterpretq_s8_s32(vdupq_n_s32(signed));
                        for (sum, &q) in tile.iter_mut().zip(&q) {
                            *sum = dot(*sum, u, q);
                        }
                    }
                }
                let mut shift = [0; 4 * LANES];
                store(&of_weights, &mut shift);
                for (tile, sums) in tile.iter().zip(sums.iter_mut()) {
                    let mut row = [0; 4 * LANES];
                    store(tile, &mut row);
                    for ((sum, row), shift) in sums[j..].iter_mut().zip(row).zip(shift) {
                        *sum = row + 128 * shift;
                    }
                }
            }
        }
    }
}

/// Every lane of `sum` plus the products of its four bytes.
///
/// # Safety
///
/// Only on a machine that [`has_dot`].
#[inline(always)]
unsafe fn dot(mut sum: int32x4_t, u: int8x16_t, q: int8x16_t) -> int32x4_t {
    // SAFETY: the instruction reads and writes registers alone.
    unsafe {
        asm!(
            ".arch_extension dotprod",
            "sdot {sum:v}.4s, {u:v}.16b, {q:v}.16b",
            sum = inout(vreg) sum, u = in(vreg) u, q = in(vreg) q,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    sum
}

#[inline(always)]
fn store(vectors: &[int32x4_t; 4], to: &mut [i32; 4 * LANES]) {
    for (vector, to) in vectors.iter().zip(to.as_chunks_mut::<LANES>().0) {
        // SAFETY: there is room for the four numbers of a vector.
        unsafe { vst1q_s32(to.as_mut_ptr(), *vector) }
    }
}
