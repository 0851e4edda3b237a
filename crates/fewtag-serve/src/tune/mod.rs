//! Tuning of kept domains: a job in the background, one at a time per server, with less right to the processor than tagging.
//!
//! ```text
//! POST ─▶ tunings (store) ─ worker: claims one ─▶ run: a thread and a small pool of its own, lowered in priority
//!                    ▲            │ a beat every few seconds: progress; is it still wanted?
//!                    └────────────┴─ the end: weights and figures in one transaction, a new version of the domain
//! ```
//!
//! What is asked for waits in the database, so it survives a restart: a server that is told to end puts its tuning back, and one that
//! dies is missed after a lease, by itself or by another server on the same database. It then begins anew; the same examples
//! give the same weights. Nothing of a run counts before its end, so the domain is as it was until then, whatever happens.
//!
//! Examples may change meanwhile. The weights then count for the domain as it is at the end, as if the change had come after the
//! tuning; the figures name the version that they were found on.

mod progress;
mod run;
mod worker;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fewtag::Tagger;
use fewtag::tune::{Report, Tuning};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use utoipa::ToSchema;

pub use progress::{FoldCurve, Progress, Stage};

use crate::Shared;
use crate::config::Config;
use crate::error::{ApiError, ApiResult, Code};
use crate::labels;
use crate::metrics::Metrics;
use crate::service::blocking;
use crate::store::{Expected, Store, TuneOptions, TunedInfo, TuningRow, TuningState};
use worker::Worker;

/// The longest plan that is taken, in minutes.
const MOST_MINUTES: f64 = 60.0;

/// The tuning of a domain.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TuningStatus {
    /// How the latest tuning stands; `null` if the domain was never tuned here.
    pub state: Option<TuningState>,
    /// The version of the domain whose examples it tunes with.
    pub version: Option<i64>,
    /// The version of the domain that it made.
    pub result: Option<i64>,
    /// When it was asked for, in seconds since 1970.
    pub asked: Option<i64>,
    /// When it ended, in seconds since 1970.
    pub ended: Option<i64>,
    /// How far it has come, and what it saw on the way.
    #[schema(value_type = Option<Progress>)]
    pub progress: Option<Value>,
    /// What was found out: before and after, with standard errors, and label by label.
    #[schema(value_type = Option<Report>)]
    pub report: Option<Value>,
    /// What is to be said to people.
    pub message: Option<String>,
    /// The tuned weights that the domain is used with; `null` if it is used untuned.
    pub tuned: Option<TunedInfo>,
}

/// Whoever tunes in the background.
pub struct Tuner {
    signals: Arc<Signals>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

/// What the worker is told.
struct Signals {
    /// There may be something to do, or something to leave.
    wake: Notify,
    stop: watch::Sender<bool>,
}

impl Tuner {
    /// Starts the worker, which ends with the tuner.
    pub(crate) fn start(
        config: &Config,
        tagger: &Tagger,
        store: &Store,
        metrics: &Arc<Metrics>,
    ) -> Self {
        let signals = Arc::new(Signals { wake: Notify::new(), stop: watch::Sender::new(false) });
        let worker = Worker {
            store: store.clone(),
            tagger: tagger.clone(),
            metrics: Arc::clone(metrics),
            lease: config.lease,
            most_bytes: config.limits.tuned,
            signals: Arc::clone(&signals),
        };
        Self { signals, worker: Mutex::new(Some(tokio::spawn(worker.work()))) }
    }

    /// Puts back what is being tuned, and waits for the worker's end.
    pub async fn stop(&self) {
        self.signals.stop.send_replace(true);
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        // An update takes about a second; past this, the lease tells the others.
        let patience = Duration::from_secs(10);
        if let Some(worker) = worker
            && tokio::time::timeout(patience, worker).await.is_err()
        {
            tracing::warn!("a tuning did not stop in time; it will be begun anew");
        }
    }
}

impl Drop for Tuner {
    fn drop(&mut self) {
        self.signals.stop.send_replace(true);
    }
}

impl Shared {
    /// Asks for a tuning of a domain, if there is enough to tune with.
    ///
    /// # Errors
    ///
    /// [`Code::TooLittle`], [`Code::Untunable`], [`Code::TuningUnderWay`], [`Code::TooManyTunings`], [`Code::VersionConflict`],
    /// [`Code::InvalidRequest`], and as [`Shared::learner`].
    pub async fn start_tuning(
        &self,
        name: &str,
        expected: &Expected,
        options: TuneOptions,
    ) -> ApiResult<TuningStatus> {
        if options.minutes.is_some_and(|m| !(m > 0.0 && m <= MOST_MINUTES)) {
            let message = format!("`minutes` is a number above 0, at most {MOST_MINUTES}");
            return Err(ApiError::new(Code::InvalidRequest, message).at("minutes"));
        }
        let (domain, tagger) = (self.store.read(name).await?, self.tagger.clone());
        let version = domain.version;
        expected.check(name, version)?;
        blocking(move || {
            let support = labels::of_domain(&tagger, &domain)?;
            Ok(Tuning::check(&tagger, &support)?)
        })
        .await?;
        self.store.ask_tuning(name, version, options, self.config.limits.tunings).await?;
        self.tuner.signals.wake.notify_one();
        self.tuning(name).await
    }

    /// How the tuning of a domain stands.
    ///
    /// # Errors
    ///
    /// [`Code::DomainNotFound`], [`Code::StorageUnavailable`].
    pub async fn tuning(&self, name: &str) -> ApiResult<TuningStatus> {
        // In this order: who reads that it has ended reads its result, too.
        let row = self.store.tuning(name).await?;
        Ok(status(row, self.store.tuned(name).await?))
    }

    /// Cancels the tuning of a domain, which stays as it was.
    ///
    /// # Errors
    ///
    /// [`Code::TuningNotFound`] if none is under way, and as [`Shared::tuning`].
    pub async fn cancel_tuning(&self, name: &str) -> ApiResult<TuningStatus> {
        self.store.cancel_tuning(name).await?;
        self.metrics.tuned(TuningState::Cancelled);
        self.tuner.signals.wake.notify_one();
        self.tuning(name).await
    }
}

fn status(row: Option<TuningRow>, tuned: Option<TunedInfo>) -> TuningStatus {
    let of = |number: fn(&TuningRow) -> i64| row.as_ref().map(number);
    let (version, asked) = (of(|row| row.version), of(|row| row.asked));
    let (result, ended) =
        (row.as_ref().and_then(|row| row.result), row.as_ref().and_then(|row| row.ended));
    let state = row.as_ref().map(|row| row.state);
    let (progress, report, message) =
        row.map_or((None, None, None), |row| (row.progress, row.report, row.message));
    TuningStatus { state, version, result, asked, ended, progress, report, message, tuned }
}
