//! `fewtag data stats`: the paper's two tables about data.

use std::io::Write;
use std::path::PathBuf;

use fewtag::data::Check;
use fewtag::eval::{Format, Table, table};
use fewtag::sampler::{EpisodeSettings, MIN_SENTENCES, SEED, Sampler};
use fewtag::{Domain, Tag};
use rayon::prelude::*;

use super::ReadArgs;
use crate::commands::sample::{DuplicatesArg, warn_of_left_out};
use crate::commands::values;

/// Print the paper's tables about data: sentences and labels per domain, and the average size of support sets
///
/// Labels are the slots and `O`, as the paper counts them. Support sets are drawn as `fewtag sample` draws them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag data stats examples/weather.conll examples/music.conll
  fewtag data stats examples/weather.conll --shots 1,2 --episodes 20 --output markdown")]
pub(crate) struct Args {
    /// Files of labelled sentences in any format (docs/reference/data.md), or directories of them; `-` is standard input
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The shots whose support sets are measured
    #[arg(long, value_delimiter = ',', default_value = "1,5", value_parser = values::at_least_one())]
    shots: Vec<usize>,
    /// How many support sets to draw for an average
    #[arg(long, default_value_t = 100, value_parser = values::at_least_one())]
    episodes: usize,
    /// What all random choices follow from
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    #[command(flatten)]
    duplicates: DuplicatesArg,
    #[command(flatten)]
    read: ReadArgs,
    /// How to print the tables
    #[arg(long, value_parser = values::table_format(), default_value = Format::Text.name())]
    output: Format,
}

/// Runs the command, writing the tables to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let files = args.read.files(&args.files)?;
    let corpora = files.par_iter().map(|path| args.read.read(path));
    let corpora = corpora.collect::<anyhow::Result<Vec<_>>>()?;
    let domains: Vec<Domain> = corpora.into_iter().flat_map(|corpus| corpus.domains).collect();
    let counts = counts(&domains);
    let rows = domains.into_par_iter().map(|domain| support_sizes(domain, args));
    let rows = rows.collect::<fewtag::Result<Vec<_>>>()?;
    let mut sizes = Table::new("average support size", shot_headers(&args.shots));
    for (sampler, means) in rows {
        let name = sampler.domain().name.as_str();
        let tags: Vec<String> = sampler.left_out().map(Tag::to_string).collect();
        warn_of_left_out(name, &tags, sampler.left_out_sentences(), MIN_SENTENCES);
        sizes.push(std::iter::once(name.into()).chain(means.into_iter().map(Into::into)));
    }
    out.write_all(table::render(&[counts, sizes], args.output).as_bytes())?;
    Ok(())
}

fn counts(domains: &[Domain]) -> Table {
    let mut table = Table::new("domains", ["domain", "sentences", "words", "labels"]);
    for domain in domains {
        let check = Check::of(domain);
        table.push([
            domain.name.as_str().into(),
            domain.sentences.len().into(),
            check.n_words.into(),
            (check.slots.len() + 1).into(),
        ]);
    }
    table
}

fn shot_headers(shots: &[usize]) -> Vec<String> {
    let shots = shots.iter().map(|shots| format!("{shots}-shot"));
    std::iter::once("domain".to_owned()).chain(shots).collect()
}

/// What is drawn from a domain, and the mean size of its support sets for each number of shots.
fn support_sizes(domain: Domain, args: &Args) -> fewtag::Result<(Sampler, Vec<f64>)> {
    let sampler = Sampler::new(domain, MIN_SENTENCES, args.duplicates.into())?;
    let mean = |&shots| {
        let settings = EpisodeSettings { shots, ..EpisodeSettings::default() };
        sampler.mean_support(&settings, args.seed, args.episodes)
    };
    let means = args.shots.iter().map(mean).collect();
    Ok((sampler, means))
}
