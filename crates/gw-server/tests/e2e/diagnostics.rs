//! Seeing why, through the pipeline that serves callers (spec/20 §16).

use crate::{
    harness::{Engine, init_code},
    world::{World, approveCall, balance_of, forwardCall, transfer},
};
use alloy_primitives::{Address, B256, Bytes, U256};
use alloy_sol_types::SolCall;
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
    assert_eq!(
        (&allowed["identity"], allowed.get("error")),
        (&json!(w.analyst.did), None),
        "{allowed}"
    );
    let direct =
        w.gw.result(&w.analyst.token, "eth_call", call("", own)["params"].clone())
            .await;
    assert_eq!(allowed["result"], direct, "what the caller gets");

    let denied = ask(call(&w.analyst.token, foreign)).await.expect(403);
    assert_eq!(
        denied["error"], "method not found (param_rule)",
        "why, which the caller does not see"
    );
    assert!(denied.get("result").is_none());
    let rival = ask(call(&w.trader.token, own)).await.expect(403);
    assert_eq!(rival["error"], "method not found (org_mismatch)");

    // Nobody in particular, and tokens that are none.
    let nobody = ask(json!({"method": "eth_chainId"})).await.expect(200);
    assert_eq!(
        (&nobody["identity"], &nobody["result"]),
        (&json!("test:dashboard"), &json!("0x7a69"))
    );
    ask(json!({"method": "eth_syncing"})).await.expect(403);
    ask(json!({"method": "eth_chainId", "jwt_token": "nonsense"}))
        .await
        .expect(400);
    ask(json!({"method": ""})).await.expect(400);

    // Sends take effect: not without asking for it, and never for an organization's administrator.
    let send =
        json!({"jwt_token": w.ops.token, "method": "eth_sendRawTransaction", "org_id": w.meridian, "params": ["0x02"]});
    ask(send.clone()).await.expect(400);
    let mut wanted = send;
    wanted["allow_write"] = json!(true);
    w.gw.as_user(&w.admin.token, "POST", "/api/v1/admin/test-request", Some(wanted))
        .await
        .expect(400);

    // An organization's administrator tests in it, with tokens of its members.
    let as_admin = async |body: Value| {
        w.gw.as_user(&w.admin.token, "POST", "/api/v1/admin/test-request", Some(body))
            .await
    };
    let seen = as_admin(call(&w.analyst.token, foreign)).await.expect(403);
    assert_eq!(seen["error"], "method not found (param_rule)");
    as_admin(call(&w.analyst.token, own)).await.expect(200);
    let mut outside = call(&w.trader.token, own);
    as_admin(outside.clone()).await.expect(403);
    outside["org_id"] = json!(w.volta);
    let refused = as_admin(outside).await;
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert!(
        !refused.body.contains("latency_ms"),
        "nothing was run: {}",
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
    assert_eq!(
        (&listed["allowed"], &listed["user_id"]),
        (&json!(true), &json!(w.analyst.user_id)),
        "{listed}"
    );
    assert_eq!(listed["explanation"]["groups"][0]["slug"], "analysts");
    let unlisted = ask(analyst(json!({"method": "eth_estimateGas"}))).await.expect(200);
    assert_eq!(
        (
            &unlisted["allowed"],
            &unlisted["reason"],
            &unlisted["explanation"]["rule"]
        ),
        (&json!(false), &json!("method_not_allowed"), &json!("method_list")),
        "{unlisted}"
    );
    let target = |selector: &str| json!({"target_address": w.erc20, "function_selector": selector});
    let function = ask(analyst(target("0xa9059cbb"))).await.expect(200);
    assert_eq!(function["reason"], "function_not_permitted", "{function}");
    let grants = function["explanation"]["targets"][0]["grants"].as_array().unwrap();
    let of = |group: &str| grants.iter().find(|grant| grant["group_slug"] == group).unwrap();
    assert_eq!(
        (&of("analysts")["held"], &of("analysts")["opens_function"]),
        (&json!(true), &json!(false))
    );
    let foreign = json!([{"to": w.erc20, "data": balance_of(w.ops.address())}, "latest"]);
    let rule = ask(analyst(json!({"params": foreign}))).await.expect(200);
    assert_eq!(
        (&rule["reason"], &rule["explanation"]["rule"]),
        (&json!("param_rule"), &json!("param_rule"))
    );
    let ops = json!({"user_external_id": w.ops.did, "org_id": w.meridian, "method": "eth_call", "params": foreign});
    // HD7: whether a wallet is the user's, an administrator who does not know it is not told; the super token is.
    let own = json!([{"to": w.erc20, "data": balance_of(w.analyst.address())}, "latest"]);
    let (own, foreign_said) = (
        ask(analyst(json!({"params": own}))).await,
        ask(analyst(json!({"params": foreign}))).await,
    );
    assert_eq!(own.json()["reason"], "param_rule", "{}", own.body);
    assert_eq!(own.body, foreign_said.body);
    let allowed = ask(ops.clone()).await.expect(200);
    assert_eq!(
        (&allowed["allowed"], &allowed["explanation"]["plan"]),
        (&json!(true), &json!("trace")),
        "{allowed}"
    );
    let mut claimed = ops;
    claimed["required_claims"] = json!(["deploy", "upgrade"]);
    let lacking = ask(claimed).await.expect(200);
    assert_eq!(
        (&lacking["reason"], &lacking["claims"]),
        (&json!("missing_claim"), &json!(["deploy"])),
        "{lacking}"
    );
    for bad in [
        json!({"params": [7]}),
        json!({"params": foreign, "target_address": w.erc20}),
        json!({"method": ""}),
    ] {
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
    w.gw.as_user(&w.analyst.token, "POST", path, Some(analyst(json!({}))))
        .await
        .expect(403);
    let trader = json!({"method": "eth_call", "user_external_id": w.trader.did, "target_address": w.erc20});
    let anywhere = w.gw.admin("POST", "/access/check", Some(trader)).await.expect(200);
    assert_eq!(anywhere["reason"], "foreign_org", "super sees all: {anywhere}");
    let nobody =
        w.gw.admin("POST", "/access/check", Some(json!({"method": "eth_call"})))
            .await
            .expect(200);
    assert_eq!(nobody["auth_required"], true);

    // Effective permissions: the union of live groups, as decisions take it.
    let of = |user: &str, org: &str| format!("/api/v1/admin/users/{user}/effective-permissions?org={org}");
    let read = async |path: String| w.gw.as_user(&w.admin.token, "GET", &path, None).await;
    let found = read(of(&w.analyst.user_id, "meridian")).await.expect(200);
    assert!(
        found["allowed_methods"]
            .as_array()
            .unwrap()
            .contains(&json!("eth_call")),
        "{found}"
    );
    let access = &found["contract_access"][format!("{:#x}", w.erc20)];
    assert_eq!(access["functions"][0]["selector"], "0x70a08231", "{found}");
    assert_eq!(
        access["functions"][0]["param_rules"],
        json!([{"index": 0, "must_be": "self"}])
    );
    assert_eq!(
        (&found["expires_at"], &found["user_id"]),
        (&Value::Null, &json!(w.analyst.user_id))
    );
    let (unknown, foreign) = (
        read(of(&w.analyst.user_id, "nope")).await,
        read(of(&w.analyst.user_id, "volta")).await,
    );
    assert_eq!((unknown.status, foreign.status), (404, 404));
    read(of(&w.trader.user_id, "meridian")).await.expect(403);
    let default = format!("/users/{}/effective-permissions", w.outsider.user_id);
    let plain = w.gw.admin("GET", &default, None).await.expect(200);
    assert!(
        plain["allowed_methods"]
            .as_array()
            .unwrap()
            .contains(&json!("eth_chainId")),
        "{plain}"
    );
}

/// What came of a dry-run of this call by `did`, asked by Meridian's administrator.
async fn dry_run(w: &World, did: &str, method: &str, params: Value) -> crate::harness::Answer {
    let path = format!("/api/v1/admin/orgs/{}/dry-run", w.meridian);
    let body = json!({"user_did": did, "rpc": {"method": method, "params": params}});
    w.gw.as_user(&w.admin.token, "POST", &path, Some(body)).await
}

fn hex(address: Address) -> String {
    format!("{address:x}")
}

/// V1, B14, HD7: a dry-run takes the member's own way through everything, and shows what the administrator sees too.
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
    let calls = |found: &Value| found["total"].as_i64().unwrap();
    let of_ops = format!("/logs?external_id={}", w.ops.did);
    let before = (
        w.gw.node("eth_blockNumber", json!([])).await,
        w.gw.admin("GET", &of_ops, None).await.expect(200),
    );

    // B14, unfiltered transactions: the member's own view names the wallet, this one does not.
    let own =
        w.gw.result(&w.ops.token, "eth_getTransactionByHash", json!([sent]))
            .await;
    assert_eq!(
        own["from"].as_str().unwrap().to_lowercase(),
        format!("0x{wallet}"),
        "the attack, with the rule off"
    );
    let before_last = w.gw.admin("GET", &of_ops, None).await.expect(200);
    let seen = dry_run(&w, w.ops.did, "eth_getTransactionByHash", json!([sent]))
        .await
        .expect(200);
    assert_eq!(
        (&seen["decision"], &seen["explanation"]["rule"]),
        (&json!("allowed"), &json!("passed")),
        "{seen}"
    );
    // RT25, HD40: masked as for the administrator, and nothing says that the member sees more.
    assert_eq!(seen["response"]["from"], json!(Address::ZERO));
    assert_eq!(
        seen["response"]["to"].as_str().unwrap().to_lowercase(),
        format!("0x{}", hex(w.erc20))
    );
    let receipt = dry_run(&w, w.ops.did, "eth_getTransactionReceipt", json!([sent]))
        .await
        .expect(200);
    assert_eq!(
        receipt["response"]["logs"][0]["topics"][1],
        json!(B256::ZERO),
        "{receipt}"
    );

    // Contract data is the administrator's; what hangs on a wallet that was not disclosed is not told.
    let total = json!([{"to": w.erc20, "data": "0x18160ddd"}, "latest"]);
    let supply = dry_run(&w, w.ops.did, "eth_call", total.clone()).await.expect(200);
    assert_eq!(
        supply["response"],
        w.gw.result(&w.ops.token, "eth_call", total.clone()).await
    );
    for of in [w.analyst.address(), w.outsider.address()] {
        let ask = json!([{"to": w.erc20, "data": balance_of(of)}, "latest"]);
        let denied = dry_run(&w, w.analyst.did, "eth_call", ask).await.expect(200);
        assert_eq!(
            (&denied["decision"], &denied["reason"]),
            (&json!("denied"), &json!("param_rule")),
            "{denied}"
        );
        let from = json!([{"from": of, "to": w.erc20, "data": "0x18160ddd"}, "latest"]);
        let denied = dry_run(&w, w.ops.did, "eth_call", from).await.expect(200);
        assert_eq!(denied["reason"], "sender_not_linked", "{denied}");
    }
    let own = dry_run(&w, w.ops.did, "eth_getBalance", json!([w.ops.address()]))
        .await
        .expect(200);
    assert_eq!(own["response"], "0x0");

    // Sends are traced, and nothing comes of them.
    let nonce = async || {
        w.gw.node("eth_getTransactionCount", json!([w.ops.address(), "pending"]))
            .await
    };
    let at = nonce().await;
    // From nobody's address (HD7): it approves like any other, and has nothing to transfer.
    let approve: Bytes = approveCall {
        spender: w.trader.address(),
        value: U256::from(7),
    }
    .abi_encode()
    .into();
    let call = json!([{"to": w.erc20, "data": approve}]);
    let sent = dry_run(&w, w.ops.did, "eth_sendTransaction", call.clone()).await;
    let said = sent.expect(200);
    assert_eq!(
        (&said["decision"], &said["explanation"]["plan"]),
        (&json!("allowed"), &json!("send")),
        "{said}"
    );
    assert_eq!(
        (&said["trace"]["from"], said["logs_emitted"].as_array().unwrap().len()),
        (&json!(Address::ZERO), 1)
    );
    assert_eq!(said["logs_visible_to_user"], said["logs_emitted"]);
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
        "the contract refuses, not the policy: {failing}"
    );
    let paying = json!([{"to": w.erc20, "value": "0x1"}]);
    dry_run(&w, w.ops.did, "eth_sendTransaction", paying).await.expect(400);
    assert_eq!(nonce().await, at, "nothing was forwarded");

    // B14, foreign frames: a contract of the other bank, reached through one of the member's own.
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
    let through = json!([{"to": forwarder, "data": data}, "latest"]);
    let bare = w.gw.node("eth_call", through.clone()).await;
    assert!(bare.is_string(), "the attack works against the bare node: {bare}");
    let stopped = dry_run(&w, w.ops.did, "eth_call", through).await;
    let said = stopped.expect(200);
    assert_eq!(
        (&said["decision"], &said["explanation"]["rule"]),
        (&json!("denied"), &json!("trace")),
        "{said}"
    );
    assert_eq!(
        (&said["stopped_at"]["frame"], &said["reason"]),
        (&json!(1), &json!("unregistered")),
        "{said}"
    );
    assert!(
        said["stopped_at"].get("address").is_none() && said.get("response").is_none(),
        "{said}"
    );

    // Recorded in the trail of the organization, with a keyed digest and none of the parameters; not as calls of theirs.
    let trail = format!(
        "/api/v1/admin/audit-logs?resource_type=user&resource_id={}&action=access",
        w.ops.user_id
    );
    let trail = w.gw.as_user(&w.admin.token, "GET", &trail, None).await;
    let entries = trail.expect(200);
    let first = &entries[0];
    assert_eq!(
        (&first["actor_external_id"], &first["new_value"]["impersonation"]),
        (&json!(w.admin.did), &json!("dry_run"))
    );
    assert!(
        first["new_value"]["params_digest"]
            .as_str()
            .unwrap()
            .starts_with("hmac-sha256:"),
        "{first}"
    );
    assert!(!trail.body.contains("0x18160ddd"), "{}", trail.body);
    let deployed = calls(&w.gw.admin("GET", &of_ops, None).await.expect(200));
    let (block, earlier) = before;
    assert_ne!(block, Value::Null);
    assert!(calls(&earlier) <= calls(&before_last) && calls(&before_last) <= deployed);
    let dry = format!("/logs?external_id={}&method=eth_sendTransaction", w.ops.did);
    assert_eq!(
        calls(&w.gw.admin("GET", &dry, None).await.expect(200)),
        0,
        "no call of the member's"
    );
}

/// HD7: what cannot be recorded is not seen, and the node is not asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v1_v2_hd7_nothing_is_shown_that_could_not_be_recorded() {
    let w = World::start(Engine::Sqlite).await;
    let total = json!({"method": "eth_call", "params": [{"to": w.erc20, "data": "0x18160ddd"}, "latest"]});
    let asked = [
        (
            format!("/api/v1/admin/orgs/{}/dry-run", w.meridian),
            json!({"user_did": w.ops.did, "rpc": total}),
        ),
        (
            format!("/api/v1/admin/impersonate/{}/in/{}/rpc", w.ops.did, w.meridian),
            total,
        ),
    ];
    let forwarded = async || {
        let metrics = w.gw.request("GET", "/metrics", &[], None).await.body;
        let count = "ledger_gateway_rpc_node_forward_duration_seconds_count";
        metrics.lines().find(|line| line.starts_with(count)).map(str::to_owned)
    };
    let before = forwarded().await;
    w.gw.in_database("CREATE TRIGGER full BEFORE INSERT ON audit_outbox BEGIN SELECT RAISE(ABORT, 'no'); END");
    for (path, body) in &asked {
        let refused = w.gw.as_user(&w.admin.token, "POST", path, Some(body.clone())).await;
        assert_eq!(refused.expect(503)["error"], "audit unavailable");
        assert!(!refused.body.contains("0x"), "{path}: {}", refused.body);
    }
    assert_eq!(forwarded().await, before);
    w.gw.in_database("DROP TRIGGER full");
    for (path, body) in &asked {
        let shown = w.gw.as_user(&w.admin.token, "POST", path, Some(body.clone())).await;
        assert!(
            shown.body.contains("0x"),
            "the attack, with the rule off: {path}: {}",
            shown.body
        );
    }
    assert_ne!(forwarded().await, before);
}

/// V1, V2: who may look over whose shoulder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v1_v2_only_administrators_in_person_and_only_over_members() {
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
    let dry = |did: &str| json!({"user_did": did, "rpc": rpc});
    let paths = |org: &str, did: &str| {
        let base = "/api/v1/admin";
        [
            (format!("{base}/orgs/{org}/dry-run"), dry(did)),
            (format!("{base}/impersonate/{did}/in/{org}/rpc"), rpc.clone()),
        ]
    };
    let refused = async |token: &str, org: &str, did: &str, status: u16| {
        for (path, body) in paths(org, did) {
            let answer = w.gw.as_user(token, "POST", &path, Some(body)).await;
            assert_eq!(answer.status, status, "{path}: {}", answer.body);
        }
    };
    refused(&w.admin.token, &w.meridian, w.ops.did, 200).await;
    refused(&w.admin.token, &w.volta, w.trader.did, 403).await;
    refused(&w.admin.token, "nonsense", w.trader.did, 403).await;
    refused(&w.admin.token, &w.meridian, w.trader.did, 404).await;
    refused(&w.admin.token, &w.meridian, "did:test:nobody", 404).await;
    refused(&w.admin.token, &w.meridian, w.admin.did, 400).await;
    refused(&reader, &w.meridian, w.ops.did, 403).await;
    refused(&w.ops.token, &w.meridian, w.analyst.did, 403).await;
    for (path, body) in paths(&w.meridian, w.ops.did) {
        let path = path.trim_start_matches("/api/v1/admin");
        w.gw.admin("POST", path, Some(body)).await.expect(403);
    }
    let other = dry_run(&w, w.ops.did, "eth_blockNumber", json!([])).await;
    assert!(
        other.status == 400 && other.body.contains("eth_getLogs"),
        "{}",
        other.body
    );
    dry_run(&w, w.ops.did, "eth_getBalance", json!(["0x12"]))
        .await
        .expect(400);

    // V2: reads only; the answer is the member's, as far as both see it.
    let look = async |method: &str, params: Value| {
        let path = format!("/api/v1/admin/impersonate/{}/in/{}/rpc", w.ops.did, w.meridian);
        w.gw.as_user(
            &w.admin.token,
            "POST",
            &path,
            Some(json!({"method": method, "params": params, "id": 7})),
        )
        .await
    };
    let head = look("eth_chainId", json!([])).await.expect(200);
    assert_eq!(head, json!({"jsonrpc": "2.0", "id": 7, "result": "0x7a69"}));
    let denied = look("eth_sign", json!([])).await.expect(200);
    assert_eq!(denied["error"]["message"], "method not found", "{denied}");
    look("eth_sendRawTransaction", json!(["0x02"])).await.expect(400);
    look("eth_newFilter", json!([{"address": w.erc20}])).await.expect(400);
    let block = look("eth_getBlockByNumber", json!(["latest", true])).await;
    let (shown, wallet) = (block.expect(200), hex(w.ops.address()));
    assert_eq!(
        shown["result"]["transactions"][0]["from"],
        json!(Address::ZERO),
        "{shown}"
    );
    assert!(!block.body.to_lowercase().contains(&wallet));
    assert_eq!(look("eth_accounts", json!([])).await.expect(200)["result"], json!([]));

    // The reads of the explorer will be mirrored here: the way in is there, and nothing behind it.
    let get = async |path: String| w.gw.as_user(&w.admin.token, "GET", &path, None).await.status;
    let in_org = |org: &str, did: &str| format!("/api/v1/admin/impersonate/{did}/in/{org}/api/v1/explorer/blocks");
    assert_eq!(get(in_org(&w.meridian, w.ops.did)).await, 404);
    assert_eq!(get(in_org(&w.volta, w.ops.did)).await, 403);
    assert_eq!(get(in_org(&w.meridian, w.trader.did)).await, 404);
    assert_eq!(
        get(format!(
            "/api/v1/admin/impersonate/{}/api/v1/explorer/blocks",
            w.ops.did
        ))
        .await,
        400
    );
    let tree = in_org(&w.meridian, w.ops.did);
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(
            w.gw.as_user(&w.admin.token, method, &tree, None).await.status,
            405,
            "{method}"
        );
    }
    let tree = tree.trim_start_matches("/api/v1/admin").to_owned();
    assert_eq!(w.gw.admin("GET", &tree, None).await.status, 403);
    let trail = format!(
        "/audit-logs?resource_type=user&resource_id={}&action=access",
        w.ops.user_id
    );
    let trail = w.gw.admin("GET", &trail, None).await.expect(200);
    assert!(
        trail
            .as_array()
            .unwrap()
            .iter()
            .any(|entry| entry["new_value"]["impersonation"] == "view_as"),
        "{trail}"
    );
}
