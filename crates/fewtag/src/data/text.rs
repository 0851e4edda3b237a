//! Labelled characters: from spans of running text to tagged words, and back.
//!
//! A labelled stretch must cover whole words. White space at its ends is no fault; cutting a word,
//! covering none, leaving the text or overlapping another is one, refused unless it is to be repaired:
//! a cut word is then taken whole, what covers no word or overlaps is left out.

use std::borrow::Cow;
use std::ops::Range;

use crate::data::Problem;
use crate::domain::Sentence;
use crate::tag::{Slot, Span};
use crate::words::Offsets;

/// A stretch of text with its slot as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Label<'t> {
    /// In Unicode scalar values.
    pub(super) chars: Range<usize>,
    pub(super) slot: Cow<'t, str>,
}

/// A stretch of text with its slot, in both counts.
#[derive(Debug)]
pub(super) struct Marked {
    pub(super) bytes: Range<usize>,
    pub(super) chars: Range<usize>,
    pub(super) slot: Slot,
}

/// The text of a sentence and the labelled stretches in it, from left to right.
pub(super) fn marked(sentence: &Sentence) -> (Cow<'_, str>, Vec<Marked>) {
    let (text, words) = sentence.text();
    let offsets = Offsets::new(&text);
    let marks = sentence.spans().into_iter().map(|span| {
        let bytes = words[span.start].start..words[span.end - 1].end;
        Marked { chars: offsets.chars(&bytes), bytes, slot: span.slot }
    });
    let marks = marks.collect();
    (text, marks)
}

/// A span of words that needs a repair before it fits, and why.
pub(super) type Repair = (Option<Range<usize>>, Problem);

/// The words that `chars` of `text` cover.
///
/// # Errors
///
/// The problem, and the words to take if it is to be repaired.
pub(super) fn covered(
    text: &str,
    words: &[Range<usize>],
    offsets: &Offsets,
    chars: &Range<usize>,
) -> Result<Range<usize>, Repair> {
    let (start, end) = match (offsets.byte(chars.start), offsets.byte(chars.end)) {
        (Some(start), Some(end)) if start < end => (start, end),
        _ => {
            let (start, end) = (chars.start, chars.end);
            return Err((None, Problem::SpanOutside { start, end, n_chars: offsets.n_chars() }));
        }
    };
    let label = &text[start..end];
    let first = words.partition_point(|word| word.end <= start);
    let last = words.partition_point(|word| word.start < end);
    if first >= last {
        return Err((None, Problem::SpanWithoutWord { text: label.to_owned() }));
    }
    let cut = |at: usize| words[first..last].iter().find(|word| word.start < at && at < word.end);
    match cut(start).or_else(|| cut(end)) {
        None => Ok(first..last),
        Some(word) => {
            let (text, word) = (label.to_owned(), text[word.clone()].to_owned());
            Err((Some(first..last), Problem::SpanCutsWord { text, word }))
        }
    }
}

/// Puts spans in order; of two that overlap, the second (or the shorter, if they begin together) is an overlap.
pub(super) fn without_overlaps(mut spans: Vec<Span>) -> (Vec<Span>, Vec<Span>) {
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    spans.dedup();
    let mut end = 0;
    spans.into_iter().partition(|span| {
        let apart = span.start >= end;
        if apart {
            end = span.end;
        }
        apart
    })
}
