//! Reproductions of two attacks on the running service (HD19, HD34, HD35).

use crate::world::{Answer, Login, PAGE, Setup, Tokens, WALLET, World};
use futures_util::FutureExt as _;
use gw_audit::AuthMethod;
use gw_store::record::UserPatch;
use gw_testkit::fixture::BASE_URL;
use http::{Method, StatusCode};
use serde_json::{Value, json};

const STRANGER: &str = "192.0.2.77";
const EVIL: &str = "https://evil.example";
const CALLBACK: &str = "https://gate.example/cb";

fn authorize() -> String {
    let pairs = [
        ("client_id", "explorer"),
        ("redirect_uri", CALLBACK),
        ("state", "the state"),
        ("response_type", "code"),
    ];
    let query = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish();
    format!("/oauth/authorize?{query}")
}

fn peer(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

pub(crate) async fn open_from(world: &World, peer: &'static str, headers: &[(&str, &str)]) -> Login {
    let ask = world.ask(Method::POST, "/auth/request").from(peer);
    let answer = headers
        .iter()
        .fold(ask, |ask, (name, value)| ask.header(name, value))
        .send()
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    Login::from_answer(&answer)
}

pub(crate) fn is_pending(answer: &Answer) -> bool {
    answer.status == StatusCode::OK && answer.body == json!({ "completed": false }) && answer.cookies().is_empty()
}

/// HD34: a client at the same address as the browser that opened a login gets nothing.
#[tokio::test]
async fn rts2_hd34_the_address_of_a_browser_collects_nothing() {
    let world = World::new().await;
    for headers in [
        &[("origin", BASE_URL)][..],
        &[("sec-fetch-site", "same-origin")],
        &[("sec-fetch-mode", "cors")],
    ] {
        let login = open_from(&world, PAGE, headers).await;
        world.prove(&login, "nonsense").await;
        assert!(
            is_pending(&world.poll(&login, PAGE, &[]).await),
            "the reason is a fact of the session"
        );
        world.prove(&login, "proof:did:test:alice").await;
        assert!(is_pending(&world.poll(&login, PAGE, &[]).await), "{headers:?}");
        assert!(
            is_pending(&world.poll(&login, PAGE, &[("x-login-secret", "guess")]).await),
            "{headers:?}"
        );
        let own = world.poll(&login, STRANGER, &[("x-login-secret", &login.secret)]).await;
        assert_eq!(own.body["completed"], true, "{headers:?}");
    }
}

/// HD34, HD19: a program that is not a browser may poll from the address that opened the login; a wrong secret is
/// rejected even there.
#[tokio::test]
async fn rts2_hd34_a_wrong_secret_is_refused_from_the_right_address() {
    let world = World::new().await;
    let login = open_from(&world, PAGE, &[]).await;
    world.prove(&login, "proof:did:test:alice").await;
    for (name, value) in [
        ("x-login-secret", "guess"),
        ("cookie", "pp_login=guess"),
        ("cookie", "__Host-pp_login=guess"),
    ] {
        assert!(is_pending(&world.poll(&login, PAGE, &[(name, value)]).await), "{name}");
    }
    assert!(is_pending(&world.poll(&login, STRANGER, &[]).await));
    assert_eq!(world.poll(&login, PAGE, &[]).await.body["completed"], true);
}

/// HD34: the handle that an administrator sees does not allow polling, but can end the session.
#[tokio::test]
async fn rts2_hd34_a_listed_session_is_a_handle_that_collects_nothing() {
    let world = World::new().await;
    let login = open_from(&world, PAGE, &[]).await;
    let sessions = world.sessions();
    let listed = sessions.list().await.unwrap();
    let [view] = listed.as_slice() else {
        panic!("{listed:?}")
    };
    assert_ne!(view.id.to_string(), login.id);
    world.prove(&login, "proof:did:test:alice").await;
    let by_handle = world.get(&format!("/auth/session/{}/status", view.id)).send().await;
    assert_eq!(by_handle.status, StatusCode::UNAUTHORIZED, "{}", by_handle.body);
    let view_by_id = sessions.find_view(view.id).await.unwrap().expect("known by its handle");
    assert_eq!(view_by_id.id, view.id, "and called the same when it is done");
    assert_eq!(
        sessions.find_view(login.id.parse().unwrap()).await.unwrap(),
        None,
        "the id is no handle"
    );
    assert!(sessions.end(view.id).await.unwrap());
    assert_eq!(world.poll(&login, PAGE, &[]).await.status, StatusCode::UNAUTHORIZED);
}

struct Flow {
    id: String,
    login: String,
    secret: String,
    callback: String,
}

/// A browser begins the flow; returns the ids and the secret that it got.
async fn flow_of_browser(world: &World, from: &'static str, headers: &[(&str, &str)]) -> Flow {
    let ask = world.get(&authorize()).from(from).header("origin", BASE_URL);
    let answer = headers
        .iter()
        .fold(ask, |ask, (name, value)| ask.header(name, value))
        .send()
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    let url = answer.body["auth_request"]["body"]["callbackUrl"].as_str().unwrap();
    Flow {
        id: answer.body["oauth_session_id"].as_str().unwrap().to_owned(),
        login: answer.body["auth_session_id"].as_str().unwrap().to_owned(),
        secret: answer.headers["x-login-secret"].to_str().unwrap().to_owned(),
        callback: url.strip_prefix(BASE_URL).unwrap().to_owned(),
    }
}

async fn prove(world: &World, flow: &Flow, name: &str) {
    let proof = format!("proof:did:test:{name}");
    let answer = world
        .ask(Method::POST, &flow.callback)
        .from(WALLET)
        .body(proof)
        .send()
        .await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
}

/// HD34: a link to a sign-in that another browser began shows nothing to sign: no request, no code, no silent
/// completion.
#[tokio::test]
async fn rts3_hd34_a_session_begun_elsewhere_shows_nothing() {
    let world = World::new().await;
    let alice = world.log_in("alice").await;
    let flow = flow_of_browser(
        &world,
        STRANGER,
        &[("authorization", &format!("Bearer {}", alice.access))],
    )
    .await;
    let path = |what: &str| format!("/oauth/session/{}/{what}", flow.id);
    let qr = format!("/auth/session/{}/qr.svg", flow.login);
    let other = (403, "this sign-in was started in another browser");
    for headers in [&[][..], &[("x-login-secret", "guess")], &[("cookie", "pp_login=guess")]] {
        let ask = |method, path: &str| {
            headers
                .iter()
                .fold(world.ask(method, path), |ask, (name, value)| ask.header(name, value))
        };
        for from in [PAGE, STRANGER] {
            assert_eq!(
                ask(Method::GET, &path("info")).from(from).send().await.refusal(),
                other,
                "{headers:?}"
            );
            assert_eq!(
                ask(Method::GET, &qr).from(from).send().await.refusal(),
                other,
                "{headers:?}"
            );
            let silent = ask(Method::POST, &path("silent-complete"))
                .from(from)
                .bearer(&alice.access);
            assert_eq!(silent.send().await.refusal(), other, "{headers:?}");
        }
    }
    let own = world
        .get(&path("info"))
        .header("x-login-secret", &flow.secret)
        .send()
        .await;
    assert_eq!(own.status, StatusCode::OK, "{}", own.body);
    assert_eq!(
        (&own.body["client_id"], &own.body["did"]),
        (&json!("explorer"), &json!("did:test:alice"))
    );
    assert_eq!(
        world
            .get(&qr)
            .header("x-login-secret", &flow.secret)
            .send()
            .await
            .status,
        StatusCode::OK
    );
}

/// HD34: the page can show which user continues to which application, whoever's wallet logged in.
#[tokio::test]
async fn rts3_hd34_a_completed_session_says_who_goes_on() {
    let world = World::new().await;
    let flow = flow_of_browser(&world, PAGE, &[]).await;
    let info = || {
        world
            .get(&format!("/oauth/session/{}/info", flow.id))
            .header("x-login-secret", &flow.secret)
            .send()
    };
    assert_eq!(info().await.body.get("did"), None);
    prove(&world, &flow, "bob").await;
    let info_body = info().await.body;
    assert_eq!(
        (&info_body["client_id"], &info_body["did"]),
        (&json!("explorer"), &json!("did:test:bob"))
    );
}

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

/// HD34: a foreign page opens nothing on behalf of its visitor, and uses up none of the visitor's limits.
#[tokio::test]
async fn rts8_hd34_a_foreign_page_opens_nothing_and_uses_up_nothing() {
    let world = World::with(Setup {
        per_minute: 3,
        ..Setup::default()
    })
    .await;
    let refused = (403, "origin not allowed");
    for _ in 0..5 {
        for (name, value) in [("origin", EVIL), ("sec-fetch-site", "cross-site"), ("origin", "null")] {
            for (method, path) in [
                (Method::POST, "/auth/request"),
                (Method::POST, "/api/v1/auth/request"),
                (Method::POST, "/auth/verify"),
                (
                    Method::GET,
                    "/api/v1/auth/directory/url?redirect_uri=https://gate.example/",
                ),
                (Method::POST, "/api/v1/introspect"),
                // Failures of an application are counted (spec/10 §9).
                (Method::POST, "/oauth/token"),
            ] {
                let answer = world.ask(method, path).header(name, value).send().await;
                assert_eq!(answer.refusal(), refused, "{name} {path}");
            }
            let started = world.get(&authorize()).header(name, value).send().await;
            assert_eq!(started.status, StatusCode::FORBIDDEN, "{name}");
            // A wallet may be a foreign web page: its proofs are accepted, and counted by its origin.
            world
                .ask(Method::POST, "/auth/callback?session=x")
                .header(name, value)
                .body("x")
                .send()
                .await;
        }
    }
    for path in [authorize(), authorize()] {
        let embedded = world
            .get(&path)
            .header("sec-fetch-site", "cross-site")
            .header("sec-fetch-mode", "navigate");
        assert_eq!(
            embedded.header("sec-fetch-dest", "iframe").send().await.status,
            StatusCode::FORBIDDEN
        );
    }
    let navigated = world
        .get(&authorize())
        .header("sec-fetch-site", "cross-site")
        .header("sec-fetch-mode", "navigate");
    assert_eq!(
        navigated.header("sec-fetch-dest", "document").send().await.status,
        StatusCode::OK
    );
    assert_eq!(
        world
            .ask(Method::POST, "/auth/request")
            .header("origin", BASE_URL)
            .send()
            .await
            .status,
        StatusCode::OK
    );
    let proof = world
        .ask(Method::POST, "/auth/callback?session=x")
        .body("x")
        .send()
        .await;
    assert_eq!(proof.status, StatusCode::UNAUTHORIZED, "not counted out by a page's");
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

/// HD34: polls without the secret do not use up the owner's limit, wherever they come from.
#[tokio::test]
async fn rts8_hd34_foreign_polls_leave_the_owners_alone() {
    let world = World::new().await;
    let login = open_from(&world, PAGE, &[("origin", BASE_URL)]).await;
    let flow = flow_of_browser(&world, PAGE, &[]).await;
    let oauth = format!("/oauth/session/{}/status", flow.id);
    let mut stopped = false;
    for _ in 0..700 {
        stopped |= world.poll(&login, PAGE, &[]).await.status == StatusCode::TOO_MANY_REQUESTS;
        world.poll(&login, STRANGER, &[]).await;
        world.get(&oauth).send().await;
    }
    assert!(stopped, "they have a limit all the same");
    let own = world.poll(&login, PAGE, &[("x-login-secret", &login.secret)]).await;
    assert_eq!(own.status, StatusCode::OK, "{}", own.body);
    let own = world.get(&oauth).header("x-login-secret", &flow.secret).send().await;
    assert_eq!(own.status, StatusCode::OK, "{}", own.body);
}

/// Logs in through a page. Returns the wallet's tokens and the page's.
pub(crate) async fn log_in_by_page(world: &World, name: &str) -> (Tokens, Tokens) {
    let login = open_from(world, PAGE, &[("origin", BASE_URL)]).await;
    let wallet = Tokens::from_body(&world.prove(&login, &format!("proof:did:test:{name}")).await.body);
    let polled = world
        .poll(&login, PAGE, &[("x-login-secret", &login.secret), ("origin", BASE_URL)])
        .await;
    (wallet, Tokens::from_body(&polled.body["tokens"]))
}

pub(crate) async fn entry(world: &World, tokens: &Tokens) -> StatusCode {
    world.get("/api/v1/me/orgs").bearer(&tokens.access).send().await.status
}

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

pub(crate) async fn urls(world: &World) -> usize {
    let user = world.user("alice").await.unwrap();
    world
        .fixture
        .store
        .read()
        .list_personal_urls(user.id, world.fixture.http.now())
        .await
        .unwrap()
        .len()
}

pub(crate) async fn mint(world: &World, tokens: &Tokens) -> Answer {
    world
        .post("/api/v1/me/rpc-urls", json!({ "name": "phone" }))
        .bearer(&tokens.access)
        .send()
        .await
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
