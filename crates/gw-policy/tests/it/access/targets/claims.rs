//! What the claims admin, deploy and upgrade allow, and the reservations of addresses that deployers use.

use super::{bank, word};
use crate::access::support::{reason, request_as, verdict};
use gw_policy::{
    Snapshot,
    testing::{FUTURE, NOW, PAST, address_of, calldata, selector},
};
use gw_types::{B256, Bytes, Claim, DenyReason};
use serde_json::json;

#[test]
fn k7_a_deployer_who_is_a_member_may_call_but_not_administer_or_upgrade() {
    let snapshot = bank().contract("ungranted").deployed_by("analyst").snapshot();
    let request = request_as(&snapshot, "analyst");
    assert_eq!(
        verdict(&request.eth_call(address_of("ungranted"), [1, 2, 3, 4])),
        "TRACE"
    );
    let slot = json!([address_of("ungranted"), B256::ZERO]);
    assert_eq!(reason(&request.rpc("eth_getStorageAt", slot)), DenyReason::ParamRule);
    let upgrade = calldata("upgradeTo(address)", [word(address_of("bond"))]);
    let decision = request.send_raw(address_of("wallet"), Some(address_of("ungranted")), upgrade);
    assert_eq!(reason(&decision), DenyReason::UpgradeClaimRequired);
    let deployed_by_outsider = bank().contract("ungranted").deployed_by("victim").snapshot();
    assert_eq!(
        reason(&request_as(&deployed_by_outsider, "victim").eth_call(address_of("ungranted"), [1, 2, 3, 4])),
        DenyReason::ForeignOrg
    );
}

/// U1: selector, claim on the target, implementation of the organization.
#[test]
fn u1_an_upgrade_needs_the_claim_and_an_implementation_of_the_organization() {
    let world = |claim: bool| {
        let world = bank()
            .contract("bond")
            .grant("analysts")
            .contract("next")
            .org("rival")
            .contract("theirs")
            .org("bank");
        if claim {
            world.contract("bond").grant("analysts").grant_claim(Claim::Upgrade)
        } else {
            world
        }
    };
    let upgrades = [
        ("upgradeTo(address)", 0),
        ("upgradeToAndCall(address,bytes)", 0),
        ("setImplementation(address)", 0),
        ("upgrade(address,address)", 1),
        ("upgradeAndCall(address,address,bytes)", 1),
    ];
    for (signature, position) in upgrades {
        let data = |implementation: &str| {
            let mut words = vec![word(address_of("bond")); position];
            words.push(word(address_of(implementation)));
            calldata(signature, words)
        };
        let send = |claim: bool, data: Bytes| {
            let snapshot = world(claim).snapshot();
            verdict(&request_as(&snapshot, "analyst").send_raw(address_of("wallet"), Some(address_of("bond")), data))
        };
        assert_eq!(send(true, data("next")), "SEND", "{signature}");
        assert_eq!(send(false, data("next")), "upgrade_claim_required", "{signature}");
        for implementation in ["theirs", "unregistered"] {
            assert_eq!(
                send(true, data(implementation)),
                "upgrade_claim_required",
                "{signature} {implementation}"
            );
        }
        assert_eq!(
            send(true, selector(signature).into()),
            "upgrade_claim_required",
            "{signature} cut short"
        );
    }
}

#[test]
fn c2_creations_need_the_deploy_claim_and_init_code() {
    // B1, W2.
    let snapshot = bank()
        .group("deployers")
        .every_method()
        .claim(Claim::Deploy)
        .user("ops")
        .member("deployers")
        .link("ops-wallet")
        .snapshot();
    let creation = json!([{"data": "0x6001"}]);
    for name in ["eth_call", "eth_estimateGas"] {
        assert_eq!(
            reason(&request_as(&snapshot, "analyst").rpc(name, creation.clone())),
            DenyReason::DeployClaimRequired
        );
        assert_eq!(
            verdict(&request_as(&snapshot, "ops").rpc(name, creation.clone())),
            "TRACE"
        );
        assert_eq!(
            reason(&request_as(&snapshot, "ops").rpc(name, json!([{}]))),
            DenyReason::InvalidRequestShape
        );
    }
    let decision = request_as(&snapshot, "analyst").send_raw(address_of("wallet"), None, [0x60]);
    assert_eq!(reason(&decision), DenyReason::DeployClaimRequired);
    assert_eq!(
        verdict(&request_as(&snapshot, "ops").send_raw(address_of("ops-wallet"), None, [0x60])),
        "SEND"
    );
    let empty = request_as(&snapshot, "ops").send_raw(address_of("ops-wallet"), None, []);
    assert_eq!(reason(&empty), DenyReason::InvalidRequestShape);
    // B6: signing with keys of the node does not circumvent the rule.
    let by_node = json!([{"from": address_of("wallet"), "data": "0x6001"}]);
    assert_eq!(
        reason(&request_as(&snapshot, "analyst").rpc("eth_sendTransaction", by_node)),
        DenyReason::DeployClaimRequired
    );
}

#[test]
fn org_admins_have_every_claim_in_their_organization() {
    let snapshot = bank()
        .group("admins")
        .org_admin()
        .every_method()
        .user("admin")
        .member("admins")
        .link("admin-wallet")
        .contract("next")
        .snapshot();
    let request = request_as(&snapshot, "admin");
    assert_eq!(
        verdict(&request.send_raw(address_of("admin-wallet"), None, [0x60])),
        "SEND"
    );
    let upgrade = calldata("upgradeTo(address)", [word(address_of("next"))]);
    assert_eq!(
        verdict(&request.send_raw(address_of("admin-wallet"), Some(address_of("bond")), upgrade)),
        "SEND"
    );
    assert_eq!(
        verdict(&request.eth_call(address_of("ungranted"), [1, 2, 3, 4])),
        "TRACE"
    );
    assert_eq!(
        reason(&request.eth_call(address_of("foreign"), [1, 2, 3, 4])),
        DenyReason::ForeignOrg
    );
}

/// R1, HD14: only while unexpired, only for holders of the claim in that organization.
#[test]
fn r1_deployers_of_the_organization_access_a_reservation_until_it_expires() {
    let world = |end| {
        bank()
            .group("deployers")
            .every_method()
            .claim(Claim::Deploy)
            .user("ops")
            .member("deployers")
            .link("ops-wallet")
            .reservation("pending", end)
            .org("rival")
            .group("their-deployers")
            .every_method()
            .claim(Claim::Deploy)
            .user("rival-ops")
            .member("their-deployers")
            .snapshot()
    };
    let call = |snapshot: &Snapshot, user: &str| {
        verdict(&request_as(snapshot, user).eth_call(address_of("pending"), [1, 2, 3, 4]))
    };
    let live = world(FUTURE);
    assert_eq!(call(&live, "ops"), "TRACE");
    assert_eq!(call(&live, "analyst"), "unregistered", "no deploy claim");
    assert_eq!(call(&live, "rival-ops"), "unregistered", "not their reservation");
    assert_eq!(
        verdict(&request_as(&live, "ops").rpc("eth_getCode", json!([address_of("pending")]))),
        "NO-CODE"
    );
    for end in [NOW, PAST] {
        assert_eq!(call(&world(end), "ops"), "unregistered");
    }
    // HD14: reservations are not exclusive. Two organizations may reserve one address.
    let reserved_twice = bank()
        .user("analyst")
        .reservation("pending", FUTURE)
        .org("rival")
        .reservation("pending", FUTURE);
    let reserved_twice = reserved_twice
        .org("bank")
        .group("deployers")
        .every_method()
        .claim(Claim::Deploy)
        .user("ops")
        .member("deployers");
    assert_eq!(call(&reserved_twice.snapshot(), "ops"), "TRACE");
}
