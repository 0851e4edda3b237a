//! `fewtag tune`: a domain's own sentences move the weights a little, if that is worth it.
//!
//! ```text
//! OUT            the saved domain, tuned or not
//! OUT.tuning/    what `--resume` needs; removed when OUT is written by a run that came to its end
//! ```

use std::io::Write;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use fewtag::eval::{Format, table};
use fewtag::plural::Counted;
use fewtag::tune::{Candidate, Event, Options, Report, Stage, Tuned, Tuning, Verdict};
use fewtag::{DomainFile, SupportSet};
use indicatif::{ProgressBar, ProgressStyle};

use super::learn::LearnArgs;
use super::threshold::{Threshold, thresholds};
use super::values;
use crate::outputs::{Force, Inputs};
use crate::progress::warn;

/// Tune the model to your own labelled sentences, if that is worth it, and save the domain
///
/// Takes ten sentences or more. Every way of tuning is judged on sentences that were left out, beside the model as it is; what does
/// not gain more than chance is not kept. The saved domain is used like any other (docs/guide/tune.md).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag tune --support labelled.conll --out music.fewtag
  fewtag tune --support labelled.conll --out music.fewtag --minutes 10
  fewtag tune --support labelled.conll --out music.fewtag --resume")]
pub(crate) struct Args {
    #[command(flatten)]
    learn: LearnArgs,
    /// The saved domain to write; by habit it ends in `.fewtag`
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// About how long it may take on two cores [default: 1 for 50 sentences, 13 for 1,000, at most 15]
    #[arg(long, value_name = "M", value_parser = minutes)]
    minutes: Option<f64>,
    /// Move all layers, not only the upper ones: for thousands of sentences, and a file of 11 MB
    #[arg(long)]
    full: bool,
    /// Where every random number comes from
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Go on where an interrupted run of the same sentences and options stopped
    #[arg(long)]
    resume: bool,
    /// Spans less probable than this are not wanted; `SLOT=P` for one slot; may be repeated
    #[arg(long, value_name = "[SLOT=]P")]
    threshold: Vec<Threshold>,
    #[command(flatten)]
    force: Force,
    /// How to print the tables
    #[arg(long, value_parser = values::table_format(), default_value = Format::Text.name())]
    format: Format,
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes: f64 = text.parse().map_err(|_| "expected a number of minutes".to_owned())?;
    if minutes > 0.0 && minutes <= 1e6 {
        Ok(minutes)
    } else {
        Err("expected minutes above 0".into())
    }
}

/// Runs the command, writing the tables to `out`.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let (inputs, kept) = (Inputs::new(&args.learn.support), kept(&args.out)?);
    if args.resume && kept.exists() {
        inputs.refuse(&args.out)?; // What is there already may be the best so far, before it was interrupted.
    } else {
        args.force.check(&inputs, [args.out.as_path()])?;
    }
    if !args.resume {
        ensure!(
            args.force.is_on() || !kept.exists(),
            "`{}` holds an interrupted run: --resume goes on with it, --force begins anew",
            kept.display()
        );
        if kept.exists() {
            Tuning::forget(&kept)?;
        }
    }
    let support = args.learn.support()?;
    let thresholds = thresholds(&args.threshold, support.tag_set())?;
    let tagger = args.learn.tagger.load()?;
    let options = Options { seed: args.seed, minutes: args.minutes, full: args.full };
    let mut tuning = Tuning::new(&tagger, &support, options)?;
    match tuning.n_contradictions() {
        0 => {}
        n => warn(&format!(
            "{n} sentences have the words of another and other labels: `fewtag support check` names them"
        )),
    }
    let interrupted = listen(); // From now on there is something to keep.
    tuning.keep_in(kept.clone())?;
    let stopped = follow(&mut tuning, args.minutes, interrupted)?;
    let Tuned { tagger, report } = tuning.finish()?;
    DomainFile::new(&tagger, support.clone(), thresholds)?.write(&args.out)?;
    // Only now: until the domain is written, this is all there is.
    if stopped == Stopped::ByUser {
        warn(&format!("interrupted; --resume goes on, from `{}`", kept.display()));
    } else {
        Tuning::forget(&kept)?;
    }
    out.write_all(table::render(&[report.table(), report.curve()], args.format).as_bytes())?;
    if args.format == Format::Text {
        write!(out, "{}", words(&report, stopped))?;
        write!(out, "{}", saved(&args.out, &support))?;
    }
    Ok(())
}

/// Where a run is kept while it lasts.
fn kept(out: &Path) -> anyhow::Result<PathBuf> {
    let mut name = out.file_name().context("--out names no file")?.to_owned();
    name.push(".tuning");
    Ok(out.with_file_name(name))
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stopped {
    No,
    ByClock,
    ByUser,
}

/// Runs the tuning to its end, until the time is over, or until it is interrupted.
fn follow(
    tuning: &mut Tuning,
    minutes: Option<f64>,
    interrupted: &AtomicBool,
) -> anyhow::Result<Stopped> {
    let limit = minutes.map(|minutes| Duration::from_secs_f64(60.0 * minutes));
    let for_trials = limit.map(|limit| limit.mul_f64(1.0 - tuning.plan().final_share()));
    let (start, bar) = (Instant::now(), bar()?);
    let mut stopped = Stopped::No;
    let mut curve = Curve::default();
    while let Some(event) = tuning.next() {
        let event = event?;
        curve.add(&event, tuning, &bar);
        let elapsed = start.elapsed();
        if interrupted.load(Ordering::Relaxed) {
            stopped = Stopped::ByUser;
            break;
        }
        if limit.is_some_and(|limit| elapsed > limit) {
            stopped = Stopped::ByClock;
            break;
        }
        if event.stage != Stage::Final && for_trials.is_some_and(|limit| elapsed > limit) {
            stopped = Stopped::ByClock;
            tuning.decide();
        }
    }
    bar.finish_and_clear();
    Ok(stopped)
}

/// Listens for Ctrl-C, from the moment at which it returns: the first one ends the run with the best so far, the second one at
/// once.
fn listen() -> &'static AtomicBool {
    static INTERRUPTED: AtomicBool = AtomicBool::new(false);
    let (listens, is_listening) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return }; // Then Ctrl-C ends the process, as ever.
        runtime.block_on(async {
            // Asked once, it listens; only then is that said.
            let mut first = pin!(tokio::signal::ctrl_c());
            let asked = tokio::time::timeout(Duration::ZERO, &mut first).await;
            let _ = listens.send(());
            let mut came = match asked {
                Ok(came) => came.is_ok(),
                Err(_) => first.await.is_ok(),
            };
            while came {
                if INTERRUPTED.swap(true, Ordering::Relaxed) {
                    std::process::exit(130);
                }
                came = tokio::signal::ctrl_c().await.is_ok();
            }
        });
    });
    let _ = is_listening.recv(); // An error: it cannot listen.
    &INTERRUPTED
}

/// Shown on a terminal only; indicatif stays silent elsewhere.
fn bar() -> anyhow::Result<ProgressBar> {
    let style = "{bar:30} {percent} %  {msg}  {elapsed} gone, {eta} left";
    Ok(ProgressBar::new(1000).with_style(ProgressStyle::with_template(style)?))
}

/// The F1 of the fold at hand, for people: before, and as training goes on.
#[derive(Default)]
struct Curve {
    untuned: Vec<f64>,
    tuned: Vec<f64>,
}

impl Curve {
    fn add(&mut self, event: &Event, tuning: &Tuning, bar: &ProgressBar) {
        let plan = tuning.plan();
        #[expect(clippy::cast_sign_loss, reason = "a part of a whole")]
        bar.set_position((1000.0 * event.done) as u64);
        let loss = event.loss.map_or(String::new(), |loss| format!("  loss {loss:.3}"));
        let message = match event.stage {
            Stage::Untuned { fold } => format!("judging the model, fold {}", fold + 1),
            Stage::Trial { run, fold } => {
                let (n_runs, n_folds) = (plan.runs.len(), plan.n_folds);
                format!("run {}/{n_runs}, fold {}/{n_folds}{loss}", run + 1, fold + 1)
            }
            Stage::Final => format!("all sentences{loss}"),
        };
        bar.set_message(message);
        match (event.stage, event.f1) {
            (Stage::Untuned { .. }, Some(f1)) => self.untuned.push(f1),
            (Stage::Trial { run, fold }, Some(f1)) => {
                self.tuned.push(f1);
                if event.update == plan.updates {
                    let curve = self.tuned.drain(..).map(|f1| format!(" {f1:.1}"));
                    let curve: String = curve.collect();
                    let before =
                        self.untuned.get(fold).map_or(String::new(), |f1| format!("{f1:.1}"));
                    let line = format!("run {}, fold {}: F1 {before} →{curve}", run + 1, fold + 1);
                    bar.suspend(|| {
                        let _ = writeln!(std::io::stderr(), "{line}");
                    });
                }
            }
            _ => {}
        }
    }
}

/// What became of it, in a sentence or two.
fn words(report: &Report, stopped: Stopped) -> String {
    let gained = |best: &Candidate| {
        let (gain, choice) = (best.gain, best.choice);
        let (layers, updates) = (Counted(choice.layers, "layer"), choice.updates);
        format!(
            "F1 {:.1} instead of {:.1} on {} that were left out in turn: {:+.1} ± {:.1} ({layers}, {updates} updates)",
            best.score.f1,
            best.score.f1 - gain.f1,
            Counted(report.judged, "sentence"),
            gain.f1,
            gain.spread,
        )
    };
    let best = report.best().map_or(String::new(), gained);
    let mut words = match report.verdict {
        Verdict::Tuned => format!("tuned: {best}\n"),
        Verdict::TunedLess => format!("tuned with fewer updates than would be best: {best}\n"),
        Verdict::NotWorthIt => {
            format!(
                "tuning is not worth it here, so the domain is saved untuned; the best was {best}, no more than chance\n"
            )
        }
        Verdict::Stopped => format!(
            "stopped before the tuning on all sentences, so the domain is saved untuned; it would give {best}\n"
        ),
        Verdict::Unknown => {
            "nothing was judged to its end, so the domain is saved untuned\n".to_owned()
        }
    };
    if stopped == Stopped::ByClock {
        words.push_str("the time was over before all was tried: with more --minutes the result may be another\n");
    }
    for failure in &report.failures {
        words.extend(["a run was given up: ", failure, "\n"]);
    }
    words
}

/// What was saved.
fn saved(path: &Path, support: &SupportSet) -> String {
    let examples = Counted(support.sentences().len(), "example");
    let labels = Counted(support.tag_set().slots().len(), "label");
    let size = std::fs::metadata(path).map_or(0, |file| file.len());
    let size = if size < 100_000 {
        format!("{} kB", size.div_ceil(1000))
    } else {
        format!("{:.1} MB", size as f64 / 1e6)
    };
    format!("{}: {examples}, {labels}, {size}\n", path.display())
}
