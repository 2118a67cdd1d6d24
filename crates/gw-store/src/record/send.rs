//! Rows that the send path writes: reserved addresses, per-transaction visibility, inferred links (R1-R4, W5, W6,
//! HD14).

use super::{JsonObject, NewWatch};
use gw_types::{Address, B256, ExternalId, OrgId, ReservationId, Timestamp, UserId, VisibilityId, WatchId};

/// Written before a send is forwarded; the visibility row is inactive until the node accepts (W5).
#[derive(Clone, Debug)]
pub struct SendStart {
    /// The caller.
    pub user: UserId,
    /// The organization of the call.
    pub org: OrgId,
    /// The transaction's hash; known before forwarding for a raw send.
    pub tx_hash: Option<B256>,
    /// Users whom the sender lets see the transaction; requires `tx_hash`.
    pub visible_to: Vec<ExternalId>,
    /// Addresses that the transaction will create.
    pub reservations: Vec<NewReservation>,
    /// How to find the transaction in its block, if post-execution checks are on (HD2).
    pub watch: Option<NewWatch>,
}

/// An address to reserve.
#[derive(Clone, Copy, Debug)]
pub struct NewReservation {
    /// The address.
    pub address: Address,
    /// How the contract is created.
    pub kind: CreationKind,
    /// The sender that will create it.
    pub sender: Address,
    /// The sender's nonce.
    pub nonce: u64,
    /// When the reservation expires if the transaction is not mined (HD14: 30 minutes).
    pub expires_at: Timestamp,
}

/// How a contract is created (R3 metadata `via`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CreationKind {
    /// A transaction without `to`.
    Plain,
    /// CREATE or CREATE2 inside a transaction.
    Runtime,
}

impl CreationKind {
    /// Returns the wire and column text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain_create",
            Self::Runtime => "runtime_create",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "plain_create" => Some(Self::Plain),
            "runtime_create" => Some(Self::Runtime),
            _ => None,
        }
    }
}

/// The rows that one send wrote; pass it back when the node has answered.
#[must_use]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendRows {
    /// The visibility row.
    pub visibility: Option<VisibilityId>,
    /// The reservations, in the order given.
    pub reservations: Vec<ReservationId>,
    /// The watched send.
    pub watch: Option<WatchId>,
}

impl SendRows {
    /// Whether the send wrote no rows.
    pub fn is_empty(&self) -> bool {
        self.visibility.is_none() && self.reservations.is_empty() && self.watch.is_none()
    }
}

/// Input for a transaction that the node accepted.
#[derive(Clone, Debug)]
pub struct SendAccepted {
    /// The rows written before forwarding.
    pub rows: SendRows,
    /// The transaction's hash.
    pub tx_hash: B256,
    /// The recovered sender of a raw transaction, to be linked to the caller unless a rule forbids it (W6, LK-7).
    pub link: Option<(UserId, Address)>,
}

/// State of a reservation (R4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReservationState {
    /// Before forwarding.
    Reserved,
    /// Accepted by the node.
    Sent,
    /// The transaction was mined and created code here.
    Mined,
    /// The transaction was rejected, or mined without creating code here.
    Reverted,
    /// The nonce was consumed by another transaction.
    Replaced,
}

impl ReservationState {
    /// Returns the column text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Sent => "sent",
            Self::Mined => "mined",
            Self::Reverted => "reverted",
            Self::Replaced => "replaced",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::Reserved, Self::Sent, Self::Mined, Self::Reverted, Self::Replaced]
            .into_iter()
            .find(|state| state.as_str() == text)
    }

    /// Whether it still grants access and waits for the chain.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Reserved | Self::Sent)
    }
}

/// A reservation that still waits for the chain; read at start to resume (R4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenReservation {
    /// Row id.
    pub id: ReservationId,
    /// The address.
    pub address: Address,
    /// The deployer's organization.
    pub org: OrgId,
    /// The deployer.
    pub user: UserId,
    /// How the contract is created.
    pub kind: CreationKind,
    /// The sender that will create it.
    pub sender: Address,
    /// The sender's nonce.
    pub nonce: u64,
    /// The transaction, once sent.
    pub tx_hash: Option<B256>,
    /// Reserved or sent.
    pub state: ReservationState,
    /// When it expires if the transaction is not mined.
    pub expires_at: Timestamp,
}

/// A mined transaction of the gateway, with the contracts its trace created (R3, HD14).
#[derive(Clone, Debug)]
pub struct Mined {
    /// The transaction.
    pub tx_hash: B256,
    /// The block that holds it.
    pub block_hash: B256,
    /// That block's number.
    pub block_number: u64,
    /// That block's time.
    pub at: Timestamp,
    /// The deployer, if the user still exists.
    pub user: Option<UserId>,
    /// Whether the deployer's own group gets a grant: not if the deployer has left the organization.
    pub grant: bool,
    /// The organization of the transaction.
    pub org: OrgId,
    /// The created contracts; those already registered elsewhere are left unchanged.
    pub created: Vec<MinedContract>,
}

/// One created contract.
#[derive(Clone, Debug)]
pub struct MinedContract {
    /// Its address.
    pub address: Address,
    /// How it was created.
    pub kind: CreationKind,
    /// Further metadata besides what R3 requires.
    pub metadata: JsonObject,
}
