//! Tables tagged by fewtag: an Arrow column of texts in, columns of spans and errors out; Parquet and JSON-lines files likewise.
//!
//! Rows keep their number and order. A text that cannot be tagged becomes a null with its reason beside it; it stops nothing.

pub mod columns;
pub mod error;
pub mod files;
#[cfg(test)]
mod testing;

pub use columns::{Columns, fields, tag_column};
pub use error::Error;
pub use files::{Job, Progress, tag_file};
