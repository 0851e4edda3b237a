//! The episodes of an experiment: one file per domain, in the order of the folds.
//!
//! ```text
//! DIR/…1shot…/*.json, DIR/…5shot…/*.json    the authors' episodes, used as they are
//! DIR/*.conll (or any other format)         corpora: episodes are drawn from each by Algorithm 1, and kept
//! ```
//!
//! Domains stand in the order of their file names. Drawn episodes follow the paper's NER experiments: 200 support sets
//! with 20 queries each at one shot, 50 with 20 at five shots. Sentences of more than 60 words are left out.

use std::path::{Path, PathBuf};

use fewtag::Episode;
use fewtag::data::{self, Format, ReadOptions, Wanted};
use fewtag::file;
use fewtag::sampler::{Duplicates, EpisodeSettings, MIN_SENTENCES, Sampler};

use crate::error::{Error, Result};

/// One domain of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corpus {
    /// The short name of the paper's tables, or the domain's own.
    pub name: String,
    /// Its episodes.
    pub path: PathBuf,
    /// The hash of that file.
    pub hash: String,
}

/// Longer sentences of a corpus are left out: a query and a support sentence must fit an encoder together.
const MAX_WORDS: usize = 60;

/// The paper's short names of the Snips domains.
const SNIPS: [(&str, &str); 7] = [
    ("GetWeather", "We"),
    ("PlayMusic", "Mu"),
    ("AddToPlaylist", "Pl"),
    ("RateBook", "Bo"),
    ("SearchScreeningEvent", "Se"),
    ("BookRestaurant", "Re"),
    ("SearchCreativeWork", "Cr"),
];

/// Finds the episodes at `shots` under `dir`, drawing them into `drawn` if it holds corpora.
///
/// # Errors
///
/// If a file cannot be read, or [`Error::TooFewDomains`] if there are not three domains.
pub fn open(dir: &Path, shots: usize, drawn: &Path) -> Result<Vec<Corpus>> {
    let paths = match directory_of(dir, shots)? {
        Some(episodes) => files(&episodes, Wanted::Only(Format::Episodes))?,
        None => draw_all(dir, shots, drawn)?,
    };
    if paths.len() < 3 {
        return Err(Error::TooFewDomains { dir: dir.into(), n_domains: paths.len() });
    }
    paths.into_iter().map(corpus).collect()
}

fn corpus(path: PathBuf) -> Result<Corpus> {
    let hash = file::sha256(&file::read(&path)?);
    let episodes = data::read_episodes(&path)?;
    let domain = episodes.first().map_or("", |episode: &Episode| &episode.domain);
    let short = SNIPS.iter().find(|(long, _)| *long == domain).map(|(_, short)| *short);
    // A number in front of a file's name only says where it stands.
    let own =
        domain.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start_matches(['-', '_']);
    Ok(Corpus { name: short.unwrap_or(own).to_owned(), path, hash })
}

/// The one directory in `dir` whose name says that it holds episodes at `shots`.
fn directory_of(dir: &Path, shots: usize) -> Result<Option<PathBuf>> {
    let says = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().replace(['-', '_'], "");
        path.is_dir() && name.contains(&format!("{shots}shot"))
    };
    Ok(entries(dir)?.into_iter().find(says))
}

fn files(dir: &Path, wanted: Wanted) -> Result<Vec<PathBuf>> {
    Ok(data::find(&[dir.to_owned()], wanted)?.files)
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let fail = |source| Error::file(dir, source);
    let entries = std::fs::read_dir(dir).map_err(fail)?.map(|entry| Ok(entry?.path()));
    let mut entries: Vec<PathBuf> = entries.collect::<std::io::Result<_>>().map_err(fail)?;
    entries.sort();
    Ok(entries)
}

/// Draws episodes from every corpus in `dir`; those that were drawn before from the same bytes are kept.
fn draw_all(dir: &Path, shots: usize, drawn: &Path) -> Result<Vec<PathBuf>> {
    std::fs::create_dir_all(drawn).map_err(|source| Error::file(drawn, source))?;
    let settings = EpisodeSettings { shots, queries: 20, ..EpisodeSettings::default() };
    let n_episodes = if shots == 1 { 200 } else { 50 };
    let draw = |path: PathBuf| {
        let bytes = file::read(&path)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let out = drawn.join(format!("{stem}-{shots}shot-{}.json", &file::sha256(&bytes)[..8]));
        if !out.exists() {
            let mut domains = data::parse(&path, &bytes, &ReadOptions::default())?.domains;
            let mut domain = domains.swap_remove(0);
            domain.sentences.retain(|sentence| sentence.n_words() <= MAX_WORDS);
            let sampler = Sampler::new(domain, MIN_SENTENCES, Duplicates::Keep)?;
            let episodes: Vec<Episode> =
                sampler.episodes(settings, 0).take(n_episodes).collect::<fewtag::Result<_>>()?;
            file::write_atomically_with(&out, |file| data::write_episodes(file, &episodes))?;
        }
        Ok(out)
    };
    // Episodes at other shots are no corpora.
    let is_corpus = |path: &PathBuf| {
        let found = file::read(path).and_then(|bytes| data::detect(path, &bytes));
        !matches!(found, Ok(Format::Episodes))
    };
    files(dir, Wanted::Data)?.into_iter().filter(is_corpus).map(draw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(corpora: &[Corpus]) -> Vec<&str> {
        corpora.iter().map(|corpus| corpus.name.as_str()).collect()
    }

    #[test]
    fn corpora_become_episodes_that_are_drawn_once() {
        let dir = tempfile::tempdir().unwrap();
        let (data, drawn) = (dir.path().join("data"), dir.path().join("drawn"));
        std::fs::create_dir(&data).unwrap();
        let text = "rain\tO\nin\tO\nparis\tB-city\n\n".repeat(30);
        for name in ["1-News.conll", "2-Wiki.conll", "3-Social.conll"] {
            std::fs::write(data.join(name), &text).unwrap();
        }
        let corpora = open(&data, 1, &drawn).unwrap();
        assert_eq!(names(&corpora), ["News", "Wiki", "Social"]);
        let episodes = data::read_episodes(&corpora[0].path).unwrap();
        assert_eq!((episodes.len(), episodes[0].queries.len()), (200, 20));
        let before = std::fs::metadata(&corpora[0].path).unwrap().modified().unwrap();
        assert_eq!(open(&data, 1, &drawn).unwrap(), corpora);
        assert_eq!(std::fs::metadata(&corpora[0].path).unwrap().modified().unwrap(), before);
    }

    #[test]
    fn episode_files_are_found_by_their_shots_and_named_as_in_the_paper() {
        let dir = tempfile::tempdir().unwrap();
        let episode = |domain: &str| {
            let part = r#"{"seq_ins": [["a"]], "seq_outs": [["B-x"]]}"#;
            format!(r#"{{"{domain}": [{{"support": {part}, "query": {part}}}]}}"#)
        };
        let episodes = dir.path().join("snips_5shot");
        std::fs::create_dir(&episodes).unwrap();
        for (n, domain) in ["GetWeather", "PlayMusic", "Other"].into_iter().enumerate() {
            std::fs::write(episodes.join(format!("{n}.json")), episode(domain)).unwrap();
        }
        assert_eq!(names(&open(dir.path(), 5, dir.path()).unwrap()), ["We", "Mu", "Other"]);
    }

    #[test]
    fn two_domains_make_no_fold() {
        let dir = tempfile::tempdir().unwrap();
        let (data, drawn) = (dir.path().join("data"), dir.path().join("drawn"));
        std::fs::create_dir(&data).unwrap();
        let text = (0..30).map(|n| format!("rain\tO\nin\tO\nparis{n}\tB-city\n\n"));
        let text: String = text.collect();
        for name in ["a.conll", "b.conll"] {
            std::fs::write(data.join(name), &text).unwrap();
        }
        std::fs::write(data.join("README.md"), "About [the data](x).\n").unwrap();
        let error = open(&data, 1, &drawn).unwrap_err();
        assert!(matches!(error, Error::TooFewDomains { n_domains: 2, .. }), "{error}");
    }
}
