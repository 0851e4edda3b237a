//! Tuning a domain, a slice at a time: between slices Python shows how far it has come and looks for Ctrl-C.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use fewtag::tune::{Options, Tuned, Tuning};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::domain::Core;
use crate::errors::raise;
use crate::pool::run;

/// How long a slice takes, about.
const SLICE: Duration = Duration::from_millis(300);

/// A tuning under way.
#[pyclass(module = "fewtag._fewtag", name = "Tuning", frozen)]
pub(crate) struct PyTuning {
    /// Taken while a slice runs.
    tuning: Mutex<Option<Box<Tuning>>>,
    /// The part of the time that all trials may take.
    #[pyo3(get)]
    trial_share: f64,
}

#[pymethods]
impl PyTuning {
    #[new]
    #[pyo3(signature = (core, *, minutes=None, full=false, seed=0))]
    fn new(
        py: Python<'_>,
        core: &Core,
        minutes: Option<f64>,
        full: bool,
        seed: u64,
    ) -> PyResult<Self> {
        let (tagger, support) = core.parts();
        let options = Options { seed, minutes, full };
        let tuning = run(py, move || Tuning::new(&tagger, &support, options))?.map_err(raise)?;
        let trial_share = 1.0 - tuning.plan().final_share();
        Ok(Self { tuning: Mutex::new(Some(Box::new(tuning))), trial_share })
    }

    /// Goes on for a moment; gives the part of the work that is done, or None at the end.
    fn advance(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let mut tuning = self.take()?;
        let (tuning, event) = run(py, move || {
            let start = Instant::now();
            let event = loop {
                match tuning.next() {
                    Some(Ok(_)) if start.elapsed() < SLICE => {}
                    other => break other,
                }
            };
            (tuning, event)
        })?;
        *self.tuning.lock().unwrap_or_else(PoisonError::into_inner) = Some(tuning);
        event.transpose().map_err(raise).map(|event| event.map(|event| event.done))
    }

    /// Tries nothing more.
    fn decide(&self) -> PyResult<()> {
        let mut tuning = self.take()?;
        tuning.decide();
        *self.tuning.lock().unwrap_or_else(PoisonError::into_inner) = Some(tuning);
        Ok(())
    }

    /// The domain with the best so far, and the report as JSON.
    fn finish(&self, py: Python<'_>, core: &Core) -> PyResult<(Core, String)> {
        let tuning = self.take()?;
        let Tuned { tagger, report } = tuning.finish().map_err(raise)?;
        let report = serde_json::to_string(&report).expect("plain structures are JSON");
        Ok((core.with_tagger(py, tagger)?, report))
    }
}

impl PyTuning {
    fn take(&self) -> PyResult<Box<Tuning>> {
        let taken = self.tuning.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| PyRuntimeError::new_err("this tuning has ended or was interrupted"))
    }
}
