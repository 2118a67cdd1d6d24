//! Masking of transactions, receipts, blocks and state, and rejection of malformed responses (spec/30 section 5).

use super::support::{log, number, sealed, sealed_text, transaction, transfer, transfer_log, viewer, word};
use alloy_primitives::{Address, B256, U256};
use gw_policy::{
    Disclosed, PolicySettings, RawJson, Sealed, Snapshot,
    settings::{AdminTx, HiddenBalanceMode},
    testing::{FUTURE, address_of, hash_of, world},
    view::{self, BlockTransactions},
};
use gw_types::Claim;
use serde_json::{Value, json};

const SPEC: &PolicySettings = &PolicySettings::SPEC;

fn snapshot() -> Snapshot {
    world()
        .org("a")
        .group("admins")
        .org_admin()
        .group("staff")
        .contract("token")
        .grant("staff")
        .user("payer")
        .link("payer")
        .user("admin")
        .member("admins")
        .user("holder")
        .member("staff")
        .snapshot()
}

fn value(shown: &Disclosed) -> Value {
    serde_json::from_str(shown.as_str()).unwrap()
}

fn payment() -> Value {
    let mut payment = transaction("t", address_of("payer"), Some(address_of("token")));
    payment["value"] = json!("0x5");
    payment["input"] = json!(format!("0xa9059cbb{:x}", word("payee")));
    payment["accessList"] = json!([{ "address": address_of("listed"), "storageKeys": [number(1)] }]);
    payment["authorizationList"] = json!([{ "chainId": "0x1", "address": address_of("delegate"), "nonce": "0x0",
        "yParity": "0x0", "r": "0x1", "s": "0x2" }]);
    payment["yParity"] = json!("0x1");
    payment
}

fn receipt() -> Value {
    json!({
        "blockHash": hash_of("block"), "blockNumber": "0x64", "contractAddress": null, "cumulativeGasUsed": "0xffff",
        "effectiveGasPrice": "0x7", "from": address_of("payer"), "gasUsed": "0x5208", "logs": [],
        "logsBloom": format!("0x{}", "a5".repeat(256)), "status": "0x1", "to": address_of("token"),
        "transactionHash": hash_of("t"), "transactionIndex": "0x0", "type": "0x2",
    })
}

fn block(transactions: &[Value]) -> Value {
    json!({
        "number": "0x64", "hash": hash_of("block"), "parentHash": hash_of("parent"), "miner": address_of("miner"),
        "gasLimit": "0x1", "timestamp": "0x1", "transactions": transactions, "baseFeePerGas": "0x9",
        "stateRoot": hash_of("state"), "gasUsed": "0x5208",
    })
}

/// K7: administrators get transactions and receipts masked by default, and full with the setting.
#[test]
fn k7_administrators_see_wallets_only_with_the_setting() {
    let snapshot = snapshot();
    let full = PolicySettings {
        admin_tx: AdminTx::Full,
        ..PolicySettings::SPEC
    };
    for (settings, is_full) in [(SPEC, false), (&full, true)] {
        let admin = viewer(&snapshot, "admin", settings);
        let shown = value(&view::transaction(&admin, sealed(&payment())));
        let receipt = value(&view::receipt(&admin, sealed(&receipt())));
        if is_full {
            assert_eq!(shown, payment());
            assert_eq!(receipt["from"], json!(address_of("payer")));
            continue;
        }
        for (name, masked) in [
            ("from", json!(Address::ZERO)),
            ("value", json!("0x0")),
            ("nonce", json!("0x0")),
            ("input", json!("0x")),
            ("v", json!("0x0")),
            ("r", json!("0x0")),
            ("s", json!("0x0")),
            ("yParity", json!("0x0")),
            ("accessList", json!([])),
            ("authorizationList", json!([])),
            ("to", json!(address_of("token"))),
            ("gasPrice", json!("0x1")),
            ("hash", json!(hash_of("t"))),
        ] {
            assert_eq!(shown[name], masked, "{name}");
        }
        assert_eq!(receipt["from"], json!(Address::ZERO));
        assert_eq!(receipt["to"], json!(address_of("token")));
        assert_eq!(receipt["effectiveGasPrice"], json!("0x7"));
    }
}

/// Section 8: cumulative gas and logs bloom reveal nothing about other transactions to any viewer.
#[test]
fn receipts_contain_no_sums_over_other_transactions() {
    let snapshot = snapshot();
    let shown = value(&view::receipt(&viewer(&snapshot, "payer", SPEC), sealed(&receipt())));
    assert_eq!(shown["cumulativeGasUsed"], shown["gasUsed"]);
    assert_eq!(shown["logsBloom"], json!(format!("0x{}", "00".repeat(256))));
}

/// R13, section 5.1: one visible log gives access to a receipt, except for a deployment. The receipts of a block
/// require transaction access.
#[test]
fn r13_a_visible_log_gives_access_to_a_receipt_except_for_deployments() {
    let snapshot = snapshot();
    let holder = viewer(&snapshot, "holder", SPEC);
    let receipt_with = |to: Option<&str>, emitter: &str| {
        let mut receipt = receipt();
        receipt["to"] = json!(to.map(address_of));
        receipt["logs"] = json!([transfer_log(emitter, "t", "x", "y")]);
        receipt
    };
    let single = |receipt: &Value| value(&view::receipt(&holder, sealed(receipt)));
    let shown = single(&receipt_with(Some("router"), "token"));
    assert_eq!(
        (&shown["from"], &shown["to"]),
        (&json!(Address::ZERO), &json!(Address::ZERO))
    );
    assert_eq!(shown["logs"].as_array().unwrap().len(), 1);
    assert_eq!(single(&receipt_with(None, "token")), Value::Null);
    assert_eq!(single(&receipt_with(Some("router"), "other")), Value::Null);
    let block = view::block_receipts(&holder, sealed(&json!([receipt_with(Some("router"), "token")])));
    assert_eq!(value(&block), json!([]));
}

/// I8, R24: a log is identical in a receipt, in the receipts of a block and in `eth_getLogs`.
#[test]
fn i8_a_log_is_the_same_everywhere() {
    let snapshot = world()
        .org("a")
        .group("staff")
        .contract("token")
        .grant("staff")
        .user("payee")
        .member("staff")
        .link("payee")
        .user("holder")
        .member("staff")
        .user("friend")
        .user("sender")
        .share("t", &["friend"])
        .snapshot();
    let entry = transfer_log("token", "t", "payer", "payee");
    let mut full_receipt = receipt();
    full_receipt["to"] = json!(address_of("payee"));
    full_receipt["logs"] = json!([entry]);
    let known = transaction("t", address_of("payer"), Some(address_of("payee")));
    for user in ["payee", "holder", "friend"] {
        let viewer = viewer(&snapshot, user, SPEC);
        let logs = super::support::get_logs(
            &viewer,
            &super::support::filter(&["token"], vec![]),
            std::slice::from_ref(&entry),
            std::slice::from_ref(&known),
        );
        let logs = json!(super::support::rows(&logs));
        assert_eq!(
            value(&view::receipt(&viewer, sealed(&full_receipt)))["logs"],
            logs,
            "{user}"
        );
        let block = value(&view::block_receipts(&viewer, sealed(&json!([full_receipt]))));
        if user != "holder" {
            assert_eq!(block[0]["logs"], logs, "{user}");
        }
    }
}

/// All logs of a receipt must belong to its transaction, because the parties are checked once for all of them.
#[test]
fn logs_of_another_transaction_make_a_receipt_malformed() {
    let snapshot = snapshot();
    let mut mixed = receipt();
    mixed["logs"] = json!([log(address_of("token"), "u", &[transfer()], &[])]);
    let shown = view::receipt(&viewer(&snapshot, "payer", SPEC), sealed(&mixed));
    assert_eq!((shown.as_str(), shown.is_malformed()), ("null", true));
}

/// Decision 43, K9, HIDE_BASE_FEE: header members by setting. Members that the node did not send are not added.
#[test]
fn k9_roots_and_fees_by_setting() {
    let snapshot = snapshot();
    let open = PolicySettings {
        hide_block_roots: false,
        ..PolicySettings::SPEC
    };
    let hiding = PolicySettings {
        hide_base_fee: true,
        ..PolicySettings::SPEC
    };
    let show = |settings, fee| {
        value(&view::block(
            &viewer(&snapshot, "holder", settings),
            BlockTransactions::Full,
            fee,
            sealed(&block(&[])),
        ))
    };
    let shown = show(SPEC, Some(U256::from(3)));
    assert_eq!(
        (&shown["stateRoot"], &shown["baseFeePerGas"]),
        (&json!(B256::ZERO), &json!("0x9"))
    );
    assert_eq!(shown["gasUsed"], json!("0x0"));
    assert_eq!(shown.as_object().unwrap().len(), 10, "only what the node sent: {shown}");
    let shown = show(&open, None);
    assert_eq!(
        (&shown["stateRoot"], &shown["gasUsed"]),
        (&json!(hash_of("state")), &json!("0x0"))
    );
    assert_eq!(show(&hiding, Some(U256::from(3)))["baseFeePerGas"], json!("0x3"));
    assert_eq!(show(&hiding, None)["baseFeePerGas"], Value::Null);
}

/// Section 5.2: a malformed response becomes `null`, `[]` or `"0x0"`; the body of the node is never shown.
#[test]
fn malformed_responses_are_never_shown() {
    let snapshot = snapshot();
    let payer = viewer(&snapshot, "payer", SPEC);
    let broken = |whole: &Value, name: &str, bad: Value| {
        let mut broken = whole.clone();
        broken[name] = bad;
        broken
    };
    let missing = |whole: &Value, name: &str| {
        let mut missing = whole.clone();
        missing.as_object_mut().unwrap().remove(name);
        missing
    };
    let assert_malformed = |shown: &Disclosed, text: &str, case: &Value| {
        assert_eq!((shown.as_str(), shown.is_malformed()), (text, true), "{case}");
    };
    let mut transactions = vec![json!([]), json!("0x1"), json!(7), json!({}), json!(false)];
    transactions.extend(["hash", "from", "to"].map(|name| missing(&payment(), name)));
    for (name, bad) in [
        ("from", json!("0x1")),
        ("from", json!(null)),
        ("to", json!("")),
        ("value", json!(5)),
        ("input", json!("0xabc")),
        ("input", json!(null)),
        ("accessList", json!([{ "address": address_of("x") }])),
        (
            "accessList",
            json!([{ "address": address_of("x"), "storageKeys": [], "note": "y" }]),
        ),
        ("authorizationList", json!([{ "address": "0x" }])),
        ("blobVersionedHashes", json!(["0x1"])),
        ("nonce", json!("7")),
        ("gas", json!({ "a": address_of("hidden") })),
    ] {
        transactions.push(broken(&payment(), name, bad));
    }
    for bad in &transactions {
        assert_malformed(&view::transaction(&payer, sealed(bad)), "null", bad);
        let whole = block(std::slice::from_ref(bad));
        assert_malformed(
            &view::block(&payer, BlockTransactions::Full, None, sealed(&whole)),
            "null",
            bad,
        );
        assert_malformed(
            &view::block(&payer, BlockTransactions::Hashes, None, sealed(&whole)),
            "null",
            bad,
        );
        assert_malformed(&view::block_transaction_count(&payer, sealed(&whole)), "\"0x0\"", bad);
    }
    let mut receipts = vec![json!([]), json!("0x1"), json!({})];
    receipts.extend(["transactionHash", "from", "to", "logs", "gasUsed"].map(|name| missing(&receipt(), name)));
    for (name, bad) in [
        ("logs", json!(null)),
        ("logs", json!([{}])),
        ("status", json!(1)),
        ("from", json!(null)),
    ] {
        receipts.push(broken(&receipt(), name, bad));
    }
    for bad in &receipts {
        assert_malformed(&view::receipt(&payer, sealed(bad)), "null", bad);
        assert_malformed(
            &view::block_receipts(&payer, sealed(&json!([receipt(), bad]))),
            "[]",
            bad,
        );
    }
    let mut blocks = vec![json!([]), json!({}), missing(&block(&[]), "transactions")];
    for (name, bad) in [
        ("transactions", json!([hash_of("t")])),
        ("miner", json!("x")),
        ("timestamp", json!(1)),
    ] {
        blocks.push(broken(&block(&[]), name, bad));
    }
    for bad in &blocks {
        assert_malformed(
            &view::block(&payer, BlockTransactions::Full, None, sealed(bad)),
            "null",
            bad,
        );
    }
    for text in ["", "{", "nul", "{\"hash\":", "\u{0}", "[[[["] {
        assert_malformed(&view::transaction(&payer, sealed_text(text)), "null", &json!(text));
        assert_malformed(&view::block_receipts(&payer, sealed_text(text)), "[]", &json!(text));
        assert_malformed(
            &view::block_transaction_count(&payer, sealed_text(text)),
            "\"0x0\"",
            &json!(text),
        );
    }
    let latin = || Sealed::new(RawJson::new(bytes::Bytes::from_static(&[0xff])));
    assert_malformed(&view::transaction(&payer, latin()), "null", &json!("latin"));
    assert_malformed(
        &view::balance(&payer, address_of("payer"), 100, latin()),
        "\"0x0\"",
        &json!("latin"),
    );
}

/// A missing object is `null`, and not malformed.
#[test]
fn absence_is_null() {
    let snapshot = snapshot();
    let payer = viewer(&snapshot, "payer", SPEC);
    let absent = || sealed(&Value::Null);
    for shown in [
        view::transaction(&payer, absent()),
        view::receipt(&payer, absent()),
        view::block(&payer, BlockTransactions::Full, None, absent()),
        view::block_transaction_count(&payer, absent()),
        view::block_receipts(&payer, absent()),
    ] {
        assert_eq!(shown, Disclosed::NULL);
    }
    assert_eq!(
        view::block_transaction_count(&payer, sealed(&block(&[]))),
        Disclosed::ZERO
    );
}

/// K8, HD6: balance and nonce by level. A value that is not a quantity is malformed.
#[test]
fn k8_quantities_are_checked() {
    let snapshot = snapshot();
    let payer = viewer(&snapshot, "payer", SPEC);
    let own = address_of("payer");
    assert_eq!(
        view::balance(&payer, own, 100, sealed(&json!("0xff"))).as_str(),
        "\"0xff\""
    );
    assert_eq!(view::nonce(&payer, own, 100, sealed(&json!("0x7"))).as_str(), "\"0x7\"");
    for bad in [
        json!("ff"),
        json!(255),
        json!("0x"),
        json!(null),
        json!({}),
        json!(["0x1"]),
        json!("0x1\" "),
    ] {
        let shown = view::balance(&payer, own, 100, sealed(&bad));
        assert_eq!((shown.as_str(), shown.is_malformed()), ("\"0x0\"", true), "{bad}");
    }
    for other in ["token", "stranger"] {
        assert_eq!(
            view::balance(&payer, address_of(other), 100, sealed(&json!("0xff"))),
            Disclosed::ZERO
        );
        assert_eq!(
            view::nonce(&payer, address_of(other), 100, sealed(&json!("0x7"))),
            Disclosed::ZERO
        );
    }
    let off = PolicySettings {
        address_query: HiddenBalanceMode::Off,
        ..PolicySettings::SPEC
    };
    let shown = view::balance(
        &viewer(&snapshot, "payer", &off),
        address_of("token"),
        100,
        sealed(&json!("0xff")),
    );
    assert_eq!(shown.as_str(), "\"0xff\"");
}

/// Decision 37, T2: missing code is `0x` for everybody. Code is shown to viewers with access and to the owner of a
/// delegated wallet.
#[test]
fn decision_37_code_by_access() {
    let snapshot = snapshot();
    let code = |user, account: &str, code: &str| {
        view::code(
            &viewer(&snapshot, user, SPEC),
            address_of(account),
            100,
            sealed(&json!(code)),
        )
        .map(Disclosed::into_string)
    };
    for user in ["payer", "holder", "nobody"] {
        assert_eq!(code(user, "stranger", "0x"), Some("\"0x\"".to_owned()));
        assert_eq!(code(user, "stranger", "0x6001"), None);
    }
    assert_eq!(code("holder", "token", "0x6001"), Some("\"0x6001\"".to_owned()));
    assert_eq!(code("payer", "token", "0x6001"), None);
    assert_eq!(code("payer", "payer", "0xef0100"), Some("\"0xef0100\"".to_owned()));
    assert_eq!(code("holder", "token", "6001"), None);
    assert_eq!(code("holder", "token", "0x600"), None);
}

/// RT18, HD14: a reservation gives access only while the address has no code. Code that somebody else deployed there
/// is not shown.
#[test]
fn rt18_code_under_a_reservation_is_not_shown() {
    let snapshot = world()
        .org("bank")
        .group("makers")
        .claim(Claim::Deploy)
        .user("maker")
        .member("makers")
        .reservation("reserved", FUTURE)
        .snapshot();
    let maker = viewer(&snapshot, "maker", SPEC);
    let code =
        |code: &str| view::code(&maker, address_of("reserved"), 100, sealed(&json!(code))).map(Disclosed::into_string);
    assert_eq!(code("0x"), Some("\"0x\"".to_owned()));
    assert_eq!(code("0x6001"), None);
}

/// RT31, HD40: a delegated wallet without level Full reads as a plain wallet.
#[test]
fn rt31_a_delegated_wallet_reads_as_a_plain_one() {
    let snapshot = snapshot();
    let delegated = format!("0xef0100{:x}", address_of("delegate"));
    let code = |user, account: &str, code: &str| {
        view::code(
            &viewer(&snapshot, user, SPEC),
            address_of(account),
            100,
            sealed(&json!(code)),
        )
        .map(Disclosed::into_string)
    };
    for user in ["payer", "holder", "nobody"] {
        assert_eq!(
            code(user, "stranger", &delegated),
            code(user, "stranger", "0x"),
            "{user}"
        );
    }
    assert_eq!(code("payer", "payer", &delegated), Some(format!("\"{delegated}\"")));
    assert_eq!(code("nobody", "stranger", "0xef0100"), None, "not a delegation");
}

/// Storage is one word. HD11: with K9, a proof does not contain the branch of the account.
#[test]
fn hd11_storage_and_proofs() {
    let slot = json!(number(5));
    let empty = world().snapshot();
    let holder = viewer(&empty, "nobody", SPEC);
    assert_eq!(
        value(&view::storage(
            &holder,
            address_of("token"),
            B256::ZERO,
            100,
            sealed(&slot)
        )),
        slot
    );
    assert!(
        view::storage(&holder, address_of("token"), B256::ZERO, 100, sealed(&json!("0x5"))).is_malformed()
            && view::storage(&holder, address_of("token"), B256::ZERO, 100, sealed(&json!(null))).is_malformed()
    );

    let snapshot = snapshot();
    let proof = json!({
        "address": address_of("token"), "accountProof": ["0xabcd"], "balance": "0x5", "codeHash": hash_of("code"),
        "nonce": "0x1", "storageHash": hash_of("storage"), "extra": 1,
        "storageProof": [{ "key": "0x0", "value": "0x9", "proof": ["0x1234"] }],
    });
    let open = PolicySettings {
        hide_block_roots: false,
        ..PolicySettings::SPEC
    };
    for (settings, branch) in [(SPEC, json!([])), (&open, json!(["0xabcd"]))] {
        let shown = value(&view::proof(
            &viewer(&snapshot, "holder", settings),
            address_of("token"),
            100,
            sealed(&proof),
        ));
        assert_eq!(shown["accountProof"], branch);
        assert_eq!(shown["balance"], proof["balance"]);
        // The proof nodes of a slot contain hashes of other slots, so they are hidden.
        let hidden = settings.hide_block_roots;
        let nodes = if hidden { json!([]) } else { json!(["0x1234"]) };
        assert_eq!(
            shown["storageProof"],
            json!([{ "key": "0x0", "value": "0x9", "proof": nodes }])
        );
        assert_eq!(shown["storageHash"] == json!(B256::ZERO), hidden);
        assert_eq!(shown.get("extra"), None);
    }
    let holder = viewer(&snapshot, "holder", SPEC);
    assert!(
        view::proof(&holder, address_of("other"), 100, sealed(&proof)).is_malformed(),
        "the proof is for another address"
    );
    let mut malformed = proof.clone();
    malformed["storageProof"] = json!([{ "key": "0x0", "value": "0x9", "proof": [{}] }]);
    assert!(view::proof(&holder, address_of("token"), 100, sealed(&malformed)).is_malformed());
}
