//! Tests of what subscriptions deliver: the rows of a log query, and headers.

use super::support::{filter, get_logs, log, rows, sealed, transaction, transfer_log, viewer};
use alloy_primitives::keccak256;
use gw_policy::{
    Disclosed, PolicySettings,
    testing::{address_of, hash_of, world},
    view::{self, BlockTransactions, LogsAnswer},
};
use serde_json::{Value, json};

fn answer_of(answer: LogsAnswer) -> Disclosed {
    match answer {
        LogsAnswer::Rows(rows, _) => rows,
        LogsAnswer::NotPermitted => panic!("not permitted"),
    }
}

/// WS-3, WS-4: the delivered rows are the rows of the query, and a row of a removed block differs only in its flag.
#[test]
fn ws4_delivered_rows_are_the_rows_of_the_query() {
    let snapshot = world()
        .org("a")
        .group("staff")
        .contract("token")
        .grant("staff")
        .user("u")
        .member("staff")
        .link("mine")
        .snapshot();
    let viewer = viewer(&snapshot, "u", &PolicySettings::SPEC);
    let whole = transfer_log("token", "t0", "mine", "mine");
    let masked = transfer_log("token", "t1", "mine", "theirs");
    // The flag is absent, true already, or beside a member that is not disclosed.
    let mut without_flag = whole.clone();
    without_flag.as_object_mut().unwrap().remove("removed");
    let mut masked_without_flag = masked.clone();
    masked_without_flag.as_object_mut().unwrap().remove("removed");
    let mut removed = log(address_of("token"), "t2", &[keccak256("X()")], &[]);
    (removed["removed"], removed["logIndex"]) = (json!(true), json!("0x7"));
    let mut unknown_member = whole.clone();
    unknown_member["note"] = json!("\"removed\":false");
    let logs = [
        whole,
        masked,
        without_flag,
        masked_without_flag,
        removed,
        unknown_member,
    ];
    let answer = answer_of(get_logs(&viewer, &filter(&["token"], vec![]), &logs, &[]));
    let shown: Vec<Value> = serde_json::from_str(answer.as_str()).unwrap();
    let delivered = view::log_rows(&answer);
    assert_eq!((shown.len(), delivered.len()), (logs.len(), logs.len()));
    for (row, expected) in delivered.iter().zip(shown) {
        assert_eq!(serde_json::from_str::<Value>(row.row.as_str()).unwrap(), expected);
        assert_eq!((row.block_hash, row.block_number), (hash_of("block"), 100));
        assert_eq!(json!(format!("{:#x}", row.log_index)), expected["logIndex"]);
        let text = row.row.as_str();
        let flagged = match text.replace("\"removed\":false", "\"removed\":true") {
            flagged if flagged.contains("\"removed\":") => flagged,
            flagged => format!("{},\"removed\":true}}", flagged.strip_suffix('}').unwrap()),
        };
        assert_eq!(row.removed().as_str(), flagged);
        assert_eq!(serde_json::from_str::<Value>(&flagged).unwrap()["removed"], json!(true));
    }
    assert_eq!(
        view::log_array(delivered.iter().map(|row| &row.row)).as_str(),
        answer.as_str()
    );
}

/// HD28: the index of a delivered row is the one that the row shows.
#[test]
fn hd28_the_index_of_a_delivered_row_is_the_shown_one() {
    let snapshot = world()
        .org("a")
        .group("staff")
        .contract("token")
        .grant("staff")
        .user("u")
        .member("staff")
        .convicted_at(hash_of("bad"), "thief", (hash_of("block"), 0), 2)
        .snapshot();
    let viewer = viewer(&snapshot, "u", &PolicySettings::SPEC);
    let mut later = log(address_of("token"), "t", &[keccak256("X()")], &[]);
    (later["transactionIndex"], later["logIndex"]) = (json!("0x1"), json!("0x5"));
    let answer = answer_of(get_logs(&viewer, &filter(&["token"], vec![]), &[later], &[]));
    let delivered = view::log_rows(&answer);
    assert_eq!(delivered.len(), 1);
    assert_eq!(delivered[0].log_index, 3);
    assert!(delivered[0].row.as_str().contains("\"logIndex\":\"0x3\""));
}

/// Rows without a block cannot be delivered: nothing of the result is.
#[test]
fn rows_without_a_block_are_not_delivered() {
    let snapshot = world()
        .org("a")
        .group("staff")
        .contract("token")
        .grant("staff")
        .user("u")
        .member("staff")
        .snapshot();
    let viewer = viewer(&snapshot, "u", &PolicySettings::SPEC);
    let mined = log(address_of("token"), "t", &[keccak256("X()")], &[]);
    for member in ["blockHash", "blockNumber", "logIndex"] {
        let mut pending = mined.clone();
        pending[member] = Value::Null;
        for logs in [[mined.clone(), pending.clone()], [pending, mined.clone()]] {
            let answer = get_logs(&viewer, &filter(&["token"], vec![]), &logs, &[]);
            assert_eq!(rows(&answer).len(), 2, "the query shows both");
            assert!(view::log_rows(&answer_of(answer)).is_empty(), "{member}");
        }
    }
    assert!(view::log_rows(&Disclosed::EMPTY_LIST).is_empty() && view::log_rows(&Disclosed::NULL).is_empty());
}

#[test]
fn a_header_is_a_block_without_its_lists() {
    let snapshot = world().user("u").link("mine").snapshot();
    let viewer = viewer(&snapshot, "u", &PolicySettings::SPEC);
    let block = json!({
        "number": "0x64", "hash": hash_of("block"), "parentHash": hash_of("parent"), "gasUsed": "0x5208",
        "uncles": [], "withdrawals": [], "size": "0x1", "totalDifficulty": "0x1", "timestamp": "0x1",
        "transactions": [transaction("t", address_of("mine"), None)],
    });
    let shown = view::block(&viewer, BlockTransactions::Full, None, sealed(&block));
    let header: Value = serde_json::from_str(view::header(&shown).unwrap().as_str()).unwrap();
    let mut expected: Value = serde_json::from_str(shown.as_str()).unwrap();
    for name in ["transactions", "uncles", "withdrawals", "size", "totalDifficulty"] {
        assert!(expected.as_object_mut().unwrap().remove(name).is_some(), "{name}");
    }
    assert_eq!(header, expected);
    assert_eq!(view::header(&Disclosed::NULL), None);
    let absent = view::block(&viewer, BlockTransactions::Full, None, sealed(&Value::Null));
    assert_eq!(view::header(&absent), None);
}
