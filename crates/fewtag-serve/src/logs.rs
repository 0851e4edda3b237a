//! Structured logs on standard error, and traces over OTLP if they are asked for.

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer};

use crate::collector::{Collector, timeout};

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// Something else logs already.
    #[error("logging is set up already")]
    Again(#[from] tracing_subscriber::util::TryInitError),
    /// The address of the collector makes no sense.
    #[error("traces cannot be sent")]
    Otlp(#[from] ExporterBuildError),
    /// The filter makes no sense.
    #[error("the log filter cannot be read")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
}

/// Sends the last traces when it is dropped.
pub struct Logs(Option<SdkTracerProvider>);

impl Drop for Logs {
    fn drop(&mut self) {
        if let Some(provider) = &self.0 {
            let _ = provider.shutdown(); // A collector that is gone must not keep us.
        }
    }
}

/// Starts to log what `filter` lets pass (`info`, `fewtag_serve=debug`); traces go to the collector at `otlp`,
/// such as `http://localhost:4318/v1/traces`.
///
/// # Errors
///
/// [`LogError`].
pub fn start(format: LogFormat, filter: &str, otlp: Option<&str>) -> Result<Logs, LogError> {
    let filter = EnvFilter::try_new(filter)?;
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colours);
    let lines = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let provider = otlp.map(provider).transpose()?;
    let traces = provider
        .as_ref()
        .map(|provider| tracing_opentelemetry::layer().with_tracer(provider.tracer("fewtag")));
    tracing_subscriber::registry().with(traces).with(lines).with(filter).try_init()?;
    Ok(Logs(provider))
}

fn provider(endpoint: &str) -> Result<SdkTracerProvider, ExporterBuildError> {
    let exporter = SpanExporter::builder().with_http().with_endpoint(endpoint);
    let exporter = exporter.with_http_client(Collector::new(timeout())).build()?;
    let resource = Resource::builder().with_service_name("fewtag").build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}
