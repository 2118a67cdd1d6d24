//! Requests: which ones are refused, and what remains of them when their user or organization is deleted.

use super::{ALL, People, approve, grants, people};
use crate::world::{World, did, on_both_engines};
use gw_store::{
    read::{DisclosureFilter, Scope},
    record::{DisclosureApproval, NewDisclosureRequest, NewMembership, NewUser},
};
use gw_types::{Clock, OrgId, UserId};

on_both_engines! {
    ds5_ds8_requests_that_break_a_rule_are_refused,
    ds39_requests_outlive_their_users_and_organization,
}

/// Rules 5 to 8 and 13.
async fn ds5_ds8_requests_that_break_a_rule_are_refused(world: &World) {
    type Change = fn(&mut NewDisclosureRequest, &People);
    let people = people(world).await;
    let cases: &[(Change, u16, &str)] = &[
        (|new, _| new.reason = " ".into(), 400, "reason is required"),
        (
            |new, _| new.reason = "é".repeat(2001),
            400,
            "reason must have at most 2000 characters",
        ),
        (
            |new, _| new.legal_basis = Some("é".repeat(256)),
            400,
            "legal_basis must have at most 255 characters",
        ),
        (
            |new, _| new.requires_legal_basis_for_full = true,
            400,
            "legal_basis is required for full disclosure",
        ),
        (
            |new, _| new.expires_in_hours = Some(-1),
            400,
            "expires_in_hours must be between 0 and 8760",
        ),
        (
            |new, _| new.target = UserId::fixed(5),
            403,
            "access denied to target resource",
        ),
        (
            |new, people| new.target = people.auditor,
            403,
            "access denied to target resource",
        ),
        (
            |new, _| new.org = OrgId::fixed(5),
            403,
            "access denied to target resource",
        ),
        (
            |new, _| new.requester = Some(UserId::fixed(5)),
            400,
            "requester_user_id is unknown",
        ),
        (
            |new, people| new.requester = Some(people.owner),
            400,
            "requester_user_id and requester_did do not agree",
        ),
        (
            |new, _| new.requester_did = Some(did("owner")),
            400,
            "requester and target must differ",
        ),
        (
            |new, people| {
                new.requester = Some(people.owner);
                new.requester_did = None;
            },
            400,
            "requester and target must differ",
        ),
        (
            |new, _| new.scope.level = Some("all".into()),
            400,
            "scope.disclosure_level must be full, pseudonymous or redacted",
        ),
    ];
    for (change, status, text) in cases {
        let mut new = people.request();
        change(&mut new, &people);
        let mut tx = world.begin().await;
        let error = tx.create_disclosure_request(new).await.unwrap_err();
        assert_eq!(
            (error.http_status(), error.to_string().as_str()),
            (Some(*status), *text)
        );
        tx.rollback().await.unwrap();
    }
    let accepted: &[Change] = &[
        |new, _| new.reason = "é".repeat(2000),
        |new, _| new.legal_basis = Some("é".repeat(255)),
        |new, people| new.requester = Some(people.auditor),
        |new, people| {
            new.requester = Some(people.auditor);
            new.requester_did = None;
        },
        |new, _| {
            new.requires_legal_basis_for_full = true;
            new.scope.level = Some("pseudonymous".into());
        },
    ];
    for change in accepted {
        let id = people.pending(world, |new| change(new, &people)).await;
        let details = world.store.read().find_disclosure_request(id).await.unwrap().unwrap();
        assert_eq!(details.request.requester_did, Some(did("auditor")));
    }
    // A request without requester: nobody can use its grant.
    let id = people.pending(world, |new| new.requester_did = None).await;
    let granted = approve(world, id, people.owner, &DisclosureApproval::default())
        .await
        .unwrap();
    assert_eq!(granted.grant.grantee, None);
    assert_eq!(world.store.load().await.unwrap().disclosures().count(), 0);
}

/// Spec/80 sections 5 and 7, rule 39: with a user or an organization the requests and grants end, and their rows stay.
async fn ds39_requests_outlive_their_users_and_organization(world: &World) {
    let people = people(world).await;
    let rows = async || {
        let page = world.store.read();
        let filter = DisclosureFilter::all(Scope::All);
        let page = page.list_disclosure_requests(&filter, ALL).await.unwrap();
        let mut statuses: Vec<_> = page
            .rows
            .iter()
            .map(|details| details.request.status.as_str())
            .collect();
        statuses.sort_unstable();
        statuses
    };
    people.pending(world, |_| {}).await;
    let granted = people.approved(world).await;
    let mut tx = world.begin().await;
    tx.delete_user(people.auditor).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(rows().await, ["expired", "revoked"], "of the grantee");
    let snapshot = world.store.load().await.unwrap();
    assert!(
        !snapshot
            .find_disclosure(granted.grant.id)
            .unwrap()
            .is_active(world.clock.now())
    );
    assert_eq!(
        grants(world).await[0].grant.revoked_reason.as_deref(),
        Some("user deleted")
    );

    people.pending(world, |_| {}).await;
    people.approved(world).await;
    let mut tx = world.begin().await;
    tx.delete_user(people.owner).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        rows().await,
        ["expired", "expired", "revoked", "revoked"],
        "of the owner"
    );
    let details = world
        .store
        .read()
        .find_disclosure_request(granted.request.id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((details.target_did, details.active_grant), (None, None));

    let mut tx = world.begin().await;
    let new = NewUser {
        external_id: did("owner"),
        kyc: true,
        auth_tenant_id: None,
        groups: Vec::new(),
    };
    let owner = tx.create_user(new).await.unwrap().id;
    tx.add_membership(NewMembership {
        user: owner,
        group: people.group,
        expires_at: None,
    })
    .await
    .unwrap();
    tx.commit().await.unwrap();
    let again = People { owner, ..people };
    again.pending(world, |_| {}).await;
    again.approved(world).await;
    let mut tx = world.begin().await;
    tx.delete_organization(again.org).await.unwrap();
    tx.commit().await.unwrap();
    let ended = ["expired", "expired", "expired", "revoked", "revoked", "revoked"];
    assert_eq!(rows().await, ended, "of the organization");
}
