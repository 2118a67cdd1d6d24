//! Which methods each tool needs: the table of `docs/clients.md`, measured (RTO13).
//!
//! Each cell of the table is a complete `allowed_methods` list. A member of a group with exactly this list completes
//! the task with the unmodified tool. The access log must then show exactly these methods and metadata methods, which
//! every caller may call.

use crate::{
    harness::{Engine, key},
    world::{World, grant, group, transfer},
};
use alloy_primitives::{U256, hex};
use alloy_signer_local::PrivateKeySigner;
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const TASKS: [&str; 2] = ["read", "write"];
const METADATA: [&str; 6] = [
    "eth_blockNumber",
    "eth_chainId",
    "eth_gasPrice",
    "net_version",
    "net_listening",
    "web3_clientVersion",
];

/// The rows of the table: the tool and, for each of [`TASKS`], its methods. `None`: the tool does not do the task.
fn table() -> Vec<(String, [Option<BTreeSet<String>>; 2])> {
    let text = std::fs::read_to_string(format!("{ROOT}/docs/clients.md")).unwrap();
    let rows = text
        .lines()
        .skip_while(|line| !line.starts_with("| Tool | Reading | Sending and deploying |"));
    let cells = |line: &str| {
        line.trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect::<Vec<_>>()
    };
    let methods = |cell: &String| {
        (cell != "–").then(|| {
            cell.split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect::<BTreeSet<_>>()
        })
    };
    let row = |line: &str| {
        let cells = cells(line);
        (cells[0].clone(), [1, 2].map(|column| methods(&cells[column])))
    };
    rows.skip(2).take_while(|line| line.starts_with('|')).map(row).collect()
}

/// The command that does a task with a tool.
fn command(tool: &str, task: &str) -> Command {
    let clients = format!("{ROOT}/tests/clients");
    let words: Vec<String> = match tool {
        "ethers" | "viem" => ["node", "methods.mjs", tool, task].map(str::to_owned).into(),
        "cast" | "forge create" | "forge script" => ["bash", "methods.sh", tool, task].map(str::to_owned).into(),
        "web3.py" => [&format!("{ROOT}/target/venv/bin/python"), "methods.py", task]
            .map(str::to_owned)
            .into(),
        "Hardhat" => [
            "./hardhat",
            "--config",
            "client.config.js",
            "run",
            "--no-compile",
            "methods.mjs",
        ]
        .map(str::to_owned)
        .into(),
        "MetaMask" => ["node", "metamask.mjs"].map(str::to_owned).into(),
        unknown => panic!("no command for the tool `{unknown}`: add it to this test"),
    };
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(if tool == "Hardhat" {
        format!("{ROOT}/tests/nodes")
    } else {
        clients
    });
    command.env("GW_TASK", task);
    command
}

/// A tool and its own user, so that tools can run concurrently.
struct Tool {
    w: Arc<World>,
    name: String,
    did: String,
    key: PrivateKeySigner,
    group: String,
    token: String,
    /// Personal URLs of the scopes `all` and `wallet`.
    urls: [String; 2],
    /// The hash of a transaction that the user may read.
    transaction: String,
    /// The number of marker calls made so far; see [`Self::successful_methods`].
    markers: usize,
}

impl Tool {
    async fn new(w: &Arc<World>, number: u8, name: &str) -> Self {
        let did = format!("did:test:tool{number}");
        let key = PrivateKeySigner::from_bytes(&[number + 1; 32].into()).unwrap();
        w.gw.node("anvil_setBalance", json!([key.address(), "0xde0b6b3a7640000"]))
            .await;
        let group = group(
            &w.gw,
            &w.meridian,
            &format!("tool-{number}"),
            false,
            json!([]),
            json!(["deploy"]),
        )
        .await;
        let membership = json!({"did": did, "group_id": group});
        let path = format!("/orgs/{}/memberships/by-did", w.meridian);
        let user = w.gw.admin("POST", &path, Some(membership)).await.expect(201)["user_id"]
            .as_str()
            .unwrap()
            .to_owned();
        w.gw.admin("PUT", &format!("/users/{user}"), Some(json!({"kyc": true})))
            .await
            .expect(200);
        let token = w.gw.login(&did).await;
        w.gw.link(&token, &key).await;
        grant(&w.gw, &w.meridian, w.erc20, &group, Value::Null).await;
        let input = transfer(key.address(), 100);
        let transaction =
            w.gw.send(&w.ops.token, &w.ops.key, Some(w.erc20), U256::ZERO, input)
                .await
                .to_string();
        let mut urls = Vec::new();
        for scope in ["all", "wallet"] {
            let request = json!({"scope": scope, "org_id": w.meridian});
            let created =
                w.gw.as_user(&token, "POST", "/api/v1/me/rpc-urls", Some(request))
                    .await
                    .expect(201);
            urls.push(created["url"].as_str().unwrap().to_owned());
        }
        let (w, name, urls) = (Arc::clone(w), name.to_owned(), urls.try_into().unwrap());
        Self {
            w,
            name,
            did,
            key,
            group,
            token,
            urls,
            transaction,
            markers: 0,
        }
    }

    async fn allow(&self, methods: &BTreeSet<String>) {
        let path = format!("/orgs/{}/groups/{}/access", self.w.meridian, self.group);
        let access = json!({"allowed_methods": methods, "claims": ["deploy"]});
        self.w.gw.admin("PUT", &path, Some(access)).await.expect(200);
    }

    /// Does each task with exactly the methods of its cell. Returns a description of each cell that is wrong.
    async fn measure(&mut self, cells: &[Option<BTreeSet<String>>; 2]) -> Vec<String> {
        self.successful_methods().await;
        let mut faults = Vec::new();
        // The read task runs first, because the write task changes the data that it reads.
        for (task, methods) in TASKS.into_iter().zip(cells) {
            let Some(methods) = methods else { continue };
            self.allow(methods).await;
            let mut result = self.run(task).await;
            if result.is_err() && task == "write" {
                // Tools run concurrently: a call fails with 503 if the policy was not confirmed for two seconds. Retry
                // once.
                result = self.run(task).await;
            }
            let called = self.successful_methods().await;
            if called != *methods || result.is_err() {
                faults.push(format!("{}, {task}: {result:?}\n  called: {called:?}", self.name));
            }
        }
        faults
    }

    async fn run(&self, task: &str) -> Result<(), String> {
        let mut command = command(&self.name, task);
        command
            .env("GW_RPC_URL", format!("{}/rpc", self.w.gw.url))
            .env("GW_PERSONAL_URL", &self.urls[usize::from(self.name == "MetaMask")])
            .env("GW_CONTRACT", self.w.erc20.to_string())
            .env("GW_TRANSACTION", &self.transaction)
            .env("GW_TOKEN", &self.token)
            .env("GW_PRIVATE_KEY", hex::encode_prefixed(self.key.to_bytes()))
            .env("GW_RECIPIENT", key(1).address().to_string())
            .stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap();
        let output = output.unwrap_or_else(|error| panic!("{}: {error}; run scripts/setup.sh", self.name));
        let response = [output.stdout, output.stderr].concat();
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&response).into_owned())
        }
    }

    /// The methods of successful calls since the previous call of this function, without metadata methods.
    async fn successful_methods(&mut self) -> BTreeSet<String> {
        // A call of a method that no tool uses marks the end of a task in the log.
        let (previous_marker, marker) = (
            format!("marker_{}", self.markers),
            format!("marker_{}", self.markers + 1),
        );
        self.markers += 1;
        self.w.gw.rpc(&self.token, &marker, json!([])).await;
        for _ in 0..200 {
            let path = format!("/logs?external_id={}&limit=1000", self.did);
            let logs = self.w.gw.admin("GET", &path, None).await.expect(200);
            let records = logs["data"].as_array().unwrap();
            if records
                .first()
                .is_some_and(|record| record["method"] == marker.as_str())
            {
                let new = records
                    .iter()
                    .skip(1)
                    .take_while(|record| record["method"] != previous_marker.as_str());
                let successful = new.filter(|record| record["status_code"] == 200);
                let names = successful.map(|record| record["method"].as_str().unwrap().to_owned());
                return names
                    .filter(|name| !METADATA.contains(&&**name) && !name.contains(' '))
                    .collect();
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{}: the records were not listed within five seconds", self.name);
    }
}

/// RTO13: each cell lists every method that the task needs, and no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rto13_each_tool_needs_the_methods_of_the_table() {
    let rows = table();
    let tools: Vec<&str> = rows.iter().map(|(tool, _)| tool.as_str()).collect();
    assert_eq!(
        tools,
        [
            "cast",
            "forge create",
            "forge script",
            "ethers",
            "viem",
            "web3.py",
            "Hardhat",
            "MetaMask"
        ]
    );
    let w = Arc::new(World::start(Engine::Sqlite).await);
    let proxy = json!({"address": "0x4e59b44847b379578588920ca78fbf26c0b4956c", "name": "Deployment proxy"});
    w.gw.admin("POST", "/shared-infrastructure", Some(proxy))
        .await
        .expect(201);
    let mut measurements = Vec::new();
    for (number, (name, cells)) in (0..).zip(rows) {
        let mut tool = Tool::new(&w, number, &name).await;
        measurements.push(async move { tool.measure(&cells).await });
    }
    let faults = futures_util::future::join_all(measurements).await.concat();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
