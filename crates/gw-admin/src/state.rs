//! The state shared by the admin handlers.

use crate::{LoginSessions, explorer_access::ImpersonatedExplorer};
use axum::extract::FromRef;
use gw_crypto::KeyCipher;
use gw_evm::CustomMethods;
use gw_http::{DeliveryNetworks, HttpContext, simulation::CallSimulator};
use gw_journal::Journal;
use gw_node::Node;
use gw_policy::PolicySettings;
use gw_store::{Feed, Store, audit::AuditStore};
use gw_types::{Clock, Entropy};
use std::sync::Arc;
use tokio_util::task::TaskTracker;

/// The state shared by the admin handlers; cheap to clone.
#[derive(Clone, Debug)]
pub struct AdminState {
    /// Authentication and HTTP settings.
    pub http_context: Arc<HttpContext>,
    /// The store with the policy rows.
    pub store: Store,
    /// The policy snapshot, for answers that combine several rows.
    pub feed: Feed,
    /// The sealed logs.
    pub audit: AuditStore,
    /// The journal that records every request.
    pub journal: Arc<Journal>,
    /// The EVM node, to check proofs of deployment.
    pub node: Arc<Node>,
    /// Encrypts upstream keys and secrets of webhooks, and digests search terms; with `None` neither can be stored.
    pub key_cipher: Option<Arc<KeyCipher>>,
    /// Pending login sessions.
    pub sessions: Arc<dyn LoginSessions>,
    /// Makes calls through the pipeline of `/rpc`.
    pub calls: Arc<dyn CallSimulator>,
    /// The data API of the explorer.
    pub explorer: Arc<dyn ImpersonatedExplorer>,
    /// Where webhooks may deliver to.
    pub delivery_networks: Arc<DeliveryNetworks>,
    /// Methods beside the registry.
    pub custom_methods: Arc<CustomMethods>,
    /// The policy settings that every decision uses.
    pub policy_settings: Arc<PolicySettings>,
    /// Configuration of the admin API.
    pub settings: AdminSettings,
    /// Facts about this instance for `/status`.
    pub facts: InstanceFacts,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The source of random bytes.
    pub entropy: Arc<dyn Entropy>,
    /// Tracks tasks that outlive their request.
    pub tasks: TaskTracker,
}

/// What `/status` reports about the instance that serves the request.
#[derive(Clone, Debug)]
pub struct InstanceFacts {
    /// The public port.
    pub port: u16,
    /// Scheme, host and port of every node, in the configured order.
    pub node_origins: Vec<String>,
}

/// Configuration of the admin API.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdminSettings {
    /// `ADMIN_CLAIM_DELEGATION`: organization administrators may give the admin claim.
    pub claim_delegation: bool,
    /// `ADMIN_CONFIRM_DELETES`: deleting an organization with groups or contracts needs `confirm=<slug>`.
    pub confirm_deletes: bool,
    /// `PERSONAL_RPC_URLS`: users have personal RPC URLs.
    pub personal_urls: bool,
}

impl FromRef<AdminState> for Arc<HttpContext> {
    fn from_ref(state: &AdminState) -> Self {
        Self::clone(&state.http_context)
    }
}
