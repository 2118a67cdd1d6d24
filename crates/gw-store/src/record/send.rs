//! What the send path writes: reserved addresses, per-transaction visibility, inferred links (R1-R4, W5, W6, HD14).

use super::{NewWatch, Object};
use gw_types::{Address, B256, ExternalId, OrgId, ReservationId, Timestamp, UserId, VisibilityId, WatchId};

/// Written before a send is forwarded; the visibility row is inactive until the node accepts (W5).
#[derive(Clone, Debug)]
pub struct SendStart {
    /// The caller.
    pub user: UserId,
    /// The organization the call is filed under.
    pub org: OrgId,
    /// The transaction's hash; a raw send knows it before forwarding.
    pub tx_hash: Option<B256>,
    /// Whom the sender lets see the transaction; needs `tx_hash`.
    pub visible_to: Vec<ExternalId>,
    /// Addresses that the transaction will create.
    pub reservations: Vec<NewReservation>,
    /// How it is found in its block, if somebody looks (HD2).
    pub watch: Option<NewWatch>,
}

/// An address to reserve.
#[derive(Clone, Copy, Debug)]
pub struct NewReservation {
    /// The address.
    pub address: Address,
    /// How it comes about.
    pub kind: CreationKind,
    /// The sender that will create it.
    pub sender: Address,
    /// The sender's nonce.
    pub nonce: u64,
    /// When it ends unmined (HD14: 30 minutes).
    pub expires_at: Timestamp,
}

/// How a contract comes about (R3 metadata `via`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CreationKind {
    /// A transaction without `to`.
    Plain,
    /// CREATE or CREATE2 inside a transaction.
    Runtime,
}

impl CreationKind {
    /// The wire and column text.
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

/// The rows one send wrote; hand it back when the node has answered.
#[must_use]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SendRows {
    /// The visibility row.
    pub visibility: Option<VisibilityId>,
    /// The reservations, in the order given.
    pub reservations: Vec<ReservationId>,
    /// The watch over its block.
    pub watch: Option<WatchId>,
}

impl SendRows {
    /// Whether the send wrote nothing.
    pub fn is_empty(&self) -> bool {
        self.visibility.is_none() && self.reservations.is_empty() && self.watch.is_none()
    }
}

/// The node took the transaction.
#[derive(Clone, Debug)]
pub struct SendAccepted {
    /// What was written before.
    pub rows: SendRows,
    /// The transaction's hash.
    pub tx_hash: B256,
    /// The recovered sender of a raw transaction, to be linked to the caller if nothing forbids it (W6, LK-7).
    pub link: Option<(UserId, Address)>,
}

/// Where a reservation stands (R4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReservationState {
    /// Before forwarding.
    Reserved,
    /// Accepted by the node.
    Sent,
    /// The transaction was mined and created code here.
    Mined,
    /// The transaction was refused, or mined without creating code here.
    Reverted,
    /// The nonce was consumed by another transaction.
    Replaced,
}

impl ReservationState {
    /// The column text.
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

    /// Whether it still gives reach and waits for the chain.
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
    /// How it comes about.
    pub kind: CreationKind,
    /// The sender that will create it.
    pub sender: Address,
    /// The sender's nonce.
    pub nonce: u64,
    /// The transaction, once sent.
    pub tx_hash: Option<B256>,
    /// Reserved or sent.
    pub state: ReservationState,
    /// When it ends unmined.
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
    /// The deployer, if there still is one.
    pub user: Option<UserId>,
    /// Whether the deployer's own group is granted it: not for somebody who left the organization meanwhile.
    pub grant: bool,
    /// The organization of the transaction.
    pub org: OrgId,
    /// What it created; contracts already registered elsewhere are left alone.
    pub created: Vec<MinedContract>,
}

/// One created contract.
#[derive(Clone, Debug)]
pub struct MinedContract {
    /// Its address.
    pub address: Address,
    /// How it came about.
    pub kind: CreationKind,
    /// Further metadata, beside what R3 demands.
    pub metadata: Object,
}
