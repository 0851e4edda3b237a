//! `fewtag train`: from source domains to a model directory.
//!
//! ```text
//! OUT/README.md, fewtag.json, model.safetensors, …   the model with the best dev F1
//! OUT/train.toml       the settings, complete
//! OUT/metrics.jsonl    one line per update
//! OUT/curves.svg       loss, λ and dev F1
//! OUT/transitions.svg  the learned transition table
//! OUT/checkpoints/     what `--resume` needs; removed when training is done
//! ```

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};
use fewtag::encoder::Storage;
use fewtag::eval::{Format, table};
use fewtag::plural::Counted;
use fewtag::train::config::Config;
use fewtag::train::{Checkpoints, LeftOut, Step, Trained, Trainer};
use fewtag::{file, model};
use fewtag_experiments::card::{Section, TRANSITIONS};
use fewtag_experiments::curves::{Curve, Panel, smoothed, svg};
use indicatif::{ProgressBar, ProgressStyle};
use serde::{Deserialize, Serialize};

use super::model::card;
use super::values;
use crate::outputs::Inputs;
use crate::sources;

/// Train a model on source domains; what scores best on the dev domains is kept
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag train --config configs/snips-1shot.toml --out runs/snips
  fewtag train --config configs/snips-1shot.toml --out runs/snips --resume
  fewtag train --config configs/snips-1shot.toml --out runs/fast --updates 200 --set optimizer.encoder_rate=1e-4")]
pub(crate) struct Args {
    #[command(flatten)]
    settings: ConfigArgs,
    /// Directory for the model; made if it is not there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Go on where an interrupted run of the same settings stopped
    #[arg(long)]
    resume: bool,
    /// Overrides `seed`
    #[arg(long)]
    seed: Option<u64>,
}

/// Where the settings of a run come from.
#[derive(Debug, clap::Args)]
pub(super) struct ConfigArgs {
    /// Settings in TOML (see docs/guide/training.md)
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Overrides `optimizer.updates`
    #[arg(long)]
    updates: Option<u64>,
    /// Overrides any setting, e.g. `data.shots=[1,5]`; may be repeated
    #[arg(long = "set", value_name = "FIELD=VALUE", value_parser = values::field_and_value)]
    overrides: Vec<(String, String)>,
}

impl ConfigArgs {
    /// Reads the file and puts the overrides in.
    pub(super) fn read(&self) -> anyhow::Result<Config> {
        let path = self.config.display();
        let text = std::fs::read_to_string(&self.config)
            .with_context(|| format!("cannot read `{path}`"))?;
        let overrides: Vec<(&str, &str)> =
            self.overrides.iter().map(|(field, value)| (&field[..], &value[..])).collect();
        let mut config =
            Config::parse(&text, &overrides).with_context(|| format!("cannot use `{path}`"))?;
        config.optimizer.updates = self.updates.or(config.optimizer.updates);
        Ok(config)
    }
}

/// Runs the command, writing the tables of scores to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let mut config = args.settings.read()?;
    config.seed = args.seed.unwrap_or(config.seed);
    let trained = train(&config, &args.out, args.resume)?;
    for (report, data) in [(&trained.dev, "dev"), (&trained.test, "test")] {
        if !report.domains.is_empty() {
            writeln!(out, "{data} data\n\n{}", table::render(&[report.scores()], Format::Text))?;
        }
    }
    Ok(())
}

/// The directory of the checkpoints in that of the model.
const CHECKPOINTS: &str = "checkpoints";

/// What a run writes, besides `metrics.jsonl` and the checkpoints.
const WRITTEN: [&str; 8] = [
    "README.md",
    TRANSITIONS,
    "fewtag.json",
    "config.json",
    "tokenizer.json",
    "model.safetensors",
    "train.toml",
    "curves.svg",
];

/// One line of `metrics.jsonl`.
#[derive(Serialize, Deserialize)]
struct MetricsLine {
    #[serde(flatten)]
    step: Step,
    /// Wall time since the run started or was resumed.
    seconds: f64,
}

/// Whether training into `dir` was finished: the model is written and the checkpoints are gone.
pub(super) fn is_finished(dir: &Path) -> bool {
    dir.join("fewtag.json").exists() && !dir.join(CHECKPOINTS).exists()
}

/// Trains one model into `dir`.
pub(super) fn train(config: &Config, dir: &Path, resume: bool) -> anyhow::Result<Trained> {
    let metrics = dir.join("metrics.jsonl");
    if metrics.exists() && !resume {
        bail!("`{}` already holds a run: add --resume or choose another directory", dir.display());
    }
    if dir.exists() {
        file::remove_leftovers(dir)?;
    }
    if is_finished(dir) {
        bail!("training in `{}` is finished: there is nothing to resume", dir.display());
    }
    if !resume {
        check_directory(config, dir)?;
    }
    let mut trainer = Trainer::new(config.clone())?;
    let LeftOut { files, n_long_sentences } = trainer.left_out();
    sources::warn_of_left_out(files);
    if *n_long_sentences > 0 {
        let (n, max) = (Counted(*n_long_sentences, "sentence"), config.data.max_words);
        say(format_args!("warning: left out as longer than {max} words: {n}"));
    }
    let mut checkpoints = Checkpoints::create(dir.join(CHECKPOINTS))?;
    if resume {
        for refused in checkpoints.resume(&mut trainer)? {
            let refused = anyhow::Error::from(refused);
            say(format_args!("warning: {refused:#}; going back to an older checkpoint"));
        }
        say(format_args!("resuming after update {}", trainer.progress().update));
    }
    file::write_atomically(&dir.join("train.toml"), config.to_toml().as_bytes())?;
    let mut records = earlier_records(&metrics, trainer.progress().update)?;
    follow(&mut trainer, &mut checkpoints, &metrics, &mut records)?;
    file::write_atomically(&dir.join("curves.svg"), svg(&panels(&records)).as_bytes())?;
    let trained = trainer.finish()?;
    model::save(&trained.tagger, dir, Storage::F32)?;
    card::write(&Section::new(&trained.tagger, &[]), dir, Some(trained.card()))?;
    // Only now: until the model is written, the checkpoints are all there is.
    checkpoints.remove()?;
    Ok(trained)
}

/// Refuses to write over what the run reads, or over an encoder or model that is no run.
fn check_directory(config: &Config, dir: &Path) -> anyhow::Result<()> {
    let data = &config.data;
    let read = Inputs::new(data.train.iter().chain(&data.dev).chain(&data.test));
    let inputs = read.and_model(&config.encoder);
    inputs.refuse(dir)?;
    let there = WRITTEN.iter().map(|name| dir.join(name)).find(|path| path.exists());
    if let Some(path) = there {
        inputs.refuse(&path)?;
        bail!("`{}` is there already: choose another directory", path.display());
    }
    Ok(())
}

/// The lines of an interrupted run up to its checkpoint; later ones will be written again.
fn earlier_records(metrics: &Path, update: u64) -> anyhow::Result<Vec<MetricsLine>> {
    if update == 0 || !metrics.exists() {
        return Ok(Vec::new());
    }
    let mut records = Vec::new();
    for line in std::fs::read_to_string(metrics)?.lines() {
        // The last line may have been cut by the interruption; it then lies behind the checkpoint.
        match serde_json::from_str::<MetricsLine>(line) {
            Ok(record) if record.step.update <= update => records.push(record),
            _ => break,
        }
    }
    Ok(records)
}

/// Runs the trainer to its end: bar, metrics, checkpoints.
fn follow(
    trainer: &mut Trainer,
    checkpoints: &mut Checkpoints,
    metrics: &Path,
    records: &mut Vec<MetricsLine>,
) -> anyhow::Result<()> {
    let mut lines = Vec::new();
    for record in &*records {
        writeln!(lines, "{}", serde_json::to_string(record)?)?;
    }
    file::write_atomically(metrics, &lines)?;
    let mut file = std::fs::OpenOptions::new().append(true).open(metrics)?;
    let before = records.last().map_or(0.0, |record| record.seconds);
    let start = Instant::now();
    let bar = bar(trainer)?;
    let mut recent = Recent { since: before, ..Recent::default() };
    while let Some(step) = trainer.next() {
        let record = MetricsLine { step: step?, seconds: before + start.elapsed().as_secs_f64() };
        // A whole line at once, before the checkpoint that counts it as written.
        file.write_all(format!("{}\n", serde_json::to_string(&record)?).as_bytes())
            .with_context(|| format!("cannot write `{}`", metrics.display()))?;
        recent.add(&record);
        bar.set_message(recent.message(&record));
        bar.set_position(record.step.update);
        if let Some(dev) = record.step.dev {
            let (update, figures) = (record.step.update, recent.message(&record));
            bar.suspend(|| {
                say(format_args!("update {update:>6}  {figures}  dev F1 {:.2}", dev.f1));
            });
            recent = Recent { since: record.seconds, ..Recent::default() };
        }
        records.push(record);
        if trainer.checkpoint_is_due() {
            checkpoints.save(trainer)?;
        }
    }
    bar.finish_and_clear();
    let skipped = trainer.progress().skipped_queries;
    if skipped > 0 {
        say(format_args!(
            "warning: left out, because their support lacks one of their tags: {}",
            Counted(usize::try_from(skipped).unwrap_or(usize::MAX), "query")
        ));
    }
    Ok(())
}

/// Shown on a terminal only; indicatif stays silent elsewhere.
fn bar(trainer: &Trainer) -> anyhow::Result<ProgressBar> {
    let style = "{bar:30} {pos}/{len}  {msg}  {elapsed} gone, {eta} left";
    let bar =
        ProgressBar::new(trainer.n_updates()).with_style(ProgressStyle::with_template(style)?);
    bar.set_position(trainer.progress().update);
    bar.reset_eta();
    Ok(bar)
}

/// Running figures for people: means over the steps since the last evaluation.
#[derive(Default)]
struct Recent {
    n_steps: usize,
    loss: f64,
    n_pieces: usize,
    since: f64,
}

impl Recent {
    fn add(&mut self, record: &MetricsLine) {
        self.n_steps += 1;
        self.loss += record.step.loss;
        self.n_pieces += record.step.n_pieces;
    }

    fn message(&self, record: &MetricsLine) -> String {
        let loss = self.loss / self.n_steps as f64;
        let speed = self.n_pieces as f64 / (record.seconds - self.since).max(1e-9);
        format!("loss {loss:.3}  λ {:.4}  {speed:.0} pieces/s", record.step.scale)
    }
}

/// Loss, λ and dev F1 against updates.
fn panels(records: &[MetricsLine]) -> Vec<Panel> {
    let curve = |name: &str, value: &dyn Fn(&Step) -> Option<f64>| Curve {
        name: name.to_owned(),
        points: records
            .iter()
            .filter_map(|record| Some((record.step.update, value(&record.step)?)))
            .collect(),
    };
    let loss = curve("batch", &|step| Some(step.loss));
    let window = (records.len() / 40).max(1);
    let mean = Curve { name: format!("mean of {window}"), points: smoothed(&loss.points, window) };
    let panel = |title: &str, curves| Panel { title: title.to_owned(), curves };
    vec![
        panel("loss", vec![loss, mean]),
        panel("λ", vec![curve("λ", &|step| Some(step.scale.into()))]),
        panel(
            "dev F1, per cent",
            vec![
                curve("episode F1", &|step| step.dev.map(|dev| dev.f1)),
                curve("sentence-macro F1", &|step| step.dev.map(|dev| dev.sentence_macro_f1)),
            ],
        ),
    ]
}

/// A line for people, on standard error.
fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
