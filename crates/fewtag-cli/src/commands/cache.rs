//! The file in which rows of large support sets wait for the next command.

use std::path::PathBuf;

use fewtag::Tagger;

/// The most that the file takes: some 170,000 words of examples.
const MOST_BYTES: u64 = 768 << 20;

/// Whether to use it
#[derive(Debug, clap::Args)]
pub(crate) struct CacheArgs {
    /// Read all examples anew, and keep nothing of them for the next time (docs/guide/tagging.md)
    #[arg(long)]
    no_cache: bool,
}

impl CacheArgs {
    /// The tagger, which finds there what was read before.
    pub(crate) fn keep(&self, tagger: Tagger) -> Tagger {
        match directory().filter(|_| !self.no_cache) {
            Some(directory) => tagger.keeping_in(&directory.join("examples"), MOST_BYTES),
            None => tagger,
        }
    }
}

/// `FEWTAG_CACHE`, or where this system keeps what can be made again; none if that is empty or unknown.
fn directory() -> Option<PathBuf> {
    match std::env::var_os("FEWTAG_CACHE") {
        Some(given) => Some(given.into()).filter(|path: &PathBuf| !path.as_os_str().is_empty()),
        None => Some(dirs::cache_dir()?.join("fewtag")),
    }
}
