//! The files of a run: ready episodes, or domains to draw them from.

use std::path::{Path, PathBuf};

use super::config::Evaluation;
use crate::data::{self, Format, ReadOptions};
use crate::domain::{Domain, Episode};
use crate::error::{Error, Result};
use crate::file;
use crate::sampler::{self, Duplicates, Sampler};

/// What files hold.
#[derive(Debug, Clone, PartialEq)]
pub enum Read {
    /// Ready episodes, from episode files.
    Episodes(Vec<Episode>),
    /// Domains to draw episodes from, from files of any other format.
    Domains(Vec<Domain>),
}

impl Read {
    /// Drops the sentences of domains that have more than `max_words` words, and says how many they were.
    /// Ready episodes stay as they are.
    #[must_use]
    pub(crate) fn without_long(mut self, max_words: usize) -> (Self, usize) {
        let mut n_dropped = 0;
        if let Self::Domains(domains) = &mut self {
            for domain in domains {
                let n_sentences = domain.sentences.len();
                domain.sentences.retain(|sentence| sentence.n_words() <= max_words);
                n_dropped += n_sentences - domain.sentences.len();
            }
        }
        (self, n_dropped)
    }
}

/// Reads files, leaving out the domains of these names, or at paths that end so (`snips/weather`).
///
/// # Errors
///
/// If a file cannot be read; [`Error::MixedSources`] if there are both episode files and others.
pub fn read(files: &[PathBuf], leave_out: &[String]) -> Result<Read> {
    let mut episodes = Vec::new();
    let mut domains = Vec::new();
    let is_left_out =
        |path: &Path| leave_out.iter().any(|name| path.with_extension("").ends_with(name));
    for path in files.iter().filter(|path| !is_left_out(path)) {
        let bytes = file::read(path)?;
        if data::detect(path, &bytes)? == Format::Episodes {
            episodes.extend(data::parse_episodes(path, &bytes)?);
        } else {
            domains.extend(data::parse(path, &bytes, &ReadOptions::default())?.domains);
        }
    }
    episodes.retain(|episode| !leave_out.contains(&episode.domain));
    domains.retain(|domain| !leave_out.contains(&domain.name));
    match (episodes.is_empty(), domains.is_empty()) {
        (false, false) => Err(Error::MixedSources),
        (_, true) => Ok(Read::Episodes(episodes)),
        (true, _) => Ok(Read::Domains(domains)),
    }
}

/// The episodes that a model is judged on: the first ones of every domain, or drawn ones.
///
/// Drawn episodes take turns with the given shots and do not depend on the run's seed, so that runs with
/// several seeds are judged on the same ones.
///
/// # Errors
///
/// If a domain is too small to draw episodes from.
pub(crate) fn judged_episodes(
    read: Read,
    shots: &[usize],
    limits: &Evaluation,
) -> Result<Vec<Episode>> {
    match read {
        Read::Episodes(episodes) => Ok(first_of_each_domain(episodes, limits)),
        Read::Domains(domains) => {
            let mut episodes = Vec::new();
            for domain in domains {
                let sampler = Sampler::new(domain, sampler::MIN_SENTENCES, Duplicates::Keep)?;
                for (&shots, i) in shots.iter().cycle().zip(0..limits.episodes) {
                    let settings = sampler::EpisodeSettings {
                        shots,
                        queries: limits.queries,
                        ..Default::default()
                    };
                    episodes.extend(sampler.episodes(settings, 0).nth(i).transpose()?);
                }
            }
            Ok(episodes)
        }
    }
}

/// The episodes that a finished model is scored on: all of an episode file, or as many as the paper draws.
///
/// # Errors
///
/// As [`judged_episodes`].
pub fn test_episodes(read: Read, shots: &[usize]) -> Result<Vec<Episode>> {
    let limits = match read {
        Read::Episodes(_) => Evaluation { episodes: 0, queries: 0, ..Evaluation::default() },
        Read::Domains(_) => Evaluation { episodes: 100, queries: 20, ..Evaluation::default() },
    };
    judged_episodes(read, shots, &limits)
}

/// 0 stands for all.
fn first_of_each_domain(mut episodes: Vec<Episode>, limits: &Evaluation) -> Vec<Episode> {
    let unlimited = |limit: usize| if limit == 0 { usize::MAX } else { limit };
    let mut seen = std::collections::BTreeMap::new();
    episodes.retain(|episode| {
        let n = seen.entry(episode.domain.clone()).or_insert(0);
        *n += 1;
        *n <= unlimited(limits.episodes)
    });
    for episode in &mut episodes {
        episode.queries.truncate(unlimited(limits.queries));
    }
    episodes
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONLL: &str = "in O\nparis B-city\n\nin O\nrome B-city\n\noslo B-city\nnow O\n\n";

    fn dir() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.conll", "a.conll", "c.conll"] {
            std::fs::write(dir.path().join(name), CONLL).unwrap();
        }
        dir
    }

    fn files(dir: &tempfile::TempDir) -> Vec<PathBuf> {
        data::find(&[dir.path().into()], data::Wanted::Data).unwrap().files
    }

    #[test]
    fn a_directory_is_read_in_order_of_names_without_what_is_left_out() {
        let dir = dir();
        let Read::Domains(domains) = read(&files(&dir), &["b".into()]).unwrap() else {
            panic!("columns are domains");
        };
        let names: Vec<&str> = domains.iter().map(|domain| domain.name.as_str()).collect();
        assert_eq!(names, ["a", "c"]);
    }

    #[test]
    fn a_domain_is_left_out_by_the_end_of_its_path() {
        let dir = dir();
        let name = dir.path().file_name().unwrap().to_string_lossy().into_owned();
        let files = ["a", "b", "c"].map(|name| dir.path().join(name).with_extension("conll"));
        let names = |leave_out: String| match read(&files, &[leave_out]).unwrap() {
            Read::Domains(domains) => domains.into_iter().map(|domain| domain.name).collect(),
            Read::Episodes(_) => Vec::new(),
        };
        assert_eq!(names(format!("{name}/b")), ["a", "c"]);
        assert_eq!(names("elsewhere/b".into()), ["a", "b", "c"]);
    }

    #[test]
    fn long_sentences_are_dropped_and_counted() {
        let read = read(&[dir().path().join("a.conll")], &[]).unwrap();
        assert_eq!(read.clone().without_long(2), (read.clone(), 0));
        let (Read::Domains(domains), 3) = read.without_long(1) else {
            panic!("all have two words")
        };
        assert!(domains[0].sentences.is_empty());
    }

    #[test]
    fn episodes_and_domains_do_not_mix() {
        let dir = dir();
        let part = r#"{"seq_ins": [["in", "rome"]], "seq_outs": [["O", "B-city"]]}"#;
        let json = format!(r#"{{"d": [{{"support": {part}, "query": {part}}}]}}"#);
        let file = dir.path().join("episodes.json");
        std::fs::write(&file, json).unwrap();
        assert!(matches!(read(&[file], &[]).unwrap(), Read::Episodes(all) if all.len() == 1));
        assert!(matches!(read(&files(&dir), &[]), Err(Error::MixedSources)));
    }

    #[test]
    fn drawn_dev_episodes_take_turns_with_the_shots() {
        let read = read(&[dir().path().join("a.conll")], &[]).unwrap();
        let limits = Evaluation { episodes: 3, queries: 1, ..Evaluation::default() };
        let episodes = judged_episodes(read, &[1, 2], &limits).unwrap();
        let sizes: Vec<usize> = episodes.iter().map(|e| e.support.sentences().len()).collect();
        assert_eq!(sizes, [1, 2, 1]);
    }

    #[test]
    fn of_an_episode_file_the_first_episodes_and_queries_are_taken() {
        let read = read(&[dir().path().join("a.conll")], &[]).unwrap();
        let limits = Evaluation { episodes: 4, queries: 2, ..Evaluation::default() };
        let all = judged_episodes(read, &[1], &limits).unwrap();
        let limits = Evaluation { episodes: 2, queries: 1, ..Evaluation::default() };
        let some = judged_episodes(Read::Episodes(all.clone()), &[1], &limits).unwrap();
        assert_eq!((some.len(), some[1].queries.len()), (2, 1));
        let limits = Evaluation { episodes: 0, queries: 0, ..Evaluation::default() };
        assert_eq!(judged_episodes(Read::Episodes(all.clone()), &[1], &limits).unwrap(), all);
    }
}
