//! Which contracts a caller may call and read (the target table of §10): code, storage slots, logs, balances, nonces.

use super::bank;
use crate::access::support::{permit, reason, request_as, verdict};
use gw_policy::{
    settings::HiddenBalanceMode,
    testing::{address_of, org_id},
};
use gw_types::{Address, B256, Claim, DenyReason, U256};
use serde_json::json;

/// T2, K2: access is denied to foreign contracts, to own contracts without grant and to unregistered contracts.
#[test]
fn t2_targets_without_access_are_denied_and_differ_in_the_reason_only() {
    let snapshot = bank().snapshot();
    let request = request_as(&snapshot, "analyst");
    for (name, expected) in [
        ("foreign", DenyReason::ForeignOrg),
        ("ungranted", DenyReason::ContractNotPermitted),
        ("unknown", DenyReason::Unregistered),
        ("victim-wallet", DenyReason::Unregistered),
    ] {
        let address = address_of(name);
        assert_eq!(reason(&request.eth_call(address, [1, 2, 3, 4])), expected, "{name}");
        assert_eq!(
            reason(&request.send_raw(address_of("wallet"), Some(address), [1, 2, 3, 4])),
            expected,
            "{name}"
        );
        assert_eq!(
            reason(&request.rpc("eth_getStorageAt", json!([address, "0x0"]))),
            expected,
            "{name}"
        );
    }
}

#[test]
fn t1_membership_in_the_owning_organization_does_not_allow_a_call() {
    let snapshot = bank().user("colleague").member("analysts").snapshot();
    assert_eq!(
        verdict(&request_as(&snapshot, "colleague").eth_call(address_of("bond"), [1, 2, 3, 4])),
        "TRACE"
    );
    let ungranted = request_as(&snapshot, "colleague").eth_call(address_of("ungranted"), [1, 2, 3, 4]);
    assert_eq!(reason(&ungranted), DenyReason::ContractNotPermitted);
}

#[test]
fn k2_everybody_may_call_precompiles() {
    let snapshot = bank().snapshot();
    for last in [1u64, 9, 0x0a, 0x11, 0x100] {
        let precompile = Address::from_word(B256::from(U256::from(last)));
        assert_eq!(
            verdict(&request_as(&snapshot, "analyst").eth_call(precompile, [1])),
            "TRACE",
            "{last:#x}"
        );
    }
    let beyond = Address::from_word(B256::from(U256::from(0x12)));
    assert_eq!(
        reason(&request_as(&snapshot, "analyst").eth_call(beyond, [1])),
        DenyReason::Unregistered
    );
}

/// §9: the addresses of an access list are checked, too. Addresses without access all get the same reason.
#[test]
fn an_access_list_may_contain_only_addresses_the_caller_has_access_to() {
    let snapshot = bank().snapshot();
    let call = |address: Address| {
        let list = json!([{"address": address, "storageKeys": []}]);
        let object = json!({"to": address_of("bond"), "data": "0x01020304", "accessList": list});
        request_as(&snapshot, "analyst").rpc("eth_call", json!([object]))
    };
    for name in ["bond", "wallet"] {
        assert_eq!(verdict(&call(address_of(name))), "TRACE", "{name}");
    }
    // HD29: addresses that the caller may not read must not be listed, in own and in foreign organizations.
    for name in ["ungranted", "foreign", "unknown", "victim-wallet"] {
        assert_eq!(reason(&call(address_of(name))), DenyReason::Unregistered, "{name}");
    }
}

/// Decision 5, HD6, B21: constant zero for every address without level Full, never 404.
#[test]
fn k8_balance_and_nonce_are_zero_for_every_address_without_level_full() {
    let snapshot = bank()
        .user("deployer")
        .member("analysts")
        .contract("own-work")
        .deployed_by("deployer")
        .snapshot();
    for (name, expected) in [
        ("bond", "FORWARD"),
        ("wallet", "FORWARD"),
        ("ungranted", "ZERO"),
        ("foreign", "ZERO"),
        ("victim-wallet", "ZERO"),
        ("nobody", "ZERO"),
        ("own-work", "ZERO"),
    ] {
        for method in ["eth_getBalance", "eth_getTransactionCount"] {
            let decision = request_as(&snapshot, "analyst").rpc(method, json!([address_of(name)]));
            assert_eq!(verdict(&decision), expected, "{method} {name}");
            assert_eq!(
                permit(decision).org(),
                Some(org_id("bank")),
                "recorded for the same organization: {name}"
            );
        }
    }
    let own = request_as(&snapshot, "deployer").rpc("eth_getBalance", json!([address_of("own-work")]));
    assert_eq!(verdict(&own), "FORWARD");
    let zero = request_as(&snapshot, "analyst").rpc("eth_getBalance", json!([Address::ZERO]));
    assert_eq!(verdict(&zero), "FORWARD");
}

#[test]
fn k8_no_setting_shows_a_contract_without_access() {
    let snapshot = bank().snapshot();
    let balance = |query, name| {
        let request = request_as(&snapshot, "analyst").with_settings(|settings| settings.address_query = query);
        verdict(&request.rpc("eth_getBalance", json!([address_of(name)])))
    };
    for (name, linked, off) in [
        ("victim-wallet", "ZERO", "FORWARD"),
        ("nobody", "FORWARD", "FORWARD"),
        ("foreign", "ZERO", "ZERO"),
        ("ungranted", "ZERO", "ZERO"),
    ] {
        assert_eq!(balance(HiddenBalanceMode::Linked, name), linked, "{name}");
        assert_eq!(balance(HiddenBalanceMode::Off, name), off, "{name}");
    }
}

/// Decision 37: the code of an address without code is `0x` for everybody, so all addresses without access have the
/// same plan.
#[test]
fn d37_code_without_access_is_requested_from_the_node() {
    let snapshot = bank().snapshot();
    for (name, expected) in [
        ("bond", "FORWARD"),
        ("wallet", "FORWARD"),
        ("foreign", "NO-CODE"),
        ("ungranted", "NO-CODE"),
        ("unknown", "NO-CODE"),
        ("victim-wallet", "NO-CODE"),
    ] {
        assert_eq!(
            verdict(&request_as(&snapshot, "analyst").rpc("eth_getCode", json!([address_of(name)]))),
            expected,
            "{name}"
        );
    }
}

#[test]
fn only_admins_read_slots_other_than_the_standard_ones() {
    // §9: the ERC-1967 slots of implementation, admin and beacon, and the diamond slot, with all 32 bytes.
    let snapshot = bank()
        .group("keepers")
        .every_method()
        .user("keeper")
        .member("keepers")
        .contract("bond")
        .grant("keepers")
        .grant_claim(Claim::Admin)
        .group("admins")
        .org_admin()
        .every_method()
        .user("admin")
        .member("admins")
        .snapshot();
    let bond = address_of("bond");
    let read =
        |user: &str, slot: &str| verdict(&request_as(&snapshot, user).rpc("eth_getStorageAt", json!([bond, slot])));
    for slot in [
        "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc",
        "0xb53127684a568b3173ae13b9f8a6016e243e63b6e8ee1178d6a717850b5d6103",
        "0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50",
        "0xc8fcad8db84d3cc18b4c41d551ea0ee66dd599cde068d998e57d5e09332c131c",
    ] {
        assert_eq!(read("analyst", slot), "FORWARD", "{slot}");
    }
    for slot in [
        "0x0",
        "0x0000000000000000000000000000000000000000000000000000000000000000",
    ] {
        assert_eq!(read("analyst", slot), "param_rule");
        // C2, C3: `admin` on the grant, and org admins.
        assert_eq!(read("keeper", slot), "FORWARD");
        assert_eq!(read("admin", slot), "FORWARD");
    }
}

#[test]
fn logs_need_an_address_and_show_only_own_and_shared_rows_without_a_grant() {
    // §9 LOG, decision 20.
    let snapshot = bank().snapshot();
    let logs = |address| request_as(&snapshot, "analyst").rpc("eth_getLogs", json!([{"address": address}]));
    assert_eq!(
        reason(&request_as(&snapshot, "analyst").rpc("eth_getLogs", json!([{}]))),
        DenyReason::InvalidRequestShape
    );
    assert_eq!(verdict(&logs(json!(address_of("bond")))), "FORWARD");
    for name in ["foreign", "ungranted", "unknown", "victim-wallet"] {
        let decision = logs(json!([address_of("bond"), address_of(name)]));
        assert_eq!(verdict(&decision), "OWN+SHARED", "{name}");
        assert_eq!(permit(decision).shared_logs_only(), [address_of(name)], "{name}");
    }
}
