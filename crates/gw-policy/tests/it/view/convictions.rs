//! HD28: a convicted transaction is withheld whole, whatever the method, from everybody but members of the organizations it
//! touched.

use super::support::{beside, filter, get_logs, log, number, rows, sealed, transaction, transfer, viewer, word};
use gw_evm::trace::{Account, Frame, FrameKind, Outcome, Trace};
use gw_policy::{
    Disclosed, Knobs, Sealed, Snapshot, Viewer,
    testing::{World, address_of, hash_of, world},
    view::{self, BlockTransactions, LogsAnswer},
};
use gw_types::{Address, Bytes, U256};
use serde_json::{Value, json};

const SPEC: &Knobs = &Knobs::SPEC;

/// The thief of the bank calls its latch, which robs the rival's token. Every ground that shows a transaction is somebody's.
fn scene() -> World {
    world()
        .org("bank")
        .group("traders")
        .group("admins")
        .org_admin()
        .contract("latch")
        .grant("traders")
        .user("thief")
        .member("traders")
        .link("thief")
        .share("tx", &["confidant", "insider"])
        .user("colleague")
        .member("traders")
        .user("boss")
        .member("admins")
        .user("confidant")
        .user("receiver")
        .link("receiver")
        .org("rival")
        .group("staff")
        .group("heads")
        .org_admin()
        .contract("token")
        .grant("staff")
        .user("victim")
        .member("staff")
        .user("insider")
        .user("head")
        .member("heads")
}

fn convicted() -> World {
    scene().convicted(hash_of("tx"), "thief", &["rival"])
}

fn logs() -> Vec<Value> {
    let speaks = |emitter: &str, index: u64| {
        let mut row =
            log(address_of(emitter), "tx", &[transfer(), word("thief"), word("receiver")], number(7).as_slice());
        row["logIndex"] = json!(format!("{index:#x}"));
        row
    };
    vec![speaks("latch", 0), speaks("token", 1), speaks("nobody", 2)]
}

fn receipt(to: &str) -> Value {
    json!({
        "blockHash": hash_of("block"), "blockNumber": "0x64", "contractAddress": null, "cumulativeGasUsed": "0xffff",
        "effectiveGasPrice": "0x7", "from": address_of("thief"), "gasUsed": "0x5208", "logs": logs(),
        "logsBloom": format!("0x{}", "a5".repeat(256)), "status": "0x1", "to": address_of(to),
        "transactionHash": hash_of("tx"), "transactionIndex": "0x0", "type": "0x2",
    })
}

fn block(transactions: &[Value]) -> Value {
    json!({
        "number": "0x64", "hash": hash_of("block"), "parentHash": hash_of("parent"), "miner": address_of("miner"),
        "gasLimit": "0x1", "timestamp": "0x1", "transactions": transactions, "baseFeePerGas": "0x9",
        "stateRoot": hash_of("state"), "gasUsed": "0x5208",
    })
}

fn trace(to: &str) -> Sealed<Trace> {
    let frame = Frame {
        kind: FrameKind::Call,
        from: address_of("thief"),
        to: Some(address_of(to)),
        input: Bytes::new(),
        output: Bytes::from_static(b"loot"),
        value: U256::ZERO,
        gas: Some(100),
        gas_used: Some(50),
        error: None,
        depth: 0,
        parent: None,
        failed: false,
        undone: false,
        logs: Vec::new(),
    };
    let touched = [(address_of(to), Account { code: Bytes::from_static(&[0]), ..Account::default() })].into();
    Sealed::new(Trace { frames: vec![frame], touched, changes: None, top: Outcome::default() })
}

/// What every method that can show a transaction says of it, sent to `to`.
fn everything(viewer: &Viewer<'_>, to: &str) -> Vec<(&'static str, String)> {
    let sent = transaction("tx", address_of("thief"), Some(address_of(to)));
    let told = |shown: gw_policy::Disclosed| shown.as_str().to_owned();
    let tree = view::mined_call_tree(viewer, &sealed(&sent), trace(to)).map(told);
    let asked = filter(&["latch", "token", "nobody"], vec![]);
    let listed = match get_logs(viewer, &asked, &logs(), std::slice::from_ref(&sent)) {
        LogsAnswer::Rows(rows, _) => told(rows),
        LogsAnswer::NotPermitted => "not permitted".to_owned(),
    };
    let one_by_one = ["latch", "token", "nobody"].map(|emitter| {
        match get_logs(viewer, &filter(&[emitter], vec![]), &logs(), std::slice::from_ref(&sent)) {
            LogsAnswer::Rows(rows, _) => told(rows),
            LogsAnswer::NotPermitted => "not permitted".to_owned(),
        }
    });
    let one = std::slice::from_ref(&sent);
    vec![
        ("transaction", told(view::transaction(viewer, sealed(&sent)))),
        ("receipt", told(view::receipt(viewer, sealed(&receipt(to))))),
        ("block receipts", told(view::block_receipts(viewer, sealed(&json!([receipt(to)]))))),
        ("hashes", told(view::block(viewer, BlockTransactions::Hashes, None, sealed(&block(one))))),
        ("block", told(view::block(viewer, BlockTransactions::Full, None, sealed(&block(one))))),
        ("count", told(view::block_transaction_count(viewer, sealed(&block(one))))),
        ("traceable", format!("{:?}", view::traceable(viewer, &sealed(&sent)))),
        ("tree", format!("{tree:?}")),
        ("logs", listed),
        ("logs of each", one_by_one.join(" ")),
        ("needed", format!("{:?}", view::parties_needed(viewer, &asked, &sealed(&Value::Array(logs()))))),
    ]
}

/// What the same methods say where the transaction is not there.
fn nothing(viewer: &Viewer<'_>) -> Vec<(&'static str, String)> {
    let told = |shown: gw_policy::Disclosed| shown.as_str().to_owned();
    let logs_of = |emitters: &[&str]| match get_logs(viewer, &filter(emitters, vec![]), &[], &[]) {
        LogsAnswer::Rows(rows, _) => told(rows),
        LogsAnswer::NotPermitted => "not permitted".to_owned(),
    };
    vec![
        ("transaction", "null".to_owned()),
        ("receipt", "null".to_owned()),
        ("block receipts", "[]".to_owned()),
        ("hashes", told(view::block(viewer, BlockTransactions::Hashes, None, sealed(&block(&[]))))),
        ("block", told(view::block(viewer, BlockTransactions::Full, None, sealed(&block(&[]))))),
        ("count", "\"0x0\"".to_owned()),
        ("traceable", "None".to_owned()),
        ("tree", "None".to_owned()),
        ("logs", logs_of(&["latch", "token", "nobody"])),
        ("logs of each", ["latch", "token", "nobody"].map(|emitter| logs_of(&[emitter])).join(" ")),
        ("needed", "[]".to_owned()),
    ]
}

/// RT2a, RT2c, RT21: to its sender, its receiver, those it was shared with, colleagues, the administrator of its target and
/// strangers it is not there, by every method; each of them has a ground that shows some of it otherwise.
#[test]
fn rt21_a_convicted_transaction_is_not_there_by_any_method() {
    let (before, after) = (scene().snapshot(), convicted().snapshot());
    for (who, to) in [
        ("thief", "latch"),
        ("colleague", "latch"),
        ("boss", "latch"),
        ("confidant", "latch"),
        ("insider", "latch"),
        ("receiver", "receiver"),
    ] {
        let shown = everything(&viewer(&before, who, SPEC), to);
        assert_ne!(shown, nothing(&viewer(&before, who, SPEC)), "{who} has a ground");
        assert_eq!(everything(&viewer(&after, who, SPEC), to), nothing(&viewer(&after, who, SPEC)), "{who}");
    }
    for to in ["latch", "token", "receiver"] {
        let nobody = viewer(&after, "nobody", SPEC);
        assert_eq!(everything(&nobody, to), nothing(&nobody), "{to}");
    }
}

fn sees_token_log(snapshot: &Snapshot, who: &str) -> usize {
    rows(&get_logs(&viewer(snapshot, who, SPEC), &filter(&["token"], vec![]), &logs(), &[])).len()
}

/// HD28: members of the organization that was touched see what they are granted, and nothing by the sender's word.
#[test]
fn rt21_who_was_touched_sees_what_they_are_granted() {
    let after = convicted().snapshot();
    assert_eq!((sees_token_log(&after, "victim"), sees_token_log(&after, "head")), (1, 1));
    let head = viewer(&after, "head", SPEC);
    assert!(!head.withholds(hash_of("tx")) && viewer(&after, "thief", SPEC).withholds(hash_of("tx")));
    let sent = transaction("tx", address_of("thief"), Some(address_of("token")));
    assert_ne!(view::transaction(&head, sealed(&sent)).as_str(), "null");
    // Whoever is in both is shown nothing of what they sent.
    let both = convicted().user("thief").member("rival/staff").snapshot();
    assert_eq!(everything(&viewer(&both, "thief", SPEC), "token"), nothing(&viewer(&both, "thief", SPEC)));
    // Recipients and receivers there have no ground but their grants.
    let confided = convicted().user("insider").member("rival/staff").snapshot();
    let insider = viewer(&confided, "insider", SPEC);
    assert_eq!(view::transaction(&insider, sealed(&transaction("tx", address_of("thief"), None))).as_str(), "null");
    let nobodys = get_logs(&insider, &filter(&["nobody"], vec![]), &logs(), &[]);
    assert_eq!(nobodys, LogsAnswer::NotPermitted);
    assert_eq!(sees_token_log(&confided, "insider"), 1);
    let owning = convicted().user("victim").link("receiver-of-loot").snapshot();
    let paid = transaction("tx", address_of("thief"), Some(address_of("receiver-of-loot")));
    assert_eq!(view::transaction(&viewer(&owning, "victim", SPEC), sealed(&paid)).as_str(), "null");
    // Nor who left it, or whom it does not touch.
    assert_eq!(sees_token_log(&scene().convicted(hash_of("tx"), "thief", &[]).snapshot(), "victim"), 0);
    // Two who sent the same: each is withheld from for itself.
    let two = convicted().convicted(hash_of("tx"), "accomplice", &[]).snapshot();
    assert_eq!(sees_token_log(&two, "victim"), 0);
    // Other transactions go on.
    let other = scene().convicted(hash_of("other"), "thief", &[]).snapshot();
    assert_ne!(everything(&viewer(&other, "thief", SPEC), "latch"), nothing(&viewer(&other, "thief", SPEC)));
}

/// HD7, HD28: over somebody's shoulder nothing of it shows either.
#[test]
fn rt21_view_as_shows_no_convicted_transaction() {
    let after = convicted().snapshot();
    for (who, operator) in [("thief", "boss"), ("colleague", "boss"), ("receiver", "boss")] {
        let both = beside(&after, who, operator, SPEC);
        assert!(both.withholds(hash_of("tx")));
        for to in ["latch", "receiver"] {
            assert_eq!(everything(&both, to), nothing(&both), "{who} {to}");
        }
    }
}

/// RT21: balance, nonce, code and proof of a closed own wallet, whatever the node was asked.
#[test]
fn rt21_a_closed_wallet_shows_as_a_hidden_one() {
    let after = scene().quarantined("receiver").snapshot();
    let own = viewer(&after, "receiver", SPEC);
    let receiver = address_of("receiver");
    assert_eq!(view::balance(&own, receiver, sealed(&json!("0xf4240"))).as_str(), "\"0x0\"");
    assert_eq!(view::nonce(&own, receiver, sealed(&json!("0x7"))).as_str(), "\"0x0\"");
    let delegated = sealed(&json!(format!("0xef0100{}", "11".repeat(20))));
    // RT31: as any delegated wallet that is not the viewer's.
    assert_eq!(view::code(&own, receiver, delegated), Some(Disclosed::NO_BYTES));
    assert_eq!(own.own_addresses(), [receiver], "whose it is does not change");
    let zero = scene().closed_to_side(Address::ZERO, "thief", &["bank"]).snapshot();
    let told = |who: &str| {
        let viewer = viewer(&zero, who, SPEC);
        view::balance(&viewer, Address::ZERO, sealed(&json!("0x9"))).as_str().to_owned()
    };
    assert_eq!((told("colleague"), told("victim")), ("\"0x0\"".to_owned(), "\"0x9\"".to_owned()));
}
