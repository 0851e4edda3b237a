//! What a command learns from: examples, names of labels, and which model reads them.

use std::path::PathBuf;

use anyhow::{Context as _, bail, ensure};
use fewtag::{Slot, SupportSet};

use super::data::SupportArgs;
use super::tagger::TaggerArgs;

/// What to learn from
#[derive(Debug, clap::Args)]
pub(crate) struct LearnArgs {
    /// Labelled sentences to learn from, in any data format, or a directory of them; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) support: Vec<PathBuf>,
    /// One labelled sentence to learn from: `play [nina simone](artist)`; may be repeated
    #[arg(long, value_name = "SENTENCE")]
    example: Vec<String>,
    /// A label to look for by its name alone, such as `artist` or `"song title"`; may be repeated
    #[arg(long, value_name = "NAME")]
    label: Vec<String>,
    /// What a label means, where its own name does not say it: `slot_17=delivery date`; nothing after `=`: its name
    /// says nothing; may be repeated
    #[arg(long, value_name = "LABEL=MEANING", value_parser = meaning)]
    meaning: Vec<(Slot, Option<String>)>,
    #[command(flatten)]
    pub(crate) read: SupportArgs,
    #[command(flatten)]
    pub(crate) tagger: TaggerArgs,
}

impl LearnArgs {
    /// The support set of all files and examples.
    pub(crate) fn support(&self) -> anyhow::Result<SupportSet> {
        if self.support.is_empty() && self.example.is_empty() && self.label.is_empty() {
            bail!(
                "there is nothing to learn from: give labelled sentences with --support FILE or --example \
                 'play [nina simone](artist)', or at least --label artist"
            );
        }
        let mut sentences = Vec::new();
        for path in self.read.files(&self.support)? {
            sentences.extend(self.read.read(&path)?);
        }
        for example in &self.example {
            sentences.extend(self.read.parse_inline("--example", example)?);
        }
        let labels =
            self.label.iter().map(|name| slot(name)).collect::<anyhow::Result<Vec<_>>>()?;
        let support = SupportSet::with_labels(sentences, labels)
            .context("mark at least one span, as in 'play [nina simone](artist)'")?;
        let known = support.tag_set().slots().into_iter().cloned().collect::<Vec<_>>();
        self.meaning.iter().try_fold(support, |support, (slot, meaning)| {
            ensure!(known.contains(slot), "--meaning {slot}=…: there is no label `{slot}`");
            Ok(support.named(slot.clone(), meaning.clone()))
        })
    }
}

/// The slot of a label that may be written as words: `song title` is `song_title`.
fn slot(name: &str) -> anyhow::Result<Slot> {
    Slot::of_words(name).with_context(|| format!("{name:?} names no label"))
}

/// `LABEL=MEANING`.
fn meaning(text: &str) -> anyhow::Result<(Slot, Option<String>)> {
    let (label, meaning) = text.split_once('=').context("write LABEL=MEANING")?;
    Ok((slot(label)?, Some(meaning.trim().to_owned()).filter(|meaning| !meaning.is_empty())))
}
