//! Faults of what the gateway stands on, against the real binary: databases, Redis and nodes that are cut off, hang or
//! answer late, a disk that fills, a death at each message of a write. What is promised (spec/85 §6 rules 3 and 4, §11 row
//! 5; RL1, RL12, RL14) and what was seen is a row of `docs/reliability.md`; see [`gw_testkit::faults`].
//!
//! Deaths at random moments under load are in `durability`.

use crate::{
    harness::{ADMIN_TOKEN, Engine, Gateway, Http, database_url},
    world::{World, transfer},
};
use alloy_primitives::U256;
use gw_testkit::{
    FullDisk, RedisServer, Relay, Scenario,
    anvil::anvil,
    faults::{document, ids, writes},
};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::task::JoinHandle;

/// The rows of the table, by id.
const ROWS: [&str; 8] = [
    "audit-database-cut",
    "disk-full",
    "killed-at-each-message",
    "node-cut",
    "node-hangs",
    "policy-database-cut",
    "policy-database-hangs",
    "redis-cut-and-hanging",
];

const KEPT: &str = "what was acknowledged is there after a restart";
const REFUSED: &str = "what is not done is 5xx";
const RECOVERS: &str = "the service recovers without a restart";
const READS_CLOSE: &str = "reads are 503 once policy cannot be confirmed";
const SOON: &str = "admin writes are answered soon, not after the pool's wait of 30 s";
const GOES_ON: &str = "calls go on";
const NOTHING_FORWARDED: &str = "a send that was refused is not forwarded";

/// Far above the second that is promised, far below the waits of pools that were observed (RL14).
const SOON_LIMIT: Duration = Duration::from_secs(12);

/// A call that may fail in any way; 0: no answer.
async fn attempt(http: &Http, request: http::Request<Full<bytes::Bytes>>) -> (u16, Value) {
    let answer = async {
        let answer = http.request(request).await.ok()?;
        let status = answer.status().as_u16();
        let body = answer.into_body().collect().await.ok()?.to_bytes();
        Some((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    };
    tokio::time::timeout(Duration::from_secs(50), answer)
        .await
        .ok()
        .flatten()
        .unwrap_or((0, Value::Null))
}

/// Makes an organization; names are never used twice.
async fn write(http: &Http, url: &str, name: &str) -> u16 {
    let body = json!({"name": name, "slug": name}).to_string();
    let request = http::Request::post(format!("{url}/api/v1/admin/orgs"))
        .header("x-admin-token", ADMIN_TOKEN)
        .header("content-type", "application/json")
        .body(Full::from(body))
        .unwrap();
    attempt(http, request).await.0
}

async fn call(http: &Http, url: &str, token: &str, method: &str, params: Value) -> (u16, Value) {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let request = http::Request::post(format!("{url}/rpc")).header("authorization", format!("Bearer {token}"));
    attempt(http, request.body(Full::from(body)).unwrap()).await
}

/// Administrators and callers at work, for as long as this lives.
struct Load {
    seen: Arc<Mutex<Seen>>,
    end: Arc<AtomicBool>,
    tasks: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Organizations acknowledged with 2xx.
    acknowledged: BTreeSet<String>,
    /// Statuses of writes and of reads.
    writes: BTreeSet<u16>,
    reads: BTreeSet<u16>,
    slowest_write: Duration,
}

impl Seen {
    fn wrote(&mut self, slug: String, status: u16, took: Duration) {
        self.writes.insert(status);
        self.slowest_write = self.slowest_write.max(took);
        if status == 201 {
            self.acknowledged.insert(slug);
        }
    }
}

impl Load {
    fn start(w: &World, name: &'static str) -> Self {
        let (seen, end) = (Arc::<Mutex<Seen>>::default(), Arc::<AtomicBool>::default());
        let mut tasks = Vec::new();
        for task in 0..2 {
            let (http, url, seen, end) = (w.gw.http.clone(), w.gw.url.clone(), Arc::clone(&seen), Arc::clone(&end));
            tasks.push(tokio::spawn(async move {
                for n in 0.. {
                    if end.load(Ordering::SeqCst) {
                        return;
                    }
                    let (slug, began) = (format!("{name}-{task}-{n}"), Instant::now());
                    let status = write(&http, &url, &slug).await;
                    seen.lock().unwrap().wrote(slug, status, began.elapsed());
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }));
        }
        let (http, url, seen2, end2) = (w.gw.http.clone(), w.gw.url.clone(), Arc::clone(&seen), Arc::clone(&end));
        let (token, address) = (w.analyst.token.clone(), w.analyst.address());
        tasks.push(tokio::spawn(async move {
            while !end2.load(Ordering::SeqCst) {
                let (status, _) = call(&http, &url, &token, "eth_getBalance", json!([address, "latest"])).await;
                seen2.lock().unwrap().reads.insert(status);
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }));
        Self { seen, end, tasks }
    }

    /// Waits until this is so; whether it came to be within `limit`.
    async fn until(&self, limit: Duration, what: impl Fn(&Seen) -> bool) -> bool {
        let began = Instant::now();
        while began.elapsed() < limit {
            if what(&self.seen.lock().unwrap()) {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }

    /// Forgets statuses, not what was acknowledged.
    fn forget(&self) {
        let mut seen = self.seen.lock().unwrap();
        (seen.writes, seen.reads, seen.slowest_write) = (BTreeSet::new(), BTreeSet::new(), Duration::ZERO);
    }

    async fn stop(self) -> Seen {
        self.end.store(true, Ordering::SeqCst);
        for task in self.tasks {
            task.await.unwrap();
        }
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

/// The slugs of all organizations.
async fn organizations(gw: &Gateway) -> BTreeSet<String> {
    let mut slugs = BTreeSet::new();
    loop {
        let path = format!("/orgs?limit=1000&offset={}", slugs.len());
        let page = gw.admin("GET", &path, None).await.expect(200);
        let rows = page["data"].as_array().or(page.as_array()).unwrap().clone();
        let before = slugs.len();
        slugs.extend(rows.iter().map(|row| row["slug"].as_str().unwrap().to_owned()));
        if rows.len() < 100 || slugs.len() == before {
            return slugs;
        }
    }
}

/// Kills the process, starts it again, and looks for everything that was acknowledged.
async fn is_kept(w: &mut World, scenario: &mut Scenario, seen: &Seen) {
    w.gw.restart().await;
    let there = organizations(&w.gw).await;
    let lost: Vec<_> = seen.acknowledged.difference(&there).collect();
    scenario.expect(
        KEPT,
        lost.is_empty(),
        format!("{} of {} lost", lost.len(), seen.acknowledged.len()),
    );
}

fn are_refused(scenario: &mut Scenario, seen: &Seen) {
    let other: Vec<_> = seen
        .writes
        .iter()
        .chain(&seen.reads)
        .filter(|s| !matches!(**s, 200 | 201 | 500..))
        .collect();
    scenario.expect(REFUSED, other.is_empty(), other);
}

/// A send by ops: its status, and whether the node has the transaction.
async fn send(w: &World) -> (u16, bool) {
    let (hash, raw) =
        w.gw.sign(&w.ops.key, Some(w.erc20), U256::ZERO, transfer(w.analyst.address(), 1))
            .await;
    let (status, body) = call(
        &w.gw.http,
        &w.gw.url,
        &w.ops.token,
        "eth_sendRawTransaction",
        json!([raw]),
    )
    .await;
    let known = !w.gw.node("eth_getTransactionByHash", json!([hash])).await.is_null();
    (
        if body.get("error").is_some() && status == 200 {
            422
        } else {
            status
        },
        known,
    )
}

async fn sends_again(w: &World) -> bool {
    for _ in 0..100 {
        if send(w).await == (200, true) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    false
}

async fn on_postgres() -> (World, Relay, Relay) {
    let (policy, audit) = (Relay::to(&database_url()).await, Relay::to(&database_url()).await);
    let (policy_url, audit_url) = (policy.url(), audit.url());
    let settings = [
        ("DATABASE_URL", policy_url.as_str()),
        ("AUDIT_DATABASE_URL", &audit_url),
    ];
    (World::start_with(Engine::Postgres, &settings).await, policy, audit)
}

/// The policy database goes away in one way, under load, and comes back.
async fn without_policy_database(id: &'static str, fault: &'static str, hangs: bool) {
    let mut scenario = Scenario::new(id, fault);
    let (mut w, mut policy, _audit) = on_postgres().await;
    let load = Load::start(&w, "away");
    assert!(
        load.until(Duration::from_secs(20), |seen| seen.acknowledged.len() > 10)
            .await,
        "the load does not run"
    );
    if hangs {
        policy.pause();
    } else {
        policy.cut().await;
    }
    load.forget();
    let closed = load
        .until(Duration::from_secs(20), |seen| seen.reads.contains(&503))
        .await;
    scenario.expect(READS_CLOSE, closed, "reads were still answered after 20 s");
    let (status, known) = send(&w).await;
    scenario.expect(NOTHING_FORWARDED, status >= 500 && !known, (status, known));
    let answered = load
        .until(SOON_LIMIT, |seen| seen.writes.iter().any(|status| *status >= 500))
        .await;
    policy.mend().await;
    load.until(Duration::from_secs(40), |seen| {
        seen.writes.iter().any(|status| *status >= 500)
    })
    .await;
    let slowest = load.seen.lock().unwrap().slowest_write;
    scenario.expect(SOON, answered && slowest < SOON_LIMIT, slowest);
    are_refused(&mut scenario, &load.seen.lock().unwrap());
    load.forget();
    let back = load
        .until(Duration::from_secs(30), |seen| {
            seen.writes.contains(&201) && seen.reads.contains(&200)
        })
        .await;
    scenario.expect(RECOVERS, back && sends_again(&w).await, "no 201 and 200 within 30 s");
    let seen = load.stop().await;
    is_kept(&mut w, &mut scenario, &seen).await;
    scenario.end(&document());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl14_the_policy_database_is_cut() {
    let fault = "PostgreSQL of the policy store refuses connections and closes those there are";
    without_policy_database("policy-database-cut", fault, false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl14_the_policy_database_hangs() {
    let fault = "PostgreSQL of the policy store takes questions and answers none, then all at once";
    without_policy_database("policy-database-hangs", fault, true).await;
}

/// 70 rule 14: without the audit store records wait in the journal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audit_database_is_cut() {
    const SEALED: &str = "what was recorded meanwhile is sealed afterwards";
    let mut scenario = Scenario::new(
        "audit-database-cut",
        "PostgreSQL of the audit store is cut off under load",
    );
    let (mut w, _policy, mut audit) = on_postgres().await;
    audit.cut().await;
    let load = Load::start(&w, "unsealed");
    let goes_on = load
        .until(Duration::from_secs(20), |seen| seen.acknowledged.len() > 20)
        .await;
    let (read, _) = call(&w.gw.http, &w.gw.url, &w.ops.token, "eth_blockNumber", json!([])).await;
    let sent = send(&w).await;
    scenario.expect(
        GOES_ON,
        goes_on && read == 200 && sent == (200, true),
        (goes_on, read, sent),
    );
    let seen = load.stop().await;
    are_refused(&mut scenario, &seen);
    audit.mend().await;
    let last = seen.acknowledged.iter().next_back().cloned().unwrap_or_default();
    let mut sealed = false;
    for _ in 0..300 {
        let logs = w.gw.admin("GET", "/audit-logs?limit=1000", None).await;
        let backlog = w.gw.request("GET", "/metrics", &[], None).await.body;
        let drained = backlog
            .lines()
            .any(|line| line.starts_with("ledger_gateway_audit_buffer_depth") && line.ends_with(" 0"));
        sealed = logs.status == 200 && logs.body.contains(&last) && drained;
        if sealed {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    scenario.expect(SEALED, sealed, "records still wait after 30 s");
    is_kept(&mut w, &mut scenario, &seen).await;
    scenario.end(&document());
}

/// 85 §6 rule 4: without the cache logins are 503, and RPC goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_is_cut_and_hangs() {
    const LOGINS: &str = "logins are 503 while it is away";
    const BACK: &str = "logins come back without a restart";
    let Some(redis) = RedisServer::start().unwrap() else {
        println!("NOT RUN: no Redis, as GW_SKIP_REDIS asks");
        return;
    };
    let mut scenario = Scenario::new(
        "redis-cut-and-hanging",
        "Redis is cut off, comes back, hangs, comes back",
    );
    let mut relay = Relay::to(&redis.url()).await;
    let w = World::start_with(Engine::Sqlite, &[("REDIS_URL", &relay.url())]).await;
    let login = async |w: &World| {
        let request =
            http::Request::post(format!("{}/auth/request", w.gw.url)).header("content-type", "application/json");
        attempt(&w.gw.http, request.body(Full::from("{}")).unwrap()).await.0
    };
    for hangs in [false, true] {
        if hangs {
            relay.pause();
        } else {
            relay.cut().await;
        }
        let status = login(&w).await;
        scenario.expect(LOGINS, status == 503, status);
        let (read, _) = call(&w.gw.http, &w.gw.url, &w.ops.token, "eth_blockNumber", json!([])).await;
        let (sent, wrote) = (
            send(&w).await,
            write(&w.gw.http, &w.gw.url, if hangs { "hung" } else { "cut" }).await,
        );
        scenario.expect(
            GOES_ON,
            (read, sent, wrote) == (200, (200, true), 201),
            (read, sent, wrote),
        );
        relay.mend().await;
        let mut back = 0;
        for _ in 0..150 {
            back = login(&w).await;
            if back == 200 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        scenario.expect(BACK, back == 200, back);
    }
    scenario.end(&document());
}

/// The node goes away in one way, in the midst of reads and of a send, and comes back.
async fn without_node(id: &'static str, fault: &'static str, hangs: bool) {
    const READS: &str = "reads that need the node are 5xx, those that do not go on";
    const ONE_FATE: &str =
        "a send that nobody answered is told as 5xx, and what the node took is the sender's afterwards";
    let mut scenario = Scenario::new(id, fault);
    let anvil = anvil();
    let mut relay = Relay::to(anvil.url()).await;
    let (direct, url) = (anvil.url().to_owned(), relay.url());
    let settings = [("TRACE_TIMEOUT", "2s"), ("ETH_CALL_TRACE_TIMEOUT", "2s")];
    let gw = Gateway::start_on(Engine::Sqlite, &settings, anvil, &direct, &url).await;
    let w = World::on(gw).await;
    let (hash, raw) =
        w.gw.sign(&w.ops.key, Some(w.erc20), U256::ZERO, transfer(w.analyst.address(), 1))
            .await;
    if hangs {
        relay.hold();
    } else {
        relay.cut().await;
    }
    let (http, url, token) = (w.gw.http.clone(), w.gw.url.clone(), w.ops.token.clone());
    let balance = json!([w.ops.address(), "latest"]);
    let sent = call(&http, &url, &token, "eth_sendRawTransaction", json!([raw]));
    let (sent, read, local) = tokio::join!(
        sent,
        call(&http, &url, &token, "eth_getBalance", balance.clone()),
        call(&http, &url, &token, "eth_chainId", json!([]))
    );
    scenario.expect(READS, read.0 >= 500 && local.0 == 200, (read.0, local.0));
    let wrote = write(&http, &url, "nodeless").await;
    scenario.expect("administration goes on", wrote == 201, wrote);
    relay.mend().await;
    let mut back = (0, Value::Null);
    for _ in 0..150 {
        back = call(&http, &url, &token, "eth_getBalance", balance.clone()).await;
        if back.0 == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    scenario.expect(RECOVERS, back.0 == 200 && sends_again(&w).await, back);
    let taken = !w.gw.node("eth_getTransactionByHash", json!([hash])).await.is_null();
    let seen = call(&http, &url, &token, "eth_getTransactionByHash", json!([hash]))
        .await
        .1;
    let is_shown = seen["result"]["hash"] == json!(hash);
    scenario.expect(ONE_FATE, sent.0 >= 500 && is_shown == taken, (sent, taken, seen));
    scenario.end(&document());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_node_is_cut() {
    without_node(
        "node-cut",
        "the only node refuses connections and closes those there are",
        false,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_node_hangs() {
    without_node(
        "node-hangs",
        "the only node takes questions and answers none, then all at once",
        true,
    )
    .await;
}

/// RL1, RL12: the disk of SQLite and journal fills under load and is freed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl1_the_disk_is_full_and_freed() {
    let Some(disk) = FullDisk::mount(400) else { return };
    let mut scenario = Scenario::new(
        "disk-full",
        "the disk of SQLite and journal fills under load and is freed (SQLite)",
    );
    let directory = disk.path().join("data").display().to_string();
    let mut w = World::start_with(Engine::Sqlite, &[("DATA_DIR", &directory)]).await;
    let load = Load::start(&w, "disk");
    assert!(
        load.until(Duration::from_secs(20), |seen| seen.acknowledged.len() > 10)
            .await,
        "the load does not run"
    );
    disk.fill().unwrap();
    load.forget();
    let refused = load
        .until(Duration::from_secs(20), |seen| {
            seen.writes.iter().any(|status| *status >= 500)
        })
        .await;
    scenario.expect(
        "writes are 503 while it is full",
        refused,
        "writes were still answered 201 after 20 s",
    );
    disk.free().unwrap();
    are_refused(&mut scenario, &load.seen.lock().unwrap());
    load.forget();
    let back = load
        .until(Duration::from_secs(30), |seen| {
            seen.writes.contains(&201) && seen.reads.contains(&200)
        })
        .await;
    scenario.expect(RECOVERS, back, "no 201 and 200 within 30 s");
    // What is acknowledged now, after the fault, is what was lost once.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let seen = load.stop().await;
    are_refused(&mut scenario, &seen);
    is_kept(&mut w, &mut scenario, &seen).await;
    scenario.end(&document());
    // The process first: it holds files on the disk.
    drop(w);
    drop(disk);
}

/// HD21: an administrator's write dies at each message that the gateway sends to its policy database: between any two of
/// its steps, the commit and the publication among them. What had been answered is there, and nothing is there twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd21_a_write_dies_at_each_message() {
    const MESSAGES: usize = 12;
    let fault = "the process is killed at each of the first messages of a write to PostgreSQL, in turn";
    let mut scenario = Scenario::new("killed-at-each-message", fault);
    let mut policy = Relay::to(&database_url()).await;
    let mut gw = Gateway::start_with(Engine::Postgres, &[("DATABASE_URL", &policy.url())]).await;
    let mut seen = Seen::default();
    for n in 0..MESSAGES {
        policy.stop_after(n);
        let (http, url, slug) = (gw.http.clone(), gw.url.clone(), format!("message-{n}"));
        let answer = async {
            if write(&http, &url, &slug).await == 201 {
                seen.acknowledged.insert(slug.clone());
            }
        };
        tokio::select! {
            () = answer => {}
            () = policy.stopped() => {}
        }
        gw.process.kill();
        policy.mend().await;
        gw.restart().await;
        let there = organizations(&gw).await;
        let lost = seen.acknowledged.difference(&there).count();
        scenario.expect(KEPT, lost == 0, format!("{lost} lost after message {n}"));
    }
    let again = write(&gw.http, &gw.url, "afterwards").await;
    scenario.expect("writes are taken after each restart", again == 201, again);
    gw.process.terminate();
    let (code, said) = gw.command(&["audit", "verify"]);
    scenario.expect("`audit verify` finds nothing", code == Some(0), said);
    scenario.end(&document());
}

#[test]
fn the_table_of_faults_has_every_scenario() {
    if writes() {
        return;
    }
    assert_eq!(ids(&document()), ROWS);
}
