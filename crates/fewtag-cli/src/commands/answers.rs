//! Tagged sentences as people or programs read them.

use std::fmt::Write;
use std::str::FromStr;

use fewtag::{Sentence, Tagged, data};

const BOLD: &str = "\u{1b}[1;36m";
const YELLOW: &str = "\u{1b}[33m";
const FAINT: &str = "\u{1b}[2m";
const RESET: &str = "\u{1b}[0m";

/// What `--format` may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    /// For people at a terminal.
    Text,
    /// One JSON array.
    Json,
    /// One JSON object a line.
    Jsonl,
    /// A format of labelled data.
    Data(data::Format),
}

impl FromStr for OutputFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            "jsonl" => Ok(Self::Jsonl),
            _ => text.parse().map(Self::Data).map_err(|_| {
                format!(
                    "`{text}` is no output format (text, json, jsonl, {})",
                    data::Format::names()
                )
            }),
        }
    }
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Colour {
    Auto,
    Always,
    Never,
}

impl Colour {
    pub(crate) fn is_on(self) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => {
                std::io::IsTerminal::is_terminal(&std::io::stdout())
                    && std::env::var_os("NO_COLOR").is_none()
            }
        }
    }
}

/// The text without control characters: they could change the terminal.
pub(crate) fn shown(text: &str) -> String {
    text.replace(|c: char| c.is_control() && c != '\t', "\u{fffd}")
}

/// The sentence with its spans marked: `put on some [miles davis](artist 0.93)`, in colours if wanted.
pub(crate) fn marked(sentence: &Sentence, tagged: &Tagged, colour: bool) -> String {
    let (text, words) = sentence.text();
    let mut line = String::new();
    let mut done = 0;
    for found in &tagged.spans {
        let (start, end) = (words[found.span.start].start, words[found.span.end - 1].end);
        let (inner, slot, p) =
            (shown(&text[start..end]), shown(found.span.slot.as_str()), found.probability);
        line.push_str(&shown(&text[done..start]));
        // Writing to a string cannot fail.
        let _ = if colour {
            write!(line, "{BOLD}{inner}{RESET} {YELLOW}{slot}{RESET} {FAINT}{p:.2}{RESET}")
        } else {
            write!(line, "[{inner}]({slot} {p:.2})")
        };
        done = end;
    }
    line.push_str(&shown(&text[done..]));
    line
}
