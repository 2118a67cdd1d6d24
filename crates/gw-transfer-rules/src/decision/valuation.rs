//! Prices, thresholds and values of what beneficiaries gain (steps 5 to 7).

use crate::{
    facts::{ComplianceFacts, OrgConfig},
    flow::Beneficiary,
    prices::{KnownPrice, UnknownPrice},
    token::Token,
};
use gw_money::{Currency, FiatAmount, Threshold, TokenAmount, Worth};
use gw_types::{Address, Timestamp, U256};
use std::collections::BTreeMap;

/// The price of a token that a beneficiary gains, or gained within the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceLookup {
    /// The token.
    pub token: Token,
    /// Its price. An amount that no log tells is [`UnknownPrice::NoAmount`].
    pub price: Result<KnownPrice, UnknownPrice>,
}

/// Where a threshold comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThresholdOrigin {
    /// The configuration of the organization.
    Org,
    /// The override of the sender.
    Sender,
    /// The override of the beneficiary.
    Beneficiary,
}

/// The threshold of a beneficiary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppliedThreshold {
    /// The beneficiary.
    pub beneficiary: Address,
    /// Its threshold.
    pub threshold: Threshold,
    /// Where the threshold comes from.
    pub origin: ThresholdOrigin,
}

/// The value that a beneficiary gains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeneficiaryValue {
    /// The beneficiary.
    pub beneficiary: Address,
    /// The exact value of this transaction and of earlier ones.
    pub worth: Worth,
    /// The part of earlier transactions.
    pub earlier: Worth,
    /// Whether the value is strictly below the threshold.
    pub is_below: bool,
}

impl BeneficiaryValue {
    /// The value rounded to 8 decimal places; `None` beyond 512 bits.
    pub fn fiat_amount(&self) -> Option<FiatAmount> {
        self.worth.fiat_amount()
    }
}

/// A gain with its price.
#[derive(Clone, Debug)]
pub(super) struct PricedGain {
    pub(super) token: Token,
    pub(super) amount: U256,
    pub(super) price: KnownPrice,
}

/// A beneficiary with a gain that has a price.
#[derive(Clone, Debug)]
pub(super) struct Valuation {
    pub(super) gains: Vec<PricedGain>,
    pub(super) threshold: AppliedThreshold,
    pub(super) value: BeneficiaryValue,
}

/// The prices of the tokens that matter.
pub(super) struct PriceTable {
    prices: BTreeMap<Token, Result<KnownPrice, UnknownPrice>>,
    unreadable: Vec<Token>,
}

impl PriceTable {
    pub(super) fn new(
        facts: &ComplianceFacts<'_>,
        config: &OrgConfig,
        currency: Currency,
        beneficiaries: &[Beneficiary],
        now: Timestamp,
    ) -> Self {
        let gained = beneficiaries
            .iter()
            .flat_map(|beneficiary| beneficiary.gains.amounts.keys())
            .copied();
        let earlier = beneficiaries
            .iter()
            .flat_map(|beneficiary| earlier(facts, config, beneficiary.address))
            .map(|(token, _)| token);
        let find = |token| facts.org.find_price(&facts.system.prices, token, currency, now);
        let mut unreadable: Vec<Token> = beneficiaries
            .iter()
            .flat_map(|beneficiary| beneficiary.gains.unreadable.iter().copied())
            .collect();
        unreadable.sort_unstable();
        unreadable.dedup();
        Self {
            prices: gained.chain(earlier).map(|token| (token, find(token))).collect(),
            unreadable,
        }
    }

    /// Whether any value is unknown.
    pub(super) fn has_unknown(&self) -> bool {
        !self.unreadable.is_empty() || self.prices.values().any(Result::is_err)
    }

    /// Whether a gain of this beneficiary is unknown.
    pub(super) fn is_unknown_for(&self, beneficiary: &Beneficiary) -> bool {
        let gains = &beneficiary.gains;
        !gains.unreadable.is_empty() || gains.amounts.keys().any(|token| self.get(*token).is_none())
    }

    pub(super) fn get(&self, token: Token) -> Option<&KnownPrice> {
        self.prices.get(&token).and_then(|price| price.as_ref().ok())
    }

    pub(super) fn lookups(&self) -> Vec<PriceLookup> {
        let known = self.prices.iter().map(|(token, price)| PriceLookup {
            token: *token,
            price: price.clone(),
        });
        let unreadable = self.unreadable.iter().map(|token| PriceLookup {
            token: *token,
            price: Err(UnknownPrice::NoAmount),
        });
        known.chain(unreadable).collect()
    }

    fn worth(&self, token: Token, amount: U256) -> Option<Worth> {
        let known = self.get(token)?;
        Some(Worth::new(TokenAmount::new(amount, known.decimals), known.price))
    }
}

/// The value of what a beneficiary gains; `None` if nothing of it has a price.
pub(super) fn valuation(
    facts: &ComplianceFacts<'_>,
    config: &OrgConfig,
    sender: Address,
    beneficiary: &Beneficiary,
    prices: &PriceTable,
) -> Option<Valuation> {
    let priced = |(token, amount): (&Token, &U256)| {
        Some(PricedGain {
            token: *token,
            amount: *amount,
            price: prices.get(*token)?.clone(),
        })
    };
    let gains: Vec<PricedGain> = beneficiary.gains.amounts.iter().filter_map(priced).collect();
    if gains.is_empty() {
        return None;
    }
    let current: Worth = gains
        .iter()
        .filter_map(|gain| prices.worth(gain.token, gain.amount))
        .sum();
    let earlier: Worth = earlier(facts, config, beneficiary.address)
        .filter_map(|(token, amount)| prices.worth(token, amount))
        .sum();
    let worth = current.plus(earlier);
    let threshold = threshold(facts, config, sender, beneficiary.address);
    Some(Valuation {
        gains,
        threshold,
        value: BeneficiaryValue {
            beneficiary: beneficiary.address,
            worth,
            earlier,
            is_below: worth.is_below(threshold.threshold),
        },
    })
}

/// Earlier transfers to a beneficiary, if the organization has a window.
fn earlier<'a>(
    facts: &ComplianceFacts<'a>,
    config: &OrgConfig,
    beneficiary: Address,
) -> impl Iterator<Item = (Token, U256)> + 'a {
    let has_window = config.linked_window_hours > 0;
    facts.earlier.to(beneficiary).filter(move |_| has_window)
}

/// The lower override of sender and beneficiary, else the threshold of the organization (CO-27).
fn threshold(
    facts: &ComplianceFacts<'_>,
    config: &OrgConfig,
    sender: Address,
    beneficiary: Address,
) -> AppliedThreshold {
    let of_sender = facts
        .org
        .threshold(sender)
        .map(|threshold| (threshold, ThresholdOrigin::Sender));
    let of_beneficiary = facts
        .org
        .threshold(beneficiary)
        .map(|threshold| (threshold, ThresholdOrigin::Beneficiary));
    let lowest = of_sender
        .into_iter()
        .chain(of_beneficiary)
        .min_by_key(|(threshold, _)| *threshold);
    let (threshold, origin) = lowest.unwrap_or((config.threshold, ThresholdOrigin::Org));
    AppliedThreshold {
        beneficiary,
        threshold,
        origin,
    }
}
