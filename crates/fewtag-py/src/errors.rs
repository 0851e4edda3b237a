//! The exceptions of the package, with the words that the command uses.

use fewtag::Error;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::{PyTypeInfo, create_exception};

create_exception!(fewtag, FewtagError, PyException, "What can go wrong in fewtag.");
create_exception!(fewtag, ExamplesError, FewtagError, "Examples that cannot be learned from.");
create_exception!(fewtag, TextError, FewtagError, "A text that cannot be tagged.");
create_exception!(
    fewtag,
    DomainError,
    FewtagError,
    "A file that is no saved domain, or one for another model."
);
create_exception!(fewtag, ModelError, FewtagError, "A model that cannot be used.");

/// Adds them to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("FewtagError", FewtagError::type_object(py))?;
    module.add("ExamplesError", ExamplesError::type_object(py))?;
    module.add("TextError", TextError::type_object(py))?;
    module.add("DomainError", DomainError::type_object(py))?;
    module.add("ModelError", ModelError::type_object(py))
}

/// The exception for an error of the library; files that are not there are Python's own.
pub(crate) fn raise(error: Error) -> PyErr {
    if let Error::File { path, source } = error {
        let code = source.raw_os_error();
        let (text, path) = (source.to_string(), path.display().to_string());
        return match code {
            // With an errno Python itself picks FileNotFoundError, PermissionError and so on.
            Some(code) => pyo3::exceptions::PyOSError::new_err((code, text, path)),
            None => pyo3::exceptions::PyOSError::new_err(format!("cannot access `{path}`: {text}")),
        };
    }
    let message = fewtag::error::chain(&error);
    match error {
        Error::Data { .. }
        | Error::EmptySupport
        | Error::NothingBegins
        | Error::BadSlot { .. }
        | Error::BadTag { .. }
        | Error::EmptySentence
        | Error::EmptyWord { .. }
        | Error::NamesUnread { .. }
        | Error::MuteLabel { .. }
        | Error::TooLittle { .. } => ExamplesError::new_err(message),
        Error::TextTooLong { .. } | Error::TooLong { .. } => TextError::new_err(message),
        Error::DomainFile { .. }
        | Error::DomainFormat { .. }
        | Error::OtherModel { .. }
        | Error::Safetensors { .. } => DomainError::new_err(message),
        Error::EncoderOnly { .. }
        | Error::ModelJson { .. }
        | Error::ModelFormat { .. }
        | Error::WeightsChecksum { .. }
        | Error::Setting { .. }
        | Error::Untunable { .. }
        | Error::UnsavedModel => ModelError::new_err(message),
        _ => FewtagError::new_err(message),
    }
}
