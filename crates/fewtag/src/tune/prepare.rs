//! What is looked at before anything is trained: whether there is enough, how large it is, and what tells it from others.

use std::collections::BTreeSet;

use super::plan::{Plan, Sizes};
use crate::domain::{Sentence, SupportSet};
use crate::error::{Error, Result};
use crate::file;
use crate::settings::Context;
use crate::tagger::Tagger;
use crate::train::alike;

/// Fewer sentences say too little of each other.
const FEWEST: usize = 10;

/// Refuses a model that cannot be tuned, and sentences that it cannot be tuned with.
pub(super) fn check(base: &Tagger, support: &SupportSet) -> Result<()> {
    if base.settings().context == Context::Paired {
        let problem = "it reads sentences in pairs; tune with `separate` context";
        return Err(Error::Untunable { problem });
    }
    if base.engine().layered().is_none() {
        return Err(Error::Untunable { problem: "the layers of its encoder are fixed" });
    }
    enough(support.sentences())?;
    base.can_adapt(support)
}

/// Refuses what is too little to learn more from than examples give.
fn enough(sentences: &[Sentence]) -> Result<()> {
    let n = sentences.len();
    if n < FEWEST {
        let problem = format!(
            "{n} labelled sentences, and it takes {FEWEST} or more; tag with these as they are, and label more"
        );
        return Err(Error::TooLittle { problem });
    }
    let mut seen = BTreeSet::new();
    let again = alike(sentences).iter().any(|group| {
        let slots = group.iter().flat_map(|&i| sentences[i].spans()).map(|span| span.slot);
        let slots: BTreeSet<_> = slots.collect();
        slots.into_iter().any(|slot| !seen.insert(slot))
    });
    if !again {
        let problem = "no label stands in two different sentences, so none can be tagged from the others; label more";
        return Err(Error::TooLittle { problem: problem.to_owned() });
    }
    Ok(())
}

/// How many sentences have the same words as another, and other labels.
pub(super) fn n_contradictions(sentences: &[Sentence]) -> usize {
    let contradict = |group: &&Vec<usize>| {
        group.iter().any(|&i| sentences[i].tags().ne(sentences[group[0]].tags()))
    };
    alike(sentences).iter().filter(contradict).map(Vec::len).sum()
}

pub(super) fn sizes(tagger: &Tagger, support: &SupportSet) -> Result<Sizes> {
    let mut n_pieces = 0;
    for sentence in support.sentences() {
        n_pieces += tagger.word_pieces().split(sentence.words())?.ids.len() + 2;
    }
    let tags = tagger.settings().tag_set(support);
    let mut name_pieces = 0;
    for words in tags.tags().iter().filter_map(|tag| support.name_words(tag)) {
        name_pieces += tagger.word_pieces().split(words.iter().map(String::as_str))?.ids.len() + 2;
    }
    let config = tagger.engine().config();
    let (h, f) = (config.hidden_size, config.intermediate_size);
    Ok(Sizes {
        n_sentences: support.sentences().len(),
        n_pieces,
        name_pieces,
        n_layers: config.num_hidden_layers,
        layer: 4 * h * h + 2 * h * f,
    })
}

/// What tells one tuning from others.
pub(super) fn key(tagger: &Tagger, support: &SupportSet, seed: u64, plan: &Plan) -> String {
    let sentences = support.sentences().iter().map(|s| s.tokens().to_vec()).collect::<Vec<_>>();
    let (settings, head) = (tagger.settings(), tagger.head());
    let parts = format!(
        "{:?} {settings:?} {head:?} {sentences:?} {:?} {:?} {seed} {plan:?}",
        tagger.checksum(),
        support.tag_set(),
        support.names(),
    );
    file::sha256(parts.as_bytes())
}
