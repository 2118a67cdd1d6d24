//! Personal RPC URLs through the real binary: made, used, ended, and told of nowhere (HD17, decision 51).

use crate::{
    harness::{Engine, Gateway, KEEP_LINES, client},
    world::{World, user_id},
};
use serde_json::{Value, json};

/// The secret in a URL that was just made.
fn secret(made: &Value) -> String {
    made["url"]
        .as_str()
        .unwrap()
        .rsplit_once("/rpc/u/")
        .unwrap()
        .1
        .to_owned()
}

async fn post(gw: &Gateway, secret: &str, method: &str, params: Value) -> crate::harness::Answer {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    gw.request("POST", &format!("/rpc/u/{secret}"), &[], Some(body)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd17_a_url_is_made_used_and_ended() {
    let w = World::start(Engine::Sqlite).await;
    let me = "/api/v1/me/rpc-urls";
    let mint = async |body: Value| w.gw.as_user(&w.ops.token, "POST", me, Some(body)).await;
    let made = mint(json!({})).await.expect(201);
    assert_eq!(
        (&made["scope"], &made["org_id"]),
        (&json!("wallet"), &json!(w.meridian))
    );
    assert!(made.get("warning").is_none() && secret(&made).len() == 43);
    let wide = mint(json!({"scope": "all", "ttl_seconds": 2_592_000, "name": "everything"}))
        .await
        .expect(201);
    assert!(wide["warning"].as_str().unwrap().contains("every web page"));
    let picked = mint(json!({"scope": "contracts", "contracts": [w.erc20]}))
        .await
        .expect(201);
    assert_eq!(picked["contracts"], json!([format!("{:#x}", w.erc20)]));
    for (bad, text) in [
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
        let refused = mint(bad.clone()).await;
        assert_eq!(refused.status, 400, "{bad}");
        assert!(refused.body.contains(text), "{bad}: {}", refused.body);
    }
    // By itself, and never with a token.
    let own = json!([w.ops.address(), "latest"]);
    assert_ne!(
        post(&w.gw, &secret(&made), "eth_getBalance", own.clone())
            .await
            .expect(200)["result"],
        "0x0"
    );
    let call = json!([{"to": w.erc20, "data": "0x18160ddd"}, "latest"]);
    post(&w.gw, &secret(&made), "eth_call", call.clone()).await.expect(404);
    for wider in [&wide, &picked] {
        assert!(post(&w.gw, &secret(wider), "eth_call", call.clone()).await.expect(200)["result"].is_string());
    }
    // Not usable on REST or for minting.
    w.gw.as_user(&secret(&wide), "POST", me, Some(json!({})))
        .await
        .expect(401);
    // Listed without its address; ended by its owner, and by an administrator of its organization.
    let listed = w.gw.as_user(&w.ops.token, "GET", me, None).await.expect(200);
    assert_eq!(listed["rpc_urls"].as_array().unwrap().len(), 3);
    assert!(!listed.to_string().contains(&secret(&made)) && !listed.to_string().contains("/rpc/u/"));
    let id = |url: &Value| url["id"].as_str().unwrap().to_owned();
    w.gw.as_user(&w.trader.token, "DELETE", &format!("{me}/{}", id(&made)), None)
        .await
        .expect(404);
    w.gw.as_user(&w.ops.token, "DELETE", &format!("{me}/{}", id(&made)), None)
        .await
        .expect(200);
    let gone = post(&w.gw, &secret(&made), "eth_chainId", json!([])).await;
    assert_eq!(gone.status, 404);
    let user = user_id(&w.gw, w.ops.did).await;
    let admin = format!("/api/v1/admin/users/{user}/rpc-urls");
    let seen = w.gw.as_user(&w.admin.token, "GET", &admin, None).await.expect(200);
    assert_eq!(seen["rpc_urls"].as_array().unwrap().len(), 2);
    w.gw.as_user(&w.trader.token, "GET", &admin, None).await.expect(403);
    w.gw.as_user(&w.admin.token, "DELETE", &format!("{admin}/{}", id(&wide)), None)
        .await
        .expect(200);
    post(&w.gw, &secret(&wide), "eth_chainId", json!([])).await.expect(404);
    let entries =
        w.gw.admin("GET", "/audit-logs?resource_type=rpc_url", None)
            .await
            .expect(200)
            .to_string();
    assert_eq!(entries.matches("\"create\"").count(), 3, "{entries}");
    assert_eq!(entries.matches("\"revoke\"").count(), 2, "{entries}");
    assert!(!entries.contains(&secret(&made)));
}

/// PU-3: the secret stands in no log line, metric or record, whatever becomes of the call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pu3_the_secret_is_told_nowhere() {
    let place = tempfile::tempdir().unwrap();
    let lines = place.path().join("lines");
    let extra = [
        ("LOG_LEVEL", "trace"),
        ("AUDIT_LOG_PARAMS", "true"),
        (KEEP_LINES, lines.to_str().unwrap()),
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
    let made = mint.expect(201);
    let canary = secret(&made);
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
    assert!(logs.contains(made["id"].as_str().unwrap()) && !logs.contains(&canary));
    let said = std::fs::read_to_string(&lines).unwrap();
    assert!(said.contains("/rpc/u/{secret}"), "lines are written");
    assert!(
        !said.contains(&canary),
        "{}",
        said.lines().find(|line| line.contains(&canary)).unwrap_or_default()
    );
}

/// Switched off, none of it is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd17_off_is_not_there() {
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
    let off = post(&w.gw, "anything", "eth_chainId", json!([])).await;
    assert_eq!(off.status, 404);
}
