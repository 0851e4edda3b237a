//! CoNLL columns: a line per word, the word in the first column, its tag in the last; a blank line ends a sentence.
//!
//! ```text
//! # domain: PlayMusic
//! play    O
//! nina    B-artist
//! simone  I-artist
//! ```
//!
//! Columns are separated by tabs if the first line with a word has one, else by blanks. All lines have the same
//! number of columns. `-DOCSTART-` lines and comments are skipped: a comment begins with `#` and a blank (or is
//! one of CoNLL-2012's `#begin`, `#end`) and is not itself a word with a tag. Only the comment
//! `# domain: NAME` means something: it names the domain of what follows.

use std::fmt::Write;

use crate::data::{At, Codec, Collector, Format, Problem, Render, check_line};
use crate::domain::{Sentence, Token};
use crate::error::{Error, Result};
use crate::scheme::Scheme;

pub(super) struct Conll;

const DOMAIN: &str = "# domain: ";
const DOCUMENT: &str = "-DOCSTART-";

impl Codec for Conll {
    fn read(&self, text: &str, into: &mut Collector) -> Result<()> {
        let mut reader =
            Reader { into, columns: None, domain: None, tokens: Vec::new(), first_line: 0 };
        let (mut start, mut n_lines) = (0, 0);
        for end in memchr::memchr_iter(b'\n', text.as_bytes()).chain([text.len()]) {
            n_lines += 1;
            reader.line(&text[start..end], n_lines)?;
            start = end + 1;
        }
        reader.end_sentence()?;
        let extra = reader.columns.map_or(0, |columns| columns.n - 2);
        into.ignored("columns between the word and its tag", extra);
        Ok(())
    }

    fn renderer(&self, scheme: Scheme) -> Box<dyn Render + Send> {
        Box::new(Lines { scheme })
    }
}

struct Reader<'t, 'r, 'c> {
    into: &'r mut Collector<'c>,
    columns: Option<Columns>,
    domain: Option<&'t str>,
    tokens: Vec<Token>,
    /// The line of the first of them.
    first_line: usize,
}

/// The shape of a file: how many columns it has and whether tabs separate them.
#[derive(Debug, Clone, Copy)]
struct Columns {
    n: usize,
    tabs: bool,
}

impl<'t> Reader<'t, '_, '_> {
    fn line(&mut self, line: &'t str, number: usize) -> Result<()> {
        check_line(line).map_err(|problem| self.into.error(At::Line(number), problem))?;
        let line = line.trim_ascii_end();
        if line.is_empty() {
            self.end_sentence()
        } else if line.starts_with(DOCUMENT) {
            Ok(())
        } else if is_comment(line, self.columns) {
            if let Some(name) = line.strip_prefix(DOMAIN) {
                self.end_sentence()?;
                self.domain = Some(name.trim());
            }
            Ok(())
        } else {
            self.word(line, number)
        }
    }

    fn word(&mut self, line: &str, number: usize) -> Result<()> {
        let at = || At::Line(number);
        let tabs = self.columns.map_or_else(|| line.contains('\t'), |columns| columns.tabs);
        let fields = Fields::of(line, tabs);
        if fields.n < 2 {
            return Err(self.into.error(at(), Problem::NoTag { line: line.to_owned() }));
        }
        let expected = self.columns.get_or_insert(Columns { n: fields.n, tabs }).n;
        if fields.n != expected {
            let problem = Problem::UnequalColumns { found: fields.n, expected };
            return Err(self.into.error(at(), problem));
        }
        if fields.first.is_empty() {
            let cause = Box::new(Error::EmptyWord { at: self.tokens.len() });
            return Err(self.into.error(at(), Problem::Sentence(cause)));
        }
        let tag = self.into.tag(fields.last, at)?;
        if self.tokens.is_empty() {
            self.first_line = number;
        }
        self.tokens.push(Token { word: fields.first.to_owned(), tag });
        Ok(())
    }

    fn end_sentence(&mut self) -> Result<()> {
        if self.tokens.is_empty() {
            return Ok(());
        }
        let room = Vec::with_capacity(self.tokens.len()); // The next sentence is likely about as long.
        let tokens = std::mem::replace(&mut self.tokens, room);
        let line = self.first_line;
        self.into.add_tokens(self.domain, tokens, || At::Line(line))
    }
}

/// A line cut into columns, of which only the outer two matter.
struct Fields<'t> {
    first: &'t str,
    last: &'t str,
    n: usize,
}

impl<'t> Fields<'t> {
    fn of(line: &'t str, tabs: bool) -> Self {
        if tabs { Self::of_tabs(line) } else { Self::of_blanks(line) }
    }

    fn of_tabs(line: &'t str) -> Self {
        let first_tab = line.bytes().position(|byte| byte == b'\t').unwrap_or(line.len());
        let last_start = line.bytes().rposition(|byte| byte == b'\t').map_or(0, |tab| tab + 1);
        let n = 1 + line.bytes().filter(|byte| *byte == b'\t').count();
        Self { first: &line[..first_tab], last: &line[last_start..], n }
    }

    fn of_blanks(line: &'t str) -> Self {
        let mut fields = line.split_ascii_whitespace();
        let first = fields.next().unwrap_or_default();
        let mut found = Self { first, last: first, n: 1 };
        for field in fields {
            found.last = field;
            found.n += 1;
        }
        found
    }
}

fn is_comment(line: &str, columns: Option<Columns>) -> bool {
    let Some(rest) = line.strip_prefix('#') else { return false };
    if rest.starts_with("begin ") || rest.starts_with("end ") {
        return true;
    }
    if !rest.is_empty() && !rest.starts_with(' ') {
        return false; // `#WorldCup O` is a word.
    }
    let expected = columns.unwrap_or(Columns { n: 2, tabs: line.contains('\t') });
    let fields = Fields::of(line, expected.tabs);
    !(fields.n == expected.n && looks_like_tag(fields.last))
}

/// Whether `text` can only be a tag: `O`, or a letter of a tagging scheme and a slot.
pub(super) fn looks_like_tag(text: &str) -> bool {
    let mut chars = text.chars();
    match (chars.next(), chars.next(), chars.next()) {
        (Some('O'), None, None) => true,
        (Some(letter), Some('-'), Some(_)) => "BIESLU".contains(letter),
        _ => false,
    }
}

struct Lines {
    scheme: Scheme,
}

impl Render for Lines {
    fn begin_domain(&mut self, name: Option<&str>, out: &mut String) {
        if let Some(name) = name {
            out.extend([DOMAIN, name, "\n"]);
        }
    }

    fn sentence(&mut self, sentence: &Sentence, out: &mut String) -> Result<()> {
        for (word, tag) in sentence.words().zip(self.scheme.write(sentence)) {
            if word.contains(['\t', '\n']) || word.starts_with(DOCUMENT) {
                let what = format!("the word {word:?}");
                return Err(Error::Unwritable { format: Format::Conll, what });
            }
            let _ = writeln!(out, "{word}\t{tag}");
        }
        out.push('\n');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::data::{Corpus, Note, ReadOptions, parse};

    fn read(text: &str) -> Result<Corpus> {
        let options = ReadOptions { format: Some(Format::Conll), ..ReadOptions::default() };
        parse(Path::new("music.conll"), text.as_bytes(), &options)
    }

    fn refusal(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    fn lines(corpus: &Corpus) -> Vec<String> {
        let show = |s: &Sentence| {
            s.tokens().iter().map(|t| format!("{}/{}", t.word, t.tag)).collect::<Vec<_>>()
        };
        corpus.sentences().map(|sentence| show(sentence).join(" ")).collect()
    }

    #[test]
    fn the_word_is_the_first_column_and_the_tag_the_last() {
        for text in [
            "play\tO\nnina\tB-artist\n",
            "play VB O\r\nnina NN B-artist",
            "\n play  x O \n nina y B-artist\n\n\n",
        ] {
            let corpus = read(text).unwrap();
            assert_eq!(lines(&corpus), ["play/O nina/B-artist"], "{text:?}");
            assert_eq!(corpus.domains[0].name, "music");
        }
        let corpus = read("play VB x O\n").unwrap();
        assert_eq!(
            corpus.notes,
            [Note::Ignored { what: "columns between the word and its tag", n: 2 }]
        );
    }

    #[test]
    fn with_tabs_a_word_may_hold_blanks() {
        assert_eq!(lines(&read("new york\tB-city\n").unwrap()), ["new york/B-city"]);
    }

    #[test]
    fn documents_and_comments_are_no_words() {
        let text =
            "#begin document (x)\n-DOCSTART- -X- O\n\n# text = a O\n# O\n#tag O\n\n#end document\n";
        assert_eq!(lines(&read(text).unwrap()), ["#/O #tag/O"]);
    }

    #[test]
    fn a_comment_names_the_domain() {
        let corpus = read("a O\n# domain: Two\nb O\n\n# domain: music\nc O\n").unwrap();
        let names: Vec<_> =
            corpus.domains.iter().map(|d| (d.name.as_str(), d.sentences.len())).collect();
        assert_eq!(names, [("music", 2), ("Two", 1)]);
    }

    #[test]
    fn a_line_without_a_tag_is_refused() {
        assert_eq!(
            refusal("play O\n\nnina\n"),
            "music.conll:3: `nina` has no tag: a line needs a word and a tag"
        );
    }

    #[test]
    fn unequal_columns_are_refused() {
        assert_eq!(
            refusal("play VB O\nnina O\n"),
            "music.conll:2: 2 columns where the lines before have 3"
        );
    }

    #[test]
    fn an_unknown_tag_shape_is_refused_with_its_line() {
        let message = refusal("play O\nnina B-artist\nsimone artist\n");
        assert!(message.starts_with("music.conll:3: `artist` is no tag"), "{message}");
    }

    #[test]
    fn a_slot_with_blanks_is_refused() {
        let message = refusal("play\tO\nnina\tB-the artist\n");
        assert!(message.starts_with("music.conll:2: `the artist` is no slot name"), "{message}");
    }

    #[test]
    fn a_line_of_100_mb_is_refused_in_one_short_line() {
        let text = format!("play O\n{} O\n", "x".repeat(100_000_000));
        assert_eq!(refusal(&text).len(), "music.conll:2: 100000002 bytes in one line (at most 8388608); this is no list of sentences".len());
    }

    #[test]
    fn an_empty_word_is_refused() {
        assert_eq!(refusal("play\tO\n\tO\n"), "music.conll:2: word 1 of a sentence is empty");
    }

    #[test]
    fn a_file_without_sentences_is_refused() {
        for text in ["", "\n\n", "# only a comment\n"] {
            assert_eq!(refusal(text), "music.conll: no sentences");
        }
    }

    #[test]
    fn a_word_with_a_tab_is_not_written() {
        let token = Token { word: "a\tb".into(), tag: crate::Tag::O };
        let sentence = Sentence::new(vec![token]).unwrap();
        let mut out = String::new();
        let result = Lines { scheme: Scheme::Iob2 }.sentence(&sentence, &mut out);
        assert!(matches!(result, Err(Error::Unwritable { format: Format::Conll, .. })));
    }
}
