//! In which numbers an encoder computes.

use std::fmt;

use serde::{Deserialize, Serialize};

/// In which numbers the linear layers of an encoder compute when it tags; training is always in [`Precision::F32`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Floats of 32 bits.
    F32,
    /// Whole numbers of 8 bits, unless told otherwise: several times as fast where the machine has instructions for them, in
    /// half the memory, and F1 stays the same (docs/reference/engine.md).
    #[default]
    Int8,
}

impl Precision {
    /// Both.
    pub const ALL: [Self; 2] = [Self::F32, Self::Int8];

    /// How it is called on a command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Int8 => "int8",
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
