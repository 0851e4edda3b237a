//! What a corpus loses when it is written in another format.

use std::fmt;

use crate::data::{Corpus, Format, Note};
use crate::domain::Sentence;
use crate::plural::Counted;
use crate::words::{self, WordSplit};

/// Something that a format cannot hold, with the number of sentences concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the message says it")]
#[non_exhaustive]
pub enum Loss {
    Episodes,
    DomainName,
    IllegalTags { n: usize },
    Spacing { n: usize },
    LineBreaks { n: usize },
    RestorableWords { n: usize },
    Words { n: usize },
    ForeignEscapes { n: usize },
}

impl Corpus {
    /// What is lost when this corpus is written as `format` and read again.
    #[must_use]
    pub fn losses(&self, format: Format) -> Vec<Loss> {
        let count = |lost: fn(&Sentence) -> bool| self.sentences().filter(|s| lost(s)).count();
        let mut losses = Vec::new();
        if self.format == Format::Episodes && format != Format::Episodes {
            losses.push(Loss::Episodes);
        }
        if self.format.gathers_by_domain() && self.domains.len() == 1 && !format.gathers_by_domain()
        {
            losses.push(Loss::DomainName);
        }
        let illegal = self.notes.iter().find_map(|note| match note {
            Note::IllegalTags(found) => Some(found.n),
            _ => None,
        });
        if !format.keeps_tags() {
            losses.extend(illegal.map(|n| Loss::IllegalTags { n }));
        }
        let in_markup = matches!(format, Format::Rasa | Format::SnipsYaml | Format::Inline);
        if in_markup {
            losses.push(Loss::LineBreaks { n: count(has_line_break) });
        } else if !format.keeps_text() {
            losses.push(Loss::Spacing { n: count(has_spacing) });
        }
        if !format.keeps_words() {
            losses.push(Loss::RestorableWords { n: count(has_blank_words) });
            losses.push(Loss::Words { n: count(has_own_words) });
        }
        if matches!(format, Format::Rasa | Format::SnipsYaml) {
            losses.push(Loss::ForeignEscapes { n: count(has_brackets) });
        }
        losses.retain(|loss| loss.n() != Some(0));
        losses
    }
}

fn has_line_break(sentence: &Sentence) -> bool {
    sentence.text().0.contains(['\n', '\r'])
}

/// Whether the text is more than the words with a blank between each two.
fn has_spacing(sentence: &Sentence) -> bool {
    sentence.has_text() && !sentence.words().eq(sentence.text().0.split(' '))
}

fn has_words_of(sentence: &Sentence, how: WordSplit) -> bool {
    let (text, found) = sentence.text();
    *found == words::split(&text, how)
}

/// Whether only splitting at blanks finds the words again.
fn has_blank_words(sentence: &Sentence) -> bool {
    !has_words_of(sentence, WordSplit::Unicode) && has_words_of(sentence, WordSplit::Blank)
}

/// Whether nothing finds the words again.
fn has_own_words(sentence: &Sentence) -> bool {
    !has_words_of(sentence, WordSplit::Unicode) && !has_words_of(sentence, WordSplit::Blank)
}

fn has_brackets(sentence: &Sentence) -> bool {
    sentence.text().0.contains(['[', ']', '\\'])
}

impl Loss {
    fn n(self) -> Option<usize> {
        match self {
            Self::Episodes | Self::DomainName => None,
            Self::IllegalTags { n }
            | Self::Spacing { n }
            | Self::LineBreaks { n }
            | Self::RestorableWords { n }
            | Self::Words { n }
            | Self::ForeignEscapes { n } => Some(n),
        }
    }
}

fn sentences(n: usize) -> Counted {
    Counted(n, "sentence")
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Episodes => write!(f, "which sentences are supports and which are queries"),
            Self::DomainName => write!(f, "the name of the domain (a file's name takes its place)"),
            Self::IllegalTags { n } => {
                write!(f, "tags that continue nothing: they begin spans ({})", Counted(*n, "tag"))
            }
            Self::Spacing { n } => write!(f, "the white space between words ({})", sentences(*n)),
            Self::LineBreaks { n } => {
                write!(f, "line breaks, which become blanks ({})", sentences(*n))
            }
            Self::RestorableWords { n } => {
                write!(
                    f,
                    "where words begin and end, unless it is read with words split at blanks ({})",
                    sentences(*n)
                )
            }
            Self::Words { n } => write!(f, "where words begin and end ({})", sentences(*n)),
            Self::ForeignEscapes { n } => {
                write!(
                    f,
                    "nothing for fewtag, but other tools do not know our `\\[` ({})",
                    sentences(*n)
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::data::{ReadOptions, parse};

    fn losses(text: &str, from: Format, to: Format) -> Vec<Loss> {
        let options = ReadOptions { format: Some(from), ..ReadOptions::default() };
        parse(Path::new("f"), text.as_bytes(), &options).unwrap().losses(to)
    }

    #[test]
    fn what_is_lost_is_told() {
        let conll =
            |to| losses("do\tO\ntwenty-two\tO\nstop\tO\n\nhi\tI-x\n\n[\tB-x\n", Format::Conll, to);
        assert_eq!(conll(Format::Hf), []);
        assert_eq!(conll(Format::Gliner), [Loss::IllegalTags { n: 1 }]);
        let to_inline = [Loss::IllegalTags { n: 1 }, Loss::RestorableWords { n: 1 }];
        assert_eq!(conll(Format::Inline), to_inline);
        assert_eq!(conll(Format::Rasa)[2..], [Loss::ForeignEscapes { n: 1 }]);
        let doccano = "{\"text\": \"hi,\\nyou\", \"label\": []}\n{\"text\": \"hi\", \"label\": []}";
        let doccano = |to| losses(doccano, Format::Doccano, to);
        assert_eq!(doccano(Format::Spacy), []);
        assert_eq!(doccano(Format::Conll), [Loss::Spacing { n: 1 }]);
        assert_eq!(doccano(Format::Inline), [Loss::LineBreaks { n: 1 }]);
        let snips = "{\"a\": [{\"data\": [{\"text\": \"hi\"}]}]}";
        assert_eq!(losses(snips, Format::SnipsJson, Format::Inline), [Loss::DomainName]);
        assert_eq!(losses(snips, Format::SnipsJson, Format::Rasa), []);
        let hf = "{\"tokens\": [\"new york's\"], \"ner_tags\": [\"O\"]}";
        assert_eq!(losses(hf, Format::Hf, Format::Doccano), [Loss::Words { n: 1 }]);
    }
}
