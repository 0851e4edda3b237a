//! Labelled sentences and what they are gathered into.
//!
//! ```text
//! Domain    = a name and its labelled sentences
//! SupportSet = the few labelled sentences a tagger learns a domain from, with their tag set
//! Episode   = one support set and the query sentences judged with it, all of one domain
//! ```
//!
//! Sentences are ragged: there is no padding and no mask anywhere.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::ops::Range;

use crate::error::{Error, Result};
use crate::names::name_words;
use crate::tag::{self, Slot, Span, Tag, TagClass, TagSet};
use crate::words::{self, WordSplit};

/// One word and its tag.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Token {
    /// The word as written.
    pub word: String,
    /// Its tag.
    pub tag: Tag,
}

/// A labelled sentence of at least one word.
///
/// Two sentences are equal if their words and tags are, wherever they were read from.
#[derive(Debug, Clone)]
pub struct Sentence {
    tokens: Vec<Token>,
    source: Option<Box<RunningText>>,
    line: Option<usize>,
}

/// The running text that the words of a sentence were found in.
#[derive(Debug, Clone)]
struct RunningText {
    text: String,
    /// Where each word stands, in bytes of `text`, from left to right.
    words: Vec<Range<usize>>,
}

impl Sentence {
    /// # Errors
    ///
    /// [`Error::EmptySentence`] without words, [`Error::EmptyWord`] if a word has no characters.
    pub fn new(tokens: Vec<Token>) -> Result<Self> {
        if tokens.is_empty() {
            return Err(Error::EmptySentence);
        }
        if let Some(at) = tokens.iter().position(|token| token.word.is_empty()) {
            return Err(Error::EmptyWord { at });
        }
        Ok(Self { tokens, source: None, line: None })
    }

    /// Running text without any label, split into words where Unicode has word boundaries.
    ///
    /// # Errors
    ///
    /// [`Error::EmptySentence`] if the text has no word.
    pub fn plain(text: &str) -> Result<Self> {
        let words = words::split(text, WordSplit::Unicode);
        let tags = vec![Tag::O; words.len()];
        Self::from_text(text.to_owned(), words, tags)
    }

    /// A sentence found in running text; `words` says where, in bytes, and `tags` what each word means.
    ///
    /// # Errors
    ///
    /// As [`Sentence::new`].
    ///
    /// # Panics
    ///
    /// If there are more or fewer tags than words, or if the words are not ranges of `text` from left to right.
    pub fn from_text(text: String, words: Vec<Range<usize>>, tags: Vec<Tag>) -> Result<Self> {
        assert_eq!(words.len(), tags.len(), "a word has one tag");
        assert!(words.is_sorted_by(|a, b| a.end <= b.start), "words stand from left to right");
        let tokens =
            words.iter().zip(tags).map(|(at, tag)| Token { word: text[at.clone()].into(), tag });
        let sentence = Self::new(tokens.collect())?;
        Ok(Self { source: Some(Box::new(RunningText { text, words })), ..sentence })
    }

    /// The same words of the same text with other tags.
    pub(crate) fn with_tags(&self, tags: Vec<Tag>) -> Self {
        assert_eq!(tags.len(), self.n_words(), "a word has one tag");
        let words = self.tokens.iter().map(|token| token.word.clone());
        let tokens = words.zip(tags).map(|(word, tag)| Token { word, tag }).collect();
        Self { tokens, source: self.source.clone(), line: None }
    }

    /// The words with their tags.
    #[must_use]
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// The words alone.
    pub fn words(&self) -> impl ExactSizeIterator<Item = &str> + Clone {
        self.tokens.iter().map(|token| token.word.as_str())
    }

    /// The tags alone.
    pub fn tags(&self) -> impl ExactSizeIterator<Item = &Tag> + Clone {
        self.tokens.iter().map(|token| &token.tag)
    }

    /// The number of words, at least 1.
    #[must_use]
    pub fn n_words(&self) -> usize {
        self.tokens.len()
    }

    /// The labelled spans by `conlleval`'s rules.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        tag::spans(self.tags())
    }

    /// The text the sentence was read from, or its words joined by blanks, and where each word stands in it, in bytes.
    #[must_use]
    pub fn text(&self) -> (Cow<'_, str>, Cow<'_, [Range<usize>]>) {
        if let Some(source) = &self.source {
            return (Cow::Borrowed(&source.text), Cow::Borrowed(&source.words));
        }
        let mut text = String::new();
        let mut words = Vec::with_capacity(self.n_words());
        for word in self.words() {
            if !text.is_empty() {
                text.push(' ');
            }
            words.push(text.len()..text.len() + word.len());
            text.push_str(word);
        }
        (Cow::Owned(text), Cow::Owned(words))
    }

    /// Whether the running text is known, not only the words.
    #[must_use]
    pub(crate) fn has_text(&self) -> bool {
        self.source.is_some()
    }

    /// The line of the file on which the sentence begins, from 1, if it was read from a file of lines.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.line
    }

    pub(crate) fn set_line(&mut self, line: usize) {
        self.line = Some(line);
    }

    /// Makes an `I` that continues nothing a `B`.
    pub(crate) fn begin_spans_with_b(&mut self) {
        let mut previous: Option<Slot> = None;
        for token in &mut self.tokens {
            let slot = token.tag.slot().cloned();
            if token.tag.class() == TagClass::I && slot != previous {
                token.tag = Tag::B(slot.clone().expect("an I has a slot"));
            }
            previous = slot;
        }
    }
}

impl PartialEq for Sentence {
    fn eq(&self, other: &Self) -> bool {
        self.tokens == other.tokens
    }
}

impl Eq for Sentence {}

impl Hash for Sentence {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.tokens.hash(state);
    }
}

/// A named set of labelled sentences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// What the domain is called; a file's stem unless the file says otherwise.
    pub name: String,
    /// Its sentences in file order.
    pub sentences: Vec<Sentence>,
}

impl Domain {
    /// Every tag that occurs.
    #[must_use]
    pub fn tag_set(&self) -> TagSet {
        TagSet::new(self.sentences.iter().flat_map(Sentence::tags))
    }
}

/// The labelled sentences that teach a tagger a new domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SupportSet {
    sentences: Vec<Sentence>,
    tag_set: TagSet,
    /// Labels that have another name than their slot, or none.
    names: BTreeMap<Slot, Option<String>>,
}

impl SupportSet {
    /// # Errors
    ///
    /// [`Error::EmptySupport`] if no word carries a slot: there is nothing to learn from.
    pub fn new(sentences: Vec<Sentence>) -> Result<Self> {
        Self::with_labels(sentences, [])
    }

    /// Labelled sentences, perhaps none, and labels that may have no example yet: a model that reads label names
    /// tags from those.
    ///
    /// # Errors
    ///
    /// [`Error::EmptySupport`] if there is no label at all.
    pub fn with_labels(
        sentences: Vec<Sentence>,
        labels: impl IntoIterator<Item = Slot>,
    ) -> Result<Self> {
        let given: Vec<Tag> =
            labels.into_iter().flat_map(|slot| [Tag::B(slot.clone()), Tag::I(slot)]).collect();
        let shown = sentences.iter().flat_map(Sentence::tags);
        let tag_set = TagSet::new(shown.chain(&given));
        if tag_set.n_tags() < 2 {
            return Err(Error::EmptySupport);
        }
        Ok(Self { sentences, tag_set, names: BTreeMap::new() })
    }

    /// The same with another name for a label, as the model reads it; `None`: its name says nothing.
    #[must_use]
    pub fn named(mut self, slot: Slot, name: Option<String>) -> Self {
        self.names.insert(slot, name);
        self
    }

    /// The same labels and names with other sentences.
    ///
    /// # Errors
    ///
    /// [`Error::EmptySupport`] if no label is left.
    pub(crate) fn with_sentences(&self, sentences: Vec<Sentence>) -> Result<Self> {
        let shown = self.shown_slots();
        let given = self.tag_set.slots().into_iter().filter(|slot| !shown.contains(*slot));
        let support = Self::with_labels(sentences, given.cloned().collect::<Vec<_>>())?;
        Ok(Self { names: self.names.clone(), ..support })
    }

    /// The slots that the sentences show.
    #[must_use]
    pub fn shown_slots(&self) -> BTreeSet<Slot> {
        let tags = self.sentences.iter().flat_map(Sentence::tags);
        tags.filter_map(Tag::slot).cloned().collect()
    }

    /// The mean number of spans of a label.
    #[must_use]
    pub(crate) fn examples_per_label(&self) -> f32 {
        let n_spans: usize = self.sentences.iter().map(|sentence| sentence.spans().len()).sum();
        n_spans as f32 / self.tag_set.slots().len() as f32
    }

    /// The words that name a tag; `None` if its name says nothing.
    #[must_use]
    pub fn name_words(&self, tag: &Tag) -> Option<Vec<String>> {
        let own = tag.slot().map_or("", Slot::as_str);
        let name = match tag.slot().and_then(|slot| self.names.get(slot)) {
            Some(name) => name.as_deref()?,
            None => own,
        };
        name_words(tag, name)
    }

    /// The labels that have another name than their slot, or none.
    #[must_use]
    pub fn names(&self) -> &BTreeMap<Slot, Option<String>> {
        &self.names
    }

    /// The sentences, at least one.
    #[must_use]
    pub fn sentences(&self) -> &[Sentence] {
        &self.sentences
    }

    /// `O` plus the tags that occur.
    #[must_use]
    pub fn tag_set(&self) -> &TagSet {
        &self.tag_set
    }
}

/// One support set and its queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Episode {
    /// The domain all sentences come from.
    pub domain: String,
    /// What the tagger may learn from.
    pub support: SupportSet,
    /// What it is judged on.
    pub queries: Vec<Sentence>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(word: &str, tag: &str) -> Token {
        Token { word: word.into(), tag: tag.parse().unwrap() }
    }

    #[test]
    fn a_sentence_has_words_and_a_word_has_characters() {
        assert!(matches!(Sentence::new(vec![]), Err(Error::EmptySentence)));
        let tokens = vec![token("a", "O"), token("", "O")];
        assert!(matches!(Sentence::new(tokens), Err(Error::EmptyWord { at: 1 })));
    }

    #[test]
    fn a_sentence_knows_its_text_but_is_its_words() {
        let found =
            Sentence::from_text("hi,you".into(), vec![0..2, 3..6], vec![Tag::O, Tag::O]).unwrap();
        let plain = Sentence::new(vec![token("hi", "O"), token("you", "O")]).unwrap();
        assert_eq!(found, plain);
        assert_eq!(found.text().0, "hi,you");
        assert_eq!(plain.text(), ("hi you".into(), vec![0..2, 3..6].into()));
    }

    #[test]
    fn a_label_may_have_a_name_and_no_example() {
        let [city, time] = ["city", "arrivalTime"].map(|name| Slot::new(name).unwrap());
        let sentence = Sentence::new(vec![token("Rome", "B-city")]).unwrap();
        let support = SupportSet::with_labels(vec![sentence], [time.clone()]).unwrap();
        let tags: Vec<String> = support.tag_set().tags().iter().map(Tag::to_string).collect();
        assert_eq!(tags, ["O", "B-arrivalTime", "I-arrivalTime", "B-city"]);
        assert_eq!(support.shown_slots().iter().collect::<Vec<_>>(), [&city]);
        let words = |support: &SupportSet, slot: &Slot| {
            support.name_words(&Tag::B(slot.clone())).map(|words| words.join(" "))
        };
        assert_eq!(words(&support, &time).unwrap(), "begin arrival Time");
        let renamed = support.named(city.clone(), None).named(time.clone(), Some("when".into()));
        assert_eq!(words(&renamed, &city), None);
        let other = renamed.with_sentences(Vec::new()).unwrap();
        assert_eq!(words(&other, &time).unwrap(), "begin when");
        assert_eq!(other.tag_set().slots(), [&time]);
    }

    #[test]
    fn a_support_set_without_slots_teaches_nothing() {
        let plain = Sentence::new(vec![token("hello", "O")]).unwrap();
        assert!(matches!(SupportSet::new(vec![]), Err(Error::EmptySupport)));
        assert!(matches!(SupportSet::new(vec![plain]), Err(Error::EmptySupport)));
    }
}
