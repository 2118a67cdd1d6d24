//! What a viewer may see, as addresses and transactions. The policy core makes a scope; the index only reads it.

use crate::{blocks::BlockRange, rows::RowId};
use gw_types::{Address, B256, Timestamp};
use std::collections::BTreeSet;

/// An address that a viewer may see in a range of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VisibleAddress {
    /// The address.
    pub address: Address,
    /// The blocks in which the viewer may see it: for example those in which the viewer's organization owned the
    /// contract (HD41).
    pub blocks: BlockRange,
}

impl VisibleAddress {
    /// An address that the viewer may see in all blocks.
    pub const fn in_all_blocks(address: Address) -> Self {
        Self {
            address,
            blocks: BlockRange::ALL,
        }
    }
}

/// A disclosure grant: rows of its address survive whatever the other side is (R15).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The disclosed address.
    pub target: VisibleAddress,
    /// The first and the last block time of the rows that the grant covers; `None` for all. A block without a time, or
    /// with time 0, is in no range.
    pub times: Option<(Timestamp, Timestamp)>,
    /// The addresses to which the grant is limited: one of each of these lists is a side of the row. Empty for all.
    pub counterparties: Vec<Vec<Address>>,
}

/// Logs of a contract with the same first topic and the same number of topics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventLogs {
    /// The contract, in the blocks of its registration.
    pub emitter: VisibleAddress,
    /// The first topic.
    pub topic0: B256,
    /// The number of topics.
    pub topics: u8,
    /// Only logs with this address in the topic at this position; the first topic has position 0.
    pub party: Option<(usize, Address)>,
}

/// What becomes of a row with one visible side (K1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartialRows {
    /// The row survives, and its other side is masked.
    #[default]
    Keep,
    /// The row survives only with two visible sides, as a deployment, by a grant, a share, the viewer's own part, or an
    /// administered side. A transfer also needs a token of which the viewer may see events.
    Drop,
}

/// Whether all transfers and logs of the viewer's own transactions are selected (K2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParticipantRows {
    /// All of them.
    #[default]
    All,
    /// Only those that are selected for another reason. The logs are candidates.
    Granted,
}

/// Whether a transaction survives by a surviving transfer (K12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HiddenTransfers {
    /// It does not.
    #[default]
    None,
    /// It does.
    Keep,
}

/// What a viewer may see. Under impersonation the policy core makes one scope for transactions, transfers and frames,
/// and one for the logs of each of the two viewers, whose rows are then intersected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Addresses that make a row visible as one of its sides, except for public and own ones (bases 5 to 9 of spec/30
    /// section 2.2).
    pub visible: Vec<VisibleAddress>,
    /// Addresses with the public basis that make a row visible: the zero address (HD9).
    pub public: Vec<VisibleAddress>,
    /// The viewer's linked addresses (basis 4).
    pub own: Vec<VisibleAddress>,
    /// The linked addresses whose owner is a participant of what is sent to them (HD10).
    pub own_receivers: Vec<VisibleAddress>,
    /// Contracts that the viewer administers: their rows survive with one visible side even under
    /// [`PartialRows::Drop`].
    pub administered: Vec<VisibleAddress>,
    /// Tokens of which the viewer may see events, for [`PartialRows::Drop`].
    pub event_tokens: Vec<VisibleAddress>,
    /// Wallets of members of administered organizations, whose transactions survive (K10).
    pub members: Vec<VisibleAddress>,
    /// Grants of disclosure (basis 9).
    pub grants: Vec<Grant>,
    /// Transactions that were shared with the viewer (`visibleTo`).
    pub shared: BTreeSet<RowId>,
    /// Transactions that are withheld from all viewers, with all their rows (HD28).
    pub withheld: BTreeSet<RowId>,
    /// Contracts whose transfers and logs are not shown (HD28).
    pub closed: Vec<Address>,
    /// Contracts all of whose logs the viewer may see.
    pub emitters: Vec<VisibleAddress>,
    /// Contracts of which the viewer may see logs with this first topic.
    pub events: Vec<(VisibleAddress, B256)>,
    /// Logs that the viewer may see by their number of topics or by an address in a topic.
    pub event_logs: Vec<EventLogs>,
    /// Contracts of which each log, or each one with this first topic, has to be evaluated.
    pub log_candidates: Vec<(VisibleAddress, Option<B256>)>,
    /// Whether all transfers and logs of own transactions are selected (K2).
    pub participant_rows: ParticipantRows,
    /// What becomes of a row with one visible side (K1).
    pub one_sided: PartialRows,
    /// Whether a transaction survives by a surviving transfer (K12).
    pub anchor: HiddenTransfers,
}

impl Scope {
    /// All addresses that count as visible, whatever their basis; without grants.
    pub(crate) fn all_visible(&self) -> impl Iterator<Item = &VisibleAddress> {
        self.visible.iter().chain(&self.public).chain(&self.own)
    }
}
