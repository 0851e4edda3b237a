//! A sentence a line with its labels written in: for people at a terminal.
//!
//! ```text
//! # domain: PlayMusic
//! play [nina simone](artist) on [spotify](service)
//! ```
//!
//! Blank lines and lines that begin with `#` and a blank are skipped; `# domain: NAME` names the domain of what
//! follows. `\[` is a bracket that marks nothing; the other escapes stand in the module `markup`.

use crate::data::markup::{self, Dialect};
use crate::data::{At, Codec, Collector, Render, check_line};
use crate::domain::Sentence;
use crate::error::Result;
use crate::scheme::Scheme;

pub(super) struct Inline;

const DOMAIN: &str = "# domain: ";

impl Codec for Inline {
    fn read(&self, text: &str, into: &mut Collector) -> Result<()> {
        let mut domain = None;
        for (i, line) in text.lines().enumerate() {
            let at = || At::Line(i + 1);
            if let Some(name) = line.strip_prefix(DOMAIN) {
                domain = Some(name.trim());
            }
            if line.trim().is_empty() || line.trim_end() == "#" || line.starts_with("# ") {
                continue;
            }
            let unmarked = check_line(line).and_then(|()| markup::parse(line, Dialect::Inline));
            let unmarked = unmarked.map_err(|problem| into.error(at(), problem))?;
            into.add_text(domain, unmarked.text.into(), unmarked.labels, at)?;
        }
        Ok(())
    }

    fn renderer(&self, _: Scheme) -> Box<dyn Render + Send> {
        Box::new(Lines)
    }
}

struct Lines;

impl Render for Lines {
    fn begin_domain(&mut self, name: Option<&str>, out: &mut String) {
        if let Some(name) = name {
            out.extend([DOMAIN, name, "\n"]);
        }
    }

    fn sentence(&mut self, sentence: &Sentence, out: &mut String) -> Result<()> {
        out.push_str(&markup::line(sentence, Dialect::Inline));
        out.push('\n');
        Ok(())
    }
}
