//! Admitted(tx) of spec/30 section 5: one function for every method.

use super::Person;
use crate::snapshot::Moment;
use gw_types::{Address, B256};

/// By what right a viewer sees a transaction as such; the strongest wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Admission {
    /// By none: the transaction does not exist for this viewer. Single logs of it still may.
    None,
    /// Administrator of the contract it was sent to: masked (K7).
    OrgAdmin,
    /// Listed in `visibleTo`: both sides Full.
    Shared,
    /// Owner of its sender or receiver: everything.
    Participant,
}

impl Person<'_> {
    /// By what right they see the transaction, which was carried out at this moment.
    pub(crate) fn admission(&self, tx_hash: B256, from: Address, to: Option<Address>, moment: Moment) -> Admission {
        if self.withholds(tx_hash) {
            Admission::None
        } else if self.is_participant(from, to) {
            Admission::Participant
        } else if self.own_only {
            Admission::None
        } else if self.is_recipient(tx_hash) {
            Admission::Shared
        } else if to.is_some_and(|to| self.administers_contract(to, moment)) {
            Admission::OrgAdmin
        } else {
            Admission::None
        }
    }

    /// Whether they own the transaction's sender or receiver (HD10). A contract is nobody's wallet: an address
    /// that got linked before it was registered, or by the word of its own code, makes its owner no receiver.
    pub(crate) fn is_participant(&self, from: Address, to: Option<Address>) -> bool {
        self.owns(from) || to.is_some_and(|to| self.receives_at(to))
    }

    fn receives_at(&self, to: Address) -> bool {
        let of_code = |user| {
            self.snapshot
                .links_at(to)
                .iter()
                .any(|link| link.user == user && link.contract_wallet)
        };
        self.snapshot.owner(to).is_none() && self.owns(to) && !self.user.is_some_and(|user| of_code(user.id))
    }

    /// Whether the transaction was shared with them and the node accepted it (R27, W5).
    pub(crate) fn is_recipient(&self, tx_hash: B256) -> bool {
        !self.withholds(tx_hash)
            && self.user.is_some_and(|user| {
                let rows = self.snapshot.visibility(tx_hash);
                rows.iter()
                    .any(|row| row.active && row.recipients.contains(&user.external_id))
            })
    }

    /// HD41: a contract's transactions are for the administrators of whoever owned it then.
    fn administers_contract(&self, address: Address, moment: Moment) -> bool {
        self.snapshot
            .contract_at(address, moment)
            .is_some_and(|contract| self.administers(contract.org))
    }
}
