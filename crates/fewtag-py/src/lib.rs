//! The extension module `fewtag._fewtag`: what the Python package `fewtag` (`python/`) is made of.
//!
//! It is thin: the classes that people meet are written in Python and hold a [`domain::Core`]. Whatever takes time goes
//! through [`pool::run`]: without the GIL, on all cores, and interruptible.

mod arrow;
mod domain;
mod errors;
mod examples;
mod pool;
mod tune;

use pyo3::pymodule;

/// The extension module.
#[pymodule]
mod _fewtag {
    use std::ffi::OsString;

    use pyo3::prelude::*;

    use super::errors;

    #[pymodule_export]
    use super::arrow::Tagged;
    #[pymodule_export]
    use super::domain::Core;
    #[pymodule_export]
    use super::examples::Examples;
    #[pymodule_export]
    use super::pool::{before_fork, set_threads, threads};
    #[pymodule_export]
    use super::tune::PyTuning;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        errors::add(module)
    }

    /// Runs the command `fewtag` with these arguments, the first of which is its name; gives the exit status.
    #[pyfunction]
    fn command(py: Python<'_>, args: Vec<OsString>) -> u8 {
        py.detach(|| fewtag_cli::main(args.into_iter()))
    }
}
