//! A domain and its examples as they are kept and as clients see them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A labelled stretch of a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LabelledSpan {
    /// The first character, in Unicode scalar values.
    pub start: usize,
    /// One past the last character.
    pub end: usize,
    /// The slot: not empty, without blanks.
    #[schema(pattern = r"^\S+$")]
    pub label: String,
}

/// A labelled text of a domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Example {
    /// Given by the server; never given again within its domain.
    pub id: String,
    /// The text.
    pub text: String,
    /// Its labels.
    pub spans: Vec<LabelledSpan>,
}

/// A domain without its examples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DomainInfo {
    /// Its name.
    pub name: String,
    /// Grows with every change; also the `ETag`.
    pub version: i64,
    /// How many examples it has.
    pub examples: i64,
    /// The slots of its examples, sorted.
    pub labels: Vec<String>,
    /// When it was last changed, in seconds since 1970.
    pub updated: i64,
}

/// A domain with its examples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Domain {
    /// Its name.
    pub name: String,
    /// Grows with every change; also the `ETag`.
    pub version: i64,
    /// The slots of its examples, sorted.
    pub labels: Vec<String>,
    /// In the order in which they were added.
    pub examples: Vec<Example>,
}
