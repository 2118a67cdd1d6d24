//! What ends with a login, and what does not (HD35).

use crate::{
    browser::{CALLBACK, EVIL, STRANGER, entry, flow_of_browser, log_in_by_page, mint, open_from, prove, urls},
    world::{PAGE, Setup, Tokens, World},
};
use gw_store::record::UserPatch;
use gw_testkit::fixture::BASE_URL;
use http::{Method, StatusCode};
use serde_json::{Value, json};

/// HD35: a logout ends everything that the login made: the wallet's tokens, the browser's, and the cookie.
#[tokio::test]
async fn rts5_hd35_logout_ends_the_wallets_tokens_too() {
    let world = World::new().await;
    for way in ["bearer", "cookie", "refresh token", "revoke"] {
        let (wallet, page) = log_in_by_page(&world, "alice").await;
        let (other, _) = log_in_by_page(&world, "alice").await;
        let cookie = format!("pp_access={}", page.access);
        let logout = || world.post("/api/v1/logout", json!({}));
        let answer = match way {
            "bearer" => logout().bearer(&page.access).send().await,
            "cookie" => {
                logout()
                    .header("cookie", &cookie)
                    .header("origin", BASE_URL)
                    .send()
                    .await
            }
            "refresh token" => world.post("/api/v1/logout", wallet.as_refresh()).send().await,
            _ => world.post("/api/v1/revoke", page.as_refresh()).send().await,
        };
        assert_eq!(answer.status, StatusCode::OK, "{way}: {}", answer.body);
        assert!(
            answer.cookies().iter().any(|cookie| cookie.starts_with("pp_access=;")),
            "{way}"
        );
        for tokens in [&wallet, &page] {
            assert_eq!(entry(&world, tokens).await, StatusCode::UNAUTHORIZED, "{way}");
            let refreshed = world.post("/refresh", tokens.as_refresh()).send().await;
            assert_eq!(refreshed.status, StatusCode::UNAUTHORIZED, "{way}");
        }
        assert_eq!(
            entry(&world, &other).await,
            StatusCode::OK,
            "{way}: another login stays"
        );
    }
    let foreign = world
        .post("/api/v1/logout", json!({}))
        .header("cookie", "pp_access=x")
        .header("origin", EVIL);
    assert_eq!(
        foreign.send().await.status,
        StatusCode::FORBIDDEN,
        "nobody is logged out by a foreign page"
    );
    assert_eq!(
        world.post("/api/v1/logout", json!({})).send().await.status,
        StatusCode::UNAUTHORIZED
    );
}

/// HD35: users see where they are logged in, and can end those logins.
#[tokio::test]
async fn rts5_hd35_own_sessions_are_seen_and_ended() {
    let world = World::new().await;
    let (_, here) = log_in_by_page(&world, "alice").await;
    world.fixture.clock.pass(5);
    let (wallet, there) = log_in_by_page(&world, "alice").await;
    let (_, bob) = log_in_by_page(&world, "bob").await;
    let list = async |tokens: &Tokens| {
        world
            .get("/api/v1/me/sessions")
            .bearer(&tokens.access)
            .send()
            .await
            .body
    };
    let listed = list(&here).await;
    assert_eq!(
        (&listed["total"], listed["data"].as_array().unwrap().len()),
        (&json!(2), 2),
        "one login, one row"
    );
    let ids: Vec<&str> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["id"].as_str().unwrap())
        .collect();
    let current: Vec<&Value> = listed["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["current"])
        .collect();
    assert_eq!(current, [&json!(false), &json!(true)], "the newest first");
    let end = |id: &str, who: &Tokens| {
        world
            .ask(Method::DELETE, &format!("/api/v1/me/sessions/{id}"))
            .bearer(&who.access)
            .send()
    };
    for id in [ids[0], "00000000-0000-4000-8000-000000000000", "nonsense"] {
        assert_eq!(end(id, &bob).await.refusal(), (404, "session not found"), "{id}");
    }
    assert_eq!(end(ids[0], &here).await.status, StatusCode::OK);
    for tokens in [&wallet, &there] {
        assert_eq!(entry(&world, tokens).await, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(list(&here).await["total"], 1);
}

/// HD35: after a logout no application can sign the browser in silently; tokens that it had from the login end with it.
#[tokio::test]
async fn rts5_hd35_no_silent_sign_in_after_logout() {
    let world = World::new().await;
    let flow = flow_of_browser(&world, PAGE, &[]).await;
    prove(&world, &flow, "alice").await;
    let status = world
        .get(&format!("/oauth/session/{}/status", flow.id))
        .header("x-login-secret", &flow.secret);
    let status = status.header("origin", BASE_URL).send().await;
    let cookies = status.cookies().join("; ");
    let page = cookies
        .split("pp_access=")
        .nth(1)
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let url = status.body["redirect_url"].as_str().unwrap();
    let code = form_urlencoded::parse(url.split_once('?').unwrap().1.as_bytes()).find(|(name, _)| name == "code");
    let form = form_urlencoded::Serializer::new(String::new())
        .extend_pairs([
            ("grant_type", "authorization_code"),
            ("client_id", "explorer"),
            ("client_secret", "new secret"),
            ("redirect_uri", CALLBACK),
            ("code", &code.unwrap().1),
        ])
        .finish();
    let kind = "application/x-www-form-urlencoded";
    let token = world
        .ask(Method::POST, "/oauth/token")
        .header("content-type", kind)
        .body(form)
        .send()
        .await;
    let application = Tokens::from_body(&token.body);
    assert_eq!(
        world.get("/api/v1/me/orgs").bearer(&page).send().await.status,
        StatusCode::OK
    );

    let next = flow_of_browser(&world, PAGE, &[("cookie", &format!("pp_access={page}"))]).await;
    assert_eq!(
        world.post("/revoke", application.as_refresh()).send().await.status,
        StatusCode::OK
    );
    assert_eq!(
        world.get("/api/v1/me/orgs").bearer(&page).send().await.status,
        StatusCode::UNAUTHORIZED
    );
    let silent = world.ask(Method::POST, &format!("/oauth/session/{}/silent-complete", next.id));
    let silent = silent.header("x-login-secret", &next.secret).bearer(&page).send().await;
    assert_eq!(silent.status, StatusCode::UNAUTHORIZED, "{}", silent.body);
    let anew = flow_of_browser(&world, PAGE, &[("cookie", &format!("pp_access={page}"))]).await;
    let info = world
        .get(&format!("/oauth/session/{}/info", anew.id))
        .header("x-login-secret", &anew.secret);
    assert_eq!(info.send().await.body["silent"], false);
}

/// HD35: too many logins from an address never block its logouts, nor the reverse.
#[tokio::test]
async fn rts5_hd35_revocations_have_their_own_limit() {
    let world = World::with(Setup {
        per_minute: 3,
        ..Setup::default()
    })
    .await;
    let (wallet, _) = log_in_by_page(&world, "alice").await;
    for _ in 0..10 {
        world.ask(Method::POST, "/auth/request").send().await;
    }
    assert_eq!(
        world.ask(Method::POST, "/auth/request").send().await.status,
        StatusCode::TOO_MANY_REQUESTS
    );
    assert_eq!(
        world.post("/revoke", wallet.as_refresh()).send().await.status,
        StatusCode::OK
    );
    let mut stopped = false;
    for _ in 0..100 {
        stopped |= world
            .post("/revoke", json!({ "refresh_token": "x" }))
            .from(STRANGER)
            .send()
            .await
            .status
            == StatusCode::TOO_MANY_REQUESTS;
    }
    assert!(stopped);
    assert_eq!(
        world
            .ask(Method::POST, "/auth/request")
            .from(STRANGER)
            .send()
            .await
            .status,
        StatusCode::OK
    );
}

/// HD35: a personal URL needs a recent login, not just a valid token.
#[tokio::test]
async fn rts6_hd35_a_url_is_made_only_just_after_a_login() {
    let world = World::new().await;
    let (_, page) = log_in_by_page(&world, "alice").await;
    assert_eq!(mint(&world, &page).await.status, StatusCode::CREATED);
    world.fixture.clock.pass(290);
    let refreshed = Tokens::from_body(&world.post("/refresh", page.as_refresh()).send().await.body);
    assert_eq!(
        mint(&world, &refreshed).await.status,
        StatusCode::CREATED,
        "within five minutes"
    );
    world.fixture.clock.pass(11);
    let late = mint(&world, &refreshed).await;
    assert_eq!(late.status, StatusCode::UNAUTHORIZED, "{}", late.body);
    assert_eq!(late.body["reason"], "login_required");
    let challenge = late.headers["www-authenticate"].to_str().unwrap();
    assert!(
        challenge.contains("insufficient_user_authentication") && challenge.contains("max_age=300"),
        "{challenge}"
    );
    assert_eq!(urls(&world).await, 2);
}

/// HD35: a personal URL ends with the login that made it, whatever ends the login.
#[tokio::test]
async fn rts6_hd35_a_url_ends_with_its_login() {
    let world = World::new().await;
    let (_, other) = log_in_by_page(&world, "alice").await;
    mint(&world, &other).await;
    for way in ["logout", "revoke", "reuse", "own session", "administrator"] {
        let (wallet, page) = log_in_by_page(&world, "alice").await;
        assert_eq!(mint(&world, &page).await.status, StatusCode::CREATED, "{way}");
        assert_eq!(urls(&world).await, 2, "{way}");
        match way {
            "logout" => drop(
                world
                    .post("/api/v1/logout", json!({}))
                    .bearer(&page.access)
                    .send()
                    .await,
            ),
            "revoke" => drop(world.post("/revoke", wallet.as_refresh()).send().await),
            "reuse" => {
                world.post("/refresh", page.as_refresh()).send().await;
                world.fixture.clock.pass(11);
                world.post("/refresh", page.as_refresh()).send().await;
            }
            "own session" => {
                let listed = world.get("/api/v1/me/sessions").bearer(&page.access).send().await.body;
                let mine = listed["data"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .find(|row| row["current"] == true)
                    .unwrap();
                let path = format!("/api/v1/me/sessions/{}", mine["id"].as_str().unwrap());
                world.ask(Method::DELETE, &path).bearer(&other.access).send().await;
            }
            _ => {
                let family = world
                    .fixture
                    .http
                    .tokens
                    .access(&wallet.access, world.fixture.http.now())
                    .unwrap()
                    .session;
                let user = world.user("alice").await.unwrap();
                let mut tx = world.fixture.begin().await;
                tx.end_session(user.id, family).await.unwrap();
                tx.commit().await.unwrap();
            }
        }
        assert_eq!(urls(&world).await, 1, "{way}: its own is gone, another login's stays");
    }
    let (_, page) = log_in_by_page(&world, "alice").await;
    mint(&world, &page).await;
    let kept = world
        .post("/api/v1/logout", json!({ "keep_rpc_urls": true }))
        .bearer(&page.access)
        .send()
        .await;
    assert_eq!(kept.status, StatusCode::OK, "{}", kept.body);
    assert_eq!(urls(&world).await, 2, "kept, as asked in plain words");
}

/// A login in the same second as a revocation gives tokens that work; tokens from just before it stay revoked.
#[tokio::test]
async fn rts10_a_login_in_the_second_of_a_revocation_works() {
    let world = World::new().await;
    world.fixture.clock.pass_millis(300);
    let before = world.log_in("alice").await;
    world.fixture.clock.pass_millis(100);
    let alice = world.user("alice").await.unwrap();
    let mut tx = world.fixture.begin().await;
    for banned in [true, false] {
        tx.update_user(
            alice.id,
            UserPatch {
                banned: Some(banned),
                ..UserPatch::default()
            },
        )
        .await
        .unwrap();
    }
    tx.commit().await.unwrap();
    world.fixture.clock.pass_millis(100);
    let after = world.log_in("alice").await;
    assert_eq!(entry(&world, &before).await, StatusCode::UNAUTHORIZED);
    assert_eq!(entry(&world, &after).await, StatusCode::OK);
    world.fixture.clock.pass_millis(1);
    let mut tx = world.fixture.begin().await;
    tx.end_sessions(alice.id).await.unwrap();
    tx.commit().await.unwrap();
    world.fixture.clock.pass_millis(100);
    assert_eq!(
        entry(&world, &after).await,
        StatusCode::UNAUTHORIZED,
        "nor does it outlive the next one"
    );
}

/// A poll does not return the tokens of a login that was logged out.
#[tokio::test]
async fn rts12_a_poll_after_logout_serves_no_tokens() {
    let world = World::new().await;
    let login = open_from(&world, PAGE, &[("origin", BASE_URL)]).await;
    world.prove(&login, "proof:did:test:alice").await;
    let shown = [("x-login-secret", login.secret.as_str())];
    let page = Tokens::from_body(&world.poll(&login, PAGE, &shown).await.body["tokens"]);
    world.post("/revoke", page.as_refresh()).send().await;
    let after = world.poll(&login, PAGE, &shown).await;
    assert_eq!(after.refusal(), (401, "session not found or expired"));
    assert!(after.cookies().is_empty());
}
