//! Which queries an update learns from.
//!
//! ```text
//! episode files   an epoch is one pass over all queries in a new order, cut into batches
//! domains         every update draws a new episode: a domain (probability ∝ sizeˢ), a number of shots, a
//!                 support set by Algorithm 1, and as many queries as the batch has
//! one domain      every update parts some of its sentences and tags each part from the others (`splits.rs`)
//! ```
//!
//! The batch of an update is a function of the seed and the update's number alone, so a resumed run needs no
//! state of a generator. A query with a tag that its support lacks cannot be learnt from: it is left out and
//! counted.

use std::collections::BTreeSet;

use super::config::{Batching, Config, Data};
use super::source::Read;
use super::splits::Splits;

use crate::domain::{Domain, Episode, Sentence, SupportSet, Token};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::sampler::{self, Duplicates, Sampler};
use crate::tag::{Slot, Tag};

/// What one update learns from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Batch {
    /// Support sets with the queries that are judged with them; at least one query in total.
    pub episodes: Vec<Episode>,
    /// Whether label names may be used.
    pub names: bool,
    /// Whether the episodes share sentences: each is then read once.
    pub overlap: bool,
    /// Queries left out because their support lacks one of their tags.
    pub n_skipped: usize,
}

/// Where batches come from.
#[derive(Debug)]
pub(super) struct Batches {
    source: BatchSource,
    settings: Data,
    /// Queries per batch.
    size: usize,
    random: Random,
}

#[derive(Debug)]
enum BatchSource {
    Episodes(Epochs),
    Domains(Mixture),
    Splits(Splits),
}

impl Batches {
    /// Takes what [`read`](super::source::read) found.
    ///
    /// # Errors
    ///
    /// [`Error::NoQueries`] if no query can be learnt from.
    pub(super) fn new(read: Read, settings: &Data, size: usize, seed: u64) -> Result<Self> {
        let source = match read {
            Read::Episodes(episodes) => {
                BatchSource::Episodes(Epochs::new(episodes, settings.batches, size)?)
            }
            Read::Domains(domains) => {
                BatchSource::Domains(Mixture::new(domains, settings.smoothing)?)
            }
        };
        let settings = settings.clone();
        Ok(Self { source, settings, size, random: Random::new(seed).named("batches") })
    }

    /// The sentences of one domain, tagged from each other.
    pub(super) fn of_domain(support: SupportSet, config: &Config) -> Self {
        let source = BatchSource::Splits(Splits::new(support, config.model.clone()));
        let random = Random::new(config.seed).named("batches");
        Self { source, settings: config.data.clone(), size: config.optimizer.batch, random }
    }

    /// The number of updates in one pass over the episodes; `None` if episodes are drawn without end.
    pub(super) fn epoch(&self) -> Option<u64> {
        match &self.source {
            BatchSource::Episodes(epochs) => Some(epochs.n_batches as u64),
            BatchSource::Domains(_) | BatchSource::Splits(_) => None,
        }
    }

    /// The batch of an update, counted from 0.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewSentences`] if a domain is too small for an episode.
    pub(super) fn at(&mut self, update: u64) -> Result<Batch> {
        let mut random = self.random.stream(update);
        let mut batch = match &mut self.source {
            BatchSource::Episodes(epochs) => epochs.at(update, &self.random.named("epochs")),
            BatchSource::Domains(mixture) => {
                mixture.draw(&self.settings, self.size, &mut random)?
            }
            BatchSource::Splits(splits) => splits.draw(self.size, &mut random)?,
        };
        let Data { lower_case, upper_case, drop_names, .. } = self.settings;
        let drawn = random.unit();
        if drawn < lower_case {
            batch.episodes = recased(batch.episodes, str::to_lowercase);
        } else if drawn < lower_case + upper_case {
            batch.episodes = recased(batch.episodes, str::to_uppercase);
        }
        let dropped = random.unit() < drop_names;
        batch.names =
            !dropped || batch.episodes.iter().any(|episode| needs_names(&episode.support));
        Ok(batch)
    }
}

/// An episode and one of its queries.
type Query = (usize, usize);

/// Episodes from files, passed over again and again.
#[derive(Debug)]
struct Epochs {
    episodes: Vec<Episode>,
    /// Queries that can be learnt from.
    queries: Vec<Query>,
    n_skipped: usize,
    batching: Batching,
    size: usize,
    n_batches: usize,
    /// The batches of one epoch, kept until the next one is asked for.
    order: Option<(u64, Vec<Vec<Query>>)>,
}

impl Epochs {
    fn new(episodes: Vec<Episode>, batching: Batching, size: usize) -> Result<Self> {
        let mut queries = Vec::new();
        let mut n_skipped = 0;
        for (e, episode) in episodes.iter().enumerate() {
            for (q, query) in episode.queries.iter().enumerate() {
                if explained(&episode.support, query) {
                    queries.push((e, q));
                } else {
                    n_skipped += 1;
                }
            }
        }
        if queries.is_empty() {
            return Err(Error::NoQueries { skipped: n_skipped });
        }
        let mut epochs =
            Self { episodes, queries, n_skipped, batching, size, n_batches: 0, order: None };
        epochs.n_batches = epochs.cut(&mut Random::new(0)).len();
        Ok(epochs)
    }

    fn at(&mut self, update: u64, random: &Random) -> Batch {
        let (epoch, within) =
            (update / self.n_batches as u64, (update % self.n_batches as u64) as usize);
        if self.order.as_ref().is_none_or(|(have, _)| *have != epoch) {
            self.order = Some((epoch, self.cut(&mut random.stream(epoch))));
        }
        let (_, order) = self.order.as_ref().expect("the order was just made");
        let episode = |queries: &[Query]| {
            let Episode { domain, support, queries: all } = &self.episodes[queries[0].0];
            Episode {
                domain: domain.clone(),
                support: support.clone(),
                queries: queries.iter().map(|&(_, q)| all[q].clone()).collect(),
            }
        };
        let episodes = order[within].chunk_by(|a, b| a.0 == b.0).map(episode).collect();
        // What an epoch leaves out is reported once, with its first batch.
        let n_skipped = if within == 0 { self.n_skipped } else { 0 };
        Batch { episodes, names: true, overlap: false, n_skipped }
    }

    /// Shuffles the queries and cuts them into batches.
    fn cut(&self, random: &mut Random) -> Vec<Vec<Query>> {
        let mut queries = self.queries.clone();
        random.shuffle(&mut queries);
        let mut batches: Vec<Vec<_>> = match self.batching {
            Batching::Mixed => queries.chunks(self.size).map(<[_]>::to_vec).collect(),
            Batching::Episode => {
                queries.sort_by_key(|query| query.0); // Stable: the order within an episode stays random.
                let episodes = queries.chunk_by(|a, b| a.0 == b.0);
                episodes.flat_map(|all| all.chunks(self.size)).map(<[_]>::to_vec).collect()
            }
        };
        random.shuffle(&mut batches);
        for batch in &mut batches {
            batch.sort_unstable(); // Queries of one episode stand together and share its support.
        }
        batches
    }
}

/// Domains from which every update draws its own episode.
#[derive(Debug)]
struct Mixture {
    samplers: Vec<Sampler>,
    /// All slots of all domains.
    slots: Vec<Slot>,
    /// The summed probabilities of the domains up to each one; the last is 1 but for rounding.
    cumulative: Vec<f64>,
}

impl Mixture {
    fn new(domains: Vec<Domain>, smoothing: f64) -> Result<Self> {
        let samplers = domains
            .into_iter()
            .map(|domain| Sampler::new(domain, sampler::MIN_SENTENCES, Duplicates::Keep))
            .collect::<Result<Vec<_>>>()?;
        let slots: BTreeSet<Slot> = samplers
            .iter()
            .flat_map(|sampler| {
                sampler.domain().tag_set().slots().into_iter().cloned().collect::<Vec<_>>()
            })
            .collect();
        let weight = |sampler: &Sampler| (sampler.domain().sentences.len() as f64).powf(smoothing);
        let total: f64 = samplers.iter().map(weight).sum();
        let mut sum = 0.0;
        let cumulative = samplers
            .iter()
            .map(|sampler| {
                sum += weight(sampler) / total;
                sum
            })
            .collect();
        Ok(Self { samplers, slots: slots.into_iter().collect(), cumulative })
    }

    fn draw(&self, settings: &Data, size: usize, random: &mut Random) -> Result<Batch> {
        let (n_episodes, n_queries) = match settings.batches {
            Batching::Episode => (settings.episodes, size.div_ceil(settings.episodes)),
            Batching::Mixed => (size, 1),
        };
        let mut batch = Batch { episodes: Vec::new(), names: true, overlap: false, n_skipped: 0 };
        for _ in 0..n_episodes {
            // A drawn support set has every tag that its domain's sampler may draw, so no query is left out.
            batch.episodes.push(self.episode(settings, n_queries, random)?);
        }
        Ok(batch)
    }

    fn episode(&self, settings: &Data, queries: usize, random: &mut Random) -> Result<Episode> {
        let at = random.unit();
        let sampler =
            self.cumulative.iter().position(|sum| at < *sum).unwrap_or(self.cumulative.len() - 1);
        let sampler = &self.samplers[sampler];
        let mut shots = settings.shots[random.below(settings.shots.len())];
        loop {
            // Of twice the queries those with a slot are preferred.
            let n_drawn = if settings.vary_slots { 2 * queries } else { queries };
            let drawn = sampler::EpisodeSettings {
                shots,
                queries: n_drawn,
                ..sampler::EpisodeSettings::default()
            };
            let episode = match sampler.episode(&drawn, random) {
                // A small domain may have enough sentences for fewer shots.
                Err(Error::TooFewSentences { .. }) if shots > 1 => {
                    shots = shots.div_ceil(2);
                    continue;
                }
                other => other?,
            };
            let episode = self.reshaped(episode, settings, queries, random)?;
            let fits = settings.max_support == 0
                || episode.support.sentences().len() <= settings.max_support;
            if fits || shots == 1 {
                return Ok(episode);
            }
            shots = shots.div_ceil(2);
        }
    }
}

impl Mixture {
    /// The episode as the settings want it: some of the slots, sentences without any, labels without examples,
    /// odd names.
    fn reshaped(
        &self,
        mut episode: Episode,
        settings: &Data,
        n_queries: usize,
        random: &mut Random,
    ) -> Result<Episode> {
        let n_slots = episode.support.tag_set().slots().len();
        let max = if settings.max_slots == 0 { n_slots } else { settings.max_slots.min(n_slots) };
        if settings.vary_slots {
            let kept = 1 + random.below(max);
            episode = with_slots(episode, kept, settings.plain_support, random)?;
            prefer_slots(&mut episode.queries, n_queries);
        } else if settings.max_slots > 0 {
            episode = with_slots(episode, max, settings.plain_support, random)?;
        }
        if settings.zero_shot > 0.0 && random.unit() < settings.zero_shot {
            episode.support = forget_examples(&episode.support, random)?;
        }
        if settings.odd_names > 0.0 {
            episode.support = self.with_odd_names(episode.support, settings.odd_names, random);
        }
        Ok(episode)
    }

    /// Takes the name of some labels that have examples, or gives them another's: the examples then have the last word.
    fn with_odd_names(&self, support: SupportSet, share: f64, random: &mut Random) -> SupportSet {
        let slots: Vec<Slot> = support.shown_slots().into_iter().collect();
        slots.into_iter().fold(support, |support, slot| {
            let odd = random.unit() < share;
            let other = &self.slots[random.below(self.slots.len())];
            let name = (random.unit() < 0.5).then(|| other.as_str().to_owned());
            if odd { support.named(slot, name) } else { support }
        })
    }
}

/// Puts queries with a slot first, up to three quarters of `n`, and cuts the rest off.
fn prefer_slots(queries: &mut Vec<Sentence>, n: usize) {
    let (with, without): (Vec<Sentence>, Vec<Sentence>) = std::mem::take(queries)
        .into_iter()
        .partition(|sentence| sentence.tags().any(|tag| *tag != Tag::O));
    let n_with = with.len().min(n - n / 4);
    let n_without = without.len().min(n - n_with);
    queries.extend(with.iter().take(n_with).chain(without.iter().take(n_without)).cloned());
    queries.extend(with.into_iter().skip(n_with).take(n - n_with - n_without));
}

/// Takes the examples of some labels away, half the time of all: their sentences go, their names stay.
fn forget_examples(support: &SupportSet, random: &mut Random) -> Result<SupportSet> {
    let share = if random.unit() < 0.5 { 1.0 } else { 0.3 };
    let mut forgotten = support.shown_slots();
    forgotten.retain(|_| random.unit() < share);
    let keeps = |sentence: &&Sentence| {
        sentence.tags().all(|tag| tag.slot().is_none_or(|slot| !forgotten.contains(slot)))
    };
    let kept: Vec<Sentence> = support.sentences().iter().filter(keeps).cloned().collect();
    // A label whose every sentence shows a forgotten one is forgotten too.
    let shown: BTreeSet<&Slot> =
        kept.iter().flat_map(Sentence::tags).filter_map(Tag::slot).collect();
    let forgotten: Vec<Slot> =
        support.shown_slots().into_iter().filter(|slot| !shown.contains(slot)).collect();
    SupportSet::with_labels(kept, forgotten)
}

/// Whether some label, or `O`, has no example.
fn needs_names(support: &SupportSet) -> bool {
    let shown = support.shown_slots();
    let has_o = support.sentences().iter().any(|s| s.tags().any(|tag| *tag == Tag::O));
    !has_o || support.tag_set().slots().into_iter().any(|slot| !shown.contains(slot))
}

/// Keeps at most `max` slots, chosen at random; the words of the others become `O`, and support sentences
/// that then teach nothing go, except with the probability `plain`.
pub(super) fn with_slots(
    episode: Episode,
    max: usize,
    plain: f64,
    random: &mut Random,
) -> Result<Episode> {
    let mut slots: Vec<Slot> = episode.support.tag_set().slots().into_iter().cloned().collect();
    if slots.len() <= max {
        return Ok(episode);
    }
    random.shuffle(&mut slots);
    slots.truncate(max);
    let relabel = |token: &Token| {
        let kept = token.tag.slot().is_some_and(|slot| slots.contains(slot));
        Token { word: token.word.clone(), tag: if kept { token.tag.clone() } else { Tag::O } }
    };
    let relabelled =
        |sentence: &Sentence| Sentence::new(sentence.tokens().iter().map(relabel).collect());
    let mut support =
        episode.support.sentences().iter().map(relabelled).collect::<Result<Vec<_>>>()?;
    support.retain(|sentence| {
        let teaches = sentence.tags().any(|tag| *tag != Tag::O);
        teaches || (plain > 0.0 && random.unit() < plain)
    });
    let names = episode.support.names();
    let kept = SupportSet::new(support)?;
    Ok(Episode {
        domain: episode.domain,
        support: names
            .iter()
            .fold(kept, |kept, (slot, name)| kept.named(slot.clone(), name.clone())),
        queries: episode.queries.iter().map(relabelled).collect::<Result<_>>()?,
    })
}

fn recased(episodes: Vec<Episode>, recase: impl Fn(&str) -> String) -> Vec<Episode> {
    let word = |token: &Token| Token { word: recase(&token.word), tag: token.tag.clone() };
    let sentence = |sentence: &Sentence| {
        Sentence::new(sentence.tokens().iter().map(word).collect())
            .expect("no word becomes empty in another case")
    };
    let sentences = |all: &[Sentence]| all.iter().map(sentence).collect();
    let episode = |Episode { domain, support, queries }| Episode {
        domain,
        support: support.with_sentences(sentences(support.sentences())).expect("the tags stay"),
        queries: sentences(&queries),
    };
    episodes.into_iter().map(episode).collect()
}

/// Whether every tag of the query, `O` included, has a word in the support.
fn explained(support: &SupportSet, query: &Sentence) -> bool {
    let mut worn = support.sentences().iter().flat_map(Sentence::tags);
    let has_o = worn.any(|tag| *tag == Tag::O);
    let has = |tag: &Tag| (*tag != Tag::O || has_o) && support.tag_set().index_of(tag).is_some();
    query.tags().all(has)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(text: &str) -> Sentence {
        let token = |pair: &str| {
            let (word, tag) = pair.split_once('/').unwrap_or((pair, "O"));
            Token { word: word.into(), tag: tag.parse().unwrap() }
        };
        Sentence::new(text.split(' ').map(token).collect()).unwrap()
    }

    fn episodes() -> Read {
        let episode = |name: &str, n_queries: usize| Episode {
            domain: name.into(),
            support: SupportSet::new(vec![sentence("In Paris/B-city")]).unwrap(),
            queries: (0..n_queries).map(|q| sentence(&format!("{name}{q}/B-city"))).collect(),
        };
        let mut last = episode("c", 2);
        last.queries.push(sentence("jazz/B-genre"));
        Read::Episodes(vec![episode("a", 5), episode("b", 3), last])
    }

    fn domains() -> Read {
        let domain = |name: &str, n: usize| Domain {
            name: name.into(),
            sentences: (0..n)
                .map(|s| sentence(&format!("X{s} Paris/B-city at/B-time noon/I-time play/B-verb")))
                .collect(),
        };
        Read::Domains(vec![domain("small", 16), domain("large", 400)])
    }

    fn batches(read: Read, settings: &Data) -> Batches {
        Batches::new(read, settings, 2, 7).unwrap()
    }

    fn words(batch: &Batch) -> Vec<String> {
        let queries = batch.episodes.iter().flat_map(|episode| &episode.queries);
        queries.flat_map(|query| query.words().map(str::to_owned)).collect()
    }

    #[test]
    fn an_epoch_passes_over_every_usable_query_once() {
        for (batching, n_batches) in [(Batching::Episode, 3 + 2 + 1), (Batching::Mixed, 5)] {
            let mut batches = batches(episodes(), &Data { batches: batching, ..Data::default() });
            assert_eq!(batches.epoch(), Some(n_batches));
            for epoch in 0..2 {
                let all: Vec<Batch> = (epoch * n_batches..(epoch + 1) * n_batches)
                    .map(|update| batches.at(update).unwrap())
                    .collect();
                let seen: Vec<String> = all.iter().flat_map(words).collect();
                assert_eq!(seen.len(), 10);
                assert_eq!(seen.into_iter().collect::<BTreeSet<_>>().len(), 10);
                assert_eq!(all.iter().map(|batch| batch.n_skipped).sum::<usize>(), 1);
                let single = all.iter().all(|batch| batch.episodes.len() == 1);
                assert!(single || batching == Batching::Mixed);
            }
        }
    }

    #[test]
    fn a_batch_depends_on_seed_and_update_only() {
        for read in [episodes(), domains()] {
            let mut forwards = batches(read.clone(), &Data::default());
            let mut backwards = batches(read.clone(), &Data::default());
            let all: Vec<Batch> = (0..20).map(|update| forwards.at(update).unwrap()).collect();
            for update in (0..20).rev() {
                assert_eq!(backwards.at(update).unwrap(), all[update as usize]);
            }
            let mut other = Batches::new(read, &Data::default(), 2, 8).unwrap();
            assert!((0..20).any(|update| other.at(update).unwrap() != all[update as usize]));
        }
    }

    #[test]
    fn without_a_usable_query_there_is_nothing_to_learn() {
        let Read::Episodes(mut all) = episodes() else { unreachable!() };
        all.truncate(1);
        all[0].queries = vec![sentence("jazz/B-genre")];
        let error = Batches::new(Read::Episodes(all), &Data::default(), 2, 7).unwrap_err();
        assert!(matches!(error, Error::NoQueries { skipped: 1 }), "{error}");
    }

    #[test]
    fn smoothing_makes_small_domains_more_frequent() {
        let share = |smoothing| {
            let mut batches = batches(domains(), &Data { smoothing, ..Data::default() });
            let mut small = |update| batches.at(update).unwrap().episodes[0].domain == "small";
            (0..1000).filter(|update| small(*update)).count() as f64 / 1000.0
        };
        // 16 : 400 sentences make 1/26 by size, 4 : 20 = 1/6 by their square roots, 1/2 by domains.
        for (smoothing, expected) in [(1.0, 1.0 / 26.0), (0.5, 1.0 / 6.0), (0.0, 0.5)] {
            assert!((share(smoothing) - expected).abs() < 0.05, "{smoothing}");
        }
    }

    #[test]
    fn drawn_episodes_keep_the_limits_on_slots_and_sentences() {
        let settings = Data { max_slots: 2, shots: vec![9], max_support: 4, ..Data::default() };
        let mut batches = batches(domains(), &settings);
        for update in 0..50 {
            let batch = batches.at(update).unwrap();
            let Episode { support, queries, .. } = &batch.episodes[0];
            assert_eq!(support.tag_set().slots().len(), 2);
            assert!(support.sentences().len() <= 4);
            assert!(queries.iter().all(|query| explained(support, query)));
        }
    }

    #[test]
    fn lifelike_episodes_have_labels_without_examples_odd_names_and_sentences_without_slots() {
        let settings = Data {
            vary_slots: true,
            zero_shot: 0.5,
            odd_names: 0.5,
            plain_support: 1.0,
            upper_case: 0.2,
            drop_names: 0.5,
            episodes: 2,
            shots: vec![1, 3],
            ..Data::default()
        };
        let texts =
            ["to Paris/B-city", "at/B-time noon/I-time x", "please play/B-verb it", "hello"];
        let sentences = (0..80).map(|s| sentence(&format!("X{s} {}", texts[s % 4]))).collect();
        let domain = Domain { name: "mixed".into(), sentences };
        let mut batches = Batches::new(Read::Domains(vec![domain]), &settings, 4, 7).unwrap();
        let all: Vec<Batch> = (0..200).map(|update| batches.at(update).unwrap()).collect();
        let episodes: Vec<&Episode> = all.iter().flat_map(|batch| &batch.episodes).collect();
        assert_eq!(episodes.len(), 400);
        let any = |holds: &dyn Fn(&&Episode) -> bool| {
            let n = episodes.iter().filter(|episode| holds(episode)).count();
            assert!((20..380).contains(&n), "{n} of 400");
        };
        any(&|episode| episode.support.tag_set().slots().len() == 1);
        any(&|episode| episode.support.shown_slots().is_empty());
        any(&|episode| {
            let given = episode.support.tag_set().slots().len();
            (1..given).contains(&episode.support.shown_slots().len())
        });
        any(&|episode| {
            let name = |tag: &Tag| episode.support.name_words(tag);
            episode.support.tag_set().tags().iter().any(|tag| name(tag).is_none())
        });
        any(&|episode| {
            let plain = |s: &Sentence| s.tags().all(|tag| *tag == Tag::O);
            episode.support.sentences().iter().any(plain)
        });
        for batch in &all {
            assert!(batch.episodes.iter().all(|episode| episode.queries.len() == 2));
            assert!(batch.names || !batch.episodes.iter().any(|e| needs_names(&e.support)));
            for Episode { support, queries, .. } in &batch.episodes {
                let known = |tag: &Tag| support.tag_set().index_of(tag).is_some();
                assert!(queries.iter().all(|query| query.tags().all(known)));
                let shown = support.shown_slots();
                for slot in support.tag_set().slots().into_iter().filter(|s| !shown.contains(*s)) {
                    assert!(support.name_words(&Tag::B(slot.clone())).is_some(), "mute {slot}");
                }
            }
        }
        let shouted = |batch: &&Batch| words(batch).iter().all(|word| word.to_uppercase() == *word);
        assert!((20..60).contains(&all.iter().filter(shouted).count()));
    }

    #[test]
    fn words_lose_case_and_labels_their_names_as_often_as_told() {
        let settings = Data { lower_case: 0.5, drop_names: 0.25, ..Data::default() };
        let mut batches = batches(domains(), &settings);
        let all: Vec<Batch> = (0..1000).map(|update| batches.at(update).unwrap()).collect();
        let share = |holds: &dyn Fn(&Batch) -> bool| {
            all.iter().filter(|batch| holds(batch)).count() as f64 / 1000.0
        };
        let lower = |batch: &Batch| words(batch).iter().all(|word| word.to_lowercase() == *word);
        assert!((share(&lower) - 0.5).abs() < 0.06);
        assert!((share(&|batch| !batch.names) - 0.25).abs() < 0.06);
    }
}
