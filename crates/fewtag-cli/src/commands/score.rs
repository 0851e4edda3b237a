//! `fewtag score`: predictions laid beside the gold tags.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use fewtag::Sentence;
use fewtag::data::{self, ReadOptions, Wanted};
use fewtag::eval::{EpisodeScore, Format, Judged, Report, table};
use fewtag::plural::Counted;

use super::values;
use crate::{hints, sources};

/// Judge predicted tags by conlleval's rules
///
/// Prints three tables: the scores of each domain (precision, recall and F1 of an episode, averaged over the
/// episodes, and the paper's sentence-macro F1), of each slot, and the accuracy of words by their gold bi-gram.
/// A file that is not an episode file counts as one episode; of an episode file the queries are judged.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag score examples/weather.conll examples/weather_predicted.conll
  fewtag score examples/weather.conll examples/weather_predicted.conll --table slots --format csv")]
pub(crate) struct Args {
    /// The true tags: any format that `fewtag data` knows (docs/reference/data.md), or a directory of files; `-` is standard input
    gold: PathBuf,
    /// The predicted tags of the same sentences in the same order, in any such format, or a directory of files
    predicted: PathBuf,
    /// How to print the tables
    #[arg(long, value_parser = values::table_format(), default_value = Format::Text.name())]
    format: Format,
    /// Print only this table; may be repeated
    #[arg(long = "table", value_name = "TABLE", value_parser = ["scores", "slots", "bi-grams"])]
    tables: Vec<String>,
}

/// Runs the command, writing the tables to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let both_standard = [&args.gold, &args.predicted].map(|path| sources::is_standard_input(path));
    ensure!(both_standard != [true; 2], "standard input can be read only once");
    let gold = read_all(&args.gold)?;
    let predicted: Vec<Sentence> =
        read_all(&args.predicted)?.into_iter().flat_map(|(_, sentences)| sentences).collect();
    same_words(args, gold.iter().flat_map(|(_, sentences)| sentences).collect(), &predicted)?;
    let report = judge(&gold, &predicted);
    let tables = values::asked_for(report.tables().to_vec(), &args.tables);
    out.write_all(table::render(&tables, args.format).as_bytes())?;
    Ok(())
}

/// The sentences of an episode that are judged, and its domain.
type JudgedEpisode = (String, Vec<Sentence>);

/// By domain and episode, the sentences of a file, or of all files of a directory.
fn read_all(path: &PathBuf) -> anyhow::Result<Vec<JudgedEpisode>> {
    let mut episodes = Vec::new();
    for file in sources::files(std::slice::from_ref(path), Wanted::Data)? {
        let bytes = sources::read(&file)?;
        episodes.extend(parse(sources::name(&file), &bytes).map_err(hints::reading_as_it_is)?);
    }
    Ok(episodes)
}

fn parse(path: &Path, bytes: &[u8]) -> fewtag::Result<Vec<JudgedEpisode>> {
    if data::detect(path, bytes)? == data::Format::Episodes {
        let episodes = data::parse_episodes(path, bytes)?;
        // A plain corpus in this format is one support set without queries.
        if episodes.iter().any(|episode| !episode.queries.is_empty()) {
            return Ok(episodes.into_iter().map(|e| (e.domain, e.queries)).collect());
        }
    }
    let domains = data::parse(path, bytes, &ReadOptions::default())?.domains;
    Ok(domains.into_iter().map(|domain| (domain.name, domain.sentences)).collect())
}

/// Checks that both files hold the same sentences.
fn same_words(args: &Args, gold: Vec<&Sentence>, predicted: &[Sentence]) -> anyhow::Result<()> {
    let (gold_file, predicted_file) = (args.gold.display(), args.predicted.display());
    ensure!(
        gold.len() == predicted.len(),
        "`{gold_file}` has {} to judge, but `{predicted_file}` has {}",
        Counted(gold.len(), "sentence"),
        predicted.len()
    );
    for (i, (gold, predicted)) in gold.into_iter().zip(predicted).enumerate() {
        let text = |sentence: &Sentence| sentence.words().collect::<Vec<_>>().join(" ");
        ensure!(
            gold.words().eq(predicted.words()),
            "sentence {} has other words in `{gold_file}` (`{}`) than in `{predicted_file}` (`{}`)",
            i + 1,
            text(gold),
            text(predicted)
        );
    }
    Ok(())
}

/// Lays the sentences of `predicted` beside those of `gold`, which have the same words.
fn judge(gold: &[(String, Vec<Sentence>)], predicted: &[Sentence]) -> Report {
    let mut report = Report::default();
    let mut rest = predicted.iter();
    for (domain, sentences) in gold {
        let pairs = sentences.iter().zip(&mut rest);
        let judged: Vec<_> = pairs.map(|(g, p)| Judged::new(g.tags(), p.tags())).collect();
        report.add(domain, EpisodeScore::of(&judged));
    }
    report
}
