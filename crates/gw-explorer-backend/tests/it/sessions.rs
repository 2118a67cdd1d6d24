//! Step 8 of spec/40 section 7: refreshes.

use crate::{
    scripted_gateway::access_token,
    world::{Browser, World},
};
use std::time::Duration;

const DATA: &str = "/api/v1/explorer/blocks";

fn bearer(n: u32) -> String {
    format!("Bearer {}", access_token(n))
}

#[tokio::test]
async fn step_8_a_session_is_refreshed_when_five_minutes_remain() {
    let world = World::new().await;
    let mut browser = Browser::default();
    browser.sign_in(&world, 1, 900).await;
    let first = browser.cookies.clone();
    world.clock.pass(599);
    world.gateway.json(DATA, 200, "[]");
    browser.get(&world, "/api/blocks").await.expect(200);
    assert_eq!(world.gateway.take_one().header("authorization"), Some(&*bearer(1)));
    assert_eq!(browser.cookies, first);

    world.clock.pass(1);
    world.gateway.tokens("/api/v1/refresh", 2, 900);
    world.gateway.json(DATA, 200, "[]");
    let answer = browser.get(&world, "/api/blocks").await.expect(200);
    let received = world.gateway.take_received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0].body, r#"{"refresh_token":"refresh-1"}"#);
    assert_eq!(received[1].header("authorization"), Some(&*bearer(2)));
    assert_eq!(answer.set_cookies().len(), 2);
    assert_ne!(browser.cookies, first);
    // The new session is used from now on.
    world.gateway.json(DATA, 200, "[]");
    browser.get(&world, "/api/blocks").await.expect(200);
    assert_eq!(world.gateway.take_one().header("authorization"), Some(&*bearer(2)));
}

#[tokio::test]
async fn step_8_requests_at_the_same_time_share_one_refresh() {
    let world = World::new().await;
    let mut browser = Browser::default();
    browser.sign_in(&world, 1, 900).await;
    world.clock.pass(700);
    let gate = world.gateway.hold();
    world.gateway.tokens("/api/v1/refresh", 2, 900);
    for _ in 0..10 {
        world.gateway.json(DATA, 200, "[]");
    }
    let mut browsers = vec![browser; 10];
    let requests = browsers.iter_mut().map(|browser| browser.get(&world, "/api/blocks"));
    let requests = futures_util::future::join_all(requests);
    gate.add_permits(11);
    let answers = requests.await;
    for answer in &answers {
        assert_eq!((answer.status, answer.set_cookies().len()), (200, 2), "{}", answer.body);
    }
    let received = world.gateway.take_received();
    let refreshes = received
        .iter()
        .filter(|request| request.target == "/api/v1/refresh")
        .count();
    assert_eq!((refreshes, received.len()), (1, 11));
    let data = received.iter().filter(|request| request.target == DATA);
    assert!(
        data.into_iter()
            .all(|request| request.header("authorization") == Some(&*bearer(2)))
    );
}

#[tokio::test]
async fn step_8_a_refused_refresh_ends_the_session_only_after_the_access_token() {
    let world = World::new().await;
    let mut browser = Browser::default();
    browser.sign_in(&world, 1, 900).await;
    world.clock.pass(700);
    world
        .gateway
        .json("/api/v1/refresh", 401, r#"{"error":"refresh token revoked"}"#);
    world.gateway.json(DATA, 200, "[]");
    let answer = browser.get(&world, "/api/blocks").await.expect(200);
    assert!(answer.set_cookies().is_empty());
    assert_eq!(
        world.gateway.take_received()[1].header("authorization"),
        Some(&*bearer(1))
    );

    world.clock.pass(199);
    world
        .gateway
        .json("/api/v1/refresh", 401, r#"{"error":"refresh token revoked"}"#);
    world.gateway.json(DATA, 200, "[]");
    browser.get(&world, "/api/blocks").await.expect(200);
    world.clock.pass(1);
    world.gateway.take_received();
    let mut status = browser.clone();
    let answer = browser.get(&world, "/api/blocks").await.expect(401);
    assert_eq!(answer.json()["error"], "session ended, sign in again");
    assert!(browser.cookies.is_empty());
    let answer = status.get(&world, "/api/auth/status").await.expect(200);
    assert_eq!(answer.json()["authenticated"], false);
    assert!(status.cookies.is_empty());
    assert!(
        world.gateway.take_received().is_empty(),
        "the refusal is known, and nothing is read anonymously"
    );
    // Without its cookies, the browser is an anonymous viewer.
    world.gateway.json(DATA, 200, "[]");
    browser.get(&world, "/api/blocks").await.expect(200);
    assert_eq!(world.gateway.take_one().header("authorization"), None);
}

#[tokio::test]
async fn step_8_a_gateway_that_cannot_refresh_does_not_end_the_session() {
    let world = World::new().await;
    let mut browser = Browser::default();
    browser.sign_in(&world, 1, 900).await;
    let cookies = browser.cookies.clone();
    world.clock.pass(700);
    for status in [429, 500, 503] {
        world.gateway.json("/api/v1/refresh", status, "{}");
        world.gateway.json(DATA, 200, "[]");
        browser.get(&world, "/api/blocks").await.expect(200);
        assert_eq!(
            world.gateway.take_received()[1].header("authorization"),
            Some(&*bearer(1))
        );
    }
    world.clock.pass(300);
    world.gateway.json("/api/v1/refresh", 503, "{}");
    browser.get(&world, "/api/blocks").await.expect(502);
    assert_eq!(browser.cookies, cookies);
    world.gateway.tokens("/api/v1/refresh", 2, 900);
    world.gateway.json(DATA, 200, "[]");
    browser.get(&world, "/api/blocks").await.expect(200);
}

/// The browser drops `explorer_auth` after 30 minutes.
#[tokio::test]
async fn step_7_the_refresh_cookie_alone_continues_the_session() {
    let world = World::new().await;
    let mut browser = Browser::default();
    browser.sign_in(&world, 1, 900).await;
    browser.cookies.remove("explorer_auth");
    world.gateway.tokens("/api/v1/refresh", 2, 900);
    let status = browser.get(&world, "/api/auth/status").await.expect(200);
    assert_eq!(status.json()["did"], "did:test:2");
    assert_eq!(browser.cookies.len(), 2);
}

/// HD21: a refresh token works once, so the gateway's answer must not be lost with the client.
#[tokio::test]
async fn hd21_a_client_that_hangs_up_does_not_lose_the_session() {
    let world = World::new().await;
    let mut browser = Browser::default();
    browser.sign_in(&world, 1, 900).await;
    world.clock.pass(700);
    let gate = world.gateway.hold();
    world.gateway.tokens("/api/v1/refresh", 2, 900);
    let mut gone = browser.clone();
    let request = gone.get(&world, "/api/auth/status");
    assert!(tokio::time::timeout(Duration::from_millis(300), request).await.is_err());
    gate.add_permits(1);
    let status = browser.get(&world, "/api/auth/status").await.expect(200);
    assert_eq!(status.json()["did"], "did:test:2");
    assert_eq!(world.gateway.take_received().len(), 1);
    world.tasks.close();
    world.tasks.wait().await;
}

/// A revoked token or a banned user: the gateway's 401 passes, and the browser is signed out.
#[tokio::test]
async fn step_9_a_token_that_the_gateway_rejects_ends_the_session() {
    let world = World::new().await;
    let mut browser = Browser::default();
    browser.sign_in(&world, 1, 900).await;
    let other = ("www-authenticate", "Bearer realm=\"ledger-gateway\"");
    world.gateway.answer(DATA, 401, &[other], "{}");
    browser.get(&world, "/api/blocks").await.expect(401);
    assert_eq!(browser.cookies.len(), 2, "another reason");
    let invalid = (
        "www-authenticate",
        "Bearer realm=\"ledger-gateway\", error=\"invalid_token\", error_description=\"token revoked\"",
    );
    world
        .gateway
        .answer(DATA, 401, &[invalid], r#"{"error":"token revoked"}"#);
    let answer = browser.get(&world, "/api/blocks").await.expect(401);
    assert_eq!(answer.body, r#"{"error":"token revoked"}"#);
    assert!(browser.cookies.is_empty());
}
