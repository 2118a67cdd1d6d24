//! Batch deletion of groups, the last administrator, and claims on grants (spec/80 §6, spec/20 C3).

use crate::{
    harness::Engine,
    world::{World, group},
};
use serde_json::json;

/// Spec/80 §6 rule 6: a preview shows the groups that would be deleted. Then all of them are deleted, or none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spec80_6_6_groups_are_deleted_together_or_not_at_all() {
    let w = World::start(Engine::Sqlite).await;
    let groups = format!("/api/v1/admin/orgs/{}/groups", w.meridian);
    let empty_group = group(&w.gw, &w.meridian, "one", false, json!([]), json!([])).await;
    let foreign = group(&w.gw, &w.volta, "foreign", false, json!([]), json!([])).await;
    let admins = group(
        &w.gw,
        &w.meridian,
        "more-admins",
        true,
        json!(["eth_chainId"]),
        json!([]),
    )
    .await;
    let post = async |path: &str, ids: serde_json::Value| {
        w.gw.as_user(
            &w.admin.token,
            "POST",
            &format!("{groups}/{path}"),
            Some(json!({"group_ids": ids})),
        )
        .await
    };
    let preview = post("batch-delete-preview", json!([empty_group, w.analysts]))
        .await
        .expect(200);
    assert_eq!(preview["groups"][0]["member_count"], 0, "{preview}");
    let analysts = &preview["groups"][1];
    assert_eq!(
        (
            &analysts["slug"],
            &analysts["member_count"],
            &analysts["contract_count"]
        ),
        (&json!("analysts"), &json!(1), &json!(1))
    );
    assert_eq!(analysts["contracts"], json!([format!("{:#x}", w.erc20)]));
    for path in ["batch-delete-preview", "batch-delete"] {
        let unknown_response = post(path, json!([empty_group, "00000000-0000-0000-0000-0000000000aa"])).await;
        let foreign_response = post(path, json!([empty_group, foreign])).await;
        assert_eq!((unknown_response.status, foreign_response.status), (403, 403), "{path}");
        assert_eq!(
            unknown_response.json()["error"],
            foreign_response.json()["error"],
            "{path}: a foreign and an unknown group have the same refusal"
        );
        post(path, json!([])).await.expect(400);
        post(path, json!(["x"])).await.expect(400);
        post(path, json!(vec![empty_group.clone(); 201])).await.expect(400);
    }
    // C4: with an administrator group in the batch nothing is deleted.
    post("batch-delete", json!([empty_group, admins])).await.expect(403);
    assert_eq!(
        post("batch-delete-preview", json!([empty_group])).await.expect(200)["groups"][0]["id"],
        empty_group
    );
    let deleted = post("batch-delete", json!([empty_group, w.analysts, empty_group]))
        .await
        .expect(200);
    assert_eq!(deleted, json!({"deleted_count": 2}));
    assert_eq!(
        w.call(&w.analyst, crate::world::balance_of(w.analyst.address()))
            .await
            .status,
        404
    );
    let entries =
        w.gw.admin("GET", "/audit-logs?resource_type=group&action=delete", None)
            .await
            .expect(200);
    assert!(entries.as_array().is_some_and(|rows| rows.len() >= 2), "{entries}");
}

/// Spec/80 §6 rule 7: only the platform administrator can remove the last administrator. The audit entry then records
/// it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spec80_6_7_the_last_administrator_stays() {
    let w = World::start(Engine::Sqlite).await;
    // The deputy has the `admin` claim, but is in no administrator group.
    let claimed = group(
        &w.gw,
        &w.meridian,
        "claimed",
        false,
        json!(["eth_call"]),
        json!(["admin"]),
    )
    .await;
    let join = async |did: &str, group: &str| {
        let path = format!("/orgs/{}/memberships/by-did", w.meridian);
        w.gw.admin("POST", &path, Some(json!({"did": did, "group_id": group})))
            .await
            .expect(201);
        w.gw.login(did).await
    };
    let deputy = join("did:test:deputy", &claimed).await;
    let user = format!("/api/v1/admin/users/{}", w.admin.user_id);
    // C4: an administrator cannot ban another one, whether or not that is the last one.
    let admins = group(&w.gw, &w.meridian, "second", true, json!(["eth_chainId"]), json!([])).await;
    for has_second in [false, true] {
        if has_second {
            join("did:test:second", &admins).await;
        }
        w.gw.as_user(&deputy, "PUT", &user, Some(json!({"banned": true})))
            .await
            .expect(403);
        assert_eq!(
            w.gw.as_user(&w.admin.token, "GET", "/api/v1/admin/orgs", None)
                .await
                .status,
            200,
            "the ban has no effect"
        );
    }
    w.gw.admin(
        "PUT",
        &format!("/users/{}", w.admin.user_id),
        Some(json!({"banned": true})),
    )
    .await
    .expect(200);
    // One administrator is left. The platform administrator may delete their group nevertheless.
    let path = format!("/orgs/{}/groups/{admins}", w.meridian);
    w.gw.admin("DELETE", &path, None).await.expect(200);
    let entries =
        w.gw.admin("GET", "/audit-logs?resource_type=group&action=delete", None)
            .await
            .expect(200);
    assert!(entries.to_string().contains("last_organization_admin"), "{entries}");
}

/// C3: absent claims are kept, `null` and `[]` clear them, unknown claims are refused. The audit entry shows the
/// change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c3_claims_of_a_grant_are_kept_cleared_or_refused() {
    let w = World::start(Engine::Sqlite).await;
    let path = format!(
        "/api/v1/admin/orgs/{}/contracts/{}/grants/{}",
        w.meridian, w.erc20, w.analysts
    );
    let put = async |body: serde_json::Value| w.gw.as_user(&w.admin.token, "PUT", &path, Some(body)).await;
    assert_eq!(
        put(json!({"claims": ["upgrade"]})).await.expect(200)["claims"],
        json!(["upgrade"])
    );
    assert_eq!(put(json!({})).await.expect(200)["claims"], json!(["upgrade"]));
    for empty in [json!(null), json!([])] {
        put(json!({"claims": ["upgrade"]})).await.expect(200);
        assert_eq!(
            put(json!({"claims": empty})).await.expect(200)["claims"],
            json!([]),
            "{empty}"
        );
    }
    for invalid in [json!(["owner"]), json!("admin"), json!([5])] {
        put(json!({"claims": invalid})).await.expect(400);
    }
    // `admin` on a contract implies the other claims on it. It does not make a member an administrator of the
    // organization.
    let implied = put(json!({"claims": ["admin"]})).await.expect(200)["claims"].clone();
    assert_eq!(implied.as_array().map(Vec::len), Some(3), "{implied}");
    assert_eq!(
        w.gw.as_user(&w.analyst.token, "GET", "/api/v1/admin/orgs", None)
            .await
            .status,
        403
    );
    assert_eq!(
        w.gw.as_user(&w.trader.token, "PUT", &path, Some(json!({"claims": []})))
            .await
            .status,
        403
    );
    let entries =
        w.gw.admin("GET", "/audit-logs?resource_type=grant", None)
            .await
            .expect(200);
    assert!(entries.to_string().contains("upgrade"), "{entries}");
    // F3: the address of a parameter rule must be complete.
    let invalid_rule =
        json!({"functions": [{"selector": "0x70a08231", "param_rules": [{"index": 0, "must_be": "0x1234"}]}]});
    let refused = put(invalid_rule).await.expect(400);
    assert!(
        refused["error"]
            .as_str()
            .is_some_and(|text| text.contains("40 hex digits")),
        "{refused}"
    );
}
