//! SHA-256 checksums, by which results name the files they come from.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context;
use sha2::{Digest, Sha256};

/// The digest of a file in hexadecimal digits, read piece by piece.
pub(crate) fn of_file(path: &Path) -> anyhow::Result<String> {
    let read = || -> io::Result<String> {
        let mut file = File::open(path)?;
        let mut digest = Sha256::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                n => digest.update(&buffer[..n]),
            }
        }
        let digest: [u8; 32] = digest.finalize().into();
        let halves = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        Ok(halves.filter_map(|half| char::from_digit(half.into(), 16)).collect())
    };
    read().with_context(|| format!("cannot read `{}`", path.display()))
}
