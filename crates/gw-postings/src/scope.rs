//! What a viewer may see, as addresses and transactions. The policy core makes a scope; the index only reads it.

use crate::{blocks::BlockRange, rows::RowId};
use gw_types::{Address, B256};
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
    /// The disclosed address, in the blocks of the grant's dates.
    pub target: VisibleAddress,
    /// The other sides to which the grant is limited; `None` for all.
    pub counterparties: Option<Vec<Address>>,
}

/// What becomes of a row with one visible side (K1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OneSided {
    /// The row survives, and its other side is masked.
    #[default]
    Keep,
    /// The row survives only with two visible sides, as a deployment, by a grant, a share or the viewer's own part.
    Drop,
}

/// What a viewer may see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Addresses with an RBAC basis, and preregistered ones (bases 5 to 8 of spec/30 section 2.2).
    pub visible: Vec<VisibleAddress>,
    /// Addresses with the public basis: the zero address, precompiles, shared infrastructure (bases 1 to 3).
    pub public: Vec<VisibleAddress>,
    /// The viewer's linked addresses (basis 4).
    pub own: Vec<VisibleAddress>,
    /// Grants of disclosure (basis 9).
    pub grants: Vec<Grant>,
    /// Transactions that were shared with the viewer (`visibleTo`).
    pub shared: BTreeSet<RowId>,
    /// Transactions that are withheld from all viewers, with all their rows (HD28).
    pub withheld: BTreeSet<RowId>,
    /// Contracts all of whose events the viewer may see.
    pub emitters: Vec<VisibleAddress>,
    /// Contracts of which the viewer may see events with this first topic.
    pub events: Vec<(VisibleAddress, B256)>,
    /// What becomes of a row with one visible side (K1).
    pub one_sided: OneSided,
}

impl Scope {
    /// All addresses that count as visible, whatever their basis; without grants.
    pub(crate) fn visible_on_any_basis(&self) -> impl Iterator<Item = &VisibleAddress> {
        self.visible.iter().chain(&self.public).chain(&self.own)
    }

    /// The addresses that count as visible on another basis than the public one.
    pub(crate) fn visible_by_right(&self) -> impl Iterator<Item = &VisibleAddress> {
        self.visible.iter().chain(&self.own)
    }
}
