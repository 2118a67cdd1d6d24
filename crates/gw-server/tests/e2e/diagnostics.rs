//! Diagnostics: test requests, access checks, dry-runs and impersonated reads, which run the pipeline that serves
//! callers (spec/20 §16).

use crate::{
    harness::{Engine, init_code},
    world::{World, approveCall, balance_of, forwardCall, transfer},
};
use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_sol_types::SolCall;
use serde_json::{Value, json};

/// V3, B13: a test request runs as the caller's own call, with the same rules, trace and redaction. The administrator
/// also sees the reason of a denial.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v3_b13_a_test_request_runs_the_full_pipeline() {
    let w = World::start(Engine::Sqlite).await;
    let test = async |body: Value| w.gw.admin("POST", "/test-request", Some(body)).await;
    let call = |token: &str, owner: Address| {
        let data = json!({"to": w.erc20, "data": balance_of(owner)});
        json!({"jwt_token": token, "method": "eth_call", "org_id": w.meridian, "params": [data, "latest"]})
    };
    let (own, foreign) = (w.analyst.address(), w.ops.address());

    let allowed = test(call(&w.analyst.token, own)).await.expect(200);
    assert_eq!(
        (&allowed["identity"], allowed.get("error")),
        (&json!(w.analyst.did), None),
        "{allowed}"
    );
    let direct =
        w.gw.result(&w.analyst.token, "eth_call", call("", own)["params"].clone())
            .await;
    assert_eq!(allowed["result"], direct, "the result is that of the caller's own call");

    let denied = test(call(&w.analyst.token, foreign)).await.expect(403);
    assert_eq!(
        denied["error"], "method not found (param_rule)",
        "the administrator sees the reason, the caller does not"
    );
    assert!(denied.get("result").is_none());
    let rival_denied = test(call(&w.trader.token, own)).await.expect(403);
    assert_eq!(rival_denied["error"], "method not found (org_mismatch)");

    // Without a token the call is anonymous. Invalid tokens are refused.
    let anonymous = test(json!({"method": "eth_chainId"})).await.expect(200);
    assert_eq!(
        (&anonymous["identity"], &anonymous["result"]),
        (&json!("test:dashboard"), &json!("0x7a69"))
    );
    test(json!({"method": "eth_syncing"})).await.expect(403);
    test(json!({"method": "eth_chainId", "jwt_token": "nonsense"}))
        .await
        .expect(400);
    test(json!({"method": ""})).await.expect(400);

    // A test send takes effect. It needs `allow_write` and is refused to an organization's administrator.
    let send =
        json!({"jwt_token": w.ops.token, "method": "eth_sendRawTransaction", "org_id": w.meridian, "params": ["0x02"]});
    test(send.clone()).await.expect(400);
    let mut with_write = send;
    with_write["allow_write"] = json!(true);
    w.gw.as_user(&w.admin.token, "POST", "/api/v1/admin/test-request", Some(with_write))
        .await
        .expect(400);

    // An organization's administrator may test in it with tokens of its members.
    let as_admin = async |body: Value| {
        w.gw.as_user(&w.admin.token, "POST", "/api/v1/admin/test-request", Some(body))
            .await
    };
    let denied_for_admin = as_admin(call(&w.analyst.token, foreign)).await.expect(403);
    assert_eq!(denied_for_admin["error"], "method not found (param_rule)");
    as_admin(call(&w.analyst.token, own)).await.expect(200);
    let mut outside = call(&w.trader.token, own);
    as_admin(outside.clone()).await.expect(403);
    outside["org_id"] = json!(w.volta);
    let refused = as_admin(outside).await;
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(
        !refused.body.contains("latency_ms"),
        "the call was not run: {}",
        refused.body
    );
    w.gw.as_user(
        &w.analyst.token,
        "POST",
        "/api/v1/admin/test-request",
        Some(call("", own)),
    )
    .await
    .expect(403);
}

/// V4: an access check decides as for a real call and explains the decision. About other organizations an administrator
/// gets one uniform refusal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v4_access_check_and_effective_permissions() {
    let w = World::start(Engine::Sqlite).await;
    let check_path = "/api/v1/admin/access/check";
    let check = async |body: Value| w.gw.as_user(&w.admin.token, "POST", check_path, Some(body)).await;
    let analyst = |members: Value| {
        let mut body = json!({"user_external_id": w.analyst.did, "org_slug": "meridian", "method": "eth_call"});
        body.as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        body
    };

    // With the method only, with a target, with a function, and with parameters.
    let allowed_method = check(analyst(json!({}))).await.expect(200);
    assert_eq!(
        (&allowed_method["allowed"], &allowed_method["user_id"]),
        (&json!(true), &json!(w.analyst.user_id)),
        "{allowed_method}"
    );
    assert_eq!(allowed_method["explanation"]["groups"][0]["slug"], "analysts");
    let denied_method = check(analyst(json!({"method": "eth_estimateGas"}))).await.expect(200);
    assert_eq!(
        (
            &denied_method["allowed"],
            &denied_method["reason"],
            &denied_method["explanation"]["rule"]
        ),
        (&json!(false), &json!("method_not_allowed"), &json!("method_list")),
        "{denied_method}"
    );
    let target = |selector: &str| json!({"target_address": w.erc20, "function_selector": selector});
    let function = check(analyst(target("0xa9059cbb"))).await.expect(200);
    assert_eq!(function["reason"], "function_not_permitted", "{function}");
    let grants = function["explanation"]["targets"][0]["grants"].as_array().unwrap();
    let grant_of = |group: &str| grants.iter().find(|grant| grant["group_slug"] == group).unwrap();
    assert_eq!(
        (&grant_of("analysts")["held"], &grant_of("analysts")["opens_function"]),
        (&json!(true), &json!(false))
    );
    let foreign = json!([{"to": w.erc20, "data": balance_of(w.ops.address())}, "latest"]);
    let denied = check(analyst(json!({"params": foreign}))).await.expect(200);
    assert_eq!(
        (&denied["reason"], &denied["explanation"]["rule"]),
        (&json!("param_rule"), &json!("param_rule"))
    );
    let ops = json!({"user_external_id": w.ops.did, "org_id": w.meridian, "method": "eth_call", "params": foreign});
    // HD7: the explanation does not show an administrator whether a hidden wallet is the user's. The platform
    // administrator sees it.
    let own_call = json!([{"to": w.erc20, "data": balance_of(w.analyst.address())}, "latest"]);
    let (own_denied, foreign_denied) = (
        check(analyst(json!({"params": own_call}))).await,
        check(analyst(json!({"params": foreign}))).await,
    );
    assert_eq!(own_denied.json()["reason"], "param_rule", "{}", own_denied.body);
    assert_eq!(own_denied.body, foreign_denied.body);
    let allowed = check(ops.clone()).await.expect(200);
    assert_eq!(
        (&allowed["allowed"], &allowed["explanation"]["plan"]),
        (&json!(true), &json!("trace")),
        "{allowed}"
    );
    let mut claims_request = ops;
    claims_request["required_claims"] = json!(["deploy", "upgrade"]);
    let missing = check(claims_request).await.expect(200);
    assert_eq!(
        (&missing["reason"], &missing["claims"]),
        (&json!("missing_claim"), &json!(["deploy"])),
        "{missing}"
    );
    for invalid in [
        json!({"params": [7]}),
        json!({"params": foreign, "target_address": w.erc20}),
        json!({"method": ""}),
    ] {
        check(analyst(invalid)).await.expect(400);
    }
    check(analyst(json!({"required_claims": ["fly"]}))).await.expect(400);

    // Each check that an administrator may not make has the same refusal.
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
    let mut errors = Vec::new();
    for body in refusals {
        let refused = check(body).await;
        assert_eq!(refused.status, 403, "{}", refused.body);
        errors.push(refused.json()["error"].clone());
    }
    errors.dedup();
    assert_eq!(errors.len(), 1, "{errors:?}");
    w.gw.as_user(&w.analyst.token, "POST", check_path, Some(analyst(json!({}))))
        .await
        .expect(403);
    let trader = json!({"method": "eth_call", "user_external_id": w.trader.did, "target_address": w.erc20});
    let anywhere = w.gw.admin("POST", "/access/check", Some(trader)).await.expect(200);
    assert_eq!(
        anywhere["reason"], "foreign_org",
        "the platform administrator sees the exact reason: {anywhere}"
    );
    let anonymous =
        w.gw.admin("POST", "/access/check", Some(json!({"method": "eth_call"})))
            .await
            .expect(200);
    assert_eq!(anonymous["auth_required"], true);

    // Effective permissions: the union over the groups in force, as decisions use it.
    let path = |user: &str, org: &str| format!("/api/v1/admin/users/{user}/effective-permissions?org={org}");
    let get = async |path: String| w.gw.as_user(&w.admin.token, "GET", &path, None).await;
    let permissions = get(path(&w.analyst.user_id, "meridian")).await.expect(200);
    assert!(
        permissions["allowed_methods"]
            .as_array()
            .unwrap()
            .contains(&json!("eth_call")),
        "{permissions}"
    );
    let access = &permissions["contract_access"][format!("{:#x}", w.erc20)];
    assert_eq!(access["functions"][0]["selector"], "0x70a08231", "{permissions}");
    assert_eq!(
        access["functions"][0]["param_rules"],
        json!([{"index": 0, "must_be": "self"}])
    );
    assert_eq!(
        (&permissions["expires_at"], &permissions["user_id"]),
        (&Value::Null, &json!(w.analyst.user_id))
    );
    let (unknown, foreign) = (
        get(path(&w.analyst.user_id, "nope")).await,
        get(path(&w.analyst.user_id, "volta")).await,
    );
    assert_eq!((unknown.status, foreign.status), (404, 404));
    get(path(&w.trader.user_id, "meridian")).await.expect(403);
    let default = format!("/users/{}/effective-permissions", w.outsider.user_id);
    let default_permissions = w.gw.admin("GET", &default, None).await.expect(200);
    assert!(
        default_permissions["allowed_methods"]
            .as_array()
            .unwrap()
            .contains(&json!("eth_chainId")),
        "{default_permissions}"
    );
}

/// Makes a dry-run of a call by `did` as Meridian's administrator.
async fn dry_run(w: &World, did: &str, method: &str, params: Value) -> crate::harness::Response {
    let path = format!("/api/v1/admin/orgs/{}/dry-run", w.meridian);
    let body = json!({"user_did": did, "rpc": {"method": method, "params": params}});
    w.gw.as_user(&w.admin.token, "POST", &path, Some(body)).await
}

fn hex(address: Address) -> String {
    format!("{address:x}")
}

/// V1, B14, HD7: a dry-run runs the member's call through the full pipeline and shows only what member and
/// administrator may both see.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v1_b14_hd7_a_dry_run_shows_what_both_see() {
    let w = World::start(Engine::Sqlite).await;
    let wallet = hex(w.ops.address());
    let sent =
        w.gw.send(
            &w.ops.token,
            &w.ops.key,
            Some(w.erc20),
            U256::ZERO,
            transfer(w.analyst.address(), 5),
        )
        .await;
    let total_calls = |logs: &Value| logs["total"].as_i64().unwrap();
    let ops_path = format!("/logs?external_id={}", w.ops.did);
    let before = (
        w.gw.node("eth_blockNumber", json!([])).await,
        w.gw.admin("GET", &ops_path, None).await.expect(200),
    );

    // B14, unfiltered transactions: the member's own view shows the wallet, the dry-run does not.
    let own_view =
        w.gw.result(&w.ops.token, "eth_getTransactionByHash", json!([sent]))
            .await;
    assert_eq!(
        own_view["from"].as_str().unwrap().to_lowercase(),
        format!("0x{wallet}"),
        "the member's own view shows the wallet"
    );
    let logs_before_dry_run = w.gw.admin("GET", &ops_path, None).await.expect(200);
    let dry_view = dry_run(&w, w.ops.did, "eth_getTransactionByHash", json!([sent]))
        .await
        .expect(200);
    assert_eq!(
        (&dry_view["decision"], &dry_view["explanation"]["rule"]),
        (&json!("allowed"), &json!("passed")),
        "{dry_view}"
    );
    // RT25, HD40: a transaction that is shown in the view of its sender only would tell who sent it. The
    // administrator's own view shows it masked.
    assert_eq!(dry_view["response"], Value::Null);
    let receipt = dry_run(&w, w.ops.did, "eth_getTransactionReceipt", json!([sent]))
        .await
        .expect(200);
    assert_eq!(
        receipt["response"]["logs"][0]["topics"][1],
        json!(B256::ZERO),
        "{receipt}"
    );

    // The administrator may see contract data, but no result that depends on an undisclosed wallet.
    let supply_call = json!([{"to": w.erc20, "data": "0x18160ddd"}, "latest"]);
    let supply = dry_run(&w, w.ops.did, "eth_call", supply_call.clone())
        .await
        .expect(200);
    assert_eq!(
        supply["response"],
        w.gw.result(&w.ops.token, "eth_call", supply_call.clone()).await
    );
    for address in [w.analyst.address(), w.outsider.address()] {
        let call = json!([{"to": w.erc20, "data": balance_of(address)}, "latest"]);
        let denied = dry_run(&w, w.analyst.did, "eth_call", call).await.expect(200);
        assert_eq!(
            (&denied["decision"], &denied["reason"]),
            (&json!("denied"), &json!("param_rule")),
            "{denied}"
        );
        let from = json!([{"from": address, "to": w.erc20, "data": "0x18160ddd"}, "latest"]);
        let denied = dry_run(&w, w.ops.did, "eth_call", from).await.expect(200);
        assert_eq!(denied["reason"], "sender_not_linked", "{denied}");
    }
    let own_view = dry_run(&w, w.ops.did, "eth_getBalance", json!([w.ops.address()]))
        .await
        .expect(200);
    assert_eq!(own_view["response"], "0x0");

    // A dry-run of a send is traced and has no effect.
    let nonce = async || {
        w.gw.node("eth_getTransactionCount", json!([w.ops.address(), "pending"]))
            .await
    };
    let initial_nonce = nonce().await;
    // It runs from the zero address (HD7), which can approve but has nothing to transfer.
    let approve: Bytes = approveCall {
        spender: w.trader.address(),
        value: U256::from(7),
    }
    .abi_encode()
    .into();
    let call = json!([{"to": w.erc20, "data": approve}]);
    let sent = dry_run(&w, w.ops.did, "eth_sendTransaction", call.clone()).await;
    let response = sent.expect(200);
    assert_eq!(
        (&response["decision"], &response["explanation"]["plan"]),
        (&json!("allowed"), &json!("send")),
        "{response}"
    );
    assert_eq!(
        (
            &response["trace"]["from"],
            response["logs_emitted"].as_array().unwrap().len()
        ),
        (&json!(Address::ZERO), 1)
    );
    assert_eq!(response["logs_visible_to_user"], response["logs_emitted"]);
    assert!(!sent.body.to_lowercase().contains(&wallet), "{}", sent.body);
    let (_, raw) =
        w.gw.sign(&w.ops.key, Some(w.erc20), U256::ZERO, transfer(w.trader.address(), 7))
            .await;
    let raw = dry_run(&w, w.ops.did, "eth_sendRawTransaction", json!([raw]))
        .await
        .expect(200);
    assert_eq!(
        (&raw["decision"], &raw["trace"]["from"]),
        (&json!("allowed"), &json!(Address::ZERO)),
        "{raw}"
    );
    let failing = json!([{"to": w.erc20, "data": transfer(w.trader.address(), 1 << 60)}]);
    let failing = dry_run(&w, w.ops.did, "eth_sendTransaction", failing).await.expect(200);
    assert_eq!(
        failing["decision"], "allowed",
        "the policy allows the call, which the contract reverts: {failing}"
    );
    let paying = json!([{"to": w.erc20, "value": "0x1"}]);
    dry_run(&w, w.ops.did, "eth_sendTransaction", paying).await.expect(400);
    assert_eq!(nonce().await, initial_nonce, "nothing was forwarded");

    // B14, foreign frames: a contract of the member's bank calls one of the other bank.
    let forwarder = w.gw.deploy(&w.ops.token, &w.ops.key, init_code("Forwarder", &[])).await;
    let foreign = w.gw.deploy(&w.ops.token, &w.ops.key, init_code("Forwarder", &[])).await;
    let path = format!("/orgs/{}/contracts/{foreign}", w.meridian);
    w.gw.admin("DELETE", &path, None).await.expect(200);
    let body = json!({"address": foreign, "name": "theirs"});
    w.gw.admin("POST", &format!("/orgs/{}/contracts", w.volta), Some(body))
        .await
        .expect(201);
    let data: Bytes = forwardCall {
        target: foreign,
        data: Bytes::new(),
    }
    .abi_encode()
    .into();
    let call = json!([{"to": forwarder, "data": data}, "latest"]);
    let node_result = w.gw.node("eth_call", call.clone()).await;
    assert!(
        node_result.is_string(),
        "the attack works against the bare node: {node_result}"
    );
    let denied = dry_run(&w, w.ops.did, "eth_call", call).await;
    let response = denied.expect(200);
    assert_eq!(
        (&response["decision"], &response["explanation"]["rule"]),
        (&json!("denied"), &json!("trace")),
        "{response}"
    );
    assert_eq!(
        (&response["stopped_at"]["frame"], &response["reason"]),
        (&json!(1), &json!("unregistered")),
        "{response}"
    );
    assert!(
        response["stopped_at"].get("address").is_none() && response.get("response").is_none(),
        "{response}"
    );

    // The organization's audit log records the dry-run with a keyed digest instead of the parameters. The access log
    // has no record of it as a call of the member.
    let audit_path = format!(
        "/api/v1/admin/audit-logs?resource_type=user&resource_id={}&action=access",
        w.ops.user_id
    );
    let audit_log = w.gw.as_user(&w.admin.token, "GET", &audit_path, None).await;
    let entries = audit_log.expect(200);
    let entry = &entries[0];
    assert_eq!(
        (&entry["actor_external_id"], &entry["new_value"]["impersonation"]),
        (&json!(w.admin.did), &json!("dry_run"))
    );
    assert!(
        entry["new_value"]["params_digest"]
            .as_str()
            .unwrap()
            .starts_with("hmac-sha256:"),
        "{entry}"
    );
    assert!(!audit_log.body.contains("0x18160ddd"), "{}", audit_log.body);
    let after_deployments = total_calls(&w.gw.admin("GET", &ops_path, None).await.expect(200));
    let (block, earlier_logs) = before;
    assert_ne!(block, Value::Null);
    assert!(
        total_calls(&earlier_logs) <= total_calls(&logs_before_dry_run)
            && total_calls(&logs_before_dry_run) <= after_deployments
    );
    let send_path = format!("/logs?external_id={}&method=eth_sendTransaction", w.ops.did);
    assert_eq!(
        total_calls(&w.gw.admin("GET", &send_path, None).await.expect(200)),
        0,
        "a dry-run is not recorded as a call of the member"
    );
}

/// HD7: if the audit entry cannot be written, the administrator sees nothing and the node is not called.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v1_v2_hd7_impersonation_fails_without_its_audit_entry() {
    let w = World::start(Engine::Sqlite).await;
    let supply_call = json!({"method": "eth_call", "params": [{"to": w.erc20, "data": "0x18160ddd"}, "latest"]});
    let requests = [
        (
            format!("/api/v1/admin/orgs/{}/dry-run", w.meridian),
            json!({"user_did": w.ops.did, "rpc": supply_call}),
        ),
        (
            format!("/api/v1/admin/impersonate/{}/in/{}/rpc", w.ops.did, w.meridian),
            supply_call,
        ),
    ];
    let forwarded = async || {
        let metrics = w.gw.request("GET", "/metrics", &[], None).await.body;
        let count = "ledger_gateway_rpc_node_forward_duration_seconds_count";
        metrics.lines().find(|line| line.starts_with(count)).map(str::to_owned)
    };
    let before = forwarded().await;
    w.gw.execute_sql("CREATE TRIGGER full BEFORE INSERT ON audit_outbox BEGIN SELECT RAISE(ABORT, 'no'); END");
    for (path, body) in &requests {
        let refused = w.gw.as_user(&w.admin.token, "POST", path, Some(body.clone())).await;
        assert_eq!(refused.expect(503)["error"], "audit unavailable");
        assert!(!refused.body.contains("0x"), "{path}: {}", refused.body);
    }
    assert_eq!(forwarded().await, before);
    w.gw.execute_sql("DROP TRIGGER full");
    for (path, body) in &requests {
        let response = w.gw.as_user(&w.admin.token, "POST", path, Some(body.clone())).await;
        assert!(
            response.body.contains("0x"),
            "with a working audit log the value is shown: {path}: {}",
            response.body
        );
    }
    assert_ne!(forwarded().await, before);
}

/// V1, V2: only full administrators of the organization may impersonate, and only its members.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v1_v2_only_administrators_impersonate_and_only_members() {
    let w = World::start(Engine::Sqlite).await;
    let readers = crate::world::group(&w.gw, &w.meridian, "readers", false, json!([]), json!([])).await;
    let flag = json!({"is_org_readonly_admin": true});
    w.gw.admin("PUT", &format!("/orgs/{}/groups/{readers}", w.meridian), Some(flag))
        .await
        .expect(200);
    let reader = json!({"did": "did:test:reader", "group_id": readers});
    w.gw.admin(
        "POST",
        &format!("/orgs/{}/memberships/by-did", w.meridian),
        Some(reader),
    )
    .await
    .expect(201);
    let reader = w.gw.login("did:test:reader").await;
    let rpc = json!({"method": "eth_getBalance", "params": [w.erc20]});
    let dry_run_body = |did: &str| json!({"user_did": did, "rpc": rpc});
    let paths = |org: &str, did: &str| {
        let base = "/api/v1/admin";
        [
            (format!("{base}/orgs/{org}/dry-run"), dry_run_body(did)),
            (format!("{base}/impersonate/{did}/in/{org}/rpc"), rpc.clone()),
        ]
    };
    let assert_status = async |token: &str, org: &str, did: &str, status: u16| {
        for (path, body) in paths(org, did) {
            let answer = w.gw.as_user(token, "POST", &path, Some(body)).await;
            assert_eq!(answer.status, status, "{path}: {}", answer.body);
        }
    };
    assert_status(&w.admin.token, &w.meridian, w.ops.did, 200).await;
    assert_status(&w.admin.token, &w.volta, w.trader.did, 403).await;
    assert_status(&w.admin.token, "nonsense", w.trader.did, 403).await;
    assert_status(&w.admin.token, &w.meridian, w.trader.did, 404).await;
    assert_status(&w.admin.token, &w.meridian, "did:test:nobody", 404).await;
    assert_status(&w.admin.token, &w.meridian, w.admin.did, 400).await;
    assert_status(&reader, &w.meridian, w.ops.did, 403).await;
    assert_status(&w.ops.token, &w.meridian, w.analyst.did, 403).await;
    for (path, body) in paths(&w.meridian, w.ops.did) {
        let path = path.trim_start_matches("/api/v1/admin");
        w.gw.admin("POST", path, Some(body)).await.expect(403);
    }
    let unsupported = dry_run(&w, w.ops.did, "eth_blockNumber", json!([])).await;
    assert!(
        unsupported.status == 400 && unsupported.body.contains("eth_getLogs"),
        "{}",
        unsupported.body
    );
    dry_run(&w, w.ops.did, "eth_getBalance", json!(["0x12"]))
        .await
        .expect(400);

    // V2: only reads are possible. The response is the member's, limited to what the administrator may also see.
    let impersonate = async |method: &str, params: Value| {
        let path = format!("/api/v1/admin/impersonate/{}/in/{}/rpc", w.ops.did, w.meridian);
        w.gw.as_user(
            &w.admin.token,
            "POST",
            &path,
            Some(json!({"method": method, "params": params, "id": 7})),
        )
        .await
    };
    let chain_id = impersonate("eth_chainId", json!([])).await.expect(200);
    assert_eq!(chain_id, json!({"jsonrpc": "2.0", "id": 7, "result": "0x7a69"}));
    let denied = impersonate("eth_sign", json!([])).await.expect(200);
    assert_eq!(denied["error"]["message"], "method not found", "{denied}");
    impersonate("eth_sendRawTransaction", json!(["0x02"])).await.expect(400);
    impersonate("eth_newFilter", json!([{"address": w.erc20}]))
        .await
        .expect(400);
    let block = impersonate("eth_getBlockByNumber", json!(["latest", true])).await;
    let (visible_block, wallet) = (block.expect(200), hex(w.ops.address()));
    assert_eq!(visible_block["result"]["transactions"], json!([]), "{visible_block}");
    assert!(!block.body.to_lowercase().contains(&wallet));
    assert_eq!(
        impersonate("eth_accounts", json!([])).await.expect(200)["result"],
        json!([])
    );

    // The explorer mirror checks its caller before it says that there is no explorer.
    let get = async |path: String| w.gw.as_user(&w.admin.token, "GET", &path, None).await.status;
    let explorer = |org: &str, did: &str| format!("/api/v1/admin/impersonate/{did}/in/{org}/api/v1/explorer/blocks");
    assert_eq!(get(explorer(&w.meridian, w.ops.did)).await, 503);
    assert_eq!(get(explorer(&w.volta, w.ops.did)).await, 403);
    assert_eq!(get(explorer(&w.meridian, w.trader.did)).await, 404);
    assert_eq!(
        get(format!(
            "/api/v1/admin/impersonate/{}/api/v1/explorer/blocks",
            w.ops.did
        ))
        .await,
        400
    );
    let explorer_path = explorer(&w.meridian, w.ops.did);
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(
            w.gw.as_user(&w.admin.token, method, &explorer_path, None).await.status,
            405,
            "{method}"
        );
    }
    let explorer_path = explorer_path.trim_start_matches("/api/v1/admin").to_owned();
    assert_eq!(w.gw.admin("GET", &explorer_path, None).await.status, 403);
    let audit_path = format!(
        "/audit-logs?resource_type=user&resource_id={}&action=access",
        w.ops.user_id
    );
    let audit_log = w.gw.admin("GET", &audit_path, None).await.expect(200);
    assert!(
        audit_log
            .as_array()
            .unwrap()
            .iter()
            .any(|entry| entry["new_value"]["impersonation"] == "view_as"),
        "{audit_log}"
    );
}
