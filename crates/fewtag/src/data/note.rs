//! What a reader found worth telling although it read the file.

use std::fmt;

use crate::data::At;
use crate::scheme::Scheme;

/// A remark about a file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// The tags fit two schemes equally well, or equally badly.
    Ambiguous {
        /// How they were read.
        taken: Scheme,
        /// How they could have been read.
        also: Scheme,
    },
    /// Tags that continue or close nothing.
    IllegalTags(Findings),
    /// Faults that were repaired, because that was asked for.
    Repaired(Findings),
    /// Parts of the file that have no place among sentences and tags.
    Ignored {
        /// What was left out.
        what: &'static str,
        /// How often.
        n: usize,
    },
}

/// How often something was found, and the first few places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// How often.
    pub n: usize,
    /// The first [`Findings::KEPT`] places, with what was found there.
    pub first: Vec<(At, String)>,
}

impl Findings {
    /// How many places are kept.
    pub(crate) const KEPT: usize = 5;

    /// Counts `what` at `at`.
    pub fn add(&mut self, at: At, what: &str) {
        self.n += 1;
        if self.first.len() < Self::KEPT {
            self.first.push((at, what.to_owned()));
        }
    }

    /// The places for people: `line 3: I-a; line 9: I-b; …`
    #[must_use]
    pub fn places(&self) -> String {
        let mut places: Vec<String> =
            self.first.iter().map(|(at, what)| format!("{at}: {what}")).collect();
        if self.n > places.len() {
            places.push("…".to_owned());
        }
        places.join("; ")
    }

    /// Counts all of `other` too.
    pub fn append(&mut self, mut other: Self) {
        self.n += other.n;
        self.first.append(&mut other.first);
        self.first.truncate(Self::KEPT);
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ambiguous { taken, also } => {
                write!(f, "the tags could be {taken} or {also}; read as {taken}")
            }
            Self::IllegalTags(found) => write!(f, "illegal tags: {found}"),
            Self::Repaired(found) => write!(f, "repaired: {found}"),
            Self::Ignored { what, n } => write!(f, "not read: {what} ({n})"),
        }
    }
}

/// `12 (line 3: I-a; line 9: I-b; …)`
impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.n, self.places())
    }
}
