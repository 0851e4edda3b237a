//! Where the work is done: threads of our own, which survive `fork` and can be interrupted.
//!
//! A forked child has none of its parent's threads: work given to the parent's pool would wait for ever. So the pool belongs to
//! a process, and [`before_fork`], which Python calls, waits for running work: no lock of the library is held at that moment.
//! [`run`] hands work to the pool and waits without the GIL; every few milliseconds it asks Python for signals, so that Ctrl-C
//! ends the call (what is being read is then finished in the background and thrown away).

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The pool and the process that it belongs to. Only locked by who holds the GIL, so never while another thread forks.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);
/// How much work is running.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
/// How often signals are looked for.
const PATIENCE: Duration = Duration::from_millis(20);

/// The pool of this process, made if there is none of so many threads; 0 is one for each core.
fn pool(_py: Python<'_>, wanted: Option<usize>) -> PyResult<Arc<ThreadPool>> {
    let mut kept = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let ours = std::process::id();
    match kept.take() {
        Some((owner, pool)) if owner != ours => std::mem::forget(pool), // Its threads are the parent's.
        Some((owner, pool)) if wanted.is_none_or(|n| n == pool.current_num_threads()) => {
            *kept = Some((owner, Arc::clone(&pool)));
            return Ok(pool);
        }
        _ => {}
    }
    let builder = ThreadPoolBuilder::new().thread_name(|i| format!("fewtag-{i}"));
    let pool = builder.num_threads(wanted.unwrap_or(0)).build();
    let pool = pool.map_err(|error| PyRuntimeError::new_err(format!("no threads: {error}")))?;
    let pool = Arc::new(pool);
    *kept = Some((ours, Arc::clone(&pool)));
    Ok(pool)
}

/// Use so many threads from now on; 0 is one for each core.
#[pyfunction]
pub(crate) fn set_threads(py: Python<'_>, n: usize) -> PyResult<()> {
    if n > 4096 {
        return Err(PyValueError::new_err("more than 4096 threads make nothing faster"));
    }
    *POOL.lock().unwrap_or_else(PoisonError::into_inner) = None;
    pool(py, Some(n)).map(drop)
}

/// How many threads work.
#[pyfunction]
pub(crate) fn threads(py: Python<'_>) -> PyResult<usize> {
    Ok(pool(py, None)?.current_num_threads())
}

/// Waits until no work runs. Python calls it before it forks, with the GIL: nothing can start meanwhile.
#[pyfunction]
pub(crate) fn before_fork() {
    while RUNNING.load(Ordering::Acquire) > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Counted as running while it lives.
struct Running;

impl Running {
    fn new() -> Self {
        RUNNING.fetch_add(1, Ordering::AcqRel);
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Does `work` on the pool, without the GIL.
///
/// # Errors
///
/// What a signal handler raised, `KeyboardInterrupt` above all.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let pool = pool(py, None)?;
    let running = Running::new();
    let (sender, mut receiver) = sync_channel(1);
    pool.spawn(move || {
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work))); // Nobody waits after an interruption.
        drop(running);
    });
    loop {
        let answer = &mut receiver; // Another thread may have it, but not share it.
        match py.detach(move || answer.recv_timeout(PATIENCE)) {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(panic)) => resume_unwind(panic),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => unreachable!("work always answers"),
        }
    }
}
