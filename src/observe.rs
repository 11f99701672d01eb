//! Logs and metrics of the service itself.

pub mod describe;

use std::io::IsTerminal;
use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}

#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    #[error("cannot read the log filter: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
}

/// Libraries that would fill a detailed log with whole frames and headers, including keys and tokens, or would log a
/// client's broken request as our error, or details of no interest. On a busy machine connections wait in a pool: no
/// setting would help, and the waits that matter are counted elsewhere.
const QUIET: &str = "tungstenite=warn,tokio_tungstenite=warn,actix_http=off,actix_server=warn,h2=info,rustls=info,\
                     sea_orm_migration=warn,sqlx=warn,sqlx::pool::acquire=error,async_nats=warn";

/// The log level of modules that a filter does not name. The setup code is logged as a warning.
const OF_OTHERS: &str = "warn";

/// The filter for a value of `--log`.
pub fn log_filter(filter: &str) -> Result<EnvFilter, ObserveError> {
    // If a filter names only modules, the library would log nothing of the others, not even errors.
    let of_others = if filter.split(',').any(is_level) { "" } else { OF_OTHERS };
    Ok(EnvFilter::try_new(format!("{of_others},{filter},{QUIET}"))?)
}

/// Whether a part of a filter is the level of all modules that it does not name.
pub fn is_level(text: &str) -> bool {
    // An empty text would parse as `error`.
    !text.is_empty() && text.parse::<LevelFilter>().is_ok()
}

/// Sends logs to standard error. Standard output is for output that people and scripts wait for.
pub fn init_logs(filter: &str, format: LogFormat) -> Result<(), ObserveError> {
    let filter = log_filter(filter)?;
    let lines =
        tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    let registry = tracing_subscriber::registry().with(filter);
    // Fails only if a subscriber is already set, as in tests.
    _ = match format {
        LogFormat::Text => registry.with(lines.with_target(false)).try_init(),
        LogFormat::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    };
    Ok(())
}

/// Renders the metrics of this process in Prometheus' text format.
#[derive(Clone)]
pub struct Exporter(Option<PrometheusHandle>);

/// In seconds, from a cached answer to a stuck database.
const BUCKETS: [f64; 10] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0];

impl Exporter {
    /// Collects metrics from now on. All callers in this process get the same exporter, as the `metrics` crate
    /// requires.
    pub fn install() -> Self {
        static INSTALLED: OnceLock<Exporter> = OnceLock::new();
        INSTALLED
            .get_or_init(|| {
                let builder = PrometheusBuilder::new()
                    .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &BUCKETS)
                    .and_then(PrometheusBuilder::install_recorder);
                match &builder {
                    Ok(_) => describe::describe(),
                    Err(error) => tracing::error!(%error, "cannot collect metrics of the service"),
                }
                Exporter(builder.ok())
            })
            .clone()
    }

    /// Puts the durations since the last call into their buckets; until then the library keeps each single one.
    pub fn tidy(&self) {
        if let Some(handle) = &self.0 {
            handle.run_upkeep();
        }
    }

    pub fn render(&self) -> String {
        self.0.as_ref().map(PrometheusHandle::render).unwrap_or_default()
    }
}
