//! Addresses, tokens, holders, balances and contracts, and what the scope of a viewer costs.

use super::scenario::{address, viewer};
use gw_policy::{
    PolicySettings, Snapshot,
    snapshot::Moment,
    snapshot::{Constraint, EventRule, ParamRule},
    testing::{FUTURE, World, address_of, hash_of, world},
    visibility::{
        TransactionRow,
        explorer::{AddressText, TransactionEntry},
    },
};
use gw_types::{B256, Claim, Level};

const SPEC: PolicySettings = PolicySettings::SPEC;

fn bank() -> World {
    world()
        .org("bank")
        .group("staff")
        .group("guests")
        .contract("token")
        .grant("staff")
        .shared("infra")
        .user("clerk")
        .member("staff")
        .user("holder")
        .member("guests")
        .link("holder")
        .user("other")
        .link("other")
}

fn opened(snapshot: &Snapshot, user: &str) -> Vec<&'static str> {
    let names = ["token", "holder", "other", "infra", "precompile", "zero", "nowhere"];
    let viewer = viewer(snapshot, user, &SPEC);
    names
        .into_iter()
        .filter(|name| viewer.opens_address(address(name)))
        .collect()
}

/// HD5, HD8, HD9: statistics and look-ups exist for addresses that are Full by right, and for the zero address.
#[test]
fn hd5_hd9_addresses_that_a_request_may_name() {
    let snapshot = bank().snapshot();
    assert_eq!(opened(&snapshot, "clerk"), ["token", "zero"]);
    assert_eq!(opened(&snapshot, "holder"), ["holder", "zero"]);
    assert_eq!(opened(&snapshot, "nobody"), ["zero"]);
    let disclosed = |level, narrow: bool| {
        let built = bank().org("bank").user("holder").disclosed_to("clerk", level);
        let built = built.with_disclosures(|grant| {
            if narrow {
                grant.scope.methods = Some(vec!["activity_logs".to_owned()]);
            }
        });
        built.snapshot()
    };
    assert_eq!(
        opened(&disclosed(Level::Full, false), "clerk"),
        ["token", "holder", "zero"]
    );
    assert_eq!(opened(&disclosed(Level::Full, true), "clerk"), ["token", "zero"]);
    assert_eq!(
        opened(&disclosed(Level::Pseudonymous, false), "clerk"),
        ["token", "zero"]
    );
}

/// Section 9, HD8, HD28, HD40: holders of a token.
#[test]
fn hd8_holders() {
    let snapshot = bank().org("bank").contract("vault").org("fund").contract("foreign");
    let snapshot = snapshot
        .org("bank")
        .user("holder")
        .disclosed_to("clerk", Level::Pseudonymous)
        .snapshot();
    let clerk = viewer(&snapshot, "clerk", &SPEC);
    let holder = |name: &str| clerk.holder_entry(address("token"), address(name));
    let alias = holder("holder").unwrap();
    assert!(matches!(alias.holder.text, AddressText::Alias(_)) && !alias.balance);
    assert!(holder("zero").unwrap().balance);
    assert!(holder("token").unwrap().balance);
    for hidden in ["vault", "foreign", "other", "nowhere", "infra", "precompile"] {
        assert_eq!(holder(hidden), None, "{hidden}");
    }
    let stranger = viewer(&snapshot, "other", &SPEC);
    assert_eq!(
        stranger.holder_entry(address("token"), address("other")),
        None,
        "the token is hidden"
    );
    let closed = bank().quarantined("holder").snapshot();
    let own = viewer(&closed, "holder", &SPEC);
    assert!(!own.shows_token(address("token")) && !own.shows_token(address("zero")));
}

/// Section 9: balances of an address, by their tokens.
#[test]
fn balances_are_shown_by_their_tokens() {
    let snapshot = bank().user("clerk").link("clerk").snapshot();
    let clerk = viewer(&snapshot, "clerk", &SPEC);
    let shown = clerk.balance_entry(address("clerk"), address("token")).unwrap();
    assert!(shown.token.is_clear() && shown.balance);
    assert_eq!(clerk.balance_entry(address("clerk"), address("coin")), None);
    assert_eq!(clerk.balance_entry(address("holder"), address("token")), None);
    let closed = bank().user("clerk").link("clerk").quarantined("clerk").snapshot();
    let closed = viewer(&closed, "clerk", &SPEC).balance_entry(address("clerk"), address("token"));
    assert!(!closed.unwrap().balance, "HD28");
}

/// Section 9: the creator of a contract by its own level, the hash of the creation if that is visible.
#[test]
fn contracts_show_their_creator_by_its_own_level() {
    let snapshot = bank().snapshot();
    let creation = TransactionEntry {
        row: TransactionRow {
            hash: hash_of("creation"),
            from: address("holder"),
            to: None,
            moment: Moment::Block(5),
            time: None,
        },
        created: Some(address("token")),
        transfers: &[],
    };
    let shown =
        |user: &str| viewer(&snapshot, user, &SPEC).contract_entry(address("token"), address("holder"), &creation);
    let clerk = shown("clerk").unwrap();
    assert!(!clerk.creator.is_clear() && !clerk.creation_tx);
    assert_eq!(shown("holder"), None);
}

/// Section 11: rules on the data and on constants are candidates with their rules; all other logs are selected
/// without a look at them, rules of own addresses in topics by these addresses.
#[test]
fn logs_with_parameter_rules_are_candidates() {
    let rule = |topic0, params| EventRule { topic0, params };
    let own = ParamRule {
        index: 0,
        must_be: Constraint::Own,
    };
    let constant = ParamRule {
        index: 0,
        must_be: Constraint::Word(B256::with_last_byte(9)),
    };
    let [free, bound, constrained] = [1, 2, 3].map(B256::with_last_byte);
    let snapshot = world()
        .org("bank")
        .group("admins")
        .org_admin()
        .group("staff")
        .contract("token")
        .grant("staff")
        .events([
            rule(free, vec![]),
            rule(bound, vec![own]),
            rule(constrained, vec![constant.clone()]),
        ])
        .contract("open")
        .grant("staff")
        .user("admin")
        .member("admins")
        .user("clerk")
        .member("staff")
        .snapshot();
    let logs = |user: &str, settings: &PolicySettings| viewer(&snapshot, user, settings).row_scope().logs[0].clone();
    let clerk = logs("clerk", &SPEC);
    let emitters: Vec<_> = clerk.emitters.iter().map(|emitter| emitter.address).collect();
    assert_eq!(emitters, [address_of("open")]);
    let events: Vec<_> = clerk
        .events
        .iter()
        .map(|(emitter, topic0)| (emitter.address, *topic0))
        .collect();
    assert_eq!(events, [(address_of("token"), free)]);
    assert_eq!(clerk.candidates.len(), 1);
    assert_eq!(clerk.candidates[0].rules, [rule(constrained, vec![constant])]);
    // K3 `drop`: without an ABI no log of these contracts is shown.
    let strict = logs("clerk", &PolicySettings::STRICT);
    assert_eq!(
        (strict.emitters.len(), strict.events.len(), strict.candidates.len()),
        (0, 0, 0)
    );
    let admin = logs("admin", &PolicySettings::STRICT);
    assert_eq!((admin.emitters.len(), admin.candidates.len()), (2, 0));
}

/// A key of a cache: equal rights give equal fingerprints, any other right another one.
#[test]
fn fingerprints_differ_by_what_makes_rows_visible() {
    let base = bank().snapshot();
    let fingerprint =
        |snapshot: &Snapshot, settings: &PolicySettings| viewer(snapshot, "clerk", settings).row_scope().fingerprint();
    let own = fingerprint(&base, &SPEC);
    assert_eq!(own, fingerprint(&bank().user("newcomer").link("far").snapshot(), &SPEC));
    let others = [
        bank().user("clerk").link("clerk").snapshot(),
        bank().user("clerk").contract_link("clerk").snapshot(),
        bank().org("bank").contract("more").grant("staff").snapshot(),
        bank().user("other").share("t", &["clerk"]).snapshot(),
        bank().convicted(hash_of("t"), "other").snapshot(),
        bank().quarantined("token").snapshot(),
        bank().user("holder").disclosed_to("clerk", Level::Redacted).snapshot(),
        bank().user("holder").disclosed_to("clerk", Level::Full).snapshot(),
        bank()
            .org("bank")
            .group("staff")
            .claim(Claim::Deploy)
            .user("clerk")
            .reservation("next", FUTURE)
            .snapshot(),
    ];
    let mut all: Vec<_> = others.iter().map(|snapshot| fingerprint(snapshot, &SPEC)).collect();
    all.extend([own, fingerprint(&base, &PolicySettings::STRICT)]);
    let count = all.len();
    all.sort_unstable_by_key(|fingerprint| fingerprint.0);
    all.dedup();
    assert_eq!(all.len(), count);
}
