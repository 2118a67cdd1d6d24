//! The compliance decision (spec/60 section 7): one pure function of facts, effects and time.
//!
//! [`decide`] takes the steps of the table in their order. The result carries everything that follows from it: the
//! verdict, the row of the compliance log, the records to claim, and what each step found. A simulation shows the same
//! steps and writes nothing.
//!
//! Readings of the table where it leaves a choice:
//!
//! - A transaction without effects is screened, too (CO-33: zero-value calls included). Step 1 then lets it pass
//!   without a log row unless a list has one of its parties.
//! - A threshold applies to one beneficiary: the lower override of the sender and of that beneficiary, else that of the
//!   organization. So a transfer to one address never changes the threshold of another.
//! - Under the policy `allowed`, only what has no price passes without a value; tokens with a price are valued all the
//!   same. An unknown amount, and an earlier transfer of the window without a price today, count as an unknown price.
//! - A transaction that step 5 would deny claims no record in monitor mode.

mod decide;
mod log_row;
mod valuation;

pub use decide::{decide, decide_without_effects};
pub use log_row::{LogRow, TransferType};
pub use valuation::{AppliedThreshold, BeneficiaryValue, PriceLookup, ThresholdOrigin};

use crate::{
    effects::{EffectsError, PartyRole},
    facts::{EnforcementMode, UnknownPricePolicy},
    record::{RecordKey, TravelRecordId},
    sanctions::{SanctionScope, Screening},
};
use gw_money::Currency;
use gw_types::U256;
use std::fmt;

/// The text of the JSON-RPC error if a fact is missing, or the decision cannot be recorded (CO-28). Its code is -32603,
/// its HTTP status 500.
pub const CHECK_FAILED_MESSAGE: &str = "compliance check failed";
/// The code of the JSON-RPC error of a denial (CO-29). Its HTTP status is 403.
pub const DENIED_CODE: i64 = -32003;

/// What follows for the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub enum Verdict {
    /// It passes.
    Allow,
    /// It passes, because the rules are only monitored. In the mode `enforce` it would be denied.
    Monitored(DenialReason),
    /// It is denied.
    Deny(DenialReason),
}

/// Why a transaction is denied, for the log. It names no address, amount or list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DenialReason {
    /// A party is on a list of sanctions.
    Sanctioned {
        /// Whose list.
        scope: SanctionScope,
        /// What the party does.
        role: PartyRole,
    },
    /// A token has no price, or an amount is unknown.
    ValueUnknown,
    /// A beneficiary gains at least the threshold, and no record covers it.
    RecordMissing,
    /// Another transaction claimed the record first.
    RecordTaken,
    /// The effects cannot be told.
    EffectsUnknown(EffectsError),
}

/// What the caller learns about a denial (CO-29). All texts are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DenialCategory {
    /// Sanctions.
    SanctionedAddress,
    /// An unknown value.
    ValueUnknown,
    /// At or above the threshold without a record.
    ExceedsThreshold,
    /// A record is required. Decisions use [`Self::ExceedsThreshold`] and give this text as a hint.
    RecordRequired,
    /// Everything else.
    BlockedByPolicy,
}

/// A record that the transaction needs. It is claimed directly before the transaction goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordClaim {
    /// The record.
    pub record: TravelRecordId,
    /// Whom and what it covers.
    pub key: RecordKey,
    /// The amount that it must cover.
    pub amount: U256,
}

/// The rules of the organization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrgStatus {
    /// No configuration.
    Unconfigured,
    /// Switched off.
    Disabled,
    /// In force.
    Enabled {
        /// The effective mode.
        mode: EnforcementMode,
        /// The effective currency.
        currency: Currency,
        /// For unknown values.
        unknown_price: UnknownPricePolicy,
    },
}

/// A record that step 8 looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordMatch {
    /// Whom and what it must cover.
    pub key: RecordKey,
    /// The amount that it must cover.
    pub amount: U256,
    /// The chosen record; `None` if none covers it.
    pub record: Option<TravelRecordId>,
}

/// What one step of the table found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepResult {
    /// Step 1: the number of effects.
    Effects(usize),
    /// Step 2: the global list.
    GlobalSanctions(Screening),
    /// Step 3: the rules of the organization.
    Organization(OrgStatus),
    /// Step 4: the list of the organization.
    OrgSanctions(Screening),
    /// Step 5: the price of each token that a beneficiary gains.
    Prices(Vec<PriceLookup>),
    /// Step 6: the threshold of each beneficiary.
    Thresholds(Vec<AppliedThreshold>),
    /// Step 7: the value that each beneficiary gains.
    Values(Vec<BeneficiaryValue>),
    /// Step 8: the records of the beneficiaries that are not below their threshold.
    Records(Vec<RecordMatch>),
    /// Step 9: no step before let the transaction pass.
    Otherwise(Verdict),
}

/// A decision with everything that follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Decision {
    /// What follows for the transaction.
    pub verdict: Verdict,
    /// The row of the compliance log; `None` if nothing is logged.
    pub log: Option<LogRow>,
    /// The records to claim before the transaction goes out: all of them or none.
    pub claims: Vec<RecordClaim>,
    /// What each step found, in order, up to the step that decided.
    pub steps: Vec<StepResult>,
    mode: EnforcementMode,
}

impl Verdict {
    /// Whether the transaction goes out.
    pub const fn passes(self) -> bool {
        match self {
            Self::Allow | Self::Monitored(_) => true,
            Self::Deny(_) => false,
        }
    }

    /// The reason of a denial, or of one that is only monitored.
    pub const fn reason(self) -> Option<DenialReason> {
        match self {
            Self::Allow => None,
            Self::Monitored(reason) | Self::Deny(reason) => Some(reason),
        }
    }

    const fn unless_monitored(reason: DenialReason, mode: EnforcementMode) -> Self {
        match mode {
            EnforcementMode::Enforce => Self::Deny(reason),
            EnforcementMode::Monitor => Self::Monitored(reason),
        }
    }
}

impl Decision {
    /// The decision after a claim that failed, because another transaction took one of the records since. The
    /// transaction then has no record.
    pub fn without_records(self) -> Self {
        if self.claims.is_empty() {
            return self;
        }
        let verdict = Verdict::unless_monitored(DenialReason::RecordTaken, self.mode);
        let mut steps = self.steps;
        steps.push(StepResult::Otherwise(verdict));
        Self {
            verdict,
            log: self.log.map(|row| LogRow {
                verdict,
                records: Vec::new(),
                ..row
            }),
            claims: Vec::new(),
            steps,
            mode: self.mode,
        }
    }
}

impl DenialReason {
    /// What the caller learns.
    pub const fn category(self) -> DenialCategory {
        match self {
            Self::Sanctioned { .. } => DenialCategory::SanctionedAddress,
            Self::ValueUnknown => DenialCategory::ValueUnknown,
            Self::RecordMissing | Self::RecordTaken => DenialCategory::ExceedsThreshold,
            Self::EffectsUnknown(_) => DenialCategory::BlockedByPolicy,
        }
    }

    /// The text of `data.hint` in the error: how to let the transaction pass.
    pub const fn hint(self) -> Option<&'static str> {
        match self {
            Self::RecordMissing | Self::RecordTaken => Some(DenialCategory::RecordRequired.text()),
            Self::Sanctioned { .. } | Self::ValueUnknown | Self::EffectsUnknown(_) => None,
        }
    }
}

/// The text in the log.
impl fmt::Display for DenialReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sanctioned { scope, role } => {
                let list = match scope {
                    SanctionScope::Global => "global",
                    SanctionScope::Org => "organization's",
                };
                write!(f, "the {list} list of sanctions has the {}", role.as_str())
            }
            Self::ValueUnknown => f.write_str("a token has no price, or an amount is unknown"),
            Self::RecordMissing => f.write_str("at or above the threshold, and no travel-rule record covers it"),
            Self::RecordTaken => f.write_str("another transaction claimed the travel-rule record first"),
            Self::EffectsUnknown(error) => fmt::Display::fmt(error, f),
        }
    }
}

impl DenialCategory {
    /// Every category.
    pub const ALL: [Self; 5] = [
        Self::SanctionedAddress,
        Self::ValueUnknown,
        Self::ExceedsThreshold,
        Self::RecordRequired,
        Self::BlockedByPolicy,
    ];

    /// The fixed text of the category.
    pub const fn text(self) -> &'static str {
        match self {
            Self::SanctionedAddress => "sanctioned address",
            Self::ValueUnknown => "transaction value cannot be computed",
            Self::ExceedsThreshold => "transaction exceeds threshold",
            Self::RecordRequired => "travel-rule record required",
            Self::BlockedByPolicy => "transaction blocked by compliance policy",
        }
    }

    /// The message of the JSON-RPC error.
    pub fn message(self) -> String {
        format!("compliance denied: {}", self.text())
    }
}

impl StepResult {
    /// The number of the step.
    pub const fn step(&self) -> u8 {
        match self {
            Self::Effects(_) => 1,
            Self::GlobalSanctions(_) => 2,
            Self::Organization(_) => 3,
            Self::OrgSanctions(_) => 4,
            Self::Prices(_) => 5,
            Self::Thresholds(_) => 6,
            Self::Values(_) => 7,
            Self::Records(_) => 8,
            Self::Otherwise(_) => 9,
        }
    }
}
