//! View-as: step 9 of spec/40 section 7, E9 and E11.

use crate::world::{Answer, Browser, ORIGIN, World};
use gw_http::{AccessAlgorithm, AccessClaims, Amr, TokenCodec, TokenSecrets};
use gw_types::{Clock as _, ExternalId, Seconds, Secret, SessionId, TokenId};
use serde_json::json;

const ISSUER: &str = "https://gate.example";
const KEYS: &str = "/.well-known/jwks.json";
const DID: &str = "did:test:member";
const ORG: &str = "00000000-0000-0000-0000-0000000000aa";
const DATA: &str = "/api/v1/explorer/transactions";
/// Below this, the gateway shows the member's view.
const BASE: &str = "/api/v1/admin/impersonate/did:test:member/in/00000000-0000-0000-0000-0000000000aa";
const LIFE: u32 = 14_400;

fn base(path: &str) -> String {
    format!("{BASE}{path}")
}

/// The gateway's tokens, signed with keys derived from these secrets.
fn codec(issuer: &str, current: &str, previous: &[&str]) -> TokenCodec {
    let secrets = |current: &str, previous: &[&str]| TokenSecrets {
        current: Secret::new(current),
        previous: previous.iter().copied().map(Secret::new).collect(),
    };
    TokenCodec::new(issuer, &secrets(current, previous), &secrets("refresh", &[]))
        .unwrap()
        .with_access_algorithm(AccessAlgorithm::EdDsa)
}

fn token(world: &World, codec: &TokenCodec, login: u128) -> String {
    let now = world.clock.now();
    let claims = AccessClaims {
        subject: ExternalId::new("did:test:admin").unwrap(),
        token: TokenId::fixed(login),
        session: SessionId::fixed(login),
        issued_at: now,
        expires_at: now.plus(Seconds(LIFE)),
        kyc: true,
        amr: Amr::Zk,
    };
    codec.sign_access(&claims).expose().to_owned()
}

fn serve_keys(world: &World, codec: &TokenCodec) {
    let keys = serde_json::to_string(&codec.public_keys().document()).unwrap();
    world.gateway.json(KEYS, 200, &keys);
}

/// Signs in with this access token.
async fn sign_in(world: &World, browser: &mut Browser, access: &str) {
    let (_, state) = browser.begin(world, "/api/auth/login").await;
    world.gateway.tokens_of("/oauth/token", access, 1, LIFE);
    let target = format!("/api/auth/callback?code=c&state={state}");
    browser.get(world, &target).await.expect(302);
    world.gateway.take_one();
}

async fn choose(world: &World, browser: &mut Browser) -> Answer {
    let body = json!({"did": DID, "org_id": ORG}).to_string();
    browser.post(world, "/api/view-as", &body).await
}

/// An administrator who views as the member.
async fn viewing(world: &World, codec: &TokenCodec) -> Browser {
    let mut browser = Browser::default();
    sign_in(world, &mut browser, &token(world, codec, 1)).await;
    serve_keys(world, codec);
    world.gateway.json(&base("/api/v1/explorer/chain-id"), 200, "{}");
    choose(world, &mut browser).await.expect(200);
    world.gateway.take_received();
    browser
}

fn targets(world: &World) -> Vec<String> {
    let received = world.gateway.take_received();
    received.into_iter().map(|request| request.target).collect()
}

#[tokio::test]
async fn e11_reads_show_the_member_s_view_until_the_exit() {
    let (world, codec) = (World::new().await, codec(ISSUER, "access", &[]));
    let mut browser = Browser::default();
    let access = token(&world, &codec, 1);
    sign_in(&world, &mut browser, &access).await;
    serve_keys(&world, &codec);
    world.gateway.json(&base("/api/v1/explorer/chain-id"), 200, "{}");
    let organizations = json!({"organizations": [
        {"id": "00000000-0000-0000-0000-0000000000bb", "name": "Rival"}, {"id": ORG, "name": "Bank of Test"},
    ]});
    world.gateway.json("/api/v1/me/orgs", 200, &organizations.to_string());
    let view = json!({"did": DID, "org_id": ORG, "org_name": "Bank of Test"});
    let chosen = choose(&world, &mut browser).await.expect(200);
    assert_eq!(chosen.json(), view);
    // The gateway decides first whether this administrator may.
    let received = world.gateway.take_received();
    let asked: Vec<_> = received.iter().map(|request| request.target.as_str()).collect();
    assert_eq!(asked, [KEYS, &base("/api/v1/explorer/chain-id"), "/api/v1/me/orgs"]);
    assert_eq!(received[0].header("authorization"), None);
    assert_eq!(received[1].header("authorization"), Some(&*format!("Bearer {access}")));
    let cookie = browser.cookies["explorer_view_as"].clone();
    assert!(!cookie.contains("did"), "encrypted: {cookie}");

    world.gateway.json(&base(DATA), 200, "[1]");
    let answer = browser
        .get(&world, "/api/transactions?limit=5&cursor=a%2Fb")
        .await
        .expect(200);
    assert_eq!((answer.body.as_str(), answer.header("x-view-as")), ("[1]", Some(DID)));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(
        targets(&world),
        [base("/api/v1/explorer/transactions?limit=5&cursor=a%2Fb")]
    );
    let status = browser.get(&world, "/api/auth/status").await.expect(200).json();
    assert_eq!(status["did"], "did:test:admin");
    assert_eq!(status["view_as"], view);

    let own = [("origin", ORIGIN)];
    browser
        .send(&world, "DELETE", "/api/view-as", &own, "")
        .await
        .expect(200);
    assert!(!browser.cookies.contains_key("explorer_view_as"));
    world.gateway.json(DATA, 200, "[2]");
    let answer = browser.get(&world, "/api/transactions").await.expect(200);
    assert_eq!((answer.body.as_str(), answer.header("x-view-as")), ("[2]", None));
    let status = browser.get(&world, "/api/auth/status").await.expect(200).json();
    assert_eq!(status.get("view_as"), None);
}

#[tokio::test]
async fn e11_nothing_but_reads_of_the_explorer_is_forwarded() {
    let (world, codec) = (World::new().await, codec(ISSUER, "access", &[]));
    let mut browser = viewing(&world, &codec).await;
    for (method, target) in [
        ("POST", "/api/addresses/0xab/abi"),
        ("POST", "/api/index/block/7"),
        ("GET", "/api/eth/addresses"),
        ("DELETE", "/api/eth/addresses/0xab"),
        ("POST", "/api/eth/link/challenge"),
        ("GET", "/api/privacy/grants"),
        ("POST", "/api/privacy/requests/r1/approve"),
        ("GET", "/api/view-as/organizations"),
    ] {
        let answer = browser
            .send(&world, method, target, &[("origin", ORIGIN)], "[]")
            .await
            .expect(403);
        assert_eq!(
            answer.json()["error"],
            "not available while viewing as another user",
            "{method} {target}"
        );
    }
    assert!(targets(&world).is_empty());
    for (ours, theirs) in [
        ("/api/privacy/viewable-addresses", "/api/v1/explorer/viewable-addresses"),
        ("/api/privacy/grant/g1/activity", "/api/v1/explorer/grant/g1/activity"),
    ] {
        world.gateway.json(&base(theirs), 200, "{}");
        browser.get(&world, ours).await.expect(200);
        assert_eq!(targets(&world), [base(theirs)]);
    }
    let head = browser.send(&world, "HEAD", "/api/blocks", &[], "").await;
    assert_eq!((head.status, targets(&world).len()), (418, 1));
}

/// E11: the gateway's refusal is the answer, and nothing is stored.
#[tokio::test]
async fn e11_who_may_not_view_gets_the_gateway_s_answer() {
    let (world, codec) = (World::new().await, codec(ISSUER, "access", &[]));
    let mut browser = Browser::default();
    sign_in(&world, &mut browser, &token(&world, &codec, 1)).await;
    serve_keys(&world, &codec);
    for status in [400, 403, 404, 500, 503] {
        let text = format!("{{\"error\":\"e{status}\"}}");
        world.gateway.json(&base("/api/v1/explorer/chain-id"), status, &text);
        let answer = choose(&world, &mut browser).await.expect(status);
        assert_eq!((answer.body, answer.headers.get("set-cookie")), (text, None));
    }
    let invalid = ("www-authenticate", "Bearer error=\"invalid_token\"");
    let probe = base("/api/v1/explorer/chain-id");
    world.gateway.answer(&probe, 401, &[invalid], "{}");
    choose(&world, &mut browser).await.expect(401);
    assert!(browser.cookies.is_empty(), "the gateway ended the session");
}

#[tokio::test]
async fn e9_the_choice_needs_an_own_page_a_session_and_names() {
    let (world, codec) = (World::new().await, codec(ISSUER, "access", &[]));
    let mut browser = Browser::default();
    choose(&world, &mut browser).await.expect(401);
    sign_in(&world, &mut browser, &token(&world, &codec, 1)).await;
    for body in [
        json!({"did": "", "org_id": ORG}),
        json!({"did": "../../orgs", "org_id": ORG}),
        json!({"did": "did:test:a/../b", "org_id": ORG}),
        json!({"did": "did:test:a?x=y", "org_id": ORG}),
        json!({"did": DID, "org_id": "../7"}),
        json!({"did": DID, "org_id": ""}),
        json!({"did": DID}),
        json!({"did": DID, "org_id": ORG, "until": 1}),
        json!([]),
    ] {
        browser
            .post(&world, "/api/view-as", &body.to_string())
            .await
            .expect(400);
    }
    let body = json!({"did": DID, "org_id": ORG}).to_string();
    for headers in [
        &[][..],
        &[("origin", "https://evil.example")],
        &[("sec-fetch-site", "cross-site")],
    ] {
        for method in ["POST", "DELETE"] {
            let answer = browser.send(&world, method, "/api/view-as", headers, &body).await;
            assert_eq!((answer.status, answer.set_cookies().len()), (403, 0), "{method}");
        }
    }
    browser.get(&world, "/api/view-as").await.expect(405);
    assert!(targets(&world).is_empty());
    // A percent sign of a DID stays one.
    serve_keys(&world, &codec);
    let probe = base("/api/v1/explorer/chain-id").replace("did:test:member", "did:test:a%252Fb");
    world.gateway.json(&probe, 200, "{}");
    let body = json!({"did": "did:test:a%2Fb", "org_id": ORG}).to_string();
    browser.post(&world, "/api/view-as", &body).await.expect(200);
}

/// The choice ends with the login that made it.
#[tokio::test]
async fn step_10_a_sign_out_ends_the_choice() {
    let (world, codec) = (World::new().await, codec(ISSUER, "access", &[]));
    let mut browser = viewing(&world, &codec).await;
    let kept = browser.cookies["explorer_view_as"].clone();
    world.gateway.json("/api/v1/revoke", 200, "{}");
    browser.post(&world, "/api/auth/logout", "").await.expect(200);
    assert!(browser.cookies.is_empty());
    // The cookie in the next login, and without any.
    for login in [None, Some(2)] {
        browser.cookies.clear();
        if let Some(login) = login {
            sign_in(&world, &mut browser, &token(&world, &codec, login)).await;
        }
        browser.cookies.insert("explorer_view_as".to_owned(), kept.clone());
        world.gateway.take_received();
        world.gateway.json(DATA, 200, "[]");
        let answer = browser.get(&world, "/api/transactions").await.expect(200);
        assert_eq!(
            (targets(&world), answer.header("x-view-as")),
            (vec![DATA.to_owned()], None)
        );
        assert!(!browser.cookies.contains_key("explorer_view_as"), "it is cleared");
    }
}

#[tokio::test]
async fn e9_a_choice_holds_for_an_hour_and_only_as_it_was_made() {
    let (world, codec) = (World::new().await, codec(ISSUER, "access", &[]));
    let mut browser = viewing(&world, &codec).await;
    let kept = browser.clone();
    world.clock.pass(3599);
    serve_keys(&world, &codec);
    world.gateway.json(&base(DATA), 200, "[]");
    browser.get(&world, "/api/transactions").await.expect(200);
    world.clock.pass(1);
    world.gateway.json(DATA, 200, "[]");
    let answer = browser.get(&world, "/api/transactions").await.expect(200);
    assert_eq!(answer.header("x-view-as"), None);
    for forged in ["", "x", &kept.cookies["explorer_auth"]] {
        let mut browser = kept.clone();
        browser.cookies.insert("explorer_view_as".to_owned(), forged.to_owned());
        world.gateway.take_received();
        world.gateway.json(DATA, 200, "[]");
        browser.get(&world, "/api/transactions").await.expect(200);
        assert_eq!(targets(&world), [DATA]);
    }
}

/// The keys are kept for ten minutes, and fetched again for an unknown one at most every thirty seconds.
#[tokio::test]
async fn step_9_the_key_set_is_cached_with_limits() {
    let (world, old) = (World::new().await, codec(ISSUER, "old", &[]));
    let mut browser = viewing(&world, &old).await;
    let read = async |browser: &mut Browser| {
        world.gateway.json(&base(DATA), 200, "[]");
        let answer = browser.get(&world, "/api/transactions").await;
        let fetches = targets(&world).iter().filter(|target| *target == KEYS).count();
        (answer.status, fetches)
    };
    assert_eq!(read(&mut browser).await, (200, 0));
    world.clock.pass(599);
    assert_eq!(read(&mut browser).await, (200, 0));
    world.clock.pass(1);
    serve_keys(&world, &old);
    assert_eq!(read(&mut browser).await, (200, 1));

    // A replaced secret: the next token has a new key. It is found at once, if the last fetch is long enough ago.
    let new = codec(ISSUER, "new", &["old"]);
    let mut other = Browser::default();
    sign_in(&world, &mut other, &token(&world, &new, 1)).await;
    other.cookies.insert(
        "explorer_view_as".to_owned(),
        browser.cookies["explorer_view_as"].clone(),
    );
    assert_eq!(read(&mut other).await, (403, 0), "thirty seconds have not passed");
    world.clock.pass(30);
    serve_keys(&world, &new);
    assert_eq!(read(&mut other).await, (200, 1));
    assert_eq!(read(&mut browser).await, (200, 0), "the previous key is in the set");
    // A key that no set has: one fetch in thirty seconds, whatever comes.
    let stranger = codec(ISSUER, "stranger", &[]);
    let mut third = Browser::default();
    sign_in(&world, &mut third, &token(&world, &stranger, 1)).await;
    third.cookies.insert(
        "explorer_view_as".to_owned(),
        browser.cookies["explorer_view_as"].clone(),
    );
    world.clock.pass(30);
    for expected in [1, 0, 0] {
        serve_keys(&world, &new);
        assert_eq!(read(&mut third).await, (403, expected));
    }
}

/// Without keys nothing is shown: no fall-back to the administrator's own view.
#[tokio::test]
async fn step_9_without_keys_the_request_is_refused() {
    let (world, codec) = (World::new().await, codec(ISSUER, "access", &[]));
    let mut browser = viewing(&world, &codec).await;
    world.clock.pass(600);
    for (status, body) in [(500, "{}"), (200, "no keys"), (302, "")] {
        world.gateway.json(KEYS, status, body);
        let answer = browser.get(&world, "/api/transactions").await.expect(503);
        assert_eq!(answer.json()["error"], "the session cannot be verified now");
        assert_eq!(targets(&world), [KEYS]);
        world.clock.pass(30);
    }
    // The page still shows the choice, so that it can be ended.
    let status = browser.get(&world, "/api/auth/status").await.expect(200).json();
    assert_eq!(status["view_as"]["did"], DID);
    // A failed fetch does not hold for longer than the pause.
    world.clock.pass(30);
    serve_keys(&world, &codec);
    world.gateway.json(&base(DATA), 200, "[]");
    browser.get(&world, "/api/transactions").await.expect(200);
}

#[tokio::test]
async fn step_9_only_a_token_of_this_gateway_s_keys_may_choose() {
    let own = codec(ISSUER, "access", &[]);
    let others = [
        (
            codec("https://other.example", "access", &[]),
            403,
            "the session cannot be verified",
        ),
        (
            codec(ISSUER, "another secret", &[]),
            403,
            "the session cannot be verified",
        ),
        (
            codec(ISSUER, "access", &[]).with_access_algorithm(AccessAlgorithm::Hs256),
            403,
            "the session cannot be verified",
        ),
    ];
    for (other, status, text) in others {
        let world = World::new().await;
        let mut browser = Browser::default();
        sign_in(&world, &mut browser, &token(&world, &other, 1)).await;
        serve_keys(&world, &own);
        let answer = choose(&world, &mut browser).await.expect(status);
        assert_eq!(answer.json()["error"], text);
        assert_eq!(targets(&world), [KEYS], "the gateway's admin API is not asked");
    }
    // A gateway that signs with a secret publishes no keys.
    let world = World::new().await;
    let hs256 = codec(ISSUER, "access", &[]).with_access_algorithm(AccessAlgorithm::Hs256);
    let mut browser = Browser::default();
    sign_in(&world, &mut browser, &token(&world, &hs256, 1)).await;
    serve_keys(&world, &hs256);
    let answer = choose(&world, &mut browser).await.expect(503);
    assert_eq!(answer.json()["error"], "view-as not configured");
}

/// HD16: where the gateway has an internal listener, its admin API is only there.
#[tokio::test]
async fn hd16_view_as_reads_at_the_admin_address() {
    let admin = crate::scripted_gateway::ScriptedGateway::start().await;
    let url = admin.url.clone();
    let world = World::with(|proxy| proxy.admin = url.parse().unwrap()).await;
    let codec = codec(ISSUER, "access", &[]);
    let mut browser = Browser::default();
    sign_in(&world, &mut browser, &token(&world, &codec, 1)).await;
    serve_keys(&world, &codec);
    admin.json(&base("/api/v1/explorer/chain-id"), 200, "{}");
    choose(&world, &mut browser).await.expect(200);
    admin.json(&base(DATA), 200, "[]");
    browser.get(&world, "/api/transactions").await.expect(200);
    assert_eq!(admin.take_received().len(), 2);
    assert_eq!(targets(&world), [KEYS, "/api/v1/me/orgs"]);
}

#[tokio::test]
async fn e5_without_sign_in_there_is_no_view_as() {
    let world = World::with(|proxy| proxy.sign_in = None).await;
    let mut browser = Browser::default();
    choose(&world, &mut browser).await.expect(404);
    world.gateway.json(DATA, 200, "[]");
    browser.cookies.insert("explorer_view_as".to_owned(), "x".to_owned());
    browser.get(&world, "/api/transactions").await.expect(200);
}
