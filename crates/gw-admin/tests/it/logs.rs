//! `/logs` and `/audit-logs` page by page.

use crate::world::{Caller, Response, World};
use gw_audit::AccessRecord;
use gw_types::OrgId;
use http::{Method, StatusCode};
use serde_json::{Value, json};

impl World {
    async fn create_orgs(&self, slugs: std::ops::Range<u32>) {
        for n in slugs {
            let body = json!({"slug": format!("org-{n}"), "name": "Org"});
            assert_eq!(
                self.post(Caller::Super, "/orgs", body).await.status,
                StatusCode::CREATED
            );
        }
    }

    /// Reads a log to its end, two rows at a time. After each page `between` adds rows.
    async fn read_all(&self, caller: Caller<'_>, path: &str, mut between: impl AsyncFnMut()) -> Vec<Value> {
        let (mut rows, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.get(caller, &format!("{path}limit=2{cursor}")).await;
            assert_eq!(page.status, StatusCode::OK, "{}", page.text);
            let page = page.json();
            rows.extend(page["data"].as_array().unwrap().iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return rows,
            }
            between().await;
        }
    }
}

fn ids(rows: &[Value]) -> Vec<i64> {
    rows.iter().map(|row| row["id"].as_i64().unwrap()).collect()
}

fn header(response: &Response, name: &str) -> Option<String> {
    response
        .headers
        .get(name)
        .map(|value| value.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn the_audit_log_continues_where_its_page_ended() {
    let world = World::start().await;
    world.create_orgs(0..5).await;
    let mut next = 5;
    let read = world
        .read_all(Caller::Super, "/audit-logs?envelope=true&", async || {
            world.create_orgs(next..next + 1).await;
            next += 1;
        })
        .await;
    let rows = world.get(Caller::Super, "/audit-logs").await.json();
    let rows = ids(rows.as_array().unwrap());
    assert_eq!(rows.len(), 7, "two were added meanwhile");
    assert_eq!(ids(&read), rows[2..]);
}

#[tokio::test]
async fn the_audit_log_is_an_array_unless_an_envelope_is_asked_for() {
    let world = World::start().await;
    world.create_orgs(0..3).await;
    let array = world.get(Caller::Super, "/audit-logs?limit=2").await;
    assert_eq!(array.json().as_array().unwrap().len(), 2);
    assert_eq!(header(&array, "x-total-count").as_deref(), Some("3"));
    let cursor = header(&array, "x-next-cursor").unwrap();
    let rest = world
        .get(Caller::Super, &format!("/audit-logs?limit=2&cursor={cursor}"))
        .await;
    assert_eq!(rest.json().as_array().unwrap().len(), 1);
    assert_eq!(header(&rest, "x-total-count").as_deref(), Some("3"));
    assert_eq!(header(&rest, "x-next-cursor"), None, "the last page");
    // The form of the answer is no part of the list.
    let page = world
        .get(
            Caller::Super,
            &format!("/audit-logs?envelope=true&limit=2&cursor={cursor}"),
        )
        .await
        .json();
    assert_eq!(page["data"], rest.json());
    assert_eq!(
        (&page["total"], &page["limit"], &page["offset"]),
        (&json!(3), &json!(2), &json!(0))
    );
    let wrong = world.get(Caller::Super, "/audit-logs?envelope=1").await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
}

/// HD40: the access log of an organization is read to its end by cursors that show nothing of other rows.
#[tokio::test]
async fn hd40_the_access_log_continues_within_the_scope() {
    let world = World::start().await;
    let (org, token) = world.org_with_admin("bank").await;
    let row = |n: u16, org_id: Option<OrgId>| AccessRecord {
        org_id,
        ..AccessRecord::new("eth_call", 200 + n)
    };
    let rows = (0..5).flat_map(|n| [row(n, Some(org)), row(50 + n, None)]).collect();
    let mut log = world.access_log().await;
    log.seal(rows).await;
    let read = world
        .read_all(Caller::User(&token), "/logs?method=eth_call&", async || {
            log.seal(vec![row(99, Some(org))]).await;
        })
        .await;
    let statuses: Vec<_> = read.iter().map(|row| row["status_code"].as_u64().unwrap()).collect();
    assert_eq!(statuses, [204, 203, 202, 201, 200]);
}

#[tokio::test]
async fn a_cursor_of_another_list_or_scope_is_refused() {
    let world = World::start().await;
    let (_, token) = world.org_with_admin("bank").await;
    let (_, other_token) = world.org_with_admin("rival").await;
    for slug in ["a", "b", "c"] {
        let orgs = world.get(Caller::User(&token), "/orgs").await.json();
        let path = format!("/orgs/{}/groups", orgs["data"][0]["id"].as_str().unwrap());
        let created = world
            .post(Caller::User(&token), &path, json!({"slug": slug, "name": slug}))
            .await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.text);
    }
    let first = world
        .get(Caller::User(&token), "/audit-logs?limit=1&resource_type=group")
        .await;
    let cursor = header(&first, "x-next-cursor").unwrap();
    let ask = async |caller, path: String| world.ask(caller, Method::GET, &path, None).await;
    let own = ask(
        Caller::User(&token),
        format!("/audit-logs?resource_type=group&cursor={cursor}"),
    )
    .await;
    assert_eq!(own.status, StatusCode::OK, "{}", own.text);
    for (caller, path) in [
        (Caller::User(&token), format!("/audit-logs?cursor={cursor}")),
        (
            Caller::User(&token),
            format!("/audit-logs?resource_type=user&cursor={cursor}"),
        ),
        (
            Caller::User(&token),
            format!("/logs?resource_type=group&cursor={cursor}"),
        ),
        (
            Caller::User(&token),
            format!("/audit-logs?resource_type=group&cursor=x{cursor}"),
        ),
        (
            Caller::User(&token),
            "/audit-logs?resource_type=group&cursor=".to_owned(),
        ),
        (
            Caller::User(&token),
            format!("/audit-logs?resource_type=group&offset=1&cursor={cursor}"),
        ),
        (
            Caller::User(&other_token),
            format!("/audit-logs?resource_type=group&cursor={cursor}"),
        ),
        (
            Caller::Super,
            format!("/audit-logs?resource_type=group&cursor={cursor}"),
        ),
    ] {
        let refused = ask(caller, path.clone()).await;
        assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{path}: {}", refused.text);
    }
}
