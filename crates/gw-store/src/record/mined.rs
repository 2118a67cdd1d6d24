//! What became of sends once they were mined (spec/02 HD2).

use gw_types::{Address, B256, OrgId, QuarantineId, SuspensionId, Timestamp, UserId, WatchId};

/// A send to be found again in its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewWatch {
    /// Its sender.
    pub sender: Address,
    /// The sender's nonce.
    pub nonce: u64,
}

/// A send whose block is awaited, or was looked at a little while ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    /// Row id.
    pub id: WatchId,
    /// Its hash, once it is known.
    pub tx_hash: Option<B256>,
    /// Its sender.
    pub sender: Address,
    /// The sender's nonce.
    pub nonce: u64,
    /// Who sent it through the gateway.
    pub user: UserId,
    /// Under which organization.
    pub org: OrgId,
}

/// What a mined transaction did that would have been denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Who sent it.
    pub user: UserId,
    /// Under which organization.
    pub org: OrgId,
    /// The transaction.
    pub tx_hash: B256,
    /// Its block.
    pub block_hash: B256,
    /// Why it would have been denied.
    pub reason: &'static str,
    /// What nobody reads from now on.
    pub tainted: Vec<Address>,
}

/// A user's lost right to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspension {
    /// Row id.
    pub id: SuspensionId,
    /// Whose right.
    pub user: UserId,
    /// Under which organization the transaction was sent.
    pub org: Option<OrgId>,
    /// The transaction.
    pub tx_hash: B256,
    /// Its block.
    pub block_hash: B256,
    /// Why it would have been denied.
    pub reason: String,
    /// When it was found.
    pub created_at: Timestamp,
}

/// An address nobody reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantine {
    /// Row id.
    pub id: QuarantineId,
    /// The address.
    pub address: Address,
    /// The organization of the contract there, else the one the transaction was sent under.
    pub org: Option<OrgId>,
    /// The transaction.
    pub tx_hash: B256,
    /// Its block.
    pub block_hash: B256,
    /// Why it would have been denied.
    pub reason: String,
    /// When it was found.
    pub created_at: Timestamp,
}
