//! What the access records say of who called, and that they are there (RTS13).

use crate::harness::{Engine, Gateway};
use serde_json::{Value, json};
use std::{io::Write as _, net::TcpStream, time::Duration};

/// The access records of a method, once there are `at_least` of them.
async fn records(gw: &Gateway, method: &str, at_least: usize) -> Vec<Value> {
    let query = format!("method={}", method.replace(' ', "%20"));
    let mut found = Vec::new();
    for _ in 0..100 {
        let logs = gw
            .admin("GET", &format!("/logs?limit=1000&{query}"), None)
            .await
            .expect(200);
        found.clone_from(logs["data"].as_array().unwrap());
        if found.len() >= at_least {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    found
}

/// An administrator by cookie stands in the records as one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rts13_records_name_the_way_an_administrator_authenticated() {
    let gw = Gateway::start_with(Engine::Sqlite, &[]).await;
    let token = gw.login("did:example:administrator").await;
    let cookie = format!("pp_access={token}");
    let by_cookie: &[(&str, &str)] = &[("cookie", &cookie), ("sec-fetch-site", "same-origin")];
    gw.request("GET", "/api/v1/admin/orgs", by_cookie, None)
        .await
        .expect(200);
    gw.as_user(&token, "GET", "/api/v1/admin/orgs", None).await.expect(200);
    gw.admin("GET", "/orgs", None).await.expect(200);
    let found = records(&gw, "GET /api/v1/admin/orgs", 3).await;
    let mut methods: Vec<&str> = found
        .iter()
        .map(|record| record["auth_method"].as_str().unwrap())
        .collect();
    methods.sort_unstable();
    assert_eq!(methods, ["admin_token", "bearer", "cookie"], "{found:?}");
}

/// HD21: a change leaves its record whenever its client goes away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rts13_hd21_an_abandoned_change_leaves_its_record() {
    let gw = Gateway::start_with(Engine::Sqlite, &[]).await;
    let address = gw.url.trim_start_matches("http://").to_owned();
    const RUNS: u64 = 30;
    for run in 0..RUNS {
        let body = json!({ "name": format!("Left {run}"), "slug": format!("left-{run}") }).to_string();
        let request = format!(
            "POST /api/v1/admin/orgs HTTP/1.1\r\nhost: {address}\r\nx-admin-token: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            crate::harness::ADMIN_TOKEN,
            body.len(),
        );
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        tokio::time::sleep(Duration::from_micros(run * 150)).await;
        drop(stream);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let orgs = gw.admin("GET", "/orgs?limit=1000", None).await.expect(200).to_string();
    let made = (0..RUNS)
        .filter(|run| orgs.contains(&format!("\"left-{run}\"")))
        .count();
    assert!(made > 0, "{orgs}");
    let found = records(&gw, "POST /api/v1/admin/orgs", made).await;
    let done = found.iter().filter(|record| record["status_code"] == 201).count();
    assert_eq!(done, made, "{found:?}");
}
