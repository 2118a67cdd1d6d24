//! Limits of open logins (HD34): one network cannot close the login for others.

use crate::{
    browser::{STRANGER, authorize, flow_of_browser, open_from, peer, prove},
    world::{PAGE, Setup, World},
};
use gw_testkit::fixture::BASE_URL;
use http::{Method, StatusCode};

/// HD34: one network opens as many sessions as it may, and all other networks can still log in.
async fn one_network_closes_the_login_for_nobody(world: &World) {
    let mut opened = 0;
    for subnet in 0..104 {
        for _ in 0..20 {
            let from = peer(format!("2001:db8:1:{subnet:x}::1"));
            opened += u32::from(world.get(&authorize()).from(from).send().await.status == StatusCode::OK);
        }
    }
    assert!(opened < 500, "one /56 holds {opened} places");
    for n in 2..5 {
        let other = world
            .get(&authorize())
            .from(peer(format!("2001:db8:{n}:ff::1")))
            .header("origin", BASE_URL)
            .send()
            .await;
        assert_eq!(other.status, StatusCode::OK, "{}", other.body);
        let other = world.ask(Method::POST, "/auth/request").from(STRANGER).send().await;
        assert_eq!(other.status, StatusCode::OK, "{}", other.body);
    }
}

#[tokio::test]
async fn rts4_hd34_one_network_closes_the_login_for_nobody() {
    one_network_closes_the_login_for_nobody(&World::new().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rts4_hd34_one_network_closes_the_login_for_nobody_in_a_shared_cache() {
    let Some(cache) = gw_testkit::redis::database().unwrap() else {
        return;
    };
    one_network_closes_the_login_for_nobody(
        &World::with(Setup {
            cache: Some(cache),
            ..Setup::default()
        })
        .await,
    )
    .await;
}

/// HD34: when all places are taken, the network with the most places loses one; no other network does.
#[tokio::test]
async fn rts4_hd34_when_full_the_fullest_network_gives_way() {
    let world = World::new().await;
    let kept = open_from(&world, STRANGER, &[]).await;
    // 1,000 OAuth sessions: 100 networks with ten each.
    for net in 0..100 {
        for _ in 0..10 {
            let from = peer(format!("2001:db8:{net:x}::1"));
            assert_eq!(world.get(&authorize()).from(from).send().await.status, StatusCode::OK);
        }
    }
    for n in 0..5 {
        let other = world
            .get(&authorize())
            .from(peer(format!("203.0.113.{n}")))
            .send()
            .await;
        assert_eq!(other.status, StatusCode::OK, "{}", other.body);
    }
    assert_eq!(
        world.poll(&kept, STRANGER, &[]).await.status,
        StatusCode::OK,
        "who holds one place keeps it"
    );
}

/// HD34: a finished login does not count against the limit.
#[tokio::test]
async fn rts4_hd34_finished_logins_give_their_places_back() {
    let world = World::new().await;
    for _ in 0..25 {
        let login = open_from(&world, PAGE, &[]).await;
        world.prove(&login, "proof:did:test:alice").await;
        assert_eq!(
            world.poll(&login, PAGE, &[]).await.body["completed"],
            true,
            "decision 26: still served"
        );
    }
    for _ in 0..25 {
        let flow = flow_of_browser(&world, PAGE, &[]).await;
        prove(&world, &flow, "alice").await;
    }
}

/// HD34: Retry-After is the time after which a place is free.
#[tokio::test]
async fn rts4_hd34_retry_after_tells_the_truth() {
    let world = World::new().await;
    for n in 0..20 {
        world.fixture.clock.pass(i64::from(n == 1) * 100);
        open_from(&world, PAGE, &[]).await;
    }
    world.fixture.clock.pass(50);
    for path in ["/auth/request".to_owned(), authorize()] {
        let method = if path.starts_with("/auth") {
            Method::POST
        } else {
            Method::GET
        };
        let refused = world.ask(method, &path).send().await;
        assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{path}");
        assert_eq!(refused.headers["retry-after"], "450", "{path}");
    }
    world.fixture.clock.pass(449);
    assert_eq!(
        world.ask(Method::POST, "/auth/request").send().await.status,
        StatusCode::TOO_MANY_REQUESTS
    );
    world.fixture.clock.pass(1);
    open_from(&world, PAGE, &[]).await;
}

/// HD34: a page that repeatedly sends its visitor to the login leaves places to users who click.
#[tokio::test]
async fn hd34_a_foreign_page_takes_half_of_the_places_at_most() {
    let world = World::new().await;
    let navigated = |clicked: bool| {
        let ask = world
            .get(&authorize())
            .header("sec-fetch-site", "cross-site")
            .header("sec-fetch-mode", "navigate");
        let ask = ask.header("sec-fetch-dest", "document");
        if clicked {
            ask.header("sec-fetch-user", "?1")
        } else {
            ask
        }
    };
    let mut opened = 0;
    for _ in 0..30 {
        opened += u32::from(navigated(false).send().await.status == StatusCode::OK);
    }
    assert_eq!(opened, 10);
    for _ in 0..5 {
        assert_eq!(
            navigated(true).send().await.status,
            StatusCode::OK,
            "who clicks comes in"
        );
    }
    let login = world.ask(Method::POST, "/auth/request").header("origin", BASE_URL);
    assert_eq!(
        login.send().await.status,
        StatusCode::OK,
        "and so does a colleague behind the same address"
    );
}
