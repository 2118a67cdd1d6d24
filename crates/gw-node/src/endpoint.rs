//! One of the nodes: the way to it, what it traces, and how it was found at the last look.

use crate::{
    Block, NodeConfig,
    probe::{Overriding, Tracing},
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
    pub(crate) tracing: Tracing,
    pub(crate) overriding: Overriding,
    health: Mutex<Health>,
    /// Whether another node was taken in its place: who waits for an answer of it need not.
    given_up: watch::Sender<bool>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Health {
    head: Option<Block>,
    /// When it last said so.
    confirmed: Option<Instant>,
    /// Since when every look found it well.
    well_since: Option<Instant>,
    is_foreign: bool,
    /// When it was first asked for its head without an answer since.
    unanswered: Option<Instant>,
}

/// How a node is, for whoever operates the gateway. Which node it is, its place in the list says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    /// Whether it is the one in use.
    pub active: bool,
    /// How the last look found it.
    pub state: NodeState,
    /// Which trace it gives.
    pub traces: Option<TraceForm>,
    /// Its newest block at the last look that succeeded.
    pub head: Option<u64>,
    /// How long that look is ago.
    pub head_age: Option<Duration>,
}

/// What a look finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeState {
    /// It answers.
    Up,
    /// It does not.
    Down,
    /// It serves another chain, and is never used.
    OtherChain,
}

impl Endpoint {
    pub(crate) fn new(config: &NodeConfig, uri: &Uri) -> Result<Self, io::Error> {
        Ok(Self {
            transport: Transport::new(config, uri)?,
            tracing: Tracing::default(),
            overriding: Overriding::default(),
            health: Mutex::default(),
            given_up: watch::Sender::new(false),
        })
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A look succeeded.
    pub(crate) fn seen(&self, head: Block) {
        let now = Instant::now();
        let mut health = self.health();
        let well_since = health.well_since.or(Some(now));
        *health = Health {
            head: Some(head),
            confirmed: Some(now),
            well_since,
            ..*health
        };
    }

    /// A look failed.
    pub(crate) fn missed(&self) {
        self.health().well_since = None;
    }

    /// It is asked for its head.
    pub(crate) fn asked(&self) {
        let mut health = self.health();
        health.unanswered = health.unanswered.or(Some(Instant::now()));
    }

    /// It answered that, in whatever words.
    pub(crate) fn answered(&self) {
        self.health().unanswered = None;
    }

    /// Whether it has not answered for so long since it was asked for its head.
    pub(crate) fn is_silent_for(&self, long: Duration) -> bool {
        self.health().unanswered.is_some_and(|at| at.elapsed() >= long)
    }

    /// It said that it is of our chain.
    pub(crate) fn turned_ours(&self) {
        self.health().is_foreign = false;
    }

    /// Whether it said that it is of another chain when it was asked last.
    pub(crate) fn is_foreign(&self) -> bool {
        self.health().is_foreign
    }

    /// It is of another chain; whether that is news.
    pub(crate) fn turned_foreign(&self) -> bool {
        let mut health = self.health();
        health.well_since = None;
        !std::mem::replace(&mut health.is_foreign, true)
    }

    /// Its newest block at the last look.
    pub(crate) fn head(&self) -> Option<Block> {
        self.health().head
    }

    /// Since when every look found it well.
    pub(crate) fn well_since(&self) -> Option<Instant> {
        self.health().well_since
    }

    /// Whether no look has succeeded for so long.
    pub(crate) fn is_unconfirmed_for(&self, long: Duration) -> bool {
        self.health().confirmed.is_none_or(|at| at.elapsed() >= long)
    }

    pub(crate) fn give_up(&self, given_up: bool) {
        self.given_up.send_replace(given_up);
    }

    /// Returns once another node was taken in its place.
    pub(crate) async fn abandoned(&self) {
        // The sender lives as long as the endpoint.
        let _ = self.given_up.subscribe().wait_for(|given_up| *given_up).await;
    }

    pub(crate) fn status(&self, active: bool) -> NodeStatus {
        let health = *self.health();
        let state = match (health.is_foreign, health.well_since) {
            (true, _) => NodeState::OtherChain,
            (false, Some(_)) => NodeState::Up,
            (false, None) => NodeState::Down,
        };
        NodeStatus {
            active,
            state,
            traces: self.tracing.load(),
            head: health.head.map(|head| head.number),
            head_age: health.confirmed.map(|at| at.elapsed()),
        }
    }
}
