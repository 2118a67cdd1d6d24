//! Reading a block again (spec/40 section 4).

use crate::{
    chain::ChainMaker,
    world::{Response, TestCaller, World},
};
use gw_audit::AuthMethod;
use gw_chain_store::{BlockData, Job, JobKind};
use gw_policy::PolicySettings;
use gw_store::record::{AccessInput, NewGroup};
use gw_testkit::fixture::ADMIN_TOKEN;
use gw_types::{B256, Seconds};
use http::StatusCode;

async fn request(world: &World, headers: &[(&str, &str)], number: &str) -> Response {
    world.post(headers, &format!("/index/block/{number}"), "").await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_the_platform_token_queues_a_block() {
    let mut world = World::on_policy_store(PolicySettings::SPEC).await;
    world.append(ChainMaker::new(71).blocks(1, B256::ZERO, 3)).await;
    let org = world.fixture.create_org("a").await;
    let group = NewGroup {
        is_org_admin: true,
        ..NewGroup::plain(org, "admins", "admins")
    };
    let admin = world.fixture.create_user("admin", group, AccessInput::default()).await;
    let bearer = format!("Bearer {}", admin.token);
    for (headers, status) in [
        (vec![], StatusCode::UNAUTHORIZED),
        (vec![("authorization", "Bearer x")], StatusCode::UNAUTHORIZED),
        (vec![("x-admin-token", "wrong")], StatusCode::UNAUTHORIZED),
        (vec![("authorization", bearer.as_str())], StatusCode::FORBIDDEN),
    ] {
        let response = request(&world, &headers, "2").await;
        assert_eq!(response.status, status, "{headers:?}: {}", response.text);
    }
    let platform = [("x-admin-token", ADMIN_TOKEN)];
    for (number, status) in [
        ("x", StatusCode::BAD_REQUEST),
        ("-1", StatusCode::BAD_REQUEST),
        ("4", StatusCode::NOT_FOUND),
        ("18446744073709551615", StatusCode::NOT_FOUND),
    ] {
        let response = request(&world, &platform, number).await;
        assert_eq!(response.status, status, "{number}: {}", response.text);
    }
    let take = async || world.writer.take_tasks(JobKind::Block, 9, Seconds(60)).await.unwrap();
    assert!(take().await.is_empty());
    let entries = async || {
        let entries = world.fixture.store.outbox(0, 1000).await.unwrap();
        let of_blocks = entries.into_iter().filter_map(|row| row.entry.resource_id);
        of_blocks
            .filter(|id| id.starts_with("explorer_block_"))
            .collect::<Vec<_>>()
    };
    assert!(entries().await.is_empty());
    world.fixture.access_records();
    let response = request(&world, &platform, "2").await;
    assert_eq!(response.status, StatusCode::ACCEPTED, "{}", response.text);
    assert_eq!(response.json()["number"], 2);
    assert_eq!(entries().await, ["explorer_block_2"]);
    let record = world.fixture.access_records().pop().unwrap();
    assert_eq!(record.auth_method, AuthMethod::AdminToken);
    let jobs: Vec<Job> = take().await.iter().map(|task| task.job).collect();
    assert_eq!(jobs, [Job::Block { block: 2 }]);
}

/// The index notices a block whose rows changed, and a block that was traced late.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x10_lists_show_the_rows_of_a_block_that_was_read_again() {
    let root = TestCaller::User("root");
    let mut chain = ChainMaker::new(72).blocks(1, B256::ZERO, 12);
    let without_frames = |block: &BlockData| {
        let mut block = block.clone();
        block.block.frames_complete = false;
        block.transactions.iter_mut().for_each(|data| data.frames.clear());
        block
    };
    let stored: Vec<BlockData> = chain.iter().map(without_frames).collect();
    let mut world = World::loaded(stored, PolicySettings::SPEC).await;
    let list = async |world: &World| world.walk(root, "/transactions?with_categories=true", "data", 5).await;
    let frames = async |world: &World, number: u64| {
        let path = format!("/blocks/{number}/internal");
        world.walk(root, &path, "data", 5).await.rows.len()
    };
    assert_eq!(frames(&world, 5).await, 0);
    let before = list(&world).await;
    // Block 5 is read again, with its trace and with other sides of its transactions.
    for data in &mut chain[4].transactions {
        data.transaction.from = gw_policy::testing::address_of("a-token");
        data.transaction.to = Some(gw_policy::testing::address_of("a-token"));
    }
    assert!(world.writer.replace_block(&chain[4]).await.unwrap());
    world.follow().await;
    let expected = World::loaded(
        (chain.iter().enumerate())
            .map(|(index, block)| {
                if index == 4 {
                    block.clone()
                } else {
                    without_frames(block)
                }
            })
            .collect(),
        PolicySettings::SPEC,
    )
    .await;
    assert_ne!(list(&world).await, before);
    assert_eq!(list(&world).await, list(&expected).await);
    assert_eq!(frames(&world, 5).await, frames(&expected, 5).await);
    assert!(frames(&world, 5).await > 0, "the block has frames that root sees");
    // Replacing a block by the same rows changes nothing, so cursors stay valid.
    assert!(!world.writer.replace_block(&chain[4]).await.unwrap());
}
