//! What follows from a violation: closed wallets and infrastructure, suspended senders, quarantined contracts (HD2,
//! RT20, RT21).

use super::{
    mined_support::{bank, evaluate, run},
    support::{reason, request_as, verdict},
};
use gw_evm::code::PROXY_SLOTS;
use gw_policy::{
    Change as GwChange,
    settings::HiddenBalanceMode,
    snapshot::User,
    testing::{address_of, user_id},
};
use gw_types::{Address, B256, DenyReason, UserId};
use serde_json::json;
use std::collections::HashMap;

/// RT2a, RT21, HD28, HD40: the owner of a closed wallet reads it as a hidden account, and may neither simulate nor
/// send from it, because neither its balance nor its ability to pay may show. This applies with every setting that
/// would otherwise show it.
#[test]
fn rt21_a_closed_wallet_is_closed_to_its_owner() {
    let snapshot = bank().quarantined("friend-wallet").snapshot();
    let hidden = bank().snapshot();
    let (own, foreign) = (address_of("friend-wallet"), address_of("thief-wallet"));
    let slot = PROXY_SLOTS[0];
    for query in [
        HiddenBalanceMode::Strict,
        HiddenBalanceMode::Linked,
        HiddenBalanceMode::Off,
    ] {
        let friend = request_as(&snapshot, "friend").with_settings(|settings| settings.address_query = query);
        let describe = |method: &str, params| verdict(&friend.rpc(method, params));
        for block in ["latest", "0x3e7"] {
            assert_eq!(describe("eth_getBalance", json!([own, block])), "ZERO");
            assert_eq!(describe("eth_getTransactionCount", json!([own, block])), "ZERO");
        }
        assert_eq!(describe("eth_getCode", json!([own, "latest"])), "NO-CODE");
        assert_eq!(
            describe("eth_getStorageAt", json!([own, slot, "latest"])),
            "contract_not_permitted"
        );
        assert_eq!(
            describe("eth_getProof", json!([own, [slot], "latest"])),
            "contract_not_permitted"
        );
        for method in ["eth_call", "eth_estimateGas", "eth_createAccessList"] {
            let pays = json!([{"from": own, "to": foreign, "value": "0xf4241"}]);
            assert_eq!(describe(method, pays), "contract_not_permitted", "{method}");
            let calls = json!([{"from": own, "to": address_of("vault"), "data": "0x01020304"}]);
            assert_eq!(describe(method, calls), "contract_not_permitted", "{method}");
            let pays_to = json!([{"to": own, "value": "0x1"}]);
            assert_eq!(describe(method, pays_to), "contract_not_permitted", "{method}");
        }
        assert_eq!(
            reason(&friend.send_raw(own, Some(address_of("vault")), [1])),
            DenyReason::ContractNotPermitted
        );
        let send = json!([{"from": own, "to": address_of("vault"), "data": "0x01020304"}]);
        assert_eq!(describe("eth_sendTransaction", send), "contract_not_permitted");
        // Other users cannot relay its transactions, and those without access still cannot read it.
        let thief = request_as(&snapshot, "thief").with_settings(|settings| settings.address_query = query);
        assert_eq!(
            reason(&thief.send_raw(own, Some(address_of("vault")), [1])),
            DenyReason::ContractNotPermitted
        );
        assert_eq!(verdict(&thief.rpc("eth_getBalance", json!([own, "latest"]))), "ZERO");
    }
    let friend = request_as(&hidden, "friend");
    assert_eq!(
        verdict(&friend.rpc("eth_getBalance", json!([own, "latest"]))),
        "FORWARD",
        "without the violation"
    );
    assert_eq!(
        verdict(&friend.rpc("eth_getStorageAt", json!([own, slot, "latest"]))),
        "FORWARD"
    );
}

/// HD28: shared infrastructure is closed only to the sender and to members of the sender's organizations.
#[test]
fn rt21_shared_infrastructure_is_closed_to_the_side_of_the_sender() {
    let utility = address_of("utility");
    let world = bank()
        .org("elsewhere")
        .group("g")
        .every_method()
        .user("outsider")
        .member("g")
        .shared("utility");
    let snapshot = world
        .closed_to_side(utility, "thief", &["bank"])
        .closed_to_side(Address::ZERO, "thief", &["bank"])
        .snapshot();
    let slot = PROXY_SLOTS[0];
    for (user, has_access) in [("thief", false), ("friend", false), ("outsider", true)] {
        let request = request_as(&snapshot, user);
        let describe = |method: &str, params| verdict(&request.rpc(method, params));
        let expected = |open: &str, closed: &str| if has_access { open.to_owned() } else { closed.to_owned() };
        let call = json!([{"to": utility, "data": "0x01020304"}]);
        assert_eq!(
            describe("eth_call", call),
            expected("TRACE", "contract_not_permitted"),
            "{user}"
        );
        let storage = json!([utility, slot, "latest"]);
        assert_eq!(
            describe("eth_getStorageAt", storage),
            expected("FORWARD", "contract_not_permitted"),
            "{user}"
        );
        for address in [utility, Address::ZERO] {
            assert_eq!(
                describe("eth_getBalance", json!([address, "latest"])),
                expected("FORWARD", "ZERO"),
                "{user}"
            );
        }
    }
}

/// RT20, HD37: a suspension applies to the person, even after enrollment with a new row.
#[test]
fn rt20_a_suspension_applies_after_enrolling_again() {
    let snapshot = bank().user("thief").suspended().snapshot();
    let new_id = UserId(uuid::Uuid::from_u128(77));
    let row = User {
        id: new_id,
        ..snapshot.user(user_id("thief")).unwrap().as_ref().clone()
    };
    let later = snapshot.apply(
        snapshot.epoch(),
        [
            GwChange::User(user_id("thief"), None),
            GwChange::User(new_id, Some(row)),
        ],
    );
    assert!(later.is_suspended(new_id) && !later.is_suspended(user_id("thief")));
}

#[test]
fn hd2_a_suspended_sender_reads_but_does_not_send() {
    let snapshot = bank().user("thief").suspended().snapshot();
    let thief = request_as(&snapshot, "thief");
    let call = json!([{"to": address_of("vault"), "data": "0x01020304"}]);
    assert_eq!(verdict(&thief.rpc("eth_call", call)), "TRACE");
    let vault = Some(address_of("vault"));
    assert_eq!(
        reason(&thief.send_raw(address_of("thief-wallet"), vault, [1, 2, 3, 4])),
        DenyReason::TraceMismatch
    );
    assert_eq!(
        reason(&thief.send_raw(address_of("thief-wallet"), None, [1])),
        DenyReason::TraceMismatch
    );
    // HD13: others cannot relay their transactions, but send their own.
    let friend = request_as(&snapshot, "friend");
    assert_eq!(
        reason(&friend.send_raw(address_of("thief-wallet"), vault, [1, 2, 3, 4])),
        DenyReason::SenderNotOwned
    );
    assert_eq!(
        verdict(&friend.send_raw(address_of("friend-wallet"), vault, [1, 2, 3, 4])),
        "SEND"
    );
}

#[test]
fn hd2_a_quarantined_contract_is_read_by_nobody() {
    let snapshot = bank()
        .group("admins")
        .org_admin()
        .every_method()
        .user("boss")
        .member("admins")
        .quarantined("vault")
        .snapshot();
    let vault = address_of("vault");
    for user in ["friend", "boss"] {
        let request = request_as(&snapshot, user);
        let describe = |method: &str, params| verdict(&request.rpc(method, params));
        assert_eq!(
            describe("eth_call", json!([{"to": vault, "data": "0x01020304"}])),
            "contract_not_permitted",
            "{user}"
        );
        assert_eq!(
            describe("eth_getStorageAt", json!([vault, B256::ZERO, "latest"])),
            "contract_not_permitted",
            "{user}"
        );
        assert_eq!(
            describe("eth_getProof", json!([vault, [], "latest"])),
            "contract_not_permitted",
            "{user}"
        );
        assert_eq!(describe("eth_getBalance", json!([vault, "latest"])), "ZERO", "{user}");
        assert_eq!(describe("eth_getCode", json!([vault, "latest"])), "NO-CODE", "{user}");
        assert_eq!(
            describe("eth_getLogs", json!([{"address": vault}])),
            "OWN+SHARED",
            "{user}"
        );
        assert_eq!(
            describe("eth_call", json!([{"to": address_of("latch"), "data": "0x01020304"}])),
            "TRACE",
            "{user}"
        );
    }
    // Access through another contract is denied, too, by a frame or a touch.
    let inner = evaluate(&snapshot, &run(&["vault"], &["latch"], &[]), &HashMap::new());
    assert_eq!(
        inner.map(|violation| violation.reason),
        Some(DenyReason::ContractNotPermitted)
    );
}
