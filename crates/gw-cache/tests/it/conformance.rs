//! The suite that every implementation of the cache passes.

use gw_cache::{Bytes, Cache, Change, CounterKind, Entry, Group, Namespace, PutError, Rate};
use gw_types::{Clock, Secret, Timestamp};
use std::{
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

/// Real time: a test cannot set the clock of another process.
#[derive(Debug)]
pub(crate) struct RealClock(Instant);

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(1_700_000_000_000_000 + i64::try_from(self.0.elapsed().as_micros()).unwrap())
    }
}

pub(crate) fn clock() -> Arc<RealClock> {
    Arc::new(RealClock(Instant::now()))
}

async fn redis() -> Option<Cache> {
    let Some(url) = gw_testkit::redis::database().unwrap() else {
        println!("NOT RUN: no Redis, as GW_SKIP_REDIS asks");
        return None;
    };
    Some(Cache::connect(&Secret::new(url), clock()).await.unwrap())
}

macro_rules! conformance {
    ($($name:ident)*) => {
        mod memory {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                super::$name(&gw_cache::Cache::in_process(super::clock())).await;
            })*
        }

        mod redis {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() {
                if let Some(cache) = super::redis().await {
                    super::$name(&cache).await;
                }
            })*
        }
    };
}

conformance! {
    a_value_is_kept_got_and_taken_once
    a_value_replaces_another_unless_it_must_be_new
    values_end_on_time
    an_update_keeps_the_end
    an_update_keeps_sets_or_removes
    a_thousand_parallel_takes_have_one_winner
    a_thousand_parallel_updates_have_one_winner
    a_thousand_parallel_puts_of_one_new_key_have_one_winner
    parallel_updates_lose_nothing
    a_group_holds_so_many
    parallel_puts_never_overfill_a_group
    a_full_space_refuses
    rts4_hd34_every_group_of_a_value_counts_it
    rts4_hd34_when_full_the_fullest_network_gives_way
    rts4_hd34_what_has_ended_counts_for_no_network
    rts4_hd34_waits_are_told
    a_page_is_in_order_of_ends
    a_window_counts_every_hit
    a_window_ends
    a_pace_is_a_burst_and_then_even
    keys_and_values_may_be_any_bytes
}

fn some(value: &[u8]) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(value))
}

async fn a_value_is_kept_got_and_taken_once(cache: &Cache) {
    cache.put(Entry::new(Namespace::OauthCode, "a", b"1")).await.unwrap();
    assert_eq!(cache.get(Namespace::OauthCode, "a").await, Ok(some(b"1")));
    assert_eq!(
        cache.get(Namespace::SpentCode, "a").await,
        Ok(None),
        "namespaces are apart"
    );
    assert_eq!(cache.take(Namespace::OauthCode, "a").await, Ok(some(b"1")));
    assert_eq!(cache.take(Namespace::OauthCode, "a").await, Ok(None));
    assert_eq!(cache.get(Namespace::OauthCode, "a").await, Ok(None));
}

async fn a_value_replaces_another_unless_it_must_be_new(cache: &Cache) {
    assert_eq!(
        cache.put_new(Entry::new(Namespace::OauthCode, "a", b"1")).await,
        Ok(true)
    );
    assert_eq!(
        cache.put_new(Entry::new(Namespace::OauthCode, "a", b"2")).await,
        Ok(false)
    );
    assert_eq!(cache.get(Namespace::OauthCode, "a").await, Ok(some(b"1")));
    cache.put(Entry::new(Namespace::OauthCode, "a", b"3")).await.unwrap();
    assert_eq!(cache.get(Namespace::OauthCode, "a").await, Ok(some(b"3")));
    assert_eq!(cache.list(Namespace::OauthCode, 0, 10).await.unwrap().total, 1);
}

async fn values_end_on_time(cache: &Cache) {
    let start = Instant::now();
    cache
        .put(Entry::new(Namespace::OauthCode, "a", b"1").with_ttl(Duration::from_millis(400)))
        .await
        .unwrap();
    let stored = start.elapsed();
    cache
        .put(Entry::new(Namespace::OauthCode, "b", b"1").with_ttl(Duration::ZERO))
        .await
        .unwrap();
    assert_eq!(
        cache.get(Namespace::OauthCode, "b").await,
        Ok(None),
        "nothing is kept for no time"
    );
    let mut seen = Duration::ZERO;
    loop {
        let asked = start.elapsed();
        if cache.get(Namespace::OauthCode, "a").await.unwrap().is_none() {
            break;
        }
        seen = asked;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let gone = start.elapsed();
    assert!(gone >= Duration::from_millis(399), "gone after {gone:?}");
    let end = stored + Duration::from_millis(410);
    assert!(seen <= end, "still seen after {seen:?}, stored after {stored:?}");
    assert_eq!(cache.take(Namespace::OauthCode, "a").await, Ok(None));
    assert_eq!(
        cache.update(Namespace::OauthCode, "a", |_| (Change::Keep, ())).await,
        Ok(None)
    );
    assert_eq!(
        cache.put_new(Entry::new(Namespace::OauthCode, "a", b"2")).await,
        Ok(true)
    );
}

async fn an_update_keeps_the_end(cache: &Cache) {
    let start = Instant::now();
    cache
        .put(Entry::new(Namespace::OauthCode, "a", b"1").with_ttl(Duration::from_millis(300)))
        .await
        .unwrap();
    let stored = Instant::now();
    tokio::time::sleep(Duration::from_millis(150)).await;
    let set = cache
        .update(Namespace::OauthCode, "a", |_| (Change::Set(b"2".to_vec()), ()))
        .await;
    if start.elapsed() < Duration::from_millis(290) {
        assert_eq!(set, Ok(Some(())));
    }
    tokio::time::sleep(Duration::from_millis(310).saturating_sub(stored.elapsed())).await;
    assert_eq!(cache.get(Namespace::OauthCode, "a").await, Ok(None));
}

async fn an_update_keeps_sets_or_removes(cache: &Cache) {
    cache
        .put(Entry::new(Namespace::OauthCode, "a", b"1").with_group_limits(&[Group::new("g", 1)]))
        .await
        .unwrap();
    assert_eq!(
        cache
            .update(Namespace::OauthCode, "a", |seen| (Change::Keep, seen.to_vec()))
            .await,
        Ok(Some(b"1".to_vec()))
    );
    assert_eq!(
        cache
            .update(Namespace::OauthCode, "a", |_| (Change::Set(b"2".to_vec()), 7))
            .await,
        Ok(Some(7))
    );
    assert_eq!(cache.get(Namespace::OauthCode, "a").await, Ok(some(b"2")));
    assert_eq!(
        cache.update(Namespace::OauthCode, "a", |_| (Change::Remove, ())).await,
        Ok(Some(()))
    );
    assert_eq!(cache.get(Namespace::OauthCode, "a").await, Ok(None));
    assert_eq!(
        cache.update(Namespace::OauthCode, "a", |_| (Change::Remove, ())).await,
        Ok(None)
    );
    cache
        .put(Entry::new(Namespace::OauthCode, "b", b"").with_group_limits(&[Group::new("g", 1)]))
        .await
        .expect("its place in the group is free again");
}

/// Runs `work` a thousand times concurrently and counts how often it returned true.
async fn winners<F: Future<Output = bool> + Send + 'static>(work: impl Fn(usize) -> F) -> usize {
    let tasks: Vec<_> = (0..1000).map(|index| tokio::spawn(work(index))).collect();
    let mut winners = 0;
    for task in tasks {
        winners += usize::from(task.await.unwrap());
    }
    winners
}

async fn a_thousand_parallel_takes_have_one_winner(cache: &Cache) {
    cache.put(Entry::new(Namespace::OauthCode, "a", b"1")).await.unwrap();
    let cache = cache.clone();
    let took = winners(move |_| {
        let cache = cache.clone();
        async move { cache.take(Namespace::OauthCode, "a").await.unwrap().is_some() }
    });
    assert_eq!(took.await, 1);
}

async fn a_thousand_parallel_updates_have_one_winner(cache: &Cache) {
    cache.put(Entry::new(Namespace::OauthCode, "a", b"open")).await.unwrap();
    let claimer = cache.clone();
    let claimed = winners(move |_| {
        let cache = claimer.clone();
        async move {
            let claim = cache.update(Namespace::OauthCode, "a", |seen| match seen {
                b"open" => (Change::Set(b"done".to_vec()), true),
                _ => (Change::Keep, false),
            });
            claim.await.unwrap().unwrap()
        }
    });
    assert_eq!(claimed.await, 1);
    assert_eq!(cache.get(Namespace::OauthCode, "a").await, Ok(some(b"done")));
}

async fn a_thousand_parallel_puts_of_one_new_key_have_one_winner(cache: &Cache) {
    let cache = cache.clone();
    let put = winners(move |_| {
        let cache = cache.clone();
        async move {
            cache
                .put_new(Entry::new(Namespace::AcceptedMessage, "a", b""))
                .await
                .unwrap()
        }
    });
    assert_eq!(put.await, 1);
}

async fn parallel_updates_lose_nothing(cache: &Cache) {
    cache
        .put(Entry::new(Namespace::OauthCode, "a", &0u64.to_be_bytes()))
        .await
        .unwrap();
    let tasks = (0..8).map(|_| {
        let cache = cache.clone();
        tokio::spawn(async move {
            for _ in 0..25 {
                let add = |seen: &[u8]| {
                    let count = u64::from_be_bytes(seen.try_into().unwrap()) + 1;
                    (Change::Set(count.to_be_bytes().to_vec()), ())
                };
                cache.update(Namespace::OauthCode, "a", add).await.unwrap().unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_eq!(
        cache.get(Namespace::OauthCode, "a").await,
        Ok(some(&200u64.to_be_bytes()))
    );
}

async fn a_group_holds_so_many(cache: &Cache) {
    let entry = |key| Entry::new(Namespace::LoginSession, key, b"");
    cache
        .put(entry("a").with_group_limits(&[Group::new("g", 2)]))
        .await
        .unwrap();
    cache
        .put(
            entry("b")
                .with_group_limits(&[Group::new("g", 2)])
                .with_ttl(Duration::from_millis(200)),
        )
        .await
        .unwrap();
    assert!(matches!(
        cache.put(entry("c").with_group_limits(&[Group::new("g", 2)])).await,
        Err(PutError::GroupFull { .. })
    ));
    assert_eq!(cache.get(Namespace::LoginSession, "c").await, Ok(None));
    cache
        .put(entry("c").with_group_limits(&[Group::new("h", 2)]))
        .await
        .expect("groups are counted apart");
    cache
        .put(Entry::new(Namespace::OauthSession, "c", b"").with_group_limits(&[Group::new("g", 2)]))
        .await
        .expect("in each namespace apart");
    cache
        .put(entry("a").with_group_limits(&[Group::new("g", 2)]))
        .await
        .expect("a value in its own place needs no further room");
    tokio::time::sleep(Duration::from_millis(201)).await;
    cache
        .put(entry("d").with_group_limits(&[Group::new("g", 2)]))
        .await
        .expect("what has ended counts no more");
    assert!(matches!(
        cache.put(entry("e").with_group_limits(&[Group::new("g", 2)])).await,
        Err(PutError::GroupFull { .. })
    ));
    cache.take(Namespace::LoginSession, "a").await.unwrap();
    cache
        .put(entry("e").with_group_limits(&[Group::new("g", 2)]))
        .await
        .expect("nor does what was taken");
    cache
        .put(entry("d").with_group_limits(&[Group::new("h", 2)]))
        .await
        .expect("a value may change its group");
    cache
        .put(entry("f").with_group_limits(&[Group::new("g", 2)]))
        .await
        .expect("and leaves room in the old one");
}

async fn parallel_puts_never_overfill_a_group(cache: &Cache) {
    let putter = cache.clone();
    let put = winners(move |index| {
        let cache = putter.clone();
        async move {
            let key = index.to_string();
            cache
                .put(Entry::new(Namespace::LoginSession, &key, b"").with_group_limits(&[Group::new("g", 20)]))
                .await
                .is_ok()
        }
    });
    assert_eq!(put.await, 20);
    assert_eq!(
        cache.list(Namespace::LoginSession, 0, 100).await.unwrap().entries.len(),
        20
    );
}

async fn a_full_space_refuses(cache: &Cache) {
    for key in 0..Namespace::OauthSession.capacity() {
        cache
            .put(Entry::new(Namespace::OauthSession, &key.to_string(), b""))
            .await
            .unwrap();
    }
    assert!(matches!(
        cache.put(Entry::new(Namespace::OauthSession, "x", b"")).await,
        Err(PutError::Full { .. })
    ));
    assert!(matches!(
        cache.put_new(Entry::new(Namespace::OauthSession, "x", b"")).await,
        Err(PutError::Full { .. })
    ));
    assert_eq!(
        cache.put_new(Entry::new(Namespace::OauthSession, "0", b"")).await,
        Ok(false),
        "it is not new"
    );
    cache
        .put(Entry::new(Namespace::OauthSession, "0", b"1"))
        .await
        .expect("a value in its own place");
    cache.take(Namespace::OauthSession, "0").await.unwrap();
    cache
        .put(Entry::new(Namespace::OauthSession, "x", b""))
        .await
        .expect("room again");
}

async fn a_page_is_in_order_of_ends(cache: &Cache) {
    for (key, ttl) in [("c", 30), ("a", 10), ("b", 20)] {
        let entry = Entry::new(Namespace::LoginSession, key, key.as_bytes()).with_ttl(Duration::from_secs(ttl));
        cache.put(entry).await.unwrap();
    }
    let page = cache.list(Namespace::LoginSession, 1, 5).await.unwrap();
    let entry = |key: &str| (key.to_owned(), Bytes::copy_from_slice(key.as_bytes()));
    assert_eq!((page.entries, page.total), (vec![entry("b"), entry("c")], 3));
    assert_eq!(cache.list(Namespace::LoginSession, 9, 5).await.unwrap().total, 3);
    assert_eq!(cache.list(Namespace::DirectoryState, 0, 5).await.unwrap().total, 0);
}

async fn a_window_counts_every_hit(cache: &Cache) {
    let hitter = cache.clone();
    let first = winners(move |_| {
        let cache = hitter.clone();
        async move { cache.hit(CounterKind::ClientFailures, "a").await.unwrap().count == 1 }
    });
    assert_eq!(first.await, 1);
    assert_eq!(cache.hits(CounterKind::ClientFailures, "a").await.unwrap().count, 1000);
    assert_eq!(cache.hits(CounterKind::ClientFailures, "b").await.unwrap().count, 0);
    assert_eq!(
        cache.hits(CounterKind::LoginFailures, "a").await.unwrap().count,
        0,
        "windows are apart"
    );
    let rest = cache.hits(CounterKind::ClientFailures, "a").await.unwrap().wait().0;
    assert!((1..=900).contains(&rest), "{rest} s");
}

async fn a_window_ends(cache: &Cache) {
    let first = cache.hit(CounterKind::ClientFailures, "a").await.unwrap();
    assert!(first.ends_in <= CounterKind::ClientFailures.ttl());
    assert!(first.ends_in > CounterKind::ClientFailures.ttl() - Duration::from_secs(1));
    tokio::time::sleep(Duration::from_millis(5)).await;
    let second = cache.hit(CounterKind::ClientFailures, "a").await.unwrap();
    assert!(second.ends_in < first.ends_in, "a hit does not prolong it");
}

async fn a_pace_is_a_burst_and_then_even(cache: &Cache) {
    // Ten requests per second, so that the test need not wait long; a burst of 600.
    let rate = Rate::per_minute("test", NonZeroU32::new(600).unwrap());
    let start = Instant::now();
    let mut allowed = 0u32;
    let refused = loop {
        match cache.check_rate(rate, "a").await {
            Ok(()) => allowed += 1,
            Err(wait) => break wait,
        }
    };
    let regained = u32::try_from(start.elapsed().as_millis() / 100).unwrap();
    assert!(
        (600..=601 + regained).contains(&allowed),
        "{allowed} in {:?}",
        start.elapsed()
    );
    assert_eq!(refused.0, 1);
    assert_eq!(cache.check_rate(rate, "b").await, Ok(()), "keys are counted apart");
    tokio::time::sleep(Duration::from_millis(101)).await;
    assert_eq!(cache.check_rate(rate, "a").await, Ok(()));
}

async fn keys_and_values_may_be_any_bytes(cache: &Cache) {
    let long = "k".repeat(10_000);
    let value: Vec<u8> = (0..=255).collect();
    for key in ["", " ", "{a}", "ü\r\n\0", "*", &long] {
        cache
            .put(Entry::new(Namespace::OauthCode, key, &value).with_group_limits(&[Group::new("gr}o\nup", 10)]))
            .await
            .unwrap();
        assert_eq!(cache.get(Namespace::OauthCode, key).await, Ok(some(&value)), "{key:?}");
        assert_eq!(cache.take(Namespace::OauthCode, key).await, Ok(some(&value)), "{key:?}");
    }
}

fn v6(address: u32, network: u32) -> [String; 2] {
    [format!("{address}"), format!("net {network}")]
}

async fn put_in(cache: &Cache, key: &str, [address, network]: &[String; 2]) -> Result<(), PutError> {
    let groups = [Group::new(address, 20), Group::new(network, 200)];
    cache
        .put(Entry::new(Namespace::OauthSession, key, b"").with_group_limits(&groups))
        .await
}

async fn rts4_hd34_every_group_of_a_value_counts_it(cache: &Cache) {
    for n in 0..200 {
        put_in(cache, &n.to_string(), &v6(n / 20, 0)).await.unwrap();
    }
    assert!(
        matches!(put_in(cache, "x", &v6(0, 1)).await, Err(PutError::GroupFull { .. })),
        "the address is full"
    );
    assert!(
        matches!(put_in(cache, "x", &v6(99, 0)).await, Err(PutError::GroupFull { .. })),
        "its network is"
    );
    put_in(cache, "x", &v6(99, 1)).await.unwrap();
    cache.take(Namespace::OauthSession, "0").await.unwrap();
    put_in(cache, "y", &v6(0, 1)).await.expect("room in the address");
    put_in(cache, "z", &v6(99, 0)).await.expect("and in the network");
}

async fn rts4_hd34_when_full_the_fullest_network_gives_way(cache: &Cache) {
    // The largest network holds 200 values, four hold 190, and twenty hold two.
    let mut keys = Vec::new();
    for (network, many) in [(0, 200), (1, 190), (2, 190), (3, 190), (4, 190)]
        .into_iter()
        .chain((5..25).map(|n| (n, 2)))
    {
        for n in 0..many {
            let key = format!("{network}-{n}");
            put_in(cache, &key, &v6(network * 100 + n / 20, network)).await.unwrap();
            keys.push(key);
        }
    }
    assert_eq!(keys.len(), Namespace::OauthSession.capacity());
    for n in 0..5 {
        put_in(cache, &format!("new-{n}"), &v6(9_000 + n, 100 + n))
            .await
            .expect("the fullest gives way");
    }
    assert_eq!(
        cache.list(Namespace::OauthSession, 0, 1).await.unwrap().total,
        Namespace::OauthSession.capacity()
    );
    for n in 0..6 {
        let gone = cache
            .get(Namespace::OauthSession, &format!("0-{n}"))
            .await
            .unwrap()
            .is_none();
        assert_eq!(gone, n < 5, "the oldest first: {n}");
    }
    for key in keys.iter().filter(|key| !key.starts_with("0-")) {
        assert!(
            cache.get(Namespace::OauthSession, key).await.unwrap().is_some(),
            "{key}"
        );
    }
    let ungrouped = cache.put(Entry::new(Namespace::OauthSession, "plain", b"")).await;
    assert!(
        matches!(ungrouped, Err(PutError::Full { .. })),
        "what belongs to nobody pushes nobody out"
    );
    assert_eq!(
        cache.put_new(Entry::new(Namespace::OauthSession, "new-0", b"")).await,
        Ok(false)
    );
}

async fn rts4_hd34_what_has_ended_counts_for_no_network(cache: &Cache) {
    let groups = |network: &'static str| [Group::new(network, 1_000)];
    for n in 0..100 {
        let short = groups("short");
        let key = format!("short-{n}");
        cache
            .put(
                Entry::new(Namespace::OauthSession, &key, b"")
                    .with_group_limits(&short)
                    .with_ttl(Duration::from_millis(300)),
            )
            .await
            .unwrap();
    }
    for n in 0..3 {
        cache
            .put(Entry::new(Namespace::OauthSession, &format!("three-{n}"), b"").with_group_limits(&groups("three")))
            .await
            .unwrap();
    }
    tokio::time::sleep(Duration::from_millis(301)).await;
    for n in 0..997 {
        let name = format!("one-{n}");
        cache
            .put(Entry::new(Namespace::OauthSession, &name, b"").with_group_limits(&[Group::new(&name, 5)]))
            .await
            .unwrap();
    }
    cache
        .put(Entry::new(Namespace::OauthSession, "last", b"").with_group_limits(&groups("last")))
        .await
        .unwrap();
    assert_eq!(
        cache.get(Namespace::OauthSession, "three-0").await,
        Ok(None),
        "three is the most now"
    );
    assert!(cache.get(Namespace::OauthSession, "three-1").await.unwrap().is_some());
}

async fn rts4_hd34_waits_are_told(cache: &Cache) {
    let groups = [Group::new("g", 1)];
    cache
        .put(
            Entry::new(Namespace::LoginSession, "a", b"")
                .with_group_limits(&groups)
                .with_ttl(Duration::from_secs(90)),
        )
        .await
        .unwrap();
    match cache
        .put(Entry::new(Namespace::LoginSession, "b", b"").with_group_limits(&groups))
        .await
    {
        Err(PutError::GroupFull { wait }) => assert!((85..=90).contains(&wait.0), "{wait:?}"),
        other => panic!("{other:?}"),
    }
}
