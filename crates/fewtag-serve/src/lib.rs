//! The HTTP server of fewtag: tag with examples in the request, or with named domains that are kept and edited.
//!
//! ```text
//! HTTP ─ api (axum) ─▶ request (all checks) ─▶ queue (cost, batches) ─▶ fewtag::score_all ─▶ answers
//!                        └─▶ store (SQLite, PostgreSQL): domains with versions ─▶ learner (adapted domains in memory)
//!                                          └─▶ tune: one domain at a time in the background
//! ```
//!
//! [`serve`] runs until it is told to stop and then finishes what it has begun. The command line gives it a
//! [`Config`] and a model; of the environment only what OpenTelemetry defines for exporters is read.

pub mod api;
pub mod auth;
mod collector;
pub mod config;
pub mod connections;
pub mod error;
pub mod host;
pub mod labels;
pub mod learner;
pub mod logs;
pub mod metrics;
pub mod prepare;
pub mod queue;
pub mod replies;
pub mod request;
pub mod service;
pub mod store;
pub mod tune;
mod web;

use std::sync::Arc;

use fewtag::Tagger;
use tokio::net::TcpListener;

pub use api::{openapi, router};
pub use auth::{KeyError, Keys, Scope};
pub use config::{Config, Database, Limits};
pub use host::{Host, Origin};

use learner::Learners;
use metrics::Metrics;
use queue::Queue;
use store::Store;
use tune::Tuner;

/// What all requests share.
pub type App = Arc<Shared>;

/// The parts of a running server.
pub struct Shared {
    /// How it runs.
    pub config: Config,
    /// The model.
    pub tagger: Tagger,
    /// The domains.
    pub store: Store,
    /// Adapted domains.
    pub learners: Learners,
    /// What waits for the encoder.
    pub queue: Queue,
    /// Whoever tunes domains.
    pub tuner: Tuner,
    /// Figures.
    pub metrics: Arc<Metrics>,
}

/// Why the server could not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// An address that others can reach, and nobody needs a key.
    #[error(
        "`{0}` can be reached from outside, so set a key (--api-key), or say --open-to-all if everybody may change everything"
    )]
    NoKey(std::net::SocketAddr),
    /// The database cannot be opened.
    #[error("the database cannot be opened")]
    Database(#[source] sqlx::Error),
    /// The address is taken or not ours.
    #[error("cannot listen on {0}")]
    Listen(std::net::SocketAddr, #[source] std::io::Error),
}

/// Puts the parts of a server together.
///
/// # Errors
///
/// [`StartError`].
pub async fn start(config: Config, tagger: Tagger) -> Result<App, StartError> {
    if config.keys.is_empty() && !config.open_to_all && !config.listen.ip().is_loopback() {
        return Err(StartError::NoKey(config.listen));
    }
    let store = Store::open(&config.database, tagger.checksum().unwrap_or_default())
        .await
        .map_err(StartError::Database)?;
    let metrics = Arc::new(Metrics::default());
    let queue = Queue::start(&config.limits, Arc::clone(&metrics));
    // Most of what is kept are domains as they are; a quarter is for examples of domains that are being changed.
    let tagger = tagger.keeping(config.limits.cache / 4);
    let learners = Learners::new(config.limits.cache - config.limits.cache / 4);
    let tuner = Tuner::start(&config, &tagger, &store, &metrics);
    Ok(Arc::new(Shared { config, tagger, store, learners, queue, tuner, metrics }))
}

/// Serves until `stop` is done, then finishes the requests in flight. `ready` is told the address once it listens.
///
/// # Errors
///
/// [`StartError`].
pub async fn serve(
    config: Config,
    tagger: Tagger,
    stop: impl Future<Output = ()>,
    ready: impl FnOnce(std::net::SocketAddr),
) -> Result<(), StartError> {
    let app = start(config, tagger).await?;
    let listen = app.config.listen;
    let listening = |error| StartError::Listen(listen, error);
    let listener = TcpListener::bind(listen).await.map_err(listening)?;
    ready(listener.local_addr().map_err(listening)?);
    connections::serve(listener, router(Arc::clone(&app)), &app.config, stop).await;
    app.tuner.stop().await;
    app.store.close().await;
    Ok(())
}
