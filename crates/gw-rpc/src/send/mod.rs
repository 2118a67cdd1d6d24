//! Sends: what happens between a permit whose plan is [`Plan::Send`](gw_policy::access::Plan::Send) and the node's
//! word (spec/20 §12).
//!
//! `prepare` traces and judges, `forward` is what nobody can stop half-way, `rows` what it writes to the policy store,
//! `recover` what happens when nobody knows how it ended. What becomes of the addresses a transaction creates is
//! followed by a worker of the server, from the reservations written here (R3, R4).
//!
//! Invariants: nothing is forwarded before both traces passed under the newest policy, and before the intent is on
//! disk (HD22). All of it runs apart from the connection, down to its access record (HD21).

mod forward;
mod prepare;
mod recover;
mod rows;

pub use recover::resolve_intents;

use crate::{
    question::{Asked, Judged},
    record::Found,
    reply::Reply,
};
use gw_journal::Journal;
use gw_node::Node;
use gw_policy::{
    Disclosed,
    knobs::Knobs,
    view::{self, RunLog},
};
use gw_store::{Feed, Store};
use gw_types::Clock;
use std::sync::Arc;
use tokio_util::task::TaskTracker;

/// What sends draw on; cheap to clone.
#[derive(Clone, Debug)]
pub struct SendContext {
    /// The node.
    pub node: Arc<Node>,
    /// Where reservations, visibility and links are kept.
    pub store: Store,
    /// The newest policy.
    pub feed: Feed,
    /// Where intent and outcome are written.
    pub journal: Arc<Journal>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Decision knobs.
    pub knobs: Arc<Knobs>,
    /// Work that shutdown waits for.
    pub tasks: TaskTracker,
}

/// What a send would do, as far as both see it (V1).
#[derive(Debug)]
pub(crate) struct Effects {
    pub(crate) trace: Disclosed,
    pub(crate) logs: Vec<RunLog>,
}

/// Everything that a send must pass before anything happens; nothing happens after it.
pub(crate) async fn rehearse(asked: &Asked, judged: Judged, found: &mut Found) -> Result<Effects, Reply> {
    let ready = prepare::prepare(asked, judged, found).await?;
    let (judged, verdict) = ready.run();
    let viewer = judged.viewer(asked.state());
    Ok(Effects {
        trace: view::call_tree(&viewer, verdict),
        logs: view::run_logs(&viewer, verdict),
    })
}

/// Carries out a permitted send: the hash, or what the caller is told instead.
pub(crate) async fn send(asked: &Asked, judged: Judged, found: &mut Found) -> Reply {
    let sent = async {
        let ready = prepare::prepare(asked, judged, found).await?;
        forward::forward(asked, ready, found).await
    };
    match sent.await {
        Ok(hash) => Reply::Result(view::local::hash(hash)),
        Err(reply) => reply,
    }
}
