//! Who took part in a transaction is read once for all callers, and evaluated for each call anew (decision 20).

use crate::{
    live::{HIDDEN, TOKEN, TRANSFER, erc20},
    world::{Answer, World, account, artifact, real, scripted, signed},
};
use alloy_sol_types::{SolCall as _, SolValue as _, sol};
use gw_testkit::{
    FakeNode, TestUser,
    fake_node::{self, NodeReply},
};
use gw_types::{Address, B256, Bytes, U256};
use serde_json::{Value, json};

sol! {
    function transfer(address to, uint256 value) external returns (bool);
}

const ALICE: Address = Address::repeat_byte(0xaa);
const BOB: Address = Address::repeat_byte(0xab);

/// A block below the head.
const BLOCK: B256 = B256::repeat_byte(0x63);

fn hash(index: u8) -> B256 {
    B256::with_last_byte(index + 1)
}

/// The only log of transaction `index` of the block.
fn log(index: u8) -> Value {
    json!({"address": TOKEN, "topics": [TRANSFER, HIDDEN.into_word(), HIDDEN.into_word()],
        "data": B256::with_last_byte(9), "blockHash": BLOCK, "blockNumber": "0x63", "transactionHash": hash(index),
        "transactionIndex": format!("{index:#x}"), "logIndex": format!("{index:#x}"), "removed": false})
}

/// Transaction `index` of the block, from Alice.
fn transaction(index: u8) -> Value {
    json!({"hash": hash(index), "from": ALICE, "to": TOKEN, "blockHash": BLOCK, "blockNumber": "0x63",
        "transactionIndex": format!("{index:#x}")})
}

fn block(hash: B256, transactions: impl IntoIterator<Item = u8>) -> Value {
    let mut block = fake_node::block(99, &hash.to_string());
    block["transactions"] = transactions.into_iter().map(transaction).collect();
    block
}

/// A chain with `logs` transactions of Alice, one log each; Alice and Bob see the contract's logs.
async fn chain(logs: u8) -> (World, FakeNode, TestUser, TestUser) {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let alice = world.person("alice", bank, &["eth_getLogs"], &[]).await;
    let bob = world.person("bob", bank, &["eth_getLogs"], &[]).await;
    world
        .contract(bank, TOKEN, Some(&erc20()), &[alice.group, bob.group])
        .await;
    world.link(&alice, ALICE).await;
    world.link(&bob, BOB).await;
    fake.set_result("eth_getLogs", (0..logs).map(log).collect());
    fake.script("eth_getTransactionByHash", move |params| {
        let index = (0..logs).find(|index| params[0] == json!(hash(*index)));
        NodeReply::Result(index.map_or(Value::Null, transaction))
    });
    fake.script("eth_getBlockByHash", move |params| {
        NodeReply::Result(if params[0] == json!(BLOCK) {
            block(BLOCK, 0..logs)
        } else {
            Value::Null
        })
    });
    (world, fake, alice, bob)
}

async fn ask(world: &World, person: &TestUser) -> Answer {
    world
        .ask(Some(person), "eth_getLogs", json!([{"address": TOKEN}]))
        .send()
        .await
}

/// How many rows are shown whole, and how many with their wallets masked.
#[track_caller]
fn shown(answer: &Answer) -> (usize, usize) {
    let rows = answer.body["result"]
        .as_array()
        .unwrap_or_else(|| panic!("{}", answer.text));
    let is_whole = |row: &&Value| row["topics"][2] == json!(HIDDEN.into_word());
    let whole = rows.iter().filter(is_whole).count();
    assert!(
        rows.iter()
            .all(|row| is_whole(&row) || row["topics"][2] == json!(B256::ZERO))
    );
    (whole, rows.len() - whole)
}

/// The methods of the calls in each exchange with the node.
fn exchanges(fake: &FakeNode) -> Vec<Vec<String>> {
    let methods = |body: bytes::Bytes| match serde_json::from_slice(&body).unwrap() {
        Value::Array(calls) => calls
            .iter()
            .map(|call| call["method"].as_str().unwrap().to_owned())
            .collect(),
        call => vec![call["method"].as_str().unwrap().to_owned()],
    };
    fake.take_bodies().into_iter().map(methods).collect()
}

/// The parties of few transactions of a block are read one by one, of several with the whole block; once for all
/// callers. Each caller sees own transactions whole and others masked.
#[tokio::test]
async fn parties_are_read_once_for_all_callers() {
    for (logs, query) in [(3, "eth_getTransactionByHash"), (4, "eth_getBlockByHash")] {
        let (world, fake, alice, bob) = chain(logs).await;
        let first = ask(&world, &bob).await;
        let sent = exchanges(&fake);
        assert_eq!(sent.len(), 2, "the logs, then all parties at once");
        assert!(sent[1].iter().all(|method| method == query), "{sent:?}");
        assert_eq!(shown(&first), (0, usize::from(logs)));
        // What Bob's call read serves Alice, under her own rights.
        assert_eq!(shown(&ask(&world, &alice).await), (usize::from(logs), 0));
        assert_eq!(ask(&world, &bob).await.text, first.text);
        assert_eq!(exchanges(&fake), [["eth_getLogs"], ["eth_getLogs"]]);
    }
}

/// docs/decisions/0015: the response time of a caller without access to the contract does not depend on what others
/// have read, and others' does not depend on such a caller. The caller gets own rows all the same.
#[tokio::test]
async fn a_caller_without_access_shares_no_parties() {
    let (world, fake, alice, _) = chain(4).await;
    let rival = world.fixture.create_org("rival").await;
    let stranger = world.person("stranger", rival, &["eth_getLogs"], &[]).await;
    world.link(&stranger, Address::repeat_byte(0xad)).await;
    fake.script("eth_getBlockByHash", |_| {
        let mut block = block(BLOCK, 0..4);
        block["transactions"][1]["to"] = json!(Address::repeat_byte(0xad));
        NodeReply::Result(block)
    });
    for _ in 0..2 {
        assert_eq!(shown(&ask(&world, &stranger).await), (1, 0));
        assert_eq!(exchanges(&fake), [["eth_getLogs"], ["eth_getBlockByHash"]]);
    }
    assert_eq!(shown(&ask(&world, &alice).await), (4, 0));
    assert_eq!(exchanges(&fake), [["eth_getLogs"], ["eth_getBlockByHash"]]);
    assert_eq!(shown(&ask(&world, &stranger).await), (1, 0));
    assert_eq!(exchanges(&fake), [["eth_getLogs"], ["eth_getBlockByHash"]]);
    assert_eq!(shown(&ask(&world, &alice).await), (4, 0));
    assert_eq!(exchanges(&fake), [["eth_getLogs"]]);
}

/// HD20: known parties are facts; a call evaluates them under the newest policy.
#[tokio::test]
async fn hd20_known_parties_are_evaluated_under_the_newest_policy() {
    let (world, fake, _, bob) = chain(1).await;
    fake.script("eth_getTransactionByHash", |params| {
        let mut sent = transaction(0);
        sent["from"] = json!(Address::repeat_byte(0xac));
        assert_eq!(params[0], sent["hash"]);
        NodeReply::Result(sent)
    });
    assert_eq!(shown(&ask(&world, &bob).await), (0, 1));
    world.link(&bob, Address::repeat_byte(0xac)).await;
    fake.take();
    assert_eq!(shown(&ask(&world, &bob).await), (1, 0));
    assert_eq!(fake.take().len(), 1);
}

/// A transaction that the node leaves out, and all of another block than the one asked for, count as foreign. Nothing
/// of such an answer is kept.
#[tokio::test]
async fn an_incomplete_answer_hides_and_is_not_kept() {
    let (world, fake, alice, _) = chain(5).await;
    fake.set_result("eth_getBlockByHash", block(BLOCK, 0..4));
    fake.set_result("eth_getTransactionByHash", Value::Null);
    assert_eq!(shown(&ask(&world, &alice).await), (4, 1));
    assert_eq!(shown(&ask(&world, &alice).await), (4, 1));
    fake.set_result("eth_getTransactionByHash", transaction(4));
    assert_eq!(shown(&ask(&world, &alice).await), (5, 0));

    let (world, fake, alice, _) = chain(5).await;
    for answer in [
        block(B256::repeat_byte(0x62), 0..5),
        json!({"hash": BLOCK, "transactions": (0..5).map(hash).collect::<Vec<_>>()}),
        block(BLOCK, []),
        Value::Null,
    ] {
        fake.set_result("eth_getBlockByHash", answer);
        assert_eq!(shown(&ask(&world, &alice).await), (0, 5));
    }
    fake.reply(
        "eth_getBlockByHash",
        NodeReply::Error(-32000, "unknown block", Value::Null),
    );
    assert_eq!(shown(&ask(&world, &alice).await), (0, 5));
    fake.set_result("eth_getBlockByHash", block(BLOCK, 0..5));
    assert_eq!(shown(&ask(&world, &alice).await), (5, 0));

    // Another transaction than the one asked for.
    let (world, fake, alice, _) = chain(1).await;
    fake.set_result("eth_getTransactionByHash", transaction(7));
    assert_eq!(shown(&ask(&world, &alice).await), (0, 1));
    fake.set_result("eth_getTransactionByHash", transaction(0));
    assert_eq!(shown(&ask(&world, &alice).await), (1, 0));
}

/// If the node does not answer about parties, the call fails; the next one asks again.
#[tokio::test]
async fn a_node_that_does_not_answer_fails_the_call() {
    for query in ["eth_getTransactionByHash", "eth_getBlockByHash"] {
        let (world, fake, alice, _) = chain(if query == "eth_getBlockByHash" { 5 } else { 1 }).await;
        fake.reply(query, NodeReply::Http(200, "no JSON"));
        assert_eq!(ask(&world, &alice).await.error(), (502, -32603));
        fake.set_result("eth_getTransactionByHash", transaction(0));
        fake.set_result("eth_getBlockByHash", block(BLOCK, 0..5));
        assert_eq!(shown(&ask(&world, &alice).await).1, 0);
    }
}

/// HD36: large transactions of others in a block do not keep a caller from own logs.
#[tokio::test]
async fn hd36_of_a_large_block_the_needed_transactions_are_read() {
    let (world, fake, alice, _) = chain(4).await;
    fake.script("eth_getBlockByHash", |_| {
        let mut large = block(BLOCK, 0..4);
        large["extraData"] = json!(format!("0x{}", "00".repeat(17 << 20)));
        NodeReply::Result(large)
    });
    assert_eq!(shown(&ask(&world, &alice).await), (4, 0));
    let sent = exchanges(&fake);
    assert_eq!(sent[2..], [["eth_getTransactionByHash"; 4]]);
}

/// Sends a transaction to the node, and waits until it is mined.
async fn mine(world: &World, raw: &str, hash: B256) {
    world.bare("eth_sendRawTransaction", json!([raw])).await;
    for _ in 0..500 {
        if !world.bare("eth_getTransactionReceipt", json!([hash])).await["result"].is_null() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the transaction is not mined");
}

/// A reorganization that mines a transaction in another block leaves its parties as they are; a transaction that
/// replaces it has its own.
#[tokio::test]
async fn parties_survive_a_reorganization_and_are_not_those_of_a_replacement() {
    let (world, _anvil) = real().await;
    let bank = world.fixture.create_org("bank").await;
    let alice = world.person("alice", bank, &["eth_getLogs"], &[]).await;
    let bob = world.person("bob", bank, &["eth_getLogs"], &[]).await;
    let (sender, other) = (account(3), account(4));
    world.link(&alice, sender.address()).await;
    world.link(&bob, account(1).address()).await;
    let arguments = ("Token".to_owned(), "T".to_owned(), U256::from(1_000_000u64)).abi_encode_params();
    let token = world
        .deploy(&[artifact("DemoERC20").0.to_vec(), arguments].concat())
        .await;
    world
        .contract(bank, token, Some(&artifact("DemoERC20").1), &[alice.group, bob.group])
        .await;
    let transfer = |value: u64| {
        let (to, value) = (other.address(), U256::from(value));
        let input = Bytes::from(transferCall { to, value }.abi_encode());
        signed(&sender, 1, Some(token), 0, input)
    };
    // The last row of the caller: transaction, block and receiver, which is masked unless the transaction is own.
    let last = async |person: &TestUser| {
        world.node.refresh_head().await.unwrap();
        let filter = json!([{"address": token, "fromBlock": "0x1"}]);
        let rows = world.result(person, "eth_getLogs", filter).await;
        let row = rows.as_array().unwrap().last().unwrap().clone();
        (
            row["transactionHash"].clone(),
            row["blockHash"].clone(),
            row["topics"][2] == json!(other.address().into_word()),
        )
    };
    let ((raw, sent), (replacement, replaced_by)) = (transfer(5), transfer(6));

    let before = world.bare("evm_snapshot", json!([])).await["result"].clone();
    mine(&world, &raw, sent).await;
    let first = last(&alice).await;
    assert_eq!((&first.0, first.2), (&json!(sent), true));
    assert!(!last(&bob).await.2);

    assert_eq!(world.bare("evm_revert", json!([before])).await["result"], true);
    let before = world.bare("evm_snapshot", json!([])).await["result"].clone();
    world.bare("evm_mine", json!([])).await;
    mine(&world, &raw, sent).await;
    let second = last(&alice).await;
    assert_eq!((&second.0, second.2), (&json!(sent), true));
    assert_ne!(first.1, second.1, "in another block");
    assert!(!last(&bob).await.2);

    assert_eq!(world.bare("evm_revert", json!([before])).await["result"], true);
    mine(&world, &replacement, replaced_by).await;
    let third = last(&alice).await;
    assert_eq!((&third.0, third.2), (&json!(replaced_by), true));
    assert!(!last(&bob).await.2);
}
