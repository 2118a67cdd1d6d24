//! Evaluates a trace: every frame and every touched account of one execution (spec/20 §11 X5-X8; HD4, HD6, HD14, HD15,
//! HD29). [`super::upgrades`] evaluates upgrades.
//!
//! `frames` walks the frames and `touches` the touched accounts; both admit every address by its class (`class`) and
//! check grants (`grants`). `verdict` is the result.
//!
//! Invariants: an execution is permitted only if a row of X6 admits every address in it; a caller never runs or touches
//! code that none of the caller's organizations owns, except shared code. A touch needs the rights of the direct
//! request for that address. The rights for a contract are those in its own organization, never those in the
//! organization that the request was resolved to.

mod class;
mod frames;
mod grants;
mod touches;
mod verdict;

pub(super) use class::AddressClass;
pub use verdict::{DeniedFrame, TraceVerdict, denied_frame, evaluate_trace};

use super::{
    decide::kyc_gated,
    history::PastOwner,
    mined::MinedSend,
    permit::{Permit, Plan},
    resource::Signed,
};
use crate::{
    principal::{Principal, is_public},
    settings::PolicySettings,
    snapshot::{Snapshot, SystemToggle},
};
use grants::forwarding_proxies;
use gw_evm::{
    Call, CallRequest,
    code::delegation,
    trace::{Frame, FrameKind, Trace},
};
use gw_types::{Address, DenyReason, OrgId, Timestamp};
use std::{
    cell::Cell,
    collections::{BTreeSet, HashMap, HashSet},
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

/// The execution of a permitted call, and its sender. A call without sender runs from the zero address (decision 38).
fn execution_of(permit: &Permit) -> Option<(&CallRequest, Address)> {
    if let Call::Simulate(simulation) = permit.call() {
        return Some((&simulation.request, simulation.request.from.unwrap_or(Address::ZERO)));
    }
    Signed::from_call(permit.call()).map(|signed| (signed.request, signed.sender))
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
    pub(super) policy_settings: &'a PolicySettings,
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
        policy_settings: &'a PolicySettings,
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
        if permit
            .method()
            .is_none_or(|method| kyc_gated(policy_settings.kyc_gate, method))
        {
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
            policy_settings,
            created: created(&trace.frames),
            forwarding_proxies: forwarding_proxies(&trace.frames),
            delegations: delegations(request)?,
            grants_within_org: policy_settings.toggle(snapshot, SystemToggle::IntraOrgGrantTracing, now),
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
        policy_settings: &'a PolicySettings,
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
            policy_settings,
            created: created(&trace.frames),
            forwarding_proxies: forwarding_proxies(&trace.frames),
            delegations: send.delegations.clone(),
            grants_within_org: policy_settings.toggle(snapshot, SystemToggle::IntraOrgGrantTracing, now),
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
}
