//! HD41: the activity of a contract is shown by the rights in the organization that owned it at that block.

use super::support::{filter, get_logs, rows, sealed, transaction, transfer, transfer_log, viewer};
use gw_evm::{BlockId, Call, Method, MethodLookup, VisibleTo};
use gw_policy::{
    PolicySettings, Snapshot,
    access::{AccessRequest, Caller, Decision, HeadFacts, NamedOrg, ReadBlock, check_historical_ownership, decide},
    snapshot::Moment,
    testing::{NOW, PAST, World, address_of, org_id, user_id, world},
    view::{self, BlockTransactions, LogsAnswer},
};
use gw_types::{DenyReason, Seconds};
use serde_json::{Value, json};

/// The last block of the old owner; nobody owns the contract in the next two blocks.
const LAST: u64 = 0x64;
/// The first block of the new owner.
const FIRST: u64 = LAST + 3;

/// A token of one bank until [`LAST`], with users who have access to it.
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

/// The token of [`before`], owned by another bank from [`FIRST`] on.
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

/// The blocks of which a range query shows a log, oldest first; `None` is the generic denial.
fn log_blocks(snapshot: &Snapshot, name: &str, blocks: &[Option<u64>]) -> Option<Vec<u64>> {
    let logs: Vec<Value> = blocks.iter().map(|block| log("t", *block)).collect();
    let answer = get_logs(
        &viewer(snapshot, name, &PolicySettings::SPEC),
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

/// The attack: the new bank reads logs of the old bank, with a grant and as administrator.
#[test]
fn rt29_hd41_each_log_is_for_the_owner_of_the_contract_at_its_block() {
    let blocks = [
        Some(1),
        Some(LAST),
        Some(LAST + 1),
        Some(FIRST - 1),
        Some(FIRST),
        Some(FIRST + 9),
        None,
    ];
    let unmoved = before().snapshot();
    let moved = moved();
    for (old, new) in [("reader", "buyer"), ("boss", "buying-boss")] {
        let owner_blocks = log_blocks(&unmoved, old, &blocks).unwrap();
        assert_eq!(
            owner_blocks.len(),
            blocks.len(),
            "{old}: the only owner sees every log, even without block number"
        );
        assert_eq!(log_blocks(&unmoved, new, &blocks), None, "{new}: not yet an owner");
        assert_eq!(log_blocks(&moved, old, &blocks), Some(vec![1, LAST]), "{old}");
        assert_eq!(log_blocks(&moved, new, &blocks), Some(vec![FIRST, FIRST + 9]), "{new}");
        assert!(
            !view::shows_nothing(
                &viewer(&moved, old, &PolicySettings::SPEC),
                &filter(&["token"], vec![]),
                &[]
            ),
            "{old}"
        );
    }
    // Topic filters do not match earlier logs.
    let by_topic = filter(&["token"], vec![super::support::topic_is(transfer())]);
    let buyer = viewer(&moved, "buyer", &PolicySettings::SPEC);
    assert_eq!(
        rows(&get_logs(&buyer, &by_topic, &[log("t", Some(1))], &[])),
        Vec::<Value>::new()
    );
}

/// Parties of a transaction and recipients of a share keep their access, regardless of the owner of the contract.
#[test]
fn rt29_hd41_parties_and_recipients_keep_their_access() {
    let moved = moved();
    for block in [1, LAST, LAST + 1, FIRST] {
        let own = [log("t", Some(block))];
        let payer = viewer(&moved, "payer", &PolicySettings::SPEC);
        assert_eq!(
            rows(&get_logs(&payer, &filter(&["token"], vec![]), &own, &[sent(block)])),
            own,
            "{block}"
        );
        let shared = [log("shared", Some(block))];
        let friend = viewer(&moved, "friend", &PolicySettings::SPEC);
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

/// The transaction, its receipt, its entry in a block and the receipts of the block.
#[test]
fn rt29_hd41_transactions_and_receipts_are_for_the_owner_at_their_block() {
    let moved = moved();
    for (name, sees_tx, seen) in [
        ("boss", true, [true, true, false, false]),
        ("reader", false, [true, true, false, false]),
        ("buying-boss", true, [false, false, false, true]),
        ("buyer", false, [false, false, false, true]),
    ] {
        let reader = viewer(&moved, name, &PolicySettings::SPEC);
        for (block, seen) in [1, LAST, LAST + 1, FIRST].into_iter().zip(seen) {
            let label = format!("{name} {block}");
            let shown = view::transaction(&reader, sealed(&sent(block)));
            assert_eq!(shown.as_str() != "null", sees_tx && seen, "{label}");
            if sees_tx && seen {
                // K7: the administrator at that block sees the called contract.
                let shown: Value = serde_json::from_str(shown.as_str()).unwrap();
                assert_eq!(shown["to"], json!(address_of("token")), "{label}");
                assert_ne!(shown["from"], json!(address_of("payer")), "{label}");
            }
            let receipt = json!({
                "blockHash": null, "blockNumber": format!("{block:#x}"), "contractAddress": null,
                "cumulativeGasUsed": "0x1", "effectiveGasPrice": "0x7", "from": address_of("payer"), "gasUsed": "0x1",
                "logs": [log("t", Some(block))], "logsBloom": "0x", "status": "0x1", "to": address_of("token"),
                "transactionHash": sent(block)["hash"], "transactionIndex": "0x0", "type": "0x2",
            });
            assert_eq!(
                view::receipt(&reader, sealed(&receipt)).as_str() != "null",
                seen,
                "{label}"
            );
            let receipts = view::block_receipts(&reader, sealed(&json!([receipt])));
            assert_eq!(receipts.as_str() != "[]", sees_tx && seen, "{label}");
            let body = json!({"number": format!("{block:#x}"), "hash": null, "transactions": [sent(block)]});
            let count = view::block_transaction_count(&reader, sealed(&body));
            assert_eq!(count.as_str() == "\"0x1\"", sees_tx && seen, "{label}");
            let shown = view::block(&reader, BlockTransactions::Hashes, None, sealed(&body));
            assert_eq!(
                !shown.as_str().contains("\"transactions\":[]"),
                sees_tx && seen,
                "{label}"
            );
        }
    }
    // A pending transaction belongs to the present owner.
    let mut pending = sent(1);
    pending["blockNumber"] = Value::Null;
    for (name, sees) in [("boss", false), ("buying-boss", true)] {
        let reader = viewer(&moved, name, &PolicySettings::SPEC);
        assert_eq!(
            view::transaction(&reader, sealed(&pending)).as_str() != "null",
            sees,
            "{name}"
        );
        assert_eq!(reader.reaches_at(address_of("token"), Moment::Now), sees, "{name}");
        assert_eq!(
            reader.reaches_at(address_of("token"), Moment::Block(LAST)),
            !sees,
            "{name}"
        );
        assert!(!reader.reaches_at(address_of("token"), Moment::Unknown), "{name}");
    }
}

/// Blocks of an ended registration are shown by the present rights in its organization. Former members no longer see
/// them.
#[test]
fn rt29_hd41_earlier_blocks_need_present_rights() {
    let blocks = [Some(1), Some(FIRST)];
    let without_owner = before()
        .owned_until(LAST)
        .user("former")
        .member_until("old/staff", PAST)
        .snapshot();
    assert_eq!(log_blocks(&without_owner, "former", &blocks), None, "a former member");
    assert_eq!(
        log_blocks(&without_owner, "reader", &blocks),
        Some(vec![1]),
        "the registration ended and nobody owns the contract"
    );
    assert_eq!(log_blocks(&without_owner, "buyer", &blocks), None);
    // The contract returns to the first owner; each registration shows its own blocks.
    let returned = before()
        .owned_until(LAST)
        .org("new")
        .owned_from("token", FIRST)
        .grant("staff")
        .owned_until(FIRST);
    let returned = returned.org("old").owned_from("token", FIRST + 1).snapshot();
    let blocks = [Some(1), Some(FIRST), Some(FIRST + 1)];
    assert_eq!(log_blocks(&returned, "boss", &blocks), Some(vec![1, FIRST + 1]));
    assert_eq!(log_blocks(&returned, "buying-boss", &blocks), Some(vec![FIRST]));
    assert_eq!(
        log_blocks(&returned, "reader", &blocks),
        Some(vec![1]),
        "the grant was not renewed"
    );
}

/// H1, HD41: administrators cannot read state at a block in which another organization owned the contract.
#[test]
fn rt29_hd41_state_at_blocks_of_another_owner_is_denied() {
    const HEAD: u64 = LAST + 2000;
    let moved = moved();
    let read = |name: &str, block: u64| {
        let caller = Caller::User(moved.user(user_id(name)).unwrap().clone());
        let call = Call::Code(address_of("token"), BlockId::Number(block));
        let request = AccessRequest {
            caller: &caller,
            lookup: MethodLookup::Registered(Method::GetCode),
            call: Ok(&call),
            visible_to: &VisibleTo::default(),
            named_org: NamedOrg::Org(org_id("new")),
            now: NOW,
            head: HeadFacts { number: HEAD },
            policy_settings: &PolicySettings::SPEC,
        };
        match decide(&moved, &request) {
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
