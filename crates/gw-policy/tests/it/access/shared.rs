//! Calls on shared infrastructure (X6, spec/20 §10): in everybody's reach, logs excepted.

use super::support::{ask, permit, reason, verdict};
use gw_evm::Method;
use gw_policy::{
    RawJson, Sealed, Snapshot, Viewer,
    access::check_pin,
    knobs::Knobs,
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
    let (who, at) = (ask(snapshot, "analyst"), address_of(name));
    let slot = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc";
    [
        who.rpc("eth_call", json!([{"to": at, "data": "0x01020304"}, "latest"])),
        who.rpc("eth_getBalance", json!([at, "latest"])),
        who.rpc("eth_getCode", json!([at, "latest"])),
        who.rpc("eth_getStorageAt", json!([at, slot, "latest"])),
        who.rpc("eth_getStorageAt", json!([at, "0x0", "latest"])),
        who.rpc("eth_getLogs", json!([{"address": at}])),
    ]
    .iter()
    .map(verdict)
    .collect()
}

#[test]
fn x6_shared_infrastructure_is_in_everybodys_reach_logs_excepted() {
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
        "D3: as if it were not tagged"
    );
}

#[test]
fn x6_reads_without_a_trace_rest_on_the_pin() {
    let snapshot = bank().shared_pinned("utility", CODE, None).shared("open").snapshot();
    let rests = |name: &str| {
        permit(ask(&snapshot, "analyst").rpc("eth_getBalance", json!([address_of(name), "latest"]))).rests_on_pin()
    };
    assert_eq!(rests("utility"), Some(address_of("utility")));
    assert_eq!(rests("open"), None, "no pin");
    assert_eq!(rests("bond"), None, "a grant");
    let stands = |code: &[u8]| {
        let code = serde_json::to_vec(&Bytes::copy_from_slice(code)).unwrap();
        check_pin(
            &snapshot,
            address_of("utility"),
            &Sealed::new(RawJson::new(code.into())),
        )
        .is_ok()
    };
    assert!(stands(CODE) && !stands(&[0x60, 0x01]) && !stands(&[]));
    let code = Sealed::new(RawJson::new("\"0x6000\"".into()));
    assert_eq!(
        check_pin(&snapshot, address_of("bond"), &code),
        Err(None),
        "not shared at all"
    );
}

/// Ground 3, HD9: the address itself is public; it is nobody's and has no lists.
#[test]
fn hd9_the_address_of_a_utility_is_public() {
    let snapshot = bank().shared("utility").shared_broken("gone").snapshot();
    let knobs = Knobs::default();
    for who in [Some(user_id("analyst")), None] {
        let viewer = Viewer::new(&snapshot, who, NOW, &knobs);
        assert_eq!(
            viewer.level(address_of("utility")),
            (Level::Full, LevelReason::PublicAddress)
        );
        assert!(viewer.is_utility(address_of("utility")) && !viewer.reaches(address_of("utility")));
        assert_eq!(viewer.level(address_of("gone")).0, Level::Hidden);
    }
}

/// X9: what goes untraced while tracing of `eth_call` is off.
#[test]
fn x9_only_plain_calls_of_reached_contracts_go_untraced() {
    let on = bank().snapshot();
    let off = bank()
        .shared("utility")
        .toggle(SystemToggle::EthCallTracing, false, FUTURE)
        .snapshot();
    let call = |snapshot: &Snapshot, to: &str, block: &str| {
        let who = ask(snapshot, "analyst");
        verdict(&who.rpc("eth_call", json!([{"to": address_of(to), "data": "0x01020304"}, block])))
    };
    assert_eq!(call(&on, "bond", "latest"), "TRACE");
    assert_eq!(call(&off, "bond", "latest"), "NODE");
    assert_eq!(
        call(&off, "bond", "0x3e0"),
        "TRACE",
        "the past is judged by its trace (H1)"
    );
    assert_eq!(
        call(&off, "utility", "latest"),
        "TRACE",
        "a tag is about code, which the trace shows"
    );
    assert_eq!(call(&off, "foreign", "latest"), "foreign_org");
    let who = ask(&off, "analyst");
    let estimate = json!([{"to": address_of("bond"), "data": "0x01020304"}]);
    assert_eq!(verdict(&who.rpc("eth_estimateGas", estimate)), "TRACE");
    let send = who.send_raw(address_of("analyst-wallet"), Some(address_of("bond")), [1, 2, 3, 4]);
    assert_eq!(verdict(&send), "SEND", "sends are always traced");
    assert_eq!(who.now, NOW);
    assert_eq!(
        verdict(&ask(&off, "analyst").at(FUTURE).rpc(
            "eth_call",
            json!([{"to": address_of("bond"), "data": "0x01020304"}, "latest"])
        )),
        "TRACE",
        "re-armed"
    );
    let creation = ask(&off, "analyst").rpc("eth_call", json!([{"data": "0x6000"}, "latest"]));
    assert_eq!(reason(&creation), DenyReason::DeployClaimRequired);
    assert!(Method::Call.as_str().starts_with("eth_"));
}

/// G1: an access that ended gives nothing.
#[test]
fn g1_an_access_with_an_end_ends() {
    let snapshot = bank()
        .group("guests")
        .every_method()
        .access_until(FUTURE)
        .user("guest")
        .member("guests")
        .snapshot();
    let ask_at = |now| verdict(&ask(&snapshot, "guest").at(now).rpc("eth_syncing", json!([])));
    assert_eq!(ask_at(NOW), "FORWARD");
    assert_eq!(ask_at(FUTURE), "method_not_allowed");
}
