//! Calls on shared infrastructure (X6, spec/20 §10): everybody has access, except to its logs.

use super::support::{permit, reason, request_as, verdict};
use gw_evm::Method;
use gw_policy::{
    RawJson, Sealed, Snapshot, Viewer,
    access::check_pin,
    settings::PolicySettings,
    snapshot::SystemToggle,
    testing::{FUTURE, NOW, World, address_of, user_id, world},
};
use gw_types::{Bytes, DenyReason, Level, LevelReason};
use serde_json::json;

const CODE: &[u8] = &[0x60, 0x00];

fn bank() -> World {
    let world = world()
        .org("bank")
        .group("staff")
        .every_method()
        .contract("bond")
        .grant("staff");
    let world = world.user("analyst").member("staff").link("analyst-wallet");
    world
        .org("rival")
        .group("members")
        .every_method()
        .contract("foreign")
        .org("bank")
}

fn reads(snapshot: &Snapshot, name: &str) -> Vec<String> {
    let (request, address) = (request_as(snapshot, "analyst"), address_of(name));
    let slot = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc";
    [
        request.rpc("eth_call", json!([{"to": address, "data": "0x01020304"}, "latest"])),
        request.rpc("eth_getBalance", json!([address, "latest"])),
        request.rpc("eth_getCode", json!([address, "latest"])),
        request.rpc("eth_getStorageAt", json!([address, slot, "latest"])),
        request.rpc("eth_getStorageAt", json!([address, "0x0", "latest"])),
        request.rpc("eth_getLogs", json!([{"address": address}])),
    ]
    .iter()
    .map(verdict)
    .collect()
}

#[test]
fn x6_everybody_has_access_to_shared_infrastructure_except_its_logs() {
    let untagged = bank().snapshot();
    assert_eq!(
        reads(&untagged, "utility"),
        [
            "unregistered",
            "ZERO",
            "NO-CODE",
            "unregistered",
            "unregistered",
            "OWN+SHARED"
        ]
    );
    let tagged = bank().shared("utility").shared("foreign").snapshot();
    for name in ["utility", "foreign"] {
        let expected = ["TRACE", "FORWARD", "FORWARD", "FORWARD", "param_rule", "OWN+SHARED"];
        assert_eq!(reads(&tagged, name), expected, "{name}");
    }
    let broken = bank().shared_broken("utility").snapshot();
    assert_eq!(
        reads(&broken, "utility"),
        reads(&untagged, "utility"),
        "D3: a broken tag has no effect"
    );
}

#[test]
fn x6_reads_without_a_trace_require_the_code_pin() {
    let snapshot = bank().shared_pinned("utility", CODE, None).shared("open").snapshot();
    let required_pin = |name: &str| {
        permit(request_as(&snapshot, "analyst").rpc("eth_getBalance", json!([address_of(name), "latest"])))
            .requires_code_pin()
    };
    assert_eq!(required_pin("utility"), Some(address_of("utility")));
    assert_eq!(required_pin("open"), None, "no pin");
    assert_eq!(required_pin("bond"), None, "a grant");
    let matches_pin = |code: &[u8]| {
        let code = serde_json::to_vec(&Bytes::copy_from_slice(code)).unwrap();
        check_pin(
            &snapshot,
            address_of("utility"),
            &Sealed::new(RawJson::new(code.into())),
        )
        .is_ok()
    };
    assert!(matches_pin(CODE) && !matches_pin(&[0x60, 0x01]) && !matches_pin(&[]));
    let code = Sealed::new(RawJson::new("\"0x6000\"".into()));
    assert_eq!(
        check_pin(&snapshot, address_of("bond"), &code),
        Err(None),
        "not shared infrastructure"
    );
}

/// Basis 3, HD9: the address itself is public, but belongs to no organization.
#[test]
fn hd9_the_address_of_a_utility_is_public() {
    let snapshot = bank().shared("utility").shared_broken("gone").snapshot();
    let settings = PolicySettings::default();
    for user in [Some(user_id("analyst")), None] {
        let viewer = Viewer::new(&snapshot, user, NOW, &settings);
        assert_eq!(
            viewer.level(address_of("utility")),
            (Level::Full, LevelReason::PublicAddress)
        );
        assert!(viewer.is_utility(address_of("utility")) && !viewer.reaches(address_of("utility")));
        assert_eq!(viewer.level(address_of("gone")).0, Level::Hidden);
    }
}

/// X9: the calls that are not traced while tracing of `eth_call` is off.
#[test]
fn x9_only_plain_calls_of_accessible_contracts_are_not_traced() {
    let traced = bank().snapshot();
    let untraced = bank()
        .shared("utility")
        .toggle(SystemToggle::EthCallTracing, false, FUTURE)
        .snapshot();
    let call = |snapshot: &Snapshot, to: &str, block: &str| {
        let request = request_as(snapshot, "analyst");
        verdict(&request.rpc("eth_call", json!([{"to": address_of(to), "data": "0x01020304"}, block])))
    };
    assert_eq!(call(&traced, "bond", "latest"), "TRACE");
    assert_eq!(call(&untraced, "bond", "latest"), "NODE");
    assert_eq!(
        call(&untraced, "bond", "0x3e0"),
        "TRACE",
        "history is evaluated with the trace (H1)"
    );
    assert_eq!(
        call(&untraced, "utility", "latest"),
        "TRACE",
        "the tag requires the code, which only the trace contains"
    );
    assert_eq!(call(&untraced, "foreign", "latest"), "foreign_org");
    let request = request_as(&untraced, "analyst");
    let estimate = json!([{"to": address_of("bond"), "data": "0x01020304"}]);
    assert_eq!(verdict(&request.rpc("eth_estimateGas", estimate)), "TRACE");
    let send = request.send_raw(address_of("analyst-wallet"), Some(address_of("bond")), [1, 2, 3, 4]);
    assert_eq!(verdict(&send), "SEND", "sends are always traced");
    assert_eq!(request.now, NOW);
    assert_eq!(
        verdict(&request_as(&untraced, "analyst").at_time(FUTURE).rpc(
            "eth_call",
            json!([{"to": address_of("bond"), "data": "0x01020304"}, "latest"])
        )),
        "TRACE",
        "the toggle has expired"
    );
    let creation = request_as(&untraced, "analyst").rpc("eth_call", json!([{"data": "0x6000"}, "latest"]));
    assert_eq!(reason(&creation), DenyReason::DeployClaimRequired);
    assert!(Method::Call.as_str().starts_with("eth_"));
}

/// G1: method access that has expired grants nothing.
#[test]
fn g1_method_access_expires() {
    let snapshot = bank()
        .group("guests")
        .every_method()
        .access_until(FUTURE)
        .user("guest")
        .member("guests")
        .snapshot();
    let verdict_at = |now| {
        verdict(
            &request_as(&snapshot, "guest")
                .at_time(now)
                .rpc("eth_syncing", json!([])),
        )
    };
    assert_eq!(verdict_at(NOW), "FORWARD");
    assert_eq!(verdict_at(FUTURE), "method_not_allowed");
}
