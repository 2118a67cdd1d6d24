//! The access log has a record of each request, which names how the caller authenticated (RTS13).

use crate::harness::{Engine, Gateway};
use serde_json::{Value, json};
use std::{io::Write as _, net::TcpStream, time::Duration};

/// The access records of a method. Waits up to ten seconds until there are `at_least` records.
async fn records(gw: &Gateway, method: &str, at_least: usize) -> Vec<Value> {
    let query = format!("method={}", method.replace(' ', "%20"));
    let mut rows = Vec::new();
    for _ in 0..100 {
        let logs = gw
            .admin("GET", &format!("/logs?limit=1000&{query}"), None)
            .await
            .expect(200);
        rows.clone_from(logs["data"].as_array().unwrap());
        if rows.len() >= at_least {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    rows
}

/// The record of an administrator who authenticates with a cookie has the auth method `cookie`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rts13_records_name_how_an_administrator_authenticated() {
    let gw = Gateway::start_with(Engine::Sqlite, &[]).await;
    let token = gw.login("did:example:administrator").await;
    let cookie = format!("pp_access={token}");
    let by_cookie: &[(&str, &str)] = &[("cookie", &cookie), ("sec-fetch-site", "same-origin")];
    gw.request("GET", "/api/v1/admin/orgs", by_cookie, None)
        .await
        .expect(200);
    gw.as_user(&token, "GET", "/api/v1/admin/orgs", None).await.expect(200);
    gw.admin("GET", "/orgs", None).await.expect(200);
    let rows = records(&gw, "GET /api/v1/admin/orgs", 3).await;
    let mut methods: Vec<&str> = rows
        .iter()
        .map(|record| record["auth_method"].as_str().unwrap())
        .collect();
    methods.sort_unstable();
    assert_eq!(methods, ["admin_token", "bearer", "cookie"], "{rows:?}");
}

/// HD21: a committed change has its access record, even if the client disconnects.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rts13_hd21_a_change_is_recorded_although_the_client_disconnects() {
    let gw = Gateway::start_with(Engine::Sqlite, &[]).await;
    let address = gw.url.trim_start_matches("http://").to_owned();
    const RUNS: u64 = 30;
    for run in 0..RUNS {
        let body = json!({ "name": format!("Left {run}"), "slug": format!("left-{run}") }).to_string();
        let request = format!(
            "POST /api/v1/admin/orgs HTTP/1.1\r\nhost: {address}\r\nx-admin-token: {}\r\ncontent-type: \
             application/json\r\n\
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
    let created = (0..RUNS)
        .filter(|run| orgs.contains(&format!("\"left-{run}\"")))
        .count();
    assert!(created > 0, "{orgs}");
    let rows = records(&gw, "POST /api/v1/admin/orgs", created).await;
    let recorded = rows.iter().filter(|record| record["status_code"] == 201).count();
    assert_eq!(recorded, created, "{rows:?}");
}
