//! Requests and grants, as administrators manage them (spec/50 sections 1 to 4).

use crate::world::{Caller, World, on_both_engines};
use gw_disclosure::DisclosureSettings;
use serde_json::{Value, json};

const REQUESTS: &str = "/admin/disclosure/requests";
const DENIED: &str = "access denied to target resource";

#[tokio::test]
async fn ds1_ds3_each_kind_of_administrator_may_do_its_part() {
    on_both_engines(async |w| {
        let body = w.request_body(json!({}));
        for (caller, status) in [
            (Caller::Nobody, 401),
            (Caller::User(&w.owner), 403),
            (Caller::User(&w.auditor), 403),
            (Caller::User(&w.other), 403),
            (Caller::User(&w.admin), 201),
            (Caller::Super, 201),
        ] {
            let answer = w.post(caller, REQUESTS, body.clone()).await;
            assert_eq!(answer.status.as_u16(), status, "{caller:?} {}", answer.text);
        }
        let (request, grant) = w.grant(json!({})).await;
        let path = format!("{REQUESTS}/{request}");
        for caller in [Caller::User(&w.auditor), Caller::User(&w.admin), Caller::Super] {
            let found = w.get(caller, &path).await.expect(200);
            assert_eq!(found["requester_did"], w.grantee.name.as_str());
            assert_eq!(found["target_did"], w.owner.name.as_str());
            assert_eq!(found["active_grant_id"], grant);
            let list = w
                .get(caller, &format!("/admin/disclosure/grants?org_id={}", w.bank))
                .await
                .expect(200);
            assert_eq!(
                (&list["total"], &list["grants"][0]["grant"]["id"]),
                (&json!(1), &json!(grant))
            );
        }
        let revoke = format!("/admin/disclosure/grants/{grant}/revoke");
        w.post(Caller::User(&w.auditor), &revoke, json!({}))
            .await
            .expect_error(403, "mutating actions are restricted for read-only admins");
        // Rule 3: byte-equal for what is unknown and for what is another organization's.
        let other = Caller::User(&w.other);
        for (path, unknown) in [
            (path.as_str(), format!("{REQUESTS}/{grant}")),
            (&revoke, format!("/admin/disclosure/grants/{request}/revoke")),
        ] {
            let (foreign, unknown) = if path.ends_with("revoke") {
                (
                    w.post(other, path, json!({})).await,
                    w.post(other, &unknown, json!({})).await,
                )
            } else {
                (w.get(other, path).await, w.get(other, &unknown).await)
            };
            foreign.expect_error(403, DENIED);
            assert_eq!(foreign.text, unknown.text);
        }
        w.get(Caller::Super, &format!("{REQUESTS}/{grant}"))
            .await
            .expect_error(404, "request not found");
        w.post(Caller::User(&w.admin), &revoke, json!({"reason": "done"}))
            .await
            .expect(200);
        assert_eq!(w.status_of(&request).await, "revoked");
        // A second revocation keeps the first reason.
        let again = w
            .post(Caller::Super, &revoke, json!({"reason": "again"}))
            .await
            .expect(200);
        assert_eq!(again, json!({"status": "revoked"}));
        let list = w
            .get(Caller::Super, &format!("/admin/disclosure/grants?org_id={}", w.bank))
            .await
            .json();
        assert_eq!(list["grants"][0]["grant"]["revoked_reason"], "done");
    })
    .await;
}

#[tokio::test]
async fn ds4_ds5_the_organization_is_named_or_the_only_one() {
    let w = World::start(None).await;
    let admin = Caller::User(&w.admin);
    let mut body = w.request_body(json!({}));
    body.as_object_mut().unwrap().remove("org_id");
    assert_eq!(
        w.post(admin, REQUESTS, body.clone()).await.expect(201)["org_id"],
        w.bank.to_string()
    );
    assert_eq!(w.get(Caller::User(&w.auditor), REQUESTS).await.expect(200)["total"], 1);
    // The platform token means the default organization, to which the owner does not belong.
    w.post(Caller::Super, REQUESTS, body.clone())
        .await
        .expect_error(403, DENIED);
    let foreign = w.get(admin, &format!("{REQUESTS}?org_id={}", w.rival)).await;
    foreign.expect_error(403, "access denied to this organization");
    w.get(admin, &format!("{REQUESTS}?org_id=x"))
        .await
        .expect_error(400, "org_id must be a UUID");
    // The target is a member of the organization itself.
    body["target_user_id"] = json!(w.grantee.id);
    body["requester_did"] = json!("did:test:somebody");
    w.post(admin, REQUESTS, body.clone()).await.expect_error(403, DENIED);
    body["target_user_id"] = json!("99999999-9999-4999-8999-999999999999");
    w.post(admin, REQUESTS, body).await.expect_error(403, DENIED);
    // Two organizations.
    let group = w.fixture.create_org("third").await;
    let second = gw_store::record::NewGroup {
        is_org_readonly_admin: true,
        ..gw_store::record::NewGroup::plain(group, "readers", "readers")
    };
    w.fixture
        .change(async |tx| {
            let group = tx.create_group(second).await.unwrap().id;
            let membership = gw_store::record::NewMembership {
                user: w.admin.id,
                group,
                expires_at: None,
            };
            tx.add_membership(membership).await.unwrap();
        })
        .await;
    w.get(admin, REQUESTS)
        .await
        .expect_error(400, "org_id query parameter is required");
    let mut body = w.request_body(json!({}));
    body.as_object_mut().unwrap().remove("org_id");
    w.post(admin, REQUESTS, body)
        .await
        .expect_error(400, "org_id is required");
}

#[tokio::test]
async fn ds7_ds8_a_request_names_reason_target_and_grantee() {
    let settings = DisclosureSettings {
        require_legal_basis_full: true,
        ..DisclosureSettings::default()
    };
    let w = World::start_with(None, settings).await;
    let admin = Caller::User(&w.admin);
    let with = |member: &str, value: Value| {
        let mut body = w.request_body(json!({"disclosure_level": "full"}));
        body[member] = value;
        body
    };
    for (body, error) in [
        (with("target_user_id", json!(null)), "target_user_id is required"),
        (with("target_user_id", json!("1")), "target_user_id must be a UUID"),
        (with("reason", json!("  ")), "reason is required"),
        (
            with("reason", json!("r".repeat(2001))),
            "reason must have at most 2000 characters",
        ),
        (
            with("reason", json!("a\0")),
            "reason must not contain control characters",
        ),
        (
            with("legal_basis", json!("l".repeat(256))),
            "legal_basis must have at most 255 characters",
        ),
        (
            with("legal_basis", json!(" ")),
            "legal_basis is required for full disclosure",
        ),
        (
            with("requester_user_id", json!(w.admin.id)),
            "requester_user_id and requester_did do not agree",
        ),
        // HD30: the id of a user of another organization has the answer of an unknown id.
        (
            with("requester_user_id", json!(w.other.id)),
            "requester_user_id is unknown",
        ),
        (
            with("requester_user_id", json!("00000000-0000-4000-8000-000000000001")),
            "requester_user_id is unknown",
        ),
        (
            with("requester_did", json!(w.owner.name.as_str())),
            "requester and target must differ",
        ),
        (
            with("expires_in_hours", json!(-1)),
            "expires_in_hours must be between 0 and 8760",
        ),
        (
            with("expires_in_hours", json!(8761)),
            "expires_in_hours must be between 0 and 8760",
        ),
    ] {
        w.post(admin, REQUESTS, body).await.expect_error(400, error);
    }
    let unknown = w.post(admin, REQUESTS, with("reasons", json!("x"))).await;
    assert!(unknown.expect(400)["error"].as_str().unwrap().contains("reasons"));
    // Neither user nor DID: the administrator who asks. The platform token is nobody.
    let mut body = w.request_body(json!({}));
    body.as_object_mut().unwrap().remove("requester_did");
    let own = w.post(admin, REQUESTS, body.clone()).await.expect(201);
    assert_eq!(own["requester_did"], w.admin.name.as_str());
    assert_eq!(own["scope"]["disclosure_level"], "redacted", "rule 6");
    let nobody = w.post(Caller::Super, REQUESTS, body).await.expect(201);
    assert!(nobody.get("requester_did").is_none());
}

#[tokio::test]
async fn ds16_lists_are_filtered_and_never_null() {
    on_both_engines(async |w| {
        let empty = w.get(Caller::User(&w.admin), REQUESTS).await.expect(200);
        assert_eq!(empty, json!({"requests": [], "total": 0, "limit": 100, "offset": 0}));
        let (_, grant) = w.grant(json!({"disclosure_level": "full"})).await;
        w.fixture.clock.pass(1);
        w.request(json!({})).await;
        let total = async |path: &str| w.get(Caller::User(&w.auditor), path).await.expect(200)["total"].clone();
        for (filter, requests, grants) in [
            ("", 2, 1),
            ("disclosure_level=full", 1, 1),
            ("disclosure_level=pseudonymous", 0, 0),
            ("requester_did=GRANTEE", 2, 1),
            ("requester_did=%25", 0, 0),
            ("requester_did=did_test", 0, 0),
            ("status=approved", 1, 1),
            ("date_from=2100-01-01T00:00:00Z", 0, 0),
        ] {
            assert_eq!(total(&format!("{REQUESTS}?{filter}")).await, requests, "{filter}");
            assert_eq!(
                total(&format!("/admin/disclosure/grants?{filter}")).await,
                grants,
                "{filter}"
            );
        }
        assert_eq!(total(&format!("{REQUESTS}?status=pending")).await, 1);
        for path in [REQUESTS, "/admin/disclosure/grants"] {
            let answer = w.get(Caller::User(&w.admin), &format!("{path}?date_to=tomorrow")).await;
            answer.expect_error(400, "invalid date_to; expected RFC3339");
            let answer = w.get(Caller::User(&w.admin), &format!("{path}?stauts=pending")).await;
            assert!(answer.expect(400)["error"].as_str().unwrap().contains("stauts"));
        }
        let pages = w
            .get(Caller::User(&w.admin), &format!("{REQUESTS}?limit=1&offset=1"))
            .await
            .expect(200);
        assert_eq!(pages["requests"][0]["active_grant_id"], grant, "the older of the two");
    })
    .await;
}

#[tokio::test]
async fn ds17_check_access_tells_nothing_of_other_organizations() {
    on_both_engines(async |w| {
        let path = |grantee: &str, owner: &str| {
            format!("/admin/disclosure/check-access?requester_did={grantee}&target_user_did={owner}")
        };
        let (grantee, owner) = (w.grantee.name.as_str(), w.owner.name.as_str());
        let none = w.get(Caller::User(&w.admin), &path(grantee, owner)).await;
        let expected = json!({"has_access": false, "message": "No active disclosure grant found"});
        assert_eq!(none.expect(200), expected);
        w.grant(json!({})).await;
        w.fixture.clock.pass(1);
        let (_, newest) = w.grant(json!({"disclosure_level": "full"})).await;
        let found = w.get(Caller::User(&w.auditor), &path(grantee, owner)).await.expect(200);
        assert_eq!(
            (&found["has_access"], &found["grant_id"]),
            (&json!(true), &json!(newest))
        );
        assert_eq!(
            (&found["disclosure_level"], found.get("message")),
            (&json!("full"), None)
        );
        for unknown in [
            w.get(Caller::User(&w.other), &path(grantee, owner)).await,
            w.get(Caller::User(&w.admin), &path(grantee, "did:test:nobody")).await,
            w.get(Caller::User(&w.admin), &path("did:test:nobody", owner)).await,
        ] {
            assert_eq!((unknown.status.as_u16(), unknown.text), (200, none.text.clone()));
        }
        w.get(Caller::Super, &path(grantee, ""))
            .await
            .expect_error(400, "requester_did and target_user_did are required");
    })
    .await;
}

#[tokio::test]
async fn ds10_only_pending_requests_are_withdrawn() {
    on_both_engines(async |w| {
        let request = w.request(json!({})).await;
        let path = format!("{REQUESTS}/{request}");
        w.delete(Caller::User(&w.auditor), &path)
            .await
            .expect_error(403, "mutating actions are restricted for read-only admins");
        w.delete(Caller::User(&w.other), &path).await.expect_error(403, DENIED);
        assert_eq!(
            w.delete(Caller::User(&w.admin), &path).await.expect(200),
            json!({"status": "deleted"})
        );
        w.get(Caller::User(&w.admin), &path).await.expect_error(403, DENIED);
        let (approved, _) = w.grant(json!({})).await;
        w.delete(Caller::User(&w.admin), &format!("{REQUESTS}/{approved}"))
            .await
            .expect_error(400, "can only delete pending requests");
    })
    .await;
}

#[tokio::test]
async fn section_8_an_administrator_makes_sixty_requests_a_minute() {
    let w = World::start(None).await;
    for _ in 0..60 {
        w.request(json!({})).await;
    }
    let body = w.request_body(json!({}));
    let refused = w.post(Caller::User(&w.admin), REQUESTS, body.clone()).await;
    assert_eq!(refused.status.as_u16(), 429, "{}", refused.text);
    w.post(Caller::Super, REQUESTS, body).await.expect(201);
    w.fixture.clock.pass(60);
    w.request(json!({})).await;
}

/// HD12, HD30: an address that is not Full for an administrator is masked, wherever it stands.
#[tokio::test]
async fn hd30_addresses_in_requests_are_masked_for_administrators() {
    let w = World::start(None).await;
    let address = format!("0x{}", "ab".repeat(20));
    let mut body = w.request_body(json!({"addresses": [address]}));
    body["reason"] = json!(format!("pays {address}"));
    let created = w.post(Caller::User(&w.admin), REQUESTS, body).await;
    let id = created.expect(201)["id"].as_str().unwrap().to_owned();
    let path = format!("{REQUESTS}/{id}");
    for answer in [created, w.get(Caller::User(&w.auditor), &path).await] {
        assert!(!answer.text.contains("abab"), "{}", answer.text);
    }
    let seen = w.get(Caller::Super, &path).await.expect(200);
    assert_eq!(seen["request"]["scope"]["addresses"], json!([address]));
    let own = w
        .get(Caller::User(&w.owner), "/me/disclosure/requests")
        .await
        .expect(200);
    assert_eq!(own[0]["request"]["reason"], format!("pays {address}"));
}

#[tokio::test]
async fn counters_tell_what_waits_and_what_ends_soon() {
    on_both_engines(async |w| {
        let counters = async |caller, path: &str| w.get(caller, path).await.expect(200);
        w.request(json!({})).await;
        w.grant(json!({})).await;
        let long = w.request(json!({})).await;
        w.approve(&long, json!({"grant_duration_hours": 24 * 8}))
            .await
            .expect(200);
        let expected = json!({"pending_requests": 1, "active_grants": 2, "grants_ending_soon": 1});
        let own = "/me/disclosure/counters";
        let admin = "/admin/disclosure/counters";
        assert_eq!(counters(Caller::User(&w.owner), own).await, expected);
        assert_eq!(counters(Caller::User(&w.auditor), admin).await, expected);
        w.fixture.clock.pass(86_400);
        w.fixture.clock.pass(1);
        let (token, _) = w.fixture.issue_token(&w.owner.name);
        let owner = gw_testkit::fixture::TestUser {
            token,
            ..w.owner.clone()
        };
        let later = json!({"pending_requests": 1, "active_grants": 1, "grants_ending_soon": 1});
        assert_eq!(counters(Caller::User(&owner), own).await, later);
        let none = counters(Caller::User(&w.other), admin).await;
        assert_eq!(none["pending_requests"], 0);
    })
    .await;
}
