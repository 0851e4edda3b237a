//! `fewtag sample`: few-shot episodes drawn from labelled sentences.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use fewtag::data::{self, EpisodeWriter};
use fewtag::eval::{Format, Summary, Table, table};
use fewtag::plural::Counted;
use fewtag::sampler::{Duplicates, EpisodeSettings, LeftOut, MIN_SENTENCES, SEED, Sampler};
use fewtag::{Domain, Error, Tag, file};
use serde::Serialize;
use serde_json::{Value, json};

use super::data::{ReadArgs, warn_of_notes};
use super::values;
use crate::outputs::{Force, Inputs};
use crate::progress::{self, warn};
use crate::sources;

/// Draw few-shot episodes with the paper's minimum-including algorithm
///
/// A support set holds every tag of its domain in at least SHOTS sentences and, but for the kept ones, no sentence
/// more than that takes; the queries are sentences with other words. The same files, settings and seed give the same
/// bytes everywhere. A manifest with the settings and checksums is written beside the episodes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag sample examples/weather.conll examples/music.conll --queries 5 --out episodes.json
  fewtag sample examples/weather.conll --shots 2 --queries 5 --keep 0 --seed 7 --out minimal.json")]
pub(crate) struct Args {
    /// Labelled sentences: any format that `fewtag data` knows (docs/reference/data.md), one domain a file, or directories of such
    /// files; `-` is standard input
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
    #[arg(long, default_value_t = EpisodeSettings::default().keep, value_parser = values::probability)]
    keep: f64,
    /// Leave out tags that occur in fewer sentences, and these sentences
    #[arg(long, default_value_t = MIN_SENTENCES)]
    min_sentences: usize,
    #[command(flatten)]
    duplicates: DuplicatesArg,
    /// Episode file to write; its manifest is written beside it
    #[arg(long)]
    out: PathBuf,
    #[command(flatten)]
    force: Force,
    #[command(flatten)]
    read: ReadArgs,
}

/// Whether a sentence that repeats another is one to draw
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct DuplicatesArg {
    /// Keep sentences that repeat another, as the paper does: a query may then stand in its own support
    #[arg(long)]
    keep_duplicates: bool,
}

impl From<DuplicatesArg> for Duplicates {
    fn from(arg: DuplicatesArg) -> Self {
        if arg.keep_duplicates { Self::Keep } else { Self::LeaveOut }
    }
}

/// What was drawn from one domain.
#[derive(Debug, Serialize)]
struct Sampled {
    domain: String,
    /// Those that episodes are drawn from.
    sentences: usize,
    /// Those that are not.
    left_out_sentences: LeftOut,
    mean_support: f64,
    /// The tags that are too rare to be sampled.
    left_out: Vec<String>,
    /// The tags with fewer sentences than shots.
    scarce: Vec<String>,
}

/// Everything that was drawn, and from what.
#[derive(Default)]
struct Drawn {
    domains: Vec<Sampled>,
    /// The inputs with their checksums.
    inputs: Vec<Value>,
}

/// Runs the command: writes the episodes and their manifest, and a summary to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let manifest = args.out.with_extension("manifest.json");
    let files = args.read.files(&args.files)?;
    args.force.check(&Inputs::new(&files), [args.out.as_path(), &manifest])?;
    let mut drawn = Drawn::default();
    let written = file::write_atomically_with(&args.out, |file| {
        let mut writer = EpisodeWriter::new(BufWriter::new(file));
        for path in &files {
            drawn.sample_file(path, args, &mut writer)?;
        }
        writer.finish()?.flush().map_err(Error::Write)
    });
    written.map_err(ReadArgs::hinted)?;
    let text = format!("{:#}\n", drawn.manifest(args)?);
    file::write_atomically(&manifest, text.as_bytes())?;
    for domain in &drawn.domains {
        domain.warn(args);
    }
    out.write_all(table::render(&[drawn.summary(args)], Format::Text).as_bytes())?;
    Ok(())
}

impl Drawn {
    /// Draws and writes the episodes of the domains of one file.
    fn sample_file(
        &mut self,
        path: &Path,
        args: &Args,
        writer: &mut EpisodeWriter<BufWriter<&mut File>>,
    ) -> fewtag::Result<()> {
        let bytes = sources::read(path)?;
        let corpus = data::parse(sources::name(path), &bytes, &args.read.options())?;
        warn_of_notes(path, &corpus);
        for domain in corpus.domains {
            if self.domains.iter().any(|before| before.domain == domain.name) {
                let (domain, path) = (domain.name, path.to_owned());
                return Err(Error::DuplicateDomain { domain, path });
            }
            self.domains.push(sample(domain, args, writer)?);
        }
        self.inputs.push(named(sources::name(path), &file::sha256(&bytes)));
        Ok(())
    }

    /// Settings, seed and checksums: what it takes to draw the same episodes again, and to know that they are.
    fn manifest(&self, args: &Args) -> anyhow::Result<Value> {
        Ok(json!({
            "fewtag": env!("CARGO_PKG_VERSION"),
            "settings": {
                "shots": args.shots,
                "episodes": args.episodes,
                "queries": args.queries,
                "keep": args.keep,
                "min_sentences": args.min_sentences,
                "keep_duplicates": args.duplicates.keep_duplicates,
            },
            "seed": args.seed,
            "inputs": self.inputs,
            "output": named(&args.out, &file::sha256_of_file(&args.out)?),
            "domains": self.domains,
        }))
    }

    fn summary(&self, args: &Args) -> Table {
        let headers = ["domain", "sentences", "left out", "episodes", "queries", "mean support"];
        let mut table = Table::new("episodes", headers);
        for domain in &self.domains {
            table.push([
                domain.domain.as_str().into(),
                domain.sentences.into(),
                domain.left_out_sentences.n().into(),
                args.episodes.into(),
                args.queries.into(),
                domain.mean_support.into(),
            ]);
        }
        table
    }
}

/// A file without its directory, so that the manifest too is the same everywhere.
fn named(path: &Path, sha256: &str) -> Value {
    json!({"file": path.file_name().unwrap_or_default().to_string_lossy(), "sha256": sha256})
}

/// Draws and writes the episodes of one domain.
fn sample(
    domain: Domain,
    args: &Args,
    writer: &mut EpisodeWriter<BufWriter<&mut File>>,
) -> fewtag::Result<Sampled> {
    let Args { shots, queries, keep, .. } = *args;
    let sampler = Sampler::new(domain, args.min_sentences, args.duplicates.into())?;
    let bar = progress::episodes(args.episodes, &sampler.domain().name);
    let mut sizes = Vec::with_capacity(args.episodes);
    for episode in
        sampler.episodes(EpisodeSettings { shots, queries, keep }, args.seed).take(args.episodes)
    {
        let episode = episode?;
        sizes.push(episode.support.sentences().len() as f64);
        writer.episode(&episode)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(Sampled {
        domain: sampler.domain().name.clone(),
        sentences: sampler.n_sentences(),
        left_out_sentences: sampler.left_out_sentences(),
        mean_support: Summary::of(sizes).mean,
        left_out: sampler.left_out().map(Tag::to_string).collect(),
        scarce: sampler.scarce(shots).map(|(tag, _)| tag.to_string()).collect(),
    })
}

impl Sampled {
    /// Tells what is not sampled as often as was asked for.
    fn warn(&self, args: &Args) {
        let Self { domain, scarce, .. } = self;
        warn_of_left_out(domain, &self.left_out, self.left_out_sentences, args.min_sentences);
        if !scarce.is_empty() {
            let (shots, tags) = (args.shots, scarce.join(", "));
            warn(&format!(
                "{domain}: every support set has all sentences, fewer than {shots}, of: {tags}"
            ));
        }
    }
}

/// Tells which tags and sentences of a domain are not sampled.
pub(crate) fn warn_of_left_out(
    domain: &str,
    tags: &[String],
    sentences: LeftOut,
    min_sentences: usize,
) {
    if !tags.is_empty() {
        let (n, tags) = (Counted(sentences.rare, "sentence"), tags.join(", "));
        warn(&format!(
            "{domain}: left out with {n}, because they occur in fewer than {min_sentences}: {tags}"
        ));
    }
    if sentences.duplicates > 0 {
        let n = Counted(sentences.duplicates, "sentence");
        warn(&format!(
            "{domain}: left out as repeating another: {n} (--keep-duplicates keeps them)"
        ));
    }
}
