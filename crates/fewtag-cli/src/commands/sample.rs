//! `fewtag sample`: few-shot episodes drawn from labelled sentences.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use fewtag::data::{self, EpisodeWriter};
use fewtag::eval::{Format, Summary, Table, table};
use fewtag::sampler::{MIN_SENTENCES, SEED, Sampler, Settings};
use fewtag::{Domain, Error, Tag, file};
use serde::Serialize;
use serde_json::json;

use super::data::ReadArgs;
use super::values;
use crate::outputs::{Force, Inputs};
use crate::progress::{self, warn};
use crate::sha256;

/// Draw few-shot episodes with the paper's minimum-including algorithm
///
/// A support set holds every tag of its domain in at least SHOTS sentences and, but for the kept ones, no sentence
/// more than that takes; the queries are other sentences. The same files, settings and seed give the same bytes
/// everywhere. A manifest with the settings and checksums is written beside the episodes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag sample examples/weather.conll examples/music.conll --queries 5 --out episodes.json
  fewtag sample examples/weather.conll --shots 2 --queries 5 --keep 0 --seed 7 --out minimal.json")]
pub(crate) struct Args {
    /// Labelled sentences: any format that `fewtag data` knows (docs/data.md); one domain a file
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// In how many support sentences each tag occurs
    #[arg(long, default_value_t = 1, value_parser = values::at_least_one())]
    shots: usize,
    /// Episodes per domain
    #[arg(long, default_value_t = 100)]
    episodes: usize,
    /// Query sentences per episode
    #[arg(long, default_value_t = 20)]
    queries: usize,
    /// What all random choices follow from
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// Probability to keep a support sentence that is not needed; 0 gives minimal sets
    #[arg(long, default_value_t = Settings::default().keep, value_parser = values::probability)]
    keep: f64,
    /// Leave out tags that occur in fewer sentences, and these sentences
    #[arg(long, default_value_t = MIN_SENTENCES)]
    min_sentences: usize,
    /// Episode file to write; its manifest is written beside it
    #[arg(long)]
    out: PathBuf,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    read: ReadArgs,
}

/// What was drawn from one domain.
#[derive(Debug, Serialize)]
struct Sampled {
    domain: String,
    sentences: usize,
    mean_support: f64,
    /// The tags that are too rare to be sampled.
    left_out: Vec<String>,
    /// The tags with fewer sentences than shots.
    scarce: Vec<String>,
}

/// Runs the command: writes the episodes and their manifest, and a summary to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let manifest = args.out.with_extension("manifest.json");
    let inputs = Inputs::new(&args.files);
    args.force.check(&inputs, [args.out.as_path(), &manifest])?;
    let mut sampled = Vec::new();
    file::write_atomically_with(&args.out, |file| {
        let mut writer = EpisodeWriter::new(BufWriter::new(file));
        for path in &args.files {
            let corpus = data::read(path, &args.read.options())?;
            for note in &corpus.notes {
                warn(&format!("{}: {note}", path.display()));
            }
            for domain in corpus.domains {
                if sampled.iter().any(|before: &Sampled| before.domain == domain.name) {
                    return Err(Error::DuplicateDomain { domain: domain.name, path: path.clone() });
                }
                sampled.push(sample(domain, args, &mut writer)?);
            }
        }
        writer.finish()?.flush().map_err(Error::Write)
    })?;
    file::write_atomically(
        &manifest,
        format!("{:#}\n", self::manifest(args, &sampled)?).as_bytes(),
    )?;
    for domain in &sampled {
        warn_of_rare_tags(args, domain);
    }
    out.write_all(table::render(&[summary(args, &sampled)], Format::Text).as_bytes())?;
    Ok(())
}

/// Draws and writes the episodes of one domain.
fn sample(
    domain: Domain,
    args: &Args,
    writer: &mut EpisodeWriter<BufWriter<&mut File>>,
) -> fewtag::Result<Sampled> {
    let Args { shots, queries, keep, .. } = *args;
    let sampler = Sampler::new(domain, args.min_sentences)?;
    let bar = progress::episodes(args.episodes, &sampler.domain().name);
    let mut sizes = Vec::with_capacity(args.episodes);
    for episode in
        sampler.episodes(Settings { shots, queries, keep }, args.seed).take(args.episodes)
    {
        let episode = episode?;
        sizes.push(episode.support.sentences().len() as f64);
        writer.episode(&episode)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(Sampled {
        domain: sampler.domain().name.clone(),
        sentences: sampler.domain().sentences.len(),
        mean_support: Summary::of(sizes).mean,
        left_out: sampler.left_out().map(Tag::to_string).collect(),
        scarce: sampler.scarce(shots).map(|(tag, _)| tag.to_string()).collect(),
    })
}

/// Settings, seed and checksums: what it takes to draw the same episodes again, and to know that they are.
///
/// Files are named without their directories, so that the manifest too is the same everywhere.
fn manifest(args: &Args, sampled: &[Sampled]) -> anyhow::Result<serde_json::Value> {
    let checksum = |path: &PathBuf| -> anyhow::Result<serde_json::Value> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(json!({"file": name, "sha256": sha256::of_file(path)?}))
    };
    Ok(json!({
        "fewtag": env!("CARGO_PKG_VERSION"),
        "settings": {
            "shots": args.shots,
            "episodes": args.episodes,
            "queries": args.queries,
            "keep": args.keep,
            "min_sentences": args.min_sentences,
        },
        "seed": args.seed,
        "inputs": args.files.iter().map(checksum).collect::<anyhow::Result<Vec<_>>>()?,
        "output": checksum(&args.out)?,
        "domains": sampled,
    }))
}

fn warn_of_rare_tags(args: &Args, sampled: &Sampled) {
    let Sampled { domain, left_out, scarce, .. } = sampled;
    let Args { shots, min_sentences, .. } = args;
    if !left_out.is_empty() {
        let tags = left_out.join(", ");
        warn(&format!(
            "{domain}: left out with their sentences, fewer than {min_sentences}: {tags}"
        ));
    }
    if !scarce.is_empty() {
        let tags = scarce.join(", ");
        warn(&format!(
            "{domain}: every support set has all sentences, fewer than {shots}, of: {tags}"
        ));
    }
}

fn summary(args: &Args, sampled: &[Sampled]) -> Table {
    let mut table =
        Table::new("episodes", ["domain", "sentences", "episodes", "queries", "mean support"]);
    for domain in sampled {
        table.push([
            domain.domain.as_str().into(),
            domain.sentences.into(),
            args.episodes.into(),
            args.queries.into(),
            domain.mean_support.into(),
        ]);
    }
    table
}
