//! The order of checks of spec/20 §17, and the checks of its first half: method, caller, KYC, organization,
//! parameters, history.

use super::support::{HEAD, anonymous_request, denial, permit, reason, request_as, request_from, verdict};
use gw_evm::{Call, Method};
use gw_policy::{
    Change, Snapshot,
    access::{Caller, Decision, Plan, ReadBlock, check_historical_ownership},
    settings::KycGate,
    testing::{NOW, World, address_of, org_id, user_id, world},
};
use gw_types::{Claim, DenyReason, Epoch};
use serde_json::json;

/// A bank with an analyst who may use every method and has a grant on one contract.
fn bank() -> World {
    world()
        .org("bank")
        .group("analysts")
        .every_method()
        .user("analyst")
        .member("analysts")
        .link("wallet")
        .contract("bond")
        .grant("analysts")
}

#[test]
fn j6_unknown_and_blocked_names_are_denied_before_anything_else() {
    let snapshot = bank().snapshot();
    for caller in [request_as(&snapshot, "analyst"), anonymous_request(&snapshot)] {
        assert_eq!(
            reason(&caller.rpc("eth_nonsense", json!([]))),
            DenyReason::MethodUnknown
        );
        assert_eq!(reason(&caller.rpc("eth_sign", json!([]))), DenyReason::MethodNotAllowed);
        assert_eq!(
            reason(&caller.rpc("debug_storageRangeAt", json!([]))),
            DenyReason::MethodNotAllowed
        );
        assert_eq!(verdict(&caller.rpc("ETH_blocknumber", json!([]))), "FORWARD");
    }
}

/// G3, B10: `*` means every registry method and nothing else.
#[test]
fn g3_a_star_grants_no_method_outside_the_registry() {
    let snapshot = bank().snapshot();
    for name in [
        "trace_block",
        "eth_simulateV1",
        "eth_getRawTransactionByHash",
        "engine_newPayloadV3",
        "eth_newPendingTransactionFilter",
    ] {
        assert_eq!(
            reason(&request_as(&snapshot, "analyst").rpc(name, json!([]))),
            DenyReason::MethodNotAllowed,
            "{name}"
        );
    }
}

/// B17: methods that would use a key of the node are denied to everybody, regardless of method lists.
#[test]
fn b17_methods_that_use_keys_of_the_node_are_denied() {
    let snapshot = bank().snapshot();
    let names = [
        "eth_sign",
        "eth_signTransaction",
        "eth_signTypedData",
        "eth_signTypedData_v3",
        "eth_signTypedData_v4",
    ];
    for name in names.into_iter().chain([
        "personal_sign",
        "personal_unlockAccount",
        "eth_fillTransaction",
        "eth_resend",
    ]) {
        assert_eq!(
            reason(&request_as(&snapshot, "analyst").rpc(name, json!([]))),
            DenyReason::MethodNotAllowed,
            "{name}"
        );
    }
}

/// I6, X12: a decision depends only on its snapshot. The next request after a change is decided by the new snapshot,
/// because no decision is cached.
#[test]
fn i6_x12_the_end_of_a_grant_a_membership_or_a_link_takes_effect_with_the_next_request() {
    let (call, send) = (
        json!([{"to": address_of("bond"), "data": "0x01020304"}]),
        [1u8, 2, 3, 4],
    );
    let snapshot = bank().snapshot();
    let user = snapshot.user(user_id("analyst")).unwrap().clone();
    let grants: Vec<_> = snapshot
        .grants(snapshot.contract(address_of("bond")).unwrap().id)
        .iter()
        .map(|g| g.id)
        .collect();
    let (membership, link) = (snapshot.memberships(user.id)[0].id, snapshot.links_of(user.id)[0].id);
    let ends = [
        (
            grants.into_iter().map(|id| Change::Grant(id, None)).collect::<Vec<_>>(),
            "contract_not_permitted",
        ),
        (vec![Change::Membership(membership, None)], "foreign_org"),
    ];
    for (changes, expected) in ends {
        let after = snapshot.apply(Epoch(2), changes);
        assert_eq!(
            verdict(&request_as(&snapshot, "analyst").rpc("eth_call", call.clone())),
            "TRACE"
        );
        assert_eq!(
            verdict(&request_as(&after, "analyst").rpc("eth_call", call.clone())),
            expected
        );
        assert_eq!(
            verdict(&request_as(&after, "analyst").send_raw(address_of("wallet"), Some(address_of("bond")), send)),
            expected
        );
    }
    let balance = |snapshot: &Snapshot| {
        verdict(&request_as(snapshot, "analyst").rpc("eth_getBalance", json!([address_of("wallet")])))
    };
    assert_eq!(balance(&snapshot), "FORWARD");
    assert_eq!(balance(&snapshot.apply(Epoch(2), [Change::Link(link, None)])), "ZERO");
}

#[test]
fn a10_a_ban_applies_to_metadata_and_is_read_from_the_deciding_snapshot() {
    let snapshot = bank().snapshot();
    let before = request_as(&snapshot, "analyst");
    assert_eq!(verdict(&before.rpc("eth_chainId", json!([]))), "FORWARD");
    // The caller was identified before the ban, but the batch element is decided after it (HD20).
    let banned = bank().user("analyst").banned().snapshot();
    let after = request_from(&banned, before.caller);
    for (name, params) in [
        ("eth_chainId", json!([])),
        ("eth_getBalance", json!([address_of("wallet")])),
    ] {
        assert_eq!(reason(&after.rpc(name, params)), DenyReason::Banned, "{name}");
    }
}

#[test]
fn a9_a_user_whose_row_was_deleted_is_unknown() {
    let snapshot = bank().snapshot();
    let caller = request_as(&snapshot, "analyst").caller;
    let without_user = snapshot.apply(Epoch(2), [Change::User(user_id("analyst"), None)]);
    assert_eq!(
        reason(&request_from(&without_user, caller).rpc("eth_chainId", json!([]))),
        DenyReason::UnknownUser
    );
}

#[test]
fn metadata_needs_no_membership_kyc_or_organization() {
    // O1, D5.
    let snapshot = bank().user("newcomer").no_kyc().snapshot();
    let decision = request_as(&snapshot, "newcomer")
        .with_settings(|settings| settings.kyc_gate = KycGate::All)
        .rpc("net_version", json!([]));
    assert_eq!(verdict(&decision), "FORWARD");
}

#[test]
fn a3_anonymous_callers_get_the_harmless_classes_of_the_anonymous_list() {
    let everything = bank().org("anonymous").group("anonymous").every_method().snapshot();
    let request = anonymous_request(&everything);
    let hash = json!(["0x0000000000000000000000000000000000000000000000000000000000000001"]);
    assert_eq!(verdict(&request.rpc("eth_getTransactionReceipt", hash)), "FORWARD");
    assert_eq!(
        verdict(&request.rpc("eth_feeHistory", json!(["0x1", "latest", []]))),
        "FORWARD"
    );
    assert_eq!(verdict(&request.rpc("eth_accounts", json!([]))), "LOCAL");
    let bond = address_of("bond");
    for (name, params) in [
        ("eth_getBalance", json!([bond])),
        ("eth_call", json!([{"to": bond, "data": "0x01020304"}])),
        ("eth_getLogs", json!([{"address": bond}])),
        ("eth_sendRawTransaction", json!(["0x02"])),
    ] {
        assert_eq!(reason(&request.rpc(name, params)), DenyReason::AuthRequired, "{name}");
    }
    // [S]: the list also decides about metadata.
    let without_list = world().snapshot().apply(
        Epoch(2),
        [Change::GroupAccess(gw_policy::snapshot::Group::ANONYMOUS, None)],
    );
    assert_eq!(
        reason(&anonymous_request(&without_list).rpc("eth_chainId", json!([]))),
        DenyReason::AuthRequired
    );
}

/// Decision 3: the KYC gate `writes` applies to sends, `all` applies to everything except metadata.
#[test]
fn d3_without_kyc_sends_are_denied_and_with_the_gate_all_also_reads() {
    let snapshot = bank().user("analyst").no_kyc().snapshot();
    let request = request_as(&snapshot, "analyst");
    assert_eq!(
        verdict(&request.rpc("eth_getBalance", json!([address_of("bond")]))),
        "FORWARD"
    );
    assert_eq!(
        reason(&request.send_raw(address_of("wallet"), Some(address_of("bond")), [])),
        DenyReason::KycRequired
    );
    assert_eq!(
        reason(&request.send_raw(address_of("wallet"), None, [1])),
        DenyReason::KycRequired
    );
    let gate_all = request_as(&snapshot, "analyst").with_settings(|settings| settings.kyc_gate = KycGate::All);
    assert_eq!(
        reason(&gate_all.rpc("eth_getBalance", json!([address_of("bond")]))),
        DenyReason::KycRequired
    );
}

#[test]
fn g2_an_empty_list_allows_nothing() {
    let snapshot = world()
        .org("bank")
        .group("newcomers")
        .user("user")
        .member("newcomers")
        .snapshot();
    let denied = request_as(&snapshot, "user").rpc("eth_syncing", json!([]));
    assert_eq!(denial(&denied), (DenyReason::MethodNotAllowed, Some(org_id("bank"))));
}

#[test]
fn a_user_without_membership_is_denied() {
    let snapshot = world().user("user").snapshot();
    assert_eq!(
        denial(&request_as(&snapshot, "user").rpc("eth_syncing", json!([]))),
        (DenyReason::MethodNotAllowed, None)
    );
}

#[test]
fn either_send_method_grants_raw_sends_and_no_other_send() {
    // §9, WRITE.
    let snapshot_with = |method| {
        bank()
            .org("bank")
            .group("senders")
            .methods([method])
            .user("sender")
            .member("senders")
            .link("signer")
            .contract("bond")
            .grant("senders")
            .snapshot()
    };
    let granted = snapshot_with(Method::SendTransaction);
    assert_eq!(
        verdict(&request_as(&granted, "sender").send_raw(address_of("signer"), Some(address_of("bond")), [1])),
        "SEND"
    );
    let granted = snapshot_with(Method::SendRawTransaction);
    let params = json!([{"from": address_of("signer"), "to": address_of("bond"), "data": "0x01"}]);
    assert_eq!(
        reason(&request_as(&granted, "sender").rpc("eth_sendTransaction", params)),
        DenyReason::MethodNotAllowed
    );
}

/// §17: a caller who may not use the method gets a denial instead of a parameter error.
#[test]
fn parameter_errors_are_only_for_callers_who_may_use_the_method() {
    let snapshot = bank()
        .org("bank")
        .group("newcomers")
        .user("newcomer")
        .member("newcomers")
        .snapshot();
    let broken = json!([{"to": 1}]);
    match request_as(&snapshot, "analyst").rpc("eth_call", broken.clone()) {
        Decision::Invalid(invalid) => {
            assert_eq!(
                (invalid.reason, invalid.org),
                (DenyReason::InvalidRequestShape, Some(org_id("bank")))
            );
            assert_eq!(invalid.error.code(), -32602);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(
        reason(&request_as(&snapshot, "newcomer").rpc("eth_call", broken.clone())),
        DenyReason::MethodNotAllowed
    );
    assert_eq!(
        reason(&anonymous_request(&snapshot).rpc("eth_call", broken)),
        DenyReason::AuthRequired
    );
}

/// §9, B11: each storage key of a proof is checked like a slot of `eth_getStorageAt`.
#[test]
fn b11_a_proof_reveals_no_slot_that_get_storage_at_denies() {
    let snapshot = bank()
        .group("admins")
        .org_admin()
        .every_method()
        .user("admin")
        .member("admins")
        .snapshot();
    let standard = json!("0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc");
    let proof = |user: &str, contract: &str, keys: &[&serde_json::Value]| {
        verdict(&request_as(&snapshot, user).rpc("eth_getProof", json!([address_of(contract), keys, "latest"])))
    };
    assert_eq!(proof("analyst", "bond", &[]), "FORWARD");
    assert_eq!(proof("analyst", "bond", &[&standard]), "FORWARD");
    assert_eq!(proof("analyst", "bond", &[&standard, &json!("0x0")]), "param_rule");
    assert_eq!(proof("admin", "bond", &[&json!("0x0")]), "FORWARD");
    assert_eq!(proof("analyst", "nobody's", &[]), "unregistered");
}

/// §9: only the owner of the sender may look up a transaction by sender and nonce.
#[test]
fn section_9_transactions_by_nonce_are_for_own_senders_only() {
    let snapshot = bank().snapshot();
    let by_nonce = |sender| {
        verdict(&request_as(&snapshot, "analyst").rpc("eth_getTransactionBySenderAndNonce", json!([sender, "0x0"])))
    };
    assert_eq!(by_nonce(address_of("wallet")), "FORWARD");
    assert_eq!(by_nonce(address_of("anybody")), "sender_not_owned");
    assert_eq!(by_nonce(address_of("bond")), "sender_not_owned");
}

#[test]
fn h1_only_org_admins_read_blocks_older_than_64() {
    let snapshot = bank()
        .group("admins")
        .org_admin()
        .every_method()
        .user("admin")
        .member("admins")
        .snapshot();
    let bond = address_of("bond");
    let hash = json!({"blockHash": "0x0000000000000000000000000000000000000000000000000000000000000001"});
    let recent = HEAD - 64;
    let blocks = [
        (json!("latest"), true),
        // These tags name past blocks. They are checked again with the number that the node returns, see `rt8_…`
        // below and in `trace_rights`.
        (json!("safe"), true),
        (json!("finalized"), true),
        (json!("pending"), true),
        (json!(format!("{HEAD:#x}")), true),
        (json!(format!("{recent:#x}")), true),
        (json!(format!("{:#x}", recent - 1)), false),
        (json!("earliest"), false),
        (json!("0x0"), false),
        (hash, false),
    ];
    for (block, present) in blocks {
        for (name, params) in [
            ("eth_getBalance", json!([bond, block])),
            ("eth_getTransactionCount", json!([bond, block])),
            ("eth_getCode", json!([bond, block])),
            ("eth_call", json!([{"to": bond, "data": "0x01020304"}, block])),
            ("eth_estimateGas", json!([{"to": bond, "data": "0x01020304"}, block])),
        ] {
            let decision = request_as(&snapshot, "analyst").rpc(name, params.clone());
            match (present, &decision) {
                (true, Decision::Allow(_)) => {}
                (false, Decision::Deny(denial)) if denial.reason == DenyReason::HistoryNotPermitted => {}
                _ => panic!("{name} {params}: {decision:?}"),
            }
            assert!(matches!(
                request_as(&snapshot, "admin").rpc(name, params),
                Decision::Allow(_)
            ));
        }
    }
}

/// H1: within the last 64 blocks, an owner reads only what was already theirs at the time of the block.
#[test]
fn h1_blocks_before_a_change_of_ownership_are_history() {
    let since = NOW.minus(gw_types::Seconds(100));
    let snapshot = bank()
        .contract("bought")
        .since(since)
        .grant("analysts")
        .user("seller")
        .unlinked("second-hand")
        .user("analyst")
        .link("second-hand")
        .org("rival")
        .contract("theirs")
        .since(since)
        .org("bank")
        .group("admins")
        .org_admin()
        .every_method()
        .user("admin")
        .member("admins")
        .snapshot();
    let check_ownership = |user: &str, method: &str, target: &str, number: u64, time| {
        let decision = request_as(&snapshot, user).rpc(method, json!([address_of(target), format!("{number:#x}")]));
        check_historical_ownership(&snapshot, &permit(decision), ReadBlock { number, time }, NOW)
    };
    let before = since.minus(gw_types::Seconds(1));
    for name in ["eth_getBalance", "eth_getTransactionCount", "eth_getCode"] {
        assert_eq!(
            check_ownership("analyst", name, "bought", HEAD - 1, before),
            Err(DenyReason::HistoryNotPermitted)
        );
        assert_eq!(
            check_ownership("analyst", name, "bought", HEAD - 1, since),
            Ok(()),
            "{name}"
        );
        // The number of the head is not history, and org admins read all history.
        assert_eq!(
            check_ownership("analyst", name, "bought", HEAD, before),
            Ok(()),
            "{name}"
        );
        assert_eq!(
            check_ownership("admin", name, "bought", HEAD - 1, before),
            Ok(()),
            "{name}"
        );
        // Without access, the result does not depend on the time of ownership.
        for hidden in ["theirs", "nobody"] {
            assert_eq!(
                check_ownership("analyst", name, hidden, HEAD - 1, before),
                Ok(()),
                "{name} {hidden}"
            );
        }
    }
    // A wallet belongs to its owner before it was proved, unless somebody else had proved it before.
    let linked = gw_policy::testing::PAST;
    let earlier = linked.minus(gw_types::Seconds(1));
    assert_eq!(
        check_ownership("analyst", "eth_getBalance", "wallet", HEAD - 1, earlier),
        Ok(())
    );
    assert_eq!(
        check_ownership("analyst", "eth_getBalance", "second-hand", HEAD - 1, linked),
        Ok(())
    );
    assert_eq!(
        check_ownership("analyst", "eth_getBalance", "second-hand", HEAD - 1, earlier),
        Err(DenyReason::HistoryNotPermitted)
    );
}

/// HD29: `safe` and `finalized` name past blocks, so reads there are checked with the number and time of the block
/// that the node returns. Org admin rights do not apply to a wallet that somebody else had proved.
#[test]
fn rt8_tags_below_the_head_are_history() {
    let since = NOW.minus(gw_types::Seconds(100));
    let before = since.minus(gw_types::Seconds(1));
    let snapshot = bank()
        .contract("bought")
        .since(since)
        .grant("analysts")
        .user("seller")
        .unlinked("second-hand")
        .group("admins")
        .org_admin()
        .every_method()
        .user("admin")
        .member("admins")
        .link("second-hand")
        .snapshot();
    let check_ownership = |user: &str, target: &str, block: serde_json::Value, number: u64, time| {
        let decision = request_as(&snapshot, user).rpc("eth_getBalance", json!([address_of(target), block]));
        check_historical_ownership(&snapshot, &permit(decision), ReadBlock { number, time }, NOW)
    };
    let denied = Err(DenyReason::HistoryNotPermitted);
    for tag in ["safe", "finalized"] {
        assert_eq!(
            check_ownership("analyst", "bought", json!(tag), HEAD - 1, before),
            denied,
            "{tag}"
        );
        assert_eq!(
            check_ownership("analyst", "bought", json!(tag), HEAD - 1, since),
            Ok(()),
            "{tag}"
        );
        assert_eq!(
            check_ownership("analyst", "bought", json!(tag), HEAD - 65, since),
            denied,
            "{tag}"
        );
        assert_eq!(
            check_ownership("analyst", "wallet", json!(tag), HEAD - 65, since),
            denied,
            "{tag}: a wallet"
        );
        assert_eq!(
            check_ownership("admin", "bought", json!(tag), HEAD - 65, before),
            Ok(()),
            "{tag}"
        );
        assert_eq!(
            check_ownership("analyst", "bought", json!(tag), HEAD, before),
            Ok(()),
            "{tag}: the head"
        );
    }
    let earlier = gw_policy::testing::PAST.minus(gw_types::Seconds(1));
    for block in [json!("safe"), json!(format!("{:#x}", HEAD - 1)), json!("0x1")] {
        assert_eq!(
            check_ownership("admin", "second-hand", block, HEAD - 1, earlier),
            denied
        );
    }
}

/// HD29: an org admin reads the history of contracts of the own organization only.
#[test]
fn rt7_the_history_of_a_contract_is_for_admins_of_its_organization() {
    let snapshot = bank()
        .org("rival")
        .group("chiefs")
        .org_admin()
        .every_method()
        .contract("entry")
        .user("chief")
        .member("rival/chiefs")
        .member("bank/analysts")
        .snapshot();
    let history_of = |name: &str| {
        let decision = request_as(&snapshot, "chief").rpc("eth_getBalance", json!([address_of(name), "0x1"]));
        match decision {
            Decision::Allow(permit) => {
                check_historical_ownership(&snapshot, &permit, ReadBlock { number: 1, time: NOW }, NOW)
            }
            other => Err(reason(&other)),
        }
    };
    assert_eq!(history_of("entry"), Ok(()));
    assert_eq!(history_of("bond"), Err(DenyReason::HistoryNotPermitted));
}

#[test]
fn hd6_denied_history_does_not_reveal_the_owner_of_an_address() {
    let snapshot = bank()
        .org("rival")
        .contract("secret")
        .user("victim")
        .link("victim-wallet")
        .snapshot();
    for address in ["secret", "victim-wallet", "nobody"] {
        let decision = request_as(&snapshot, "analyst").rpc("eth_getBalance", json!([address_of(address), "earliest"]));
        assert_eq!(
            denial(&decision),
            (DenyReason::HistoryNotPermitted, Some(org_id("bank"))),
            "{address}"
        );
    }
}

#[test]
fn hd11_pending_means_latest_except_for_own_balance_and_nonce() {
    let snapshot = bank().snapshot();
    let block = |name: &str, params| match permit(request_as(&snapshot, "analyst").rpc(name, params)).call() {
        Call::Balance(_, block) | Call::Nonce(_, block) | Call::Code(_, block) => format!("{block:?}"),
        Call::Simulate(simulation) => format!("{:?}", simulation.block),
        other => panic!("{other:?}"),
    };
    let (bond, wallet) = (address_of("bond"), address_of("wallet"));
    assert_eq!(
        block("eth_getTransactionCount", json!([wallet, "pending"])),
        "Tag(Pending)"
    );
    assert_eq!(block("eth_getBalance", json!([wallet, "pending"])), "Tag(Pending)");
    assert_eq!(block("eth_getBalance", json!([bond, "pending"])), "Tag(Latest)");
    assert_eq!(block("eth_getCode", json!([wallet, "pending"])), "Tag(Latest)");
    assert_eq!(
        block("eth_call", json!([{"to": bond, "data": "0x01020304"}, "pending"])),
        "Tag(Latest)"
    );
}

#[test]
fn m1_known_multicalls_are_denied_on_call_estimate_and_send() {
    let multicall: gw_types::Address = "0xcA11bde05977b3631167028862bE2a173976CA11".parse().unwrap();
    // The rule applies even if the organization has registered and granted the contract.
    let snapshot = bank().contract("multicall").at(multicall).grant("analysts").snapshot();
    let request = request_as(&snapshot, "analyst");
    for selector in [
        "0x252dba42",
        "0x82ad56cb",
        "0x174dea71",
        "0xc3077fa9",
        "0xbce38bd7",
        "0x399542e9",
    ] {
        for name in ["eth_call", "eth_estimateGas"] {
            assert_eq!(
                reason(&request.rpc(name, json!([{"to": multicall, "data": selector}]))),
                DenyReason::Multicall
            );
        }
        let data: gw_types::Bytes = selector.parse().unwrap();
        assert_eq!(
            reason(&request.send_raw(address_of("wallet"), Some(multicall), data)),
            DenyReason::Multicall
        );
    }
    assert_eq!(
        verdict(&request.rpc("eth_call", json!([{"to": multicall, "data": "0x0f28c97d"}]))),
        "TRACE"
    );
}

#[test]
fn the_permit_contains_the_decision() {
    let snapshot: Snapshot = bank().snapshot();
    let permit = permit(request_as(&snapshot, "analyst").eth_call(address_of("bond"), [1, 2, 3, 4]));
    assert_eq!(permit.plan(), Plan::Simulate);
    assert_eq!(permit.method(), Some(Method::Call));
    assert_eq!(permit.org(), Some(org_id("bank")));
    assert_eq!(permit.user(), Some(user_id("analyst")));
    assert_eq!(permit.epoch(), snapshot.epoch());
}

/// D2, K11: the claim alone makes an org admin. With K11 off, the claim gives access to granted contracts only.
#[test]
fn k11_the_admin_claim_covers_all_contracts_unless_switched_off() {
    let snapshot = bank()
        .group("chiefs")
        .every_method()
        .claim(Claim::Admin)
        .user("chief")
        .member("chiefs")
        .snapshot();
    let bond = address_of("bond");
    assert_eq!(
        verdict(&request_as(&snapshot, "chief").eth_call(bond, [1, 2, 3, 4])),
        "TRACE"
    );
    let switched_off = request_as(&snapshot, "chief").with_settings(|settings| settings.admin_claim_sees_all = false);
    assert_eq!(
        reason(&switched_off.eth_call(bond, [1, 2, 3, 4])),
        DenyReason::ContractNotPermitted
    );
}

#[test]
fn a8_a_membership_gives_no_rights_from_its_expiry_on() {
    // B16.
    let snapshot = world()
        .org("bank")
        .group("analysts")
        .every_method()
        .user("analyst")
        .member_until("analysts", NOW)
        .contract("bond")
        .grant("analysts")
        .snapshot();
    let before = request_as(&snapshot, "analyst").at_time(NOW.minus(gw_types::Seconds(1)));
    assert_eq!(verdict(&before.eth_call(address_of("bond"), [1, 2, 3, 4])), "TRACE");
    assert_eq!(
        reason(&request_as(&snapshot, "analyst").eth_call(address_of("bond"), [1, 2, 3, 4])),
        DenyReason::ForeignOrg
    );
}

#[test]
fn an_anonymous_caller_has_no_user_and_no_organization() {
    let snapshot = bank().snapshot();
    let request = request_from(&snapshot, Caller::Anonymous);
    let permit = permit(request.rpc("eth_chainId", json!([])));
    assert_eq!(
        (permit.user(), permit.org(), permit.plan()),
        (None, None, Plan::Forward)
    );
}
