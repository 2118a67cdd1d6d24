//! The facts of a decision.

use super::{ALICE, SENDER, units};
use alloy_primitives::map::AddressSet;
use gw_money::{Currency, Price, Threshold, TokenDecimals};
use gw_transfer_rules::{
    Token,
    decision::{Decision, decide},
    effects::Effects,
    facts::{
        AddressThreshold, ComplianceFacts, EarlierTransfers, EnforcementMode, OrgConfig, OrgFacts, SystemFacts,
        UnknownPricePolicy,
    },
    prices::{FeedId, FeedPrice, RowSource, SystemPrices, TokenPriceRow},
    record::{RecordIndex, RecordKey, RecordState, RecordSummary, TransactionKey, TravelRecordId},
    sanctions::{SanctionList, SanctionScope},
};
use gw_types::{Address, Seconds, Timestamp, U256, UserId};
use std::{collections::BTreeMap, sync::Arc};
use uuid::Uuid;

/// The user who sends.
pub(crate) const USER: UserId = UserId::fixed(1);
/// When everything is decided.
pub(crate) const NOW: Timestamp = Timestamp::from_secs(1_000_000);

/// Facts that a test changes one by one. At first, an organization with enabled rules: currency USD, threshold 1000,
/// the native coin at 2000 from a fresh feed, no other price.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) config: Option<OrgConfig>,
    pub(crate) mode: EnforcementMode,
    pub(crate) currency: Currency,
    pub(crate) sanctions_always: bool,
    pub(crate) global: Vec<Address>,
    pub(crate) org: Vec<Address>,
    pub(crate) rows: Vec<(Token, TokenPriceRow)>,
    pub(crate) feed: BTreeMap<(String, Currency), FeedPrice>,
    pub(crate) staleness: Seconds,
    pub(crate) thresholds: Vec<AddressThreshold>,
    pub(crate) records: Vec<(RecordKey, RecordSummary)>,
    pub(crate) own: AddressSet,
    pub(crate) earlier: EarlierTransfers,
    pub(crate) transaction: Option<TransactionKey>,
}

impl Default for World {
    fn default() -> Self {
        let native = FeedPrice {
            price: price(2000),
            updated_at: NOW,
        };
        Self {
            config: Some(OrgConfig {
                enabled: true,
                ..OrgConfig::DEFAULT
            }),
            mode: EnforcementMode::Enforce,
            currency: Currency::USD,
            sanctions_always: true,
            global: Vec::new(),
            org: Vec::new(),
            rows: Vec::new(),
            feed: [(("ethereum".to_owned(), Currency::USD), native)].into(),
            staleness: Seconds(900),
            thresholds: Vec::new(),
            records: Vec::new(),
            own: AddressSet::default(),
            earlier: EarlierTransfers::default(),
            transaction: None,
        }
    }
}

/// A price of whole units.
pub(crate) fn price(whole: u64) -> Price {
    Price::from_mantissa(u128::from(whole) * 10_u128.pow(Price::SCALE)).unwrap()
}

/// A threshold of whole units, at most the largest one.
pub(crate) fn threshold(whole: u64) -> Threshold {
    let mantissa = u128::from(whole) * 10_u128.pow(Threshold::SCALE);
    Threshold::from_mantissa(mantissa.min(Threshold::MAX.mantissa())).unwrap()
}

/// An amount of whole native coins, in wei.
pub(crate) fn coins(whole: u64) -> U256 {
    units(whole) * U256::from(10).pow(units(18))
}

/// The id of the record with this number.
pub(crate) fn record_id(number: u128) -> TravelRecordId {
    TravelRecordId(Uuid::from_u128(number))
}

impl World {
    pub(crate) fn change_config(mut self, change: impl FnOnce(&mut OrgConfig)) -> Self {
        change(self.config.as_mut().unwrap());
        self
    }

    pub(crate) fn mode(self, mode: EnforcementMode) -> Self {
        self.change_config(|config| config.mode = Some(mode))
    }

    pub(crate) fn threshold(self, threshold: Threshold) -> Self {
        self.change_config(|config| config.threshold = threshold)
    }

    pub(crate) fn unknown_prices_pass(self) -> Self {
        self.change_config(|config| config.unknown_price = UnknownPricePolicy::Allowed)
    }

    pub(crate) fn unconfigured(mut self) -> Self {
        self.config = None;
        self
    }

    pub(crate) fn disabled(self) -> Self {
        self.change_config(|config| config.enabled = false)
    }

    pub(crate) fn sanctions_only_with_rules(mut self) -> Self {
        self.sanctions_always = false;
        self
    }

    pub(crate) fn sanction(mut self, scope: SanctionScope, address: Address) -> Self {
        match scope {
            SanctionScope::Global => self.global.push(address),
            SanctionScope::Org => self.org.push(address),
        }
        self
    }

    /// A token with a manual price in USD.
    pub(crate) fn priced(self, token: Token, decimals: u8, price: Price) -> Self {
        self.priced_in(token, decimals, &[(Currency::USD, price)])
    }

    pub(crate) fn priced_in(mut self, token: Token, decimals: u8, prices: &[(Currency, Price)]) -> Self {
        let source = RowSource::Manual(prices.iter().copied().collect());
        self.rows.push((token, row(decimals, source)));
        self
    }

    /// A token whose price comes from the feed.
    pub(crate) fn fed(mut self, token: Token, decimals: u8, feed: &str) -> Self {
        self.rows
            .push((token, row(decimals, RowSource::Feed(FeedId::new(feed)))));
        self
    }

    /// A price of the feed.
    pub(crate) fn feed_price(mut self, feed: &str, currency: Currency, price: Price, updated_at: Timestamp) -> Self {
        let price = FeedPrice { price, updated_at };
        self.feed.insert((feed.to_owned(), currency), price);
        self
    }

    /// An override in whole units.
    pub(crate) fn threshold_of(mut self, address: Address, whole: u64) -> Self {
        self.thresholds.push(AddressThreshold {
            address,
            threshold: threshold(whole),
        });
        self
    }

    /// An unused record of the user, which expires in a day.
    pub(crate) fn record(self, number: u128, beneficiary: Address, token: Address, amount: u64) -> Self {
        let state = RecordState::new(NOW, Seconds(86_400));
        self.record_in(number, key(beneficiary, Token::Contract(token)), units(amount), state)
    }

    pub(crate) fn record_in(mut self, number: u128, key: RecordKey, amount: U256, state: RecordState) -> Self {
        let id = record_id(number);
        self.records.push((key, RecordSummary { id, amount, state }));
        self
    }

    pub(crate) fn with_facts<T>(&self, read: impl FnOnce(&ComplianceFacts<'_>, Timestamp) -> T) -> T {
        let list = |addresses: &Vec<Address>| {
            let version = 1 + u64::try_from(addresses.len()).unwrap();
            Arc::new(SanctionList::new(version, addresses.iter().copied()))
        };
        let mut prices: SystemPrices = SystemPrices {
            prices: Default::default(),
            native_feed: FeedId::new("ethereum"),
            staleness: self.staleness,
        };
        for ((feed, currency), price) in &self.feed {
            prices
                .prices
                .entry(FeedId::new(feed))
                .or_default()
                .insert(*currency, *price);
        }
        let system = SystemFacts {
            currency: self.currency,
            mode: self.mode,
            sanctions_always: self.sanctions_always,
            prices,
            sanctions: list(&self.global),
        };
        let org = OrgFacts::new(
            self.config,
            self.rows.iter().cloned(),
            self.thresholds.iter().copied(),
            list(&self.org),
            Arc::new(RecordIndex::new(self.records.iter().copied())),
        );
        let facts = ComplianceFacts {
            system: &system,
            org: &org,
            user: USER,
            own_addresses: &self.own,
            earlier: &self.earlier,
            transaction: self.transaction,
        };
        read(&facts, NOW)
    }

    pub(crate) fn decide(&self, effects: &Effects) -> Decision {
        self.with_facts(|facts, now| decide(facts, effects, now))
    }
}

/// The effects of a payment by the sender to Alice.
pub(crate) fn payment(token: Token, amount: U256) -> Effects {
    let effect = gw_transfer_rules::effects::Effect {
        amount: Some(amount),
        ..super::moved(token, SENDER, ALICE, 0)
    };
    Effects::from_parts(SENDER, Some(ALICE), vec![vec![effect]], [])
}

/// What covers a transfer by the user.
pub(crate) fn key(beneficiary: Address, token: Token) -> RecordKey {
    RecordKey {
        originator: USER,
        beneficiary,
        token,
    }
}

fn row(decimals: u8, source: RowSource) -> TokenPriceRow {
    TokenPriceRow {
        symbol: "T".into(),
        decimals: TokenDecimals::new(decimals).unwrap(),
        source,
    }
}
