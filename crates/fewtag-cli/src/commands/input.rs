//! Where the sentences come from: arguments, files, or standard input, read in a thread of their own.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use anyhow::{Context, ensure};
use fewtag::words::{self, WordSplit};
use fewtag::{Sentence, Tag, Token};
use serde::Deserialize;

use crate::sources;

/// A place to name in messages, and the sentence found there.
pub(crate) type Item = (String, anyhow::Result<Sentence>);

/// How many lines may wait to be tagged.
const WAITING: usize = 1024;
/// The longest line, in bytes: a limit on memory, far above any sentence.
const MAX_LINE: u64 = 1 << 20;

/// The sentences in their order.
pub(crate) struct Input {
    items: Receiver<Item>,
}

/// How much is taken at a time, at least one sentence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Most {
    /// Sentences.
    pub(crate) sentences: usize,
    /// Words, from which on no further sentence is taken.
    pub(crate) words: usize,
}

/// A line of `--jsonl` input.
#[derive(Deserialize)]
#[serde(untagged)]
enum Line {
    Text { text: String },
    Tokens { tokens: Vec<String> },
}

impl Input {
    /// Starts to read `texts`, then the lines of `files`; `-` is standard input.
    pub(crate) fn open(texts: &[String], files: &[PathBuf], how: How) -> anyhow::Result<Self> {
        let (sender, items) = sync_channel(WAITING);
        let texts = texts.to_vec();
        files.iter().try_for_each(|path| check(path))?;
        let files = files.to_vec();
        std::thread::spawn(move || {
            for (n, text) in texts.iter().enumerate() {
                let item = (format!("argument {}", n + 1), how.sentence(text).transpose());
                if let (place, Some(sentence)) = item
                    && sender.send((place, sentence)).is_err()
                {
                    return;
                }
            }
            for path in files {
                let name = name(&path);
                let sent = match open(&path) {
                    Ok(reader) => send_lines(&name, reader, how, &sender),
                    Err(error) => sender.send((name, Err(error.into()))).map_err(|_| ()),
                };
                if sent.is_err() {
                    return;
                }
            }
        });
        Ok(Self { items })
    }

    /// Waits for a sentence and takes those that have arrived with it, at most so many; none at the end.
    pub(crate) fn next_batch(&mut self, most: Most) -> Vec<Item> {
        let (mut batch, mut n_words) = (Vec::new(), 0);
        let mut next = self.items.recv().ok();
        while let Some(item) = next {
            n_words += item.1.as_ref().map_or(0, Sentence::n_words);
            batch.push(item);
            let has_room = batch.len() < most.sentences && n_words < most.words;
            next = if has_room { self.items.try_recv().ok() } else { None };
        }
        batch
    }
}

/// Every sentence, as it arrives.
impl Iterator for Input {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        self.items.recv().ok()
    }
}

/// Tells at once of a file that is not there; to open all of a directory's could be too many.
fn check(path: &Path) -> anyhow::Result<()> {
    if !sources::is_standard_input(path) {
        std::fs::metadata(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    }
    Ok(())
}

fn name(path: &Path) -> String {
    if sources::is_standard_input(path) {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

fn open(path: &Path) -> std::io::Result<Box<dyn BufRead + Send>> {
    if sources::is_standard_input(path) {
        return Ok(Box::new(std::io::BufReader::new(std::io::stdin())));
    }
    Ok(Box::new(std::io::BufReader::new(std::fs::File::open(path)?)))
}

/// Sends every line that is not blank; `Err` if nobody listens any more.
fn send_lines(
    name: &str,
    mut reader: Box<dyn BufRead + Send>,
    how: How,
    sender: &SyncSender<Item>,
) -> Result<(), ()> {
    for number in 1.. {
        let place = format!("{name}:{number}");
        match next_line(&mut reader) {
            Ok(None) => break,
            Ok(Some(line)) => {
                if let Some(sentence) = line.and_then(|line| how.sentence(&line)).transpose() {
                    sender.send((place, sentence)).map_err(|_| ())?;
                }
            }
            Err(error) => {
                sender.send((place, Err(error))).map_err(|_| ())?;
                break; // The reader cannot be trusted any further.
            }
        }
    }
    Ok(())
}

/// The next line without its end; `None` after the last. The inner error is of this line alone.
fn next_line(reader: &mut impl BufRead) -> anyhow::Result<Option<anyhow::Result<String>>> {
    let mut bytes = Vec::new();
    let n = std::io::Read::take(&mut *reader, MAX_LINE).read_until(b'\n', &mut bytes)?;
    if n == 0 {
        return Ok(None);
    }
    ensure!(
        bytes.ends_with(b"\n") || (n as u64) < MAX_LINE,
        "the line is longer than {MAX_LINE} bytes: put one sentence or paragraph on a line"
    );
    let line = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        anyhow::anyhow!("byte {} of the line is no UTF-8", at + 1)
    });
    Ok(Some(
        line.map(|line| {
            line.trim_start_matches('\u{feff}').trim_end_matches(['\n', '\r']).to_owned()
        }),
    ))
}

/// How a line becomes a sentence.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How {
    /// Lines are JSON objects with `text`, or with `tokens`.
    pub(crate) jsonl: bool,
    /// Where words end.
    pub(crate) words: WordSplit,
}

impl How {
    /// The words of a line, without tags; `None` if it has none.
    fn sentence(self, line: &str) -> anyhow::Result<Option<Sentence>> {
        if line.trim().is_empty() {
            return Ok(None);
        }
        if !self.jsonl {
            return self.text(line.to_owned());
        }
        let line = serde_json::from_str(line)
            .context("expected a JSON object with `text`, or with a list `tokens`")?;
        match line {
            Line::Text { text } => self.text(text),
            Line::Tokens { tokens } => {
                let tokens = tokens.into_iter().map(|word| Token { word, tag: Tag::O });
                Ok(Some(Sentence::new(tokens.collect())?))
            }
        }
    }

    fn text(self, text: String) -> anyhow::Result<Option<Sentence>> {
        let words = words::split(&text, self.words);
        if words.is_empty() {
            return Ok(None);
        }
        let tags = vec![Tag::O; words.len()];
        Ok(Some(Sentence::from_text(text, words, tags)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[&str]) -> Input {
        let texts: Vec<String> = all.iter().map(|&text| text.to_owned()).collect();
        Input::open(&texts, &[], How { jsonl: false, words: WordSplit::default() }).unwrap()
    }

    #[test]
    fn batches_end_with_their_words_or_sentences_and_lose_nothing() {
        let all = ["a b c", "d", "e f g h i", "j", "k", "l m"];
        for (sentences, words) in [(1, 100), (2, 100), (100, 1), (100, 4), (100, 100)] {
            let mut input = texts(&all);
            let mut seen = Vec::new();
            loop {
                let batch = input.next_batch(Most { sentences, words });
                let batch: Vec<Sentence> = batch.into_iter().map(|item| item.1.unwrap()).collect();
                let Some((_, before)) = batch.split_last() else { break };
                assert!(batch.len() <= sentences);
                assert!(before.iter().map(Sentence::n_words).sum::<usize>() < words);
                seen.extend(batch.iter().map(|sentence| sentence.text().0.to_string()));
            }
            assert_eq!(seen, all);
        }
    }
}
