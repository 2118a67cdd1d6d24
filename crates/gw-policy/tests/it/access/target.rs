//! Tests of targets: the target table of §10, grants, functions, parameters, slots and claims.

use super::{
    execution::trace_builder,
    support::{payment, permit, reason, request_as, verdict},
};
use alloy_eips::eip7702::{Authorization, SignedAuthorization};
use gw_evm::{Call, Method, SimulationKind, VisibleTo, trace::FrameKind};
use gw_policy::{
    Snapshot,
    access::Decision,
    settings::HiddenBalanceMode,
    snapshot::{Comparison, Constraint},
    testing::{FUTURE, NOW, PAST, World, address_of, calldata, function, selector, world},
};
use gw_types::{Address, B256, Bytes, Claim, DenyReason, U256};
use serde_json::json;

const TOKEN_ABI: &str = r#"[
    {"type":"function","name":"balanceOf","stateMutability":"view",
     "inputs":[{"name":"owner","type":"address"}],"outputs":[{"type":"uint256"}]},
    {"type":"function","name":"transfer","stateMutability":"nonpayable",
     "inputs":[{"name":"to","type":"address"},{"name":"value","type":"uint256"}],"outputs":[{"type":"bool"}]}
]"#;

fn bank() -> World {
    world()
        .org("bank")
        .group("analysts")
        .every_method()
        .group("others")
        .every_method()
        .user("analyst")
        .member("analysts")
        .link("wallet")
        .contract("bond")
        .grant("analysts")
        .contract("ungranted")
        .grant("others")
        .org("rival")
        .group("members")
        .every_method()
        .contract("foreign")
        .grant("members")
        .user("victim")
        .member("members")
        .link("victim-wallet")
        .org("bank")
}

fn word(address: Address) -> B256 {
    address.into_word()
}

fn functions_of(snapshot: &Snapshot, user: &str, data: Bytes) -> String {
    let bond = address_of("bond");
    let request = request_as(snapshot, user);
    let outcomes = [
        request.eth_call(bond, data.clone()),
        request.rpc("eth_estimateGas", super::support::call_object(bond, &data).into_array()),
        request.send_raw(address_of("wallet"), Some(bond), data),
    ];
    // F2: the same rule applies to calls, estimates and sends.
    let verdicts: Vec<String> = outcomes.iter().map(verdict).collect();
    match verdicts.as_slice() {
        [call, estimate, send] if call == "TRACE" && estimate == "TRACE" && send == "SEND" => "ok".to_owned(),
        [call, estimate, send] if call == estimate && call == send => call.clone(),
        other => panic!("{other:?}"),
    }
}

trait IntoArray {
    fn into_array(self) -> serde_json::Value;
}

impl IntoArray for serde_json::Value {
    fn into_array(self) -> serde_json::Value {
        serde_json::Value::Array(vec![self])
    }
}

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
        let precompile = Address::from_word(B256::from(gw_types::U256::from(last)));
        assert_eq!(
            verdict(&request_as(&snapshot, "analyst").eth_call(precompile, [1])),
            "TRACE",
            "{last:#x}"
        );
    }
    let beyond = Address::from_word(B256::from(gw_types::U256::from(0x12)));
    assert_eq!(
        reason(&request_as(&snapshot, "analyst").eth_call(beyond, [1])),
        DenyReason::Unregistered
    );
}

/// §10, third column: a plain payment and its estimate, but not its `eth_call`.
#[test]
fn hd40_plain_payments_are_decided_by_their_trace() {
    let snapshot = bank().snapshot();
    let request = request_as(&snapshot, "analyst");
    for (name, sent) in [
        ("victim-wallet", "SEND"),
        ("nobody", "SEND"),
        ("wallet", "SEND"),
        ("bond", "SEND"),
        ("ungranted", "SEND"),
        ("foreign", "SEND"),
    ] {
        let to = address_of(name);
        let payment = super::support::payment(address_of("wallet"), to);
        assert_eq!(
            verdict(&request.call(Method::SendRawTransaction, &payment)),
            sent,
            "{name}"
        );
        let estimate = request.rpc("eth_estimateGas", json!([{"to": to, "value": "0x1"}]));
        assert_eq!(verdict(&estimate), sent.replace("SEND", "TRACE"), "{name}");
    }
    let call = super::support::simulate(SimulationKind::Call, address_of("nobody"), []);
    assert_eq!(reason(&request.call(Method::Call, &call)), DenyReason::Unregistered);
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
                Some(gw_policy::testing::org_id("bank")),
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
fn f1_null_allows_every_function_a_list_its_entries_an_empty_list_none() {
    let transfer = calldata("transfer(address,uint256)", [B256::ZERO, B256::ZERO]);
    let balance = calldata("balanceOf(address)", [word(address_of("wallet"))]);
    let snapshot = bank().snapshot();
    assert_eq!(functions_of(&snapshot, "analyst", transfer.clone()), "ok");
    assert_eq!(functions_of(&snapshot, "analyst", Bytes::new()), "ok");
    let with_list = bank()
        .contract("bond")
        .grant("analysts")
        .functions([function("balanceOf(address)", [])])
        .snapshot();
    assert_eq!(functions_of(&with_list, "analyst", balance.clone()), "ok");
    assert_eq!(functions_of(&with_list, "analyst", transfer), "function_not_permitted");
    let with_empty_list = bank().contract("bond").grant("analysts").functions([]).snapshot();
    assert_eq!(
        functions_of(&with_empty_list, "analyst", balance),
        "function_not_permitted"
    );
}

/// F2: calldata too short for a selector, plain value included.
#[test]
fn f2_calls_without_a_selector_to_a_restricted_contract_are_denied() {
    let snapshot = bank()
        .contract("bond")
        .grant("analysts")
        .functions([function("balanceOf(address)", [])])
        .snapshot();
    for data in [&[][..], &[0x70, 0xa0, 0x82]] {
        assert_eq!(
            functions_of(&snapshot, "analyst", Bytes::copy_from_slice(data)),
            "function_not_permitted"
        );
    }
}

#[test]
fn f3_self_is_any_address_of_the_caller_and_the_calldata_must_be_canonical() {
    let rule = || function("balanceOf(address)", [(0, Constraint::Own)]);
    let world = bank()
        .contract("bond")
        .abi(TOKEN_ABI)
        .grant("analysts")
        .functions([rule()]);
    let snapshot = world.snapshot();
    let verdict_for = |data: Bytes| functions_of(&snapshot, "analyst", data);
    let own = calldata("balanceOf(address)", [word(address_of("wallet"))]);
    assert_eq!(verdict_for(own.clone()), "ok");
    assert_eq!(
        verdict_for(calldata("balanceOf(address)", [word(address_of("victim-wallet"))])),
        "param_rule"
    );
    let mut dirty = own.to_vec();
    dirty[4] = 1;
    let mut trailing = own.to_vec();
    trailing.push(0);
    for bad in [dirty, trailing, own[..35].to_vec(), own[..4].to_vec()] {
        assert_eq!(verdict_for(bad.into()), "param_rule");
    }
    // A second rule for the selector is an alternative (G7): one rule must hold completely.
    let limited = |to: &str| {
        let params = [
            (0, Constraint::Word(word(address_of(to)))),
            (1, Constraint::Word(B256::with_last_byte(5))),
        ];
        function("transfer(address,uint256)", params)
    };
    let snapshot = bank()
        .contract("bond")
        .abi(TOKEN_ABI)
        .grant("analysts")
        .functions([
            limited("a"),
            function(
                "transfer(address,uint256)",
                [(0, Constraint::Word(word(address_of("b"))))],
            ),
        ])
        .snapshot();
    let transfer = |to: &str, value: u8| {
        calldata(
            "transfer(address,uint256)",
            [word(address_of(to)), B256::with_last_byte(value)],
        )
    };
    assert_eq!(functions_of(&snapshot, "analyst", transfer("a", 5)), "ok");
    assert_eq!(functions_of(&snapshot, "analyst", transfer("b", 7)), "ok");
    assert_eq!(functions_of(&snapshot, "analyst", transfer("a", 7)), "param_rule");
}

#[test]
fn f3_rules_need_an_abi_a_valid_index_and_an_address_type() {
    let own = calldata("balanceOf(address)", [word(address_of("wallet"))]);
    let with_rule = |index, abi: Option<&str>| {
        let world = bank().contract("bond");
        let world = match abi {
            Some(abi) => world.abi(abi),
            None => world,
        };
        world
            .grant("analysts")
            .functions([function("balanceOf(address)", [(index, Constraint::Own)])])
            .snapshot()
    };
    assert_eq!(functions_of(&with_rule(0, None), "analyst", own.clone()), "param_rule");
    assert_eq!(
        functions_of(&with_rule(1, Some(TOKEN_ABI)), "analyst", own),
        "param_rule"
    );
    // `self` on a `uint256` that has the value of the caller's address.
    let amount = function("transfer(address,uint256)", [(1, Constraint::Own)]);
    let snapshot = bank()
        .contract("bond")
        .abi(TOKEN_ABI)
        .grant("analysts")
        .functions([amount])
        .snapshot();
    let data = calldata("transfer(address,uint256)", [B256::ZERO, word(address_of("wallet"))]);
    assert_eq!(functions_of(&snapshot, "analyst", data), "param_rule");
}

/// F3: every operator, on an amount and on an address.
#[test]
fn f3_operators_compare_numbers_and_match_contracts_of_the_organization() {
    let number = |n: u8| B256::with_last_byte(n);
    let holds = |index, constraint: Constraint, to: B256, amount: B256| {
        let rule = function("transfer(address,uint256)", [(index, constraint)]);
        let snapshot = bank()
            .contract("bond")
            .abi(TOKEN_ABI)
            .grant("analysts")
            .functions([rule])
            .snapshot();
        functions_of(
            &snapshot,
            "analyst",
            calldata("transfer(address,uint256)", [to, amount]),
        ) == "ok"
    };
    let amount = |constraint: Constraint, n: B256| holds(1, constraint, B256::ZERO, n);
    let compare = |comparison| Constraint::Compare(comparison, number(5));
    for (comparison, four, five, six) in [
        (Comparison::NotEqual, true, false, true),
        (Comparison::Less, true, false, false),
        (Comparison::AtMost, true, true, false),
        (Comparison::More, false, false, true),
        (Comparison::AtLeast, false, true, true),
    ] {
        let results = [4, 5, 6].map(|n| amount(compare(comparison), number(n)));
        assert_eq!(results, [four, five, six], "{comparison:?}");
    }
    let huge = B256::repeat_byte(0xff);
    assert!(
        amount(compare(Comparison::More), huge),
        "unsigned: all ones is the largest, not minus one"
    );
    let one_of = || Constraint::OneOf(vec![number(1), number(3)]);
    assert_eq!([1, 2, 3].map(|n| amount(one_of(), number(n))), [true, false, true]);
    // Addresses are not ordered, and only an address can belong to the organization.
    let to = |constraint: Constraint, name: &str| holds(0, constraint, word(address_of(name)), B256::ZERO);
    assert!(!to(compare(Comparison::More), "bond") && !to(compare(Comparison::AtMost), "bond"));
    assert!(to(Constraint::Org, "bond"));
    // RT26: wallets of members do not match, because the rule would reveal which wallets belong to members.
    assert!(!to(Constraint::Org, "wallet"));
    assert!(!to(Constraint::Org, "victim-wallet") && !to(Constraint::Org, "nobody"));
    assert!(
        !amount(Constraint::Org, word(address_of("bond"))),
        "a number with the value of an address"
    );
}

/// F3: signed numbers are ordered by their sign.
#[test]
fn f3_signed_numbers_are_compared_as_signed() {
    let abi = r#"[{"type":"function","name":"move","stateMutability":"view","inputs":[{"name":"by","type":"int8"}],
        "outputs":[]}]"#;
    let rule = function("move(int8)", [(0, Constraint::Compare(Comparison::Less, B256::ZERO))]);
    let snapshot = bank()
        .contract("bond")
        .abi(abi)
        .grant("analysts")
        .functions([rule])
        .snapshot();
    let verdict_for = |value: B256| functions_of(&snapshot, "analyst", calldata("move(int8)", [value]));
    assert_eq!(verdict_for(B256::repeat_byte(0xff)), "ok", "minus one");
    assert_eq!(verdict_for(B256::ZERO), "param_rule");
    assert_eq!(verdict_for(B256::with_last_byte(0x7f)), "param_rule");
    assert_eq!(
        verdict_for(B256::with_last_byte(0xff)),
        "param_rule",
        "not canonical: 255 is not an int8"
    );
}

/// HD13: an address inferred for the caller but proved by somebody else is not `self`.
#[test]
fn f3_self_follows_the_rule_of_address_ownership() {
    let rule = function("balanceOf(address)", [(0, Constraint::Own)]);
    let world = bank()
        .user("analyst")
        .system_link("victim-wallet")
        .contract("bond")
        .abi(TOKEN_ABI);
    let snapshot = world.grant("analysts").functions([rule]).snapshot();
    let data = calldata("balanceOf(address)", [word(address_of("victim-wallet"))]);
    assert_eq!(functions_of(&snapshot, "analyst", data), "param_rule");
}

#[test]
fn g7_an_unrestricted_grant_wins_over_a_restricted_one() {
    let with_both_grants = bank()
        .contract("bond")
        .grant("analysts")
        .functions([])
        .grant("others")
        .user("analyst")
        .member("others")
        .snapshot();
    assert_eq!(functions_of(&with_both_grants, "analyst", [9, 9, 9, 9].into()), "ok");
    let with_two_lists = bank()
        .contract("bond")
        .grant("analysts")
        .functions([function("a()", [])])
        .grant("others")
        .functions([function("b()", [])])
        .user("analyst")
        .member("others")
        .snapshot();
    for signature in ["a()", "b()"] {
        assert_eq!(functions_of(&with_two_lists, "analyst", calldata(signature, [])), "ok");
    }
    assert_eq!(
        functions_of(&with_two_lists, "analyst", calldata("c()", [])),
        "function_not_permitted"
    );
}

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
fn c3_function_rules_do_not_apply_to_a_grant_level_admin_on_that_contract() {
    let snapshot = bank()
        .contract("bond")
        .grant("analysts")
        .functions([])
        .grant_claim(Claim::Admin)
        .contract("other")
        .grant("analysts")
        .functions([])
        .snapshot();
    assert_eq!(functions_of(&snapshot, "analyst", [1, 2, 3, 4].into()), "ok");
    let decision = request_as(&snapshot, "analyst").eth_call(address_of("other"), [1, 2, 3, 4]);
    assert_eq!(reason(&decision), DenyReason::FunctionNotPermitted);
    assert_eq!(
        gw_policy::access::admin::status(&snapshot, gw_policy::testing::user_id("analyst"), NOW).full,
        []
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

/// Decision 38, X10: the message names the endpoint that links a sender.
#[test]
fn x10_the_sender_of_a_call_belongs_to_the_caller_or_is_zero() {
    let snapshot = bank()
        .user("analyst")
        .system_link("victim-wallet")
        .system_link("inferred")
        .snapshot();
    let call = |from: Address| {
        let object = json!({"from": from, "to": address_of("bond"), "data": "0x01020304"});
        request_as(&snapshot, "analyst").rpc("eth_call", json!([object]))
    };
    for from in [address_of("wallet"), address_of("inferred"), Address::ZERO] {
        assert_eq!(verdict(&call(from)), "TRACE", "{from}");
    }
    for from in ["victim-wallet", "nobody", "bond"] {
        match call(address_of(from)) {
            Decision::Invalid(invalid) => {
                assert_eq!(invalid.reason, DenyReason::SenderNotLinked);
                let text = invalid.error.message();
                assert!(
                    text.starts_with("invalid sender") && text.contains("/eth/link/challenge"),
                    "{text}"
                );
                assert_eq!(invalid.error.code(), -32602);
            }
            other => panic!("{from}: {other:?}"),
        }
    }
    // The target is checked first: a foreign contract is denied regardless of the sender.
    let object = json!({"from": address_of("nobody"), "to": address_of("foreign"), "data": "0x01"});
    assert_eq!(
        reason(&request_as(&snapshot, "analyst").rpc("eth_call", json!([object]))),
        DenyReason::ForeignOrg
    );
    assert!(VisibleTo::default().is_empty());
}

/// W1, B7: delegations of foreign wallets, and delegations to code without access.
#[test]
fn w1_authorizations_need_an_own_authority_and_a_delegate_with_access() {
    let authorization = |delegate: &str| {
        let authorization = Authorization {
            chain_id: U256::from(1),
            address: address_of(delegate),
            nonce: 0,
        };
        SignedAuthorization::new_unchecked(authorization, 0, U256::from(1), U256::from(9))
    };
    let send = |snapshot: &Snapshot, delegate: &str| {
        let mut call = super::support::signed(address_of("wallet"), 0, Some(address_of("bond")), [1, 2, 3, 4]);
        if let Call::SendRaw(signed) = &mut call {
            signed.request.authorization_list = vec![authorization(delegate)];
        }
        verdict(&request_as(snapshot, "analyst").call(Method::SendRawTransaction, &call))
    };
    let authority = |delegate: &str| authorization(delegate).recover_authority().unwrap();
    assert_eq!(send(&bank().snapshot(), "bond"), "sender_not_owned");
    let own = |delegate: &str| bank().user("analyst").link_address(authority(delegate)).snapshot();
    assert_eq!(send(&own("bond"), "bond"), "SEND");
    // The zero address ends a delegation. This is allowed for own wallets only.
    let clearing = Authorization {
        chain_id: U256::from(1),
        address: Address::ZERO,
        nonce: 0,
    };
    let clearing = SignedAuthorization::new_unchecked(clearing, 0, U256::from(1), U256::from(9));
    let clear = |snapshot: &Snapshot| {
        let mut call = super::support::signed(address_of("wallet"), 0, Some(Address::ZERO), []);
        if let Call::SendRaw(signed) = &mut call {
            signed.request.authorization_list = vec![clearing.clone()];
        }
        verdict(&request_as(snapshot, "analyst").call(Method::SendRawTransaction, &call))
    };
    let authority_of_clearing = clearing.recover_authority().unwrap();
    assert_eq!(
        clear(&bank().user("analyst").link_address(authority_of_clearing).snapshot()),
        "SEND"
    );
    assert_eq!(clear(&bank().snapshot()), "sender_not_owned");
    for delegate in ["ungranted", "foreign", "unregistered"] {
        assert_eq!(send(&own(delegate), delegate), "contract_not_permitted", "{delegate}");
    }
    // An authority that cannot be recovered does not belong to the caller.
    let mut call = super::support::signed(address_of("wallet"), 0, Some(address_of("bond")), [1, 2, 3, 4]);
    if let Call::SendRaw(signed) = &mut call {
        let inner = authorization("bond").strip_signature();
        signed.request.authorization_list = vec![SignedAuthorization::new_unchecked(inner, 0, U256::ZERO, U256::ZERO)];
    }
    let decision = request_as(&own("bond"), "analyst").call(Method::SendRawTransaction, &call);
    assert_eq!(reason(&decision), DenyReason::SenderNotOwned);
}

/// HD40: an invalid payment gets the same answer whether the target is a contract of an organization without access
/// or belongs to nobody. Only the trace denies the execution of that code.
#[test]
fn hd40_an_invalid_payment_does_not_reveal_registered_contracts() {
    let snapshot = bank().snapshot();
    let stranger = address_of("a-strangers-wallet");
    let request = |with_org: bool| {
        let request = request_as(&snapshot, "analyst");
        if with_org { request.in_org("bank") } else { request }
    };
    let payment = |method: &str, from: Address, to: Address| {
        let call = json!({"from": from, "to": to, "value": "0x1"});
        if method == "debug_traceCall" {
            json!([call, "latest", {"tracer": "callTracer"}])
        } else {
            json!([call])
        }
    };
    for with_org in [false, true] {
        for (method, from, expected) in [
            ("eth_sendTransaction", stranger, "400"),
            ("eth_estimateGas", stranger, "400"),
            ("debug_traceCall", stranger, "400"),
            ("eth_sendTransaction", address_of("wallet"), "SEND"),
            ("eth_estimateGas", address_of("wallet"), "TRACE"),
            ("debug_traceCall", address_of("wallet"), "TRACE"),
            ("eth_call", address_of("wallet"), "unregistered"),
        ] {
            let unregistered = request(with_org).rpc(method, payment(method, from, address_of("nobodys")));
            assert_eq!(verdict(&unregistered), expected, "{method}");
            for theirs in ["foreign", "ungranted"] {
                let decision = request(with_org).rpc(method, payment(method, from, address_of(theirs)));
                match (&decision, &unregistered) {
                    (Decision::Deny(_), Decision::Deny(_)) => {}
                    _ => assert_eq!(verdict(&decision), expected, "{method} {theirs}"),
                }
            }
        }
        // With data it is a call, which is denied for all targets before the other checks.
        for to in ["foreign", "ungranted", "nobodys"] {
            let call = json!([{"from": stranger, "to": address_of(to), "data": "0x01020304"}]);
            assert!(
                matches!(request(with_org).rpc("eth_sendTransaction", call), Decision::Deny(_)),
                "{to}"
            );
        }
    }
}

/// X6: the code that a payment runs is evaluated in its trace. A contract without access is denied, regardless of its
/// owner.
#[test]
fn x6_a_payment_enters_no_contract_without_access() {
    let snapshot = bank().snapshot();
    let sender = address_of("wallet");
    let pay = |to: &str| {
        let permit =
            permit(request_as(&snapshot, "analyst").call(Method::SendRawTransaction, &payment(sender, address_of(to))));
        let run = trace_builder(permit, sender, FrameKind::Call, Some(to))
            .input([])
            .edit(|top| top.value = U256::from(1));
        run.wallet("wallet")
    };
    for (to, reason) in [
        ("foreign", DenyReason::CrossOrg),
        ("ungranted", DenyReason::ContractNotPermitted),
        ("nobodys", DenyReason::Unregistered),
    ] {
        assert_eq!(
            pay(to).account(to, [0x60, 0x00]).evaluate(&snapshot),
            Err(reason),
            "{to}"
        );
    }
    // A registered address without code still belongs to its organization.
    assert_eq!(
        pay("foreign").wallet("foreign").evaluate(&snapshot),
        Err(DenyReason::CrossOrg)
    );
    assert_eq!(pay("nobodys").wallet("nobodys").evaluate(&snapshot), Ok(Vec::new()));
    assert_eq!(
        pay("bond").account("bond", [0x60, 0x00]).evaluate(&snapshot),
        Ok(Vec::new())
    );
}
