//! The facts of a decision. All of them are immutable; a policy snapshot holds them behind an `Arc`.

use crate::{
    prices::{KnownPrice, SystemPrices, TokenPriceRow, UnknownPrice, find_price},
    record::{RecordIndex, TransactionKey},
    sanctions::SanctionList,
    token::Token,
};
use alloy_primitives::map::{AddressMap, AddressSet, HashMap};
use gw_money::{Currency, Threshold};
use gw_types::{Address, Timestamp, U256, UserId};
use std::{collections::BTreeMap, sync::Arc};

/// What happens to a transaction that the rules deny (CO-31).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EnforcementMode {
    /// It is denied.
    Enforce,
    /// It passes and is logged, unless it is denied for sanctions.
    Monitor,
}

/// What happens to a transfer whose value is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnknownPricePolicy {
    /// It passes, as far as its value is unknown.
    Allowed,
    /// It is denied.
    Forbidden,
}

/// The compliance configuration of an organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrgConfig {
    /// Whether the rules of the organization apply.
    pub enabled: bool,
    /// The value from which a transfer needs a record.
    pub threshold: Threshold,
    /// The currency of thresholds and values; `None`: that of the system at the time of the decision (CO-4).
    pub currency: Option<Currency>,
    /// For transfers of unknown value.
    pub unknown_price: UnknownPricePolicy,
    /// `None`: the mode of the system at the time of the decision.
    pub mode: Option<EnforcementMode>,
    /// When monitoring ends by itself (CO-32).
    pub monitor_until: Option<Timestamp>,
    /// For how long earlier transfers add to the value (CO-25); zero: not at all.
    pub linked_window_hours: u32,
}

/// An override of the organization's threshold for an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressThreshold {
    /// The address, as sender or recipient.
    pub address: Address,
    /// Its threshold.
    pub threshold: Threshold,
}

/// Facts of the platform.
#[derive(Clone, Debug)]
pub struct SystemFacts {
    /// The currency of organizations that set none.
    pub currency: Currency,
    /// The mode of organizations that set none (`COMPLIANCE_DEFAULT_MODE`).
    pub mode: EnforcementMode,
    /// Whether the global list binds organizations without enabled rules, too (`SANCTIONS_ALWAYS`).
    pub sanctions_always: bool,
    /// The prices of the feed.
    pub prices: SystemPrices,
    /// The global list.
    pub sanctions: Arc<SanctionList>,
}

/// Facts of an organization.
#[derive(Clone, Debug, Default)]
pub struct OrgFacts {
    config: Option<OrgConfig>,
    prices: HashMap<Token, TokenPriceRow>,
    thresholds: AddressMap<Threshold>,
    sanctions: Arc<SanctionList>,
    records: Arc<RecordIndex>,
    tokens: AddressSet,
}

/// What users of an organization sent to whom before, without a record (CO-25).
///
/// These are the sums of allowed transfers within the organization's window, of one user. They are valued at today's
/// prices, like the transfer itself, so that a change of currency or price between them leaves no gap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EarlierTransfers(AddressMap<BTreeMap<Token, U256>>);

/// The facts of one decision.
#[derive(Clone, Copy, Debug)]
pub struct ComplianceFacts<'a> {
    /// Of the platform.
    pub system: &'a SystemFacts,
    /// Of the organization in which the transaction is sent.
    pub org: &'a OrgFacts,
    /// Who sends.
    pub user: UserId,
    /// The addresses that the user owns (HD13).
    pub own_addresses: &'a AddressSet,
    /// Earlier transfers of the user. Used only if the organization has a window.
    pub earlier: &'a EarlierTransfers,
    /// The transaction, if it is known: records that it has claimed before are chosen again (CO-41).
    pub transaction: Option<TransactionKey>,
}

impl OrgConfig {
    /// The configuration of an organization without a row (CO-1).
    pub const DEFAULT: Self = Self {
        enabled: false,
        threshold: Threshold::DEFAULT,
        currency: None,
        unknown_price: UnknownPricePolicy::Forbidden,
        mode: None,
        monitor_until: None,
        linked_window_hours: 0,
    };

    /// The mode at `now` (CO-31, CO-32).
    pub fn effective_mode(&self, system: EnforcementMode, now: Timestamp) -> EnforcementMode {
        match self.mode.unwrap_or(system) {
            EnforcementMode::Monitor if self.monitor_until.is_some_and(|until| until <= now) => {
                EnforcementMode::Enforce
            }
            mode @ (EnforcementMode::Monitor | EnforcementMode::Enforce) => mode,
        }
    }
}

impl EnforcementMode {
    /// The text in columns and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Monitor => "monitor",
        }
    }
}

impl UnknownPricePolicy {
    /// The text in columns and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Forbidden => "forbidden",
        }
    }
}

impl OrgFacts {
    /// The facts of an organization. `config` is `None` without a row.
    pub fn new(
        config: Option<OrgConfig>,
        prices: impl IntoIterator<Item = (Token, TokenPriceRow)>,
        thresholds: impl IntoIterator<Item = AddressThreshold>,
        sanctions: Arc<SanctionList>,
        records: Arc<RecordIndex>,
    ) -> Self {
        let prices: HashMap<Token, TokenPriceRow> = prices.into_iter().collect();
        let thresholds = thresholds.into_iter().map(|row| (row.address, row.threshold));
        Self {
            config,
            tokens: prices.keys().filter_map(|token| token.contract()).collect(),
            prices,
            thresholds: thresholds.collect(),
            sanctions,
            records,
        }
    }

    /// The same facts with other records: records change more often than anything else.
    #[must_use]
    pub fn with_records(self, records: Arc<RecordIndex>) -> Self {
        Self { records, ..self }
    }

    /// The configuration; `None` without a row.
    pub const fn config(&self) -> Option<&OrgConfig> {
        self.config.as_ref()
    }

    /// The tokens that have a price row: their storage is evidence of what they move.
    pub const fn tokens(&self) -> &AddressSet {
        &self.tokens
    }

    /// The override of an address.
    pub fn threshold(&self, address: Address) -> Option<Threshold> {
        self.thresholds.get(&address).copied()
    }

    /// The organization's list of sanctions.
    pub fn sanctions(&self) -> &SanctionList {
        &self.sanctions
    }

    /// The records.
    pub fn records(&self) -> &RecordIndex {
        &self.records
    }

    /// The price of a token (CO-14).
    ///
    /// # Errors
    /// [`UnknownPrice`]
    pub fn find_price(
        &self,
        system: &SystemPrices,
        token: Token,
        currency: Currency,
        now: Timestamp,
    ) -> Result<KnownPrice, UnknownPrice> {
        find_price(&self.prices, system, token, currency, now)
    }
}

impl EarlierTransfers {
    /// Adds a transfer.
    pub fn add(&mut self, beneficiary: Address, token: Token, amount: U256) {
        let sum = self.0.entry(beneficiary).or_default().entry(token).or_default();
        *sum = sum.saturating_add(amount);
    }

    /// The sums to one beneficiary.
    pub fn to(&self, beneficiary: Address) -> impl Iterator<Item = (Token, U256)> {
        let sums = self.0.get(&beneficiary).into_iter().flatten();
        sums.map(|(token, amount)| (*token, *amount))
    }
}
