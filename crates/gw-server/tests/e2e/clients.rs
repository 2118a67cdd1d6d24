//! The libraries dApp developers use, each through its whole life cycle, as they are.

use crate::{harness::Engine, world::World};
use std::process::Command;

/// Runs one script of `tests/clients`; its last line counts what passed.
async fn run(program: &str, script: &str) {
    let w = World::start(Engine::Sqlite).await;
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let program = if program.starts_with("target/") { format!("{root}{program}") } else { program.to_owned() };
    let output = Command::new(&program)
        .arg(format!("{root}tests/clients/{script}"))
        .env("GW_RPC_URL", format!("{}/rpc", w.gw.url))
        .env("GW_TOKEN", &w.ops.token)
        .env("GW_PRIVATE_KEY", format!("0x{}", crate::harness::KEYS[0]))
        .env("GW_RECIPIENT", w.analyst.address().to_string())
        .output()
        .unwrap_or_else(|e| panic!("{program}: {e}; run scripts/setup.sh"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.lines().last().is_some_and(|line| line.ends_with(" 0 failed")), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ethers() {
    run("node", "ethers.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn viem() {
    run("node", "viem.mjs").await;
}

/// Event listeners over `/rpc/ws` and over filters (decision 51).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_ethers() {
    run("node", "live-ethers.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn live_viem() {
    run("node", "live-viem.mjs").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cast() {
    run("bash", "cast.sh").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn web3_py() {
    run("target/venv/bin/python", "web3_client.py").await;
}
