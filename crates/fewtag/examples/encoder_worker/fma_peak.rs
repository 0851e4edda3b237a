//! What the machine can do at best: fused multiply-adds that never leave the registers.

#![expect(
    unsafe_code,
    reason = "a loop for AVX2 is called after asking whether the machine has it"
)]

use std::hint::black_box;
use std::time::Instant;

const LANES: usize = 8;
/// Enough independent sums to hide the latency of one, few enough for the 16 registers of AVX2.
const SUMS: usize = 12;
const STEPS: usize = 20_000_000;

/// Floating-point operations per second on `n_threads` threads at once; a multiply-add is two.
pub(crate) fn flops_per_second(n_threads: usize) -> f64 {
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..n_threads {
            scope.spawn(|| black_box(run(black_box(0.999_999))));
        }
    });
    (2 * LANES * SUMS * STEPS * n_threads) as f64 / start.elapsed().as_secs_f64()
}

fn run(factor: f32) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
        // SAFETY: the machine has both features.
        return unsafe { run_avx2(factor) };
    }
    multiply_add(factor)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2(factor: f32) -> f32 {
    multiply_add(factor)
}

#[expect(
    clippy::inline_always,
    reason = "it takes on the features of its caller only when inlined"
)]
#[inline(always)]
fn multiply_add(factor: f32) -> f32 {
    let mut sums = [[1.0f32; LANES]; SUMS];
    for _ in 0..STEPS {
        for sum in &mut sums {
            for lane in sum {
                *lane = lane.mul_add(factor, factor);
            }
        }
    }
    sums.as_flattened().iter().sum()
}
