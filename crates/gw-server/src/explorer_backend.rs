//! `ledger-gateway explorer`: the explorer's backend as a process, with its listener and its shutdown.

use crate::{
    config::{ExplorerBackendConfig, Operation},
    listener::{BodyBudget, BodyLimits, ConnectionLimits, Connections, Quota},
    signal::Interrupt,
    system::{SteadyClock, SystemEntropy},
    telemetry::{self, Observe},
};
use anyhow::Context as _;
use arc_swap::ArcSwap;
use gw_explorer_backend::Backend;
use gw_http::Correlate;
use std::sync::Arc;
use tokio::{
    net::TcpListener,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower::ServiceBuilder;

/// The name of the listener in log lines.
const LISTENER: &str = "explorer";
/// Request bodies in memory. Only an uploaded ABI is large.
const BODIES: BodyLimits = BodyLimits {
    total: 32 << 20,
    per_address: 8 << 20,
};

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// If the backend cannot start.
pub(crate) async fn run(config: ExplorerBackendConfig) -> anyhow::Result<()> {
    let mut interrupt = Interrupt::listen().context("the handlers of SIGTERM and SIGINT cannot be installed")?;
    let _log = telemetry::start_log(&config.operation).context("the log cannot be started")?;
    let proxies = config.backend.proxies.clone();
    let count = |configured| usize::try_from(configured).unwrap_or(usize::MAX);
    let limits = ConnectionLimits {
        total: count(config.connections),
        per_address: count(config.connections_per_address),
    };
    let (entropy, tasks) = (Arc::new(SystemEntropy), TaskTracker::new());
    let clock = Arc::new(SteadyClock::default());
    let backend = Backend::new(config.backend, clock, Arc::clone(&entropy) as _, tasks.clone());
    let backend = backend.context("the explorer's backend cannot start")?;
    let readiness = backend.readiness().clone();
    let router = gw_explorer_backend::router(backend).layer(
        ServiceBuilder::new()
            .layer(Correlate::new(entropy)) // sets the correlation id for all layers below
            .layer(Observe), // observes every response, including those of panics
    );
    let listener = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("cannot listen on {}", config.listen))?;
    tracing::info!(address = %config.listen, "the explorer's backend is listening");

    let shutdown = CancellationToken::new();
    let connections = Connections::new(shutdown.clone());
    let quota = Quota::new(LISTENER, limits, proxies.clone());
    let bodies = BodyBudget::new(LISTENER, BODIES, proxies);
    connections.serve(listener, Arc::new(ArcSwap::from_pointee(router)), quota, bodies);
    drain_when_interrupted(&mut interrupt, &config.operation, || readiness.drain()).await;
    shutdown.cancel();
    tasks.close();
    let drained = async {
        connections.closed().await;
        // Refreshes and revocations may outlive their connection.
        tasks.wait().await;
    };
    if timeout(config.operation.shutdown_timeout, drained).await.is_err() {
        tracing::warn!("shutdown timeout: connections or tasks were still open and are aborted");
    }
    tracing::info!("shutdown complete");
    Ok(())
}

/// Waits for a signal, reports "not ready", and leaves load balancers the time to notice.
pub(crate) async fn drain_when_interrupted(interrupt: &mut Interrupt, operation: &Operation, drain: impl FnOnce()) {
    interrupt.heard().await;
    tracing::info!("shutdown requested: not ready from now on");
    drain();
    sleep(operation.shutdown_delay).await;
}
