//! The data API of the explorer through the real binary (spec/40): who sees which rows, who may connect, and what a
//! restart, a reorganization and a reset of the chain do to the index.

use crate::{
    harness::{ADMIN_TOKEN, Engine, Gateway, MAX_POLLS, Response, database_url, on_both_engines},
    openapi::Described,
    world::{Persona, World, transfer},
};
use alloy_primitives::{Bytes, U256};
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};
use tempfile::TempDir;

const ROOT: &str = "/api/v1/explorer";
const KEY: &str = "explorer-backend-key-0123456789abcdef";
const UNKNOWN_HASH: &str = "0x1111111111111111111111111111111111111111111111111111111111111111";

/// The address of a new database of the explorer. A file is in the directory.
pub(crate) fn explorer_database(engine: Engine, directory: &TempDir) -> String {
    match engine {
        Engine::Sqlite => format!("sqlite://{}", directory.path().join("explorer.db").display()),
        Engine::Postgres => database_url(),
    }
}

async fn get(gw: &Gateway, token: &str, path: &str) -> Response {
    let path = format!("{ROOT}{path}");
    if token.is_empty() {
        gw.request("GET", &path, &[], None).await
    } else {
        gw.as_user(token, "GET", &path, None).await
    }
}

/// The number of the node's newest block.
async fn newest_block(gw: &Gateway) -> u64 {
    let number = gw.node("eth_blockNumber", json!([])).await;
    u64::from_str_radix(number.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
}

/// Waits until a request of the explorer has this answer.
async fn wait_for(gw: &Gateway, path: &str, is_expected: impl Fn(&Response) -> bool) -> Response {
    let mut last = get(gw, "", path).await;
    for _ in 0..MAX_POLLS {
        if is_expected(&last) {
            return last;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        last = get(gw, "", path).await;
    }
    panic!("{path} still answers {} {}", last.status, last.body);
}

/// Waits until the explorer shows the node's newest block.
pub(crate) async fn wait_until_synced(gw: &Gateway) {
    let newest = newest_block(gw).await;
    wait_for(gw, "/blocks/latest/number", |answer| {
        answer.status == 200 && answer.json()["number"] == json!(newest)
    })
    .await;
}

/// Waits until there is a metric of this name. Some are set every two seconds.
async fn wait_for_metric(gw: &Gateway, name: &str) {
    for _ in 0..MAX_POLLS {
        if gw.request("GET", "/metrics", &[], None).await.body.contains(name) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no metric {name}");
}

/// Waits until the access log of a person contains this text, and returns it. Records are sealed after their answers.
async fn wait_for_log(gw: &Gateway, did: &str, text: &str) -> String {
    let path = format!("/logs?limit=200&external_id={did}");
    let mut logs = String::new();
    for _ in 0..MAX_POLLS {
        logs = gw.admin("GET", &path, None).await.expect(200).to_string();
        if logs.contains(text) {
            return logs;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("no record of {text}: {logs}");
}

/// The hashes of the transactions that a viewer pages through. Checks the total and the counts of the blocks.
async fn visible_transactions(gw: &Gateway, token: &str) -> BTreeSet<String> {
    let list = get(gw, token, "/transactions?limit=100").await.expect(200);
    let rows = list["data"].as_array().unwrap();
    assert_eq!(list["total"], json!(rows.len()), "{list}");
    let blocks = get(gw, token, "/blocks?limit=100").await.expect(200);
    let counted = |block: &Value| block["transactionCount"].as_u64().unwrap();
    let total: u64 = blocks["data"].as_array().unwrap().iter().map(counted).sum();
    assert_eq!(total, rows.len() as u64, "{blocks}");
    let stats = get(gw, token, "/stats").await.expect(200);
    assert_eq!(stats["totalTransactions"], json!(rows.len()), "{stats}");
    rows.iter()
        .map(|row| row["hash"].as_str().unwrap().to_owned())
        .collect()
}

on_both_engines!(viewers_see_their_own_rows);

/// spec/40 E9, E10, E12, E13 and X3; I1: the explorer shows what `/rpc` shows.
async fn viewers_see_their_own_rows(engine: Engine) {
    let directory = tempfile::tempdir().unwrap();
    let database = explorer_database(engine, &directory);
    let mut w = World::start_with(engine, &[("EXPLORER_DATABASE_URL", &database)]).await;
    let own =
        w.gw.send(
            &w.ops.token,
            &w.ops.key,
            Some(w.erc20),
            U256::ZERO,
            transfer(w.analyst.address(), 7),
        )
        .await
        .to_string();
    let (trader, outsider) = (&w.trader, &w.outsider);
    let foreign =
        w.gw.send(
            &trader.token,
            &trader.key,
            Some(outsider.address()),
            U256::from(5),
            Bytes::new(),
        )
        .await
        .to_string();
    wait_until_synced(&w.gw).await;

    let ops = visible_transactions(&w.gw, &w.ops.token).await;
    assert!(ops.contains(&own) && !ops.contains(&foreign), "{ops:?}");
    let seen_by_trader = visible_transactions(&w.gw, &w.trader.token).await;
    assert_eq!(seen_by_trader, BTreeSet::from([foreign.clone()]));
    assert_eq!(visible_transactions(&w.gw, "").await, BTreeSet::new());

    // One transaction through both interfaces.
    let path = format!("/transactions/{own}");
    let shown = get(&w.gw, &w.ops.token, &path).await.expect(200);
    let by_rpc =
        w.gw.result(&w.ops.token, "eth_getTransactionByHash", json!([own]))
            .await;
    for (explorer, rpc) in [("hash", "hash"), ("from", "from"), ("to", "to"), ("inputData", "input")] {
        let lower = |value: &Value| value.as_str().unwrap().to_lowercase();
        assert_eq!(lower(&shown[explorer]), lower(&by_rpc[rpc]), "{shown} {by_rpc}");
    }
    let by_rpc =
        w.gw.result(&w.trader.token, "eth_getTransactionByHash", json!([own]))
            .await;
    assert_eq!(by_rpc, Value::Null);
    // A transaction that is hidden is answered as one that does not exist.
    for token in ["", &w.trader.token] {
        let hidden = get(&w.gw, token, &path).await;
        let absent = get(&w.gw, token, &format!("/transactions/{UNKNOWN_HASH}")).await;
        hidden.expect(404);
        assert_eq!(hidden.json()["error"], absent.json()["error"]);
    }
    get(&w.gw, "no.valid.token", "/blocks").await.expect(401);
    w.gw.request("GET", &format!("{ROOT}/ws"), &[], None).await.expect(404);

    // E12: the record names the route, not the hash.
    let logs = wait_for_log(&w.gw, w.trader.did, "GET /api/v1/explorer/transactions/{hash}\"").await;
    assert!(!logs.contains(&own), "{logs}");

    for name in [
        "ledger_gateway_indexer_height",
        "ledger_gateway_indexer_lag_blocks",
        "ledger_gateway_explorer_index_height",
        "ledger_gateway_explorer_index_generation",
    ] {
        wait_for_metric(&w.gw, name).await;
    }

    // A restart keeps the index: it is loaded from the database and continues.
    let before = get(&w.gw, &w.ops.token, "/transactions").await.body;
    w.gw.restart().await;
    wait_until_synced(&w.gw).await;
    assert_eq!(get(&w.gw, &w.ops.token, "/transactions").await.body, before);
    assert_eq!(w.gw.process.terminate(), Some(0));
}

/// E1, E7: without a database every route answers 503, behind the same checks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e1_e7_without_a_database_every_route_answers_503() {
    let w = World::start(Engine::Sqlite).await;
    let described = Described::by(&w.gw).await;
    let document = w.gw.request("GET", "/openapi.json", &[], None).await.expect(200);
    let mut routes = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        // Tokens of grants do not come from the index.
        if !path.starts_with(ROOT) || path.ends_with("/token") {
            continue;
        }
        for method in operations
            .as_object()
            .unwrap()
            .keys()
            .map(|method| method.to_uppercase())
        {
            routes += 1;
            for (headers, status) in [
                (vec![], 503),
                (vec![("authorization", format!("Bearer {}", w.ops.token))], 503),
                (vec![("authorization", "Bearer no.valid.token".to_owned())], 401),
                // HD16: a request that was forwarded by nobody we know comes from outside.
                (vec![("x-forwarded-for", "127.0.0.1".to_owned())], 403),
            ] {
                let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let answer = w.gw.request(&method, path, &headers, None).await;
                assert_eq!(answer.status, status, "{method} {path} {headers:?}: {}", answer.body);
                described.check(&method, path, &answer);
                assert_eq!(answer.headers["x-content-type-options"], "nosniff");
                if status == 503 {
                    assert_eq!(answer.json()["error"], "explorer store not configured");
                }
            }
        }
    }
    assert!(routes > 30, "{routes}");
    w.gw.request("GET", &format!("{ROOT}/ws"), &[], None).await.expect(404);
    let ready = w.gw.request("GET", "/ready", &[], None).await.expect(200);
    assert!(ready["dependencies"].get("explorer").is_none(), "{ready}");
}

/// HD16: a private address is not enough if there is a key of the backend.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd16_the_data_api_asks_for_a_token_or_the_key() {
    let directory = tempfile::tempdir().unwrap();
    let database = explorer_database(Engine::Sqlite, &directory);
    let settings = [
        ("EXPLORER_DATABASE_URL", database.as_str()),
        ("EXPLORER_BACKEND_KEY", KEY),
    ];
    let gw = Gateway::start_with(Engine::Sqlite, &settings).await;
    let token = gw.login("did:test:somebody").await;
    let bearer = format!("Bearer {token}");
    let path = format!("{ROOT}/chain-id");
    let status = async |headers: &[(&str, &str)]| gw.request("GET", &path, headers, None).await.status;
    for _ in 0..MAX_POLLS {
        if status(&[("x-explorer-key", KEY)]).await == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(status(&[("x-explorer-key", KEY)]).await, 200);
    assert_eq!(status(&[]).await, 401);
    assert_eq!(status(&[("x-explorer-key", "wrong")]).await, 401);
    assert_eq!(status(&[("authorization", &bearer)]).await, 200);
    assert_eq!(
        status(&[("authorization", &bearer), ("x-explorer-key", "wrong")]).await,
        401
    );
    assert_eq!(
        status(&[("authorization", "Bearer no.valid.token"), ("x-explorer-key", KEY)]).await,
        401
    );
    assert_eq!(
        status(&[("authorization", &bearer), ("x-forwarded-for", "198.51.100.7")]).await,
        403
    );
}

/// E11, HD7: an administrator reads what the member and they may both see; each read is recorded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e11_an_administrator_reads_as_a_member() {
    let directory = tempfile::tempdir().unwrap();
    let database = explorer_database(Engine::Sqlite, &directory);
    let w = World::start_with(Engine::Sqlite, &[("EXPLORER_DATABASE_URL", &database)]).await;
    // A payment between two members, which concerns no contract of the organization.
    let payment =
        w.gw.send(
            &w.ops.token,
            &w.ops.key,
            Some(w.trader.address()),
            U256::from(9),
            Bytes::new(),
        )
        .await
        .to_string();
    wait_until_synced(&w.gw).await;
    let tree = |did: &str, org: &str| format!("/api/v1/admin/impersonate/{did}/in/{org}{ROOT}");
    let ops_tree = tree(w.ops.did, &w.meridian);
    let read = async |who: &Persona, path: String| w.gw.as_user(&who.token, "GET", &path, None).await;

    let own = visible_transactions(&w.gw, &w.ops.token).await;
    let by_admin = visible_transactions(&w.gw, &w.admin.token).await;
    assert!(own.contains(&payment) && !by_admin.contains(&payment));
    let list = read(&w.admin, format!("{ops_tree}/transactions?limit=100")).await;
    let hashes: BTreeSet<String> = list.expect(200)["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["hash"].as_str().unwrap().to_owned())
        .collect();
    // I9: contained in both views. The organization's contract makes some rows visible to both.
    assert!(
        !hashes.is_empty() && hashes.is_subset(&own) && hashes.is_subset(&by_admin),
        "{hashes:?}"
    );
    let wallet = w.ops.address().to_string().to_lowercase();
    assert!(!list.body.to_lowercase().contains(&wallet), "{}", list.body);
    read(&w.admin, format!("{ops_tree}/transactions/{payment}"))
        .await
        .expect(404);
    read(&w.admin, format!("{ops_tree}/blocks/latest/number"))
        .await
        .expect(200);
    read(&w.admin, format!("{ops_tree}/blocks?limit=2&nonsense=1"))
        .await
        .expect(400);
    let head =
        w.gw.as_user(&w.admin.token, "HEAD", &format!("{ops_tree}/blocks"), None)
            .await;
    assert_eq!((head.status, head.body.as_str()), (200, ""));

    // Who may read, and what.
    read(&w.admin, format!("{ops_tree}/nothing")).await.expect(404);
    read(&w.admin, tree(w.trader.did, &w.meridian) + "/blocks")
        .await
        .expect(404);
    read(&w.admin, tree(w.ops.did, &w.volta) + "/blocks").await.expect(403);
    read(&w.admin, tree(w.admin.did, &w.meridian) + "/blocks")
        .await
        .expect(400);
    for other in [&w.ops, &w.trader, &w.outsider] {
        read(other, format!("{ops_tree}/blocks")).await.expect(403);
    }
    let path = format!("{ops_tree}/blocks");
    w.gw.request("GET", &path, &[("x-admin-token", ADMIN_TOKEN)], None)
        .await
        .expect(403);
    w.gw.request("GET", &path, &[], None).await.expect(401);
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let answer = w.gw.as_user(&w.admin.token, method, &path, None).await;
        assert_eq!(answer.status, 405, "{method}");
    }

    // The records: one of each impersonated read, without the values in its path, and none of the refused ones.
    let audit = format!(
        "/audit-logs?limit=100&resource_type=user&resource_id={}&action=access",
        w.ops.user_id
    );
    let entries = w.gw.admin("GET", &audit, None).await.expect(200);
    let entries: Vec<String> = entries.as_array().unwrap().iter().map(Value::to_string).collect();
    let count = |text: &str| entries.iter().filter(|entry| entry.contains(text)).count();
    assert_eq!(count("GET /api/v1/explorer/transactions\""), 1, "{entries:?}");
    assert_eq!(count("GET /api/v1/explorer/transactions/{hash}"), 1, "{entries:?}");
    assert_eq!(count("HEAD /api/v1/explorer/blocks\""), 1, "{entries:?}");
    assert_eq!(count(&payment), 0);
    let mirror = "GET /api/v1/admin/impersonate/{did}/in/{org_id}/api/v1/explorer/{*path}\"";
    wait_for_log(&w.gw, w.admin.did, mirror).await;
}

/// X5: blocks that left the chain leave the explorer. X4: a kill during catch-up loses and doubles nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x5_the_index_follows_reorganizations_and_survives_kills() {
    let directory = tempfile::tempdir().unwrap();
    let database = explorer_database(Engine::Sqlite, &directory);
    let mut w = World::start(Engine::Sqlite).await;
    w.gw.node("anvil_mine", json!([600])).await;
    // The explorer is added to a gateway whose chain is older.
    w.gw.restart_with(&[("EXPLORER_DATABASE_URL", &database)]).await;
    for pause in [150, 400, 900] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        w.gw.restart().await;
    }
    wait_until_synced(&w.gw).await;
    let own = visible_in_all_blocks(&w).await;
    assert!(own >= 2, "the deployment and the transfer");

    let snapshot = w.gw.node("evm_snapshot", json!([])).await;
    let gone =
        w.gw.send(
            &w.ops.token,
            &w.ops.key,
            Some(w.erc20),
            U256::ZERO,
            transfer(w.analyst.address(), 3),
        )
        .await;
    wait_until_synced(&w.gw).await;
    let path = format!("/transactions/{gone}");
    get(&w.gw, &w.ops.token, &path).await.expect(200);
    w.gw.node("evm_revert", json!([snapshot])).await;
    w.gw.node("anvil_mine", json!([3])).await;
    wait_until_synced(&w.gw).await;
    get(&w.gw, &w.ops.token, &path).await.expect(404);
    assert_eq!(visible_in_all_blocks(&w).await, own);
}

/// The total of the transactions that ops sees.
async fn visible_in_all_blocks(w: &World) -> u64 {
    let list = get(&w.gw, &w.ops.token, "/transactions").await.expect(200);
    list["total"].as_u64().unwrap()
}

/// X6: a reset chain stops the explorer and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x6_a_reset_chain_stops_the_explorer_only() {
    let directory = tempfile::tempdir().unwrap();
    let database = explorer_database(Engine::Sqlite, &directory);
    let mut w = World::start_with(Engine::Sqlite, &[("EXPLORER_DATABASE_URL", &database)]).await;
    w.gw.node("anvil_mine", json!([200])).await;
    wait_until_synced(&w.gw).await;
    w.gw.node("anvil_reset", json!([])).await;
    let stopped = wait_for(&w.gw, "/blocks", |answer| {
        answer.status == 503 && answer.body.contains("explorer index is stopped")
    })
    .await;
    assert_eq!(stopped.json()["error"], "explorer index is stopped");
    let ready = w.gw.request("GET", "/ready", &[], None).await.expect(200);
    assert_eq!(ready["dependencies"]["explorer"], "down", "{ready}");
    assert_eq!(w.gw.result(&w.ops.token, "eth_chainId", json!([])).await, "0x7a69");

    w.gw.restart_with(&[("FORCE_REINDEX", "true")]).await;
    wait_until_synced(&w.gw).await;
    let ready = w.gw.request("GET", "/ready", &[], None).await.expect(200);
    assert_eq!(ready["dependencies"]["explorer"], "ok", "{ready}");
}
