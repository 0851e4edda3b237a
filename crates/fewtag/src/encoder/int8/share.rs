//! One sequence on all threads: products are shared by columns, attention by heads.
//!
//! A product of a short sequence takes 10 to 50 µs, and to wake a sleeping thread takes as long. So the other
//! threads are called once, at the first product, and stay awake: between two products they look for work, a limited number of
//! times. Whoever shares takes a part itself, and those that nobody came for too; so nothing waits for a thread that has
//! other things to do.

use std::hint::spin_loop;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

/// How often a thread looks for work in vain before it goes: some 100 µs, longer than what is never shared takes.
const LOOKS: usize = 2000;

/// Runs `work` on a thread of the pool while up to `n_threads - 1` others stay awake for the parts of it.
pub(super) fn with_others<R: Send>(n_threads: usize, work: impl FnOnce() -> R + Send) -> R {
    if n_threads < 2 {
        return work();
    }
    let is_done = AtomicBool::new(false);
    rayon::scope(|scope| {
        for _ in 1..n_threads {
            scope.spawn(|_| look_for_work(&is_done));
        }
        let _done = Done(&is_done);
        work()
    })
}

/// Works on what others share until all is done, or until there was nothing for a while: a thread that waits for a part may
/// find itself here, and must get back to it.
fn look_for_work(is_done: &AtomicBool) {
    let mut n_looks = 0;
    while n_looks < LOOKS && !is_done.load(Ordering::Acquire) {
        if rayon::yield_now() == Some(rayon::Yield::Executed) {
            n_looks = 0;
        } else {
            n_looks += 1;
            spin_loop();
        }
    }
}

/// Lets the others go, even after a panic.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Cuts `0..n` into `n_parts` of about equal size. The first is given to `own`, on this thread; the others are made by `part`,
/// where a thread has time for them, and returned.
pub(super) fn in_parts<T: Send>(
    n: usize,
    n_parts: usize,
    own: impl FnOnce(Range<usize>) + Send,
    part: impl Fn(Range<usize>) -> T + Sync,
) -> Vec<T> {
    let range = |at: usize| at * n / n_parts..(at + 1) * n / n_parts;
    let others = || {
        let others = (1..n_parts).into_par_iter().with_max_len(1);
        others.map(|at| part(range(at))).collect()
    };
    rayon::join(|| own(range(0)), others).1
}

/// Writes the columns of a matrix `[m, n]` that others computed, `[m, n_columns]`, to their place.
pub(super) fn put_columns(y: &mut [f32], n: usize, columns: &Range<usize>, part: &[f32]) {
    for (y, part) in y.chunks_exact_mut(n).zip(part.chunks_exact(columns.len())) {
        y[columns.clone()].copy_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_cover_everything_once() {
        for (n, n_parts) in [(12, 2), (12, 5), (7, 7), (1, 1)] {
            let mut first = 0..0;
            let others = in_parts(n, n_parts, |range| first = range, |range| range);
            let all: Vec<usize> = [first].into_iter().chain(others).flatten().collect();
            assert_eq!(all, (0..n).collect::<Vec<_>>());
        }
    }

    #[test]
    fn many_that_share_at_the_same_time_all_end() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let sum = |n: usize| {
            let mut own = 0;
            let others = in_parts(n, 3, |range| own = range.sum(), Iterator::sum::<usize>);
            own + others.into_iter().sum::<usize>()
        };
        let sums: Vec<usize> = pool.install(|| {
            let all = (0..200).into_par_iter().with_max_len(1);
            all.map(|n| with_others(3, || (0..20).map(|_| sum(n)).sum())).collect()
        });
        let expected: Vec<usize> = (0..200).map(|n| 20 * (0..n).sum::<usize>()).collect();
        assert_eq!(sums, expected);
    }

    #[test]
    #[should_panic(expected = "a product failed")]
    fn a_panic_lets_the_others_go() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        pool.install(|| with_others(2, || panic!("a product failed")));
    }
}
