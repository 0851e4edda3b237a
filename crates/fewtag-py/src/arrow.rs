//! Arrow in and out through the `PyCapsule` interface: pandas, polars, pyarrow and `DuckDB` hand over columns without a copy.
//!
//! A column comes as a stream of arrays (`__arrow_c_stream__`) or as one array (`__arrow_c_array__`); what is found goes out
//! as a stream of record batches with the columns `spans` and `error` (`fewtag_table::columns`).

#![expect(unsafe_code, reason = "Arrow's C interface is made of pointers")]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, make_array};
use arrow_schema::Schema;
use fewtag::Adapted;
use fewtag::answer::Thresholds;
use fewtag_table::{fields, tag_column};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};

use crate::errors::FewtagError;
use crate::pool::run;

/// What was found in a column: a table with the columns `spans` and `error`.
#[pyclass(module = "fewtag._fewtag", frozen)]
pub(crate) struct Tagged {
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Tagged {
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    #[expect(
        clippy::unused_self,
        reason = "the protocol asks an object, and all tables have one schema"
    )]
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&schema()).map_err(broken)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // A wish that need not be granted.
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(batches, Arc::new(schema()));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

/// Tags a column of texts, or that of a table which has this name or is the only one.
pub(crate) fn tag(
    py: Python<'_>,
    adapted: &Arc<Adapted>,
    data: &Bound<'_, PyAny>,
    column: Option<&str>,
    thresholds: &Arc<Thresholds>,
) -> PyResult<Tagged> {
    let mut batches = Vec::new();
    for array in arrays(data)? {
        let array = of_table(array, column)?;
        // In pieces, so that an interruption is heard.
        for start in (0..array.len()).step_by(ROWS) {
            let piece = array.slice(start, ROWS.min(array.len() - start));
            let (adapted, thresholds) = (Arc::clone(adapted), Arc::clone(thresholds));
            let found = run(py, move || tag_column(&adapted, &piece, &thresholds))?;
            let found = found.map_err(|error| PyTypeError::new_err(error.to_string()))?;
            let columns: Vec<ArrayRef> = vec![Arc::new(found.spans), Arc::new(found.error)];
            batches.push(RecordBatch::try_new(Arc::new(schema()), columns).map_err(broken)?);
        }
    }
    Ok(Tagged { batches })
}

/// How many rows are tagged between two looks for signals.
const ROWS: usize = 1024;

fn schema() -> Schema {
    Schema::new(fields().to_vec())
}

fn broken(error: arrow_schema::ArrowError) -> PyErr {
    FewtagError::new_err(format!("Arrow: {error}"))
}

/// The arrays of a column.
fn arrays(column: &Bound<'_, PyAny>) -> PyResult<Vec<ArrayRef>> {
    if column.hasattr("__arrow_c_stream__")? {
        let capsule = column.call_method0("__arrow_c_stream__")?;
        return of_stream(capsule.cast::<PyCapsule>()?);
    }
    if column.hasattr("__arrow_c_array__")? {
        let pair = column.call_method0("__arrow_c_array__")?;
        let pair = pair.cast::<PyTuple>()?;
        let (schema, array) = (pair.get_item(0)?, pair.get_item(1)?);
        return Ok(vec![of_array(schema.cast()?, array.cast()?)?]);
    }
    let kind = column.get_type().name()?;
    Err(PyTypeError::new_err(format!("{kind} is no Arrow column: it has no __arrow_c_stream__")))
}

/// The column of a table; a column is its own.
fn of_table(array: ArrayRef, column: Option<&str>) -> PyResult<ArrayRef> {
    let Some(table) = array.as_struct_opt() else { return Ok(array) };
    let found = match column {
        Some(name) => table.column_by_name(name),
        None => table.columns().first().filter(|_| table.num_columns() == 1),
    };
    found.cloned().ok_or_else(|| {
        let names = table.column_names().join(", ");
        let wanted = column.map_or_else(|| "say which".to_owned(), |name| format!("no `{name}`"));
        PyValueError::new_err(format!("the table has the columns {names}: {wanted}"))
    })
}

/// Takes what a capsule of this name holds; another gets nothing from it afterwards.
fn take<T>(capsule: &Bound<'_, PyCapsule>, name: &std::ffi::CStr, empty: T) -> PyResult<T> {
    let pointer = capsule.pointer_checked(Some(name))?.cast::<T>();
    // SAFETY: the interface promises that a capsule of this name points to such a structure, which the one who
    // takes it moves out and leaves marked as released; `empty` is so marked.
    Ok(unsafe { pointer.replace(empty) })
}

fn of_array(schema: &Bound<'_, PyCapsule>, array: &Bound<'_, PyCapsule>) -> PyResult<ArrayRef> {
    let schema = take(schema, c"arrow_schema", FFI_ArrowSchema::empty())?;
    let array = take(array, c"arrow_array", FFI_ArrowArray::empty())?;
    // SAFETY: both come from the same `__arrow_c_array__`, which promises that they belong together.
    let data = unsafe { from_ffi(array, &schema) }.map_err(broken)?;
    Ok(make_array(data))
}

fn of_stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<Vec<ArrayRef>> {
    let empty = FFI_ArrowArrayStream::empty();
    let stream = take(capsule, c"arrow_array_stream", empty)?;
    let arrays = ArrayStreamReader::try_new(stream).map_err(broken)?;
    arrays.map(|array| array.map_err(broken)).collect()
}
