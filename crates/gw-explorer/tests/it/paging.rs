//! Cursors, reorganizations and changes of policy between pages.

use crate::{
    chain::{ChainMaker, policy, snapshot},
    world::{TestCaller, World},
};
use gw_chain_store::Reading;
use gw_policy::{PolicySettings, testing::address_of};
use gw_types::U256;
use http::StatusCode;
use serde_json::Value;

const ROOT: TestCaller = TestCaller::User("root");

fn next(page: &Value) -> String {
    page["next_cursor"].as_str().unwrap().to_owned()
}

fn hashes(page: &Value) -> Vec<&str> {
    let rows = page["data"].as_array().unwrap();
    rows.iter().map(|row| row["hash"].as_str().unwrap()).collect()
}

fn blocks(page: &Value) -> Vec<u64> {
    let rows = page["data"].as_array().unwrap();
    rows.iter().map(|row| row["blockNumber"].as_u64().unwrap()).collect()
}

/// New blocks shift no page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_continues_below_its_row_when_blocks_are_added() {
    let mut world = World::random(21, PolicySettings::SPEC).await;
    let all = world.walk(ROOT, "/transactions", "data", 100).await.texts("hash");
    let page = world.get(ROOT, "/transactions?limit=4").await.json();
    let last = world.chain.last().unwrap().clone();
    let more = ChainMaker::new(99).blocks(last.block.number + 1, last.block.hash, 12);
    world.append(more).await;
    world.follow().await;
    let second = world
        .get(ROOT, &format!("/transactions?limit=4&cursor={}", next(&page)))
        .await
        .json();
    assert_eq!(hashes(&second), all.iter().skip(4).take(4).collect::<Vec<_>>());
    let newer = world.walk(ROOT, "/transactions", "data", 100).await.texts("hash");
    assert!(
        newer.len() > all.len() && newer.ends_with(&all),
        "the new rows are before the others"
    );
}

/// After a reorganization below the position, the list resumes at the fork.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_of_a_removed_block_resumes_at_the_fork() {
    let mut world = World::random(22, PolicySettings::SPEC).await;
    let page = world.get(ROOT, "/transactions?limit=3").await.json();
    let low = world.get(ROOT, "/transactions?limit=3&before=9").await.json();
    assert!(blocks(&low).iter().all(|block| *block < 9));
    let position = *blocks(&page).last().unwrap();
    let fork = position - 6;
    let parent = world.chain.iter().find(|block| block.block.number == fork - 1).unwrap();
    let branch = ChainMaker::new(77).blocks(fork, parent.block.hash, 12);
    world.reorganize(fork, branch).await;
    let path = format!("/transactions?limit=3&cursor={}", next(&page));
    let behind = world.get(ROOT, &path).await;
    assert_eq!(behind.status, StatusCode::SERVICE_UNAVAILABLE, "{}", behind.text);
    assert!(behind.text.contains("explorer index is behind"));
    world.follow().await;
    let branch = world
        .get(ROOT, &format!("/transactions?before={position}"))
        .await
        .json();
    assert!(
        blocks(&branch)[0] >= fork,
        "the new branch has rows where the cursor stands"
    );
    let resumed = world.get(ROOT, &path).await.json();
    assert!(blocks(&resumed).iter().all(|block| *block < fork), "{fork}: {resumed}");
    let below = world
        .get(ROOT, &format!("/transactions?limit=3&before={fork}"))
        .await
        .json();
    assert_eq!(hashes(&resumed), hashes(&below));
    // A cursor below the fork is not moved.
    let path = format!("/transactions?limit=3&cursor={}", next(&low));
    let all = world
        .walk(ROOT, "/transactions?before=9", "data", 100)
        .await
        .texts("hash");
    assert_eq!(
        hashes(&world.get(ROOT, &path).await.json()),
        all.iter().skip(3).take(3).collect::<Vec<_>>()
    );
}

/// I6: the next page is judged by the newest policy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_a_change_of_policy_takes_effect_on_the_next_page() {
    let world = World::random(21, PolicySettings::SPEC).await;
    let page = world.get(ROOT, "/transactions?limit=3").await.json();
    assert_eq!(hashes(&page).len(), 3);
    let without = gw_policy::testing::world().user("root").snapshot();
    let kept = world.snapshot();
    world.set_policy(Some(without));
    let path = format!("/transactions?limit=100&cursor={}", next(&page));
    let after = world.get(ROOT, &path).await.json();
    let anonymous = world
        .walk(TestCaller::Nobody, "/transactions", "data", 100)
        .await
        .texts("hash");
    assert!(
        hashes(&after)
            .iter()
            .all(|hash| anonymous.contains(&(*hash).to_owned()))
    );
    world.set_policy(None);
    let stale = world.get(ROOT, "/transactions").await;
    assert_eq!(
        (stale.status, stale.text.contains("policy")),
        (StatusCode::SERVICE_UNAVAILABLE, true)
    );
    drop(kept);
    world.set_policy(Some(snapshot(&world.chain)));
    assert_eq!(
        world.get(ROOT, "/transactions?limit=3").await.json()["data"],
        page["data"]
    );
}

/// A cursor is bound to its list, its filter and its viewer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd40_cursors_of_others_are_refused() {
    let world = World::random(24, PolicySettings::SPEC).await;
    let cursor = next(&world.get(ROOT, "/transactions?limit=1").await.json());
    for (who, path) in [
        (TestCaller::User("alice"), "/transactions"),
        (TestCaller::Nobody, "/transactions"),
        (TestCaller::RootAs("alice"), "/transactions"),
        (ROOT, "/transfers"),
        (ROOT, "/blocks"),
        (ROOT, "/blocks/3/transactions"),
    ] {
        let response = world.get(who, &format!("{path}?cursor={cursor}")).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{who:?} {path}");
        assert!(response.text.contains("invalid pagination cursor"), "{}", response.text);
    }
    let logs = world.get(ROOT, "/logs?limit=1").await.json();
    let filtered = format!("/logs?limit=1&from=1&cursor={}", next(&logs));
    assert_eq!(world.get(ROOT, &filtered).await.status, StatusCode::BAD_REQUEST);
}

/// J5, I4: the total is the number of rows below the bound, on each of its pages.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i4_a_total_counts_the_rows_below_the_bound() {
    let root = TestCaller::User("root");
    let world = World::random(92, PolicySettings::SPEC).await;
    let token = hex::encode(address_of("a-token"));
    for path in [
        "/blocks".to_owned(),
        "/transactions".to_owned(),
        "/transfers".to_owned(),
        "/logs".to_owned(),
        format!("/addresses/0x{token}/internal"),
        format!("/addresses/0x{token}/logs"),
        format!("/tokens/0x{token}/transfers"),
        "/blocks/7/transactions".to_owned(),
    ] {
        let whole = world.walk(root, &path, "data", 5).await;
        for before in [0, 1, 2, 9, 24, 25, 1000] {
            let bounded = world.walk(root, &format!("{path}?before={before}"), "data", 5).await;
            assert_eq!(bounded.total, Some(bounded.rows.len() as u64), "{path} {before}");
            assert!(whole.rows.ends_with(&bounded.rows), "{path} {before}");
        }
        let page = world.get(root, &format!("{path}?before=20&limit=1")).await.json();
        if let Some(cursor) = page["next_cursor"].as_str() {
            let next = world
                .get(root, &format!("{path}?before=20&limit=1&cursor={cursor}"))
                .await;
            assert_eq!(next.json()["total"], page["total"], "{path}");
        }
    }
}

/// spec/40 section 3: an offset counts below the bound.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_3_an_offset_counts_below_the_bound() {
    let world = World::random(93, PolicySettings::SPEC).await;
    let token = hex::encode(address_of("a-token"));
    for path in [
        "/blocks".to_owned(),
        "/transactions".to_owned(),
        "/transfers".to_owned(),
        "/logs".to_owned(),
        format!("/addresses/0x{token}/transactions"),
    ] {
        let member = if path.starts_with("/addresses") {
            "transactions"
        } else {
            "data"
        };
        let bounded = world.walk(ROOT, &format!("{path}?before=15"), member, 100).await;
        assert!(bounded.rows.len() > 4, "{path}");
        for offset in [0, 1, 4, bounded.rows.len(), 1000] {
            let page = format!("{path}?before=15&limit=3&offset={offset}");
            let page = world.get(ROOT, &page).await.json();
            let expected: Vec<_> = bounded.rows.iter().skip(offset).take(3).cloned().collect();
            assert_eq!(page[member], Value::from(expected), "{path} {offset}");
            assert_eq!(page["total"].as_u64(), bounded.total, "{path} {offset}");
        }
    }
}

/// spec/40 section 4: every feed has a cursor.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_4_lists_of_tokens_and_holders_are_read_by_their_cursors() {
    let mut world = World::random(94, PolicySettings::SPEC).await;
    // A member of both organizations, who sees the tokens of both.
    let both = policy(&world.chain)
        .user("dana")
        .member("a/staff")
        .member("b/staff")
        .snapshot();
    world.set_policy(Some(both));
    let dana = TestCaller::User("dana");
    let token = address_of("a-token");
    let names = ["alice-w", "bob-w", "a-token", "a-logic", "moved"];
    let readings: Vec<Reading> = (1_u64..)
        .zip(names)
        .flat_map(|(id, name)| {
            // Equal balances, so that address and token id order them.
            [None, Some(U256::from(id)), Some(U256::MAX)].map(|token_id| Reading::TokenBalance {
                token,
                holder: address_of(name),
                token_id,
                balance: U256::MAX / U256::from(1 + id / 2),
            })
        })
        .collect();
    let at = world.chain[23].block.num_hash();
    world.writer.set_readings(at, &readings, &[]).await.unwrap();
    let holders = format!("/tokens/0x{}/holders", hex::encode(token));
    for list in ["/tokens", holders.as_str()] {
        let whole = world.get(dana, &format!("{list}?limit=100")).await.json();
        let rows = whole["data"].as_array().unwrap().clone();
        assert!(rows.len() > 1, "{list}: {whole}");
        assert_eq!(whole["next_cursor"], Value::Null);
        for limit in [1, 2, 7] {
            let walked = world.walk(dana, list, "data", limit).await;
            assert_eq!(
                (walked.rows, walked.total),
                (rows.clone(), whole["total"].as_u64()),
                "{list} {limit}"
            );
        }
        // A cursor counts instead of an offset, and belongs to its list and viewer.
        let first = world.get(dana, &format!("{list}?limit=1")).await.json();
        let cursor = next(&first);
        let second = world
            .get(dana, &format!("{list}?limit=1&offset=5&cursor={cursor}"))
            .await
            .json();
        assert_eq!(second["data"][0], rows[1], "{list}");
        for (who, path) in [(TestCaller::User("alice"), list), (dana, "/transfers")] {
            let refused = world.get(who, &format!("{path}?cursor={cursor}")).await;
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{path}: {}", refused.text);
        }
        assert_eq!(
            world.get(dana, &format!("{list}?cursor=x")).await.status,
            StatusCode::BAD_REQUEST
        );
    }
    // `before`: tokens whose first visible transfer is in an earlier block. Holders are in no block.
    let whole = world.walk(dana, "/tokens", "data", 100).await.rows;
    for before in [0, 1, 2, 3, 25] {
        let bounded = world.walk(dana, &format!("/tokens?before={before}"), "data", 1).await;
        let expected: Vec<_> = (whole.iter())
            .filter(|row| row["blockNumber"].as_u64().unwrap() < before)
            .cloned()
            .collect();
        assert_eq!(
            (bounded.total, bounded.rows),
            (Some(expected.len() as u64), expected),
            "{before}"
        );
    }
    let refused = world.get(dana, &format!("{holders}?before=3")).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
    // A token that appears between two pages shifts none.
    let page = world.get(dana, "/tokens?limit=1").await.json();
    let last = world.chain.last().unwrap().block.clone();
    let more = ChainMaker::new(95).blocks(25, last.hash, 3);
    world.append(more).await;
    world.follow().await;
    let second = world
        .get(dana, &format!("/tokens?limit=1&cursor={}", next(&page)))
        .await
        .json();
    assert_eq!(second["data"][0]["address"], whole[1]["address"]);
}
