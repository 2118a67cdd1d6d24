//! Headers and records of answers: cookies, challenges, pages for browsers, the way of authentication.

use crate::{
    browser::{EVIL, authorize, flow_of_browser, log_in_by_page, mint, open_from, urls},
    world::{PAGE, Setup, Tokens, World},
};
use futures_util::FutureExt as _;
use gw_audit::AuthMethod;
use gw_testkit::fixture::BASE_URL;
use http::StatusCode;
use serde_json::json;

/// Cookies of an https service are set for this host alone; a sibling host's cookie is not accepted instead.
#[tokio::test]
async fn rts12_cookies_belong_to_this_host() {
    let world = World::new().await;
    let login = open_from(&world, PAGE, &[("origin", BASE_URL)]).await;
    assert!(login.cookie.starts_with("__Host-pp_login="), "{}", login.cookie);
    assert!(
        login.cookie.contains("; Path=/;") && login.cookie.contains("Secure"),
        "{}",
        login.cookie
    );
    world.prove(&login, "proof:did:test:alice").await;
    let shown = format!("__Host-pp_login={}", login.secret);
    let polled = world
        .poll(&login, PAGE, &[("cookie", &shown), ("origin", BASE_URL)])
        .await;
    let cookies = polled.cookies();
    assert!(
        cookies.iter().any(|cookie| cookie.starts_with("__Host-pp_access=")),
        "{cookies:?}"
    );
    assert!(
        cookies.iter().any(|cookie| cookie.starts_with("pp_access=")),
        "decision 4: the agreed name too"
    );

    let mine = Tokens::from_body(&polled.body["tokens"]).access;
    let planted = world.log_in("mallory").await.access;
    let cookie = format!("pp_access={planted}; __Host-pp_access={mine}");
    world.fixture.access_records();
    let answer = world
        .get("/api/v1/me/orgs")
        .header("cookie", &cookie)
        .header("origin", BASE_URL)
        .send()
        .await;
    assert_eq!(answer.status, StatusCode::OK);
    let records = world.fixture.access_records();
    assert_eq!(records[0].external_id, Some(crate::world::did("alice")));
    let flow = flow_of_browser(&world, PAGE, &[]).await;
    let answer = world.get(&authorize()).header("accept", "text/html").send().await;
    assert!(
        answer.cookies()[0].starts_with("__Host-pp_login"),
        "{:?}",
        answer.cookies()
    );
    assert_ne!(flow.secret, "");
}

/// RFC 9110 section 11.6.1, RFC 6750 section 3: a 401 says how to authenticate.
#[tokio::test]
async fn rts12_every_401_says_how_to_authenticate() {
    let world = World::new().await;
    let challenge = async |bearer: Option<&str>| {
        let ask = world.get("/api/v1/me/orgs");
        let ask = match bearer {
            Some(token) => ask.bearer(token),
            None => ask,
        };
        let answer = ask.send().await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        answer
            .headers
            .get("www-authenticate")
            .map(|value| value.to_str().unwrap().to_owned())
            .unwrap_or_default()
    };
    assert_eq!(challenge(None).await, "Bearer realm=\"ledger-gateway\"");
    let invalid = challenge(Some("nonsense")).await;
    assert!(
        invalid.starts_with("Bearer realm=\"ledger-gateway\", error=\"invalid_token\""),
        "{invalid}"
    );
    let refresh = world.post("/refresh", json!({ "refresh_token": "x" })).send().await;
    assert!(refresh.headers.contains_key("www-authenticate"));
}

/// A browser at the authorization endpoint gets a page, not JSON.
#[tokio::test]
async fn rts12_a_browser_is_shown_a_page_at_authorize() {
    let world = World::with(Setup {
        per_minute: 2,
        ..Setup::default()
    })
    .await;
    let accept = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8";
    let page = async |path: &str, headers: &[(&str, &str)]| {
        let ask = world.get(path).header("accept", accept);
        headers
            .iter()
            .fold(ask, |ask, (name, value)| ask.header(name, value))
            .send()
            .await
    };
    let wrong = page("/oauth/authorize?client_id=%3Cscript%3E&state=x", &[]).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    assert_eq!(wrong.headers["content-type"], "text/html; charset=utf-8");
    assert!(
        wrong.headers["content-security-policy"]
            .to_str()
            .unwrap()
            .contains("default-src 'none'")
    );
    assert!(
        wrong.text.contains("redirect_uri is required") && !wrong.text.contains("<script>"),
        "{}",
        wrong.text
    );
    let foreign = page(&authorize(), &[("origin", EVIL)]).await;
    assert_eq!(foreign.status, StatusCode::FORBIDDEN);
    assert_eq!(foreign.headers["content-type"], "text/html; charset=utf-8");
    page(&authorize(), &[]).await;
    let often = page(&authorize(), &[]).await;
    assert_eq!(often.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(
        often.headers.contains_key("retry-after") && often.text.starts_with("<!doctype html>"),
        "{}",
        often.text
    );
}

/// Records show that a caller authenticated by cookie.
#[tokio::test]
async fn rts13_records_name_the_way_a_caller_authenticated() {
    let world = World::new().await;
    let alice = world.log_in("alice").await;
    world.fixture.access_records();
    let cookie = format!("pp_access={}", alice.access);
    world
        .get("/api/v1/me/orgs")
        .header("cookie", &cookie)
        .header("origin", BASE_URL)
        .send()
        .await;
    world.get("/api/v1/me/orgs").bearer(&alice.access).send().await;
    world.get("/api/v1/me/orgs").send().await;
    let methods: Vec<_> = world
        .fixture
        .access_records()
        .iter()
        .map(|record| record.auth_method)
        .collect();
    assert_eq!(methods, [AuthMethod::Cookie, AuthMethod::Bearer, AuthMethod::Anonymous]);
}

/// HD21: a request that changed something leaves its record, whenever its client disconnects.
#[tokio::test]
async fn rts13_hd21_an_abandoned_request_leaves_its_record() {
    let world = World::new().await;
    let (_, alice) = log_in_by_page(&world, "alice").await;
    world.fixture.access_records();
    const RUNS: usize = 12;
    for polls in 1..=RUNS {
        let mut request = Box::pin(mint(&world, &alice));
        for _ in 0..polls {
            if request.as_mut().now_or_never().is_some() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        drop(request);
    }
    for _ in 0..200 {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        if urls(&world).await == RUNS {
            break;
        }
    }
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    let records = world.fixture.access_records();
    assert_eq!(records.len(), RUNS, "{records:?}");
    assert!(records.iter().all(|record| record.status_code == 201), "{records:?}");
    assert_eq!(urls(&world).await, RUNS);
}
