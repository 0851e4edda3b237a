//! Running text into words, and offsets between bytes and Unicode scalar values.
//!
//! [`split`] follows the word boundaries of Unicode (UAX #29): `12.30` and `o'clock` are one word, punctuation and
//! emoji stand alone, every Han character is a word. One rule is added, as the corpora of the field have
//! it: the English endings `'s 'm 'd 'll 've 're` are words of their own, so that a label on `Nina` in `Nina's` cuts no word.
//! White space and invisible characters belong to no word; every other character belongs to exactly one.
//!
//! Words are byte ranges of the text. Files and answers count Unicode scalar values, which [`Offsets`] translates.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// How running text becomes words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WordSplit {
    /// At the word boundaries of Unicode; punctuation stands alone.
    #[default]
    Unicode,
    /// At white space only: restores the words of a text that was written from words.
    Blank,
}

/// The words of `text` as byte ranges, from left to right.
///
/// ```
/// use fewtag::words::{WordSplit, split};
///
/// let text = "Play Nina's «Sinnerman», 10.30 pm!";
/// let words = |how| split(text, how).into_iter().map(|at| &text[at]).collect::<Vec<_>>();
/// assert_eq!(words(WordSplit::Unicode), ["Play", "Nina", "'s", "«", "Sinnerman", "»", ",", "10.30", "pm", "!"]);
/// assert_eq!(words(WordSplit::Blank), ["Play", "Nina's", "«Sinnerman»,", "10.30", "pm!"]);
/// ```
#[must_use]
pub fn split(text: &str, how: WordSplit) -> Vec<Range<usize>> {
    let mut words = Vec::new();
    match how {
        WordSplit::Unicode => {
            for (start, word) in text.split_word_bound_indices() {
                if word.chars().all(is_invisible) {
                    continue;
                }
                let (stem, end) = (start + stem_len(word), start + word.len());
                words.push(start..stem);
                if stem < end {
                    words.push(stem..end);
                }
            }
        }
        WordSplit::Blank => {
            let mut start = 0;
            for piece in text.split_inclusive(char::is_whitespace) {
                let word = piece.trim_end();
                if !word.is_empty() {
                    words.push(start..start + word.len());
                }
                start += piece.len();
            }
        }
    }
    words
}

/// White space, control characters, and the zero-width characters that editors leave behind.
fn is_invisible(c: char) -> bool {
    c.is_whitespace() || c.is_control() || matches!(c, '\u{200B}' | '\u{2060}' | '\u{FEFF}')
}

/// How much of `word` stands before an English ending; all of it if it has none.
fn stem_len(word: &str) -> usize {
    const ENDINGS: [&str; 6] = ["s", "m", "d", "ll", "ve", "re"];
    match word.rfind(['\'', '’']) {
        Some(apostrophe) if apostrophe > 0 => {
            let ending = word[apostrophe..].trim_start_matches(['\'', '’']);
            let is_ending = ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending));
            if is_ending { apostrophe } else { word.len() }
        }
        _ => word.len(),
    }
}

/// Translates between bytes and Unicode scalar values of one text.
#[derive(Debug)]
pub struct Offsets {
    n_bytes: usize,
    /// The first byte of every scalar value; `None` if the text is ASCII, where both counts agree.
    starts: Option<Vec<usize>>,
}

impl Offsets {
    /// The offsets of `text`.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let starts = (!text.is_ascii()).then(|| text.char_indices().map(|(at, _)| at).collect());
        Self { n_bytes: text.len(), starts }
    }

    /// The number of scalar values.
    #[must_use]
    pub(crate) fn n_chars(&self) -> usize {
        self.starts.as_ref().map_or(self.n_bytes, Vec::len)
    }

    /// The byte at which scalar value `char` begins; the end of the text for the first one after it.
    #[must_use]
    pub fn byte(&self, char: usize) -> Option<usize> {
        let start = || self.starts.as_ref().map_or(Some(char), |starts| starts.get(char).copied());
        match char.cmp(&self.n_chars()) {
            std::cmp::Ordering::Less => start(),
            std::cmp::Ordering::Equal => Some(self.n_bytes),
            std::cmp::Ordering::Greater => None,
        }
    }

    /// How many scalar values begin before `byte`.
    #[must_use]
    pub fn char(&self, byte: usize) -> usize {
        self.starts.as_ref().map_or(byte, |starts| starts.partition_point(|start| *start < byte))
    }

    /// A range of bytes as a range of scalar values.
    #[must_use]
    pub fn chars(&self, bytes: &Range<usize>) -> Range<usize> {
        self.char(bytes.start)..self.char(bytes.end)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<&str> {
        split(text, WordSplit::Unicode).into_iter().map(|at| &text[at]).collect()
    }

    #[test]
    fn words_of_many_scripts_are_found() {
        assert_eq!(words("don't, l'été  o'clock"), ["don't", ",", "l'été", "o'clock"]);
        assert_eq!(words("Nina’s I'LL 's"), ["Nina", "’s", "I", "'LL", "'", "s"]);
        assert_eq!(words("東京へ"), ["東", "京", "へ"]);
        assert_eq!(words("на 12.30 в Минске"), ["на", "12.30", "в", "Минске"]);
        assert_eq!(words("👩‍👩‍👧 ok 🇫🇷"), ["👩‍👩‍👧", "ok", "🇫🇷"]);
        assert_eq!(words("a\u{200B} \u{FEFF}\u{0}\n"), ["a"]);
        assert_eq!(words("snake_case a-b"), ["snake_case", "a", "-", "b"]);
    }

    #[test]
    fn offsets_count_scalar_values() {
        let text = "é👍a";
        let offsets = Offsets::new(text);
        assert_eq!(
            [0, 1, 2, 3].map(|char| offsets.byte(char)),
            [Some(0), Some(2), Some(6), Some(7)]
        );
        assert_eq!(offsets.byte(4), None);
        assert_eq!(offsets.chars(&(2..7)), 1..3);
    }

    proptest! {
        #[test]
        fn every_visible_character_is_in_exactly_one_word(text in "\\PC*|[a-c'’ ]*|.*") {
            for how in [WordSplit::Unicode, WordSplit::Blank] {
                let words = split(&text, how);
                prop_assert!(words.is_sorted_by(|a, b| a.end <= b.start));
                let outside = text.char_indices().filter(|(at, _)| !words.iter().any(|w| w.contains(at)));
                for (_, c) in outside {
                    prop_assert!(is_invisible(c), "{c:?}");
                }
            }
        }

        #[test]
        fn offsets_are_inverse(text in ".*") {
            let offsets = Offsets::new(&text);
            for (char, (byte, _)) in text.char_indices().enumerate() {
                prop_assert_eq!(offsets.byte(char), Some(byte));
                prop_assert_eq!(offsets.char(byte), char);
            }
            prop_assert_eq!(offsets.byte(text.chars().count()), Some(text.len()));
            prop_assert_eq!(offsets.char(text.len()), text.chars().count());
        }
    }
}
