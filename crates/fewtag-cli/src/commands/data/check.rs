//! `fewtag data check`: what a file holds, and what is odd about it.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::bail;
use fewtag::data::{self, Check, EpisodeCheck, Findings, Note};
use fewtag::eval::{Format, Table, table};
use fewtag::scheme::Scheme;
use rayon::prelude::*;

use super::{ReadArgs, read_bytes};
use crate::commands::values;

/// Report what files hold and what is odd about them
///
/// Counts sentences, words and slots, and lists illegal tag sequences, duplicates, sentences with the same words but other
/// tags, slots too rare for k-shot episodes, and whatever was not read. Of an episode file it lists queries that stand in their own support or have
/// a tag that it lacks. Every file is read; the first that cannot be read ends the command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag data check examples/weather.conll examples/music.conll
  fewtag data check examples/weather.conll --shots 1 --strict --output json")]
pub(crate) struct Args {
    /// Files of labelled sentences in any format (docs/data.md); `-` is standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// A slot in fewer sentences than this is a finding
    #[arg(long, default_value_t = 5)]
    shots: usize,
    /// Fail if there is any finding
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    read: ReadArgs,
    /// How to print the report
    #[arg(long, value_parser = values::table_format(), default_value = Format::Text.name())]
    output: Format,
}

/// What there is to say about one file.
struct Checked {
    format: data::Format,
    scheme: Option<Scheme>,
    domains: Vec<CheckedDomain>,
    findings: Vec<Finding>,
}

struct CheckedDomain {
    name: String,
    n_sentences: usize,
    check: Check,
}

/// A row of the table of findings.
struct Finding {
    /// `None`: it concerns the file as a whole.
    domain: Option<String>,
    what: &'static str,
    n: usize,
    detail: String,
}

/// Runs the command, writing the report to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let checked = args.files.par_iter().map(|path| check(path, args));
    let checked = checked.collect::<anyhow::Result<Vec<Checked>>>()?;
    let tables = [domains(args, &checked), slots(&checked), findings(args, &checked)];
    let n_findings: usize = checked.iter().map(|file| file.findings.len()).sum();
    out.write_all(table::render(&tables, args.output).as_bytes())?;
    if args.strict && n_findings > 0 {
        out.flush()?;
        bail!("{n_findings} findings, and --strict allows none");
    }
    Ok(())
}

fn check(path: &Path, args: &Args) -> anyhow::Result<Checked> {
    let (path, bytes) = read_bytes(path)?;
    let corpus = data::parse(path, &bytes, &args.read.options())?;
    let (format, scheme) = (corpus.format, corpus.scheme);
    let is_episodes = format == data::Format::Episodes;
    let mut findings: Vec<Finding> = corpus.notes.iter().map(of_note).collect();
    let mut domains = Vec::new();
    for domain in &corpus.domains {
        let (name, n_sentences) = (domain.name.clone(), domain.sentences.len());
        let check = Check::of(domain);
        // Episodes share their sentences.
        if !is_episodes {
            findings.extend(finding(Some(&name), "duplicates", &check.duplicates));
        }
        findings.extend(finding(Some(&name), "same words, other tags", &check.contradictions));
        findings.extend(rare_slots(&name, &check, args.shots));
        domains.push(CheckedDomain { name, n_sentences, check });
    }
    if is_episodes {
        let check = EpisodeCheck::of(&corpus.into_episodes(path)?);
        findings.extend(finding(None, "queries in their own support", &check.leaks));
        findings.extend(finding(None, "queries with a tag the support lacks", &check.unlearnable));
    }
    Ok(Checked { format, scheme, domains, findings })
}

fn of_note(note: &Note) -> Finding {
    let (what, n, detail) = match note {
        Note::IllegalTags(found) => ("illegal tags", found.n, found.places()),
        Note::Repaired(found) => ("repaired", found.n, found.places()),
        Note::Ignored { what, n } => ("not read", *n, (*what).to_owned()),
        other => ("remark", 1, other.to_string()),
    };
    Finding { domain: None, what, n, detail }
}

fn finding(domain: Option<&str>, what: &'static str, found: &Findings) -> Option<Finding> {
    let domain = domain.map(str::to_owned);
    (found.n > 0).then(|| Finding { domain, what, n: found.n, detail: found.places() })
}

fn rare_slots(domain: &str, check: &Check, shots: usize) -> Option<Finding> {
    let rare = check.rare(shots).map(|(slot, counts)| format!("{slot} ({})", counts.n_sentences));
    let rare: Vec<String> = rare.collect();
    let (domain, n, detail) = (Some(domain.to_owned()), rare.len(), rare.join(", "));
    (n > 0).then_some(Finding { domain, what: "slots too rare for the shots", n, detail })
}

fn domains(args: &Args, checked: &[Checked]) -> Table {
    let headers = ["file", "format", "scheme", "domain", "sentences", "words", "slots", "spans"];
    let mut table = Table::new("domains", headers);
    for (path, file) in args.files.iter().zip(checked) {
        for domain in &file.domains {
            table.push([
                path.display().to_string().into(),
                file.format.name().into(),
                file.scheme.map_or("", Scheme::name).into(),
                domain.name.as_str().into(),
                domain.n_sentences.into(),
                domain.check.n_words.into(),
                domain.check.slots.len().into(),
                domain.check.slots.values().map(|counts| counts.n_spans).sum::<usize>().into(),
            ]);
        }
    }
    table
}

fn slots(checked: &[Checked]) -> Table {
    let mut table = Table::new("slots", ["domain", "slot", "spans", "sentences"]);
    for domain in checked.iter().flat_map(|file| &file.domains) {
        for (slot, counts) in &domain.check.slots {
            table.push([
                domain.name.as_str().into(),
                slot.as_str().into(),
                counts.n_spans.into(),
                counts.n_sentences.into(),
            ]);
        }
    }
    table
}

fn findings(args: &Args, checked: &[Checked]) -> Table {
    let mut table = Table::new("findings", ["file", "domain", "finding", "n", "detail"]);
    for (path, file) in args.files.iter().zip(checked) {
        for finding in &file.findings {
            table.push([
                path.display().to_string().into(),
                finding.domain.as_deref().unwrap_or_default().into(),
                finding.what.into(),
                finding.n.into(),
                finding.detail.as_str().into(),
            ]);
        }
    }
    table
}
