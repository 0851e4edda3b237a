//! The finished cells of many runs in one small file, one JSON object a line: from it all tables can be drawn again
//! without running anything.

use std::path::Path;

use fewtag::file;
use serde::{Deserialize, Serialize};

use super::results::{Outcome, Outcomes};
use crate::error::{Error, Result};

/// What cells must have in common to stand in one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// The name of the encoder's directory.
    pub encoder: String,
    /// The budget, as on the command line.
    pub budget: String,
    /// The settings that differ from those of the systems, each `FIELD=VALUE`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// The domains, in the order of the folds.
    pub domains: Vec<String>,
}

/// A cell that was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finished {
    /// Under what it was run.
    pub conditions: Conditions,
    /// What it gave.
    pub outcome: Outcome,
}

/// All cells of a file, each once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cells(Vec<Finished>);

impl Cells {
    /// Reads a file; one that is not there has no cells.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or [`Error::Cells`] with the line that is no cell.
    pub fn read(path: &Path) -> Result<Self> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let bytes = file::read(path)?;
        let lines = file::text(path, &bytes)?.lines().enumerate();
        let cell = |(n, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|source| Error::Cells {
                path: path.into(),
                line: n + 1,
                source,
            })
        };
        Ok(Self(lines.map(cell).collect::<Result<_>>()?))
    }

    /// Takes in a cell; one of the same place and conditions is replaced.
    pub fn insert(&mut self, finished: Finished) {
        let same = |have: &&mut Finished| {
            have.conditions == finished.conditions && have.outcome.cell == finished.outcome.cell
        };
        match self.0.iter_mut().find(same) {
            Some(have) => *have = finished,
            None => self.0.push(finished),
        }
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    ///
    /// [`fewtag::Error::File`] if it cannot be written.
    ///
    /// # Panics
    ///
    /// Never: a cell has a JSON form.
    pub fn write(&self, path: &Path) -> Result<()> {
        let line = |cell| serde_json::to_string(cell).expect("a cell has a JSON form") + "\n";
        let text: String = self.0.iter().map(line).collect();
        Ok(file::write_atomically(path, text.as_bytes())?)
    }

    /// The cells, in the order in which they were first taken in.
    #[must_use]
    pub fn all(&self) -> &[Finished] {
        &self.0
    }

    /// The outcomes of the cells under these conditions.
    #[must_use]
    pub fn under(&self, conditions: &Conditions) -> Outcomes {
        let same = self.0.iter().filter(|cell| cell.conditions == *conditions);
        Outcomes(same.map(|cell| cell.outcome.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::outcome;
    use super::*;

    fn finished(budget: &str, fold: usize, f1: f64) -> Finished {
        let conditions = Conditions {
            encoder: "tiny".into(),
            budget: budget.into(),
            changes: Vec::new(),
            domains: vec!["a".into(), "b".into()],
        };
        Finished { conditions, outcome: outcome("nmn", fold, 1, f1) }
    }

    #[test]
    fn a_file_comes_back_and_a_cell_that_ran_again_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cells.jsonl");
        let mut cells = Cells::read(&path).unwrap();
        assert_eq!(cells, Cells::default());
        for cell in [finished("quick", 0, 1.0), finished("full", 0, 2.0), finished("quick", 1, 3.0)]
        {
            cells.insert(cell);
        }
        cells.insert(finished("quick", 0, 4.0));
        cells.write(&path).unwrap();
        assert_eq!(Cells::read(&path).unwrap(), cells);
        let quick = cells.under(&finished("quick", 0, 0.0).conditions);
        assert_eq!(quick.0.iter().map(|o| o.f1).collect::<Vec<_>>(), [4.0, 3.0]);
    }

    #[test]
    fn a_line_that_is_no_cell_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cells.jsonl");
        let mut cells = Cells::default();
        cells.insert(finished("quick", 0, 1.0));
        cells.write(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text + "{}\n").unwrap();
        let message = Cells::read(&path).unwrap_err().to_string();
        assert!(message.contains("cells.jsonl") && message.contains("line 2"), "{message}");
    }
}
