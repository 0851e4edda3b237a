//! Figures for Prometheus.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::http::Method;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::store::TuningState;

/// What a request was. A client can make up methods, paths and names, and is counted before it shows a key: every label is
/// one of a fixed set.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Asked {
    /// See [`method`].
    pub(crate) method: &'static str,
    /// The route, not the path: the number of series must not grow with the domains.
    pub(crate) route: String,
    pub(crate) status: u16,
}

/// The figures.
pub struct Metrics {
    registry: Registry,
    requests: Family<Asked, Counter>,
    latency: Family<Asked, Histogram, fn() -> Histogram>,
    in_flight: Gauge,
    queue_cost: Gauge<f64, AtomicU64>,
    waited: Histogram,
    batch_texts: Histogram,
    batch_cost: Histogram,
    /// How often adapted examples were there already.
    pub(crate) cache_hits: Counter,
    /// How often they were not.
    pub(crate) cache_misses: Counter,
    cache_bytes: Gauge<f64, AtomicU64>,
    rejected: Counter,
    tunings: Family<Outcome, Counter>,
    tuning: Gauge,
}

/// What became of a tuning: the name of its state, one of a fixed set.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

/// A method that some route takes, or `other`.
pub(crate) fn method(method: &Method) -> &'static str {
    const KNOWN: [&str; 6] = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}

fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 16))
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("fewtag"),
            requests: Family::default(),
            latency: Family::new_with_constructor(seconds),
            in_flight: Gauge::default(),
            queue_cost: Gauge::default(),
            waited: seconds(),
            batch_texts: Histogram::new(exponential_buckets(1.0, 2.0, 10)),
            batch_cost: Histogram::new(exponential_buckets(16.0, 2.0, 12)),
            cache_hits: Counter::default(),
            cache_misses: Counter::default(),
            cache_bytes: Gauge::default(),
            rejected: Counter::default(),
            tunings: Family::default(),
            tuning: Gauge::default(),
        };
        let of = &mut metrics.registry;
        of.register("requests", "Requests answered", metrics.requests.clone());
        let help = "Time until the head of an answer";
        of.register_with_unit("request", help, Unit::Seconds, metrics.latency.clone());
        of.register("requests_in_flight", "Requests being answered", metrics.in_flight.clone());
        of.register("queue_cost", "Word pieces waiting or being read", metrics.queue_cost.clone());
        let help = "Time from the queue to the answer of a text";
        of.register_with_unit("queue_wait", help, Unit::Seconds, metrics.waited.clone());
        of.register("batch_texts", "Texts in a batch", metrics.batch_texts.clone());
        of.register("batch_cost", "Word pieces in a batch", metrics.batch_cost.clone());
        of.register("cache_hits", "Adapted examples found in memory", metrics.cache_hits.clone());
        of.register("cache_misses", "Adapted examples to be made", metrics.cache_misses.clone());
        let help = "Adapted examples in memory";
        of.register_with_unit("cache", help, Unit::Bytes, metrics.cache_bytes.clone());
        of.register(
            "rejected",
            "Requests refused because too much waits",
            metrics.rejected.clone(),
        );
        of.register("tunings", "Tunings that ended, and how", metrics.tunings.clone());
        of.register("tuning", "Whether this server is tuning a domain", metrics.tuning.clone());
        metrics
    }
}

impl Metrics {
    pub(crate) fn batch(&self, n_texts: usize, cost: usize) {
        self.batch_texts.observe(n_texts as f64);
        self.batch_cost.observe(cost as f64);
    }

    pub(crate) fn waited(&self, time: Duration) {
        self.waited.observe(time.as_secs_f64());
    }

    /// A request begins; answers how many are in flight now.
    pub(crate) fn begin(&self) -> i64 {
        self.in_flight.inc() + 1
    }

    pub(crate) fn end(&self) {
        self.in_flight.dec();
    }

    pub(crate) fn answered(&self, asked: &Asked, time: Duration) {
        self.requests.get_or_create(asked).inc();
        self.latency.get_or_create(asked).observe(time.as_secs_f64());
        if asked.status == 429 {
            self.rejected.inc();
        }
    }

    pub(crate) fn tuned(&self, state: TuningState) {
        self.tunings.get_or_create(&Outcome { outcome: state.name() }).inc();
    }

    pub(crate) fn tuning(&self, is_on: bool) {
        self.tuning.set(is_on.into());
    }

    /// The figures as Prometheus reads them.
    pub(crate) fn text(&self, queue_cost: usize, cache_bytes: usize) -> String {
        self.queue_cost.set(queue_cost as f64);
        self.cache_bytes.set(cache_bytes as f64);
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a string cannot fail");
        text
    }
}
