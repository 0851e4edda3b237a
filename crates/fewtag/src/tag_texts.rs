//! Many running texts, each answered or refused on its own: what tables, streams and Python tag with.
//!
//! ```text
//! texts ─ words (all cores) ─▶ groups bounded in sentences and bytes ─ score_all ─▶ Answer or Error each
//! ```
//!
//! An answer is the one that [`Adapted::tag_text`] gives, whatever stands beside it. A text that cannot be tagged costs its own
//! answer and no other's.

use std::ops::Range;

use rayon::prelude::*;

use crate::adapted::{Adapted, Scored, score_all};
use crate::answer::{Answer, Thresholds};
use crate::domain::Sentence;
use crate::error::{Error, Result};

/// The longest text, in bytes: a limit on memory, far above any sentence or paragraph.
pub const MAX_TEXT: usize = 1 << 20;
/// At most how many bytes of text are read together, unless one text has more.
const GROUP_BYTES: usize = 1 << 16;

impl Adapted {
    /// Tags running texts on all cores and keeps the spans that are probable enough. A text without a word has none.
    ///
    /// An error is of its text alone: [`Error::TextTooLong`] beyond [`MAX_TEXT`], and as [`Adapted::tag`].
    pub fn tag_texts<T>(&self, texts: &[T], thresholds: &Thresholds) -> Vec<Result<Answer>>
    where
        T: AsRef<str> + Sync,
    {
        // Several groups at a time: while the encoder reads one, words of another are split and tags chosen.
        let groups: Vec<Range<usize>> = groups(texts, self.group_size()).collect();
        let groups = groups.into_par_iter().with_max_len(1);
        groups.flat_map_iter(|group| self.tag_group(&texts[group], thresholds)).collect()
    }

    fn tag_group<T>(&self, texts: &[T], thresholds: &Thresholds) -> Vec<Result<Answer>>
    where
        T: AsRef<str> + Sync,
    {
        let sentences: Vec<Result<Option<Sentence>>> =
            texts.par_iter().map(|text| sentence(text.as_ref())).collect();
        let with_words = sentences.iter().filter_map(|one| one.as_ref().ok()?.as_ref());
        let words: Vec<Vec<&str>> = with_words.map(|one| one.words().collect()).collect();
        let queries: Vec<_> = words.iter().map(|words| (self, &words[..])).collect();
        let mut scored: Vec<Result<Scored>> = match score_all(&queries) {
            Ok(scored) => scored,
            Err(_) => words.iter().map(|words| self.score(words)).collect(),
        };
        let mut scored = scored.drain(..);
        let mut read = |(sentence, text): (Result<Option<Sentence>>, _)| {
            let Some(sentence) = sentence? else { return Ok(Read::Blank(text)) };
            Ok(Read::Scored(sentence, scored.next().expect("every sentence is scored")?))
        };
        let texts = texts.iter().map(AsRef::as_ref);
        let read: Vec<Result<Read>> = sentences.into_iter().zip(texts).map(&mut read).collect();
        read.into_par_iter().map(|one| one.map(|one| one.answer(thresholds))).collect()
    }
}

/// The words of a text; `None` if it has none.
fn sentence(text: &str) -> Result<Option<Sentence>> {
    if text.len() > MAX_TEXT {
        return Err(Error::TextTooLong { n_bytes: text.len(), max: MAX_TEXT });
    }
    match Sentence::plain(text) {
        Err(Error::EmptySentence) => Ok(None),
        other => other.map(Some),
    }
}

/// A text that the encoder has read, or one without words, which it need not read.
enum Read<'a> {
    Blank(&'a str),
    Scored(Sentence, Scored<'a>),
}

impl Read<'_> {
    fn answer(self, thresholds: &Thresholds) -> Answer {
        match self {
            Self::Blank(text) => Answer { text: text.to_owned(), spans: Vec::new() },
            Self::Scored(sentence, scored) => {
                let mut tagged = scored.tagged();
                tagged.spans.retain(|span| thresholds.allow(span));
                Answer::new(&sentence, &tagged)
            }
        }
    }
}

/// Cuts texts into groups of at most `most` texts and [`GROUP_BYTES`].
fn groups<T: AsRef<str>>(texts: &[T], most: usize) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let first = texts.get(start)?;
        let (mut end, mut n_bytes) = (start + 1, first.as_ref().len());
        while let Some(next) = texts.get(end).filter(|_| end - start < most) {
            n_bytes += next.as_ref().len();
            if n_bytes > GROUP_BYTES {
                break;
            }
            end += 1;
        }
        let group = start..end;
        start = end;
        Some(group)
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Context, ModelSettings, SupportSet, model};

    fn adapted() -> Adapted {
        let encoder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tiny-encoder");
        let settings = ModelSettings { context: Context::Separate, ..ModelSettings::default() };
        let support = SupportSet::parse("play [nina simone](artist)\nsome [jazz](genre)").unwrap();
        model::from_encoder(&encoder, settings, 3).unwrap().adapt(&support).unwrap()
    }

    #[test]
    fn each_text_gets_the_answer_that_it_gets_alone() {
        let adapted = adapted();
        let long = "play some jazz ".repeat(3000);
        let texts = ["play jazz", "", " \n", &long, "some nina", "Ça joue 🎷 ?", &long];
        let together = adapted.tag_texts(&texts, &Thresholds::default());
        for (text, answer) in texts.iter().zip(together) {
            assert_eq!(answer.unwrap(), adapted.tag_text(text).unwrap());
        }
    }

    #[test]
    fn a_text_that_is_refused_costs_no_other_its_answer() {
        let adapted = adapted();
        let huge = "jazz ".repeat(MAX_TEXT / 5 + 1);
        let answers = adapted.tag_texts(&["play jazz", &huge, "some"], &Thresholds::default());
        assert!(matches!(answers[1], Err(Error::TextTooLong { .. })));
        assert_eq!(*answers[0].as_ref().unwrap(), adapted.tag_text("play jazz").unwrap());
        assert!(answers[2].is_ok());
    }

    #[test]
    fn thresholds_drop_spans() {
        let none = Thresholds { general: 1.0, ..Thresholds::default() };
        let answers = adapted().tag_texts(&["play nina simone", "some jazz"], &none);
        assert!(answers.iter().all(|answer| answer.as_ref().unwrap().spans.is_empty()));
    }

    #[test]
    fn groups_hold_every_text_once_and_few_bytes() {
        let texts: Vec<String> =
            (0..40).map(|i| "x".repeat(if i % 7 == 0 { 40_000 } else { 3 })).collect();
        let groups: Vec<Range<usize>> = groups(&texts, 5).collect();
        let all: Vec<usize> = groups.iter().cloned().flatten().collect();
        assert_eq!(all, (0..40).collect::<Vec<_>>());
        for group in groups {
            let n_bytes: usize = texts[group.clone()].iter().map(String::len).sum();
            assert!(group.len() <= 5 && (n_bytes <= GROUP_BYTES || group.len() == 1));
        }
    }
}
