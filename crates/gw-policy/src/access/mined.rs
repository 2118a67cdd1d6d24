//! What a send did once it was mined, judged like what its trace said it would do, and what follows if it did more
//! (spec/02 HD2, HD28, HD38).
//!
//! A contract may behave under the trace and act otherwise in a block: by its number, by gas, by code that was not there
//! yet. Nothing can undo that; but nobody has to be shown what it brought home. The transaction is withheld, and every
//! address that it paid, wrote, created or had emit an event is closed, on the sender's side only: a contract that another
//! organization registered is never closed by what somebody else sent.

use super::{
    target::{Member, is_public, reach},
    trace::{Closed, Run},
};
use crate::{
    knobs::Knobs,
    sealed::Sealed,
    snapshot::{Organization, Snapshot},
};
use gw_evm::{
    code::delegation,
    trace::{Change, Trace},
};
use gw_types::{Address, DenyReason, ExternalId, OrgId, Timestamp, UserId};
use std::collections::{BTreeSet, HashMap, HashSet};

/// A mined transaction that was sent through the gateway.
#[derive(Clone, Debug)]
pub struct MinedSend<'a> {
    /// Who sent it through the gateway. A name without a user row has no rights (HD37).
    pub external_id: &'a ExternalId,
    /// Under which organization.
    pub org: OrgId,
    /// The organizations its sender was an active member of when it was sent.
    pub orgs: &'a [OrgId],
    /// Its sender.
    pub sender: Address,
    /// The beneficiary of its block.
    pub coinbase: Address,
    /// Wallets it delegates itself, and to what (W1).
    pub delegations: Vec<(Address, Address)>,
    /// Contracts of the last blocks that are not registered yet, and whose they will be: code that was not there when
    /// the transaction was judged is no theft because its registration takes a moment.
    pub lately: &'a HashMap<Address, OrgId>,
    /// What earlier transactions of the same blocks were found to have tainted ([`MinedFinding::closed`]) that the
    /// snapshot does not hold yet.
    pub tainted: &'a HashSet<Address>,
}

/// What is known of a mined transaction whose trace cannot be read to its end.
#[derive(Clone, Debug, Default)]
pub struct UnreadableRun {
    /// Accounts that it changed, created or paid, and the emitters of its logs, as far as the node tells.
    pub written: Vec<Address>,
    /// Accounts that it entered or looked at, as far as the node tells.
    pub touched: Vec<Address>,
}

/// What a mined transaction did that would have been denied, and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinedFinding {
    /// Why it would have been denied.
    pub reason: DenyReason,
    /// Addresses that are closed to everybody.
    pub closed: Vec<Address>,
    /// Addresses that everybody uses, closed to the sender's side.
    pub closed_to_side: Vec<Address>,
    /// The sender's side: the organizations its sender was or is an active member of.
    pub side: Vec<OrgId>,
    /// The other organizations whose contracts it entered or touched: they alone see the transaction.
    pub touched: Vec<OrgId>,
    /// The organizations whose administrators may clear it, all of them together; empty if only a super admin may,
    /// because somebody unknown may have been wronged.
    pub wronged: Vec<OrgId>,
    /// Whether its sender loses the right to send: not if all it did wrong was to touch what an earlier finding closed,
    /// which it could not know of.
    pub suspends: bool,
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
    let member = member(snapshot, sent, now);
    let judge = |closed| {
        let run = Run::mined(snapshot, sent, member.clone(), trace, closed, knobs);
        run.judge()?;
        run.upgrades(trace.changes.as_ref().ok_or(DenyReason::TracingUnavailable)?)
    };
    let reason = judge(Closed::And(sent.tainted)).err()?;
    let suspends = judge(Closed::Nothing).is_err();
    let changed = trace.changes.iter().flatten().filter(|(_, change)| **change != Change::default());
    let spoke = trace.frames.iter().flat_map(|frame| &frame.logs).map(|log| log.address);
    let written = changed.map(|(address, _)| *address).chain(spoke).chain(trace.created());
    let entered = trace.frames.iter().filter_map(|frame| frame.to);
    let touched: BTreeSet<Address> = entered.chain(trace.touched.keys().copied()).collect();
    let case = Case { snapshot, sent, member: &member, side: side(sent, &member), knobs };
    let created: HashSet<Address> = trace.frames.iter().filter(|f| f.is_creation()).filter_map(|f| f.to).collect();
    // Code that nobody registered, or something a wallet holds: nobody can be named who may forgive it.
    let is_code = |address: Address| {
        let code = trace.touched.get(&address).map_or(&[][..], |account| &account.code);
        !code.is_empty() && delegation(code).is_none() && !created.contains(&address)
    };
    let unnamed = reason == DenyReason::Unregistered
        || !suspends
        || touched.iter().any(|address| is_code(*address) && case.is_nobodys(*address));
    Some(case.finding(reason, written.collect(), &touched, unnamed, suspends))
}

/// The same for an execution that cannot be read to its end (X11): nothing speaks for it.
#[must_use]
pub fn unreadable_mined(
    snapshot: &Snapshot,
    sent: &MinedSend<'_>,
    run: &UnreadableRun,
    now: Timestamp,
    knobs: &Knobs,
) -> MinedFinding {
    let member = member(snapshot, sent, now);
    let case = Case { snapshot, sent, member: &member, side: side(sent, &member), knobs };
    let written: BTreeSet<Address> = run.written.iter().copied().chain([sent.sender]).collect();
    let touched: BTreeSet<Address> = run.touched.iter().chain(&written).copied().collect();
    case.finding(DenyReason::TraceDepthExceeded, written, &touched, true, true)
}

/// The rights of whoever bears the name now; none for a name that has no user any more.
fn member(snapshot: &Snapshot, sent: &MinedSend<'_>, now: Timestamp) -> Member {
    /// No row has it.
    const NOBODY: UserId = UserId::fixed(0);
    let user = snapshot.user_by_external(sent.external_id);
    Member::new(snapshot, user.map_or(NOBODY, |user| user.id), now)
}

fn side(sent: &MinedSend<'_>, member: &Member) -> BTreeSet<OrgId> {
    let orgs = sent.orgs.iter().copied().chain(member.rights.iter().map(|rights| rights.org));
    // Everybody may be in those: they are nobody's side, unless it was sent under one.
    let system = [Organization::DEFAULT, Organization::ANONYMOUS];
    orgs.filter(|org| !system.contains(org)).chain([sent.org]).collect()
}

/// One transaction that was found to have done more than it may.
struct Case<'a> {
    snapshot: &'a Snapshot,
    sent: &'a MinedSend<'a>,
    member: &'a Member,
    side: BTreeSet<OrgId>,
    knobs: &'a Knobs,
}

/// To whom an address is closed.
enum Taint {
    Everybody,
    SenderSide,
    Nobody,
}

impl Case<'_> {
    fn owner(&self, address: Address) -> Option<OrgId> {
        self.snapshot.owner(address).or_else(|| self.sent.lately.get(&address).copied())
    }

    /// Whether no organization owns the address, nor everybody.
    fn is_nobodys(&self, address: Address) -> bool {
        !is_public(address)
            && ![self.sent.sender, self.sent.coinbase].contains(&address)
            && self.snapshot.shared(address).is_none()
            && self.owner(address).is_none()
    }

    fn taint(&self, address: Address) -> Taint {
        let everybodys = is_public(address) || self.snapshot.is_tagged_shared(address);
        match self.owner(address) {
            // Every transaction pays it.
            _ if address == self.sent.coinbase && address != self.sent.sender => Taint::Nobody,
            _ if everybodys => Taint::SenderSide,
            Some(owner) if self.side.contains(&owner) => Taint::Everybody,
            // HD38: nobody closes what is another organization's.
            Some(_) => Taint::Nobody,
            None => Taint::Everybody,
        }
    }

    fn finding(
        &self,
        reason: DenyReason,
        written: BTreeSet<Address>,
        touched: &BTreeSet<Address>,
        unnamed: bool,
        suspends: bool,
    ) -> MinedFinding {
        let (mut closed, mut closed_to_side) = (Vec::new(), Vec::new());
        for address in written {
            match self.taint(address) {
                Taint::Everybody => closed.push(address),
                Taint::SenderSide => closed_to_side.push(address),
                Taint::Nobody => {}
            }
        }
        let shared = |address: &Address| self.snapshot.shared(*address).is_some();
        let owned = || touched.iter().filter(|address| !shared(address)).filter_map(|a| Some((*a, self.owner(*a)?)));
        let foreign: BTreeSet<OrgId> = owned().map(|(_, org)| org).filter(|org| !self.side.contains(org)).collect();
        // Of the sender's own organizations those are wronged whose contracts were out of reach.
        let out_of_reach = |address: Address| {
            self.snapshot
                .contract(address)
                .is_some_and(|contract| reach(self.snapshot, self.member, contract, self.knobs).is_none())
        };
        let own =
            owned().filter(|(address, org)| self.side.contains(org) && out_of_reach(*address)).map(|(_, org)| org);
        let mut wronged: BTreeSet<OrgId> = foreign.iter().copied().chain(own).collect();
        if unnamed {
            wronged.clear();
        } else if wronged.is_empty() {
            // A function, an upgrade, a creation that was not granted there.
            wronged.insert(self.sent.org);
        }
        MinedFinding {
            reason,
            closed,
            closed_to_side,
            side: self.side.iter().copied().collect(),
            touched: foreign.into_iter().collect(),
            wronged: wronged.into_iter().collect(),
            suspends,
        }
    }
}
