//! The steps of the decision, in the order of the table of spec/60 section 7.

use super::{
    Decision, DenialReason, LogRow, OrgStatus, RecordClaim, RecordMatch, StepResult, Verdict,
    log_row::RowContext,
    valuation::{PriceTable, Valuation, valuation},
};
use crate::{
    effects::{Effects, EffectsError},
    facts::{ComplianceFacts, EnforcementMode, OrgConfig, UnknownPricePolicy},
    flow::{Beneficiary, beneficiaries},
    record::RecordKey,
    sanctions::{ListVersions, SanctionScope, Screening},
};
use gw_types::{Address, Timestamp};

/// Decides whether a transaction with these effects complies. It has no side effects.
pub fn decide(facts: &ComplianceFacts<'_>, effects: &Effects, now: Timestamp) -> Decision {
    let rules = Rules::new(facts, now);
    let mut steps = vec![StepResult::Effects(effects.distinct_effects().len())];

    // Step 2. Sanctions are never monitored.
    if rules.screens_globally {
        let screening = facts.system.sanctions.screen(SanctionScope::Global, effects.parties());
        steps.push(StepResult::GlobalSanctions(screening));
        if let Some(reason) = sanctioned(screening) {
            return rules.deny_without_amounts(effects, reason, steps);
        }
    }

    // Step 3.
    steps.push(StepResult::Organization(rules.status));
    let Some(config) = rules.config else {
        return rules.unlogged(steps);
    };

    // Step 4.
    let screening = facts.org.sanctions().screen(SanctionScope::Org, effects.parties());
    steps.push(StepResult::OrgSanctions(screening));
    if let Some(reason) = sanctioned(screening) {
        return rules.deny_without_amounts(effects, reason, steps);
    }

    // Step 1: the transaction has no effects, and no list has one of its parties.
    if effects.is_empty() {
        return rules.unlogged(steps);
    }
    rules.decide_by_value(config, effects, steps)
}

/// Decides about a transaction whose effects cannot be told. Its parties cannot be screened, so it is denied wherever a
/// list applies, in both modes.
pub fn decide_without_effects(
    facts: &ComplianceFacts<'_>,
    sender: Address,
    target: Option<Address>,
    error: EffectsError,
    now: Timestamp,
) -> Decision {
    let rules = Rules::new(facts, now);
    let steps = vec![StepResult::Organization(rules.status)];
    if !rules.screens_globally {
        return rules.unlogged(steps);
    }
    let known = Effects::from_parts(sender, target, Vec::new(), []);
    rules.deny_without_amounts(&known, DenialReason::EffectsUnknown(error), steps)
}

fn sanctioned(screening: Screening) -> Option<DenialReason> {
    screening.hit.map(|party| DenialReason::Sanctioned {
        scope: screening.scope,
        role: party.role,
    })
}

/// The rules that apply to a transaction.
struct Rules<'a> {
    facts: &'a ComplianceFacts<'a>,
    now: Timestamp,
    /// The configuration, if it is enabled.
    config: Option<&'a OrgConfig>,
    status: OrgStatus,
    mode: EnforcementMode,
    currency: gw_money::Currency,
    screens_globally: bool,
}

impl<'a> Rules<'a> {
    fn new(facts: &'a ComplianceFacts<'a>, now: Timestamp) -> Self {
        let stored = facts.org.config();
        let config = stored.filter(|config| config.enabled);
        let settings = stored.unwrap_or(&OrgConfig::DEFAULT);
        let mode = settings.effective_mode(facts.system.mode, now);
        let currency = settings.currency.unwrap_or(facts.system.currency);
        let status = match (stored, config) {
            (None, _) => OrgStatus::Unconfigured,
            (Some(_), None) => OrgStatus::Disabled,
            (Some(_), Some(config)) => OrgStatus::Enabled {
                mode,
                currency,
                unknown_price: config.unknown_price,
            },
        };
        Self {
            facts,
            now,
            config,
            status,
            mode,
            currency,
            screens_globally: facts.system.sanctions_always || config.is_some(),
        }
    }

    /// Steps 5 to 9.
    fn decide_by_value(&self, config: &OrgConfig, effects: &Effects, mut steps: Vec<StepResult>) -> Decision {
        let beneficiaries = beneficiaries(effects, self.facts.own_addresses);
        let row = self.row(effects);

        // Step 5.
        let prices = PriceTable::new(self.facts, config, self.currency, &beneficiaries, self.now);
        steps.push(StepResult::Prices(prices.lookups()));
        if prices.has_unknown() && config.unknown_price == UnknownPricePolicy::Forbidden {
            let verdict = Verdict::unless_monitored(DenialReason::ValueUnknown, self.mode);
            let first = beneficiaries
                .iter()
                .find(|beneficiary| prices.is_unknown_for(beneficiary));
            let row = match first.or(beneficiaries.first()) {
                Some(beneficiary) => row.of_beneficiary(verdict, beneficiary, None, None),
                None => row.without_value(verdict),
            };
            return self.logged(verdict, row, steps);
        }

        // Steps 6 and 7.
        let valued: Vec<(&Beneficiary, Valuation)> = beneficiaries
            .iter()
            .filter_map(|beneficiary| {
                let valuation = valuation(self.facts, config, effects.sender(), beneficiary, &prices)?;
                Some((beneficiary, valuation))
            })
            .collect();
        steps.push(StepResult::Thresholds(
            valued.iter().map(|(_, valuation)| valuation.threshold).collect(),
        ));
        steps.push(StepResult::Values(
            valued.iter().map(|(_, valuation)| valuation.value).collect(),
        ));
        let row_of = |row: RowContext, verdict, subject: Option<&(&Beneficiary, Valuation)>| match subject {
            Some((beneficiary, valuation)) => {
                let price = valuation.gains.first().map(|gain| gain.price.clone());
                row.of_beneficiary(verdict, beneficiary, Some(valuation), price)
            }
            None => match beneficiaries.first() {
                Some(beneficiary) => row.of_beneficiary(verdict, beneficiary, None, None),
                None => row.without_value(verdict),
            },
        };
        let largest = valued
            .iter()
            .max_by(|(_, left), (_, right)| left.value.worth.cmp(&right.value.worth));
        let mut above = valued
            .iter()
            .filter(|(_, valuation)| !valuation.value.is_below)
            .peekable();
        if above.peek().is_none() {
            return self.logged(Verdict::Allow, row_of(row, Verdict::Allow, largest), steps);
        }

        // Step 8.
        let needed: Vec<RecordMatch> = above.flat_map(|(_, valuation)| self.records(valuation)).collect();
        let missing = needed
            .iter()
            .find(|needed| needed.record.is_none())
            .map(|needed| needed.key.beneficiary);
        let claims: Vec<RecordClaim> = needed.iter().filter_map(claim).collect();
        steps.push(StepResult::Records(needed));
        let Some(missing) = missing else {
            let row = LogRow {
                records: claims.iter().map(|claim| claim.record).collect(),
                ..row_of(row, Verdict::Allow, largest)
            };
            return Decision {
                claims,
                ..self.logged(Verdict::Allow, row, steps)
            };
        };

        // Step 9.
        let verdict = Verdict::unless_monitored(DenialReason::RecordMissing, self.mode);
        steps.push(StepResult::Otherwise(verdict));
        let subject = valued.iter().find(|(beneficiary, _)| beneficiary.address == missing);
        self.logged(verdict, row_of(row, verdict, subject), steps)
    }

    /// The records that a beneficiary needs: one for each token with a price.
    fn records(&self, valuation: &Valuation) -> Vec<RecordMatch> {
        let needed = valuation.gains.iter().map(|gain| {
            let key = RecordKey {
                originator: self.facts.user,
                beneficiary: valuation.value.beneficiary,
                token: gain.token,
            };
            let records = self.facts.org.records();
            let record = records.choose(&key, gain.amount, self.facts.transaction, self.now);
            RecordMatch {
                key,
                amount: gain.amount,
                record: record.map(|record| record.id),
            }
        });
        needed.collect()
    }

    fn row(&self, effects: &Effects) -> RowContext {
        let versions = ListVersions {
            global: self.facts.system.sanctions.version(),
            org: self.facts.org.sanctions().version(),
        };
        RowContext::new(effects, self.currency, versions)
    }

    fn unlogged(&self, steps: Vec<StepResult>) -> Decision {
        Decision {
            verdict: Verdict::Allow,
            log: None,
            claims: Vec::new(),
            steps,
            mode: self.mode,
        }
    }

    fn logged(&self, verdict: Verdict, row: LogRow, steps: Vec<StepResult>) -> Decision {
        Decision {
            verdict,
            log: Some(row),
            ..self.unlogged(steps)
        }
    }

    fn deny_without_amounts(&self, effects: &Effects, reason: DenialReason, steps: Vec<StepResult>) -> Decision {
        let verdict = Verdict::Deny(reason);
        self.logged(verdict, self.row(effects).without_amounts(verdict), steps)
    }
}

fn claim(needed: &RecordMatch) -> Option<RecordClaim> {
    Some(RecordClaim {
        record: needed.record?,
        key: needed.key,
        amount: needed.amount,
    })
}
