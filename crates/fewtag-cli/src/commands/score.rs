//! `fewtag score`: predictions laid beside the gold tags.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::ensure;
use fewtag::data::{self, ReadOptions};
use fewtag::eval::{EpisodeScore, Format, Judged, Report, table};
use fewtag::{Sentence, file};

use super::values;

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
    /// The true tags: any format that `fewtag data` knows (docs/data.md)
    gold: PathBuf,
    /// The predicted tags of the same sentences in the same order, in any such format
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
    let gold = read_episodes(&args.gold)?;
    let predicted: Vec<Sentence> =
        read_episodes(&args.predicted)?.into_iter().flat_map(|(_, sentences)| sentences).collect();
    same_words(args, gold.iter().flat_map(|(_, sentences)| sentences).collect(), &predicted)?;
    let report = judge(&gold, &predicted);
    let tables = values::asked_for(report.tables().to_vec(), &args.tables);
    out.write_all(table::render(&tables, args.format).as_bytes())?;
    Ok(())
}

/// By domain and episode, the sentences that are judged.
fn read_episodes(path: &Path) -> anyhow::Result<Vec<(String, Vec<Sentence>)>> {
    if data::detect(path, &file::read(path)?)? == data::Format::Episodes {
        let episodes = data::read_episodes(path)?;
        // A plain corpus in this format is one support set without queries.
        if episodes.iter().any(|episode| !episode.queries.is_empty()) {
            return Ok(episodes.into_iter().map(|e| (e.domain, e.queries)).collect());
        }
    }
    let domains = data::read_domains(path, &ReadOptions::default())?;
    Ok(domains.into_iter().map(|domain| (domain.name, domain.sentences)).collect())
}

/// Checks that both files hold the same sentences.
fn same_words(args: &Args, gold: Vec<&Sentence>, predicted: &[Sentence]) -> anyhow::Result<()> {
    let (gold_file, predicted_file) = (args.gold.display(), args.predicted.display());
    ensure!(
        gold.len() == predicted.len(),
        "`{gold_file}` has {} sentences to judge, but `{predicted_file}` has {}",
        gold.len(),
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
