//! The words that name a tag: what the encoder reads for a label before, and beside, its examples.
//!
//! ```text
//! O              ordinary
//! B-time_range   begin time range
//! I-time_range   inner time range
//! ```
//!
//! A label that is only numbered, like `slot_17`, has no name: the encoder would take it for one that means something.
//!
//! Source: Hou et al. (2020, L-TapNet).

use crate::tag::Tag;

/// What numbered labels are called.
const NUMBERED: [&str; 7] = ["slot", "label", "tag", "entity", "field", "arg", "x"];

/// The words that name a tag: `begin` or `inner` and the words of `label`, or `ordinary`. `None` if `label` has no words, or
/// says nothing but a number.
///
/// ```
/// use fewtag::names::name_words;
///
/// let words = name_words(&"B-x".parse()?, "time_rangeStart").unwrap();
/// assert_eq!(words, ["begin", "time", "range", "Start"]);
/// # Ok::<(), fewtag::Error>(())
/// ```
#[must_use]
pub fn name_words(tag: &Tag, label: &str) -> Option<Vec<String>> {
    let first = match tag {
        Tag::O => return Some(vec!["ordinary".to_owned()]),
        Tag::B(_) => "begin",
        Tag::I(_) => "inner",
    };
    let mut words = vec![first.to_owned()];
    let is_border = |letter: char| letter.is_whitespace() || ['_', '-', '.', '/'].contains(&letter);
    for part in label.split(is_border) {
        let mut word = String::new();
        let mut before = ' ';
        for letter in part.chars() {
            let hump = letter.is_uppercase() && (before.is_lowercase() || before.is_numeric());
            if hump {
                words.push(std::mem::take(&mut word));
            }
            word.push(letter);
            before = letter;
        }
        words.push(word);
    }
    words.retain(|word| !word.is_empty());
    (words.len() > 1 && !is_only_numbered(&words[1..])).then_some(words)
}

/// Whether words number a label and say nothing else, as `slot 17` does.
fn is_only_numbered(words: &[String]) -> bool {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let stem = |word: &String| word.trim_end_matches(is_digit).to_lowercase();
    let says_nothing = |stem: &str| stem.is_empty() || NUMBERED.contains(&stem);
    words.iter().any(|word| word.ends_with(is_digit))
        && words.iter().all(|word| says_nothing(&stem(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_cut_into_words() {
        for (tag, label, words) in [
            ("O", "", Some("ordinary")),
            ("I-x", "object_part.of-series/type", Some("inner object part of series type")),
            ("B-x", "timeRange2End", Some("begin time Range2 End")),
            ("B-x", "GPE", Some("begin GPE")),
            ("B-x", "song title", Some("begin song title")),
            ("B-x", "__", None),
            ("B-x", "slot_17", None),
            ("I-x", "Label3", None),
            ("B-x", "17", None),
            ("B-x", "slot", Some("begin slot")),
            ("B-x", "covid_19", Some("begin covid 19")),
            ("B-x", "B12", Some("begin B12")),
        ] {
            let found = name_words(&tag.parse().unwrap(), label).map(|words| words.join(" "));
            assert_eq!(found.as_deref(), words);
        }
    }
}
