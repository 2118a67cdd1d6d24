//! HD28: a convicted transaction is withheld whole, whatever the method, from everybody; and so is what it changed.

use super::support::{beside, filter, get_logs, log, number, sealed, transaction, transfer, viewer, word};
use gw_evm::{
    trace::{Account, Frame, FrameKind, Outcome, Trace},
    wire::{AccountOverride, StateOverrides},
};
use gw_policy::{
    Disclosed, Knobs, Sealed, Viewer,
    snapshot::AccountChange,
    testing::{World, address_of, hash_of, world},
    view::{self, BlockTransactions, LogsAnswer},
};
use gw_types::{Address, B256, Bytes, U256};
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
    scene().convicted(hash_of("tx"), "thief")
}

fn logs() -> Vec<Value> {
    let speaks = |emitter: &str, index: u64| {
        let mut row = log(
            address_of(emitter),
            "tx",
            &[transfer(), word("thief"), word("receiver")],
            number(7).as_slice(),
        );
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
    let touched = [(
        address_of(to),
        Account {
            code: Bytes::from_static(&[0]),
            ..Account::default()
        },
    )]
    .into();
    Sealed::new(Trace {
        frames: vec![frame],
        touched,
        changes: None,
        top: Outcome::default(),
    })
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
        match get_logs(
            viewer,
            &filter(&[emitter], vec![]),
            &logs(),
            std::slice::from_ref(&sent),
        ) {
            LogsAnswer::Rows(rows, _) => told(rows),
            LogsAnswer::NotPermitted => "not permitted".to_owned(),
        }
    });
    let one = std::slice::from_ref(&sent);
    vec![
        ("transaction", told(view::transaction(viewer, sealed(&sent)))),
        ("receipt", told(view::receipt(viewer, sealed(&receipt(to))))),
        (
            "block receipts",
            told(view::block_receipts(viewer, sealed(&json!([receipt(to)])))),
        ),
        (
            "hashes",
            told(view::block(
                viewer,
                BlockTransactions::Hashes,
                None,
                sealed(&block(one)),
            )),
        ),
        (
            "block",
            told(view::block(viewer, BlockTransactions::Full, None, sealed(&block(one)))),
        ),
        (
            "count",
            told(view::block_transaction_count(viewer, sealed(&block(one)))),
        ),
        ("traceable", format!("{:?}", view::traceable(viewer, &sealed(&sent)))),
        ("tree", format!("{tree:?}")),
        ("logs", listed),
        ("logs of each", one_by_one.join(" ")),
        (
            "needed",
            format!(
                "{:?}",
                view::parties_needed(viewer, &asked, &sealed(&Value::Array(logs())))
            ),
        ),
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
        (
            "hashes",
            told(view::block(
                viewer,
                BlockTransactions::Hashes,
                None,
                sealed(&block(&[])),
            )),
        ),
        (
            "block",
            told(view::block(viewer, BlockTransactions::Full, None, sealed(&block(&[])))),
        ),
        ("count", "\"0x0\"".to_owned()),
        ("traceable", "None".to_owned()),
        ("tree", "None".to_owned()),
        ("logs", logs_of(&["latch", "token", "nobody"])),
        (
            "logs of each",
            ["latch", "token", "nobody"]
                .map(|emitter| logs_of(&[emitter]))
                .join(" "),
        ),
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
        // Members of the organization it touched may be accomplices.
        ("victim", "latch"),
        ("head", "token"),
    ] {
        let shown = everything(&viewer(&before, who, SPEC), to);
        assert_ne!(shown, nothing(&viewer(&before, who, SPEC)), "{who} has a ground");
        assert_eq!(
            everything(&viewer(&after, who, SPEC), to),
            nothing(&viewer(&after, who, SPEC)),
            "{who}"
        );
    }
    for to in ["latch", "token", "receiver"] {
        let nobody = viewer(&after, "nobody", SPEC);
        assert_eq!(everything(&nobody, to), nothing(&nobody), "{to}");
    }
}

/// Other transactions go on.
#[test]
fn rt21_other_transactions_show() {
    let other = scene().convicted(hash_of("other"), "thief").snapshot();
    assert_ne!(
        everything(&viewer(&other, "thief", SPEC), "latch"),
        nothing(&viewer(&other, "thief", SPEC))
    );
}

/// HD28: what stands behind it in its block is numbered as if it had emitted nothing, by every method; what stands before it,
/// or in another block, is not touched.
#[test]
fn hd28_the_events_of_a_convicted_transaction_do_not_count() {
    let at = (hash_of("block"), 2);
    let world = || scene().convicted_at(hash_of("other"), "thief", at, 5);
    // Sent by two people, it emitted them once all the same.
    for (world, expected) in [
        (scene(), "0x9"),
        (world(), "0x4"),
        (world().convicted_at(hash_of("other"), "colleague", at, 5), "0x4"),
    ] {
        let snapshot = world.snapshot();
        let victim = viewer(&snapshot, "victim", SPEC);
        let thief = viewer(&snapshot, "thief", SPEC);
        let told = |place: &str, block: B256| {
            let mut row = logs().remove(1);
            row["transactionIndex"] = json!(place);
            row["blockHash"] = json!(block);
            row["logIndex"] = json!("0x9");
            let sent = transaction("tx", address_of("thief"), Some(address_of("latch")));
            let LogsAnswer::Rows(rows, 1) = get_logs(
                &victim,
                &filter(&["token"], vec![]),
                &[row.clone()],
                std::slice::from_ref(&sent),
            ) else {
                panic!("a row")
            };
            let rows: Value = serde_json::from_str(rows.as_str()).unwrap();
            let mut receipt = receipt("latch");
            receipt["logs"] = json!([row]);
            let whole: Value = serde_json::from_str(view::receipt(&thief, sealed(&receipt)).as_str()).unwrap();
            assert_eq!(whole["logs"][0]["logIndex"], rows[0]["logIndex"], "masked and whole");
            rows[0]["logIndex"].clone()
        };
        assert_eq!(told("0x3", hash_of("block")), json!(expected));
        assert_eq!(told("0x1", hash_of("block")), json!("0x9"), "before it");
        assert_eq!(told("0x3", hash_of("uncle")), json!("0x9"), "another block");
    }
}

fn change(balance: Option<(u64, u64)>, slot: Option<(u8, u8)>) -> AccountChange {
    let slot = slot.map(|(before, after)| (B256::ZERO, (B256::with_last_byte(before), B256::with_last_byte(after))));
    AccountChange {
        balance: balance.map(|(before, after)| (U256::from(before), U256::from(after))),
        slots: slot.into_iter().collect(),
        ..AccountChange::default()
    }
}

/// HD28, HD40: what it changed reads as before it, to the owner, members, strangers; what others did since stays.
#[test]
fn hd28_what_a_convicted_transaction_changed_reads_as_before() {
    let made = AccountChange {
        created: true,
        code: Some(Bytes::new()),
        nonce: Some((0, 1)),
        ..AccountChange::default()
    };
    let (receiver, latch, child) = (address_of("receiver"), address_of("latch"), address_of("child"));
    let world = convicted()
        .withheld(receiver, 100, change(Some((10, 15)), None))
        .withheld(latch, 100, change(None, Some((1, 2))))
        // A later one that rests on it.
        .withheld(latch, 101, change(None, Some((2, 9))))
        .withheld(child, 100, made);
    let snapshot = world.snapshot();
    let own = viewer(&snapshot, "receiver", SPEC);
    let balance = |block, held: &str| view::balance(&own, receiver, block, sealed(&json!(held))).into_string();
    assert_eq!(
        (balance(99, "0xa"), balance(100, "0xf")),
        ("\"0xa\"".to_owned(), "\"0xa\"".to_owned())
    );
    assert_eq!(balance(105, "0x13"), "\"0xe\"", "four more since");
    assert_eq!(balance(105, "0x2"), "\"0x0\"", "never below nothing");
    let thief = viewer(&snapshot, "colleague", SPEC);
    let word = |value: u8| json!(B256::with_last_byte(value));
    let slot = |block, held| view::storage(&thief, latch, B256::ZERO, block, sealed(&word(held))).into_string();
    let shown = |value: u8| word(value).to_string();
    assert_eq!(
        (slot(99, 1), slot(100, 2), slot(101, 9)),
        (shown(1), shown(1), shown(1))
    );
    assert_eq!(slot(101, 7), shown(7), "written past the gateway");
    let code = |block| view::code(&thief, child, block, sealed(&json!("0x6001"))).map(Disclosed::into_string);
    assert_eq!((code(99), code(100)), (None, Some("\"0x\"".to_owned())));
    let proof = json!({
        "address": latch, "accountProof": ["0x01"], "balance": "0x0", "codeHash": B256::repeat_byte(3), "nonce": "0x1",
        "storageHash": B256::repeat_byte(4), "storageProof": [{"key": "0x0", "value": "0x9", "proof": ["0x02"]}],
    });
    let told = |block| view::proof(&thief, latch, block, sealed(&proof)).into_string();
    assert!(
        told(101).contains(r#""value":"0x1""#) && !told(101).contains("0x02"),
        "{}",
        told(101)
    );
    // What executions run on.
    let held = [
        (
            receiver,
            Account {
                balance: U256::from(0x13),
                ..Account::default()
            },
        ),
        (
            latch,
            Account {
                slots: [(B256::ZERO, B256::with_last_byte(9))].into(),
                ..Account::default()
            },
        ),
        (
            child,
            Account {
                nonce: 1,
                ..Account::default()
            },
        ),
        (address_of("friend"), Account::default()),
    ];
    let state = snapshot
        .visible_state(101)
        .overrides(held.iter().map(|(address, held)| (address, held)));
    let expected = StateOverrides::new(
        [
            (
                receiver,
                AccountOverride {
                    balance: Some(U256::from(0xe)),
                    ..AccountOverride::default()
                },
            ),
            (
                latch,
                AccountOverride {
                    slots: [(B256::ZERO, B256::with_last_byte(1))].into(),
                    ..AccountOverride::default()
                },
            ),
            (
                child,
                AccountOverride {
                    code: Some(Bytes::new()),
                    nonce: Some(0),
                    ..AccountOverride::default()
                },
            ),
        ]
        .into(),
    );
    assert_eq!(state, expected);
    // What was written past the gateway is run on as it is shown.
    let later = [(
        latch,
        Account {
            slots: [(B256::ZERO, B256::with_last_byte(7))].into(),
            ..Account::default()
        },
    )];
    let state = snapshot
        .visible_state(101)
        .overrides(later.iter().map(|(address, held)| (address, held)));
    assert_eq!(state, StateOverrides::new([(latch, AccountOverride::default())].into()));
    assert!(!snapshot.visible_state(99).withholds() && snapshot.visible_state(101).differs(receiver));
    // Cleared, all of it shows again.
    let before = scene().snapshot();
    assert_eq!(
        view::balance(&viewer(&before, "receiver", SPEC), receiver, 100, sealed(&json!("0xf"))).as_str(),
        "\"0xf\""
    );
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
    assert_eq!(
        view::balance(&own, receiver, 100, sealed(&json!("0xf4240"))).as_str(),
        "\"0x0\""
    );
    assert_eq!(
        view::nonce(&own, receiver, 100, sealed(&json!("0x7"))).as_str(),
        "\"0x0\""
    );
    let delegated = sealed(&json!(format!("0xef0100{}", "11".repeat(20))));
    // RT31: as any delegated wallet that is not the viewer's.
    assert_eq!(view::code(&own, receiver, 100, delegated), Some(Disclosed::NO_BYTES));
    assert_eq!(own.own_addresses(), [receiver], "whose it is does not change");
    let zero = scene().closed_to_side(Address::ZERO, "thief", &["bank"]).snapshot();
    let told = |who: &str| {
        let viewer = viewer(&zero, who, SPEC);
        view::balance(&viewer, Address::ZERO, 100, sealed(&json!("0x9")))
            .as_str()
            .to_owned()
    };
    assert_eq!(
        (told("colleague"), told("victim")),
        ("\"0x0\"".to_owned(), "\"0x9\"".to_owned())
    );
}

/// HD28: what one convicted transaction paid in and the next one took out leaves nothing behind to read.
#[test]
fn hd28_withheld_balances_are_undone_together() {
    let purse = address_of("purse");
    for loot in [5_u64, 9] {
        let change = |before: u64, after: u64| AccountChange {
            balance: Some((U256::from(before), U256::from(after))),
            nonce: Some((before, after)),
            ..AccountChange::default()
        };
        let world = world()
            .withheld(purse, 7, change(1, 1 + loot))
            .withheld(purse, 8, change(1 + loot, 0));
        let snapshot = world.snapshot();
        assert_eq!(snapshot.shown_balance(purse, 9, U256::ZERO), U256::from(1), "{loot}");
        assert_eq!(snapshot.shown_nonce(purse, 9, U256::ZERO), U256::from(1), "{loot}");
        // Who pays it since is not forgotten.
        assert_eq!(snapshot.shown_balance(purse, 9, U256::from(3)), U256::from(4), "{loot}");
    }
}

/// HD40: a run that meets what is withheld one after the other is told all of it at once: every slot of the accounts it
/// touched, as far as nobody wrote them since, and every contract that the same transactions created.
#[test]
fn hd40_a_run_learns_not_how_much_is_withheld() {
    let (books, child) = (address_of("books"), address_of("child"));
    let word = |value: u64| B256::from(U256::from(value));
    let written = AccountChange {
        slots: (0..100).map(|slot| (word(slot), (B256::ZERO, word(7)))).collect(),
        ..AccountChange::default()
    };
    let created = AccountChange {
        created: true,
        code: Some(Bytes::new()),
        nonce: Some((0, 1)),
        ..AccountChange::default()
    };
    let mut world = world().withheld(books, 7, written);
    // By the same transaction.
    world = world
        .withheld_beside(child, created.clone())
        .withheld(address_of("elsewhere"), 8, created);
    let state = world.snapshot().visible_state(9);
    let met = Account {
        slots: [(word(1), word(7)), (word(2), word(9))].into(),
        ..Account::default()
    };
    let slots = |overrides: &StateOverrides| format!("{overrides:?}").matches("0x").count();
    let (touched, whole) = (
        state.overrides([(&books, &met)]),
        state.whole_overrides([(&books, &met)]),
    );
    assert!(slots(&touched) < 10 && slots(&whole) > 190, "{touched:?} {whole:?}");
    let expected: Vec<_> = (0..100)
        .filter(|slot| *slot != 2)
        .map(|slot| (word(slot), B256::ZERO))
        .collect();
    let books_shown = AccountOverride {
        slots: expected.into_iter().collect(),
        ..AccountOverride::default()
    };
    let child_shown = AccountOverride {
        code: Some(Bytes::new()),
        nonce: Some(0),
        ..AccountOverride::default()
    };
    assert_eq!(
        whole,
        StateOverrides::new([(books, books_shown), (child, child_shown)].into())
    );
}
