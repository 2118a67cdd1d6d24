//! Access to historical state (spec/20 H1, HD29).
//!
//! One of the last 64 blocks is readable if the target's owner has not changed since; older blocks are readable for
//! administrators of the organization that owns the contract. The check needs the number and time of the block, which
//! only the node knows, so it runs after the block is resolved. No member of the current owner, administrators
//! included, reads blocks in which another organization owned the contract (HD41).

use super::{
    permit::{Permit, Plan},
    resource::StateAge,
};
use crate::{
    principal::Principal,
    snapshot::{Contract, Moment, Snapshot},
};
use gw_evm::Call;
use gw_types::{Address, DenyReason, Timestamp};

/// The block that state is read at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadBlock {
    /// Number of the block.
    pub number: u64,
    /// Timestamp of the block.
    pub time: Timestamp,
}

/// Checks that the current owner of the state that the permit reads owned it at the block it is read at, or that no
/// other organization did and the caller administers the owner.
///
/// Simulations are not checked here: the evaluation of their trace checks every contract that they read. Addresses that
/// the caller has no access to are not looked up: their constant results are equal at every block.
///
/// # Errors
/// `HistoryNotPermitted` if the caller may not read the state at this block.
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
    let principal =
        Principal::impersonated(snapshot, user, now, permit.impersonation()).restricted_to(permit.named_org());
    let past = PastOwner {
        age,
        time: block.time,
        number: block.number,
    };
    match snapshot.contract(address) {
        Some(contract) => past.of_contract(&principal, contract),
        None => past.of_account(snapshot, &principal, address),
    }
}

/// The age and time of a block that is read at.
#[derive(Clone, Copy, Debug)]
pub(super) struct PastOwner {
    pub(super) age: StateAge,
    pub(super) time: Timestamp,
    pub(super) number: u64,
}

impl PastOwner {
    /// The head, which needs no historical rights.
    pub(super) const PRESENT: Self = Self {
        age: StateAge::Present,
        time: Timestamp::from_secs(0),
        number: 0,
    };

    /// Checks that the caller may read a contract at this block, by the rights in the contract's organization.
    pub(super) fn of_contract(self, principal: &Principal, contract: &Contract) -> Result<(), DenyReason> {
        let administers = || {
            principal
                .rights_in(contract.org)
                .is_some_and(|rights| rights.permissions.is_org_admin)
        };
        let is_readable = match self.age {
            StateAge::Present => true,
            // HD41: administrators are no exception.
            _ if !contract.owned_at(Moment::Block(self.number)) => false,
            StateAge::Recent => contract.since <= self.time || administers(),
            StateAge::Old | StateAge::Tagged => administers(),
        };
        if is_readable {
            Ok(())
        } else {
            Err(DenyReason::HistoryNotPermitted)
        }
    }

    /// Checks that the caller may read an account that is not a registered contract at this block. No organization
    /// administers a wallet. It belonged to its owner even before the owner linked it, unless another user's link to it
    /// ended earlier.
    pub(super) fn of_account(
        self,
        snapshot: &Snapshot,
        principal: &Principal,
        address: Address,
    ) -> Result<(), DenyReason> {
        if self.age == StateAge::Present {
            return Ok(());
        }
        self.of_utility(principal)?;
        let own_links = snapshot
            .links_at(address)
            .iter()
            .filter(|link| link.user == principal.user);
        let since = own_links
            .map(|link| link.verified_at)
            .min()
            .filter(|_| snapshot.was_unlinked(address));
        if since.is_some_and(|since| since > self.time) {
            Err(DenyReason::HistoryNotPermitted)
        } else {
            Ok(())
        }
    }

    /// Checks that the caller may read state that belongs to no organization, such as public addresses, at this block.
    pub(super) fn of_utility(self, principal: &Principal) -> Result<(), DenyReason> {
        match self.age {
            StateAge::Present | StateAge::Recent => Ok(()),
            StateAge::Old | StateAge::Tagged if principal.administers_any() => Ok(()),
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
        | Call::Subscription(_)
        | Call::Passthrough(_) => None,
    }
}
