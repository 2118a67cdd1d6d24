//! Log lines and metrics for operators. Access to data is recorded in the access record, not here.
//!
//! Invariant (spec/70 rule 31): no token, parameter, address or DID appears in a log line or a label. Paths are route
//! templates, and methods are names from a closed list.

mod lines;
mod metrics;
mod request;

pub use lines::FlushGuard;
pub use metrics::Metrics;
pub use request::Observe;

use crate::config::{Operation, registry::LogFormat, registry::LogLevel};
use lines::LogLineWriter;
use tracing_subscriber::{
    filter::{LevelFilter, Targets},
    layer::SubscriberExt as _,
    util::{SubscriberInitExt as _, TryInitError},
};

/// Starts logging to standard output. The returned guard writes the queued lines when it is dropped.
///
/// # Errors
///
/// If a global subscriber is already set.
pub fn start_log(operation: &Operation) -> Result<FlushGuard, TryInitError> {
    let (lines, flush) = LogLineWriter::start(std::io::stdout());
    let level = level(operation.log_level);
    // Libraries log warnings and errors only, except at level `trace`.
    let library_level = if level == LevelFilter::TRACE {
        level
    } else {
        level.min(LevelFilter::WARN)
    };
    let filter = OURS.iter().fold(
        Targets::new()
            .with_default(library_level)
            .with_target(crate::trust::LOG_TARGET, level),
        |targets, own| targets.with_target(*own, level),
    );
    let layer = tracing_subscriber::fmt::layer().with_writer(lines);
    // The filter applies to the whole registry. A filter of the layer alone would lose lines: if a library checks on a
    // thread whether a level is enabled and logs nothing, as sqlx does for each statement, the layer takes the answer
    // for the next event of that thread.
    let registry = tracing_subscriber::registry().with(filter);
    match operation.log_format {
        LogFormat::Json => {
            registry
                .with(layer.json().flatten_event(true).with_span_list(false))
                .try_init()?;
        }
        LogFormat::Text => {
            let colored = std::io::IsTerminal::is_terminal(&std::io::stdout());
            registry.with(layer.with_ansi(colored).with_target(false)).try_init()?;
        }
    }
    Ok(flush)
}

/// The crates of this workspace that write log lines.
const OURS: &[&str] = &[
    "gw_server",
    "gw_rpc",
    "gw_admin",
    "gw_identity",
    "gw_http",
    "gw_node",
    "gw_store",
    "gw_journal",
    "gw_indexer",
    "gw_explorer",
    "gw_explorer_backend",
];

fn level(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}
