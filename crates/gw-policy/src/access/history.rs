//! The past of what changed hands (spec/20 H1): within the last 64 blocks a numbered block is readable if the target's
//! owner has not changed since. The number alone does not tell; the block's time does, and only the node knows it.

use super::permit::{Permit, Plan};
use crate::snapshot::Snapshot;
use gw_evm::Call;
use gw_types::{Address, DenyReason, Timestamp};

/// Whether the state the permit reads was its present owner's at `time`, the time of the block it is read at.
///
/// Simulations are judged by their trace, which names every contract they read. What is out of the caller's reach is not
/// looked up: it answers the same constants at every block.
pub fn owner_stood(snapshot: &Snapshot, permit: &Permit, time: Timestamp) -> Result<(), DenyReason> {
    let Some(address) = state_of(permit.call()).filter(|_| permit.reads_past() && permit.plan() == Plan::Forward)
    else {
        return Ok(());
    };
    let own = || snapshot.links_at(address).iter().filter(|link| Some(link.user) == permit.user());
    let since = match snapshot.contract(address) {
        Some(contract) => Some(contract.since),
        // A wallet was its owner's before it was proved, unless somebody else had proved it.
        None if snapshot.was_unlinked(address) => own().map(|link| link.verified_at).min(),
        None => None,
    };
    if since.is_some_and(|since| since > time) { Err(DenyReason::HistoryNotPermitted) } else { Ok(()) }
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
