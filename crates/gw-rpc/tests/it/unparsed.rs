//! Checks before a call is parsed: size, encoding, token, envelope, organization (spec/20 J1-J7, §14).

use crate::world::{DENIED, scripted, scripted_on, scripted_with};
use gw_audit::AuthMethod;
use gw_policy::PolicySettings;
use gw_rpc::RpcSettings;
use gw_store::record::UserPatch;
use gw_testkit::{Fixture, FixtureConfig, fixture::BASE_URL};
use gw_types::{DenyReason, Seconds};
use serde_json::json;

const CHAIN_ID: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#;

/// Every body that is no request gets its status and code, leaves one record, and forwards nothing.
#[tokio::test]
async fn j2_j3_j4_a_body_that_is_no_request_is_rejected_and_recorded() {
    let (world, fake) = scripted().await;
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"eth_call","params":{}{}}}"#,
        "[".repeat(70),
        "]".repeat(70)
    );
    let long = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(129));
    for (body, code) in [
        ("", -32700),
        ("<soap/>", -32700),
        ("{", -32700),
        (&deep, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"eth_chainId"}"#, -32600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","Method":"eth_call"}"#,
            -32600,
        ),
        // B3: nodes match member names without regard to case.
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0x11","TO":"0x22"}]}"#,
            -32600,
        ),
        (r#"{"jsonrpc":"1.0","id":1,"method":"eth_chainId"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"eth_chainId"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600),
        (&long, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":{}}"#, -32602),
        ("[]", -32600),
        ("7", -32600),
    ] {
        let answer = world.raw(body.to_owned()).send().await;
        assert_eq!(answer.error(), (400, code), "{body} {}", answer.text);
        fake.assert_silent();
        let record = world.record();
        assert_eq!(
            (record.status_code, record.denial_reason),
            (400, Some(DenyReason::InvalidRequestShape)),
            "{body}"
        );
    }
}

#[tokio::test]
async fn j4_ids_are_echoed_as_they_were_written() {
    let (world, _fake) = scripted().await;
    for (id, echoed) in [
        ("7", "7"),
        ("\"a\\u0062\"", "\"a\\u0062\""),
        ("1e3", "1e3"),
        ("null", "null"),
        ("-0.50", "-0.50"),
    ] {
        let answer = world
            .raw(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_chainId"}}"#))
            .send()
            .await;
        assert_eq!(
            answer.text,
            format!(r#"{{"jsonrpc":"2.0","id":{echoed},"result":"0x7a69"}}"#)
        );
    }
    let answer = world.raw(r#"{"jsonrpc":"2.0","method":"eth_chainId"}"#).send().await;
    assert_eq!(answer.text, r#"{"jsonrpc":"2.0","id":null,"result":"0x7a69"}"#);
}

#[tokio::test]
async fn j2_a_body_is_counted_while_it_is_read() {
    let (world, fake) = scripted().await;
    let padded = |size: usize| format!("{CHAIN_ID}{}", " ".repeat(size - CHAIN_ID.len()));
    assert_eq!(world.raw(padded(1_048_576)).send().await.status, 200);
    world.record();
    let answer = world.raw(padded(1_048_577)).send().await;
    assert_eq!(answer.error(), (413, -32600));
    assert_eq!(world.record().status_code, 413);
    let answer = world.raw(CHAIN_ID).header("content-encoding", "gzip").send().await;
    assert_eq!(answer.error(), (415, -32600));
    let both = world
        .raw(CHAIN_ID)
        .header("content-length", "50")
        .header("transfer-encoding", "chunked");
    assert_eq!(both.send().await.error(), (400, -32600));
    fake.assert_silent();
}

/// Decision 39: the content type does not matter.
#[tokio::test]
async fn decision_39_any_content_type_is_accepted() {
    let (world, _fake) = scripted().await;
    for kind in ["text/plain", "application/x-www-form-urlencoded", "nonsense"] {
        assert_eq!(
            world.raw(CHAIN_ID).header("content-type", kind).send().await.status,
            200
        );
    }
}

/// J1: a bad token gets 401 for every method, including metadata and unknown methods.
#[tokio::test]
async fn j1_a_bad_token_is_401_whatever_the_method() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let reader = world.person("reader", bank, &["eth_getBalance"], &[]).await;
    for header in [
        "Bearer nonsense",
        "Basic Zm9vOmJhcg==",
        "Bearer",
        "Bearer a b",
        &format!("Bearer {}x", reader.token),
    ] {
        for method in [
            "eth_chainId",
            "eth_getBalance",
            "eth_newPendingTransactionFilter",
            "nonsense",
        ] {
            let answer = world
                .ask(None, method, json!([]))
                .header("authorization", header)
                .send()
                .await;
            assert_eq!(answer.status, 401, "{header}");
            assert!(
                answer.body["error"].is_string() && answer.body.get("jsonrpc").is_none(),
                "{}",
                answer.text
            );
            assert_eq!(world.record().status_code, 401);
        }
    }
    assert_eq!(world.raw(CHAIN_ID).header("authorization", "").send().await.status, 200);
    world.record();
    world.fixture.clock.pass(100_000);
    assert_eq!(world.raw(CHAIN_ID).by(&reader).send().await.status, 401, "expired");
    fake.assert_silent();
}

#[tokio::test]
async fn a10_a_revoked_token_is_401_and_a_banned_user_gets_the_denial() {
    let (world, _fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let (revoked, banned) = (
        world.person("out", bank, &["*"], &[]).await,
        world.person("banned", bank, &["*"], &[]).await,
    );
    let expires_at = world.fixture.clock.now_plus(Seconds(86_400));
    world
        .fixture
        .change(async |tx| tx.revoke_access_token(revoked.token_id, expires_at).await.unwrap())
        .await;
    world
        .update(
            &banned,
            UserPatch {
                banned: Some(true),
                ..UserPatch::default()
            },
        )
        .await;
    assert_eq!(world.raw(CHAIN_ID).by(&revoked).send().await.status, 401);
    world.raw(CHAIN_ID).by(&banned).send().await.assert_denied();
}

/// Decision 4: a cookie authenticates only requests from the gateway's own pages; a bad one is ignored.
#[tokio::test]
async fn decision_4_the_cookie_counts_only_from_our_own_pages_and_is_never_an_error() {
    let (world, _fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let reader = world.person("reader", bank, &["eth_accounts"], &[]).await;
    let cookie = format!("pp_access={}", reader.token);
    let ask = || world.ask(None, "eth_accounts", json!([])).header("cookie", &cookie);
    assert_eq!(
        ask().header("origin", BASE_URL).send().await.text,
        r#"{"jsonrpc":"2.0","id":1,"result":[]}"#
    );
    assert_eq!(world.record().auth_method, AuthMethod::Cookie);
    assert_eq!(ask().header("sec-fetch-site", "same-origin").send().await.status, 200);
    ask()
        .header("origin", "https://evil.example")
        .send()
        .await
        .assert_denied();
    ask().send().await.assert_denied();
    let stale = world
        .raw(CHAIN_ID)
        .header("origin", BASE_URL)
        .header("cookie", "pp_access=nonsense");
    assert_eq!(stale.send().await.status, 200);
    let ends = world.fixture.clock.now_plus(Seconds(86_400));
    world
        .fixture
        .change(async |tx| tx.revoke_access_token(reader.token_id, ends).await.unwrap())
        .await;
    let revoked = world.raw(CHAIN_ID).header("origin", BASE_URL).header("cookie", &cookie);
    assert_eq!(revoked.send().await.status, 200, "anonymous");
}

/// O2, decision 40: path and header must name the same organization.
#[tokio::test]
async fn o2_path_and_header_name_one_organization() {
    let (world, _fake) = scripted().await;
    let (bank, rival) = (
        world.fixture.create_org("bank").await,
        world.fixture.create_org("rival").await,
    );
    let reader = world.person("reader", bank, &["eth_accounts"], &[]).await;
    let ask = || world.ask(Some(&reader), "eth_accounts", json!([]));
    let (bank, rival) = (bank.to_string(), rival.to_string());
    let path = format!("/rpc/{bank}");
    assert_eq!(ask().path(&path).send().await.status, 200);
    assert_eq!(ask().header("x-org-id", &bank).send().await.status, 200);
    assert_eq!(
        ask()
            .path(&path)
            .header("x-org-id", &bank.to_uppercase())
            .send()
            .await
            .status,
        200
    );
    assert_eq!(
        ask().path(&path).header("x-org-id", &rival).send().await.error(),
        (400, -32600)
    );
    assert_eq!(
        ask()
            .header("x-org-id", &bank)
            .header("x-org-id", &rival)
            .send()
            .await
            .status,
        400
    );
    ask().header("x-org-id", "bank").send().await.assert_denied();
    ask().header("x-org-id", &rival).send().await.assert_denied();
}

#[tokio::test]
async fn only_post_is_served_and_only_on_three_paths() {
    use tower::ServiceExt as _;
    let (world, fake) = scripted().await;
    for (method, path, status) in [
        ("GET", "/rpc", 405),
        ("PUT", "/rpc", 405),
        ("GET", "/ws", 404),
        ("POST", "/ws", 404),
        ("POST", "/rpc/a/b", 404),
        ("POST", "/", 200),
    ] {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .body(axum::body::Body::from(CHAIN_ID))
            .unwrap();
        assert_eq!(
            world.app.clone().oneshot(request).await.unwrap().status(),
            status,
            "{method} {path}"
        );
    }
    fake.assert_silent();
}

/// L1: the content of the record of a successful call.
#[tokio::test]
async fn l1_a_record_names_caller_method_organization_and_policy() {
    let (world, fake) = scripted().await;
    let bank = world.fixture.create_org("bank").await;
    let reader = world.person("reader", bank, &["eth_getBlockByNumber"], &[]).await;
    world
        .result(&reader, "ETH_getblockbynumber", json!(["latest", false]))
        .await;
    assert_eq!(fake.take().len(), 1);
    let record = world.record();
    assert_eq!(record.method, "eth_getBlockByNumber", "the registry's spelling");
    assert_eq!(record.external_id, Some(reader.name.clone()));
    assert_eq!(
        (record.status_code, record.response_status, record.denial_reason),
        (200, None, None)
    );
    assert_eq!(
        (record.org_id, record.policy_epoch),
        (Some(bank), Some(world.fixture.feed.epoch()))
    );
    assert!(record.node_called && record.upstream_ms.is_some() && record.request_params.is_none());
    assert_eq!(record.ip_address.unwrap().to_string(), "198.51.100.1");
    assert_eq!(record.auth_method, AuthMethod::Bearer);
}

/// Rule 30 of spec/70: parameters are recorded only if configured, and redacted.
#[tokio::test]
async fn l3_parameters_are_kept_only_on_request_and_redacted() {
    let settings = RpcSettings {
        log_params: true,
        ..RpcSettings::default()
    };
    let (world, _fake) = scripted_with(settings, PolicySettings::default()).await;
    world
        .ask(
            None,
            "eth_call",
            json!([{"to": format!("0x{}", "11".repeat(20)), "data": format!("0x{}", "ab".repeat(64))}]),
        )
        .send()
        .await;
    let kept = world.record().request_params.unwrap();
    assert!(
        kept.contains("0xabababab...") && !kept.contains(&"ab".repeat(20)),
        "{kept}"
    );
    world.ask(None, "eth_call", json!([{"to": "nonsense"}])).send().await;
    assert_eq!(
        world.record().request_params.unwrap(),
        r#"{"_redacted":"unreadable parameters"}"#
    );
}

/// A fixture whose journal has no room for a record.
async fn without_room() -> Fixture {
    Fixture::start_with(FixtureConfig {
        journal_bytes: 1,
        ..FixtureConfig::default()
    })
    .await
}

/// Decision 10, spec/70 rule 14: a call that cannot be recorded does not happen.
#[tokio::test]
async fn audit_a_full_journal_stops_every_call_before_it_reaches_the_node() {
    let (world, fake) = scripted_on(without_room().await, RpcSettings::default(), PolicySettings::default()).await;
    for body in [CHAIN_ID, r#"{"jsonrpc":"2.0","id":1,"method":"nonsense"}"#, "{"] {
        let answer = world.raw(body).send().await;
        assert_eq!(answer.error(), (503, -32603), "{}", answer.text);
        assert_eq!(answer.body["error"]["message"], "audit unavailable");
        assert_eq!(answer.headers["retry-after"], "1");
    }
    fake.assert_silent();
    let open = RpcSettings {
        open_reads: true,
        ..RpcSettings::default()
    };
    let (world, _fake) = scripted_on(without_room().await, open, PolicySettings::default()).await;
    assert_eq!(world.raw(CHAIN_ID).send().await.status, 200);
    let send = world.ask(None, "eth_sendRawTransaction", json!(["0x00"])).send().await;
    assert_eq!(send.error(), (503, -32603), "sends always need a record");
}

#[tokio::test]
async fn a3_metadata_is_public_and_answered_without_the_node() {
    let (world, fake) = scripted().await;
    for (method, result) in [
        ("eth_chainId", r#""0x7a69""#),
        ("net_version", r#""31337""#),
        ("eth_blockNumber", r#""0x64""#),
        ("eth_gasPrice", r#""0x77359400""#),
        ("net_listening", "true"),
    ] {
        let answer = world.ask(None, method, json!([])).send().await;
        assert_eq!(answer.text, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
    }
    let version = world.ask(None, "web3_clientVersion", json!([])).send().await;
    assert!(
        version.body["result"].as_str().unwrap().starts_with("ledger-gateway/"),
        "{}",
        version.text
    );
    fake.assert_silent();
    assert_eq!(world.ask(None, "eth_accounts", json!([])).send().await.text, DENIED);
}
