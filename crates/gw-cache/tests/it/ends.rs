//! Ends of values with a clock that the test controls: exact in memory, where the clock is ours.

use gw_cache::{Cache, CounterKind, Entry, Group, Namespace, PutError, Rate};
use gw_types::{Seconds, testing::ManualClock};
use std::{num::NonZeroU32, sync::Arc, time::Duration};

fn memory() -> (Cache, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::default());
    (Cache::in_process(clock.clone()), clock)
}

#[tokio::test]
async fn a_value_ends_to_the_microsecond() {
    let (cache, clock) = memory();
    cache
        .put(Entry::new(Namespace::LinkChallenge, "a", b"1"))
        .await
        .unwrap();
    clock.pass_micros(299_999_999);
    assert_eq!(
        cache.get(Namespace::LinkChallenge, "a").await.unwrap().as_deref(),
        Some(&b"1"[..])
    );
    clock.pass_micros(1);
    assert_eq!(cache.get(Namespace::LinkChallenge, "a").await, Ok(None));
    assert_eq!(cache.take(Namespace::LinkChallenge, "a").await, Ok(None));
    assert_eq!(cache.list(Namespace::LinkChallenge, 0, 10).await.unwrap().total, 0);
}

#[tokio::test]
async fn a_full_space_refuses_and_room_comes_back_with_time() {
    let (cache, clock) = memory();
    for key in 0..Namespace::OauthSession.capacity() {
        cache
            .put(Entry::new(Namespace::OauthSession, &key.to_string(), b""))
            .await
            .unwrap();
    }
    let another = Entry::new(Namespace::OauthSession, "another", b"");
    clock.pass_micros(100_000_000);
    assert_eq!(cache.put(another).await, Err(PutError::Full { wait: Seconds(500) }));
    assert!(
        cache.get(Namespace::OauthSession, "0").await.unwrap().is_some(),
        "nobody is pushed out"
    );
    cache
        .put(Entry::new(Namespace::OauthSession, "0", b"replaced"))
        .await
        .unwrap();
    clock.pass_micros(500_000_000);
    cache.put(another).await.unwrap();
}

#[tokio::test]
async fn identity_9_ten_per_minute_then_wait() {
    let (cache, clock) = memory();
    let rate = Rate::per_minute("auth", NonZeroU32::new(10).unwrap());
    for _ in 0..10 {
        assert_eq!(cache.check_rate(rate, "one").await, Ok(()));
    }
    assert_eq!(cache.check_rate(rate, "one").await, Err(Seconds(6)));
    assert_eq!(cache.check_rate(rate, "other").await, Ok(()), "keys are counted apart");
    clock.pass_micros(5_999_999);
    assert_eq!(cache.check_rate(rate, "one").await, Err(Seconds(1)));
    clock.pass_micros(1);
    assert_eq!(cache.check_rate(rate, "one").await, Ok(()));
    assert_eq!(cache.check_rate(rate, "one").await, Err(Seconds(6)));
}

#[tokio::test]
async fn a_window_ends_on_time_and_does_not_move() {
    let (cache, clock) = memory();
    cache.hit(CounterKind::ClientFailures, "a").await.unwrap();
    clock.pass_micros(899_999_999);
    let hits = cache.hit(CounterKind::ClientFailures, "a").await.unwrap();
    assert_eq!((hits.count, hits.ends_in), (2, Duration::from_micros(1)));
    assert_eq!(cache.hits(CounterKind::ClientFailures, "a").await.unwrap(), hits);
    clock.pass_micros(1);
    assert_eq!(cache.hits(CounterKind::ClientFailures, "a").await.unwrap().count, 0);
}

#[tokio::test]
async fn rts4_hd34_a_full_group_says_when_it_has_room() {
    let (cache, clock) = memory();
    let groups = [Group::new("address", 2), Group::new("network", 3)];
    let elsewhere = [Group::new("other address", 2), Group::new("network", 3)];
    cache
        .put(Entry::new(Namespace::LoginSession, "a", b"").with_group_limits(&groups))
        .await
        .unwrap();
    clock.pass_micros(100_000_000);
    cache
        .put(Entry::new(Namespace::LoginSession, "b", b"").with_group_limits(&groups))
        .await
        .unwrap();
    let wait = |wait| Err(PutError::GroupFull { wait: Seconds(wait) });
    assert_eq!(
        cache
            .put(Entry::new(Namespace::LoginSession, "c", b"").with_group_limits(&groups))
            .await,
        wait(500)
    );
    cache
        .put(Entry::new(Namespace::LoginSession, "c", b"").with_group_limits(&elsewhere))
        .await
        .unwrap();
    assert_eq!(
        cache
            .put(Entry::new(Namespace::LoginSession, "d", b"").with_group_limits(&elsewhere))
            .await,
        wait(500)
    );
    clock.pass_micros(500_000_000);
    cache
        .put(Entry::new(Namespace::LoginSession, "d", b"").with_group_limits(&elsewhere))
        .await
        .unwrap();
}
