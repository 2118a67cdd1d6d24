//! The explorer in the demo: the same blocks as three viewers.

use super::{
    client::{As, Client},
    parts::Running,
    seed::{Scene, number},
    tour::{self, VIEWERS},
};
use anyhow::Context as _;
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};
use tokio::time::{Instant, sleep};

/// How long the explorer may take to index the blocks of the demo.
const INDEX_TIMEOUT: Duration = Duration::from_secs(30);
/// The blocks that the tour prints.
const SHOWN: usize = 6;

/// Every viewer gets the same blocks, with the count of the viewer's own transactions. The other bank's trader sees no
/// transaction that ops sees.
pub(super) async fn serves_each_viewer(running: &Running, scene: &Scene) -> anyhow::Result<()> {
    let client = Client::new(&running.gateway);
    await_index(running, &client).await?;
    let mut views = Vec::new();
    for viewer in VIEWERS {
        let bearer = As::Bearer(scene.bearer(viewer)?);
        let hashes = members(&rows(&client, bearer, "/blocks?limit=100").await?, "hash");
        let list = list(&client, bearer, "/transactions?limit=100").await?;
        let transactions = members(&data(&list)?, "hash");
        anyhow::ensure!(list.get("total") == Some(&json!(transactions.len())), "{list}");
        views.push((hashes, transactions));
    }
    let [(blocks, ops), (analyst_blocks, analyst), (trader_blocks, trader)] = views.as_slice() else {
        anyhow::bail!("three viewers are expected");
    };
    anyhow::ensure!(
        blocks == analyst_blocks && blocks == trader_blocks,
        "the viewers see different blocks"
    );
    anyhow::ensure!(
        !ops.is_empty() && analyst.is_subset(ops),
        "ops does not see the bank's transactions"
    );
    anyhow::ensure!(ops.is_disjoint(trader), "the trader sees the other bank's transactions");
    Ok(())
}

/// Prints the newest blocks with the number of transactions that each viewer sees.
pub(super) async fn print_blocks(running: &Running, scene: &Scene) -> anyhow::Result<()> {
    let client = Client::new(&running.gateway);
    await_index(running, &client).await?;
    tour::say("\nThe same blocks, three viewers: how many transactions does … see?\n");
    tour::say(format_args!("  {:22}", ""));
    let mut views = Vec::new();
    for viewer in VIEWERS {
        tour::say(format_args!("{:>20}", viewer.title()));
        let bearer = As::Bearer(scene.bearer(viewer)?);
        views.push(rows(&client, bearer, &format!("/blocks?limit={SHOWN}")).await?);
    }
    for (index, block) in views.first().into_iter().flatten().enumerate() {
        let name = format!("block {}", block.get("number").unwrap_or(&Value::Null));
        tour::say(format_args!("\n  {name:22}"));
        for view in &views {
            let count = view.get(index).and_then(|block| block.get("transactionCount"));
            tour::say(format_args!("{:>20}", count.unwrap_or(&Value::Null).to_string()));
        }
    }
    tour::say("\n");
    Ok(())
}

/// Waits until the explorer shows the newest block of the node.
pub(super) async fn await_index(running: &Running, client: &Client) -> anyhow::Result<()> {
    let node = Client::new(&running.node);
    let newest = number(&node.result(As::Nobody, "/", "eth_blockNumber", json!([])).await?)?;
    let start = Instant::now();
    loop {
        let response = client.get(As::Nobody, "/api/v1/explorer/blocks/latest/number").await?;
        let shown = response.json().get("number").and_then(Value::as_u64);
        if shown.is_some_and(|shown| shown >= newest) {
            return Ok(());
        }
        anyhow::ensure!(
            start.elapsed() < INDEX_TIMEOUT,
            "the explorer does not show block {newest}: HTTP {}: {}",
            response.status.as_u16(),
            response.text
        );
        sleep(Duration::from_millis(100)).await;
    }
}

async fn list(client: &Client, viewer: As<'_>, path: &str) -> anyhow::Result<Value> {
    let response = client.get(viewer, &format!("/api/v1/explorer{path}")).await?;
    response.expect_success("the explorer")
}

pub(super) async fn rows(client: &Client, viewer: As<'_>, path: &str) -> anyhow::Result<Vec<Value>> {
    data(&list(client, viewer, path).await?)
}

fn data(list: &Value) -> anyhow::Result<Vec<Value>> {
    let rows = list.get("data").and_then(Value::as_array);
    rows.cloned().context("the answer is not a list")
}

fn members(rows: &[Value], name: &str) -> BTreeSet<String> {
    let members = rows.iter().filter_map(|row| row.get(name)?.as_str());
    members.map(str::to_owned).collect()
}
