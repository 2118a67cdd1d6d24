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

/// V4: may somebody do something? Decided as a call is, and explained; who asks outside of their organizations learns
/// nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v4_access_check_and_effective_permissions() {
    let w = World::start(Engine::Sqlite).await;
    let path = "/api/v1/admin/access/check";
    let ask = async |body: Value| w.gw.as_user(&w.admin.token, "POST", path, Some(body)).await;
    let analyst = |more: Value| {
        let mut body = json!({"user_external_id": w.analyst.did, "org_slug": "meridian", "method": "eth_call"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };

    // The method alone; a target; a function; parameters.
    let listed = ask(analyst(json!({}))).await.expect(200);
    assert_eq!((&listed["allowed"], &listed["user_id"]), (&json!(true), &json!(w.analyst.user_id)), "{listed}");
    assert_eq!(listed["explanation"]["groups"][0]["slug"], "analysts");
    let unlisted = ask(analyst(json!({"method": "eth_estimateGas"}))).await.expect(200);
    assert_eq!(
        (&unlisted["allowed"], &unlisted["reason"], &unlisted["explanation"]["rule"]),
        (&json!(false), &json!("method_not_allowed"), &json!("method_list")),
        "{unlisted}"
    );
    let target = |selector: &str| json!({"target_address": w.erc20, "function_selector": selector});
    let function = ask(analyst(target("0xa9059cbb"))).await.expect(200);
    assert_eq!(function["reason"], "function_not_permitted", "{function}");
    let grants = function["explanation"]["targets"][0]["grants"].as_array().unwrap();
    let of = |group: &str| grants.iter().find(|grant| grant["group_slug"] == group).unwrap();
    assert_eq!((&of("analysts")["held"], &of("analysts")["opens_function"]), (&json!(true), &json!(false)));
    let foreign = json!([{"to": w.erc20, "data": balance_of(w.ops.address())}, "latest"]);
    let rule = ask(analyst(json!({"params": foreign}))).await.expect(200);
    assert_eq!((&rule["reason"], &rule["explanation"]["rule"]), (&json!("param_rule"), &json!("param_rule")));
    let ops = json!({"user_external_id": w.ops.did, "org_id": w.meridian, "method": "eth_call", "params": foreign});
    let allowed = ask(ops.clone()).await.expect(200);
    assert_eq!((&allowed["allowed"], &allowed["explanation"]["plan"]), (&json!(true), &json!("trace")), "{allowed}");
    let mut claimed = ops;
    claimed["required_claims"] = json!(["deploy", "upgrade"]);
    let lacking = ask(claimed).await.expect(200);
    assert_eq!((&lacking["reason"], &lacking["claims"]), (&json!("missing_claim"), &json!(["deploy"])), "{lacking}");
    for bad in [json!({"params": [7]}), json!({"params": foreign, "target_address": w.erc20}), json!({"method": ""})] {
        ask(analyst(bad)).await.expect(400);
    }
    ask(analyst(json!({"required_claims": ["fly"]}))).await.expect(400);

    // What is not an administrator's to ask is one refusal.
    let refusals = [
        json!({"method": "eth_call", "user_external_id": w.analyst.did}),
        json!({"method": "eth_call", "user_external_id": w.analyst.did, "org_id": "nonsense"}),
        json!({"method": "eth_call", "user_external_id": w.analyst.did, "org_slug": "nobody"}),
        json!({"method": "eth_call", "user_external_id": w.analyst.did, "org_slug": "volta"}),
        json!({"method": "eth_call", "user_external_id": w.analyst.did, "org_slug": "meridian", "org_id": w.volta}),
        json!({"method": "eth_call", "user_external_id": w.trader.did, "org_slug": "meridian"}),
        json!({"method": "eth_call", "user_external_id": "did:test:nobody", "org_slug": "meridian"}),
        json!({"method": "eth_call", "user_external_id": "no did", "org_slug": "meridian"}),
    ];
    let mut said = Vec::new();
    for body in refusals {
        let answer = ask(body).await;
        assert_eq!(answer.status, 403, "{}", answer.body);
        said.push(answer.json()["error"].clone());
    }
    said.dedup();
    assert_eq!(said.len(), 1, "{said:?}");
    w.gw.as_user(&w.analyst.token, "POST", path, Some(analyst(json!({})))).await.expect(403);
    let trader = json!({"method": "eth_call", "user_external_id": w.trader.did, "target_address": w.erc20});
    let anywhere = w.gw.admin("POST", "/access/check", Some(trader)).await.expect(200);
    assert_eq!(anywhere["reason"], "foreign_org", "super sees all: {anywhere}");
    let nobody = w.gw.admin("POST", "/access/check", Some(json!({"method": "eth_call"}))).await.expect(200);
    assert_eq!(nobody["auth_required"], true);

    // Effective permissions: the union of live groups, as decisions take it.
    let of = |user: &str, org: &str| format!("/api/v1/admin/users/{user}/effective-permissions?org={org}");
    let read = async |path: String| w.gw.as_user(&w.admin.token, "GET", &path, None).await;
    let found = read(of(&w.analyst.user_id, "meridian")).await.expect(200);
    assert!(found["allowed_methods"].as_array().unwrap().contains(&json!("eth_call")), "{found}");
    let access = &found["contract_access"][format!("{:#x}", w.erc20)];
    assert_eq!(access["functions"][0]["selector"], "0x70a08231", "{found}");
    assert_eq!(access["functions"][0]["param_rules"], json!([{"index": 0, "must_be": "self"}]));
    assert_eq!((&found["expires_at"], &found["user_id"]), (&Value::Null, &json!(w.analyst.user_id)));
    let (unknown, foreign) = (read(of(&w.analyst.user_id, "nope")).await, read(of(&w.analyst.user_id, "volta")).await);
    assert_eq!((unknown.status, foreign.status), (404, 404));
    read(of(&w.trader.user_id, "meridian")).await.expect(403);
    let default = format!("/users/{}/effective-permissions", w.outsider.user_id);
    let plain = w.gw.admin("GET", &default, None).await.expect(200);
    assert!(plain["allowed_methods"].as_array().unwrap().contains(&json!("eth_chainId")), "{plain}");
}
