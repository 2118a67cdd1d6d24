//! HD41: what a contract did is shown by the rights in the organization that owned it then.

use super::support::{filter, get_logs, rows, sealed, transaction, transfer, transfer_log, viewer};
use gw_evm::{BlockId, Call, Lookup, Method, VisibleTo};
use gw_policy::{
    Knobs, Snapshot,
    access::{Caller, Decision, HeadFacts, NamedOrg, Question, ReadBlock, check_historical_ownership, decide},
    snapshot::Moment,
    testing::{NOW, PAST, World, address_of, org_id, user_id, world},
    view::{self, BlockTransactions, LogsAnswer},
};
use gw_types::{DenyReason, Seconds};
use serde_json::{Value, json};

/// The last block of the old owner; the next two are nobody's.
const LAST: u64 = 0x64;
/// The first block of the new one.
const FIRST: u64 = LAST + 3;

/// A token of one bank until [`LAST`], with people who see it.
fn before() -> World {
    let old = world()
        .org("old")
        .group("staff")
        .group("admins")
        .org_admin()
        .contract("token")
        .grant("staff");
    let old = old
        .org("new")
        .group("staff")
        .group("admins")
        .org_admin()
        .methods([Method::GetCode]);
    old.user("reader")
        .member("old/staff")
        .user("boss")
        .member("old/admins")
        .user("buyer")
        .member("new/staff")
        .user("buying-boss")
        .member("new/admins")
        .user("payer")
        .link("payer")
        .user("sender")
        .share("shared", &["friend"])
        .user("friend")
        .member("new/staff")
        .org("old")
        .contract("token")
}

/// The same token, of another bank from [`FIRST`] on.
fn moved() -> Snapshot {
    before()
        .owned_until(LAST)
        .org("new")
        .owned_from("token", FIRST)
        .grant("staff")
        .snapshot()
}

fn log(tx: &str, block: Option<u64>) -> Value {
    let mut log = transfer_log("token", tx, "payer", "payee");
    match block {
        Some(block) => log["blockNumber"] = json!(format!("{block:#x}")),
        None => drop(log.as_object_mut().unwrap().remove("blockNumber")),
    }
    log
}

fn sent(block: u64) -> Value {
    let mut sent = transaction("t", address_of("payer"), Some(address_of("token")));
    sent["blockNumber"] = json!(format!("{block:#x}"));
    sent
}

/// Which of the blocks show a log by range, oldest first; nothing is the opaque denial.
fn log_blocks(snapshot: &Snapshot, name: &str, blocks: &[Option<u64>]) -> Option<Vec<u64>> {
    let logs: Vec<Value> = blocks.iter().map(|block| log("t", *block)).collect();
    let answer = get_logs(
        &viewer(snapshot, name, &Knobs::SPEC),
        &filter(&["token"], vec![]),
        &logs,
        &[],
    );
    let number = |row: &Value| u64::from_str_radix(row["blockNumber"].as_str().unwrap_or("0x0").get(2..)?, 16).ok();
    match answer {
        LogsAnswer::NotPermitted => None,
        rows_shown @ LogsAnswer::Rows(..) => Some(rows(&rows_shown).iter().filter_map(number).collect()),
    }
}

/// The attack: the new bank reads the old bank's logs, by its grants and as its administrator.
#[test]
fn rt29_hd41_each_log_is_for_whoever_owned_the_contract_then() {
    let blocks = [
        Some(1),
        Some(LAST),
        Some(LAST + 1),
        Some(FIRST - 1),
        Some(FIRST),
        Some(FIRST + 9),
        None,
    ];
    let always = before().snapshot();
    let moved = moved();
    for (old, new) in [("reader", "buyer"), ("boss", "buying-boss")] {
        let all = log_blocks(&always, old, &blocks).unwrap();
        assert_eq!(
            all.len(),
            blocks.len(),
            "{old}: always theirs, whatever the node says of the block"
        );
        assert_eq!(log_blocks(&always, new, &blocks), None, "{new}: a stranger yet");
        assert_eq!(log_blocks(&moved, old, &blocks), Some(vec![1, LAST]), "{old}");
        assert_eq!(log_blocks(&moved, new, &blocks), Some(vec![FIRST, FIRST + 9]), "{new}");
        assert!(
            !view::shows_nothing(&viewer(&moved, old, &Knobs::SPEC), &filter(&["token"], vec![]), &[]),
            "{old}"
        );
    }
    // Criteria find nothing of the past either.
    let asked = filter(&["token"], vec![super::support::one(transfer())]);
    let buyer = viewer(&moved, "buyer", &Knobs::SPEC);
    assert_eq!(
        rows(&get_logs(&buyer, &asked, &[log("t", Some(1))], &[])),
        Vec::<Value>::new()
    );
}

/// Parties and those it was shared with keep their own grounds, whosever the contract is.
#[test]
fn rt29_hd41_parties_and_shares_keep_theirs() {
    let moved = moved();
    for block in [1, LAST, LAST + 1, FIRST] {
        let own = [log("t", Some(block))];
        let payer = viewer(&moved, "payer", &Knobs::SPEC);
        assert_eq!(
            rows(&get_logs(&payer, &filter(&["token"], vec![]), &own, &[sent(block)])),
            own,
            "{block}"
        );
        let shared = [log("shared", Some(block))];
        let friend = viewer(&moved, "friend", &Knobs::SPEC);
        assert_eq!(
            rows(&get_logs(&friend, &filter(&["token"], vec![]), &shared, &[])).len(),
            1,
            "{block}"
        );
        assert_ne!(
            view::transaction(&payer, sealed(&sent(block))).as_str(),
            "null",
            "{block}"
        );
    }
}

/// The transaction, its receipt, its place in a block and the block's receipts.
#[test]
fn rt29_hd41_transactions_and_receipts_are_for_whoever_owned_the_contract_then() {
    let moved = moved();
    for (name, sees_tx, seen) in [
        ("boss", true, [true, true, false, false]),
        ("reader", false, [true, true, false, false]),
        ("buying-boss", true, [false, false, false, true]),
        ("buyer", false, [false, false, false, true]),
    ] {
        let who = viewer(&moved, name, &Knobs::SPEC);
        for (block, seen) in [1, LAST, LAST + 1, FIRST].into_iter().zip(seen) {
            let place = format!("{name} {block}");
            let shown = view::transaction(&who, sealed(&sent(block)));
            assert_eq!(shown.as_str() != "null", sees_tx && seen, "{place}");
            if sees_tx && seen {
                // K7, and the contract it was sent to is known to its administrator of then.
                let shown: Value = serde_json::from_str(shown.as_str()).unwrap();
                assert_eq!(shown["to"], json!(address_of("token")), "{place}");
                assert_ne!(shown["from"], json!(address_of("payer")), "{place}");
            }
            let receipt = json!({
                "blockHash": null, "blockNumber": format!("{block:#x}"), "contractAddress": null,
                "cumulativeGasUsed": "0x1", "effectiveGasPrice": "0x7", "from": address_of("payer"), "gasUsed": "0x1",
                "logs": [log("t", Some(block))], "logsBloom": "0x", "status": "0x1", "to": address_of("token"),
                "transactionHash": sent(block)["hash"], "transactionIndex": "0x0", "type": "0x2",
            });
            assert_eq!(
                view::receipt(&who, sealed(&receipt)).as_str() != "null",
                seen,
                "{place}"
            );
            let listed = view::block_receipts(&who, sealed(&json!([receipt])));
            assert_eq!(listed.as_str() != "[]", sees_tx && seen, "{place}");
            let body = json!({"number": format!("{block:#x}"), "hash": null, "transactions": [sent(block)]});
            let count = view::block_transaction_count(&who, sealed(&body));
            assert_eq!(count.as_str() == "\"0x1\"", sees_tx && seen, "{place}");
            let shown = view::block(&who, BlockTransactions::Hashes, None, sealed(&body));
            assert_eq!(
                !shown.as_str().contains("\"transactions\":[]"),
                sees_tx && seen,
                "{place}"
            );
        }
    }
    // One that waits is the present owner's.
    let mut pending = sent(1);
    pending["blockNumber"] = Value::Null;
    for (name, sees) in [("boss", false), ("buying-boss", true)] {
        let who = viewer(&moved, name, &Knobs::SPEC);
        assert_eq!(
            view::transaction(&who, sealed(&pending)).as_str() != "null",
            sees,
            "{name}"
        );
        assert_eq!(who.reaches_at(address_of("token"), Moment::Now), sees, "{name}");
        assert_eq!(
            who.reaches_at(address_of("token"), Moment::Block(LAST)),
            !sees,
            "{name}"
        );
        assert!(!who.reaches_at(address_of("token"), Moment::Unknown), "{name}");
    }
}

/// What was seen by a registration that ended is seen by the rights of today: whoever left sees it no more, and where the
/// registration showed nothing that is kept, nobody does.
#[test]
fn rt29_hd41_the_past_needs_the_rights_of_today() {
    let blocks = [Some(1), Some(FIRST)];
    let left = before()
        .owned_until(LAST)
        .user("former")
        .member_until("old/staff", PAST)
        .snapshot();
    assert_eq!(log_blocks(&left, "former", &blocks), None, "whoever left");
    assert_eq!(
        log_blocks(&left, "reader", &blocks),
        Some(vec![1]),
        "deleted, and nobody's yet"
    );
    assert_eq!(log_blocks(&left, "buyer", &blocks), None);
    // Back to the first owner: each registration shows its own blocks.
    let back = before()
        .owned_until(LAST)
        .org("new")
        .owned_from("token", FIRST)
        .grant("staff")
        .owned_until(FIRST);
    let back = back.org("old").owned_from("token", FIRST + 1).snapshot();
    let blocks = [Some(1), Some(FIRST), Some(FIRST + 1)];
    assert_eq!(log_blocks(&back, "boss", &blocks), Some(vec![1, FIRST + 1]));
    assert_eq!(log_blocks(&back, "buying-boss", &blocks), Some(vec![FIRST]));
    assert_eq!(
        log_blocks(&back, "reader", &blocks),
        Some(vec![1]),
        "granted then, and not anew"
    );
}

/// H1, HD41: neither do administrators read the state of a block in which the contract was another organization's.
#[test]
fn rt29_hd41_state_of_another_owners_blocks_is_nobodys_to_read() {
    const HEAD: u64 = LAST + 2000;
    let moved = moved();
    let read = |name: &str, block: u64| {
        let caller = Caller::User(moved.user(user_id(name)).unwrap().clone());
        let call = Call::Code(address_of("token"), BlockId::Number(block));
        let question = Question {
            caller: &caller,
            lookup: Lookup::Known(Method::GetCode),
            call: Ok(&call),
            visible_to: &VisibleTo::default(),
            named_org: NamedOrg::Org(org_id("new")),
            now: NOW,
            head: HeadFacts { number: HEAD },
            knobs: &Knobs::SPEC,
        };
        match decide(&moved, &question) {
            Decision::Allow(permit) => {
                let block = ReadBlock {
                    number: block,
                    time: NOW.minus(Seconds(1)),
                };
                check_historical_ownership(&moved, &permit, block, NOW)
            }
            other => panic!("{other:?}"),
        }
    };
    for block in [1, LAST, FIRST - 1] {
        assert_eq!(
            read("buying-boss", block),
            Err(DenyReason::HistoryNotPermitted),
            "{block}"
        );
    }
    for block in [FIRST, HEAD - 65, HEAD] {
        assert_eq!(read("buying-boss", block), Ok(()), "{block}");
    }
}
