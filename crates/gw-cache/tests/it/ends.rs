//! Ends by a clock that stands still: exact in memory, where the clock is ours.

use gw_cache::{Cache, Entry, Group, PutError, Rate, Space, Window};
use gw_types::{Clock, Seconds, Timestamp};
use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

#[derive(Debug)]
struct ManualClock(AtomicI64);

impl ManualClock {
    fn advance(&self, micros: i64) {
        self.0.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

fn memory() -> (Cache, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock(AtomicI64::new(1_700_000_000_000_000)));
    (Cache::in_process(clock.clone()), clock)
}

#[tokio::test]
async fn a_value_ends_to_the_microsecond() {
    let (cache, clock) = memory();
    cache.put(Entry::new(Space::LinkChallenge, "a", b"1")).await.unwrap();
    clock.advance(299_999_999);
    assert_eq!(
        cache.get(Space::LinkChallenge, "a").await.unwrap().as_deref(),
        Some(&b"1"[..])
    );
    clock.advance(1);
    assert_eq!(cache.get(Space::LinkChallenge, "a").await, Ok(None));
    assert_eq!(cache.take(Space::LinkChallenge, "a").await, Ok(None));
    assert_eq!(cache.list(Space::LinkChallenge, 0, 10).await.unwrap().total, 0);
}

#[tokio::test]
async fn a_full_space_refuses_and_room_comes_back_with_time() {
    let (cache, clock) = memory();
    for key in 0..Space::OauthSession.most() {
        cache
            .put(Entry::new(Space::OauthSession, &key.to_string(), b""))
            .await
            .unwrap();
    }
    let another = Entry::new(Space::OauthSession, "another", b"");
    clock.advance(100_000_000);
    assert_eq!(cache.put(another).await, Err(PutError::Full { wait: Seconds(500) }));
    assert!(
        cache.get(Space::OauthSession, "0").await.unwrap().is_some(),
        "nobody is pushed out"
    );
    cache
        .put(Entry::new(Space::OauthSession, "0", b"replaced"))
        .await
        .unwrap();
    clock.advance(500_000_000);
    cache.put(another).await.unwrap();
}

#[tokio::test]
async fn identity_9_ten_per_minute_then_wait() {
    let (cache, clock) = memory();
    let rate = Rate::per_minute("auth", NonZeroU32::new(10).unwrap());
    for _ in 0..10 {
        assert_eq!(cache.pace(rate, "one").await, Ok(()));
    }
    assert_eq!(cache.pace(rate, "one").await, Err(Seconds(6)));
    assert_eq!(cache.pace(rate, "other").await, Ok(()), "keys are counted apart");
    clock.advance(5_999_999);
    assert_eq!(cache.pace(rate, "one").await, Err(Seconds(1)));
    clock.advance(1);
    assert_eq!(cache.pace(rate, "one").await, Ok(()));
    assert_eq!(cache.pace(rate, "one").await, Err(Seconds(6)));
}

#[tokio::test]
async fn a_window_ends_on_time_and_does_not_move() {
    let (cache, clock) = memory();
    cache.hit(Window::ClientFailures, "a").await.unwrap();
    clock.advance(899_999_999);
    let hits = cache.hit(Window::ClientFailures, "a").await.unwrap();
    assert_eq!((hits.count, hits.ends_in), (2, Duration::from_micros(1)));
    assert_eq!(cache.hits(Window::ClientFailures, "a").await.unwrap(), hits);
    clock.advance(1);
    assert_eq!(cache.hits(Window::ClientFailures, "a").await.unwrap().count, 0);
}

#[tokio::test]
async fn rts4_hd34_a_full_group_says_when_it_has_room() {
    let (cache, clock) = memory();
    let groups = [Group::new("address", 2), Group::new("network", 3)];
    let elsewhere = [Group::new("other address", 2), Group::new("network", 3)];
    cache
        .put(Entry::new(Space::LoginSession, "a", b"").with_group_limits(&groups))
        .await
        .unwrap();
    clock.advance(100_000_000);
    cache
        .put(Entry::new(Space::LoginSession, "b", b"").with_group_limits(&groups))
        .await
        .unwrap();
    let wait = |wait| Err(PutError::GroupFull { wait: Seconds(wait) });
    assert_eq!(
        cache
            .put(Entry::new(Space::LoginSession, "c", b"").with_group_limits(&groups))
            .await,
        wait(500)
    );
    cache
        .put(Entry::new(Space::LoginSession, "c", b"").with_group_limits(&elsewhere))
        .await
        .unwrap();
    assert_eq!(
        cache
            .put(Entry::new(Space::LoginSession, "d", b"").with_group_limits(&elsewhere))
            .await,
        wait(500)
    );
    clock.advance(500_000_000);
    cache
        .put(Entry::new(Space::LoginSession, "d", b"").with_group_limits(&elsewhere))
        .await
        .unwrap();
}
