//! What is worth knowing about a domain before it is used: counts, duplicates, contradictions.

use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};

use crate::data::{At, Findings};
use crate::domain::{Domain, Episode, Sentence};
use crate::tag::Slot;

/// The counts of one slot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SlotCounts {
    /// How many spans carry it.
    pub n_spans: usize,
    /// In how many sentences it occurs.
    pub n_sentences: usize,
}

/// The counts of a domain, and what is odd about it. Sentences are numbered from 1.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Check {
    /// The words of all sentences.
    pub n_words: usize,
    /// The slots, by name.
    pub slots: BTreeMap<Slot, SlotCounts>,
    /// Sentences with the words and tags of an earlier one.
    pub duplicates: Findings,
    /// Sentences with the words of an earlier one but other tags.
    pub contradictions: Findings,
}

impl Check {
    /// Looks through a domain.
    #[must_use]
    pub fn of(domain: &Domain) -> Self {
        let mut check = Self::default();
        let mut seen: HashMap<Words, Vec<usize>> = HashMap::with_capacity(domain.sentences.len());
        for (i, sentence) in domain.sentences.iter().enumerate() {
            check.n_words += sentence.n_words();
            check.count_slots(sentence);
            let before = seen.entry(Words(sentence)).or_default();
            let at = || At::Sentence(i + 1);
            let same = before.iter().find(|&&j| domain.sentences[j] == *sentence);
            if let Some(j) = same {
                check.duplicates.add(at(), &format!("as sentence {}", j + 1));
                continue;
            }
            if let Some(j) = before.first() {
                check.contradictions.add(at(), &format!("as sentence {}", j + 1));
            }
            before.push(i);
        }
        check
    }

    fn count_slots(&mut self, sentence: &Sentence) {
        let mut slots: Vec<Slot> = sentence.spans().into_iter().map(|span| span.slot).collect();
        slots.sort_unstable();
        for same in slots.chunk_by(PartialEq::eq) {
            if !self.slots.contains_key(&same[0]) {
                self.slots.insert(same[0].clone(), SlotCounts::default());
            }
            let counts = self.slots.get_mut(&same[0]).expect("just inserted");
            counts.n_spans += same.len();
            counts.n_sentences += 1;
        }
    }
}

/// A sentence that is equal to another if its words are.
struct Words<'a>(&'a Sentence);

impl PartialEq for Words<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.words().eq(other.0.words())
    }
}

impl Eq for Words<'_> {}

impl Hash for Words<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.words().for_each(|word| word.hash(state));
    }
}

/// What is odd about episodes, where a sentence may well occur in many.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EpisodeCheck {
    /// Queries with the words of a sentence of their own support.
    pub leaks: Findings,
    /// Queries with a tag that their support lacks: no tagger can find it.
    pub unlearnable: Findings,
}

impl EpisodeCheck {
    /// Looks through the episodes of a file.
    #[must_use]
    pub fn of(episodes: &[Episode]) -> Self {
        let mut check = Self::default();
        let mut number = 0; // Within the domain, as in the messages of the reader.
        for (i, episode) in episodes.iter().enumerate() {
            let same_domain = i > 0 && episodes[i - 1].domain == episode.domain;
            number = if same_domain { number + 1 } else { 1 };
            for (q, query) in episode.queries.iter().enumerate() {
                let (domain, episode_number) = (episode.domain.clone(), number);
                let at = || At::Episode {
                    domain,
                    episode: episode_number,
                    part: "query",
                    sentence: q + 1,
                };
                let tag_set = episode.support.tag_set();
                let mut support = episode.support.sentences().iter();
                if let Some(tag) = query.tags().find(|tag| tag_set.index_of(tag).is_none()) {
                    check.unlearnable.add(at(), &tag.to_string());
                } else if support.any(|sentence| sentence.words().eq(query.words())) {
                    check.leaks.add(at(), "in the support");
                }
            }
        }
        check
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::data::{Format, ReadOptions, parse, parse_episodes};

    #[test]
    fn duplicates_and_contradictions_are_found() {
        let text = "[a](x) [b](y)\n[a](x) b\n[a](x) [b](y)\n[a b](x)\n[c](x) [d](x)\n";
        let options = ReadOptions { format: Some(Format::Inline), ..ReadOptions::default() };
        let corpus = parse(Path::new("f"), text.as_bytes(), &options).unwrap();
        let check = Check::of(&corpus.domains[0]);
        assert_eq!(check.n_words, 10);
        let counts: Vec<_> =
            check.slots.iter().map(|(s, c)| (s.as_str(), c.n_spans, c.n_sentences)).collect();
        assert_eq!(counts, [("x", 6, 5), ("y", 2, 2)]);
        assert_eq!(check.duplicates.to_string(), "1 (sentence 3: as sentence 1)");
        assert_eq!(
            check.contradictions.to_string(),
            "2 (sentence 2: as sentence 1; sentence 4: as sentence 1)"
        );
    }

    #[test]
    fn leaks_and_unlearnable_tags_are_found() {
        let part =
            |word, tag| format!("{{\"seq_ins\": [[\"{word}\"]], \"seq_outs\": [[\"{tag}\"]]}}");
        let episode = |query| format!("{{\"support\": {}, \"query\": {query}}}", part("a", "B-x"));
        let text =
            format!("{{\"D\": [{}, {}]}}", episode(part("a", "O")), episode(part("b", "I-x")));
        let check = EpisodeCheck::of(&parse_episodes(Path::new("f"), text.as_bytes()).unwrap());
        assert_eq!(check.leaks.to_string(), "1 (D, episode 1, query sentence 1: in the support)");
        assert_eq!(check.unlearnable.to_string(), "1 (D, episode 2, query sentence 1: I-x)");
    }
}
