//! Whoever takes tunings one after the other, follows each and writes down what becomes of it.

use std::sync::Arc;
use std::time::Duration;

use fewtag::Tagger;

use super::Signals;
use super::run::{Run, Task};
use crate::error::{ApiResult, Code};
use crate::labels;
use crate::metrics::Metrics;
use crate::service::blocking;
use crate::store::{Ended, Held, Store, TuningState};

pub(super) struct Worker {
    pub(super) store: Store,
    pub(super) tagger: Tagger,
    pub(super) metrics: Arc<Metrics>,
    /// A run that was not heard of for so long is taken over.
    pub(super) lease: Duration,
    /// Weights of more bytes are not kept.
    pub(super) most_bytes: usize,
    pub(super) signals: Arc<Signals>,
}

impl Worker {
    /// Tunes until it is told to stop.
    pub(super) async fn work(self) {
        while !self.is_stopping() {
            match self.next().await {
                Ok(Some(held)) => self.tune(&held).await,
                // A database that is away is told of where it was asked; it may be back later.
                Ok(None) | Err(_) => self.pause(self.lease / 6).await,
            }
        }
    }

    async fn next(&self) -> ApiResult<Option<Held>> {
        for _ in 0..self.store.give_up_tunings(self.lease).await? {
            self.metrics.tuned(TuningState::Lost);
        }
        let claim = uuid::Uuid::new_v4().to_string();
        self.store.claim_tuning(&claim, self.lease).await
    }

    /// Waits for a time, or until there is something to look at.
    async fn pause(&self, time: Duration) {
        let mut stop = self.signals.stop.subscribe();
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            () = self.signals.wake.notified() => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    fn is_stopping(&self) -> bool {
        *self.signals.stop.borrow()
    }

    async fn tune(&self, held: &Held) {
        tracing::info!(domain = held.domain, "tuning begins");
        self.metrics.tuning(true);
        let ended = match self.prepare(held).await {
            Ok((version, task)) => self.follow(held, version, Run::start(task)).await,
            Err(error) if error.code == Code::StorageUnavailable => None,
            Err(error) => Some(Ended::failed(error.message)),
        };
        if let Some(ended) = ended {
            self.end(held, ended).await;
        } else {
            tracing::info!(domain = held.domain, "tuning is put back, or was not wanted any more");
            // If the database is away, the lease runs out instead.
            let _ = self.store.release_tuning(held).await;
        }
        self.metrics.tuning(false);
    }

    async fn prepare(&self, held: &Held) -> ApiResult<(i64, Task)> {
        let domain = self.store.read(&held.domain).await?;
        let (version, tagger) = (domain.version, self.tagger.clone());
        let support = blocking(move || labels::of_domain(&tagger, &domain)).await?;
        let (tagger, options, most_bytes) = (self.tagger.clone(), held.options, self.most_bytes);
        Ok((version, Task { tagger, support, options, most_bytes }))
    }

    /// Says how far a run has come until it ends; none if it is to end, or nobody wants it any more.
    async fn follow(&self, held: &Held, version: i64, mut run: Run) -> Option<Ended> {
        loop {
            // A database that is away does not end a run: it is only not heard of.
            let is_unwanted =
                matches!(self.store.beat(held, version, &run.progress()).await, Ok(false));
            if is_unwanted || self.is_stopping() {
                run.stop().await;
                return None;
            }
            tokio::select! {
                ended = &mut run.ended => {
                    let _ = self.store.beat(held, version, &run.progress()).await; // The last of the curve.
                    let panicked = || Some(Ended::failed("a fault of ours; the server's log says more".to_owned()));
                    return ended.unwrap_or_else(|_| panicked());
                }
                () = self.pause(self.lease / 15) => {}
            }
        }
    }

    /// Writes down what became of a run, as soon as the database takes it.
    async fn end(&self, held: &Held, ended: Ended) {
        let state = ended.state;
        loop {
            match self.store.end_tuning(held, ended.clone()).await {
                Ok(is_wanted) => {
                    tracing::info!(domain = held.domain, ?state, is_wanted, "tuning ended");
                    if is_wanted {
                        self.metrics.tuned(state);
                    }
                    return;
                }
                Err(_) if self.is_stopping() => return, // The lease tells the others.
                Err(_) => self.pause(self.lease / 15).await,
            }
        }
    }
}
