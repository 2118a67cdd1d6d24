//! Properties of all answers to a viewer, in random worlds (spec/30 section 10).

use super::support::{
    filter, get_logs, is_contained_in, log, number, restricted_viewer, sealed, topic_is, transaction, viewer,
};
use alloy_primitives::{Address, B256, keccak256};
use gw_evm::TopicFilter;
use gw_policy::{
    PolicySettings, Snapshot, Viewer,
    testing::{address_of, hash_of},
    view::{self, BlockTransactions, LogsAnswer},
};
use gw_testkit::scenario::{CONTRACTS, ScenarioTx, USERS, WALLETS, additions, scenario, transfer, word};
use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

/// The logs of a transaction, as the node sends them.
pub(super) fn logs_json(tx: &ScenarioTx) -> Vec<Value> {
    let entry = |(emitter, [first, second, third]): &(&str, [&str; 3])| match *emitter {
        // Data without an ABI is not modified [S]. It contains no address here.
        "a-plain" | "nobody's" => log(
            address_of(emitter),
            &tx.name,
            &[keccak256("X()"), word(first), word(second)],
            &[7],
        ),
        "b-multi" => {
            let data = [word(second).0, word(third).0].concat();
            log(
                address_of(emitter),
                &tx.name,
                &[keccak256("Paid(address,address[2])"), word(first)],
                &data,
            )
        }
        _ => log(
            address_of(emitter),
            &tx.name,
            &[transfer(), word(first), word(second)],
            number(7).as_slice(),
        ),
    };
    tx.logs.iter().map(entry).collect()
}

/// A transaction, as the node sends it.
pub(super) fn transaction_json(tx: &ScenarioTx) -> Value {
    let mut shown = transaction(&tx.name, address_of(tx.from), tx.to.map(address_of));
    shown["input"] = json!(format!("0xa9059cbb{:x}", word(tx.mentions)));
    shown["accessList"] = json!([{ "address": address_of(tx.mentions), "storageKeys": [] }]);
    shown["publicKey"] = json!(word(tx.from));
    shown
}

/// The receipt of a transaction, as the node sends it.
pub(super) fn receipt_json(tx: &ScenarioTx) -> Value {
    json!({
        "blockHash": hash_of("block"), "blockNumber": "0x64", "contractAddress": null,
        "cumulativeGasUsed": "0xffff",
        "effectiveGasPrice": "0x7", "from": address_of(tx.from), "gasUsed": "0x5208", "logs": logs_json(tx),
        "logsBloom": format!("0x{}", "a5".repeat(256)), "status": "0x1", "to": tx.to.map(address_of),
        "transactionHash": hash_of(&tx.name), "transactionIndex": "0x0", "type": "0x2",
        "feePayer": address_of(tx.mentions),
    })
}

fn block(transactions: &[ScenarioTx]) -> Value {
    // These members depend on all transactions of the block. Decision 34 excepts head number and time, base fee and
    // own positions.
    let sum = |field: &str| {
        keccak256(format!(
            "{field}{:?}",
            transactions.iter().map(|tx| &tx.name).collect::<Vec<_>>()
        ))
    };
    json!({
        "number": "0x64", "hash": hash_of("block"), "parentHash": hash_of("parent"), "miner": address_of("miner"),
        "gasLimit": "0x1", "timestamp": "0x1", "stateRoot": sum("state"), "transactionsRoot": sum("transactions"),
        "receiptsRoot": sum("receipts"), "requestsHash": sum("requests"), "withdrawalsRoot": sum("withdrawals"),
        "gasUsed": format!("0x{:x}", transactions.len() * 21_000), "size": format!("0x{:x}", transactions.len() * 100),
        "blobGasUsed": format!("0x{:x}", transactions.len()), "excessBlobGas": format!("0x{:x}", transactions.len()),
        "logsBloom": format!("0x{}", format!("{:02x}", transactions.len()).repeat(256)),
        "withdrawals": transactions.iter().map(|tx| json!({ "address": address_of(tx.from) })).collect::<Vec<_>>(),
        "transactions": transactions.iter().map(transaction_json).collect::<Vec<_>>(),
    })
}

/// A node with these logs and transactions.
struct Node {
    logs: Vec<Value>,
    transactions: Vec<Value>,
}

impl Node {
    fn new(transactions: &[ScenarioTx]) -> Self {
        let logs = transactions.iter().flat_map(logs_json).collect();
        Self {
            logs,
            transactions: transactions.iter().map(transaction_json).collect(),
        }
    }

    fn get_logs(&self, viewer: &Viewer<'_>, emitters: &[&str], topics: Vec<TopicFilter>) -> LogsAnswer {
        get_logs(viewer, &filter(emitters, topics), &self.logs, &self.transactions)
    }
}

/// All answers to a viewer about the block, including the transactions and receipts of `by_hash`.
fn all_answers(snapshot: &Snapshot, user: &str, transactions: &[ScenarioTx], by_hash: &[ScenarioTx]) -> Vec<String> {
    all_answers_to(&viewer(snapshot, user, &PolicySettings::SPEC), transactions, by_hash)
}

fn all_answers_to(viewer: &Viewer<'_>, transactions: &[ScenarioTx], by_hash: &[ScenarioTx]) -> Vec<String> {
    let mut shown = Vec::new();
    for kind in [BlockTransactions::Full, BlockTransactions::Hashes] {
        shown.push(view::block(viewer, kind, None, sealed(&block(transactions))));
    }
    shown.push(view::block_transaction_count(viewer, sealed(&block(transactions))));
    let receipts: Vec<Value> = transactions.iter().map(receipt_json).collect();
    shown.push(view::block_receipts(viewer, sealed(&json!(receipts))));
    for tx in by_hash {
        shown.push(view::transaction(viewer, sealed(&transaction_json(tx))));
        shown.push(view::receipt(viewer, sealed(&receipt_json(tx))));
    }
    assert!(
        shown.iter().all(|shown| !shown.is_malformed()),
        "the node of the test sends well-formed responses"
    );
    let mut texts: Vec<String> = shown.into_iter().map(|shown| shown.into_string()).collect();
    let node = Node::new(transactions);
    for emitter in CONTRACTS {
        texts.push(rows_or_denied(node.get_logs(viewer, &[emitter], vec![])));
    }
    for topics in [vec![topic_is(transfer())], vec![TopicFilter::Any, topic_is(B256::ZERO)]] {
        texts.push(rows_or_denied(node.get_logs(viewer, &["a-token", "b-multi"], topics)));
    }
    texts
}

/// The text for a denied log query.
const DENIED: &str = "not permitted";

fn rows_or_denied(answer: LogsAnswer) -> String {
    match answer {
        LogsAnswer::Rows(rows, count) => {
            let text = rows.into_string();
            let rows: Vec<Value> = serde_json::from_str(&text).expect("rows are a list");
            assert_eq!(rows.len(), count, "{text}");
            text
        }
        LogsAnswer::NotPermitted => DENIED.to_owned(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// I2: no answer contains, in a value or key, an address that the viewer may not see.
    #[test]
    fn i2_no_answer_contains_a_hidden_address(scenario in scenario(0..6), user in 0..USERS.len()) {
        let snapshot = scenario.world().snapshot();
        let readable = scenario.readable(user);
        let texts = all_answers(&snapshot, USERS[user], &scenario.transactions, &scenario.transactions);
        for name in WALLETS.iter().chain(&CONTRACTS).filter(|name| !readable.contains(*name)) {
            let canary = format!("{:x}", address_of(name));
            for text in &texts {
                prop_assert!(!text.to_lowercase().contains(&canary), "{name} in {text}");
            }
        }
        let nobody = all_answers(&snapshot, "nobody", &scenario.transactions, &scenario.transactions).join("");
        for name in WALLETS.iter().chain(&CONTRACTS) {
            prop_assert!(!nobody.contains(&format!("{:x}", address_of(name))), "{name}");
        }
    }

    /// I9, HD7, R9: every answer of an impersonation is contained in the view of the user and in the view of the
    /// administrator.
    #[test]
    fn i9_hd7_impersonated_answers_are_contained_in_both_views(
        scenario in scenario(0..6),
        user in 0..USERS.len(),
        impersonator in 0..USERS.len(),
        settings in select(vec![PolicySettings::SPEC, PolicySettings::STRICT]),
    ) {
        let snapshot = scenario.world().snapshot();
        let own = viewer(&snapshot, USERS[user], &settings);
        let admin = viewer(&snapshot, USERS[impersonator], &settings);
        let impersonated = restricted_viewer(&snapshot, USERS[user], USERS[impersonator], &settings);
        for name in WALLETS.iter().chain(&CONTRACTS) {
            let address = address_of(name);
            prop_assert_eq!(impersonated.level(address).0, own.level(address).0.min(admin.level(address).0), "{}",
                name);
        }
        let answers = |viewer| all_answers_to(viewer, &scenario.transactions, &scenario.transactions);
        let value = |text: &str| {
            // A denial shows nothing.
            let text = if text == DENIED { "null" } else { text };
            serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{error}: {text}"))
        };
        let impersonated_answers = answers(&impersonated);
        let answers_of_all = impersonated_answers.iter().zip(answers(&own)).zip(answers(&admin));
        for (index, ((impersonated, own), admin)) in answers_of_all.enumerate() {
            // The count of a block.
            if index == 2 {
                continue;
            }
            prop_assert!(is_contained_in(&value(impersonated), &value(&own)), "{impersonated}\nis not contained in the \
                 view of the user\n{own}");
            // HD40: the answer must not reveal the existence of objects that the administrator may not see.
            prop_assert!(is_contained_in(&value(impersonated), &value(&admin)), "{impersonated}\nis not contained in \
                 the view of the administrator\n{admin}");
        }
        let (user_readable, admin_readable) = (scenario.readable(user), scenario.readable(impersonator));
        let is_readable = |name: &&&str| user_readable.contains(*name) && admin_readable.contains(*name);
        for name in WALLETS.iter().chain(&CONTRACTS).filter(|name| !is_readable(name)) {
            let canary = format!("{:x}", address_of(name));
            prop_assert!(!answers(&impersonated).join("").to_lowercase().contains(&canary), "{name}");
        }
        // The impersonation of oneself shows the own view.
        let self_impersonated = restricted_viewer(&snapshot, USERS[user], USERS[user], &settings);
        prop_assert_eq!(answers(&self_impersonated), answers(&own));
    }

    /// I5, decision 34: transactions that do not concern a viewer, at any position in the block, and links,
    /// registrations and shares of others change no byte of any answer.
    #[test]
    fn i5_hidden_rows_change_no_byte(
        scenario in scenario(0..6),
        user in 0..USERS.len(),
        additions in additions(1..5),
    ) {
        let snapshot = scenario.world().snapshot();
        let before = all_answers(&snapshot, USERS[user], &scenario.transactions, &scenario.transactions);

        let grown = scenario.grown(Some(user), additions);
        let after = grown.world.org("c").contract("s0").snapshot();
        let shown = all_answers(&after, USERS[user], &grown.scenario.transactions, &scenario.transactions);
        prop_assert_eq!(before, shown);
    }

    /// I10, HD1: a query with a hidden address and a query with a random address have the same upstream filter and
    /// the same answer.
    #[test]
    fn i10_a_query_reveals_nothing_about_a_hidden_address(
        scenario in scenario(0..6),
        user in 0..USERS.len(),
        hidden in select(WALLETS.to_vec()),
        position in 1..4usize,
        emitters in prop::sample::subsequence(CONTRACTS.to_vec(), 1..4),
    ) {
        prop_assume!(!scenario.readable(user).contains(hidden));
        let snapshot = scenario.world().snapshot();
        let viewer = viewer(&snapshot, USERS[user], &PolicySettings::SPEC);
        let topics_with = |name: &str| {
            let mut topics = vec![TopicFilter::Any; position];
            topics.push(TopicFilter::OneOf(vec![word(name), word("another")]));
            topics
        };
        let query = |name| filter(&emitters, topics_with(name));
        let upstream = view::upstream_filter(&viewer, &query(hidden));
        prop_assert_eq!(&upstream, &view::upstream_filter(&viewer, &query("random")));
        let node = Node::new(&scenario.transactions);
        let answer = super::support::node_logs(&node.logs, &upstream);
        prop_assert_eq!(
            view::parties_needed(&viewer, &query(hidden), &sealed(&answer)),
            view::parties_needed(&viewer, &query("random"), &sealed(&answer)),
            "the same parties are requested"
        );
        prop_assert_eq!(
            node.get_logs(&viewer, &emitters, topics_with(hidden)),
            node.get_logs(&viewer, &emitters, topics_with("random"))
        );
        prop_assert_eq!(
            view::balance(&viewer, address_of(hidden), 100, sealed(&json!("0x5"))),
            view::balance(&viewer, address_of("random"), 100, sealed(&json!("0x7")))
        );
    }

    /// I1, T1: a call to a contract is allowed exactly if the contract has level Full.
    #[test]
    fn i1_calls_are_allowed_if_the_contract_has_level_full(scenario in scenario(0..6), user in 0..USERS.len()) {
        let snapshot = scenario.world().snapshot();
        let viewer = viewer(&snapshot, USERS[user], &PolicySettings::SPEC);
        for contract in CONTRACTS {
            let decision = super::chain::decide_call(&snapshot, USERS[user], contract);
            let allowed = matches!(decision, gw_policy::access::Decision::Allow(_));
            prop_assert_eq!(allowed, viewer.sees(address_of(contract)), "{}", contract);
        }
    }

    /// R5, section 2.3: levels follow the table in every world.
    #[test]
    fn levels_agree_with_the_table(scenario in scenario(0..6), user in 0..USERS.len()) {
        let snapshot = scenario.world().snapshot();
        let viewer = viewer(&snapshot, USERS[user], &PolicySettings::SPEC);
        for wallet in WALLETS {
            prop_assert_eq!(viewer.sees(address_of(wallet)), scenario.owns(user, wallet), "{}", wallet);
        }
        for contract in CONTRACTS {
            prop_assert_eq!(viewer.sees(address_of(contract)), scenario.sees_contract(user, contract), "{}", contract);
            prop_assert_eq!(viewer.reaches(address_of(contract)), scenario.sees_contract(user, contract), "{}",
                contract);
        }
        prop_assert!(viewer.sees(Address::ZERO));
    }

    /// R18: a block lists exactly the transactions that the getter by hash shows, and the count is their number.
    #[test]
    fn r18_lists_and_getters_agree(scenario in scenario(0..6), user in 0..USERS.len()) {
        let snapshot = scenario.world().snapshot();
        let viewer = viewer(&snapshot, USERS[user], &PolicySettings::SPEC);
        let full_block = block(&scenario.transactions);
        let block_view: Value =
            serde_json::from_str(view::block(&viewer, BlockTransactions::Full, None,
                sealed(&full_block)).as_str()).unwrap();
        let by_hash: Vec<Value> = scenario
            .transactions
            .iter()
            .map(|tx| serde_json::from_str(view::transaction(&viewer, sealed(&transaction_json(tx))).as_str()).unwrap())
            .filter(|shown: &Value| !shown.is_null())
            .collect();
        prop_assert_eq!(&block_view["transactions"], &json!(by_hash));
        let count = view::block_transaction_count(&viewer, sealed(&full_block));
        prop_assert_eq!(count.as_str(), format!("\"0x{:x}\"", by_hash.len()));
    }
}
