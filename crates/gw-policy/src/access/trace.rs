//! Evaluates a trace: every frame and every touched account of one execution (spec/20 §11 X5-X8; HD4, HD6, HD14, HD15,
//! HD29). [`super::upgrades`] evaluates upgrades.
//!
//! Invariants: an execution is permitted only if a row of X6 admits every address in it; a caller never runs or touches
//! code that none of the caller's organizations owns, except shared code. A touch needs the rights of the direct
//! request for that address. The rights for a contract are those in its own organization, never those in the
//! organization that the request was resolved to.

use super::{
    decide::kyc_gated,
    history::PastOwner,
    mined::MinedSend,
    mined::judged_changes,
    permit::{Permit, Plan},
    resource::Signed,
    run_digest::run_digest,
    target::{ContractAccess, Principal, contract_access, is_public, target_status},
};
use crate::{
    sealed::Sealed,
    settings::PolicySettings,
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

/// The block that the traced execution ran in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceFacts {
    /// Beneficiary of the block.
    pub coinbase: Address,
    /// Number of the block.
    pub number: u64,
    /// Timestamp of the block.
    pub time: Timestamp,
}

/// A trace that was evaluated and permitted: the call may be answered from it, or its transaction forwarded. It
/// contains the trace, so that no other trace can be opened with this verdict.
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
    /// The evaluated trace, for the views of this crate.
    pub(crate) const fn trace(&self) -> &Trace {
        self.trace.peek()
    }

    /// Evaluates the trace again, by another snapshot (HD20).
    ///
    /// # Errors
    /// The reason for which the execution is denied by this snapshot.
    pub fn reevaluate(
        self,
        snapshot: &Snapshot,
        permit: &Permit,
        facts: &TraceFacts,
        now: Timestamp,
        knobs: &PolicySettings,
    ) -> Result<Self, DenyReason> {
        evaluate_trace(snapshot, permit, self.trace, facts, now, knobs)
    }

    /// The access list (EIP-2930) of the execution: the requested list with the accounts and slots that the execution
    /// read or wrote (HD3). Without accessed slots, the sender, the target, the block's beneficiary and public
    /// addresses are left out, which are warm anyway, and so are wallets, since listing one would need a basis on which
    /// the caller knows it. Accounts that the viewer does not see are left out (HD30).
    pub fn access_list(&self, viewer: &Viewer<'_>, request: &CallRequest, coinbase: Address) -> AccessList {
        let mut list = request.access_list.clone().unwrap_or_default();
        let Some(top) = self.trace().frames.first() else {
            return list;
        };
        for (address, account) in &self.trace().touched {
            let is_implied = is_public(*address) || [Some(top.from), top.to, Some(coinbase)].contains(&Some(*address));
            let is_wallet = account.code.is_empty() || delegation(&account.code).is_some();
            if !viewer.sees(*address) || (account.slots.is_empty() && (is_implied || is_wallet)) {
                continue;
            }
            let item = match list.0.iter().position(|item| item.address == *address) {
                Some(index) => list.0.get_mut(index),
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

    /// Addresses that are not Full and whose existence or balance this execution may reveal: a payment to an account
    /// that does not exist costs more gas, or runs out of gas (RT9), and code that is created at an address with a
    /// balance can read it. The result is taken from an execution in which all of them look new.
    pub fn tells_existence_of(&self) -> &[Address] {
        &self.existence
    }

    /// Whether all these accounts looked new in the execution, so that the node applied the overrides.
    pub fn looked_new<'a>(&self, accounts: impl IntoIterator<Item = &'a Address>) -> bool {
        accounts.into_iter().all(|account| {
            let touched = self.trace().touched.get(account);
            touched.is_none_or(|account| account.balance.is_zero() && account.nonce == 0)
        })
    }

    /// The [`run_digest`] of the execution, which ran in a block with this beneficiary.
    pub(super) fn digest(&self, coinbase: Address) -> B256 {
        run_digest(&self.trace, coinbase)
    }

    /// Whether executed code reads block properties, so that it may behave differently in another block on the same
    /// state.
    pub const fn reads_block(&self) -> bool {
        self.reads_block
    }

    /// The changes of the execution, except those of its sender and the block's beneficiary.
    pub(super) fn changes(&self, coinbase: Address) -> BTreeMap<Address, AccountChange> {
        let trace = self.trace();
        let sender = trace.frames.first().map(|top| top.from);
        judged_changes(trace, sender.unwrap_or_default(), coinbase)
    }

    /// Contracts that the execution created below its top frame and did not revert.
    pub fn created_inside(&self) -> &[Address] {
        &self.created_inside
    }
}

/// Evaluates whether the caller may see the outcome of this execution, or cause it.
///
/// # Errors
/// The reason for which the execution is denied; `TraceMismatch` if the trace is not of the permitted call.
pub fn evaluate_trace(
    snapshot: &Snapshot,
    permit: &Permit,
    sealed: Sealed<Trace>,
    facts: &TraceFacts,
    now: Timestamp,
    knobs: &PolicySettings,
) -> Result<TraceVerdict, DenyReason> {
    let trace = sealed.peek();
    let (run, top) = TraceEvaluator::for_permit(snapshot, permit, trace, facts, now, knobs)?;
    let hidden = run.evaluate_plan(permit)?;
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

/// The frame or account at which an execution was denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeniedFrame {
    /// Index of the frame, in the order in which frames are entered. `None` if an account that no frame enters was
    /// denied, or the execution as a whole.
    pub frame: Option<usize>,
    /// Depth of the frame.
    pub depth: Option<u32>,
    /// The denied address, if the user and the impersonating administrator may see it.
    pub address: Option<Address>,
}

/// The frame or account at which [`evaluate_trace`] denies this execution, for administrators (V1); `None` if it
/// permits the execution.
pub fn denied_frame(
    snapshot: &Snapshot,
    permit: &Permit,
    sealed: &Sealed<Trace>,
    facts: &TraceFacts,
    now: Timestamp,
    knobs: &PolicySettings,
) -> Option<DeniedFrame> {
    let whole_execution = DeniedFrame {
        frame: None,
        depth: None,
        address: None,
    };
    let Ok((run, _)) = TraceEvaluator::for_permit(snapshot, permit, sealed.peek(), facts, now, knobs) else {
        return Some(whole_execution);
    };
    run.evaluate_plan(permit).err()?;
    let Some((frame, address)) = run.current_check.get() else {
        return Some(whole_execution);
    };
    let viewer = permit.viewer(snapshot, now, knobs);
    let depth = frame
        .and_then(|frame| run.trace.frames.get(frame))
        .map(|frame| frame.depth);
    Some(DeniedFrame {
        frame,
        depth,
        address: address.filter(|address| viewer.sees(*address)),
    })
}

/// The execution of a permitted call, and its sender. A call without sender runs from the zero address (decision 38).
fn execution_of(permit: &Permit) -> Option<(&CallRequest, Address)> {
    if let Call::Simulate(simulation) = permit.call() {
        return Some((&simulation.request, simulation.request.from.unwrap_or(Address::ZERO)));
    }
    Signed::of(permit.call()).map(|signed| (signed.request, signed.sender))
}

/// X2: whether the top frame is the execution of this request.
fn matches(top: &Frame, request: &CallRequest, sender: Address) -> bool {
    let has_target = match request.to {
        Some(to) => top.kind == FrameKind::Call && top.to == Some(to),
        None => top.kind == FrameKind::Create,
    };
    let value = request.value.unwrap_or_default();
    has_target && top.parent.is_none() && top.from == sender && top.input == request.input && top.value == value
}

/// Addresses that a frame of this execution creates. If they had no code before it, they run only code that one of its
/// frames created.
fn created(frames: &[Frame]) -> HashSet<Address> {
    frames
        .iter()
        .filter(|frame| frame.is_creation())
        .filter_map(|frame| frame.to)
        .collect()
}

/// Pairs of a proxy and the code that it delegated its own input to, which runs on the proxy's state.
fn forwarding_proxies(frames: &[Frame]) -> HashSet<(Address, Address)> {
    let is_forwarded = |frame: &&Frame| {
        let parent = frame.parent.and_then(|parent| frames.get(parent));
        frame.kind == FrameKind::DelegateCall && parent.is_some_and(|parent| parent.input == frame.input)
    };
    frames
        .iter()
        .filter(is_forwarded)
        .filter_map(|frame| Some((frame.from, frame.to?)))
        .collect()
}

/// Wallets that this transaction itself delegates, each with its delegate. The delegate's code runs although the
/// account has none before the transaction (W1).
fn delegations(request: &CallRequest) -> Result<Vec<(Address, Address)>, DenyReason> {
    let pairs = request.authorization_list.iter().map(|authorization| {
        let authority = authorization
            .recover_authority()
            .map_err(|_| DenyReason::SenderNotOwned)?;
        Ok((authority, authorization.address))
    });
    pairs.collect()
}

/// The class of an address in one execution (X6).
#[derive(Clone, Copy, Debug)]
pub(super) enum AddressClass<'s> {
    /// The zero address or a precompile.
    Public,
    /// The sender, an address of the caller, or an own reservation, without code of others.
    Own,
    /// Shared infrastructure with its pinned code.
    Shared,
    /// An address that gets its code in this execution, or a contract that is not registered yet and will belong to the
    /// caller's organization.
    Created,
    /// A registered contract of an organization that the caller is a member of.
    OwnOrg(&'s Arc<Contract>),
    /// A contract of another organization, or one whose registration was deleted (HD27).
    ForeignOrg,
    /// An address without code of its own that is not Full.
    Wallet,
    /// Unregistered code.
    UnregisteredCode,
    /// An address that a post-execution violation closed (HD28).
    Quarantined,
}

/// The state of an evaluation.
#[derive(Debug, Default)]
struct TraceState<'a> {
    /// Every admitted address with its class.
    admitted: HashMap<Address, AddressClass<'a>>,
    /// Addresses whose own code ran.
    executed: HashSet<Address>,
    /// Implementations that pinned shared proxies delegated to.
    implementations: HashSet<Address>,
    /// Wallets that are not Full.
    wallets: BTreeSet<Address>,
    /// Whether a frame entered a contract that the caller has no access to (X6).
    entered_without_access: bool,
    /// Whether the trace lists the block's beneficiary and it is not Full. Nodes list it in every trace.
    hidden_beneficiary: bool,
}

/// The evaluation of one trace for one caller.
pub(super) struct TraceEvaluator<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) trace: &'a Trace,
    pub(super) principal: Principal,
    /// The organization that will own created contracts. It gives no rights on other contracts.
    pub(super) org: Option<OrgId>,
    pub(super) sender: Address,
    pub(super) coinbase: Address,
    /// The age of the state that the execution reads (H1).
    past: PastOwner,
    /// Contracts of the last blocks that are not registered yet, each with the organization that will own it.
    pub(super) pending_contracts: Option<&'a HashMap<Address, OrgId>>,
    /// The block number of a mined transaction, and its index in the block.
    pub(super) at: (u64, u64),
    /// The sender's side of a mined transaction: the organizations of the sender.
    pub(super) side: BTreeSet<OrgId>,
    /// Classes of addresses with late code, which the sender did not enter knowingly.
    pub(super) class_overrides: HashMap<Address, AddressClass<'a>>,
    pub(super) knobs: &'a PolicySettings,
    pub(super) created: HashSet<Address>,
    forwarding_proxies: HashSet<(Address, Address)>,
    delegations: Vec<(Address, Address)>,
    /// X8: whether contracts of the caller's own organization need a grant in every frame.
    grants_within_org: bool,
    /// HD17: the only organization contracts that may be called or touched, if the scope of a personal URL lists them.
    url_contracts: Option<Arc<[Address]>>,
    /// The frame and the address that are being checked. [`denied_frame`] reads where an evaluation stopped.
    pub(super) current_check: Cell<Option<(Option<usize>, Option<Address>)>>,
}

/// What the frames above a frame determine for its checks.
#[derive(Clone, Copy, Debug, Default)]
struct FrameContext {
    /// Whether a frame above runs code that the caller created or can direct at will.
    authored: bool,
    /// The organization whose trusted router forwarded the call, if only code that the caller did not author ran since
    /// (F5).
    router: Option<OrgId>,
}

impl<'a> TraceEvaluator<'a> {
    /// The evaluator for a permitted call, and the top frame of the trace.
    ///
    /// # Errors
    /// The user has no access any more, or the trace is not of the permitted call.
    fn for_permit(
        snapshot: &'a Snapshot,
        permit: &Permit,
        trace: &'a Trace,
        facts: &TraceFacts,
        now: Timestamp,
        knobs: &'a PolicySettings,
    ) -> Result<(Self, &'a Frame), DenyReason> {
        let user = permit.user().ok_or(DenyReason::AuthRequired)?;
        if snapshot.is_excluded(snapshot.user(user).ok_or(DenyReason::UnknownUser)?) {
            return Err(DenyReason::Banned);
        }
        let (request, sender) = execution_of(permit).ok_or(DenyReason::TraceMismatch)?;
        let top = trace
            .frames
            .first()
            .filter(|top| matches(top, request, sender))
            .ok_or(DenyReason::TraceMismatch)?;
        let mut principal =
            Principal::impersonated(snapshot, user, now, permit.impersonation()).restricted_to(permit.named_org());
        if permit.method().is_none_or(|method| kyc_gated(knobs.kyc_gate, method)) {
            principal.retain_verified(snapshot);
        }
        let run = Self {
            snapshot,
            trace,
            principal,
            org: permit.org(),
            sender,
            coinbase: facts.coinbase,
            past: PastOwner {
                age: permit.age_at(facts.number),
                time: facts.time,
                number: facts.number,
            },
            pending_contracts: None,
            at: (u64::MAX, 0),
            side: BTreeSet::new(),
            class_overrides: HashMap::new(),
            knobs,
            created: created(&trace.frames),
            forwarding_proxies: forwarding_proxies(&trace.frames),
            delegations: delegations(request)?,
            grants_within_org: knobs.toggle(snapshot, SystemToggle::IntraOrgGrantTracing, now),
            url_contracts: permit.limits.url.contracts.clone(),
            current_check: Cell::new(None),
        };
        Ok((run, top))
    }

    /// All checks that the plan of the permit requires. Returns the wallets in the trace that are not Full.
    fn evaluate_plan(&self, permit: &Permit) -> Result<BTreeSet<Address>, DenyReason> {
        let hidden = self.check_frames_and_touches()?;
        match (permit.plan(), &self.trace.changes) {
            (Plan::Send, Some(changes)) => {
                self.approved_creations()?;
                self.upgrades(changes)?;
            }
            // A send cannot be evaluated without its changes (HD15).
            (Plan::Send, None) => return Err(DenyReason::TracingUnavailable),
            (Plan::Simulate, _) => {}
            (
                Plan::Local
                | Plan::Subscription
                | Plan::Forward
                | Plan::ZeroQuantity
                | Plan::CodeCheck
                | Plan::Untraced
                | Plan::Passthrough,
                _,
            ) => return Err(DenyReason::TraceMismatch),
        }
        Ok(hidden)
    }

    /// The evaluator for a mined transaction, by the rights of its sender (HD2).
    pub(super) fn for_mined(
        snapshot: &'a Snapshot,
        send: &MinedSend<'a>,
        principal: Principal,
        trace: &'a Trace,
        knobs: &'a PolicySettings,
    ) -> Self {
        let now = principal.now;
        let side = super::mined::side(send, &principal);
        Self {
            snapshot,
            trace,
            principal,
            org: Some(send.org),
            sender: send.sender,
            coinbase: send.coinbase,
            past: PastOwner::PRESENT,
            pending_contracts: Some(send.lately),
            at: send.at,
            side,
            class_overrides: HashMap::new(),
            knobs,
            created: created(&trace.frames),
            forwarding_proxies: forwarding_proxies(&trace.frames),
            delegations: send.delegations.clone(),
            grants_within_org: knobs.toggle(snapshot, SystemToggle::IntraOrgGrantTracing, now),
            url_contracts: None,
            current_check: Cell::new(None),
        }
    }

    /// Checks every frame, every touch, and their combination (HD6).
    ///
    /// # Errors
    /// The reason of the first check that fails.
    pub(super) fn evaluate(&self) -> Result<(), DenyReason> {
        self.check_frames_and_touches().map(drop)
    }

    /// Like [`Self::evaluate`]. Returns the wallets in the trace that are not Full.
    fn check_frames_and_touches(&self) -> Result<BTreeSet<Address>, DenyReason> {
        // Nodes need not list the sender among the touched accounts. A call without sender runs from the zero address,
        // which is public.
        if self.is_closed(self.sender) && !is_public(self.sender) {
            return Err(DenyReason::ContractNotPermitted);
        }
        let mut state = TraceState::default();
        self.check_frames(&mut state)?;
        self.check_touches(&mut state)?;
        self.current_check.set(None);
        let has_hidden_wallets = !state.wallets.is_empty()
            || (state.hidden_beneficiary && self.may_ask_for_beneficiary(state.executed.iter().copied()));
        if (has_hidden_wallets || state.entered_without_access) && self.probes(&state.executed) {
            // HD29: code may not query a hidden wallet, or a contract that the caller entered without access to it.
            return Err(if has_hidden_wallets {
                DenyReason::Unregistered
            } else {
                DenyReason::ContractNotPermitted
            });
        }
        Ok(state.wallets)
    }

    /// The code of an address before the execution. Nodes leave out empty accounts, so a missing account has none.
    pub(super) fn code(&self, address: Address) -> &'a [u8] {
        self.trace.touched.get(&address).map_or(&[], |account| &account.code)
    }

    /// The addresses whose code runs when `address` is entered: its own, and those that it delegates to, from before
    /// the transaction or by it (HD15).
    pub(super) fn runs_at(&self, address: Address) -> impl Iterator<Item = Address> {
        let new_delegates = self
            .delegations
            .iter()
            .filter(move |(wallet, _)| *wallet == address)
            .map(|(_, delegate)| *delegate);
        std::iter::once(address)
            .chain(delegation(self.code(address)))
            .chain(new_delegates)
    }

    /// Whether the address is shared infrastructure with its pinned code (X6).
    pub(super) fn shared(&self, address: Address) -> bool {
        self.snapshot
            .shared(address)
            .is_some_and(|shared| shared.pin.is_none_or(|pin| pin.is_code(self.code(address))))
    }

    /// The reason for an address that no row of X6 admits: `CodehashMismatch` for a shared address, whose tag is void
    /// because its code is not the pinned code (D3).
    fn refusal(&self, address: Address, otherwise: DenyReason) -> DenyReason {
        if self.snapshot.is_tagged_shared(address) {
            DenyReason::CodehashMismatch
        } else {
            otherwise
        }
    }

    /// HD9: whether the frame is a shared proxy that runs its pinned implementation. The proxy must run in its own
    /// context, so that its own code and storage determine the implementation.
    fn runs_implementation(&self, frame: &Frame, parent: Option<&Frame>, address: Address) -> bool {
        let Some(proxy) = parent else { return false };
        let in_own_context = matches!(proxy.kind, FrameKind::Call | FrameKind::StaticCall);
        let pin: Option<CodePin> = proxy
            .to
            .and_then(|to| self.snapshot.shared(to))
            .and_then(|shared| shared.pin);
        frame.kind == FrameKind::DelegateCall
            && in_own_context
            && Some(frame.from) == proxy.to
            && pin.is_some_and(|pin| pin.is_code(self.code(frame.from)) && pin.is_implementation(self.code(address)))
    }

    /// Whether `delegate` may run in the context of `wallet`: callers may delegate their own wallets to shared
    /// infrastructure whose code is pinned (W1).
    fn delegates_own(&self, wallet: Address, delegate: Address) -> bool {
        let is_own = wallet == self.sender || self.principal.owns(self.snapshot, wallet);
        let pin = self.snapshot.shared(delegate).and_then(|shared| shared.pin);
        is_own && pin.is_some_and(|pin| pin.is_code(self.code(delegate)))
    }

    /// Whether the address is closed to the caller (HD28).
    fn is_closed(&self, address: Address) -> bool {
        self.principal.is_closed(self.snapshot, address)
    }

    fn classify(&self, address: Address) -> AddressClass<'a> {
        if let Some(class) = self.class_overrides.get(&address) {
            return *class;
        }
        if self.is_closed(address) {
            // Executions may still enter a closed public address, but its balance must not be read.
            return if is_public(address) {
                AddressClass::Wallet
            } else {
                AddressClass::Quarantined
            };
        }
        if self.shared(address) {
            return AddressClass::Shared;
        }
        if let Some(contract) = self.snapshot.contract(address) {
            return match self.principal.rights_in(contract.org) {
                Some(_) => AddressClass::OwnOrg(contract),
                None => AddressClass::ForeignOrg,
            };
        }
        if is_public(address) {
            return AddressClass::Public;
        }
        let code = self.code(address);
        if let Some(retired) = self.snapshot.retired(address) {
            // HD27: nobody has access to it. Its organization may deploy there again if the code is gone.
            let is_redeployed = code.is_empty() && self.created.contains(&address) && Some(retired.org) == self.org;
            return if is_redeployed {
                AddressClass::Created
            } else {
                AddressClass::ForeignOrg
            };
        }
        // An EIP-7702 wallet is a wallet; its delegate is classified separately (HD15).
        let is_wallet = code.is_empty() || delegation(code).is_some();
        let is_own_org = |org: &OrgId| self.principal.rights_in(*org).is_some();
        if !is_wallet
            && self
                .pending_contracts
                .and_then(|pending| pending.get(&address))
                .is_some_and(is_own_org)
        {
            return AddressClass::Created;
        }
        if !is_wallet {
            return if address == self.sender {
                AddressClass::Own
            } else {
                AddressClass::UnregisteredCode
            };
        }
        if self.created.contains(&address) {
            return AddressClass::Created;
        }
        let is_own = address == self.sender
            || self.principal.owns(self.snapshot, address)
            || !target_status(self.snapshot, &self.principal, address, self.knobs)
                .reserved_in
                .is_empty();
        if is_own {
            AddressClass::Own
        } else {
            AddressClass::Wallet
        }
    }

    /// Checks every frame, in order.
    fn check_frames(&self, state: &mut TraceState<'a>) -> Result<(), DenyReason> {
        // For each frame, the context of its child frames.
        let mut contexts: Vec<FrameContext> = Vec::with_capacity(self.trace.frames.len());
        for (index, frame) in self.trace.frames.iter().enumerate() {
            self.current_check.set(Some((Some(index), frame.to)));
            let parent = frame.parent.and_then(|parent| self.trace.frames.get(parent));
            let context = frame
                .parent
                .and_then(|parent| contexts.get(parent))
                .copied()
                .unwrap_or_default();
            let child_context = match frame.kind {
                FrameKind::Create | FrameKind::Create2 => {
                    self.check_creation(state, frame, parent)?;
                    FrameContext {
                        authored: true,
                        router: None,
                    }
                }
                // The code of the beneficiary of a self-destruct does not run.
                FrameKind::SelfDestruct => {
                    self.check_touch(state, frame.to.ok_or(DenyReason::TraceMismatch)?)?;
                    FrameContext::default()
                }
                FrameKind::Call | FrameKind::StaticCall | FrameKind::DelegateCall | FrameKind::CallCode => {
                    self.check_execution(state, frame, parent, context)?
                }
            };
            contexts.push(child_context);
        }
        Ok(())
    }

    /// X7: a creation needs the deploy claim in the organization that will own the contract, and in the organizations
    /// that own the creating contracts (HD29). It must not be at an address of another organization.
    fn check_creation(
        &self,
        state: &mut TraceState<'a>,
        frame: &Frame,
        parent: Option<&Frame>,
    ) -> Result<(), DenyReason> {
        let may_deploy = |org: OrgId| {
            self.principal
                .rights_in(org)
                .is_some_and(|rights| rights.permissions.claims.has(Claim::Deploy))
        };
        let factories = [Some(frame.from), parent.and_then(|parent| parent.to)]
            .into_iter()
            .flatten();
        let mut owners = factories.filter_map(|factory| match self.classify(factory) {
            AddressClass::OwnOrg(contract) => Some(contract.org),
            AddressClass::Public
            | AddressClass::Own
            | AddressClass::Shared
            | AddressClass::Created
            | AddressClass::ForeignOrg
            | AddressClass::Wallet
            | AddressClass::UnregisteredCode
            | AddressClass::Quarantined => None,
        });
        if !self.org.is_some_and(may_deploy) || !owners.all(may_deploy) {
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
        self.check_touch(state, address)
    }

    /// Checks a frame that runs code: that of its target and, if the target is a delegated wallet, of its delegate
    /// (HD15). Returns the context of the child frames.
    fn check_execution(
        &self,
        state: &mut TraceState<'a>,
        frame: &Frame,
        parent: Option<&Frame>,
        context: FrameContext,
    ) -> Result<FrameContext, DenyReason> {
        let to = frame.to.ok_or(DenyReason::TraceMismatch)?;
        let mut child_context = context;
        for address in self.runs_at(to) {
            state.executed.insert(address);
            if self.runs_implementation(frame, parent, address) {
                state.implementations.insert(address);
                continue;
            }
            // Shared code may be called, but must not run in the context of another account (X6).
            let in_other_context = address != to || matches!(frame.kind, FrameKind::DelegateCall | FrameKind::CallCode);
            if in_other_context && self.shared(address) && !(address != to && self.delegates_own(to, address)) {
                return Err(DenyReason::DelegateSharedInfra);
            }
            let class = self.admit(state, address)?;
            // The code of another user's delegated wallet can return the wallet's balance and slots to its caller.
            if address == to
                && parent.is_some()
                && matches!(class, AddressClass::Wallet)
                && delegation(self.code(to)).is_some()
            {
                return Err(DenyReason::ContractNotPermitted);
            }
            let authored = match class {
                AddressClass::Created => true,
                AddressClass::OwnOrg(contract) => {
                    // Delegated code runs on its caller's state, so it is not a call of this contract.
                    if matches!(frame.kind, FrameKind::Call | FrameKind::StaticCall) && address == to {
                        self.check_url_contract(address)?;
                    }
                    self.check_grant_rules(state, contract, frame, parent, context)?;
                    // A router is trusted for its own checks, which read its own storage.
                    if contract.trusted_router && !in_other_context {
                        child_context.router = Some(contract.org);
                    }
                    contract.deployer == Some(self.principal.user)
                }
                AddressClass::Own => !self.code(address).is_empty(),
                // Shared infrastructure in the top frame executes the caller's input, so the caller chose its calls
                // (T1).
                AddressClass::Shared => parent.is_none(),
                AddressClass::Public
                | AddressClass::ForeignOrg
                | AddressClass::Wallet
                | AddressClass::UnregisteredCode
                | AddressClass::Quarantined => false,
            };
            if authored {
                child_context = FrameContext {
                    authored: true,
                    router: None,
                };
            }
        }
        Ok(child_context)
    }

    /// Checks every touched account, whether a frame entered it or not (X5).
    fn check_touches(&self, state: &mut TraceState<'a>) -> Result<(), DenyReason> {
        self.trace.touched.keys().try_for_each(|address| {
            self.current_check.set(Some((None, Some(*address))));
            if state.implementations.contains(address) {
                Ok(())
            } else if state.executed.contains(address) || self.created.contains(address) {
                self.admit(state, *address).map(drop)
            } else if *address == self.coinbase {
                state.hidden_beneficiary |= !self.may_ask_about(self.classify(*address));
                Ok(())
            } else {
                self.check_touch(state, *address)
            }
        })
    }

    /// HD29: touching an account needs the right to read its balance and code directly.
    fn check_touch(&self, state: &mut TraceState<'a>, address: Address) -> Result<(), DenyReason> {
        let class = self.admit(state, address)?;
        if matches!(class, AddressClass::OwnOrg(_)) {
            self.check_url_contract(address)?;
        }
        let is_hidden_wallet = matches!(class, AddressClass::Wallet);
        if is_hidden_wallet || address == self.sender || self.may_ask_about(class) {
            Ok(())
        } else {
            Err(DenyReason::ContractNotPermitted)
        }
    }

    /// HD17: through a personal URL only the listed contracts may be accessed, not others that they call.
    fn check_url_contract(&self, address: Address) -> Result<(), DenyReason> {
        let is_in_scope = self
            .url_contracts
            .as_ref()
            .is_none_or(|contracts| contracts.contains(&address));
        if is_in_scope {
            Ok(())
        } else {
            Err(DenyReason::ContractNotPermitted)
        }
    }

    /// Whether the caller may read balance and code directly.
    fn may_ask_about(&self, class: AddressClass<'a>) -> bool {
        match class {
            AddressClass::Public | AddressClass::Own | AddressClass::Shared | AddressClass::Created => true,
            AddressClass::OwnOrg(contract) => {
                contract_access(self.snapshot, &self.principal, contract, self.knobs).is_some()
            }
            AddressClass::ForeignOrg
            | AddressClass::Wallet
            | AddressClass::UnregisteredCode
            | AddressClass::Quarantined => false,
        }
    }

    /// Admits an address by the rows of X6 that frames and touches have in common. `check_execution` refuses addresses
    /// that may not be delegated to, `check_touch` those that may only be entered.
    fn admit(&self, state: &mut TraceState<'a>, address: Address) -> Result<AddressClass<'a>, DenyReason> {
        if let Some(class) = state.admitted.get(&address) {
            return Ok(*class);
        }
        let class = self.classify(address);
        match class {
            AddressClass::OwnOrg(contract) => self.past.of_contract(&self.principal, contract)?,
            AddressClass::Own => self.past.of_account(self.snapshot, &self.principal, address)?,
            AddressClass::Public | AddressClass::Shared => self.past.of_utility(&self.principal)?,
            AddressClass::Created => {}
            AddressClass::ForeignOrg => return Err(self.refusal(address, DenyReason::CrossOrg)),
            AddressClass::UnregisteredCode => return Err(self.refusal(address, DenyReason::Unregistered)),
            AddressClass::Quarantined => return Err(DenyReason::ContractNotPermitted),
            AddressClass::Wallet => {
                self.past.of_utility(&self.principal)?;
                state.wallets.insert(address);
            }
        }
        state.admitted.insert(address, class);
        Ok(class)
    }

    /// Checks the grants for a frame. A grant is needed in the top frame, in another of the caller's organizations
    /// (X6), below code that the caller authored, and everywhere while `intra-org-grant-tracing` is on (X8). If grants
    /// restrict functions, the frame's own input must be permitted, unless a trusted router of the contract's
    /// organization forwarded the call (F5, HD4).
    fn check_grant_rules(
        &self,
        state: &mut TraceState<'a>,
        contract: &'a Arc<Contract>,
        frame: &Frame,
        parent: Option<&Frame>,
        context: FrameContext,
    ) -> Result<(), DenyReason> {
        self.check_proxy_rules(contract, frame, parent, context)?;
        // A proxy that forwards its input unchanged: the check of the proxy's own frame covers this one.
        let is_forwarded = frame.kind == FrameKind::DelegateCall
            && !context.authored
            && parent.is_some_and(|parent| parent.input == frame.input);
        let Some(ContractAccess { functions, .. }) =
            contract_access(self.snapshot, &self.principal, contract, self.knobs)
        else {
            let is_toggled = self.grants_within_org && !is_forwarded;
            let needs_grant = parent.is_none() || context.authored || is_toggled || Some(contract.org) != self.org;
            state.entered_without_access = true;
            return if needs_grant {
                Err(DenyReason::ContractNotPermitted)
            } else {
                Ok(())
            };
        };
        if is_forwarded || context.router == Some(contract.org) {
            return Ok(());
        }
        functions.permit(self.snapshot, &self.principal, contract, &frame.input)
    }

    /// F5, HD4: code that a proxy forwards its input to, and that runs again on the proxy's state with other input, is
    /// a call of the proxy and needs its grants. Libraries, to which the proxy never forwarded its input, are exempt.
    fn check_proxy_rules(
        &self,
        code: &Contract,
        frame: &Frame,
        parent: Option<&Frame>,
        context: FrameContext,
    ) -> Result<(), DenyReason> {
        let in_other_context = matches!(frame.kind, FrameKind::DelegateCall | FrameKind::CallCode);
        let is_forwarded = parent.is_some_and(|parent| parent.input == frame.input);
        if !in_other_context || is_forwarded || !self.forwarding_proxies.contains(&(frame.from, code.address)) {
            return Ok(());
        }
        let Some(proxy) = self.snapshot.contract(frame.from) else {
            return Ok(());
        };
        let Some(ContractAccess { functions, .. }) = contract_access(self.snapshot, &self.principal, proxy, self.knobs)
        else {
            return Ok(());
        };
        if context.router == Some(proxy.org) {
            Ok(())
        } else {
            functions.permit(self.snapshot, &self.principal, proxy, &frame.input)
        }
    }
}
