//! What the gateway stands in front of: several nodes of one chain, and nodes of several makes.

use crate::{
    harness::{Engine, Gateway},
    world::{World, balance_of, transfer},
};
use alloy_primitives::U256;
use gw_testkit::{Relay, anvil::anvil};
use serde_json::{Value, json};

async fn nodes(w: &World) -> Value {
    w.gw.request("GET", "/ready", &[], None).await.expect(200)["nodes"].clone()
}

/// A real node behind two ways, of which the first is cut in the midst of everything: reads, traces, sends and what is
/// mined go on through the second one, and nobody sees an older block.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_node_takes_over_reads_traces_and_sends() {
    let anvil = anvil();
    let (mut one, two) = (Relay::to(anvil.url()).await, Relay::to(anvil.url()).await);
    let (direct, urls) = (anvil.url().to_owned(), format!("{},{}", one.url(), two.url()));
    let w = World::on(Gateway::start_on(Engine::Sqlite, &[], anvil, &direct, &urls).await).await;
    let before = nodes(&w).await;
    assert_eq!((before[0]["active"].clone(), before[1]["active"].clone()), (json!(true), json!(false)), "{before}");
    assert_eq!((before[0]["tracing"].clone(), before[1]["state"].clone()), (json!("batch"), json!("ok")), "{before}");
    let shown = w.gw.result(&w.ops.token, "eth_blockNumber", json!([])).await;
    one.cut().await;
    // The very next call, a judged trace, is answered.
    let said = w.call(&w.ops, balance_of(w.ops.address())).await;
    assert_eq!((said.status, said.json().get("error")), (200, None), "{}", said.body);
    assert_eq!(w.gw.result(&w.ops.token, "eth_blockNumber", json!([])).await, shown);
    w.gw.send(&w.ops.token, &w.ops.key, Some(w.erc20), U256::ZERO, transfer(w.analyst.address(), 1)).await;
    let after = nodes(&w).await;
    assert_eq!((after[0]["state"].clone(), after[1]["active"].clone()), (json!("down"), json!(true)), "{after}");
    // Neither addresses nor ports of nodes are told.
    assert!(!after.to_string().contains("127.0.0.1") && !after.to_string().contains("http"), "{after}");
    let metrics = w.gw.request("GET", "/metrics", &[], None).await.body;
    for line in ["ledger_gateway_node_failovers_total 1", r#"ledger_gateway_node_active{node="2"} 1"#] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    let hidden = w.gw.request("GET", "/ready", &[("x-forwarded-for", "198.51.100.9")], None).await;
    assert!(!hidden.body.contains("nodes"), "{}", hidden.body);
}
