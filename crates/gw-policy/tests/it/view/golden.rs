//! A table of the fields that each kind of viewer sees (house style, habit 31).

use super::support::{filter, get_logs, log, number, sealed, transaction, transfer, viewer, word};
use gw_evm::abi::builtin;
use gw_policy::{
    PolicySettings,
    testing::{address_of, hash_of, world},
    view::{self, BlockTransactions, LogsAnswer},
};
use serde_json::{Value, json};
use std::fmt::Write as _;

const VIEWERS: [&str; 12] = [
    "nobody",
    "outsider",
    "member",
    "rules-self",
    "holder",
    "deployer",
    "claimant",
    "admin",
    "friend",
    "insider",
    "sender",
    "payee",
];

/// Compares a shown value with the value of the node.
fn cell(shown: Option<&Value>, sent: &Value) -> String {
    match shown {
        None => "-".to_owned(),
        Some(shown) if shown == sent => "=".to_owned(),
        Some(Value::String(text)) if text.len() > 12 && text.trim_start_matches("0x").bytes().all(|b| b == b'0') => {
            "zero".to_owned()
        }
        Some(shown) => shown.to_string().trim_matches('"').to_owned(),
    }
}

struct Table(String);

impl Table {
    fn new() -> Self {
        let mut head = format!("{:<34}", "");
        VIEWERS.iter().for_each(|name| write!(head, "{name:<11}").unwrap());
        let head = head.trim_end().to_owned();
        Self(head)
    }

    fn row(&mut self, name: &str, cells: impl Iterator<Item = String>) {
        let mut row = format!("{name:<34}");
        cells.for_each(|cell| write!(row, "{cell:<11}").unwrap());
        write!(self.0, "\n{}", row.trim_end()).unwrap();
    }

    /// Adds one row for each member of an object; `shown` has an object or `null` for each viewer.
    fn object(&mut self, name: &str, sent: &Value, shown: &[Value], skip: &[&str]) {
        self.row(
            name,
            shown
                .iter()
                .map(|shown| if shown.is_null() { "null" } else { "" }.to_owned()),
        );
        for (member, sent) in sent
            .as_object()
            .unwrap()
            .iter()
            .filter(|(member, _)| !skip.contains(&member.as_str()))
        {
            self.row(
                &format!("  {member}"),
                shown.iter().map(|shown| {
                    if shown.is_null() {
                        String::new()
                    } else {
                        cell(shown.get(member), sent)
                    }
                }),
            );
        }
    }
}

/// A transfer by `sender` to the contract `token`, which unlocks its events, shared with `friend` and `insider`. It
/// pays `payee` and calls an unregistered contract.
#[test]
fn viewer_by_field() {
    let erc20 = serde_json::to_string(builtin("ERC20").unwrap().json()).unwrap();
    let own = |index| gw_policy::snapshot::EventRule {
        topic0: transfer(),
        params: vec![gw_policy::snapshot::ParamRule {
            index,
            must_be: gw_policy::snapshot::Constraint::Own,
        }],
    };
    let snapshot = world()
        .org("a")
        .group("admins")
        .org_admin()
        .group("claimed")
        .claim(gw_types::Claim::Admin)
        .group("staff")
        .group("own")
        .group("rest")
        .contract("token")
        .abi(&erc20)
        .visibleto_unlock()
        .deployed_by("deployer")
        .grant("staff")
        .grant("own")
        .events([own(0), own(1)])
        .org("b")
        .group("b")
        .org_admin()
        .user("outsider")
        .member("b")
        .user("member")
        .member("a/rest")
        .user("rules-self")
        .member("a/own")
        .user("holder")
        .member("a/staff")
        .user("deployer")
        .member("a/rest")
        .user("claimant")
        .member("a/claimed")
        .user("admin")
        .member("a/admins")
        .user("friend")
        .member("b/b")
        .user("insider")
        .member("a/own")
        .user("payee")
        .member("a/own")
        .link("payee")
        .user("sender")
        .link("sender")
        .share("t", &["friend", "insider"])
        .snapshot();

    let mut tx = transaction("t", address_of("sender"), Some(address_of("token")));
    tx["input"] = json!(format!("0xa9059cbb{:x}", word("payee")));
    tx["value"] = json!("0x5");
    tx["nonce"] = json!("0x7");
    tx["accessList"] = json!([{ "address": address_of("listed"), "storageKeys": [] }]);
    tx["authorizationList"] = json!([]);
    tx["yParity"] = json!("0x1");
    tx["publicKey"] = json!(word("sender"));
    let logs = vec![
        log(
            address_of("token"),
            "t",
            &[transfer(), word("sender"), word("payee")],
            number(7).as_slice(),
        ),
        log(
            address_of("elsewhere"),
            "t",
            &[transfer(), word("sender")],
            word("payee").as_slice(),
        ),
    ];
    let receipt = json!({
        "blockHash": hash_of("block"), "blockNumber": "0x64", "contractAddress": null, "cumulativeGasUsed": "0xffff",
        "effectiveGasPrice": "0x7", "from": address_of("sender"), "gasUsed": "0x5208", "logs": logs,
        "logsBloom": format!("0x{}", "a5".repeat(256)), "status": "0x1", "to": address_of("token"),
        "transactionHash": hash_of("t"), "transactionIndex": "0x0", "type": "0x2", "feePayer": address_of("payer"),
    });
    let block = json!({
        "number": "0x64", "hash": hash_of("block"), "parentHash": hash_of("parent"), "nonce": "0x0000000000000000",
        "mixHash": hash_of("mix"), "sha3Uncles": hash_of("uncles"), "logsBloom": format!("0x{}", "a5".repeat(256)),
        "stateRoot": hash_of("state"), "miner": address_of("miner"), "difficulty": "0x0", "totalDifficulty": "0x1",
        "extraData": "0x00ff", "size": "0x2a0", "gasLimit": "0x1c9c380", "gasUsed": "0xa410", "timestamp": "0x1",
        "transactionsRoot": hash_of("transactions"), "receiptsRoot": hash_of("receipts"), "uncles": [hash_of("uncle")],
        "transactions": [tx], "baseFeePerGas": "0x7", "withdrawalsRoot": hash_of("withdrawals"),
        "withdrawals": [{ "address": address_of("staker") }], "blobGasUsed": "0x20000", "excessBlobGas": "0x40000",
        "parentBeaconBlockRoot": hash_of("beacon"), "requestsHash": hash_of("requests"), "l1Fee": "0x1",
    });

    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let for_each_viewer = |show: &dyn Fn(&gw_policy::Viewer<'_>) -> Value| -> Vec<Value> {
        VIEWERS
            .iter()
            .map(|name| show(&viewer(&snapshot, name, &PolicySettings::SPEC)))
            .collect()
    };
    let mut table = Table::new();

    table.object(
        "transaction",
        &tx,
        &for_each_viewer(&|viewer| parse(view::transaction(viewer, sealed(&tx)).as_str())),
        &[],
    );

    let receipts = for_each_viewer(&|viewer| parse(view::receipt(viewer, sealed(&receipt)).as_str()));
    table.object("receipt", &receipt, &receipts, &["logs"]);
    table.row(
        "  logs",
        receipts
            .iter()
            .map(|shown| shown["logs"].as_array().map_or(String::new(), |l| l.len().to_string())),
    );

    let block_receipts =
        for_each_viewer(&|viewer| parse(view::block_receipts(viewer, sealed(&json!([receipt]))).as_str()));
    table.row(
        "receipts of the block",
        block_receipts
            .iter()
            .map(|shown| shown.as_array().unwrap().len().to_string()),
    );

    for emitter in ["token", "elsewhere"] {
        let sent = logs
            .iter()
            .find(|log| log["address"] == json!(address_of(emitter)))
            .unwrap();
        let shown = for_each_viewer(&|viewer| match get_logs(
            viewer,
            &filter(&[emitter], vec![]),
            &logs,
            std::slice::from_ref(&tx),
        ) {
            LogsAnswer::Rows(rows, _) => json!({ "rows": parse(rows.as_str()) }),
            LogsAnswer::NotPermitted => json!("denied"),
        });
        let outcome = |shown: &Value| match &shown["rows"] {
            Value::Array(rows) => rows.len().to_string(),
            _ => "404".to_owned(),
        };
        table.row(&format!("logs of {emitter}"), shown.iter().map(outcome));
        for position in 0..sent["topics"].as_array().unwrap().len() {
            let topic = |shown: &Value| {
                shown["rows"].get(0).map_or(String::new(), |row| {
                    cell(Some(&row["topics"][position]), &sent["topics"][position])
                })
            };
            table.row(&format!("  topics[{position}]"), shown.iter().map(topic));
        }
        let data = |shown: &Value| {
            shown["rows"]
                .get(0)
                .map_or(String::new(), |row| cell(Some(&row["data"]), &sent["data"]))
        };
        table.row("  data", shown.iter().map(data));
    }

    let full = |viewer: &gw_policy::Viewer<'_>| {
        parse(view::block(viewer, BlockTransactions::Full, None, sealed(&block)).as_str())
    };
    let blocks = for_each_viewer(&full);
    table.object("block", &block, &blocks, &["transactions"]);
    table.row(
        "  transactions",
        blocks
            .iter()
            .map(|shown| shown["transactions"].as_array().unwrap().len().to_string()),
    );
    let counts = for_each_viewer(&|viewer| parse(view::block_transaction_count(viewer, sealed(&block)).as_str()));
    table.row(
        "transaction count",
        counts.iter().map(|shown| shown.as_str().unwrap().to_owned()),
    );

    for (name, address) in [("sender", "sender"), ("token", "token"), ("stranger", "stranger")] {
        let balance = |viewer: &gw_policy::Viewer<'_>| {
            parse(view::balance(viewer, address_of(address), 100, sealed(&json!("0x5"))).as_str())
        };
        table.row(
            &format!("balance of {name}"),
            for_each_viewer(&balance)
                .iter()
                .map(|shown| cell(Some(shown), &json!("0x5"))),
        );
        let code = |viewer: &gw_policy::Viewer<'_>| {
            let code = view::code(viewer, address_of(address), 100, sealed(&json!("0x6001")));
            code.map_or(json!("404"), |code| parse(code.as_str()))
        };
        table.row(
            &format!("code of {name}"),
            for_each_viewer(&code)
                .iter()
                .map(|shown| cell(Some(shown), &json!("0x6001"))),
        );
    }
    insta::with_settings!({snapshot_path => "../../../../../docs/tables", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("viewer_by_field", table.0.trim_end());
    });
}
