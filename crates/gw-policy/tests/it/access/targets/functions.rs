//! Which functions of a contract a grant allows, with which parameters (F1 to F3, G7).

use super::{TOKEN_ABI, bank, word};
use crate::access::support::{call_object, reason, request_as, verdict};
use gw_policy::{
    Snapshot,
    snapshot::{Comparison, Constraint},
    testing::{NOW, address_of, calldata, function},
};
use gw_types::{B256, Bytes, Claim, DenyReason};
use serde_json::json;

/// The verdict on this calldata for `bond`; "ok" if it is allowed. Calls, estimates and sends must agree.
fn functions_of(snapshot: &Snapshot, user: &str, data: Bytes) -> String {
    let bond = address_of("bond");
    let request = request_as(snapshot, user);
    let outcomes = [
        request.eth_call(bond, data.clone()),
        request.rpc("eth_estimateGas", json!([call_object(bond, &data)])),
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

/// HD13: `self` is no address that the gateway inferred for the caller and another user proved.
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
