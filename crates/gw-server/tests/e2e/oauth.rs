//! First-party applications: the authorization code flow with a real client library, and the sign-in page in a real
//! browser. The mock login replaces the wallet.

use crate::harness::{Engine, Gateway, on_both_engines};
use serde_json::json;
use std::{fmt::Write as _, process::Command};

/// bcrypt of `s3cret +%/=&:é` and of `another secret`, cost 10.
const CLIENTS: &str = "explorer:$2b$10$abcdefghijklmnopqrstuug489rLSurbAawHyNzIxITQr/mPmTwT6,\
                       reports:$2b$10$bcdefghijklmnopqrstuve9y1jCZ6pTrCY69tUY5xP7.6LOw9EIqG";

async fn gateway(engine: Engine) -> Gateway {
    Gateway::start_with(engine, &[("OAUTH_FIRST_PARTY_CLIENTS", CLIENTS)]).await
}

/// Runs a script of `tests/clients` against the gateway. The last line of its output counts passed and failed checks.
fn run(gw: &Gateway, script: &str) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let output = Command::new("node")
        .arg(format!("{root}tests/clients/{script}"))
        .env("GW_URL", &gw.url)
        .output()
        .unwrap_or_else(|e| panic!("node: {e}; run scripts/setup.sh"));
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{stdout}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        stdout.lines().last().is_some_and(|line| line.ends_with(" 0 failed")),
        "{stdout}"
    );
}

on_both_engines!(oa1_to_oa10_a_client_library_gets_tokens);

/// OA-1 to OA-10 with `oauth4webapi`.
async fn oa1_to_oa10_a_client_library_gets_tokens(engine: Engine) {
    run(&gateway(engine).await, "oauth.mjs");
}

/// spec/90 section 3, in Chromium.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sign_in_page_works_in_a_browser() {
    run(&gateway(Engine::Sqlite).await, "login-page.mjs");
}

/// With a front end at another origin, the gateway does not serve its own sign-in page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_front_end_at_another_origin_replaces_the_sign_in_page() {
    let settings = [
        ("OAUTH_FIRST_PARTY_CLIENTS", CLIENTS),
        ("FRONTEND_URL", "http://app.localhost:3000"),
    ];
    let gw = Gateway::start_with(Engine::Sqlite, &settings).await;
    assert_eq!(gw.request("GET", "/login", &[], None).await.status, 404);
}

/// House style 27: the status of every OAuth route for each kind of caller, for a session of another client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn oauth_routes_by_caller() {
    let gw = gateway(Engine::Sqlite).await;
    let user = format!("Bearer {}", gw.login("did:test:somebody").await);
    let description = gw.request("GET", "/openapi.json", &[], None).await.expect(200);
    let described = crate::openapi::Described::by(&gw).await;
    let query = "client_id=explorer&redirect_uri=http%3A%2F%2Flocalhost%2Fcb&state=s&response_type=code";
    let mut table = String::from("anonymous | user | super\n");
    for (path, operations) in description["paths"].as_object().unwrap() {
        if !path.contains("oauth") {
            continue;
        }
        for method in operations.as_object().unwrap().keys() {
            let mut row = Vec::new();
            for caller in ["anonymous", "user", "super"] {
                let mut concrete = path.clone();
                if path.contains("{id}") {
                    let opened = gw
                        .request("GET", &format!("/oauth/authorize?{query}"), &[], None)
                        .await
                        .expect(200);
                    concrete = path.replace("{id}", opened["oauth_session_id"].as_str().unwrap());
                }
                if path == "/oauth/authorize" {
                    write!(concrete, "?{query}").unwrap();
                }
                let headers: &[(&str, &str)] = match caller {
                    "user" => &[("authorization", &user)],
                    "super" => &[("x-admin-token", crate::harness::ADMIN_TOKEN)],
                    _ => &[],
                };
                let body = (method == "post").then(|| json!({}));
                let answer = gw.request(&method.to_uppercase(), &concrete, headers, body).await;
                described.check(method, path, &answer);
                row.push(answer.status.to_string());
            }
            writeln!(table, "{} | {} {path}", row.join(" | "), method.to_uppercase()).unwrap();
        }
    }
    insta::with_settings!({snapshot_path => "snapshots", prepend_module_to_snapshot => false}, {
        insta::assert_snapshot!("oauth", table);
    });
}
