//! What the handlers draw on.

use crate::{CallTester, LoginSessions};
use axum::extract::FromRef;
use gw_evm::Extras;
use gw_http::Edge;
use gw_journal::Journal;
use gw_node::{KeyCipher, Node};
use gw_policy::Knobs;
use gw_store::{Feed, Store, audit::AuditStore};
use gw_types::{Clock, Entropy};
use std::sync::Arc;
use tokio_util::task::TaskTracker;

/// What the handlers draw on; cheap to clone.
#[derive(Clone, Debug)]
pub struct AdminState {
    /// Who may come in.
    pub edge: Arc<Edge>,
    /// Policy rows.
    pub store: Store,
    /// The snapshot, for what follows from several rows.
    pub feed: Feed,
    /// Sealed records.
    pub audit: AuditStore,
    /// Where every request is recorded.
    pub journal: Arc<Journal>,
    /// The chain, to check proofs of deployment.
    pub node: Arc<Node>,
    /// For upstream keys; `None` refuses to store any.
    pub key_cipher: Option<Arc<KeyCipher>>,
    /// Logins on their way.
    pub sessions: Arc<dyn LoginSessions>,
    /// Runs calls as callers do.
    pub tester: Arc<dyn CallTester>,
    /// Methods beside the registry.
    pub extras: Arc<Extras>,
    /// Decision knobs, as every decision takes them.
    pub knobs: Arc<Knobs>,
    /// Switches.
    pub settings: AdminSettings,
    /// What is told of this instance.
    pub facts: InstanceFacts,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// Work that outlives its request.
    pub tasks: TaskTracker,
}

/// What administrators are told of the instance they talk to.
#[derive(Clone, Debug)]
pub struct InstanceFacts {
    /// The public port.
    pub port: u16,
    /// Scheme, host and port of every node, in their order.
    pub node_origins: Vec<String>,
}

/// Switches of the admin API.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdminSettings {
    /// `ADMIN_CLAIM_DELEGATION`: organization administrators may give the admin claim.
    pub claim_delegation: bool,
    /// `ADMIN_CONFIRM_DELETES`: deleting an organization that holds something needs `confirm=<slug>`.
    pub confirm_deletes: bool,
    /// `PERSONAL_RPC_URLS`: users have personal RPC URLs.
    pub personal_urls: bool,
}

impl FromRef<AdminState> for Arc<Edge> {
    fn from_ref(state: &AdminState) -> Self {
        Self::clone(&state.edge)
    }
}
