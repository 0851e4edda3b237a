//! The official episode JSON of the paper's authors.
//!
//! ```text
//! {"GetWeather": [{"support": PART, "query": PART}, …], …}
//! PART = {"seq_ins": [["rain", "in", "paris"], …], "seq_outs": [["O", "O", "B-city"], …], "labels": …}
//! ```
//!
//! `batch` is read as `query`. `labels` and every other field is skipped: old files carry word pieces, too.
//! Read as a corpus, a domain holds all its supports and queries one after the other; written from a corpus,
//! a domain is one episode whose support is everything and whose queries are none.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use serde::Deserialize;

use crate::data::{At, Codec, Collector, Corpus, Place, Problem, Render, UNNAMED, json};
use crate::domain::{Episode, Sentence, SupportSet};
use crate::error::{Error, Result};
use crate::scheme::Scheme;

pub(super) struct Episodes;

#[derive(Deserialize)]
struct RawEpisode<'t> {
    #[serde(borrow)]
    support: RawPart<'t>,
    #[serde(borrow, alias = "batch")]
    query: RawPart<'t>,
}

#[derive(Deserialize)]
struct RawPart<'t> {
    seq_ins: Vec<Vec<String>>,
    #[serde(borrow)]
    seq_outs: Vec<Vec<RawTag<'t>>>,
}

#[derive(Deserialize)]
struct RawTag<'t>(#[serde(borrow)] Cow<'t, str>);

impl AsRef<str> for RawTag<'_> {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Codec for Episodes {
    fn read(&self, text: &str, into: &mut Collector) -> Result<()> {
        let file: json::InOrder<Vec<RawEpisode>> =
            json::parse(text).map_err(|(at, problem)| into.error(at, problem))?;
        for (domain, episodes) in file.0 {
            for (i, RawEpisode { support, query }) in episodes.into_iter().enumerate() {
                let (domain, episode) = (domain.clone(), i + 1);
                let n_support = add_part((&domain, episode, "support"), support, into)?;
                let n_queries = add_part((&domain, episode, "query"), query, into)?;
                into.add_episode(EpisodeSize { domain, episode, n_support, n_queries });
            }
        }
        Ok(())
    }

    fn renderer(&self, _: Scheme) -> Box<dyn Render + Send> {
        Box::new(OneEpisode::default())
    }
}

/// Adds the sentences of a support or of its queries and returns how many were kept.
fn add_part(
    (domain, episode, part): (&str, usize, &'static str),
    sentences: RawPart,
    into: &mut Collector,
) -> Result<usize> {
    let at = |sentence| At::Episode { domain: domain.to_owned(), episode, part, sentence };
    let (n_ins, n_outs) = (sentences.seq_ins.len(), sentences.seq_outs.len());
    if n_ins != n_outs {
        return Err(into.error(at(n_ins.min(n_outs) + 1), Problem::UnequalParts { n_ins, n_outs }));
    }
    let n_before = into.n_sentences();
    for (i, (words, tags)) in sentences.seq_ins.into_iter().zip(&sentences.seq_outs).enumerate() {
        into.add_tagged(Some(domain), (words, tags), || at(i + 1))?;
    }
    Ok(into.n_sentences() - n_before)
}

/// How many sentences of a domain an episode has, support before queries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EpisodeSize {
    domain: String,
    /// Counted from 1 within the domain.
    episode: usize,
    n_support: usize,
    n_queries: usize,
}

impl Corpus {
    /// The episodes of an episode file, none of any other; `path` is only named in errors.
    ///
    /// # Errors
    ///
    /// If a support set labels no slot.
    pub fn into_episodes(self, path: &Path) -> Result<Vec<Episode>> {
        // A domain's key is unique, so the sentences stand in the order of the file.
        let mut sentences = self.domains.into_iter().flat_map(|domain| domain.sentences);
        let mut take = |n| sentences.by_ref().take(n).collect::<Vec<_>>();
        let episode = |EpisodeSize { domain, episode, n_support, n_queries }| {
            let support = SupportSet::new(take(n_support)).map_err(|cause| {
                let domain = domain.clone();
                let at = At::Episode { domain, episode, part: "support", sentence: 1 };
                Place::new(path, at).error(Problem::Sentence(Box::new(cause)))
            })?;
            Ok(Episode { domain, support, queries: take(n_queries) })
        };
        self.episode_sizes.into_iter().map(episode).collect()
    }
}

/// Writes episodes one at a time, so that a file of any number needs the memory of one.
pub struct EpisodeWriter<W> {
    out: W,
    /// The domains so far; the last one is still open.
    domains: Vec<String>,
}

impl<W: Write> EpisodeWriter<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, domains: Vec::new() }
    }

    /// Writes one episode.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] if the output fails.
    ///
    /// # Panics
    ///
    /// If the episodes of a domain do not come one after the other: its key would stand in the file twice.
    pub fn episode(&mut self, episode: &Episode) -> Result<()> {
        let mut text = String::new();
        if self.domains.last() == Some(&episode.domain) {
            text.push_str(",\n");
        } else {
            assert!(!self.domains.contains(&episode.domain), "`{}` comes back", episode.domain);
            text.push_str(if self.domains.is_empty() { "{" } else { "],\n" });
            json::push(&episode.domain, &mut text);
            text.push_str(": [");
            self.domains.push(episode.domain.clone());
        }
        text.push_str("{\"support\": ");
        push_part(episode.support.sentences(), &episode.domain, &mut text);
        text.push_str(", \"query\": ");
        push_part(&episode.queries, &episode.domain, &mut text);
        text.push('}');
        self.out.write_all(text.as_bytes()).map_err(Error::Write)
    }

    /// Closes the file and returns the output.
    ///
    /// # Errors
    ///
    /// [`Error::Write`] if the output fails.
    pub fn finish(mut self) -> Result<W> {
        let foot = if self.domains.is_empty() { "{}\n" } else { "]}\n" };
        self.out.write_all(foot.as_bytes()).map_err(Error::Write)?;
        Ok(self.out)
    }
}

/// `labels` names the domain once per sentence, as the official files do.
fn push_part(sentences: &[Sentence], domain: &str, out: &mut String) {
    out.push_str("{\"seq_ins\": ");
    json::push_list(sentences, out, |sentence, out| {
        json::push_list(sentence.words(), out, json::push);
    });
    out.push_str(", \"seq_outs\": ");
    json::push_list(sentences, out, push_tags);
    out.push_str(", \"labels\": ");
    json::push_list(sentences, out, |_, out| json::push(domain, out));
    out.push('}');
}

fn push_tags(sentence: &Sentence, out: &mut String) {
    json::push_list(sentence.tags(), out, |tag, out| json::push(&tag.to_string(), out));
}

/// Every domain as one episode without queries.
#[derive(Default)]
struct OneEpisode {
    n_domains: usize,
    n_sentences: usize,
    /// `seq_outs` so far: it stands behind all of `seq_ins`.
    tags: String,
}

impl Render for OneEpisode {
    fn begin(&mut self, out: &mut String) {
        out.push('{');
    }

    fn begin_domain(&mut self, name: Option<&str>, out: &mut String) {
        out.push_str(if self.n_domains > 0 { ",\n" } else { "" });
        json::push(name.unwrap_or(UNNAMED), out);
        out.push_str(": [{\"support\": {\"seq_ins\": [");
        self.n_domains += 1;
        self.n_sentences = 0;
    }

    fn sentence(&mut self, sentence: &Sentence, out: &mut String) -> Result<()> {
        if self.n_sentences > 0 {
            out.push_str(", ");
            self.tags.push_str(", ");
        }
        json::push_list(sentence.words(), out, json::push);
        push_tags(sentence, &mut self.tags);
        self.n_sentences += 1;
        Ok(())
    }

    fn end_domain(&mut self, out: &mut String) {
        out.extend(["], \"seq_outs\": [", &std::mem::take(&mut self.tags), "]}, "]);
        out.push_str("\"query\": {\"seq_ins\": [], \"seq_outs\": []}}]");
    }

    fn end(&mut self, out: &mut String) {
        out.push_str("}\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{parse_episodes, write_episodes};

    fn parse(path: &Path, text: &str) -> Result<Vec<Episode>> {
        parse_episodes(path, text.as_bytes())
    }

    fn refusal(text: &str) -> String {
        crate::error::chain(&parse(Path::new("x.json"), text).unwrap_err())
    }

    const PART: &str =
        r#"{"seq_ins": [["rain", "in", "paris"]], "seq_outs": [["O", "O", "B-city"]]}"#;

    #[test]
    fn both_variants_are_read() {
        let old = PART.replace(
            "\"seq_ins\"",
            r#""labels": "GetWeather", "word_piece_marks": [[0, 1]], "seq_ins""#,
        );
        for (key, part) in [("query", PART), ("batch", &old)] {
            let text = format!(r#"{{"GetWeather": [{{"support": {part}, "{key}": {part}}}]}}"#);
            let episodes = parse(Path::new("x.json"), &text).unwrap();
            assert_eq!(episodes.len(), 1);
            assert_eq!(episodes[0].domain, "GetWeather");
            assert_eq!(episodes[0].support.sentences(), episodes[0].queries);
            assert_eq!(episodes[0].queries[0].spans()[0].slot.as_str(), "city");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = format!(
            r#"{{"b": [{{"support": {PART}, "query": {PART}}}], "a": [{{"support": {PART}, "query": {PART}}}]}}"#
        );
        let mut episodes = parse(Path::new("x.json"), &text).unwrap();
        episodes[0].queries.clear();
        let mut out = Vec::new();
        write_episodes(&mut out, &episodes).unwrap();
        assert_eq!(
            parse(Path::new("x.json"), std::str::from_utf8(&out).unwrap()).unwrap(),
            episodes
        );
    }

    #[test]
    fn duplicate_keys_are_refused_even_where_nobody_looks() {
        let episode =
            format!(r#"[{{"support": {PART}, "query": {PART}, "extra": [{{"k": 1, "k": 2}}]}}]"#);
        let message = refusal(&format!("{{\"a\": {episode}}}"));
        assert!(message.contains("the key \"k\" occurs twice"), "{message}");
        let episode = episode.replace(r#""k": 2"#, r#""l": 2"#);
        let message = refusal(&format!("{{\"a\": {episode},\n\"a\": {episode}}}"));
        assert!(
            message.starts_with("x.json:2: ") && message.contains("the key \"a\" occurs twice"),
            "{message}"
        );
    }

    #[test]
    fn unequal_lists_are_refused_with_their_place() {
        let part = r#"{"seq_ins": [["a"], ["b", "c"]], "seq_outs": [["B-x"], ["O"]]}"#;
        let message = refusal(&format!(r#"{{"D": [{{"support": {PART}, "query": {part}}}]}}"#));
        assert_eq!(message, "x.json: D, episode 1, query sentence 2: 2 words but 1 tag");
        let part = r#"{"seq_ins": [["a"]], "seq_outs": []}"#;
        let message = refusal(&format!(r#"{{"D": [{{"support": {part}, "query": {PART}}}]}}"#));
        assert!(message.contains("`seq_ins` has 1 sentence but `seq_outs` has 0"), "{message}");
    }

    #[test]
    fn a_support_set_without_slots_is_refused() {
        let plain = PART.replace("B-city", "O");
        let message = refusal(&format!(r#"{{"D": [{{"support": {plain}, "query": {PART}}}]}}"#));
        assert_eq!(
            message,
            "x.json: D, episode 1, support sentence 1: the support set labels no slot"
        );
    }

    #[test]
    fn a_missing_part_is_refused() {
        assert!(refusal(r#"{"D": [{"support": {}}]}"#).contains("missing field `seq_ins`"));
        assert!(refusal("[]").contains("expected an object with a key per domain"));
    }
}
