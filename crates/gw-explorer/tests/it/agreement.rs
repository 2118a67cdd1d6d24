//! Every list against a look at each row by the policy core (I3, I4).

use crate::{
    chain::{NAMES, Naive},
    world::{EVERYBODY, Engine, TestCaller, World},
};
use gw_policy::{
    PolicySettings, Viewer,
    settings::{HiddenTransferMode, PartialRowMode},
    testing::address_of,
    visibility::explorer::AddressBlocks,
};
use gw_types::{Address, B256};
use http::StatusCode;

fn hex(hash: B256) -> String {
    format!("0x{}", hex::encode(hash))
}

/// The settings that change which rows survive.
fn is_in_list(blocks: &[AddressBlocks], number: u64) -> bool {
    blocks.iter().any(|range| range.blocks.contains(number))
}

/// R17, R18, I3, I4: same rows, totals, order, and full pages. Each test has other settings, and every second one
/// another database.
mod i4_lists_contain_exactly_the_rows_that_survive {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn by_the_specification() {
        agree(Engine::first_or_last(false), 1, PolicySettings::SPEC).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn by_strict_settings() {
        agree(Engine::first_or_last(true), 2, PolicySettings::STRICT).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn with_hidden_transfers() {
        let settings = PolicySettings {
            anchor: HiddenTransferMode::Keep,
            ..PolicySettings::SPEC
        };
        agree(Engine::first_or_last(false), 3, settings).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn without_one_sided_rows() {
        let settings = PolicySettings {
            one_sided: PartialRowMode::Drop,
            org_admin_view_user_txs: true,
            ..PolicySettings::SPEC
        };
        agree(Engine::first_or_last(true), 4, settings).await;
    }
}

async fn agree(engine: Engine, seed: u64, settings: PolicySettings) {
    let world = World::random_on(engine, seed, settings).await;
    let (snapshot, settings) = (world.snapshot(), world.settings());
    for who in EVERYBODY {
        let viewer = who.viewer(&snapshot, &settings);
        let all = Naive::newest_first(&world.chain);
        let shown: Vec<&Naive<'_>> = all.iter().filter(|tx| tx.is_shown(&viewer)).collect();
        let hashes: Vec<String> = shown.iter().map(|tx| hex(tx.data.transaction.hash)).collect();
        let list = world.walk(who, "/transactions", "data", 3).await;
        assert_eq!(list.texts("hash"), hashes, "{who:?} {seed}");
        assert_eq!(list.total, Some(hashes.len() as u64), "{who:?}");
        let page = world.get(who, "/transactions/paginated?page=2&pageSize=4").await.json();
        let paged: Vec<_> = page["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row["hash"].as_str())
            .collect();
        let expected: Vec<_> = hashes.iter().skip(4).take(4).map(|hash| Some(hash.as_str())).collect();
        assert_eq!(paged, expected, "{who:?}");
        by_hash(&world, who, &viewer, &all).await;
        by_block(&world, who, &viewer, &all).await;
        feeds(&world, who, &viewer, &all).await;
        by_address(&world, who, &viewer, &all).await;
        by_token(&world, who, &viewer, &all).await;
    }
}

/// I3: the look-up by hash finds what lists show.
async fn by_hash(world: &World, who: TestCaller, viewer: &Viewer<'_>, all: &[Naive<'_>]) {
    for tx in all {
        let path = format!("/transactions/{}", hex(tx.data.transaction.hash));
        let response = world.get(who, &format!("{path}?with_categories=true")).await;
        let rows = [
            ("transfers", tx.shown_transfers(viewer).len()),
            ("internal", tx.shown_frames(viewer).len()),
        ];
        let is_shown = tx.is_shown(viewer);
        let expected = if is_shown {
            StatusCode::OK
        } else {
            StatusCode::NOT_FOUND
        };
        assert_eq!(response.status, expected, "{who:?} {path}");
        if is_shown {
            let count = response.json()["tokenTransferCount"].as_u64();
            assert_eq!(count, Some(rows[0].1 as u64), "{who:?} {path}");
        }
        for (name, count) in rows.into_iter().chain([("logs", tx.shown_logs(viewer).len())]) {
            let list = world.get(who, &format!("{path}/{name}")).await.json();
            let count = if is_shown { count } else { 0 };
            assert_eq!(list.as_array().unwrap().len(), count, "{who:?} {path}/{name}");
        }
    }
}

async fn by_block(world: &World, who: TestCaller, viewer: &Viewer<'_>, all: &[Naive<'_>]) {
    let blocks = world.walk(who, "/blocks", "data", 7).await;
    assert_eq!(blocks.total, Some(world.chain.len() as u64));
    assert_eq!(blocks.rows.len(), world.chain.len());
    for row in &blocks.rows {
        let number = row["number"].as_u64().unwrap();
        let of_block: Vec<_> = all.iter().filter(|tx| tx.number == number).collect();
        let hashes: Vec<_> = of_block
            .iter()
            .filter(|tx| tx.is_shown(viewer))
            .map(|tx| hex(tx.data.transaction.hash))
            .collect();
        assert_eq!(
            row["transactionCount"].as_u64(),
            Some(hashes.len() as u64),
            "{who:?} {number}"
        );
        let path = format!("/blocks/{number}");
        assert_eq!(&world.get(who, &path).await.json(), row);
        let list = world.walk(who, &format!("{path}/transactions"), "data", 2).await;
        assert_eq!(
            (list.texts("hash"), list.total),
            (hashes.clone(), Some(hashes.len() as u64))
        );
        let indexes: Vec<_> = list.rows.iter().map(|row| row["txIndex"].as_u64().unwrap()).collect();
        let expected: Vec<_> = (0..hashes.len() as u64).rev().collect();
        assert_eq!(indexes, expected, "no gap tells of a hidden transaction");
        let frames: usize = of_block.iter().map(|tx| tx.shown_frames(viewer).len()).sum();
        let list = world.walk(who, &format!("{path}/internal"), "data", 2).await;
        assert_eq!(
            (list.rows.len(), list.total),
            (frames, Some(frames as u64)),
            "{who:?} {path}"
        );
    }
}

async fn feeds(world: &World, who: TestCaller, viewer: &Viewer<'_>, all: &[Naive<'_>]) {
    let transfers: Vec<_> = all
        .iter()
        .flat_map(|tx| {
            tx.shown_transfers(viewer)
                .into_iter()
                .rev()
                .map(|transfer| (tx.number, transfer.value))
        })
        .collect();
    let list = world.walk(who, "/transfers", "data", 3).await;
    assert_eq!(list.total, Some(transfers.len() as u64), "{who:?}");
    let listed: Vec<_> = list
        .rows
        .iter()
        .map(|row| row["blockNumber"].as_u64().unwrap())
        .collect();
    assert_eq!(
        listed,
        transfers.iter().map(|(number, _)| *number).collect::<Vec<_>>(),
        "{who:?}"
    );
    for (row, (_, value)) in list.rows.iter().zip(&transfers) {
        let text = row["value"].as_str().unwrap();
        assert!(text.is_empty() || text == value.to_string(), "{row}");
    }
    let logs: Vec<_> = all
        .iter()
        .flat_map(|tx| {
            tx.shown_logs(viewer)
                .into_iter()
                .rev()
                .map(|log| format!("0x{}", hex::encode(log.address)))
        })
        .collect();
    let list = world.walk(who, "/logs", "data", 3).await;
    assert_eq!(
        (list.texts("address"), list.total),
        (logs.clone(), Some(logs.len() as u64)),
        "{who:?}"
    );
    let of_token = format!("0x{}", hex::encode(address_of("a-token")));
    let list = world
        .walk(who, &format!("/logs?address={of_token}&from=3&to=20"), "data", 3)
        .await;
    assert!(list.texts("address").iter().all(|address| *address == of_token));
    let stats = world.get(who, "/stats").await.json();
    let shown = all.iter().filter(|tx| tx.is_shown(viewer)).count();
    assert_eq!(stats["totalTransactions"].as_u64(), Some(shown as u64));
    let history = world.get(who, "/stats/tx-history?interval=600&limit=100").await.json();
    let counts = history
        .as_array()
        .unwrap()
        .iter()
        .map(|point| point["count"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), shown as u64);
}

/// Tokens, holders and suggestions.
async fn by_token(world: &World, who: TestCaller, viewer: &Viewer<'_>, all: &[Naive<'_>]) {
    let mut listed = 0;
    for token in ["a-token", "b-token", "wild", "moved"].map(address_of) {
        let path = format!("/tokens/0x{}", hex::encode(token));
        let blocks = viewer.address_list_blocks(token);
        let transfers = all.iter().filter(|tx| is_in_list(&blocks, tx.number));
        let transfers = transfers
            .flat_map(|tx| tx.shown_transfers(viewer))
            .filter(|row| row.token == token);
        let count = transfers.count() as u64;
        let response = world.get(who, &path).await;
        if !viewer.shows_token(token) || count == 0 {
            assert_eq!(response.status, StatusCode::NOT_FOUND, "{who:?} {path}");
            continue;
        }
        listed += 1;
        assert_eq!(response.json()["transferCount"].as_u64(), Some(count), "{who:?} {path}");
        let list = world.walk(who, &format!("{path}/transfers"), "data", 2).await;
        assert_eq!(
            (list.rows.len() as u64, list.total),
            (count, Some(count)),
            "{who:?} {path}"
        );
        assert!(
            list.rows
                .iter()
                .all(|row| row["tokenAddress"] == *format!("0x{}", hex::encode(token)))
        );
    }
    let tokens = world.get(who, "/tokens").await.json();
    assert_eq!(tokens["total"].as_u64(), Some(listed), "{who:?}");
    for tx in all {
        let prefix: String = hex(tx.data.transaction.hash).chars().take(10).collect();
        let found = world.get(who, &format!("/search/suggestions?q={prefix}")).await.json();
        let is_found = found.as_array().unwrap().iter().any(|row| row["type"] == "transaction");
        assert_eq!(is_found, tx.is_shown(viewer), "{who:?} {prefix}");
    }
}

async fn by_address(world: &World, who: TestCaller, viewer: &Viewer<'_>, all: &[Naive<'_>]) {
    let zero = [("zero", Address::ZERO)];
    for (name, address) in NAMES.iter().map(|name| (*name, address_of(name))).chain(zero) {
        let path = format!("/addresses/0x{}", hex::encode(address));
        if !viewer.opens_address(address) {
            for list in ["stats", "transactions", "transfers", "internal", "logs"] {
                let response = world.get(who, &format!("{path}/{list}")).await;
                assert_eq!(response.status, StatusCode::NOT_FOUND, "{who:?} {name} {list}");
            }
            let account = world.get(who, &format!("{path}/is-contract")).await;
            let expected = if viewer.opens_account(address) { 200 } else { 404 };
            assert_eq!(account.status.as_u16(), expected, "{who:?} {name}");
            continue;
        }
        let blocks = viewer.address_list_blocks(address);
        let in_list = || all.iter().filter(|tx| is_in_list(&blocks, tx.number));
        let hashes: Vec<_> = in_list()
            .filter(|tx| tx.is_shown(viewer))
            .filter(|tx| tx.data.transaction.from == address || tx.data.transaction.to == Some(address))
            .map(|tx| hex(tx.data.transaction.hash))
            .collect();
        let list = world
            .walk(who, &format!("{path}/transactions"), "transactions", 2)
            .await;
        assert_eq!(list.texts("hash"), hashes, "{who:?} {name}");
        let printed = format!("0x{}", hex::encode(address));
        for row in &list.rows {
            assert!(
                row["from"] == *printed || row["to"] == *printed,
                "{who:?} {name}: {row}"
            );
        }
        let transfers = in_list().flat_map(|tx| tx.shown_transfers(viewer));
        let transfers = transfers.filter(|row| row.from == address || row.to == address).count();
        let list = world.walk(who, &format!("{path}/transfers"), "transfers", 2).await;
        assert_eq!(list.rows.len(), transfers, "{who:?} {name}");
        let frames = in_list().flat_map(|tx| tx.shown_frames(viewer));
        let frames = frames
            .filter(|row| row.from == address || row.to == Some(address))
            .count();
        let list = world.walk(who, &format!("{path}/internal"), "data", 2).await;
        assert_eq!(
            (list.rows.len(), list.total),
            (frames, Some(frames as u64)),
            "{who:?} {name}"
        );
        let logs = in_list().flat_map(|tx| tx.shown_logs(viewer));
        let logs = logs.filter(|log| log.address == address).count();
        let list = world.walk(who, &format!("{path}/logs"), "data", 2).await;
        assert_eq!(
            (list.rows.len(), list.total),
            (logs, Some(logs as u64)),
            "{who:?} {name}"
        );
        let stats = world.get(who, &format!("{path}/stats")).await.json();
        let counts = ["txCount", "tokenTransferCount", "internalTxCount"].map(|name| stats[name].as_u64().unwrap());
        assert_eq!(
            counts,
            [hashes.len(), transfers, frames].map(|count| count as u64),
            "{who:?} {name}"
        );
    }
}
