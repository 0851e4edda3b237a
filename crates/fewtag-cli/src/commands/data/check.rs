//! `fewtag data check`: what a file holds, and what is odd about it.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::bail;
use fewtag::Domain;
use fewtag::data::{self, Check, EpisodeCheck, Findings, Note};
use fewtag::eval::{Format, Table, table};
use fewtag::plural::Counted;
use fewtag::sampler::{self, Duplicates, MIN_SENTENCES};
use fewtag::scheme::Scheme;
use rayon::prelude::*;

use super::ReadArgs;
use crate::commands::values;
use crate::{hints, sources};

/// Report what files hold and what is odd about them
///
/// Counts sentences, words and slots, and lists illegal tag sequences, duplicates, sentences with the same words but other
/// tags, tags too rare for k-shot episodes, and whatever was not read. Of an episode file it lists queries that stand in their own support or have
/// a tag that it lacks. Every file is read; the first that cannot be read ends the command.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag data check examples/weather.conll examples/music.conll
  fewtag data check examples/weather.conll --shots 1 --strict --output json")]
pub(crate) struct Args {
    /// Files of labelled sentences in any format (docs/reference/data.md), or directories of them; `-` is standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// A tag in fewer sentences than this is a finding, counted as `fewtag sample` counts
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
    path: PathBuf,
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
    let files = args.read.files(&args.files)?;
    let checked = files.par_iter().map(|path| check(path, args));
    let checked = checked.collect::<anyhow::Result<Vec<Checked>>>()?;
    let tables = [domains(&checked), slots(&checked), findings(&checked)];
    let n_findings: usize = checked.iter().map(|file| file.findings.len()).sum();
    out.write_all(table::render(&tables, args.output).as_bytes())?;
    if args.strict && n_findings > 0 {
        out.flush()?;
        bail!("{}, and --strict allows none", Counted(n_findings, "finding"));
    }
    Ok(())
}

fn check(path: &Path, args: &Args) -> anyhow::Result<Checked> {
    let corpus = args.read.read(path)?;
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
        // Episodes are drawn already.
        if !is_episodes {
            findings.extend(rare_tags(domain, args.shots));
        }
        domains.push(CheckedDomain { name, n_sentences, check });
    }
    if is_episodes {
        let check = EpisodeCheck::of(&corpus.into_episodes(sources::name(path))?);
        findings.extend(finding(None, "queries in their own support", &check.leaks));
        findings.extend(finding(None, "queries with a tag the support lacks", &check.unlearnable));
    }
    Ok(Checked { path: path.to_owned(), format, scheme, domains, findings })
}

fn of_note(note: &Note) -> Finding {
    let (what, n, detail) = match note {
        Note::IllegalTags(found) => ("illegal tags", found.n, found.places()),
        Note::Repaired(found) => ("repaired", found.n, found.places()),
        Note::Ignored { what, n } => ("not read", *n, (*what).to_owned()),
        other => ("remark", 1, hints::note(other)),
    };
    Finding { domain: None, what, n, detail }
}

fn finding(domain: Option<&str>, what: &'static str, found: &Findings) -> Option<Finding> {
    let domain = domain.map(str::to_owned);
    (found.n > 0).then(|| Finding { domain, what, n: found.n, detail: found.places() })
}

/// The tags that `fewtag sample` leaves out, or has fewer sentences of than shots.
fn rare_tags(domain: &Domain, shots: usize) -> Option<Finding> {
    let rare = sampler::rare_tags(domain, MIN_SENTENCES, Duplicates::LeaveOut, shots);
    let shown: Vec<String> = rare.iter().map(|(tag, n)| format!("{tag} ({n})")).collect();
    let (domain, n, detail) = (Some(domain.name.clone()), rare.len(), shown.join(", "));
    (n > 0).then_some(Finding { domain, what: "tags too rare for the shots", n, detail })
}

fn domains(checked: &[Checked]) -> Table {
    let headers = ["file", "format", "scheme", "domain", "sentences", "words", "slots", "spans"];
    let mut table = Table::new("domains", headers);
    for file in checked {
        for domain in &file.domains {
            table.push([
                file.path.display().to_string().into(),
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

fn findings(checked: &[Checked]) -> Table {
    let mut table = Table::new("findings", ["file", "domain", "finding", "n", "detail"]);
    for file in checked {
        for finding in &file.findings {
            table.push([
                file.path.display().to_string().into(),
                finding.domain.as_deref().unwrap_or_default().into(),
                finding.what.into(),
                finding.n.into(),
                finding.detail.as_str().into(),
            ]);
        }
    }
    table
}
