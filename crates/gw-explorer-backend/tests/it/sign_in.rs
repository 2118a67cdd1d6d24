//! Steps 1 to 7 and 10 of spec/40 section 7.

use crate::{
    scripted_gateway::access_token,
    world::{Browser, ORIGIN, World},
};
use base64::{Engine as _, engine::general_purpose::STANDARD, engine::general_purpose::URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

const CALLBACK: &str = "/api/auth/callback";

/// Panics if a token stands in a text in clear.
#[track_caller]
fn assert_no_token(text: &str) {
    for token in ["access-", "refresh-1", "signature", "the-code"] {
        assert!(!text.contains(token), "{token} in {text}");
    }
}

#[tokio::test]
async fn steps_1_to_7_a_browser_signs_in() {
    let world = World::new().await;
    let mut browser = Browser::default();
    let (url, state) = browser
        .begin(&world, "/api/auth/login?return_url=/tx/0x1%3Ftab%3Dlogs")
        .await;
    assert_eq!(
        url.as_str().split('?').next(),
        Some("https://gate.example/oauth/authorize")
    );
    let parameter = |name: &str| {
        url.query_pairs()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    };
    assert_eq!(parameter("client_id").as_deref(), Some("explorer"));
    assert_eq!(parameter("response_type").as_deref(), Some("code"));
    assert_eq!(parameter("redirect_uri"), Some(format!("{ORIGIN}{CALLBACK}")));
    assert_eq!(parameter("code_challenge_method").as_deref(), Some("S256"));
    assert_eq!(URL_SAFE_NO_PAD.decode(&state).unwrap().len(), 32);
    assert!(
        world.gateway.take_received().is_empty(),
        "a sign-in begins without the gateway"
    );

    world.gateway.tokens("/oauth/token", 1, 900);
    let answer = browser
        .get(&world, &format!("{CALLBACK}?code=the-code&state={state}&iss=x"))
        .await
        .expect(302);
    assert_eq!(answer.header("location"), Some("/tx/0x1?tab=logs"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let names: Vec<_> = browser.cookies.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        ["explorer_auth", "explorer_refresh"],
        "the state's cookie is gone"
    );
    assert_no_token(&format!("{:?} {}", answer.headers, answer.body));

    let exchange = world.gateway.take_one();
    assert_eq!(
        (exchange.method.as_str(), exchange.target.as_str()),
        ("POST", "/oauth/token")
    );
    let basic = exchange
        .header("authorization")
        .unwrap()
        .strip_prefix("Basic ")
        .unwrap();
    // RFC 6749 section 2.3.1: both parts are form-encoded first.
    assert_eq!(STANDARD.decode(basic).unwrap(), b"explorer:s3cret+%2B%25%2F%3D%26%3Ax");
    let form: Vec<_> = url::form_urlencoded::parse(exchange.body.as_bytes())
        .into_owned()
        .collect();
    let of_form = |name: &str| form.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    assert_eq!(of_form("grant_type").as_deref(), Some("authorization_code"));
    assert_eq!(of_form("code").as_deref(), Some("the-code"));
    assert_eq!(of_form("redirect_uri"), Some(format!("{ORIGIN}{CALLBACK}")));
    let verifier = of_form("code_verifier").unwrap();
    assert_eq!(
        parameter("code_challenge"),
        Some(URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)))
    );
    assert_eq!(of_form("client_secret"), None);

    let status = browser.get(&world, "/api/auth/status").await.expect(200);
    assert_eq!(
        status.json(),
        serde_json::json!({"privacy_enabled": true, "authenticated": true, "did": "did:test:1"})
    );
    assert_no_token(&status.body);
}

#[tokio::test]
async fn step_1_a_return_url_of_another_host_is_refused() {
    let world = World::new().await;
    for bad in [
        "//evil.example",
        "/%5Cevil.example",
        "https://evil.example",
        "/%09/evil.example",
        "x",
    ] {
        let answer = world
            .get(&format!("/api/auth/login?return_url={bad}"))
            .await
            .expect(400);
        assert!(answer.set_cookies().is_empty() && answer.header("location").is_none());
    }
}

#[tokio::test]
async fn step_6_the_state_is_checked_before_anything_else() {
    let world = World::new().await;
    let mut browser = Browser::default();
    let (_, state) = browser.begin(&world, "/api/auth/login").await;
    let mut other = Browser::default();
    other.begin(&world, "/api/auth/login").await;
    for query in [
        "",
        "?code=c",
        "?code=c&state=",
        "?code=c&state=unknown",
        "?error=x&state=unknown",
    ] {
        browser
            .clone()
            .get(&world, &format!("{CALLBACK}{query}"))
            .await
            .expect(400);
    }
    // Another browser's callback: it could sign this visitor in as itself.
    let with_state = format!("{CALLBACK}?code=c&state={state}");
    other.get(&world, &with_state).await.expect(400);
    assert!(world.gateway.take_received().is_empty(), "no code reached the gateway");
    assert!(!other.cookies.contains_key("explorer_auth"));
    // It ends nothing for the browser that began.
    world.gateway.tokens("/oauth/token", 1, 900);
    browser.get(&world, &with_state).await.expect(302);
}

#[tokio::test]
async fn step_6_a_state_works_once_and_for_ten_minutes() {
    let world = World::new().await;
    let mut browser = Browser::default();
    let (_, late) = browser.begin(&world, "/api/auth/login").await;
    world.clock.pass(600);
    browser
        .get(&world, &format!("{CALLBACK}?code=c&state={late}"))
        .await
        .expect(400);
    let (_, state) = browser.begin(&world, "/api/auth/login").await;
    let saved = browser.clone();
    world.gateway.tokens("/oauth/token", 1, 900);
    browser
        .get(&world, &format!("{CALLBACK}?code=c&state={state}"))
        .await
        .expect(302);
    saved
        .clone()
        .get(&world, &format!("{CALLBACK}?code=c&state={state}"))
        .await
        .expect(400);
    world.gateway.take_one();
}

/// Step 1: the balancer may send the browser back to another instance; only the client secret is shared.
#[tokio::test]
async fn step_6_another_instance_ends_the_sign_in() {
    let (first, second) = (World::new().await, World::new().await);
    let mut browser = Browser::default();
    let (url, state) = browser.begin(&first, "/api/auth/login?return_url=/blocks").await;
    second.gateway.tokens("/oauth/token", 1, 900);
    let target = format!("{CALLBACK}?code=c&state={state}");
    let answer = browser.get(&second, &target).await.expect(302);
    assert_eq!(answer.header("location"), Some("/blocks"));
    // The verifier is that of the challenge that the first instance sent.
    let exchange = second.gateway.take_one();
    let form: Vec<_> = url::form_urlencoded::parse(exchange.body.as_bytes())
        .into_owned()
        .collect();
    let (_, verifier) = form.iter().find(|(name, _)| name == "code_verifier").unwrap();
    let (_, challenge) = url.query_pairs().find(|(name, _)| name == "code_challenge").unwrap();
    assert_eq!(challenge, URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)));
    // The session, too, is read by every instance.
    let status = browser.get(&first, "/api/auth/status").await.expect(200);
    assert_eq!(status.json()["did"], "did:test:1");
}

#[tokio::test]
async fn step_6_a_failed_exchange_is_502_and_tells_no_cause() {
    let world = World::new().await;
    let failures = [
        (401, r#"{"error":"invalid_client","error_description":"secret cause"}"#),
        (400, r#"{"error":"invalid_grant","error_description":"secret cause"}"#),
        (500, "secret cause"),
        (200, "secret cause"),
        (200, r#"{"access_token":"secret cause","token_type":"Bearer"}"#),
        (302, ""),
    ];
    for (status, body) in failures {
        let mut browser = Browser::default();
        let (_, state) = browser.begin(&world, "/api/auth/login").await;
        world.gateway.json("/oauth/token", status, body);
        let answer = browser
            .get(&world, &format!("{CALLBACK}?code=c&state={state}"))
            .await
            .expect(502);
        assert_eq!(answer.json()["error"], "the sign-in could not be completed");
        assert!(!answer.body.contains("secret cause"));
        assert!(browser.cookies.is_empty(), "{:?}", browser.cookies);
    }
    // A navigation gets a page.
    let mut browser = Browser::default();
    let (_, state) = browser.begin(&world, "/api/auth/login").await;
    world.gateway.json("/oauth/token", 400, r#"{"error":"invalid_grant"}"#);
    let target = format!("{CALLBACK}?code=c&state={state}");
    let page = browser
        .send(&world, "GET", &target, &[("accept", "text/html,*/*")], "")
        .await
        .expect(502);
    assert!(
        page.body
            .contains("Sign-in failed: the sign-in could not be completed.")
    );
    assert!(
        page.header("content-security-policy")
            .unwrap()
            .contains("default-src 'none'")
    );
}

#[tokio::test]
async fn step_6_a_callback_without_a_code_is_no_sign_in() {
    let world = World::new().await;
    let mut browser = Browser::default();
    let (_, state) = browser.begin(&world, "/api/auth/login").await;
    let answer = browser
        .get(&world, &format!("{CALLBACK}?error=access_denied&state={state}"))
        .await;
    assert_eq!(
        answer.expect(400).json()["error"],
        "the sign-in was not completed; sign in again"
    );
}

#[tokio::test]
async fn the_browser_returns_to_the_front_end() {
    let change = |proxy: &mut gw_explorer_backend::ProxyConfig| {
        proxy.sign_in.as_mut().unwrap().frontend = Some("https://app.example/".parse().unwrap());
    };
    let world = World::with(change).await;
    let mut browser = Browser::default();
    let (_, state) = browser.begin(&world, "/api/auth/login?return_url=/blocks").await;
    world.gateway.tokens("/oauth/token", 1, 900);
    let answer = browser
        .get(&world, &format!("{CALLBACK}?code=c&state={state}"))
        .await
        .expect(302);
    assert_eq!(answer.header("location"), Some("https://app.example/blocks"));
}

#[tokio::test]
async fn step_10_a_sign_out_revokes_and_clears() {
    let world = World::new().await;
    let mut browser = Browser::default();
    browser.sign_in(&world, 1, 900).await;
    world
        .gateway
        .json("/api/v1/revoke", 200, r#"{"message":"tokens revoked"}"#);
    let answer = browser.post(&world, "/api/auth/logout", "").await.expect(200);
    assert_eq!(answer.json()["message"], "signed out");
    assert_eq!(browser.cookies.len(), 0);
    let revoke = world.gateway.take_one();
    let body: serde_json::Value = serde_json::from_str(&revoke.body).unwrap();
    assert_eq!(
        body,
        serde_json::json!({"refresh_token": "refresh-1", "access_token": access_token(1)})
    );
    let status = browser.get(&world, "/api/auth/status").await.expect(200);
    assert_eq!(
        status.json(),
        serde_json::json!({"privacy_enabled": true, "authenticated": false})
    );
}

#[tokio::test]
async fn step_10_a_sign_out_needs_post_and_an_own_origin() {
    let world = World::new().await;
    let mut browser = Browser::default();
    browser.sign_in(&world, 1, 900).await;
    browser.get(&world, "/api/auth/logout").await.expect(405);
    let cookies = browser.cookies.clone();
    let foreign: [&[(&str, &str)]; 5] = [
        &[],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[("origin", "https://explorer.example.evil.example")],
        &[("sec-fetch-site", "cross-site")],
    ];
    for headers in foreign {
        let answer = browser
            .send(&world, "POST", "/api/auth/logout", headers, "")
            .await
            .expect(403);
        assert!(answer.set_cookies().is_empty(), "{headers:?}");
    }
    assert_eq!(browser.cookies, cookies);
    assert!(world.gateway.take_received().is_empty());
    world.gateway.json("/api/v1/revoke", 200, "{}");
    let headers = [("origin", "https://listed.example")];
    browser
        .send(&world, "POST", "/api/auth/logout", &headers, "")
        .await
        .expect(200);
}

#[tokio::test]
async fn step_10_without_the_gateway_the_browser_is_signed_out_and_told() {
    let world = World::new().await;
    let mut browser = Browser::default();
    browser.sign_in(&world, 1, 900).await;
    world.gateway.json("/api/v1/revoke", 503, "{}");
    let answer = browser.post(&world, "/api/auth/logout", "").await.expect(502);
    assert_eq!(
        answer.json()["error"],
        "signed out of this browser, but the gateway did not confirm it"
    );
    assert!(browser.cookies.is_empty());
}

#[tokio::test]
async fn e5_without_privacy_enabled_there_is_no_sign_in() {
    let world = World::with(|proxy| proxy.sign_in = None).await;
    for target in ["/api/auth/login", "/api/auth/callback?code=c&state=s"] {
        world.get(target).await.expect(404);
    }
    world
        .send("POST", "/api/auth/logout", &[("origin", ORIGIN)], "")
        .await
        .expect(404);
    let status = world.get("/api/auth/status").await.expect(200);
    assert_eq!(
        status.json(),
        serde_json::json!({"privacy_enabled": false, "authenticated": false})
    );
}
