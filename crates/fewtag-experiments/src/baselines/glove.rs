//! Word vectors from files: GloVe text, or a NumPy array with a list of its words.
//!
//! ```text
//! glove.6B.50d.txt    word x₁ … x_d            one word a line
//! vectors.npy         f32, little endian, [n_words, d], rows or columns first
//! words.txt           the n_words words, one a line, beside the array
//! ```
//!
//! A file is read once; only the words asked for are kept, so that 400,000 words cost no memory.
//! A word without a vector gets one of its own, drawn from U(−¼, ¼) by the seed and its letters, as in the
//! authors' code: two runs and two machines agree on it.
//!
//! Source: Pennington et al. (2014). `scripts/fetch_glove.py` gets the 50d set.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use fewtag::Matrix;
use fewtag::Random;
use fewtag::file;

use crate::error::{Error, Result};

/// Vectors of some words; every other word gets a random one.
#[derive(Debug, Clone)]
pub struct WordVectors {
    vectors: BTreeMap<String, Vec<f32>>,
    width: usize,
    random: Random,
}

impl WordVectors {
    /// Random vectors only, `[width]` each.
    #[must_use]
    pub fn random(width: usize, seed: u64) -> Self {
        Self { vectors: BTreeMap::new(), width, random: Random::new(seed) }
    }

    /// Reads the vectors of `words` from a GloVe text file, or from an `.npy` array beside its `words.txt`.
    ///
    /// Words are looked up as written and else in lower case.
    ///
    /// # Errors
    ///
    /// [`fewtag::Error::File`] if a file cannot be read, [`Error::WordVectors`] if it does not hold word vectors.
    pub fn read(path: &Path, words: &BTreeSet<String>, seed: u64) -> Result<Self> {
        let wanted: BTreeSet<String> =
            words.iter().flat_map(|word| [word.clone(), word.to_lowercase()]).collect();
        let (vectors, width) = if path.extension().is_some_and(|extension| extension == "npy") {
            read_array(path, &wanted)?
        } else {
            read_text(path, &wanted)?
        };
        Ok(Self { vectors, width, random: Random::new(seed) })
    }

    /// The length of a vector.
    #[must_use]
    pub fn width(&self) -> usize {
        self.width
    }

    /// The vector of `word`, `[width]`.
    #[must_use]
    pub fn vector(&self, word: &str) -> Vec<f32> {
        let known = self.vectors.get(word).or_else(|| self.vectors.get(&word.to_lowercase()));
        known.cloned().unwrap_or_else(|| {
            let mut random = self.random.named(word);
            (0..self.width).map(|_| (0.5 * random.unit() - 0.25) as f32).collect()
        })
    }

    /// The vectors of a sentence, `[T, width]`.
    #[must_use]
    pub fn embed<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> Matrix {
        let rows: Vec<f32> = words.into_iter().flat_map(|word| self.vector(word)).collect();
        Matrix::new(rows, self.width)
    }
}

type Read = Result<(BTreeMap<String, Vec<f32>>, usize)>;

fn read_text(path: &Path, wanted: &BTreeSet<String>) -> Read {
    let bytes = file::read(path)?;
    let text = file::text(path, &bytes)?;
    let mut vectors = BTreeMap::new();
    let mut width = 0;
    for (n, line) in text.lines().enumerate() {
        let mut fields = line.split(' ');
        let word = fields.next().unwrap_or_default();
        let n_numbers = fields.clone().count();
        if n == 0 {
            width = n_numbers;
        }
        if n_numbers == 0 || n_numbers != width {
            let reason = format!("line {} has {n_numbers} numbers, not {width}", n + 1);
            return Err(Error::WordVectors { path: path.into(), reason });
        }
        if wanted.contains(word) {
            let numbers: Option<Vec<f32>> = fields.map(finite).collect();
            let vector = numbers.ok_or_else(|| Error::WordVectors {
                path: path.into(),
                reason: format!("line {}: `{word}` has a vector that is not all numbers", n + 1),
            })?;
            vectors.insert(word.to_owned(), vector);
        }
    }
    if width == 0 {
        return Err(Error::WordVectors { path: path.into(), reason: "the file is empty".into() });
    }
    Ok((vectors, width))
}

fn finite(field: &str) -> Option<f32> {
    field.parse().ok().filter(|x: &f32| x.is_finite())
}

fn read_array(path: &Path, wanted: &BTreeSet<String>) -> Read {
    let words_path = path.with_file_name("words.txt");
    let words = file::read(&words_path)?;
    let words = file::text(&words_path, &words)?;
    let bytes = file::read(path)?;
    let refuse = |reason: String| Error::WordVectors { path: path.into(), reason };
    let array = Array::parse(&bytes).map_err(refuse)?;
    let n_words = words.lines().count();
    if n_words != array.n_rows {
        let reason = format!("{} rows, but {} words in `words.txt`", array.n_rows, n_words);
        return Err(refuse(reason));
    }
    let rows = words.lines().enumerate().filter(|(_, word)| wanted.contains(*word));
    let vectors = rows.map(|(r, word)| (word.to_owned(), array.row(r))).collect();
    Ok((vectors, array.n_cols))
}

/// A NumPy array of `f32`, still as bytes.
struct Array<'a> {
    n_rows: usize,
    n_cols: usize,
    columns_first: bool,
    bytes: &'a [u8],
}

impl<'a> Array<'a> {
    /// Reads the header of format version 1 (the only one NumPy writes for arrays like these).
    fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        let rest = bytes.strip_prefix(b"\x93NUMPY\x01\x00").ok_or("no NumPy file of version 1")?;
        let (length, rest) = rest.split_first_chunk().ok_or("cut off in the header")?;
        let length = usize::from(u16::from_le_bytes(*length));
        let (header, bytes) = rest.split_at_checked(length).ok_or("cut off in the header")?;
        let header = String::from_utf8_lossy(header).replace(' ', "");
        if !header.contains("'descr':'<f4'") {
            return Err("the numbers are not little-endian f32 (`<f4`)".into());
        }
        let shape = header.split_once("'shape':(").and_then(|(_, rest)| rest.split_once(')'));
        let (n_rows, n_cols) = shape
            .and_then(|(shape, _)| shape.split_once(','))
            .and_then(|(rows, cols)| Some((rows.parse().ok()?, cols.parse().ok()?)))
            .filter(|(_, n_cols): &(usize, usize)| *n_cols > 0)
            .ok_or("the shape is not [words, width]")?;
        if n_rows.checked_mul(n_cols).and_then(|n| n.checked_mul(4)) != Some(bytes.len()) {
            return Err(format!("{} bytes of numbers do not fit its shape", bytes.len()));
        }
        let columns_first = header.contains("'fortran_order':True");
        Ok(Self { n_rows, n_cols, columns_first, bytes })
    }

    fn row(&self, r: usize) -> Vec<f32> {
        (0..self.n_cols)
            .map(|c| {
                let at = if self.columns_first { c * self.n_rows + r } else { r * self.n_cols + c };
                let bytes = &self.bytes[4 * at..4 * at + 4];
                f32::from_le_bytes(bytes.try_into().expect("a slice of 4 bytes"))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn words(text: &str) -> BTreeSet<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn write(name: &str, bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        (dir, path)
    }

    /// `[[1, 2], [3, 4], [5, 6]]` as `numpy.save` writes it, rows first or columns first.
    fn npy(columns_first: bool, numbers: [f32; 6]) -> Vec<u8> {
        let order = if columns_first { "True" } else { "False" };
        let header = format!("{{'descr': '<f4', 'fortran_order': {order}, 'shape': (3, 2), }}");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.bytes());
        bytes.extend(numbers.iter().flat_map(|x| x.to_le_bytes()));
        bytes
    }

    #[test]
    fn text_gives_the_words_asked_for() {
        let (_dir, path) = write("glove.txt", b"the 0.5 -1\nPARIS 1 2\nparis 3 4\n");
        let vectors = WordVectors::read(&path, &words("Paris the"), 1).unwrap();
        assert_eq!(vectors.vector("Paris"), [3.0, 4.0]);
        assert_eq!(vectors.embed(["the", "paris"]).values(), [0.5, -1.0, 3.0, 4.0]);
    }

    #[test]
    fn both_orders_of_an_array_give_the_same_rows() {
        for (columns_first, numbers) in
            [(false, [1., 2., 3., 4., 5., 6.]), (true, [1., 3., 5., 2., 4., 6.])]
        {
            let (dir, path) = write("v.npy", &npy(columns_first, numbers));
            fs::write(dir.path().join("words.txt"), "a\nb\nc\n").unwrap();
            let vectors = WordVectors::read(&path, &words("c a"), 1).unwrap();
            assert_eq!((vectors.vector("c"), vectors.vector("a")), (vec![5., 6.], vec![1., 2.]));
        }
    }

    #[test]
    fn rows_are_those_of_the_original_text_file() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/glove/vectors.npy");
        let vectors = WordVectors::read(&path, &words("King the"), 1).unwrap();
        // From glove.6B.50d.txt; the array is an excerpt saved by NumPy, columns first.
        let (the, king) = (vectors.vector("the"), vectors.vector("King"));
        assert_eq!((the.len(), &the[..4]), (50, [0.418, 0.24968, -0.41242, 0.1217].as_slice()));
        assert_eq!(&king[..4], [0.50451, 0.68607, -0.59517, -0.022_801]);
        assert_eq!((the[49], king[49]), (-0.78581, -0.51042));
    }

    #[test]
    fn unknown_words_have_small_vectors_of_their_own() {
        let vectors = WordVectors::random(50, 7);
        assert_eq!(vectors.vector("a"), WordVectors::random(50, 7).vector("a"));
        assert_ne!(vectors.vector("a"), vectors.vector("b"));
        assert_ne!(vectors.vector("a"), WordVectors::random(50, 8).vector("a"));
        assert!(vectors.vector("a").iter().all(|x| x.abs() <= 0.25));
    }

    #[test]
    fn bad_files_are_refused_with_the_place() {
        let array = npy(false, [0.0; 6]);
        let long_header = [b"\x93NUMPY\x01\x00\xff\xff".as_slice(), b"{}"].concat();
        for (name, bytes, expected) in [
            ("a.txt", b"".as_slice(), "empty"),
            ("b.txt", b"the 1 2\nof 1\n", "line 2 has 1 numbers, not 2"),
            ("c.txt", b"the 1 x\n", "line 1: `the`"),
            ("d.txt", b"the 1 nan\n", "line 1: `the`"),
            ("e.npy", b"PK", "NumPy"),
            ("f.npy", &array[..array.len() - 1], "23 bytes"),
            ("g.npy", &long_header, "header"),
            ("h.npy", &array, "3 rows, but 1 words"),
        ] {
            let (dir, path) = write(name, bytes);
            fs::write(dir.path().join("words.txt"), "the\n").unwrap();
            let error = WordVectors::read(&path, &words("the"), 1).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains(name), "{error}");
        }
    }
}
