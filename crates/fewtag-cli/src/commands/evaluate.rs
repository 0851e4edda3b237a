//! `fewtag evaluate`: a model judged on episodes.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use fewtag::data::{self, EpisodeWriter, Writer};
use fewtag::encoder::Precision;
use fewtag::eval::{Cell, DomainScores, EpisodeScore, Format, Report, Summary, Table, table};
use fewtag::eval::{Evaluation, evaluate};
use fewtag::{
    DomainFile, Episode, Error, ModelSettings, Sentence, SupportSet, Tagged, Tagger, Token, file,
    model,
};
use serde_json::{Value, json};

use super::{tagger, values};
use crate::hints;
use crate::outputs::{Force, Inputs};
use crate::progress;
use crate::sources::{self, EpisodeFile};

/// Score a model on episodes it was not trained on
///
/// For each episode the model sees the support sentences, tags the queries and is judged on them. Prints the tables
/// of `fewtag score` (docs/reference/scores.md). The result depends neither on the number of cores nor on the other episodes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag evaluate runs/music episodes.json --table scores --results scores.json
  fewtag evaluate encoders/minilm-l6 episodes.json --untrained --set context=separate --set scorer=prototype
  fewtag evaluate --domain music.fewtag other-sentences.conll --table scores --table slots")]
pub(crate) struct Args {
    /// Model directory written by `fewtag train`; with --domain the first file of labelled sentences
    model: PathBuf,
    /// Episode files (docs/guide/episodes.md), or directories of them; `-` is standard input; with --domain more labelled
    /// sentences
    #[arg(required_unless_present = "domain")]
    episodes: Vec<PathBuf>,
    /// Judge this saved domain, tuned or not, on labelled sentences in any data format
    #[arg(long, value_name = "FILE", conflicts_with_all = ["also", "untrained", "set", "first", "names_only", "results"])]
    domain: Option<PathBuf>,
    /// The model that the domain was made for: a directory, or `owner/name` on the hub [default: the model built into fewtag]
    #[arg(long = "model", value_name = "DIR|NAME", requires = "domain")]
    base: Option<String>,
    /// The same model trained with another seed; scores are then averaged over all; may be repeated
    #[arg(long, value_name = "MODEL")]
    also: Vec<PathBuf>,
    /// MODEL is an encoder directory: judge a model that was never trained
    #[arg(long)]
    untrained: bool,
    /// Change a setting of the model, such as `context=separate`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// In which numbers the encoder computes, unless it is untrained (docs/reference/engine.md)
    #[arg(long, value_parser = values::precision(), default_value_t)]
    precision: Precision,
    /// Judge only the first N episodes of each file
    #[arg(long, value_name = "N", value_parser = values::at_least_one())]
    first: Option<usize>,
    /// Take all examples away and tag by the names of the labels alone
    #[arg(long)]
    names_only: bool,
    /// Write the queries with their predicted tags to this file
    #[arg(long, value_name = "FILE", conflicts_with = "also")]
    predictions: Option<PathBuf>,
    /// The data format of the predictions (docs/reference/data.md)
    #[arg(long, value_name = "FORMAT", default_value_t = data::Format::Conll)]
    predictions_format: data::Format,
    /// Write all scores as JSON to this file, with the model, its settings and the checksums of the data
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
    /// How to print the tables
    #[arg(long, value_parser = values::table_format(), default_value = Format::Text.name())]
    format: Format,
    /// Print only this table; may be repeated
    #[arg(long = "table", value_name = "TABLE", value_parser = ["scores", "slots", "bi-grams", "seeds"])]
    tables: Vec<String>,
}

/// Runs the command, writing the tables to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    if let Some(domain) = &args.domain {
        return of_domain(args, domain, out);
    }
    let models = [&args.model].into_iter().chain(&args.also);
    let files = sources::episodes(&args.episodes)?;
    let inputs = Inputs::new(files.iter().map(|file| &file.path));
    let inputs = models.clone().fold(inputs, |all, dir| all.and_model(dir));
    let outputs = [&args.predictions, &args.results].into_iter().flatten();
    args.force.check(&inputs, outputs.map(PathBuf::as_path))?;
    let first = |file: &EpisodeFile| {
        let first = args.first.unwrap_or(usize::MAX).min(file.episodes.len());
        file.episodes[..first].to_vec()
    };
    let mut episodes: Vec<Episode> = files.iter().flat_map(first).collect();
    if args.names_only {
        episodes = episodes.into_iter().map(without_examples).collect::<fewtag::Result<_>>()?;
    }
    let mut evaluations = Vec::new();
    for path in models {
        let tagger = load(path, args)?;
        let bar = progress::episodes(episodes.len(), &path.display().to_string());
        evaluations.push((tagger.settings().clone(), evaluate(&tagger, &episodes, || bar.inc(1))?));
        bar.finish_and_clear();
    }
    let (settings, Evaluation { report, answers }) = &evaluations[0];
    if let Some(path) = &args.predictions {
        write_predictions(path, args.predictions_format, &episodes, answers)?;
    }
    let reports: Vec<&Report> = evaluations.iter().map(|(_, one)| &one.report).collect();
    let mut tables = report.tables().to_vec();
    if reports.len() > 1 {
        tables.push(seeds(&reports));
    }
    if let Some(path) = &args.results {
        let mut results = results(args, settings, &files, &tables)?;
        results["episode f1"] = reports.iter().map(|report| episode_f1(report)).collect();
        let text = format!("{results:#}\n");
        file::write_atomically(path, text.as_bytes())?;
    }
    let tables = values::asked_for(tables, &args.tables);
    out.write_all(table::render(&tables, args.format).as_bytes())?;
    Ok(())
}

/// Judges a saved domain on labelled sentences: one episode, whose examples are those of the domain.
fn of_domain(args: &Args, path: &Path, out: &mut impl Write) -> anyhow::Result<()> {
    let domain = DomainFile::read(path)?;
    let mut paths = vec![args.model.clone()];
    paths.extend(args.episodes.iter().cloned());
    let files = sources::files(&paths, data::Wanted::Data)?;
    let inputs = Inputs::new(files.iter().chain([&path.to_owned()]));
    args.force.check(&inputs, args.predictions.iter().map(PathBuf::as_path))?;
    let mut queries = Vec::new();
    for file in &files {
        let (name, bytes) = (sources::name(file), sources::read(file)?);
        let corpus = data::parse(name, &bytes, &data::ReadOptions::default());
        queries.extend(corpus.map_err(hints::reading_as_it_is)?.into_sentences());
    }
    ensure!(!queries.is_empty(), "there is no labelled sentence to judge the domain on");
    let base = tagger::load(args.base.as_deref(), args.precision)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let episode = Episode { domain: name, support: domain.support().clone(), queries };
    let episodes = [episode];
    let Evaluation { report, answers } = evaluate(&domain.tagger(&base, path)?, &episodes, || ())?;
    if let Some(path) = &args.predictions {
        write_predictions(path, args.predictions_format, &episodes, &answers)?;
    }
    let tables = values::asked_for(report.tables().to_vec(), &args.tables);
    out.write_all(table::render(&tables, args.format).as_bytes())?;
    Ok(())
}

/// The same episode whose labels have lost their examples.
pub(super) fn without_examples(mut episode: Episode) -> fewtag::Result<Episode> {
    episode.support = SupportSet::with_labels(Vec::new(), episode.support.shown_slots())?;
    Ok(episode)
}

fn load(path: &Path, args: &Args) -> anyhow::Result<Tagger> {
    let tagger = if args.untrained {
        model::from_encoder(path, ModelSettings::default(), 0)
    } else {
        model::load_with(path, args.precision)
    };
    let tagger = tagger.with_context(|| format!("cannot use the model `{}`", path.display()))?;
    let settings = changed(tagger.settings(), &args.set)?;
    let (scale, tagger) = (settings.scale, tagger.with_settings(settings)?);
    Ok(if args.untrained { tagger.with_scale(scale) } else { tagger })
}

/// The settings with `KEY=VALUE` changes; a value is TOML, or else a bare word.
fn changed(settings: &ModelSettings, changes: &[String]) -> anyhow::Result<ModelSettings> {
    let mut table = toml::Table::try_from(settings)?;
    for change in changes {
        let (key, value) =
            change.split_once('=').with_context(|| format!("`{change}` is not KEY=VALUE"))?;
        let parsed = toml::from_str::<toml::Table>(&format!("value = {value}"));
        let value = match parsed {
            Ok(mut parsed) => parsed.remove("value").expect("it was just written"),
            Err(_) => value.into(),
        };
        table.insert(key.to_owned(), value);
    }
    table.try_into().with_context(|| format!("cannot apply {changes:?}"))
}

/// The queries in their order with the tags that they were given.
fn write_predictions(
    path: &Path,
    format: data::Format,
    episodes: &[Episode],
    answers: &[Vec<Tagged>],
) -> fewtag::Result<()> {
    file::write_atomically_with(path, |file| {
        let mut out = std::io::BufWriter::new(file);
        let predicted =
            episodes.iter().zip(answers).map(|(episode, answers)| predicted(episode, answers));
        if format == data::Format::Episodes {
            let mut writer = EpisodeWriter::new(&mut out);
            for episode in predicted {
                writer.episode(&episode?)?;
            }
            writer.finish()?;
        } else {
            let mut writer = Writer::new(format, &mut out);
            for episode in predicted {
                for sentence in &episode?.queries {
                    writer.sentence(sentence)?;
                }
            }
            writer.finish()?;
        }
        out.flush().map_err(Error::Write)
    })
}

/// The episode with the predicted tags in the place of the gold ones.
fn predicted(episode: &Episode, answers: &[Tagged]) -> fewtag::Result<Episode> {
    let retag = |(query, answer): (&Sentence, &Tagged)| {
        let pairs = query.words().zip(&answer.tags);
        Sentence::new(
            pairs.map(|(word, tag)| Token { word: word.into(), tag: tag.clone() }).collect(),
        )
    };
    let queries = episode.queries.iter().zip(answers).map(retag).collect::<fewtag::Result<_>>()?;
    Ok(Episode { queries, ..episode.clone() })
}

/// Mean and deviation over the models, domain by domain; then of the averages over domains.
fn seeds(reports: &[&Report]) -> Table {
    let mut table = Table::new(
        "seeds",
        ["domain", "models", "f1", "f1 sd", "sentence-macro f1", "sentence-macro sd"],
    );
    let means = |number: fn(&EpisodeScore) -> f64| {
        let of_report = |report: &&Report| {
            report.domains.iter().map(|domain| domain.over_episodes(number).mean).collect()
        };
        reports.iter().map(of_report).collect::<Vec<Vec<f64>>>()
    };
    let scores = [means(EpisodeScore::f1), means(EpisodeScore::sentence_macro_f1)];
    let mut row = |name: &str, pick: &dyn Fn(&Vec<f64>) -> f64| {
        let numbers = scores.iter().flat_map(|of_models| {
            let Summary { mean, sd, .. } = Summary::of(of_models.iter().map(pick));
            [mean, sd].map(|score| Cell::from(100.0 * score))
        });
        table.push([name.into(), reports.len().into()].into_iter().chain(numbers));
    };
    let domains = &reports[0].domains;
    for (d, domain) in domains.iter().enumerate() {
        row(&domain.name, &|means| means[d]);
    }
    if domains.len() > 1 {
        row("(average)", &|means| means.iter().sum::<f64>() / means.len() as f64);
    }
    table
}

/// The F1 of every episode, domain by domain: what a paired comparison of two models needs.
fn episode_f1(report: &Report) -> Value {
    let of_domain = |domain: &DomainScores| {
        let f1: Vec<f64> = domain.episodes.iter().map(|episode| 100.0 * episode.f1()).collect();
        (domain.name.clone(), json!(f1))
    };
    Value::Object(report.domains.iter().map(of_domain).collect())
}

/// The scores with all that decides them.
fn results(
    args: &Args,
    settings: &ModelSettings,
    files: &[EpisodeFile],
    tables: &[Table],
) -> anyhow::Result<Value> {
    let named = |path: &Path, sha256: &str| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        json!({"name": name, "sha256": sha256})
    };
    let models = [&args.model].into_iter().chain(&args.also);
    let models = models.map(|dir| -> anyhow::Result<Value> {
        Ok(named(dir, &file::sha256_of_file(&dir.join("model.safetensors"))?))
    });
    let data = files.iter().map(|file| named(sources::name(&file.path), &file.sha256));
    let mut results = json!({
        "fewtag": env!("CARGO_PKG_VERSION"),
        "models": models.collect::<anyhow::Result<Vec<_>>>()?,
        "trained": !args.untrained,
        "settings": settings,
        "data": data.collect::<Vec<_>>(),
        "first": args.first,
    });
    let scores: Value = serde_json::from_str(&table::render(tables, Format::Json))?;
    if let (Some(results), Value::Object(scores)) = (results.as_object_mut(), scores) {
        results.extend(scores);
    }
    Ok(results)
}
