//! Custom methods (spec/20 §13, G3, G4).

use super::support::{RequestBuilder, anonymous_request, permit, reason, request_as, request_from, verdict};
use gw_evm::{AllowListMatch, Method, wire::Pin};
use gw_policy::{
    Snapshot,
    access::{Caller, Decision, Plan},
    settings::KycGate,
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

/// Two organizations with contracts. The analyst of the bank may use every method, including custom methods.
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
        .custom_methods(&["linea_*"], &[]);
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

fn custom_request<'s>(snapshot: &'s Snapshot, user: &str) -> RequestBuilder<'s> {
    request_as(snapshot, user).with_custom_methods(&file())
}

fn plan(decision: Decision) -> Plan {
    permit(decision).plan()
}

#[test]
fn n2_all_checks_of_the_registry_method_apply_to_an_alias() {
    let snapshot = bank().snapshot();
    let analyst = custom_request(&snapshot, "analyst");
    let call = |to: &str| json!([{"to": address_of(to), "data": "0x01020304"}]);
    for (to, expected) in [
        ("bond", "TRACE"),
        ("vault", "contract_not_permitted"),
        ("secret", "foreign_org"),
    ] {
        assert_eq!(verdict(&analyst.rpc("linea_call", call(to))), expected);
        assert_eq!(verdict(&analyst.rpc("eth_call", call(to))), expected);
    }
    let balance = |name: &str| json!([address_of(name), "latest"]);
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
        (allowed.method(), allowed.allow_list_match()),
        (Some(Method::GetBalance), Some(AllowListMatch::ByPrefix))
    );
    let upstream = allowed
        .body(
            allowed.call(),
            Pin {
                number: 1,
                hash: B256::ZERO,
            },
        )
        .unwrap();
    assert_eq!(upstream.method, "linea_balance");
}

/// The method list must contain the name of the custom method itself. This includes the list of the organization that
/// owns the emitter of logs.
#[test]
fn n2_g3_a_method_list_must_name_the_alias_itself() {
    let snapshot_with = |entries: &[&str]| {
        let world = world()
            .org("bank")
            .group("g")
            .every_method()
            .custom_methods(entries, &[])
            .user("analyst")
            .member("g");
        world.link("wallet").contract("bond").grant("g").snapshot()
    };
    let balance = json!([address_of("wallet")]);
    let logs = json!([{"address": address_of("bond")}]);
    let (without, with_names, with_other) = (
        snapshot_with(&[]),
        snapshot_with(&["LINEA_balance", "linea_logs"]),
        snapshot_with(&["linea_call"]),
    );
    for snapshot in [&without, &with_other] {
        assert_eq!(
            reason(&custom_request(snapshot, "analyst").rpc("linea_balance", balance.clone())),
            DenyReason::MethodNotAllowed
        );
        assert_eq!(
            reason(&custom_request(snapshot, "analyst").rpc("linea_logs", logs.clone())),
            DenyReason::MethodNotAllowed
        );
        assert_eq!(
            reason(&custom_request(snapshot, "analyst").rpc("linea_other", json!([]))),
            DenyReason::MethodNotAllowed
        );
    }
    let analyst = custom_request(&with_names, "analyst");
    assert_eq!(
        permit(analyst.rpc("linea_balance", balance.clone())).allow_list_match(),
        Some(AllowListMatch::ByName)
    );
    assert!(permit(analyst.rpc("linea_logs", logs)).shared_logs_only().is_empty());
    assert_eq!(
        reason(&analyst.rpc("linea_other", json!([]))),
        DenyReason::MethodNotAllowed
    );
    // G4: an entry has no effect if the file does not define its prefix.
    let with_prefix = snapshot_with(&["linea_*"]);
    assert_eq!(
        reason(&request_as(&with_prefix, "analyst").rpc("linea_balance", balance)),
        DenyReason::MethodUnknown
    );
}

#[test]
fn n2_n3_anonymous_callers_get_no_custom_method_except_metadata() {
    let snapshot = bank().snapshot();
    let anonymous = anonymous_request(&snapshot).with_custom_methods(&file());
    for name in ["linea_call", "linea_balance", "linea_send", "linea_other"] {
        assert_eq!(
            reason(&anonymous.rpc(name, json!([]))),
            DenyReason::AuthRequired,
            "{name}"
        );
    }
    assert_eq!(
        verdict(&custom_request(&snapshot, "stranger").rpc("linea_chain", json!([]))),
        "FORWARD"
    );
}

/// N3: first a call without addresses, which no rule denies; then calls with addresses, which the rule denies.
#[test]
fn n3_a_passthrough_call_must_not_contain_foreign_addresses() {
    let snapshot = bank().snapshot();
    let analyst = custom_request(&snapshot, "analyst");
    let reads = |param: Value| analyst.rpc("linea_getState", json!([param, "latest"]));
    let hex = |name: &str| format!("{:#x}", address_of(name));
    let word = |name: &str| format!("0x70a08231{}{:x}", "0".repeat(24), address_of(name));
    let packed = |name: &str| format!("0x01{:x}ff", address_of(name));
    assert_eq!(
        plan(reads(json!(null))),
        Plan::Passthrough,
        "the call has no address to check"
    );
    for (name, expected) in [
        ("secret", DenyReason::ForeignOrg),
        ("planned", DenyReason::ForeignOrg),
        ("vault", DenyReason::ContractNotPermitted),
    ] {
        for param in [
            json!(hex(name)),
            json!(word(name)),
            json!(packed(name)),
            json!({"a": [{"b": hex(name)}]}),
        ] {
            assert_eq!(reason(&reads(param.clone())), expected, "{name} as {param}");
        }
        let escaped: Value = serde_json::from_str(&format!("\"\\u0030x{:x}\"", address_of(name))).unwrap();
        assert_eq!(reason(&reads(escaped)), expected, "{name}");
        assert_eq!(
            reason(&reads(json!({hex(name): 1}))),
            expected,
            "{name} as a member name"
        );
    }
    for own in ["bond", "wallet", "utility"] {
        for param in [json!(hex(own)), json!(word(own)), json!(packed(own))] {
            assert_eq!(plan(reads(param)), Plan::Passthrough, "{own}");
        }
    }
    assert_eq!(plan(reads(json!(Address::ZERO))), Plan::Passthrough);
    assert_eq!(
        reason(&reads(json!(hex("pinned")))),
        DenyReason::Unregistered,
        "the code pin cannot be checked"
    );
}

/// HD6, T2: the decision does not reveal whether an address is linked.
#[test]
fn n3_hd6_an_unused_address_is_denied_like_a_linked_one() {
    let snapshot = bank().snapshot();
    let analyst = custom_request(&snapshot, "analyst");
    let reads = |param: Value| analyst.rpc("linea_getState", json!([param]));
    for name in ["theirs", "nobody's"] {
        let word = format!("0x70a08231{}{:x}", "0".repeat(24), address_of(name));
        for param in [json!(address_of(name)), json!(word)] {
            assert_eq!(reason(&reads(param)), DenyReason::Unregistered, "{name}");
        }
    }
    // Bytes that may also be a number are denied for neither address.
    for name in ["theirs", "nobody's"] {
        let packed = format!("0x01{:x}ff", address_of(name));
        assert_eq!(plan(reads(json!(packed))), Plan::Passthrough, "{name}");
    }
    // An amount is not an address.
    assert_eq!(
        plan(analyst.rpc("linea_x", json!([format!("0x{:064x}", 1_u128 << 100)]))),
        Plan::Passthrough
    );
}

#[test]
fn n3_g4_denied_and_blocked_names_override_every_entry() {
    let world = world()
        .org("bank")
        .group("g")
        .every_method()
        .user("analyst")
        .member("g");
    let snapshot = world
        .custom_methods(&["linea_*", "linea_signX", "trace_block", "trace_*"], &["linea_secret"])
        .snapshot();
    let analyst = custom_request(&snapshot, "analyst");
    for name in ["linea_sign", "linea_SIGNx", "trace_block", "linea_secret"] {
        assert_eq!(
            reason(&analyst.rpc(name, json!([]))),
            DenyReason::MethodNotAllowed,
            "{name}"
        );
    }
    assert_eq!(
        permit(analyst.rpc("linea_other", json!([]))).allow_list_match(),
        Some(AllowListMatch::ByPrefix)
    );
}

/// N3: a passthrough call requires the rights of a send, regardless of the KYC gate.
#[test]
fn n3_passthrough_calls_need_kyc_and_the_right_to_send() {
    let member = |world: World| world.org("bank").group("g").custom_methods(&["linea_*"], &[]);
    let plain = member(world()).user("analyst").member("g").snapshot();
    assert_eq!(
        plan(custom_request(&plain, "analyst").rpc("linea_x", json!([]))),
        Plan::Passthrough
    );
    let unverified = member(world()).user("analyst").no_kyc().member("g").snapshot();
    let gate =
        |gate: KycGate| custom_request(&unverified, "analyst").with_settings(|settings| settings.kyc_gate = gate);
    for gate in [gate(KycGate::Writes), gate(KycGate::All)] {
        assert_eq!(reason(&gate.rpc("linea_x", json!([]))), DenyReason::KycRequired);
    }
    let suspended = member(world()).user("analyst").member("g").suspended().snapshot();
    assert_eq!(
        reason(&custom_request(&suspended, "analyst").rpc("linea_x", json!([]))),
        DenyReason::TraceMismatch
    );
    // HD17: personal URLs never allow passthrough calls, regardless of their scope.
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
    let request = request_from(&snapshot, caller).with_custom_methods(&file());
    assert_eq!(reason(&request.rpc("linea_x", json!([]))), DenyReason::MethodNotAllowed);
}

/// O3: a passthrough call with contracts of two organizations is ambiguous.
#[test]
fn n3_o3_the_owner_of_the_addresses_decides() {
    let world = world()
        .org("one")
        .group("a")
        .custom_methods(&["linea_*"], &[])
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
    let analyst = custom_request(&snapshot, "analyst");
    let reads = |names: &[&str]| json!(names.iter().map(|name| address_of(name)).collect::<Vec<_>>());
    assert_eq!(plan(analyst.rpc("linea_x", reads(&["first"]))), Plan::Passthrough);
    assert_eq!(
        reason(&analyst.rpc("linea_x", reads(&["second"]))),
        DenyReason::MethodNotAllowed,
        "not in the list of this organization"
    );
    assert_eq!(
        reason(&analyst.rpc("linea_x", reads(&["first", "second"]))),
        DenyReason::OrgAmbiguous
    );
    let named_request = custom_request(&snapshot, "analyst").in_org("two");
    // HD39: with the second organization named, the first contract is foreign, and the second organization lists no
    // custom method.
    assert_eq!(
        reason(&named_request.rpc("linea_x", reads(&["first"]))),
        DenyReason::MethodNotAllowed
    );
}
