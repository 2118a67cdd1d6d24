//! The question to a contract wallet whether it takes a signature for its own (ERC-1271, spec/10 LK-4, spec/02 HD26).
//!
//! The code of the wallet is the user's choice, so the question is traced and the trace is judged before its outcome
//! means anything: as a call of nobody, by what the user reaches. The user learns one bit, and no execution that looks
//! at anything else than the wallet and what the user reaches anyway decides it.

use super::{
    target::{Member, is_public, reach},
    trace::TraceFacts,
};
use crate::{
    knobs::Knobs,
    sealed::Sealed,
    snapshot::{CodePin, Snapshot},
};
use gw_evm::{
    CallRequest,
    code::{delegation, probes_accounts},
    trace::{Frame, FrameKind, Trace},
};
use gw_types::{Address, B256, Bytes, OrgId, Timestamp, UserId};

/// `isValidSignature(bytes32,bytes)`: called, and answered as a yes.
const SELECTOR: [u8; 4] = [0x16, 0x26, 0xba, 0x7e];
/// The gas limit of the question (LK-4).
const GAS: u64 = 200_000;
const WORD: usize = 32;

/// A question to a contract wallet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WalletQuestion {
    /// The wallet.
    pub wallet: Address,
    /// The hash of what was signed.
    pub hash: B256,
    /// The signature, whatever its form.
    pub signature: Vec<u8>,
}

impl WalletQuestion {
    /// The call to trace. Its sender is nobody: the answer of a wallet must not depend on who asks.
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
        let number = |number: usize| {
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
        input.extend(number(2 * WORD));
        input.extend(number(self.signature.len()));
        input.extend(&self.signature);
        let padding = self.signature.len().next_multiple_of(WORD) - self.signature.len();
        input.resize(input.len() + padding, 0);
        input.into()
    }
}

/// What the node made of a question.
#[derive(Debug)]
pub struct WalletTrace {
    /// The trace; `None` if the node would not run it, or if its trace cannot be used.
    pub trace: Option<Sealed<Trace>>,
    /// The block it ran on.
    pub facts: TraceFacts,
}

/// What the user is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalletAnswer {
    /// The wallet takes the signature for its own, and nothing the user may not see had a part in that.
    Yes {
        /// The organization whose registered contract the wallet is, if it is one.
        owner: Option<OrgId>,
    },
    /// Anything else, whatever the reason.
    No,
}

/// Judges a question that `user` asks (HD10, HD26).
///
/// The wallet must be code that nobody registered, or a registered contract that the user reaches. Every frame and every
/// touched address must be the wallet itself, public, shared infrastructure with its pinned code, a contract the user
/// reaches, or an address of the user. Value, creations and probes of accounts make it a no.
#[must_use]
pub fn judge_wallet_signature(
    snapshot: &Snapshot,
    user: UserId,
    question: &WalletQuestion,
    traced: &WalletTrace,
    now: Timestamp,
    knobs: &Knobs,
) -> WalletAnswer {
    let known = snapshot.user(user).is_some_and(|user| !snapshot.shuts_out(user));
    let Some(trace) = traced.trace.as_ref().filter(|_| known) else {
        return WalletAnswer::No;
    };
    let member = Member::new(snapshot, user, now);
    let run = WalletRun {
        snapshot,
        trace: trace.peek(),
        member,
        question,
        coinbase: traced.facts.coinbase,
        knobs,
    };
    match run.wallet_owner() {
        Some(owner) if run.is_yes() && run.is_harmless() => WalletAnswer::Yes { owner },
        Some(_) | None => WalletAnswer::No,
    }
}

struct WalletRun<'a> {
    snapshot: &'a Snapshot,
    trace: &'a Trace,
    member: Member,
    question: &'a WalletQuestion,
    coinbase: Address,
    knobs: &'a Knobs,
}

impl WalletRun<'_> {
    /// Whether the execution is the one of the question, and ended with a yes: one word, the selector at its left.
    fn is_yes(&self) -> bool {
        let asked = |top: &&Frame| {
            top.kind == FrameKind::Call
                && top.parent.is_none()
                && top.from.is_zero()
                && top.to == Some(self.question.wallet)
                && top.input == self.question.input()
        };
        let end = &self.trace.top;
        let (said, rest) = end.output.split_at_checked(SELECTOR.len()).unwrap_or_default();
        self.trace.frames.first().filter(asked).is_some_and(|top| !top.failed)
            && end.error.is_none()
            && end.output.len() == WORD
            && said == SELECTOR
            && rest.iter().all(|byte| *byte == 0)
    }

    /// The organization that owns the wallet, if it is one the user may ask; `None` if it is not.
    fn wallet_owner(&self) -> Option<Option<OrgId>> {
        let wallet = self.question.wallet;
        let code = self.code(wallet);
        // An account that lent its address to a contract's code (EIP-7702) stays an account: its key speaks for it (HD15).
        let no_contract = code.is_empty() || delegation(code).is_some();
        if no_contract || self.snapshot.is_tagged_shared(wallet) || self.snapshot.is_quarantined(wallet) {
            return None;
        }
        if let Some(contract) = self.snapshot.contract(wallet) {
            return self.reaches(wallet).then_some(Some(contract.org));
        }
        // HD14, HD27: what was sent through the gateway is somebody's before and after it is registered.
        let somebodys = self.snapshot.owner(wallet).is_some() || !self.snapshot.reservations(wallet).is_empty();
        (!somebodys).then_some(None)
    }

    fn is_harmless(&self) -> bool {
        self.trace.frames.iter().all(|frame| self.runs(frame))
            && self
                .trace
                .touched
                .keys()
                .all(|address| self.admits(*address) || self.is_implementation(*address))
            && !(self.knows_coinbase_only_as_such() && self.probes())
    }

    /// The code an address had before the run.
    fn code(&self, address: Address) -> &[u8] {
        self.trace.touched.get(&address).map_or(&[], |account| &account.code)
    }

    /// Whether the frame may run: at its target, and for a wallet that delegates at its delegate.
    fn runs(&self, frame: &Frame) -> bool {
        let borrowed = match frame.kind {
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
        let implements = self.implements(frame);
        std::iter::once(to).chain(delegation(self.code(to))).all(|address| {
            (implements && address == to)
                || (self.admits(address) && (borrowed || self.may_call(address, &frame.input)))
        })
    }

    /// Whether the frame is a shared proxy that runs its pinned implementation (HD9).
    fn implements(&self, frame: &Frame) -> bool {
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
            .any(|frame| frame.to == Some(address) && self.implements(frame))
    }

    /// Functions and parameters, where the user's grants on a contract restrict them (HD4).
    fn may_call(&self, address: Address, input: &[u8]) -> bool {
        let Some(contract) = self
            .snapshot
            .contract(address)
            .filter(|_| self.snapshot.shared(address).is_none())
        else {
            return true;
        };
        reach(self.snapshot, &self.member, contract, self.knobs).is_some_and(|reach| {
            reach
                .functions
                .permit(self.snapshot, &self.member, contract, input)
                .is_ok()
        })
    }

    fn reaches(&self, address: Address) -> bool {
        let contract = self.snapshot.contract(address);
        contract.is_some_and(|contract| reach(self.snapshot, &self.member, contract, self.knobs).is_some())
    }

    /// Whether the user may look at the address: directly, and so through the wallet.
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
            return self.reaches(address);
        }
        if self.snapshot.is_tagged_shared(address) || !self.snapshot.reservations(address).is_empty() {
            return false;
        }
        let is_beneficiary = address == self.coinbase && self.code(address).is_empty();
        address == self.question.wallet || is_beneficiary || self.member.owns(self.snapshot, address)
    }

    /// Every trace lists the beneficiary of the block, so that it occurs tells nothing.
    fn is_only_coinbase(&self, address: Address) -> bool {
        address == self.coinbase
            && !is_public(address)
            && address != self.question.wallet
            && !self.reaches(address)
            && !self.member.owns(self.snapshot, address)
    }

    fn knows_coinbase_only_as_such(&self) -> bool {
        self.is_only_coinbase(self.coinbase)
    }

    /// Whether code that ran can ask for another account's balance or code hash (HD6).
    fn probes(&self) -> bool {
        let entered = self.trace.frames.iter().filter_map(|frame| frame.to);
        let delegates = entered.clone().filter_map(|address| delegation(self.code(address)));
        entered
            .chain(delegates)
            .any(|address| probes_accounts(self.code(address)))
    }
}
