//! Totals and pages of logs that a viewer sees by rules on parameters do not depend on the logs of others.

use crate::{
    chain::{ChainMaker, TRANSFER},
    world::{TestCaller, World},
};
use gw_chain_store::{
    BlockData,
    rows::{Log, TransactionData},
};
use gw_policy::{
    PolicySettings, Snapshot,
    snapshot::{Constraint, EventRule, ParamRule},
    testing::{address_of, world},
};
use gw_types::{Address, B256, U256};

const ALICE: TestCaller = TestCaller::User("alice");
/// The first topic of no log.
const UNUSED: &str = "0x9c0d4bd8d1e9a2ac40bd1c4f9c7b43a8a3b1f6a39f1f3dca5b0e4e4f5b6e0b7c";

fn transfer() -> B256 {
    TRANSFER.parse().unwrap()
}

/// `alice` sees transfers on `a-token` by this rule alone.
fn policy(index: usize, must_be: Constraint) -> Snapshot {
    let rule = EventRule {
        topic0: transfer(),
        params: vec![ParamRule { index, must_be }],
    };
    let built = world().org("a").group("staff").user("alice").member("a/staff");
    let built = built.link("alice-w").user("root").org("a").contract("a-token");
    built.grant("staff").events([rule]).snapshot()
}

fn log(index: u32, to: Address, value: u64) -> Log {
    Log {
        index,
        address: address_of("a-token"),
        topics: vec![transfer(), address_of("s1").into_word(), to.into_word()],
        data: U256::from(value).to_be_bytes_vec().into(),
    }
}

/// A chain of transactions between strangers, of which each block has these logs.
fn chain(blocks: &[Vec<Log>]) -> Vec<BlockData> {
    let mut chain = ChainMaker::new(91).blocks(1, B256::ZERO, blocks.len() as u64);
    for (block, logs) in chain.iter_mut().zip(blocks) {
        let data: &mut TransactionData = &mut block.transactions[0];
        data.transaction.from = address_of("s0");
        data.transaction.to = Some(address_of("a-token"));
        (data.transfers, data.frames) = (Vec::new(), Vec::new());
        data.logs.clone_from(logs);
        block.transactions.truncate(1);
    }
    chain
}

fn logs(to: &str, count: u32, value: u64) -> Vec<Log> {
    (0..count).map(|index| log(index, address_of(to), value)).collect()
}

async fn world_with(policy: Snapshot, blocks: &[Vec<Log>]) -> World {
    let mut world = World::with(policy, PolicySettings::SPEC).await;
    world.append(chain(blocks)).await;
    world.follow().await;
    world
}

/// The transfers of the token.
fn transfers() -> String {
    format!(
        "/logs?address=0x{}&topic0={TRANSFER}",
        hex::encode(address_of("a-token"))
    )
}

/// I4, I5: rules of `self` on indexed parameters are answered from the index. More than a thousand own logs have a
/// total, and fifteen hundred logs of others above them change no byte.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i5_a_rule_of_self_on_a_topic_has_exact_totals_and_full_pages() {
    let own = || [logs("alice-w", 600, 1), logs("alice-w", 500, 1)];
    let [first, second] = own();
    let without = world_with(policy(1, Constraint::Own), &[first, second, vec![], vec![]]).await;
    let [first, second] = own();
    let hidden = [logs("s1", 1000, 1), logs("s1", 500, 1)];
    let [third, fourth] = hidden;
    let with = world_with(policy(1, Constraint::Own), &[first, second, third, fourth]).await;
    for filter in [
        "",
        "&from=1&to=3",
        "&from=2",
        "&before=4",
        "&limit=1000",
        "&limit=1000&from=2",
    ] {
        let path = format!("{}{filter}", transfers());
        let (with, without) = (
            with.get(ALICE, &path).await.json(),
            without.get(ALICE, &path).await.json(),
        );
        assert_eq!(with["data"], without["data"], "{filter}");
        assert_eq!(with["total"], without["total"], "{filter}");
        let own = if filter.contains("from=2") { 500 } else { 1100 };
        assert_eq!(with["total"], own, "{filter}");
        let limit = if filter.contains("limit") { 1000 } else { 100 };
        assert_eq!(with["data"].as_array().unwrap().len(), limit.min(own), "{filter}");
    }
    let all = with.walk(ALICE, "/logs", "data", 300).await;
    assert_eq!((all.rows.len(), all.total), (1100, Some(1100)));
}

/// A rule on data: whether there is a total, and where pages end, follow from the windows of the whole event, so no
/// choice of blocks counts the hidden logs in them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i5_a_choice_of_blocks_counts_no_hidden_logs() {
    let rule = || policy(2, Constraint::Word(B256::from(U256::from(7))));
    let own = || logs("s1", 3, 7);
    let many = || logs("s1", 1200, 8);
    // Hidden logs in block 2 or in block 4: every range of blocks answers the same.
    let below = world_with(rule(), &[own(), many(), own(), vec![], own()]).await;
    let above = world_with(rule(), &[own(), vec![], own(), many(), own()]).await;
    for from in 1..=5 {
        for to in from..=5 {
            let path = format!("{}&from={from}&to={to}", transfers());
            let answers = [
                below.get(ALICE, &path).await.json(),
                above.get(ALICE, &path).await.json(),
            ];
            for answer in &answers {
                assert!(answer["total"].is_null(), "{path}: {}", answer["total"]);
                assert!(answer["next_cursor"].is_null(), "{path}");
            }
            assert_eq!(answers[0]["data"], answers[1]["data"], "{path}");
        }
    }
    // With few logs of the event there is a total, whatever the blocks.
    let few = world_with(rule(), &[own(), logs("s1", 900, 8), own()]).await;
    let all = few.walk(ALICE, &transfers(), "data", 4).await;
    assert_eq!((all.rows.len(), all.total), (6, Some(6)));
}

/// spec/40 section 8: beyond a thousand logs to evaluate there is no total. A page that is not full ends at the border
/// of a window, whatever the blocks, and the pages lead through the whole list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_of_evaluated_logs_end_at_the_borders_of_windows() {
    let rule = policy(2, Constraint::Word(B256::from(U256::from(7))));
    let own = || logs("s1", 2, 7);
    let hidden = || logs("s1", 2100, 8);
    let world = world_with(rule, &[own(), hidden(), own(), hidden(), own()]).await;
    let pages = async |filter: &str| {
        let (mut pages, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("{}&limit=5{filter}{cursor}", transfers());
            let page = world.get(ALICE, &path).await.json();
            assert!(page["total"].is_null(), "{path}");
            pages.push(page["data"].as_array().unwrap().len());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return pages,
            }
        }
    };
    // The border is above 4,096 logs: in block 4, which the first window shares with the second.
    assert_eq!(pages("").await, [2, 4]);
    assert_eq!(
        pages("&from=4").await,
        [2, 0],
        "the rest of the oldest block is below the border"
    );
    assert_eq!(pages("&from=5").await, [2], "the border is below the blocks");
    assert_eq!(pages("&from=3").await, [2, 2]);
    assert_eq!(pages("&from=2").await, [2, 2]);
    assert_eq!(pages("&to=3").await, [4], "the page begins below the border");
}

/// K2: an event that no log has is found without a scan of the contract's logs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_by_topic_reads_only_logs_with_this_topic() {
    let free = || {
        let built = world()
            .org("a")
            .group("staff")
            .user("alice")
            .member("a/staff")
            .link("alice-w");
        built
            .user("root")
            .org("a")
            .contract("a-token")
            .grant("staff")
            .snapshot()
    };
    let world = world_with(free(), &[logs("s1", 1200, 1), vec![], logs("alice-w", 1200, 2)]).await;
    let path = format!("/logs?address=0x{}", hex::encode(address_of("a-token")));
    let all = world
        .get(ALICE, &format!("{path}&topic0={TRANSFER}&limit=1"))
        .await
        .json();
    assert_eq!(all["total"], 2400);
    let none = world.get(ALICE, &format!("{path}&topic0={UNUSED}")).await.json();
    assert_eq!((&none["total"], none["data"].as_array().unwrap().len()), (&0.into(), 0));
    // The rows of the store are not read: nothing of them is evaluated.
    world.tamper("UPDATE logs SET address = zeroblob(19) || x'99'").await;
    let none = world.get(ALICE, &format!("{path}&topic0={UNUSED}")).await.json();
    assert_eq!(none["total"], 0);
}
