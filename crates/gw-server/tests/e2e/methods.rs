//! Which methods each tool needs: the table of `docs/clients.md`, measured (RTO13).
//!
//! Each cell is a whole `allowed_methods`. A member of a group that lists exactly these does the task with the tool as it is;
//! the access log then shows exactly these, and metadata, which everybody may ask.

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

/// The rows of the table: the tool, and per task its methods; `None` where the tool has no such task.
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
        (cells[0].clone(), [1, 2].map(|at| methods(&cells[at])))
    };
    rows.skip(2).take_while(|line| line.starts_with('|')).map(row).collect()
}

/// How a task is done with a tool.
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
        other => panic!("the test knows no tool `{other}`"),
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

/// A tool with a member of its own, so that tools do not wait for one another.
struct Tool {
    w: Arc<World>,
    name: String,
    did: String,
    key: PrivateKeySigner,
    group: String,
    token: String,
    /// Personal URLs of the scopes `all` and `wallet`.
    urls: [String; 2],
    /// A transaction of its member to read.
    transaction: String,
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
        let joins = json!({"did": did, "group_id": group});
        let path = format!("/orgs/{}/memberships/by-did", w.meridian);
        let user = w.gw.admin("POST", &path, Some(joins)).await.expect(201)["user_id"]
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
            let wanted = json!({"scope": scope, "org_id": w.meridian});
            let made =
                w.gw.as_user(&token, "POST", "/api/v1/me/rpc-urls", Some(wanted))
                    .await
                    .expect(201);
            urls.push(made["url"].as_str().unwrap().to_owned());
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

    /// Does each task with exactly the methods of its cell; what is wrong with the cells.
    async fn measure(&mut self, cells: &[Option<BTreeSet<String>>; 2]) -> Vec<String> {
        self.answered().await;
        let mut faults = Vec::new();
        // Reading first: sending changes what is read.
        for (task, methods) in TASKS.into_iter().zip(cells) {
            let Some(methods) = methods else { continue };
            self.allow(methods).await;
            let mut done = self.run(task).await;
            if done.is_err() && task == "write" {
                // Of tools that run at once one may meet a policy that is not confirmed for two seconds (503).
                done = self.run(task).await;
            }
            let answered = self.answered().await;
            if answered != *methods || done.is_err() {
                faults.push(format!("{}, {task}: {done:?}\n  answered: {answered:?}", self.name));
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
        let said = [output.stdout, output.stderr].concat();
        if output.status.success() {
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&said).into_owned())
        }
    }

    /// The methods that were answered since the last time, metadata left out.
    async fn answered(&mut self) -> BTreeSet<String> {
        // The last record of a task is one that no tool causes.
        let (last, marker) = (
            format!("marker_{}", self.markers),
            format!("marker_{}", self.markers + 1),
        );
        self.markers += 1;
        self.w.gw.rpc(&self.token, &marker, json!([])).await;
        for _ in 0..200 {
            let path = format!("/logs?external_id={}&limit=1000", self.did);
            let logs = self.w.gw.admin("GET", &path, None).await.expect(200);
            let all = logs["data"].as_array().unwrap();
            if all.first().is_some_and(|record| record["method"] == marker.as_str()) {
                let new = all
                    .iter()
                    .skip(1)
                    .take_while(|record| record["method"] != last.as_str());
                let answered = new.filter(|record| record["status_code"] == 200);
                let names = answered.map(|record| record["method"].as_str().unwrap().to_owned());
                return names
                    .filter(|name| !METADATA.contains(&&**name) && !name.contains(' '))
                    .collect();
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
        panic!("{}: the records were not listed within five seconds", self.name);
    }
}

/// RTO13: each cell is enough, and nothing in it is needless.
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
    let mut measured = Vec::new();
    for (number, (name, cells)) in (0..).zip(rows) {
        let mut tool = Tool::new(&w, number, &name).await;
        measured.push(async move { tool.measure(&cells).await });
    }
    let faults = futures_util::future::join_all(measured).await.concat();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
