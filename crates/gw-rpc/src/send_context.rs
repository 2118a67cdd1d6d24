//! The shared context of sends, and of the reads that use the same node, feed and journal.

use crate::{compliance::ComplianceCheck, upstream::Upstream};
use gw_journal::Journal;
use gw_policy::PolicySettings;
use gw_store::{Feed, Store};
use gw_types::Clock;
use std::sync::Arc;
use tokio_util::task::TaskTracker;

/// The shared context of sends; cheap to clone.
#[derive(Clone, Debug)]
pub struct SendContext {
    /// The node.
    pub node: Upstream,
    /// The policy store, which holds reservations, visibility and links.
    pub store: Store,
    /// The feed of the newest policy.
    pub feed: Feed,
    /// The journal, which holds intents and outcomes.
    pub journal: Arc<Journal>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The policy settings.
    pub policy_settings: Arc<PolicySettings>,
    /// The compliance rules.
    pub compliance: Arc<dyn ComplianceCheck>,
    /// Tasks that shutdown waits for.
    pub tasks: TaskTracker,
}
