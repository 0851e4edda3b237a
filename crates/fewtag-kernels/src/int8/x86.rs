//! The products of bytes of Intel's and AMD's processors.

#![expect(
    unsafe_code,
    reason = "vectors are loaded through pointers, and code for a vector unit is called after asking for it"
)]

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m256i, _mm_loadu_si128, _mm256_add_epi32, _mm256_cvtepi8_epi16, _mm256_dpbusd_avx_epi32,
    _mm256_hadd_epi32, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_permute4x64_epi64,
    _mm256_set1_epi32, _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_storeu_si256,
    _mm512_dpbusd_epi32, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_setzero_si512,
    _mm512_storeu_si512,
};

use super::product::{Kernel, Run, Sums};
use super::{PANEL, QUAD};

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

/// A tile of 12 rows by 2 vectors uses 24 of 32 registers.
#[derive(Debug, Clone, Copy)]
struct Avx512Vnni;

impl Kernel for Avx512Vnni {
    type Quad = [u8; QUAD];
    const ROWS: usize = 12;
    const IS_FUSED: bool = true;

    #[inline(always)]
    fn tile<const R: usize>(
        self,
        rows: &[[u8; QUAD]],
        panel: &[[[i8; QUAD]; PANEL]],
        sums: &mut Sums,
    ) {
        let n_quads = panel.len();
        assert!(rows.len() == R * n_quads, "R rows of whole quads");
        // SAFETY: a quad of the panel is two vectors of 64 bytes, `r n_quads + p` is below `rows.len()`, a row of
        // `sums` is two vectors, and only `run_avx512_vnni` calls this.
        unsafe {
            let mut tile = [[_mm512_setzero_si512(); 2]; R];
            for (p, columns) in panel.iter().enumerate() {
                let columns = columns.as_ptr();
                let q = [
                    _mm512_loadu_si512(columns.cast()),
                    _mm512_loadu_si512(columns.add(16).cast()),
                ];
                for (r, tile) in tile.iter_mut().enumerate() {
                    let u = i32::from_le_bytes(*rows.get_unchecked(r * n_quads + p));
                    let u = _mm512_set1_epi32(u);
                    tile[0] = _mm512_dpbusd_epi32(tile[0], u, q[0]);
                    tile[1] = _mm512_dpbusd_epi32(tile[1], u, q[1]);
                }
            }
            for (tile, sums) in tile.iter().zip(sums) {
                _mm512_storeu_si512(sums.as_mut_ptr().cast(), tile[0]);
                _mm512_storeu_si512(sums.as_mut_ptr().add(16).cast(), tile[1]);
            }
        }
    }
}

/// A tile of 6 rows by 2 vectors uses 12 of 16 registers.
#[derive(Debug, Clone, Copy)]
struct AvxVnni;

impl Kernel for AvxVnni {
    type Quad = [u8; QUAD];
    const ROWS: usize = 6;
    const IS_FUSED: bool = true;

    #[inline(always)]
    fn tile<const R: usize>(
        self,
        rows: &[[u8; QUAD]],
        panel: &[[[i8; QUAD]; PANEL]],
        sums: &mut Sums,
    ) {
        let n_quads = panel.len();
        assert!(rows.len() == R * n_quads, "R rows of whole quads");
        for j in (0..PANEL).step_by(16) {
            // SAFETY: 16 columns of a quad are two vectors of 32 bytes, `r n_quads + p` is below `rows.len()`, 16
            // sums are two vectors, and only `run_avx_vnni` calls this.
            unsafe {
                let mut tile = [[_mm256_setzero_si256(); 2]; R];
                for (p, columns) in panel.iter().enumerate() {
                    let columns = columns[j..j + 16].as_ptr();
                    let q = [
                        _mm256_loadu_si256(columns.cast()),
                        _mm256_loadu_si256(columns.add(8).cast()),
                    ];
                    for (r, tile) in tile.iter_mut().enumerate() {
                        let u = i32::from_le_bytes(*rows.get_unchecked(r * n_quads + p));
                        let u = _mm256_set1_epi32(u);
                        tile[0] = _mm256_dpbusd_avx_epi32(tile[0], u, q[0]);
                        tile[1] = _mm256_dpbusd_avx_epi32(tile[1], u, q[1]);
                    }
                }
                for (tile, sums) in tile.iter().zip(sums.iter_mut()) {
                    let sums = sums[j..j + 16].as_mut_ptr();
                    _mm256_storeu_si256(sums.cast(), tile[0]);
                    _mm256_storeu_si256(sums.add(8).cast(), tile[1]);
                }
            }
        }
    }
}

/// A tile of 6 rows by 8 columns, each with a sum of the first and one of the second two products of a quad, uses 12
/// of 16 registers.
#[derive(Debug, Clone, Copy)]
struct Avx2;

impl Kernel for Avx2 {
    type Quad = [u16; QUAD];
    const ROWS: usize = 6;
    const IS_FUSED: bool = true;

    #[inline(always)]
    fn tile<const R: usize>(
        self,
        rows: &[[u16; QUAD]],
        panel: &[[[i8; QUAD]; PANEL]],
        sums: &mut Sums,
    ) {
        let n_quads = panel.len();
        assert!(rows.len() == R * n_quads, "R rows of whole quads");
        for j in (0..PANEL).step_by(8) {
            // SAFETY: 8 columns of a quad are two vectors of 16 bytes, `r n_quads + p` is below `rows.len()`, 8 sums
            // are a vector, and only `run_avx2` calls this.
            unsafe {
                let mut tile = [[_mm256_setzero_si256(); 2]; R];
                for (p, columns) in panel.iter().enumerate() {
                    let columns = columns[j..j + 8].as_ptr();
                    let q = [
                        _mm256_cvtepi8_epi16(_mm_loadu_si128(columns.cast())),
                        _mm256_cvtepi8_epi16(_mm_loadu_si128(columns.add(4).cast())),
                    ];
                    for (r, tile) in tile.iter_mut().enumerate() {
                        let u: i64 = bytemuck::cast(*rows.get_unchecked(r * n_quads + p));
                        let u = _mm256_set1_epi64x(u);
                        tile[0] = _mm256_add_epi32(tile[0], _mm256_madd_epi16(u, q[0]));
                        tile[1] = _mm256_add_epi32(tile[1], _mm256_madd_epi16(u, q[1]));
                    }
                }
                for (&[first, second], sums) in tile.iter().zip(sums.iter_mut()) {
                    let sums = sums[j..j + 8].as_mut_ptr();
                    _mm256_storeu_si256(sums.cast(), joined(first, second));
                }
            }
        }
    }
}

/// Adds neighbours: two vectors of 4 columns with two sums each become one of 8 columns.
#[target_feature(enable = "avx2")]
fn joined(first: __m256i, second: __m256i) -> __m256i {
    // Columns 0 1 4 5 2 3 6 7: the halves of a vector are added apart.
    let mixed = _mm256_hadd_epi32(first, second);
    _mm256_permute4x64_epi64::<0b11_01_10_00>(mixed)
}
