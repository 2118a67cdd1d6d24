//! Balances, holders and supplies.

use crate::{
    chain::{ChainMaker, TRANSFER},
    world::{TestCaller, World},
};
use gw_chain_store::{
    BlockData, Reading,
    rows::{Log, TokenStandard, TokenTransfer, TransactionData},
};
use gw_explorer::TokenQuery;
use gw_policy::{
    PolicySettings, Snapshot,
    snapshot::AccountChange,
    testing::{address_of, world},
};
use gw_types::{Address, B256, Level, U256};
use http::StatusCode;

const ALICE: TestCaller = TestCaller::User("alice");
const HOLDERS: [&str; 4] = ["alice-w", "vault", "pool", "s0"];

fn policy(is_withheld: Option<B256>) -> Snapshot {
    let mut built = world()
        .org("bank")
        .org("a")
        .group("staff")
        .user("alice")
        .member("a/staff")
        .link("alice-w")
        .user("carol")
        .org("a")
        .contract("a-token")
        .grant("staff")
        .contract("vault")
        .grant("staff")
        .contract("pool")
        .grant("staff");
    if let Some(hash) = is_withheld {
        let slots = [(B256::with_last_byte(1), (B256::ZERO, B256::with_last_byte(2)))].into();
        let of_token = AccountChange {
            slots,
            ..AccountChange::default()
        };
        let of_wallet = AccountChange {
            balance: Some((U256::from(70), U256::from(60))),
            ..AccountChange::default()
        };
        built = built
            .convicted(hash, "carol")
            .withheld(address_of("a-token"), 2, of_token)
            .withheld(address_of("alice-w"), 2, of_wallet);
    }
    built.snapshot()
}

fn path(kind: &str, name: &str) -> String {
    format!("/{kind}/0x{}", hex::encode(address_of(name)))
}

/// A transaction of `s0` to the token, with one transfer.
fn transfer(data: &TransactionData, from: Address, to: Address) -> TransactionData {
    let token = address_of("a-token");
    let mut data = data.clone();
    data.transaction.from = address_of("s0");
    data.transaction.to = Some(token);
    data.transaction.created_contract = None;
    data.frames.clear();
    data.logs = vec![Log {
        index: 0,
        address: token,
        topics: vec![TRANSFER.parse().unwrap(), from.into_word(), to.into_word()],
        data: vec![0; 32].into(),
    }];
    data.transfers = vec![TokenTransfer {
        log_index: 0,
        batch_position: 0,
        token,
        from,
        to,
        value: U256::ONE,
        token_id: None,
        standard: TokenStandard::Erc20,
    }];
    data
}

/// Two blocks. The first mints for all holders but `pool`; the second moves tokens of `alice-w` to `pool`.
fn chain() -> Vec<BlockData> {
    let maker = ChainMaker::new(81);
    let mut chain = maker.blocks(1, B256::ZERO, 2);
    let data = |block: &BlockData, byte: u8| {
        let mut data = block.transactions[0].clone();
        data.transaction.hash = B256::repeat_byte(byte);
        data
    };
    let minted = (1..).zip(["alice-w", "vault", "s0"]);
    let mints: Vec<_> = minted
        .map(|(byte, name)| transfer(&data(&chain[0], byte), Address::ZERO, address_of(name)))
        .collect();
    let moved = transfer(&data(&chain[1], 9), address_of("alice-w"), address_of("pool"));
    chain[0].transactions = mints;
    chain[1].transactions = vec![moved];
    chain
}

async fn read(world: &World, block: usize, balances: [u64; 4], supply: u64, wei: u64) {
    let token = address_of("a-token");
    let mut readings = vec![
        Reading::TokenSupply {
            token,
            supply: Some(U256::from(supply)),
        },
        Reading::Balance {
            address: address_of("alice-w"),
            balance: U256::from(wei),
        },
    ];
    for (name, balance) in HOLDERS.iter().zip(balances) {
        readings.push(Reading::TokenBalance {
            token,
            holder: address_of(name),
            token_id: None,
            balance: U256::from(balance),
        });
    }
    let at = world.chain[block].block.num_hash();
    world.writer.set_readings(at, &readings, &[]).await.unwrap();
}

/// spec/30 section 9: holders are those that the viewer sees, the largest first, with their share of the supply.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holders_are_ordered_by_balance_and_have_their_percentage() {
    let mut explorer = World::with(policy(None), PolicySettings::SPEC).await;
    explorer.append(chain()).await;
    explorer.follow().await;
    read(&explorer, 1, [500, 300, 300, 1000], 3000, 60).await;
    let printed = |name: &str| format!("0x{}", hex::encode(address_of(name)));
    let mut equal = [printed("vault"), printed("pool")];
    equal.sort();
    equal.reverse();
    let list = explorer
        .get(ALICE, &format!("{}/holders", path("tokens", "a-token")))
        .await
        .json();
    assert_eq!(list["total"], 3, "{list}");
    let rows: Vec<_> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let text = |member: &str| row[member].as_str().unwrap().to_owned();
            (text("address"), text("balance"), row["percentage"].as_f64().unwrap())
        })
        .collect();
    let [first, second] = equal;
    let expected = [
        (printed("alice-w"), "500".to_owned(), 16.66),
        (first, "300".to_owned(), 10.0),
        (second, "300".to_owned(), 10.0),
    ];
    assert_eq!(rows, expected);
    let second = explorer
        .get(
            ALICE,
            &format!("{}/holders?limit=1&offset=1", path("tokens", "a-token")),
        )
        .await
        .json();
    assert_eq!(second["data"][0], list["data"][1]);
    let token = explorer.get(ALICE, &path("tokens", "a-token")).await.json();
    assert_eq!(
        (token["holderCount"].as_u64(), token["totalSupply"].as_str()),
        (Some(3), Some("3000"))
    );
    let balances = explorer
        .get(ALICE, &format!("{}/balances", path("addresses", "alice-w")))
        .await
        .json();
    assert_eq!(balances[0]["balance"], "500");
    assert_eq!(balances[0]["tokenAddress"], printed("a-token"));
    assert_eq!(balances[0]["blockNumber"], 2);
    // Without a supply there is no share.
    let unknown = Reading::TokenSupply {
        token: address_of("a-token"),
        supply: None,
    };
    let at = explorer.chain[1].block.num_hash();
    explorer.writer.set_readings(at, &[unknown], &[]).await.unwrap();
    let list = explorer
        .get(ALICE, &format!("{}/holders", path("tokens", "a-token")))
        .await
        .json();
    assert_eq!(list["data"][0]["percentage"], 0.0);
}

/// spec/40 section 5: the holders of an ERC-1155 token have a row per token id, which carries it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holders_of_an_nft_carry_its_token_id() {
    let mut explorer = World::with(policy(None), PolicySettings::SPEC).await;
    let mut blocks = chain();
    for (data, id) in blocks[0].transactions.iter_mut().zip([7_u64, 8, 9]) {
        data.transfers[0].standard = TokenStandard::Erc1155;
        data.transfers[0].token_id = Some(U256::from(id));
    }
    blocks.truncate(1);
    explorer.append(blocks).await;
    explorer.follow().await;
    let reading = |name: &str, id: u64| Reading::TokenBalance {
        token: address_of("a-token"),
        holder: address_of(name),
        token_id: Some(U256::from(id)),
        balance: U256::from(id * 10),
    };
    let at = explorer.chain[0].block.num_hash();
    let readings = [
        reading("alice-w", 7),
        reading("alice-w", 8),
        reading("vault", 8),
        reading("s0", 9),
    ];
    explorer.writer.set_readings(at, &readings, &[]).await.unwrap();
    let list = explorer
        .get(ALICE, &format!("{}/holders", path("tokens", "a-token")))
        .await
        .json();
    let mut ids: Vec<_> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["address"].as_str().unwrap(), row["tokenId"].as_str().unwrap()))
        .collect();
    ids.sort_unstable();
    let (alice, vault) = (hex::encode(address_of("alice-w")), hex::encode(address_of("vault")));
    let (alice, vault) = (format!("0x{alice}"), format!("0x{vault}"));
    let mut expected = [(alice.as_str(), "7"), (alice.as_str(), "8"), (vault.as_str(), "8")];
    expected.sort_unstable();
    assert_eq!(ids, expected, "{list}");
}

/// HD28: no number tells of a withheld transaction. The answers are those of a chain without it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd28_numbers_are_those_of_a_chain_without_the_withheld_transaction() {
    let whole = chain();
    let withheld = whole[1].transactions[0].transaction.hash;
    let mut without = whole.clone();
    without[1].transactions.clear();
    let mut with = World::with(policy(Some(withheld)), PolicySettings::SPEC).await;
    with.append(whole).await;
    with.follow().await;
    // The real state: 100 of 500 moved to `pool`, and the supply changed.
    read(&with, 1, [400, 300, 100, 1000], 2900, 60).await;
    let mut reduced = World::with(policy(None), PolicySettings::SPEC).await;
    reduced.append(without).await;
    reduced.follow().await;
    read(&reduced, 0, [500, 300, 0, 1000], 3000, 70).await;
    let paths: Vec<String> = HOLDERS
        .iter()
        .flat_map(|name| ["balances", "balance", "stats"].map(|rest| format!("{}/{rest}", path("addresses", name))))
        .chain(["", "/holders", "/transfers"].map(|rest| format!("{}{rest}", path("tokens", "a-token"))))
        .chain(["/tokens".to_owned(), "/stats".to_owned(), "/accounts".to_owned()])
        .collect();
    let away = with.get(ALICE, &format!("{}/holders", path("tokens", "a-token"))).await;
    assert_eq!(
        away.status,
        StatusCode::SERVICE_UNAVAILABLE,
        "never the stored number: {}",
        away.text
    );
    let token = address_of("a-token");
    let balance = |name: &str, amount: u64| {
        let query = TokenQuery::Balance {
            holder: address_of(name),
            token_id: None,
        };
        ((token, query), U256::from(amount))
    };
    let visible = [
        balance("alice-w", 500),
        balance("vault", 300),
        balance("pool", 0),
        ((token, TokenQuery::Supply), U256::from(3000)),
    ];
    *with.node.tokens.lock().unwrap() = Some(visible.into());
    for path in paths {
        let (one, other) = (with.get(ALICE, &path).await, reduced.get(ALICE, &path).await);
        assert_eq!(one, other, "{path}");
    }
    let holders = with
        .get(ALICE, &format!("{}/holders", path("tokens", "a-token")))
        .await
        .json();
    assert_eq!(holders["total"], 2, "{holders}");
}

/// X12: a balance that a block changed is read from the node until the indexer has read it, and never the stored one of
/// an earlier block.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x12_a_changed_balance_is_read_from_the_node_until_the_indexer_has_read_it() {
    let mut explorer = World::with(policy(None), PolicySettings::SPEC).await;
    let mut blocks = chain();
    let mut last = vec![blocks.pop().unwrap()];
    last[0].transactions[0].transaction.from = address_of("alice-w");
    explorer.append(blocks).await;
    read(&explorer, 0, [500, 300, 0, 1000], 3000, 60).await;
    explorer.append_unread(last).await;
    explorer.follow().await;
    let (balances, holders) = (
        format!("{}/balances", path("addresses", "alice-w")),
        format!("{}/holders", path("tokens", "a-token")),
    );
    let wei = format!("{}/balance", path("addresses", "alice-w"));
    // Without the node the amount is not known; a count goes on with what is stored.
    for path in [&balances, &holders] {
        assert_eq!(
            explorer.get(ALICE, path).await.status,
            StatusCode::SERVICE_UNAVAILABLE,
            "{path}"
        );
    }
    let token = explorer.get(ALICE, &path("tokens", "a-token")).await.json();
    assert_eq!(token["holderCount"], 2, "{token}");
    let balance = |name: &str, amount: u64| {
        let query = TokenQuery::Balance {
            holder: address_of(name),
            token_id: None,
        };
        ((address_of("a-token"), query), U256::from(amount))
    };
    // `pool` has no stored balance at all.
    let at_node = [balance("alice-w", 450), balance("pool", 50)];
    *explorer.node.tokens.lock().unwrap() = Some(at_node.into());
    assert_eq!(explorer.get(ALICE, &balances).await.json()[0]["balance"], "450");
    let list = explorer.get(ALICE, &holders).await.json();
    let amounts: Vec<_> = list["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["balance"])
        .collect();
    assert_eq!(amounts, ["450", "300", "50"], "{list}");
    assert_eq!(explorer.get(ALICE, &wei).await.json(), "0x4d", "of the node");
    explorer.append(Vec::new()).await;
    read(&explorer, 1, [451, 300, 49, 1000], 3000, 61).await;
    assert_eq!(explorer.get(ALICE, &balances).await.json()[0]["balance"], "451");
    assert_eq!(explorer.get(ALICE, &wei).await.json(), "0x3d");
}

/// The calldata of the questions to tokens.
#[test]
fn questions_to_tokens_have_the_calldata_of_their_standards() {
    let holder = Address::repeat_byte(7);
    let query = |token_id| TokenQuery::Balance { holder, token_id };
    let one = query(None).input();
    assert_eq!((one.len(), &one[..4]), (36, &[0x70, 0xa0, 0x82, 0x31][..]));
    let two = query(Some(U256::from(5))).input();
    assert_eq!((two.len(), &two[..4], two[67]), (68, &[0x00, 0xfd, 0xd5, 0x8e][..], 5));
    assert_eq!(TokenQuery::Supply.input(), [0x18, 0x16, 0x0d, 0xdd]);
    assert_eq!(
        TokenQuery::output(&U256::from(9).to_be_bytes::<32>()),
        Some(U256::from(9))
    );
    assert_eq!(TokenQuery::output(&[9]), None);
}

/// The rows of a list of holders: what is printed, and the balance.
fn holder_rows(list: &serde_json::Value) -> Vec<(String, String)> {
    let rows = list["data"].as_array().unwrap().iter();
    rows.map(|row| {
        (
            row["address"].as_str().unwrap().to_owned(),
            row["balance"].as_str().unwrap().to_owned(),
        )
    })
    .collect()
}

/// HD8: holders whose balances a pseudonymous grant hides stand after the others, in an order that depends on neither
/// their balances nor their addresses; their number of ids is hidden, too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd8_the_place_of_a_holder_tells_nothing_about_a_hidden_balance() {
    const OWN: [&str; 3] = ["dora-w1", "dora-w2", "dora-w3"];
    let mut built = world()
        .org("a")
        .group("staff")
        .user("alice")
        .member("a/staff")
        .link("alice-w")
        .contract("a-token")
        .grant("staff")
        .org("b")
        .user("dora");
    for wallet in OWN {
        built = built.link(wallet);
    }
    let built = built.org("a").user("dora").disclosed_to("alice", Level::Pseudonymous);
    let policy = built.snapshot();
    let mut explorer = World::with(policy, PolicySettings::SPEC).await;
    let mut blocks = ChainMaker::new(82).blocks(1, B256::ZERO, 1);
    let minted = (1..).zip(["alice-w"].iter().chain(&OWN));
    let transactions = minted.map(|(byte, name)| {
        let mut data = blocks[0].transactions[0].clone();
        data.transaction.hash = B256::repeat_byte(byte);
        transfer(&data, Address::ZERO, address_of(name))
    });
    blocks[0].transactions = transactions.collect();
    explorer.append(blocks).await;
    explorer.follow().await;
    let at = explorer.chain[0].block.num_hash();
    let path = format!("{}/holders", path("tokens", "a-token"));
    let mut lists = Vec::new();
    for (balances, ids) in [
        ([500, 1, 2, 3], 1),
        ([500, 3, 2, 1], 1),
        ([500, 900, 1, 500], 1),
        ([500, 5, 7, 6], 3),
    ] {
        let mut readings = Vec::new();
        for (name, balance) in ["alice-w"].iter().chain(&OWN).zip(balances) {
            // A token with ids; only those that the owner holds beyond the first differ.
            for id in 1..=3_u64 {
                let is_held = id == 1 || (id <= ids && *name != "alice-w");
                readings.push(Reading::TokenBalance {
                    token: address_of("a-token"),
                    holder: address_of(name),
                    token_id: Some(U256::from(id)),
                    balance: if is_held { U256::from(balance) } else { U256::ZERO },
                });
            }
        }
        explorer.writer.set_readings(at, &readings, &[]).await.unwrap();
        lists.push(explorer.get(ALICE, &path).await.json());
    }
    for list in &lists {
        assert_eq!(list, &lists[0], "only hidden balances differ");
    }
    assert_eq!(lists[0]["total"], 4, "{}", lists[0]);
    let rows = holder_rows(&lists[0]);
    assert_eq!(
        rows[0],
        (format!("0x{}", hex::encode(address_of("alice-w"))), "500".to_owned())
    );
    let hidden: Vec<&str> = rows[1..].iter().map(|(address, _)| address.as_str()).collect();
    assert!(hidden.iter().all(|name| name.starts_with("Address-")), "{hidden:?}");
    assert!(
        hidden.is_sorted_by(|left, right| left > right),
        "by their aliases: {hidden:?}"
    );
    assert!(rows[1..].iter().all(|(_, balance)| balance.is_empty()));
    // A page at a time gives the same rows.
    let (mut paged, mut next) = (Vec::new(), format!("{path}?limit=1"));
    loop {
        let page = explorer.get(ALICE, &next).await.json();
        paged.extend(holder_rows(&page));
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        next = format!("{path}?limit=1&cursor={cursor}");
    }
    assert_eq!(paged, rows);
}
