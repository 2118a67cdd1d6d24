//! Post-execution results of sends (spec/02 HD2, HD28). People are stored by external id, so that the protection of
//! others outlives the user and the organization (HD37).

use gw_policy::{access::AuthorizedRuns, snapshot::AccountChange};
use gw_types::{
    Address, B256, ConvictionId, ExternalId, OrgId, QuarantineId, SuspensionId, Timestamp, WatchId, WithheldId,
};

/// Input for watching a send until its block is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWatch {
    /// Its sender.
    pub sender: Address,
    /// The sender's nonce.
    pub nonce: u64,
    /// The user who sends it through the gateway.
    pub external_id: ExternalId,
    /// The organizations of which the user is an active member.
    pub orgs: Vec<OrgId>,
    /// Whether the request named its organization, and so has no rights in others (HD39).
    pub is_named: bool,
    /// The simulated runs by which it is authorized.
    pub authorized_runs: Option<AuthorizedRuns>,
}

/// A watched send: pending, or found in a block recently.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedSend {
    /// Row id.
    pub id: WatchId,
    /// Its hash, once known.
    pub tx_hash: Option<B256>,
    /// Its sender.
    pub sender: Address,
    /// The sender's nonce.
    pub nonce: u64,
    /// The user who sent it through the gateway.
    pub external_id: ExternalId,
    /// The organization of the call.
    pub org: OrgId,
    /// The organizations of which the user was an active member.
    pub orgs: Vec<OrgId>,
    /// Whether the request named its organization, and so had no rights in others (HD39).
    pub is_named: bool,
    /// The number of the block where it was found; `None` while it is pending.
    pub block_number: Option<u64>,
    /// The simulated runs by which it was authorized; `None` for sends older than this field.
    pub authorized_runs: Option<AuthorizedRuns>,
}

/// A violation by a mined transaction: what it did that would have been denied, and the consequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The user who sent it through the gateway.
    pub external_id: ExternalId,
    /// The organization of the call.
    pub org: OrgId,
    /// Its sender.
    pub sender: Address,
    /// The transaction.
    pub tx_hash: B256,
    /// Its block.
    pub block_hash: B256,
    /// The number of that block.
    pub block: u64,
    /// The time of that block.
    pub block_time: Timestamp,
    /// Its index in the block.
    pub place: u64,
    /// Number of events it emitted.
    pub logs: u64,
    /// Why it would have been denied.
    pub reason: &'static str,
    /// The account changes it made.
    pub changes: Vec<(Address, AccountChange)>,
    /// Addresses that are closed to the sender's side.
    pub closed_to_side: Vec<Address>,
    /// The organizations of the sender's side.
    pub side: Vec<OrgId>,
    /// The organizations whose administrators may clear it; empty if only a super admin may.
    pub wronged: Vec<OrgId>,
    /// Whether the sender loses the right to send.
    pub suspends: bool,
}

/// A withheld transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conviction {
    /// Row id.
    pub id: ConvictionId,
    /// The transaction.
    pub tx_hash: B256,
    /// Its block.
    pub block_hash: B256,
    /// Its index in the block.
    pub place: u64,
    /// Number of events it emitted.
    pub logs: u64,
    /// Its sender; `None` for rows older than this field.
    pub sender: Option<Address>,
    /// The user who sent it through the gateway.
    pub external_id: ExternalId,
    /// The organization of the call.
    pub org: Option<OrgId>,
    /// The organizations whose administrators may clear it, all of them together; empty if only a super admin may.
    pub wronged: Vec<OrgId>,
    /// Why it would have been denied.
    pub reason: String,
    /// When it was found.
    pub created_at: Timestamp,
    /// When it was cleared.
    pub cleared_at: Option<Timestamp>,
    /// Who cleared it.
    pub cleared_by: Option<String>,
}

/// A person's loss of the right to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspension {
    /// Row id.
    pub id: SuspensionId,
    /// The suspended person.
    pub external_id: ExternalId,
    /// The organization under which the transaction was sent.
    pub org: Option<OrgId>,
    /// The conviction that caused it.
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

/// A quarantined address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quarantine {
    /// Row id.
    pub id: QuarantineId,
    /// The address.
    pub address: Address,
    /// The organization of the contract there.
    pub org: Option<OrgId>,
    /// The conviction that caused it.
    pub conviction: Option<ConvictionId>,
    /// The sender and organizations that it is closed to; `None`: closed to all users.
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

/// The change of one account by a withheld transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithheldChange {
    /// Row id.
    pub id: WithheldId,
    /// The conviction that caused it.
    pub conviction: ConvictionId,
    /// The account.
    pub address: Address,
    /// The organization of the contract there, unless it is on the sender's side.
    pub org: Option<OrgId>,
    /// The organizations of the sender's side.
    pub side: Vec<OrgId>,
    /// Number of the block.
    pub block: u64,
    /// The time of that block.
    pub block_time: Timestamp,
    /// Index of the transaction in the block.
    pub place: u64,
    /// What changed.
    pub change: AccountChange,
    /// When it was found.
    pub created_at: Timestamp,
}
