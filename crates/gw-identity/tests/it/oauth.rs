//! The authorization code flow of first-party applications (spec/10 section 5).

use crate::{
    oauth_flow::{
        CALLBACK, CHALLENGE, Flow, STATE, STRANGER, VERIFIER, authorize_path, ban, brought, code_for, exchange,
        is_active, redeem,
    },
    world::{PAGE, Setup, Tokens, WALLET, World},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use gw_audit::SecurityKind;
use gw_testkit::fixture::BASE_URL;
use http::{Method, StatusCode};
use serde_json::json;

/// Errors are answered directly, whatever the client accepts, and never by a redirect.
#[tokio::test]
async fn oa1_oa2_oa3_oa4_what_authorize_refuses() {
    let world = World::new().await;
    for (changes, error) in [
        (&[("client_id", "")][..], "invalid_request"),
        (&[("redirect_uri", "")], "invalid_request"),
        (&[("state", "")], "invalid_request"),
        (&[("response_type", "")], "invalid_request"),
        (&[("response_type", "token")], "unsupported_response_type"),
        (&[("client_id", "nobody")], "unauthorized_client"),
        (&[("client_id", "Explorer")], "unauthorized_client"),
        (&[("redirect_uri", "https://evil.example/cb")], "invalid_request"),
        (
            &[("redirect_uri", "https://gate.example@evil.example/")],
            "invalid_request",
        ),
        (
            &[("redirect_uri", "https://gate.example\\@evil.example/")],
            "invalid_request",
        ),
        (&[("redirect_uri", "http://gate.example/cb")], "invalid_request"),
        (&[("redirect_uri", "http://localhost:3000/cb")], "invalid_request"),
        (&[("redirect_uri", "https://gate.example/cb#x")], "invalid_request"),
        (&[("code_challenge", CHALLENGE)], "invalid_request"),
        (
            &[("code_challenge", CHALLENGE), ("code_challenge_method", "plain")],
            "invalid_request",
        ),
        (
            &[("code_challenge", "short"), ("code_challenge_method", "S256")],
            "invalid_request",
        ),
        (&[("code_challenge_method", "S256")], "invalid_request"),
    ] {
        for accept in ["application/json", "text/html"] {
            let answer = world
                .get(&authorize_path(changes))
                .header("accept", accept)
                .send()
                .await;
            assert_eq!(answer.status.as_u16(), 400, "{changes:?}");
            assert!(!answer.headers.contains_key("location"));
            if accept == "text/html" {
                // RTS12: a browser gets a page.
                assert!(
                    answer.text.contains(&format!("<code>{error}</code>")),
                    "{changes:?}: {}",
                    answer.text
                );
            } else {
                assert_eq!(answer.body["error"], *error, "{changes:?}");
                assert!(answer.body["error_description"].is_string());
            }
        }
    }
    let twice = world.get(&format!("{}&state=x", authorize_path(&[]))).send().await;
    assert_eq!(twice.refusal(), (400, "invalid_request"));
    let bare = World::with(Setup {
        oauth_clients: String::new(),
        ..Setup::default()
    })
    .await;
    assert_eq!(
        bare.get(&authorize_path(&[])).send().await.refusal(),
        (400, "unauthorized_client"),
        "OA-8"
    );
    let strict = World::with(Setup {
        require_pkce: true,
        ..Setup::default()
    })
    .await;
    assert_eq!(
        strict.get(&authorize_path(&[])).send().await.refusal(),
        (400, "invalid_request")
    );
    Flow::open(
        &strict,
        &[("code_challenge", CHALLENGE), ("code_challenge_method", "S256")],
    )
    .await;
    let nameless = World::with(Setup {
        verifier_id: None,
        ..Setup::default()
    })
    .await;
    assert_eq!(
        nameless.get(&authorize_path(&[])).send().await.refusal(),
        (500, "server_error")
    );
}

/// OA-2: browsers are redirected to the sign-in page and get their cookie; other clients get the message.
#[tokio::test]
async fn oa2_browsers_are_sent_to_the_page() {
    let world = World::new().await;
    let accept = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8";
    let page = world.get(&authorize_path(&[])).header("accept", accept).send().await;
    assert_eq!(page.status, StatusCode::FOUND);
    let id = page.headers["location"]
        .to_str()
        .unwrap()
        .strip_prefix("/login?oauth_session=")
        .unwrap()
        .to_owned();
    assert_eq!(id.len(), 43, "256 bits");
    let [cookie] = page.cookies()[..] else {
        panic!("{:?}", page.cookies())
    };
    assert!(
        cookie.starts_with(&format!("__Host-pp_login_{}=", id.get(..16).unwrap())),
        "{cookie}"
    );
    assert!(
        cookie.ends_with("; Path=/; HttpOnly; SameSite=Lax; Max-Age=600; Secure"),
        "{cookie}"
    );
    assert_eq!(page.headers["cache-control"], "no-store");

    let json = world.get(&authorize_path(&[])).send().await;
    assert_eq!(json.cookies(), [""; 0]);
    let members: Vec<&String> = json.body.as_object().unwrap().keys().collect();
    assert_eq!(members, ["auth_request", "auth_session_id", "oauth_session_id"]);
    let paged = world.get(&authorize_path(&[])).header("origin", BASE_URL).send().await;
    assert_eq!(paged.cookies().len(), 1);
}

/// OA-5 to OA-7, OA-9: from the first request to tokens, once for each way in which a client can authenticate.
#[tokio::test]
async fn oa5_oa6_oa7_oa9_a_code_becomes_tokens() {
    let world = World::new().await;
    let basic = |joined: &str| format!("Basic {}", STANDARD.encode(joined));
    let form = |code: &str, more: &[(&str, &str)]| {
        let mut pairs = vec![
            ("grant_type", "authorization_code"),
            ("redirect_uri", CALLBACK),
            ("code", code),
        ];
        pairs.extend(more);
        exchange(&world, &pairs)
    };
    for way in [
        "post",
        "post, old secret",
        "basic",
        "basic, encoded",
        "basic, raw",
        "json",
    ] {
        let client = if way.starts_with("basic,") {
            "reports"
        } else {
            "explorer"
        };
        let flow = Flow::open(&world, &[("client_id", client)]).await;
        let pending = flow.status(&world, PAGE, &[]).await;
        assert_eq!(pending.body, json!({ "completed": false }));
        let info = world
            .get(&format!("/oauth/session/{}/info", flow.id))
            .header("x-login-secret", &flow.secret);
        let info = info.send().await;
        assert_eq!(
            info.body["auth_request"]["body"]["callbackUrl"],
            format!("{BASE_URL}{}", flow.callback)
        );
        assert_eq!(
            (&info.body["allow_mock"], &info.body["client_id"]),
            (&json!(false), &json!(client))
        );

        let proved = flow.prove(&world, "proof:did:test:alice").await;
        assert_eq!(
            (proved.status, &proved.body["status"]),
            (StatusCode::OK, &json!("completed")),
            "{}",
            proved.body
        );
        assert!(proved.body.get("access_token").is_none());
        let done = flow.status(&world, PAGE, &[]).await;
        assert_eq!(
            done.body,
            json!({ "completed": true, "redirect_url": proved.body["redirect_url"] })
        );
        assert!(
            done.cookies()[0].starts_with("pp_access="),
            "TK-9: the next application needs no scan"
        );
        let brought = brought(&done.body["redirect_url"]);
        assert_eq!(
            (
                brought["state"].as_str(),
                brought["iss"].as_str(),
                brought["x"].as_str()
            ),
            (STATE, BASE_URL, "1")
        );

        let code = brought["code"].as_str();
        let answer = match way {
            "post" => redeem(&world, code, &[]).await,
            "post, old secret" => redeem(&world, code, &[("client_secret", "old secret")]).await,
            "basic" => {
                form(code, &[])
                    .header("authorization", &basic("explorer:new secret"))
                    .send()
                    .await
            }
            "basic, encoded" => {
                form(code, &[])
                    .header("authorization", &basic("reports:third%2Bsecret"))
                    .send()
                    .await
            }
            "basic, raw" => {
                form(code, &[])
                    .header("authorization", &basic("reports:third+secret"))
                    .send()
                    .await
            }
            _ => {
                let body = json!({
                    "grant_type": "authorization_code", "redirect_uri": CALLBACK, "code": code,
                    "client_id": "explorer", "client_secret": "new secret",
                });
                world
                    .post("/oauth/token", body)
                    .header("content-type", "application/json")
                    .send()
                    .await
            }
        };
        assert_eq!(answer.status, StatusCode::OK, "{way}: {}", answer.body);
        assert_eq!(
            (&answer.body["token_type"], &answer.body["expires_in"]),
            (&json!("Bearer"), &json!(300))
        );
        assert_eq!(answer.headers["cache-control"], "no-store");
        assert_eq!(answer.headers["pragma"], "no-cache");
        assert_eq!(answer.cookies(), [""; 0]);
        let tokens = Tokens::from_body(&answer.body);
        let me = world.get("/api/v1/me/orgs").bearer(&tokens.access).send().await;
        assert_eq!(me.status, StatusCode::OK);
        assert_eq!(
            world.post("/refresh", tokens.as_refresh()).send().await.status,
            StatusCode::OK
        );
        let after = flow.status(&world, PAGE, &[]).await;
        assert_eq!(
            after.body,
            json!({ "completed": true }),
            "OA-9: the address ends with redemption"
        );
    }
}

/// OA-6: of parallel redemptions one succeeds; a second use ends the tokens issued for the code.
#[tokio::test]
async fn oa6_a_code_is_used_once_and_its_second_use_ends_what_it_gave() {
    let world = World::new().await;
    let code = code_for(&world, "alice", &[]).await;
    let tokens = Tokens::from_body(&redeem(&world, &code, &[]).await.body);
    assert!(is_active(&world, &tokens.access).await && is_active(&world, &tokens.refresh).await);
    world.fixture.security_events();
    assert_eq!(redeem(&world, &code, &[]).await.refusal(), (400, "invalid_grant"));
    assert!(!is_active(&world, &tokens.access).await && !is_active(&world, &tokens.refresh).await);
    let events = world.fixture.security_events();
    let revocations: Vec<_> = events
        .iter()
        .map(|event| (event.kind, event.reason.as_deref()))
        .collect();
    assert_eq!(revocations, [(SecurityKind::SessionRevoked, Some("oauth_code_reuse"))]);
    assert_eq!(redeem(&world, &code, &[]).await.refusal(), (400, "invalid_grant"));

    let code = code_for(&world, "alice", &[]).await;
    let all = futures_util::future::join_all((0..20).map(|_| redeem(&world, &code, &[]))).await;
    let won = all.iter().filter(|answer| answer.status == StatusCode::OK).count();
    assert!(won <= 1, "{won}");
    assert!(
        all.iter()
            .all(|answer| answer.status == StatusCode::OK || answer.refusal() == (400, "invalid_grant"))
    );
}

/// OA-7: the grant type is checked first, then the client, then the code; a mismatch after the client is authenticated
/// invalidates the code.
#[tokio::test]
async fn oa7_the_order_of_checks_and_what_burns_a_code() {
    let world = World::new().await;
    let code = code_for(&world, "alice", &[]).await;
    for (changes, status, error) in [
        (
            &[("grant_type", "password"), ("client_id", "nobody")][..],
            400,
            "unsupported_grant_type",
        ),
        (&[("grant_type", "")], 400, "unsupported_grant_type"),
        (&[("client_id", "nobody"), ("code", "x")], 401, "invalid_client"),
        (&[("client_secret", "wrong")], 401, "invalid_client"),
        (&[("client_secret", "")], 401, "invalid_client"),
        (&[("client_id", "")], 401, "invalid_client"),
        (&[("client_id", "reports")], 401, "invalid_client"),
        (&[("code", "")], 400, "invalid_request"),
        (&[("redirect_uri", "")], 400, "invalid_request"),
        (&[("code", "unknown")], 400, "invalid_grant"),
    ] {
        let answer = redeem(&world, &code, changes).await;
        assert_eq!(answer.refusal(), (status, error), "{changes:?}");
        assert_eq!(
            answer.headers.contains_key("www-authenticate"),
            status == 401,
            "{changes:?}"
        );
    }
    assert_eq!(
        redeem(&world, &code, &[]).await.status,
        StatusCode::OK,
        "none of these touched the code"
    );

    let keyed = [("code_challenge", CHALLENGE), ("code_challenge_method", "S256")];
    let third = [("client_id", "reports"), ("client_secret", "third+secret")];
    for (asked, shown) in [
        (&[][..], &[("redirect_uri", "https://gate.example/cb")][..]),
        (&[], &third),
        (&[], &[("code_verifier", VERIFIER)]),
        (&keyed, &[]),
        (&keyed, &[("code_verifier", CHALLENGE)]),
    ] {
        let code = code_for(&world, "alice", asked).await;
        world.fixture.security_events();
        assert_eq!(
            redeem(&world, &code, shown).await.refusal(),
            (400, "invalid_grant"),
            "{asked:?} {shown:?}"
        );
        assert_eq!(world.event_kinds(), [SecurityKind::SessionRevoked]);
        let right: &[(&str, &str)] = if asked.is_empty() {
            &[]
        } else {
            &[("code_verifier", VERIFIER)]
        };
        assert_eq!(
            redeem(&world, &code, right).await.refusal(),
            (400, "invalid_grant"),
            "burnt"
        );
    }
    let code = code_for(&world, "alice", &keyed).await;
    assert_eq!(
        redeem(&world, &code, &[("code_verifier", VERIFIER)]).await.status,
        StatusCode::OK
    );

    let code = code_for(&world, "alice", &[]).await;
    world.fixture.clock.pass(300);
    assert_eq!(
        redeem(&world, &code, &[]).await.refusal(),
        (400, "invalid_grant"),
        "five minutes are over"
    );
    let code = code_for(&world, "bob", &[]).await;
    ban(&world, "bob").await;
    assert_eq!(
        redeem(&world, &code, &[]).await.refusal(),
        (400, "invalid_grant"),
        "banned meanwhile"
    );
}

/// spec/10 §9: twenty failures of a client; failures from another address do not lock the application out.
#[tokio::test]
async fn identity_9_failures_of_a_client_are_limited() {
    let world = World::new().await;
    for n in 0..20 {
        let id = if n % 2 == 0 { "one" } else { "other" };
        assert_eq!(
            redeem(&world, "x", &[("client_id", id)]).await.status,
            StatusCode::UNAUTHORIZED
        );
    }
    let kinds = world.event_kinds();
    assert!(kinds.len() == 20 && kinds.iter().all(|kind| *kind == SecurityKind::LoginRefused));
    let refused = redeem(&world, "x", &[("client_id", "third")]).await;
    assert_eq!(
        refused.status,
        StatusCode::TOO_MANY_REQUESTS,
        "the unknown are counted together"
    );
    assert_eq!(refused.headers["retry-after"], "900");
    let code = code_for(&world, "alice", &[]).await;
    assert_eq!(redeem(&world, &code, &[]).await.status, StatusCode::OK);
    world.fixture.clock.pass(900);
    assert_eq!(
        redeem(&world, "x", &[("client_id", "third")]).await.status,
        StatusCode::UNAUTHORIZED
    );
}

/// OA-5: both sessions exist and belong together; all other rules are those of a login.
#[tokio::test]
async fn oa5_the_wallet_names_both_sessions() {
    let world = World::new().await;
    let (one, other) = (Flow::open(&world, &[]).await, Flow::open(&world, &[]).await);
    let bring = |session: &str, oauth: &str| {
        let path = format!("/oauth/callback?session={session}&oauth_session={oauth}");
        world.ask(Method::POST, &path).from(WALLET).body("proof:did:test:alice")
    };
    let unknown = "A".repeat(43);
    let none = "00000000-0000-4000-8000-000000000000";
    for (session, oauth, status, text) in [
        (one.login.as_str(), other.id.as_str(), 401, "session mismatch"),
        (&one.login, &unknown, 401, "session not found or expired"),
        (none, &one.id, 401, "session not found or expired"),
        ("nonsense", &one.id, 401, "session not found or expired"),
        (&one.login, "nonsense", 401, "session not found or expired"),
        ("", &one.id, 400, "session parameter required"),
        (&one.login, "", 400, "oauth_session parameter required"),
    ] {
        assert_eq!(
            bring(session, oauth).send().await.refusal(),
            (status, text),
            "{session} {oauth}"
        );
    }
    assert!(world.user("alice").await.is_none(), "no login came of it");
    for (proof, status, reason) in [
        ("nonsense", 401, "verification_failed"),
        ("unreadable", 400, "invalid_request"),
        ("", 400, "invalid_request"),
    ] {
        assert_eq!(one.prove(&world, proof).await.status.as_u16(), status);
        let poll = one.status(&world, PAGE, &[]).await;
        assert_eq!(
            poll.body,
            json!({ "completed": false, "failed": true, "reason": reason })
        );
    }
    assert_eq!(one.prove(&world, "proof:did:test:alice").await.status, StatusCode::OK);
    assert_eq!(
        one.prove(&world, "proof:did:test:bob").await.refusal(),
        (401, "session not found or expired")
    );
    ban(&world, "alice").await;
    assert_eq!(
        other.prove(&world, "proof:did:test:alice").await.refusal(),
        (403, "account is banned")
    );
    world.fixture.clock.pass(600);
    assert_eq!(
        other.prove(&world, "proof:did:test:bob").await.refusal(),
        (401, "session not found or expired")
    );
}

/// OA-9: only the page gets the URL with the code.
#[tokio::test]
async fn oa9_the_answer_needs_the_secret_or_the_opener() {
    let world = World::new().await;
    let flow = Flow::open(&world, &[]).await;
    flow.prove(&world, "proof:did:test:alice").await;
    let cookie = format!("pp_login={}", flow.secret);
    let two_secrets = format!("pp_login={}; pp_login={}", "0".repeat(64), flow.secret);
    for (peer, headers, given) in [
        (STRANGER, &[][..], false),
        (STRANGER, &[("x-login-secret", "guess")], false),
        (STRANGER, &[("cookie", "pp_login=guess")], false),
        (STRANGER, &[("x-login-secret", flow.secret.as_str())], true),
        (STRANGER, &[("cookie", cookie.as_str())], true),
        (STRANGER, &[("cookie", two_secrets.as_str())], true),
        (PAGE, &[], true),
        (PAGE, &[("x-login-secret", "guess")], false),
    ] {
        let poll = flow.status(&world, peer, headers).await;
        assert_eq!(poll.body["completed"], given, "{peer} {headers:?}");
        assert_eq!(poll.body.get("redirect_url").is_some(), given);
        assert_eq!(!poll.cookies().is_empty(), given);
    }
    for id in ["nonsense".to_owned(), "A".repeat(43)] {
        for (method, what) in [(Method::GET, "info"), (Method::GET, "status")] {
            let answer = world.ask(method, &format!("/oauth/session/{id}/{what}")).send().await;
            assert_eq!(answer.refusal(), (404, "session not found or expired"), "{id} {what}");
        }
    }
}

/// ZK-6: the QR code that a wallet scans exists while the login is open.
#[tokio::test]
async fn zk6_the_qr_code_of_a_login() {
    let world = World::new().await;
    let flow = Flow::open(&world, &[]).await;
    let path = format!("/auth/session/{}/qr.svg", flow.login);
    let drawn = world.get(&path).header("x-login-secret", &flow.secret).send().await;
    assert_eq!(drawn.status, StatusCode::OK);
    assert_eq!(drawn.headers["content-type"], "image/svg+xml");
    assert_eq!(drawn.headers["cache-control"], "no-store");
    flow.prove(&world, "proof:did:test:alice").await;
    let after = world.get(&path).header("x-login-secret", &flow.secret).send().await;
    assert_eq!(after.refusal(), (401, "session not found or expired"));
    assert_eq!(
        world.get("/auth/session/x/qr.svg").send().await.status,
        StatusCode::UNAUTHORIZED
    );
}

/// spec/10 §9: authorize, callback and silent completion share the limit of logins.
#[tokio::test]
async fn identity_9_oauth_routes_share_the_limit_of_logins() {
    let world = World::with(Setup {
        per_minute: 3,
        ..Setup::default()
    })
    .await;
    Flow::open(&world, &[]).await;
    let flow = Flow::open(&world, &[]).await;
    assert_eq!(flow.silent(&world).send().await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(
        world.get(&authorize_path(&[])).send().await.status,
        StatusCode::TOO_MANY_REQUESTS
    );
    assert_eq!(
        world.ask(Method::POST, "/auth/request").send().await.status,
        StatusCode::TOO_MANY_REQUESTS
    );
    assert_eq!(
        flow.status(&world, PAGE, &[]).await.status,
        StatusCode::OK,
        "polls are counted apart"
    );
    assert_eq!(
        redeem(&world, "x", &[]).await.refusal(),
        (400, "invalid_grant"),
        "and exchanges"
    );
}

/// RFC 8414: the metadata document.
#[tokio::test]
async fn client_libraries_find_the_routes() {
    let world = World::new().await;
    let metadata = world.get("/.well-known/oauth-authorization-server").send().await.body;
    assert_eq!(metadata["issuer"], BASE_URL);
    assert_eq!(metadata["token_endpoint"], format!("{BASE_URL}/oauth/token"));
    assert_eq!(metadata["code_challenge_methods_supported"], json!(["S256"]));
    assert_eq!(metadata["jwks_uri"], format!("{BASE_URL}/.well-known/jwks.json"));
    // spec/85 section 7: tokens are signed with HS256, so there is no key for others.
    let keys = world.get("/.well-known/jwks.json").send().await.body;
    assert_eq!(keys, json!({"keys": []}));
}

/// RL14: application sign-ins that met an internal fault do not count against the limit either, and can be completed
/// afterwards.
#[tokio::test]
async fn rl14_faults_of_ours_hold_no_place_of_an_application() {
    let world = World::new().await;
    world.fill_journal(true);
    let mut met = Vec::new();
    for _ in 0..25 {
        let flow = Flow::open(&world, &[]).await;
        let answer = flow.prove(&world, "proof:did:test:alice").await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE, "{}", answer.body);
        met.push(flow);
    }
    world.fill_journal(false);
    code_for(&world, "bob", &[]).await;
    let answer = met[0].prove(&world, "proof:did:test:alice").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    let code = brought(&answer.body["redirect_url"])["code"].clone();
    assert_eq!(redeem(&world, &code, &[]).await.status, StatusCode::OK);
    let again = met[0].prove(&world, "proof:did:test:alice").await;
    assert_eq!(again.refusal(), (401, "session not found or expired"));
}
