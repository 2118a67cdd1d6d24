//! Tests of sends: senders, nonces, recipients and creations.

use super::support::{RequestBuilder, permit, reason, request_as, request_from, signed, verdict};
use gw_evm::{Call, Method, ParamError, VisibleTo, trace};
use gw_policy::{
    Change, PolicySettings, Sealed, Snapshot,
    access::{Caller, Decision, Permit, TraceFacts, TraceVerdict, evaluate_trace, send},
    settings::RawSenderPolicy,
    snapshot::{PersonalUrl, UrlReach},
    testing::{NOW, World, address_of, did, org_id, user_id, world},
};
use gw_types::{Address, B256, Bytes, Claim, DenyReason, Epoch, ExternalId, PersonalUrlId, Seconds};
use serde_json::json;
use std::{collections::BTreeMap, sync::Arc};

fn bank() -> World {
    world()
        .org("bank")
        .group("traders")
        .every_method()
        .claim(Claim::Deploy)
        .user("trader")
        .member("traders")
        .link("wallet")
        .contract("bond")
        .grant("traders")
        .user("colleague")
        .member("traders")
        .link("colleague-wallet")
        .unlinked("former-wallet")
        .user("auditor")
        .link("auditor-wallet")
}

fn send_as(request: RequestBuilder<'_>, sender: &str) -> String {
    verdict(&request.send_raw(address_of(sender), Some(address_of("bond")), [1, 2, 3, 4]))
}

#[test]
fn hd13_unclaimed_relays_own_and_unlinked_senders() {
    let snapshot = bank().user("trader").system_link("inferred").snapshot();
    for sender in ["wallet", "inferred", "never-linked"] {
        assert_eq!(send_as(request_as(&snapshot, "trader"), sender), "SEND", "{sender}");
    }
    assert_eq!(
        send_as(request_as(&snapshot, "trader"), "colleague-wallet"),
        "sender_not_owned"
    );
    // A sender that is inferred for somebody else is linked.
    let snapshot = bank().user("colleague").system_link("inferred").snapshot();
    assert_eq!(send_as(request_as(&snapshot, "trader"), "inferred"), "sender_not_owned");
}

#[test]
fn hd13_owner_is_stricter_and_any_is_looser_than_unclaimed() {
    let snapshot = bank().snapshot();
    let send_with = |policy, sender| {
        send_as(
            request_as(&snapshot, "trader").with_settings(|settings| settings.raw_sender_policy = policy),
            sender,
        )
    };
    for (sender, owner, any) in [
        ("wallet", "SEND", "SEND"),
        ("never-linked", "sender_not_owned", "SEND"),
        ("colleague-wallet", "sender_not_owned", "SEND"),
    ] {
        assert_eq!(send_with(RawSenderPolicy::Owner, sender), owner, "{sender}");
        assert_eq!(send_with(RawSenderPolicy::Any, sender), any, "{sender}");
    }
}

/// HD13: a colleague relays a transaction that a banned user signed.
#[test]
fn hd13_senders_proved_by_a_barred_user_are_rejected_with_every_setting() {
    for barred in [bank().user("colleague").banned(), bank().user("colleague").no_kyc()] {
        // This applies even if the caller has a link to the same address.
        let snapshot = barred.user("trader").link("colleague-wallet").snapshot();
        for policy in [RawSenderPolicy::Unclaimed, RawSenderPolicy::Owner, RawSenderPolicy::Any] {
            let request = request_as(&snapshot, "trader").with_settings(|settings| settings.raw_sender_policy = policy);
            assert_eq!(send_as(request, "colleague-wallet"), "sender_not_owned", "{policy:?}");
        }
    }
}

/// HD13, HD37: transactions of a wallet that was unlinked, or whose owner was deleted, are not relayed. Otherwise
/// unlinking would circumvent a ban.
#[test]
fn hd13_hd37_a_sender_whose_link_ended_is_not_relayed() {
    let snapshot = bank().snapshot();
    for policy in [RawSenderPolicy::Unclaimed, RawSenderPolicy::Owner, RawSenderPolicy::Any] {
        let request = || request_as(&snapshot, "trader").with_settings(|settings| settings.raw_sender_policy = policy);
        assert_eq!(send_as(request(), "former-wallet"), "sender_not_owned", "{policy:?}");
        assert_eq!(
            verdict(&request().send_raw(address_of("former-wallet"), None, [0x60])),
            "sender_not_owned"
        );
    }
    // A user who proves the wallet again may send from it.
    let proved = bank().user("trader").link("former-wallet").snapshot();
    assert_eq!(send_as(request_as(&proved, "trader"), "former-wallet"), "SEND");
}

#[test]
fn hd13_creations_and_recipients_need_an_own_or_unlinked_sender() {
    let snapshot = bank().snapshot();
    let any =
        || request_as(&snapshot, "trader").with_settings(|settings| settings.raw_sender_policy = RawSenderPolicy::Any);
    let create =
        |request: RequestBuilder<'_>, sender: &str| verdict(&request.send_raw(address_of(sender), None, [0x60]));
    let shared = |request: RequestBuilder<'_>, sender: &str| send_as(request.visible_to(&["did:test:auditor"]), sender);
    for sender in ["wallet", "never-linked"] {
        assert_eq!(create(any(), sender), "SEND", "{sender}");
        assert_eq!(shared(any(), sender), "SEND", "{sender}");
    }
    let default = || request_as(&snapshot, "trader");
    assert_eq!(create(default(), "never-linked"), "SEND");
    // A signed creation that leaked is relayed by somebody else.
    assert_eq!(create(any(), "colleague-wallet"), "sender_not_owned");
    assert_eq!(shared(any(), "colleague-wallet"), "sender_not_owned");
}

#[test]
fn x10_the_node_signs_for_linked_senders_only() {
    let snapshot = bank().snapshot();
    let send = |from: &str| {
        let object = json!({"from": address_of(from), "to": address_of("bond"), "data": "0x01020304"});
        request_as(&snapshot, "trader").rpc("eth_sendTransaction", json!([object]))
    };
    assert_eq!(verdict(&send("wallet")), "SEND");
    for from in ["never-linked", "colleague-wallet"] {
        match send(from) {
            Decision::Invalid(invalid) => assert_eq!(invalid.reason, DenyReason::SenderNotLinked),
            other => panic!("{from}: {other:?}"),
        }
    }
}

/// Protects a client that submits the same nonce twice from sending twice.
#[test]
fn b6_a_nonce_must_be_absent_or_the_next_one() {
    let snapshot = bank().snapshot();
    let check_nonce = |nonce: serde_json::Value| {
        let call =
            json!([{"from": address_of("wallet"), "to": address_of("bond"), "data": "0x01020304", "nonce": nonce}]);
        let permit = permit(request_as(&snapshot, "trader").rpc("eth_sendTransaction", call));
        send::check_nonce(
            &permit,
            &evaluate(&snapshot, &permit, &[1, 2, 3, 4], &[]),
            10,
            &PolicySettings::default(),
        )
    };
    assert_eq!(check_nonce(json!("0xa")), Ok(()));
    assert_eq!(check_nonce(json!(null)), Ok(()));
    for other in ["0x9", "0xb"] {
        assert_eq!(
            check_nonce(json!(other)).map_err(|error| error.code()),
            Err(-32602),
            "{other}"
        );
    }
}

#[test]
fn hd13_a_nonce_far_ahead_is_rejected() {
    let snapshot = bank().snapshot();
    let check_nonce = |nonce| {
        let call = signed(address_of("wallet"), nonce, None, [0x60]);
        let permit = permit(request_as(&snapshot, "trader").call(Method::SendRawTransaction, &call));
        send::check_nonce(
            &permit,
            &evaluate(&snapshot, &permit, b"", &[]),
            10,
            &PolicySettings::default(),
        )
    };
    assert_eq!(check_nonce(0), Ok(()));
    assert_eq!(check_nonce(74), Ok(()));
    assert_eq!(check_nonce(75).map_err(|error| error.code()), Err(-32602));
}

/// RT21, HD28: calls of code need the next nonce. Payments and creations may have a later one.
#[test]
fn rt21_hd28_calls_of_code_need_the_next_nonce() {
    let snapshot = bank().snapshot();
    let check_nonce = |nonce, to: Option<&str>, input: &'static [u8], code: &'static [u8]| {
        let call = signed(address_of("wallet"), nonce, to.map(address_of), input);
        let permit = permit(request_as(&snapshot, "trader").call(Method::SendRawTransaction, &call));
        send::check_nonce(
            &permit,
            &evaluate(&snapshot, &permit, code, &[]),
            10,
            &PolicySettings::default(),
        )
        .is_ok()
    };
    let (data, code): (&[u8], &[u8]) = (&[1, 2, 3, 4], &[0x00]);
    for nonce in [9, 10] {
        assert!(
            check_nonce(nonce, Some("bond"), data, code),
            "the next nonce, or an earlier one"
        );
    }
    assert!(!check_nonce(11, Some("bond"), data, code));
    assert!(
        !check_nonce(11, Some("bond"), data, b""),
        "the target may have code when the transaction runs"
    );
    assert!(check_nonce(11, Some("colleague-wallet"), b"", b""), "a payment");
    assert!(check_nonce(11, None, &[0x60], b""), "a creation");
}

/// R2: the address that a creation will have (R1) is checked.
#[test]
fn r2_a_creation_must_not_have_the_address_of_a_foreign_contract() {
    let taken = address_of("wallet").create(0);
    let snapshot = bank().org("rival").contract("theirs").at(taken).snapshot();
    let denied = request_as(&snapshot, "trader").send_raw(address_of("wallet"), None, [0x60]);
    assert_eq!(reason(&denied), DenyReason::CrossOrg);
    let snapshot = bank().contract("ours").at(taken).snapshot();
    assert_eq!(
        verdict(&request_as(&snapshot, "trader").send_raw(address_of("wallet"), None, [0x60])),
        "SEND"
    );
}

/// Evaluates the simplest trace of this permit: the top frame and creations at `inner`, with this code at the target.
fn evaluate(snapshot: &Snapshot, permit: &Permit, code: &'static [u8], inner: &[Address]) -> TraceVerdict {
    let (sender, request) = match permit.call() {
        Call::SendRaw(send) => (send.sender, &send.request),
        Call::Send(send) => (send.from, &send.request),
        other => panic!("not a send: {other:?}"),
    };
    let kind = if request.to.is_none() {
        trace::FrameKind::Create
    } else {
        trace::FrameKind::Call
    };
    let top = trace::Frame {
        kind,
        from: sender,
        to: request.to.or(Some(address_of("top"))),
        input: request.input.clone(),
        output: Bytes::new(),
        value: request.value.unwrap_or_default(),
        gas: None,
        gas_used: None,
        error: None,
        depth: 0,
        parent: None,
        failed: false,
        undone: false,
        logs: Vec::new(),
    };
    let creations = inner.iter().map(|address| trace::Frame {
        kind: trace::FrameKind::Create2,
        to: Some(*address),
        depth: 1,
        parent: Some(0),
        ..top.clone()
    });
    let account = trace::Account {
        code: Bytes::from_static(code),
        ..trace::Account::default()
    };
    let trace = trace::Trace {
        frames: std::iter::once(top.clone()).chain(creations).collect(),
        touched: request.to.map(|to| (to, account)).into_iter().collect(),
        changes: Some(BTreeMap::new()),
        top: trace::Outcome::default(),
    };
    let facts = TraceFacts {
        coinbase: Address::ZERO,
        number: 1000,
        time: NOW,
    };
    evaluate_trace(
        snapshot,
        permit,
        Sealed::new(trace),
        &facts,
        NOW,
        &PolicySettings::default(),
    )
    .unwrap()
}

fn recipients(snapshot: &Snapshot, entries: &[&str], code: &'static [u8]) -> Result<Vec<ExternalId>, ParamError> {
    let request = request_as(snapshot, "trader").visible_to(entries);
    let permit = permit(request.send_raw(address_of("wallet"), Some(address_of("bond")), [1, 2, 3, 4]));
    send::recipients(snapshot, &permit, &evaluate(snapshot, &permit, code, &[]))
}

#[test]
fn w4_recipients_are_dids_and_owners_of_addresses_and_unknown_entries_are_dropped() {
    let snapshot = bank().user("colleague").system_link("auditor-wallet").snapshot();
    let recipients_of = |entries: &[&str]| recipients(&snapshot, entries, &[0x60]).unwrap();
    let wallet = address_of("auditor-wallet").to_string();
    // A proved link takes precedence over an inferred one.
    assert_eq!(recipients_of(&[&wallet]), [did("auditor")]);
    assert_eq!(
        recipients_of(&["did:test:anybody", &wallet, "did:test:auditor"]),
        [did("anybody"), did("auditor")]
    );
    let unlinked = address_of("nobody").to_string();
    let long = format!("did:test:{}", "x".repeat(240));
    assert_eq!(recipients_of(&[&unlinked, "nonsense", "", &long, "directory:5a1c"]), []);
    assert_eq!(recipients_of(&[]), []);
}

#[test]
fn w4_recipients_are_for_calls_of_contracts() {
    let snapshot = bank().snapshot();
    let error = recipients(&snapshot, &["did:test:auditor"], &[]).unwrap_err();
    assert_eq!(error.code(), -32602);
}

#[test]
fn w4_at_most_32_raw_entries() {
    let snapshot = bank().snapshot();
    let repeated = recipients(&snapshot, &["did:test:auditor"; 32], &[0x60]).map_err(|error| error.code());
    assert_eq!(
        repeated,
        Ok(vec![did("auditor")]),
        "the decision rejects 33 entries (RTO3)"
    );
}

/// RTO3, decision 57: an invalid recipient list is rejected before a trace is requested, but after the target is
/// checked.
#[test]
fn rto3_an_invalid_recipient_list_is_rejected_without_a_trace() {
    let snapshot = bank().org("other").contract("foreign").snapshot();
    let to = |name| Some(address_of(name));
    let send = |entries: &[&str], to, data: &'static [u8]| {
        verdict(
            &request_as(&snapshot, "trader")
                .visible_to(entries)
                .send_raw(address_of("wallet"), to, data),
        )
    };
    let too_many = ["did:test:auditor"; 33];
    let one_entry = &too_many[..1];
    assert_eq!(send(one_entry, to("bond"), &[1, 2, 3, 4]), "SEND");
    assert_eq!(send(&too_many[..32], to("bond"), &[1, 2, 3, 4]), "SEND");
    assert_eq!(send(&too_many, to("bond"), &[1, 2, 3, 4]), "400");
    assert_eq!(send(one_entry, to("bond"), &[]), "400", "no calldata");
    assert_eq!(send(one_entry, None, &[0x60]), "400", "a creation");
    assert_eq!(send(&too_many, to("foreign"), &[1, 2, 3, 4]), "foreign_org");
    let malformed = VisibleTo::read(&serde_json::value::to_raw_value(&json!([1])).unwrap());
    let request = RequestBuilder {
        visible_to: malformed,
        ..request_as(&snapshot, "trader")
    };
    assert_eq!(
        verdict(&request.send_raw(address_of("wallet"), to("bond"), [1, 2, 3, 4])),
        "400"
    );
    let request = json!([{"from": address_of("wallet"), "to": address_of("bond")}]);
    assert_eq!(
        verdict(
            &request_as(&snapshot, "trader")
                .visible_to(one_entry)
                .rpc("eth_sendTransaction", request)
        ),
        "400"
    );
}

/// Decision 25: recipients are ignored for methods other than sends.
#[test]
fn recipients_are_ignored_on_reads() {
    let snapshot = bank().snapshot();
    let request = request_as(&snapshot, "trader").visible_to(&["did:test:auditor"; 40]);
    assert_eq!(verdict(&request.eth_call(address_of("bond"), [1, 2, 3, 4])), "TRACE");
    assert_eq!(verdict(&request.rpc("eth_chainId", json!([]))), "FORWARD");
}

/// R1, HD14: the addresses to reserve; none for a nonce that is not the next one.
#[test]
fn hd14_created_addresses_depend_on_the_nonce_and_future_nonces_have_none() {
    let snapshot = bank().snapshot();
    let wallet = address_of("wallet");
    let creation = |nonce, pending| {
        let call = signed(wallet, nonce, None, [0x60]);
        let permit = permit(request_as(&snapshot, "trader").call(Method::SendRawTransaction, &call));
        let verdict = evaluate(&snapshot, &permit, &[], &[address_of("inner")]);
        send::created_addresses(&permit, &verdict, pending)
    };
    assert_eq!(creation(7, 7), [wallet.create(7), address_of("inner")]);
    assert_eq!(creation(8, 7), [Address::ZERO; 0]);
    let call = signed(wallet, 7, Some(address_of("bond")), [1, 2, 3, 4]);
    let permit = permit(request_as(&snapshot, "trader").call(Method::SendRawTransaction, &call));
    let verdict = evaluate(&snapshot, &permit, &[0x60], &[address_of("inner")]);
    assert_eq!(send::created_addresses(&permit, &verdict, 7), [address_of("inner")]);
}

/// RT6b: the holder of a personal URL may sign with any key. Only wallets that its owner linked by signature may send
/// through it, regardless of its scope, so that no wallet is inferred for the owner.
#[test]
fn rt6b_hd17_only_proved_wallets_send_through_a_personal_url() {
    let plain = bank()
        .user("trader")
        .system_link("inferred")
        .contract_link("safe")
        .snapshot();
    let user = plain.user(user_id("trader")).unwrap().clone();
    for reach in [
        UrlReach::Wallet,
        UrlReach::Contracts([address_of("bond")].into()),
        UrlReach::All,
    ] {
        let url = PersonalUrl {
            id: PersonalUrlId::fixed(1),
            user: user.id,
            org: org_id("bank"),
            secret: B256::ZERO,
            reach,
            created_at: NOW,
            expires_at: NOW.plus(Seconds(60)),
        };
        let snapshot = plain.apply(Epoch(9), [Change::PersonalUrl(url.id, Some(url.clone()))]);
        let url_request = || request_from(&snapshot, Caller::Url(user.clone(), Arc::new(url.clone()))).in_org("bank");
        assert_eq!(send_as(url_request(), "wallet"), "SEND");
        for sender in ["nobodys", "inferred", "safe", "colleague-wallet", "former-wallet"] {
            assert_eq!(send_as(url_request(), sender), "400", "{sender}");
            let creation = url_request().send_raw(address_of(sender), None, [0x60, 0]);
            assert_eq!(verdict(&creation), "400", "{sender}");
        }
    }
    assert_eq!(
        send_as(request_as(&plain, "trader"), "nobodys"),
        "SEND",
        "with a token, RAW_SENDER_POLICY decides"
    );
}
