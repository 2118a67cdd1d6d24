//! Sends: whose they are, how far ahead, who else sees them, what they create.

use super::support::{Ask, ask, ask_as, permit, reason, signed, verdict};
use gw_evm::{Call, Method, ParamError, VisibleTo, trace};
use gw_policy::{
    Change, Knobs, Sealed, Snapshot,
    access::{Caller, Decision, Permit, TraceFacts, TraceVerdict, judge_trace, send},
    knobs::RawSenderPolicy,
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

fn send_as(asked: Ask<'_>, sender: &str) -> String {
    verdict(&asked.send_raw(address_of(sender), Some(address_of("bond")), [1, 2, 3, 4]))
}

#[test]
fn hd13_unclaimed_relays_own_senders_and_those_of_nobody() {
    let snapshot = bank().user("trader").system_link("inferred").snapshot();
    for sender in ["wallet", "inferred", "never-linked"] {
        assert_eq!(send_as(ask(&snapshot, "trader"), sender), "SEND", "{sender}");
    }
    assert_eq!(
        send_as(ask(&snapshot, "trader"), "colleague-wallet"),
        "sender_not_owned"
    );
    // Inferred for somebody else only: not nobody's.
    let snapshot = bank().user("colleague").system_link("inferred").snapshot();
    assert_eq!(send_as(ask(&snapshot, "trader"), "inferred"), "sender_not_owned");
}

#[test]
fn hd13_owner_and_any_are_the_stricter_and_the_looser_setting() {
    let snapshot = bank().snapshot();
    let under = |policy, sender| {
        send_as(
            ask(&snapshot, "trader").with(|knobs| knobs.raw_sender_policy = policy),
            sender,
        )
    };
    for (sender, owner, any) in [
        ("wallet", "SEND", "SEND"),
        ("never-linked", "sender_not_owned", "SEND"),
        ("colleague-wallet", "sender_not_owned", "SEND"),
    ] {
        assert_eq!(under(RawSenderPolicy::Owner, sender), owner, "{sender}");
        assert_eq!(under(RawSenderPolicy::Any, sender), any, "{sender}");
    }
}

/// HD13: a banned user signs, a colleague relays.
#[test]
fn hd13_senders_proved_by_a_barred_identity_are_refused_under_every_setting() {
    for barred in [bank().user("colleague").banned(), bank().user("colleague").no_kyc()] {
        // Even where the caller holds a link to the same address.
        let snapshot = barred.user("trader").link("colleague-wallet").snapshot();
        for policy in [RawSenderPolicy::Unclaimed, RawSenderPolicy::Owner, RawSenderPolicy::Any] {
            let asked = ask(&snapshot, "trader").with(|knobs| knobs.raw_sender_policy = policy);
            assert_eq!(send_as(asked, "colleague-wallet"), "sender_not_owned", "{policy:?}");
        }
    }
}

/// HD13, HD37: who unlinks a wallet, or whose account is deleted, is relayed no more than before: a ban stands on what they
/// signed, too.
#[test]
fn hd13_hd37_a_sender_whose_link_ended_is_relayed_by_nobody() {
    let snapshot = bank().snapshot();
    for policy in [RawSenderPolicy::Unclaimed, RawSenderPolicy::Owner, RawSenderPolicy::Any] {
        let asked = || ask(&snapshot, "trader").with(|knobs| knobs.raw_sender_policy = policy);
        assert_eq!(send_as(asked(), "former-wallet"), "sender_not_owned", "{policy:?}");
        assert_eq!(
            verdict(&asked().send_raw(address_of("former-wallet"), None, [0x60])),
            "sender_not_owned"
        );
    }
    // Whoever proves it anew sends again.
    let proved = bank().user("trader").link("former-wallet").snapshot();
    assert_eq!(send_as(ask(&proved, "trader"), "former-wallet"), "SEND");
}

#[test]
fn hd13_creations_and_recipients_need_an_owner_or_a_sender_of_nobody() {
    let snapshot = bank().snapshot();
    let any = || ask(&snapshot, "trader").with(|knobs| knobs.raw_sender_policy = RawSenderPolicy::Any);
    let create = |asked: Ask<'_>, sender: &str| verdict(&asked.send_raw(address_of(sender), None, [0x60]));
    let shared = |asked: Ask<'_>, sender: &str| send_as(asked.sharing(&["did:test:auditor"]), sender);
    for sender in ["wallet", "never-linked"] {
        assert_eq!(create(any(), sender), "SEND", "{sender}");
        assert_eq!(shared(any(), sender), "SEND", "{sender}");
    }
    let default = || ask(&snapshot, "trader");
    assert_eq!(create(default(), "never-linked"), "SEND");
    // A leaked signed creation, relayed by the rival.
    assert_eq!(create(any(), "colleague-wallet"), "sender_not_owned");
    assert_eq!(shared(any(), "colleague-wallet"), "sender_not_owned");
}

#[test]
fn x10_the_node_signs_for_linked_senders_only() {
    let snapshot = bank().snapshot();
    let send = |from: &str| {
        let object = json!({"from": address_of(from), "to": address_of("bond"), "data": "0x01020304"});
        ask(&snapshot, "trader").rpc("eth_sendTransaction", json!([object]))
    };
    assert_eq!(verdict(&send("wallet")), "SEND");
    for from in ["never-linked", "colleague-wallet"] {
        match send(from) {
            Decision::Invalid(invalid) => assert_eq!(invalid.reason, DenyReason::SenderNotLinked),
            other => panic!("{from}: {other:?}"),
        }
    }
}

/// A client that asks twice for the same nonce sends once.
#[test]
fn b6_a_named_nonce_is_the_next_one_or_none() {
    let snapshot = bank().snapshot();
    let at = |nonce: serde_json::Value| {
        let call =
            json!([{"from": address_of("wallet"), "to": address_of("bond"), "data": "0x01020304", "nonce": nonce}]);
        let permit = permit(ask(&snapshot, "trader").rpc("eth_sendTransaction", call));
        send::check_nonce(
            &permit,
            &judged(&snapshot, &permit, &[1, 2, 3, 4], &[]),
            10,
            &Knobs::default(),
        )
    };
    assert_eq!(at(json!("0xa")), Ok(()));
    assert_eq!(at(json!(null)), Ok(()));
    for other in ["0x9", "0xb"] {
        assert_eq!(at(json!(other)).map_err(|error| error.code()), Err(-32602), "{other}");
    }
}

#[test]
fn hd13_a_nonce_far_ahead_is_refused() {
    let snapshot = bank().snapshot();
    let at = |nonce| {
        let call = signed(address_of("wallet"), nonce, None, [0x60]);
        let permit = permit(ask(&snapshot, "trader").call(Method::SendRawTransaction, &call));
        send::check_nonce(&permit, &judged(&snapshot, &permit, b"", &[]), 10, &Knobs::default())
    };
    assert_eq!(at(0), Ok(()));
    assert_eq!(at(74), Ok(()));
    assert_eq!(at(75).map_err(|error| error.code()), Err(-32602));
}

/// RT21, HD28: code is called in its turn; what runs nothing, and what is created, may wait.
#[test]
fn rt21_hd28_code_is_called_in_its_turn_only() {
    let snapshot = bank().snapshot();
    let at = |nonce, to: Option<&str>, input: &'static [u8], code: &'static [u8]| {
        let call = signed(address_of("wallet"), nonce, to.map(address_of), input);
        let permit = permit(ask(&snapshot, "trader").call(Method::SendRawTransaction, &call));
        send::check_nonce(&permit, &judged(&snapshot, &permit, code, &[]), 10, &Knobs::default()).is_ok()
    };
    let (data, code): (&[u8], &[u8]) = (&[1, 2, 3, 4], &[0x00]);
    for nonce in [9, 10] {
        assert!(at(nonce, Some("bond"), data, code), "in its turn");
    }
    assert!(!at(11, Some("bond"), data, code));
    assert!(!at(11, Some("bond"), data, b""), "code may be there once it runs");
    assert!(at(11, Some("colleague-wallet"), b"", b""), "a payment");
    assert!(at(11, None, &[0x60], b""), "a creation");
}

/// R2, and the address a creation takes (R1).
#[test]
fn r2_a_creation_does_not_take_another_organizations_address() {
    let taken = address_of("wallet").create(0);
    let snapshot = bank().org("rival").contract("theirs").at(taken).snapshot();
    let denied = ask(&snapshot, "trader").send_raw(address_of("wallet"), None, [0x60]);
    assert_eq!(reason(&denied), DenyReason::CrossOrg);
    let snapshot = bank().contract("ours").at(taken).snapshot();
    assert_eq!(
        verdict(&ask(&snapshot, "trader").send_raw(address_of("wallet"), None, [0x60])),
        "SEND"
    );
}

/// The verdict of the simplest trace of this permit: the top frame alone, with or without code at the target.
fn judged(snapshot: &Snapshot, permit: &Permit, code: &'static [u8], inner: &[Address]) -> TraceVerdict {
    let (sender, request) = match permit.call() {
        Call::SendRaw(sent) => (sent.sender, &sent.request),
        Call::Send(sent) => (sent.from, &sent.request),
        other => panic!("no send: {other:?}"),
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
    judge_trace(snapshot, permit, Sealed::new(trace), &facts, NOW, &Knobs::default()).unwrap()
}

fn recipients(snapshot: &Snapshot, entries: &[&str], code: &'static [u8]) -> Result<Vec<ExternalId>, ParamError> {
    let asked = ask(snapshot, "trader").sharing(entries);
    let permit = permit(asked.send_raw(address_of("wallet"), Some(address_of("bond")), [1, 2, 3, 4]));
    send::recipients(snapshot, &permit, &judged(snapshot, &permit, code, &[]))
}

#[test]
fn w4_recipients_are_dids_and_holders_of_addresses_and_the_unknown_are_dropped() {
    let snapshot = bank().user("colleague").system_link("auditor-wallet").snapshot();
    let of = |entries: &[&str]| recipients(&snapshot, entries, &[0x60]).unwrap();
    let wallet = address_of("auditor-wallet").to_string();
    // A proved link before an inferred one.
    assert_eq!(of(&[&wallet]), [did("auditor")]);
    assert_eq!(
        of(&["did:test:anybody", &wallet, "did:test:auditor"]),
        [did("anybody"), did("auditor")]
    );
    let unlinked = address_of("nobody").to_string();
    let long = format!("did:test:{}", "x".repeat(240));
    assert_eq!(of(&[&unlinked, "nonsense", "", &long, "directory:5a1c"]), []);
    assert_eq!(of(&[]), []);
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
        "33 are refused by the decision (RTO3)"
    );
}

/// RTO3, decision 57: what is wrong with the list is said before any trace is asked for, after the target's own denial.
#[test]
fn rto3_a_wrong_list_is_refused_without_a_trace() {
    let snapshot = bank().org("other").contract("foreign").snapshot();
    let to = |name| Some(address_of(name));
    let send = |entries: &[&str], to, data: &'static [u8]| {
        verdict(
            &ask(&snapshot, "trader")
                .sharing(entries)
                .send_raw(address_of("wallet"), to, data),
        )
    };
    let many = ["did:test:auditor"; 33];
    let one = &many[..1];
    assert_eq!(send(one, to("bond"), &[1, 2, 3, 4]), "SEND");
    assert_eq!(send(&many[..32], to("bond"), &[1, 2, 3, 4]), "SEND");
    assert_eq!(send(&many, to("bond"), &[1, 2, 3, 4]), "400");
    assert_eq!(send(one, to("bond"), &[]), "400", "no calldata");
    assert_eq!(send(one, None, &[0x60]), "400", "a creation");
    assert_eq!(send(&many, to("foreign"), &[1, 2, 3, 4]), "foreign_org");
    let malformed = VisibleTo::read(&serde_json::value::to_raw_value(&json!([1])).unwrap());
    let asked = Ask {
        visible_to: malformed,
        ..ask(&snapshot, "trader")
    };
    assert_eq!(
        verdict(&asked.send_raw(address_of("wallet"), to("bond"), [1, 2, 3, 4])),
        "400"
    );
    let request = json!([{"from": address_of("wallet"), "to": address_of("bond")}]);
    assert_eq!(
        verdict(
            &ask(&snapshot, "trader")
                .sharing(one)
                .rpc("eth_sendTransaction", request)
        ),
        "400"
    );
}

/// Decision 25.
#[test]
fn recipients_mean_nothing_on_reads() {
    let snapshot = bank().snapshot();
    let asked = ask(&snapshot, "trader").sharing(&["did:test:auditor"; 40]);
    assert_eq!(verdict(&asked.eth_call(address_of("bond"), [1, 2, 3, 4])), "TRACE");
    assert_eq!(verdict(&asked.rpc("eth_chainId", json!([]))), "FORWARD");
}

/// R1, HD14: addresses to reserve, none for a stored future nonce.
#[test]
fn hd14_reservations_follow_the_transactions_own_nonce_and_none_lies_ahead() {
    let snapshot = bank().snapshot();
    let wallet = address_of("wallet");
    let creation = |nonce, pending| {
        let call = signed(wallet, nonce, None, [0x60]);
        let permit = permit(ask(&snapshot, "trader").call(Method::SendRawTransaction, &call));
        let verdict = judged(&snapshot, &permit, &[], &[address_of("inner")]);
        send::created_addresses(&permit, &verdict, pending)
    };
    assert_eq!(creation(7, 7), [wallet.create(7), address_of("inner")]);
    assert_eq!(creation(8, 7), [Address::ZERO; 0]);
    let call = signed(wallet, 7, Some(address_of("bond")), [1, 2, 3, 4]);
    let permit = permit(ask(&snapshot, "trader").call(Method::SendRawTransaction, &call));
    let verdict = judged(&snapshot, &permit, &[0x60], &[address_of("inner")]);
    assert_eq!(send::created_addresses(&permit, &verdict, 7), [address_of("inner")]);
}

/// RT6b: whoever holds a personal URL signs with any key: by it, only wallets send that its owner linked by signature,
/// whatever its scope, and so nothing new is inferred to be the owner's.
#[test]
fn rt6b_hd17_by_a_personal_url_only_proved_wallets_send() {
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
        let by_url = || ask_as(&snapshot, Caller::Url(user.clone(), Arc::new(url.clone()))).naming("bank");
        assert_eq!(send_as(by_url(), "wallet"), "SEND");
        for sender in ["nobodys", "inferred", "safe", "colleague-wallet", "former-wallet"] {
            assert_eq!(send_as(by_url(), sender), "400", "{sender}");
            let creation = by_url().send_raw(address_of(sender), None, [0x60, 0]);
            assert_eq!(verdict(&creation), "400", "{sender}");
        }
    }
    assert_eq!(
        send_as(ask(&plain, "trader"), "nobodys"),
        "SEND",
        "with a token, RAW_SENDER_POLICY decides"
    );
}
