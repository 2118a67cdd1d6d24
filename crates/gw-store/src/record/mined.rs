//! What became of sends once they were mined (spec/02 HD2, HD28). People stand under their DID, so that what guards others
//! outlives the user and the organization (HD37).

use gw_policy::{access::JudgedRuns, snapshot::AccountChange};
use gw_types::{
    Address, B256, ConvictionId, ExternalId, OrgId, QuarantineId, SuspensionId, Timestamp, WatchId, WithheldId,
};

/// A send to be found again in its block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWatch {
    /// Its sender.
    pub sender: Address,
    /// The sender's nonce.
    pub nonce: u64,
    /// Who sends it through the gateway.
    pub external_id: ExternalId,
    /// The organizations they are an active member of.
    pub orgs: Vec<OrgId>,
    /// Whether the request named its organization, and so has rights in no other one (HD39).
    pub is_named: bool,
    /// The runs by which it is judged.
    pub judged: Option<JudgedRuns>,
}

/// A send whose block is awaited, or was looked at a little while ago.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub external_id: ExternalId,
    /// Under which organization.
    pub org: OrgId,
    /// The organizations they were an active member of.
    pub orgs: Vec<OrgId>,
    /// Whether the request named its organization, and so had rights in no other one (HD39).
    pub is_named: bool,
    /// The number of the block it was found in; none while it is awaited.
    pub block_number: Option<u64>,
    /// The runs by which it was judged; unknown of what was sent before that was kept.
    pub judged: Option<JudgedRuns>,
}

/// What a mined transaction did that would have been denied, and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Who sent it through the gateway.
    pub external_id: ExternalId,
    /// Under which organization.
    pub org: OrgId,
    /// Its sender.
    pub sender: Address,
    /// The transaction.
    pub tx_hash: B256,
    /// Its block.
    pub block_hash: B256,
    /// The number of that block.
    pub block: u64,
    /// When that block was.
    pub block_time: Timestamp,
    /// Its place in the block.
    pub place: u64,
    /// How many events it emitted.
    pub logs: u64,
    /// Why it would have been denied.
    pub reason: &'static str,
    /// What it changed.
    pub changes: Vec<(Address, AccountChange)>,
    /// What is closed to the sender's side.
    pub closed_to_side: Vec<Address>,
    /// That side.
    pub side: Vec<OrgId>,
    /// The organizations whose administrators may clear it; none if only a super admin may.
    pub wronged: Vec<OrgId>,
    /// Whether the sender loses the right to send.
    pub suspends: bool,
}

/// A transaction that is withheld.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conviction {
    /// Row id.
    pub id: ConvictionId,
    /// The transaction.
    pub tx_hash: B256,
    /// Its block.
    pub block_hash: B256,
    /// Its place there.
    pub place: u64,
    /// How many events it emitted.
    pub logs: u64,
    /// Its sender; unknown for what was found before senders were kept.
    pub sender: Option<Address>,
    /// Who sent it through the gateway.
    pub external_id: ExternalId,
    /// Under which organization.
    pub org: Option<OrgId>,
    /// The organizations whose administrators may clear it, all of them together; none if only a super admin may.
    pub wronged: Vec<OrgId>,
    /// Why it would have been denied.
    pub reason: String,
    /// When it was found.
    pub created_at: Timestamp,
    /// When it was cleared.
    pub cleared_at: Option<Timestamp>,
    /// By whom.
    pub cleared_by: Option<String>,
}

/// A person's lost right to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspension {
    /// Row id.
    pub id: SuspensionId,
    /// Whose right.
    pub external_id: ExternalId,
    /// Under which organization the transaction was sent.
    pub org: Option<OrgId>,
    /// What it follows from.
    pub conviction: Option<ConvictionId>,
    /// The transaction.
    pub tx_hash: B256,
    /// Its block.
    pub block_hash: B256,
    /// Why it would have been denied.
    pub reason: String,
    /// When it was found.
    pub created_at: Timestamp,
}

/// A closed address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantine {
    /// Row id.
    pub id: QuarantineId,
    /// The address.
    pub address: Address,
    /// The organization of the contract there.
    pub org: Option<OrgId>,
    /// What it follows from.
    pub conviction: Option<ConvictionId>,
    /// Whose side it is closed to; closed to everybody without one.
    pub side: Option<(ExternalId, Vec<OrgId>)>,
    /// The transaction.
    pub tx_hash: B256,
    /// Its block.
    pub block_hash: B256,
    /// Why it would have been denied.
    pub reason: String,
    /// When it was found.
    pub created_at: Timestamp,
}

/// What a withheld transaction changed of one account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithheldChange {
    /// Row id.
    pub id: WithheldId,
    /// What it follows from.
    pub conviction: ConvictionId,
    /// The account.
    pub address: Address,
    /// The organization of the contract there, if that is not on the sender's side.
    pub org: Option<OrgId>,
    /// The sender's side.
    pub side: Vec<OrgId>,
    /// Number of the block.
    pub block: u64,
    /// When that block was.
    pub block_time: Timestamp,
    /// Place of the transaction in the block.
    pub place: u64,
    /// What changed.
    pub change: AccountChange,
    /// When it was found.
    pub created_at: Timestamp,
}
