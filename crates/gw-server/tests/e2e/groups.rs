//! Groups that end together, the last administrator, and claims on grants (spec/80 §6, spec/20 C3).

use crate::{
    harness::Engine,
    world::{World, group},
};
use serde_json::json;

/// Spec/80 §6 rule 6: what would go is told before; then all of it goes, or nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spec80_6_6_groups_are_deleted_together_or_not_at_all() {
    let w = World::start(Engine::Sqlite).await;
    let groups = format!("/api/v1/admin/orgs/{}/groups", w.meridian);
    let one = group(&w.gw, &w.meridian, "one", false, json!([]), json!([])).await;
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
    let by_admin = async |path: &str, ids: serde_json::Value| {
        w.gw.as_user(
            &w.admin.token,
            "POST",
            &format!("{groups}/{path}"),
            Some(json!({"group_ids": ids})),
        )
        .await
    };
    let preview = by_admin("batch-delete-preview", json!([one, w.analysts]))
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
        let absent = by_admin(path, json!([one, "00000000-0000-0000-0000-0000000000aa"])).await;
        let other = by_admin(path, json!([one, foreign])).await;
        assert_eq!((absent.status, other.status), (403, 403), "{path}");
        assert_eq!(
            absent.json()["error"],
            other.json()["error"],
            "{path}: the foreign and the unknown are one refusal"
        );
        by_admin(path, json!([])).await.expect(400);
        by_admin(path, json!(["x"])).await.expect(400);
        by_admin(path, json!(vec![one.clone(); 201])).await.expect(400);
    }
    // C4: all of it stays.
    by_admin("batch-delete", json!([one, admins])).await.expect(403);
    assert_eq!(
        by_admin("batch-delete-preview", json!([one])).await.expect(200)["groups"][0]["id"],
        one
    );
    let gone = by_admin("batch-delete", json!([one, w.analysts, one]))
        .await
        .expect(200);
    assert_eq!(gone, json!({"deleted_count": 2}));
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

/// Spec/80 §6 rule 7: nobody but super takes the last administrator away, and then the entry says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spec80_6_7_the_last_administrator_stays() {
    let w = World::start(Engine::Sqlite).await;
    // Somebody who administers by the claim is no organization administrator by group.
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
    // C4: the last one or not, fellow administrators take no powers.
    let admins = group(&w.gw, &w.meridian, "second", true, json!(["eth_chainId"]), json!([])).await;
    for another in [false, true] {
        if another {
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
            "nothing happened"
        );
    }
    w.gw.admin(
        "PUT",
        &format!("/users/{}", w.admin.user_id),
        Some(json!({"banned": true})),
    )
    .await
    .expect(200);
    // The one who is left is the last again; super may all the same.
    let path = format!("/orgs/{}/groups/{admins}", w.meridian);
    w.gw.admin("DELETE", &path, None).await.expect(200);
    let entries =
        w.gw.admin("GET", "/audit-logs?resource_type=group&action=delete", None)
            .await
            .expect(200);
    assert!(entries.to_string().contains("last_organization_admin"), "{entries}");
}

/// C3: absent is kept, `null` and `[]` are cleared, what is none is refused; the entry shows it.
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
    for bad in [json!(["owner"]), json!("admin"), json!([5])] {
        put(json!({"claims": bad})).await.expect(400);
    }
    // `admin` on one contract implies the others there, and makes nobody an administrator of the organization.
    let all = put(json!({"claims": ["admin"]})).await.expect(200)["claims"].clone();
    assert_eq!(all.as_array().map(Vec::len), Some(3), "{all}");
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
    // F3
    let short = json!({"functions": [{"selector": "0x70a08231", "param_rules": [{"index": 0, "must_be": "0x1234"}]}]});
    let refused = put(short).await.expect(400);
    assert!(
        refused["error"]
            .as_str()
            .is_some_and(|text| text.contains("40 hex digits")),
        "{refused}"
    );
}
