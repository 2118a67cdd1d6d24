//! What a send did once it was mined, judged like what its trace said it would do (spec/02 HD2).
//!
//! A contract may behave under the trace and act otherwise in a block: by its number, by gas, by code that was not there
//! yet. Nothing can undo that; but nobody has to be shown what it brought home.

use super::{target::is_public, trace::Run};
use crate::{knobs::Knobs, sealed::Sealed, snapshot::Snapshot};
use gw_evm::trace::Trace;
use gw_types::{Address, DenyReason, OrgId, Timestamp, UserId};
use std::collections::{BTreeSet, HashMap};

/// A mined transaction that was sent through the gateway.
#[derive(Clone, Debug)]
pub struct MinedSend<'a> {
    /// Who sent it through the gateway.
    pub user: UserId,
    /// Under which organization.
    pub org: OrgId,
    /// Its sender.
    pub sender: Address,
    /// The beneficiary of its block.
    pub coinbase: Address,
    /// Wallets it delegates itself, and to what (W1).
    pub delegations: Vec<(Address, Address)>,
    /// Contracts of the last blocks that are not registered yet, and whose they will be: code that was not there when
    /// the transaction was judged is no theft because its registration takes a moment.
    pub lately: &'a HashMap<Address, OrgId>,
}

/// What a mined transaction did that would have been denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinedFinding {
    /// Why it would have been.
    pub reason: DenyReason,
    /// Where the loot may be: addresses whose state it changed, which it made, or which spoke in it.
    pub tainted: Vec<Address>,
}

/// Whether the transaction did what its sender may not. Every frame and touch, creations and upgrades, by the newest
/// policy.
#[must_use]
pub fn judge_mined(
    snapshot: &Snapshot,
    sent: &MinedSend<'_>,
    sealed: &Sealed<Trace>,
    now: Timestamp,
    knobs: &Knobs,
) -> Option<MinedFinding> {
    let trace = sealed.peek();
    let run = Run::mined(snapshot, sent, trace, now, knobs);
    let judged = match (run.judge(), &trace.changes) {
        (Err(reason), _) => Err(reason),
        (Ok(()), Some(changes)) => run.upgrades(changes),
        (Ok(()), None) => Err(DenyReason::TracingUnavailable),
    };
    let reason = judged.err()?;
    let changes = trace.changes.iter().flatten().filter(|(_, change)| !change.storage.is_empty());
    let spoke = trace.frames.iter().flat_map(|frame| &frame.logs).map(|log| log.address);
    let tainted: BTreeSet<Address> = changes.map(|(address, _)| *address).chain(spoke).chain(trace.created()).collect();
    // What was taken from one organization and lies in a contract of the same has gone nowhere: whoever wants to shut
    // somebody else's contract only has to be found out touching it, and must not succeed.
    let wronged = run.wronged().filter(|owners| owners.len() == 1);
    let stays_home = |address: &Address| {
        let owner = snapshot.contract(*address).map(|contract| contract.org);
        owner.is_some_and(|owner| wronged.as_ref().is_some_and(|owners| owners.contains(&owner)))
    };
    // Nor does anybody shut a utility of everybody.
    let open = |address: &Address| is_public(*address) || snapshot.is_tagged_shared(*address) || stays_home(address);
    let tainted = tainted.into_iter().filter(|address| !open(address)).collect();
    Some(MinedFinding { reason, tainted })
}

/// The same for an execution that cannot be read to its end (X11): nothing speaks for it.
#[must_use]
pub fn unreadable_mined(changed: impl IntoIterator<Item = Address>) -> MinedFinding {
    let tainted = changed.into_iter().filter(|address| !is_public(*address)).collect();
    MinedFinding { reason: DenyReason::TraceDepthExceeded, tainted }
}
