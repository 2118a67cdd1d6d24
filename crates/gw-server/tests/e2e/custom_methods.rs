//! Custom methods, which are not in the built-in registry: from the operator's file to the access log (spec/20 §13).

use crate::{
    harness::{Engine, Gateway},
    world::{group, member, org},
};
use serde_json::{Value, json};

/// N1 to N4, G3, G4: custom methods of the file can be granted by name or by prefix, are forwarded only if granted, and
/// are shown to administrators.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n1_n4_custom_methods_are_granted_forwarded_and_logged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("methods.json");
    let write_file = |content: &Value| std::fs::write(&path, content.to_string()).unwrap();
    write_file(&json!({"version": 2, "namespaces": {"anvil": {
        "explicit": [{"method": "local_chain", "alias": "eth_chainId"}, {"method": "local_sha", "alias": "web3_sha3"}],
        "wildcard": {"prefix": "anvil_", "deny": ["anvil_set*", "anvil_mine"]},
    }}}));
    let name = path.to_string_lossy().into_owned();
    let settings = [
        ("EXTRA_RPC_NAMESPACES_FILE", name.as_str()),
        ("ALLOW_UNFILTERED_WILDCARDS", "true"),
    ];
    let gw = Gateway::start_with(Engine::Sqlite, &settings).await;
    let bank = org(&gw, "Bank", "bank").await;
    let plain = group(&gw, &bank, "plain", false, json!(["*"]), json!([])).await;
    let custom = group(&gw, &bank, "extra", false, json!(["LOCAL_sha", "anvil_*"]), json!([])).await;
    let plain_member = member(&gw, &bank, &plain, "did:test:plain", 0, true).await;
    let custom_member = member(&gw, &bank, &custom, "did:test:extra", 1, true).await;

    // G3, G4: names and prefixes that are not registered, or are denied by the file, are refused.
    let access = format!("/orgs/{bank}/groups/{custom}/access");
    let stored = gw.admin("GET", &access, None).await.expect(200);
    assert_eq!(stored["allowed_methods"], json!(["local_sha", "anvil_*"]), "canonical");
    for unregistered in ["local_*", "anvil_n*", "local_other", "anvil_setBalance", "trace_block"] {
        let refused = gw
            .admin("PUT", &access, Some(json!({"allowed_methods": [unregistered]})))
            .await;
        assert_eq!(refused.status, 400, "{unregistered}: {}", refused.body);
        assert!(refused.body.contains(unregistered), "{}", refused.body);
    }
    let anonymous = "/orgs/00000000-0000-0000-0000-000000000002/groups/00000000-0000-0000-0000-000000000002/access";
    assert_eq!(
        gw.admin("PUT", anonymous, Some(json!({"allowed_methods": ["local_sha"]})))
            .await
            .status,
        400,
        "A3"
    );

    // N4
    let status = gw.admin("GET", "/status", None).await.expect(200);
    assert_eq!(
        status["methods"]["extra_namespaces"],
        json!({"anvil": ["local_chain", "local_sha"]})
    );
    let wildcard = json!({"anvil": {"prefix": "anvil_", "deny": ["anvil_set*", "anvil_mine"]}});
    assert_eq!(status["methods"]["extra_wildcards"], wildcard);
    assert_eq!(
        (&status["node"]["status"], &status["proxy"]["status"]),
        (&json!("ok"), &json!("ok")),
        "{status}"
    );
    assert_eq!(status["node"]["url"], gw.node_url.trim_end_matches('/'));

    // N3: a caller whose list has the prefix gets the node's own response.
    let info = gw.result(&custom_member.token, "anvil_nodeInfo", json!([])).await;
    assert_eq!(
        info["currentBlockNumber"],
        gw.node("anvil_nodeInfo", json!([])).await["currentBlockNumber"]
    );
    assert_eq!(
        gw.result(&custom_member.token, "local_sha", json!(["0x00"])).await,
        gw.result(&plain_member.token, "web3_sha3", json!(["0x00"])).await
    );
    for (caller, method) in [
        (&plain_member, "anvil_nodeInfo"),
        (&plain_member, "local_sha"),
        (&custom_member, "anvil_setBalance"),
        (&custom_member, "ANVIL_MINE"),
        (&custom_member, "eth_chainIds"),
    ] {
        gw.rpc(&caller.token, method, json!([])).await.expect(404);
    }
    // A test request refuses a passthrough method unless the platform administrator allows writes.
    let test = json!({"jwt_token": custom_member.token, "method": "anvil_nodeInfo", "org_id": bank, "params": []});
    gw.admin("POST", "/test-request", Some(test)).await.expect(400);
    let check = json!({"user_external_id": custom_member.did, "org_id": bank, "method": "anvil_nodeInfo"});
    let check = gw.admin("POST", "/access/check", Some(check)).await.expect(200);
    assert_eq!(
        (&check["allowed"], &check["explanation"]["plan"]),
        (&json!(true), &json!("unexamined")),
        "{check}"
    );
    let rights = format!("/users/{}/effective-permissions?org=bank", custom_member.user_id);
    assert_eq!(
        gw.admin("GET", &rights, None).await.expect(200)["allowed_methods"],
        json!(["anvil_*", "local_sha"])
    );

    // L1
    let mut record = Value::Null;
    for _ in 0..100 {
        let logs = gw
            .admin("GET", "/logs?method=anvil_nodeInfo&outcome=success", None)
            .await
            .expect(200);
        record = logs["data"]
            .as_array()
            .or_else(|| logs["logs"].as_array())
            .and_then(|rows| rows.first())
            .cloned()
            .unwrap_or_default();
        if !record.is_null() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(record["matched_via"], "prefix", "{record}");

    // N1: an invalid file stops the start. One report lists all its errors.
    write_file(&json!({"version": 2, "namespaces": {"x": {
        "explicit": [{"method": "eth_sign", "alias": "eth_call"}, {"method": "x_a"}],
        "wildcard": {"prefix": "debug_"},
    }}}));
    let (code, output) = gw.run_command(&["config", "check"]);
    assert_eq!((code, output.lines().count()), (Some(78), 3), "{output}");
    assert!(
        output.contains("EXTRA_RPC_NAMESPACES_FILE: namespace `x`, method `eth_sign`"),
        "{output}"
    );
}
