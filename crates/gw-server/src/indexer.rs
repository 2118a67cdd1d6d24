//! `ledger-gateway indexer`: the indexer as a process of its own, and its read API (X2) on an internal address.
//!
//! It serves everything to everybody who reaches it. So it listens on loopback, or on INTERNAL_BIND_ADDR, which an
//! operator chooses for it, answers private networks only, and answers no web page of another host or origin.

use crate::{
    config::IndexerConfig,
    explorer_backend::drain_when_interrupted,
    listener::{BodyBudget, BodyLimits, ConnectionLimits, Connections, Quota},
    serve::{
        ServeError,
        explorer::{ExplorerNode, ExplorerRunner, IndexApi, IndexParts, Unavailable},
        node,
    },
    signal::Interrupt,
    system::{SystemClock, SystemEntropy},
    telemetry::{self, Metrics, Observe},
};
use anyhow::Context as _;
use arc_swap::ArcSwap;
use axum::{
    Router,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::get,
};
use gw_explorer::unfiltered::{AccountCache, UnfilteredState};
use gw_http::{ApiError, Correlate, InternalHosts, PrivateNetwork, TrustedProxies, client, internal_hosts_only};
use gw_indexer::OwnStateOnly;
use gw_node::Node;
use gw_types::Entropy;
use http::{HeaderValue, StatusCode, header};
use std::{
    convert::Infallible,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    net::TcpListener,
    time::{interval, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::{ServiceBuilder, ServiceExt as _};

/// The name of the listener in log lines.
const LISTENER: &str = "indexer";
/// Pause between two attempts to reach a node that is down at start.
const NODE_RETRY: Duration = Duration::from_secs(2);
/// How often pending samples are merged into their histograms.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// Serves until SIGTERM or SIGINT.
///
/// # Errors
/// If the process cannot start, or the node is on another chain.
pub(crate) async fn run(config: IndexerConfig) -> Result<(), ServeError> {
    let mut interrupt = Interrupt::listen().context("the handlers of SIGTERM and SIGINT cannot be installed")?;
    let _log = telemetry::start_log(&config.operation).context("the log cannot be started")?;
    let metrics = Metrics::start().context("the metrics recorder cannot be started")?;
    let listener = TcpListener::bind(config.listen)
        .await
        .with_context(|| format!("cannot listen on {}", config.listen))?;
    tracing::info!(address = %config.listen, "the indexer is listening");
    let api = Arc::new(ReadApi::default());
    let router = router(&config, Arc::clone(&api), metrics.clone());
    let shutdown = CancellationToken::new();
    let connections = Connections::new(shutdown.clone());
    serve(&connections, listener, router, config.connections);
    let stop = CancellationToken::new();
    let indexing = index(&config, Arc::clone(&api), stop.clone());
    let mut indexing = std::pin::pin!(indexing);
    tokio::select! {
        result = indexing.as_mut() => return result,
        () = keep_metrics(&metrics) => {}
        () = drain_when_interrupted(&mut interrupt, &config.operation, || api.drain()) => {}
    }
    shutdown.cancel();
    stop.cancel();
    let drained = async {
        // The indexer ends its block, and releases its lease.
        let ended = indexing.await;
        connections.closed().await;
        ended
    };
    match timeout(config.operation.shutdown_timeout, drained).await {
        Ok(ended) => ended?,
        Err(_) => tracing::warn!("shutdown timeout: the indexer or connections were still busy and are aborted"),
    }
    tracing::info!("shutdown complete");
    Ok(())
}

/// Accepts connections, at most this many. One address may have all of them: an explorer's backend has one address.
fn serve(connections: &Connections, listener: TcpListener, router: Router, limit: u32) {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let limits = ConnectionLimits {
        total: limit,
        per_address: limit,
    };
    let quota = Quota::new(LISTENER, limits, TrustedProxies::default());
    let bodies = BodyBudget::new(LISTENER, BodyLimits::INTERNAL, TrustedProxies::default());
    connections.serve(listener, Arc::new(ArcSwap::from_pointee(router)), quota, bodies);
}

/// Reaches the node and indexes its chain until `stop` is cancelled.
///
/// # Errors
/// If the node is on another chain, or a setting is not valid.
async fn index(config: &IndexerConfig, api: Arc<ReadApi>, stop: CancellationToken) -> Result<(), ServeError> {
    let reached = stop.run_until_cancelled(reach_node(config)).await;
    let Some(node) = reached.transpose()? else {
        return Ok(());
    };
    let runner = ExplorerRunner {
        config: config.explorer.clone(),
        location: config.location.clone(),
        connections: config.database_connections,
        name: "indexer".to_owned(),
        api: Arc::new(NodeReadApi {
            api,
            node: Arc::clone(&node),
        }),
        node,
        // Without the policy of a gateway: a gateway on the same database shows what is stored.
        view_policy: Arc::new(OwnStateOnly),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
    };
    runner.run(stop).await;
    Ok(())
}

/// Connects to the node, and retries while it is down.
async fn reach_node(config: &IndexerConfig) -> anyhow::Result<Arc<Node>> {
    loop {
        match node::connect_indexer(&config.node, config.answer_bytes).await {
            Err(error) if node::is_down(&error) => {
                tracing::warn!(
                    error = format!("{error:#}"),
                    "the node cannot be reached and is retried; until then nothing is indexed"
                );
                sleep(NODE_RETRY).await;
            }
            result => return result,
        }
    }
}

async fn keep_metrics(metrics: &Metrics) {
    let mut upkeep = interval(METRICS_UPKEEP);
    loop {
        upkeep.tick().await;
        metrics.run_upkeep();
    }
}

/// The read API as it is served now.
struct ReadApi {
    routes: ArcSwap<Router>,
    is_serving: AtomicBool,
    is_draining: AtomicBool,
}

impl fmt::Debug for ReadApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadApi")
    }
}

impl Default for ReadApi {
    fn default() -> Self {
        Self {
            routes: ArcSwap::from_pointee(unavailable(Unavailable::Opening)),
            is_serving: AtomicBool::new(false),
            is_draining: AtomicBool::new(false),
        }
    }
}

impl ReadApi {
    fn replace(&self, routes: Router, is_serving: bool) {
        self.routes.store(Arc::new(routes));
        self.is_serving.store(is_serving, Ordering::Release);
    }

    fn drain(&self) {
        self.is_draining.store(true, Ordering::Release);
    }

    fn is_ready(&self) -> bool {
        self.is_serving.load(Ordering::Acquire) && !self.is_draining.load(Ordering::Acquire)
    }
}

/// The read API with the node that completes it.
#[derive(Debug)]
struct NodeReadApi {
    api: Arc<ReadApi>,
    node: Arc<Node>,
}

impl IndexApi for NodeReadApi {
    fn serve(&self, parts: IndexParts) {
        let node = Arc::new(ExplorerNode::new(Arc::clone(&self.node), Arc::new(OwnStateOnly)));
        let state = UnfilteredState {
            store: parts.store,
            index: parts.index,
            validation: parts.validation,
            balances: Arc::clone(&node) as _,
            indexer: node,
            chain_id: self.node.chain_id(),
            accounts: AccountCache::default(),
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the process that serves the chain without rules, on an internal address"
        )]
        let routes = gw_explorer::unfiltered::router(state);
        self.api.replace(routes, true);
    }

    fn suspend(&self, reason: Unavailable) {
        self.api.replace(unavailable(reason), false);
    }
}

fn unavailable(reason: Unavailable) -> Router {
    Router::new().fallback(async move || ApiError::unavailable(reason.text()))
}

/// The routes of the process: the read API as it is now, its health and its metrics.
fn router(config: &IndexerConfig, api: Arc<ReadApi>, metrics: Metrics) -> Router {
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
    let network = Arc::new(PrivateNetwork::new(config.internal_networks.clone()));
    let hosts = InternalHosts::new(config.listen.ip(), config.internal_hosts.clone());
    let data = Router::new()
        .route("/metrics", get(async move || render(&metrics)))
        .fallback(forward)
        .layer(from_fn_with_state(Arc::new(hosts), internal_hosts_only));
    Router::new()
        .route("/health", get(async || StatusCode::OK))
        .route("/ready", get(ready))
        .merge(data)
        .with_state(api)
        .layer(from_fn_with_state(network, private_only))
        .layer(
            ServiceBuilder::new()
                .layer(Correlate::new(entropy)) // sets the correlation id for all layers below
                .layer(Observe), // observes every response, including those of panics
        )
}

async fn ready(State(api): State<Arc<ReadApi>>) -> StatusCode {
    if api.is_ready() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

async fn forward(State(api): State<Arc<ReadApi>>, request: Request) -> Response {
    let routes = Router::clone(&api.routes.load());
    let answer: Result<Response, Infallible> = routes.oneshot(request).await;
    answer.unwrap_or_else(|_| ApiError::internal().into_response())
}

fn render(metrics: &Metrics) -> Response {
    const FORMAT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, FORMAT)], metrics.render()).into_response()
}

/// Rejects requests from other networks, and requests that a proxy forwarded (E7).
async fn private_only(
    State(network): State<Arc<PrivateNetwork>>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let peer = client::peer(request.extensions());
    if network.admits(&TrustedProxies::default(), peer, request.headers()) {
        Ok(next.run(request).await)
    } else {
        Err(ApiError::forbidden("available from localhost / private network only"))
    }
}
