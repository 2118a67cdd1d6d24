//! The API document works with tools: validators accept it, and a client generated from it compiles and works.

use crate::{
    harness::{ADMIN_TOKEN, Engine, KEYS},
    world::World,
};
use std::process::Command;

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/openapi");

fn run(command: &mut Command) -> String {
    let output = command
        .current_dir(DIRECTORY)
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}; run scripts/setup.sh"));
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{command:?}: {text}");
    text
}

fn node(tool: &str, arguments: &[&str]) -> String {
    run(Command::new("node").arg(format!("node_modules/{tool}")).args(arguments))
}

#[test]
fn the_validators_accept_the_api_document() {
    let validator = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../target/venv/bin/openapi-spec-validator"
    );
    assert!(run(Command::new(validator).arg("../../docs/openapi.json")).contains("OK"));
    let lint = [
        "lint",
        "--config",
        "redocly.yaml",
        "--max-problems",
        "1000",
        "../../docs/openapi.json",
    ];
    let problems = node("@redocly/cli/bin/cli.js", &lint);
    assert!(
        problems.contains("2 problems are explicitly ignored") && !problems.contains("You have"),
        "{problems}"
    );
}

/// The generated client makes ordinary calls, single and in batches.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_generated_client_compiles_and_works() {
    let w = World::start(Engine::Sqlite).await;
    node(
        "openapi-typescript/bin/cli.js",
        &["../../docs/openapi.json", "-o", "api.d.ts"],
    );
    node("typescript/bin/tsc", &["-p", "."]);
    let tokens = w.gw.login_pair(w.ops.did).await;
    let mut client = Command::new("node");
    client
        .arg("build/client.js")
        .env("GW_URL", &w.gw.url)
        .env("GW_TOKEN", tokens["access_token"].as_str().unwrap())
        .env("GW_REFRESH", tokens["refresh_token"].as_str().unwrap())
        .env("GW_ADMIN", ADMIN_TOKEN)
        .env("GW_PRIVATE_KEY", format!("0x{}", KEYS[6]))
        .env("GW_ORG", &w.meridian)
        .env("GW_CONTRACT", w.erc20.to_string());
    let report = run(&mut client);
    assert!(
        report.lines().last().is_some_and(|line| line == "21 passed, 0 failed"),
        "{report}"
    );
}
