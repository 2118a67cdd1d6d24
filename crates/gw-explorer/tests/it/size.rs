//! Many rows.

use crate::{
    chain::{ChainMaker, TRANSFER},
    world::{TestCaller, World},
};
use gw_chain_store::{
    BlockData,
    rows::{Log, TokenStandard, TokenTransfer},
};
use gw_policy::{PolicySettings, settings::MissingAbiMode, testing::address_of};
use gw_types::{Address, B256, U256};
use http::StatusCode;

const ROOT: TestCaller = TestCaller::User("root");

/// Blocks with this many transactions each, made by changing one.
fn blocks(seed: u64, count: u64, per_block: usize, change: impl Fn(usize, &mut BlockData)) -> Vec<BlockData> {
    let mut chain = ChainMaker::new(seed).blocks(1, B256::ZERO, count);
    let mut hash = 0_u64;
    for (index, block) in chain.iter_mut().enumerate() {
        let mut data = block.transactions[0].clone();
        data.transaction.from = address_of("s0");
        data.transaction.to = Some(address_of("a-token"));
        data.transaction.created_contract = None;
        (data.logs, data.frames, data.transfers) = (Vec::new(), Vec::new(), Vec::new());
        block.transactions = (0..per_block)
            .map(|_| {
                hash += 1;
                let mut data = data.clone();
                data.transaction.hash = B256::from(U256::from(hash) << 200);
                data
            })
            .collect();
        change(index, block);
    }
    chain
}

/// A block with a thousand transactions, and a token that was minted and moved ten thousand times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i4_large_blocks_and_large_tokens_have_exact_totals_and_full_pages() {
    let token = address_of("a-token");
    let chain = blocks(51, 10, 1000, |index, block| {
        for data in &mut block.transactions {
            let from = if index == 0 {
                Address::ZERO
            } else {
                address_of("alice-w")
            };
            data.transfers = vec![TokenTransfer {
                log_index: 0,
                batch_position: 0,
                token,
                from,
                to: address_of("bob-w"),
                value: U256::ONE,
                token_id: None,
                standard: TokenStandard::Erc20,
            }];
        }
    });
    let world = World::loaded(chain.clone(), PolicySettings::SPEC).await;
    let of_block = world.walk(ROOT, "/blocks/5/transactions", "data", 100).await;
    assert_eq!((of_block.rows.len(), of_block.total), (1000, Some(1000)));
    let indexes = of_block.rows.iter().map(|row| row["txIndex"].as_u64().unwrap());
    assert!(indexes.eq((0..1000).rev()));
    assert_eq!(world.get(ROOT, "/blocks/5").await.json()["transactionCount"], 1000);
    // The administrator of the token sees its mints; of the others, no side.
    let path = format!("/tokens/0x{}", hex::encode(token));
    let root = world.get(ROOT, &path).await.json();
    assert_eq!(root["transferCount"], 1000);
    let bob = TestCaller::User("bob");
    let of_bob = world.get(bob, &path).await.json();
    // The first transaction of block 9 is withheld.
    assert_eq!(of_bob["transferCount"], 9_999);
    let all = world.walk(bob, &format!("{path}/transfers"), "data", 100).await;
    assert_eq!((all.rows.len(), all.total), (9_999, Some(9_999)));
    let last = world
        .get(bob, &format!("{path}/transfers?offset=9990&limit=100"))
        .await
        .json();
    assert_eq!(last["data"].as_array().unwrap().len(), 9);
    assert_eq!(last["data"][8], all.rows[9_998]);
    let minted = all.rows.iter().filter(|row| row["transferType"] == "mint").count();
    assert_eq!(minted, 1000);
}

/// I5: under K3 `drop` the logs of unknown events are dropped, and count in no total, however many they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k3_logs_of_unknown_events_change_no_total() {
    let settings = PolicySettings {
        no_abi: MissingAbiMode::Drop,
        ..PolicySettings::SPEC
    };
    let transfer: B256 = TRANSFER.parse().unwrap();
    let chain = blocks(52, 8, 15, |_, block| {
        for data in &mut block.transactions {
            data.logs = (0..20)
                .map(|index| {
                    let is_known = index % 2 == 0;
                    let topic0 = if is_known { transfer } else { B256::repeat_byte(0x55) };
                    Log {
                        index,
                        address: address_of("a-token"),
                        topics: vec![topic0, B256::ZERO, B256::ZERO],
                        data: vec![0; 32].into(),
                    }
                })
                .collect();
        }
    });
    let world = World::loaded(chain, settings).await;
    let alice = TestCaller::User("alice");
    let all = world.walk(alice, "/logs", "data", 100).await;
    assert_eq!((all.rows.len(), all.total), (8 * 15 * 10, Some(8 * 15 * 10)));
    let topics = all.texts("topic0");
    assert!(topics.iter().all(|topic| topic == TRANSFER));
    let one_page = world.get(alice, "/logs?limit=1000").await.json();
    assert_eq!(one_page["data"].as_array().unwrap()[..], all.rows[..1000]);
    let by_topic = world
        .walk(alice, &format!("/logs?topic0={TRANSFER}"), "data", 100)
        .await;
    assert_eq!(by_topic.rows, all.rows);
    let few = world.walk(alice, "/logs?from=2&to=3", "data", 100).await;
    assert_eq!((few.rows.len(), few.total), (2 * 15 * 10, Some(2 * 15 * 10)));
}

/// An index that lacks more blocks than it may answers nothing; one that lacks few answers for those that it has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_is_behind_is_refused() {
    let mut world = World::random(53, PolicySettings::SPEC).await;
    let newest = world.chain.last().unwrap().block.clone();
    let more = ChainMaker::new(54).blocks(newest.number + 1, newest.hash, 65);
    let (near, beyond) = more.split_at(64);
    world.append(near.to_vec()).await;
    let answer = world.get(ROOT, "/blocks/latest/number").await;
    assert_eq!(answer.json()["number"], newest.number, "{}", answer.text);
    world.append(beyond.to_vec()).await;
    for path in [
        "/blocks/latest/number",
        "/transactions",
        "/stats",
        "/logs",
        "/sync/status",
    ] {
        let answer = world.get(ROOT, path).await;
        assert_eq!(
            answer.status,
            StatusCode::SERVICE_UNAVAILABLE,
            "{path}: {}",
            answer.text
        );
        assert!(answer.text.contains("explorer index is behind"), "{}", answer.text);
    }
    world.follow().await;
    let answer = world.get(ROOT, "/blocks/latest/number").await;
    assert_eq!(answer.json()["number"], newest.number + 65);
}

/// A reorganization below every block that is remembered: no cursor of the old chain leads on, and none ends silently.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_from_before_an_unknown_fork_is_refused() {
    let mut world = World::random(55, PolicySettings::SPEC).await;
    let page = world.get(ROOT, "/transactions?limit=3").await.json();
    let cursor = page["next_cursor"].as_str().unwrap().to_owned();
    world.writer.wipe().await.unwrap();
    world.chain.clear();
    world.append(ChainMaker::new(56).blocks(1, B256::ZERO, 24)).await;
    world.follow().await;
    let answer = world.get(ROOT, &format!("/transactions?limit=3&cursor={cursor}")).await;
    assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{}", answer.text);
    assert!(answer.text.contains("invalid pagination cursor"), "{}", answer.text);
    let anew = world.walk(ROOT, "/transactions", "data", 3).await;
    assert!(anew.total.unwrap() > 3);
}
