//! JSON lines in, JSON lines out, plain or packed: each object keeps its fields and gets `spans`, and `error` if it has none.
//!
//! Parts of packed files are whole members (gzip) or frames (zstd): joined, they are one file again.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fewtag::file;
use serde_json::{Map, Value};

use super::{BATCH, Job, Parts, Progress};
use crate::error::{Error, Result};

/// The longest line, in bytes.
const MAX_LINE: u64 = 64 << 20;

/// How lines are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    Plain,
    Gzip,
    Zstd,
}

pub(super) fn tag(
    job: &Job,
    (from, to): (Packing, Packing),
    parts: &Parts,
    progress: &mut dyn FnMut(Progress),
) -> Result<Progress> {
    let mut lines = Lines::open(job.input, from)?;
    let mut done = Progress { read: (0, lines.n_bytes), ..Progress::default() };
    let mut n_parts = 0;
    loop {
        let is_done = parts.is_done(n_parts);
        let mut left = job.rows;
        let mut packed = Vec::new();
        let mut n_rows = 0;
        while left > 0 {
            let batch = lines.take(left.min(BATCH))?;
            if batch.is_empty() {
                break;
            }
            (left, n_rows) = (left - batch.len(), n_rows + batch.len());
            if is_done {
                done.kept += batch.len();
            } else {
                done.failed += tag_lines(job, &batch, &mut packed);
            }
            done.rows += batch.len();
            done.read.0 = lines.read.load(Ordering::Relaxed);
            progress(done);
        }
        if n_rows == 0 && n_parts > 0 {
            break;
        }
        if !is_done {
            file::write_atomically(&parts.path(n_parts), &pack(&packed, to)?)?;
        }
        n_parts += 1;
    }
    join(parts, n_parts, job.output)?;
    Ok(done)
}

/// Tags a few lines and adds them to `out`; says how many could not be tagged.
fn tag_lines(job: &Job, lines: &[(usize, Vec<u8>)], out: &mut Vec<u8>) -> usize {
    let rows: Vec<Row> =
        lines.iter().map(|(number, line)| Row::new(line, *number, job.column)).collect();
    let texts: Vec<&str> = rows.iter().filter_map(Row::text).collect();
    let mut answers = job.adapted.tag_texts(&texts, job.thresholds).into_iter();
    let mut failed = 0;
    for row in rows {
        let found = match &row.text {
            Ok(Some(_)) => {
                let answer = answers.next().expect("every text has an answer");
                answer.map(Some).map_err(|error| fewtag::error::chain(&error))
            }
            Ok(None) => Ok(None),
            Err(problem) => Err(problem.clone()),
        };
        let mut fields = row.fields;
        let spans = found.as_ref().ok().and_then(Option::as_ref).map(|answer| &answer.spans);
        fields.insert("spans".to_owned(), serde_json::json!(spans));
        if let Err(problem) = found {
            failed += 1;
            fields.insert("error".to_owned(), problem.into());
        }
        serde_json::to_writer(&mut *out, &fields).expect("a map is JSON, and memory takes it");
        out.push(b'\n');
    }
    failed
}

/// A line that was read.
struct Row {
    fields: Map<String, Value>,
    /// Its text, none if it is null or missing, or what is wrong.
    text: std::result::Result<Option<String>, String>,
}

impl Row {
    fn new(line: &[u8], number: usize, column: &str) -> Self {
        match serde_json::from_slice::<Map<String, Value>>(line) {
            Err(error) => Self {
                fields: Map::new(),
                text: Err(format!("line {number} is no JSON object: {error}")),
            },
            Ok(fields) => {
                let text = match fields.get(column) {
                    None | Some(Value::Null) => Ok(None),
                    Some(Value::String(text)) => Ok(Some(text.clone())),
                    Some(_) => Err(format!("`{column}` of line {number} is no text")),
                };
                Self { fields, text }
            }
        }
    }

    fn text(&self) -> Option<&str> {
        self.text.as_ref().ok()?.as_deref()
    }
}

/// The lines of a file.
struct Lines<'a> {
    path: &'a Path,
    reader: Box<dyn BufRead>,
    number: usize,
    /// How many bytes of the file, packed as they are, have been read.
    read: Arc<AtomicU64>,
    n_bytes: u64,
}

impl<'a> Lines<'a> {
    fn open(path: &'a Path, packing: Packing) -> Result<Self> {
        let file = File::open(path).map_err(Error::file(path))?;
        let n_bytes = file.metadata().map_err(Error::file(path))?.len();
        let read = Arc::new(AtomicU64::new(0));
        let file = BufReader::new(Counted { file, read: Arc::clone(&read) });
        let reader: Box<dyn BufRead> = match packing {
            Packing::Plain => Box::new(file),
            Packing::Gzip => Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(file))),
            Packing::Zstd => {
                let unpacked =
                    zstd::stream::read::Decoder::with_buffer(file).map_err(Error::file(path))?;
                Box::new(BufReader::new(unpacked))
            }
        };
        Ok(Self { path, reader, number: 0, read, n_bytes })
    }

    /// At most `n` lines that are not blank, with their numbers; none at the end.
    fn take(&mut self, n: usize) -> Result<Vec<(usize, Vec<u8>)>> {
        let mut lines = Vec::new();
        while lines.len() < n {
            let mut line = Vec::new();
            let limited = &mut Read::take(&mut self.reader, MAX_LINE);
            if limited.read_until(b'\n', &mut line).map_err(Error::file(self.path))? == 0 {
                break;
            }
            self.number += 1;
            if line.len() as u64 == MAX_LINE && !line.ends_with(b"\n") {
                let (path, line) = (self.path.to_owned(), self.number);
                return Err(Error::LongLine { path, line, max: MAX_LINE });
            }
            let text = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line);
            if !text.trim_ascii().is_empty() {
                lines.push((self.number, text.to_vec()));
            }
        }
        Ok(lines)
    }
}

/// A file that says how much of it was read.
struct Counted {
    file: File,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.file.read(buffer)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

fn pack(lines: &[u8], packing: Packing) -> Result<Vec<u8>> {
    let packed = match packing {
        Packing::Plain => Ok(lines.to_vec()),
        Packing::Gzip => {
            let mut writer =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
            writer.write_all(lines).and_then(|()| writer.finish())
        }
        Packing::Zstd => zstd::stream::encode_all(lines, 3),
    };
    packed.map_err(|source| fewtag::Error::Write(source).into())
}

fn join(parts: &Parts, n_parts: usize, output: &Path) -> Result<()> {
    file::write_atomically_with(output, |out| {
        for part in 0..n_parts {
            let path = parts.path(part);
            let fail = |source| fewtag::Error::File { path: path.clone(), source };
            let mut file = File::open(&path).map_err(fail)?;
            std::io::copy(&mut file, out).map_err(fewtag::Error::Write)?;
        }
        Ok(())
    })?;
    Ok(())
}
