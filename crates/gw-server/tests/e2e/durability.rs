//! No record is lost when the process is killed or stopped under load. A second process does not start on the same
//! data.

use crate::{
    harness::{Engine, on_both_engines},
    world::{World, transfer},
};
use alloy_primitives::U256;
use serde_json::{Value, json};
use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

on_both_engines!(killed_under_load, stopped_under_load);

/// Every correlation id in the access log. New records move older ones to the next page, so one record may be read
/// twice; that is not a duplicate.
async fn recorded_ids(w: &World) -> HashSet<String> {
    let mut records = HashMap::new();
    let mut offset = 0;
    loop {
        let page =
            w.gw.admin("GET", &format!("/logs?limit=1000&offset={offset}"), None)
                .await
                .expect(200);
        let rows = page["data"].as_array().unwrap();
        for row in rows {
            if let Some(id) = row["correlation_id"].as_str() {
                let record = row["id"].as_i64().unwrap();
                let earlier = records.insert(id.to_owned(), record);
                assert!(
                    !id.starts_with("load-") || earlier.is_none_or(|earlier| earlier == record),
                    "recorded twice: {id}"
                );
            }
        }
        if rows.len() < 1000 {
            return records.into_keys().collect();
        }
        offset += 1000;
    }
}

/// Waits until the access log has all `expected` ids. The sealer adds records at its interval.
async fn wait_for_all(w: &World, expected: &HashSet<String>) {
    let mut missing = expected.len();
    for _ in 0..300 {
        let recorded = recorded_ids(w).await;
        missing = expected.difference(&recorded).count();
        if missing == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{missing} of {} answered calls have no record", expected.len());
}

/// Starts tasks that send calls until the gateway stops responding. Returns the ids of the answered calls, and the
/// tasks.
async fn load(
    w: &World,
    round: usize,
    tasks: usize,
) -> (Arc<std::sync::Mutex<HashSet<String>>>, Vec<tokio::task::JoinHandle<()>>) {
    let answered = Arc::new(std::sync::Mutex::new(HashSet::new()));
    let mut handles = Vec::new();
    for task in 0..tasks {
        let (http, url, token) = (w.gw.http.clone(), format!("{}/rpc", w.gw.url), w.analyst.token.clone());
        let address = w.analyst.address();
        let answered = answered.clone();
        handles.push(tokio::spawn(async move {
            for n in 0..10_000 {
                let id = format!("load-{round}-{task}-{n}");
                let body =
                    json!({"jsonrpc": "2.0", "id": n, "method": "eth_getBalance", "params": [address, "latest"]});
                let request = http::Request::post(&url)
                    .header("authorization", format!("Bearer {token}"))
                    .header("x-correlation-id", &id)
                    .body(http_body_util::Full::from(body.to_string()))
                    .unwrap();
                match http.request(request).await {
                    Ok(answer) if answer.status() == 200 || answer.status() == 429 => {
                        answered.lock().unwrap().insert(id);
                    }
                    // The gateway may be unavailable for a moment on a loaded machine.
                    Ok(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                    Err(_) => return,
                }
            }
        }));
    }
    (answered, handles)
}

/// HD22, HD25, L4, 70 rules 11-13: SIGKILL under load loses no record and breaks no chain.
async fn killed_under_load(engine: Engine) {
    let mut w = World::start(engine).await;
    let mut expected = HashSet::new();
    for round in 0..3 {
        let (answered, handles) = load(&w, round, 8).await;
        while answered.lock().unwrap().len() < 150 + 100 * round {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        w.gw.process.kill();
        for handle in handles {
            handle.await.unwrap();
        }
        let ids: HashSet<String> = answered.lock().unwrap().drain().collect();
        assert!(ids.len() >= 150);
        w.gw.restart().await;
        wait_for_all(&w, &ids).await;
        expected = ids;
    }
    assert!(!expected.is_empty());
    w.gw.process.terminate();
    let (code, output) = w.gw.run_command(&["audit", "verify"]);
    assert_eq!(code, Some(0), "{output}");
}

/// 85 §6.1, §11 row 4: SIGTERM under load answers what was accepted and records it.
async fn stopped_under_load(engine: Engine) {
    let mut w = World::start(engine).await;
    let hash =
        w.gw.send(
            &w.ops.token,
            &w.ops.key,
            Some(w.erc20),
            U256::ZERO,
            transfer(w.analyst.address(), 1),
        )
        .await;
    let (answered, handles) = load(&w, 0, 8).await;
    while answered.lock().unwrap().len() < 200 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let code = w.gw.process.terminate();
    assert_eq!(code, Some(0), "a graceful stop");
    for handle in handles {
        handle.await.unwrap();
    }
    let ids: HashSet<String> = answered.lock().unwrap().drain().collect();
    w.gw.restart().await;
    wait_for_all(&w, &ids).await;
    let receipt =
        w.gw.result(&w.ops.token, "eth_getTransactionReceipt", json!([hash]))
            .await;
    assert_ne!(receipt, Value::Null);
}

/// HD24: a second process on the same directory exits with 78 and names the directory or its holder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hd24_a_second_process_does_not_start_on_the_same_directory() {
    let w = World::start(Engine::Sqlite).await;
    let (code, output) = w.gw.run_command(&["serve"]);
    assert_eq!(code, Some(78), "{output}");
    assert!(
        output.contains(&w.gw.data_dir().display().to_string()) || output.contains("held"),
        "{output}"
    );
}
