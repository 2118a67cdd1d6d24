//! What convicted transactions take away (HD2, HD28): senders are suspended, addresses are closed, and the transactions
//! are withheld.

use super::{ClosedTo, Conviction, Snapshot, name_key};
use gw_types::{Address, B256, OrgId, UserId};
use std::{collections::BTreeMap, sync::Arc};

impl Snapshot {
    /// Whether the user's right to send is suspended (HD2), including by a suspension of an earlier account with the
    /// same external id (HD37).
    pub fn is_suspended(&self, user: UserId) -> bool {
        self.users
            .get(&user)
            .is_some_and(|user| !self.suspensions.get(name_key(&user.external_id)).is_empty())
    }

    /// The addresses that are closed to any user (HD28), in no particular order.
    pub fn closed_addresses(&self) -> impl Iterator<Item = Address> {
        self.quarantines.keys().copied()
    }

    /// Whether the state of the address is closed to all users (HD28).
    pub fn is_quarantined(&self, address: Address) -> bool {
        self.quarantines
            .get(address)
            .iter()
            .any(|row| row.closed_to == ClosedTo::Everybody)
    }

    /// Whether the state of the address is closed to this user, who is a member of the organizations for which
    /// `is_member` returns `true` (HD28).
    pub fn is_closed_to(&self, address: Address, user: Option<UserId>, is_member: impl Fn(OrgId) -> bool) -> bool {
        self.quarantines.get(address).iter().any(|row| match &row.closed_to {
            ClosedTo::Everybody => true,
            ClosedTo::SenderSide(sender, orgs) => {
                let user = user.and_then(|user| self.users.get(&user));
                orgs.iter().any(|org| is_member(*org)) || user.is_some_and(|user| user.external_id == *sender)
            }
        })
    }

    /// The hashes of the transactions that are withheld from all viewers (HD28), in no particular order.
    pub fn withheld_transactions(&self) -> impl Iterator<Item = B256> {
        self.convictions.keys().copied()
    }

    /// The convictions of a transaction, one for each person who sent it.
    pub fn convictions(&self, tx_hash: B256) -> &[Arc<Conviction>] {
        self.convictions.get(tx_hash)
    }

    /// Number of logs that withheld transactions emitted in this block before the transaction at index `place`. The
    /// logs of that transaction are numbered as if the withheld ones did not exist (HD28).
    pub fn logs_withheld_before(&self, block: B256, place: u64) -> u64 {
        let convictions = self.convictions_by_block.get(block).iter();
        let before = convictions.filter(|conviction| conviction.place < place);
        // One transaction may have several convictions, one per sender; its logs count once.
        let counts: BTreeMap<u64, u64> = before.map(|conviction| (conviction.place, conviction.logs)).collect();
        counts.into_values().fold(0, u64::saturating_add)
    }
}
