//! The products of bytes of Intel's and AMD's processors.

#![expect(
    unsafe_code,
    reason = "vectors are loaded through pointers, and code for a vector unit is called after asking for it"
)]

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_add_epi32, _mm256_cvtepi8_epi16, _mm256_cvtepi32_ps,
    _mm256_dpbusd_avx_epi32, _mm256_fmadd_ps, _mm256_hadd_epi32, _mm256_loadu_ps,
    _mm256_loadu_si256, _mm256_madd_epi16, _mm256_permute4x64_epi64, _mm256_set1_epi32,
    _mm256_set1_epi64x, _mm256_set1_ps, _mm256_setzero_si256, _mm256_storeu_ps, _mm512_cvtepi32_ps,
    _mm512_dpbusd_epi32, _mm512_fmadd_ps, _mm512_loadu_si512, _mm512_madd_epi16, _mm512_set1_epi32,
    _mm512_set1_ps, _mm512_setzero_ps, _mm512_setzero_si512, _mm512_storeu_ps,
};

use super::panels::Panel;
use super::product::{Kernel, Left, Run, Sums};
use super::rows::Scale;
use super::{GROUP_QUADS, PANEL, QUAD};

pub(super) fn has_avx2() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

pub(super) fn has_avx_vnni() -> bool {
    has_avx2() && is_x86_feature_detected!("avxvnni")
}

pub(super) fn has_avx512_vnni() -> bool {
    has_avx2()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512vnni")
}

/// Runs on a machine that [`has_avx512_vnni`].
pub(super) fn run_avx512_vnni(run: Run) {
    #[target_feature(enable = "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
    fn with_features(run: Run) {
        let quads = run.narrow();
        run.with(Avx512Vnni, quads);
    }
    assert!(has_avx512_vnni(), "no AVX-512 VNNI");
    // SAFETY: the machine has these features.
    unsafe { with_features(run) }
}

/// Runs on a machine that [`has_avx_vnni`].
pub(super) fn run_avx_vnni(run: Run) {
    #[target_feature(enable = "avx2,fma,avxvnni")]
    fn with_features(run: Run) {
        let quads = run.narrow();
        run.with(AvxVnni, quads);
    }
    assert!(has_avx_vnni(), "no AVX-VNNI");
    // SAFETY: the machine has these features.
    unsafe { with_features(run) }
}

/// Runs on a machine that [`has_avx2`].
pub(super) fn run_avx2(run: Run) {
    #[target_feature(enable = "avx2,fma")]
    fn with_features(run: Run) {
        let quads = run.wide();
        run.with(Avx2, quads);
    }
    assert!(has_avx2(), "no AVX2");
    // SAFETY: the machine has these features.
    unsafe { with_features(run) }
}

/// A tile of 6 rows by 2 vectors, in whole numbers and in floats, uses 24 of 32 registers.
#[derive(Debug, Clone, Copy)]
struct Avx512Vnni;

impl Kernel for Avx512Vnni {
    type Quad = [u8; QUAD];
    const IS_FUSED: bool = true;

    #[inline(always)]
    fn tile<const R: usize>(self, left: Left<[u8; QUAD]>, panel: Panel, sums: &mut Sums) {
        assert!(left.fits::<R>(panel), "R rows of the panel's length");
        let (n_quads, n_groups) = (panel.quads.len(), panel.minus_sums.len());
        // SAFETY: a quad of the panel is two vectors of 64 bytes, `Left::fits` has looked at the places of quads and
        // scales, a row of `sums` is two vectors, and only `run_avx512_vnni` calls this.
        unsafe {
            let rows: [*const [u8; QUAD]; R] =
                std::array::from_fn(|r| left.quads.as_ptr().add(r * n_quads));
            let mut floats = [[_mm512_setzero_ps(); 2]; R];
            for (g, (quads, minus_sums)) in panel.groups().enumerate() {
                let mut tile = [[_mm512_setzero_si512(); 2]; R];
                let minus_sums = minus_sums.as_ptr();
                let minus_sums = [
                    _mm512_loadu_si512(minus_sums.cast()),
                    _mm512_loadu_si512(minus_sums.add(16).cast()),
                ];
                for (r, tile) in tile.iter_mut().enumerate() {
                    // Both fit 16 bits: the lower halves are multiplied, and the upper half of a zero is 0.
                    let zero = left.scales.get_unchecked(r * n_groups + g).zero;
                    let zero = _mm512_set1_epi32(zero);
                    tile[0] = _mm512_madd_epi16(zero, minus_sums[0]);
                    tile[1] = _mm512_madd_epi16(zero, minus_sums[1]);
                }
                for (p, columns) in quads.iter().enumerate() {
                    let columns = columns.as_ptr();
                    let q = [
                        _mm512_loadu_si512(columns.cast()),
                        _mm512_loadu_si512(columns.add(16).cast()),
                    ];
                    let p = g * GROUP_QUADS + p;
                    for (row, tile) in rows.iter().zip(&mut tile) {
                        let u = _mm512_set1_epi32(i32::from_le_bytes(*row.add(p)));
                        tile[0] = _mm512_dpbusd_epi32(tile[0], u, q[0]);
                        tile[1] = _mm512_dpbusd_epi32(tile[1], u, q[1]);
                    }
                }
                for (r, (tile, floats)) in tile.iter().zip(&mut floats).enumerate() {
                    let step = left.scales.get_unchecked(r * n_groups + g).step;
                    let step = _mm512_set1_ps(step);
                    floats[0] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(tile[0]), step, floats[0]);
                    floats[1] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(tile[1]), step, floats[1]);
                }
            }
            for (floats, sums) in floats.iter().zip(sums) {
                _mm512_storeu_ps(sums.as_mut_ptr(), floats[0]);
                _mm512_storeu_ps(sums.as_mut_ptr().add(16), floats[1]);
            }
        }
    }
}

/// A tile of 6 rows by 2 vectors uses 12 of 16 registers; floats wait in the first cache.
#[derive(Debug, Clone, Copy)]
struct AvxVnni;

impl Kernel for AvxVnni {
    type Quad = [u8; QUAD];
    const IS_FUSED: bool = true;

    #[inline(always)]
    fn tile<const R: usize>(self, left: Left<[u8; QUAD]>, panel: Panel, sums: &mut Sums) {
        assert!(left.fits::<R>(panel), "R rows of the panel's length");
        let n_quads = panel.quads.len();
        sums[..R].fill([0.0; PANEL]);
        for j in (0..PANEL).step_by(16) {
            for (g, (quads, minus_sums)) in panel.groups().enumerate() {
                // SAFETY: 16 columns of a quad are two vectors of 32 bytes, `Left::fits` has looked at the places of
                // quads, and only `run_avx_vnni` calls this.
                unsafe {
                    let mut tile = [[_mm256_setzero_si256(); 2]; R];
                    for (p, columns) in quads.iter().enumerate() {
                        let columns = columns[j..j + 16].as_ptr();
                        let q = [
                            _mm256_loadu_si256(columns.cast()),
                            _mm256_loadu_si256(columns.add(8).cast()),
                        ];
                        let p = g * GROUP_QUADS + p;
                        for (r, tile) in tile.iter_mut().enumerate() {
                            let u = i32::from_le_bytes(*left.quads.get_unchecked(r * n_quads + p));
                            let u = _mm256_set1_epi32(u);
                            tile[0] = _mm256_dpbusd_avx_epi32(tile[0], u, q[0]);
                            tile[1] = _mm256_dpbusd_avx_epi32(tile[1], u, q[1]);
                        }
                    }
                    for (r, tile) in tile.iter().enumerate() {
                        let scale = left.scales[r * panel.minus_sums.len() + g];
                        for (half, &whole) in tile.iter().enumerate() {
                            let at = j + 8 * half;
                            add_group(whole, scale, &minus_sums[at..at + 8], &mut sums[r][at..]);
                        }
                    }
                }
            }
        }
    }
}

/// A tile of 6 rows by 8 columns, each with a sum of the first and one of the second two products of a quad, uses 12
/// of 16 registers; floats wait in the first cache.
#[derive(Debug, Clone, Copy)]
struct Avx2;

impl Kernel for Avx2 {
    type Quad = [u16; QUAD];
    const IS_FUSED: bool = true;

    #[inline(always)]
    fn tile<const R: usize>(self, left: Left<[u16; QUAD]>, panel: Panel, sums: &mut Sums) {
        assert!(left.fits::<R>(panel), "R rows of the panel's length");
        let n_quads = panel.quads.len();
        sums[..R].fill([0.0; PANEL]);
        for j in (0..PANEL).step_by(8) {
            for (g, (quads, minus_sums)) in panel.groups().enumerate() {
                // SAFETY: 8 columns of a quad are two vectors of 16 bytes, `Left::fits` has looked at the places of
                // quads, and only `run_avx2` calls this.
                unsafe {
                    let mut tile = [[_mm256_setzero_si256(); 2]; R];
                    for (p, columns) in quads.iter().enumerate() {
                        let columns = columns[j..j + 8].as_ptr();
                        let q = [
                            _mm256_cvtepi8_epi16(_mm_loadu_si128(columns.cast())),
                            _mm256_cvtepi8_epi16(_mm_loadu_si128(columns.add(4).cast())),
                        ];
                        let p = g * GROUP_QUADS + p;
                        for (r, tile) in tile.iter_mut().enumerate() {
                            let u: i64 = bytemuck::cast(*left.quads.get_unchecked(r * n_quads + p));
                            let u = _mm256_set1_epi64x(u);
                            tile[0] = _mm256_add_epi32(tile[0], _mm256_madd_epi16(u, q[0]));
                            tile[1] = _mm256_add_epi32(tile[1], _mm256_madd_epi16(u, q[1]));
                        }
                    }
                    for (r, &[first, second]) in tile.iter().enumerate() {
                        let scale = left.scales[r * panel.minus_sums.len() + g];
                        let whole = joined(first, second);
                        add_group(whole, scale, &minus_sums[j..j + 8], &mut sums[r][j..]);
                    }
                }
            }
        }
    }
}

/// Adds 8 sums of a group to those of the groups before.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn add_group(whole: __m256i, scale: Scale, minus_sums: &[i32], sums: &mut [f32]) {
    let (minus_sums, sums) = (&minus_sums[..8], &mut sums[..8]);
    // SAFETY: both are 8 numbers.
    unsafe {
        let minus_sums = _mm256_loadu_si256(minus_sums.as_ptr().cast());
        // Both fit 16 bits: the lower halves are multiplied, and the upper half of a zero is 0.
        let shift = _mm256_madd_epi16(_mm256_set1_epi32(scale.zero), minus_sums);
        let whole = _mm256_cvtepi32_ps(_mm256_add_epi32(whole, shift));
        let before = _mm256_loadu_ps(sums.as_ptr());
        let after = _mm256_fmadd_ps(whole, _mm256_set1_ps(scale.step), before);
        _mm256_storeu_ps(sums.as_mut_ptr(), after);
    }
}

/// Adds neighbours: two vectors of 4 columns with two sums each become one of 8 columns.
#[target_feature(enable = "avx2")]
fn joined(first: __m256i, second: __m256i) -> __m256i {
    // Columns 0 1 4 5 2 3 6 7: the halves of a vector are added apart.
    let mixed = _mm256_hadd_epi32(first, second);
    _mm256_permute4x64_epi64::<0b11_01_10_00>(mixed)
}
