//! Writing any format, a sentence at a time.

use std::io::Write;

use crate::data::Format;
use crate::domain::{Domain, Sentence};
use crate::error::{Error, Result};
use crate::scheme::Scheme;

/// How one file of a format is written. The methods append to `out` and are called in the order
/// `begin (begin_domain sentence* end_domain)* end`.
pub(crate) trait Render {
    /// The head of the file.
    fn begin(&mut self, _out: &mut String) {}
    /// The head of a domain; `None` if whoever writes does not name it.
    fn begin_domain(&mut self, _name: Option<&str>, _out: &mut String) {}
    /// A sentence of the domain.
    fn sentence(&mut self, sentence: &Sentence, out: &mut String) -> Result<()>;
    /// The foot of a domain.
    fn end_domain(&mut self, _out: &mut String) {}
    /// The foot of the file.
    fn end(&mut self, _out: &mut String) {}
}

/// The byte order mark.
const MARK: &str = "\u{feff}";

/// Writes labelled sentences to `W` in any format; each sentence is passed on as soon as it is given.
///
/// (Of the episode format, which lists all words before all tags, the tags wait for the end of their domain.)
///
/// ```
/// use fewtag::data::{Format, Writer};
/// use fewtag::{Sentence, Tag, Token};
///
/// let sentence = Sentence::new(vec![Token { word: "hello".into(), tag: Tag::O }])?;
/// let mut writer = Writer::new(Format::Conll, Vec::new());
/// writer.sentence(&sentence)?;
/// assert_eq!(writer.finish()?, b"hello\tO\n\n");
/// # Ok::<(), fewtag::Error>(())
/// ```
pub struct Writer<W> {
    out: W,
    format: Format,
    render: Box<dyn Render + Send>,
    began: bool,
    wrote: bool,
    in_domain: bool,
    text: String,
}

impl<W: Write> Writer<W> {
    /// Writes `format` to `out`, tags in BIO.
    pub fn new(format: Format, out: W) -> Self {
        Self::with_scheme(format, Scheme::Iob2, out)
    }

    /// Writes `format` to `out`, tags in `scheme` if the format has a tag per word and a free choice of scheme.
    pub fn with_scheme(format: Format, scheme: Scheme, out: W) -> Self {
        let render = format.codec().renderer(scheme);
        Self {
            out,
            format,
            render,
            began: false,
            wrote: false,
            in_domain: false,
            text: String::new(),
        }
    }

    /// Where the sentences go, to be flushed.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// The sentences that follow belong to the domain `name`.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] if the name holds a line break, [`Error::Write`] if the output fails.
    pub fn domain(&mut self, name: &str) -> Result<()> {
        if name.trim().is_empty() || name.contains(char::is_control) {
            let what = format!("the domain name {name:?}");
            return Err(Error::Unwritable { format: self.format, what });
        }
        self.enter(Some(name));
        self.flush()
    }

    /// Writes one sentence.
    ///
    /// # Errors
    ///
    /// [`Error::Unwritable`] if the format cannot express it; nothing is written then, and others may follow.
    /// [`Error::Write`] if the output fails.
    pub fn sentence(&mut self, sentence: &Sentence) -> Result<()> {
        if !self.in_domain {
            self.enter(None);
        }
        let end = self.text.len();
        let result = self.render.sentence(sentence, &mut self.text);
        if result.is_err() {
            self.text.truncate(end);
        }
        self.flush()?;
        result
    }

    /// Writes what closes the file and returns the output.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] if the output fails.
    pub fn finish(mut self) -> Result<W> {
        if !self.began {
            self.render.begin(&mut self.text);
        }
        if self.in_domain {
            self.render.end_domain(&mut self.text);
        }
        self.render.end(&mut self.text);
        self.flush()?;
        Ok(self.out)
    }

    fn enter(&mut self, name: Option<&str>) {
        if !self.began {
            self.render.begin(&mut self.text);
        }
        if self.in_domain {
            self.render.end_domain(&mut self.text);
        }
        self.render.begin_domain(name, &mut self.text);
        (self.began, self.in_domain) = (true, true);
    }

    fn flush(&mut self) -> Result<()> {
        // A mark at the start of a file is no text when it is read; one that is text needs another before it.
        if !self.wrote && self.text.starts_with(MARK) {
            self.out.write_all(MARK.as_bytes()).map_err(Error::Write)?;
        }
        self.wrote |= !self.text.is_empty();
        self.out.write_all(self.text.as_bytes()).map_err(Error::Write)?;
        self.text.clear();
        Ok(())
    }
}

/// Writes domains as one file of `format`.
///
/// A single domain is named only by formats that gather sentences by domain; elsewhere it is named by its file.
///
/// # Errors
///
/// [`Error::Unwritable`] if the format cannot express a sentence, [`Error::Write`] if the output fails.
pub fn write(format: Format, scheme: Scheme, domains: &[Domain], out: impl Write) -> Result<()> {
    let mut writer = Writer::with_scheme(format, scheme, out);
    for domain in domains {
        if domains.len() > 1 || format.gathers_by_domain() {
            writer.domain(&domain.name)?;
        }
        for sentence in &domain.sentences {
            writer.sentence(sentence)?;
        }
    }
    writer.finish().map(|_| ())
}
