//! A domain and its examples as they are kept and as clients see them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::tuned::TunedInfo;

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

/// What a domain knows of its labels besides their examples.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Declared {
    /// Labels that are looked for by their names, with or without examples, in the order in which they were declared.
    pub labels: Vec<String>,
    /// What labels mean whose own name does not say it; `None`: the name says nothing.
    pub meanings: BTreeMap<String, Option<String>>,
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
    /// Its labels, by name or by example, sorted.
    pub labels: Vec<String>,
    /// When it was last changed, in seconds since 1970.
    pub updated: i64,
    /// Whether it was tuned, and the tuned weights count.
    pub tuned: bool,
}

/// A domain with its examples.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Domain {
    /// Its name.
    pub name: String,
    /// Grows with every change; also the `ETag`.
    pub version: i64,
    /// Its labels, by name or by example, sorted.
    pub labels: Vec<String>,
    /// Those of them that are looked for by their names also without examples, in the order in which they were declared.
    pub declared: Vec<String>,
    /// What labels mean whose own name does not say it; `null`: the name says nothing.
    pub meanings: BTreeMap<String, Option<String>>,
    /// If it was tuned: since when, and what that was found to be worth.
    pub tuned: Option<TunedInfo>,
    /// In the order in which they were added.
    pub examples: Vec<Example>,
}
