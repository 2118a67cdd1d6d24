//! A database that was put back from a copy, or made anew, while the process runs (X5).

use crate::{
    chain::{ChainMaker, snapshot},
    world::{Engine, TestCaller, World},
};
use gw_chain_store::BlockData;
use gw_policy::PolicySettings;
use gw_types::B256;
use http::StatusCode;

const ROOT: TestCaller = TestCaller::User("root");
const LISTS: [&str; 5] = ["/transactions", "/transfers", "/logs", "/blocks", "/blocks/7/internal"];

/// Databases that a process may find in place of the one with `chain`, in the generation that its index knows.
fn others(chain: &[BlockData]) -> [(&'static str, Vec<BlockData>); 4] {
    let without_frames = |block: &BlockData| {
        let mut block = block.clone();
        block.transactions.iter_mut().for_each(|data| data.frames.clear());
        block
    };
    [
        ("another chain", ChainMaker::new(302).blocks(1, B256::ZERO, 24)),
        ("an older copy", chain[..10].to_vec()),
        (
            "the same chain, made anew without traces",
            chain.iter().map(without_frames).collect(),
        ),
        ("a longer chain", ChainMaker::new(303).blocks(1, B256::ZERO, 40)),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x5_a_database_that_was_put_back_is_noticed() {
    for engine in Engine::all() {
        let chain = ChainMaker::new(301).blocks(1, B256::ZERO, 24);
        let mut world = World::loaded_on(engine, chain.clone(), PolicySettings::SPEC).await;
        for (name, other) in others(&chain) {
            let generation = world.generation().await;
            let page = world.get(ROOT, "/transactions?limit=3").await.json();
            let cursor = format!("/transactions?limit=3&cursor={}", page["next_cursor"].as_str().unwrap());
            let hash = page["data"][0]["hash"].as_str().unwrap().to_owned();
            world.set_policy(Some(snapshot(&other)));
            world.put_back(other.clone(), generation).await;
            for path in LISTS
                .into_iter()
                .chain([cursor.as_str(), &format!("/transactions/{hash}")])
            {
                let behind = world.get(ROOT, path).await;
                assert_eq!(
                    behind.status,
                    StatusCode::SERVICE_UNAVAILABLE,
                    "{name} {path}: {}",
                    behind.text
                );
                assert!(
                    behind.text.contains("explorer index is behind"),
                    "{name} {path}: {}",
                    behind.text
                );
            }
            // The index is loaded again, from the first block on.
            world.follow().await;
            let expected = World::loaded(other, PolicySettings::SPEC).await;
            for path in LISTS {
                let (here, there) = (
                    world.walk(ROOT, path, "data", 7).await,
                    expected.walk(ROOT, path, "data", 7).await,
                );
                assert_eq!(here, there, "{name} {path}");
            }
            let refused = world.get(ROOT, &cursor).await;
            assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{name}: {}", refused.text);
            assert!(refused.text.contains("invalid pagination cursor"), "{}", refused.text);
        }
    }
}

/// The generation of the other database differs, too; its blocks are the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x5_a_database_with_an_earlier_generation_is_loaded_again() {
    let chain = ChainMaker::new(304).blocks(1, B256::ZERO, 24);
    let mut world = World::loaded(chain.clone(), PolicySettings::SPEC).await;
    let last = world.chain[14].block.clone();
    let branch = ChainMaker::new(305).blocks(16, last.hash, 9);
    world.reorganize(16, branch).await;
    world.follow().await;
    let page = world.get(ROOT, "/transactions?limit=3&before=9").await.json();
    let cursor = format!("/transactions?limit=3&cursor={}", page["next_cursor"].as_str().unwrap());
    assert_eq!(world.get(ROOT, &cursor).await.status, StatusCode::OK);
    let blocks = world.chain.clone();
    world.put_back(blocks, 0).await;
    assert_eq!(world.get(ROOT, "/blocks").await.status, StatusCode::SERVICE_UNAVAILABLE);
    world.follow().await;
    assert_eq!(world.get(ROOT, "/blocks").await.status, StatusCode::OK);
    assert_eq!(world.get(ROOT, &cursor).await.status, StatusCode::BAD_REQUEST);
}

/// Rows that vanish between the index and the store are no fault of the gateway's, and no row is told from another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x5_rows_that_vanished_are_answered_with_503() {
    let world = World::random(306, PolicySettings::SPEC).await;
    world.tamper("DELETE FROM transactions WHERE id % 2 = 0").await;
    for path in ["/transactions", "/transfers", "/logs"] {
        let response = world.get(ROOT, path).await;
        assert_eq!(
            response.status,
            StatusCode::SERVICE_UNAVAILABLE,
            "{path}: {}",
            response.text
        );
        assert!(
            response.text.contains("explorer index is behind"),
            "{path}: {}",
            response.text
        );
    }
}
