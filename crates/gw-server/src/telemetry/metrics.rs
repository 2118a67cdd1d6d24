//! Metrics as Prometheus text (spec/85 section 4).

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

pub(super) const HTTP_REQUESTS: &str = "ledger_gateway_http_requests_total";
pub(super) const HTTP_DURATION: &str = "ledger_gateway_http_request_duration_seconds";
pub(super) const LOG_LINES_DROPPED: &str = "ledger_gateway_log_lines_dropped_total";
const BUILD_INFO: &str = "ledger_gateway_build_info";

/// Upper bounds of all durations, in seconds.
const SECONDS: &[f64] = &[
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

/// The metrics of this process.
#[derive(Clone)]
pub struct Metrics {
    handle: PrometheusHandle,
}

impl core::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// Installs the recorder of the process.
    ///
    /// # Errors
    ///
    /// If a recorder is already installed.
    pub fn start() -> Result<Self, BuildError> {
        let handle = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)?
            .install_recorder()?;
        ::metrics::gauge!(BUILD_INFO, "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        Ok(Self { handle })
    }

    /// All metrics in the Prometheus text format.
    pub fn render(&self) -> String {
        self.handle.render()
    }

    /// Moves pending measurements into the histograms. Must be called regularly: while no client reads the metrics, the
    /// measurements accumulate in memory.
    pub fn run_upkeep(&self) {
        self.handle.run_upkeep();
    }
}
