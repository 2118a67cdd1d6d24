//! Seeing why, through the pipeline that serves callers (spec/20 §16).

use crate::{
    harness::Engine,
    world::{World, balance_of},
};
use alloy_primitives::Address;
use serde_json::{Value, json};

/// V3, B13: a test request is the caller's own call: same rules, same trace, same redaction; administrators see why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v3_b13_a_test_request_goes_through_everything() {
    let w = World::start(Engine::Sqlite).await;
    let ask = async |body: Value| w.gw.admin("POST", "/test-request", Some(body)).await;
    let call = |token: &str, of: Address| {
        let data = json!({"to": w.erc20, "data": balance_of(of)});
        json!({"jwt_token": token, "method": "eth_call", "org_id": w.meridian, "params": [data, "latest"]})
    };
    let (own, foreign) = (w.analyst.address(), w.ops.address());

    let allowed = ask(call(&w.analyst.token, own)).await.expect(200);
    assert_eq!((&allowed["identity"], allowed.get("error")), (&json!(w.analyst.did), None), "{allowed}");
    let direct = w.gw.result(&w.analyst.token, "eth_call", call("", own)["params"].clone()).await;
    assert_eq!(allowed["result"], direct, "what the caller gets");

    let denied = ask(call(&w.analyst.token, foreign)).await.expect(403);
    assert_eq!(denied["error"], "method not found (param_rule)", "why, which the caller does not see");
    assert!(denied.get("result").is_none());
    let rival = ask(call(&w.trader.token, own)).await.expect(403);
    assert_eq!(rival["error"], "method not found (org_mismatch)");

    // Nobody in particular, and tokens that are none.
    let nobody = ask(json!({"method": "eth_chainId"})).await.expect(200);
    assert_eq!((&nobody["identity"], &nobody["result"]), (&json!("test:dashboard"), &json!("0x7a69")));
    ask(json!({"method": "eth_syncing"})).await.expect(403);
    ask(json!({"method": "eth_chainId", "jwt_token": "nonsense"})).await.expect(400);
    ask(json!({"method": ""})).await.expect(400);

    // Sends take effect: not without asking for it, and never for an organization's administrator.
    let send =
        json!({"jwt_token": w.ops.token, "method": "eth_sendRawTransaction", "org_id": w.meridian, "params": ["0x02"]});
    ask(send.clone()).await.expect(400);
    let mut wanted = send;
    wanted["allow_write"] = json!(true);
    w.gw.as_user(&w.admin.token, "POST", "/api/v1/admin/test-request", Some(wanted)).await.expect(400);

    // An organization's administrator tests in it, with tokens of its members.
    let as_admin =
        async |body: Value| w.gw.as_user(&w.admin.token, "POST", "/api/v1/admin/test-request", Some(body)).await;
    let seen = as_admin(call(&w.analyst.token, foreign)).await.expect(403);
    assert_eq!(seen["error"], "method not found (param_rule)");
    as_admin(call(&w.analyst.token, own)).await.expect(200);
    let mut outside = call(&w.trader.token, own);
    as_admin(outside.clone()).await.expect(403);
    outside["org_id"] = json!(w.volta);
    let refused = as_admin(outside).await;
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(!refused.body.contains("latency_ms"), "nothing was run: {}", refused.body);
    w.gw.as_user(&w.analyst.token, "POST", "/api/v1/admin/test-request", Some(call("", own))).await.expect(403);
}
