//! Routes about the caller's own organizations and administration.

use crate::world::World;
use gw_store::record::{AccessInput, NewGroup, NewMembership, NewOrganization};
use gw_types::{Claim, Seconds};
use serde_json::json;

/// 80 §2 rule 2, decision 32: administration and active memberships, without system organizations.
#[tokio::test]
async fn decision_32_my_organizations_and_my_administration() {
    let world = World::new().await;
    let alice = world.log_in("alice").await;
    let user = world.user("alice").await.unwrap();
    let mut tx = world.fixture.begin().await;
    let mut orgs = Vec::new();
    for slug in ["flagged", "claimed", "read", "plain", "over"] {
        let new = NewOrganization {
            slug: slug.to_owned(),
            name: slug.to_uppercase(),
            ..NewOrganization::default()
        };
        let org = tx.create_organization(new).await.unwrap();
        let group = NewGroup {
            is_org_admin: slug == "flagged" || slug == "over",
            is_org_readonly_admin: slug == "read",
            ..NewGroup::plain(org.id, "group", "Group")
        };
        let group = tx.create_group(group).await.unwrap();
        if slug == "claimed" {
            let access = AccessInput {
                claims: [Claim::Admin].into_iter().collect(),
                ..AccessInput::default()
            };
            tx.set_access(group.id, access).await.unwrap();
        }
        let expires_at = (slug == "over").then(|| world.fixture.http.now().plus(Seconds(60)));
        tx.add_membership(NewMembership {
            user: user.id,
            group: group.id,
            expires_at,
        })
        .await
        .unwrap();
        orgs.push((org.id.to_string(), slug));
    }
    tx.commit().await.unwrap();
    world.fixture.clock.pass(60);

    let id_of = |wanted: &str| orgs.iter().find(|(_, slug)| *slug == wanted).unwrap().0.clone();
    let status = world
        .get("/api/v1/me/admin-status")
        .bearer(&alice.access)
        .send()
        .await
        .body;
    let mut full = vec![id_of("flagged"), id_of("claimed")];
    full.sort();
    let mut admin_org_ids: Vec<String> = serde_json::from_value(status["admin_org_ids"].clone()).unwrap();
    admin_org_ids.sort();
    assert_eq!(admin_org_ids, full);
    assert_eq!(status["readonly_admin_org_ids"], json!([id_of("read")]));
    assert_eq!(
        (&status["is_admin"], &status["is_readonly_admin"]),
        (&json!(true), &json!(true))
    );

    let mine = world.get("/api/v1/me/orgs").bearer(&alice.access).send().await.body;
    let mut slugs: Vec<&str> = mine["organizations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|org| org["slug"].as_str().unwrap())
        .collect();
    slugs.sort_unstable();
    assert_eq!(slugs, ["claimed", "flagged", "plain", "read"]);
    let plain = mine["organizations"]
        .as_array()
        .unwrap()
        .iter()
        .find(|org| org["slug"] == "plain")
        .unwrap();
    assert_eq!(
        *plain,
        json!({ "id": id_of("plain"), "name": "PLAIN", "slug": "plain" })
    );
}

/// A user without memberships.
#[tokio::test]
async fn a_plain_user_administers_nothing() {
    let world = World::new().await;
    let alice = world.log_in("alice").await;
    let status = world
        .get("/api/v1/me/admin-status")
        .bearer(&alice.access)
        .send()
        .await
        .body;
    assert_eq!(
        status,
        json!({ "is_admin": false, "is_readonly_admin": false, "admin_org_ids": [], "readonly_admin_org_ids": [] })
    );
    let mine = world.get("/api/v1/me/orgs").bearer(&alice.access).send().await.body;
    assert_eq!(mine, json!({ "organizations": [] }));
}

/// Spec/70 section 1: every read of one's own data leaves an access record, rejections included. Without a free journal
/// slot nothing is answered.
#[tokio::test]
async fn own_data_is_never_read_unrecorded() {
    let world = World::new().await;
    let alice = world.log_in("alice").await;
    for (path, template) in [
        ("/eth/addresses", "GET /eth/addresses"),
        ("/api/v1/eth/addresses", "GET /api/v1/eth/addresses"),
        ("/api/v1/me/orgs", "GET /api/v1/me/orgs"),
        ("/api/v1/me/admin-status", "GET /api/v1/me/admin-status"),
    ] {
        world.fixture.access_records();
        assert_eq!(world.get(path).bearer(&alice.access).send().await.status, 200);
        assert_eq!(world.get(path).send().await.status, 401);
        let records = world.fixture.access_records();
        let seen: Vec<_> = records
            .iter()
            .map(|record| (&*record.method, record.status_code))
            .collect();
        assert_eq!(seen, [(template, 200), (template, 401)]);
        let callers: Vec<_> = records.iter().map(|record| record.external_id.clone()).collect();
        assert_eq!(callers, [Some(crate::world::did("alice")), None]);
        world.fill_journal(true);
        let refused = world.get(path).bearer(&alice.access).send().await;
        assert_eq!(refused.status, 503, "{}", refused.body);
        world.fill_journal(false);
    }
}
