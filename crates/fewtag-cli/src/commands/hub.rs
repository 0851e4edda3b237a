//! Files from the Hugging Face hub, through the cache that all its tools share.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use hf_hub::api::sync::ApiBuilder;
use hf_hub::{Cache, Repo, RepoType};

/// How often a broken connection is taken up again.
const RETRIES: usize = 5;

/// Gets those files of a repository that `wanted` picks and returns the directory they lie in together.
///
/// # Errors
///
/// If the hub cannot be reached or has no such revision, or if `wanted` refuses the list of files.
pub(crate) fn fetch(
    name: &str,
    revision: &str,
    wanted: impl for<'a> Fn(&[&'a str]) -> anyhow::Result<Vec<&'a str>>,
) -> anyhow::Result<PathBuf> {
    let hub = ApiBuilder::from_env()
        .with_progress(std::io::stderr().is_terminal())
        .with_retries(RETRIES)
        .build()?;
    let listing = hub.repo(repo(name, revision)).info()?;
    // From here on by commit: a branch that moves meanwhile must not give files of two commits.
    let _ = writeln!(std::io::stderr(), "commit {}", listing.sha);
    let at_commit = hub.repo(repo(name, &listing.sha));
    let files: Vec<&str> = listing.siblings.iter().map(|file| file.rfilename.as_str()).collect();
    let mut dir = PathBuf::new();
    for file in wanted(&files)? {
        let path = at_commit.get(file).with_context(|| format!("cannot download `{file}`"))?;
        path.parent().unwrap_or(Path::new("")).clone_into(&mut dir);
    }
    // So that the branch is found in the cache when the hub is out of reach.
    Cache::from_env().repo(repo(name, revision)).create_ref(&listing.sha)?;
    Ok(dir)
}

/// The directory in the cache that holds `file` of a repository, if it was fetched before.
pub(crate) fn cached(name: &str, revision: &str, file: &str) -> Option<PathBuf> {
    let path = Cache::from_env().repo(repo(name, revision)).get(file)?;
    path.parent().map(Path::to_owned)
}

fn repo(name: &str, revision: &str) -> Repo {
    Repo::with_revision(name.to_owned(), RepoType::Model, revision.to_owned())
}
