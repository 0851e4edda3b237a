//! Parquet in, Parquet out: the same columns and rows, and `spans` and `error` at their end.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Compression;
use parquet::column::writer::ColumnCloseResult;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;

use super::{BATCH, Job, Parts, Progress, write_whole, zstd_level};
use crate::columns::{fields, tag_column};
use crate::error::{Error, Result};

pub(super) fn tag(
    job: &Job,
    parts: &Parts,
    progress: &mut dyn FnMut(Progress),
) -> Result<Progress> {
    let input = File::open(job.input).map_err(Error::file(job.input))?;
    let metadata = ArrowReaderMetadata::load(&input, ArrowReaderOptions::default())
        .map_err(Error::parquet(job.input))?;
    let schema = output_schema(metadata.schema(), job)?;
    let n_rows = metadata.metadata().file_metadata().num_rows();
    let n_rows = usize::try_from(n_rows).unwrap_or(0);
    let n_parts = n_rows.div_ceil(job.rows).max(1); // A file without rows has a schema all the same.
    let mut done = Progress { read: (0, n_rows as u64), ..Progress::default() };
    for part in 0..n_parts {
        if parts.is_done(part) {
            let n = job.rows.min(n_rows - part * job.rows);
            (done.rows, done.kept) = (done.rows + n, done.kept + n);
            done.read.0 = done.rows as u64;
            progress(done);
            continue;
        }
        let file = input.try_clone().map_err(Error::file(job.input))?;
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file, metadata.clone())
            .with_batch_size(BATCH)
            .with_offset(part * job.rows)
            .with_limit(job.rows)
            .build()
            .map_err(Error::parquet(job.input))?;
        write_part(job, reader, &schema, &parts.path(part), &mut |batch| {
            done.rows += batch.0;
            done.failed += batch.1;
            done.read.0 = done.rows as u64;
            progress(done);
        })?;
    }
    join(parts, n_parts, job.output)?;
    Ok(done)
}

/// The columns of the input and ours.
fn output_schema(input: &Schema, job: &Job) -> Result<SchemaRef> {
    let there: Vec<&str> = input.fields().iter().map(|field| field.name().as_str()).collect();
    if !there.contains(&job.column) {
        let (column, there) = (job.column.to_owned(), there.join(", "));
        return Err(Error::NoColumn { path: job.input.into(), column, there });
    }
    for column in ["spans", "error"] {
        if there.contains(&column) {
            return Err(Error::TakenColumn { path: job.input.into(), column });
        }
    }
    let all: Vec<_> = input.fields().iter().cloned().chain(fields()).collect();
    Ok(Arc::new(Schema::new_with_metadata(all, input.metadata().clone())))
}

/// Tags the rows of a part; `told` hears of rows that were tagged and of those that could not be.
fn write_part(
    job: &Job,
    batches: impl Iterator<Item = std::result::Result<RecordBatch, arrow_schema::ArrowError>>,
    schema: &SchemaRef,
    path: &Path,
    told: &mut dyn FnMut((usize, usize)),
) -> Result<()> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(zstd_level()))
        .set_max_row_group_row_count(Some(job.rows))
        .build();
    write_whole(path, |file| {
        let writer = ArrowWriter::try_new(file, Arc::clone(schema), Some(properties));
        let mut writer = writer.map_err(Error::parquet(path))?;
        for batch in batches {
            let batch = batch?;
            let column = batch.column_by_name(job.column).expect("the schema was checked");
            let found = tag_column(job.adapted, column, job.thresholds)?;
            let failed = found.error.len() - found.error.null_count();
            let ours: [ArrayRef; 2] = [Arc::new(found.spans), Arc::new(found.error)];
            let columns = batch.columns().iter().cloned().chain(ours).collect();
            let tagged = RecordBatch::try_new(Arc::clone(schema), columns)?;
            writer.write(&tagged).map_err(Error::parquet(path))?;
            told((batch.num_rows(), failed));
        }
        writer.close().map_err(Error::parquet(path))?;
        Ok(())
    })
}

/// Puts the parts, each a row group or none, behind each other without reading their columns.
fn join(parts: &Parts, n_parts: usize, output: &Path) -> Result<()> {
    let open = |part: usize| {
        let path = parts.path(part);
        let file = File::open(&path).map_err(Error::file(&path))?;
        let copy = file.try_clone().map_err(Error::file(&path))?;
        let reader = SerializedFileReader::new(file).map_err(Error::parquet(&path))?;
        Ok::<_, Error>((copy, reader))
    };
    let first = open(0)?.1;
    let like = first.metadata().file_metadata();
    let schema = like.schema_descr().root_schema_ptr();
    let properties = WriterProperties::builder()
        .set_key_value_metadata(like.key_value_metadata().cloned())
        .build();
    write_whole(output, |file| {
        let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))
            .map_err(Error::parquet(output))?;
        for part in 0..n_parts {
            let (file, reader) = open(part)?;
            for group in reader.metadata().row_groups() {
                copy_group(&file, group, &mut writer).map_err(Error::parquet(output))?;
            }
        }
        writer.close().map_err(Error::parquet(output))?;
        Ok(())
    })
}

fn copy_group(
    from: &File,
    group: &RowGroupMetaData,
    to: &mut SerializedFileWriter<&mut File>,
) -> parquet::errors::Result<()> {
    let mut copied = to.next_row_group()?;
    for column in group.columns() {
        let close = ColumnCloseResult {
            bytes_written: u64::try_from(column.compressed_size()).unwrap_or(0),
            rows_written: u64::try_from(group.num_rows()).unwrap_or(0),
            metadata: column.clone(),
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        copied.append_column(from, close)?;
    }
    copied.close()?;
    Ok(())
}
