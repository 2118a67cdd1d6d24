//! What an attacker tries: wider scopes at the approval, replays, other people's grants, and bodies that are too large.

use crate::world::{Caller, World, on_both_engines};
use gw_store::record::UserPatch;
use gw_types::Seconds;
use serde_json::{Value, json};

const ADDRESS: &str = "0x00112233445566778899aabbccddeeff00112233";

fn narrow() -> Value {
    json!({
        "methods": ["transaction_history", "eth_call"],
        "addresses": [ADDRESS],
        "date_range": {"start": "2026-01-01T00:00:00Z", "end": "2026-02-01T00:00:00Z"},
        "disclosure_level": "pseudonymous",
    })
}

#[tokio::test]
async fn ds14_an_approval_that_discloses_more_is_refused() {
    on_both_engines(async |w| {
        let request = w.request(narrow()).await;
        for scope in [
            json!({"methods": ["activity_logs"]}),
            json!({"methods": ["transaction_history", "full_disclosure"]}),
            json!({"methods": ["eth_call"]}),
            json!({"methods": []}),
            json!({"addresses": []}),
            json!({"addresses": [format!("0x{}", "11".repeat(20))]}),
            json!({"addresses": [ADDRESS, format!("0x{}", "11".repeat(20))]}),
            json!({"disclosure_level": "full"}),
            json!({"date_range": {"start": "2025-12-31T23:59:59Z", "end": "2026-02-01T00:00:00Z"}}),
            json!({"date_range": {"start": "2026-01-01T00:00:00Z", "end": "2026-02-01T00:00:01Z"}}),
        ] {
            let refused = w.approve(&request, json!({"scope": scope})).await;
            refused.expect_error(400, "scope must be a subset of the requested scope");
        }
        // Case tricks: classes, methods and levels have one spelling, addresses any case.
        for scope in [
            json!({"methods": ["Transaction_History"]}),
            json!({"methods": ["TRANSACTION_HISTORY"]}),
            json!({"methods": ["eth_Call"]}),
            json!({"disclosure_level": "Full"}),
            json!({"disclosure_level": "REDACTED"}),
            json!({"disclosure_level": ""}),
        ] {
            let refused = w.approve(&request, json!({"scope": scope})).await;
            assert_eq!(refused.status.as_u16(), 400, "{}", refused.text);
        }
        assert_eq!(w.status_of(&request).await, "pending");
        let upper = ADDRESS.to_uppercase().replace("0X", "0x");
        let scope = json!({"addresses": [upper, ADDRESS], "methods": ["transaction_history", "eth_call"],
            "date_range": {"start": "2026-01-02T00:00:00Z", "end": "2026-01-03T00:00:00Z"},
            "disclosure_level": "redacted"});
        let approved = w.approve(&request, json!({"scope": scope})).await.expect(200);
        let granted = &approved["grant"]["scope"];
        assert_eq!(granted["addresses"], json!([ADDRESS]));
        assert_eq!(granted["disclosure_level"], "redacted");
        assert_eq!(granted["date_range"]["end"], "2026-01-03T00:00:00Z");
    })
    .await;
}

#[tokio::test]
async fn ds10_a_replayed_approval_makes_no_second_grant() {
    on_both_engines(async |w| {
        let request = w.request(json!({})).await;
        let answers = tokio::join!(
            w.approve(&request, json!({})),
            w.approve(&request, json!({})),
            w.approve(&request, json!({})),
        );
        let mut statuses = [answers.0, answers.1, answers.2].map(|answer| answer.status.as_u16());
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 400, 400]);
        w.approve(&request, json!({}))
            .await
            .expect_error(400, "request is not pending");
        let path = format!("/me/disclosure/requests/{request}");
        let owner = Caller::User(&w.owner);
        w.post(owner, &format!("{path}/reject"), json!({}))
            .await
            .expect_error(400, "request is not pending");
        w.post(owner, &format!("{path}/revoke"), json!({})).await.expect(200);
        w.approve(&request, json!({}))
            .await
            .expect_error(400, "request is not pending");
        w.post(owner, &format!("{path}/revoke"), json!({}))
            .await
            .expect_error(400, "can only revoke approved requests");
        let all = w.get(owner, "/me/disclosure/grants/all").await.expect(200);
        assert_eq!(all.as_array().unwrap().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn ds11_a_malformed_body_grants_nothing() {
    let w = World::start(None).await;
    let request = w.request(json!({})).await;
    let path = format!("/me/disclosure/requests/{request}/approve");
    for body in [
        "{",
        "[]",
        "null",
        "{} {}",
        "\"\"",
        r#"{"scope": 1}"#,
        r#"{"scop": {}}"#,
        r#"{"scope": {"method": []}}"#,
        r#"{"grant_duration_hours": "24"}"#,
        r#"{"grant_duration_hours": 1.5}"#,
        r#"{"grant_duration_hours": -1}"#,
        r#"{"grant_duration_hours": 9223372036854775807}"#,
        r#"{"scope": {"date_range": {"start": "2026-01-01T00:00:00Z"}}}"#,
    ] {
        let refused = w.post_text(Caller::User(&w.owner), &path, body.to_owned()).await;
        assert_eq!(refused.status.as_u16(), 400, "{body}: {}", refused.text);
    }
    assert_eq!(w.status_of(&request).await, "pending");
    let approved = w
        .post_text(Caller::User(&w.owner), &path, " \n".to_owned())
        .await
        .expect(200);
    assert_eq!(approved["grant"]["scope"]["disclosure_level"], "redacted");
}

#[tokio::test]
async fn ds6_huge_scopes_are_refused_and_the_largest_are_not() {
    let w = World::start(None).await;
    let addresses = |count: u32| (0..count).map(|n| format!("0x{n:040x}")).collect::<Vec<_>>();
    let methods = |count: u32| (0..count).map(|n| format!("eth_method{n}")).collect::<Vec<_>>();
    w.request(json!({"addresses": addresses(200), "methods": methods(50)}))
        .await;
    for (scope, error) in [
        (
            json!({"addresses": addresses(201)}),
            "scope.addresses must have at most 200 entries",
        ),
        (
            json!({"methods": methods(51)}),
            "scope.methods must have at most 50 entries",
        ),
        (
            json!({"methods": ["eth_call", "eth_call"]}),
            "scope.methods contains a duplicate",
        ),
        (
            json!({"methods": ["' OR 1=1"]}),
            "scope.methods contains an invalid method",
        ),
        (
            json!({"addresses": ["0x1"]}),
            "scope.addresses contains an invalid address",
        ),
    ] {
        let refused = w
            .post(
                Caller::User(&w.admin),
                "/admin/disclosure/requests",
                w.request_body(scope),
            )
            .await;
        refused.expect_error(400, error);
    }
    let huge = w.request_body(json!({"methods": methods(100_000)}));
    let refused = w.post(Caller::User(&w.admin), "/admin/disclosure/requests", huge).await;
    assert_eq!(refused.status.as_u16(), 413, "{}", refused.text);
}

/// Rule 3 on routes of owners, rule 18 on routes of grantees.
#[tokio::test]
async fn ds18_other_peoples_requests_and_grants_stay_closed() {
    on_both_engines(async |w| {
        let (request, grant) = w.grant(json!({"methods": ["activity_logs"]})).await;
        let pending = w.request(json!({})).await;
        let stranger = Caller::User(&w.grantee);
        for verb in ["approve", "reject", "revoke"] {
            let path = |id: &str| format!("/me/disclosure/requests/{id}/{verb}");
            w.post(stranger, &path(&pending), json!({}))
                .await
                .expect_error(403, "access denied to target resource");
            for unknown in [grant.as_str(), "x", "%00"] {
                w.post(stranger, &path(unknown), json!({}))
                    .await
                    .expect_error(404, "request not found");
            }
            let anonymous = w.post(Caller::Nobody, &path(&request), json!({})).await;
            anonymous.expect_error(401, "authentication required");
        }
        for path in ["", "/events", "/receipt"] {
            let path = format!("/me/disclosure/grants/{grant}{path}");
            w.get(stranger, &path).await.expect_error(404, "grant not found");
            w.get(Caller::User(&w.owner), &path).await.expect(200);
        }
        let unknown = "99999999-9999-4999-8999-999999999999";
        for route in ["logs", "summary", "report/activity_summary", "events"] {
            let path = |id: &str| format!("/admin/disclosure/grants/{id}/{route}");
            // Malformed ids, then credentials, then the grant.
            w.get(Caller::Nobody, &path("x"))
                .await
                .expect_error(400, "grant_id must be a UUID");
            w.get(Caller::Nobody, &path(unknown))
                .await
                .expect_error(401, "invalid disclosure token");
            w.get(Caller::Nobody, &path(&grant))
                .await
                .expect_error(401, "invalid disclosure token");
            // The owner and people without a part in it: byte-equal with an unknown grant.
            let absent = w.get(Caller::User(&w.owner), &path(unknown)).await;
            absent.expect_error(404, "grant not found");
            assert_eq!(w.get(Caller::User(&w.owner), &path(&grant)).await.text, absent.text);
            w.get(stranger, &path(&grant)).await.expect(200);
            if route == "events" {
                continue;
            }
            // Being an administrator opens nothing (rule 1).
            for admin in [&w.admin, &w.auditor, &w.other] {
                assert_eq!(
                    w.get(Caller::User(admin), &path(&grant)).await.text,
                    absent.text,
                    "{route}"
                );
            }
            let platform = w.get(Caller::Super, &path(&grant)).await;
            platform.expect_error(401, "invalid disclosure token");
        }
    })
    .await;
}

#[tokio::test]
async fn ds1_an_administrator_reads_as_the_grantee_of_an_own_grant() {
    let w = World::start(None).await;
    let mut body = w.request_body(json!({"methods": ["activity_logs"]}));
    body["requester_did"] = json!(w.admin.name.as_str());
    let created = w
        .post(Caller::User(&w.admin), "/admin/disclosure/requests", body)
        .await
        .expect(201);
    let approved = w.approve(created["id"].as_str().unwrap(), json!({})).await.expect(200);
    let logs = format!(
        "/admin/disclosure/grants/{}/logs",
        approved["grant"]["id"].as_str().unwrap()
    );
    w.get(Caller::User(&w.admin), &logs).await.expect(200);
    w.get(Caller::User(&w.auditor), &logs)
        .await
        .expect_error(404, "grant not found");
}

#[tokio::test]
async fn ds8_nobody_discloses_to_themselves() {
    let w = World::start(None).await;
    let body = json!({"grantee_did": w.owner.name.as_str(), "reason": "me"});
    w.post(Caller::User(&w.owner), "/me/disclosure/grants", body)
        .await
        .expect_error(400, "requester and target must differ");
    assert_eq!(
        w.get(Caller::User(&w.owner), "/me/disclosure/requests/all")
            .await
            .expect(200),
        json!([])
    );
}

/// A ban binds the next read, with the grantee's own token and with a disclosure token.
#[tokio::test]
async fn ds38_a_banned_grantee_reads_nothing() {
    on_both_engines(async |w| {
        let (_, grant) = w.grant(json!({"methods": ["activity_logs"]})).await;
        let made = w
            .post(
                Caller::User(&w.grantee),
                &format!("/explorer/grant/{grant}/token"),
                json!({}),
            )
            .await;
        let token = made.expect(201)["token"].as_str().unwrap().to_owned();
        let logs = format!("/admin/disclosure/grants/{grant}/logs");
        for caller in [Caller::User(&w.grantee), Caller::Token(&token)] {
            w.get(caller, &logs).await.expect(200);
        }
        w.fixture.clock.pass(1);
        let ban = UserPatch {
            banned: Some(true),
            ..UserPatch::default()
        };
        w.fixture
            .change(async |tx| tx.update_user(w.grantee.id, ban).await.unwrap())
            .await;
        let banned = w.get(Caller::User(&w.grantee), &logs).await;
        assert!(matches!(banned.status.as_u16(), 401 | 403), "{}", banned.text);
        w.get(Caller::Token(&token), &logs)
            .await
            .expect_error(401, "invalid disclosure token");
        // It does not come back: a ban ends what was made before.
        let unban = UserPatch {
            banned: Some(false),
            ..UserPatch::default()
        };
        w.fixture
            .change(async |tx| tx.update_user(w.grantee.id, unban).await.unwrap())
            .await;
        w.get(Caller::Token(&token), &logs)
            .await
            .expect_error(401, "invalid disclosure token");
    })
    .await;
}

/// HD35, rule 38: a disclosure token ends with the login that made it, whatever ends the login.
#[tokio::test]
async fn ds38_hd35_a_token_ends_with_the_login_that_made_it() {
    on_both_engines(async |w| {
        let (_, grant) = w.grant(json!({"methods": ["activity_logs"]})).await;
        let logs = format!("/admin/disclosure/grants/{grant}/logs");
        let make = async || {
            let path = format!("/explorer/grant/{grant}/token");
            let made = w.post(Caller::User(&w.grantee), &path, json!({})).await.expect(201);
            made["token"].as_str().unwrap().to_owned()
        };
        let claims = w
            .fixture
            .http
            .tokens
            .access(&w.grantee.token, w.fixture.http.now())
            .unwrap();
        let token = make().await;
        w.get(Caller::Token(&token), &logs).await.expect(200);
        let until = w.fixture.http.now().plus(Seconds(3600));
        w.fixture
            .change(async |tx| tx.revoke_family(claims.session, until).await.map(drop).unwrap())
            .await;
        w.get(Caller::Token(&token), &logs)
            .await
            .expect_error(401, "invalid disclosure token");
    })
    .await;
}

/// A request that was sent before a ban and arrives after it changes nothing (HD20): the transaction asks again.
#[tokio::test]
async fn hd20_a_stale_policy_refuses_every_route() {
    let w = World::start(None).await;
    let request = w.request(json!({})).await;
    w.fixture.make_policy_stale();
    for answer in [
        w.approve(&request, json!({})).await,
        w.get(Caller::User(&w.admin), "/admin/disclosure/requests").await,
        w.get(Caller::Super, "/admin/disclosure/requests").await,
    ] {
        assert_eq!(answer.status.as_u16(), 503, "{}", answer.text);
    }
}
