//! Support sets from text: the short way in.

use std::path::Path;

use super::{Format, ReadOptions, parse};
use crate::domain::SupportSet;
use crate::error::Result;
use crate::file;

impl SupportSet {
    /// Labelled sentences as a person writes them, one a line: `play [nina simone](artist)`.
    ///
    /// ```
    /// use fewtag::SupportSet;
    ///
    /// let support = SupportSet::parse("play [nina simone](artist)\nput on some [jazz](genre)")?;
    /// assert_eq!(support.sentences().len(), 2);
    /// assert_eq!(support.tag_set().slots().len(), 2);
    /// # Ok::<(), fewtag::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`crate::Error::Data`] with the line that cannot be read, [`crate::Error::EmptySupport`] if nothing is marked.
    pub fn parse(text: &str) -> Result<Self> {
        let options = ReadOptions { format: Some(Format::Inline), ..ReadOptions::default() };
        Self::of(Path::new("the examples"), text.as_bytes(), &options)
    }

    /// The labelled sentences of a file in any format that [`crate::data`] reads.
    ///
    /// # Errors
    ///
    /// As [`SupportSet::parse`], and [`crate::Error::File`] if the file cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        Self::of(path, &file::read(path)?, &ReadOptions::default())
    }

    fn of(path: &Path, bytes: &[u8], options: &ReadOptions) -> Result<Self> {
        let domains = parse(path, bytes, options)?.domains;
        Self::new(domains.into_iter().flat_map(|domain| domain.sentences).collect())
    }
}
