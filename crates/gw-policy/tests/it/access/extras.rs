//! Methods beside the registry (spec/20 §13, G3, G4).

use super::support::{Ask, ask, ask_anonymously, ask_as, permit, reason, verdict};
use gw_evm::{Listed, Method, wire::Pin};
use gw_policy::{
    Snapshot,
    access::{Caller, Decision, Plan},
    knobs::KycGate,
    snapshot::{PersonalUrl, UrlReach},
    testing::{NOW, World, address_of, user_id, world},
};
use gw_types::{Address, B256, DenyReason, Seconds};
use serde_json::{Value, json};
use std::sync::Arc;

fn file() -> Value {
    json!({"version": 2, "namespaces": {"linea": {
        "explicit": [
            {"method": "linea_call", "alias": "eth_call"},
            {"method": "linea_balance", "alias": "eth_getBalance"},
            {"method": "linea_logs", "alias": "eth_getLogs"},
            {"method": "linea_chain", "alias": "eth_chainId"},
            {"method": "linea_send", "alias": "eth_sendRawTransaction"},
        ],
        "wildcard": {"prefix": "linea_", "deny": ["linea_sign*"]},
    }}})
}

/// Two organizations with a contract each; the analyst of the bank may use everything, beside the registry too.
fn bank() -> World {
    let world = world()
        .org("rival")
        .group("rivals")
        .every_method()
        .user("stranger")
        .member("rivals")
        .link("theirs");
    let world = world
        .contract("secret")
        .grant("rivals")
        .reservation("planned", NOW.plus(Seconds(60)));
    let world = world
        .org("bank")
        .group("analysts")
        .every_method()
        .extras(&["linea_*"], &[]);
    world
        .user("analyst")
        .member("analysts")
        .link("wallet")
        .contract("bond")
        .grant("analysts")
        .contract("vault")
        .shared("utility")
        .shared_pinned("pinned", &[1], None)
}

fn asking<'s>(snapshot: &'s Snapshot, user: &str) -> Ask<'s> {
    ask(snapshot, user).beside(&file())
}

fn plan(decision: Decision) -> Plan {
    permit(decision).plan()
}

#[test]
fn n2_an_aliased_method_takes_the_whole_row() {
    let snapshot = bank().snapshot();
    let analyst = asking(&snapshot, "analyst");
    let call = |to: &str| json!([{"to": address_of(to), "data": "0x01020304"}]);
    for (to, expected) in [
        ("bond", "TRACE"),
        ("vault", "contract_not_permitted"),
        ("secret", "foreign_org"),
    ] {
        assert_eq!(verdict(&analyst.rpc("linea_call", call(to))), expected);
        assert_eq!(verdict(&analyst.rpc("eth_call", call(to))), expected);
    }
    let balance = |of: &str| json!([address_of(of), "latest"]);
    assert_eq!(plan(analyst.rpc("linea_balance", balance("wallet"))), Plan::Forward);
    assert_eq!(
        plan(analyst.rpc("linea_balance", balance("theirs"))),
        Plan::ZeroQuantity
    );
    // H1, and the shape of the parameters.
    let past = json!([address_of("wallet"), "earliest"]);
    assert_eq!(
        reason(&analyst.rpc("linea_balance", past)),
        DenyReason::HistoryNotPermitted
    );
    assert!(matches!(
        analyst.rpc("linea_balance", json!(["0x12"])),
        Decision::Invalid(_)
    ));
    let allowed = permit(analyst.rpc("LINEA_balance", balance("wallet")));
    assert_eq!(
        (allowed.method(), allowed.listed()),
        (Some(Method::GetBalance), Some(Listed::ByPrefix))
    );
    let asked = allowed
        .body(
            allowed.call(),
            Pin {
                number: 1,
                hash: B256::ZERO,
            },
        )
        .unwrap();
    assert_eq!(asked.method, "linea_balance");
}

/// A row's own list is asked for the own name: of the organization that owns the emitter, too.
#[test]
fn n2_g3_the_list_names_the_method_not_its_row() {
    let lists = |extras: &[&str]| {
        let world = world()
            .org("bank")
            .group("g")
            .every_method()
            .extras(extras, &[])
            .user("analyst")
            .member("g");
        world.link("wallet").contract("bond").grant("g").snapshot()
    };
    let balance = json!([address_of("wallet")]);
    let logs = json!([{"address": address_of("bond")}]);
    let (none, named, other) = (
        lists(&[]),
        lists(&["LINEA_balance", "linea_logs"]),
        lists(&["linea_call"]),
    );
    for snapshot in [&none, &other] {
        assert_eq!(
            reason(&asking(snapshot, "analyst").rpc("linea_balance", balance.clone())),
            DenyReason::MethodNotAllowed
        );
        assert_eq!(
            reason(&asking(snapshot, "analyst").rpc("linea_logs", logs.clone())),
            DenyReason::MethodNotAllowed
        );
        assert_eq!(
            reason(&asking(snapshot, "analyst").rpc("linea_other", json!([]))),
            DenyReason::MethodNotAllowed
        );
    }
    let analyst = asking(&named, "analyst");
    assert_eq!(
        permit(analyst.rpc("linea_balance", balance.clone())).listed(),
        Some(Listed::ByName)
    );
    assert!(permit(analyst.rpc("linea_logs", logs)).shared_logs_only().is_empty());
    assert_eq!(
        reason(&analyst.rpc("linea_other", json!([]))),
        DenyReason::MethodNotAllowed
    );
    // G4: without the prefix in the file the entry means nothing.
    let starred = lists(&["linea_*"]);
    assert_eq!(
        reason(&ask(&starred, "analyst").rpc("linea_balance", balance)),
        DenyReason::MethodUnknown
    );
}

#[test]
fn n2_n3_nobody_in_particular_gets_nothing_but_metadata() {
    let snapshot = bank().snapshot();
    let nobody = ask_anonymously(&snapshot).beside(&file());
    for name in ["linea_call", "linea_balance", "linea_send", "linea_other"] {
        assert_eq!(reason(&nobody.rpc(name, json!([]))), DenyReason::AuthRequired, "{name}");
    }
    assert_eq!(
        verdict(&asking(&snapshot, "stranger").rpc("linea_chain", json!([]))),
        "FORWARD"
    );
}

/// N3: the attack first, by the rule that is missing for what is no address; then what the rule refuses.
#[test]
fn n3_a_call_that_passes_unexamined_names_nobody_elses_address() {
    let snapshot = bank().snapshot();
    let analyst = asking(&snapshot, "analyst");
    let reads = |what: Value| analyst.rpc("linea_getState", json!([what, "latest"]));
    let hex = |name: &str| format!("{:#x}", address_of(name));
    let word = |name: &str| format!("0x70a08231{}{:x}", "0".repeat(24), address_of(name));
    let packed = |name: &str| format!("0x01{:x}ff", address_of(name));
    assert_eq!(
        plan(reads(json!(null))),
        Plan::Unexamined,
        "the node would answer whatever is asked"
    );
    for (name, refused) in [
        ("secret", DenyReason::ForeignOrg),
        ("planned", DenyReason::ForeignOrg),
        ("vault", DenyReason::ContractNotPermitted),
    ] {
        for written in [
            json!(hex(name)),
            json!(word(name)),
            json!(packed(name)),
            json!({"a": [{"b": hex(name)}]}),
        ] {
            assert_eq!(reason(&reads(written.clone())), refused, "{name} as {written}");
        }
        let escaped: Value = serde_json::from_str(&format!("\"\\u0030x{:x}\"", address_of(name))).unwrap();
        assert_eq!(reason(&reads(escaped)), refused, "{name}");
        assert_eq!(
            reason(&reads(json!({hex(name): 1}))),
            refused,
            "{name} as the name of a member"
        );
    }
    for own in ["bond", "wallet", "utility"] {
        for written in [json!(hex(own)), json!(word(own)), json!(packed(own))] {
            assert_eq!(plan(reads(written)), Plan::Unexamined, "{own}");
        }
    }
    assert_eq!(plan(reads(json!(Address::ZERO))), Plan::Unexamined);
    assert_eq!(
        reason(&reads(json!(hex("pinned")))),
        DenyReason::Unregistered,
        "nobody looks at the code"
    );
}

/// HD6, T2: whether an address is somebody's is not told by the answer.
#[test]
fn n3_hd6_an_unused_address_is_refused_like_a_linked_one() {
    let snapshot = bank().snapshot();
    let analyst = asking(&snapshot, "analyst");
    let reads = |what: Value| analyst.rpc("linea_getState", json!([what]));
    for name in ["theirs", "nobody's"] {
        let word = format!("0x70a08231{}{:x}", "0".repeat(24), address_of(name));
        for written in [json!(address_of(name)), json!(word)] {
            assert_eq!(reason(&reads(written)), DenyReason::Unregistered, "{name}");
        }
    }
    // Where the bytes may as well be a number, neither is refused.
    for name in ["theirs", "nobody's"] {
        let packed = format!("0x01{:x}ff", address_of(name));
        assert_eq!(plan(reads(json!(packed))), Plan::Unexamined, "{name}");
    }
    // An amount is no address.
    assert_eq!(
        plan(analyst.rpc("linea_x", json!([format!("0x{:064x}", 1_u128 << 100)]))),
        Plan::Unexamined
    );
}

#[test]
fn n3_g4_denied_names_and_blocked_ones_beat_every_entry() {
    let world = world()
        .org("bank")
        .group("g")
        .every_method()
        .user("analyst")
        .member("g");
    let snapshot = world
        .extras(&["linea_*", "linea_signX", "trace_block", "trace_*"], &["linea_secret"])
        .snapshot();
    let analyst = asking(&snapshot, "analyst");
    for name in ["linea_sign", "linea_SIGNx", "trace_block", "linea_secret"] {
        assert_eq!(
            reason(&analyst.rpc(name, json!([]))),
            DenyReason::MethodNotAllowed,
            "{name}"
        );
    }
    assert_eq!(
        permit(analyst.rpc("linea_other", json!([]))).listed(),
        Some(Listed::ByPrefix)
    );
}

/// N3: what nobody examines needs what a send needs, whatever the gate of KYC is.
#[test]
fn n3_what_passes_unexamined_needs_kyc_and_the_right_to_send() {
    let member = |world: World| world.org("bank").group("g").extras(&["linea_*"], &[]);
    let plain = member(world()).user("analyst").member("g").snapshot();
    assert_eq!(
        plan(asking(&plain, "analyst").rpc("linea_x", json!([]))),
        Plan::Unexamined
    );
    let unknown = member(world()).user("analyst").no_kyc().member("g").snapshot();
    let gate = |gate: KycGate| asking(&unknown, "analyst").with(|knobs| knobs.kyc_gate = gate);
    for gate in [gate(KycGate::Writes), gate(KycGate::All)] {
        assert_eq!(reason(&gate.rpc("linea_x", json!([]))), DenyReason::KycRequired);
    }
    let suspended = member(world()).user("analyst").member("g").suspended().snapshot();
    assert_eq!(
        reason(&asking(&suspended, "analyst").rpc("linea_x", json!([]))),
        DenyReason::TraceMismatch
    );
    // HD17: not for the page behind a wallet, whatever its URL reaches.
    let user = plain.user(user_id("analyst")).unwrap().clone();
    let url = PersonalUrl {
        id: gw_types::PersonalUrlId::fixed(1),
        user: user.id,
        org: gw_policy::testing::org_id("bank"),
        secret: B256::ZERO,
        reach: UrlReach::All,
        created_at: NOW,
        expires_at: NOW.plus(Seconds(60)),
    };
    let snapshot = plain.apply(
        gw_types::Epoch(9),
        [gw_policy::Change::PersonalUrl(url.id, Some(url.clone()))],
    );
    let caller = Caller::Url(user, Arc::new(url));
    let asked = ask_as(&snapshot, caller).beside(&file());
    assert_eq!(reason(&asked.rpc("linea_x", json!([]))), DenyReason::MethodNotAllowed);
}

/// O3: contracts of two organizations in one call are neither's matter.
#[test]
fn n3_o3_the_owner_of_what_is_named_judges() {
    let world = world()
        .org("one")
        .group("a")
        .extras(&["linea_*"], &[])
        .user("analyst")
        .member("a");
    let world = world
        .contract("first")
        .grant("a")
        .org("two")
        .group("b")
        .user("analyst")
        .member("b");
    let snapshot = world.contract("second").grant("b").snapshot();
    let analyst = asking(&snapshot, "analyst");
    let reads = |names: &[&str]| json!(names.iter().map(|name| address_of(name)).collect::<Vec<_>>());
    assert_eq!(plan(analyst.rpc("linea_x", reads(&["first"]))), Plan::Unexamined);
    assert_eq!(
        reason(&analyst.rpc("linea_x", reads(&["second"]))),
        DenyReason::MethodNotAllowed,
        "not in its list"
    );
    assert_eq!(
        reason(&analyst.rpc("linea_x", reads(&["first", "second"]))),
        DenyReason::OrgAmbiguous
    );
    let named = asking(&snapshot, "analyst").naming("two");
    // HD39: under the name of the other one it is a stranger's, and that one lists nothing.
    assert_eq!(
        reason(&named.rpc("linea_x", reads(&["first"]))),
        DenyReason::MethodNotAllowed
    );
}
