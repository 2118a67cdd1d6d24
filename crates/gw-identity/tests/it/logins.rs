//! Login sessions.

use crate::world::{PAGE, Setup, Tokens, WALLET, World, did};
use gw_audit::SecurityKind;
use gw_identity::NoVerifier;
use gw_policy::snapshot::Group;
use gw_store::{
    read::Scope,
    record::{NewTenant, NewUser, UserPatch},
};
use gw_testkit::fixture::BASE_URL;
use gw_types::TenantId;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;

const STRANGER: &str = "192.0.2.77";

/// ZK-10, ZK-14, ZK-80, ZK-81: a proof creates the user, in the default group only, without KYC.
#[tokio::test]
async fn zk10_zk80_a_proof_completes_the_session_and_makes_the_user() {
    let world = World::new().await;
    let login = world.open_login().await;
    let pending = world.poll(&login, PAGE, &login.shown()).await;
    assert_eq!(pending.body, json!({ "completed": false }));

    let answer = world.prove(&login, "proof:did:test:alice").await;
    assert_eq!(answer.status, StatusCode::OK);
    assert_eq!(answer.body["token_type"], "Bearer");
    assert_eq!(answer.body["expires_in"], 300);
    assert_eq!(answer.headers["cache-control"], "no-store", "TK-10");
    assert!(answer.cookies().is_empty(), "a wallet gets no cookie");

    let alice = world.user("alice").await.unwrap();
    assert!(!alice.kyc && !alice.banned);
    let memberships = world
        .fixture
        .store
        .read()
        .list_memberships(alice.id, &Scope::All)
        .await
        .unwrap();
    assert_eq!(
        memberships.iter().map(|item| item.group.id).collect::<Vec<_>>(),
        [Group::DEFAULT]
    );

    let events = world.fixture.security_events();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].kind, SecurityKind::Login);
    assert_eq!(events[0].external_id, Some(did("alice")));
    assert_eq!(events[0].ip_address, Some(WALLET.parse().unwrap()));
    assert_eq!(events[0].provider.as_deref(), Some("zk"));
}

/// ZK-80: a login does not change an existing user.
#[tokio::test]
async fn zk80_a_login_never_alters_kyc() {
    let world = World::new().await;
    world.log_in("alice").await;
    let alice = world.user("alice").await.unwrap();
    let mut tx = world.fixture.begin().await;
    tx.update_user(
        alice.id,
        UserPatch {
            kyc: Some(true),
            ..UserPatch::default()
        },
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    let tokens = world.log_in("alice").await;
    assert!(world.user("alice").await.unwrap().kyc);
    assert!(
        world
            .fixture
            .http
            .tokens
            .access(&tokens.access, world.fixture.http.now())
            .unwrap()
            .kyc
    );
}

/// ZK-80: AUTO_KYC_IDP applies to users that a login creates, never to existing ones.
#[tokio::test]
async fn zk80_auto_kyc_is_for_new_rows_only() {
    let world = World::with(Setup {
        auto_kyc: true,
        ..Setup::default()
    })
    .await;
    let mut tx = world.fixture.begin().await;
    let known = NewUser {
        external_id: did("known"),
        kyc: false,
        auth_tenant_id: None,
        groups: Vec::new(),
    };
    tx.create_user(known).await.unwrap();
    tx.commit().await.unwrap();
    for (name, kyc) in [("known", false), ("new", true)] {
        world.log_in(name).await;
        assert_eq!(world.user(name).await.unwrap().kyc, kyc, "{name}");
    }
}

/// TK-5, TK-8: the tenant of a directory user must still be allowed, at a refresh and wherever the token is used.
#[tokio::test]
async fn tk5_tk8_a_user_whose_tenant_is_not_allowed_is_shut_out() {
    let world = World::new().await;
    let tokens = world.log_in("clerk").await;
    let (clerk, tenant) = (world.user("clerk").await.unwrap().id, TenantId::fixed(7));
    let mut tx = world.fixture.begin().await;
    tx.pin_tenant(clerk, tenant).await.unwrap();
    tx.commit().await.unwrap();
    let refresh = || world.post("/refresh", tokens.as_refresh()).send();
    let orgs = || world.get("/api/v1/me/orgs").bearer(&tokens.access).send();
    assert_eq!(refresh().await.refusal(), (403, "tenant is not authorized"));
    assert_eq!(orgs().await.refusal(), (403, "tenant is not authorized"));
    let mut tx = world.fixture.begin().await;
    let new = NewTenant {
        tenant,
        label: String::new(),
        auto_provision: true,
        disabled: false,
        default_org: None,
        default_group: None,
    };
    tx.create_tenant(new).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(orgs().await.status, StatusCode::OK);
    assert_eq!(
        refresh().await.status,
        StatusCode::OK,
        "the refusal did not use the token up"
    );
}

/// Spec/10 section 1: without a directory its routes do not exist, and the providers do not list it.
#[tokio::test]
async fn ds1_without_a_directory_its_routes_are_not_there() {
    let world = World::new().await;
    let answers = [
        world
            .get("/api/v1/auth/directory/url?redirect_uri=https://gate.example/")
            .send()
            .await,
        world.post("/api/v1/auth/directory/callback", json!({})).send().await,
        world
            .post(
                "/api/v1/auth/directory/service-principal",
                json!({ "access_token": "a" }),
            )
            .send()
            .await,
    ];
    for answer in answers {
        assert_eq!(answer.refusal(), (404, "not found"));
    }
    assert_eq!(
        world.get("/api/v1/auth/providers").send().await.body["providers"],
        json!(["idp"])
    );
}

/// HD19: wallet and page get two families of one login, so that refreshing one does not revoke the other.
#[tokio::test]
async fn hd19_wallet_and_page_get_two_families() {
    let world = World::new().await;
    let login = world.open_login().await;
    let wallet = Tokens::from_body(&world.prove(&login, "proof:did:test:alice").await.body);
    let polled = world.poll(&login, PAGE, &login.shown()).await;
    assert_eq!(polled.body["completed"], true);
    let page = Tokens::from_body(&polled.body["tokens"]);
    let family = |tokens: &Tokens| {
        world
            .fixture
            .http
            .tokens
            .access(&tokens.access, world.fixture.http.now())
            .unwrap()
            .session
    };
    assert_ne!(family(&wallet), family(&page));

    // Two copies of one pair would revoke each other here. A real second use ends the whole login (HD35).
    for tokens in [&wallet, &page] {
        world.fixture.clock.pass(60);
        assert_eq!(
            world.post("/refresh", tokens.as_refresh()).send().await.status,
            StatusCode::OK
        );
    }
}

/// ZK-13, HD19, HD34: the session id in the QR code grants nothing by itself, nor does the address of a browser.
#[tokio::test]
async fn zk13_hd19_a_poll_needs_the_openers_secret() {
    let world = World::new().await;
    let login = world.open_login().await;
    world.prove(&login, "proof:did:test:alice").await;

    let pending = json!({ "completed": false });
    let cookie = format!("pp_login={}", login.secret);
    assert_eq!(world.poll(&login, STRANGER, &[]).await.body, pending);
    assert_eq!(
        world.poll(&login, STRANGER, &[("cookie", "pp_login=guess")]).await.body,
        pending
    );
    assert_eq!(
        world.poll(&login, STRANGER, &[("x-login-secret", "guess")]).await.body,
        pending
    );
    assert_eq!(world.poll(&login, WALLET, &[]).await.body, pending);
    assert_eq!(world.poll(&login, PAGE, &[]).await.body, pending);
    for (peer, headers) in [
        (STRANGER, vec![("cookie", cookie.as_str())]),
        (STRANGER, vec![("x-login-secret", login.secret.as_str())]),
    ] {
        let answer = world.poll(&login, peer, &headers).await;
        assert_eq!(answer.body["completed"], true, "{peer} {headers:?}");
    }
}

/// Decision 26: the page's tokens are returned by every poll until the session ends.
#[tokio::test]
async fn decision_26_a_completed_poll_can_be_repeated_until_the_session_ends() {
    let world = World::new().await;
    let login = world.open_login().await;
    world.prove(&login, "proof:did:test:alice").await;
    let first = world.poll(&login, PAGE, &login.shown()).await;
    world.fixture.clock.pass(240);
    let second = world.poll(&login, PAGE, &login.shown()).await;
    assert_eq!(
        Tokens::from_body(&first.body["tokens"]),
        Tokens::from_body(&second.body["tokens"])
    );
    assert_eq!(second.body["tokens"]["expires_in"], 60);
    world.fixture.clock.pass(360);
    assert_eq!(
        world.poll(&login, PAGE, &login.shown()).await.refusal(),
        (401, "session not found or expired")
    );
}

/// TK-9: a completed poll sets the cookie, but not for a foreign page.
#[tokio::test]
async fn tk9_a_completed_poll_sets_the_cookie_for_our_pages_only() {
    let world = World::new().await;
    let login = world.open_login().await;
    world.prove(&login, "proof:did:test:alice").await;
    let shown = ("x-login-secret", login.secret.as_str());
    let own = world.poll(&login, PAGE, &[shown, ("origin", BASE_URL)]).await;
    let cookies = own.cookies();
    assert_eq!(cookies.len(), 2, "by the agreed name, and by one for this host alone");
    assert!(cookies[0].starts_with("pp_access=") && cookies[1].starts_with("__Host-pp_access="));
    for cookie in &cookies {
        assert!(
            cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Max-Age=300; Secure"),
            "{cookie}"
        );
    }
    assert!(
        world
            .poll(&login, PAGE, &[shown, ("origin", "https://evil.example")])
            .await
            .cookies()
            .is_empty()
    );
    assert!(
        world
            .poll(&login, PAGE, &[shown, ("sec-fetch-site", "cross-site")])
            .await
            .cookies()
            .is_empty()
    );
}

/// ZK-13, HD19: the attributes of the page's cookie.
#[tokio::test]
async fn zk13_hd19_the_login_cookie_follows_the_frontend() {
    let world = World::new().await;
    let login = world.open_login().await;
    assert_eq!(
        login.cookie,
        format!(
            "__Host-pp_login={}; Path=/; HttpOnly; SameSite=Lax; Max-Age=600; Secure",
            login.secret
        )
    );
    let without_origin = world.ask(Method::POST, "/auth/request").send().await;
    assert!(without_origin.cookies().is_empty());
    assert!(without_origin.headers.contains_key("x-login-secret"));

    let frontend = Some("https://app.example");
    let foreign = World::with(Setup {
        frontend,
        production: false,
        ..Setup::default()
    })
    .await;
    let login = foreign.open_login().await;
    assert!(
        login.cookie.ends_with("; SameSite=None; Max-Age=600; Secure"),
        "{}",
        login.cookie
    );
}

/// ZK-12: two parallel proofs for one session give one pair.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn zk12_parallel_proofs_give_one_pair() {
    let world = Arc::new(World::new().await);
    let login = Arc::new(world.open_login().await);
    let posts: Vec<_> = (0..20)
        .map(|_| {
            let (world, login) = (Arc::clone(&world), Arc::clone(&login));
            tokio::spawn(async move { world.prove(&login, "proof:did:test:alice").await.status })
        })
        .collect();
    let mut statuses = Vec::new();
    for post in posts {
        statuses.push(post.await.unwrap());
    }
    assert_eq!(statuses.iter().filter(|status| **status == StatusCode::OK).count(), 1);
    assert_eq!(
        statuses
            .iter()
            .filter(|status| **status == StatusCode::UNAUTHORIZED)
            .count(),
        19
    );
    assert_eq!(world.event_kinds(), [SecurityKind::Login]);
}

/// ZK-12: a completed session accepts no further proof from anybody.
#[tokio::test]
async fn zk12_a_completed_session_takes_no_proof() {
    let world = World::new().await;
    let login = world.open_login().await;
    world.prove(&login, "proof:did:test:alice").await;
    for proof in ["proof:did:test:alice", "proof:did:test:mallory", "nonsense"] {
        assert_eq!(
            world.prove(&login, proof).await.refusal(),
            (401, "session not found or expired"),
            "{proof}"
        );
    }
    assert!(world.user("mallory").await.is_none());
}

/// spec/10 §2.8, ZK-10: every rejection with its status and with what the poll shows; a valid proof clears it.
#[tokio::test]
async fn zk10_a_rejected_proof_shows_in_the_session_and_a_valid_one_clears_it() {
    let world = World::new().await;
    let login = world.open_login().await;
    for (proof, status, error, reason) in [
        ("nonsense", 401, "verification failed", "verification_failed"),
        ("unreadable", 400, "invalid token format", "invalid_request"),
        ("", 400, "token not found in request body", "invalid_request"),
        (
            "no humanity",
            403,
            "humanity_verification_required",
            "humanity_required",
        ),
        ("no network", 401, "verification failed", "network_not_supported"),
        ("no resolver", 503, "verification unavailable", "authentication_failed"),
    ] {
        let answer = world.prove(&login, proof).await;
        assert_eq!(answer.refusal(), (status, error), "{proof}");
        if status == 403 {
            assert_eq!(answer.body["verify_url"], "https://verify.example");
            assert!(answer.body["message"].is_string());
        }
        let poll = world.poll(&login, PAGE, &login.shown()).await;
        let mut expected = json!({ "completed": false, "failed": true, "reason": reason });
        if status == 403 {
            expected["verify_url"] = json!("https://verify.example");
        }
        assert_eq!(poll.body, expected, "{proof}");
    }
    assert!(
        world
            .event_kinds()
            .iter()
            .all(|kind| *kind == SecurityKind::LoginRefused)
    );
    assert_eq!(world.prove(&login, "proof:did:test:alice").await.status, StatusCode::OK);
    let poll = world.poll(&login, PAGE, &login.shown()).await;
    assert_eq!(
        (&poll.body["completed"], &poll.body["failed"]),
        (&Value::Bool(true), &Value::Null)
    );
}

/// A banned account is rejected at login, gets no tokens, and the session stays open for others.
#[tokio::test]
async fn a_banned_account_gets_no_tokens() {
    let world = World::new().await;
    world.log_in("alice").await;
    let alice = world.user("alice").await.unwrap();
    let mut tx = world.fixture.begin().await;
    tx.update_user(
        alice.id,
        UserPatch {
            banned: Some(true),
            ..UserPatch::default()
        },
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    world.fixture.security_events();

    let login = world.open_login().await;
    assert_eq!(
        world.prove(&login, "proof:did:test:alice").await.refusal(),
        (403, "account is banned")
    );
    let poll = world.poll(&login, PAGE, &login.shown()).await;
    assert_eq!(
        poll.body,
        json!({ "completed": false, "failed": true, "reason": "authentication_failed" })
    );
    let now = world.fixture.http.now();
    assert_eq!(
        world.fixture.store.read().list_families(alice.id, now).await.unwrap(),
        []
    );
    assert_eq!(world.event_kinds(), [SecurityKind::LoginRefused]);
    assert_eq!(world.prove(&login, "proof:did:test:bob").await.status, StatusCode::OK);
}

/// A login that cannot be recorded gives tokens to nobody.
#[tokio::test]
async fn an_unrecorded_login_gives_no_tokens() {
    let world = World::new().await;
    let login = world.open_login().await;
    world.fill_journal(true);
    assert_eq!(
        world.prove(&login, "proof:did:test:alice").await.refusal(),
        (503, "audit unavailable")
    );
    assert_eq!(world.poll(&login, PAGE, &login.shown()).await.body["completed"], false);
    assert!(world.user("alice").await.is_none(), "refused before any effect");
    world.fill_journal(false);
    assert_eq!(world.prove(&login, "proof:did:test:alice").await.status, StatusCode::OK);
}

/// A session that was never opened, has expired, or is not named.
#[tokio::test]
async fn d1_unknown_and_expired_sessions_are_401() {
    let world = World::new().await;
    let login = world.open_login().await;
    world.fixture.clock.pass(600);
    assert_eq!(
        world.prove(&login, "proof:did:test:alice").await.refusal(),
        (401, "session not found or expired")
    );
    for id in [login.id.as_str(), "00000000-0000-4000-8000-000000000000", "nonsense"] {
        let callback = world
            .ask(Method::POST, &format!("/auth/callback?session={id}"))
            .body("x")
            .send()
            .await;
        assert_eq!(callback.refusal(), (401, "session not found or expired"), "{id}");
        let poll = world.get(&format!("/auth/session/{id}/status")).send().await;
        assert_eq!(poll.refusal(), (401, "session not found or expired"), "{id}");
    }
    let unnamed = world.ask(Method::POST, "/auth/callback").body("x").send().await;
    assert_eq!(unnamed.refusal(), (400, "session parameter required"));
    assert!(world.user("alice").await.is_none());
}

/// A body larger than any proof.
#[tokio::test]
async fn zk20_a_body_over_one_mebibyte_is_413() {
    let world = World::new().await;
    let login = world.open_login().await;
    let answer = world.prove(&login, &"x".repeat(1024 * 1024 + 1)).await;
    assert_eq!(answer.refusal(), (413, "request body too large"));
}

/// spec/10 §9: ten failed callbacks per session and address, then 429; other addresses can still complete the session.
#[tokio::test]
async fn identity_9_ten_failures_close_the_session_for_that_address_only() {
    let world = World::new().await;
    let login = world.open_login().await;
    for _ in 0..10 {
        assert_eq!(world.prove(&login, "nonsense").await.status, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(
        world.prove(&login, "proof:did:test:alice").await.status,
        StatusCode::TOO_MANY_REQUESTS
    );
    let path = format!("/auth/callback?session={}", login.id);
    let other = world
        .ask(Method::POST, &path)
        .from(STRANGER)
        .body("proof:did:test:alice")
        .send()
        .await;
    assert_eq!(other.status, StatusCode::OK);
}

/// RL14: an internal fault counts neither as a failed attempt nor against the limit: when it ends, the address can
/// log in at once, by a new session and by the sessions that met the fault.
async fn rl14_faults_of_ours_shut_nobody_out(world: World) {
    let mut met = Vec::new();
    for round in 0..25 {
        world.fill_journal(true);
        let login = world.open_login().await;
        let proof = if round % 2 == 0 {
            "proof:did:test:alice"
        } else {
            "no resolver"
        };
        let answer = world.prove(&login, proof).await;
        assert_eq!(
            answer.status,
            StatusCode::SERVICE_UNAVAILABLE,
            "{round}: {}",
            answer.body
        );
        assert!(answer.headers.contains_key("retry-after"));
        met.push(login);
    }
    for _ in 0..15 {
        assert_eq!(
            world.prove(&met[1], "no resolver").await.status,
            StatusCode::SERVICE_UNAVAILABLE,
            "no try is used up"
        );
    }
    let shown = world.poll(&met[1], PAGE, &met[1].shown()).await;
    assert_eq!(shown.body["completed"], false, "{}", shown.body);
    assert_eq!(shown.body["reason"], "authentication_failed", "{}", shown.body);
    world.fill_journal(false);
    world.log_in("alice").await;
    for login in [&met[0], &met[1]] {
        assert_eq!(world.prove(login, "proof:did:test:alice").await.status, StatusCode::OK);
        let page = world.poll(login, PAGE, &login.shown()).await;
        assert_eq!(page.body["completed"], true, "its page gets its tokens: {}", page.body);
        let again = world.prove(login, "proof:did:test:alice").await;
        assert_eq!(again.refusal(), (401, "session not found or expired"));
    }
    // Real rejections count as before.
    for _ in 0..10 {
        assert_eq!(world.prove(&met[3], "nonsense").await.status, StatusCode::UNAUTHORIZED);
    }
    world.fixture.clock.pass(100);
    let refused = world.prove(&met[3], "proof:did:test:alice").await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers["retry-after"], "500", "whole seconds, true");
}

#[tokio::test]
async fn rl14_faults_of_ours_shut_nobody_out_in_process() {
    rl14_faults_of_ours_shut_nobody_out(World::new().await).await;
}

/// spec/10 §9: twenty open sessions per address; new ones are possible when they end.
#[tokio::test]
async fn identity_9_twenty_open_sessions_per_address() {
    let world = World::new().await;
    for _ in 0..20 {
        world.open_login().await;
    }
    let refused = world.ask(Method::POST, "/auth/request").send().await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(refused.headers["retry-after"], "600");
    let other = world.ask(Method::POST, "/auth/request").from(STRANGER).send().await;
    assert_eq!(other.status, StatusCode::OK);
    world.fixture.clock.pass(600);
    world.open_login().await;
}

/// 85 §5: ten requests a minute per address over all auth routes, with Retry-After.
#[tokio::test]
async fn identity_9_auth_routes_are_limited_per_address() {
    let world = World::with(Setup {
        per_minute: 10,
        ..Setup::default()
    })
    .await;
    for _ in 0..5 {
        world.ask(Method::POST, "/auth/request").send().await;
        world.post("/api/v1/introspect", json!({})).send().await;
    }
    let refused = world.ask(Method::POST, "/api/v1/auth/request").send().await;
    assert_eq!(refused.refusal(), (429, "rate limit exceeded"));
    assert_eq!(refused.headers["retry-after"], "6");
    let other = world.ask(Method::POST, "/auth/request").from(STRANGER).send().await;
    assert_eq!(other.status, StatusCode::OK);
}

/// spec/10 §9: sixty polls a minute per session.
#[tokio::test]
async fn identity_9_polls_are_limited_per_session() {
    let world = World::new().await;
    let (one, other) = (world.open_login().await, world.open_login().await);
    for _ in 0..60 {
        assert_eq!(world.poll(&one, PAGE, &one.shown()).await.status, StatusCode::OK);
        assert_eq!(world.poll(&one, STRANGER, &[]).await.status, StatusCode::OK);
    }
    assert_eq!(
        world.poll(&one, PAGE, &one.shown()).await.status,
        StatusCode::TOO_MANY_REQUESTS
    );
    assert_eq!(
        world.poll(&one, STRANGER, &[]).await.status,
        StatusCode::TOO_MANY_REQUESTS
    );
    assert_eq!(world.poll(&other, PAGE, &other.shown()).await.status, StatusCode::OK);
}

/// ZK-5: without VERIFIER_ID production refuses logins, and development uses a placeholder.
#[tokio::test]
async fn zk5_without_a_verifier_id() {
    let production = World::with(Setup {
        verifier_id: None,
        ..Setup::default()
    })
    .await;
    let answer = production.ask(Method::POST, "/auth/request").send().await;
    assert_eq!(answer.refusal(), (500, "VERIFIER_ID not configured"));
    let development = World::with(Setup {
        verifier_id: None,
        production: false,
        ..Setup::default()
    })
    .await;
    let answer = development.ask(Method::POST, "/auth/request").send().await;
    assert!(
        answer.body["auth_request"]["from"]
            .as_str()
            .unwrap()
            .starts_with("did:pkh:")
    );
}

/// `/auth/verify` exists in development only.
#[tokio::test]
async fn verify_answers_in_development_only() {
    let production = World::new().await;
    let login = production.open_login().await;
    let body = json!({ "jwz_token": "proof:did:test:alice", "session_id": login.id });
    assert_eq!(
        production.post("/auth/verify", body).send().await.refusal(),
        (404, "not found")
    );
    assert_eq!(
        production.post("/auth/verify", json!([])).send().await.refusal(),
        (404, "not found")
    );
    assert!(production.user("alice").await.is_none());

    let development = World::with(Setup {
        production: false,
        ..Setup::default()
    })
    .await;
    let login = development.open_login().await;
    let missing = |body: Value| development.post("/auth/verify", body);
    assert_eq!(
        missing(json!({ "session_id": login.id })).send().await.refusal(),
        (400, "jwz_token required")
    );
    assert_eq!(
        missing(json!({ "jwz_token": "x" })).send().await.refusal(),
        (400, "session parameter required")
    );
    let body = json!({ "jwz_token": "proof:did:test:alice", "session_id": login.id });
    let answer = development.post("/auth/verify", body).send().await;
    assert_eq!(answer.status, StatusCode::OK);
    assert!(answer.cookies()[0].starts_with("pp_access="));
}

/// The build without a verifier rejects every proof, mock tokens included (MK-2).
#[tokio::test]
async fn mk2_without_a_verifier_every_proof_is_401() {
    let world = World::with(Setup {
        verifier: Arc::new(NoVerifier),
        ..Setup::default()
    })
    .await;
    let login = world.open_login().await;
    for proof in ["mock.did:test:alice", "mock.jwz.token.did:test:alice", "a.b.c"] {
        assert_eq!(
            world.prove(&login, proof).await.refusal(),
            (401, "verification failed"),
            "{proof}"
        );
    }
    assert!(world.user("alice").await.is_none());
}

/// Decision 29.
#[tokio::test]
async fn decision_29_providers_and_networks() {
    let world = World::new().await;
    let answer = world.get("/api/v1/auth/providers").send().await;
    assert_eq!(answer.body, json!({ "providers": ["idp"], "networks": ["idp:main"] }));
}

/// ZK-77: one person, one account. A credential that was shown for one account does not log in another, so a banned
/// user cannot return with a new profile.
#[tokio::test]
async fn zk77_one_persons_credential_serves_one_account() {
    let world = World::new().await;
    let prove = async |proof: &str| {
        let login = world.open_login().await;
        (world.prove(&login, proof).await, login)
    };
    assert_eq!(prove("proof:did:test:alice#77").await.0.status, StatusCode::OK);
    assert_eq!(prove("proof:did:test:alice#77").await.0.status, StatusCode::OK, "again");
    let (fresh, login) = prove("proof:did:test:fresh#77").await;
    assert_eq!(fresh.refusal(), (401, "verification failed"));
    assert_eq!(
        world.poll(&login, PAGE, &login.shown()).await.body["reason"],
        "verification_failed"
    );
    assert!(world.user("fresh").await.is_none(), "nothing was made");
    assert_eq!(
        prove("proof:did:test:bob#78").await.0.status,
        StatusCode::OK,
        "somebody else"
    );

    let alice = world.user("alice").await.unwrap();
    let mut tx = world.fixture.begin().await;
    tx.update_user(
        alice.id,
        UserPatch {
            banned: Some(true),
            ..UserPatch::default()
        },
    )
    .await
    .unwrap();
    tx.delete_user(alice.id).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        prove("proof:did:test:fresh#77").await.0.refusal(),
        (401, "verification failed"),
        "nor after a deletion"
    );
    assert_eq!(
        prove("proof:did:test:alice#77").await.0.refusal(),
        (403, "account is banned")
    );
}
