//! The products of bytes of ARM's processors.

#![expect(
    unsafe_code,
    reason = "the instruction has no stable intrinsic, and it is used after asking for it"
)]

use std::arch::aarch64::{
    int8x16_t, int32x4_t, vcvtq_f32_s32, vdupq_n_s32, vfmaq_n_f32, vld1q_f32, vld1q_s8, vld1q_s32,
    vmulq_n_s32, vreinterpretq_s8_s32, vst1q_f32,
};
use std::arch::{asm, is_aarch64_feature_detected};

use super::panels::Panel;
use super::product::{Kernel, Left, Run, Sums};
use super::{GROUP_QUADS, PANEL, QUAD};

pub(super) fn has_dot() -> bool {
    is_aarch64_feature_detected!("dotprod")
}

/// Runs on a machine that [`has_dot`].
pub(super) fn run(run: Run) {
    assert!(has_dot(), "no dot products of bytes");
    let quads = run.narrow();
    run.with(NeonDot, quads);
}

/// A tile of 6 rows by 4 vectors uses 24 of 32 registers; floats wait in the first cache.
#[derive(Debug, Clone, Copy)]
struct NeonDot;

/// Columns of a vector.
const LANES: usize = 4;

impl Kernel for NeonDot {
    type Quad = [u8; QUAD];
    const IS_FUSED: bool = true;

    /// Both factors of `sdot` are signed, so 128 is taken from the activations and from their zero.
    #[inline(always)]
    fn tile<const R: usize>(self, left: Left<[u8; QUAD]>, panel: Panel, sums: &mut Sums) {
        assert!(left.fits::<R>(panel), "R rows of the panel's length");
        let (n_quads, n_groups) = (panel.quads.len(), panel.minus_sums.len());
        sums[..R].fill([0.0; PANEL]);
        for j in (0..PANEL).step_by(4 * LANES) {
            for (g, (quads, minus_sums)) in panel.groups().enumerate() {
                // SAFETY: 16 columns of a quad are four vectors of 16 bytes, `Left::fits` has looked at the places of
                // quads and scales, 16 sums are four vectors, and only `run` calls this.
                unsafe {
                    let mut tile = [[vdupq_n_s32(0); 4]; R];
                    for (r, tile) in tile.iter_mut().enumerate() {
                        let zero = left.scales.get_unchecked(r * n_groups + g).zero - 128;
                        for (v, sum) in tile.iter_mut().enumerate() {
                            let minus_sums = minus_sums[j + v * LANES..][..LANES].as_ptr();
                            *sum = vmulq_n_s32(vld1q_s32(minus_sums), zero);
                        }
                    }
                    for (p, columns) in quads.iter().enumerate() {
                        let columns = columns[j..j + 4 * LANES].as_ptr();
                        let q: [int8x16_t; 4] =
                            std::array::from_fn(|v| vld1q_s8(columns.add(v * LANES).cast()));
                        let p = g * GROUP_QUADS + p;
                        for (r, tile) in tile.iter_mut().enumerate() {
                            let u = i32::from_le_bytes(*left.quads.get_unchecked(r * n_quads + p));
                            let signed = u ^ i32::from_le_bytes([0x80; QUAD]);
                            let u = vreinterpretq_s8_s32(vdupq_n_s32(signed));
                            for (sum, &q) in tile.iter_mut().zip(&q) {
                                *sum = dot(*sum, u, q);
                            }
                        }
                    }
                    for (r, tile) in tile.iter().enumerate() {
                        let step = left.scales.get_unchecked(r * n_groups + g).step;
                        for (v, &whole) in tile.iter().enumerate() {
                            let sums = sums[r][j + v * LANES..][..LANES].as_mut_ptr();
                            let before = vld1q_f32(sums);
                            vst1q_f32(sums, vfmaq_n_f32(before, vcvtq_f32_s32(whole), step));
                        }
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
