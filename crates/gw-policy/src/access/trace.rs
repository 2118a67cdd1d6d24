//! The judgement of a trace: every frame and every touched account of one execution (spec/20 §11 X5-X8; HD4, HD6,
//! HD14, HD15, HD29). What it upgrades is judged in [`super::upgrades`].
//!
//! Invariants: a run passes only if every address in it is explained by a row of X6; code that nobody in the caller's
//! organizations owns is never run or looked at on their behalf. A touch needs what the direct question needs. Rights are
//! those in the organization of each contract, never those of the organization the request was resolved to.

use super::{
    decide::kyc_gated,
    history::Past,
    mined::MinedSend,
    mined::judged_changes,
    permit::{Permit, Plan},
    run_digest::run_digest,
    subject::Signed,
    target::{Member, Reach, is_public, reach, standing},
};
use crate::{
    knobs::Knobs,
    sealed::Sealed,
    snapshot::{AccountChange, CodePin, Contract, Snapshot, SystemToggle},
    visibility::Viewer,
};
use alloy_eips::eip2930::{AccessList, AccessListItem};
use gw_evm::{
    Call, CallRequest,
    code::delegation,
    trace::{Frame, FrameKind, Trace},
};
use gw_types::{Address, B256, Claim, DenyReason, OrgId, Timestamp};
use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::Arc,
};

/// What is known about the traced block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceFacts {
    /// Its beneficiary.
    pub coinbase: Address,
    /// Its number.
    pub number: u64,
    /// Its time.
    pub time: Timestamp,
}

/// A trace that was judged: it may be answered from, or its transaction forwarded. It holds the trace itself, so that
/// none can be opened by the verdict on another.
#[derive(Debug)]
#[must_use]
pub struct TraceVerdict {
    trace: Sealed<Trace>,
    created_inside: Vec<Address>,
    existence: Vec<Address>,
    reads_block: bool,
    pub(super) target_has_code: bool,
}

impl TraceVerdict {
    /// The judged trace, for the views of this crate.
    pub(crate) const fn trace(&self) -> &Trace {
        self.trace.peek()
    }

    /// Judged once more, by another policy (HD20).
    pub fn again(
        self,
        snapshot: &Snapshot,
        permit: &Permit,
        facts: &TraceFacts,
        now: Timestamp,
        knobs: &Knobs,
    ) -> Result<Self, DenyReason> {
        judge_trace(snapshot, permit, self.trace, facts, now, knobs)
    }

    /// What the run read and wrote besides its own sender, target and the block's beneficiary: what naming it
    /// beforehand would make cheaper (HD3). Accounts without code or storage are left out; who listed one would have to
    /// say how it is known. So is what the viewer does not see (HD30).
    pub fn access_list(&self, viewer: &Viewer<'_>, request: &CallRequest, coinbase: Address) -> AccessList {
        let mut list = request.access_list.clone().unwrap_or_default();
        let Some(top) = self.trace().frames.first() else {
            return list;
        };
        for (address, account) in &self.trace().touched {
            let implied = is_public(*address) || [Some(top.from), top.to, Some(coinbase)].contains(&Some(*address));
            let wallet = account.code.is_empty() || delegation(&account.code).is_some();
            if !viewer.sees(*address) || (account.slots.is_empty() && (implied || wallet)) {
                continue;
            }
            let item = match list.0.iter().position(|item| item.address == *address) {
                Some(known) => list.0.get_mut(known),
                None => {
                    list.0.push(AccessListItem {
                        address: *address,
                        storage_keys: Vec::new(),
                    });
                    list.0.last_mut()
                }
            };
            let Some(item) = item else { continue };
            for slot in account.slots.keys() {
                if !item.storage_keys.contains(slot) {
                    item.storage_keys.push(*slot);
                }
            }
        }
        list
    }

    /// Addresses that are not Full, whose existence or balance this run may tell: a payment to an account that is not there
    /// costs more, if there is gas for it at all (RT9), and code that was created at a paid address reads what it holds. An answer is taken from a run in which all of them look new.
    pub fn tells_existence_of(&self) -> &[Address] {
        &self.existence
    }

    /// Whether all these accounts looked new in the run, so that the node did as it was asked.
    pub fn looked_new<'a>(&self, accounts: impl IntoIterator<Item = &'a Address>) -> bool {
        accounts.into_iter().all(|account| {
            let seen = self.trace().touched.get(account);
            seen.is_none_or(|seen| seen.balance.is_zero() && seen.nonce == 0)
        })
    }

    /// What tells this run from one that needs other rights; the run ran in a block with this beneficiary.
    pub(super) fn digest(&self, coinbase: Address) -> B256 {
        run_digest(&self.trace, coinbase)
    }

    /// Whether code that ran here may do otherwise in another block, on the same state: the choice of who calls it.
    pub const fn reads_block(&self) -> bool {
        self.reads_block
    }

    /// What the run changed, but for its sender and the block's beneficiary.
    pub(super) fn changes(&self, coinbase: Address) -> BTreeMap<Address, AccountChange> {
        let trace = self.trace();
        let sender = trace.frames.first().map(|top| top.from);
        judged_changes(trace, sender.unwrap_or_default(), coinbase)
    }

    /// Contracts the run created below its top frame and kept.
    pub fn created_inside(&self) -> &[Address] {
        &self.created_inside
    }
}

/// Whether the caller may see, or cause, what this execution does.
///
/// The trace must be the one of the permitted call; one of another call is refused.
pub fn judge_trace(
    snapshot: &Snapshot,
    permit: &Permit,
    sealed: Sealed<Trace>,
    facts: &TraceFacts,
    now: Timestamp,
    knobs: &Knobs,
) -> Result<TraceVerdict, DenyReason> {
    let trace = sealed.peek();
    let (run, top) = Run::of(snapshot, permit, trace, facts, now, knobs)?;
    let hidden = run.passes(permit)?;
    let existence = run.existence(hidden);
    let is_code = |code: &[u8]| !code.is_empty() && delegation(code).is_none();
    let target_has_code = top.to.is_some_and(|to| is_code(run.code(to)));
    let created_inside = run.kept_creations();
    let reads_block = run.reads_block();
    Ok(TraceVerdict {
        trace: sealed,
        created_inside,
        existence,
        reads_block,
        target_has_code,
    })
}

/// Where an execution was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppedAt {
    /// The frame, counted in the order they are entered; `None` if something was refused that no frame enters, or the
    /// execution as a whole.
    pub frame: Option<usize>,
    /// How deep it lies.
    pub depth: Option<u32>,
    /// What it is about, if that is known to the user, and to who is beside them.
    pub address: Option<Address>,
}

/// Where [`judge_trace`] refuses this execution, for administrators (V1); nothing if it does not.
pub fn stopped_at(
    snapshot: &Snapshot,
    permit: &Permit,
    sealed: &Sealed<Trace>,
    facts: &TraceFacts,
    now: Timestamp,
    knobs: &Knobs,
) -> Option<StoppedAt> {
    let nowhere = StoppedAt {
        frame: None,
        depth: None,
        address: None,
    };
    let Ok((run, _)) = Run::of(snapshot, permit, sealed.peek(), facts, now, knobs) else {
        return Some(nowhere);
    };
    run.passes(permit).err()?;
    let Some((frame, address)) = run.looked_at.get() else {
        return Some(nowhere);
    };
    let viewer = permit.viewer(snapshot, now, knobs);
    let depth = frame
        .and_then(|frame| run.trace.frames.get(frame))
        .map(|frame| frame.depth);
    Some(StoppedAt {
        frame,
        depth,
        address: address.filter(|address| viewer.sees(*address)),
    })
}

/// What a permit executes, and as whom; a call without sender runs as the zero address (decision 38).
fn executed(permit: &Permit) -> Option<(&CallRequest, Address)> {
    if let Call::Simulate(simulation) = permit.call() {
        return Some((&simulation.request, simulation.request.from.unwrap_or(Address::ZERO)));
    }
    Signed::of(permit.call()).map(|signed| (signed.request, signed.sender))
}

/// X2: the top frame is the execution of this request.
fn matches(top: &Frame, request: &CallRequest, sender: Address) -> bool {
    let entered = match request.to {
        Some(to) => top.kind == FrameKind::Call && top.to == Some(to),
        None => top.kind == FrameKind::Create,
    };
    let value = request.value.unwrap_or_default();
    entered && top.parent.is_none() && top.from == sender && top.input == request.input && top.value == value
}

/// Addresses that got code in this run: without code before it, they run only what one of its frames put there.
fn created(frames: &[Frame]) -> HashSet<Address> {
    frames
        .iter()
        .filter(|frame| frame.is_creation())
        .filter_map(|frame| frame.to)
        .collect()
}

/// Proxies, each with code that it passed its own input on to: what runs on its state.
fn passed_on(frames: &[Frame]) -> HashSet<(Address, Address)> {
    let is_passed_on = |frame: &&Frame| {
        let parent = frame.parent.and_then(|parent| frames.get(parent));
        frame.kind == FrameKind::DelegateCall && parent.is_some_and(|parent| parent.input == frame.input)
    };
    frames
        .iter()
        .filter(is_passed_on)
        .filter_map(|frame| Some((frame.from, frame.to?)))
        .collect()
}

/// Wallets this very transaction delegates, and to what: that code runs although the account shows none yet (W1).
fn delegations(request: &CallRequest) -> Result<Vec<(Address, Address)>, DenyReason> {
    let pairs = request.authorization_list.iter().map(|authorization| {
        let authority = authorization
            .recover_authority()
            .map_err(|_| DenyReason::SenderNotOwned)?;
        Ok((authority, authorization.address))
    });
    pairs.collect()
}

/// What an address is in one run (X6).
#[derive(Clone, Copy, Debug)]
pub(super) enum Place<'s> {
    /// Zero address or precompile.
    Public,
    /// The sender, an address of the caller, an own reservation: known and without code of others.
    Own,
    /// Shared infrastructure with its pinned code.
    Shared,
    /// Got its code in this run.
    Created,
    /// A registered contract of an organization the caller is in.
    Ours(&'s Arc<Contract>),
    /// A registered contract of another organization.
    Foreign,
    /// No code, and not Full.
    Wallet,
    /// Code nobody registered.
    Unowned,
    /// Closed by a mined finding (HD28).
    Quarantined,
}

/// What has been found so far.
#[derive(Debug, Default)]
struct Judged<'a> {
    /// Every admitted address, looked up once.
    admitted: HashMap<Address, Place<'a>>,
    /// Addresses whose own code ran.
    executed: HashSet<Address>,
    /// Implementations that pinned shared proxies delegated to.
    implementations: HashSet<Address>,
    /// Wallets that are not Full.
    wallets: BTreeSet<Address>,
    /// Whether a contract was entered that the caller could not ask about (X6).
    unreached: bool,
    /// Whether the block's beneficiary is listed, and not Full. Nodes list it in every run.
    beneficiary: bool,
}

pub(super) struct Run<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) trace: &'a Trace,
    pub(super) member: Member,
    /// The organization that owns what the run creates. It lends no rights on anything else.
    pub(super) org: Option<OrgId>,
    pub(super) sender: Address,
    pub(super) coinbase: Address,
    /// How old the state is (H1).
    past: Past,
    /// Contracts of the last blocks that are not registered yet, and whose they will be.
    pub(super) lately: Option<&'a HashMap<Address, OrgId>>,
    /// Of a mined transaction, the number of its block and its place there.
    pub(super) at: (u64, u64),
    /// The organizations of who sent it, once it is mined.
    pub(super) side: BTreeSet<OrgId>,
    /// Code that the sender did not enter knowingly, and what it counts as.
    pub(super) excused: HashMap<Address, Place<'a>>,
    pub(super) knobs: &'a Knobs,
    pub(super) created: HashSet<Address>,
    passed_on: HashSet<(Address, Address)>,
    delegations: Vec<(Address, Address)>,
    /// X8: own contracts need a grant in every frame.
    grants_inside: bool,
    /// HD17: the only contracts of organizations that may be called, or looked at, if the scope of a personal URL names them.
    picked: Option<Arc<[Address]>>,
    /// What is being judged: a frame, and the address it is about. For those who ask where it stopped.
    pub(super) looked_at: Cell<Option<(Option<usize>, Option<Address>)>>,
}

/// What the frames above one say about it.
#[derive(Clone, Copy, Debug, Default)]
struct Above {
    /// Code runs that the caller brought along, or could direct at will.
    authored: bool,
    /// A router trusted by this organization passed the call on, and nobody's else code since (F5).
    router: Option<OrgId>,
}

impl<'a> Run<'a> {
    /// The execution of a permitted call, and its top frame.
    fn of(
        snapshot: &'a Snapshot,
        permit: &Permit,
        trace: &'a Trace,
        facts: &TraceFacts,
        now: Timestamp,
        knobs: &'a Knobs,
    ) -> Result<(Self, &'a Frame), DenyReason> {
        let user = permit.user().ok_or(DenyReason::AuthRequired)?;
        if snapshot.shuts_out(snapshot.user(user).ok_or(DenyReason::UnknownUser)?) {
            return Err(DenyReason::Banned);
        }
        let (request, sender) = executed(permit).ok_or(DenyReason::TraceMismatch)?;
        let top = trace
            .frames
            .first()
            .filter(|top| matches(top, request, sender))
            .ok_or(DenyReason::TraceMismatch)?;
        let mut member = Member::beside(snapshot, user, now, permit.beside()).restricted_to(permit.named_org());
        if permit.method().is_none_or(|method| kyc_gated(knobs.kyc_gate, method)) {
            member.retain_verified(snapshot);
        }
        let run = Self {
            snapshot,
            trace,
            member,
            org: permit.org(),
            sender,
            coinbase: facts.coinbase,
            past: Past {
                age: permit.age_at(facts.number),
                time: facts.time,
                number: facts.number,
            },
            lately: None,
            at: (u64::MAX, 0),
            side: BTreeSet::new(),
            excused: HashMap::new(),
            knobs,
            created: created(&trace.frames),
            passed_on: passed_on(&trace.frames),
            delegations: delegations(request)?,
            grants_inside: knobs.toggle(snapshot, SystemToggle::IntraOrgGrantTracing, now),
            picked: permit.picked.clone(),
            looked_at: Cell::new(None),
        };
        Ok((run, top))
    }

    /// All that the plan of the permit asks. Returns the wallets that occur and are not Full.
    fn passes(&self, permit: &Permit) -> Result<BTreeSet<Address>, DenyReason> {
        let hidden = self.examine()?;
        match (permit.plan(), &self.trace.changes) {
            (Plan::Send, Some(changes)) => {
                self.approved_creations()?;
                self.upgrades(changes)?;
            }
            // A send is judged by what it changes too (HD15).
            (Plan::Send, None) => return Err(DenyReason::TracingUnavailable),
            (Plan::Simulate, _) => {}
            (
                Plan::Local
                | Plan::Live
                | Plan::Forward
                | Plan::ZeroQuantity
                | Plan::CodeCheck
                | Plan::Untraced
                | Plan::Unexamined,
                _,
            ) => return Err(DenyReason::TraceMismatch),
        }
        Ok(hidden)
    }

    /// A transaction as it was mined, for the one who sent it (HD2).
    pub(super) fn mined(
        snapshot: &'a Snapshot,
        sent: &MinedSend<'a>,
        member: Member,
        trace: &'a Trace,
        knobs: &'a Knobs,
    ) -> Self {
        let now = member.now;
        let side = super::mined::side(sent, &member);
        Self {
            snapshot,
            trace,
            member,
            org: Some(sent.org),
            sender: sent.sender,
            coinbase: sent.coinbase,
            past: Past::PRESENT,
            lately: Some(sent.lately),
            at: sent.at,
            side,
            excused: HashMap::new(),
            knobs,
            created: created(&trace.frames),
            passed_on: passed_on(&trace.frames),
            delegations: sent.delegations.clone(),
            grants_inside: knobs.toggle(snapshot, SystemToggle::IntraOrgGrantTracing, now),
            picked: None,
            looked_at: Cell::new(None),
        }
    }

    /// Every frame, every touch, and both together (HD6).
    pub(super) fn judge(&self) -> Result<(), DenyReason> {
        self.examine().map(drop)
    }

    /// The same; the wallets that occur and are not Full.
    fn examine(&self) -> Result<BTreeSet<Address>, DenyReason> {
        // Nodes need not list the sender among what was touched. Who names none runs as the zero address.
        if self.is_closed(self.sender) && !is_public(self.sender) {
            return Err(DenyReason::ContractNotPermitted);
        }
        let mut judged = Judged::default();
        self.frames(&mut judged)?;
        self.touches(&mut judged)?;
        self.looked_at.set(None);
        let wallets = !judged.wallets.is_empty()
            || (judged.beneficiary && self.may_ask_for_beneficiary(judged.executed.iter().copied()));
        if (wallets || judged.unreached) && self.probes(&judged.executed) {
            // HD29: who was let in without a grant does not get to look at what they entered.
            return Err(if wallets {
                DenyReason::Unregistered
            } else {
                DenyReason::ContractNotPermitted
            });
        }
        Ok(judged.wallets)
    }

    /// The code an address had before the run. Nodes leave empty accounts out, so an absent one has none.
    pub(super) fn code(&self, address: Address) -> &'a [u8] {
        self.trace.touched.get(&address).map_or(&[], |account| &account.code)
    }

    /// Whose code runs when `address` is entered: its own, and what it delegates to before or through this very
    /// transaction (HD15).
    pub(super) fn runs_at(&self, address: Address) -> impl Iterator<Item = Address> {
        let here = self
            .delegations
            .iter()
            .filter(move |(wallet, _)| *wallet == address)
            .map(|(_, delegate)| *delegate);
        std::iter::once(address)
            .chain(delegation(self.code(address)))
            .chain(here)
    }

    /// Whether the address is shared infrastructure and holds its pinned code (X6).
    pub(super) fn shared(&self, address: Address) -> bool {
        self.snapshot
            .shared(address)
            .is_some_and(|shared| shared.pin.is_none_or(|pin| pin.is_code(self.code(address))))
    }

    /// Why an address that no row of X6 admits is refused: other code than the pinned one makes a tag void (D3).
    fn refusal(&self, address: Address, otherwise: DenyReason) -> DenyReason {
        if self.snapshot.is_tagged_shared(address) {
            DenyReason::CodehashMismatch
        } else {
            otherwise
        }
    }

    /// HD9: whether the frame is a shared proxy running its pinned implementation. The proxy runs as itself, so what
    /// it delegates to is what its own code and storage say.
    fn runs_implementation(&self, frame: &Frame, parent: Option<&Frame>, address: Address) -> bool {
        let Some(proxy) = parent else { return false };
        let as_itself = matches!(proxy.kind, FrameKind::Call | FrameKind::StaticCall);
        let pin: Option<CodePin> = proxy
            .to
            .and_then(|to| self.snapshot.shared(to))
            .and_then(|shared| shared.pin);
        frame.kind == FrameKind::DelegateCall
            && as_itself
            && Some(frame.from) == proxy.to
            && pin.is_some_and(|pin| pin.is_code(self.code(frame.from)) && pin.is_implementation(self.code(address)))
    }

    /// Whether `delegate` runs in the name of a wallet that may: W1 lets callers delegate their own wallets to shared
    /// infrastructure whose code is pinned.
    fn delegates_own(&self, wallet: Address, delegate: Address) -> bool {
        let own = wallet == self.sender || self.member.owns(self.snapshot, wallet);
        let pin = self.snapshot.shared(delegate).and_then(|shared| shared.pin);
        own && pin.is_some_and(|pin| pin.is_code(self.code(delegate)))
    }

    /// Whether no ground opens the address (HD28).
    fn is_closed(&self, address: Address) -> bool {
        self.member.is_closed(self.snapshot, address)
    }

    fn place(&self, address: Address) -> Place<'a> {
        if let Some(place) = self.excused.get(&address) {
            return *place;
        }
        if self.is_closed(address) {
            // What everybody's code enters stays in use; its balance is nobody's to ask for.
            return if is_public(address) {
                Place::Wallet
            } else {
                Place::Quarantined
            };
        }
        if self.shared(address) {
            return Place::Shared;
        }
        if let Some(contract) = self.snapshot.contract(address) {
            return match self.member.rights_in(contract.org) {
                Some(_) => Place::Ours(contract),
                None => Place::Foreign,
            };
        }
        if is_public(address) {
            return Place::Public;
        }
        let code = self.code(address);
        if let Some(retired) = self.snapshot.retired(address) {
            // HD27: nobody reaches it. Its organization may build anew where there is no code any more.
            let rebuilt = code.is_empty() && self.created.contains(&address) && Some(retired.org) == self.org;
            return if rebuilt { Place::Created } else { Place::Foreign };
        }
        // A 7702 wallet is a wallet; what it delegates to is judged for itself (HD15).
        let wallet = code.is_empty() || delegation(code).is_some();
        let ours = |org: &OrgId| self.member.rights_in(*org).is_some();
        if !wallet && self.lately.and_then(|lately| lately.get(&address)).is_some_and(ours) {
            return Place::Created;
        }
        if !wallet {
            return if address == self.sender {
                Place::Own
            } else {
                Place::Unowned
            };
        }
        if self.created.contains(&address) {
            return Place::Created;
        }
        let known = address == self.sender
            || self.member.owns(self.snapshot, address)
            || !standing(self.snapshot, &self.member, address, self.knobs)
                .reserved_in
                .is_empty();
        if known { Place::Own } else { Place::Wallet }
    }

    /// Every frame, in order.
    fn frames(&self, judged: &mut Judged<'a>) -> Result<(), DenyReason> {
        // What each frame says of those below it.
        let mut said: Vec<Above> = Vec::with_capacity(self.trace.frames.len());
        for (index, frame) in self.trace.frames.iter().enumerate() {
            self.looked_at.set(Some((Some(index), frame.to)));
            let parent = frame.parent.and_then(|parent| self.trace.frames.get(parent));
            let above = frame
                .parent
                .and_then(|parent| said.get(parent))
                .copied()
                .unwrap_or_default();
            let here = match frame.kind {
                FrameKind::Create | FrameKind::Create2 => {
                    self.creation(judged, frame, parent)?;
                    Above {
                        authored: true,
                        router: None,
                    }
                }
                // Nothing of the beneficiary's runs.
                FrameKind::SelfDestruct => {
                    self.touch(judged, frame.to.ok_or(DenyReason::TraceMismatch)?)?;
                    Above::default()
                }
                FrameKind::Call | FrameKind::StaticCall | FrameKind::DelegateCall | FrameKind::CallCode => {
                    self.execution(judged, frame, parent, above)?
                }
            };
            said.push(here);
        }
        Ok(())
    }

    /// X7: creations need the claim where the creation will belong, and where the contract belongs that creates (HD29);
    /// they take nothing from another organization.
    fn creation(&self, judged: &mut Judged<'a>, frame: &Frame, parent: Option<&Frame>) -> Result<(), DenyReason> {
        let deploys = |org: OrgId| {
            self.member
                .rights_in(org)
                .is_some_and(|rights| rights.permissions.claims.has(Claim::Deploy))
        };
        let factories = [Some(frame.from), parent.and_then(|parent| parent.to)]
            .into_iter()
            .flatten();
        let mut owners = factories.filter_map(|factory| match self.place(factory) {
            Place::Ours(contract) => Some(contract.org),
            Place::Public
            | Place::Own
            | Place::Shared
            | Place::Created
            | Place::Foreign
            | Place::Wallet
            | Place::Unowned
            | Place::Quarantined => None,
        });
        if !self.org.is_some_and(deploys) || !owners.all(deploys) {
            return Err(DenyReason::DeployClaimRequired);
        }
        let Some(address) = frame.to else { return Ok(()) };
        if self
            .snapshot
            .owner(address)
            .is_some_and(|owner| Some(owner) != self.org)
        {
            return Err(DenyReason::CrossOrg);
        }
        self.touch(judged, address)
    }

    /// Code runs: at the frame's target, and for a wallet that delegates, at its delegate (HD15). Returns what the
    /// frames below go by.
    fn execution(
        &self,
        judged: &mut Judged<'a>,
        frame: &Frame,
        parent: Option<&Frame>,
        above: Above,
    ) -> Result<Above, DenyReason> {
        let to = frame.to.ok_or(DenyReason::TraceMismatch)?;
        let mut below = above;
        for address in self.runs_at(to) {
            judged.executed.insert(address);
            if self.runs_implementation(frame, parent, address) {
                judged.implementations.insert(address);
                continue;
            }
            // Shared code may be called, but runs in nobody else's name (X6).
            let borrowed = address != to || matches!(frame.kind, FrameKind::DelegateCall | FrameKind::CallCode);
            if borrowed && self.shared(address) && !(address != to && self.delegates_own(to, address)) {
                return Err(DenyReason::DelegateSharedInfra);
            }
            let place = self.admit(judged, address)?;
            // Code in somebody's delegated wallet answers its caller with the wallet's own balance and slots.
            if address == to
                && parent.is_some()
                && matches!(place, Place::Wallet)
                && delegation(self.code(to)).is_some()
            {
                return Err(DenyReason::ContractNotPermitted);
            }
            let authored = match place {
                Place::Created => true,
                Place::Ours(contract) => {
                    // What is delegated to runs as its caller, on its caller's state.
                    if matches!(frame.kind, FrameKind::Call | FrameKind::StaticCall) && address == to {
                        self.picks(address)?;
                    }
                    self.rules(judged, contract, frame, parent, above)?;
                    // Trust is in the router's checks, and those read its own storage.
                    if contract.trusted_router && !borrowed {
                        below.router = Some(contract.org);
                    }
                    contract.deployer == Some(self.member.user)
                }
                Place::Own => !self.code(address).is_empty(),
                // A utility at the top does what its caller's input says: what it calls, the caller chose (T1).
                Place::Shared => parent.is_none(),
                Place::Public | Place::Foreign | Place::Wallet | Place::Unowned | Place::Quarantined => false,
            };
            if authored {
                below = Above {
                    authored: true,
                    router: None,
                };
            }
        }
        Ok(below)
    }

    /// Looked at, whether entered or not (X5).
    fn touches(&self, judged: &mut Judged<'a>) -> Result<(), DenyReason> {
        self.trace.touched.keys().try_for_each(|address| {
            self.looked_at.set(Some((None, Some(*address))));
            if judged.implementations.contains(address) {
                Ok(())
            } else if judged.executed.contains(address) || self.created.contains(address) {
                self.admit(judged, *address).map(drop)
            } else if *address == self.coinbase {
                judged.beneficiary |= !self.may_ask_about(self.place(*address));
                Ok(())
            } else {
                self.touch(judged, *address)
            }
        })
    }

    /// HD29: looking at an account is the question for its balance or code, and needs the same right.
    fn touch(&self, judged: &mut Judged<'a>, address: Address) -> Result<(), DenyReason> {
        let place = self.admit(judged, address)?;
        if matches!(place, Place::Ours(_)) {
            self.picks(address)?;
        }
        let is_hidden_wallet = matches!(place, Place::Wallet);
        if is_hidden_wallet || address == self.sender || self.may_ask_about(place) {
            Ok(())
        } else {
            Err(DenyReason::ContractNotPermitted)
        }
    }

    /// HD17: a page that holds a personal URL reads the picked contracts, not what they can reach.
    fn picks(&self, address: Address) -> Result<(), DenyReason> {
        let picked = self.picked.as_ref().is_none_or(|picked| picked.contains(&address));
        if picked {
            Ok(())
        } else {
            Err(DenyReason::ContractNotPermitted)
        }
    }

    /// Whether the caller is answered who asks for balance and code.
    fn may_ask_about(&self, place: Place<'a>) -> bool {
        match place {
            Place::Public | Place::Own | Place::Shared | Place::Created => true,
            Place::Ours(contract) => reach(self.snapshot, &self.member, contract, self.knobs).is_some(),
            Place::Foreign | Place::Wallet | Place::Unowned | Place::Quarantined => false,
        }
    }

    /// X6. Frames and touches have the same rows; what may not be delegated to is refused in `execution`, what may only be
    /// entered in `touch`.
    fn admit(&self, judged: &mut Judged<'a>, address: Address) -> Result<Place<'a>, DenyReason> {
        if let Some(place) = judged.admitted.get(&address) {
            return Ok(*place);
        }
        let place = self.place(address);
        match place {
            Place::Ours(contract) => self.past.of_contract(&self.member, contract)?,
            Place::Own => self.past.of_account(self.snapshot, &self.member, address)?,
            Place::Public | Place::Shared => self.past.of_utility(&self.member)?,
            Place::Created => {}
            Place::Foreign => return Err(self.refusal(address, DenyReason::CrossOrg)),
            Place::Unowned => return Err(self.refusal(address, DenyReason::Unregistered)),
            Place::Quarantined => return Err(DenyReason::ContractNotPermitted),
            Place::Wallet => {
                self.past.of_utility(&self.member)?;
                judged.wallets.insert(address);
            }
        }
        judged.admitted.insert(address, place);
        Ok(place)
    }

    /// The rules of grants inside an execution: a grant is needed in another of the caller's organizations (X6), below
    /// code the caller brought along, and everywhere while `intra-org-grant-tracing` is on (X8); where grants restrict
    /// functions, the frame's own input is judged, but for what a trusted router of the same organization passes on
    /// (F5, HD4).
    fn rules(
        &self,
        judged: &mut Judged<'a>,
        contract: &'a Arc<Contract>,
        frame: &Frame,
        parent: Option<&Frame>,
        above: Above,
    ) -> Result<(), DenyReason> {
        self.rules_of_proxy(contract, frame, parent, above)?;
        // A proxy that passes on what it was given: the verdict on its own frame holds.
        let passed_on = frame.kind == FrameKind::DelegateCall
            && !above.authored
            && parent.is_some_and(|parent| parent.input == frame.input);
        let Some(Reach { functions, .. }) = reach(self.snapshot, &self.member, contract, self.knobs) else {
            let inside = self.grants_inside && !passed_on;
            let needed = parent.is_none() || above.authored || inside || Some(contract.org) != self.org;
            judged.unreached = true;
            return if needed {
                Err(DenyReason::ContractNotPermitted)
            } else {
                Ok(())
            };
        };
        if passed_on || above.router == Some(contract.org) {
            return Ok(());
        }
        functions.permit(self.snapshot, &self.member, contract, &frame.input)
    }

    /// F5, HD4: a proxy's own code that is entered once more, on the proxy's state and with other input than the proxy was
    /// given, is a call of the proxy. Libraries, which it never passed its input on to, are not.
    fn rules_of_proxy(
        &self,
        code: &Contract,
        frame: &Frame,
        parent: Option<&Frame>,
        above: Above,
    ) -> Result<(), DenyReason> {
        let borrowed = matches!(frame.kind, FrameKind::DelegateCall | FrameKind::CallCode);
        let is_passed_on = parent.is_some_and(|parent| parent.input == frame.input);
        if !borrowed || is_passed_on || !self.passed_on.contains(&(frame.from, code.address)) {
            return Ok(());
        }
        let Some(proxy) = self.snapshot.contract(frame.from) else {
            return Ok(());
        };
        let Some(Reach { functions, .. }) = reach(self.snapshot, &self.member, proxy, self.knobs) else {
            return Ok(());
        };
        if above.router == Some(proxy.org) {
            Ok(())
        } else {
            functions.permit(self.snapshot, &self.member, proxy, &frame.input)
        }
    }
}
