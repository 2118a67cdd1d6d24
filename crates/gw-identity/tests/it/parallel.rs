//! Thousands of parallel requests: one login is completed once, one refresh token is used once, on every kind of store
//! and cache.
//!
//! The result does not depend on timing (RL15). If the shared cache or the database is too slow under this machine's
//! load, the answer is 503; such a request is repeated, as a client would do, until it gets another answer. The test
//! asserts that the only answers are the one success, the one rejection and such a 503, and that there are never two
//! successes. If nothing was unavailable there is exactly one success. If something was, the success may be lost
//! without an answer (a command is sent at most once): then nobody succeeded, and the test starts again.

use crate::world::{Answer, PAGE, Setup, Tokens, World, ask};
use axum::body::Body;
use futures_util::{StreamExt as _, stream};
use gw_audit::SecurityKind;
use gw_testkit::{fixture::BASE_URL, postgres, redis};
use http::{Request, StatusCode};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

/// How many requests run in parallel.
const TOGETHER: usize = 256;

/// How many of these tests run at the same time: each keeps all cores busy, and the start of a world has time limits.
static CROWDS: Semaphore = Semaphore::const_new(2);

/// A world on this store and cache. `None`, with a printed notice, if the tests were told to run without one of them.
async fn world(on_postgres: bool, on_redis: bool) -> Option<World> {
    let mut setup = Setup {
        per_minute: 1_000_000,
        ..Setup::default()
    };
    if on_postgres {
        setup.database = postgres::database().unwrap().map(|database| database.url);
    }
    if on_redis {
        setup.cache = redis::database().unwrap();
    }
    if setup.database.is_some() != on_postgres || setup.cache.is_some() != on_redis {
        println!("NOT RUN: the tests were told to do without a server this one needs");
        return None;
    }
    Some(World::with(setup).await)
}

/// The cache or the store was too slow. Any other 503 is a final answer and fails the test.
const AWAY: [&str; 3] = [
    "login temporarily unavailable",
    "token store unavailable",
    "the policy store is temporarily unavailable",
];
/// Whether the cache or the store was too slow for this answer.
fn is_away(answer: &Answer) -> bool {
    answer.status == StatusCode::SERVICE_UNAVAILABLE && AWAY.contains(&answer.refusal().1)
}

/// How long a client repeats its request. The cache's breaker opens for ten seconds; this limit only ends a test that
/// would hang.
const REPEAT_LIMIT: Duration = Duration::from_secs(240);

/// Attempts on a machine so slow that the one success is lost each time.
const TRIES: usize = 5;

/// The final answers of all requests.
struct Crowd {
    answers: Vec<Answer>,
    /// Whether anything was unavailable meanwhile.
    away: bool,
}

/// Posts the same request many times from many addresses, each until it gets a final answer.
async fn post_all(world: &World, path: &str, body: &str, requests: u32) -> Crowd {
    let seen = Arc::new(AtomicBool::new(false));
    let end = Instant::now() + REPEAT_LIMIT;
    let post = |index: u32| {
        let (app, path, body, seen) = (world.app.clone(), path.to_owned(), body.to_owned(), Arc::clone(&seen));
        let peer = IpAddr::V4(Ipv4Addr::from_bits(0xc612_0000 + index % 100));
        tokio::spawn(async move {
            loop {
                let request = Request::post(&path).body(Body::from(body.clone())).unwrap();
                let answer = ask(app.clone(), request, peer).await;
                if !is_away(&answer) || Instant::now() > end {
                    return answer;
                }
                seen.store(true, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
    };
    let answers = stream::iter(0..requests)
        .map(post)
        .buffer_unordered(TOGETHER)
        .map(|answer| answer.unwrap());
    let answers = answers.collect().await;
    Crowd {
        answers,
        away: seen.load(Ordering::Relaxed),
    }
}

/// The one success; all others got exactly this rejection. `None` if the success was lost in an outage.
fn one_of(crowd: Crowd, refusal: (u16, &str)) -> Option<Tokens> {
    let (won, lost): (Vec<_>, Vec<_>) = crowd
        .answers
        .into_iter()
        .partition(|answer| answer.status == StatusCode::OK);
    assert!(won.len() <= 1, "{} succeeded", won.len());
    for answer in lost {
        assert_eq!(answer.refusal(), refusal);
    }
    match &won[..] {
        [one] => Some(Tokens::from_body(&one.body)),
        _ => {
            assert!(crowd.away, "nobody succeeded, and nothing was away");
            println!("the cache or the store was too slow for an answer: once more");
            None
        }
    }
}

/// ZK-12, HD19: one pair for the wallet that succeeded, one for the page's poll, and the login is recorded once.
async fn callbacks(on_postgres: bool, on_redis: bool, requests: u32) {
    for _ in 0..TRIES {
        let Some(world) = world(on_postgres, on_redis).await else {
            return;
        };
        let login = world.open_login().await;
        let path = format!("/auth/callback?session={}", login.id);
        let crowd = post_all(&world, &path, "proof:did:test:alice", requests).await;
        let Some(wallet) = one_of(crowd, (401, "session not found or expired")) else {
            continue;
        };
        let [shown] = login.shown();
        let poll = world.poll(&login, PAGE, &[shown, ("origin", BASE_URL)]).await;
        if is_away(&poll) {
            continue;
        }
        let page = Tokens::from_body(&poll.body["tokens"]);
        assert_ne!(wallet, page);
        let logins = world
            .event_kinds()
            .into_iter()
            .filter(|kind| *kind == SecurityKind::Login)
            .count();
        assert_eq!(logins, 1);
        let mut refreshed = Vec::new();
        for pair in [wallet, page] {
            refreshed.push(world.post("/refresh", pair.as_refresh()).send().await);
        }
        if refreshed.iter().any(is_away) {
            continue;
        }
        for answer in refreshed {
            assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        }
        return;
    }
    panic!("this machine never gave an answer in time");
}

/// TK-5: of parallel refreshes one succeeds, and its tokens keep working.
async fn refreshes(on_postgres: bool, on_redis: bool, requests: u32) {
    for _ in 0..TRIES {
        let Some(world) = world(on_postgres, on_redis).await else {
            return;
        };
        let old = world.log_in("alice").await;
        let crowd = post_all(&world, "/refresh", &old.as_refresh().to_string(), requests).await;
        let Some(new) = one_of(crowd, (401, "refresh token revoked")) else {
            continue;
        };
        let next = world.post("/refresh", new.as_refresh()).send().await;
        if is_away(&next) {
            continue;
        }
        assert_eq!(next.status, StatusCode::OK, "{}", next.body);
        return;
    }
    panic!("this machine never gave an answer in time");
}

macro_rules! everywhere {
    ($($name:ident: $proof:ident, $on_postgres:literal, $on_redis:literal, $requests:literal;)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $name() {
            let _turn = CROWDS.acquire().await.unwrap();
            $proof($on_postgres, $on_redis, $requests).await;
        })*
    };
}

everywhere! {
    zk12_ten_thousand_callbacks_in_the_process_on_sqlite: callbacks, false, false, 10_000;
    zk12_two_thousand_callbacks_in_redis_on_sqlite: callbacks, false, true, 2_000;
    zk12_two_thousand_callbacks_in_the_process_on_postgres: callbacks, true, false, 2_000;
    zk12_ten_thousand_callbacks_in_redis_on_postgres: callbacks, true, true, 10_000;
    tk5_ten_thousand_refreshes_in_the_process_on_sqlite: refreshes, false, false, 10_000;
    tk5_two_thousand_refreshes_in_redis_on_sqlite: refreshes, false, true, 2_000;
    tk5_two_thousand_refreshes_in_the_process_on_postgres: refreshes, true, false, 2_000;
    tk5_ten_thousand_refreshes_in_redis_on_postgres: refreshes, true, true, 10_000;
}
