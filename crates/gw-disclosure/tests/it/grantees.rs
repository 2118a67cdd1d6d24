//! What grantees read besides the explorer's pages (spec/50 sections 5 and 7).

use crate::{
    owners::later,
    world::{Caller, World, on_both_engines},
};
use axum::body::Body;
use gw_audit::{AccessRecord, Record, Stream};
use gw_disclosure::GrantRefusal;
use gw_store::record::LinkProof;
use gw_types::{Address, Clock as _, ExternalId, OrgId};
use http::{Request, header};
use serde_json::json;

fn call(caller: &ExternalId, org: OrgId, method: &'static str, status: u16) -> Record {
    Record::Access(AccessRecord {
        external_id: Some(caller.clone()),
        org_id: Some(org),
        ip_address: Some([192, 0, 2, 7].into()),
        ..AccessRecord::new(method, status)
    })
}

/// The owner's calls in the bank and elsewhere, and calls of others.
async fn seal_calls(w: &World) {
    let (owner, bank) = (&w.owner.name, w.bank);
    let denied = Record::Access(AccessRecord {
        external_id: Some(owner.clone()),
        org_id: Some(bank),
        response_status: Some(404),
        ..AccessRecord::new("eth_getLogs", 403)
    });
    let calls = vec![
        call(owner, bank, "eth_call", 200),
        call(owner, bank, "eth_call", 200),
        denied,
        call(owner, bank, "GET /api/v1/me/orgs", 200),
        call(owner, w.rival, "eth_call", 200),
        call(&w.admin.name, bank, "eth_call", 200),
    ];
    w.seal(Stream::Access, calls).await;
}

#[tokio::test]
async fn ds25_ds34_logs_and_summary_are_the_owners_calls_in_the_organization() {
    on_both_engines(async |w| {
        seal_calls(&w).await;
        w.fixture.clock.pass(10);
        let (_, grant) = w.grant(json!({"methods": ["activity_logs"]})).await;
        let (_, narrow) = w.grant(json!({"methods": ["activity_logs", "eth_getLogs"]})).await;
        let (_, other) = w.grant(json!({"methods": ["transaction_history"]})).await;
        w.fixture.clock.pass(10);
        seal_calls(&w).await;
        let reader = Caller::User(&w.grantee);
        let logs = w.get(reader, &format!("/admin/disclosure/grants/{grant}/logs")).await;
        let rows = logs.expect(200);
        let calls: Vec<_> = rows
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["method"].as_str().unwrap(), row["status_code"].as_u64().unwrap()))
            .collect();
        assert_eq!(
            calls,
            [("eth_getLogs", 404), ("eth_call", 200), ("eth_call", 200)],
            "newest first"
        );
        assert_eq!(rows[0].as_object().unwrap().len(), 3, "method, status and time only");
        assert!(!logs.text.contains("192.0.2.7"));
        let page = w
            .get(
                reader,
                &format!("/admin/disclosure/grants/{grant}/logs?limit=1&offset=2"),
            )
            .await;
        assert_eq!(page.expect(200)[0]["method"], "eth_call");
        let summary = w
            .get(reader, &format!("/admin/disclosure/grants/{grant}/summary"))
            .await
            .expect(200);
        assert_eq!(summary["total_requests"], 3);
        assert_eq!(
            (&summary["successful_count"], &summary["failed_count"]),
            (&json!(2), &json!(1))
        );
        assert_eq!(summary["method_breakdown"], json!({"eth_call": 2, "eth_getLogs": 1}));
        assert_eq!(summary["unique_method_count"], 2);
        let narrow = w
            .get(reader, &format!("/admin/disclosure/grants/{narrow}/logs"))
            .await
            .expect(200);
        assert_eq!(narrow.as_array().unwrap().len(), 1);
        for route in ["logs", "summary", "report/compliance_report"] {
            w.get(reader, &format!("/admin/disclosure/grants/{other}/{route}"))
                .await
                .expect_error(403, "grant scope does not include activity_logs");
        }
        let request = Request::builder().uri(format!("/api/v1/admin/disclosure/grants/{grant}/logs"));
        let csv = w
            .send(reader, request.header(header::ACCEPT, "text/csv"), Body::empty())
            .await;
        assert_eq!(
            csv.headers[header::CONTENT_TYPE],
            "text/csv; charset=utf-8; header=present"
        );
        let lines: Vec<&str> = csv.text.lines().collect();
        assert_eq!((lines.len(), lines[0]), (4, "created_at,method,status_code"));
        assert!(lines[1].ends_with(",eth_getLogs,404"), "{}", lines[1]);
    })
    .await;
}

#[tokio::test]
async fn ds38_a_token_opens_the_reports_of_its_grant_for_an_hour() {
    on_both_engines(async |w| {
        let (_, grant) = w.grant(json!({"methods": ["activity_logs"]})).await;
        let (_, second) = w.grant(json!({"methods": ["activity_logs"]})).await;
        let mint = format!("/explorer/grant/{grant}/token");
        w.post(Caller::Nobody, &mint, json!({}))
            .await
            .expect_error(401, "authentication required");
        w.post(Caller::User(&w.owner), &mint, json!({}))
            .await
            .expect_error(404, "grant not found");
        w.post(Caller::User(&w.admin), &mint, json!({}))
            .await
            .expect_error(404, "grant not found");
        w.post(Caller::Nobody, "/explorer/grant/x/token", json!({}))
            .await
            .expect_error(400, "grant_id must be a UUID");
        let made = w.post(Caller::User(&w.grantee), &mint, json!({})).await.expect(201);
        let token = made["token"].as_str().unwrap();
        let path = |grant: &str, route: &str| format!("/admin/disclosure/grants/{grant}/{route}");
        for route in ["logs", "summary", "report/activity_summary", "events"] {
            w.get(Caller::Token(token), &path(&grant, route)).await.expect(200);
            w.get(Caller::Token(token), &path(&second, route))
                .await
                .expect_error(403, "token does not match grant");
            for wrong in ["", "x", token.get(1..).unwrap(), &token.to_lowercase()] {
                w.get(Caller::Token(wrong), &path(&grant, route))
                    .await
                    .expect_error(401, "invalid disclosure token");
            }
            // No token in the query.
            let query = w
                .get(
                    Caller::User(&w.grantee),
                    &format!("{}?token={token}", path(&grant, route)),
                )
                .await;
            assert_eq!(query.status.as_u16(), 400, "{}", query.text);
        }
        w.get(Caller::Token(token), "/me/disclosure/grants")
            .await
            .expect_error(401, "authentication required");
        w.fixture.clock.pass(3599);
        w.get(Caller::Token(token), &path(&grant, "logs")).await.expect(200);
        w.fixture.clock.pass(1);
        w.get(Caller::Token(token), &path(&grant, "logs"))
            .await
            .expect_error(401, "invalid disclosure token");
    })
    .await;
}

/// A revocation binds the next page, with the grantee's own token and with a disclosure token.
#[tokio::test]
async fn ds19_a_grant_that_is_revoked_between_pages_shows_no_further_page() {
    on_both_engines(async |w| {
        let (request, grant) = w.grant(json!({"methods": ["activity_logs"]})).await;
        seal_calls(&w).await;
        let mint = format!("/explorer/grant/{grant}/token");
        let made = w.post(Caller::User(&w.grantee), &mint, json!({})).await.expect(201);
        let token = made["token"].as_str().unwrap();
        let page = |offset: u32| format!("/admin/disclosure/grants/{grant}/logs?limit=1&offset={offset}");
        w.get(Caller::User(&w.grantee), &page(0)).await.expect(200);
        let revoke = format!("/me/disclosure/requests/{request}/revoke");
        w.post(Caller::User(&w.owner), &revoke, json!({})).await.expect(200);
        for caller in [Caller::User(&w.grantee), Caller::Token(token)] {
            w.get(caller, &page(1))
                .await
                .expect_error(403, "grant has been revoked");
        }
        w.post(Caller::User(&w.grantee), &mint, json!({}))
            .await
            .expect_error(403, "grant has been revoked");
        // Nobody else is told how it ended.
        w.get(Caller::User(&w.other), &page(1))
            .await
            .expect_error(404, "grant not found");
    })
    .await;
}

/// Rule 28: the disclosed addresses are those that the owner proved and still owns.
#[tokio::test]
async fn ds28_an_address_that_is_unlinked_or_claimed_by_another_is_not_disclosed() {
    on_both_engines(async |w| {
        let (kept, left, forwarded) = (
            Address::repeat_byte(0xa1),
            Address::repeat_byte(0xa2),
            Address::repeat_byte(0xa3),
        );
        for address in [kept, left] {
            link(&w, address).await;
        }
        w.fixture
            .change(async |tx| tx.link_sender(w.owner.id, forwarded).await.unwrap())
            .await;
        w.fixture.clock.pass(1);
        let (_, grant) = w.grant(json!({"disclosure_level": "full"})).await;
        let body = json!({"include_future_addresses": true});
        let request = w.request(json!({"disclosure_level": "full"})).await;
        let future = w.approve(&request, body).await.expect(200)["grant"]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let addresses = |grant: &str| {
            let pinned = w.fixture.feed.pin();
            let grantee = &w.grantee.name;
            let opened = w
                .state
                .open_grant(&pinned.snapshot, grantee, grant.parse().unwrap(), w.fixture.clock.now());
            opened.unwrap().addresses
        };
        assert_eq!(
            addresses(&grant),
            [kept, left],
            "a link by a forwarded transaction proves nothing"
        );
        w.fixture.clock.pass(1);
        let later = Address::repeat_byte(0xa4);
        link(&w, later).await;
        assert_eq!(addresses(&grant), [kept, left], "HD8");
        assert_eq!(addresses(&future), [kept, left, later]);
        w.fixture
            .change(async |tx| tx.unlink_address(w.owner.id, left).await.unwrap())
            .await;
        assert_eq!(addresses(&grant), [kept]);
        let pinned = w.fixture.feed.pin();
        let refused = w.state.open_grant(
            &pinned.snapshot,
            &w.owner.name,
            grant.parse().unwrap(),
            w.fixture.clock.now(),
        );
        assert_eq!(refused.unwrap_err(), GrantRefusal::Unknown);
    })
    .await;
}

async fn link(w: &World, address: Address) {
    let proof = LinkProof::Challenge;
    w.fixture
        .change(async |tx| tx.link_address(w.owner.id, address, proof).await.map(drop).unwrap())
        .await;
}

/// A grant that ends while a token of it lives: the token ends with the grant.
#[tokio::test]
async fn ds38_a_token_ends_with_its_grant() {
    let w = World::start(None).await;
    let (_, grant) = w.grant(json!({"methods": ["activity_logs"]})).await;
    w.fixture.clock.pass(24 * 3600 - 60);
    let grantee = later(&w, &w.grantee);
    let made = w
        .post(
            Caller::User(&grantee),
            &format!("/explorer/grant/{grant}/token"),
            json!({}),
        )
        .await
        .expect(201);
    let all = w
        .get(Caller::User(&later(&w, &w.owner)), "/me/disclosure/grants")
        .await
        .expect(200);
    assert_eq!(made["expires_at"], all[0]["grant"]["expires_at"]);
    w.fixture.clock.pass(60);
    let logs = format!("/admin/disclosure/grants/{grant}/logs");
    w.get(Caller::Token(made["token"].as_str().unwrap()), &logs)
        .await
        .expect_error(401, "invalid disclosure token");
}
