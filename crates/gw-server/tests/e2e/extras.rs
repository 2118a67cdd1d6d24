//! Methods beside the registry, from the operator's file to the log (spec/20 §13).

use crate::{
    harness::{Engine, Gateway},
    world::{group, member, org},
};
use serde_json::{Value, json};

/// N1 to N4, G3, G4: what the file registers can be granted by name or by prefix, reaches the node or does not, and
/// is told to administrators.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn n1_n4_from_the_file_to_the_log() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("methods.json");
    let file = |text: &Value| std::fs::write(&path, text.to_string()).unwrap();
    file(&json!({"version": 2, "namespaces": {"anvil": {
        "explicit": [{"method": "local_chain", "alias": "eth_chainId"}, {"method": "local_sha", "alias": "web3_sha3"}],
        "wildcard": {"prefix": "anvil_", "deny": ["anvil_set*", "anvil_mine"]},
    }}}));
    let name = path.to_string_lossy().into_owned();
    let set = [
        ("EXTRA_RPC_NAMESPACES_FILE", name.as_str()),
        ("ALLOW_UNFILTERED_WILDCARDS", "true"),
    ];
    let gw = Gateway::start_with(Engine::Sqlite, &set).await;
    let bank = org(&gw, "Bank", "bank").await;
    let plain = group(&gw, &bank, "plain", false, json!(["*"]), json!([])).await;
    let extra = group(&gw, &bank, "extra", false, json!(["LOCAL_sha", "anvil_*"]), json!([])).await;
    let outside = member(&gw, &bank, &plain, "did:test:plain", 0, true).await;
    let inside = member(&gw, &bank, &extra, "did:test:extra", 1, true).await;

    // G3, G4: names and prefixes that nobody registered are refused, denied ones too.
    let access = format!("/orgs/{bank}/groups/{extra}/access");
    let shown = gw.admin("GET", &access, None).await.expect(200);
    assert_eq!(shown["allowed_methods"], json!(["local_sha", "anvil_*"]), "canonical");
    for bad in ["local_*", "anvil_n*", "local_other", "anvil_setBalance", "trace_block"] {
        let refused = gw.admin("PUT", &access, Some(json!({"allowed_methods": [bad]}))).await;
        assert_eq!(refused.status, 400, "{bad}: {}", refused.body);
        assert!(refused.body.contains(bad), "{}", refused.body);
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

    // N3: the node's own answer, for whom a list names the prefix.
    let info = gw.result(&inside.token, "anvil_nodeInfo", json!([])).await;
    assert_eq!(
        info["currentBlockNumber"],
        gw.node("anvil_nodeInfo", json!([])).await["currentBlockNumber"]
    );
    assert_eq!(
        gw.result(&inside.token, "local_sha", json!(["0x00"])).await,
        gw.result(&outside.token, "web3_sha3", json!(["0x00"])).await
    );
    for (who, method) in [
        (&outside, "anvil_nodeInfo"),
        (&outside, "local_sha"),
        (&inside, "anvil_setBalance"),
        (&inside, "ANVIL_MINE"),
        (&inside, "eth_chainIds"),
    ] {
        gw.rpc(&who.token, method, json!([])).await.expect(404);
    }
    // What passes unexamined is tried by nobody but super, and only when asked for.
    let test = json!({"jwt_token": inside.token, "method": "anvil_nodeInfo", "org_id": bank, "params": []});
    gw.admin("POST", "/test-request", Some(test)).await.expect(400);
    let check = json!({"user_external_id": inside.did, "org_id": bank, "method": "anvil_nodeInfo"});
    let check = gw.admin("POST", "/access/check", Some(check)).await.expect(200);
    assert_eq!(
        (&check["allowed"], &check["explanation"]["plan"]),
        (&json!(true), &json!("unexamined")),
        "{check}"
    );
    let rights = format!("/users/{}/effective-permissions?org=bank", inside.user_id);
    assert_eq!(
        gw.admin("GET", &rights, None).await.expect(200)["allowed_methods"],
        json!(["anvil_*", "local_sha"])
    );

    // L1
    let mut found = Value::Null;
    for _ in 0..100 {
        let logs = gw
            .admin("GET", "/logs?method=anvil_nodeInfo&outcome=success", None)
            .await
            .expect(200);
        found = logs["data"]
            .as_array()
            .or_else(|| logs["logs"].as_array())
            .and_then(|rows| rows.first())
            .cloned()
            .unwrap_or_default();
        if !found.is_null() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(found["matched_via"], "prefix", "{found}");

    // N1: a file that is wrong stops the start, all of it in one report.
    file(&json!({"version": 2, "namespaces": {"x": {
        "explicit": [{"method": "eth_sign", "alias": "eth_call"}, {"method": "x_a"}],
        "wildcard": {"prefix": "debug_"},
    }}}));
    let (code, said) = gw.command(&["config", "check"]);
    assert_eq!((code, said.lines().count()), (Some(78), 3), "{said}");
    assert!(
        said.contains("EXTRA_RPC_NAMESPACES_FILE: namespace `x`, method `eth_sign`"),
        "{said}"
    );
}
