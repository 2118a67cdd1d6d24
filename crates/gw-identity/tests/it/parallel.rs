//! Ten thousand at once: one login is completed once, one refresh token is used once, on every kind of store and cache.
//!
//! No timing decides (RL15). A shared cache or a database that is too slow under this machine's load answers 503 and says
//! that it is away: such a request is sent again, as a client would, until it gets a verdict. What is asserted: nothing but
//! the one success, the one refusal and such a 503 comes, and never two successes. Where nothing was away there is exactly
//! one success. Where something was, it may have taken the one chance without being able to say so (a command is sent at
//! most once): then nobody succeeded, and the same is tried again from the start.

use crate::world::{Answer, BASE, PAGE, Setup, Tokens, World, ask};
use axum::body::Body;
use futures_util::{StreamExt as _, stream};
use gw_audit::SecurityKind;
use gw_testkit::{postgres, redis};
use http::{Request, StatusCode};
use std::{
    net::{IpAddr, Ipv4Addr},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

const ALL: u32 = 10_000;
/// So many are on their way together.
const TOGETHER: usize = 256;

/// A world on such a store and cache; `None`, said aloud, where the tests were told to do without one of them.
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

/// The cache or the store was too slow: no verdict. Any other 503 is one, and fails the test.
const AWAY: [&str; 2] = [
    "login temporarily unavailable",
    "the policy store is temporarily unavailable",
];
/// A client goes on for so long. The cache's breaker rests for ten seconds; this only ends a test that would hang.
const PATIENCE: Duration = Duration::from_secs(240);

/// Tries on a machine so slow that the one chance is lost each time.
const TRIES: usize = 5;

/// What ten thousand were answered in the end.
struct Crowd {
    answers: Vec<Answer>,
    /// Whether anything was away in between.
    away: bool,
}

/// Posts the same ten thousand times, from many addresses; each until it gets a verdict.
async fn post_all(world: &World, path: &str, body: &str) -> Crowd {
    let seen = Arc::new(AtomicBool::new(false));
    let end = Instant::now() + PATIENCE;
    let post = |index: u32| {
        let (app, path, body, seen) = (world.app.clone(), path.to_owned(), body.to_owned(), Arc::clone(&seen));
        let peer = IpAddr::V4(Ipv4Addr::from_bits(0xc612_0000 + index % 100));
        tokio::spawn(async move {
            loop {
                let request = Request::post(&path).body(Body::from(body.clone())).unwrap();
                let answer = ask(app.clone(), request, peer).await;
                let away = answer.status == StatusCode::SERVICE_UNAVAILABLE && AWAY.contains(&answer.refusal().1);
                if !away || Instant::now() > end {
                    return answer;
                }
                seen.store(true, Ordering::Relaxed);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
    };
    let answers = stream::iter(0..ALL)
        .map(post)
        .buffer_unordered(TOGETHER)
        .map(|answer| answer.unwrap());
    let answers = answers.collect().await;
    Crowd {
        answers,
        away: seen.load(Ordering::Relaxed),
    }
}

/// The one success; everybody else got exactly this refusal. `None` if the chance was lost by what was away.
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
        [one] => Some(Tokens::of(&one.body)),
        _ => {
            assert!(crowd.away, "nobody succeeded, and nothing was away");
            println!("the cache or the store was too slow for an answer: once more");
            None
        }
    }
}

/// ZK-12, HD19: one pair for the wallet that won, one for the page's poll, and the login is recorded once.
async fn callbacks(on_postgres: bool, on_redis: bool) {
    for _ in 0..TRIES {
        let Some(world) = world(on_postgres, on_redis).await else {
            return;
        };
        let login = world.open_login().await;
        let path = format!("/auth/callback?session={}", login.id);
        let crowd = post_all(&world, &path, "proof:did:test:alice").await;
        let Some(wallet) = one_of(crowd, (401, "session not found or expired")) else {
            continue;
        };
        let [shown] = login.shown();
        let poll = world.poll(&login, PAGE, &[shown, ("origin", BASE)]).await;
        let page = Tokens::of(&poll.body["tokens"]);
        assert_ne!(wallet, page);
        let logins = world
            .event_kinds()
            .into_iter()
            .filter(|kind| *kind == SecurityKind::Login)
            .count();
        assert_eq!(logins, 1);
        for pair in [wallet, page] {
            let answer = world.post("/refresh", pair.as_refresh()).send().await;
            assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        }
        return;
    }
    panic!("this machine never gave an answer in time");
}

/// TK-5: of parallel refreshes one succeeds, and what it gave goes on working.
async fn refreshes(on_postgres: bool, on_redis: bool) {
    for _ in 0..TRIES {
        let Some(world) = world(on_postgres, on_redis).await else {
            return;
        };
        let old = world.log_in("alice").await;
        let crowd = post_all(&world, "/refresh", &old.as_refresh().to_string()).await;
        let Some(new) = one_of(crowd, (401, "refresh token revoked")) else {
            continue;
        };
        let next = world.post("/refresh", new.as_refresh()).send().await;
        assert_eq!(next.status, StatusCode::OK, "{}", next.body);
        return;
    }
    panic!("this machine never gave an answer in time");
}

macro_rules! everywhere {
    ($($name:ident: $proof:ident, $on_postgres:literal, $on_redis:literal;)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $name() {
            $proof($on_postgres, $on_redis).await;
        })*
    };
}

everywhere! {
    zk12_ten_thousand_callbacks_in_the_process_on_sqlite: callbacks, false, false;
    zk12_ten_thousand_callbacks_in_redis_on_sqlite: callbacks, false, true;
    zk12_ten_thousand_callbacks_in_the_process_on_postgres: callbacks, true, false;
    zk12_ten_thousand_callbacks_in_redis_on_postgres: callbacks, true, true;
    tk5_ten_thousand_refreshes_in_the_process_on_sqlite: refreshes, false, false;
    tk5_ten_thousand_refreshes_in_redis_on_sqlite: refreshes, false, true;
    tk5_ten_thousand_refreshes_in_the_process_on_postgres: refreshes, true, false;
    tk5_ten_thousand_refreshes_in_redis_on_postgres: refreshes, true, true;
}
