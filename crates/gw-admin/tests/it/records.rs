use crate::world::{Caller, World};
use gw_audit::AuthMethod;
use http::{Method, StatusCode};
use serde_json::json;

/// 70 rule 29: every request leaves one record, refusals included, with the true authentication method.
#[tokio::test]
async fn au29_every_request_leaves_one_record() {
    let world = World::start().await;
    let (org, token) = world.org_with_admin("bank").await;
    assert_eq!(
        world.get(Caller::Nobody, "/orgs").await.status,
        StatusCode::UNAUTHORIZED
    );
    assert_eq!(
        world.get(Caller::Super, &format!("/orgs/{org}")).await.status,
        StatusCode::OK
    );
    assert_eq!(
        world
            .get(Caller::User(&token), &format!("/orgs/{org}/groups"))
            .await
            .status,
        StatusCode::OK
    );
    let records = world.fixture.access_records();
    let rows: Vec<_> = records
        .iter()
        .map(|record| (&*record.method, record.status_code, record.auth_method, record.org_id))
        .collect();
    let expected = [
        ("GET /api/v1/admin/orgs", 401, AuthMethod::Anonymous, None),
        (
            "GET /api/v1/admin/orgs/{org_id}",
            200,
            AuthMethod::AdminToken,
            Some(org),
        ),
        (
            "GET /api/v1/admin/orgs/{org_id}/groups",
            200,
            AuthMethod::Bearer,
            Some(org),
        ),
    ];
    assert_eq!(rows, expected);
    assert!(
        records[2]
            .external_id
            .as_ref()
            .is_some_and(|name| name.as_str() == "did:test:bank-admin")
    );
}

/// HD22: while the journal is full, requests are refused without effect; afterwards they succeed.
#[tokio::test]
async fn hd22_a_full_journal_refuses_requests_without_effect() {
    let world = World::start().await;
    let reservations: Vec<_> = std::iter::from_fn(|| world.fixture.journal.reserve(1).ok()).collect();
    let create = async || {
        world
            .post(Caller::Super, "/orgs", json!({"slug": "bank", "name": "Bank"}))
            .await
    };
    let refused = create().await;
    assert_eq!(
        (refused.status, &refused.json()["error"]),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("audit unavailable"))
    );
    drop(reservations);
    assert_eq!(world.get(Caller::Super, "/orgs").await.json()["total"], 0);
    assert_eq!(create().await.status, StatusCode::CREATED);
}

/// HD21: a request whose client disconnects runs to its end and is recorded.
#[tokio::test]
async fn hd21_a_request_that_was_dropped_is_recorded() {
    let world = World::start().await;
    let body = json!({"slug": "bank", "name": "Bank"});
    let mut request = Box::pin(world.ask(Caller::Super, Method::POST, "/orgs", Some(body)));
    // Poll once, so that the request has begun.
    assert!(futures_util::poll!(&mut request).is_pending());
    drop(request);
    let mut posts = Vec::new();
    for _ in 0..500 {
        let records = world.fixture.access_records();
        posts.extend(records.into_iter().filter(|record| record.method.starts_with("POST")));
        if !posts.is_empty() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(posts.iter().map(|record| record.status_code).collect::<Vec<_>>(), [201]);
}
