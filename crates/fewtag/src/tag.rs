//! Tags, tag sets and spans: the BIO vocabulary everything else speaks.
//!
//! A *slot* is what a span means (`artist`); a *tag* is what one word wears: `O`, `B-artist`, `I-artist`.
//! A tag is split at its **first** `-`, so slots may contain `-`, `.` and `/`.
//! The tag set of an episode is `O` plus exactly the tags seen in its support,
//! slots sorted by name, `B` before `I`. There is no padding tag.
//!
//! [`spans`] follows the rules of `conlleval`: a chunk also starts at an `I` after `O` or at a change of slot.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::{Error, Result};

/// The name of a slot: not empty, without white space. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(Arc<str>);

impl Slot {
    /// # Errors
    ///
    /// [`Error::BadSlot`] if `name` is empty or contains white space.
    pub fn new(name: &str) -> Result<Self> {
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(Error::BadSlot { slot: name.to_owned() });
        }
        Ok(Self(name.into()))
    }

    /// The slot of a label that may be written as words: `song title` is `song_title`.
    ///
    /// # Errors
    ///
    /// [`Error::BadSlot`] if there is no word.
    pub fn of_words(name: &str) -> Result<Self> {
        Self::new(&name.split_whitespace().collect::<Vec<_>>().join("_"))
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// As its name.
impl serde::Serialize for Slot {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// The BIO tag of one word.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Tag {
    /// Outside every span.
    O,
    /// The first word of a span.
    B(Slot),
    /// A further word of a span.
    I(Slot),
}

/// What remains of a tag when its slot is forgotten: the abstract labels of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum TagClass {
    O,
    B,
    I,
}

impl Tag {
    /// The abstract label: `O`, `B` or `I`.
    #[must_use]
    pub fn class(&self) -> TagClass {
        match self {
            Self::O => TagClass::O,
            Self::B(_) => TagClass::B,
            Self::I(_) => TagClass::I,
        }
    }

    /// The slot, unless the tag is `O`.
    #[must_use]
    pub fn slot(&self) -> Option<&Slot> {
        match self {
            Self::O => None,
            Self::B(slot) | Self::I(slot) => Some(slot),
        }
    }

    /// Whether this tag may follow `previous` (`None`: the start of the sentence) in strict BIO.
    #[must_use]
    pub(crate) fn may_follow(&self, previous: Option<&Tag>) -> bool {
        match self {
            Self::I(slot) => previous.and_then(Tag::slot) == Some(slot),
            Self::O | Self::B(_) => true,
        }
    }
}

impl FromStr for Tag {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once('-') {
            None if text == "O" => Ok(Self::O),
            Some(("B", slot)) => Ok(Self::B(Slot::new(slot)?)),
            Some(("I", slot)) => Ok(Self::I(Slot::new(slot)?)),
            _ => Err(Error::BadTag { tag: text.to_owned() }),
        }
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::O => f.write_str("O"),
            Self::B(slot) => write!(f, "B-{slot}"),
            Self::I(slot) => write!(f, "I-{slot}"),
        }
    }
}

/// The tags an episode distinguishes, in their canonical order; index 0 is always `O`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagSet {
    tags: Vec<Tag>,
}

impl TagSet {
    /// `O` plus the distinct tags given, slots sorted by name, `B` before `I`.
    pub fn new<'a>(seen: impl IntoIterator<Item = &'a Tag>) -> Self {
        let mut tags: Vec<Tag> = seen.into_iter().filter(|tag| **tag != Tag::O).cloned().collect();
        tags.sort_by(|a, b| Self::key(a).cmp(&Self::key(b)));
        tags.dedup();
        tags.insert(0, Tag::O);
        Self { tags }
    }

    fn key(tag: &Tag) -> (Option<&Slot>, TagClass) {
        (tag.slot(), tag.class())
    }

    /// All tags; a tag's position is its index everywhere.
    #[must_use]
    pub fn tags(&self) -> &[Tag] {
        &self.tags
    }

    /// The number of tags, `O` included: the paper's `N`.
    #[must_use]
    pub fn n_tags(&self) -> usize {
        self.tags.len()
    }

    /// Where `tag` stands, if the set has it.
    #[must_use]
    pub fn index_of(&self, tag: &Tag) -> Option<usize> {
        self.tags.binary_search_by(|have| Self::key(have).cmp(&Self::key(tag))).ok()
    }

    /// The distinct slots in order.
    #[must_use]
    pub fn slots(&self) -> Vec<&Slot> {
        let mut slots: Vec<&Slot> = self.tags.iter().filter_map(Tag::slot).collect();
        slots.dedup();
        slots
    }
}

/// Words `start..end` of a sentence carry `slot`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Span {
    /// The first word.
    pub start: usize,
    /// One past the last word.
    pub end: usize,
    /// What the words mean.
    pub slot: Slot,
}

/// The spans of a tag sequence by `conlleval`'s rules, from left to right.
#[must_use]
pub fn spans<'a>(tags: impl IntoIterator<Item = &'a Tag>) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    let mut open: Option<&Slot> = None; // The slot of the span that the previous word belongs to.
    for (t, tag) in tags.into_iter().enumerate() {
        let continues = tag.class() == TagClass::I && tag.slot() == open;
        open = tag.slot();
        match (continues, spans.last_mut(), tag.slot()) {
            (true, Some(span), _) => span.end = t + 1,
            (_, _, Some(slot)) => {
                spans.push(Span { start: t, end: t + 1, slot: slot.clone() });
            }
            _ => {}
        }
    }
    spans
}

/// The BIO tags of a sentence of `n_words` words with the given spans.
///
/// # Panics
///
/// If a span is empty, reaches beyond the sentence or overlaps another.
#[must_use]
pub fn bio_tags(spans: &[Span], n_words: usize) -> Vec<Tag> {
    let mut tags = vec![Tag::O; n_words];
    for span in spans {
        assert!(span.start < span.end && span.end <= n_words, "span {span:?} of {n_words} words");
        let covered = &mut tags[span.start..span.end];
        assert!(covered.iter().all(|tag| *tag == Tag::O), "span {span:?} overlaps another");
        covered.fill(Tag::I(span.slot.clone()));
        covered[0] = Tag::B(span.slot.clone());
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(text: &str) -> Vec<Tag> {
        text.split(' ').map(|tag| tag.parse().unwrap()).collect()
    }

    fn found(text: &str) -> Vec<(usize, usize, String)> {
        spans(&tags(text)).into_iter().map(|s| (s.start, s.end, s.slot.to_string())).collect()
    }

    #[test]
    fn a_tag_is_split_at_its_first_hyphen() {
        let tag: Tag = "B-Multi-tissue_structure".parse().unwrap();
        assert_eq!(tag.slot().unwrap().as_str(), "Multi-tissue_structure");
        assert_eq!(tag.to_string(), "B-Multi-tissue_structure");
    }

    #[test]
    fn unknown_tag_shapes_are_refused() {
        for text in ["", "B", "X-a", "B-", "b-a", "B-a b", "-"] {
            assert!(text.parse::<Tag>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_tag_set_is_sorted_by_slot_with_b_before_i() {
        let set = TagSet::new(&tags("O I-b B-b B-a B-b"));
        let names: Vec<String> = set.tags().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["O", "B-a", "B-b", "I-b"]);
        for (i, tag) in set.tags().iter().enumerate() {
            assert_eq!(set.index_of(tag), Some(i));
        }
        assert_eq!(set.index_of(&"I-a".parse().unwrap()), None);
    }

    #[test]
    fn spans_follow_conlleval() {
        assert_eq!(found("B-a I-a O B-a"), [(0, 2, "a".into()), (3, 4, "a".into())]);
        // A chunk also starts at `I` after `O`, at a change of slot, and at every `B`.
        assert_eq!(found("I-a O I-b"), [(0, 1, "a".into()), (2, 3, "b".into())]);
        assert_eq!(found("B-a I-b I-b"), [(0, 1, "a".into()), (1, 3, "b".into())]);
        assert_eq!(found("B-a B-a"), [(0, 1, "a".into()), (1, 2, "a".into())]);
    }

    #[test]
    fn spans_and_tags_are_inverse_on_legal_tags() {
        let legal = tags("O B-a I-a B-a O B-b");
        assert_eq!(bio_tags(&spans(&legal), legal.len()), legal);
    }
}
