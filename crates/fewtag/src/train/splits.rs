//! Batches of one domain in which every sentence is asked and answers: what tuning learns from.
//!
//! ```text
//! some sentences of the domain ─▶ 2 to 5 parts; part i is tagged from all the others
//! ```
//!
//! Each sentence is read once for all parts, so a batch has as many queries as it reads sentences. Sentences with the same
//! words stay in one part: a query never meets itself among its examples. Half of the time a part sees only some of
//! the others, and now and then only some of the labels, so that what is learned does not depend on how many there are.

use std::collections::HashMap;

use super::batches::{Batch, with_slots};
use crate::domain::{Episode, Sentence, SupportSet};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::settings::ModelSettings;
use crate::tag::{Tag, TagSet};

/// More labels than this are never asked for at once: every one costs the reading of its name.
const MAX_SLOTS: usize = 30;
/// How often a batch has only some of the labels.
const FEWER_SLOTS: f64 = 0.2;
/// The probability that a sentence without any of those stays among the examples.
const PLAIN: f64 = 0.3;
/// How often a drawing is repeated that left nothing to ask.
const TRIES: usize = 20;

/// A domain to draw batches from.
#[derive(Debug)]
pub(super) struct Splits {
    support: SupportSet,
    settings: ModelSettings,
    /// The numbers of the sentences that have the same words.
    alike: Vec<Vec<usize>>,
}

impl Splits {
    pub(super) fn new(support: SupportSet, settings: ModelSettings) -> Self {
        let alike = alike(support.sentences());
        Self { support, settings, alike }
    }

    /// A batch of about `size` sentences.
    ///
    /// # Errors
    ///
    /// [`Error::NoQueries`] if no sentence can be tagged from others.
    pub(super) fn draw(&self, size: usize, random: &mut Random) -> Result<Batch> {
        let mut n_skipped = 0;
        for _ in 0..TRIES {
            let mut batch = Batch { episodes: Vec::new(), names: true, overlap: true, n_skipped };
            let parts = self.parts(size, random);
            for asked in 0..parts.len() {
                batch.episodes.extend(self.episode(&parts, asked, random)?);
            }
            let n_asked = parts.iter().map(Vec::len).sum::<usize>();
            n_skipped += n_asked - batch.episodes.iter().map(|e| e.queries.len()).sum::<usize>();
            if !batch.episodes.is_empty() {
                return Ok(batch);
            }
        }
        Err(Error::NoQueries { skipped: n_skipped })
    }

    /// Some sentences in two to five parts of about the same size.
    fn parts(&self, size: usize, random: &mut Random) -> Vec<Vec<usize>> {
        let mut groups: Vec<&Vec<usize>> = self.alike.iter().collect();
        random.shuffle(&mut groups);
        let n_parts = (2 + random.below(4)).min(groups.len());
        let mut parts = vec![Vec::new(); n_parts];
        let mut n_drawn = 0;
        for (at, group) in groups.into_iter().enumerate() {
            if n_drawn + group.len() > size && at >= n_parts {
                break;
            }
            n_drawn += group.len();
            parts[at % n_parts].extend_from_slice(group);
        }
        parts
    }

    /// One part tagged from the others; none if nothing of it can be.
    fn episode(
        &self,
        parts: &[Vec<usize>],
        asked: usize,
        random: &mut Random,
    ) -> Result<Option<Episode>> {
        let sentence = |&i: &usize| self.support.sentences()[i].clone();
        let share = if random.unit() < 0.5 { 1.0 } else { 0.3 + 0.7 * random.unit() };
        let others = parts.iter().enumerate().filter(|(part, _)| *part != asked);
        let examples: Vec<Sentence> = others
            .flat_map(|(_, part)| part)
            .filter(|_| random.unit() < share)
            .map(sentence)
            .collect();
        let support = match self.support.with_sentences(examples) {
            Err(Error::EmptySupport) => return Ok(None),
            other => other?,
        };
        let queries = parts[asked].iter().map(sentence).collect();
        let mut episode = Episode { domain: String::new(), support, queries };
        let n_slots = episode.support.tag_set().slots().len();
        let most = n_slots.min(MAX_SLOTS);
        let most = if random.unit() < FEWER_SLOTS { 1 + random.below(most) } else { most };
        if most < n_slots {
            episode = match with_slots(episode, most, PLAIN, random) {
                Err(Error::EmptySupport) => return Ok(None), // Labels without any example.
                other => other?,
            };
        }
        let tags = self.settings.tag_set(&episode.support);
        let Episode { support, queries, .. } = &mut episode;
        queries.retain(|query| is_explained(support, &tags, query));
        Ok((!queries.is_empty()).then_some(episode))
    }
}

/// The numbers of the sentences that have the same words, in the order of the first of them.
pub(crate) fn alike(sentences: &[Sentence]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut group_of: HashMap<Vec<&str>, usize> = HashMap::new();
    for (i, sentence) in sentences.iter().enumerate() {
        let group = *group_of.entry(sentence.words().collect()).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        groups[group].push(i);
    }
    groups
}

/// Whether the examples say something about every tag of the query; `tags` are those that they allow.
fn is_explained(support: &SupportSet, tags: &TagSet, query: &Sentence) -> bool {
    let has_o = support.sentences().iter().any(|s| s.tags().any(|tag| *tag == Tag::O));
    query.tags().all(|tag| if *tag == Tag::O { has_o } else { tags.index_of(tag).is_some() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn splits(text: &str) -> Splits {
        Splits::new(SupportSet::parse(text).unwrap(), ModelSettings::default())
    }

    fn music() -> Splits {
        let lines: Vec<String> = (0..12)
            .map(|i| format!("play [song{i}](track) by [singer{}](artist) at [noon](time)", i % 5))
            .collect();
        splits(&lines.join("\n"))
    }

    #[test]
    fn a_query_never_stands_among_its_examples_and_its_tags_do() {
        let splits = music();
        let mut supports = BTreeSet::new();
        for update in 0..60 {
            let batch = splits.draw(8, &mut Random::new(5).stream(update)).unwrap();
            assert!(batch.overlap && batch.names);
            for Episode { support, queries, .. } in &batch.episodes {
                supports.insert(support.sentences().len());
                assert!(!queries.is_empty());
                for query in queries {
                    let words: Vec<&str> = query.words().collect();
                    assert!(
                        support.sentences().iter().all(|s| s.words().collect::<Vec<_>>() != words)
                    );
                    let tags = splits.settings.tag_set(support);
                    assert!(query.tags().all(|tag| tags.index_of(tag).is_some()));
                }
            }
        }
        assert!(supports.len() > 3, "the number of examples varies: {supports:?}");
    }

    #[test]
    fn a_batch_depends_on_nothing_but_its_generator() {
        let draw = || music().draw(8, &mut Random::new(1)).unwrap();
        assert_eq!(draw(), draw());
    }

    #[test]
    fn what_cannot_be_asked_is_an_error_and_not_an_endless_search() {
        let alone = splits("play [nina simone](artist)");
        assert!(matches!(alone.draw(8, &mut Random::new(1)), Err(Error::NoQueries { .. })));
        // The same words twice cannot ask each other.
        let twice = splits("play [nina simone](artist)\nplay [nina simone](artist)");
        assert!(matches!(twice.draw(8, &mut Random::new(1)), Err(Error::NoQueries { .. })));
    }

    #[test]
    fn many_labels_are_asked_for_in_turn() {
        let lines: Vec<String> = (0..200)
            .map(|i| {
                format!("see [word{i}](label{}) and [more{i}](label{})", i % 100, (i * 7 + 1) % 100)
            })
            .collect();
        let splits = splits(&lines.join("\n"));
        for update in 0..5 {
            let batch = splits.draw(100, &mut Random::new(2).stream(update)).unwrap();
            for episode in &batch.episodes {
                assert!(episode.support.tag_set().slots().len() <= MAX_SLOTS);
            }
        }
    }
}
