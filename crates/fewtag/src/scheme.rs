//! Tagging schemes: recognised on reading, so that everything after it speaks BIO (IOB2).
//!
//! ```text
//! words   Nina  Simone  Nina  in   Paris
//! IO      I-a   I-a     I-a   O    I-c      neighbours of one slot melt together
//! IOB1    I-a   I-a     B-a   O    I-c      B only between neighbours of one slot
//! IOB2    B-a   I-a     B-a   O    B-c      the BIO of the paper
//! IOBES   B-a   E-a     S-a   O    S-c      E ends, S stands alone
//! BILOU   B-a   L-a     U-a   O    U-c      the same with L and U
//! ```
//!
//! A file does not say its scheme; [`TagReader`] reads a tag at a time, gathers the evidence and decides at the
//! end. Spans never depend on the choice between IO, IOB1 and IOB2 (`conlleval`'s rules give the same for all
//! three); what depends on it is whether an `I` that continues nothing is the rule of the file or a fault in it.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use crate::data::{At, Findings, Note, Problem};
use crate::domain::Sentence;
use crate::tag::{Slot, Tag};

/// How a file writes spans as one tag per word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Scheme {
    Io,
    Iob1,
    Iob2,
    Iobes,
    Bilou,
}

impl Scheme {
    /// Every scheme.
    pub const ALL: [Self; 5] = [Self::Io, Self::Iob1, Self::Iob2, Self::Iobes, Self::Bilou];

    /// The name as it is written on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Io => "io",
            Self::Iob1 => "iob1",
            Self::Iob2 => "iob2",
            Self::Iobes => "iobes",
            Self::Bilou => "bilou",
        }
    }

    /// The tags of a sentence as text of this scheme.
    ///
    /// In IOB2 every tag stands for itself. The other schemes are written from the spans, so an `I` that
    /// continues nothing begins a span there.
    #[must_use]
    pub fn write(self, sentence: &Sentence) -> Vec<String> {
        if self == Self::Iob2 {
            return sentence.tags().map(ToString::to_string).collect();
        }
        let mut texts = vec!["O".to_owned(); sentence.n_words()];
        let (end, single) = if self == Self::Bilou { ('L', 'U') } else { ('E', 'S') };
        let mut before: Option<(usize, Slot)> = None; // Where the span to the left ends, and its slot.
        for span in sentence.spans() {
            let touches = before.take() == Some((span.start, span.slot.clone()));
            let words = &mut texts[span.start..span.end];
            let n_words = words.len();
            for (t, text) in words.iter_mut().enumerate() {
                let (first, last) = (t == 0, t + 1 == n_words);
                let prefix = match self {
                    Self::Iob1 if first && touches => 'B',
                    Self::Io | Self::Iob1 => 'I',
                    _ if first && last => single,
                    _ if first => 'B',
                    _ if last => end,
                    _ => 'I',
                };
                *text = format!("{prefix}-{}", span.slot);
            }
            before = Some((span.end, span.slot));
        }
        texts
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Scheme {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = if text == "bio" { "iob2" } else { text };
        let found = Self::ALL.into_iter().find(|scheme| scheme.name() == text);
        found.ok_or_else(|| format!("`{text}` is no tagging scheme (io, iob1, iob2, iobes, bilou)"))
    }
}

/// The letter before a tag's first hyphen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prefix {
    B,
    I,
    /// `E` or `L`: the last word of a span.
    End,
    /// `S` or `U`: a span of one word.
    Single,
    /// None: the tag is the slot.
    Bare,
}

/// A tag as written, before the scheme of its file is known.
#[derive(Debug, Clone)]
struct Raw {
    prefix: Prefix,
    slot: Slot,
}

/// What the tags of a file say about its scheme.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "five independent facts, each seen or not")]
struct Evidence {
    /// An `I` that continues nothing: the rule in IOB1 and IO, a fault elsewhere.
    stray: Findings,
    /// What neither `E` nor `L` closed: the rule in IOB2, a fault in IOBES and BILOU.
    unclosed: Findings,
    /// Tags that are slots.
    bare: Findings,
    /// A `B` where IOB1 has none.
    needless_b: bool,
    /// A `B` that parts neighbours of one slot.
    parting_b: bool,
    b_or_i: bool,
    e_or_s: bool,
    l_or_u: bool,
}

/// Reads the tags of one file, one after the other, and finds out their scheme.
#[derive(Debug)]
pub(crate) struct TagReader {
    given: Option<Scheme>,
    known: HashMap<Box<str>, Raw>,
    /// The tag to the left in the same sentence, unless it is `O`.
    previous: Option<Raw>,
    evidence: Evidence,
}

impl TagReader {
    pub(crate) fn new(given: Option<Scheme>) -> Self {
        Self { given, known: HashMap::new(), previous: None, evidence: Evidence::default() }
    }

    /// The BIO tag for the next word; [`TagReader::finish`] may still correct it.
    pub(crate) fn read(&mut self, text: &str, at: impl Fn() -> At) -> Result<Tag, Problem> {
        if text == "O" {
            self.close_span(text, at);
            return Ok(Tag::O);
        }
        let raw = self.raw(text)?;
        let same_slot = self.previous.as_ref().is_some_and(|before| before.slot == raw.slot);
        let continues = same_slot && self.previous.as_ref().is_some_and(Raw::is_open);
        if !continues || raw.prefix == Prefix::B || raw.prefix == Prefix::Single {
            self.close_span(text, &at);
        }
        let slot = raw.slot.clone();
        let tag = match raw.prefix {
            Prefix::B | Prefix::Single => {
                self.evidence.parting_b |= same_slot;
                self.evidence.needless_b |= !same_slot;
                Tag::B(slot)
            }
            Prefix::I | Prefix::End if continues => Tag::I(slot),
            Prefix::I | Prefix::End => {
                self.evidence.stray.add(at(), text);
                // Right of an `E` or `S` of its own slot an `I` would melt into that span.
                if same_slot { Tag::B(slot) } else { Tag::I(slot) }
            }
            Prefix::Bare => {
                self.evidence.bare.add(at(), text);
                Tag::I(slot)
            }
        };
        self.previous = Some(raw);
        Ok(tag)
    }

    /// The next tag belongs to another sentence.
    pub(crate) fn end_sentence(&mut self, at: impl Fn() -> At) {
        self.close_span("end of sentence", at);
    }

    fn close_span(&mut self, before: &str, at: impl Fn() -> At) {
        if self.previous.take().is_some_and(|raw| matches!(raw.prefix, Prefix::B | Prefix::I)) {
            self.evidence.unclosed.add(at(), before);
        }
    }

    fn raw(&mut self, text: &str) -> Result<Raw, Problem> {
        if let Some(raw) = self.known.get(text) {
            return Ok(raw.clone());
        }
        let (prefix, slot) = self.split(text)?;
        let bad_slot = |_| Problem::BadSlot { slot: slot.to_owned() };
        let raw = Raw { prefix, slot: Slot::new(slot).map_err(bad_slot)? };
        self.known.insert(text.into(), raw.clone());
        Ok(raw)
    }

    /// Splits a tag at its first hyphen, into letters the scheme knows.
    fn split<'a>(&mut self, text: &'a str) -> Result<(Prefix, &'a str), Problem> {
        let (letter, slot) = text.split_once('-').unwrap_or((text, ""));
        let prefix = match (letter, self.given) {
            ("I", _) => Prefix::I,
            (_, Some(Scheme::Io)) => return Ok((Prefix::Bare, text)),
            ("B", _) => Prefix::B,
            ("E", None | Some(Scheme::Iobes)) | ("L", None | Some(Scheme::Bilou)) => Prefix::End,
            ("S", None | Some(Scheme::Iobes)) | ("U", None | Some(Scheme::Bilou)) => Prefix::Single,
            ("", _) | (_, Some(_)) => return Err(Problem::UnknownTag { tag: text.to_owned() }),
            _ => return Ok((Prefix::Bare, text)),
        };
        if letter.len() == text.len() {
            return Err(Problem::UnknownTag { tag: text.to_owned() });
        }
        match letter {
            "E" | "S" => self.evidence.e_or_s = true,
            "L" | "U" => self.evidence.l_or_u = true,
            _ => self.evidence.b_or_i = true,
        }
        Ok((prefix, slot))
    }

    /// Decides the scheme (`None`: there was no tag but `O`) and makes the tags BIO.
    pub(crate) fn finish<'a>(
        self,
        sentences: impl Iterator<Item = &'a mut Sentence>,
        notes: &mut Vec<Note>,
    ) -> Result<Option<Scheme>, (At, Problem)> {
        let evidence = self.evidence;
        let prefixed = evidence.b_or_i || evidence.e_or_s || evidence.l_or_u;
        if let Some((at, tag)) = evidence.bare.first.first()
            && prefixed
            && self.given.is_none()
        {
            return Err((at.clone(), Problem::UnknownTag { tag: tag.clone() }));
        }
        let (scheme, also) = match self.given {
            Some(given) => (Some(given), None),
            None => evidence.scheme(),
        };
        if let (Some(taken), Some(also)) = (scheme, also) {
            notes.push(Note::Ambiguous { taken, also });
        }
        let mut illegal = evidence.stray;
        match scheme {
            Some(Scheme::Io | Scheme::Iob1) => {
                sentences.for_each(Sentence::begin_spans_with_b);
                return Ok(scheme);
            }
            Some(Scheme::Iobes | Scheme::Bilou) => illegal.append(evidence.unclosed),
            Some(Scheme::Iob2) | None => {}
        }
        if illegal.n > 0 {
            notes.push(Note::IllegalTags(illegal));
        }
        Ok(scheme)
    }
}

impl Raw {
    /// Whether an `I` or `E` of the same slot may follow.
    fn is_open(&self) -> bool {
        matches!(self.prefix, Prefix::B | Prefix::I)
    }
}

impl Evidence {
    /// The scheme that fits best, and another one if the tags do not decide between the two.
    fn scheme(&self) -> (Option<Scheme>, Option<Scheme>) {
        let (scheme, also) = match self {
            Self { e_or_s: true, l_or_u: true, .. } => (Scheme::Iobes, Some(Scheme::Bilou)),
            Self { e_or_s: true, .. } => (Scheme::Iobes, None),
            Self { l_or_u: true, .. } => (Scheme::Bilou, None),
            _ if self.bare.n > 0 => (Scheme::Io, None),
            Self { b_or_i: false, .. } => return (None, None),
            _ if self.stray.n == 0 => (Scheme::Iob2, None),
            Self { needless_b: true, .. } => (Scheme::Iob2, Some(Scheme::Iob1)),
            Self { parting_b: true, .. } => (Scheme::Iob1, None),
            _ => (Scheme::Io, Some(Scheme::Iob1)),
        };
        (Some(scheme), also)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Token;

    /// Reads sentences of tags: the scheme found, the BIO tags, the notes.
    fn read(
        given: Option<Scheme>,
        texts: &[&str],
    ) -> Result<(Option<Scheme>, String, Vec<Note>), Problem> {
        let mut reader = TagReader::new(given);
        let mut sentences = Vec::new();
        for text in texts {
            let tags = text.split(' ').map(|tag| reader.read(tag, || At::File));
            let tokens = tags.map(|tag| Ok(Token { word: "w".into(), tag: tag? }));
            sentences.push(Sentence::new(tokens.collect::<Result<_, Problem>>()?).unwrap());
            reader.end_sentence(|| At::File);
        }
        let mut notes = Vec::new();
        let scheme =
            reader.finish(sentences.iter_mut(), &mut notes).map_err(|(_, problem)| problem)?;
        let bio: Vec<String> = sentences.iter().map(|s| Scheme::Iob2.write(s).join(" ")).collect();
        Ok((scheme, bio.join(" | "), notes))
    }

    #[test]
    fn every_scheme_is_recognised_and_read_as_bio() {
        let same = "B-a I-a B-a O B-c";
        for (scheme, text) in [
            (Scheme::Iob1, "I-a I-a B-a O I-c"),
            (Scheme::Iob2, "B-a I-a B-a O B-c"),
            (Scheme::Iobes, "B-a E-a S-a O S-c"),
            (Scheme::Bilou, "B-a L-a U-a O U-c"),
        ] {
            let (found, bio, notes) = read(None, &[text]).unwrap();
            assert_eq!((found, bio.as_str(), notes.len()), (Some(scheme), same, 0), "{text}");
        }
        let (found, bio, _) = read(None, &["a a a O c"]).unwrap();
        assert_eq!((found, bio.as_str()), (Some(Scheme::Io), "B-a I-a I-a O B-c"));
        let (found, bio, _) = read(None, &["O O"]).unwrap();
        assert_eq!((found, bio.as_str()), (None, "O O"));
    }

    #[test]
    fn every_scheme_is_written_as_it_is_read() {
        let tokens = "B-a I-a B-a O B-c B-a I-a I-a".split(' ');
        let tokens = tokens.map(|tag| Token { word: "w".into(), tag: tag.parse().unwrap() });
        let sentence = Sentence::new(tokens.collect()).unwrap();
        for scheme in [Scheme::Iob1, Scheme::Iob2, Scheme::Iobes, Scheme::Bilou] {
            let text = scheme.write(&sentence).join(" ");
            let (found, bio, _) = read(None, &[&text]).unwrap();
            assert_eq!((found, bio), (Some(scheme), Scheme::Iob2.write(&sentence).join(" ")));
        }
        assert_eq!(Scheme::Io.write(&sentence).join(" "), "I-a I-a I-a O I-c I-a I-a I-a");
    }

    #[test]
    fn an_ambiguous_file_is_said_to_be_so() {
        let (scheme, bio, notes) = read(None, &["I-a I-a O", "O I-b I-a"]).unwrap();
        assert_eq!((scheme, bio.as_str()), (Some(Scheme::Io), "B-a I-a O | O B-b B-a"));
        assert!(matches!(notes[..], [Note::Ambiguous { taken: Scheme::Io, also: Scheme::Iob1 }]));
        // A stray I speaks against IOB2, a needless B against IOB1: the fault is kept and reported.
        let (scheme, bio, notes) = read(None, &["O I-a", "B-b O"]).unwrap();
        assert_eq!((scheme, bio.as_str()), (Some(Scheme::Iob2), "O I-a | B-b O"));
        assert!(
            matches!(&notes[..], [Note::Ambiguous { .. }, Note::IllegalTags(seen)] if seen.n == 1)
        );
    }

    #[test]
    fn a_given_scheme_is_believed() {
        let (_, bio, notes) = read(Some(Scheme::Iob1), &["O I-a", "B-b O"]).unwrap();
        assert_eq!((bio.as_str(), notes.len()), ("O B-a | B-b O", 0));
        let (_, bio, _) = read(Some(Scheme::Io), &["B-cell B-cell O I-b"]).unwrap();
        assert_eq!(bio, "B-B-cell I-B-cell O B-b");
        assert!(matches!(read(Some(Scheme::Iob2), &["S-a"]), Err(Problem::UnknownTag { .. })));
    }

    #[test]
    fn faults_against_iobes_are_counted_and_melt_nothing() {
        let (scheme, bio, notes) = read(None, &["S-a I-a E-a O B-a O E-b", "B-a"]).unwrap();
        assert_eq!((scheme, bio.as_str()), (Some(Scheme::Iobes), "B-a B-a I-a O B-a O I-b | B-a"));
        assert!(matches!(&notes[..], [Note::IllegalTags(seen)] if seen.n == 4), "{notes:?}");
    }

    #[test]
    fn unknown_tag_shapes_are_refused() {
        for texts in [&["B"][..], &["-"], &["-a"], &["B-a X-b"], &["b-a", "I-a"], &[""]] {
            assert!(matches!(read(None, texts), Err(Problem::UnknownTag { .. })), "{texts:?}");
        }
        for texts in [&["B-"][..], &["B-a\u{a0}b"]] {
            assert!(matches!(read(None, texts), Err(Problem::BadSlot { .. })), "{texts:?}");
        }
    }
}
