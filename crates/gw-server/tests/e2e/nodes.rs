//! The nodes behind the gateway: several nodes of one chain, and nodes of different vendors.

use crate::{
    harness::{Engine, Gateway, MAX_POLLS, Response, key},
    world::{World, balance_of, group, member, org, transfer},
};
use alloy_primitives::U256;
use gw_testkit::{Hardhat, Relay, anvil::anvil};
use serde_json::{Value, json};
use std::time::Duration;

async fn nodes(w: &World) -> Value {
    w.gw.request("GET", "/ready", &[], None).await.expect(200)["nodes"].clone()
}

/// One real node is reached through two relays. When the first relay is cut, reads, traces, sends and the validation of
/// mined blocks continue through the second one, and no caller sees an older block.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_traces_and_sends_fail_over_to_another_node() {
    let anvil = anvil();
    let (mut first, second) = (Relay::to(anvil.url()).await, Relay::to(anvil.url()).await);
    let (direct, urls) = (anvil.url().to_owned(), format!("{},{}", first.url(), second.url()));
    let w = World::seed(Gateway::start_with_node(Engine::Sqlite, &[], anvil, &direct, &urls).await).await;
    let before = nodes(&w).await;
    assert_eq!(
        (before[0]["active"].clone(), before[1]["active"].clone()),
        (json!(true), json!(false)),
        "{before}"
    );
    assert_eq!(
        (before[0]["tracing"].clone(), before[1]["state"].clone()),
        (json!("batch"), json!("ok")),
        "{before}"
    );
    let block_number = w.gw.result(&w.ops.token, "eth_blockNumber", json!([])).await;
    first.cut().await;
    // The next call needs a trace and succeeds.
    let response = w.call(&w.ops, balance_of(w.ops.address())).await;
    assert_eq!(
        (response.status, response.json().get("error")),
        (200, None),
        "{}",
        response.body
    );
    assert_eq!(
        w.gw.result(&w.ops.token, "eth_blockNumber", json!([])).await,
        block_number
    );
    w.gw.send(
        &w.ops.token,
        &w.ops.key,
        Some(w.erc20),
        U256::ZERO,
        transfer(w.analyst.address(), 1),
    )
    .await;
    let after = nodes(&w).await;
    assert_eq!(
        (after[0]["state"].clone(), after[1]["active"].clone()),
        (json!("down"), json!(true)),
        "{after}"
    );
    // Readiness shows neither addresses nor ports of nodes.
    assert!(
        !after.to_string().contains("127.0.0.1") && !after.to_string().contains("http"),
        "{after}"
    );
    let metrics = w.gw.request("GET", "/metrics", &[], None).await.body;
    for line in [
        "ledger_gateway_node_failovers_total 1",
        r#"ledger_gateway_node_active{node="2"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    let hidden =
        w.gw.request("GET", "/ready", &[("x-forwarded-for", "198.51.100.9")], None)
            .await;
    assert!(!hidden.body.contains("nodes"), "{}", hidden.body);
}

/// Hardhat 3 has `muxTracer`, cannot trace whole blocks, and runs no call above the gas limit of a transaction.
/// Deployments, sends, calls, estimates and traces work nevertheless.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hardhat_3_supports_every_feature() {
    let node = Hardhat::Three.start();
    let url = node.url().to_owned();
    // The fixture deploys, calls and sends through the gateway, which validates each transaction again once it is
    // mined.
    let w = World::seed(Gateway::start_with_node(Engine::Sqlite, &[], node, &url, &url).await).await;
    let state = nodes(&w).await;
    assert_eq!(
        (state[0]["tracing"].clone(), state[0]["state"].clone()),
        (json!("mux"), json!("ok")),
        "{state}"
    );
    let read = w.call(&w.analyst, balance_of(w.analyst.address())).await;
    let balance = read.json()["result"]
        .as_str()
        .and_then(|word| word.parse::<U256>().ok());
    assert_eq!(balance, Some(U256::from(1000)), "{}", read.body);
    assert_eq!(w.call(&w.trader, balance_of(w.analyst.address())).await.status, 404);
    let input = transfer(w.analyst.address(), 1);
    let call = json!([{"from": w.ops.address(), "to": w.erc20, "data": input}]);
    let gas = w.gw.result(&w.ops.token, "eth_estimateGas", call).await;
    let gas = gas.as_str().and_then(|gas| gas.parse::<U256>().ok());
    assert!(
        gas.is_some_and(|gas| gas > U256::from(30_000) && gas < U256::from(100_000)),
        "{gas:?}"
    );
    let hash =
        w.gw.send(&w.ops.token, &w.ops.key, Some(w.erc20), U256::ZERO, input)
            .await;
    let receipt =
        w.gw.result(&w.ops.token, "eth_getTransactionReceipt", json!([hash]))
            .await;
    assert_eq!(
        (receipt["status"].clone(), receipt["logs"].as_array().map(Vec::len)),
        (json!("0x1"), Some(1))
    );
    let tree =
        w.gw.result(
            &w.ops.token,
            "debug_traceTransaction",
            json!([hash, {"tracer": "callTracer"}]),
        )
        .await;
    assert_eq!(tree["type"], json!("CALL"), "{tree}");
    let logs = json!([{"address": w.erc20, "fromBlock": "0x0", "toBlock": "latest"}]);
    assert!(
        w.gw.result(&w.ops.token, "eth_getLogs", logs)
            .await
            .as_array()
            .is_some_and(|rows| rows.len() >= 2)
    );
}

/// X11: Hardhat 2 has no named tracer. Calls that need a trace are refused, other calls are served, and readiness shows
/// that tracing is down.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x11_hardhat_2_serves_calls_that_need_no_trace() {
    let node = Hardhat::Two.start();
    let url = node.url().to_owned();
    let gw = Gateway::launch_with_node(Engine::Sqlite, &[], node, &url, &url);
    let ready = wait_until_served(&gw).await;
    assert_eq!(ready.status, 503);
    let ready = ready.json();
    assert_eq!(
        (
            ready["dependencies"]["node"].clone(),
            ready["dependencies"]["tracing"].clone()
        ),
        (json!("ok"), json!("down")),
        "{ready}"
    );
    assert_eq!(
        (ready["nodes"][0]["state"].clone(), ready["nodes"][0]["tracing"].clone()),
        (json!("ok"), json!("none"))
    );
    let bank = org(&gw, "Meridian Bank", "meridian").await;
    let ops_group = group(&gw, &bank, "ops", false, json!(["*"]), json!(["deploy"])).await;
    let ops = member(&gw, &bank, &ops_group, "did:test:ops", 0, true).await;
    for (method, params) in [
        ("eth_blockNumber", json!([])),
        ("eth_getBalance", json!([ops.address(), "latest"])),
        ("eth_getTransactionCount", json!([ops.address(), "pending"])),
        ("eth_getBlockByNumber", json!(["latest", false])),
        ("eth_feeHistory", json!(["0x1", "latest", []])),
    ] {
        gw.result(&ops.token, method, params).await;
    }
    let before = gw.node("eth_blockNumber", json!([])).await;
    let (_, raw) = gw
        .sign(
            &ops.key,
            Some(key(4).address()),
            U256::from(1),
            alloy_primitives::Bytes::new(),
        )
        .await;
    let creation = json!([{"from": ops.address(), "data": "0x6001600c60003960016000f300"}]);
    for (method, params) in [("eth_sendRawTransaction", json!([raw])), ("eth_estimateGas", creation)] {
        let refused = gw.rpc(&ops.token, method, params).await;
        assert_eq!(
            (refused.status, refused.json()["error"]["code"].clone()),
            (503, json!(-32002)),
            "{}",
            refused.body
        );
    }
    assert_eq!(
        gw.node("eth_blockNumber", json!([])).await,
        before,
        "nothing was forwarded"
    );
}

/// The readiness response once the admin API responds. The gateway itself never becomes ready.
async fn wait_until_served(gw: &Gateway) -> Response {
    for _ in 0..MAX_POLLS {
        let request = http::Request::get(format!("{}/ready", gw.url))
            .body(http_body_util::Full::default())
            .unwrap();
        if gw.http.request(request).await.is_ok() {
            let ready = gw.request("GET", "/ready", &[], None).await;
            let orgs = gw.admin("GET", "/orgs", None).await;
            if orgs.status == 200 {
                return ready;
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("the gateway never served the admin API");
}

/// G1: the key that encrypts the groups' upstream keys is rotated, and `doctor` reports when the previous key is no
/// longer needed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn g1_encryption_keys_are_rotated() {
    const CURRENT: &str = "RPC_API_KEY_ENCRYPTION_KEY";
    const PREVIOUS: &str = "RPC_API_KEY_ENCRYPTION_KEY_PREVIOUS";
    let (first, second, third) = ("11".repeat(32), "22".repeat(32), "33".repeat(32));
    let mut gw = Gateway::start_with(Engine::Sqlite, &[(CURRENT, &first)]).await;
    let bank = org(&gw, "Meridian Bank", "meridian").await;
    let keyed = group(&gw, &bank, "keyed", false, json!(["*"]), json!([])).await;
    let access = format!("/orgs/{bank}/groups/{keyed}/access");
    let with_key = |key: &str| json!({"allowed_methods": ["*"], "claims": [], "rpc_api_key": key});
    let stored = gw
        .admin("PUT", &access, Some(with_key("sk-upstream-0123456789")))
        .await
        .expect(200);
    let teller = member(&gw, &bank, &keyed, "did:test:teller", 0, true).await;
    let read_block = async |gw: &Gateway| {
        gw.rpc(&teller.token, "eth_getBlockByNumber", json!(["latest", false]))
            .await
    };
    read_block(&gw).await.expect(200);

    gw.restart_with(&[(CURRENT, &second)]).await;
    assert_eq!(
        read_block(&gw).await.status,
        502,
        "a key that cannot be decrypted is not replaced by another key"
    );
    gw.process.kill();
    let (code, output) = gw.run_command(&["doctor"]);
    assert!(
        code != Some(0) && output.contains(&format!("does not decrypt the keys of these groups: {keyed}")),
        "{output}"
    );

    gw.restart_with(&[(PREVIOUS, &first)]).await;
    read_block(&gw).await.expect(200);
    gw.process.kill();
    let (_, output) = gw.run_command(&["doctor"]);
    assert!(
        output.contains(&format!("{PREVIOUS} is still needed for these groups: {keyed}")),
        "{output}"
    );

    // Each change of the access encrypts and stores the key again.
    gw.restart().await;
    let mask = stored["rpc_api_key"].as_str().unwrap();
    let kept = gw.admin("PUT", &access, Some(with_key(mask))).await.expect(200);
    assert_eq!(kept["rpc_api_key_hint"], stored["rpc_api_key_hint"], "{kept}");
    gw.process.kill();
    let (_, output) = gw.run_command(&["doctor"]);
    assert!(
        output.contains("upstream keys of groups: can be decrypted\n"),
        "{output}"
    );
    gw.restart_with(&[(PREVIOUS, &third)]).await;
    read_block(&gw).await.expect(200);
}
