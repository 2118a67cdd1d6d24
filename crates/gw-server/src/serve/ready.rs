//! Whether this instance can do its work (`GET /ready`), and that it lives at all (`GET /health`).

use axum::{Json, extract::State, response::IntoResponse};
use gw_http::{Edge, client};
use gw_node::{NodeState, NodeStatus, TraceForm};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};
use utoipa::ToSchema;

/// What the gateway cannot work without, and whether it has it.
pub(crate) struct Readiness {
    needs: Vec<Need>,
    nodes: Box<dyn Fn() -> Vec<NodeStatus> + Send + Sync>,
    stage: AtomicU8,
}

struct Need {
    name: &'static str,
    /// Whether the instance is not ready without it.
    required: bool,
    is_met: Box<dyn Fn() -> bool + Send + Sync>,
}

impl core::fmt::Debug for Readiness {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.needs.iter().map(|need| need.name)).finish()
    }
}

impl Readiness {
    pub(crate) fn new() -> Self {
        Self {
            needs: Vec::new(),
            nodes: Box::new(Vec::new),
            stage: AtomicU8::new(Stage::Starting as u8),
        }
    }

    /// Showing how each node is. The question must not wait.
    pub(crate) fn showing_nodes(mut self, nodes: impl Fn() -> Vec<NodeStatus> + Send + Sync + 'static) -> Self {
        self.nodes = Box::new(nodes);
        self
    }

    /// With one more thing that must be there. The question is asked often: it must not wait.
    pub(crate) fn with(mut self, name: &'static str, is_met: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.needs.push(Need {
            name,
            required: true,
            is_met: Box::new(is_met),
        });
        self
    }

    /// Showing one more thing, without which part of the work goes on. It must not wait either.
    pub(crate) fn showing(mut self, name: &'static str, is_met: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.needs.push(Need {
            name,
            required: false,
            is_met: Box::new(is_met),
        });
        self
    }

    /// From now on ready, as long as everything needed is there: all routes are served.
    pub(crate) fn serve(&self) {
        self.stage.store(Stage::Serving as u8, Ordering::Relaxed);
    }

    /// From now on not ready: the process is about to end.
    pub(crate) fn drain(&self) {
        self.stage.store(Stage::Draining as u8, Ordering::Relaxed);
    }

    fn report(&self) -> Report {
        let found: Vec<_> = self
            .needs
            .iter()
            .map(|need| (need, Level::of((need.is_met)())))
            .collect();
        let missing = found.iter().any(|(need, level)| need.required && *level == Level::Down);
        let states: BTreeMap<_, _> = found.into_iter().map(|(need, level)| (need.name, level)).collect();
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
                    .map(|(place, node)| OneNode::of(place, node))
                    .collect(),
            ),
        }
    }
}

/// Where the process is between its start and its end.
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
    /// Whether the process is about to end.
    draining: bool,
    /// Each dependency; on the internal network only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    dependencies: Option<BTreeMap<&'static str, Level>>,
    /// Each node of `NODE_URL`, in its order; on the internal network only.
    #[serde(skip_serializing_if = "Option::is_none")]
    nodes: Option<Vec<OneNode>>,
}

/// One node. Its place in `NODE_URL` names it, for the address may hold a key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OneNode {
    /// Its place, from one.
    node: usize,
    /// Whether it is the one in use.
    active: bool,
    /// `ok`, `down`, or `other chain`: then it is never used.
    state: &'static str,
    /// Which trace it gives: `mux`, `batch` or `none`.
    tracing: &'static str,
    /// Its newest block when it was looked at last.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<u64>,
    /// How long that is ago, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    head_age_ms: Option<u64>,
}

impl OneNode {
    fn of(place: usize, status: &NodeStatus) -> Self {
        Self {
            node: place.saturating_add(1),
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
enum Level {
    Ok,
    Down,
}

impl Level {
    const fn of(met: bool) -> Self {
        if met { Self::Ok } else { Self::Down }
    }
}

/// The process lives.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Health {
    /// Always `ok`.
    status: &'static str,
}

/// Liveness only.
#[utoipa::path(get, path = "/health", tag = "operation", responses((status = 200, body = Health)))]
pub(crate) async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// What `/ready` of one listener draws on.
#[derive(Clone, Debug)]
pub(crate) struct ReadyState {
    pub(crate) readiness: Arc<Readiness>,
    pub(crate) edge: Arc<Edge>,
    pub(crate) detail: ReadyDetail,
}

/// Whether a listener tells the state of each dependency and node, or only whether the instance is ready (HD16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadyDetail {
    /// To callers of the internal network: the internal listener, or the only one.
    PrivateNetwork,
    /// To nobody: the public listener, where `INTERNAL_BIND_ADDR` names another one.
    Never,
}

impl ReadyState {
    /// For the listeners of one process: the public one tells no detail where there is an internal one.
    pub(crate) fn for_public(self, internal_listener: bool) -> Self {
        Self {
            detail: if internal_listener {
                ReadyDetail::Never
            } else {
                ReadyDetail::PrivateNetwork
            },
            ..self
        }
    }
}

/// Whether this instance can do its work; each dependency's state on the internal network only (HD16).
#[utoipa::path(get, path = "/ready", tag = "operation",
    responses((status = 200, body = Report), (status = 503, body = Report)))]
pub(crate) async fn ready(
    State(state): State<ReadyState>,
    extensions: http::Extensions,
    headers: HeaderMap,
) -> impl IntoResponse {
    let mut report = state.readiness.report();
    let status = if report.status == "ready" {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    let edge = &state.edge;
    let admitted = match state.detail {
        ReadyDetail::Never => false,
        ReadyDetail::PrivateNetwork => edge.network.admits(&edge.proxies, client::peer(&extensions), &headers),
    };
    if !admitted {
        (report.dependencies, report.nodes) = (None, None);
    }
    (status, Json(report))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn ready_means_everything_is_there_and_nothing_ends() {
        let there = Arc::new(AtomicBool::new(true));
        let seen = Arc::clone(&there);
        let readiness = Readiness::new()
            .with("db", || true)
            .with("node", move || seen.load(Ordering::Relaxed));
        assert_eq!(readiness.report().status, "not ready", "the routes are not there yet");
        readiness.serve();
        assert_eq!(readiness.report().status, "ready");
        there.store(false, Ordering::Relaxed);
        let report = readiness.report();
        assert_eq!(report.status, "not ready");
        let text = serde_json::to_string(&report).expect("json");
        assert_eq!(
            text,
            r#"{"status":"not ready","draining":false,"dependencies":{"db":"ok","node":"down"},"nodes":[]}"#
        );
        there.store(true, Ordering::Relaxed);
        readiness.drain();
        assert_eq!(readiness.report().status, "not ready");
    }
}
