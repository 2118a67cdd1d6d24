//! K2: the reads of one viewer do not take the connections of others.

use crate::world::{TestCaller, World};
use gw_policy::{PolicySettings, testing::address_of};
use http::StatusCode;
use std::sync::Arc;
use tokio::task::JoinSet;

/// The most reads of one viewer that run or wait.
const MAX_READS: usize = 64;

/// `alice` reads balances of a node that does not answer yet. The read that is refused is one more than may wait, so at
/// that moment all others run or wait; `bob` and an anonymous viewer read meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_reads_of_one_viewer_do_not_delay_another() {
    let alice = TestCaller::User("alice");
    let world = Arc::new(World::random(93, PolicySettings::SPEC).await);
    let path = format!("/addresses/0x{}/balance", hex::encode(address_of("alice-w")));
    let answering = world.node.pause.clone().write_owned().await;
    let mut reads = JoinSet::new();
    for _ in 0..=MAX_READS {
        let (world, path) = (Arc::clone(&world), path.clone());
        reads.spawn(async move { world.get(alice, &path).await });
    }
    let refused = reads.join_next().await.unwrap().unwrap();
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{}", refused.text);
    for other in [TestCaller::User("bob"), TestCaller::Nobody] {
        let answer = world.get(other, "/transactions?limit=5").await;
        assert_eq!(answer.status, StatusCode::OK, "{other:?} {}", answer.text);
    }
    let again = world.get(alice, "/transactions").await;
    assert_eq!(
        again.status,
        StatusCode::TOO_MANY_REQUESTS,
        "all reads of a viewer count"
    );
    drop(answering);
    while let Some(read) = reads.join_next().await {
        assert_eq!(read.unwrap().status, StatusCode::OK);
    }
    assert_eq!(world.get(alice, "/transactions").await.status, StatusCode::OK);
}
