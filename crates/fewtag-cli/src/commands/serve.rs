//! `fewtag serve`: the HTTP server. Flags come before the environment, the environment before the TOML file.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use fewtag::encoder::Precision;
use fewtag_serve::logs::{self, LogFormat};
use fewtag_serve::{Config, Database, Host, Keys, Limits, Origin, Scope};
use serde::Deserialize;

use super::{tagger, values};

/// Serve tagging, domains and a playground over HTTP
///
/// Every option can also stand in the environment, as `FEWTAG_` and its name, and without `--` in the TOML file of `--config`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  fewtag serve
  FEWTAG_API_KEY=$(openssl rand -hex 16) fewtag serve --host 0.0.0.0 --public-host tags.example.org")]
pub(crate) struct Args {
    /// TOML file with options
    #[arg(long, env = "FEWTAG_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    options: Options,
}

/// What can be set; what is not set has the server's default.
#[derive(Debug, Default, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct Options {
    /// Address to listen on [default: 127.0.0.1]
    #[arg(long, env = "FEWTAG_HOST")]
    host: Option<IpAddr>,
    /// Port to listen on; 0 takes any that is free [default: 8080]
    #[arg(long, env = "FEWTAG_PORT")]
    port: Option<u16>,
    /// Model directory written by `fewtag train`, or `owner/name` on the Hugging Face hub [default: the model
    /// built into fewtag]
    #[arg(long, env = "FEWTAG_MODEL", value_name = "DIR|NAME")]
    model: Option<String>,
    /// In which numbers the encoder computes: f32 takes several times as long (docs/reference/engine.md) [default: int8]
    #[arg(long, env = "FEWTAG_PRECISION", value_parser = values::precision())]
    precision: Option<Precision>,
    /// File in which domains are kept [default: fewtag.sqlite]
    #[arg(long, env = "FEWTAG_DATABASE", value_name = "FILE")]
    database: Option<PathBuf>,
    /// PostgreSQL database in which domains are kept instead: `postgres://user:password@host/name`
    #[arg(long, env = "FEWTAG_DATABASE_URL", value_name = "URL", hide_env_values = true)]
    database_url: Option<String>,
    /// A key that allows everything, of 16 characters or more; may be repeated
    #[arg(long, env = "FEWTAG_API_KEY", value_name = "KEY", hide_env_values = true)]
    api_key: Vec<String>,
    /// A key that allows to read and to tag, of 16 characters or more; may be repeated
    #[arg(long, env = "FEWTAG_READ_KEY", value_name = "KEY", hide_env_values = true)]
    read_key: Vec<String>,
    /// Take keys of fewer than 16 characters
    #[arg(long, env = "FEWTAG_SHORT_KEYS", num_args = 0..=1, default_missing_value = "true")]
    short_keys: Option<bool>,
    /// Let everybody do everything, also on an address that others can reach
    #[arg(long, env = "FEWTAG_OPEN_TO_ALL", num_args = 0..=1, default_missing_value = "true")]
    open_to_all: Option<bool>,
    /// A name under which the server is called, beside its address and `localhost`; may be repeated. Requests for other
    /// names are refused with 421
    #[arg(long, env = "FEWTAG_PUBLIC_HOST", value_name = "NAME")]
    public_host: Vec<Host>,
    /// Pages of this origin, such as `https://pages.example.org`, may call the server; may be repeated
    #[arg(long, env = "FEWTAG_ORIGIN", value_name = "ORIGIN")]
    origin: Vec<Origin>,
    /// Bytes of a request's body [default: 4194304]
    #[arg(long, env = "FEWTAG_MAX_BODY", value_name = "BYTES")]
    max_body: Option<usize>,
    /// Characters of a text or an example [default: 100000]
    #[arg(long, env = "FEWTAG_MAX_TEXT", value_name = "N")]
    max_text: Option<usize>,
    /// Examples of a domain or a request [default: 1000]
    #[arg(long, env = "FEWTAG_MAX_SUPPORT", value_name = "N")]
    max_support: Option<usize>,
    /// Texts of a request [default: 10000]
    #[arg(long, env = "FEWTAG_MAX_BATCH", value_name = "N")]
    max_batch: Option<usize>,
    /// Requests that are answered at a time [default: 1024]
    #[arg(long, env = "FEWTAG_MAX_CONCURRENCY", value_name = "N")]
    max_concurrency: Option<usize>,
    /// Word pieces that may wait for the encoder, and what takes as long; beyond it requests are refused with 429 [default: 8192]
    #[arg(long, env = "FEWTAG_MAX_QUEUE", value_name = "PIECES")]
    max_queue: Option<usize>,
    /// Word pieces that the encoder reads at a time; 1 tags one by one [default: 512]
    #[arg(long, env = "FEWTAG_BATCH_COST", value_name = "PIECES")]
    batch_cost: Option<usize>,
    /// Bytes of what the encoder made of examples that are kept in memory [default: 268435456]
    #[arg(long, env = "FEWTAG_CACHE", value_name = "BYTES")]
    cache: Option<usize>,
    /// Bytes of what tuning added to the model, of one domain [default: 6000000]
    #[arg(long, env = "FEWTAG_MAX_TUNED", value_name = "BYTES")]
    max_tuned: Option<usize>,
    /// Tunings that may wait for their turn; 0 lets nobody tune [default: 8]
    #[arg(long, env = "FEWTAG_MAX_TUNINGS", value_name = "N")]
    max_tunings: Option<usize>,
    /// Seconds that a client may take to send a request [default: 30]
    #[arg(long, env = "FEWTAG_PATIENCE", value_name = "SECONDS")]
    patience: Option<u64>,
    /// Seconds that requests in flight may take after the server was told to stop [default: 30]
    #[arg(long, env = "FEWTAG_DRAIN", value_name = "SECONDS")]
    drain: Option<u64>,
    /// What to log: `info`, `warn`, `fewtag_serve=debug` [default: info]
    #[arg(long, env = "FEWTAG_LOG", value_name = "FILTER")]
    log: Option<String>,
    /// How log lines look [default: text]
    #[arg(long, env = "FEWTAG_LOG_FORMAT", value_name = "FORMAT")]
    log_format: Option<Lines>,
    /// Send traces to this OTLP collector: `http://localhost:4318/v1/traces`
    #[arg(long, env = "FEWTAG_OTLP", value_name = "URL")]
    otlp: Option<String>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Lines {
    Text,
    Json,
}

/// Runs the server until it is interrupted.
pub(crate) fn run(args: &Args, out: &mut impl Write) -> anyhow::Result<()> {
    let file = args.config.as_deref().map(read).transpose()?.unwrap_or_default();
    let options = &args.options;
    let format = match options.log_format.or(file.log_format) {
        Some(Lines::Json) => LogFormat::Json,
        _ => LogFormat::Text,
    };
    let filter = options.log.as_deref().or(file.log.as_deref()).unwrap_or("info");
    let _logs = logs::start(format, filter, options.otlp.as_deref().or(file.otlp.as_deref()))?;
    let config = options.over(&file)?;
    let precision = options.precision.or(file.precision).unwrap_or_default();
    let tagger = tagger::load(options.model.as_deref().or(file.model.as_deref()), precision)?;
    let ready = |address: SocketAddr| {
        // The address is for people; a closed standard output must not stop the server.
        let _ = writeln!(out, "fewtag serves at http://{address}").and_then(|()| out.flush());
    };
    let runtime = tokio::runtime::Runtime::new().context("cannot start the server's threads")?;
    runtime.block_on(async {
        let stop = interrupted().context("cannot listen for the signal to end")?;
        Ok(fewtag_serve::serve(config, tagger, stop, ready).await?)
    })
}

fn read(path: &Path) -> anyhow::Result<Options> {
    let place = || format!("cannot use `{}`", path.display());
    let text = std::fs::read_to_string(path).with_context(place)?;
    toml::from_str(&text).with_context(place)
}

impl Options {
    /// What is set here, then what is set in `file`, then the defaults.
    fn over(&self, file: &Self) -> anyhow::Result<Config> {
        let default = Config::default();
        let host = self.host.or(file.host).unwrap_or(default.listen.ip());
        let port = self.port.or(file.port).unwrap_or(default.listen.port());
        let url = |options: &Self| options.database_url.clone().map(Database::Postgres);
        let path = |options: &Self| options.database.clone().map(Database::Sqlite);
        let database = |options: &Self| url(options).or_else(|| path(options));
        let drain = self.drain.or(file.drain).map_or(default.drain, Duration::from_secs);
        Ok(Config {
            listen: SocketAddr::new(host, port),
            database: database(self).or_else(|| database(file)).unwrap_or(default.database),
            keys: self.keys_over(file)?,
            open_to_all: self.open_to_all.or(file.open_to_all).unwrap_or(default.open_to_all),
            public_hosts: first(&self.public_host, &file.public_host).to_vec(),
            origins: first(&self.origin, &file.origin).to_vec(),
            limits: self.limits_over(file),
            drain,
            lease: default.lease,
        })
    }

    fn keys_over(&self, file: &Self) -> anyhow::Result<Keys> {
        let are_short = self.short_keys.or(file.short_keys).unwrap_or(false);
        let mut keys = if are_short { Keys::short() } else { Keys::default() };
        for key in first(&self.api_key, &file.api_key) {
            keys.add(key, Scope::Full).context("cannot use a key of --api-key")?;
        }
        for key in first(&self.read_key, &file.read_key) {
            keys.add(key, Scope::Read).context("cannot use a key of --read-key")?;
        }
        Ok(keys)
    }

    fn limits_over(&self, file: &Self) -> Limits {
        let limits = Limits::default();
        let patience = self.patience.or(file.patience);
        Limits {
            body: self.max_body.or(file.max_body).unwrap_or(limits.body),
            text: self.max_text.or(file.max_text).unwrap_or(limits.text),
            support: self.max_support.or(file.max_support).unwrap_or(limits.support),
            batch: self.max_batch.or(file.max_batch).unwrap_or(limits.batch),
            concurrency: self
                .max_concurrency
                .or(file.max_concurrency)
                .unwrap_or(limits.concurrency),
            queue: self.max_queue.or(file.max_queue).unwrap_or(limits.queue),
            batch_cost: self.batch_cost.or(file.batch_cost).unwrap_or(limits.batch_cost),
            cache: self.cache.or(file.cache).unwrap_or(limits.cache),
            tuned: self.max_tuned.or(file.max_tuned).unwrap_or(limits.tuned),
            tunings: self.max_tunings.or(file.max_tunings).unwrap_or(limits.tunings),
            patience: patience.map_or(limits.patience, Duration::from_secs),
        }
    }
}

/// Ours if there are any, else theirs.
fn first<'a, T>(ours: &'a [T], theirs: &'a [T]) -> &'a [T] {
    if ours.is_empty() { theirs } else { ours }
}

/// Done when the process is asked to end. It listens from the call on, not from the first poll: a signal that comes before would kill the process.
/// Must be called within a runtime.
fn interrupted() -> std::io::Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        })
    }
    #[cfg(windows)]
    {
        let mut interrupt = tokio::signal::windows::ctrl_c()?;
        Ok(async move {
            interrupt.recv().await;
        })
    }
}
