//! `fewtag support check`: what is wrong or weak in a support set.

use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use fewtag::Sentence;
use fewtag::eval::{Cell, Format, Table, table};
use fewtag::plural::Counted;
use fewtag::support::{self, Confusion, Finding, Report};

use crate::commands::data::SupportArgs;
use crate::commands::tagger::TaggerArgs;
use crate::commands::values;
use crate::sources;

/// Say what is wrong or weak in labelled sentences before you trust what is learned from them
///
/// Tags each sentence from all the others and tells which labels are found again, which are taken for each
/// other, and what contradicts itself, is missing or too long; each with its place and a remedy (docs/guide/support.md).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag support check examples/music.txt
  fewtag support check examples/music.conll --format json")]
pub(crate) struct Args {
    /// Labelled sentences in any data format (docs/reference/data.md), or a directory of them; `-` is standard input
    file: PathBuf,
    #[command(flatten)]
    read: SupportArgs,
    #[command(flatten)]
    tagger: TaggerArgs,
    /// Fail if there is a finding that is an error or a warning
    #[arg(long)]
    strict: bool,
    /// How to print the report
    #[arg(long, value_parser = values::table_format(), default_value = Format::Text.name())]
    format: Format,
}

/// How many findings people are shown; programs get all.
const SHOWN: usize = 50;

/// Runs the command, writing the report to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let (mut sentences, mut places) = (Vec::new(), Vec::new());
    for path in args.read.files(std::slice::from_ref(&args.file))? {
        let of_file = args.read.read(&path)?;
        let name = sources::name(&path).display().to_string();
        places.extend(of_file.iter().enumerate().map(|(i, sentence)| match sentence.line() {
            Some(line) => format!("{name}:{line}"),
            None => format!("{name}, sentence {}", i + 1),
        }));
        sentences.extend(of_file);
    }
    let report = support::check(&args.tagger.load()?, &sentences)?;
    if args.format == Format::Json {
        let lines: Vec<Option<usize>> = sentences.iter().map(Sentence::line).collect();
        let mut value = serde_json::to_value(&report)?;
        value["lines"] = serde_json::to_value(lines)?;
        writeln!(out, "{value:#}")?;
    } else {
        let mut tables = vec![labels(&report), confusions(&report)];
        // The place of its first sentence.
        let place = |finding: &Finding| match finding.sentences.first() {
            Some(&number) => places[number - 1].clone(),
            None => args.file.display().to_string(),
        };
        if args.format != Format::Text {
            tables.push(findings(&report, place));
        }
        out.write_all(table::render(&tables, args.format).as_bytes())?;
        if args.format == Format::Text {
            out.write_all(list(&report, place).as_bytes())?;
        }
    }
    let grave = report.findings.iter().filter(|f| f.severity < support::Severity::Note).count();
    if args.strict && grave > 0 {
        out.flush()?;
        bail!("{}, and --strict allows none but notes", Counted(grave, "finding"));
    }
    Ok(())
}

fn labels(report: &Report) -> Table {
    let headers = ["label", "sentences", "spans", "judged", "precision", "recall", "f1"];
    let mut table = Table::new("labels, each sentence tagged from the others", headers);
    for label in &report.labels {
        let percent = |score: Option<f64>| score.map_or(Cell::Empty, |s| Cell::Number(100.0 * s));
        table.push([
            label.label.as_str().into(),
            label.n_sentences.into(),
            label.n_spans.into(),
            label.n_judged.into(),
            percent(label.precision),
            percent(label.recall),
            percent(label.f1),
        ]);
    }
    table
}

fn confusions(report: &Report) -> Table {
    let mut table = Table::new("confusions", ["labelled", "tagged as", "spans", "sentences"]);
    for Confusion { gold, predicted, n, sentences } in &report.confusions {
        let name = |slot: &Option<fewtag::Slot>| match slot {
            Some(slot) => slot.to_string(),
            None => "(no label)".to_owned(),
        };
        let predicted =
            if gold == predicted { "(other words of it)".to_owned() } else { name(predicted) };
        let shown: Vec<String> = sentences.iter().take(10).map(ToString::to_string).collect();
        let more = if sentences.len() > shown.len() { ", …" } else { "" };
        let places = format!("{}{more}", shown.join(", "));
        table.push([name(gold).into(), predicted.into(), (*n).into(), places.into()]);
    }
    table
}

fn findings(report: &Report, place: impl Fn(&Finding) -> String) -> Table {
    let mut table = Table::new("findings", ["severity", "where", "finding", "remedy"]);
    for finding in &report.findings {
        table.push([
            finding.severity.name().into(),
            place(finding).into(),
            finding.message.as_str().into(),
            finding.remedy.as_str().into(),
        ]);
    }
    table
}

/// The findings for a terminal, whose lines are shorter than a table of them.
fn list(report: &Report, place: impl Fn(&Finding) -> String) -> String {
    let mut text = String::from("\nfindings\n");
    if report.findings.is_empty() {
        text.push_str("\nnone\n");
    }
    for finding in report.findings.iter().take(SHOWN) {
        let Finding { severity, message, remedy, .. } = finding;
        let (severity, place) = (severity.name(), place(finding));
        // Writing to a string cannot fail.
        let _ = write!(text, "\n{severity}: {place}: {message}\n  {remedy}\n");
    }
    let hidden = report.findings.len().saturating_sub(SHOWN);
    if hidden > 0 {
        let _ = writeln!(text, "\n{} more: --format json prints all", Counted(hidden, "finding"));
    }
    text
}
