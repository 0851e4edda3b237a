//! What a command reads: files, the files of directories, and standard input, which is `-` in every command.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use fewtag::data::{self, Format, Found, Wanted};
use fewtag::{Episode, file};

use crate::outputs::Inputs;
use crate::progress::warn;

/// The files among `paths`, and those in the directories among them that are wanted; what else is in these is told.
///
/// Refuses to print into one of them, and to read standard input twice.
pub(crate) fn files(paths: &[PathBuf], wanted: Wanted) -> anyhow::Result<Vec<PathBuf>> {
    refuse_standard_input_twice(paths)?;
    let Found { files, left_out } = data::find(paths, wanted)?;
    warn_of_left_out(&left_out);
    Inputs::new(&files).refuse_standard_output()?;
    Ok(files)
}

/// Refuses to read standard input twice.
pub(crate) fn refuse_standard_input_twice<'a>(
    paths: impl IntoIterator<Item = &'a PathBuf>,
) -> anyhow::Result<()> {
    let n_standard = paths.into_iter().filter(|path| is_standard_input(path)).count();
    ensure!(n_standard < 2, "`-` stands twice, but standard input can be read only once");
    Ok(())
}

/// Tells which files of directories are no data.
pub(crate) fn warn_of_left_out(files: &[PathBuf]) {
    const SHOWN: usize = 5;
    if files.is_empty() {
        return;
    }
    let shown: Vec<String> =
        files.iter().take(SHOWN).map(|path| path.display().to_string()).collect();
    let more = match files.len().saturating_sub(SHOWN) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    warn(&format!("left out as no data: {}{more}", shown.join(", ")));
}

/// Whether this stands for standard input.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// How messages name what is read.
pub(crate) fn name(path: &Path) -> &Path {
    if is_standard_input(path) { Path::new("stdin") } else { path }
}

/// The content of a file or of standard input.
pub(crate) fn read(path: &Path) -> fewtag::Result<Vec<u8>> {
    if !is_standard_input(path) {
        return file::read(path);
    }
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    read.map_err(|source| fewtag::Error::File { path: name(path).to_owned(), source })?;
    Ok(bytes)
}

/// An episode file that was read.
pub(crate) struct EpisodeFile {
    pub(crate) path: PathBuf,
    /// The checksum of its bytes.
    pub(crate) sha256: String,
    pub(crate) episodes: Vec<Episode>,
}

/// Reads the episode files among `paths` and in the directories among them; each has an episode.
pub(crate) fn episodes(paths: &[PathBuf]) -> anyhow::Result<Vec<EpisodeFile>> {
    let read = |path: PathBuf| {
        let bytes = read(&path)?;
        let episodes = data::parse_episodes(name(&path), &bytes)?;
        ensure!(!episodes.is_empty(), "`{}` holds no episode", name(&path).display());
        Ok(EpisodeFile { path, sha256: file::sha256(&bytes), episodes })
    };
    files(paths, Wanted::Only(Format::Episodes))?.into_iter().map(read).collect()
}
