//! HD23 and HD21: the feed follows changes, becomes stale and recovers.

use crate::world::{World, did, on_both_engines};
use gw_store::{
    Actor, BootClock, ClockJump, Feed, FeedTiming, Store, StoreError, Uptime,
    record::{NewOrganization, NewUser},
};
use gw_types::{Clock, Epoch, ExternalId};
use std::{
    future::Future,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

on_both_engines! {
    the_committing_instance_has_applied_the_change_when_commit_returns,
    another_instance_follows,
    hd21_a_caller_that_hangs_up_loses_neither_commit_nor_publication,
    hd23_e1_a_missing_epoch_is_healed_by_a_full_load,
    hd23_e1_an_unknown_entity_is_healed_by_a_full_load,
    hd23_e1_a_lower_head_is_healed_by_a_full_load,
    hd23_another_history_of_the_same_length_is_healed_by_a_full_load,
    hd21_a_caller_may_hang_up_at_any_point,
    hd23_e4_without_confirmation_the_snapshot_turns_stale_and_with_it_fresh_again,
    rl1_a_change_that_this_instance_cannot_apply_is_not_acknowledged,
}

/// The clocks of test and database differ by years; a separate test covers that.
fn timing() -> FeedTiming {
    FeedTiming {
        max_skew: Duration::MAX,
        stale_after: Duration::from_secs(20),
        ..FeedTiming::default()
    }
}

async fn feed(store: &Store) -> Feed {
    Feed::start(store, timing(), Arc::new(BootClock)).await.unwrap()
}

/// Waits until `holds` returns true; fails after a timeout.
async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let reached = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), reached)
        .await
        .unwrap_or_else(|_| panic!("never came: {what}"));
}

async fn make_user(store: &Store, name: &ExternalId) -> Epoch {
    let mut tx = store.begin(&Actor::system()).await.unwrap();
    let new = NewUser {
        external_id: name.clone(),
        kyc: false,
        auth_tenant_id: None,
        groups: Vec::new(),
    };
    tx.create_user(new).await.unwrap();
    tx.commit().await.unwrap()
}

fn knows(feed: &Feed, name: &ExternalId) -> bool {
    let pinned = feed.pin();
    pinned.fresh && pinned.snapshot.user_by_external(name).is_some()
}

async fn the_committing_instance_has_applied_the_change_when_commit_returns(world: &World) {
    let feed = feed(&world.store).await;
    assert!(feed.pin().fresh, "loading confirms the head");
    for n in 0..10 {
        let name = did(&format!("user{n}"));
        let epoch = make_user(&world.store, &name).await;
        assert!(knows(&feed, &name), "no wait is needed after commit");
        assert_eq!((feed.epoch(), feed.pin().snapshot.epoch()), (epoch, epoch));
    }
    assert!(feed.pin().snapshot.same_rows(&world.store.load().await.unwrap()));
}

async fn another_instance_follows(world: &World) {
    let other = world.another_store(2).await;
    let (here, there) = (feed(&world.store).await, feed(&other).await);
    let (from_here, from_there) = (did("here"), did("there"));
    make_user(&world.store, &from_here).await;
    make_user(&other, &from_there).await;
    eventually("the other's change, here", || knows(&here, &from_there)).await;
    eventually("our change, there", || knows(&there, &from_here)).await;
    assert!(here.pin().snapshot.same_rows(&there.pin().snapshot));
}

/// HD21: aborts the caller after one poll, two polls, … until it completes by itself. Every commit is published, and no
/// mutation is half done.
async fn hd21_a_caller_that_hangs_up_loses_neither_commit_nor_publication(world: &World) {
    let feed = feed(&world.store).await;
    for polls in 0.. {
        let name = did(&format!("caller{polls}"));
        let mut tx = world.begin().await;
        let new = NewUser {
            external_id: name.clone(),
            kyc: false,
            auth_tenant_id: None,
            groups: Vec::new(),
        };
        tx.create_user(new).await.unwrap();
        let done = poll_and_drop(tx.commit(), polls).await;
        if polls == 0 {
            // Never polled: the commit never started, so the mutation is rolled back.
            assert!(!done);
        } else {
            eventually("the abandoned commit, published", || knows(&feed, &name)).await;
        }
        if done || polls > 20 {
            assert!(polls > 0);
            break;
        }
    }
    let fresh = world.store.load().await.unwrap();
    assert!(fresh.user_by_external(&did("caller0")).is_none() && fresh.user_by_external(&did("caller1")).is_some());
}

async fn poll_and_drop<T>(future: impl Future<Output = T>, polls: usize) -> bool {
    let mut future = Box::pin(future);
    let mut left = polls;
    std::future::poll_fn(move |context| {
        if left == 0 {
            return std::task::Poll::Ready(false);
        }
        left -= 1;
        future.as_mut().poll(context).map(|_| true)
    })
    .await
}

/// Simulates a gap as in a sequence-numbered or replicated change table.
async fn hd23_e1_a_missing_epoch_is_healed_by_a_full_load(world: &World) {
    let feed = feed(&world.store).await;
    let slug = rename_past_the_store(world, "UPDATE policy_epoch SET epoch = epoch + 3").await;
    heals(&feed, world, &slug).await;
}

async fn hd23_e1_an_unknown_entity_is_healed_by_a_full_load(world: &World) {
    let feed = feed(&world.store).await;
    let change = "INSERT INTO policy_changes (epoch, entity, row_id) \
                  SELECT epoch + 1, 'mystery', organizations.id FROM policy_epoch, organizations WHERE slug = \
                  'default'";
    world.tamper(&[change]).await;
    let slug = rename_past_the_store(world, "UPDATE policy_epoch SET epoch = epoch + 1").await;
    heals(&feed, world, &slug).await;
}

async fn hd23_e1_a_lower_head_is_healed_by_a_full_load(world: &World) {
    make_user(&world.store, &did("a")).await;
    make_user(&world.store, &did("b")).await;
    let feed = feed(&world.store).await;
    let slug = rename_past_the_store(world, "UPDATE policy_epoch SET epoch = 1").await;
    heals(&feed, world, &slug).await;
    assert_eq!(feed.epoch(), Epoch(2), "the new history goes on from its own head");
}

/// An epoch lost in a failover and its successor have the same number: they may differ in more than the changes in
/// between.
async fn hd23_another_history_of_the_same_length_is_healed_by_a_full_load(world: &World) {
    let feed = feed(&world.store).await;
    for (slug, raise) in [("once", "epoch"), ("twice", "epoch + 1")] {
        let rename = format!("UPDATE organizations SET slug = '{slug}' WHERE name = 'Default'");
        let stamp = "UPDATE policy_epoch SET epoch = epoch";
        let forget = "DELETE FROM policy_changes WHERE entity = 'organization'";
        let other = "INSERT INTO policy_changes (epoch, entity, row_id) \
                     SELECT epoch + 1, 'user', organizations.id FROM policy_epoch, organizations";
        let raise = format!("UPDATE policy_epoch SET epoch = {raise}");
        world
            .tamper(&[
                &rename,
                forget,
                stamp,
                other,
                &raise,
                "DELETE FROM policy_changes WHERE epoch > 100",
            ])
            .await;
        eventually("the full load", || {
            feed.pin().snapshot.organizations().any(|org| *org.slug == *slug)
        })
        .await;
        world.tamper(&["DELETE FROM policy_changes"]).await;
    }
}

/// HD21: the whole mutation is aborted at every await point in turn; the store keeps working, and the counts are
/// correct.
async fn hd21_a_caller_may_hang_up_at_any_point(world: &World) {
    let feed = feed(&world.store).await;
    for polls in 0.. {
        let name = did(&format!("caller{polls}"));
        let store = world.store.clone();
        if poll_and_drop(async move { make_user(&store, &name).await }, polls).await || polls > 300 {
            // The number of awaits depends on the machine; at least one run must have been aborted.
            assert!(polls > 0);
            break;
        }
    }
    let (name, deadline) = (did("after"), Duration::from_secs(20));
    tokio::time::timeout(deadline, make_user(&world.store, &name))
        .await
        .expect("no turn was kept by the dead");
    world.store.drain().await;
    let loaded = world.store.load().await.unwrap();
    assert!(
        knows(&feed, &name) && feed.pin().snapshot.same_rows(&loaded),
        "all that was kept is published"
    );
    let entries = world.store.outbox(0, 1000).await.unwrap().len();
    let users = world.rows("SELECT count(*) AS n FROM users", "n").await[0];
    assert_eq!(
        i64::try_from(entries).unwrap(),
        users,
        "an entry for each user, a user for each entry"
    );
}

/// Changes a row without a change row, so that a feed which only follows change rows misses it.
async fn rename_past_the_store(world: &World, epoch: &str) -> String {
    world
        .tamper(&[
            "UPDATE organizations SET slug = 'renamed' WHERE slug = 'default'",
            "DELETE FROM policy_changes WHERE entity = 'organization'",
            epoch,
        ])
        .await;
    "renamed".to_owned()
}

async fn heals(feed: &Feed, world: &World, slug: &str) {
    eventually("the full load", || {
        let pinned = feed.pin();
        pinned.fresh && pinned.snapshot.organizations().any(|org| &*org.slug == slug)
    })
    .await;
    assert!(feed.pin().snapshot.same_rows(&world.store.load().await.unwrap()));
    let name = did("after");
    make_user(&world.store, &name).await;
    assert!(knows(feed, &name), "and the feed follows again");
}

/// A boot-time clock that the test advances.
#[derive(Debug, Default)]
struct Awake(AtomicU64);

impl Uptime for Awake {
    fn now(&self) -> Duration {
        Duration::from_millis(1000 + self.0.load(Ordering::SeqCst))
    }
}

async fn hd23_e4_without_confirmation_the_snapshot_turns_stale_and_with_it_fresh_again(world: &World) {
    let awake = Arc::new(Awake::default());
    let timing = FeedTiming {
        stale_after: Duration::from_secs(2),
        ..timing()
    };
    let feed = Feed::start(&world.store, timing, Arc::clone(&awake) as Arc<dyn Uptime>)
        .await
        .unwrap();
    world.tamper(&["ALTER TABLE policy_epoch RENAME TO hidden_epoch"]).await;
    // A query that was sent before the table was hidden must not confirm later times.
    eventually("the last confirmation to age", || {
        awake.0.fetch_add(100, Ordering::SeqCst);
        !feed.pin().fresh
    })
    .await;
    awake.0.fetch_add(10_000, Ordering::SeqCst);
    assert!(!feed.pin().fresh, "and nothing confirms it");
    world.tamper(&["ALTER TABLE hidden_epoch RENAME TO policy_epoch"]).await;
    eventually("a new confirmation", || feed.pin().fresh).await;
}

/// HD23 E-5: the test's clock is in 2023, the server's is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd23_e5_clocks_that_are_apart_make_the_snapshot_stale() {
    let Some(world) = World::postgres().await else { return };
    let feed = Feed::start(&world.store, FeedTiming::default(), Arc::new(BootClock))
        .await
        .unwrap();
    assert!(!feed.pin().fresh);
    assert!(
        feed.clock().now().secs() > world.clock.now().secs() + 1_000_000,
        "decisions take the later time"
    );
}

/// HD23 E-6: with LISTEN, polling is only a safety net: this feed would poll once an hour.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd23_e6_notifications_alone_carry_changes() {
    let Some(world) = World::postgres().await else { return };
    let hour = Duration::from_secs(3600);
    let timing = FeedTiming {
        poll_alone: hour,
        poll_listening: hour,
        ..timing()
    };
    let other = world.another_store(2).await;
    let other_feed = Feed::start(&other, timing, Arc::new(BootClock)).await.unwrap();
    for n in 0..3 {
        let mut tx = world.begin().await;
        let slug = format!("bank{n}");
        tx.create_organization(NewOrganization {
            slug: slug.clone(),
            ..Default::default()
        })
        .await
        .unwrap();
        let epoch = tx.commit().await.unwrap();
        eventually("the notification", || other_feed.epoch() >= epoch).await;
        assert!(other_feed.pin().snapshot.organizations().any(|org| *org.slug == *slug));
    }
}

/// RL1: the mutation is committed, but this instance cannot load the changes: it must not be acknowledged.
async fn rl1_a_change_that_this_instance_cannot_apply_is_not_acknowledged(world: &World) {
    make_user(&world.store, &did("broken")).await;
    let timing = FeedTiming {
        max_skew: Duration::MAX,
        stale_after: Duration::from_secs(1),
        ..FeedTiming::default()
    };
    let feed = Feed::start(&world.store, timing, Arc::new(BootClock)).await.unwrap();
    world
        .tamper(&["UPDATE users SET external_id = 'no DID' WHERE external_id = 'did:test:broken'"])
        .await;
    let mut tx = world.begin().await;
    let new = NewUser {
        external_id: did("next"),
        kyc: false,
        auth_tenant_id: None,
        groups: Vec::new(),
    };
    tx.create_user(new).await.unwrap();
    let answer = tx.commit().await;
    assert!(matches!(answer, Err(StoreError::Unconfirmed(_))), "{answer:?}");
    assert!(!feed.pin().fresh, "and nothing is served by the old policy");
    let mended = "UPDATE users SET external_id = 'did:test:broken' WHERE external_id = 'no DID'";
    world
        .tamper(&[mended, "UPDATE policy_epoch SET epoch = epoch + 1"])
        .await;
    eventually("the change, applied", || knows(&feed, &did("next"))).await;
}

/// RL11: the local clock jumps an hour ahead and back. The feed is stale while it is wrong and fresh as soon as both
/// clocks agree; decisions use the correct time, and both events are reported.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl11_an_instance_recovers_from_a_clock_that_was_an_hour_ahead() {
    let Some(world) = World::postgres().await else { return };
    let right = world
        .rows("SELECT EXTRACT(EPOCH FROM clock_timestamp())::BIGINT AS at", "at")
        .await[0];
    world.clock.pass(right - world.clock.now().secs());
    // The test's clock stands still: minutes on a slow machine are within the skew here, an hour is not.
    let timing = FeedTiming {
        max_skew: Duration::from_secs(600),
        ..timing()
    };
    let feed = Feed::start(&world.store, timing, Arc::new(BootClock)).await.unwrap();
    let jumps = Arc::new(Mutex::new(Vec::new()));
    feed.on_clock_jump({
        let jumps = Arc::clone(&jumps);
        move |jump| jumps.lock().unwrap().push(jump)
    });
    eventually("a first confirmation", || feed.pin().fresh && feed.clocks_agree()).await;

    world.clock.pass(3600);
    eventually("the skew, noticed", || !feed.pin().fresh && !feed.clocks_agree()).await;
    assert!(feed.clock().now().secs() >= right + 3600);
    assert!(matches!(jumps.lock().unwrap()[..], [ClockJump::Apart { ahead: true, by }] if by.as_secs() > 2900));

    world.clock.pass(-3600);
    eventually("both agree", || feed.pin().fresh && feed.clocks_agree()).await;
    assert!(
        feed.clock().now().secs() < right + 600,
        "decisions are not held an hour ahead"
    );
    let jumps = jumps.lock().unwrap().clone();
    assert!(
        matches!(jumps[..], [_, ClockJump::Confirmed { taken_back }] if taken_back.as_secs() > 2900),
        "{jumps:?}"
    );
    make_user(&world.store, &did("after")).await;
    assert!(knows(&feed, &did("after")));
}
