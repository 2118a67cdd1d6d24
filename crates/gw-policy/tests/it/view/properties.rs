//! Properties of all answers to a viewer, in random worlds (spec/30 section 10).

use super::support::{
    filter, get_logs, is_contained_in, log, number, restricted_viewer, sealed, topic_is, transaction, transfer, viewer,
    word,
};
use alloy_primitives::{Address, B256, keccak256};
use gw_evm::TopicFilter;
use gw_policy::{
    PolicySettings, Snapshot, Viewer,
    snapshot::{Constraint, EventRule, ParamRule},
    testing::{World, address_of, hash_of, world},
    view::{self, BlockTransactions, LogsAnswer},
};
use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(super) const USERS: [&str; 5] = ["u0", "u1", "u2", "u3", "u4"];
pub(super) const WALLETS: [&str; 7] = ["w0", "w1", "w2", "w3", "w4", "s0", "s1"];
const GROUPS: [&str; 5] = ["a/admins", "a/staff", "a/own", "b/staff", "b/rest"];
pub(super) const CONTRACTS: [&str; 5] = ["a-token", "a-plain", "b-token", "b-multi", "nobody's"];

/// The random part of a world: memberships, owners of wallets, and the transactions of one block.
#[derive(Clone, Debug)]
pub(super) struct Scenario {
    members: Vec<Vec<&'static str>>,
    owners: Vec<Option<usize>>,
    pub(super) transactions: Vec<Tx>,
}

#[derive(Clone, Debug)]
pub(super) struct Tx {
    pub(super) name: String,
    pub(super) from: &'static str,
    pub(super) to: Option<&'static str>,
    mentions: &'static str,
    shared_with: Vec<usize>,
    logs: Vec<(&'static str, [&'static str; 3])>,
}

fn tx() -> impl Strategy<Value = Tx> {
    let wallet = || select(WALLETS.to_vec());
    let to = prop_oneof![
        wallet().prop_map(Some),
        select(CONTRACTS.to_vec()).prop_map(Some),
        Just(None)
    ];
    let entry = (select(CONTRACTS.to_vec()), [wallet(), wallet(), wallet()]);
    (
        wallet(),
        to,
        wallet(),
        prop::collection::vec(0..USERS.len(), 0..2),
        prop::collection::vec(entry, 0..4),
    )
        .prop_map(|(from, to, mentions, shared_with, logs)| Tx {
            name: String::new(),
            from,
            to,
            mentions,
            shared_with,
            logs,
        })
}

fn with_names(prefix: &str, mut transactions: Vec<Tx>) -> Vec<Tx> {
    for (index, tx) in transactions.iter_mut().enumerate() {
        tx.name = format!("{prefix}{index}");
    }
    transactions
}

pub(super) fn scenario() -> impl Strategy<Value = Scenario> {
    (
        prop::collection::vec(prop::collection::vec(select(GROUPS.to_vec()), 0..3), USERS.len()),
        prop::collection::vec(prop::option::of(0..USERS.len()), 5),
        prop::collection::vec(tx(), 0..6),
    )
        .prop_map(|(members, owners, transactions)| Scenario {
            members,
            owners,
            transactions: with_names("t", transactions),
        })
}

const TRANSFER: &str = r#"[{"type":"event","name":"Transfer","anonymous":false,"inputs":[
    {"name":"from","type":"address","indexed":true},{"name":"to","type":"address","indexed":true},
    {"name":"value","type":"uint256","indexed":false}]}]"#;

const MULTI: &str = r#"[{"type":"event","name":"Paid","anonymous":false,"inputs":[
    {"name":"who","type":"address","indexed":true},{"name":"pair","type":"address[2]","indexed":false}]}]"#;

impl Scenario {
    pub(super) fn world(&self) -> World {
        let own = |index| EventRule {
            topic0: transfer(),
            params: vec![ParamRule {
                index,
                must_be: Constraint::Own,
            }],
        };
        let mut world_builder = world()
            .org("a")
            .group("admins")
            .every_method()
            .org_admin()
            .group("staff")
            .every_method()
            .group("own")
            .every_method()
            .contract("a-token")
            .abi(TRANSFER)
            .grant("staff")
            .grant("own")
            .events([own(0), own(1)])
            .contract("a-plain")
            .grant("staff")
            .org("b")
            .group("staff")
            .every_method()
            .group("rest")
            .every_method()
            .contract("b-token")
            .abi(TRANSFER)
            .grant("staff")
            .contract("b-multi")
            .abi(MULTI)
            .grant("staff");
        for (user, groups) in USERS.iter().zip(&self.members) {
            world_builder = world_builder.user(user);
            world_builder = groups
                .iter()
                .fold(world_builder, |world_builder, group| world_builder.member(group));
        }
        for (wallet, owner) in WALLETS.iter().zip(&self.owners) {
            world_builder = owner.iter().fold(world_builder, |world_builder, owner| {
                world_builder.user(USERS[*owner]).link(wallet)
            });
        }
        for tx in self.transactions.iter().filter(|tx| !tx.shared_with.is_empty()) {
            let recipients: Vec<&str> = tx.shared_with.iter().map(|user| USERS[*user]).collect();
            world_builder = world_builder.user("u0").share(&tx.name, &recipients);
        }
        world_builder
    }

    fn owns(&self, user: usize, wallet: &str) -> bool {
        let index = WALLETS.iter().position(|name| *name == wallet);
        index.and_then(|index| self.owners.get(index).copied().flatten()) == Some(user)
    }

    fn is_in(&self, user: usize, group: &str) -> bool {
        self.members[user].contains(&group)
    }

    /// Whether the user sees the contract, according to the table of section 2.3.
    fn sees_contract(&self, user: usize, contract: &str) -> bool {
        match contract {
            "a-token" => ["a/admins", "a/staff", "a/own"]
                .iter()
                .any(|group| self.is_in(user, group)),
            "a-plain" => ["a/admins", "a/staff"].iter().any(|group| self.is_in(user, group)),
            "b-token" | "b-multi" => self.is_in(user, "b/staff"),
            _ => false,
        }
    }

    fn is_party(&self, user: usize, tx: &Tx) -> bool {
        self.owns(user, tx.from) || tx.to.is_some_and(|to| self.owns(user, to))
    }

    /// Whether any part of the transaction may be shown to the user.
    fn concerns(&self, user: usize, tx: &Tx) -> bool {
        let is_administered = |to: &str| to.starts_with("a-") && self.is_in(user, "a/admins");
        self.is_party(user, tx)
            || tx.shared_with.contains(&user)
            || tx.to.is_some_and(is_administered)
            || tx.logs.iter().any(|(emitter, _)| self.sees_contract(user, emitter))
    }

    /// The names of all addresses that may appear in answers to the user.
    fn readable(&self, user: usize) -> BTreeSet<&'static str> {
        let mut names: BTreeSet<&str> = WALLETS.into_iter().filter(|wallet| self.owns(user, wallet)).collect();
        names.extend(
            CONTRACTS
                .into_iter()
                .filter(|contract| self.sees_contract(user, contract)),
        );
        for tx in &self.transactions {
            let is_party = self.is_party(user, tx);
            if is_party || tx.shared_with.contains(&user) {
                names.extend([tx.from, tx.mentions].into_iter().chain(tx.to));
                names.extend(tx.logs.iter().map(|(emitter, _)| *emitter));
            }
            if is_party {
                names.extend(tx.logs.iter().flat_map(|(_, parties)| *parties));
            }
        }
        names
    }
}

impl Tx {
    pub(super) fn logs(&self) -> Vec<Value> {
        let entry = |(emitter, [first, second, third]): &(&str, [&str; 3])| match *emitter {
            // Data without an ABI is not modified [S]. It contains no address here.
            "a-plain" | "nobody's" => log(
                address_of(emitter),
                &self.name,
                &[keccak256("X()"), word(first), word(second)],
                &[7],
            ),
            "b-multi" => {
                let data = [word(second).0, word(third).0].concat();
                log(
                    address_of(emitter),
                    &self.name,
                    &[keccak256("Paid(address,address[2])"), word(first)],
                    &data,
                )
            }
            _ => log(
                address_of(emitter),
                &self.name,
                &[transfer(), word(first), word(second)],
                number(7).as_slice(),
            ),
        };
        self.logs.iter().map(entry).collect()
    }

    pub(super) fn transaction(&self) -> Value {
        let mut shown = transaction(&self.name, address_of(self.from), self.to.map(address_of));
        shown["input"] = json!(format!("0xa9059cbb{:x}", word(self.mentions)));
        shown["accessList"] = json!([{ "address": address_of(self.mentions), "storageKeys": [] }]);
        shown["publicKey"] = json!(word(self.from));
        shown
    }

    pub(super) fn receipt(&self) -> Value {
        json!({
            "blockHash": hash_of("block"), "blockNumber": "0x64", "contractAddress": null,
            "cumulativeGasUsed": "0xffff",
            "effectiveGasPrice": "0x7", "from": address_of(self.from), "gasUsed": "0x5208", "logs": self.logs(),
            "logsBloom": format!("0x{}", "a5".repeat(256)), "status": "0x1", "to": self.to.map(address_of),
            "transactionHash": hash_of(&self.name), "transactionIndex": "0x0", "type": "0x2",
            "feePayer": address_of(self.mentions),
        })
    }
}

fn block(transactions: &[Tx]) -> Value {
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
        "transactions": transactions.iter().map(Tx::transaction).collect::<Vec<_>>(),
    })
}

/// A node with these logs and transactions.
struct Node {
    logs: Vec<Value>,
    transactions: Vec<Value>,
}

impl Node {
    fn new(transactions: &[Tx]) -> Self {
        let logs = transactions.iter().flat_map(Tx::logs).collect();
        Self {
            logs,
            transactions: transactions.iter().map(Tx::transaction).collect(),
        }
    }

    fn get_logs(&self, viewer: &Viewer<'_>, emitters: &[&str], topics: Vec<TopicFilter>) -> LogsAnswer {
        get_logs(viewer, &filter(emitters, topics), &self.logs, &self.transactions)
    }
}

/// All answers to a viewer about the block, including the transactions and receipts of `by_hash`.
fn all_answers(snapshot: &Snapshot, user: &str, transactions: &[Tx], by_hash: &[Tx]) -> Vec<String> {
    all_answers_to(&viewer(snapshot, user, &PolicySettings::SPEC), transactions, by_hash)
}

fn all_answers_to(viewer: &Viewer<'_>, transactions: &[Tx], by_hash: &[Tx]) -> Vec<String> {
    let mut shown = Vec::new();
    for kind in [BlockTransactions::Full, BlockTransactions::Hashes] {
        shown.push(view::block(viewer, kind, None, sealed(&block(transactions))));
    }
    shown.push(view::block_transaction_count(viewer, sealed(&block(transactions))));
    let receipts: Vec<Value> = transactions.iter().map(Tx::receipt).collect();
    shown.push(view::block_receipts(viewer, sealed(&json!(receipts))));
    for tx in by_hash {
        shown.push(view::transaction(viewer, sealed(&tx.transaction())));
        shown.push(view::receipt(viewer, sealed(&tx.receipt())));
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
    fn i2_no_answer_contains_a_hidden_address(scenario in scenario(), user in 0..USERS.len()) {
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
        scenario in scenario(),
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
        scenario in scenario(),
        user in 0..USERS.len(),
        additions in prop::collection::vec((tx(), any::<prop::sample::Index>()), 1..5),
    ) {
        let snapshot = scenario.world().snapshot();
        let before = all_answers(&snapshot, USERS[user], &scenario.transactions, &scenario.transactions);

        let (hidden, positions): (Vec<Tx>, Vec<_>) = additions.into_iter().unzip();
        let mut extended = scenario.clone();
        for (tx, position) in with_names("hidden", hidden).into_iter().zip(positions) {
            if !scenario.concerns(user, &tx) {
                extended.transactions.insert(position.index(extended.transactions.len() + 1), tx);
            }
        }
        let after = extended.world().org("c").group("c").contract("s0").user("newcomer").member("c").link("s1");
        let after = after.snapshot();
        let shown = all_answers(&after, USERS[user], &extended.transactions, &scenario.transactions);
        prop_assert_eq!(before, shown);
    }

    /// I10, HD1: a query with a hidden address and a query with a random address have the same upstream filter and
    /// the same answer.
    #[test]
    fn i10_a_query_reveals_nothing_about_a_hidden_address(
        scenario in scenario(),
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
    fn i1_calls_are_allowed_if_the_contract_has_level_full(scenario in scenario(), user in 0..USERS.len()) {
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
    fn levels_agree_with_the_table(scenario in scenario(), user in 0..USERS.len()) {
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
    fn r18_lists_and_getters_agree(scenario in scenario(), user in 0..USERS.len()) {
        let snapshot = scenario.world().snapshot();
        let viewer = viewer(&snapshot, USERS[user], &PolicySettings::SPEC);
        let full_block = block(&scenario.transactions);
        let block_view: Value =
            serde_json::from_str(view::block(&viewer, BlockTransactions::Full, None,
                sealed(&full_block)).as_str()).unwrap();
        let by_hash: Vec<Value> = scenario
            .transactions
            .iter()
            .map(|tx| serde_json::from_str(view::transaction(&viewer, sealed(&tx.transaction())).as_str()).unwrap())
            .filter(|shown: &Value| !shown.is_null())
            .collect();
        prop_assert_eq!(&block_view["transactions"], &json!(by_hash));
        let count = view::block_transaction_count(&viewer, sealed(&full_block));
        prop_assert_eq!(count.as_str(), format!("\"0x{:x}\"", by_hash.len()));
    }
}
