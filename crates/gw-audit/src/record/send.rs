//! Intent and outcome of a send (HD22), recorded before and after the transaction is forwarded, which cannot be undone.

use crate::code::codes;
use gw_types::{Address, B256, Claims, ExternalId, OrgId};

codes! {
    /// The outcome of a send.
    Outcome {
        /// The node accepted the transaction.
        Accepted = "accepted",
        /// The node rejected the transaction, or it was never forwarded.
        Refused = "refused",
        /// The outcome is unknown; the blockchain shows later whether it has a transaction with the hash.
        Unknown = "unknown",
    }
}

/// A send that is about to be forwarded, with everything that must be restored if the process dies now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SendIntent {
    /// The transaction's hash.
    pub hash: B256,
    /// The DID of the caller. Personal.
    pub subject: Option<ExternalId>,
    /// The organization under which the send was authorized.
    pub org_id: OrgId,
    /// The transaction's sender. Personal.
    pub sender: Option<Address>,
    /// The transaction's nonce.
    pub nonce: u64,
    /// The DIDs with whom the transaction is shared. Personal.
    pub visible_to: Vec<ExternalId>,
    /// The claims under which the send was allowed.
    pub claims: Claims,
    /// The addresses that the trace created, which are to be reserved. Personal.
    pub creates: Vec<Address>,
}

/// The outcome of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendOutcome {
    /// The transaction's hash.
    pub hash: B256,
    /// The organization under which the send was authorized.
    pub org_id: OrgId,
    /// The outcome.
    pub outcome: Outcome,
    /// The node's error code, if it returned one.
    pub node_code: Option<i64>,
}
