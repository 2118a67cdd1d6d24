//! What reaches the gateway, and what comes back, byte by byte.

use crate::{
    scripted_gateway::access_token,
    world::{Browser, ORIGIN, World},
};
use std::collections::BTreeSet;

const DATA: &str = "/api/v1/explorer/transactions";

#[tokio::test]
async fn step_9_only_the_sessions_token_and_the_named_organization_are_forwarded() {
    let world = World::new().await;
    let mut browser = Browser::default();
    browser.sign_in(&world, 1, 900).await;
    world.gateway.json(DATA, 200, "[]");
    let headers = [
        ("authorization", "Bearer smuggled"),
        ("x-forwarded-for", "203.0.113.1"),
        ("x-admin-token", "smuggled"),
        ("x-explorer-key", "smuggled"),
        ("x-org-id", "an-organization"),
        ("connection", "x-secret"),
        ("x-secret", "smuggled"),
        ("accept", "text/html"),
        ("x-correlation-id", "trace-1"),
    ];
    let target = "/api/transactions?limit=25&cursor=a%2Fb%3F%23";
    let answer = browser.send(&world, "GET", target, &headers, "").await.expect(200);
    let received = world.gateway.take_one();
    assert_eq!(received.method, "GET");
    assert_eq!(
        received.target,
        "/api/v1/explorer/transactions?limit=25&cursor=a%2Fb%3F%23"
    );
    let names: BTreeSet<_> = received.headers.keys().map(|name| name.as_str()).collect();
    assert_eq!(
        names,
        BTreeSet::from([
            "accept",
            "authorization",
            "host",
            "x-correlation-id",
            "x-explorer-key",
            "x-org-id",
        ])
    );
    // HD39: it only narrows what the user sees, and the gateway checks it.
    assert_eq!(received.header("x-org-id"), Some("an-organization"));
    assert_eq!(
        received.header("authorization"),
        Some(&*format!("Bearer {}", access_token(1)))
    );
    assert_eq!(received.header("x-explorer-key"), Some("the-backend-key"));
    assert_eq!(received.header("accept"), Some("application/json"));
    assert_eq!(received.header("x-correlation-id"), Some("trace-1"));
    assert_eq!(answer.header("x-correlation-id"), Some("trace-1"));
}

#[tokio::test]
async fn section_7_only_harmless_headers_of_the_gateway_are_passed_on() {
    let world = World::new().await;
    let headers = [
        ("content-type", "application/json"),
        ("x-next-cursor", "abc"),
        ("set-cookie", "pp_access=x"),
        ("access-control-allow-origin", "*"),
        ("access-control-allow-credentials", "true"),
        ("cache-control", "public, max-age=60"),
        ("location", "https://evil.example"),
        ("clear-site-data", "\"*\""),
        ("keep-alive", "timeout=9"),
        ("server", "x"),
        ("x-correlation-id", "theirs"),
    ];
    let body = "{\"data\":[{\"from\":\"[PRIVATE]\"}],\"total\":1}";
    world.gateway.answer(DATA, 200, &headers, body);
    let answer = world.get("/api/transactions").await.expect(200);
    assert_eq!(answer.body, body);
    let names: BTreeSet<_> = answer.headers.keys().map(|name| name.as_str()).collect();
    assert_eq!(
        names,
        BTreeSet::from([
            "cache-control",
            "content-length",
            "content-type",
            "referrer-policy",
            "strict-transport-security",
            "vary",
            "x-content-type-options",
            "x-correlation-id",
            "x-next-cursor",
        ])
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.header("x-next-cursor"), Some("abc"));
    assert_ne!(answer.header("x-correlation-id"), Some("theirs"));
}

#[tokio::test]
async fn section_7_errors_of_the_gateway_pass_unchanged() {
    let world = World::new().await;
    for status in [400, 403, 404, 429, 500, 503] {
        let body = format!("{{\"error\":\"e{status}\"}}");
        let headers = [("content-type", "application/json"), ("retry-after", "7")];
        world.gateway.answer(DATA, status, &headers, &body);
        let answer = world.get("/api/transactions").await.expect(status);
        assert_eq!(
            (answer.body.as_str(), answer.header("retry-after")),
            (body.as_str(), Some("7"))
        );
    }
}

#[tokio::test]
async fn section_7_no_answer_is_502() {
    let world = World::new().await;
    for status in [301, 302, 304] {
        world
            .gateway
            .answer(DATA, status, &[("location", "https://evil.example")], "");
        let answer = world.get("/api/transactions").await.expect(502);
        assert_eq!(answer.header("location"), None);
    }
    let too_large = "x".repeat(8 * 1024 * 1024 + 1);
    world.gateway.answer(DATA, 200, &[], &too_large);
    let answer = world.get("/api/transactions").await.expect(502);
    assert_eq!(answer.json()["error"], "gateway unavailable");
    // Nobody listens there.
    let change = |proxy: &mut gw_explorer_backend::ProxyConfig| proxy.gateway = "http://127.0.0.1:1".parse().unwrap();
    let world = World::with(change).await;
    let answer = world.get("/api/transactions").await.expect(502);
    assert_eq!(answer.json()["code"], "upstream_error");
}

#[tokio::test]
async fn section_7_a_path_cannot_leave_its_tree() {
    let world = World::new().await;
    for target in [
        "/api/",
        "/api//evil.example/x",
        "/api/blocks/../../admin/users",
        "/api/%2e%2e/admin/users",
        "/api/..%2f..%2fadmin",
        "/api/blocks%2f..%2f..%2fadmin",
        "/api/./blocks",
        "/api/blocks/",
        "/api/v1/../rpc",
        "/api/auth/unknown",
        "/api/eth/unknown",
        "/api/privacy/unknown",
        "/rpc",
        "/ws",
        "/api",
    ] {
        world.get(target).await.expect(404);
    }
    assert!(world.gateway.take_received().is_empty());
}

#[tokio::test]
async fn section_7_posts_need_an_own_page_and_carry_their_body() {
    let world = World::new().await;
    let mut browser = Browser::default();
    browser.sign_in(&world, 1, 900).await;
    let (ours, theirs) = ("/api/addresses/0xab/abi", "/api/v1/explorer/addresses/0xab/abi");
    for headers in [
        &[][..],
        &[("origin", "https://evil.example")],
        &[("sec-fetch-site", "cross-site")],
    ] {
        browser.send(&world, "POST", ours, headers, "[]").await.expect(403);
    }
    assert!(world.gateway.take_received().is_empty());
    world.gateway.json(theirs, 200, "{}");
    let headers = [("origin", ORIGIN), ("content-type", "application/json")];
    browser.send(&world, "POST", ours, &headers, "[1]").await.expect(200);
    let received = world.gateway.take_one();
    assert_eq!((received.target.as_str(), received.body.as_str()), (theirs, "[1]"));
    assert_eq!(received.header("content-type"), Some("application/json"));
    let large = "x".repeat(1024 * 1024 + 1);
    browser.post(&world, ours, &large).await.expect(413);
    browser.post(&world, "/api/blocks", "").await.expect(405);
    for (method, ours, theirs) in [
        ("POST", "/api/eth/link/challenge", "/api/v1/eth/link/challenge"),
        ("POST", "/api/eth/link/verify", "/api/v1/eth/link/verify"),
        ("DELETE", "/api/eth/addresses/0xab", "/api/v1/eth/addresses/0xab"),
        ("GET", "/api/eth/addresses", "/api/v1/eth/addresses"),
        (
            "GET",
            "/api/privacy/viewable-addresses",
            "/api/v1/explorer/viewable-addresses",
        ),
        ("GET", "/api/privacy/grants", "/api/v1/me/disclosure/grants"),
        (
            "POST",
            "/api/privacy/requests/r1/approve",
            "/api/v1/me/disclosure/requests/r1/approve",
        ),
    ] {
        world.gateway.json(theirs, 200, "{}");
        browser
            .send(&world, method, ours, &[("origin", ORIGIN)], "")
            .await
            .expect(200);
        let received = world.gateway.take_one();
        assert_eq!((received.method.as_str(), received.target.as_str()), (method, theirs));
        assert!(received.header("authorization").is_some());
    }
}

#[tokio::test]
async fn section_7_a_head_request_reads_like_get() {
    let world = World::new().await;
    world.gateway.json(DATA, 200, "[1]");
    let answer = world.send("HEAD", "/api/transactions", &[], "").await.expect(200);
    assert_eq!(answer.body, "");
    assert_eq!(world.gateway.take_one().method, "GET");
}

#[tokio::test]
async fn e4_only_listed_origins_read_across_origins() {
    let world = World::new().await;
    for (origin, allowed) in [
        (ORIGIN, true),
        ("https://listed.example", true),
        ("https://evil.example", false),
    ] {
        world.gateway.json(DATA, 200, "[]");
        let answer = world
            .send("GET", "/api/transactions", &[("origin", origin)], "")
            .await
            .expect(200);
        assert_eq!(answer.header("access-control-allow-origin"), allowed.then_some(origin));
        let readable = answer.header("access-control-expose-headers").unwrap_or_default();
        assert_eq!(readable.contains("x-view-as"), allowed, "{readable}");
    }
}

#[tokio::test]
async fn one_client_cannot_take_every_place_at_the_gateway() {
    let world = World::new().await;
    let gate = world.gateway.hold();
    for _ in 0..16 {
        world.gateway.json(DATA, 200, "[]");
    }
    let requests: Vec<_> = (0..17).map(|_| world.get("/api/transactions")).collect();
    let all = futures_util::future::join_all(requests);
    gate.add_permits(16);
    let answers = all.await;
    let busy: Vec<_> = answers.iter().filter(|answer| answer.status == 503).collect();
    assert_eq!(busy.len(), 1);
    assert_eq!(busy[0].header("retry-after"), Some("1"));
}

/// The gateway sees one address, that of the backend, so the backend counts the requests of each client.
#[tokio::test]
async fn hd16_a_client_has_1200_requests_in_a_minute() {
    let world = World::new().await;
    for _ in 0..1200 {
        // The gateway has no answer for this path.
        assert_eq!(world.get("/api/blocks").await.status, 418);
    }
    assert_eq!(world.gateway.take_received().len(), 1200);
    let answer = world.get("/api/blocks").await.expect(429);
    assert_eq!(answer.header("retry-after"), Some("1"));
    // Everything that causes a request to the gateway counts, and nothing else.
    let mut browser = Browser::default();
    let body = "{\"did\":\"did:test:a\",\"org_id\":\"00000000-0000-0000-0000-0000000000aa\"}";
    browser.post(&world, "/api/view-as", body).await.expect(429);
    world.get("/api/auth/status").await.expect(200);
    world.get("/health").await.expect(200);
    assert!(world.gateway.take_received().is_empty());
    world.clock.pass(1);
    assert_eq!(world.get("/api/blocks").await.status, 418);
}

#[tokio::test]
async fn without_a_backend_key_there_is_no_header() {
    let world = World::with(|proxy| proxy.backend_key = None).await;
    world.gateway.json(DATA, 200, "[]");
    world.get("/api/transactions").await.expect(200);
    assert_eq!(world.gateway.take_one().header("x-explorer-key"), None);
}

/// E2: direct mode reads without a session, and changes nothing.
#[cfg(feature = "direct")]
#[tokio::test]
async fn e2_direct_mode_reads_only() {
    let gateway = crate::scripted_gateway::ScriptedGateway::start().await;
    let indexer = gateway.url.parse().unwrap();
    let world = World::with_source(gateway, gw_explorer_backend::Source::Direct { indexer });
    world.gateway.json(DATA, 200, "[]");
    world.get("/api/transactions").await.expect(200);
    assert_eq!(world.gateway.take_one().header("authorization"), None);
    world
        .send("POST", "/api/addresses/0xab/abi", &[("origin", ORIGIN)], "[]")
        .await
        .expect(405);
    world.get("/api/auth/login").await.expect(404);
}
