//! A second, slow reading of spec/60 section 7 agrees with the decision on random facts, reason for reason.
//!
//! The reading shares no code with the decision: it goes through the rows of the table in order, sums signed numbers by
//! loops over all addresses, and compares fractions over one denominator. Amounts are small, so 256 bits hold them.

use crate::support::{
    ALICE, BOB, COIN, NFT, ROUTER, SENDER,
    facts::{NOW, USER, World, key, price, threshold},
    moved, units,
};
use gw_money::{Currency, Price};
use gw_transfer_rules::{
    Token,
    decision::{DenialReason, StepResult, Verdict},
    effects::{Effect, EffectKind, Effects, Evidence, PartyRole},
    facts::{EnforcementMode, UnknownPricePolicy},
    prices::RowSource,
    record::{RecordKey, RecordState, TransactionKey, TravelRecordId},
    sanctions::SanctionScope,
};
use gw_types::{Address, B256, Seconds, Timestamp, U256, UserId};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const ADDRESSES: [Address; 5] = [SENDER, ALICE, BOB, ROUTER, Address::ZERO];
const TOKENS: [Token; 3] = [Token::Native, Token::Contract(COIN), Token::Contract(NFT)];
const OURS: TransactionKey = TransactionKey::Hash(B256::repeat_byte(1));

/// What the table says.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Reading {
    verdict: Verdict,
    is_logged: bool,
    claims: BTreeSet<(RecordKey, U256, TravelRecordId)>,
    last_step: u8,
}

/// One row of the table: `None` if it does not decide.
type Row = fn(&Case<'_>) -> Option<Reading>;

/// The table. The first row that decides wins. Step 1 stands after the screening (CO-33).
const TABLE: [(u8, Row); 8] = [
    (2, global_sanctions),
    (3, no_rules),
    (4, org_sanctions),
    (1, no_effects),
    (5, unknown_price),
    (7, below),
    (8, covered),
    (9, otherwise),
];

struct Case<'a> {
    world: &'a World,
    effects: &'a Effects,
}

fn read(world: &World, effects: &Effects) -> Reading {
    let case = Case { world, effects };
    let decided = TABLE.iter().find_map(|(step, row)| Some((*step, row(&case)?)));
    let (step, reading) = decided.unwrap();
    // A transaction without effects is screened first, so its last step is that of the organization's list.
    let last_step = if step == 1 { 4 } else { step };
    Reading { last_step, ..reading }
}

fn allow(is_logged: bool) -> Reading {
    Reading {
        verdict: Verdict::Allow,
        is_logged,
        claims: BTreeSet::new(),
        last_step: 0,
    }
}

fn global_sanctions(case: &Case<'_>) -> Option<Reading> {
    let applies = case.world.sanctions_always || case.enabled();
    applies
        .then(|| case.screened(SanctionScope::Global, &case.world.global))
        .flatten()
}

fn no_rules(case: &Case<'_>) -> Option<Reading> {
    (!case.enabled()).then(|| allow(false))
}

fn org_sanctions(case: &Case<'_>) -> Option<Reading> {
    case.screened(SanctionScope::Org, &case.world.org)
}

fn no_effects(case: &Case<'_>) -> Option<Reading> {
    case.effects.runs().iter().all(Vec::is_empty).then(|| allow(false))
}

fn unknown_price(case: &Case<'_>) -> Option<Reading> {
    let forbidden = case.config().unknown_price == UnknownPricePolicy::Forbidden;
    let is_unknown = |beneficiary: &Address| {
        let unpriced = |tokens: &BTreeMap<Token, i128>| tokens.keys().any(|token| case.price(*token).is_none());
        case.has_unreadable(*beneficiary)
            || unpriced(&case.gains(*beneficiary))
            || unpriced(&case.earlier(*beneficiary))
    };
    let unknown = case.beneficiaries().iter().any(is_unknown);
    (forbidden && unknown).then(|| case.refused(DenialReason::ValueUnknown))
}

fn below(case: &Case<'_>) -> Option<Reading> {
    case.above().is_empty().then(|| allow(true))
}

fn covered(case: &Case<'_>) -> Option<Reading> {
    let mut claims = BTreeSet::new();
    for beneficiary in case.above() {
        for (token, amount) in case.gains(beneficiary) {
            if case.price(token).is_none() {
                continue;
            }
            let amount = U256::try_from(amount).unwrap();
            claims.insert((
                key(beneficiary, token),
                amount,
                case.record(beneficiary, token, amount)?,
            ));
        }
    }
    Some(Reading { claims, ..allow(true) })
}

fn otherwise(case: &Case<'_>) -> Option<Reading> {
    Some(case.refused(DenialReason::RecordMissing))
}

impl Case<'_> {
    fn enabled(&self) -> bool {
        self.world.config.is_some_and(|config| config.enabled)
    }

    fn config(&self) -> gw_transfer_rules::facts::OrgConfig {
        self.world.config.unwrap()
    }

    fn screened(&self, scope: SanctionScope, list: &[Address]) -> Option<Reading> {
        let mut roles = vec![(PartyRole::Sender, SENDER), (PartyRole::CalledContract, ROUTER)];
        for effect in self.effects.runs().iter().flatten() {
            let is_approval = effect.kind == EffectKind::Approval;
            roles.push((
                if is_approval {
                    PartyRole::Spender
                } else {
                    PartyRole::Recipient
                },
                effect.to,
            ));
            roles.push((PartyRole::Owner, effect.from));
            if let Token::Contract(contract) = effect.token {
                roles.push((PartyRole::TokenContract, contract));
            }
        }
        let listed = roles
            .into_iter()
            .filter(|(_, address)| list.contains(address) && !address.is_zero());
        let role = listed.map(|(role, _)| role).min()?;
        Some(Reading {
            verdict: Verdict::Deny(DenialReason::Sanctioned { scope, role }),
            ..allow(true)
        })
    }

    fn refused(&self, reason: DenialReason) -> Reading {
        let config = self.config();
        let monitors = config.mode.unwrap_or(self.world.mode) == EnforcementMode::Monitor
            && config.monitor_until.is_none_or(|until| until > NOW);
        let verdict = if monitors {
            Verdict::Monitored(reason)
        } else {
            Verdict::Deny(reason)
        };
        Reading { verdict, ..allow(true) }
    }

    fn currency(&self) -> Currency {
        self.config().currency.unwrap_or(self.world.currency)
    }

    /// Price mantissa and decimals.
    fn price(&self, token: Token) -> Option<(u128, u32)> {
        let row = self.world.rows.iter().rev().find(|(priced, _)| *priced == token);
        let (feed, decimals) = match row.map(|(_, row)| row) {
            Some(row) => match &row.source {
                RowSource::Manual(prices) => {
                    let price = prices.get(&self.currency())?;
                    return Some((price.mantissa(), row.decimals.get().into()));
                }
                RowSource::Feed(feed) => (feed.as_str().to_owned(), u32::from(row.decimals.get())),
            },
            None if token == Token::Native => ("ethereum".to_owned(), 18),
            None => return None,
        };
        let found = self.world.feed.get(&(feed, self.currency()))?;
        let age = (NOW.micros() - found.updated_at.micros()).abs();
        let limit = i64::from(self.world.staleness.0) * 1_000_000;
        (limit == 0 || age <= limit).then(|| (found.price.mantissa(), decimals))
    }

    /// The addresses that gain something and are not the caller's.
    fn beneficiaries(&self) -> Vec<Address> {
        let is_own = |address: &Address| *address == SENDER || self.world.own.contains(address);
        let gains = |address: &Address| !self.gains(*address).is_empty() || self.has_unreadable(*address);
        let candidates = ADDRESSES
            .into_iter()
            .filter(|address| !address.is_zero() && !is_own(address));
        candidates.filter(gains).collect()
    }

    /// The gain of each token: per run and id, then the largest run, then the sum of the ids.
    fn gains(&self, address: Address) -> BTreeMap<Token, i128> {
        let mut gains: BTreeMap<Token, i128> = BTreeMap::new();
        for token in TOKENS {
            for id in [None, Some(units(1)), Some(units(2))] {
                let largest = self.effects.runs().iter().map(|run| net(run, address, token, id)).max();
                let gain = largest.unwrap_or_default().max(0);
                if gain > 0 {
                    *gains.entry(token).or_default() += gain;
                }
            }
        }
        gains
    }

    fn has_unreadable(&self, address: Address) -> bool {
        let is_flow = |effect: &&Effect| {
            effect.kind != EffectKind::Approval
                && effect.to == address
                && effect.from != address
                && !effect.from.is_zero()
                && !address.is_zero()
        };
        let mut flows = self.effects.runs().iter().flatten().filter(is_flow);
        flows.any(|effect| effect.amount.is_none())
    }

    fn earlier(&self, beneficiary: Address) -> BTreeMap<Token, i128> {
        if self.config().linked_window_hours == 0 {
            return BTreeMap::new();
        }
        let sums = self.world.earlier.to(beneficiary);
        sums.map(|(token, amount)| (token, i128::try_from(amount).unwrap()))
            .collect()
    }

    /// The beneficiaries with a priced gain whose value is not below their threshold.
    fn above(&self) -> Vec<Address> {
        let is_above = |beneficiary: &Address| {
            let gains = self.gains(*beneficiary);
            if gains.keys().all(|token| self.price(*token).is_none()) {
                return false;
            }
            // Over the denominator 10^(18 + 18).
            let mut value = U256::ZERO;
            for (token, amount) in gains.into_iter().chain(self.earlier(*beneficiary)) {
                if let Some((mantissa, decimals)) = self.price(token) {
                    let amount = U256::try_from(amount).unwrap();
                    value += amount * U256::from(mantissa) * ten_to(18 - decimals);
                }
            }
            let overrides = [SENDER, *beneficiary].into_iter().filter_map(|address| {
                let rows = self.world.thresholds.iter().rev();
                rows.into_iter()
                    .find(|row| row.address == address)
                    .map(|row| row.threshold)
            });
            let limit = overrides.min().unwrap_or(self.config().threshold);
            // The threshold has the denominator 10^8.
            value >= U256::from(limit.mantissa()) * ten_to(28)
        };
        self.beneficiaries().into_iter().filter(is_above).collect()
    }

    /// The claimed record, else the smallest unused one, then the one that expires first.
    fn record(&self, beneficiary: Address, token: Token, amount: U256) -> Option<TravelRecordId> {
        let mut candidates = Vec::new();
        for (covers, record) in &self.world.records {
            if *covers != key(beneficiary, token) || record.amount < amount {
                continue;
            }
            let rank = match record.state {
                RecordState::Reserved { transaction, .. } | RecordState::Used { transaction, .. }
                    if self.world.transaction == Some(transaction) =>
                {
                    (0, U256::ZERO, NOW)
                }
                RecordState::Unused { expires_at } if expires_at > NOW => (1, record.amount, expires_at),
                RecordState::Unused { .. }
                | RecordState::Reserved { .. }
                | RecordState::Used { .. }
                | RecordState::Expired { .. } => continue,
            };
            candidates.push((rank, record.id));
        }
        candidates.sort_unstable();
        candidates.first().map(|(_, id)| *id)
    }
}

fn ten_to(exponent: u32) -> U256 {
    U256::from(10).pow(U256::from(exponent))
}

/// What an address receives minus what it gives in a run, with what is minted to it and burned by others.
fn net(run: &[Effect], address: Address, token: Token, id: Option<U256>) -> i128 {
    let (mut net, mut minted, mut burned_by_others) = (0_i128, 0_i128, 0_i128);
    for effect in run {
        if effect.kind == EffectKind::Approval || effect.token != token || effect.id != id || effect.from == effect.to {
            continue;
        }
        let amount = i128::try_from(effect.amount.unwrap_or_default()).unwrap();
        let observed = matches!(effect.evidence, Evidence::Frame | Evidence::Log);
        let (from_zero, to_zero) = (effect.from.is_zero(), effect.to.is_zero());
        if observed && from_zero && effect.to == address {
            minted += amount;
        } else if observed && to_zero && effect.from == address {
            minted -= amount;
        } else if observed && to_zero {
            burned_by_others += amount;
        } else if !from_zero && !to_zero && effect.to == address {
            net += amount;
        } else if observed && !from_zero && !to_zero && effect.from == address {
            net -= amount;
        }
    }
    net + minted.max(0).min(burned_by_others)
}

fn address() -> impl Strategy<Value = Address> {
    prop::sample::select(ADDRESSES.to_vec())
}

fn token() -> impl Strategy<Value = Token> {
    prop::sample::select(TOKENS.to_vec())
}

prop_compose! {
    fn effect()(
        token in token(),
        from in prop_oneof![3 => Just(SENDER), 5 => address()],
        to in address(),
        amount in 1_u64..1500,
        id in 1_u64..3,
        rare in 0_u8..20,
    ) -> Effect {
        let moved = moved(token, from, to, amount);
        let with_id = token == Token::Contract(NFT);
        let moved = Effect { id: with_id.then(|| units(id)), ..moved };
        match rare {
            0 if token != Token::Native => Effect { kind: EffectKind::Approval, amount: None, id: None, ..moved },
            1 if token != Token::Native => Effect { amount: None, ..moved },
            2 | 3 => Effect { evidence: Evidence::Calldata, ..moved },
            _ if with_id => Effect { kind: EffectKind::Erc1155, ..moved },
            _ => moved,
        }
    }
}

fn effects() -> impl Strategy<Value = Effects> {
    let run = || prop::collection::vec(effect(), 0..5);
    prop_oneof![
        3 => run().prop_map(|run| vec![run]),
        1 => (run(), run()).prop_map(|(first, second)| vec![first, second]),
    ]
    .prop_map(|runs| Effects::from_parts(SENDER, Some(ROUTER), runs, []))
}

/// How a token gets its price.
fn pricing() -> impl Strategy<Value = u8> {
    prop_oneof![3 => Just(0_u8), 1 => 1_u8..6]
}

fn state() -> impl Strategy<Value = RecordState> {
    let expires_at = prop::sample::select(vec![NOW, NOW.plus(Seconds(5)), NOW.plus(Seconds(9))]);
    let transaction = prop::sample::select(vec![OURS, TransactionKey::Hash(B256::repeat_byte(2))]);
    prop_oneof![
        8 => expires_at.clone().prop_map(|expires_at| RecordState::Unused { expires_at }),
        1 => expires_at.prop_map(|expires_at| RecordState::Expired { expires_at }),
        1 => transaction.clone().prop_map(|transaction| RecordState::Reserved {
            expires_at: NOW,
            transaction,
            lease_until: NOW,
        }),
        1 => transaction.prop_map(|transaction| RecordState::Used {
            used_at: NOW,
            tx_hash: B256::ZERO,
            transaction,
        }),
    ]
}

fn record() -> impl Strategy<Value = (RecordKey, U256, RecordState)> {
    let user = prop_oneof![9 => Just(USER), 1 => Just(UserId::fixed(2))];
    let beneficiary = prop::sample::select(vec![ALICE, BOB, ROUTER]);
    (
        user,
        beneficiary,
        token(),
        prop_oneof![1_u64..3000, 1500_u64..6000],
        state(),
    )
        .prop_map(|(originator, beneficiary, token, amount, state)| {
            let key = RecordKey {
                originator,
                beneficiary,
                token,
            };
            (key, units(amount), state)
        })
}

fn mode() -> impl Strategy<Value = EnforcementMode> {
    prop::sample::select(vec![EnforcementMode::Enforce, EnforcementMode::Monitor])
}

fn sanctioned_addresses() -> impl Strategy<Value = Vec<Address>> {
    let candidates = vec![SENDER, ALICE, BOB, ROUTER, COIN, NFT];
    prop_oneof![8 => Just(Vec::new()), 1 => prop::sample::subsequence(candidates, 1..3)]
}

/// A price that the test arithmetic holds: up to 9 whole units, with or without a fraction.
fn small_price() -> impl Strategy<Value = Price> {
    (0_u64..10, 1_u128..1000).prop_map(|(whole, dust)| match whole {
        0 => Price::from_mantissa(dust).unwrap(),
        whole => price(whole),
    })
}

fn with_price(world: World, token: Token, pricing: u8, decimals: u8, price: Price) -> World {
    let feed = format!("feed-{token}");
    let fresh = Timestamp::from_micros(NOW.micros() - 900_000_000);
    let stale = Timestamp::from_micros(fresh.micros() - 1);
    match pricing {
        0 => world.priced(token, decimals, price),
        1 => world.priced_in(token, decimals, &[(Currency::EUR, price)]),
        2 => world
            .fed(token, decimals, &feed)
            .feed_price(&feed, Currency::USD, price, fresh),
        3 => world
            .fed(token, decimals, &feed)
            .feed_price(&feed, Currency::USD, price, stale),
        4 => world
            .fed(token, decimals, &feed)
            .feed_price(&feed, Currency::EUR, price, fresh),
        _ => world,
    }
}

prop_compose! {
    fn facts()(
        prices in prop::array::uniform3((pricing(), 0_u8..4, small_price())),
        rules in prop_oneof![1 => Just(0_u8), 1 => Just(1), 12 => Just(2)],
        limit in prop_oneof![1 => Just(0_u64), 2 => 0_u64..3000],
        allowed in any::<bool>(),
        own_mode in prop::option::of(mode()),
        mode in mode(),
        until in prop::option::of(prop::sample::select(vec![NOW, NOW.plus(Seconds(1))])),
        currency in prop::sample::select(vec![None, None, Some(Currency::USD), Some(Currency::EUR)]),
        window in 0_u32..2,
    )(
        overrides in prop::collection::vec((address(), 0_u64..3000), 0..3),
        global in sanctioned_addresses(),
        org in sanctioned_addresses(),
        always in any::<bool>(),
        records in prop::collection::vec(record(), 0..24),
        own in prop::sample::subsequence(vec![ALICE, BOB, ROUTER], 0..2),
        earlier in prop::collection::vec((address(), token(), 1_u64..500), 0..4),
        is_ours in any::<bool>(),
        base in Just((prices, rules, limit, allowed, own_mode, mode, until, currency, window)),
    ) -> World {
        let (prices, rules, limit, allowed, own_mode, mode, until, currency, window) = base;
        let mut world = World::default().threshold(threshold(limit));
        for (token, (pricing, decimals, price)) in TOKENS.into_iter().zip(prices) {
            world = with_price(world, token, pricing, decimals, price);
        }
        world = world.change_config(|config| {
            config.mode = own_mode;
            config.monitor_until = until;
            config.currency = currency;
            config.linked_window_hours = window;
            if allowed {
                config.unknown_price = UnknownPricePolicy::Allowed;
            }
        });
        for (address, whole) in overrides {
            world = world.threshold_of(address, whole);
        }
        for (number, (key, amount, state)) in (1_u128..).zip(records) {
            world = world.record_in(number, key, amount, state);
        }
        for (beneficiary, token, amount) in earlier {
            world.earlier.add(beneficiary, token, units(amount));
        }
        (world.mode, world.global, world.org, world.sanctions_always) = (mode, global, org, always);
        world.own = own.into_iter().collect();
        world.transaction = is_ours.then_some(OURS);
        match rules {
            0 => world.unconfigured(),
            1 => world.disabled(),
            _ => world,
        }
    }
}

fn decided(world: &World, effects: &Effects) -> Reading {
    let decision = world.decide(effects);
    let claims = decision
        .claims
        .iter()
        .map(|claim| (claim.key, claim.amount, claim.record));
    let row = decision.log.as_ref();
    assert!(row.is_none_or(|row| row.verdict == decision.verdict));
    assert!(row.is_none_or(|row| row.records.len() == decision.claims.len()));
    Reading {
        verdict: decision.verdict,
        is_logged: decision.log.is_some(),
        claims: claims.collect(),
        last_step: decision.steps.last().map_or(0, StepResult::step),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    /// Section 7: both readings agree in verdict, reason, logging, claims and the step that decides.
    #[test]
    fn section_7_a_second_reading_agrees(world in facts(), effects in effects()) {
        prop_assert_eq!(decided(&world, &effects), read(&world, &effects));
    }
}

/// The random worlds reach every row of the table, so that the agreement says something about each.
#[test]
fn the_random_facts_reach_every_row() {
    use proptest::{strategy::ValueTree, test_runner::TestRunner};
    let mut runner = TestRunner::deterministic();
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for _ in 0..2_000 {
        let world = facts().new_tree(&mut runner).unwrap().current();
        let effects = effects().new_tree(&mut runner).unwrap().current();
        let reading = read(&world, &effects);
        let verdict = match reading.verdict {
            Verdict::Allow => "allow",
            Verdict::Monitored(_) => "monitored",
            Verdict::Deny(_) => "deny",
        };
        let claims = reading.claims.len().min(2);
        *seen
            .entry(format!("{} {verdict} {claims}", reading.last_step))
            .or_default() += 1;
    }
    let rows: Vec<&str> = seen
        .iter()
        .filter(|(_, count)| **count >= 5)
        .map(|(row, _)| row.as_str())
        .collect();
    let expected = [
        "2 deny 0",
        "3 allow 0",
        "4 allow 0",
        "4 deny 0",
        "5 deny 0",
        "5 monitored 0",
        "7 allow 0",
        "8 allow 1",
        "8 allow 2",
        "9 deny 0",
        "9 monitored 0",
    ];
    assert_eq!(rows, expected, "{seen:?}");
}
