//! HD28: a transaction with a violation is withheld from everybody by every method, and so are its changes.

use super::support::{filter, get_logs, log, number, restricted_viewer, sealed, transaction, transfer, viewer, word};
use gw_evm::{
    trace::{Account, Frame, FrameKind, Outcome, Trace},
    wire::{AccountOverride, StateOverrides},
};
use gw_policy::{
    Disclosed, PolicySettings, Sealed, Viewer,
    snapshot::AccountChange,
    testing::{World, address_of, hash_of, world},
    view::{self, BlockTransactions, LogsAnswer},
};
use gw_types::{Address, B256, Bytes, U256};
use serde_json::{Value, json};

const SPEC: &PolicySettings = &PolicySettings::SPEC;

/// The thief of the bank calls the contract `latch`, which steals from the rival's token. Each basis for transaction
/// access applies to one user.
fn scenario() -> World {
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
    scenario().convicted(hash_of("tx"), "thief")
}

fn logs() -> Vec<Value> {
    let log_of = |emitter: &str, index: u64| {
        let mut row = log(
            address_of(emitter),
            "tx",
            &[transfer(), word("thief"), word("receiver")],
            number(7).as_slice(),
        );
        row["logIndex"] = json!(format!("{index:#x}"));
        row
    };
    vec![log_of("latch", 0), log_of("token", 1), log_of("nobody", 2)]
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

/// The answers of every method that can show a transaction, for a transaction to `to`.
fn all_answers(viewer: &Viewer<'_>, to: &str) -> Vec<(&'static str, String)> {
    let sent = transaction("tx", address_of("thief"), Some(address_of(to)));
    let text = |shown: gw_policy::Disclosed| shown.as_str().to_owned();
    let tree = view::mined_call_tree(viewer, &sealed(&sent), trace(to)).map(text);
    let all_emitters = filter(&["latch", "token", "nobody"], vec![]);
    let all_logs = match get_logs(viewer, &all_emitters, &logs(), std::slice::from_ref(&sent)) {
        LogsAnswer::Rows(rows, _) => text(rows),
        LogsAnswer::NotPermitted => "not permitted".to_owned(),
    };
    let logs_by_emitter = ["latch", "token", "nobody"].map(|emitter| {
        match get_logs(
            viewer,
            &filter(&[emitter], vec![]),
            &logs(),
            std::slice::from_ref(&sent),
        ) {
            LogsAnswer::Rows(rows, _) => text(rows),
            LogsAnswer::NotPermitted => "not permitted".to_owned(),
        }
    });
    let transactions = std::slice::from_ref(&sent);
    vec![
        ("transaction", text(view::transaction(viewer, sealed(&sent)))),
        ("receipt", text(view::receipt(viewer, sealed(&receipt(to))))),
        (
            "block receipts",
            text(view::block_receipts(viewer, sealed(&json!([receipt(to)])))),
        ),
        (
            "hashes",
            text(view::block(
                viewer,
                BlockTransactions::Hashes,
                None,
                sealed(&block(transactions)),
            )),
        ),
        (
            "block",
            text(view::block(
                viewer,
                BlockTransactions::Full,
                None,
                sealed(&block(transactions)),
            )),
        ),
        (
            "count",
            text(view::block_transaction_count(viewer, sealed(&block(transactions)))),
        ),
        ("traceable", format!("{:?}", view::traceable(viewer, &sealed(&sent)))),
        ("tree", format!("{tree:?}")),
        ("logs", all_logs),
        ("logs of each", logs_by_emitter.join(" ")),
        (
            "needed",
            format!(
                "{:?}",
                view::parties_needed(viewer, &all_emitters, &sealed(&Value::Array(logs())))
            ),
        ),
    ]
}

/// The answers of these methods if the transaction does not exist.
fn empty_answers(viewer: &Viewer<'_>) -> Vec<(&'static str, String)> {
    let text = |shown: gw_policy::Disclosed| shown.as_str().to_owned();
    let logs_of = |emitters: &[&str]| match get_logs(viewer, &filter(emitters, vec![]), &[], &[]) {
        LogsAnswer::Rows(rows, _) => text(rows),
        LogsAnswer::NotPermitted => "not permitted".to_owned(),
    };
    vec![
        ("transaction", "null".to_owned()),
        ("receipt", "null".to_owned()),
        ("block receipts", "[]".to_owned()),
        (
            "hashes",
            text(view::block(
                viewer,
                BlockTransactions::Hashes,
                None,
                sealed(&block(&[])),
            )),
        ),
        (
            "block",
            text(view::block(viewer, BlockTransactions::Full, None, sealed(&block(&[])))),
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

/// RT2a, RT2c, RT21: a transaction with a violation does not exist for its sender and receiver, for recipients of a
/// share, colleagues, administrators of its target and strangers, by every method. Each user has a basis that would
/// otherwise show part of it.
#[test]
fn rt21_no_method_shows_a_convicted_transaction() {
    let (before, after) = (scenario().snapshot(), convicted().snapshot());
    for (user, to) in [
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
        let shown = all_answers(&viewer(&before, user, SPEC), to);
        assert_ne!(shown, empty_answers(&viewer(&before, user, SPEC)), "{user} has a basis");
        assert_eq!(
            all_answers(&viewer(&after, user, SPEC), to),
            empty_answers(&viewer(&after, user, SPEC)),
            "{user}"
        );
    }
    for to in ["latch", "token", "receiver"] {
        let nobody = viewer(&after, "nobody", SPEC);
        assert_eq!(all_answers(&nobody, to), empty_answers(&nobody), "{to}");
    }
}

/// Other transactions are shown.
#[test]
fn rt21_other_transactions_are_shown() {
    let snapshot = scenario().convicted(hash_of("other"), "thief").snapshot();
    assert_ne!(
        all_answers(&viewer(&snapshot, "thief", SPEC), "latch"),
        empty_answers(&viewer(&snapshot, "thief", SPEC))
    );
}

/// HD28: every method numbers the logs after it in its block as if it had emitted none. Logs before it and in other
/// blocks keep their index.
#[test]
fn hd28_the_events_of_a_convicted_transaction_do_not_count() {
    let position = (hash_of("block"), 2);
    let world = || scenario().convicted_at(hash_of("other"), "thief", position, 5);
    // Two violations for one transaction do not count its logs twice.
    for (world, expected) in [
        (scenario(), "0x9"),
        (world(), "0x4"),
        (world().convicted_at(hash_of("other"), "colleague", position, 5), "0x4"),
    ] {
        let snapshot = world.snapshot();
        let victim = viewer(&snapshot, "victim", SPEC);
        let thief = viewer(&snapshot, "thief", SPEC);
        let log_index = |transaction_index: &str, block: B256| {
            let mut row = logs().remove(1);
            row["transactionIndex"] = json!(transaction_index);
            row["blockHash"] = json!(block);
            row["logIndex"] = json!("0x9");
            let sent = transaction("tx", address_of("thief"), Some(address_of("latch")));
            let LogsAnswer::Rows(rows, 1) = get_logs(
                &victim,
                &filter(&["token"], vec![]),
                &[row.clone()],
                std::slice::from_ref(&sent),
            ) else {
                panic!("expected one row")
            };
            let rows: Value = serde_json::from_str(rows.as_str()).unwrap();
            let mut receipt = receipt("latch");
            receipt["logs"] = json!([row]);
            let full_receipt: Value = serde_json::from_str(view::receipt(&thief, sealed(&receipt)).as_str()).unwrap();
            assert_eq!(
                full_receipt["logs"][0]["logIndex"], rows[0]["logIndex"],
                "masked and whole"
            );
            rows[0]["logIndex"].clone()
        };
        assert_eq!(log_index("0x3", hash_of("block")), json!(expected));
        assert_eq!(log_index("0x1", hash_of("block")), json!("0x9"), "before it");
        assert_eq!(log_index("0x3", hash_of("uncle")), json!("0x9"), "another block");
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

/// HD28, HD40: the changed values read as before the transaction, for the owner, members and strangers. Later changes
/// by others remain.
#[test]
fn hd28_values_that_a_convicted_transaction_changed_read_as_before() {
    let creation = AccountChange {
        created: true,
        code: Some(Bytes::new()),
        nonce: Some((0, 1)),
        ..AccountChange::default()
    };
    let (receiver, latch, child) = (address_of("receiver"), address_of("latch"), address_of("child"));
    let world = convicted()
        .withheld(receiver, 100, change(Some((10, 15)), None))
        .withheld(latch, 100, change(None, Some((1, 2))))
        // A later tainted transaction.
        .withheld(latch, 101, change(None, Some((2, 9))))
        .withheld(child, 100, creation);
    let snapshot = world.snapshot();
    let own = viewer(&snapshot, "receiver", SPEC);
    let balance = |block, stored: &str| view::balance(&own, receiver, block, sealed(&json!(stored))).into_string();
    assert_eq!(
        (balance(99, "0xa"), balance(100, "0xf")),
        ("\"0xa\"".to_owned(), "\"0xa\"".to_owned())
    );
    assert_eq!(balance(105, "0x13"), "\"0xe\"", "plus four from a later payment");
    assert_eq!(balance(105, "0x2"), "\"0x0\"", "never negative");
    let thief = viewer(&snapshot, "colleague", SPEC);
    let word = |value: u8| json!(B256::with_last_byte(value));
    let slot = |block, stored| view::storage(&thief, latch, B256::ZERO, block, sealed(&word(stored))).into_string();
    let shown = |value: u8| word(value).to_string();
    assert_eq!(
        (slot(99, 1), slot(100, 2), slot(101, 9)),
        (shown(1), shown(1), shown(1))
    );
    assert_eq!(slot(101, 7), shown(7), "written by a transaction outside the gateway");
    let code = |block| view::code(&thief, child, block, sealed(&json!("0x6001"))).map(Disclosed::into_string);
    assert_eq!((code(99), code(100)), (None, Some("\"0x\"".to_owned())));
    let proof = json!({
        "address": latch, "accountProof": ["0x01"], "balance": "0x0", "codeHash": B256::repeat_byte(3), "nonce": "0x1",
        "storageHash": B256::repeat_byte(4), "storageProof": [{"key": "0x0", "value": "0x9", "proof": ["0x02"]}],
    });
    let text = |block| view::proof(&thief, latch, block, sealed(&proof)).into_string();
    assert!(
        text(101).contains(r#""value":"0x1""#) && !text(101).contains("0x02"),
        "{}",
        text(101)
    );
    // The overrides for executions.
    let stored = [
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
        .overrides(stored.iter().map(|(address, account)| (address, account)));
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
    // Executions use a value that was written outside the gateway.
    let later = [(
        latch,
        Account {
            slots: [(B256::ZERO, B256::with_last_byte(7))].into(),
            ..Account::default()
        },
    )];
    let state = snapshot
        .visible_state(101)
        .overrides(later.iter().map(|(address, account)| (address, account)));
    assert_eq!(state, StateOverrides::new([(latch, AccountOverride::default())].into()));
    assert!(!snapshot.visible_state(99).withholds() && snapshot.visible_state(101).differs(receiver));
    // After the violation is cleared, the values are shown.
    let before = scenario().snapshot();
    assert_eq!(
        view::balance(&viewer(&before, "receiver", SPEC), receiver, 100, sealed(&json!("0xf"))).as_str(),
        "\"0xf\""
    );
}

/// HD7, HD28: impersonation does not show a transaction with a violation.
#[test]
fn rt21_view_as_shows_no_convicted_transaction() {
    let after = convicted().snapshot();
    for (user, impersonator) in [("thief", "boss"), ("colleague", "boss"), ("receiver", "boss")] {
        let impersonated = restricted_viewer(&after, user, impersonator, SPEC);
        assert!(impersonated.withholds(hash_of("tx")));
        for to in ["latch", "receiver"] {
            assert_eq!(
                all_answers(&impersonated, to),
                empty_answers(&impersonated),
                "{user} {to}"
            );
        }
    }
}

/// RT21: balance, nonce and code of a closed own wallet.
#[test]
fn rt21_a_closed_wallet_reads_as_a_hidden_one() {
    let after = scenario().quarantined("receiver").snapshot();
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
    // RT31: the same as for a foreign delegated wallet.
    assert_eq!(view::code(&own, receiver, 100, delegated), Some(Disclosed::NO_BYTES));
    assert_eq!(own.own_addresses(), [receiver], "the owner does not change");
    let zero = scenario().closed_to_side(Address::ZERO, "thief", &["bank"]).snapshot();
    let text = |user: &str| {
        let viewer = viewer(&zero, user, SPEC);
        view::balance(&viewer, Address::ZERO, 100, sealed(&json!("0x9")))
            .as_str()
            .to_owned()
    };
    assert_eq!(
        (text("colleague"), text("victim")),
        ("\"0x0\"".to_owned(), "\"0x9\"".to_owned())
    );
}

/// HD28: a payment by one violating transaction and its withdrawal by the next leave no visible difference.
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
        // Later payments by others are kept.
        assert_eq!(snapshot.shown_balance(purse, 9, U256::from(3)), U256::from(4), "{loot}");
    }
}

/// HD40: an execution that touches withheld state gets all related overrides at once: every withheld slot of the
/// touched accounts that was not written since, and every contract that the same transactions created.
#[test]
fn hd40_overrides_do_not_reveal_how_much_is_withheld() {
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
    // Changed by the same transaction.
    world = world
        .withheld_with_last(child, created.clone())
        .withheld(address_of("elsewhere"), 8, created);
    let state = world.snapshot().visible_state(9);
    let touched_account = Account {
        slots: [(word(1), word(7)), (word(2), word(9))].into(),
        ..Account::default()
    };
    let slots = |overrides: &StateOverrides| format!("{overrides:?}").matches("0x").count();
    let (touched, whole) = (
        state.overrides([(&books, &touched_account)]),
        state.whole_overrides([(&books, &touched_account)]),
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
