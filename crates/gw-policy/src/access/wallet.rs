//! Verification of a contract wallet's signature by calling `isValidSignature` (ERC-1271, spec/10 LK-4, spec/02 HD26).
//!
//! The user chooses the wallet's code, so the call is traced and the trace is evaluated before its outcome counts. It
//! runs from the zero address and by the user's access rights. The user learns one bit, which may depend only on the
//! wallet and on addresses that the user has access to anyway.

use super::trace::TraceFacts;
use crate::{
    principal::{Principal, contract_access, is_public},
    sealed::Sealed,
    settings::PolicySettings,
    snapshot::{CodePin, Snapshot},
};
use gw_evm::{
    CallRequest,
    code::{delegation, probes_accounts},
    trace::{Frame, FrameKind, Trace},
};
use gw_types::{Address, B256, Bytes, OrgId, Timestamp, UserId};

/// Selector of `isValidSignature(bytes32,bytes)`, which is also its return value for a valid signature.
const SELECTOR: [u8; 4] = [0x16, 0x26, 0xba, 0x7e];
/// The gas limit of the call (LK-4).
const GAS: u64 = 200_000;
const WORD: usize = 32;

/// A signature to verify with a contract wallet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalletQuestion {
    /// The wallet.
    pub wallet: Address,
    /// The hash of the signed message.
    pub hash: B256,
    /// The signature, in any format.
    pub signature: Vec<u8>,
}

impl WalletQuestion {
    /// The call to trace. It is sent from the zero address, so that the result does not depend on the user.
    pub fn request(&self) -> CallRequest {
        CallRequest {
            from: Some(Address::ZERO),
            to: Some(self.wallet),
            input: self.input(),
            gas: Some(GAS),
            ..CallRequest::default()
        }
    }

    /// The calldata of `isValidSignature(hash, signature)`.
    fn input(&self) -> Bytes {
        let to_word = |number: usize| {
            let mut word = [0_u8; WORD];
            let bytes = number.to_be_bytes();
            word.iter_mut()
                .rev()
                .zip(bytes.iter().rev())
                .for_each(|(to, from)| *to = *from);
            word
        };
        let mut input = SELECTOR.to_vec();
        input.extend_from_slice(self.hash.as_slice());
        input.extend(to_word(2 * WORD));
        input.extend(to_word(self.signature.len()));
        input.extend(&self.signature);
        let padding = self.signature.len().next_multiple_of(WORD) - self.signature.len();
        input.resize(input.len() + padding, 0);
        input.into()
    }
}

/// The trace of a signature verification.
#[derive(Debug)]
pub struct WalletTrace {
    /// The trace; `None` if the node did not run the call, or if its trace cannot be used.
    pub trace: Option<Sealed<Trace>>,
    /// The block that the call ran on.
    pub facts: TraceFacts,
}

/// The result of a signature verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalletAnswer {
    /// The wallet accepts the signature, and the result depends on nothing that the user may not see.
    Yes {
        /// The organization that the wallet is registered to, if any.
        owner: Option<OrgId>,
    },
    /// Anything else, for any reason.
    No,
    /// The node gave no trace of the call: it proves nothing about the wallet.
    Unknown,
}

/// Evaluates the trace of a signature verification for `user` (HD10, HD26).
///
/// The wallet must be unregistered code, or a registered contract that the user has access to. Every frame and every
/// touched address must be the wallet itself, public, shared infrastructure with its pinned code, a contract the user
/// has access to, or an address of the user. With value, creations or probes of accounts the result is
/// [`WalletAnswer::No`]. Without a trace it is [`WalletAnswer::Unknown`], which links nobody and ends no link.
#[must_use]
pub fn evaluate_wallet_signature(
    snapshot: &Snapshot,
    user: UserId,
    question: &WalletQuestion,
    traced: &WalletTrace,
    now: Timestamp,
    policy_settings: &PolicySettings,
) -> WalletAnswer {
    let has_access = snapshot.user(user).is_some_and(|user| !snapshot.is_excluded(user));
    if !has_access {
        return WalletAnswer::No;
    }
    let Some(trace) = traced.trace.as_ref() else {
        return WalletAnswer::Unknown;
    };
    let principal = Principal::new(snapshot, user, now);
    let run = WalletRun {
        snapshot,
        trace: trace.peek(),
        principal,
        question,
        coinbase: traced.facts.coinbase,
        policy_settings,
    };
    match run.wallet_owner() {
        Some(owner) if run.accepts_signature() && run.is_permitted() => WalletAnswer::Yes { owner },
        Some(_) | None => WalletAnswer::No,
    }
}

struct WalletRun<'a> {
    snapshot: &'a Snapshot,
    trace: &'a Trace,
    principal: Principal,
    question: &'a WalletQuestion,
    coinbase: Address,
    policy_settings: &'a PolicySettings,
}

impl WalletRun<'_> {
    /// Whether the trace is of this verification and the wallet accepted: it returned one word, the selector followed
    /// by zeros.
    fn accepts_signature(&self) -> bool {
        let is_verification = |top: &&Frame| {
            top.kind == FrameKind::Call
                && top.parent.is_none()
                && top.from.is_zero()
                && top.to == Some(self.question.wallet)
                && top.input == self.question.input()
        };
        let result = &self.trace.top;
        let (prefix, padding) = result.output.split_at_checked(SELECTOR.len()).unwrap_or_default();
        self.trace
            .frames
            .first()
            .filter(is_verification)
            .is_some_and(|top| !top.failed)
            && result.error.is_none()
            && result.output.len() == WORD
            && prefix == SELECTOR
            && padding.iter().all(|byte| *byte == 0)
    }

    /// The organization that owns the wallet, or `Some(None)` for an unregistered wallet. `None` if the user may not
    /// verify with this address.
    fn wallet_owner(&self) -> Option<Option<OrgId>> {
        let wallet = self.question.wallet;
        let code = self.code(wallet);
        // An account that delegates to code (EIP-7702) is still a wallet with a key, and is linked by that key (HD15).
        let is_no_contract = code.is_empty() || delegation(code).is_some();
        if is_no_contract || self.snapshot.is_tagged_shared(wallet) || self.snapshot.is_quarantined(wallet) {
            return None;
        }
        if let Some(contract) = self.snapshot.contract(wallet) {
            return self.has_access_to(wallet).then_some(Some(contract.org));
        }
        // HD14, HD27: a contract deployed through the gateway has an owner before and after its registration.
        let has_owner = self.snapshot.owner(wallet).is_some() || !self.snapshot.reservations(wallet).is_empty();
        (!has_owner).then_some(None)
    }

    /// Whether the execution depends only on addresses that the user has access to.
    fn is_permitted(&self) -> bool {
        self.trace.frames.iter().all(|frame| self.may_run(frame))
            && self
                .trace
                .touched
                .keys()
                .all(|address| self.admits(*address) || self.is_implementation(*address))
            && !(self.is_only_coinbase(self.coinbase) && self.probes())
    }

    /// The code an address had before the run.
    fn code(&self, address: Address) -> &[u8] {
        self.trace.touched.get(&address).map_or(&[], |account| &account.code)
    }

    /// Whether the frame may run, by its target and, if the target is a delegated wallet, by its delegate.
    fn may_run(&self, frame: &Frame) -> bool {
        let is_delegated = match frame.kind {
            FrameKind::Call | FrameKind::StaticCall => false,
            FrameKind::DelegateCall | FrameKind::CallCode => true,
            FrameKind::Create | FrameKind::Create2 | FrameKind::SelfDestruct => return false,
        };
        let Some(to) = frame
            .to
            .filter(|to| frame.value.is_zero() && !self.is_only_coinbase(*to))
        else {
            return false;
        };
        let is_pinned_implementation = self.runs_pinned_implementation(frame);
        std::iter::once(to).chain(delegation(self.code(to))).all(|address| {
            (is_pinned_implementation && address == to)
                || (self.admits(address) && (is_delegated || self.may_call(address, &frame.input)))
        })
    }

    /// Whether the frame is a shared proxy that runs its pinned implementation (HD9).
    fn runs_pinned_implementation(&self, frame: &Frame) -> bool {
        let pin: Option<CodePin> = self.snapshot.shared(frame.from).and_then(|shared| shared.pin);
        frame.kind == FrameKind::DelegateCall
            && frame.to.is_some_and(|to| {
                pin.is_some_and(|pin| pin.is_code(self.code(frame.from)) && pin.is_implementation(self.code(to)))
            })
    }

    fn is_implementation(&self, address: Address) -> bool {
        self.trace
            .frames
            .iter()
            .any(|frame| frame.to == Some(address) && self.runs_pinned_implementation(frame))
    }

    /// Whether the user's grants on a contract permit the function and its parameters (HD4). Calls of shared and
    /// unregistered addresses need no grant.
    fn may_call(&self, address: Address, input: &[u8]) -> bool {
        let Some(contract) = self
            .snapshot
            .contract(address)
            .filter(|_| self.snapshot.shared(address).is_none())
        else {
            return true;
        };
        contract_access(self.snapshot, &self.principal, contract, self.policy_settings).is_some_and(|access| {
            access
                .functions
                .permit(self.snapshot, &self.principal, contract, input)
                .is_ok()
        })
    }

    fn has_access_to(&self, address: Address) -> bool {
        let contract = self.snapshot.contract(address);
        contract.is_some_and(|contract| {
            contract_access(self.snapshot, &self.principal, contract, self.policy_settings).is_some()
        })
    }

    /// Whether the user has access to the address, and so may access it through the wallet.
    fn admits(&self, address: Address) -> bool {
        if self.snapshot.is_quarantined(address) {
            return false;
        }
        if let Some(shared) = self.snapshot.shared(address) {
            return shared.pin.is_some_and(|pin| pin.is_code(self.code(address)));
        }
        if is_public(address) {
            return true;
        }
        if self.snapshot.owner(address).is_some() {
            return self.has_access_to(address);
        }
        if self.snapshot.is_tagged_shared(address) || !self.snapshot.reservations(address).is_empty() {
            return false;
        }
        let is_beneficiary = address == self.coinbase && self.code(address).is_empty();
        address == self.question.wallet || is_beneficiary || self.principal.owns(self.snapshot, address)
    }

    /// Whether the address is the block's beneficiary and not otherwise accessible. Every trace lists the beneficiary,
    /// so its presence is no evidence of access.
    fn is_only_coinbase(&self, address: Address) -> bool {
        address == self.coinbase
            && !is_public(address)
            && address != self.question.wallet
            && !self.has_access_to(address)
            && !self.principal.owns(self.snapshot, address)
    }

    /// Whether code that ran can query another account's balance or code hash (HD6).
    fn probes(&self) -> bool {
        let entered = self.trace.frames.iter().filter_map(|frame| frame.to);
        let delegates = entered.clone().filter_map(|address| delegation(self.code(address)));
        entered
            .chain(delegates)
            .any(|address| probes_accounts(self.code(address)))
    }
}
