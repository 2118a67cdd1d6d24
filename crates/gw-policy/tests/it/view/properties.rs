//! Promises about everything a viewer gets, over random worlds (spec/30 section 10).

use super::support::{beside, filter, get_logs, log, number, one, sealed, transaction, transfer, viewer, within, word};
use alloy_primitives::{Address, B256, keccak256};
use gw_evm::TopicFilter;
use gw_policy::{
    Knobs, Snapshot, Viewer,
    snapshot::{EventRule, MustBe, ParamRule},
    testing::{World, address_of, hash_of, world},
    view::{self, BlockTransactions, LogsAnswer},
};
use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const USERS: [&str; 5] = ["u0", "u1", "u2", "u3", "u4"];
const WALLETS: [&str; 7] = ["w0", "w1", "w2", "w3", "w4", "s0", "s1"];
const GROUPS: [&str; 5] = ["a/admins", "a/staff", "a/own", "b/staff", "b/rest"];
const CONTRACTS: [&str; 5] = ["a-token", "a-plain", "b-token", "b-multi", "nobody's"];

/// What is random about a world: who is in which groups, whose a wallet is, and the transactions of one block.
#[derive(Clone, Debug)]
struct Scene {
    members: Vec<Vec<&'static str>>,
    owners: Vec<Option<usize>>,
    transactions: Vec<Tx>,
}

#[derive(Clone, Debug)]
struct Tx {
    name: String,
    from: &'static str,
    to: Option<&'static str>,
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

fn named(prefix: &str, mut transactions: Vec<Tx>) -> Vec<Tx> {
    for (index, tx) in transactions.iter_mut().enumerate() {
        tx.name = format!("{prefix}{index}");
    }
    transactions
}

fn scene() -> impl Strategy<Value = Scene> {
    (
        prop::collection::vec(prop::collection::vec(select(GROUPS.to_vec()), 0..3), USERS.len()),
        prop::collection::vec(prop::option::of(0..USERS.len()), 5),
        prop::collection::vec(tx(), 0..6),
    )
        .prop_map(|(members, owners, transactions)| Scene {
            members,
            owners,
            transactions: named("t", transactions),
        })
}

const TRANSFER: &str = r#"[{"type":"event","name":"Transfer","anonymous":false,"inputs":[
    {"name":"from","type":"address","indexed":true},{"name":"to","type":"address","indexed":true},
    {"name":"value","type":"uint256","indexed":false}]}]"#;

const MULTI: &str = r#"[{"type":"event","name":"Paid","anonymous":false,"inputs":[
    {"name":"who","type":"address","indexed":true},{"name":"pair","type":"address[2]","indexed":false}]}]"#;

impl Scene {
    fn world(&self) -> World {
        let own = |index| EventRule {
            topic0: transfer(),
            params: vec![ParamRule {
                index,
                must_be: MustBe::Own,
            }],
        };
        let mut made = world()
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
            made = made.user(user);
            made = groups.iter().fold(made, |made, group| made.member(group));
        }
        for (wallet, owner) in WALLETS.iter().zip(&self.owners) {
            made = owner
                .iter()
                .fold(made, |made, owner| made.user(USERS[*owner]).link(wallet));
        }
        for tx in self.transactions.iter().filter(|tx| !tx.shared_with.is_empty()) {
            let with: Vec<&str> = tx.shared_with.iter().map(|user| USERS[*user]).collect();
            made = made.user("u0").share(&tx.name, &with);
        }
        made
    }

    fn owns(&self, user: usize, wallet: &str) -> bool {
        let place = WALLETS.iter().position(|name| *name == wallet);
        place.and_then(|place| self.owners.get(place).copied().flatten()) == Some(user)
    }

    fn is_in(&self, user: usize, group: &str) -> bool {
        self.members[user].contains(&group)
    }

    /// Whether the user sees the contract, told from the table of section 2.3.
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

    /// Whether anything of the transaction may reach the user.
    fn concerns(&self, user: usize, tx: &Tx) -> bool {
        let administered = |to: &str| to.starts_with("a-") && self.is_in(user, "a/admins");
        self.is_party(user, tx)
            || tx.shared_with.contains(&user)
            || tx.to.is_some_and(administered)
            || tx.logs.iter().any(|(emitter, _)| self.sees_contract(user, emitter))
    }

    /// The names a user may read anywhere in the answers.
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
    fn logs(&self) -> Vec<Value> {
        let entry = |(emitter, [one, two, three]): &(&str, [&str; 3])| match *emitter {
            // Data without an ABI passes unmodified [S]: it holds no address here.
            "a-plain" | "nobody's" => log(
                address_of(emitter),
                &self.name,
                &[keccak256("X()"), word(one), word(two)],
                &[7],
            ),
            "b-multi" => {
                let data = [word(two).0, word(three).0].concat();
                log(
                    address_of(emitter),
                    &self.name,
                    &[keccak256("Paid(address,address[2])"), word(one)],
                    &data,
                )
            }
            _ => log(
                address_of(emitter),
                &self.name,
                &[transfer(), word(one), word(two)],
                number(7).as_slice(),
            ),
        };
        self.logs.iter().map(entry).collect()
    }

    fn transaction(&self) -> Value {
        let mut shown = transaction(&self.name, address_of(self.from), self.to.map(address_of));
        shown["input"] = json!(format!("0xa9059cbb{:x}", word(self.mentions)));
        shown["accessList"] = json!([{ "address": address_of(self.mentions), "storageKeys": [] }]);
        shown["publicKey"] = json!(word(self.from));
        shown
    }

    fn receipt(&self) -> Value {
        json!({
            "blockHash": hash_of("block"), "blockNumber": "0x64", "contractAddress": null, "cumulativeGasUsed": "0xffff",
            "effectiveGasPrice": "0x7", "from": address_of(self.from), "gasUsed": "0x5208", "logs": self.logs(),
            "logsBloom": format!("0x{}", "a5".repeat(256)), "status": "0x1", "to": self.to.map(address_of),
            "transactionHash": hash_of(&self.name), "transactionIndex": "0x0", "type": "0x2",
            "feePayer": address_of(self.mentions),
        })
    }
}

fn block(transactions: &[Tx]) -> Value {
    // What sums up all transactions depends on them; decision 34 lets head number and time, base fee and own positions
    // do so.
    let sum = |what: &str| {
        keccak256(format!(
            "{what}{:?}",
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

/// The node's logs and transactions, for any number of queries.
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

/// Everything a viewer can ask about the block; the receipts and transactions of `asked` by hash.
fn everything(snapshot: &Snapshot, user: &str, transactions: &[Tx], asked: &[Tx]) -> Vec<String> {
    everything_to(&viewer(snapshot, user, &Knobs::SPEC), transactions, asked)
}

fn everything_to(viewer: &Viewer<'_>, transactions: &[Tx], asked: &[Tx]) -> Vec<String> {
    let mut shown = Vec::new();
    for kind in [BlockTransactions::Full, BlockTransactions::Hashes] {
        shown.push(view::block(viewer, kind, None, sealed(&block(transactions))));
    }
    shown.push(view::block_transaction_count(viewer, sealed(&block(transactions))));
    let receipts: Vec<Value> = transactions.iter().map(Tx::receipt).collect();
    shown.push(view::block_receipts(viewer, sealed(&json!(receipts))));
    for tx in asked {
        shown.push(view::transaction(viewer, sealed(&tx.transaction())));
        shown.push(view::receipt(viewer, sealed(&tx.receipt())));
    }
    assert!(
        shown.iter().all(|shown| !shown.is_malformed()),
        "the test's node is a proper one"
    );
    let mut texts: Vec<String> = shown.into_iter().map(|shown| shown.into_string()).collect();
    let node = Node::new(transactions);
    for emitter in CONTRACTS {
        texts.push(rows_or_refusal(node.get_logs(viewer, &[emitter], vec![])));
    }
    for topics in [vec![one(transfer())], vec![TopicFilter::Any, one(B256::ZERO)]] {
        texts.push(rows_or_refusal(node.get_logs(viewer, &["a-token", "b-multi"], topics)));
    }
    texts
}

/// What the viewer reads of a log query that is refused.
const REFUSED: &str = "not permitted";

fn rows_or_refusal(answer: LogsAnswer) -> String {
    match answer {
        LogsAnswer::Rows(rows, count) => {
            let text = rows.into_string();
            let rows: Vec<Value> = serde_json::from_str(&text).expect("rows are a list");
            assert_eq!(rows.len(), count, "{text}");
            text
        }
        LogsAnswer::NotPermitted => REFUSED.to_owned(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// I2: no answer holds, in value or key, an address whose level is not Full and that nothing reveals.
    #[test]
    fn i2_no_answer_names_a_hidden_address(scene in scene(), user in 0..USERS.len()) {
        let snapshot = scene.world().snapshot();
        let readable = scene.readable(user);
        let texts = everything(&snapshot, USERS[user], &scene.transactions, &scene.transactions);
        for name in WALLETS.iter().chain(&CONTRACTS).filter(|name| !readable.contains(*name)) {
            let canary = format!("{:x}", address_of(name));
            for text in &texts {
                prop_assert!(!text.to_lowercase().contains(&canary), "{name} in {text}");
            }
        }
        let nobody = everything(&snapshot, "nobody", &scene.transactions, &scene.transactions).join("");
        for name in WALLETS.iter().chain(&CONTRACTS) {
            prop_assert!(!nobody.contains(&format!("{:x}", address_of(name))), "{name}");
        }
    }

    /// I9, HD7, R9: what shows of somebody's view to who looks over their shoulder is contained in that view, and in their own,
    /// never the union of both.
    #[test]
    fn i9_hd7_what_both_see_is_what_each_of_them_sees(
        scene in scene(),
        user in 0..USERS.len(),
        operator in 0..USERS.len(),
        knobs in select(vec![Knobs::SPEC, Knobs::STRICT]),
    ) {
        let snapshot = scene.world().snapshot();
        let (own, other) = (viewer(&snapshot, USERS[user], &knobs), viewer(&snapshot, USERS[operator], &knobs));
        let both = beside(&snapshot, USERS[user], USERS[operator], &knobs);
        for name in WALLETS.iter().chain(&CONTRACTS) {
            let address = address_of(name);
            prop_assert_eq!(both.level(address).0, own.level(address).0.min(other.level(address).0), "{}", name);
        }
        let look = |viewer| everything_to(viewer, &scene.transactions, &scene.transactions);
        let value = |text: &str| {
            // A refusal shows nothing.
            let text = if text == REFUSED { "null" } else { text };
            serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{error}: {text}"))
        };
        for (index, ((both, own), other)) in look(&both).iter().zip(look(&own)).zip(look(&other)).enumerate() {
            // The count of a block.
            if index == 2 {
                continue;
            }
            prop_assert!(within(&value(both), &value(&own)), "{both}\nis not in the target's\n{own}");
            // HD40: nor does anything say that it is there.
            prop_assert!(within(&value(both), &value(&other)), "{both}\nis not in the operator's\n{other}");
        }
        let (mine, theirs) = (scene.readable(user), scene.readable(operator));
        for name in WALLETS.iter().chain(&CONTRACTS).filter(|name| !(mine.contains(*name) && theirs.contains(*name))) {
            let canary = format!("{:x}", address_of(name));
            prop_assert!(!look(&both).join("").to_lowercase().contains(&canary), "{name}");
        }
        // Whoever looks over their own shoulder sees what they see.
        let alone = beside(&snapshot, USERS[user], USERS[user], &knobs);
        prop_assert_eq!(look(&alone), look(&own));
    }

    /// I5, decision 34: transactions that do not concern a viewer, wherever they stand in the block, and what others link,
    /// register and share, change no byte of any answer.
    #[test]
    fn i5_hidden_rows_change_no_byte(
        scene in scene(),
        user in 0..USERS.len(),
        more in prop::collection::vec((tx(), any::<prop::sample::Index>()), 1..5),
    ) {
        let snapshot = scene.world().snapshot();
        let before = everything(&snapshot, USERS[user], &scene.transactions, &scene.transactions);

        let (hidden, places): (Vec<Tx>, Vec<_>) = more.into_iter().unzip();
        let mut grown = scene.clone();
        for (tx, place) in named("hidden", hidden).into_iter().zip(places) {
            if !scene.concerns(user, &tx) {
                grown.transactions.insert(place.index(grown.transactions.len() + 1), tx);
            }
        }
        let after = grown.world().org("c").group("c").contract("s0").user("newcomer").member("c").link("s1").snapshot();
        let shown = everything(&after, USERS[user], &grown.transactions, &scene.transactions);
        prop_assert_eq!(before, shown);
    }

    /// I10, HD1: a query naming a hidden address is, upstream and in its answer, the same as one naming a random address.
    #[test]
    fn i10_a_query_tells_nothing_about_a_hidden_address(
        scene in scene(),
        user in 0..USERS.len(),
        hidden in select(WALLETS.to_vec()),
        position in 1..4usize,
        emitters in prop::sample::subsequence(CONTRACTS.to_vec(), 1..4),
    ) {
        prop_assume!(!scene.readable(user).contains(hidden));
        let snapshot = scene.world().snapshot();
        let viewer = viewer(&snapshot, USERS[user], &Knobs::SPEC);
        let naming = |name: &str| {
            let mut topics = vec![TopicFilter::Any; position];
            topics.push(TopicFilter::OneOf(vec![word(name), word("another")]));
            topics
        };
        let asked = |name| filter(&emitters, naming(name));
        let upstream = view::upstream_filter(&viewer, &asked(hidden));
        prop_assert_eq!(&upstream, &view::upstream_filter(&viewer, &asked("random")));
        let node = Node::new(&scene.transactions);
        let answer = super::support::node_logs(&node.logs, &upstream);
        prop_assert_eq!(
            view::parties_needed(&viewer, &asked(hidden), &sealed(&answer)),
            view::parties_needed(&viewer, &asked("random"), &sealed(&answer)),
            "nor is the node asked more"
        );
        prop_assert_eq!(
            node.get_logs(&viewer, &emitters, naming(hidden)),
            node.get_logs(&viewer, &emitters, naming("random"))
        );
        prop_assert_eq!(
            view::balance(&viewer, address_of(hidden), 100, sealed(&json!("0x5"))),
            view::balance(&viewer, address_of("random"), 100, sealed(&json!("0x7")))
        );
    }

    /// I1, T1: a call to a contract is allowed exactly where the contract is Full.
    #[test]
    fn i1_calls_are_allowed_where_the_contract_is_full(scene in scene(), user in 0..USERS.len()) {
        let snapshot = scene.world().snapshot();
        let viewer = viewer(&snapshot, USERS[user], &Knobs::SPEC);
        for contract in CONTRACTS {
            let decision = super::chain::decide_call(&snapshot, USERS[user], contract);
            let allowed = matches!(decision, gw_policy::access::Decision::Allow(_));
            prop_assert_eq!(allowed, viewer.sees(address_of(contract)), "{}", contract);
        }
    }

    /// R5, section 2.3: levels are what the table says, whatever else the world holds.
    #[test]
    fn levels_agree_with_the_table(scene in scene(), user in 0..USERS.len()) {
        let snapshot = scene.world().snapshot();
        let viewer = viewer(&snapshot, USERS[user], &Knobs::SPEC);
        for wallet in WALLETS {
            prop_assert_eq!(viewer.sees(address_of(wallet)), scene.owns(user, wallet), "{}", wallet);
        }
        for contract in CONTRACTS {
            prop_assert_eq!(viewer.sees(address_of(contract)), scene.sees_contract(user, contract), "{}", contract);
            prop_assert_eq!(viewer.reaches(address_of(contract)), scene.sees_contract(user, contract), "{}", contract);
        }
        prop_assert!(viewer.sees(Address::ZERO));
    }

    /// R18: what a block lists, the getter by hash gives, and the count counts.
    #[test]
    fn r18_lists_and_getters_agree(scene in scene(), user in 0..USERS.len()) {
        let snapshot = scene.world().snapshot();
        let viewer = viewer(&snapshot, USERS[user], &Knobs::SPEC);
        let whole = block(&scene.transactions);
        let listed: Value =
            serde_json::from_str(view::block(&viewer, BlockTransactions::Full, None, sealed(&whole)).as_str()).unwrap();
        let got: Vec<Value> = scene
            .transactions
            .iter()
            .map(|tx| serde_json::from_str(view::transaction(&viewer, sealed(&tx.transaction())).as_str()).unwrap())
            .filter(|shown: &Value| !shown.is_null())
            .collect();
        prop_assert_eq!(&listed["transactions"], &json!(got));
        let count = view::block_transaction_count(&viewer, sealed(&whole));
        prop_assert_eq!(count.as_str(), format!("\"0x{:x}\"", got.len()));
    }
}
