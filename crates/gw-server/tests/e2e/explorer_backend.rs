//! The explorer's backend as a process, with a real gateway as its provider of sessions (spec/40 section 7), and its
//! page in a real browser. The mock login replaces the wallet.

use crate::{
    harness::{Engine, Gateway, Http, MAX_POLLS, Process, Response, client, key, send},
    world::World,
};
use alloy_primitives::hex;
use alloy_signer::SignerSync as _;
use bytes::Bytes;
use gw_testkit::port;
use http_body_util::Full;
use serde_json::json;
use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
    time::Duration,
};
use url::Url;

/// bcrypt of [`SECRET`], cost 10.
const CLIENTS: &str = "explorer:$2b$10$abcdefghijklmnopqrstuug489rLSurbAawHyNzIxITQr/mPmTwT6";
const SECRET: &str = "s3cret +%/=&:é";
const DID: &str = "did:test:viewer";
const BACKEND_KEY: &str = "explorer-backend-key-0123456789abcdef";

/// A backend in front of a gateway.
struct Explorer {
    /// On another host name than the gateway: browsers share cookies between the ports of a host.
    url: String,
    process: Process,
    http: Http,
}

fn command(settings: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ledger-gateway-dev"));
    command.env_clear().envs(settings.iter().copied()).arg("explorer");
    command
}

/// Starts a backend.
pub(crate) fn spawn(settings: &[(&str, &str)]) -> Process {
    Process(
        command(settings)
            .stdin(Stdio::null())
            .spawn()
            .expect("the backend starts"),
    )
}

impl Explorer {
    async fn start(gateway: &Gateway) -> Self {
        let port = port::reserve().to_string();
        let url = format!("http://localhost:{port}");
        let callback = format!("{url}/api/auth/callback");
        let settings = [
            ("PORT", port.as_str()),
            ("PRIVACY_PROXY_URL", &gateway.url),
            ("CORS_ALLOWED_ORIGINS", &url),
            ("PRIVACY_ENABLED", "true"),
            ("SSO_CLIENT_SECRET", SECRET),
            ("SSO_REDIRECT_URI", &callback),
            ("EXPLORER_BACKEND_KEY", BACKEND_KEY),
            ("LOG_LEVEL", "warn"),
            ("SHUTDOWN_DELAY", "2s"),
        ];
        let process = spawn(&settings);
        let this = Self {
            url,
            process,
            http: client(),
        };
        for _ in 0..MAX_POLLS {
            if this.try_ready().await == Some(200) {
                return this;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the backend never was ready");
    }

    async fn try_ready(&self) -> Option<u16> {
        let request = http::Request::get(format!("{}/health/ready", self.url))
            .body(Full::default())
            .unwrap();
        self.http
            .request(request)
            .await
            .ok()
            .map(|answer| answer.status().as_u16())
    }
}

/// The cookies of a browser, for one host.
#[derive(Clone, Debug, Default)]
struct Jar(BTreeMap<String, String>);

impl Jar {
    async fn call(&mut self, http: &Http, method: &str, url: &str, headers: &[(&str, &str)]) -> Response {
        self.send(http, method, url, headers, "").await
    }

    /// Posts JSON, as a page of the explorer does.
    async fn post(&mut self, explorer: &Explorer, path: &str, body: &str) -> Response {
        let headers = [("origin", explorer.url.as_str()), ("content-type", "application/json")];
        let url = format!("{}{path}", explorer.url);
        self.send(&explorer.http, "POST", &url, &headers, body).await
    }

    async fn send(&mut self, http: &Http, method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> Response {
        let pairs: Vec<_> = self.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut request = http::Request::builder()
            .method(method)
            .uri(url)
            .header("cookie", pairs.join("; "));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = Full::new(Bytes::from(body.to_owned()));
        let answer = send(http, request.body(body).unwrap()).await;
        for cookie in answer.headers.get_all("set-cookie") {
            let (pair, attributes) = cookie.to_str().unwrap().split_once(';').unwrap();
            let (name, value) = pair.split_once('=').unwrap();
            if attributes.contains("Max-Age=0") {
                self.0.remove(name);
            } else {
                self.0.insert(name.to_owned(), value.to_owned());
            }
        }
        answer
    }
}

fn location(answer: &Response) -> &str {
    assert_eq!(answer.status, 302, "{}", answer.body);
    answer.headers["location"].to_str().unwrap()
}

/// Steps 1 to 7. Returns the cookies of the session.
async fn sign_in(gateway: &Gateway, explorer: &Explorer, did: &str) -> Jar {
    let (mut jar, mut at_gateway) = (Jar::default(), Jar::default());
    let begun = jar
        .call(
            &explorer.http,
            "GET",
            &format!("{}/api/auth/login?return_url=/tx/0x1", explorer.url),
            &[],
        )
        .await;
    let page = at_gateway
        .call(&explorer.http, "GET", location(&begun), &[("accept", "text/html")])
        .await;
    let page: Url = Url::parse(&gateway.url).unwrap().join(location(&page)).unwrap();
    let (_, session) = page.query_pairs().find(|(name, _)| name == "oauth_session").unwrap();
    let session = format!("{}/oauth/session/{session}", gateway.url);
    let info = at_gateway
        .call(&explorer.http, "GET", &format!("{session}/info"), &[])
        .await
        .expect(200);
    let wallet = http::Request::post(info["auth_request"]["body"]["callbackUrl"].as_str().unwrap())
        .body(Full::new(Bytes::from(format!("mock.{did}"))))
        .unwrap();
    send(&explorer.http, wallet).await.expect(200);
    let status = at_gateway
        .call(&explorer.http, "GET", &format!("{session}/status"), &[])
        .await
        .expect(200);
    let callback = status["redirect_url"].as_str().unwrap();
    assert!(
        callback.starts_with(&format!("{}/api/auth/callback?", explorer.url)),
        "{callback}"
    );
    let answer = jar.call(&explorer.http, "GET", callback, &[]).await;
    assert_eq!(location(&answer), "/tx/0x1");
    // The browser comes back a second time: the state and the code are used up.
    assert_eq!(jar.clone().call(&explorer.http, "GET", callback, &[]).await.status, 400);
    jar
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn section_7_a_user_signs_in_reads_as_themselves_and_signs_out() {
    let directory = tempfile::tempdir().unwrap();
    let database = format!("sqlite://{}", directory.path().join("explorer.db").display());
    let settings = [
        ("OAUTH_FIRST_PARTY_CLIENTS", CLIENTS),
        ("EXPLORER_DATABASE_URL", &database),
        ("EXPLORER_BACKEND_KEY", BACKEND_KEY),
    ];
    let gateway = Gateway::start_with(Engine::Sqlite, &settings).await;
    let explorer = Explorer::start(&gateway).await;
    let at = |path: &str| format!("{}{path}", explorer.url);
    let token = gateway.login(DID).await;
    gateway.link(&token, &key(1)).await;
    let accounts = gateway.node("eth_accounts", json!([])).await;
    let payment = json!([{"from": accounts[0], "to": key(1).address(), "value": "0x5"}]);
    let hash = gateway.node("eth_sendTransaction", payment).await;

    let mut jar = sign_in(&gateway, &explorer, DID).await;
    // The data API, with the key of the backend and the token of the user.
    let mut list = jar.call(&explorer.http, "GET", &at("/api/transactions"), &[]).await;
    for _ in 0..MAX_POLLS {
        if list.status == 200 && list.body.contains(hash.as_str().unwrap()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        list = jar.call(&explorer.http, "GET", &at("/api/transactions"), &[]).await;
    }
    let list = list.expect(200);
    assert_eq!((&list["total"], &list["data"][0]["hash"]), (&json!(1), &hash), "{list}");
    // Somebody without a session is an anonymous viewer: the backend has the key.
    let list = Jar::default()
        .call(&explorer.http, "GET", &at("/api/transactions"), &[])
        .await
        .expect(200);
    assert_eq!(list["total"], json!(0), "{list}");
    let names: Vec<_> = jar.0.keys().map(String::as_str).collect();
    assert_eq!(names, ["explorer_auth", "explorer_refresh"]);
    for value in jar.0.values() {
        assert!(!value.contains('.'), "a cookie is encrypted and no token: {value}");
    }
    let status = jar
        .call(&explorer.http, "GET", &at("/api/auth/status"), &[])
        .await
        .expect(200);
    assert_eq!(
        status,
        json!({"privacy_enabled": true, "authenticated": true, "did": DID})
    );

    // The gateway sees the user: the same answers as with the user's own token, and a 401 without a session.
    for (ours, theirs) in [
        ("/api/eth/addresses", "/api/v1/eth/addresses"),
        ("/api/chain-id", "/api/v1/explorer/chain-id"),
        ("/api/transactions?limit=5", "/api/v1/explorer/transactions?limit=5"),
    ] {
        let id = ("x-correlation-id", "same-for-both");
        let bearer = format!("Bearer {token}");
        let direct = gateway
            .request("GET", theirs, &[id, ("authorization", &bearer)], None)
            .await;
        let forwarded = jar.call(&explorer.http, "GET", &at(ours), &[id]).await;
        assert_eq!(
            (forwarded.status, &forwarded.body),
            (direct.status, &direct.body),
            "{ours}"
        );
    }
    let addresses = jar
        .call(&explorer.http, "GET", &at("/api/eth/addresses"), &[])
        .await
        .expect(200);
    let linked = key(1).address().to_string().to_lowercase();
    assert!(addresses.to_string().to_lowercase().contains(&linked), "{addresses}");
    let anonymous = Jar::default()
        .call(&explorer.http, "GET", &at("/api/eth/addresses"), &[])
        .await;
    assert_eq!(anonymous.status, 401);

    // Changes need an own page.
    let challenge = at("/api/eth/link/challenge");
    assert_eq!(jar.call(&explorer.http, "POST", &challenge, &[]).await.status, 403);
    let own = [("origin", explorer.url.as_str())];
    let challenge = jar.call(&explorer.http, "POST", &challenge, &own).await.expect(200);

    // An address is linked and unlinked through the backend.
    let second = key(2);
    let message = challenge["message"].as_str().unwrap();
    let signature = second.sign_message_sync(message.as_bytes()).unwrap();
    let proof = json!({
        "address": second.address(),
        "nonce": challenge["nonce"],
        "signature": hex::encode_prefixed(signature.as_bytes()),
    });
    jar.post(&explorer, "/api/eth/link/verify", &proof.to_string())
        .await
        .expect(200);
    let second = second.address().to_string().to_lowercase();
    let addresses = async |jar: &mut Jar| {
        let list = jar.call(&explorer.http, "GET", &at("/api/eth/addresses"), &[]).await;
        list.expect(200).to_string().to_lowercase()
    };
    assert!(addresses(&mut jar).await.contains(&second));
    let one = at(&format!("/api/eth/addresses/{second}"));
    assert_eq!(jar.call(&explorer.http, "DELETE", &one, &[]).await.status, 403);
    jar.call(&explorer.http, "DELETE", &one, &own).await.expect(200);
    assert!(!addresses(&mut jar).await.contains(&second));

    // Disclosure is the gateway's.
    for (path, status) in [
        ("/api/privacy/viewable-addresses", 200),
        ("/api/privacy/grants", 200),
        ("/api/privacy/requests", 200),
        ("/api/privacy/grant/g1/activity", 400),
    ] {
        let answer = jar.call(&explorer.http, "GET", &at(path), &[]).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
    }

    // The end of the session holds at the gateway, too.
    let saved = jar.clone();
    let ended = jar
        .call(&explorer.http, "POST", &at("/api/auth/logout"), &own)
        .await
        .expect(200);
    assert_eq!(ended["message"], "signed out");
    assert!(jar.0.is_empty());
    let mut kept = saved;
    let rejected = kept.call(&explorer.http, "GET", &at("/api/eth/addresses"), &[]).await;
    assert_eq!(rejected.status, 401, "{}", rejected.body);
    assert!(kept.0.is_empty(), "cookies of an ended session are cleared");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backend_drains_before_it_stops() {
    let gateway = Gateway::start_with(Engine::Sqlite, &[("OAUTH_FIRST_PARTY_CLIENTS", CLIENTS)]).await;
    let mut explorer = Explorer::start(&gateway).await;
    let pid = explorer.process.0.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let mut seen = explorer.try_ready().await;
    while seen == Some(200) {
        tokio::time::sleep(Duration::from_millis(20)).await;
        seen = explorer.try_ready().await;
    }
    assert_eq!(seen, Some(503), "it still answers, and is not ready");
    assert_eq!(explorer.process.0.wait().unwrap().code(), Some(0));
}

/// E2 and E4: the texts that an operator reads. This build has the direct mode; the test of the plain binary proves
/// that a privacy build has none (E3).
#[test]
fn e2_e4_a_wrong_configuration_ends_the_start() {
    let refused = |settings: &[(&str, &str)]| {
        let output = command(settings).output().unwrap();
        assert_eq!(output.status.code(), Some(78));
        String::from_utf8_lossy(&output.stderr).trim_end().to_owned()
    };
    let text = refused(&[]);
    assert!(
        text.starts_with("PRIVACY_PROXY_URL: is not set, and neither is INDEXER_URL"),
        "{text}"
    );
    let both = [
        ("PRIVACY_PROXY_URL", "http://10.0.0.1"),
        ("INDEXER_URL", "http://10.0.0.2"),
    ];
    let text = refused(&both);
    assert!(
        text.starts_with("INDEXER_URL: set together with PRIVACY_PROXY_URL"),
        "{text}"
    );
    assert!(
        text.ends_with("CORS_ALLOWED_ORIGINS: is required with PRIVACY_PROXY_URL"),
        "{text}"
    );
}

/// E11, step 9: through the backend an administrator reads as a member, exactly what the gateway shows them, until the
/// exit. The gateway decides each time, and records it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e11_an_administrator_views_as_a_member() {
    let directory = tempfile::tempdir().unwrap();
    let w = world(&directory).await;
    let explorer = Explorer::start(&w.gw).await;
    let own = [("origin", explorer.url.as_str())];
    let at = |path: &str| format!("{}{path}", explorer.url);
    let mut jar = sign_in(&w.gw, &explorer, w.admin.did).await;
    let choice = |did: &str, org: &str| json!({"did": did, "org_id": org}).to_string();

    // The gateway's answers to those who may not.
    for (did, org, status) in [
        (w.trader.did, &w.meridian, 404),
        (w.ops.did, &w.volta, 403),
        (w.admin.did, &w.meridian, 400),
    ] {
        let answer = jar.post(&explorer, "/api/view-as", &choice(did, org)).await;
        assert_eq!(answer.status, status, "{}", answer.body);
    }
    assert_eq!(jar.0.len(), 2, "nothing was chosen: {:?}", jar.0);
    let mut member = sign_in(&w.gw, &explorer, w.ops.did).await;
    let answer = member
        .post(&explorer, "/api/view-as", &choice(w.analyst.did, &w.meridian))
        .await;
    assert_eq!(answer.status, 403, "{}", answer.body);

    let chosen = jar
        .post(&explorer, "/api/view-as", &choice(w.ops.did, &w.meridian))
        .await;
    chosen.expect(200);
    let tree = format!("/api/v1/admin/impersonate/{}/in/{}", w.ops.did, w.meridian);
    for path in ["/transactions?limit=100", "/blocks?limit=3", "/transactions?nonsense=1"] {
        let id = ("x-correlation-id", "same-for-both");
        let bearer = format!("Bearer {}", w.admin.token);
        let direct = format!("{tree}/api/v1/explorer{path}");
        let direct =
            w.gw.request("GET", &direct, &[id, ("authorization", &bearer)], None)
                .await;
        let forwarded = jar
            .call(&explorer.http, "GET", &at(&format!("/api{path}")), &[id])
            .await;
        assert_eq!(
            (forwarded.status, &forwarded.body),
            (direct.status, &direct.body),
            "{path}"
        );
        assert_eq!(forwarded.headers["x-view-as"], w.ops.did);
        assert_eq!(forwarded.headers["cache-control"], "no-store");
    }
    let wallet = w.ops.address().to_string().to_lowercase();
    let list = jar.call(&explorer.http, "GET", &at("/api/transactions"), &[]).await;
    assert!(!list.body.to_lowercase().contains(&wallet), "{}", list.body);
    for (method, path) in [("GET", "/api/eth/addresses"), ("POST", "/api/eth/link/challenge")] {
        let answer = jar.call(&explorer.http, method, &at(path), &own).await;
        assert_eq!(answer.status, 403, "{path}: {}", answer.body);
    }
    let audit = format!(
        "/audit-logs?limit=100&resource_type=user&resource_id={}&action=access",
        w.ops.user_id
    );
    let entries = w.gw.admin("GET", &audit, None).await.expect(200).to_string();
    assert!(entries.contains("GET /api/v1/explorer/chain-id"), "{entries}");

    // Rights that end while the view is shown end it at the next read.
    let banned = format!("/users/{}", w.admin.user_id);
    w.gw.admin("PUT", &banned, Some(json!({"banned": true})))
        .await
        .expect(200);
    let refused = jar.call(&explorer.http, "GET", &at("/api/transactions"), &[]).await;
    assert!(
        matches!(refused.status, 401 | 403),
        "{} {}",
        refused.status,
        refused.body
    );
    assert!(!refused.body.contains("hash"), "{}", refused.body);
    w.gw.admin("PUT", &banned, Some(json!({"banned": false})))
        .await
        .expect(200);

    let mut jar = sign_in(&w.gw, &explorer, w.admin.did).await;
    jar.post(&explorer, "/api/view-as", &choice(w.ops.did, &w.meridian))
        .await
        .expect(200);
    let kept = jar.0["explorer_view_as"].clone();
    jar.call(&explorer.http, "DELETE", &at("/api/view-as"), &own)
        .await
        .expect(200);
    let list = jar.call(&explorer.http, "GET", &at("/api/transactions"), &[]).await;
    assert_eq!(list.headers.get("x-view-as"), None);
    list.expect(200);
    // The choice of one person is nothing in the session of another.
    member.0.insert("explorer_view_as".to_owned(), kept);
    let list = member.call(&explorer.http, "GET", &at("/api/transactions"), &[]).await;
    assert_eq!(list.headers.get("x-view-as"), None);
    list.expect(200);
    assert!(!member.0.contains_key("explorer_view_as"));
}

/// Organizations with an explorer whose users sign in at its backend, and may be viewed as.
async fn world(directory: &tempfile::TempDir) -> World {
    let database = format!("sqlite://{}", directory.path().join("explorer.db").display());
    let settings = [
        ("OAUTH_FIRST_PARTY_CLIENTS", CLIENTS),
        ("EXPLORER_DATABASE_URL", &database),
        ("EXPLORER_BACKEND_KEY", BACKEND_KEY),
        ("ACCESS_TOKEN_ALGORITHM", "EdDSA"),
    ];
    let w = World::start_with(Engine::Sqlite, &settings).await;
    for _ in 0..MAX_POLLS {
        let key = [("x-explorer-key", BACKEND_KEY)];
        let newest = w.gw.node("eth_blockNumber", json!([])).await;
        let newest = u64::from_str_radix(newest.as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
        let path = "/api/v1/explorer/blocks/latest/number";
        let answer = w.gw.request("GET", path, &key, None).await;
        if answer.status == 200 && answer.json()["number"] == json!(newest) {
            return w;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the explorer never has caught up");
}

/// The pages in Chromium: sign-in at the gateway's own sign-in page, the list, view-as with its banner, the sign-out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_pages_work_in_a_browser() {
    let directory = tempfile::tempdir().unwrap();
    let w = world(&directory).await;
    let explorer = Explorer::start(&w.gw).await;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/clients/explorer-page.mjs");
    let output = Command::new("node")
        .arg(script)
        .env("GW_URL", &w.gw.url)
        .env("EXPLORER_URL", &explorer.url)
        .env("ADMIN", w.admin.did)
        .env("MEMBER", w.ops.did)
        .env("ORG", &w.meridian)
        .output()
        .unwrap_or_else(|error| panic!("node: {error}; run scripts/setup.sh"));
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}\n{stderr}");
    assert!(
        stdout.lines().last().is_some_and(|line| line.ends_with(" 0 failed")),
        "{stdout}"
    );
}
