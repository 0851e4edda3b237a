//! Files in, files out: the rows, the answers, and what a killed run leaves.

use std::io::Write as _;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use serde_json::{Value, json};

use super::*;
use crate::testing::adapted;

const ROWS: usize = 10;

fn texts() -> Vec<Option<String>> {
    (0..57).map(|i| (i % 9 != 4).then(|| format!("play nina simone {i} times"))).collect()
}

fn parquet(path: &Path, texts: Vec<Option<String>>) {
    let numbers = Int64Array::from_iter_values(0..i64::try_from(texts.len()).unwrap());
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("text", DataType::Utf8, true),
    ]));
    let columns: Vec<arrow_array::ArrayRef> =
        vec![Arc::new(numbers), Arc::new(StringArray::from(texts))];
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let mut writer = ArrowWriter::try_new(fs::File::create(path).unwrap(), schema, None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn read(path: &Path) -> Vec<RecordBatch> {
    let file = fs::File::open(path).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
    reader.map(|batch| batch.unwrap()).collect()
}

fn run(
    input: &Path,
    output: &Path,
    change: impl FnOnce(&mut Job),
    progress: &mut dyn FnMut(Progress),
) -> crate::error::Result<Progress> {
    let (adapted, thresholds) = (adapted(), Thresholds::default());
    let mut job = Job {
        adapted: &adapted,
        thresholds: &thresholds,
        identity: "one".into(),
        input,
        output,
        column: "text",
        rows: ROWS,
        start_anew: false,
    };
    change(&mut job);
    tag_file(&job, progress)
}

/// Panics in the middle of the fourth part, as a kill would end it.
fn killed(input: &Path, output: &Path) {
    let dies = std::panic::AssertUnwindSafe(|| {
        run(input, output, |_| {}, &mut |done| assert!(done.rows < 4 * ROWS, "killed"))
    });
    assert!(std::panic::catch_unwind(dies).is_err());
    assert!(!output.exists());
}

#[test]
fn a_parquet_file_keeps_its_rows_and_gets_its_spans() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("in.parquet"), dir.path().join("out.parquet"));
    parquet(&input, texts());
    let done = run(&input, &output, |_| {}, &mut |_| {}).unwrap();
    assert_eq!((done.rows, done.kept, done.failed), (57, 0, 0));
    let (adapted, mut row) = (adapted(), 0);
    for batch in read(&output) {
        let spans = batch.column_by_name("spans").unwrap().as_list::<i32>();
        for i in 0..batch.num_rows() {
            assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(i), row);
            let text = &texts()[usize::try_from(row).unwrap()];
            assert_eq!(spans.is_null(i), text.is_none());
            if let Some(text) = text {
                let answer = adapted.tag_text(text).unwrap();
                assert_eq!(spans.value(i).len(), answer.spans.len());
            }
            row += 1;
        }
    }
    assert_eq!(row, 57);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing else is left");
}

#[test]
fn what_a_killed_run_finished_is_not_done_again() {
    let dir = tempfile::tempdir().unwrap();
    for end in ["parquet", "jsonl", "jsonl.gz", "jsonl.zst"] {
        let path = |name: &str| dir.path().join(format!("{name}.{end}"));
        if end == "parquet" {
            parquet(&path("in"), texts());
        } else {
            lines(
                &path("in"),
                &texts().iter().map(|t| json!({"text": t}).to_string()).collect::<Vec<_>>(),
            );
        }
        run(&path("in"), &path("whole"), |_| {}, &mut |_| {}).unwrap();
        killed(&path("in"), &path("out"));
        let other = run(&path("in"), &path("out"), |job| job.identity = "two".into(), &mut |_| {});
        assert!(matches!(other, Err(Error::OtherRun { .. })));
        let done = run(&path("in"), &path("out"), |_| {}, &mut |_| {}).unwrap();
        assert_eq!((done.rows, done.kept), (57, 3 * ROWS), "{end}");
        assert_eq!(fs::read(path("out")).unwrap(), fs::read(path("whole")).unwrap(), "{end}");
        killed(&path("in"), &path("anew"));
        let anew = |job: &mut Job| {
            job.start_anew = true;
            job.identity = "two".into();
        };
        let done = run(&path("in"), &path("anew"), anew, &mut |_| {}).unwrap();
        assert_eq!(done.kept, 0);
    }
}

#[test]
fn an_empty_file_becomes_an_empty_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    parquet(&path("in.parquet"), Vec::new());
    run(&path("in.parquet"), &path("out.parquet"), |_| {}, &mut |_| {}).unwrap();
    let file = fs::File::open(path("out.parquet")).unwrap();
    let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    assert_eq!((reader.schema().fields().len(), reader.build().unwrap().count()), (4, 0));
    lines(&path("in.jsonl"), &[]);
    run(&path("in.jsonl"), &path("out.jsonl"), |_| {}, &mut |_| {}).unwrap();
    assert_eq!(fs::read(path("out.jsonl")).unwrap(), b"");
}

/// Writes lines, packed as the name says, by the packers' own libraries.
fn lines(path: &Path, lines: &[String]) {
    let text: String = lines.iter().map(|line| line.clone() + "\n").collect();
    let bytes = match path.extension().unwrap().to_str().unwrap() {
        "gz" => {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            writer.write_all(text.as_bytes()).unwrap();
            writer.finish().unwrap()
        }
        "zst" => zstd::stream::encode_all(text.as_bytes(), 1).unwrap(),
        _ => text.into_bytes(),
    };
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_line_keeps_its_fields_and_a_bad_one_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let (input, output) = (dir.path().join("in.jsonl"), dir.path().join("out.jsonl"));
    let rows = [
        r#"{"id": 7, "text": "play nina simone", "more": [1, 2.50]}"#,
        "",
        r#"{"text": null}"#,
        r#"{"text": 5}"#,
        "no json",
        r#"{"text": ""}"#,
    ];
    lines(&input, &rows.map(ToOwned::to_owned));
    let done = run(&input, &output, |_| {}, &mut |_| {}).unwrap();
    assert_eq!((done.rows, done.failed), (5, 2));
    let text = fs::read_to_string(&output).unwrap();
    let out: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let answer = adapted().tag_text("play nina simone").unwrap();
    let spans = json!(answer.spans);
    assert_eq!(
        out[0],
        json!({"id": 7, "text": "play nina simone", "more": [1, 2.5], "spans": spans})
    );
    assert_eq!(out[1], json!({"text": null, "spans": null}));
    assert_eq!(out[2]["error"], "`text` of line 4 is no text");
    assert!(out[3]["error"].as_str().unwrap().starts_with("line 5 is no JSON object"));
    assert_eq!(out[4], json!({"text": "", "spans": []}));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    parquet(&path("in.parquet"), texts());
    let refused = |output: &str, change: fn(&mut Job)| {
        let refused = run(&path("in.parquet"), &path(output), change, &mut |_| {});
        refused.unwrap_err().to_string()
    };
    assert!(refused("out.jsonl", |_| {}).contains("Parquet becomes Parquet"));
    assert!(refused("out.csv", |_| {}).contains(".jsonl.zst"));
    assert!(
        refused("out.parquet", |job| job.column = "body").contains("no column `body` (id, text)")
    );
    fs::write(path("bad.parquet"), "no parquet").unwrap();
    assert!(run(&path("bad.parquet"), &path("x.parquet"), |_| {}, &mut |_| {}).is_err());
    fs::remove_dir_all(path("out.parquet.partial")).unwrap();
    run(&path("in.parquet"), &path("out.parquet"), |_| {}, &mut |_| {}).unwrap();
    let twice = run(&path("out.parquet"), &path("again.parquet"), |_| {}, &mut |_| {});
    assert!(twice.unwrap_err().to_string().contains("a column `spans` already"));
}
