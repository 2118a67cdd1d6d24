//! Unmodified client libraries and tools of dApp developers, each through deployment, sends, reads and events.

use crate::{harness::Engine, world::World};
use serde_json::json;
use std::process::Command;

/// Runs one script of `tests/clients` in a new world. The last line of its output counts passed and failed checks.
async fn run(program: &str, script: &str) {
    run_in(&World::start(Engine::Sqlite).await, "wallet", program, script).await;
}

/// Like [`run`], in an existing world and with a personal URL of this scope.
async fn run_in(w: &World, scope: &str, program: &str, script: &str) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
    let program = if program.starts_with("target/") {
        format!("{root}{program}")
    } else {
        program.to_owned()
    };
    let mut command = Command::new(&program);
    command.arg(format!("{root}tests/clients/{script}"));
    finish(w, scope, command).await;
}

/// Runs a client with the environment that `tests/clients/rpc.mjs` reads, and checks the last line of its output.
async fn finish(w: &World, scope: &str, mut command: Command) {
    let created =
        w.gw.as_user(
            &w.ops.token,
            "POST",
            "/api/v1/me/rpc-urls",
            Some(json!({"scope": scope})),
        )
        .await
        .expect(201);
    let output = command
        .env("GW_RPC_URL", format!("{}/rpc", w.gw.url))
        .env("GW_PERSONAL_URL", created["url"].as_str().unwrap())
        .env("GW_CONTRACT", w.erc20.to_string())
        .env("GW_TOKEN", &w.ops.token)
        .env("GW_PRIVATE_KEY", format!("0x{}", crate::harness::KEYS[0]))
        .env("GW_RECIPIENT", w.analyst.address().to_string())
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}; run scripts/setup.sh"));
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{stdout}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        stdout.lines().last().is_some_and(|line| line.ends_with(" 0 failed")),
        "{stdout}"
    );
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

/// A browser wallet uses no token but a personal URL of the default scope (HD17, decision 51).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd17_metamask() {
    run("node", "metamask.mjs").await;
}

/// `forge script --broadcast` uses a personal URL, `forge create` a header. Foundry first reads the code of the
/// deterministic deployment proxy, which the test registers as shared infrastructure, as an operator does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forge() {
    let w = World::start(Engine::Sqlite).await;
    let proxy =
        json!({"address": "0x4e59b44847b379578588920ca78fbf26c0b4956c", "name": "Deterministic deployment proxy"});
    w.gw.admin("POST", "/shared-infrastructure", Some(proxy))
        .await
        .expect(201);
    run_in(&w, "all", "bash", "forge.sh").await;
}

/// Hardhat authenticates with a header, and deploys and calls artefacts through its own provider.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hardhat() {
    let nodes = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/nodes");
    let mut command = Command::new("./hardhat");
    command
        .args(["--config", "client.config.js", "run", "--no-compile", "client.mjs"])
        .current_dir(nodes);
    finish(&World::start(Engine::Sqlite).await, "wallet", command).await;
}
