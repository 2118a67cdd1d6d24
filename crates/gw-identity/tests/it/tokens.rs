//! Refresh, revoke and introspect.

use crate::world::{Answer, Setup, Tokens, World, did};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use gw_audit::SecurityKind;
use gw_http::{Amr, RefreshClaims};
use gw_store::record::UserPatch;
use gw_testkit::fixture::BASE_URL;
use gw_types::{Seconds, SessionId, TokenId};
use http::StatusCode;
use serde_json::{Value, json};
use std::sync::Arc;

async fn refresh(world: &World, tokens: &Tokens) -> Answer {
    world.post("/api/v1/refresh", tokens.as_refresh()).send().await
}

async fn refreshed(world: &World, tokens: &Tokens) -> Tokens {
    let answer = refresh(world, tokens).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    Tokens::from_body(&answer.body)
}

/// Whether a protected route accepts an access token, and the error if not.
async fn entry(world: &World, tokens: &Tokens) -> (u16, String) {
    let answer = world.get("/api/v1/me/orgs").bearer(&tokens.access).send().await;
    let (status, text) = answer.refusal();
    (status, text.to_owned())
}

fn ok() -> (u16, String) {
    (200, String::new())
}

fn refused(status: u16, text: &str) -> (u16, String) {
    (status, text.to_owned())
}

async fn introspect(world: &World, token: &str) -> Value {
    let answer = world
        .post("/introspect", Value::Null)
        .body(format!("token_type_hint=x&token={token}"))
        .send()
        .await;
    assert_eq!(answer.status, StatusCode::OK);
    answer.body
}

async fn set_banned(world: &World, name: &str, banned: bool) {
    let user = world.user(name).await.unwrap();
    let mut tx = world.fixture.begin().await;
    tx.update_user(
        user.id,
        UserPatch {
            banned: Some(banned),
            ..UserPatch::default()
        },
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
}

/// TK-5: of two hundred parallel refreshes of one token one succeeds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tk5_parallel_refreshes_give_one_success() {
    let world = Arc::new(World::new().await);
    let tokens = Arc::new(world.log_in("alice").await);
    let posts: Vec<_> = (0..200)
        .map(|_| {
            let (world, tokens) = (Arc::clone(&world), Arc::clone(&tokens));
            tokio::spawn(async move { refresh(&world, &tokens).await })
        })
        .collect();
    let mut winners = Vec::new();
    for post in posts {
        let answer = post.await.unwrap();
        match answer.status {
            StatusCode::OK => winners.push(Tokens::from_body(&answer.body)),
            _ => assert_eq!(answer.refusal(), (401, "refresh token revoked")),
        }
    }
    let [winner] = winners.as_slice() else {
        panic!("{} refreshes succeeded", winners.len())
    };
    refreshed(&world, winner).await;
    assert_eq!(world.event_kinds(), [SecurityKind::Login], "parallel use is no theft");
}

/// TK-5: a used token that is shown again after more than ten seconds revokes the family, its access tokens included.
#[tokio::test]
async fn tk5_reuse_after_ten_seconds_kills_the_family() {
    let world = World::new().await;
    let first = world.log_in("alice").await;
    let second = refreshed(&world, &first).await;
    world.fixture.clock.pass(10);
    assert_eq!(refresh(&world, &first).await.refusal(), (401, "refresh token revoked"));
    assert_eq!(
        entry(&world, &second).await,
        ok(),
        "within ten seconds the family lives"
    );
    world.fixture.security_events();

    world.fixture.clock.pass(1);
    assert_eq!(refresh(&world, &first).await.refusal(), (401, "refresh token revoked"));
    let events = world.fixture.security_events();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].kind, SecurityKind::RefreshTokenReuse);
    assert_eq!(events[0].external_id, Some(did("alice")));
    assert_eq!(entry(&world, &second).await, refused(401, "token revoked"));
    assert_eq!(refresh(&world, &second).await.refusal(), (401, "refresh token revoked"));
}

/// TK-5: refreshing does not prolong a login beyond thirty days.
#[tokio::test]
async fn tk5_a_family_lives_thirty_days_at_most() {
    let world = World::new().await;
    let mut tokens = world.log_in("alice").await;
    let started = world.fixture.http.now();
    for _ in 0..5 {
        world.fixture.clock.pass(6 * 86_400 - 10);
        tokens = refreshed(&world, &tokens).await;
    }
    let end = started.plus(Seconds(30 * 86_400));
    let now = world.fixture.http.now();
    assert_eq!(
        world
            .fixture
            .http
            .tokens
            .refresh(&tokens.refresh, now)
            .unwrap()
            .expires_at,
        end
    );
    assert_eq!(
        world
            .fixture
            .http
            .tokens
            .access(&tokens.access, now)
            .unwrap()
            .expires_at,
        end
    );
    world.fixture.clock.pass(60);
    assert_eq!(refresh(&world, &tokens).await.refusal(), (401, "refresh token expired"));
    assert_eq!(entry(&world, &tokens).await, refused(401, "token expired"));
}

/// TK-4: the rejected refreshes and their errors.
#[tokio::test]
async fn tk4_refused_refreshes() {
    let world = World::new().await;
    let tokens = world.log_in("alice").await;
    let malformed = world.post("/refresh", json!({})).send().await;
    assert_eq!(malformed.refusal(), (400, "missing field `refresh_token`"));
    let garbage = Tokens {
        refresh: "a.b.c".to_owned(),
        ..tokens.clone()
    };
    assert_eq!(
        refresh(&world, &garbage).await.refusal(),
        (401, "invalid refresh token")
    );
    let access = Tokens {
        refresh: tokens.access.clone(),
        ..tokens.clone()
    };
    assert_eq!(refresh(&world, &access).await.refusal(), (401, "invalid refresh token"));

    // Correctly signed, for a known user, but never issued.
    let unknown = world.fixture.http.tokens.sign_refresh(&RefreshClaims {
        subject: did("alice"),
        token: TokenId::fixed(1),
        session: SessionId::fixed(2),
        issued_at: world.fixture.http.now(),
        expires_at: world.fixture.http.now().plus(Seconds(60)),
        amr: Amr::Zk,
    });
    let unknown = Tokens {
        refresh: unknown.expose().to_owned(),
        ..tokens.clone()
    };
    assert_eq!(
        refresh(&world, &unknown).await.refusal(),
        (401, "refresh token not found")
    );

    world.fixture.clock.pass(7 * 86_400 + 5);
    assert_eq!(refresh(&world, &tokens).await.refusal(), (401, "refresh token expired"));
}

/// TK-5: a refresh does not create a user.
#[tokio::test]
async fn tk5_a_refresh_creates_no_user() {
    let world = World::new().await;
    let tokens = world.log_in("alice").await;
    let alice = world.user("alice").await.unwrap();
    let mut tx = world.fixture.begin().await;
    tx.delete_user(alice.id).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        refresh(&world, &tokens).await.refusal(),
        (401, "refresh token not found")
    );
    assert!(world.user("alice").await.is_none());
    assert_eq!(entry(&world, &tokens).await, refused(401, "user not found"));
}

/// TK-4, TK-8: a ban applies at the next request; tokens from before it stay revoked after it is lifted.
#[tokio::test]
async fn tk4_tk8_a_ban_ends_tokens_at_once() {
    let world = World::new().await;
    let tokens = world.log_in("alice").await;
    world.fixture.clock.pass(60);
    set_banned(&world, "alice", true).await;
    assert_eq!(entry(&world, &tokens).await, refused(403, "account is banned"));
    assert_eq!(refresh(&world, &tokens).await.refusal(), (403, "account is banned"));
    set_banned(&world, "alice", false).await;
    assert_eq!(entry(&world, &tokens).await, refused(401, "token revoked"));
    assert_eq!(refresh(&world, &tokens).await.status, StatusCode::UNAUTHORIZED);
    world.fixture.clock.pass(60);
    let again = world.log_in("alice").await;
    assert_eq!(entry(&world, &again).await, ok());
}

/// TK-9: a refresh sets the cookie, revoke clears it.
#[tokio::test]
async fn tk9_refresh_sets_and_revoke_clears_the_cookie() {
    let world = World::new().await;
    let tokens = world.log_in("alice").await;
    let answer = world
        .post("/refresh", tokens.as_refresh())
        .header("origin", BASE_URL)
        .send()
        .await;
    let next = Tokens::from_body(&answer.body);
    assert!(answer.cookies()[0].starts_with(&format!("pp_access={}; Path=/; HttpOnly", next.access)));
    assert_eq!(answer.headers["cache-control"], "no-store", "TK-10");

    let evil = world
        .post("/refresh", next.as_refresh())
        .header("origin", "https://evil.example")
        .send()
        .await;
    assert_eq!(evil.status, StatusCode::OK);
    assert!(
        evil.cookies().is_empty(),
        "a foreign page must not log its visitor in as itself"
    );

    let revoked = world
        .post("/revoke", Tokens::from_body(&evil.body).as_refresh())
        .send()
        .await;
    let rest = "=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0; Secure";
    assert_eq!(
        revoked.cookies(),
        [format!("pp_access{rest}"), format!("__Host-pp_access{rest}")]
    );
}

/// TK-6: a revoked login ends at the next request.
#[tokio::test]
async fn tk6_revoke_ends_the_login() {
    let world = World::new().await;
    let (tokens, other) = (world.log_in("alice").await, world.log_in("alice").await);
    world.fixture.security_events();
    let answer = world.post("/api/v1/revoke", tokens.as_refresh()).send().await;
    assert_eq!(
        (answer.status, &answer.body),
        (StatusCode::OK, &json!({ "message": "token revoked" }))
    );
    assert_eq!(entry(&world, &tokens).await, refused(401, "token revoked"));
    assert_eq!(refresh(&world, &tokens).await.refusal(), (401, "refresh token revoked"));
    assert_eq!(entry(&world, &other).await, ok(), "other logins stay");
    assert_eq!(world.event_kinds(), [SecurityKind::SessionRevoked]);
}

/// TK-6: unknown tokens are answered 200, too, and write nothing.
#[tokio::test]
async fn tk6_revoking_the_unknown_is_200_and_writes_nothing() {
    let world = World::new().await;
    let tokens = world.log_in("alice").await;
    world.post("/revoke", tokens.as_refresh()).send().await;
    let epoch = world.fixture.feed.epoch();
    world.fixture.security_events();
    for refresh_token in [tokens.refresh.as_str(), "a.b.c", ""] {
        let body = json!({ "refresh_token": refresh_token, "access_token": "a.b.c" });
        let answer = world.post("/revoke", body).send().await;
        assert_eq!(answer.status, StatusCode::OK);
    }
    assert_eq!(world.fixture.feed.epoch(), epoch);
    assert!(world.fixture.security_events().is_empty());
    assert_eq!(
        world.post("/revoke", json!({})).send().await.refusal(),
        (400, "missing field `refresh_token`")
    );
}

/// TK-6: an access token of another login can be ended together with the refresh token.
#[tokio::test]
async fn tk6_a_named_access_token_ends_too() {
    let world = World::new().await;
    let (one, other) = (world.log_in("alice").await, world.log_in("bob").await);
    let body = json!({ "refresh_token": "unknown", "access_token": one.access });
    assert_eq!(world.post("/revoke", body).send().await.status, StatusCode::OK);
    assert_eq!(entry(&world, &one).await, refused(401, "token revoked"));
    assert_eq!(entry(&world, &other).await, ok());
    refreshed(&world, &one).await;
}

/// TK-7: introspection of active tokens.
#[tokio::test]
async fn tk7_living_tokens_are_active() {
    let world = World::new().await;
    let tokens = world.log_in("alice").await;
    let now = world.fixture.http.now().secs();
    assert_eq!(
        introspect(&world, &tokens.access).await,
        json!({
            "active": true, "iat": now, "exp": now + 300, "kyc": false,
            "sub": "did:test:alice", "token_type": "access_token",
        })
    );
    assert_eq!(
        introspect(&world, &tokens.refresh).await,
        json!({
            "active": true, "iat": now, "exp": now + 7 * 86_400,
            "sub": "did:test:alice", "token_type": "refresh_token",
        })
    );
}

/// TK-7: a token that is not certainly active is inactive, and the answer says nothing else.
#[tokio::test]
async fn tk7_everything_else_is_inactive() {
    let world = World::new().await;
    let inactive = json!({ "active": false });
    let used = world.log_in("alice").await;
    let revoked = refreshed(&world, &used).await;
    world.post("/revoke", revoked.as_refresh()).send().await;
    let banned = world.log_in("bob").await;
    set_banned(&world, "bob", true).await;
    let over = world.log_in("carol").await;
    let used_only = world.log_in("dave").await;
    let live = refreshed(&world, &used_only).await;
    for token in [
        &used.refresh,
        &revoked.access,
        &revoked.refresh,
        &banned.access,
        &banned.refresh,
        &used_only.refresh,
        &"a.b.c".to_owned(),
    ] {
        assert_eq!(introspect(&world, token).await, inactive);
    }
    world.fixture.clock.pass(305);
    assert_eq!(introspect(&world, &over.access).await, inactive);
    assert_eq!(introspect(&world, &live.refresh).await["active"], true);
    world.fixture.make_policy_stale();
    assert_eq!(introspect(&world, &live.refresh).await, inactive, "a look-up fault");
    let empty = world.post("/introspect", Value::Null).body("token=").send().await;
    assert_eq!(empty.refusal(), (400, "token required"));
}

/// TK-8, decision 4: how a request names its caller, and how it is rejected.
#[tokio::test]
async fn tk8_decision_4_presented_tokens() {
    let world = World::new().await;
    let tokens = world.log_in("alice").await;
    let with = |headers: Vec<(&'static str, String)>| {
        let ask = headers.iter().fold(world.get("/api/v1/me/orgs"), |ask, (name, value)| {
            ask.header(name, value)
        });
        async move {
            let answer = ask.send().await;
            let (status, text) = answer.refusal();
            (status, text.to_owned())
        }
    };
    let cookie = ("cookie", format!("other=1; pp_access={}", tokens.access));
    let missing = refused(401, "missing Authorization header");
    assert_eq!(with(vec![]).await, missing);
    for value in ["Basic eDp5", "Bearer", "Bearer ", "Bearer a b", tokens.access.as_str()] {
        let verdict = with(vec![("authorization", value.to_owned())]).await;
        assert_eq!(verdict, refused(401, "invalid Authorization header format"), "{value}");
    }
    assert_eq!(
        with(vec![("authorization", "Bearer a.b.c".to_owned())]).await,
        refused(401, "invalid token")
    );
    assert_eq!(
        with(vec![("authorization", format!("bearer {}", tokens.access))]).await,
        ok()
    );

    assert_eq!(
        with(vec![cookie.clone()]).await,
        missing,
        "a cookie alone could be anybody's page"
    );
    assert_eq!(
        with(vec![cookie.clone(), ("origin", "https://evil.example".to_owned())]).await,
        missing
    );
    assert_eq!(
        with(vec![cookie.clone(), ("sec-fetch-site", "cross-site".to_owned())]).await,
        missing
    );
    assert_eq!(with(vec![cookie.clone(), ("origin", BASE_URL.to_owned())]).await, ok());
    assert_eq!(
        with(vec![cookie.clone(), ("sec-fetch-site", "same-origin".to_owned())]).await,
        ok()
    );

    world.fixture.make_policy_stale();
    let stale = with(vec![("authorization", format!("Bearer {}", tokens.access))]).await;
    assert_eq!(stale, refused(503, "policy unavailable"));
}

/// Decision 54: ten refreshes a minute per token family.
#[tokio::test]
async fn decision_54_refreshes_are_limited_per_family() {
    let world = World::with(crate::world::Setup {
        per_minute: 10,
        ..Default::default()
    })
    .await;
    let mut tokens = world.log_in("alice").await;
    for _ in 0..10 {
        tokens = refreshed(&world, &tokens).await;
    }
    assert_eq!(refresh(&world, &tokens).await.refusal(), (429, "rate limit exceeded"));
    let other = world.log_in("bob").await;
    refreshed(&world, &other).await;
}

/// HD22, 70 rule 14: an effect that cannot be recorded does not happen.
#[tokio::test]
async fn hd22_nothing_changes_while_the_journal_is_full() {
    let world = World::new().await;
    let tokens = world.log_in("alice").await;
    let epoch = world.fixture.feed.epoch();
    world.fill_journal(true);
    assert_eq!(refresh(&world, &tokens).await.refusal(), (503, "audit unavailable"));
    let revoked = world.post("/revoke", tokens.as_refresh()).send().await;
    assert_eq!(revoked.refusal(), (503, "audit unavailable"));
    let path = "/eth/addresses/0x0000000000000000000000000000000000000001";
    let unlinked = world
        .ask(http::Method::DELETE, path)
        .bearer(&tokens.access)
        .send()
        .await;
    assert_eq!(unlinked.refusal(), (503, "audit unavailable"));
    assert_eq!(world.fixture.feed.epoch(), epoch);
    world.fill_journal(false);
    refreshed(&world, &tokens).await;
}

/// HD21: a client that disconnects during a refresh leaves no half-done work behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd21_a_refresh_ends_although_the_client_went_away() {
    let world = World::new().await;
    let tokens = world.log_in("alice").await;
    let asked = world.post("/refresh", tokens.as_refresh());
    // Polled once: the work starts, then the client disconnects.
    let mut asked = Box::pin(asked.send());
    assert!(futures_util::poll!(&mut asked).is_pending());
    drop(asked);
    world.tasks.close();
    world.tasks.wait().await;
    assert_eq!(
        refresh(&world, &tokens).await.refusal(),
        (401, "refresh token revoked"),
        "it was used"
    );
    assert_eq!(entry(&world, &tokens).await, ok());
}

/// TK-7: with INTROSPECT_REQUIRE_CLIENT, only applications that authenticate with their secret get an answer.
#[tokio::test]
async fn tk7_introspection_may_ask_for_an_application() {
    let setup = Setup {
        introspect_require_client: true,
        ..Setup::default()
    };
    let world = World::with(setup).await;
    let tokens = world.log_in("alice").await;
    let ask = async |more: &str, authorization: Option<&str>| {
        let ask = world
            .post("/introspect", Value::Null)
            .body(format!("token={}{more}", tokens.access));
        match authorization {
            Some(value) => ask.header("authorization", value).send().await,
            None => ask.send().await,
        }
    };
    let basic = |joined: &str| format!("Basic {}", STANDARD.encode(joined));
    for refused in [
        ask("", None).await,
        ask("&client_id=explorer&client_secret=wrong", None).await,
        ask("&client_id=nobody&client_secret=old%20secret", None).await,
        ask("", Some(&basic("explorer:wrong"))).await,
        ask("", Some(&format!("Bearer {}", tokens.access))).await,
    ] {
        assert_eq!(
            (refused.status, &refused.body["error"]),
            (StatusCode::UNAUTHORIZED, &json!("invalid_client"))
        );
        assert!(refused.headers.contains_key("www-authenticate"));
    }
    for answer in [
        ask("&client_id=explorer&client_secret=old%20secret", None).await,
        ask("", Some(&basic("explorer:new secret"))).await,
    ] {
        assert_eq!(
            (answer.status, &answer.body["active"]),
            (StatusCode::OK, &json!(true)),
            "{}",
            answer.body
        );
    }
}
