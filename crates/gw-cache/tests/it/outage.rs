//! Behaviour while the shared cache is unreachable, and afterwards.

use crate::conformance::clock;
use fred::{
    clients::Client,
    interfaces::ClientLike as _,
    types::{CustomCommand, Value, config::Config},
};
use gw_cache::{Cache, Change, ConnectError, CounterKind, Entry, Group, Namespace, PutError, Rate, Unavailable};
use gw_testkit::RedisServer;
use gw_types::{Seconds, Secret};
use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

const SECOND: Duration = Duration::from_secs(1);

fn server() -> Option<RedisServer> {
    let server = RedisServer::start().unwrap();
    if server.is_none() {
        println!("NOT RUN: no Redis, as GW_SKIP_REDIS asks");
    }
    server
}

async fn connect(server: &RedisServer) -> Cache {
    Cache::connect(&Secret::new(server.url()), clock()).await.unwrap()
}

/// Checks that every operation fails within a second, and that rate limits still work.
async fn is_away(cache: &Cache) {
    async fn soon<T>(what: impl Future<Output = T>) -> T {
        tokio::time::timeout(SECOND, what).await.expect("within a second")
    }
    assert_eq!(
        soon(cache.put(Entry::new(Namespace::OauthCode, "a", b""))).await,
        Err(PutError::Unavailable(Unavailable))
    );
    assert_eq!(
        soon(cache.put_new(Entry::new(Namespace::OauthCode, "a", b""))).await,
        Err(Unavailable.into())
    );
    assert_eq!(soon(cache.get(Namespace::OauthCode, "a")).await, Err(Unavailable));
    assert_eq!(soon(cache.take(Namespace::OauthCode, "a")).await, Err(Unavailable));
    assert_eq!(
        soon(cache.update(Namespace::OauthCode, "a", |_| (Change::Keep, ()))).await,
        Err(Unavailable)
    );
    assert_eq!(
        soon(cache.list(Namespace::OauthCode, 0, 1))
            .await
            .map(|page| page.total),
        Err(Unavailable)
    );
    assert_eq!(
        soon(cache.hit(CounterKind::ClientFailures, "a")).await,
        Err(Unavailable)
    );
    assert_eq!(
        soon(cache.hits(CounterKind::ClientFailures, "a")).await,
        Err(Unavailable)
    );
    assert_eq!(soon(cache.check()).await, Err(Unavailable));
    assert!(!cache.is_up());
    let rate = Rate::per_minute("away", NonZeroU32::MIN);
    assert_eq!(soon(cache.check_rate(rate, "a")).await, Ok(()), "counted here");
    assert_eq!(soon(cache.check_rate(rate, "a")).await, Err(Seconds(60)));
}

async fn comes_back(cache: &Cache) {
    let start = Instant::now();
    // The breaker stays open for ten seconds if the connection never broke; a new connection closes it at once.
    while cache.check().await.is_err() {
        assert!(start.elapsed() < 15 * SECOND, "still away");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(cache.is_up());
    cache.put(Entry::new(Namespace::OauthCode, "b", b"1")).await.unwrap();
    assert!(cache.take(Namespace::OauthCode, "b").await.unwrap().is_some());
    assert_eq!(cache.hit(CounterKind::ClientFailures, "b").await.unwrap().count, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_ended_is_reported_and_found_again() {
    let Some(mut server) = server() else { return };
    let cache = connect(&server).await;
    assert!(cache.is_shared() && cache.is_up());
    server.stop();
    is_away(&cache).await;
    server.start_again().unwrap();
    comes_back(&cache).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_hangs_is_reported_and_found_again() {
    let Some(server) = server() else { return };
    let cache = connect(&server).await;
    server.pause().unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    is_away(&cache).await;
    server.resume().unwrap();
    comes_back(&cache).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_started_anew_learns_the_scripts_again() {
    let Some(mut server) = server() else { return };
    let cache = connect(&server).await;
    cache.put(Entry::new(Namespace::OauthCode, "a", b"1")).await.unwrap();
    server.stop();
    server.start_again().unwrap();
    comes_back(&cache).await;
    assert_eq!(cache.get(Namespace::OauthCode, "a").await, Ok(None), "it kept nothing");
}

#[tokio::test]
async fn what_cannot_be_connected_to_is_told_apart() {
    let Some(mut server) = server() else { return };
    let clock = clock();
    let connect = async |url: String| Cache::connect(&Secret::new(url), clock.clone()).await.err();
    assert!(matches!(connect("nonsense".to_owned()).await, Some(ConnectError::Url)));
    assert!(matches!(
        connect(server.url().replace("test%20", "other")).await,
        Some(ConnectError::Refused)
    ));
    let open = server.url().replace(":test%20p%40ss@", "");
    assert!(matches!(connect(open).await, Some(ConnectError::Refused)));
    server.stop();
    assert!(matches!(
        connect(server.url()).await,
        Some(ConnectError::Unreachable(_))
    ));
}

/// RL14: eviction would remove logins, single-use marks and limits; the operator is warned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl14_a_server_that_evicts_is_told_from_one_that_does_not() {
    assert_eq!(
        Cache::in_process(clock()).eviction_policy().await,
        Ok(None),
        "it evicts nothing"
    );
    let Some(mut server) = server() else { return };
    let cache = connect(&server).await;
    assert_eq!(cache.eviction_policy().await, Ok(None), "the server's default");
    let admin = Client::new(Config::from_url(&server.url()).unwrap(), None, None, None);
    admin.init().await.unwrap();
    let set = CustomCommand::new_static("CONFIG", None::<u16>, false);
    let _: Value = admin
        .custom(set, vec!["SET", "maxmemory-policy", "allkeys-lru"])
        .await
        .unwrap();
    assert_eq!(cache.eviction_policy().await, Ok(Some("allkeys-lru".to_owned())));
    admin.quit().await.unwrap();
    server.stop();
    assert_eq!(cache.eviction_policy().await, Err(Unavailable));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances_share_everything() {
    let Some(server) = server() else { return };
    let (one, other) = (connect(&server).await, connect(&server).await);
    one.put(Entry::new(Namespace::OauthCode, "a", b"1").with_group_limits(&[Group::new("g", 1)]))
        .await
        .unwrap();
    let full = other
        .put(Entry::new(Namespace::OauthCode, "b", b"1").with_group_limits(&[Group::new("g", 1)]))
        .await;
    assert!(matches!(full, Err(PutError::GroupFull { .. })), "{full:?}");
    assert!(other.take(Namespace::OauthCode, "a").await.unwrap().is_some());
    assert_eq!(one.take(Namespace::OauthCode, "a").await, Ok(None));
    one.hit(CounterKind::ClientFailures, "a").await.unwrap();
    assert_eq!(other.hits(CounterKind::ClientFailures, "a").await.unwrap().count, 1);
    let rate = Rate::per_minute("two", NonZeroU32::new(2).unwrap());
    assert_eq!(one.check_rate(rate, "a").await, Ok(()));
    assert_eq!(other.check_rate(rate, "a").await, Ok(()));
    assert_eq!(one.check_rate(rate, "a").await, Err(Seconds(30)));
}

/// A server whose memory is full answers reads, but cannot serve logins: both this state and its end are detected
/// without a login.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl14_a_cache_that_takes_no_writes_is_not_up() {
    let Some(server) = server() else { return };
    let cache = connect(&server).await;
    let operator = Client::new(Config::from_url(&server.url()).unwrap(), None, None, None);
    operator.init().await.unwrap();
    let limit = async |bytes: &str| {
        let set = CustomCommand::new_static("CONFIG", None::<u16>, false);
        let _: Value = operator.custom(set, vec!["SET", "maxmemory", bytes]).await.unwrap();
    };
    let becomes = async |up: bool| {
        let end = Instant::now() + 10 * SECOND;
        while cache.is_up() != up {
            assert!(Instant::now() < end, "up stays {}", !up);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(cache.is_up());
    limit("1").await;
    becomes(false).await;
    assert_eq!(cache.check().await, Ok(()), "it answers");
    assert!(!cache.is_up(), "an answer to a question tells nothing of writes");
    limit("0").await;
    becomes(true).await;
}
