//! The authorization code flow of first-party applications (spec/10 section 5).

use crate::world::{Answer, Ask, PAGE, Setup, Tokens, WALLET, World, did};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use gw_audit::SecurityKind;
use gw_store::record::UserPatch;
use gw_testkit::fixture::BASE_URL;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use std::{collections::BTreeMap, sync::LazyLock};

const STRANGER: &str = "192.0.2.77";
const CALLBACK: &str = "https://gate.example/cb?x=1";
const STATE: &str = "a&b=c d#\u{f6}";
/// RFC 7636 appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

/// Two applications; the first one's secret is being rotated.
pub(crate) static CLIENTS: LazyLock<String> = LazyLock::new(|| {
    let hash = |secret: &str| bcrypt::hash_with_salt(secret, 10, [7; 16]).unwrap().to_string();
    format!(
        "explorer:{}|{}, reports:{}",
        hash("old secret"),
        hash("new secret"),
        hash("third+secret")
    )
});

fn query(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

/// A valid request with changes; an empty value removes a parameter.
fn authorize_path(changes: &[(&str, &str)]) -> String {
    let mut all: BTreeMap<&str, &str> = BTreeMap::from([
        ("client_id", "explorer"),
        ("redirect_uri", CALLBACK),
        ("state", STATE),
        ("response_type", "code"),
    ]);
    all.extend(changes.iter().copied());
    all.retain(|_, value| !value.is_empty());
    format!("/oauth/authorize?{}", query(&all.into_iter().collect::<Vec<_>>()))
}

/// An OAuth session and its login session.
pub(crate) struct Flow {
    pub(crate) id: String,
    pub(crate) login: String,
    pub(crate) secret: String,
    callback: String,
}

impl Flow {
    pub(crate) async fn open(world: &World, changes: &[(&str, &str)]) -> Self {
        Self::from_answer(&world.get(&authorize_path(changes)).send().await)
    }

    pub(crate) async fn opened_by(world: &World, token: &str) -> Self {
        Self::from_answer(&world.get(&authorize_path(&[])).bearer(token).send().await)
    }

    fn from_answer(answer: &Answer) -> Self {
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        let text = |name: &str| answer.body[name].as_str().unwrap().to_owned();
        let url = answer.body["auth_request"]["body"]["callbackUrl"].as_str().unwrap();
        Self {
            id: text("oauth_session_id"),
            login: text("auth_session_id"),
            secret: answer.headers["x-login-secret"].to_str().unwrap().to_owned(),
            callback: url.strip_prefix(BASE_URL).unwrap().to_owned(),
        }
    }

    pub(crate) async fn prove(&self, world: &World, proof: &str) -> Answer {
        world
            .ask(Method::POST, &self.callback)
            .from(WALLET)
            .body(proof)
            .send()
            .await
    }

    pub(crate) async fn status(&self, world: &World, peer: &'static str, headers: &[(&str, &str)]) -> Answer {
        let ask = world.get(&format!("/oauth/session/{}/status", self.id)).from(peer);
        headers
            .iter()
            .fold(ask, |ask, (name, value)| ask.header(name, value))
            .send()
            .await
    }

    pub(crate) fn silent<'a>(&self, world: &'a World) -> Ask<'a> {
        world.ask(Method::POST, &format!("/oauth/session/{}/silent-complete", self.id))
    }
}

/// The parameters that a redirect URL delivers to the application.
pub(crate) fn brought(url: &Value) -> BTreeMap<String, String> {
    let url = url.as_str().unwrap_or_else(|| panic!("no address in {url}"));
    let (place, query) = url.split_once('?').unwrap();
    assert_eq!(place, "https://gate.example/cb");
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

/// A code for `name` from a new flow.
async fn code_for(world: &World, name: &str, changes: &[(&str, &str)]) -> String {
    let flow = Flow::open(world, changes).await;
    let answer = flow.prove(world, &format!("proof:did:test:{name}")).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
    brought(&answer.body["redirect_url"])["code"].clone()
}

fn exchange<'a>(world: &'a World, pairs: &[(&str, &str)]) -> Ask<'a> {
    let form = "application/x-www-form-urlencoded";
    world
        .ask(Method::POST, "/oauth/token")
        .from(STRANGER)
        .header("content-type", form)
        .body(query(pairs))
}

/// A valid exchange of `code` with changes.
pub(crate) async fn redeem(world: &World, code: &str, changes: &[(&str, &str)]) -> Answer {
    let mut all: BTreeMap<&str, &str> = BTreeMap::from([
        ("grant_type", "authorization_code"),
        ("client_id", "explorer"),
        ("client_secret", "new secret"),
        ("redirect_uri", CALLBACK),
        ("code", code),
    ]);
    all.extend(changes.iter().copied());
    all.retain(|_, value| !value.is_empty());
    exchange(world, &all.into_iter().collect::<Vec<_>>()).send().await
}

async fn is_active(world: &World, token: &str) -> bool {
    let answer = world
        .ask(Method::POST, "/introspect")
        .body(format!("token={token}"))
        .send()
        .await;
    answer.body["active"] == true
}

async fn ban(world: &World, name: &str) {
    let user = world.user(name).await.unwrap();
    let mut tx = world.fixture.begin().await;
    tx.update_user(
        user.id,
        UserPatch {
            banned: Some(true),
            ..UserPatch::default()
        },
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
}

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
    // Sessions that nobody completes count.
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
