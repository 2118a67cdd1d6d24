//! The indexer as a process of its own, its read API, direct mode on it, and the commands on its database (X1 to X6).

use crate::process::{self, Response, Serving, command, request, stderr};
use gw_testkit::{anvil::Anvil, anvil::anvil, port, postgres};
use serde_json::{Value, json};
use std::{
    fs::File,
    process::{Child, Command},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// Limit for every wait.
const TIMEOUT: Duration = Duration::from_secs(90);
const API: &str = "/api/v1/explorer";
/// Emits the `Transfer` of an ERC-20 token from 0xaa to 0xbb with the value 7, and becomes a contract of one byte.
const TOKEN: &str = "0x600760005260bb60aa7fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef60206000a3\
                     60016000f3";

/// A subcommand of the binary that listens on a port, killed when it is dropped.
struct Running {
    process: Child,
    port: u16,
    dir: TempDir,
}

impl Running {
    fn start(subcommand: &str, settings: &[(&str, &str)]) -> Self {
        let (dir, port) = (tempfile::tempdir().expect("a directory"), port::reserve());
        let out = |name: &str| File::create(dir.path().join(name)).expect("a log");
        let mut command = command(&[subcommand], settings);
        command
            .env("PORT", port.to_string())
            .stdout(out("stdout"))
            .stderr(out("stderr"));
        Self {
            process: command.spawn().expect("started"),
            port,
            dir,
        }
    }

    fn output(&self) -> String {
        let read = |name: &str| std::fs::read_to_string(self.dir.path().join(name)).unwrap_or_default();
        format!("{}{}", read("stdout"), read("stderr"))
    }

    fn get(&self, path: &str) -> Response {
        request(self.port, "GET", path, &[], "")
    }

    /// The body of an answer of the read API that must succeed.
    fn read(&self, path: &str) -> Value {
        let answer = self.get(&format!("{API}{path}"));
        assert_eq!(answer.status, 200, "{path}: {}\n{}", answer.body, self.output());
        serde_json::from_str(&answer.body).expect("json")
    }

    /// Waits until it shows this block.
    fn shows(&mut self, block: u64) {
        let start = Instant::now();
        while !shows(self.port, block) {
            let exit_status = self.process.try_wait().expect("asked");
            assert!(
                exit_status.is_none() && start.elapsed() < TIMEOUT,
                "block {block} is not shown: {exit_status:?}\n{}",
                self.output()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn kill(&mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("ended");
    }

    /// Terminates it; whether it ended by itself with success.
    fn end(mut self) -> bool {
        let signalled = Command::new("kill")
            .args(["-TERM", &self.process.id().to_string()])
            .status();
        assert!(signalled.is_ok_and(|status| status.success()));
        self.process.wait().expect("ended").success()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Whether the API on a port shows this block as the newest, or a later one.
fn shows(port: u16, block: u64) -> bool {
    if std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        return false;
    }
    let answer = request(port, "GET", &format!("{API}/blocks/latest/number"), &[], "");
    let shown = serde_json::from_str::<Value>(&answer.body).ok();
    answer.status == 200 && shown.and_then(|shown| shown["number"].as_u64()) >= Some(block)
}

/// An empty database of each engine. The directory holds the file of the first.
fn databases() -> Vec<(String, TempDir)> {
    let dir = tempfile::tempdir().expect("a directory");
    let file = format!("sqlite://{}", dir.path().join("explorer.db").display());
    let server = postgres::database().expect("a server");
    let server = server.map(|database| (database.url, tempfile::tempdir().expect("a directory")));
    std::iter::once((file, dir)).chain(server).collect()
}

fn rpc(node: &Anvil, method: &str, params: &Value) -> Value {
    let port = node.url().rsplit(':').next().expect("a port").trim_end_matches('/');
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let headers = [("Content-Type", "application/json")];
    let answer = request(port.parse().expect("a port"), "POST", "/", &headers, &body);
    let answer: Value = serde_json::from_str(&answer.body).expect("json");
    assert!(answer.get("error").is_none(), "{method}: {answer}");
    answer["result"].clone()
}

/// Sends a transaction of an account of the node, mines it, and returns its hash.
fn send(node: &Anvil, fields: Value) -> String {
    let mut transaction = fields;
    transaction["from"] = rpc(node, "eth_accounts", &json!([]))[0].clone();
    let hash = rpc(node, "eth_sendTransaction", &json!([transaction]));
    let start = Instant::now();
    while rpc(node, "eth_getTransactionReceipt", &json!([hash])).is_null() {
        assert!(start.elapsed() < TIMEOUT, "{hash} is not mined");
        std::thread::sleep(Duration::from_millis(5));
    }
    hash.as_str().expect("a hash").to_owned()
}

fn pay(node: &Anvil, to: &str) -> String {
    send(node, json!({ "to": to, "value": "0x5" }))
}

fn head(node: &Anvil) -> u64 {
    let number = rpc(node, "eth_blockNumber", &json!([]));
    u64::from_str_radix(number.as_str().expect("a number").trim_start_matches("0x"), 16).expect("a number")
}

/// Mines blocks in requests of a hundred, because the node answers no other request meanwhile.
fn mine(node: &Anvil, blocks: u64) {
    let mut left = blocks;
    while left > 0 {
        let count = left.min(100);
        rpc(node, "anvil_mine", &json!([format!("{count:#x}")]));
        left -= count;
    }
}

fn run(arguments: &[&str], settings: &[(&str, &str)]) -> (Option<i32>, String) {
    let output = process::gateway(arguments, settings);
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output),
    )
}

/// X2: everything is readable, by cursor pages of at most 100 rows and by offset for tokens, holders and addresses;
/// amounts are decimal strings, addresses lower case; nothing can be changed, and no list scans the chain.
#[test]
fn x2_the_read_api_serves_the_chain_without_a_viewer() {
    for (database, _dir) in databases() {
        let node = anvil();
        let settings = [("NODE_URL", node.url()), ("EXPLORER_DATABASE_URL", database.as_str())];
        let mut indexer = Running::start("indexer", &settings);
        let payee = "0x00000000000000000000000000000000000000Ab";
        let hashes: Vec<String> = (0..120).map(|_| pay(&node, payee)).collect();
        let deployment = send(&node, json!({ "data": TOKEN }));
        mine(&node, 1100);
        indexer.shows(head(&node));
        check_rows(&indexer, &hashes, &deployment);
        check_refusals(&indexer);
        assert_eq!(indexer.get("/health").status, 200);
        assert_eq!(indexer.get("/ready").status, 200);
        for metric in [
            "ledger_gateway_indexer_transactions_per_second",
            "ledger_gateway_indexer_remaining_seconds",
            "ledger_gateway_explorer_index_bytes",
        ] {
            let start = Instant::now();
            while !indexer.get("/metrics").body.contains(metric) {
                assert!(start.elapsed() < TIMEOUT, "no metric {metric}");
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        assert!(indexer.end(), "a terminated indexer ends in order");
    }
}

fn check_rows(indexer: &Running, hashes: &[String], deployment: &str) {
    let payee = "0x00000000000000000000000000000000000000ab";
    let mut listed: Vec<String> = Vec::new();
    let mut path = "/transactions?limit=1000".to_owned();
    loop {
        let page = indexer.read(&path);
        assert_eq!(page["total"], 121);
        let rows = page["data"].as_array().expect("rows");
        assert!(rows.len() <= 100);
        listed.extend(rows.iter().map(|row| row["hash"].as_str().expect("a hash").to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/transactions?limit=1000&cursor={cursor}");
    }
    let newest_first: Vec<String> = [deployment]
        .into_iter()
        .chain(hashes.iter().rev().map(String::as_str))
        .map(str::to_owned)
        .collect();
    assert_eq!(listed, newest_first);
    let paid = indexer.read(&format!("/transactions/{}?with_categories=true", hashes[3]));
    assert_eq!(
        (&paid["to"], &paid["value"], &paid["status"]),
        (&json!(payee), &json!("5"), &json!(1))
    );
    assert_eq!(paid["txCategories"], json!(["coin_transfer"]));

    let of_payee = indexer.read(&format!("/addresses/{payee}/transactions?limit=2"));
    assert_eq!(of_payee["transactions"].as_array().expect("rows").len(), 2);
    let cursor = of_payee["next_cursor"].as_str().expect("more");
    let next = indexer.read(&format!("/addresses/{payee}/transactions?limit=2&cursor={cursor}"));
    assert_eq!(next["transactions"][0]["hash"], json!(hashes[117]));
    let stats = indexer.read(&format!("/addresses/{payee}/stats"));
    assert_eq!((&stats["txCount"], &stats["isContract"]), (&json!(120), &json!(false)));
    assert_eq!(indexer.read(&format!("/addresses/{payee}/balance")), json!("0x258"));

    let created = indexer.read(&format!("/transactions/{deployment}"));
    let token = created["contractAddress"].as_str().expect("a contract");
    let transfers = indexer.read(&format!("/transactions/{deployment}/transfers"));
    assert_eq!(transfers[0]["value"], "7");
    assert_eq!(transfers[0]["to"], "0x00000000000000000000000000000000000000bb");
    assert_eq!(indexer.read("/transfers")["data"], transfers);
    let tokens = indexer.read("/tokens?offset=0&limit=5");
    assert_eq!(
        (&tokens["total"], &tokens["data"][0]["address"]),
        (&json!(1), &json!(token))
    );
    assert_eq!(indexer.read("/tokens?offset=1")["data"], json!([]));
    assert_eq!(indexer.read(&format!("/tokens/{token}"))["transferCount"], 1);
    assert_eq!(indexer.read(&format!("/tokens/{token}/transfers"))["data"], transfers);
    // It answers no balances.
    assert_eq!(indexer.read(&format!("/tokens/{token}/holders"))["total"], 0);
    assert_eq!(
        indexer.read(&format!("/addresses/{token}/contract"))["bytecode"],
        "0x00"
    );

    let topic = transfers_topic();
    for path in [
        format!("/logs?address={token}"),
        format!("/logs?address={token}&topic0={topic}"),
        format!("/addresses/{token}/logs"),
        format!("/logs?from=100&to=1000&address={token}"),
        "/logs?from=100&to=1000".to_owned(),
    ] {
        let logs = indexer.read(&path);
        assert_eq!(
            (&logs["total"], &logs["data"][0]["topic0"]),
            (&json!(1), &json!(topic)),
            "{path}"
        );
    }
    let accounts = indexer.read("/accounts?page=1&pageSize=2");
    assert_eq!(accounts["data"][0]["txCount"], 121, "{accounts}");
    assert_eq!(accounts["data"][1]["address"], payee);
    let stats = indexer.read("/stats");
    assert_eq!(
        (&stats["privacyEnabled"], &stats["totalTransactions"]),
        (&json!(false), &json!(121))
    );
    let blocks = indexer.read("/blocks?limit=2");
    let cursor = blocks["next_cursor"].as_str().expect("more");
    let next = indexer.read(&format!("/blocks?limit=2&cursor={cursor}"));
    let number = |row: &Value| row["number"].as_u64().expect("a number");
    assert_eq!(number(&next["data"][0]) + 1, number(&blocks["data"][1]));
    assert_eq!(indexer.read("/sync/status")["isSyncing"], false);
    let start: String = hashes[5].chars().take(20).collect();
    let suggested = indexer.read(&format!("/search/suggestions?q={start}"));
    assert_eq!(suggested[0]["value"], json!(hashes[5]));
}

const fn transfers_topic() -> &'static str {
    "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
}

fn check_refusals(indexer: &Running) {
    let status = |method: &str, path: &str, headers: &[(&str, &str)]| {
        request(indexer.port, method, &format!("{API}{path}"), headers, "").status
    };
    let topic = transfers_topic();
    for scan in [
        "/logs",
        &format!("/logs?topic0={topic}"),
        &format!("/logs?topic0={topic}&from=1&to=2"),
        "/logs?from=1&to=1001",
        "/transactions?offset=5",
        "/transfers?offset=1",
        "/transactions?cursor=7-2",
    ] {
        assert_eq!(status("GET", scan, &[]), 400, "{scan}");
    }
    for change in [
        "/addresses/0x00000000000000000000000000000000000000ab/abi",
        "/index/block/1",
    ] {
        assert_eq!(status("POST", change, &[]), 404, "{change}");
    }
    assert_eq!(status("POST", "/blocks", &[]), 405);
    for of_viewers in ["/viewable-addresses", "/grant/1/activity"] {
        assert_eq!(status("GET", of_viewers, &[]), 404, "{of_viewers}");
    }
    // E7: forwarded by a proxy, from wherever.
    for forwarded in [
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "X-Real-IP",
        "Forwarded",
        "X-Original-URL",
    ] {
        assert_eq!(
            status("GET", "/blocks", &[(forwarded, "127.0.0.1")]),
            403,
            "{forwarded}"
        );
    }
    // HD16: a page whose host name leads here (DNS rebinding), and a page of another origin.
    let own = format!("127.0.0.1:{}", indexer.port);
    for (headers, expected) in [
        (
            &[("Host", "attacker.example"), ("Sec-Fetch-Site", "same-origin")][..],
            403,
        ),
        (&[("Origin", "https://attacker.example")][..], 403),
        (&[("Sec-Fetch-Site", "same-site")][..], 403),
        (&[("Host", "localhost"), ("Host", "attacker.example")][..], 400),
        (&[("Host", own.as_str())][..], 200),
    ] {
        assert_eq!(status("GET", "/blocks", headers), expected, "{headers:?}");
        let metrics = request(indexer.port, "GET", "/metrics", headers, "");
        assert_eq!(metrics.status, expected, "{headers:?}");
        assert_eq!(
            request(indexer.port, "GET", "/ready", headers, "").status,
            200,
            "{headers:?}"
        );
    }
}

/// E2, E3, X2: an explorer in direct mode reads from the indexer, both as processes.
#[cfg(feature = "explorer-direct")]
#[test]
fn e2_direct_mode_reads_from_the_indexer() {
    for (database, _dir) in databases() {
        let node = anvil();
        let hash = pay(&node, "0x00000000000000000000000000000000000000ab");
        let settings = [("NODE_URL", node.url()), ("EXPLORER_DATABASE_URL", database.as_str())];
        let mut indexer = Running::start("indexer", &settings);
        indexer.shows(head(&node));
        let url = format!("http://127.0.0.1:{}", indexer.port);
        let explorer = Running::start("explorer", &[("INDEXER_URL", &url)]);
        let start = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", explorer.port)).is_err() {
            assert!(start.elapsed() < TIMEOUT, "{}", explorer.output());
            std::thread::sleep(Duration::from_millis(20));
        }
        for path in [
            "/transactions",
            "/blocks?limit=1",
            &format!("/transactions/{hash}"),
            "/accounts",
            "/stats",
            "/sync/status",
        ] {
            let shown = explorer.get(&format!("/api{path}"));
            assert_eq!(shown.status, 200, "{path}: {}", shown.body);
            let shown: Value = serde_json::from_str(&shown.body).expect("json");
            assert_eq!(shown, indexer.read(path), "{path}");
        }
        assert!(explorer.get("/api/transactions").body.contains(&hash));
    }
}

/// X2, X4: a gateway and another indexer read while one process writes; after kill -9 of it, another takes over.
#[test]
fn x2_readers_take_over_from_a_killed_writer() {
    for (database, _dir) in databases() {
        let node = anvil();
        let settings = [("NODE_URL", node.url()), ("EXPLORER_DATABASE_URL", database.as_str())];
        let mut writer = Running::start("indexer", &settings);
        writer.shows(head(&node));
        let mut gateway = Serving::start(node.url(), &[("EXPLORER_DATABASE_URL", &database)]).ready();
        let mut second = Running::start("indexer", &settings);
        pay(&node, "0x00000000000000000000000000000000000000ab");
        let newest = head(&node);
        gateway.wait("shows the writer's blocks", |gateway| shows(gateway.port(), newest));
        second.shows(newest);
        let holder = lease_holder(&settings);
        assert!(holder.contains(&format!("process {}", writer.process.id())), "{holder}");

        writer.kill();
        pay(&node, "0x00000000000000000000000000000000000000ab");
        let newest = head(&node);
        gateway.wait("shows what its new writer indexed", |gateway| {
            shows(gateway.port(), newest)
        });
        second.shows(newest);
        let new_holder = lease_holder(&settings);
        assert_ne!(holder, new_holder);
        assert!(!new_holder.is_empty());
        assert!(gateway.end().0.success());
        assert!(second.end());
    }
}

fn lease_holder(settings: &[(&str, &str)]) -> String {
    let (_, output) = run(&["explorer", "status", "--json"], settings);
    let status: Value = serde_json::from_str(&output).unwrap_or_else(|_| panic!("{output}"));
    status["lease"]["holder"].as_str().unwrap_or_default().to_owned()
}

/// X4, X5: `explorer status` beside the service, and `explorer reindex` without it.
#[test]
fn x5_reindex_removes_blocks_and_indexes_them_again() {
    for (database, _dir) in databases() {
        let node = anvil();
        let settings = [("NODE_URL", node.url()), ("EXPLORER_DATABASE_URL", database.as_str())];
        let (code, output) = run(&["explorer", "status"], &settings);
        assert_eq!(code, Some(1), "{output}");
        assert!(output.contains("there is no index"), "{output}");

        let hash = pay(&node, "0x00000000000000000000000000000000000000ab");
        mine(&node, 8);
        let newest = head(&node);
        let mut indexer = Running::start("indexer", &settings);
        indexer.shows(newest);
        let (code, output) = run(&["explorer", "status"], &settings);
        assert_eq!(code, Some(0), "{output}");
        for line in [
            format!("indexed blocks            0 to {newest}, of "),
            "blocks behind             0\n".to_owned(),
            format!(
                "indexing process          indexer, process {} on ",
                indexer.process.id()
            ),
        ] {
            assert!(output.contains(&line), "{line}: {output}");
        }
        let (code, output) = run(&["explorer", "reindex", "--from", "3"], &settings);
        assert_eq!(code, Some(75), "{output}");
        let held = format!("process {}", indexer.process.id());
        assert!(output.contains(&held) && output.contains("stop it"), "{output}");
        assert!(indexer.end());

        let (code, output) = run(&["explorer", "reindex", "--from", "3"], &settings);
        assert_eq!(code, Some(0), "{output}");
        assert!(
            output.contains(&format!("removed the indexed blocks 3 to {newest}\n")),
            "{output}"
        );
        assert!(output.contains(&format!("indexed up to block {newest}\n")), "{output}");
        let (code, output) = run(&["explorer", "status", "--json"], &settings);
        assert_eq!(code, Some(1), "nobody indexes: {output}");
        let status: Value = serde_json::from_str(&output).expect("json");
        assert_eq!(status["lastIndexedBlock"], json!(newest));
        assert_eq!(
            (&status["generation"], &status["missingBlocks"]),
            (&json!(2), &json!(0))
        );
        assert_eq!(status["findings"], json!(["no process indexes"]));

        let (code, output) = run(&["explorer", "reindex", "--from", "99"], &settings);
        assert_eq!(code, Some(1), "{output}");
        assert!(
            output.contains(&format!("the newest indexed block is {newest}")),
            "{output}"
        );

        // From the first block on, without a node.
        let without_node = [
            ("NODE_URL", "http://127.0.0.1:9"),
            ("EXPLORER_DATABASE_URL", database.as_str()),
        ];
        let (code, output) = run(&["explorer", "reindex", "--from", "0", "--no-wait"], &without_node);
        assert_eq!(code, Some(0), "{output}");
        let (code, output) = run(&["explorer", "status", "--json", "--max-lag", "5"], &settings);
        assert_eq!(code, Some(1), "{output}");
        let status: Value = serde_json::from_str(&output).expect("json");
        assert_eq!(
            (&status["lastIndexedBlock"], &status["lagBlocks"]),
            (&Value::Null, &json!(newest + 1))
        );
        let mut indexer = Running::start("indexer", &settings);
        indexer.shows(newest);
        assert_eq!(indexer.read(&format!("/transactions/{hash}"))["status"], 1);
    }
}

/// X2: the indexer ignores BIND_ADDRESS: without INTERNAL_BIND_ADDR it listens on loopback.
#[test]
fn x2_the_read_api_listens_on_loopback_or_the_internal_address() {
    let (node, dir) = (anvil(), tempfile::tempdir().expect("a directory"));
    let database = format!("sqlite://{}", dir.path().join("explorer.db").display());
    let internal = port::reserve();
    let address = format!("127.0.0.1:{internal}");
    let settings = [
        ("NODE_URL", node.url()),
        ("EXPLORER_DATABASE_URL", database.as_str()),
        ("INTERNAL_BIND_ADDR", &address),
        ("BIND_ADDRESS", "0.0.0.0"),
    ];
    let indexer = Running::start("indexer", &settings);
    let start = Instant::now();
    while !shows(internal, 0) {
        assert!(start.elapsed() < TIMEOUT, "{}", indexer.output());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(std::net::TcpStream::connect(("127.0.0.1", indexer.port)).is_err());
}
