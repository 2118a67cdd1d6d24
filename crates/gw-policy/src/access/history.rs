//! The past (spec/20 H1, HD29): within the last 64 blocks a block is readable if the target's owner has not changed since;
//! older ones are for administrators of the organization whose contract it is. The tag or number alone does not tell; the
//! block's number and time do, and only the node knows them. No member of the present
//! owner, administrators included, reads blocks in which another organization owned the contract (HD41).

use super::{
    permit::{Permit, Plan},
    subject::StateAge,
    target::Member,
};
use crate::snapshot::{Contract, Moment, Snapshot};
use gw_evm::Call;
use gw_types::{Address, DenyReason, Timestamp};

/// The block that state is read at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadBlock {
    /// Its number.
    pub number: u64,
    /// Its time.
    pub time: Timestamp,
}

/// Whether the state the permit reads was its present owner's at the block it is read at, or nobody's and the caller
/// administers the owner.
///
/// Simulations are judged by their trace, which names every contract they read. What is out of the caller's reach is not
/// looked up: it answers the same constants at every block.
pub fn check_historical_ownership(
    snapshot: &Snapshot,
    permit: &Permit,
    block: ReadBlock,
    now: Timestamp,
) -> Result<(), DenyReason> {
    let age = permit.age_at(block.number);
    let (Some(address), Some(user)) = (state_of(permit.call()), permit.user()) else {
        return Ok(());
    };
    if age == StateAge::Present || permit.plan() != Plan::Forward {
        return Ok(());
    }
    let member = Member::beside(snapshot, user, now, permit.beside()).restricted_to(permit.named_org());
    let past = Past {
        age,
        time: block.time,
        number: block.number,
    };
    match snapshot.contract(address) {
        Some(contract) => past.of_contract(&member, contract),
        None => past.of_account(snapshot, &member, address),
    }
}

/// The age and time of a block that is read at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Past {
    pub(super) age: StateAge,
    pub(super) time: Timestamp,
    pub(super) number: u64,
}

impl Past {
    /// The head: nobody's past.
    pub(super) const PRESENT: Self = Self {
        age: StateAge::Present,
        time: Timestamp::from_secs(0),
        number: 0,
    };

    /// Whether the caller may read a contract there, by the rights in its own organization.
    pub(super) fn of_contract(self, member: &Member, contract: &Contract) -> Result<(), DenyReason> {
        let administers = || {
            member
                .rights_in(contract.org)
                .is_some_and(|rights| rights.permissions.is_org_admin)
        };
        let stood = match self.age {
            StateAge::Present => true,
            // HD41: nor for its administrators.
            _ if !contract.owned_at(Moment::Block(self.number)) => false,
            StateAge::Recent => contract.since <= self.time || administers(),
            StateAge::Old | StateAge::Tagged => administers(),
        };
        if stood {
            Ok(())
        } else {
            Err(DenyReason::HistoryNotPermitted)
        }
    }

    /// Whether the caller may read an account that is no registered contract. Nobody administers a wallet: it was its
    /// owner's before it was proved, unless somebody else had proved it.
    pub(super) fn of_account(self, snapshot: &Snapshot, member: &Member, address: Address) -> Result<(), DenyReason> {
        if self.age == StateAge::Present {
            return Ok(());
        }
        self.of_utility(member)?;
        let own = snapshot
            .links_at(address)
            .iter()
            .filter(|link| link.user == member.user);
        let since = own
            .map(|link| link.verified_at)
            .min()
            .filter(|_| snapshot.was_unlinked(address));
        if since.is_some_and(|since| since > self.time) {
            Err(DenyReason::HistoryNotPermitted)
        } else {
            Ok(())
        }
    }

    /// Whether the caller may read there at all what is everybody's.
    pub(super) fn of_utility(self, member: &Member) -> Result<(), DenyReason> {
        match self.age {
            StateAge::Present | StateAge::Recent => Ok(()),
            StateAge::Old | StateAge::Tagged if member.administers_any() => Ok(()),
            StateAge::Old | StateAge::Tagged => Err(DenyReason::HistoryNotPermitted),
        }
    }
}

/// The address whose state a call reads.
pub(super) fn state_of(call: &Call) -> Option<Address> {
    match call {
        Call::Balance(address, _) | Call::Nonce(address, _) | Call::Code(address, _) => Some(*address),
        Call::Storage { address, .. } | Call::Proof { address, .. } => Some(*address),
        Call::Plain(_)
        | Call::FeeHistory { .. }
        | Call::Sha3(_)
        | Call::Simulate(_)
        | Call::Logs(_)
        | Call::Transaction(_)
        | Call::Receipt(_)
        | Call::Block { .. }
        | Call::BlockTransactionCount(_)
        | Call::BlockReceipts(_)
        | Call::UncleCount
        | Call::Uncle
        | Call::SendRaw(_)
        | Call::Send(_)
        | Call::TraceTransaction(_)
        | Call::Live(_)
        | Call::Unexamined(_) => None,
    }
}
