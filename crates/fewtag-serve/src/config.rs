//! Everything the server can be told, with its defaults.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::auth::Keys;
use crate::host::{Host, Origin};

/// How the server runs.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Where domains are kept.
    pub database: Database,
    /// Who may do what; none: everybody everything.
    pub keys: Keys,
    /// Whether to go without keys on an address that others can reach.
    pub open_to_all: bool,
    /// What the server is called, beside its address and the loopback names.
    pub public_hosts: Vec<Host>,
    /// Pages of these origins may call the server; none but its own by default.
    pub origins: Vec<Origin>,
    /// How much a request may ask for.
    pub limits: Limits,
    /// How long requests in flight may take after a stop was asked for.
    pub drain: Duration,
    /// A tuning whose server was not heard of for so long is begun anew by another, so the clocks of servers on one database must
    /// not be that far apart.
    pub lease: Duration,
}

/// Where domains are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    /// A file of SQLite; it is made if it is not there.
    Sqlite(PathBuf),
    /// A PostgreSQL database, `postgres://…`.
    Postgres(String),
}

/// How much a request may ask for, and how much may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body: usize,
    /// Unicode scalar values of a text or an example.
    pub text: usize,
    /// Examples of a domain or a request.
    pub support: usize,
    /// Texts of a request, over all its groups.
    pub batch: usize,
    /// Requests that are answered at a time.
    pub concurrency: usize,
    /// Cost that may wait: word pieces that the encoder has to read, and what takes as long. The default is 1.5 s of work for two cores
    /// (benchmarks/serve), which bounds how long an accepted request takes.
    pub queue: usize,
    /// Cost that the encoder is given at a time. Larger batches than the default are not faster, and a short request
    /// waits for the batches of a long one.
    pub batch_cost: usize,
    /// Bytes of what the encoder made of examples that are kept for the next request.
    pub cache: usize,
    /// Bytes of what tuning added to the model, of one domain.
    pub tuned: usize,
    /// Tunings that may wait.
    pub tunings: usize,
    /// How long a client may take to send a request.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body: 4 << 20,
            text: 100_000,
            support: 1_000,
            batch: 10_000,
            concurrency: 1_024,
            queue: 8_192,
            batch_cost: 512,
            cache: 256 << 20,
            tuned: 6_000_000,
            tunings: 8,
            patience: Duration::from_secs(30),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: ([127, 0, 0, 1], 8080).into(),
            database: Database::Sqlite("fewtag.sqlite".into()),
            keys: Keys::default(),
            open_to_all: false,
            public_hosts: Vec::new(),
            origins: Vec::new(),
            limits: Limits::default(),
            drain: Duration::from_secs(30),
            lease: Duration::from_secs(30),
        }
    }
}
