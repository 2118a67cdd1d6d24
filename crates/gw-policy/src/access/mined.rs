//! What a send did once it was mined, judged like what its trace said it would do, and what follows if it did more
//! (spec/02 HD2, HD28, HD38).
//!
//! A contract may behave under the trace and act otherwise in a block: by its number, by gas, by code that was not there
//! yet. Nothing can undo that; but nobody has to be shown what it brought home. The transaction is withheld, and so is all
//! that it changed: to everybody the state is what it was before. Nothing is closed, for what is closed and what is not
//! would tell what it did.

use super::{
    late_code::{MinedTransaction, NOBODY, Violation},
    run_digest::run_digest,
    target::{Member, is_public, reach},
    trace::{Run, TraceVerdict},
};
use crate::{
    knobs::Knobs,
    sealed::Sealed,
    snapshot::{AccountChange, Organization, Snapshot},
};
use gw_evm::{
    code::delegation,
    trace::{Change, Trace},
};
use gw_types::{Address, B256, Bytes, DenyReason, ExternalId, OrgId, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// A mined transaction that was sent through the gateway.
#[derive(Clone, Debug)]
pub struct MinedSend<'a> {
    /// Who sent it through the gateway. A name without a user row has no rights (HD37).
    pub external_id: &'a ExternalId,
    /// Under which organization.
    pub org: OrgId,
    /// The organizations its sender was an active member of when it was sent.
    pub orgs: &'a [OrgId],
    /// Whether the request named `org`, and so had rights in no other one (HD39).
    pub is_named: bool,
    /// Its sender.
    pub sender: Address,
    /// The beneficiary of its block.
    pub coinbase: Address,
    /// Wallets it delegates itself, and to what (W1).
    pub delegations: Vec<(Address, Address)>,
    /// Contracts of the last blocks that are not registered yet, and whose they will be: code that was not there when
    /// the transaction was judged is no theft because its registration takes a moment.
    pub lately: &'a HashMap<Address, OrgId>,
    /// The number of its block, and its place there.
    pub at: (u64, u64),
    /// Contracts that had no code yet when the transaction was judged.
    pub came: &'a HashSet<Address>,
    /// The other sends that were mined since it was judged and before it, as far as they are known.
    pub recent_sends: &'a [&'a RecentSend],
    /// What it did when it was judged; unknown of what was sent before that was kept.
    pub judged: Option<&'a JudgedRuns>,
}

/// Another send, and what it changed.
#[derive(Clone, Debug)]
pub struct RecentSend {
    /// Who sent it.
    pub external_id: ExternalId,
    /// The organizations its sender was an active member of, and the one it was sent under.
    pub orgs: Vec<OrgId>,
    /// The accounts it changed, but for its own sender and the block's beneficiary.
    pub changed: BTreeSet<Address>,
}

/// The accounts a mined run changed, but for its sender and the block's beneficiary.
#[must_use]
pub fn changed_accounts(sealed: &Sealed<Trace>, coinbase: Address) -> BTreeSet<Address> {
    let trace = sealed.peek();
    let sender = trace.frames.first().map(|top| top.from);
    judged_changes(trace, sender.unwrap_or_default(), coinbase)
        .into_keys()
        .collect()
}

/// The traces by which a send was judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedRuns {
    /// The block on whose state they ran.
    pub block: B256,
    /// Its number.
    pub number: u64,
    /// [`run_digest`] of each.
    pub digests: Vec<B256>,
    /// Whether their code could do otherwise in another block on the same state, or with gas that the node chooses.
    pub may_vary: bool,
    /// What the run on the state of that block changed, but for its sender and the block's beneficiary; none if that is too
    /// much to be kept.
    pub changes: Option<BTreeMap<Address, AccountChange>>,
}

impl JudgedRuns {
    /// For how many blocks a judgement holds: what waits longer is judged by the newest policy alone (HD13).
    const BLOCKS: u64 = 64;

    /// Most accounts and slots that are kept of one run.
    const CHANGES: usize = 256;

    /// From the verdicts on the runs of a send at `block`, whose beneficiary is `coinbase`. `may_vary` if the send leaves
    /// anything of its run to the node.
    pub fn of(block: (u64, B256), coinbase: Address, verdicts: [&TraceVerdict; 2], may_vary: bool) -> Self {
        let [now, _] = verdicts;
        let changes = now.changes(coinbase);
        let size: usize = changes
            .values()
            .map(|change| change.slots.len().saturating_add(1))
            .sum();
        Self {
            block: block.1,
            number: block.0,
            digests: verdicts.map(|verdict| verdict.digest(coinbase)).into(),
            may_vary: may_vary || verdicts.iter().any(|verdict| verdict.reads_block()),
            changes: (size <= Self::CHANGES).then_some(changes),
        }
    }

    fn is_recent(&self, sent: &MinedSend<'_>) -> bool {
        let (mined, _) = sent.at;
        mined.saturating_sub(self.number) <= Self::BLOCKS
    }

    fn covers(&self, sent: &MinedSend<'_>, trace: &Sealed<Trace>) -> bool {
        self.is_recent(sent) && self.digests.contains(&run_digest(trace, sent.coinbase))
    }

    /// Whether these changes hold all that was judged, by as much. A balance or a counter may have moved meanwhile.
    fn are_in(&self, mined: &BTreeMap<Address, AccountChange>) -> bool {
        let same = |(address, judged): (&Address, &AccountChange)| {
            mined.get(address).is_some_and(|mined| mined.is_as_much_as(judged))
        };
        self.changes.as_ref().is_some_and(|changes| changes.iter().all(same))
    }
}

/// What a run changed, but for its sender and the block's beneficiary.
pub(super) fn judged_changes(trace: &Trace, sender: Address, coinbase: Address) -> BTreeMap<Address, AccountChange> {
    let created: HashSet<Address> = trace.created().collect();
    let changes = trace.changes.iter().flatten().filter(|(_, change)| !change.is_none());
    let mut all: BTreeMap<Address, AccountChange> = changes
        .map(|(address, change)| {
            let mut kept = AccountChange::of(change, false);
            kept.created = created.contains(address);
            (*address, kept)
        })
        .filter(|(_, change)| !change.is_none())
        .collect();
    all.remove(&sender);
    all.remove(&coinbase);
    all
}

impl MinedSend<'_> {
    /// Whether it did in its block what its sender was allowed when it was judged, whatever rights have ended since: no deceit
    /// (HD38).
    pub(super) fn ran_as_judged(&self, trace: &Sealed<Trace>) -> bool {
        self.judged.is_some_and(|judged| judged.covers(self, trace))
    }

    /// Whether a send of another organization changed an account that this one met, and none of the sender's own side did. People
    /// who share an organization with the sender could act together, so their sends count as the sender's own.
    fn is_changed_by_others(&self, trace: &Trace, side: &BTreeSet<OrgId>) -> bool {
        if self
            .judged
            .is_none_or(|judged| judged.may_vary || !judged.is_recent(self))
        {
            return false;
        }
        let meets = |other: &&&RecentSend| {
            let met = |address: &Address| {
                trace.touched.contains_key(address) && ![self.sender, self.coinbase].contains(address)
            };
            other.changed.iter().any(met)
        };
        let met: Vec<&RecentSend> = self.recent_sends.iter().filter(meets).copied().collect();
        let is_own = |other: &&RecentSend| {
            other.external_id == *self.external_id || other.orgs.iter().any(|org| side.contains(org))
        };
        !met.is_empty() && !met.iter().any(is_own)
    }
}

/// What is known of a mined transaction whose trace cannot be read to its end.
#[derive(Clone, Debug, Default)]
pub struct UnreadableRun {
    /// What it changed, if the node tells at least that.
    pub changes: Option<BTreeMap<Address, Change>>,
    /// What it created, as far as the node tells.
    pub created: Vec<Address>,
    /// The emitters of its logs.
    pub emitters: Vec<Address>,
}

/// What a mined transaction did that would have been denied, and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinedFinding {
    /// Why it would have been denied.
    pub reason: DenyReason,
    /// What it changed: nobody is shown any of it.
    pub changes: Vec<(Address, AccountChange)>,
    /// Where what it changed cannot be known: addresses that are closed to the sender's side.
    pub closed_to_side: Vec<Address>,
    /// The sender's side: the organizations its sender was or is an active member of.
    pub side: Vec<OrgId>,
    /// The organizations whose administrators may clear it, all of them together; empty if only a super admin may,
    /// because somebody unknown may have been wronged.
    pub wronged: Vec<OrgId>,
    /// Whether its sender loses the right to send: not for what was not their doing, or if all it did was to rest on what an
    /// earlier finding withheld, which they could not know of.
    pub suspends: bool,
}

/// Whether the transaction did what its sender may not, or rests on what is withheld. Every frame and touch, creations and
/// upgrades, by the newest policy.
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
    let said = if sent.ran_as_judged(sealed) {
        Ok(())
    } else {
        MinedTransaction {
            snapshot,
            sent,
            member: &member,
            trace,
            knobs,
        }
        .evaluate()
    };
    let run = Run::mined(snapshot, sent, member.clone(), trace, knobs);
    let depends = run.depends_on_withheld();
    let (reason, suspends) = match said {
        // HD38: what others changed in front of it is no deceit of its sender's.
        Err(Violation { reason, of_sender }) => (
            reason,
            of_sender && !sent.is_changed_by_others(trace, &side(sent, &member)),
        ),
        Ok(()) if depends => (DenyReason::ContractNotPermitted, false),
        Ok(()) => return None,
    };
    let entered = trace.frames.iter().filter_map(|frame| frame.to);
    let touched: BTreeSet<Address> = entered.chain(trace.touched.keys().copied()).collect();
    let case = Case {
        snapshot,
        sent,
        member: &member,
        side: side(sent, &member),
        knobs,
    };
    let created: HashSet<Address> = trace.created().collect();
    // Code that nobody registered, something a wallet holds, or what was taken from whomever an earlier transaction wronged:
    // nobody can be named who may forgive it.
    let is_code = |address: Address| {
        let code = run.code(address);
        !code.is_empty() && delegation(code).is_none() && !created.contains(&address)
    };
    let unnamed = reason == DenyReason::Unregistered
        || !suspends
        || depends
        || touched
            .iter()
            .any(|address| is_code(*address) && case.is_nobodys(*address));
    let mut changes = case.changes(trace.changes.as_ref(), &created, |address| Some(run.code(address)));
    if !suspends && !depends {
        // What it did as it was judged tells nothing, and others go on from there.
        let mined = judged_changes(trace, sent.sender, sent.coinbase);
        let judged = sent
            .judged
            .filter(|judged| judged.is_recent(sent) && judged.are_in(&mined));
        let as_judged = judged.and_then(|judged| judged.changes.as_ref());
        // Its sender and the beneficiary are not among it: fees tell the gas, and payments to them would be shown.
        changes.retain(|(address, _)| as_judged.is_none_or(|judged| !judged.contains_key(address)));
    }
    Some(MinedFinding {
        changes,
        ..case.finding(reason, &touched, unnamed, suspends)
    })
}

/// The contracts whose code a mined transaction entered, and that were there before it.
#[must_use]
pub fn entered_code(sealed: &Sealed<Trace>) -> Vec<Address> {
    let trace = sealed.peek();
    let created: HashSet<Address> = trace.created().collect();
    let entered: BTreeSet<Address> = trace.frames.iter().filter_map(|frame| frame.to).collect();
    let is_code = |address: &Address| {
        let code = trace.touched.get(address).map_or(&[][..], |account| &account.code);
        !code.is_empty() && delegation(code).is_none() && !created.contains(address)
    };
    entered.into_iter().filter(is_code).collect()
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
    let case = Case {
        snapshot,
        sent,
        member: &member,
        side: side(sent, &member),
        knobs,
    };
    let created: HashSet<Address> = run.created.iter().copied().collect();
    let changes = case.changes(run.changes.as_ref(), &created, |_| None);
    let finding = case.finding(DenyReason::TraceDepthExceeded, &BTreeSet::new(), true, true);
    // What it changed is not known: its side does not look.
    let closed = run
        .emitters
        .iter()
        .copied()
        .chain([sent.sender])
        .filter(|_| run.changes.is_none());
    let closed: BTreeSet<Address> = closed.filter(|address| *address != sent.coinbase).collect();
    MinedFinding {
        changes,
        closed_to_side: closed.into_iter().collect(),
        ..finding
    }
}

/// The rights of whoever bears the name now; none for a name that has no user any more.
fn member(snapshot: &Snapshot, sent: &MinedSend<'_>, now: Timestamp) -> Member {
    let user = snapshot.user_by_external(sent.external_id);
    let member = Member::new(snapshot, user.map_or(NOBODY, |user| user.id), now);
    member.restricted_to(sent.is_named.then_some(sent.org))
}

/// The organizations that the sender was or is an active member of.
pub(super) fn side(sent: &MinedSend<'_>, member: &Member) -> BTreeSet<OrgId> {
    let orgs = sent
        .orgs
        .iter()
        .copied()
        .chain(member.rights.iter().map(|rights| rights.org));
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

impl Case<'_> {
    fn owner(&self, address: Address) -> Option<OrgId> {
        self.snapshot
            .owner(address)
            .or_else(|| self.sent.lately.get(&address).copied())
    }

    /// Whether no organization owns the address, nor everybody.
    fn is_nobodys(&self, address: Address) -> bool {
        !is_public(address)
            && ![self.sent.sender, self.sent.coinbase].contains(&address)
            && self.snapshot.shared(address).is_none()
            && self.owner(address).is_none()
    }

    /// What is withheld of the changes. Nonces that somebody needs to go on sending are not: the sender's, and those of
    /// wallets. `code` is what an account had before, where that is known.
    fn changes<'c>(
        &self,
        changes: Option<&BTreeMap<Address, Change>>,
        created: &HashSet<Address>,
        code: impl Fn(Address) -> Option<&'c [u8]>,
    ) -> Vec<(Address, AccountChange)> {
        let mut withheld: BTreeMap<Address, AccountChange> = BTreeMap::new();
        for (address, change) in changes.into_iter().flatten().filter(|(_, change)| !change.is_none()) {
            let before = code(*address);
            let is_wallet = match before {
                Some(code) => code.is_empty() || delegation(code).is_some(),
                // A contract has used one since it was created, and writes.
                None => change.storage.is_empty() && change.before.nonce == 0,
            };
            let sends = *address == self.sent.sender || (is_wallet && !created.contains(address));
            let mut kept = AccountChange::of(change, sends);
            if change.removed {
                kept.code = before.map(Bytes::copy_from_slice);
            }
            withheld.insert(*address, kept);
        }
        for address in created {
            let change = withheld.entry(*address).or_default();
            (change.created, change.code) = (true, Some(Bytes::new()));
        }
        withheld.retain(|_, change| !change.is_none());
        withheld.into_iter().collect()
    }

    fn finding(&self, reason: DenyReason, touched: &BTreeSet<Address>, unnamed: bool, suspends: bool) -> MinedFinding {
        let shared = |address: &Address| self.snapshot.shared(*address).is_some();
        let owned = || {
            touched
                .iter()
                .filter(|address| !shared(address))
                .filter_map(|a| Some((*a, self.owner(*a)?)))
        };
        let foreign = owned().map(|(_, org)| org).filter(|org| !self.side.contains(org));
        // Of the sender's own organizations those are wronged whose contracts were out of reach.
        let out_of_reach = |address: Address| {
            self.snapshot
                .contract(address)
                .is_some_and(|contract| reach(self.snapshot, self.member, contract, self.knobs).is_none())
        };
        let own = owned()
            .filter(|(address, org)| self.side.contains(org) && out_of_reach(*address))
            .map(|(_, org)| org);
        let mut wronged: BTreeSet<OrgId> = foreign.chain(own).collect();
        if unnamed {
            wronged.clear();
        } else if wronged.is_empty() {
            // A function, an upgrade, a creation that was not granted there: by any of those whose contracts it met.
            wronged.extend(owned().map(|(_, org)| org).chain([self.sent.org]));
        }
        MinedFinding {
            reason,
            changes: Vec::new(),
            closed_to_side: Vec::new(),
            side: self.side.iter().copied().collect(),
            wronged: wronged.into_iter().collect(),
            suspends,
        }
    }
}
