//! Algorithm 1 of the paper: minimum-including support sets, and the episodes built on them.
//!
//! A k-shot support set `S` of a domain `D` satisfies
//!
//! ```text
//! (1) every tag of D occurs in at least min(k, available) sentences of S
//! (2) without any one sentence of S, (1) fails                            (if `keep` is 0)
//! ```
//!
//! Counted is per BIO tag (`B-x`, `I-x` and `O` apart) and once per sentence; that reading reproduces
//! the paper's table of average support sizes. The paper's footnote keeps 20 % of the sentences that
//! (2) would remove, so that words which always come together may also come alone.
//!
//! Everything drawn is a function of the domain, the settings and the generator's seed.

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::domain::{Domain, Episode, Sentence, SupportSet};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::tag::{Tag, TagSet};

/// How an episode is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EpisodeSettings {
    /// The paper's `k`: in how many support sentences each tag must occur.
    pub shots: usize,
    /// Query sentences per episode.
    pub queries: usize,
    /// The probability to keep a support sentence that is not needed, `0 ≤ keep ≤ 1`.
    pub keep: f64,
}

impl Default for EpisodeSettings {
    /// The paper's 1-shot episodes.
    fn default() -> Self {
        Self { shots: 1, queries: 20, keep: 0.2 }
    }
}

/// The least number of sentences in which a tag must occur to be sampled, unless told otherwise.
pub const MIN_SENTENCES: usize = 2;

/// What becomes of a sentence that repeats another one, words and tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// It is left out, and no query has the words of a sentence of its support, whatever its tags.
    LeaveOut,
    /// It is drawn like any other, as in the paper: a query may then stand in its own support.
    Keep,
}

/// How many sentences of a domain no episode is drawn from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Those with a tag that is too rare.
    pub rare: usize,
    /// Those that repeat another.
    pub duplicates: usize,
}

impl LeftOut {
    /// All of them.
    #[must_use]
    pub fn n(self) -> usize {
        self.rare + self.duplicates
    }
}

/// The seed of commands that are given none. Any other is as good.
pub const SEED: u64 = 42;

/// A domain, indexed for drawing episodes.
///
/// ```
/// use fewtag::sampler::{Duplicates, MIN_SENTENCES, SEED, Sampler, EpisodeSettings};
/// use fewtag::{Domain, Sentence, Token};
///
/// let token = |word: &str, tag: &str| Ok(Token { word: word.into(), tag: tag.parse()? });
/// let sentence = |city| Sentence::new(vec![token("to", "O")?, token(city, "B-city")?]);
/// let sentences = ["paris", "rome", "oslo"].map(sentence).into_iter().collect::<fewtag::Result<_>>()?;
///
/// let domain = Domain { name: "travel".into(), sentences };
/// let sampler = Sampler::new(domain, MIN_SENTENCES, Duplicates::LeaveOut)?;
/// let settings = EpisodeSettings { shots: 1, queries: 2, keep: 0.0 };
/// for episode in sampler.episodes(settings, SEED).take(10) {
///     assert_eq!(episode?.support.sentences().len(), 1);
/// }
/// # Ok::<(), fewtag::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Sampler {
    domain: Domain,
    pool: Pool,
}

/// What may be drawn from a domain.
#[derive(Debug, Clone)]
struct Pool {
    tag_set: TagSet,
    /// By sentence: the distinct tags in it, as indices of `tag_set`.
    tags_of: Vec<Vec<usize>>,
    /// By tag: the sentences it may be drawn from. Empty if the tag is left out.
    sentences_of: Vec<Vec<usize>>,
    /// By tag: the number of sentences before any was left out as too rare.
    n_at_first: Vec<usize>,
    /// The sentences that contain no tag that is left out.
    eligible: Vec<usize>,
    left_out: Vec<usize>,
    n_duplicates: usize,
    /// By sentence: the first one with its words, so that no query has the words of a support sentence; `None` if it may.
    first_with_words: Option<Vec<usize>>,
}

/// The sentences of one episode as positions in the domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draw {
    /// The support set in the order of selection.
    pub support: Vec<usize>,
    /// The queries: distinct, none of them in `support`.
    pub queries: Vec<usize>,
}

impl Pool {
    fn new(domain: &Domain, min_sentences: usize, duplicates: Duplicates) -> Self {
        let tag_set = domain.tag_set();
        let tags_of: Vec<_> = domain.sentences.iter().map(|s| distinct_tags(s, &tag_set)).collect();
        let mut eligible: Vec<usize> = (0..tags_of.len()).collect();
        if duplicates == Duplicates::LeaveOut {
            let mut seen = HashSet::new();
            eligible.retain(|&s| seen.insert(&domain.sentences[s]));
        }
        let mut pool = Self {
            sentences_of: vec![Vec::new(); tag_set.n_tags()],
            n_at_first: Vec::new(),
            left_out: Vec::new(),
            n_duplicates: tags_of.len() - eligible.len(),
            first_with_words: match duplicates {
                Duplicates::LeaveOut => Some(first_with_words(&domain.sentences)),
                Duplicates::Keep => None,
            },
            tag_set,
            tags_of,
            eligible,
        };
        pool.leave_out_rare(min_sentences);
        pool
    }

    /// Leaves out tags in too few sentences, with these, until none is left that is too rare.
    fn leave_out_rare(&mut self, min_sentences: usize) {
        let Self { tags_of, sentences_of, eligible, left_out, .. } = self;
        let n_tags = sentences_of.len();
        loop {
            sentences_of.iter_mut().for_each(Vec::clear);
            for &s in &*eligible {
                for &tag in &tags_of[s] {
                    sentences_of[tag].push(s);
                }
            }
            if self.n_at_first.is_empty() {
                self.n_at_first = sentences_of.iter().map(Vec::len).collect();
            }
            let rare = |tag: &usize| (1..min_sentences).contains(&sentences_of[*tag].len());
            let too_rare: Vec<usize> = (0..n_tags).filter(rare).collect();
            if too_rare.is_empty() {
                break;
            }
            eligible.retain(|&s| tags_of[s].iter().all(|tag| !too_rare.contains(tag)));
            left_out.extend(too_rare);
        }
        // A tag can also lose its last sentence to another one.
        let lost = |tag: &usize| sentences_of[*tag].is_empty() && !left_out.contains(tag);
        let lost: Vec<usize> = (1..n_tags).filter(lost).collect();
        left_out.extend(lost);
        left_out.sort_unstable();
    }

    fn scarce(&self, shots: usize) -> impl Iterator<Item = usize> {
        (0..self.sentences_of.len())
            .filter(move |&tag| (1..shots).contains(&self.sentences_of[tag].len()))
    }
}

/// The tags of a domain of which a [`Sampler`] would leave out the sentences or has fewer than `shots`, and in how many
/// sentences each occurs.
#[must_use]
pub fn rare_tags(
    domain: &Domain,
    min_sentences: usize,
    duplicates: Duplicates,
    shots: usize,
) -> Vec<(Tag, usize)> {
    let pool = Pool::new(domain, min_sentences, duplicates);
    let mut rare: Vec<usize> = pool.scarce(shots).chain(pool.left_out.iter().copied()).collect();
    rare.sort_unstable();
    let tags = pool.tag_set.tags();
    rare.into_iter().map(|tag| (tags[tag].clone(), pool.n_at_first[tag])).collect()
}

/// By sentence: the first one that has the same words.
fn first_with_words(sentences: &[Sentence]) -> Vec<usize> {
    let mut first = HashMap::new();
    let words = sentences.iter().map(|sentence| sentence.words().collect::<Vec<_>>());
    words.enumerate().map(|(s, words)| *first.entry(words).or_insert(s)).collect()
}

impl Sampler {
    /// Indexes `domain`. A tag in fewer than `min_sentences` sentences is left out, with its sentences;
    /// should that make another tag too rare, so is that one.
    ///
    /// # Errors
    ///
    /// [`Error::NothingToSample`] if no slot remains.
    pub fn new(domain: Domain, min_sentences: usize, duplicates: Duplicates) -> Result<Self> {
        let pool = Pool::new(&domain, min_sentences, duplicates);
        if pool.sentences_of[1..].iter().all(Vec::is_empty) {
            return Err(Error::NothingToSample { domain: domain.name, min_sentences });
        }
        Ok(Self { domain, pool })
    }

    /// The domain that is sampled, with what is left out.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The number of sentences that episodes are drawn from.
    pub fn n_sentences(&self) -> usize {
        self.pool.eligible.len()
    }

    /// The number of the other sentences.
    pub fn left_out_sentences(&self) -> LeftOut {
        let duplicates = self.pool.n_duplicates;
        let rare = self.domain.sentences.len() - duplicates - self.n_sentences();
        LeftOut { rare, duplicates }
    }

    /// The tags that are too rare to be sampled.
    pub fn left_out(&self) -> impl Iterator<Item = &Tag> {
        self.pool.left_out.iter().map(|&tag| &self.pool.tag_set.tags()[tag])
    }

    /// The tags that occur in fewer than `shots` sentences, with the number of these. All of those
    /// sentences are in every support set.
    pub fn scarce(&self, shots: usize) -> impl Iterator<Item = (&Tag, usize)> {
        let Pool { tag_set, sentences_of, .. } = &self.pool;
        self.pool.scarce(shots).map(|tag| (&tag_set.tags()[tag], sentences_of[tag].len()))
    }

    /// Draws a support set by Algorithm 1, as positions in the domain in the order of selection.
    pub fn support(&self, settings: &EpisodeSettings, random: &mut Random) -> Vec<usize> {
        let Pool { tags_of, sentences_of, .. } = &self.pool;
        let needed = |tag: usize| settings.shots.min(sentences_of[tag].len());
        let mut count = vec![0; sentences_of.len()];
        let mut selected = Selection::new(tags_of.len());
        let mut order: Vec<usize> = (0..count.len()).collect();
        random.shuffle(&mut order);
        for tag in order {
            while count[tag] < needed(tag) {
                let s = selected.add_from(&sentences_of[tag], random);
                for &tag in &tags_of[s] {
                    count[tag] += 1;
                }
            }
        }

        let mut support = selected.sentences;
        support.retain(|&s| {
            let superfluous = tags_of[s].iter().all(|&tag| count[tag] > needed(tag));
            let removed = superfluous && random.unit() >= settings.keep;
            if removed {
                for &tag in &tags_of[s] {
                    count[tag] -= 1;
                }
            }
            !removed
        });
        support
    }

    /// Draws a support set and then the queries from the other sentences, without replacement.
    ///
    /// The queries are fewer than `settings.queries` if the domain has no more sentences.
    pub fn draw(&self, settings: &EpisodeSettings, random: &mut Random) -> Draw {
        let support = self.support(settings, random);
        let Pool { eligible, first_with_words, .. } = &self.pool;
        let mut selected = Selection::new(self.domain.sentences.len());
        for &s in &support {
            selected.is_in[s] = true;
        }
        if let Some(first) = first_with_words {
            let of_support: HashSet<usize> = support.iter().map(|&s| first[s]).collect();
            for &s in eligible.iter().filter(|&&s| of_support.contains(&first[s])) {
                selected.is_in[s] = true;
            }
        }
        let n_left = eligible.iter().filter(|&&s| !selected.is_in[s]).count();
        for _ in 0..settings.queries.min(n_left) {
            selected.add_from(eligible, random);
        }
        Draw { support, queries: selected.sentences }
    }

    /// Draws one episode.
    ///
    /// # Errors
    ///
    /// [`Error::TooFewSentences`] if fewer than `settings.queries` sentences are left for queries;
    /// [`Error::EmptySupport`] if `settings.shots` is 0.
    pub fn episode(&self, settings: &EpisodeSettings, random: &mut Random) -> Result<Episode> {
        let draw = self.draw(settings, random);
        if draw.queries.len() < settings.queries {
            return Err(Error::TooFewSentences {
                domain: self.domain.name.clone(),
                support: draw.support.len(),
                left: draw.queries.len(),
                queries: settings.queries,
            });
        }
        let take = |at: &[usize]| at.iter().map(|&s| self.domain.sentences[s].clone()).collect();
        Ok(Episode {
            domain: self.domain.name.clone(),
            support: SupportSet::new(take(&draw.support))?,
            queries: take(&draw.queries),
        })
    }

    /// Draws episodes without end. Episode `i` is a function of the domain's name and content, the
    /// settings, `seed` and `i` alone: it does not depend on the other episodes or domains.
    ///
    /// # Errors
    ///
    /// Each item can fail as [`Sampler::episode`] does.
    pub fn episodes(
        &self,
        settings: EpisodeSettings,
        seed: u64,
    ) -> impl Iterator<Item = Result<Episode>> {
        self.streams(seed).map(move |mut random| self.episode(&settings, &mut random))
    }

    /// The mean number of sentences in the support sets of the first `n` of these episodes; 0 of none.
    pub fn mean_support(&self, settings: &EpisodeSettings, seed: u64, n: usize) -> f64 {
        let size = |mut random| self.support(settings, &mut random).len();
        self.streams(seed).take(n).map(size).sum::<usize>() as f64 / n.max(1) as f64
    }

    /// The generators of the episodes.
    fn streams(&self, seed: u64) -> impl Iterator<Item = Random> + use<> {
        let random = Random::new(seed).named(&self.domain.name);
        (0..).map(move |i| random.stream(i))
    }
}

fn distinct_tags(sentence: &Sentence, tag_set: &TagSet) -> Vec<usize> {
    let index = |tag| tag_set.index_of(tag).expect("the domain's tag set has all its tags");
    let mut tags: Vec<usize> = sentence.tags().map(index).collect();
    tags.sort_unstable();
    tags.dedup();
    tags
}

/// Distinct sentences in the order in which they were drawn.
struct Selection {
    sentences: Vec<usize>,
    is_in: Vec<bool>,
}

impl Selection {
    fn new(n_sentences: usize) -> Self {
        Self { sentences: Vec::new(), is_in: vec![false; n_sentences] }
    }

    /// Adds one of `candidates`, uniformly among those not yet in; there must be one.
    fn add_from(&mut self, candidates: &[usize], random: &mut Random) -> usize {
        loop {
            let s = candidates[random.below(candidates.len())];
            if !self.is_in[s] {
                self.is_in[s] = true;
                self.sentences.push(s);
                return s;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::Token;

    fn domain(sentences: &[&str]) -> Domain {
        let token = |tag: &str| Token { word: "w".into(), tag: tag.parse().unwrap() };
        let sentence = |tags: &&str| Sentence::new(tags.split(' ').map(token).collect()).unwrap();
        Domain { name: "test".into(), sentences: sentences.iter().map(sentence).collect() }
    }

    /// In how many of the given sentences each tag of the domain occurs, counted anew from the tags.
    fn counts<'a>(domain: &'a Domain, chosen: &[usize]) -> Vec<(&'a Tag, usize)> {
        let seen: std::collections::HashSet<&Tag> =
            domain.sentences.iter().flat_map(Sentence::tags).collect();
        let has = |s: &usize, tag: &Tag| domain.sentences[*s].tags().any(|have| have == tag);
        let mut counts: Vec<_> =
            seen.iter().map(|tag| (*tag, chosen.iter().filter(|s| has(s, tag)).count())).collect();
        counts.sort_by_key(|(tag, _)| tag.to_string());
        counts
    }

    /// Criterion (1) of the paper.
    fn covers(domain: &Domain, chosen: &[usize], shots: usize) -> bool {
        let all: Vec<usize> = (0..domain.sentences.len()).collect();
        let available = counts(domain, &all);
        counts(domain, chosen).iter().zip(&available).all(|(have, of)| have.1 >= shots.min(of.1))
    }

    fn any_domain() -> impl Strategy<Value = Domain> {
        let tag = prop::sample::select(vec!["O", "B-a", "I-a", "B-b", "I-b", "B-c-d"]);
        let sentence = prop::collection::vec(tag, 1..6).prop_map(|tags| tags.join(" "));
        prop::collection::vec(sentence, 1..30).prop_map(|mut sentences| {
            sentences.push("B-a".into()); // There is always something to sample.
            domain(&sentences.iter().map(String::as_str).collect::<Vec<_>>())
        })
    }

    /// As [`any_domain`], of so few words that many sentences are the same, or the same but for their tags.
    fn any_domain_of_words() -> impl Strategy<Value = Domain> {
        let tag = prop::sample::select(vec!["O", "B-a", "I-a", "B-b"]);
        let token = (prop::sample::select(vec!["v", "w"]), tag)
            .prop_map(|(word, tag)| Token { word: word.into(), tag: tag.parse().unwrap() });
        let sentence =
            prop::collection::vec(token, 1..4).prop_map(|tokens| Sentence::new(tokens).unwrap());
        prop::collection::vec(sentence, 1..30).prop_map(|mut sentences| {
            sentences.extend(domain(&["B-a"]).sentences); // There is always something to sample.
            Domain { name: "test".into(), sentences }
        })
    }

    proptest! {
        #[test]
        fn a_support_set_covers_every_tag_and_is_minimal_without_keep(
            domain in any_domain(), shots in 1_usize..6, seed: u64
        ) {
            let settings = EpisodeSettings { shots, keep: 0.0, ..EpisodeSettings::default() };
            let sampler = Sampler::new(domain.clone(), 1, Duplicates::Keep).unwrap();
            let support = sampler.support(&settings, &mut Random::new(seed));
            prop_assert!(covers(&domain, &support, shots));
            for without in &support {
                let rest: Vec<usize> = support.iter().copied().filter(|s| s != without).collect();
                prop_assert!(!covers(&domain, &rest, shots));
            }
        }

        #[test]
        fn no_query_repeats_its_support_or_another_query(
            domain in any_domain_of_words(), queries in 0_usize..40, shots in 1_usize..4, seed: u64
        ) {
            let settings = EpisodeSettings { shots, queries, ..EpisodeSettings::default() };
            let sampler = Sampler::new(domain.clone(), 1, Duplicates::LeaveOut).unwrap();
            let distinct: HashSet<&Sentence> = domain.sentences.iter().collect();
            prop_assert_eq!(sampler.n_sentences(), distinct.len());
            let draw = sampler.draw(&settings, &mut Random::new(seed));
            let words = |s: &usize| domain.sentences[*s].words().collect::<Vec<_>>();
            let support: HashSet<Vec<&str>> = draw.support.iter().map(words).collect();
            prop_assert!(draw.queries.iter().all(|query| !support.contains(&words(query))));
            let queried: HashSet<&Sentence> = draw.queries.iter().map(|q| &domain.sentences[*q]).collect();
            prop_assert_eq!(queried.len(), draw.queries.len());
            let left = distinct.iter().filter(|s| !support.contains(&s.words().collect::<Vec<_>>()));
            prop_assert_eq!(draw.queries.len(), queries.min(left.count()));
        }

        #[test]
        fn without_duplicates_both_ways_draw_the_same(
            domain in any_domain_of_words(), seed: u64
        ) {
            let mut domain = domain;
            let mut seen = HashSet::new();
            domain.sentences.retain(|s| seen.insert(s.words().map(str::to_owned).collect::<Vec<_>>()));
            let draw = |duplicates| {
                let sampler = Sampler::new(domain.clone(), 1, duplicates).ok()?;
                Some(sampler.draw(&EpisodeSettings::default(), &mut Random::new(seed)))
            };
            prop_assert_eq!(draw(Duplicates::Keep), draw(Duplicates::LeaveOut));
        }

        #[test]
        fn support_and_queries_are_distinct_sentences(
            domain in any_domain(), queries in 0_usize..40, seed: u64
        ) {
            let settings = EpisodeSettings { queries, ..EpisodeSettings::default() };
            let sampler = Sampler::new(domain.clone(), 1, Duplicates::Keep).unwrap();
            let draw = sampler.draw(&settings, &mut Random::new(seed));
            prop_assert!(covers(&domain, &draw.support, 1));
            let left = domain.sentences.len() - draw.support.len();
            prop_assert_eq!(draw.queries.len(), queries.min(left));
            let mut all = [draw.support, draw.queries].concat();
            let n = all.len();
            all.sort_unstable();
            all.dedup();
            prop_assert_eq!(all.len(), n);
        }
    }

    #[test]
    fn keeping_everything_leaves_the_greedy_selection() {
        // `B-a` alone needs one sentence; only if `B-b` comes later is the first one superfluous.
        let domain = domain(&["B-a", "B-a", "B-a B-b", "B-a B-b"]);
        let sampler = Sampler::new(domain, 1, Duplicates::Keep).unwrap();
        let sizes = |keep: f64| -> usize {
            let settings = EpisodeSettings { keep, ..EpisodeSettings::default() };
            let size = |seed| sampler.support(&settings, &mut Random::new(seed)).len();
            (0..1000).map(size).sum()
        };
        assert_eq!(sizes(0.0), 1000);
        // Tag `B-a` comes first in half of the draws and then takes a sentence without `B-b` in half of them.
        assert!((1200..1300).contains(&sizes(1.0)), "{}", sizes(1.0));
        assert!((1030..1070).contains(&sizes(0.2)), "{}", sizes(0.2));
    }

    #[test]
    fn rare_tags_are_left_out_with_their_sentences() {
        // Without its only `I-b` sentence, `B-b` occurs once: it goes too.
        let domain = domain(&["B-a", "B-a O", "B-b I-b", "B-b", "O"]);
        let sampler = Sampler::new(domain, MIN_SENTENCES, Duplicates::Keep).unwrap();
        let left_out: Vec<String> = sampler.left_out().map(ToString::to_string).collect();
        assert_eq!(left_out, ["B-b", "I-b"]);
        let settings = EpisodeSettings { shots: 5, queries: 9, keep: 0.0 };
        let mut draw = sampler.draw(&settings, &mut Random::new(0));
        draw.support.sort_unstable();
        assert_eq!((draw.support, draw.queries), (vec![0, 1, 4], vec![]));
    }

    #[test]
    fn what_is_left_out_is_counted_once() {
        // The third repeats the first; the second has the only `B-b`.
        let mut domain = domain(&["B-a", "B-b", "B-a", "B-a B-a"]);
        let sampler = Sampler::new(domain.clone(), 2, Duplicates::LeaveOut).unwrap();
        assert_eq!(sampler.n_sentences(), 2);
        assert_eq!(sampler.left_out_sentences(), LeftOut { rare: 1, duplicates: 1 });
        let kept = Sampler::new(domain.clone(), 2, Duplicates::Keep).unwrap();
        assert_eq!((kept.n_sentences(), kept.left_out_sentences().n()), (3, 1));
        let rare = |domain: &Domain, shots| -> Vec<(String, usize)> {
            let rare = rare_tags(domain, 2, Duplicates::LeaveOut, shots);
            rare.into_iter().map(|(tag, n)| (tag.to_string(), n)).collect()
        };
        assert_eq!(rare(&domain, 2), [("B-b".to_owned(), 1)]);
        domain.sentences.push(domain.sentences[1].clone());
        // A repetition is no second sentence.
        assert_eq!(rare(&domain, 3), [("B-a".to_owned(), 2), ("B-b".to_owned(), 1)]);
    }

    #[test]
    fn scarce_tags_are_named_with_their_counts() {
        let sampler = Sampler::new(domain(&["B-a O", "B-a O", "O"]), 2, Duplicates::Keep).unwrap();
        let scarce: Vec<_> = sampler.scarce(3).map(|(tag, n)| (tag.to_string(), n)).collect();
        assert_eq!(scarce, [("B-a".to_owned(), 2)]);
    }

    #[test]
    fn a_domain_without_enough_labels_is_refused() {
        let error = Sampler::new(domain(&["O", "B-a"]), 2, Duplicates::Keep).unwrap_err();
        assert!(matches!(error, Error::NothingToSample { min_sentences: 2, .. }), "{error}");
    }

    #[test]
    fn too_few_sentences_for_the_queries_are_an_error() {
        let sampler = Sampler::new(domain(&["B-a", "B-a", "B-a"]), 2, Duplicates::Keep).unwrap();
        let settings = EpisodeSettings { shots: 1, queries: 3, keep: 0.2 };
        let error = sampler.episode(&settings, &mut Random::new(0)).unwrap_err();
        assert!(matches!(error, Error::TooFewSentences { left: 2, queries: 3, .. }), "{error}");
    }

    #[test]
    fn an_episode_depends_on_seed_and_number_only() {
        let sampler = Sampler::new(
            domain(&["B-a", "B-a O", "B-a I-a", "O B-a I-a", "O"]),
            2,
            Duplicates::Keep,
        )
        .unwrap();
        let settings = EpisodeSettings { shots: 1, queries: 2, keep: 0.2 };
        let take = |seed| -> Vec<Episode> {
            sampler.episodes(settings, seed).take(8).map(Result::unwrap).collect()
        };
        assert_eq!(take(3), take(3));
        assert_ne!(take(3), take(4));
        assert_eq!(sampler.episodes(settings, 3).nth(7).unwrap().unwrap(), take(3)[7]);
        let sizes: usize = take(3).iter().map(|episode| episode.support.sentences().len()).sum();
        let mean = sampler.mean_support(&settings, 3, 8);
        assert!((mean - sizes as f64 / 8.0).abs() < 1e-12, "{mean}");
    }
}
