//! Which rights organization administrators may grant, and which only the platform administrator may grant (spec/20 A3,
//! A11, C4, C5).

use crate::{
    harness::{Engine, Response},
    world::{World, group},
};
use serde_json::{Value, json};

const ANONYMOUS_ORG: &str = "00000000-0000-0000-0000-000000000002";
const DEFAULT_ORG: &str = "00000000-0000-0000-0000-000000000001";

async fn as_admin(w: &World, method: &str, path: &str, body: Option<Value>) -> Response {
    w.gw.as_user(&w.admin.token, method, &format!("/api/v1/admin{path}"), body)
        .await
}

/// A3: only the platform administrator changes the anonymous method list. It accepts metadata, chain, block and
/// transaction methods only. A change takes effect at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a3_only_the_platform_administrator_sets_the_anonymous_methods() {
    let w = World::start(Engine::Sqlite).await;
    let path = format!("/orgs/{ANONYMOUS_ORG}/groups/{ANONYMOUS_ORG}/access");
    let set_access = async |methods: Value, claims: Value| {
        w.gw.admin(
            "PUT",
            &path,
            Some(json!({"allowed_methods": methods, "claims": claims})),
        )
        .await
    };
    for closed in [
        "eth_call",
        "eth_getBalance",
        "eth_getLogs",
        "eth_sendRawTransaction",
        "debug_traceCall",
        "eth_newFilter",
        "eth_createAccessList",
        "*",
        "trace_block",
    ] {
        set_access(json!(["eth_chainId", closed]), json!([])).await.expect(400);
    }
    set_access(json!(["eth_chainId"]), json!(["deploy"])).await.expect(400);
    assert_eq!(w.gw.rpc("", "eth_syncing", json!([])).await.status, 404);
    assert_eq!(
        as_admin(&w, "PUT", &path, Some(json!({"allowed_methods": ["eth_chainId"]})))
            .await
            .status,
        403
    );
    set_access(json!(["eth_chainId", "eth_syncing", "eth_getBlockByNumber"]), json!([]))
        .await
        .expect(200);
    assert_eq!(w.gw.rpc("", "eth_syncing", json!([])).await.status, 200);
    let block = w.gw.result("", "eth_getBlockByNumber", json!(["latest", true])).await;
    assert_eq!(
        block["transactions"],
        json!([]),
        "an anonymous viewer owns no transactions"
    );
    assert_eq!(
        w.gw.rpc("", "eth_blockNumber", json!([])).await.status,
        404,
        "no longer listed"
    );
}

/// A11, B22, C6, RT24: KYC marks, bans and notes belong to one organization, also if the user is a member of others.
/// Those of the account belong to the platform administrator. The audit entry shows the old value.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a11_b22_marks_of_an_organization_and_of_the_account_are_separate() {
    let w = World::start(Engine::Sqlite).await;
    let user = format!("/users/{}", w.analyst.user_id);
    as_admin(&w, "PUT", &user, Some(json!({"kyc": true}))).await.expect(200);
    as_admin(&w, "PUT", &user, Some(json!({"kyc": false})))
        .await
        .expect(200);
    let entry = w.gw.admin("GET", "/audit-logs?limit=1", None).await.expect(200)[0].clone();
    let audit_value =
        |member: &str| serde_json::from_str::<Value>(entry[member].as_str().unwrap_or("{}")).unwrap_or_default();
    let (old, new) = (entry["old_value"].clone(), entry["new_value"].clone());
    let kyc = |value: &Value, member: &str| {
        if value.is_object() {
            value["kyc"].clone()
        } else {
            audit_value(member)["kyc"].clone()
        }
    };
    assert_eq!(
        (kyc(&old, "old_value"), kyc(&new, "new_value")),
        (json!(true), json!(false)),
        "{entry}"
    );
    assert_eq!(entry["org_id"], json!(w.meridian), "{entry}");

    // A membership in the other bank changes nothing.
    let traders = group(&w.gw, &w.volta, "guests", false, json!([]), json!([])).await;
    let body = json!({"did": w.analyst.did, "group_id": traders});
    w.gw.admin("POST", &format!("/orgs/{}/memberships/by-did", w.volta), Some(body))
        .await
        .expect(201);
    for body in [
        json!({"kyc": true}),
        json!({"banned": true}),
        json!({"note": "x", "banned": false}),
    ] {
        as_admin(&w, "PUT", &user, Some(body)).await.expect(200);
    }
    assert_eq!(as_admin(&w, "GET", &user, None).await.expect(200)["note"], json!("x"));
    assert_eq!(
        w.gw.admin("GET", &user, None).await.expect(200)["note"],
        json!(""),
        "the note of the account is a different one"
    );
    let in_org =
        w.gw.admin("GET", &format!("{user}?org_id={}", w.meridian), None)
            .await
            .expect(200);
    assert_eq!(in_org["note"], json!("x"));
    as_admin(&w, "DELETE", &format!("{user}/sessions"), None)
        .await
        .expect(403);
    w.gw.admin("PUT", &user, Some(json!({"kyc": true, "banned": true})))
        .await
        .expect(200);
    assert_eq!(
        w.gw.rpc(&w.analyst.token, "eth_chainId", json!([])).await.status,
        404,
        "A10: a ban applies to every method"
    );
    // A user of another organization is out of scope and gets the same error as an unknown user.
    let foreign = as_admin(
        &w,
        "PUT",
        &format!("/users/{}", w.trader.user_id),
        Some(json!({"kyc": false})),
    )
    .await;
    let unknown = as_admin(
        &w,
        "PUT",
        "/users/99999999-9999-4999-8999-999999999999",
        Some(json!({"kyc": false})),
    )
    .await;
    assert_eq!(foreign.expect(403)["error"], unknown.expect(403)["error"], "C5");
}

/// C4: only the platform administrator creates, changes, fills or deletes a group with administrator rights.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c4_only_the_platform_administrator_manages_administrator_groups() {
    let w = World::start(Engine::Sqlite).await;
    let groups = format!("/orgs/{}/groups", w.meridian);
    let admins = group(&w.gw, &w.meridian, "more-admins", true, json!(["eth_call"]), json!([])).await;
    let plain = group(&w.gw, &w.meridian, "plain", false, json!([]), json!([])).await;
    let by_did = format!("/orgs/{}/memberships/by-did", w.meridian);
    let join = json!({"did": w.outsider.did, "group_id": admins});
    for (method, path, body) in [
        (
            "POST",
            groups.clone(),
            Some(json!({"name": "mine", "slug": "mine", "is_org_admin": true})),
        ),
        ("PUT", format!("{groups}/{plain}"), Some(json!({"is_org_admin": true}))),
        (
            "PUT",
            format!("{groups}/{plain}/access"),
            Some(json!({"allowed_methods": [], "claims": ["admin"]})),
        ),
        (
            "PUT",
            format!("{groups}/{admins}"),
            Some(json!({"is_org_admin": false})),
        ),
        (
            "PUT",
            format!("{groups}/{admins}"),
            Some(json!({"description": "mine"})),
        ),
        (
            "PUT",
            format!("{groups}/{admins}/access"),
            Some(json!({"allowed_methods": ["*"]})),
        ),
        ("DELETE", format!("{groups}/{admins}"), None),
        ("POST", by_did.clone(), Some(join.clone())),
        (
            "DELETE",
            by_did.clone(),
            Some(json!({"did": w.admin.did, "group_id": admins})),
        ),
        ("POST", "/orgs".to_owned(), Some(json!({"name": "n", "slug": "n"}))),
        ("DELETE", format!("/orgs/{}", w.meridian), None),
        ("PUT", format!("/orgs/{DEFAULT_ORG}"), Some(json!({"name": "mine"}))),
    ] {
        let refused = as_admin(&w, method, &path, body).await;
        assert_eq!(refused.status, 403, "{method} {path}: {}", refused.body);
    }
    // Administrators may create groups of read-only administrators.
    let auditors = json!({"name": "auditors", "slug": "auditors", "is_org_readonly_admin": true});
    as_admin(&w, "POST", &groups, Some(auditors)).await.expect(201);
    w.gw.admin("POST", &by_did, Some(join)).await.expect(201);
}
