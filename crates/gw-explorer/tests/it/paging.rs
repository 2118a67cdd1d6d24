//! Cursors, reorganizations and changes of policy between pages.

use crate::{
    chain::{ChainMaker, snapshot},
    world::{TestCaller, World},
};
use gw_policy::{PolicySettings, testing::address_of};
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
