//! Silent completion of an OAuth session by a user who is logged in (OA-10), and its restart.

use crate::{
    oauth_flow::{CHALLENGE, Flow, STATE, STRANGER, VERIFIER, authorize_path, ban, brought, redeem},
    world::{Tokens, World, did},
};
use gw_audit::SecurityKind;
use gw_testkit::fixture::BASE_URL;
use http::{Method, StatusCode};
use serde_json::json;

/// OA-10: only the user who began the session completes it silently, once, and it is recorded before the code is given.
#[tokio::test]
async fn oa10_silent_completion() {
    let world = World::new().await;
    let (alice, bob) = (world.log_in("alice").await, world.log_in("bob").await);
    let flow = Flow::opened_by(&world, &alice.access).await;
    let info = world
        .get(&format!("/oauth/session/{}/info", flow.id))
        .header("x-login-secret", &flow.secret);
    assert_eq!(info.send().await.body["silent"], true);
    world.fixture.security_events();

    assert_eq!(flow.silent(&world).send().await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(
        flow.silent(&world).bearer("nonsense").send().await.refusal(),
        (401, "invalid token")
    );
    let text = "session was not started by this user";
    assert_eq!(
        flow.silent(&world).bearer(&bob.access).send().await.refusal(),
        (403, text)
    );
    let foreign = flow
        .silent(&world)
        .bearer(&alice.access)
        .header("origin", "https://evil.example");
    assert_eq!(foreign.send().await.refusal(), (403, "origin not allowed"));
    let cookie = format!("pp_access={}", alice.access);
    let foreign = flow
        .silent(&world)
        .header("cookie", &cookie)
        .header("origin", "https://evil.example");
    assert_eq!(
        foreign.send().await.refusal(),
        (403, "origin not allowed"),
        "whatever it brings"
    );
    let nobodys = Flow::open(&world, &[]).await;
    assert_eq!(
        nobodys.silent(&world).bearer(&alice.access).send().await.refusal(),
        (403, text)
    );
    let gone = world.ask(
        Method::POST,
        &format!("/oauth/session/{}/silent-complete", "A".repeat(43)),
    );
    assert_eq!(
        gone.bearer(&alice.access).send().await.refusal(),
        (404, "session not found or expired")
    );
    assert!(world.fixture.security_events().is_empty());

    world.fill_journal(true);
    assert_eq!(
        flow.silent(&world).bearer(&alice.access).send().await.refusal(),
        (503, "audit unavailable")
    );
    world.fill_journal(false);
    let done = flow.silent(&world).header("cookie", &cookie).header("origin", BASE_URL);
    assert_eq!(
        done.send().await.status,
        StatusCode::FORBIDDEN,
        "HD34: a browser that did not begin it"
    );
    let done = flow.silent(&world).header("cookie", &cookie).header("origin", BASE_URL);
    let done = done.header("x-login-secret", &flow.secret).send().await;
    assert_eq!(
        (done.status, &done.body["completed"]),
        (StatusCode::OK, &json!(true)),
        "{}",
        done.body
    );
    let events = world.fixture.security_events();
    assert_eq!(events.len(), 1);
    assert_eq!(
        (events[0].kind, &events[0].external_id),
        (SecurityKind::SilentSso, &Some(did("alice")))
    );
    assert_eq!(
        flow.silent(&world).bearer(&alice.access).send().await.refusal(),
        (409, "session already completed")
    );
    assert_eq!(
        flow.prove(&world, "proof:did:test:bob").await.status,
        StatusCode::UNAUTHORIZED
    );

    let tokens = Tokens::from_body(
        &redeem(&world, &brought(&done.body["redirect_url"])["code"], &[])
            .await
            .body,
    );
    let claims = world
        .fixture
        .http
        .tokens
        .access(&tokens.access, world.fixture.http.now())
        .unwrap();
    let before = world
        .fixture
        .http
        .tokens
        .access(&alice.access, world.fixture.http.now())
        .unwrap();
    assert_eq!((claims.subject, claims.amr), (did("alice"), before.amr));
    assert_ne!(
        claims.session, before.session,
        "two logins: ending one leaves the other"
    );
    assert_eq!(Some(claims.session), events[0].session_id);
}

/// HD34: a finished sign-in does not count against the limit, neither by its own session nor by the wallet's.
#[tokio::test]
async fn hd34_silent_sign_ins_give_their_places_back() {
    let world = World::new().await;
    let alice = world.log_in("alice").await;
    for n in 0..25 {
        let answer = world.get(&authorize_path(&[])).bearer(&alice.access).send().await;
        assert_eq!(answer.status, StatusCode::OK, "{n}: {}", answer.body);
        let flow = Flow::from_answer(&answer);
        let done = flow.silent(&world).bearer(&alice.access).send().await;
        assert_eq!(done.status, StatusCode::OK, "{n}: {}", done.body);
    }
    // Sessions that stay open count.
    let mut answers = Vec::new();
    for _ in 0..25 {
        answers.push(world.get(&authorize_path(&[])).send().await.status);
    }
    assert!(answers.contains(&StatusCode::TOO_MANY_REQUESTS), "{answers:?}");
}

/// OA-10, TK-5: a silent login ends with a ban or a logout, and does not outlast the login that it is based on.
#[tokio::test]
async fn oa10_silent_completion_ends_with_what_vouches_for_it() {
    let world = World::new().await;
    let alice = world.log_in("alice").await;
    let flow = Flow::opened_by(&world, &alice.access).await;
    let mut kept = alice.clone();
    for _ in 0..4 {
        world.fixture.clock.pass(6 * 86_400);
        let answer = world.post("/refresh", kept.as_refresh()).send().await;
        assert_eq!(answer.status, StatusCode::OK);
        kept = Tokens::from_body(&answer.body);
    }
    assert_eq!(
        flow.silent(&world).bearer(&kept.access).send().await.status,
        StatusCode::NOT_FOUND,
        "long over"
    );
    let late = Flow::opened_by(&world, &kept.access).await;
    let done = late.silent(&world).bearer(&kept.access).send().await;
    let tokens = Tokens::from_body(
        &redeem(&world, &brought(&done.body["redirect_url"])["code"], &[])
            .await
            .body,
    );
    world.fixture.clock.pass(6 * 86_400 - 1);
    let alive = world.post("/refresh", tokens.as_refresh()).send().await;
    assert_eq!(alive.status, StatusCode::OK);
    world.fixture.clock.pass(6);
    let over = world
        .post("/refresh", Tokens::from_body(&alive.body).as_refresh())
        .send()
        .await;
    assert_eq!(
        over.status,
        StatusCode::UNAUTHORIZED,
        "thirty days after the first login all is over"
    );

    let carol = world.log_in("carol").await;
    let flow = Flow::opened_by(&world, &carol.access).await;
    assert_eq!(
        world.post("/revoke", carol.as_refresh()).send().await.status,
        StatusCode::OK
    );
    assert_eq!(
        flow.silent(&world).bearer(&carol.access).send().await.refusal(),
        (401, "token revoked")
    );

    let bob = world.log_in("bob").await;
    let flow = Flow::opened_by(&world, &bob.access).await;
    ban(&world, "bob").await;
    assert_eq!(
        flow.silent(&world).bearer(&bob.access).send().await.refusal(),
        (403, "account is banned")
    );
}

/// OA-10: a user who logs in by another method meanwhile restarts the session with all that the application asked for.
#[tokio::test]
async fn oa10_a_session_begins_anew_for_who_logged_in_meanwhile() {
    let world = World::new().await;
    let flow = Flow::open(
        &world,
        &[("code_challenge", CHALLENGE), ("code_challenge_method", "S256")],
    )
    .await;
    let path = format!("/oauth/session/{}/restart", flow.id);
    assert_eq!(
        world.get(&path).from(STRANGER).send().await.refusal(),
        (404, "session not found or expired")
    );
    let again = world
        .get(&path)
        .from(STRANGER)
        .header("x-login-secret", &flow.secret)
        .send()
        .await;
    assert_eq!(again.status, StatusCode::FOUND);
    let alice = world.log_in("alice").await;
    let anew = world
        .get(again.headers["location"].to_str().unwrap())
        .bearer(&alice.access)
        .send()
        .await;
    let done = Flow::from_answer(&anew)
        .silent(&world)
        .bearer(&alice.access)
        .send()
        .await;
    let brought = brought(&done.body["redirect_url"]);
    assert_eq!(brought["state"], STATE);
    assert_eq!(
        redeem(&world, &brought["code"], &[("code_verifier", VERIFIER)])
            .await
            .status,
        StatusCode::OK
    );
    flow.prove(&world, "proof:did:test:alice").await;
    assert_eq!(
        world.get(&path).send().await.refusal(),
        (409, "session already completed")
    );
}

/// OA-10: DIDs are compared exactly.
#[tokio::test]
async fn oa10_names_differ_by_case() {
    let world = World::new().await;
    let (small, large) = (world.log_in("alice").await, world.log_in("Alice").await);
    let flow = Flow::opened_by(&world, &small.access).await;
    let refused = flow.silent(&world).bearer(&large.access).send().await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(
        flow.silent(&world).bearer(&small.access).send().await.status,
        StatusCode::OK
    );
}

/// TK-9, decision 4: at the authorization endpoint the cookie counts wherever the browser comes from; an invalid one is
/// ignored.
#[tokio::test]
async fn tk9_decision_4_the_cookie_names_the_initiator() {
    let world = World::new().await;
    let alice = world.log_in("alice").await;
    let silent = async |flow: &Flow| {
        let info = world
            .get(&format!("/oauth/session/{}/info", flow.id))
            .header("x-login-secret", &flow.secret);
        info.send().await.body["silent"].as_bool().unwrap()
    };
    let cookie = format!("pp_access={}", alice.access);
    let elsewhere = world
        .get(&authorize_path(&[]))
        .header("cookie", &cookie)
        .header("sec-fetch-site", "cross-site");
    assert!(
        silent(&Flow::from_answer(
            &elsewhere.header("sec-fetch-mode", "navigate").send().await
        ))
        .await
    );
    for (name, value) in [
        ("cookie", "pp_access=nonsense"),
        ("authorization", "Bearer nonsense"),
        ("x-none", "x"),
    ] {
        let flow = Flow::from_answer(&world.get(&authorize_path(&[])).header(name, value).send().await);
        assert!(!silent(&flow).await, "{name}");
    }
    world.fixture.clock.pass(306);
    let stale = world.get(&authorize_path(&[])).header("cookie", &cookie).send().await;
    assert!(!silent(&Flow::from_answer(&stale)).await);
}
