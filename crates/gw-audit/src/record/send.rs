//! Intent and outcome of a send (HD22): written before and after the one thing that cannot be undone.

use crate::code::codes;
use gw_types::{Address, B256, Claims, ExternalId, OrgId};

codes! {
    /// What became of a send.
    Outcome {
        /// The node took the transaction.
        Accepted = "accepted",
        /// The node refused it, or it was never forwarded.
        Refused = "refused",
        /// Nobody knows; the chain will tell by the hash.
        Unknown = "unknown",
    }
}

/// A send about to be forwarded, with all that must be restored if the process dies now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendIntent {
    /// The transaction's hash.
    pub hash: B256,
    /// Who sends. Personal.
    pub subject: Option<ExternalId>,
    /// The organization the send was judged under.
    pub org_id: OrgId,
    /// The transaction's sender. Personal.
    pub sender: Option<Address>,
    /// The transaction's nonce.
    pub nonce: u64,
    /// With whom the transaction is shared. Personal.
    pub visible_to: Vec<ExternalId>,
    /// The claims under which it was allowed.
    pub claims: Claims,
    /// The addresses the trace saw created, to be reserved. Personal.
    pub creates: Vec<Address>,
}

/// What became of the send with this hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendOutcome {
    /// The transaction's hash.
    pub hash: B256,
    /// The organization the send was judged under.
    pub org_id: OrgId,
    /// What became of it.
    pub outcome: Outcome,
    /// The node's error code, if it gave one.
    pub node_code: Option<i64>,
}
