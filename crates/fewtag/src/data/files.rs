//! Which files to read: a directory stands for the files of data in it, at any depth.
//!
//! ```text
//! paths ─ find ─▶ files, in the order of the paths and within a directory by name;  left_out: what is no data
//! ```
//!
//! A file that was named is taken as it is. Of a directory, hidden files are not looked at, and of the others those are
//! data whose content is ([`detect`](super::detect)): texts about the data, such as `README.md`, are left out, and what was
//! left out is told. As `](` also stands in Markdown and in programs, only a file `*.txt` or `*.inline` can be `inline`.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::data::{At, Format, Place, Problem, detect};
use crate::error::{Error, Result};
use crate::file;

/// Which files of a directory are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Labelled sentences in any format.
    Data,
    /// Labelled sentences in this format only.
    Only(Format),
    /// Whatever may be read as this format, because it was said to be that.
    ReadAs(Format),
    /// Any text.
    Text,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The files to read.
    pub files: Vec<PathBuf>,
    /// The files of directories that are not wanted.
    pub left_out: Vec<PathBuf>,
}

/// The files among `paths`, and those in the directories among them that are wanted.
///
/// # Errors
///
/// [`Error::File`] if a directory cannot be read, [`Problem::NoData`] if nothing in it is wanted.
pub fn find(paths: &[PathBuf], wanted: Wanted) -> Result<Found> {
    let mut found = Found::default();
    for path in paths {
        if !path.is_dir() {
            found.files.push(path.clone());
            continue;
        }
        let n_before = found.files.len();
        walk(path, wanted, &mut HashSet::new(), &mut found)?;
        if found.files.len() == n_before {
            return Err(Place::new(path, At::File).error(Problem::NoData));
        }
    }
    Ok(found)
}

/// Goes through a directory unless it was `seen`: a link to a directory above it is no endless way.
fn walk(dir: &Path, wanted: Wanted, seen: &mut HashSet<PathBuf>, found: &mut Found) -> Result<()> {
    let fail = |source| Error::File { path: dir.to_owned(), source };
    if !seen.insert(dir.canonicalize().map_err(fail)?) {
        return Ok(());
    }
    let entries = std::fs::read_dir(dir).map_err(fail)?.map(|entry| Ok(entry?.path()));
    let mut entries: Vec<PathBuf> = entries.collect::<std::io::Result<_>>().map_err(fail)?;
    entries.sort();
    for path in entries {
        if name(&path).starts_with('.') {
            continue;
        }
        if path.is_dir() {
            walk(&path, wanted, seen, found)?;
        } else if path.is_file() && is_wanted(&path, wanted)? {
            found.files.push(path);
        } else {
            found.left_out.push(path);
        }
    }
    Ok(())
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().to_lowercase()
}

fn is_wanted(path: &Path, wanted: Wanted) -> Result<bool> {
    if is_about_data(path) {
        return Ok(false);
    }
    if matches!(wanted, Wanted::ReadAs(_) | Wanted::Text) {
        return starts_as_text(path);
    }
    let may_be_inline = has_ending(path, &["txt", "inline"]);
    Ok(match (detect(path, &file::read(path)?), wanted) {
        (Ok(found), Wanted::Only(format)) => found == format,
        (Ok(Format::Inline), _) => may_be_inline,
        (found, _) => found.is_ok(),
    })
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    endings.contains(&ending.as_str())
}

/// Whether a file only tells about the others.
fn is_about_data(path: &Path) -> bool {
    const STEMS: [&str; 7] =
        ["readme", "license", "licence", "copying", "notice", "citation", "changelog"];
    const ENDINGS: [&str; 5] = ["md", "markdown", "rst", "html", "htm"];
    let name = name(path);
    STEMS.contains(&name.split('.').next().unwrap_or_default()) || has_ending(path, &ENDINGS)
}

/// Whether the first bytes are text and there are any.
fn starts_as_text(path: &Path) -> Result<bool> {
    const LOOK_AT: u64 = 1 << 13;
    let fail = |source| Error::File { path: path.to_owned(), source };
    let mut start = Vec::new();
    let file = std::fs::File::open(path).map_err(fail)?;
    file.take(LOOK_AT).read_to_end(&mut start).map_err(fail)?;
    let is_text = match std::str::from_utf8(&start) {
        Ok(text) => !text.trim().is_empty(),
        // The last character may be cut.
        Err(error) => error.error_len().is_none() && error.valid_up_to() > 0,
    };
    Ok(is_text && !start.contains(&0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONLL: &str = "in O\nparis B-city\n";
    const EPISODES: &str = r#"{"d": [{"support": {"seq_ins": [["a"]], "seq_outs": [["B-x"]]}, "query": {"seq_ins": [["a"]], "seq_outs": [["B-x"]]}}]}"#;

    fn dir() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for sub in ["b", "b/c", ".git"] {
            std::fs::create_dir(dir.path().join(sub)).unwrap();
        }
        for (name, text) in [
            ("z.conll", CONLL),
            ("b/y.conll", CONLL),
            ("b/c/x.json", EPISODES),
            ("b/c/w.txt", "[nina](artist) sings\n"),
            (".git/hidden.conll", CONLL),
            ("README.md", "See [the paper](x).\n"),
            ("LICENSE", CONLL),
            ("b/script.py", "a[0](x)\n"),
            ("b/empty.conll", "\n"),
            ("b/x.manifest.json", "{\"fewtag\": \"0.1.0\"}"),
            ("b/binary", "\0\u{1}"),
        ] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        dir
    }

    fn names(dir: &tempfile::TempDir, paths: &[PathBuf]) -> Vec<String> {
        let inside = |path: &PathBuf| path.strip_prefix(dir.path()).unwrap().to_owned();
        paths.iter().map(|path| inside(path).to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn a_directory_stands_for_its_data_at_any_depth_and_the_rest_is_told() {
        let dir = dir();
        let found = find(&[dir.path().into()], Wanted::Data).unwrap();
        let files = ["b/c/w.txt", "b/c/x.json", "b/y.conll", "z.conll"];
        assert_eq!(names(&dir, &found.files), files);
        let rest = [
            "LICENSE",
            "README.md",
            "b/binary",
            "b/empty.conll",
            "b/script.py",
            "b/x.manifest.json",
        ];
        assert_eq!(names(&dir, &found.left_out), rest);
    }

    #[test]
    fn one_format_can_be_asked_for() {
        let dir = dir();
        let files = |wanted| {
            let found = find(&[dir.path().into()], wanted).unwrap();
            names(&dir, &found.files)
        };
        assert_eq!(files(Wanted::Only(Format::Episodes)), ["b/c/x.json"]);
        // What is said to be columns is read as columns, if it is text at all.
        let texts =
            ["b/c/w.txt", "b/c/x.json", "b/script.py", "b/x.manifest.json", "b/y.conll", "z.conll"];
        assert_eq!(files(Wanted::ReadAs(Format::Conll)), texts);
        assert_eq!(files(Wanted::Text), texts);
    }

    #[test]
    fn what_was_named_is_taken_and_a_directory_without_data_refused() {
        let dir = dir();
        let readme = dir.path().join("README.md");
        let found = find(std::slice::from_ref(&readme), Wanted::Data).unwrap();
        assert_eq!(found, Found { files: vec![readme], left_out: vec![] });
        let error = find(&[dir.path().join(".git")], Wanted::Only(Format::Rasa)).unwrap_err();
        assert!(error.to_string().contains("holds no data"), "{error}");
        assert!(find(&[dir.path().join("none")], Wanted::Data).is_ok(), "left to the reader");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_directory_above_is_no_endless_way() {
        let dir = dir();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("b/up")).unwrap();
        let found = find(&[dir.path().into()], Wanted::Data).unwrap();
        assert_eq!(found.files.len(), 4);
    }

    #[test]
    fn a_character_that_is_cut_by_looking_is_still_text() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, format!("a{}", "é".repeat(1 << 13))).unwrap();
        assert!(starts_as_text(&path).unwrap());
        std::fs::write(&path, b"a\xE4b").unwrap();
        assert!(!starts_as_text(&path).unwrap());
    }
}
