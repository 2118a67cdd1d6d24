//! Builders: calldata, runs and facts. A test states what matters to it.

pub(crate) mod calldata;
pub(crate) mod facts;
pub(crate) mod run;

use gw_evm::{CallRequest, ChainRules, trace::Trace};
use gw_transfer_rules::{
    Token,
    effects::{Effect, EffectKind, Effects, EffectsError, Evidence, Transaction},
};
use gw_types::{Address, Bytes, U256};

pub(crate) const CHAIN: ChainRules = ChainRules { chain_id: 1337 };

/// The sender of every transaction.
pub(crate) const SENDER: Address = Address::repeat_byte(0x51);
/// Recipients.
pub(crate) const ALICE: Address = Address::repeat_byte(0xa1);
pub(crate) const BOB: Address = Address::repeat_byte(0xb0);
/// A contract between sender and recipient.
pub(crate) const ROUTER: Address = Address::repeat_byte(0x70);
/// Token contracts.
pub(crate) const COIN: Address = Address::repeat_byte(0xc0);
pub(crate) const NFT: Address = Address::repeat_byte(0xef);

pub(crate) fn units(amount: u64) -> U256 {
    U256::from(amount)
}

/// A transaction with its runs.
pub(crate) struct Sent {
    pub(crate) request: CallRequest,
    pub(crate) nonce: u64,
    pub(crate) runs: Vec<Trace>,
    pub(crate) tokens: Vec<Address>,
    pub(crate) fee_recipients: Vec<Address>,
}

impl Sent {
    /// A call of `to` with this value and calldata.
    pub(crate) fn call(to: Address, value: u64, input: impl Into<Bytes>) -> Self {
        Self {
            request: CallRequest {
                from: Some(SENDER),
                to: Some(to),
                value: Some(units(value)),
                input: input.into(),
                ..CallRequest::default()
            },
            nonce: 7,
            runs: Vec::new(),
            tokens: Vec::new(),
            fee_recipients: Vec::new(),
        }
    }

    pub(crate) fn creation(value: u64) -> Self {
        let mut sent = Self::call(Address::ZERO, value, vec![0x60, 0x00]);
        sent.request.to = None;
        sent
    }

    /// With a run.
    pub(crate) fn run(mut self, run: run::Run) -> Self {
        self.runs.push(run.trace());
        self
    }

    /// The storage of this token is evidence.
    pub(crate) fn priced(mut self, token: Address) -> Self {
        self.tokens.push(token);
        self
    }

    pub(crate) fn try_effects(&self) -> Result<Effects, EffectsError> {
        let runs: Vec<&Trace> = self.runs.iter().collect();
        Effects::new(&Transaction {
            sender: SENDER,
            nonce: self.nonce,
            request: &self.request,
            chain: CHAIN,
            runs: &runs,
            fee_recipients: &self.fee_recipients,
            balance_tokens: &self.tokens.iter().copied().collect(),
        })
    }

    pub(crate) fn effects(&self) -> Effects {
        self.try_effects().unwrap()
    }

    /// The effects of all runs as text, one line each.
    pub(crate) fn effect_lines(&self) -> Vec<String> {
        self.effects().distinct_effects().iter().map(line).collect()
    }
}

/// `kind token#id from>to amount evidence`
pub(crate) fn line(effect: &Effect) -> String {
    let token = match effect.token {
        Token::Native => "native".to_owned(),
        Token::Contract(address) => name(address),
    };
    let id = effect.id.map(|id| format!("#{id}")).unwrap_or_default();
    let amount = effect
        .amount
        .map_or_else(|| "?".to_owned(), |amount| amount.to_string());
    let (from, to) = (name(effect.from), name(effect.to));
    format!(
        "{:?} {token}{id} {from}>{to} {amount} {:?}",
        effect.kind, effect.evidence
    )
}

/// The name of a well-known address, or its first byte.
pub(crate) fn name(address: Address) -> String {
    let known = [
        (SENDER, "sender"),
        (ALICE, "alice"),
        (BOB, "bob"),
        (ROUTER, "router"),
        (COIN, "coin"),
        (NFT, "nft"),
        (Address::ZERO, "zero"),
    ];
    let found = known.iter().find(|(known, _)| *known == address);
    found.map_or_else(|| format!("{:02x}", address[0]), |(_, name)| (*name).to_owned())
}

/// A transfer that a frame or a log shows.
pub(crate) fn moved(token: Token, from: Address, to: Address, amount: u64) -> Effect {
    let is_native = token == Token::Native;
    Effect {
        kind: if is_native {
            EffectKind::Native
        } else {
            EffectKind::Erc20
        },
        token,
        id: None,
        from,
        to,
        amount: Some(units(amount)),
        evidence: if is_native { Evidence::Frame } else { Evidence::Log },
    }
}

/// Effects of one run.
pub(crate) fn effects(run: Vec<Effect>) -> Effects {
    Effects::from_parts(SENDER, Some(ROUTER), vec![run], [])
}

/// The calldata of `aggregate3Value` that pays wei.
pub(crate) fn aggregate_payments(payments: &[(Address, u64)]) -> Vec<u8> {
    let calls = payments.iter().map(|(to, amount)| (*to, *amount, Vec::new()));
    calldata::aggregate3_value(calls.collect())
}
