//! One tuning at work: a thread of its own, with a small pool that has less right to the processor than tagging.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use fewtag::answer::Thresholds;
use fewtag::tune::{Options, Tuned, Tuning, Verdict};
use fewtag::{DomainFile, SupportSet, Tagger};
use serde_json::Value;
use tokio::sync::oneshot;

use super::progress::Follower;
use crate::error::chain;
use crate::store::{Ended, TuneOptions, TuningState, Weights};

/// What is to be tuned.
pub(super) struct Task {
    pub(super) tagger: Tagger,
    pub(super) support: SupportSet,
    pub(super) options: TuneOptions,
    /// Weights of more bytes are not kept.
    pub(super) most_bytes: usize,
}

/// A tuning at work.
pub(super) struct Run {
    watched: Arc<Watched>,
    /// None if it was stopped.
    pub(super) ended: oneshot::Receiver<Option<Ended>>,
}

#[derive(Default)]
struct Watched {
    stop: AtomicBool,
    /// How far it has come; null until something is known.
    progress: Mutex<Value>,
}

impl Run {
    pub(super) fn start(task: Task) -> Self {
        let (sender, ended) = oneshot::channel();
        let watched = Arc::new(Watched::default());
        let run = Self { watched: Arc::clone(&watched), ended };
        // A panic drops the sender, which the receiver is told.
        std::thread::spawn(move || {
            let _ = sender.send(tune(task, &watched)); // The server may have ended.
        });
        run
    }

    /// Ends it early, after the update that it is at.
    pub(super) async fn stop(mut self) {
        self.watched.stop.store(true, Ordering::Relaxed);
        let _ = (&mut self.ended).await; // What it found is not wanted.
    }

    pub(super) fn progress(&self) -> Value {
        self.watched.progress.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.watched.stop.store(true, Ordering::Relaxed);
    }
}

fn tune(task: Task, watched: &Watched) -> Option<Ended> {
    let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads((n_cores / 2).max(1))
        .thread_name(|i| format!("tuning-{i}"))
        .start_handler(|_| yield_to_others());
    let ended = match pool.build() {
        Ok(pool) => pool.install(|| tune_here(task, watched)),
        Err(error) => Err(format!("no threads to tune with: {error}")),
    };
    ended.unwrap_or_else(|message| Some(Ended::failed(message)))
}

/// Gives this thread the last right to the processor. Elsewhere than on Linux a thread has no such right of its own, so the small pool
/// is all that holds tuning back.
fn yield_to_others() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, 19) {
        tracing::warn!(%error, "tuning has as much right to the processor as tagging");
    }
}

/// Tunes to the end or until it is stopped; the error is for people.
fn tune_here(task: Task, watched: &Watched) -> Result<Option<Ended>, String> {
    let told = |error: fewtag::Error| chain(&error);
    let TuneOptions { minutes, seed } = task.options;
    let options = Options { seed: seed.unwrap_or(0).into(), minutes, full: false };
    let mut tuning = Tuning::new(&task.tagger, &task.support, options).map_err(told)?;
    let (mut follower, start) = (Follower::new(tuning.plan()), Instant::now());
    for event in tuning.by_ref() {
        let progress = follower.add(&event.map_err(told)?, start.elapsed().as_secs());
        let progress = json(progress);
        *watched.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
        if watched.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
    }
    let n_contradictions = tuning.n_contradictions();
    let Tuned { tagger, report } = tuning.finish().map_err(told)?;
    let mut message = match report.verdict {
        Verdict::Tuned | Verdict::TunedLess => String::new(),
        Verdict::Unknown => failures(&report.failures),
        _ => {
            "no way of tuning gained more than chance would: the domain stays as it was".to_owned()
        }
    };
    if n_contradictions > 0 {
        let warning = format!(
            "{n_contradictions} sentences have the words of another and other labels: `check` names them"
        );
        message = if message.is_empty() { warning } else { format!("{message}; {warning}") };
    }
    let weights = tagger.figures().is_some().then(|| weights(&tagger, task)).transpose()?;
    let state = match (&weights, report.verdict) {
        (Some(_), _) => TuningState::Tuned,
        (None, Verdict::Unknown) => TuningState::Failed,
        (None, _) => TuningState::NotWorthIt,
    };
    Ok(Some(Ended { state, report: Some(json(&report)), message, weights }))
}

/// A value as a client reads it: by way of text, which has `f32` in its own digits.
fn json(value: &impl serde::Serialize) -> Value {
    let text = serde_json::to_string(value).expect("plain structures are JSON");
    serde_json::from_str(&text).expect("it was just written")
}

fn failures(reasons: &[String]) -> String {
    let reason = reasons.first().map_or("no fold could be judged", String::as_str);
    format!("nothing could be learned: {reason}")
}

/// What is kept of a tuned model, read again: what cannot be used, or holds a number that is none, is not kept.
fn weights(tuned: &Tagger, task: Task) -> Result<Weights, String> {
    let told = |error: fewtag::Error| chain(&error);
    let domain = DomainFile::new(tuned, task.support, Thresholds::default()).map_err(told)?;
    Weights::checked(&domain, &task.tagger, task.most_bytes)
}

impl Weights {
    /// The weights of a tuned domain, if a server of this model can use them; otherwise the reason, for people.
    pub(crate) fn checked(
        domain: &DomainFile,
        tagger: &Tagger,
        most_bytes: usize,
    ) -> Result<Self, String> {
        let place = Path::new("the tuned domain");
        let n_bytes = domain.tuned_bytes();
        if n_bytes > most_bytes {
            return Err(format!(
                "its weights have {n_bytes} bytes, at most {most_bytes} are taken (--max-tuned)"
            ));
        }
        let file = domain.to_bytes();
        let again = DomainFile::from_bytes(&file, place).map_err(|error| chain(&error))?;
        again.tagger(tagger, place).map_err(|error| chain(&error))?;
        let figures = *again.figures().ok_or("it was not tuned")?;
        Ok(Self { file, figures })
    }
}

impl Ended {
    pub(super) fn failed(message: String) -> Self {
        Self { state: TuningState::Failed, report: None, message, weights: None }
    }
}
