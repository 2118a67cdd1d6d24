//! Personal RPC URLs through the real binary: creation, use and revocation; the secret is never disclosed afterwards
//! (HD17, decision 51).

use crate::{
    harness::{Engine, Gateway, PROCESS_OUTPUT, client},
    world::{World, user_id},
};
use serde_json::{Value, json};

/// The secret of a personal URL, from the response that created it.
fn secret(created: &Value) -> String {
    created["url"]
        .as_str()
        .unwrap()
        .rsplit_once("/rpc/u/")
        .unwrap()
        .1
        .to_owned()
}

async fn post(gw: &Gateway, secret: &str, method: &str, params: Value) -> crate::harness::Response {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    gw.request("POST", &format!("/rpc/u/{secret}"), &[], Some(body)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd17_a_url_is_created_used_and_revoked() {
    let w = World::start(Engine::Sqlite).await;
    let me = "/api/v1/me/rpc-urls";
    let mint = async |body: Value| w.gw.as_user(&w.ops.token, "POST", me, Some(body)).await;
    let wallet_url = mint(json!({})).await.expect(201);
    assert_eq!(
        (&wallet_url["scope"], &wallet_url["org_id"]),
        (&json!("wallet"), &json!(w.meridian))
    );
    assert!(wallet_url.get("warning").is_none() && secret(&wallet_url).len() == 43);
    let full_url = mint(json!({"scope": "all", "ttl_seconds": 2_592_000, "name": "everything"}))
        .await
        .expect(201);
    assert!(full_url["warning"].as_str().unwrap().contains("every web page"));
    let contracts_url = mint(json!({"scope": "contracts", "contracts": [w.erc20]}))
        .await
        .expect(201);
    assert_eq!(contracts_url["contracts"], json!([format!("{:#x}", w.erc20)]));
    for (invalid, text) in [
        (json!({"scope": "everything"}), "scope"),
        (json!({"scope": "contracts"}), "contracts"),
        (
            json!({"scope": "contracts", "contracts": [w.analyst.address()]}),
            "contracts",
        ),
        (json!({"scope": "wallet", "contracts": [w.erc20]}), "contracts"),
        (json!({"ttl_seconds": 2_592_001}), "ttl_seconds"),
        (json!({"ttl_seconds": 0}), "ttl_seconds"),
        (json!({"org_id": w.volta}), "org_id"),
    ] {
        let refused = mint(invalid.clone()).await;
        assert_eq!(refused.status, 400, "{invalid}");
        assert!(refused.body.contains(text), "{invalid}: {}", refused.body);
    }
    // The URL authenticates without a token; its scope limits the methods.
    let params = json!([w.ops.address(), "latest"]);
    assert_ne!(
        post(&w.gw, &secret(&wallet_url), "eth_getBalance", params.clone())
            .await
            .expect(200)["result"],
        "0x0"
    );
    let call = json!([{"to": w.erc20, "data": "0x18160ddd"}, "latest"]);
    post(&w.gw, &secret(&wallet_url), "eth_call", call.clone())
        .await
        .expect(404);
    for wider in [&full_url, &contracts_url] {
        assert!(post(&w.gw, &secret(wider), "eth_call", call.clone()).await.expect(200)["result"].is_string());
    }
    // Not usable on REST or for minting.
    w.gw.as_user(&secret(&full_url), "POST", me, Some(json!({})))
        .await
        .expect(401);
    // URLs are listed without their secret. Their owner and an administrator of the organization can revoke them.
    let listed = w.gw.as_user(&w.ops.token, "GET", me, None).await.expect(200);
    assert_eq!(listed["data"].as_array().unwrap().len(), 3);
    assert!(!listed.to_string().contains(&secret(&wallet_url)) && !listed.to_string().contains("/rpc/u/"));
    let id = |url: &Value| url["id"].as_str().unwrap().to_owned();
    w.gw.as_user(&w.trader.token, "DELETE", &format!("{me}/{}", id(&wallet_url)), None)
        .await
        .expect(404);
    w.gw.as_user(&w.ops.token, "DELETE", &format!("{me}/{}", id(&wallet_url)), None)
        .await
        .expect(200);
    let revoked = post(&w.gw, &secret(&wallet_url), "eth_chainId", json!([])).await;
    assert_eq!(revoked.status, 404);
    let user = user_id(&w.gw, w.ops.did).await;
    let admin = format!("/api/v1/admin/users/{user}/rpc-urls");
    let listed_by_admin = w.gw.as_user(&w.admin.token, "GET", &admin, None).await.expect(200);
    assert_eq!(listed_by_admin["data"].as_array().unwrap().len(), 2);
    w.gw.as_user(&w.trader.token, "GET", &admin, None).await.expect(403);
    w.gw.as_user(&w.admin.token, "DELETE", &format!("{admin}/{}", id(&full_url)), None)
        .await
        .expect(200);
    post(&w.gw, &secret(&full_url), "eth_chainId", json!([]))
        .await
        .expect(404);
    let entries =
        w.gw.admin("GET", "/audit-logs?resource_type=rpc_url", None)
            .await
            .expect(200)
            .to_string();
    assert_eq!(entries.matches("\"create\"").count(), 3, "{entries}");
    assert_eq!(entries.matches("\"revoke\"").count(), 2, "{entries}");
    assert!(!entries.contains(&secret(&wallet_url)));
}

/// PU-3: no log line, metric or record contains the secret, whether the call succeeds or fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pu3_the_secret_is_in_no_log_metric_or_record() {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("lines");
    let extra = [
        ("LOG_LEVEL", "trace"),
        ("AUDIT_LOG_PARAMS", "true"),
        (PROCESS_OUTPUT, output.to_str().unwrap()),
    ];
    let w = World::start_with(Engine::Sqlite, &extra).await;
    let mint =
        w.gw.as_user(
            &w.ops.token,
            "POST",
            "/api/v1/me/rpc-urls",
            Some(json!({"scope": "all"})),
        )
        .await;
    let created = mint.expect(201);
    let canary = secret(&created);
    post(&w.gw, &canary, "eth_getBalance", json!([w.ops.address(), "latest"]))
        .await
        .expect(200);
    post(&w.gw, &canary, "eth_nope", json!([])).await.expect(404);
    w.gw.request("GET", &format!("/rpc/u/{canary}"), &[], None)
        .await
        .expect(404);
    w.gw.request("POST", &format!("/rpc/u/{canary}/more"), &[], Some(json!({})))
        .await
        .expect(404);
    w.gw.raw("POST", &format!("/rpc/u/{canary}"), &[], Some("{nonsense"))
        .await
        .expect(400);
    w.gw.raw(
        "POST",
        &format!("/rpc/u/{canary}"),
        &[("authorization", "Bearer x")],
        Some("{}"),
    )
    .await
    .expect(400);
    drop(client());
    let metrics = w.gw.request("GET", "/metrics", &[], None).await.body;
    assert!(metrics.contains("/rpc/u/{secret}") && !metrics.contains(&canary));
    let mut logs = String::new();
    for _ in 0..100 {
        logs = w.gw.admin("GET", "/logs?limit=100", None).await.expect(200).to_string();
        if logs.contains("personal_url") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(logs.contains(created["id"].as_str().unwrap()) && !logs.contains(&canary));
    let text = std::fs::read_to_string(&output).unwrap();
    assert!(text.contains("/rpc/u/{secret}"), "the process writes log lines");
    assert!(
        !text.contains(&canary),
        "{}",
        text.lines().find(|line| line.contains(&canary)).unwrap_or_default()
    );
}

/// Without PERSONAL_RPC_URLS the routes do not exist.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd17_the_routes_do_not_exist_when_disabled() {
    let w = World::start_with(Engine::Sqlite, &[("PERSONAL_RPC_URLS", "false")]).await;
    let user = user_id(&w.gw, w.ops.did).await;
    w.gw.as_user(&w.ops.token, "GET", "/api/v1/me/rpc-urls", None)
        .await
        .expect(404);
    w.gw.as_user(&w.ops.token, "POST", "/api/v1/me/rpc-urls", Some(json!({})))
        .await
        .expect(404);
    w.gw.admin("GET", &format!("/users/{user}/rpc-urls"), None)
        .await
        .expect(404);
    let response = post(&w.gw, "anything", "eth_chainId", json!([])).await;
    assert_eq!(response.status, 404);
}
