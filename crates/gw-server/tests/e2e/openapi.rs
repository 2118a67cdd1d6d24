//! The API document works with tools: validators accept it, and a client generated from it compiles and works.

use crate::{
    harness::{ADMIN_TOKEN, Engine, Gateway, KEYS, Response},
    world::World,
};
use serde_json::{Value, json};
use std::process::Command;

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/openapi");

/// What the API document says about the responses of operations.
#[derive(Debug)]
pub(crate) struct Described(Value);

impl Described {
    pub(crate) async fn by(gw: &Gateway) -> Self {
        Self(gw.request("GET", "/openapi.json", &[], None).await.expect(200))
    }

    /// Checks that the operation describes the status of a response, and the media type of its body.
    #[track_caller]
    pub(crate) fn check(&self, method: &str, path: &str, response: &Response) {
        if let Some(fault) = self.fault(method, path, response) {
            panic!("{method} {path} does not describe {fault}: {}", response.body);
        }
    }

    fn fault(&self, method: &str, path: &str, response: &Response) -> Option<String> {
        let status = response.status.to_string();
        let mut described = &self.0["paths"][path][method.to_lowercase()]["responses"][&status];
        if let Some(shared) = described["$ref"].as_str() {
            described = self.0.pointer(shared.trim_start_matches('#')).unwrap();
        }
        if described.is_null() {
            return Some(status);
        }
        if response.body.is_empty() {
            return None;
        }
        let media = response
            .headers
            .get("content-type")
            .map(|media| media.to_str().unwrap());
        let media = media.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        described["content"]
            .get(media)
            .is_none()
            .then(|| format!("{status} as `{media}`"))
    }
}

#[test]
fn a_response_that_is_not_described_is_a_fault() {
    let content = json!({"application/json": {}});
    let document = json!({
        "paths": {"/x": {"get": {"responses": {
            "200": {"content": content}, "404": {"$ref": "#/components/responses/NotFound"}, "204": {},
        }}}},
        "components": {"responses": {"NotFound": {"content": content}}},
    });
    let described = Described(document);
    let response = |status: u16, media: &str, body: &str| Response {
        status,
        headers: [(http::header::CONTENT_TYPE, media.parse().unwrap())]
            .into_iter()
            .collect(),
        body: body.to_owned(),
    };
    let fault = |response| described.fault("GET", "/x", &response);
    assert_eq!(fault(response(200, "application/json; charset=utf-8", "{}")), None);
    assert_eq!(fault(response(404, "application/json", "{}")), None);
    assert_eq!(fault(response(204, "", "")), None);
    assert_eq!(
        fault(response(200, "text/plain", "x")).as_deref(),
        Some("200 as `text/plain`")
    );
    assert_eq!(fault(response(403, "application/json", "{}")).as_deref(), Some("403"));
}

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
        problems.contains("6 problems are explicitly ignored") && !problems.contains("You have"),
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
        .env("GW_ORG_ADMIN", &w.admin.token)
        .env("GW_DID", w.ops.did)
        .env("GW_PRIVATE_KEY", format!("0x{}", KEYS[6]))
        .env("GW_ORG", &w.meridian)
        .env("GW_CONTRACT", w.erc20.to_string());
    let report = run(&mut client);
    assert!(
        report.lines().last().is_some_and(|line| line == "34 passed, 0 failed"),
        "{report}"
    );
}
