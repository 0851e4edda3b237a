//! What a user can do about an error or a remark of the library, in the words of the command that was given.
//!
//! The library knows no options. It says what would help ([`Remedy`]); which option that is depends on the command: the
//! format of the examples is `--format` where they are all there is, and `--support-format` where `--format` is that of
//! the answers.

use std::error::Error;
use std::fmt;

use fewtag::data::{Loss, Note, Remedy};

/// An error of the library with a hint.
#[derive(Debug)]
struct Hinted {
    error: fewtag::Error,
    hint: String,
}

impl fmt::Display for Hinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.error, self.hint)
    }
}

impl Error for Hinted {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

/// Adds what helps to an error of a command that reads with `--scheme`, `--repair` and, for the format, `format_option`.
pub(crate) fn reading(error: fewtag::Error, format_option: &str) -> anyhow::Error {
    let remedy = match &error {
        fewtag::Error::Data(found) => found.problem.remedy(),
        _ => None,
    };
    let hint = match remedy {
        Some(Remedy::Format) => format!("; name it with {format_option}"),
        Some(Remedy::WholeTags) => "; --scheme io takes the whole tag as its slot".to_owned(),
        Some(Remedy::Repair(what)) => format!(" (--repair {what})"),
        _ => return error.into(),
    };
    Hinted { error, hint }.into()
}

/// The same for a command without such options.
pub(crate) fn reading_as_it_is(error: fewtag::Error) -> anyhow::Error {
    let fewtag::Error::Data(found) = &error else { return error.into() };
    if found.problem.remedy().is_none() {
        return error.into();
    }
    let hint = "; `fewtag data convert` can be told how to read it".to_owned();
    Hinted { error, hint }.into()
}

/// A remark about a file that was read with `--scheme`.
pub(crate) fn note(note: &Note) -> String {
    match note {
        Note::Ambiguous { .. } => format!("{note} (--scheme decides)"),
        _ => note.to_string(),
    }
}

/// What a conversion loses.
pub(crate) fn loss(loss: &Loss) -> String {
    match loss {
        Loss::RestorableWords { .. } => format!("{loss}: --words blank"),
        _ => loss.to_string(),
    }
}
