//! spec/40 section 9, row by row: where other explorers are weak, and the tests that this one is not.
//!
//! | Row | Tests |
//! |---|---|
//! | cost of the filter, growth | `section_9_no_hidden_row_is_read`, the bench `selection` of `gw-postings` |
//! | transfer union | [A]: every list is complete and in the order of the chain |
//! | totals | [A], `paging::i4_a_total_counts_the_rows_below_the_bound` |
//! | totals of transfers, logs and others | [A], `size::i4_…`, `paging::section_4_…` |
//! | indexer mode | [I], `e2_direct_mode_reads_from_the_indexer`; `World::walk` finds each page full |
//! | address badges | [A]: statistics and accounts |
//! | block list | `section_9_blocks_count_visible_transactions` |
//! | dashboard behind the indexer | [A]: `/stats` and `/stats/tx-history`; [I] |
//! | leaks | `noninterference::i5_…`, `addresses::i2_…`, `paging::hd40_…`, the tests of `abi` |
//! | stale data | `put_back::x5_…`, `x7_…` and `x12_…` of `gw-indexer`, `reorganization` of `gw-chain-store` |
//! | missing: chain id, progress | `section_9_the_chain_and_its_progress_are_real` |
//! | missing: reading again, transfers | the tests of `indexing`, `x8_…` and `x11_…` of `gw-indexer` |
//! | missing: PKCE, backend authentication | `sign_in` of `gw-explorer-backend`, `e1_e7_…`, `hd16_…` of `gw-server` |
//! | accepted in both | docs/threat-model.md |
//!
//! [A] is `agreement::i4_lists_contain_exactly_the_rows_that_survive`, [I] are the tests of the indexer as a process in
//! `gw-server/tests/it/indexer.rs`.

use crate::{
    chain::Naive,
    world::{TestCaller, World},
};
use gw_policy::PolicySettings;
use http::StatusCode;
use std::collections::BTreeMap;

/// The rows of a page are read by their ids, and no other: here nobody could read the hidden ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_9_no_hidden_row_is_read() {
    let world = World::random(331, PolicySettings::SPEC).await;
    let carol = TestCaller::User("carol");
    let lists = ["/transactions", "/transfers"];
    let mut before = Vec::new();
    for list in lists {
        before.push(world.walk(carol, list, "data", 6).await);
    }
    let (snapshot, settings) = (world.snapshot(), world.settings());
    let viewer = carol.viewer(&snapshot, &settings);
    let all = Naive::newest_first(&world.chain);
    // Transfers and logs of a hidden transaction may be visible, so their parents are read.
    let is_hidden = |tx: &&Naive<'_>| {
        !tx.is_shown(&viewer) && tx.shown_transfers(&viewer).is_empty() && tx.shown_logs(&viewer).is_empty()
    };
    let hidden: Vec<String> = (all.iter().filter(is_hidden))
        .map(|tx| format!("x'{}'", hex::encode(tx.data.transaction.hash)))
        .collect();
    assert!(hidden.len() > 3);
    world
        .tamper(&format!(
            "UPDATE transactions SET from_address = x'00' WHERE hash IN ({})",
            hidden.join(", ")
        ))
        .await;
    for (list, before) in lists.iter().zip(before) {
        assert_eq!(world.walk(carol, list, "data", 6).await, before, "{list}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_9_blocks_count_visible_transactions() {
    let world = World::random(332, PolicySettings::SPEC).await;
    for who in [TestCaller::Nobody, TestCaller::User("alice"), TestCaller::User("root")] {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for row in world.walk(who, "/transactions", "data", 100).await.rows {
            *counts.entry(row["blockNumber"].as_u64().unwrap()).or_default() += 1;
        }
        for block in world.walk(who, "/blocks", "data", 5).await.rows {
            let number = block["number"].as_u64().unwrap();
            let expected = counts.get(&number).copied().unwrap_or_default();
            assert_eq!(block["transactionCount"].as_u64(), Some(expected), "{who:?} {number}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_9_the_chain_and_its_progress_are_real() {
    let world = World::random(333, PolicySettings::SPEC).await;
    let get = async |path: &str| world.get(TestCaller::Nobody, path).await;
    assert_eq!(get("/chain-id").await.json()["chain_id"], 1337);
    let status = get("/sync/status").await.json();
    assert_eq!(
        (status["lastIndexedBlock"].as_u64(), status["isSyncing"].as_bool()),
        (Some(24), Some(false))
    );
    let progress = get("/sync/indexer-progress").await.json();
    let fetched = (
        progress["minFetchedBlock"].as_u64(),
        progress["maxFetchedBlock"].as_u64(),
    );
    assert_eq!(fetched, (Some(1), Some(24)));
    assert_eq!(get("/sync/catchup").await.status, StatusCode::OK);
}

/// spec/40 section 3: what is unknown is 404; blocks that are not indexed have no lists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_3_the_rows_of_an_unknown_block_are_not_found() {
    let world = World::random(334, PolicySettings::SPEC).await;
    for who in [TestCaller::Nobody, TestCaller::User("root")] {
        for list in ["transactions", "internal"] {
            for (number, status) in [(0, 404), (1, 200), (24, 200), (25, 404), (u64::MAX, 404)] {
                let answer = world.get(who, &format!("/blocks/{number}/{list}")).await;
                assert_eq!(
                    answer.status.as_u16(),
                    status,
                    "{who:?} {number} {list}: {}",
                    answer.text
                );
                assert_eq!(
                    answer.text.contains("block not found"),
                    status == 404,
                    "{}",
                    answer.text
                );
            }
        }
    }
}
