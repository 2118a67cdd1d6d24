//! What a transaction moves (spec/60 section 6): native value, tokens and allowances, and the parties to be screened.
//!
//! # Evidence
//!
//! The runs of the transaction, which access control traced, are the evidence. In a run whose top frame succeeded,
//! these count:
//!
//! - the value of every frame that transfers value and was not undone,
//! - the logs of the token standards, which undone frames do not have,
//! - the state diff of native balances: an account that gained more than the frames show gained the difference from an
//!   unknown payer. The receivers of fees are left out, since a fee is no transfer,
//! - the calldata of the top-level call, and of inner calls of [`Transaction::balance_tokens`]: what it orders beyond
//!   the logs counts too, so that a token without events is seen. Order and log of one transfer count once,
//! - the storage of [`Transaction::balance_tokens`], see [`mod@storage`]. Where it shows balances, it replaces the
//!   orders for a recipient that it or a log shows: a token that keeps a fee moves less than was ordered.
//!
//! Where two pieces of evidence differ, the larger amount counts. Only what was observed, frames and logs, lowers what
//! an account received in all; orders and differences only raise it.
//!
//! # Without a successful run
//!
//! If there is no run, or the top frame of a run failed, the run says nothing about what the transaction will do. Then
//! the calldata counts instead: the top-level call and everything that its containers hold. In a successful run,
//! containers only name parties to be screened, since their calls are frames of the run; they are never valued twice.
//! Frames that were undone below a successful top frame have no effect (CO-23).
//!
//! # Limits
//!
//! Containers that nest deeper than [`MAX_CONTAINER_DEPTH`] or hold more than [`MAX_CONTAINED_CALLS`] calls cannot be
//! screened completely: [`EffectsError`], also in a successful run. So do more than [`MAX_EFFECTS`] effects, and a
//! storage search beyond [`MAX_SLOT_HASHES`].

mod calls;
mod containers;
mod events;
mod native;
mod parties;
mod run;
pub mod storage;
mod words;

pub use containers::{MAX_CONTAINED_CALLS, MAX_CONTAINER_DEPTH};
pub use parties::{PartyRole, ScreenedParty};
pub use storage::MAX_SLOT_HASHES;

use crate::token::{Asset, Token};
use alloy_primitives::map::AddressSet;
use gw_evm::{CallRequest, ChainRules, trace::Trace};
use gw_types::{Address, U256};
use std::collections::BTreeMap;

/// The most effects of one transaction.
pub const MAX_EFFECTS: usize = 65_536;

/// The kind of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EffectKind {
    /// Native value.
    Native,
    /// Fungible tokens.
    Erc20,
    /// A collectible; its amount is one.
    Erc721,
    /// An amount of one id.
    Erc1155,
    /// The right of a spender (`to`) to move tokens of an owner (`from`). It has no amount.
    Approval,
}

/// What shows an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Evidence {
    /// A frame that transfers native value.
    Frame,
    /// An event.
    Log,
    /// Calldata that orders it. The amount is what exceeds the logs.
    Calldata,
    /// A native balance of the state diff. The amount is what exceeds the frames; `from` is the sender, because the
    /// payer is unknown.
    BalanceDiff,
    /// Storage of the token. The amount is what exceeds the logs; `from` is the sender, because the payer is unknown.
    StorageDiff,
}

/// One thing that a transaction would cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Effect {
    /// Its kind.
    pub kind: EffectKind,
    /// What moves.
    pub token: Token,
    /// The id in a contract with several.
    pub id: Option<U256>,
    /// The payer or owner; the zero address for a mint.
    pub from: Address,
    /// The recipient or spender; the zero address for a burn.
    pub to: Address,
    /// In the smallest unit. `None` for an approval, and for a transfer whose log is malformed.
    pub amount: Option<U256>,
    /// What shows it.
    pub evidence: Evidence,
}

/// A transaction whose effects are wanted.
#[derive(Clone, Copy, Debug)]
pub struct Transaction<'a> {
    /// The account that signs it.
    pub sender: Address,
    /// The nonce with which it will run.
    pub nonce: u64,
    /// Its fields.
    pub request: &'a CallRequest,
    /// The rules of the chain.
    pub chain: ChainRules,
    /// Its simulated runs. Empty if there is none: a plain payment to an address without code needs none (CO-23).
    pub runs: &'a [&'a Trace],
    /// Accounts that receive the fees of the block. Their balances rise without a transfer.
    pub fee_recipients: &'a [Address],
    /// The contracts whose storage is evidence: tokens that the organization gave a price.
    pub balance_tokens: &'a AddressSet,
}

/// What a transaction moves, and the parties to be screened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effects {
    sender: Address,
    target: Option<Address>,
    runs: Vec<Vec<Effect>>,
    parties: Vec<ScreenedParty>,
}

/// Why the effects of a transaction cannot be told. The transaction is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum EffectsError {
    /// Beyond [`MAX_CONTAINER_DEPTH`].
    #[error("calls are nested too deep")]
    ContainersTooDeep,
    /// Beyond [`MAX_CONTAINED_CALLS`].
    #[error("too many calls in one transaction")]
    TooManyContainedCalls,
    /// Beyond [`MAX_EFFECTS`].
    #[error("too many transfers in one transaction")]
    TooManyEffects,
    /// Beyond [`MAX_SLOT_HASHES`].
    #[error("too many holders in one transaction")]
    TooManyHolders,
}

impl Effects {
    /// The effects of a transaction.
    ///
    /// # Errors
    /// [`EffectsError`] if a limit is exceeded.
    pub fn new(transaction: &Transaction<'_>) -> Result<Self, EffectsError> {
        run::effects(transaction)
    }

    /// Effects that are already known, one list for each run. `parties` are screened besides the parties of the
    /// effects.
    pub fn from_parts(
        sender: Address,
        target: Option<Address>,
        runs: Vec<Vec<Effect>>,
        parties: impl IntoIterator<Item = ScreenedParty>,
    ) -> Self {
        let target_party = target.map(|address| ScreenedParty {
            role: PartyRole::CalledContract,
            address,
        });
        let parties = parties::ordered(sender, runs.iter().flatten(), target_party.into_iter().chain(parties));
        Self {
            sender,
            target,
            runs,
            parties,
        }
    }

    /// The account that signs the transaction.
    pub const fn sender(&self) -> Address {
        self.sender
    }

    /// The called account or created contract.
    pub const fn target(&self) -> Option<Address> {
        self.target
    }

    /// The effects of each run.
    pub fn runs(&self) -> &[Vec<Effect>] {
        &self.runs
    }

    /// Everybody who is screened, in the order of screening (CO-33). Each address occurs once.
    pub fn parties(&self) -> &[ScreenedParty] {
        &self.parties
    }

    /// Whether no run has an effect.
    pub fn is_empty(&self) -> bool {
        self.runs.iter().all(Vec::is_empty)
    }

    /// The effects of all runs: those of the first, and those that a later run has more often.
    pub fn distinct_effects(&self) -> Vec<Effect> {
        // The runs of most transactions are equal.
        if let [first, further @ ..] = self.runs.as_slice()
            && further.iter().all(|run| run == first)
        {
            return first.clone();
        }
        let mut listed: Vec<Effect> = Vec::new();
        let mut counts: BTreeMap<Effect, usize> = BTreeMap::new();
        for run in &self.runs {
            let mut in_run: BTreeMap<Effect, usize> = BTreeMap::new();
            for effect in run {
                let seen = in_run.entry(*effect).or_default();
                *seen = seen.saturating_add(1);
                let count = counts.entry(*effect).or_default();
                if *seen > *count {
                    *count = *seen;
                    listed.push(*effect);
                }
            }
        }
        listed
    }
}

impl Effect {
    pub(crate) const fn approval(contract: Address, owner: Address, spender: Address, evidence: Evidence) -> Self {
        Self {
            kind: EffectKind::Approval,
            token: Token::Contract(contract),
            id: None,
            from: owner,
            to: spender,
            amount: None,
            evidence,
        }
    }

    /// What moves.
    pub const fn asset(&self) -> Asset {
        Asset {
            token: self.token,
            id: self.id,
        }
    }

    /// Whether it moves something; an approval does not.
    pub const fn is_transfer(&self) -> bool {
        match self.kind {
            EffectKind::Native | EffectKind::Erc20 | EffectKind::Erc721 | EffectKind::Erc1155 => true,
            EffectKind::Approval => false,
        }
    }
}

impl Evidence {
    /// Whether the effect was observed in a run. Only such an effect lowers what its payer received.
    pub const fn is_observed(self) -> bool {
        match self {
            Self::Frame | Self::Log => true,
            Self::Calldata | Self::BalanceDiff | Self::StorageDiff => false,
        }
    }
}
