//! Evaluates a mined send like the trace that authorized it, and determines the consequences of a violation (spec/02
//! HD2, HD28, HD38).
//!
//! A contract may do one thing in the trace and another in a block: depending on the block number, on gas, or on code
//! that was deployed in between. The gateway cannot undo the transaction, but it withholds it and all its changes: all
//! users are shown the state from before it. No address is closed, because the set of closed addresses would reveal
//! what the transaction did.

use super::{
    late_code::{MinedTransaction, NOBODY, Violation},
    run_digest::run_digest,
    trace::{TraceEvaluator, TraceVerdict},
};
use crate::{
    principal::{Principal, contract_access, is_public},
    sealed::Sealed,
    settings::PolicySettings,
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
    /// The person who sent it through the gateway. An external id without a user row has no rights (HD37).
    pub external_id: &'a ExternalId,
    /// The organization that it was sent under.
    pub org: OrgId,
    /// The organizations that the person was an active member of when it was sent.
    pub orgs: &'a [OrgId],
    /// Whether the request named `org`, so that it had rights in no other organization (HD39).
    pub is_named: bool,
    /// Its sender address.
    pub sender: Address,
    /// The beneficiary of its block.
    pub coinbase: Address,
    /// Wallets that the transaction itself delegates, each with its delegate (W1).
    pub delegations: Vec<(Address, Address)>,
    /// Contracts of the last blocks that are not registered yet, each with the organization that will own it. Entering
    /// them is no violation only because their registration takes a moment.
    pub lately: &'a HashMap<Address, OrgId>,
    /// The number of its block, and its index in the block.
    pub at: (u64, u64),
    /// Contracts that had no code yet when the transaction was authorized.
    pub came: &'a HashSet<Address>,
    /// The other known sends that were mined after it was authorized and before it.
    pub recent_sends: &'a [&'a RecentSend],
    /// The traces that authorized it; `None` for a send from before they were stored.
    pub authorized_runs: Option<&'a AuthorizedRuns>,
}

/// Another mined send, with the accounts that it changed.
#[derive(Clone, Debug)]
pub struct RecentSend {
    /// The person who sent it.
    pub external_id: ExternalId,
    /// The organizations that the person was an active member of, and the one that it was sent under.
    pub orgs: Vec<OrgId>,
    /// The accounts that it changed, except its own sender and the block's beneficiary.
    pub changed: BTreeSet<Address>,
}

/// The accounts that a mined execution changed, except its sender and the block's beneficiary.
#[must_use]
pub fn changed_accounts(sealed: &Sealed<Trace>, coinbase: Address) -> BTreeSet<Address> {
    let trace = sealed.peek();
    let sender = trace.frames.first().map(|top| top.from);
    account_changes(trace, sender.unwrap_or_default(), coinbase)
        .into_keys()
        .collect()
}

/// The traces that authorized a send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizedRuns {
    /// Hash of the block on whose state they ran.
    pub block: B256,
    /// Number of that block.
    pub number: u64,
    /// [`run_digest`] of each trace.
    pub digests: Vec<B256>,
    /// Whether the executed code may behave differently in another block on the same state, or with gas that the node
    /// chooses.
    pub may_vary: bool,
    /// The changes of the execution on the state of that block, except those of its sender and the block's beneficiary;
    /// `None` if they exceed the number that is stored.
    pub changes: Option<BTreeMap<Address, AccountChange>>,
}

impl AuthorizedRuns {
    /// Number of blocks for which the authorizing traces count. A send that is mined later is evaluated by the newest
    /// policy alone (HD13).
    const BLOCKS: u64 = 64;

    /// Maximum number of accounts and slots stored of one execution.
    const CHANGES: usize = 256;

    /// The record of a send from the verdicts on its traces at `block` (number and hash), whose beneficiary is
    /// `coinbase`. `may_vary` is whether the send leaves any part of its execution, such as gas, to the node.
    pub fn new(block: (u64, B256), coinbase: Address, verdicts: [&TraceVerdict; 2], may_vary: bool) -> Self {
        let [latest, _] = verdicts;
        let changes = latest.changes(coinbase);
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

    fn is_recent(&self, send: &MinedSend<'_>) -> bool {
        let (mined, _) = send.at;
        mined.saturating_sub(self.number) <= Self::BLOCKS
    }

    fn covers(&self, send: &MinedSend<'_>, trace: &Sealed<Trace>) -> bool {
        self.is_recent(send) && self.digests.contains(&run_digest(trace, send.coinbase))
    }

    /// Whether the mined changes contain every authorized change with equal amounts. Absolute values may differ, since
    /// a balance or a counter may have moved in between.
    fn are_in(&self, mined: &BTreeMap<Address, AccountChange>) -> bool {
        let is_in_mined = |(address, authorized): (&Address, &AccountChange)| {
            mined.get(address).is_some_and(|mined| mined.is_as_much_as(authorized))
        };
        self.changes
            .as_ref()
            .is_some_and(|changes| changes.iter().all(is_in_mined))
    }
}

/// The changes of an execution, except those of its sender and the block's beneficiary.
pub(super) fn account_changes(trace: &Trace, sender: Address, coinbase: Address) -> BTreeMap<Address, AccountChange> {
    let created: HashSet<Address> = trace.created().collect();
    let changes = trace.changes.iter().flatten().filter(|(_, change)| !change.is_none());
    let mut account_changes: BTreeMap<Address, AccountChange> = changes
        .map(|(address, change)| {
            let mut account_change = AccountChange::from_change(change, false);
            account_change.created = created.contains(address);
            (*address, account_change)
        })
        .filter(|(_, change)| !change.is_none())
        .collect();
    account_changes.remove(&sender);
    account_changes.remove(&coinbase);
    account_changes
}

impl MinedSend<'_> {
    /// Whether the mined execution equals an authorized trace. Then it is no violation, even if the sender's rights
    /// have ended since (HD38).
    pub(super) fn ran_as_authorized(&self, trace: &Sealed<Trace>) -> bool {
        self.authorized_runs
            .is_some_and(|authorized| authorized.covers(self, trace))
    }

    /// Whether a send of another organization changed an account that this one touched, and no send of the sender's own
    /// side did. People who share an organization with the sender could act together with the sender, so their sends
    /// count as the sender's own.
    fn is_changed_by_others(&self, trace: &Trace, side: &BTreeSet<OrgId>) -> bool {
        if self
            .authorized_runs
            .is_none_or(|authorized| authorized.may_vary || !authorized.is_recent(self))
        {
            return false;
        }
        let is_related = |recent: &&&RecentSend| {
            let is_touched = |address: &Address| {
                trace.touched.contains_key(address) && ![self.sender, self.coinbase].contains(address)
            };
            recent.changed.iter().any(is_touched)
        };
        let related: Vec<&RecentSend> = self.recent_sends.iter().filter(is_related).copied().collect();
        let is_own = |recent: &&RecentSend| {
            recent.external_id == *self.external_id || recent.orgs.iter().any(|org| side.contains(org))
        };
        !related.is_empty() && !related.iter().any(is_own)
    }
}

/// What is known of a mined transaction whose trace could not be parsed completely.
#[derive(Clone, Debug, Default)]
pub struct UnreadableRun {
    /// Its state changes, if the node reports at least those.
    pub changes: Option<BTreeMap<Address, Change>>,
    /// The contracts it created, as far as the node reports them.
    pub created: Vec<Address>,
    /// The emitters of its logs.
    pub emitters: Vec<Address>,
    /// Whether the node has no state before its block: a fault of the node, which suspends nobody.
    pub is_state_missing: bool,
}

/// A violation by a mined transaction: it did something that would have been denied. With its consequences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostExecutionViolation {
    /// The reason for which the execution would have been denied.
    pub reason: DenyReason,
    /// The changes of the transaction, which are withheld from all users.
    pub changes: Vec<(Address, AccountChange)>,
    /// Addresses that are closed to the sender's side, if the changes of the transaction are unknown.
    pub closed_to_side: Vec<Address>,
    /// The sender's side: the organizations that the sender was or is an active member of.
    pub side: Vec<OrgId>,
    /// The organizations whose administrators may clear the violation, all of them together. Empty if only a super
    /// admin may clear it, because an unknown party may be affected.
    pub affected_orgs: Vec<OrgId>,
    /// Whether the sender's right to send is suspended. It is not if the violation is not attributed to the sender, or
    /// if the transaction only depends on withheld changes, of which the sender could not know.
    pub suspends: bool,
}

/// The violation of a mined transaction, if it did something its sender may not do, or depends on withheld changes.
/// Every frame, touch, creation and upgrade is evaluated by the newest policy.
#[must_use]
pub fn evaluate_mined(
    snapshot: &Snapshot,
    send: &MinedSend<'_>,
    sealed: &Sealed<Trace>,
    now: Timestamp,
    policy_settings: &PolicySettings,
) -> Option<PostExecutionViolation> {
    let trace = sealed.peek();
    let principal = sender_principal(snapshot, send, now);
    let result = if send.ran_as_authorized(sealed) {
        Ok(())
    } else {
        MinedTransaction {
            snapshot,
            send,
            principal: &principal,
            trace,
            policy_settings,
        }
        .evaluate()
    };
    let run = TraceEvaluator::for_mined(snapshot, send, principal.clone(), trace, policy_settings);
    let depends = run.depends_on_withheld();
    let (reason, suspends) = match result {
        // HD38: a changed outcome that sends of others caused is not attributed to the sender.
        Err(Violation { reason, by_sender }) => (
            reason,
            by_sender && !send.is_changed_by_others(trace, &side(send, &principal)),
        ),
        Ok(()) if depends => (DenyReason::ContractNotPermitted, false),
        Ok(()) => return None,
    };
    let entered = trace.frames.iter().filter_map(|frame| frame.to);
    let touched: BTreeSet<Address> = entered.chain(trace.touched.keys().copied()).collect();
    let mined_case = MinedCase {
        snapshot,
        send,
        principal: &principal,
        side: side(send, &principal),
        policy_settings,
    };
    let created: HashSet<Address> = trace.created().collect();
    // Unregistered code, assets of a wallet, or changes that an earlier violation withheld: the affected party is
    // unknown, so no organization may clear the violation.
    let is_code = |address: Address| {
        let code = run.code(address);
        !code.is_empty() && delegation(code).is_none() && !created.contains(&address)
    };
    let needs_super_admin = reason == DenyReason::Unregistered
        || !suspends
        || depends
        || touched
            .iter()
            .any(|address| is_code(*address) && mined_case.has_no_owner(*address));
    let mut changes = mined_case.changes(trace.changes.as_ref(), &created, |address| Some(run.code(address)));
    if !suspends && !depends {
        // Changes as authorized reveal nothing, and later transactions build on them, so they are not withheld.
        let mined = account_changes(trace, send.sender, send.coinbase);
        let authorized = send
            .authorized_runs
            .filter(|authorized| authorized.is_recent(send) && authorized.are_in(&mined));
        let authorized_changes = authorized.and_then(|authorized| authorized.changes.as_ref());
        // `authorized_changes` excludes the sender and the beneficiary, whose changes stay withheld: fees reveal the
        // gas used, and payments to them would be shown.
        changes.retain(|(address, _)| authorized_changes.is_none_or(|authorized| !authorized.contains_key(address)));
    }
    Some(PostExecutionViolation {
        changes,
        ..mined_case.violation(reason, &touched, needs_super_admin, suspends)
    })
}

/// The contracts that a mined transaction entered and that had existed before it.
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

/// The violation of a mined transaction whose trace could not be parsed completely (X11). If the node lacks the state
/// before its block, the transaction is withheld without a suspension (HD36).
#[must_use]
pub fn unreadable_mined(
    snapshot: &Snapshot,
    send: &MinedSend<'_>,
    run: &UnreadableRun,
    now: Timestamp,
    policy_settings: &PolicySettings,
) -> PostExecutionViolation {
    let principal = sender_principal(snapshot, send, now);
    let mined_case = MinedCase {
        snapshot,
        send,
        principal: &principal,
        side: side(send, &principal),
        policy_settings,
    };
    let created: HashSet<Address> = run.created.iter().copied().collect();
    let changes = mined_case.changes(run.changes.as_ref(), &created, |_| None);
    let reason = if run.is_state_missing {
        DenyReason::StateUnavailable
    } else {
        DenyReason::TraceDepthExceeded
    };
    let violation = mined_case.violation(reason, &BTreeSet::new(), true, true);
    // If its changes are unknown, these addresses are closed to the sender's side.
    let closed = run
        .emitters
        .iter()
        .copied()
        .chain([send.sender])
        .filter(|_| run.changes.is_none());
    let closed: BTreeSet<Address> = closed.filter(|address| *address != send.coinbase).collect();
    PostExecutionViolation {
        changes,
        closed_to_side: closed.into_iter().collect(),
        suspends: violation.suspends && !run.is_state_missing,
        ..violation
    }
}

/// The sender's current rights; none if no user has the external id any more.
fn sender_principal(snapshot: &Snapshot, send: &MinedSend<'_>, now: Timestamp) -> Principal {
    let user = snapshot.user_by_external(send.external_id);
    let principal = Principal::new(snapshot, user.map_or(NOBODY, |user| user.id), now);
    principal.restricted_to(send.is_named.then_some(send.org))
}

/// The sender's side: the organizations that the sender was or is an active member of.
pub(super) fn side(send: &MinedSend<'_>, principal: &Principal) -> BTreeSet<OrgId> {
    let orgs = send
        .orgs
        .iter()
        .copied()
        .chain(principal.rights.iter().map(|rights| rights.org));
    // Every user may be in a system organization, so it is not a side unless the transaction was sent under it.
    let system = [Organization::DEFAULT, Organization::ANONYMOUS];
    orgs.filter(|org| !system.contains(org)).chain([send.org]).collect()
}

/// A mined transaction with a violation, to determine its consequences.
struct MinedCase<'a> {
    snapshot: &'a Snapshot,
    send: &'a MinedSend<'a>,
    principal: &'a Principal,
    side: BTreeSet<OrgId>,
    policy_settings: &'a PolicySettings,
}

impl MinedCase<'_> {
    fn owner(&self, address: Address) -> Option<OrgId> {
        self.snapshot
            .owner(address)
            .or_else(|| self.send.lately.get(&address).copied())
    }

    /// Whether no organization owns the address, and it is neither public nor shared nor the sender or beneficiary.
    fn has_no_owner(&self, address: Address) -> bool {
        !is_public(address)
            && ![self.send.sender, self.send.coinbase].contains(&address)
            && self.snapshot.shared(address).is_none()
            && self.owner(address).is_none()
    }

    /// The changes to withhold. The nonces of the sender and of wallets are not withheld, since their owners need them
    /// to keep sending. `code` returns the code of an account before the transaction, where it is known.
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
                // A contract has a nonce of at least 1 since its creation (EIP-161), and may write storage.
                None => change.storage.is_empty() && change.before.nonce == 0,
            };
            let keeps_nonce = *address == self.send.sender || (is_wallet && !created.contains(address));
            let mut account_change = AccountChange::from_change(change, keeps_nonce);
            if change.removed {
                account_change.code = before.map(Bytes::copy_from_slice);
            }
            withheld.insert(*address, account_change);
        }
        for address in created {
            let change = withheld.entry(*address).or_default();
            (change.created, change.code) = (true, Some(Bytes::new()));
        }
        withheld.retain(|_, change| !change.is_none());
        withheld.into_iter().collect()
    }

    fn violation(
        &self,
        reason: DenyReason,
        touched: &BTreeSet<Address>,
        needs_super_admin: bool,
        suspends: bool,
    ) -> PostExecutionViolation {
        let is_shared = |address: &Address| self.snapshot.shared(*address).is_some();
        let owned = || {
            touched
                .iter()
                .filter(|address| !is_shared(address))
                .filter_map(|a| Some((*a, self.owner(*a)?)))
        };
        let foreign = owned().map(|(_, org)| org).filter(|org| !self.side.contains(org));
        // The sender's own organizations are affected if the sender had no access to a touched contract of theirs.
        let is_out_of_reach = |address: Address| {
            self.snapshot.contract(address).is_some_and(|contract| {
                contract_access(self.snapshot, self.principal, contract, self.policy_settings).is_none()
            })
        };
        let own = owned()
            .filter(|(address, org)| self.side.contains(org) && is_out_of_reach(*address))
            .map(|(_, org)| org);
        let mut affected_orgs: BTreeSet<OrgId> = foreign.chain(own).collect();
        if needs_super_admin {
            affected_orgs.clear();
        } else if affected_orgs.is_empty() {
            // The violation is a function, an upgrade or a creation without the right in the contract's organization:
            // every organization that owns a touched contract is affected.
            affected_orgs.extend(owned().map(|(_, org)| org).chain([self.send.org]));
        }
        PostExecutionViolation {
            reason,
            changes: Vec::new(),
            closed_to_side: Vec::new(),
            side: self.side.iter().copied().collect(),
            affected_orgs: affected_orgs.into_iter().collect(),
            suspends,
        }
    }
}
