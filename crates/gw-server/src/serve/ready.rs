//! Readiness (`GET /ready`) and liveness (`GET /health`) of this instance.

use axum::{Json, extract::State, response::IntoResponse};
use gw_http::{HttpContext, InternalHosts, client};
use gw_node::{NodeState, NodeStatus, TraceForm};
use http::{HeaderMap, StatusCode, Uri};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};
use utoipa::ToSchema;

/// The dependencies of this instance and their current state.
pub(crate) struct Readiness {
    dependencies: Vec<Dependency>,
    nodes: Box<dyn Fn() -> Vec<NodeStatus> + Send + Sync>,
    stage: AtomicU8,
}

struct Dependency {
    name: &'static str,
    /// Whether the instance is not ready while this dependency is down.
    is_required: Box<dyn Fn() -> bool + Send + Sync>,
    level: Box<dyn Fn() -> Level + Send + Sync>,
}

impl core::fmt::Debug for Readiness {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list()
            .entries(self.dependencies.iter().map(|dependency| dependency.name))
            .finish()
    }
}

impl Readiness {
    pub(crate) fn new() -> Self {
        Self {
            dependencies: Vec::new(),
            nodes: Box::new(Vec::new),
            stage: AtomicU8::new(Stage::Starting as u8),
        }
    }

    /// Adds the state of each node to the report. `nodes` is called often and must not block.
    pub(crate) fn showing_nodes(mut self, nodes: impl Fn() -> Vec<NodeStatus> + Send + Sync + 'static) -> Self {
        self.nodes = Box::new(nodes);
        self
    }

    /// Adds a required dependency. `is_up` is called often and must not block.
    pub(crate) fn with(self, name: &'static str, is_up: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.with_if(name, is_up, || true)
    }

    /// Adds a dependency that is required only while `is_required` returns true. Neither function may block.
    pub(crate) fn with_if(
        mut self,
        name: &'static str,
        is_up: impl Fn() -> bool + Send + Sync + 'static,
        is_required: impl Fn() -> bool + Send + Sync + 'static,
    ) -> Self {
        self.dependencies.push(Dependency {
            name,
            is_required: Box::new(is_required),
            level: Box::new(move || Level::from_up(is_up())),
        });
        self
    }

    /// Adds an optional dependency: it is shown, but the instance is ready without it. `is_up` is called often and must
    /// not block.
    pub(crate) fn showing(self, name: &'static str, is_up: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.with_if(name, is_up, || false)
    }

    /// Adds an optional dependency whose state may be unknown. `level` is called often and must not block.
    pub(crate) fn showing_level(
        mut self,
        name: &'static str,
        level: impl Fn() -> Level + Send + Sync + 'static,
    ) -> Self {
        self.dependencies.push(Dependency {
            name,
            is_required: Box::new(|| false),
            level: Box::new(level),
        });
        self
    }

    /// Marks all routes as served: from now on the instance is ready while all required dependencies are up.
    pub(crate) fn serve(&self) {
        self.stage.store(Stage::Serving as u8, Ordering::Relaxed);
    }

    /// Marks the process as shutting down: from now on it is not ready.
    pub(crate) fn drain(&self) {
        self.stage.store(Stage::Draining as u8, Ordering::Relaxed);
    }

    fn report(&self) -> Report {
        let levels: Vec<_> = self
            .dependencies
            .iter()
            .map(|dependency| (dependency, (dependency.level)()))
            .collect();
        let missing = levels
            .iter()
            .any(|(dependency, level)| *level == Level::Down && (dependency.is_required)());
        let states: BTreeMap<_, _> = levels
            .into_iter()
            .map(|(dependency, level)| (dependency.name, level))
            .collect();
        let stage = self.stage.load(Ordering::Relaxed);
        let serving = stage == Stage::Serving as u8;
        let ready = serving && !missing;
        Report {
            status: if ready { "ready" } else { "not ready" },
            draining: stage == Stage::Draining as u8,
            dependencies: Some(states),
            nodes: Some(
                (self.nodes)()
                    .iter()
                    .enumerate()
                    .map(|(index, node)| OneNode::new(index, node))
                    .collect(),
            ),
        }
    }
}

/// The stage of the process between start and shutdown.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Starting,
    Serving,
    Draining,
}

/// State of this instance.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Report {
    /// `ready` or `not ready`.
    status: &'static str,
    /// Whether the process is shutting down.
    draining: bool,
    /// State of each dependency; on the internal network only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    dependencies: Option<BTreeMap<&'static str, Level>>,
    /// State of each node of `NODE_URL`, in its order; on the internal network only.
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Vec<OneNode>>,
}

/// State of one node. It is identified by its position in `NODE_URL`, because its address may contain a key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OneNode {
    /// Position in `NODE_URL`, starting at 1.
    node: usize,
    /// Whether this node is in use.
    active: bool,
    /// `ok`, `down`, or `other chain`. A node on another chain is never used.
    state: &'static str,
    /// Supported form of tracing: `mux`, `batch` or `none`.
    tracing: &'static str,
    /// Number of its newest block at the last successful check.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<u64>,
    /// Time since that check, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    head_age_ms: Option<u64>,
}

impl OneNode {
    fn new(index: usize, status: &NodeStatus) -> Self {
        Self {
            node: index.saturating_add(1),
            active: status.active,
            state: match status.state {
                NodeState::Up => "ok",
                NodeState::Down => "down",
                NodeState::OtherChain => "other chain",
            },
            tracing: match status.traces {
                Some(TraceForm::Mux) => "mux",
                Some(TraceForm::Batch) => "batch",
                None => "none",
            },
            head: status.head,
            head_age_ms: status
                .head_age
                .map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Ok,
    Down,
    /// It cannot be checked now.
    Unknown,
}

impl Level {
    const fn from_up(is_up: bool) -> Self {
        if is_up { Self::Ok } else { Self::Down }
    }
}

/// Liveness of the process.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    status: &'static str,
}

/// Returns 200 while the process runs.
#[utoipa::path(get, path = "/health", tag = "operation", responses((status = 200, body = Health), (status = 400)))]
pub(crate) async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// The handler state of `/ready` on one listener.
#[derive(Clone, Debug)]
pub(crate) struct ReadyState {
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) http_context: Arc<HttpContext>,
    /// The hosts under which internal routes answer, and details are shown.
    pub(crate) hosts: Arc<InternalHosts>,
    pub(crate) detail: ReadyDetail,
}

/// Which callers get the state of each dependency and node from `/ready` (HD16). Others only learn whether the instance
/// is ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadyDetail {
    /// Callers in the internal network: for the internal listener, or the only listener.
    PrivateNetwork,
    /// Nobody: for the public listener, if `INTERNAL_BIND_ADDR` configures an internal one.
    Never,
}

impl ReadyState {
    /// The state for the public listener: without details, if there is also an internal listener.
    pub(crate) fn for_public(self, has_internal: bool) -> Self {
        Self {
            detail: if has_internal {
                ReadyDetail::Never
            } else {
                ReadyDetail::PrivateNetwork
            },
            ..self
        }
    }
}

/// Returns whether this instance is ready to serve requests; the state of each dependency is included on the internal
/// network only (HD16).
#[utoipa::path(get, path = "/ready", tag = "operation",
    responses((status = 200, body = Report), (status = 400), (status = 503, body = Report)))]
pub(crate) async fn ready(
    State(state): State<ReadyState>,
    uri: Uri,
    extensions: http::Extensions,
    headers: HeaderMap,
) -> impl IntoResponse {
    let mut report = state.readiness.report();
    let status = if report.status == "ready" {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let http_context = &state.http_context;
    let shows_detail = match state.detail {
        ReadyDetail::Never => false,
        ReadyDetail::PrivateNetwork => {
            let peer = client::peer(&extensions);
            http_context.network.admits(&http_context.proxies, peer, &headers)
                && state.hosts.check(&uri, &headers).is_ok()
        }
    };
    if !shows_detail {
        (report.dependencies, report.nodes) = (None, None);
    }
    (status, Json(report))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn ready_means_that_all_dependencies_are_up_and_no_shutdown() {
        let is_up = Arc::new(AtomicBool::new(true));
        let observed = Arc::clone(&is_up);
        let readiness = Readiness::new()
            .with("db", || true)
            .with("node", move || observed.load(Ordering::Relaxed));
        assert_eq!(readiness.report().status, "not ready", "the routes are not served yet");
        readiness.serve();
        assert_eq!(readiness.report().status, "ready");
        is_up.store(false, Ordering::Relaxed);
        let report = readiness.report();
        assert_eq!(report.status, "not ready");
        let text = serde_json::to_string(&report).expect("json");
        assert_eq!(
            text,
            r#"{"status":"not ready","draining":false,"dependencies":{"db":"ok","node":"down"},"nodes":[]}"#
        );
        is_up.store(true, Ordering::Relaxed);
        readiness.drain();
        assert_eq!(readiness.report().status, "not ready");
    }
}
