//! What owners decide and see (spec/50 sections 3, 4 and 9).

use crate::world::{Caller, World, on_both_engines};
use gw_testkit::fixture::TestUser;
use serde_json::{Value, json};

#[tokio::test]
async fn ds9_an_owner_sees_who_asks_and_decides() {
    on_both_engines(async |w| {
        let owner = Caller::User(&w.owner);
        for path in ["requests", "requests/all", "grants", "grants/all"] {
            assert_eq!(
                w.get(owner, &format!("/me/disclosure/{path}")).await.expect(200),
                json!([]),
                "{path}"
            );
        }
        let request = w.request(json!({"disclosure_level": "pseudonymous"})).await;
        let pending = w.get(owner, "/me/disclosure/requests").await.expect(200);
        assert_eq!(pending[0]["requester_did"], w.grantee.name.as_str());
        assert_eq!(pending[0]["request"]["requester_did"], w.grantee.name.as_str());
        assert_eq!(pending[0]["request"]["legal_basis"], "Art. 6");
        assert_eq!(
            w.get(Caller::User(&w.grantee), "/me/disclosure/requests")
                .await
                .expect(200),
            json!([])
        );
        let body = json!({"grant_duration_hours": 48, "reason": "fine"});
        let approved = w.approve(&request, body).await.expect(200);
        assert_eq!(approved["message"], "Disclosure request approved");
        let grant = &approved["grant"];
        assert_eq!((&grant["request_id"], grant.get("secret")), (&json!(request), None));
        assert_eq!(w.get(owner, "/me/disclosure/requests").await.expect(200), json!([]));
        let all = w.get(owner, "/me/disclosure/requests/all").await.expect(200);
        assert_eq!(all[0]["request"]["status"], "approved");
        assert_eq!(all[0]["request"]["decision_reason"], "fine");
        assert_eq!(all[0]["decided_by_did"], w.owner.name.as_str());
        let grants = w.get(owner, "/me/disclosure/grants").await.expect(200);
        assert_eq!(grants[0]["grant"]["id"], grant["id"]);
        let rejected = w.request(json!({})).await;
        let path = format!("/me/disclosure/requests/{rejected}/reject");
        assert_eq!(
            w.post(owner, &path, json!({"reason": "no"})).await.expect(200),
            json!({"status": "rejected"})
        );
        assert_eq!(w.status_of(&rejected).await, "rejected");
        let revoke = format!("/me/disclosure/grants/{}/revoke", grant["id"].as_str().unwrap());
        assert_eq!(
            w.post(owner, &revoke, json!({})).await.expect(200),
            json!({"status": "revoked"})
        );
        assert_eq!(w.status_of(&request).await, "revoked");
        assert_eq!(w.get(owner, "/me/disclosure/grants").await.expect(200), json!([]));
        let ended = w.get(owner, "/me/disclosure/grants/all").await.expect(200);
        assert!(ended[0]["grant"]["revoked_at"].is_string());
    })
    .await;
}

#[tokio::test]
async fn ds12_ds13_requests_and_grants_end() {
    on_both_engines(async |w| {
        let mut body = w.request_body(json!({}));
        body["expires_in_hours"] = json!(1);
        let created = w
            .post(Caller::User(&w.admin), "/admin/disclosure/requests", body)
            .await
            .expect(201);
        let request = created["id"].as_str().unwrap();
        let (_, grant) = w.grant(json!({"methods": ["activity_logs"]})).await;
        w.fixture.clock.pass(3600);
        w.approve(request, json!({}))
            .await
            .expect_error(400, "request has expired");
        assert_eq!(w.status_of(request).await, "expired");
        let long = w.request(json!({})).await;
        for (hours, status) in [(8761, 400), (-1, 400), (8760, 200)] {
            let answer = w.approve(&long, json!({"grant_duration_hours": hours})).await;
            assert_eq!(answer.status.as_u16(), status, "{}", answer.text);
        }
        let logs = format!("/admin/disclosure/grants/{grant}/logs");
        w.get(Caller::User(&w.grantee), &logs).await.expect(200);
        w.fixture.clock.pass(23 * 3600);
        let grantee = later(&w, &w.grantee);
        w.get(Caller::User(&grantee), &logs)
            .await
            .expect_error(403, "grant has expired");
        // What has expired stays expired: neither the request nor the grant changes.
        let (owner, admin) = (later(&w, &w.owner), later(&w, &w.admin));
        let all = w
            .get(Caller::User(&owner), "/me/disclosure/grants/all")
            .await
            .expect(200);
        let late = json!({"reason": "late"});
        for (caller, path) in [
            (&owner, format!("/me/disclosure/grants/{grant}/revoke")),
            (&admin, format!("/admin/disclosure/grants/{grant}/revoke")),
        ] {
            w.post(Caller::User(caller), &path, late.clone())
                .await
                .expect_error(400, "grant has expired");
        }
        let after = w
            .get(Caller::User(&owner), "/me/disclosure/grants/all")
            .await
            .expect(200);
        assert_eq!(after, all);
    })
    .await;
}

/// The user with a new token: tokens of the fixture last for a day.
pub(crate) fn later(w: &World, user: &TestUser) -> TestUser {
    let (token, token_id) = w.fixture.issue_token(&user.name);
    TestUser {
        token,
        token_id,
        ..user.clone()
    }
}

/// Section 8: an owner makes at most 60 grants a minute, and long lists say how many rows there are.
#[tokio::test]
async fn ds8_grants_without_a_request_are_limited_and_lists_are_counted() {
    on_both_engines(async |w| {
        let owner = Caller::User(&w.owner);
        let body = json!({"grantee_did": w.grantee.name.as_str(), "reason": "for my accountant"});
        for made in 0..60 {
            // Refused ones count, too.
            let body = if made < 3 {
                body.clone()
            } else {
                json!({"grantee_did": "x", "reason": "r"})
            };
            let status = w.post(owner, "/me/disclosure/grants", body).await.status.as_u16();
            assert_eq!(status, if made < 3 { 201 } else { 400 });
        }
        let refused = w.post(owner, "/me/disclosure/grants", body).await;
        assert_eq!(refused.status.as_u16(), 429, "{}", refused.text);
        assert!(refused.headers.contains_key("retry-after"));
        for path in ["grants", "grants/all", "requests/all"] {
            let page = w.get(owner, &format!("/me/disclosure/{path}?limit=2&offset=2")).await;
            assert_eq!(page.headers["x-total-count"], "3", "{path}");
            assert_eq!(page.expect(200).as_array().unwrap().len(), 1, "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn an_owner_discloses_to_a_did_that_did_not_ask() {
    on_both_engines(async |w| {
        let owner = Caller::User(&w.owner);
        let body = json!({"grantee_did": w.grantee.name.as_str(), "reason": "for my accountant",
            "scope": {"methods": ["activity_logs"], "disclosure_level": "redacted"}, "grant_duration_hours": 2});
        let made = w.post(owner, "/me/disclosure/grants", body.clone()).await;
        let grant = made.expect(201)["grant"].clone();
        let id = grant["id"].as_str().unwrap();
        assert_eq!(made.headers["location"], format!("/api/v1/me/disclosure/grants/{id}"));
        let found = w.get(owner, &format!("/me/disclosure/grants/{id}")).await.expect(200);
        assert_eq!(found["request"]["status"], "approved");
        assert_eq!(found["request"]["org_id"], w.bank.to_string());
        w.get(Caller::User(&w.grantee), &format!("/admin/disclosure/grants/{id}/logs"))
            .await
            .expect(200);
        for (member, value, error) in [
            ("grantee_did", json!("x"), "grantee_did is malformed"),
            ("org_id", json!(w.rival), "org_id: not one of your organizations"),
            ("org_id", json!("x"), "org_id: not one of your organizations"),
            ("reason", json!(""), "reason is required"),
            (
                "grant_duration_hours",
                json!(9000),
                "grant_duration_hours must be between 0 and 8760",
            ),
        ] {
            let mut body = body.clone();
            body[member] = value;
            let refused = w.post(owner, "/me/disclosure/grants", body).await.expect(400);
            assert!(refused["error"].as_str().unwrap().starts_with(error), "{refused}");
        }
        // The other grants of the data are told at each request.
        let request = w.request(json!({})).await;
        let seen = w
            .get(owner, &format!("/me/disclosure/requests/{request}"))
            .await
            .expect(200);
        assert_eq!(seen["other_grants"][0]["grant_id"], id);
        assert_eq!(seen["other_grants"][0]["requester_did"], w.grantee.name.as_str());
        let own = found["request"]["id"].as_str().unwrap();
        let seen = w
            .get(owner, &format!("/me/disclosure/requests/{own}"))
            .await
            .expect(200);
        assert_eq!(seen["other_grants"], json!([]));
    })
    .await;
}

/// Rule 39: who looked at what, and when.
#[tokio::test]
async fn ds39_an_owner_sees_every_read() {
    on_both_engines(async |w| {
        let (_, grant) = w.grant(json!({"methods": ["activity_logs"]})).await;
        for route in ["logs", "summary", "report/activity_summary"] {
            w.fixture.clock.pass(1);
            let path = format!("/admin/disclosure/grants/{grant}/{route}");
            w.get(Caller::User(&w.grantee), &path).await.expect(200);
        }
        assert_eq!(w.seal_reads().await, ["view_logs", "view_summary", "export_report"]);
        let path = format!("/me/disclosure/grants/{grant}/events");
        let answer = w.get(Caller::User(&w.owner), &path).await;
        let events = answer.expect(200);
        let actions = |events: &Value| -> Vec<String> {
            let rows = events.as_array().unwrap().iter();
            rows.map(|event| event["action"].as_str().unwrap().to_owned()).collect()
        };
        let expected = ["export_report", "view_summary", "view_logs", "approved", "requested"];
        assert_eq!(actions(&events), expected);
        assert_eq!(answer.headers["x-total-count"], "5");
        let first = &events[0];
        assert_eq!(
            (&first["resource_type"], &first["viewer_ip"]),
            (&json!("report"), &json!("127.0.0.1"))
        );
        assert_eq!(first["viewer_did"], w.grantee.name.as_str());
        assert!(first["accessed_at"].is_string());
        // Pages by cursor; a read in between neither repeats nor skips an event.
        let page = w.get(Caller::User(&w.owner), &format!("{path}?limit=2")).await;
        assert_eq!(actions(&page.json()), expected[..2]);
        w.fixture.clock.pass(1);
        w.get(
            Caller::User(&w.grantee),
            &format!("/admin/disclosure/grants/{grant}/logs"),
        )
        .await
        .expect(200);
        w.seal_reads().await;
        let cursor = page.headers["x-next-cursor"].to_str().unwrap().to_owned();
        let next = w
            .get(Caller::User(&w.owner), &format!("{path}?limit=10&cursor={cursor}"))
            .await;
        assert_eq!(actions(&next.json()), expected[2..]);
        assert!(!next.headers.contains_key("x-next-cursor"));
        let (_, second) = w.grant(json!({})).await;
        let foreign = format!("/me/disclosure/grants/{second}/events?cursor={cursor}");
        w.get(Caller::User(&w.owner), &foreign)
            .await
            .expect_error(400, "invalid pagination cursor");
        // Administrators read metadata; the grantee reads no other person.
        let path = format!("/admin/disclosure/grants/{grant}/events");
        for (caller, names_admin) in [
            (Caller::User(&w.auditor), true),
            (Caller::Super, true),
            (Caller::User(&w.grantee), false),
        ] {
            let events = w.get(caller, &path).await.expect(200);
            assert_eq!(events.as_array().unwrap().len(), 6, "{caller:?}");
            assert!(!events.to_string().contains("127.0.0.1"), "{caller:?}");
            assert_eq!(
                events.to_string().contains(&w.admin.id.to_string()),
                names_admin,
                "{caller:?}"
            );
        }
        w.get(Caller::User(&w.other), &path)
            .await
            .expect_error(403, "access denied to target resource");
    })
    .await;
}

/// Rule 15: each transition leaves its audit entries.
#[tokio::test]
async fn ds15_every_transition_is_audited() {
    let w = World::start(None).await;
    let count = async || {
        let filter = gw_store::audit::AuditFilter::all(gw_store::read::Scope::Orgs(vec![w.bank]));
        let paging = gw_store::read::Paging { limit: 1000, offset: 0 };
        w.audit
            .list_audit_logs(&w.fixture.store, &filter, paging)
            .await
            .unwrap()
            .total
    };
    let mut before = count().await;
    let mut grew = async |by: u64, what: &str| {
        let now = count().await;
        assert_eq!(now - before, by, "{what}");
        before = now;
    };
    let request = w.request(json!({})).await;
    grew(1, "create").await;
    w.approve(&request, json!({"grant_duration_hours": 99_999}))
        .await
        .expect(400);
    grew(0, "refused").await;
    w.approve(&request, json!({})).await.expect(200);
    grew(2, "approve").await;
    w.post(
        Caller::User(&w.owner),
        &format!("/me/disclosure/requests/{request}/revoke"),
        json!({}),
    )
    .await
    .expect(200);
    grew(2, "revoke").await;
    let rejected = w.request(json!({})).await;
    w.post(
        Caller::User(&w.owner),
        &format!("/me/disclosure/requests/{rejected}/reject"),
        json!({}),
    )
    .await
    .expect(200);
    grew(2, "create and reject").await;
}
