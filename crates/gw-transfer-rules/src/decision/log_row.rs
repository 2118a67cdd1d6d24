//! The row of the compliance log (spec/60 section 12).
//!
//! A transaction has one row. Its columns describe the beneficiary that decided: the first one without a value or
//! record, else the one that gains most. All effects stand in the row beside it.

use super::{Verdict, valuation::Valuation};
use crate::{
    effects::{Effect, EffectKind, Effects},
    flow::Beneficiary,
    prices::KnownPrice,
    record::TravelRecordId,
    sanctions::ListVersions,
    token::Token,
};
use gw_money::{Currency, FiatAmount, Threshold};
use gw_types::{Address, U256};
use std::collections::BTreeSet;

/// The type of what a transaction moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TransferType {
    /// Native value. Also a call without effects.
    Eth,
    /// Fungible tokens.
    Erc20,
    /// Collectibles.
    Erc721,
    /// Tokens with ids.
    Erc1155,
    /// Allowances only.
    Approval,
    /// Several types of transfers.
    Mixed,
}

/// The contents of a row that the decision knows. The caller adds organization, user, correlation id and hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRow {
    /// The type of its transfers.
    pub transfer_type: TransferType,
    /// The token; `None` if there are several.
    pub token: Option<Token>,
    /// The payer; the sender, if there are several.
    pub from: Address,
    /// The beneficiary, or the called account; `None` if neither is known.
    pub to: Option<Address>,
    /// The amount of the token.
    pub amount: Option<U256>,
    /// The value at the time of the decision, rounded.
    pub amount_fiat: Option<FiatAmount>,
    /// The threshold.
    pub threshold: Option<Threshold>,
    /// The currency of value and threshold.
    pub currency: Currency,
    /// The verdict. The column `decision` is `allowed` if it passes, `would_block` tells a monitored denial, and
    /// `denial_reason` and `category` are those of its reason.
    pub verdict: Verdict,
    /// The records that cover it.
    pub records: Vec<TravelRecordId>,
    /// The price of the token, with its source; `None` if there are several tokens.
    pub price: Option<KnownPrice>,
    /// The lists of sanctions that were used.
    pub list_versions: ListVersions,
    /// All effects.
    pub effects: Vec<Effect>,
}

impl TransferType {
    /// The text in columns and filters.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Eth => "eth",
            Self::Erc20 => "erc20",
            Self::Erc721 => "erc721",
            Self::Erc1155 => "erc1155",
            Self::Approval => "approval",
            Self::Mixed => "mixed",
        }
    }

    /// The type of a list of effects. Allowances count only if nothing moves.
    pub fn of(effects: &[Effect]) -> Self {
        let transfers = effects.iter().filter(|effect| effect.is_transfer());
        let kinds: BTreeSet<EffectKind> = transfers.map(|effect| effect.kind).collect();
        match (kinds.first(), kinds.len()) {
            (None, _) if effects.is_empty() => Self::Eth,
            (None, _) => Self::Approval,
            (Some(EffectKind::Native), 1) => Self::Eth,
            (Some(EffectKind::Erc20), 1) => Self::Erc20,
            (Some(EffectKind::Erc721), 1) => Self::Erc721,
            (Some(EffectKind::Erc1155), 1) => Self::Erc1155,
            (Some(EffectKind::Approval), 1) => Self::Approval,
            (Some(_), _) => Self::Mixed,
        }
    }
}

/// What stays the same in every row of one transaction.
pub(super) struct RowContext {
    pub(super) sender: Address,
    pub(super) target: Option<Address>,
    pub(super) effects: Vec<Effect>,
    pub(super) currency: Currency,
    pub(super) list_versions: ListVersions,
}

impl RowContext {
    pub(super) fn new(effects: &Effects, currency: Currency, list_versions: ListVersions) -> Self {
        Self {
            sender: effects.sender(),
            target: effects.target(),
            effects: effects.distinct_effects(),
            currency,
            list_versions,
        }
    }

    /// A row without amounts.
    pub(super) fn without_amounts(self, verdict: Verdict) -> LogRow {
        let (from, to, token) = match self.main_effect() {
            Some(effect) => (effect.from, Some(effect.to), Some(effect.token)),
            None => (self.sender, self.target, None),
        };
        LogRow {
            transfer_type: TransferType::of(&self.effects),
            token,
            from,
            to,
            amount: None,
            amount_fiat: None,
            threshold: None,
            currency: self.currency,
            verdict,
            records: Vec::new(),
            price: None,
            list_versions: self.list_versions,
            effects: self.effects,
        }
    }

    /// A row of a transaction of which nothing is valued.
    pub(super) fn without_value(self, verdict: Verdict) -> LogRow {
        let amount = self.main_effect().and_then(|effect| effect.amount);
        LogRow {
            amount,
            ..self.without_amounts(verdict)
        }
    }

    /// A row of a beneficiary. `valuation` is `None` if nothing that it gains has a price.
    pub(super) fn of_beneficiary(
        self,
        verdict: Verdict,
        beneficiary: &Beneficiary,
        valuation: Option<&Valuation>,
        price: Option<KnownPrice>,
    ) -> LogRow {
        let gains = &beneficiary.gains;
        let tokens: BTreeSet<Token> = gains.amounts.keys().chain(&gains.unreadable).copied().collect();
        let token = tokens.first().copied().filter(|_| tokens.len() == 1);
        let amount = token.filter(|token| !gains.unreadable.contains(token));
        let amount = amount.and_then(|token| gains.amounts.get(&token)).copied();
        let paid = |effect: &&Effect| effect.is_transfer() && effect.to == beneficiary.address;
        let mut payers = self.effects.iter().filter(paid).map(|effect| effect.from);
        let from = match (payers.next(), payers.next()) {
            (Some(payer), None) => payer,
            (Some(_), Some(_)) | (None, _) => self.sender,
        };
        LogRow {
            token,
            from,
            to: Some(beneficiary.address),
            amount,
            amount_fiat: valuation.and_then(|valuation| valuation.value.fiat_amount()),
            threshold: valuation.map(|valuation| valuation.threshold.threshold),
            price: price.filter(|_| token.is_some()),
            ..self.without_amounts(verdict)
        }
    }

    /// The only transfer, or the only allowance if nothing moves.
    fn main_effect(&self) -> Option<Effect> {
        let (transfers, approvals): (Vec<Effect>, Vec<Effect>) =
            self.effects.iter().partition(|effect| effect.is_transfer());
        match (transfers.as_slice(), approvals.as_slice()) {
            ([effect], _) | ([], [effect]) => Some(*effect),
            _ => None,
        }
    }
}
