//! One upstream node: its transport, its tracing support and its health.

use crate::{
    config::NodeConfig,
    head::Block,
    tracing_support::{OverrideSupport, TracingSupport},
    transport::Transport,
};
use gw_evm::wire::TraceForm;
use http::Uri;
use std::{
    io,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::{sync::watch, time::Instant};

/// One node.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) transport: Transport,
    pub(crate) tracing: TracingSupport,
    pub(crate) overriding: OverrideSupport,
    health: Mutex<Health>,
    /// Whether another node replaced this one; requests that wait for an answer of it stop waiting.
    is_abandoned: watch::Sender<bool>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Health {
    head: Option<Block>,
    /// When `head` was last confirmed.
    confirmed_at: Option<Instant>,
    /// Since when every check of the node succeeded.
    healthy_since: Option<Instant>,
    is_wrong_chain: bool,
    /// When its head was first requested without an answer since.
    unanswered_since: Option<Instant>,
}

/// The status of a node, for operators. Its position in the list tells which node it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// Whether the node is in use.
    pub active: bool,
    /// The result of the last check.
    pub state: NodeState,
    /// The trace form that the node supports, if any.
    pub traces: Option<TraceForm>,
    /// The number of its newest block at the last successful check.
    pub head: Option<u64>,
    /// The time since the last successful check.
    pub head_age: Option<Duration>,
}

/// The result of a health check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// The node answers.
    Up,
    /// The node does not answer.
    Down,
    /// The node serves another chain, and is never used.
    OtherChain,
}

impl Endpoint {
    pub(crate) fn new(config: &NodeConfig, uri: &Uri) -> Result<Self, io::Error> {
        Ok(Self {
            transport: Transport::new(config, uri)?,
            tracing: TracingSupport::default(),
            overriding: OverrideSupport::default(),
            health: Mutex::default(),
            is_abandoned: watch::Sender::new(false),
        })
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a successful check with its head.
    pub(crate) fn mark_healthy(&self, head: Block) {
        let now = Instant::now();
        let mut health = self.health();
        let healthy_since = health.healthy_since.or(Some(now));
        *health = Health {
            head: Some(head),
            confirmed_at: Some(now),
            healthy_since,
            ..*health
        };
    }

    /// Records a failed check.
    pub(crate) fn mark_failed(&self) {
        self.health().healthy_since = None;
    }

    /// Records a request for the head.
    pub(crate) fn mark_head_requested(&self) {
        let mut health = self.health();
        health.unanswered_since = health.unanswered_since.or(Some(Instant::now()));
    }

    /// Records an answer to the request for the head, a JSON-RPC error included.
    pub(crate) fn mark_head_answered(&self) {
        self.health().unanswered_since = None;
    }

    /// Whether a request for the head has been unanswered for this long.
    pub(crate) fn is_silent_for(&self, duration: Duration) -> bool {
        self.health()
            .unanswered_since
            .is_some_and(|at| at.elapsed() >= duration)
    }

    /// Records that the node serves the chain of the gateway.
    pub(crate) fn mark_chain_ok(&self) {
        self.health().is_wrong_chain = false;
    }

    /// Whether the node served another chain at the last check of its chain id.
    pub(crate) fn is_wrong_chain(&self) -> bool {
        self.health().is_wrong_chain
    }

    /// Records that the node serves another chain; returns whether that is new.
    pub(crate) fn mark_wrong_chain(&self) -> bool {
        let mut health = self.health();
        health.healthy_since = None;
        !std::mem::replace(&mut health.is_wrong_chain, true)
    }

    /// The newest block at the last successful check.
    pub(crate) fn head(&self) -> Option<Block> {
        self.health().head
    }

    /// Since when every check of the node succeeded.
    pub(crate) fn healthy_since(&self) -> Option<Instant> {
        self.health().healthy_since
    }

    /// Whether no check has succeeded for this long.
    pub(crate) fn is_unconfirmed_for(&self, duration: Duration) -> bool {
        self.health().confirmed_at.is_none_or(|at| at.elapsed() >= duration)
    }

    /// Marks the node as replaced by another one, or as in use again.
    pub(crate) fn abandon(&self, is_abandoned: bool) {
        self.is_abandoned.send_replace(is_abandoned);
    }

    /// Returns once another node has replaced this one.
    pub(crate) async fn abandoned(&self) {
        // The sender lives as long as the endpoint.
        let _ = self
            .is_abandoned
            .subscribe()
            .wait_for(|is_abandoned| *is_abandoned)
            .await;
    }

    pub(crate) fn status(&self, active: bool) -> NodeStatus {
        let health = *self.health();
        let state = match (health.is_wrong_chain, health.healthy_since) {
            (true, _) => NodeState::OtherChain,
            (false, Some(_)) => NodeState::Up,
            (false, None) => NodeState::Down,
        };
        NodeStatus {
            active,
            state,
            traces: self.tracing.load(),
            head: health.head.map(|head| head.number),
            head_age: health.confirmed_at.map(|at| at.elapsed()),
        }
    }
}
