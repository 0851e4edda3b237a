//! Files: read as checked UTF-8, written whole or not at all.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::data::{At, Place, Problem};
use crate::error::{Error, Result};

/// How the names of temporary files start, so that leftovers of a killed process can be told.
pub(crate) const TEMPORARY: &str = ".fewtag-";

/// The whole file as it is.
///
/// # Errors
///
/// [`Error::File`] if it cannot be read, [`Problem::Directory`] if it is none.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let fail = |source| Error::File { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(fail)?;
    let metadata = file.metadata().map_err(fail)?;
    if metadata.is_dir() {
        return Err(Place::new(path, At::File).error(Problem::Directory));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    file.read_to_end(&mut bytes).map_err(fail)?;
    Ok(bytes)
}

/// `bytes` as text, without a UTF-8 byte order mark. `path` is only named in errors.
///
/// # Errors
///
/// [`Problem::Utf16`] and [`Problem::NotUtf8`], the latter with the position of the first bad byte.
pub fn text<'a>(path: &Path, bytes: &'a [u8]) -> Result<&'a str> {
    if bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF") {
        return Err(Place::new(path, At::File).error(Problem::Utf16));
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_err(|cause| {
        let good = &bytes[..cause.valid_up_to()];
        let line = memchr::memchr_iter(b'\n', good).count() + 1;
        Place::new(path, At::Line(line)).error(Problem::NotUtf8 { byte: good.len() })
    })
}

/// Writes a file so that a reader sees the old content or the new, never a part.
///
/// # Errors
///
/// [`Error::File`] if any step fails; the old file is then untouched.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    write_atomically_with(path, |file| file.write_all(bytes).map_err(Error::Write))
}

/// As [`write_atomically`], for content that is made piece by piece: `fill` writes to a temporary file
/// in the same directory, which is then synchronised and renamed. Behind a link, the file it points to is replaced.
/// What is no file, such as `/dev/null` or a pipe, is written to as it is.
///
/// # Errors
///
/// What `fill` returns, or [`Error::File`]; the old file is then untouched.
pub fn write_atomically_with(
    path: &Path,
    fill: impl FnOnce(&mut File) -> Result<()>,
) -> Result<()> {
    let fail = |source| Error::File { path: path.to_owned(), source: without_path(source) };
    let fill = |file: &mut File| {
        fill(file).map_err(|error| match error {
            Error::Write(source) => fail(source),
            other => other,
        })
    };
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return fill(&mut File::options().write(true).open(path).map_err(fail)?);
    }
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let directory = match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    // A temporary file is private by default; a result should be as readable as any new file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(directory).map_err(fail)?;
    fill(file.as_file_mut())?;
    file.as_file().sync_all().map_err(fail)?;
    file.persist(&target).map_err(|error| fail(error.error))?;
    Ok(())
}

/// The error without the name of the temporary file, which means nothing to anybody.
fn without_path(error: io::Error) -> io::Error {
    if error.raw_os_error().is_some() {
        return error;
    }
    let cause = error.get_ref().and_then(|named| named.source());
    let code = cause.and_then(|cause| cause.downcast_ref()).and_then(io::Error::raw_os_error);
    code.map_or_else(|| io::Error::from(error.kind()), io::Error::from_raw_os_error)
}

/// Removes what a killed process left behind in a directory where nobody else writes now.
///
/// # Errors
///
/// [`Error::File`] if the directory cannot be read or something in it not removed.
pub fn remove_leftovers(directory: &Path) -> Result<()> {
    let fail = |path: &Path, source| Error::File { path: path.to_owned(), source };
    for entry in std::fs::read_dir(directory).map_err(|source| fail(directory, source))? {
        let path = entry.map_err(|source| fail(directory, source))?.path();
        let name = path.file_name().unwrap_or_default();
        if !name.as_encoded_bytes().starts_with(TEMPORARY.as_bytes()) {
            continue;
        }
        let removed = if path.is_dir() {
            std::fs::remove_dir_all(&path)
        } else {
            std::fs::remove_file(&path)
        };
        removed.map_err(|source| fail(&path, source))?;
    }
    Ok(())
}

/// The SHA-256 of `bytes` in hexadecimal digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The same of a file, which is read piece by piece: the weights of an encoder need not fit the memory.
///
/// # Errors
///
/// [`Error::File`] if it cannot be read.
pub fn sha256_of_file(path: &Path) -> Result<String> {
    let fail = |source| Error::File { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(fail)?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer).map_err(fail)? {
            0 => return Ok(hex::encode(digest.finalize())),
            n => digest.update(&buffer[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_other() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        write_atomically(&path, b"old").unwrap();
        let result = write_atomically_with(&path, |file| {
            file.write_all(b"half").unwrap();
            Err(Error::EmptySupport)
        });
        assert!(matches!(result, Err(Error::EmptySupport)));
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn an_error_names_the_file_and_not_the_temporary_one() {
        let directory = tempfile::tempdir().unwrap();
        let error = write_atomically(&directory.path().join("none/x"), b"x").unwrap_err();
        let Error::File { path, source } = &error else { panic!("{error}") };
        assert!(path.ends_with("none/x"));
        assert_eq!(source.kind(), io::ErrorKind::NotFound);
        assert!(!source.to_string().contains(TEMPORARY), "{source}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_a_device_a_device() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        write_atomically(&path("x"), b"old").unwrap();
        std::os::unix::fs::symlink("x", path("link")).unwrap();
        write_atomically(&path("link"), b"new").unwrap();
        assert!(path("link").is_symlink());
        assert_eq!(std::fs::read(path("x")).unwrap(), b"new");
        std::os::unix::fs::symlink("/dev/null", path("null")).unwrap();
        write_atomically(&path("null"), b"nothing").unwrap();
        assert_eq!(std::fs::read(path("null")).unwrap(), b"");
    }

    #[test]
    fn leftovers_are_removed_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::create_dir(path(".fewtag-checkpoints")).unwrap();
        for name in [".fewtag-checkpoints/1.json", ".fewtag-Xyz", ".other", "model.safetensors"] {
            std::fs::write(path(name), "x").unwrap();
        }
        remove_leftovers(directory.path()).unwrap();
        assert!(path(".other").exists() && path("model.safetensors").exists());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
        assert!(matches!(remove_leftovers(&path("none")), Err(Error::File { .. })));
    }

    #[test]
    fn a_byte_order_mark_is_not_text() {
        assert_eq!(text(Path::new("x"), b"\xEF\xBB\xBFa").unwrap(), "a");
    }

    #[test]
    fn hashes_are_those_of_sha256sum() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(sha256(b""), empty);
        // Longer than a piece, so that the pieces are seen to be joined.
        let (directory, long) = (tempfile::tempdir().unwrap(), vec![7; 200_000]);
        let path = directory.path().join("long");
        std::fs::write(&path, &long).unwrap();
        assert_eq!(sha256_of_file(&path).unwrap(), sha256(&long));
    }
}
