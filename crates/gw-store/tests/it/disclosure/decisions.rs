//! Decisions of owners: one grant per request, nothing decided is overwritten, and each transition is in one
//! transaction with its audit entries.

use super::{approve, approve_in, cipher, grants, people, status};
use crate::world::{World, on_both_engines};
use gw_policy::disclosure::{GrantLimits, RequestStatus, ScopeError, ScopeInput, TransitionError};
use gw_store::{
    DisclosureError,
    record::{DisclosureApproval, NewDisclosureRequest},
};
use gw_types::{Clock, DisclosureRequestId, Level, Seconds};

on_both_engines! {
    ds10_two_approvals_at_once_give_one_grant,
    ds10_decisions_are_never_overwritten,
    ds11_ds14_an_approval_narrows_the_scope,
    ds15_a_transition_and_its_entries_are_one_transaction,
    ds8_active_grants_to_a_grantee_are_limited_by_owner_and_organization,
}

/// Rule 10: of approvals on two instances at once exactly one makes a grant; the other is told 400.
async fn ds10_two_approvals_at_once_give_one_grant(world: &World) {
    let people = people(world).await;
    let other = world.another_store(2).await;
    for round in 0..5 {
        let id = people.pending(world, |_| {}).await;
        let approval = DisclosureApproval::default();
        let (one, another) = tokio::join!(
            approve_in(&world.store, id, people.owner, &approval),
            approve_in(&other, id, people.owner, &approval)
        );
        let (kept, refused): (Vec<_>, Vec<_>) = [one, another].into_iter().partition(Result::is_ok);
        assert_eq!((kept.len(), refused.len()), (1, 1));
        for error in refused.into_iter().filter_map(Result::err) {
            assert_eq!(error.http_status(), Some(400), "{error}");
        }
        assert_eq!(grants(world).await.len(), round + 1);
    }
    // The unique index is what makes sure, whatever a mutation does.
    let request = grants(world).await[0].grant.request;
    let row = format!(
        "INSERT INTO disclosure_grants SELECT {}, request_id, owner_user_id, grantee_did, org_id, disclosure_level, \
         scope, include_future_addresses, granted_at, expires_at, revoked_at, revoked_reason, ended_at, secret FROM \
         disclosure_grants WHERE request_id = {}",
        literal(world, 99),
        literal(world, request.0.as_u128())
    );
    let connection = world.connection().await;
    let inserted = sea_orm::ConnectionTrait::execute_unprepared(&connection, &row).await;
    assert!(inserted.is_err());
}

/// Returns an id as the engine writes it.
fn literal(world: &World, id: u128) -> String {
    match world.engine {
        "sqlite" => format!("x'{id:032x}'"),
        _ => format!("'{}'::uuid", uuid::Uuid::from_u128(id)),
    }
}

/// Section 3: what was decided or has ended stays so.
async fn ds10_decisions_are_never_overwritten(world: &World) {
    let people = people(world).await;
    let approval = DisclosureApproval::default();
    let rejected = people.pending(world, |_| {}).await;
    let mut tx = world.begin().await;
    tx.reject_disclosure(rejected, people.owner, Some("no")).await.unwrap();
    tx.commit().await.unwrap();
    let refused = approve(world, rejected, people.owner, &approval).await.unwrap_err();
    assert!(matches!(
        refused,
        DisclosureError::Transition(TransitionError::NotPending)
    ));
    let details = world.store.read().find_disclosure_request(rejected).await.unwrap();
    let request = details.unwrap().request;
    assert_eq!(request.decision_reason.as_deref(), Some("no"));
    assert_eq!(
        (request.decided_by, request.status),
        (Some(people.owner), RequestStatus::Rejected)
    );

    let late = people.pending(world, |new| new.expires_in_hours = Some(1)).await;
    world.clock.pass(3600);
    assert_eq!(status(world, late).await, RequestStatus::Expired, "before any sweep");
    let refused = approve(world, late, people.owner, &approval).await.unwrap_err();
    assert!(matches!(refused, DisclosureError::Transition(TransitionError::Expired)));
    let mut tx = world.begin().await;
    let refused = tx.delete_disclosure_request(late).await.unwrap_err();
    assert_eq!(refused.to_string(), "can only delete pending requests");
    tx.rollback().await.unwrap();

    let granted = people.approved(world).await;
    let refused = approve(world, granted.request.id, people.auditor, &approval)
        .await
        .unwrap_err();
    assert!(matches!(refused, DisclosureError::NotOwner));
    assert_eq!(refused.http_status(), Some(403));
    let unknown = DisclosureRequestId::fixed(1);
    let refused = approve(world, unknown, people.owner, &approval).await.unwrap_err();
    assert_eq!(
        (refused.http_status(), refused.to_string().as_str()),
        (Some(404), "request not found")
    );

    // A second revocation of the grant keeps the first time and reason; one of the request is refused.
    let mut tx = world.begin().await;
    tx.revoke_disclosure_grant(granted.grant.id, Some("first"))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let first = grants(world).await[0].grant.clone();
    world.clock.pass(5);
    let mut tx = world.begin().await;
    tx.revoke_disclosure_grant(granted.grant.id, Some("second"))
        .await
        .unwrap();
    let refused = tx.revoke_disclosure(granted.request.id, people.owner, None).await;
    assert_eq!(refused.unwrap_err().http_status(), Some(400));
    tx.commit().await.unwrap();
    assert_eq!(grants(world).await[0].grant, first);
    assert_eq!(first.revoked_reason.as_deref(), Some("first"));
    assert_eq!(status(world, granted.request.id).await, RequestStatus::Revoked);
}

/// Rules 11, 12 and 14: an empty approval gives what was requested for a day; anything more is refused.
async fn ds11_ds14_an_approval_narrows_the_scope(world: &World) {
    let people = people(world).await;
    let month = ("2026-01-01T00:00:00Z", "2026-01-31T00:00:00Z");
    let range = |(start, end): (&str, &str)| Some((Some(start.to_owned()), Some(end.to_owned())));
    let request = |new: &mut NewDisclosureRequest| {
        new.scope.level = Some("pseudonymous".to_owned());
        new.scope.date_range = range(month);
    };
    let id = people.pending(world, request).await;
    for (approval, expected) in [
        (
            DisclosureApproval {
                scope: ScopeInput {
                    level: Some("full".to_owned()),
                    ..ScopeInput::default()
                },
                ..DisclosureApproval::default()
            },
            ScopeError::NotSubset.to_string(),
        ),
        (
            DisclosureApproval {
                duration_hours: Some(8761),
                ..DisclosureApproval::default()
            },
            "grant_duration_hours must be between 0 and 8760".to_owned(),
        ),
        (
            DisclosureApproval {
                reason: Some("x".repeat(2001)),
                ..DisclosureApproval::default()
            },
            "reason must have at most 2000 characters".to_owned(),
        ),
    ] {
        let refused = approve(world, id, people.owner, &approval).await.unwrap_err();
        assert_eq!((refused.http_status(), refused.to_string()), (Some(400), expected));
    }
    assert_eq!(status(world, id).await, RequestStatus::Pending);
    let narrow = DisclosureApproval {
        scope: ScopeInput {
            level: Some("redacted".to_owned()),
            date_range: range(("2026-01-10T00:00:00Z", "2026-01-11T00:00:00Z")),
            addresses: Some(vec!["0x00000000000000000000000000000000000000AA".to_owned()]),
            ..ScopeInput::default()
        },
        include_future_addresses: true,
        ..DisclosureApproval::default()
    };
    let granted = approve(world, id, people.owner, &narrow).await.unwrap();
    let stored = world
        .store
        .read()
        .find_disclosure_grant(granted.grant.id)
        .await
        .unwrap();
    assert_eq!(stored.as_ref(), Some(&granted));
    let (scope, grant) = (&granted.grant.scope, &granted.grant);
    assert_eq!(
        (scope.level, scope.addresses.as_ref().map(Vec::len)),
        (Level::Redacted, Some(1))
    );
    assert!(scope.dates.is_some() && grant.include_future_addresses && grant.has_secret);
    assert_eq!(grant.expires_at, world.clock.now().plus(Seconds(86_400)));
    let snapshot = world.store.load().await.unwrap();
    assert_eq!(&snapshot.find_disclosure(grant.id).unwrap().scope, scope);
}

/// Rule 15, spec/70 rule 15: no transition without its entries, and no entry without its transition.
async fn ds15_a_transition_and_its_entries_are_one_transaction(world: &World) {
    let people = people(world).await;
    let entries = async || {
        let sql = "SELECT action || ' ' || resource_type AS entry FROM audit_outbox WHERE resource_type LIKE \
                   'disclosure%' ORDER BY id";
        world.texts(sql, "entry").await
    };
    let granted = people.approved(world).await;
    let mut expected = vec![
        "create disclosure_request",
        "update disclosure_request",
        "create disclosure_grant",
    ];
    assert_eq!(entries().await, expected);
    let refused = approve(world, granted.request.id, people.owner, &DisclosureApproval::default()).await;
    assert!(refused.is_err());
    let mut tx = world.begin().await;
    tx.revoke_disclosure(granted.request.id, people.owner, Some("enough"))
        .await
        .unwrap();
    tx.rollback().await.unwrap();
    assert_eq!(entries().await, expected);
    assert_eq!(status(world, granted.request.id).await, RequestStatus::Approved);
    let mut tx = world.begin().await;
    tx.revoke_disclosure(granted.request.id, people.owner, Some("enough"))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    expected.extend(["revoke disclosure_grant", "revoke disclosure_request"]);
    assert_eq!(entries().await, expected);
    // No entry holds a secret, or an address that only the owner may have named.
    let values = world
        .texts(
            "SELECT coalesce(new_value, '') || coalesce(old_value, '') AS value FROM audit_outbox",
            "value",
        )
        .await;
    assert!(
        values.iter().any(|value| value.contains("\"secret\":{\"set\":true}")),
        "{values:?}"
    );
}

/// Section 8: an owner has at most 50 active grants to one grantee, and an organization at most 500. Those of other
/// organizations do not count.
async fn ds8_active_grants_to_a_grantee_are_limited_by_owner_and_organization(world: &World) {
    let people = people(world).await;
    let mut tx = world.begin().await;
    let (limits, approval) = (GrantLimits::default(), DisclosureApproval::default());
    let mut last = None;
    for _ in 0..50 {
        let request = tx.create_disclosure_request(people.request()).await.unwrap();
        let granted = tx
            .approve_disclosure(request.id, people.owner, &approval, limits, &cipher())
            .await;
        last = Some(granted.unwrap());
    }
    let request = tx.create_disclosure_request(people.request()).await.unwrap();
    tx.commit().await.unwrap();
    let refused = approve(world, request.id, people.owner, &approval).await.unwrap_err();
    assert!(matches!(refused, DisclosureError::TooManyOwnerGrants));
    assert_eq!(refused.http_status(), Some(400));
    let mut tx = world.begin().await;
    tx.revoke_disclosure_grant(last.unwrap().grant.id, None).await.unwrap();
    tx.commit().await.unwrap();
    approve(world, request.id, people.owner, &approval).await.unwrap();
    // As if they were grants of other members.
    let strangers = "UPDATE disclosure_grants SET owner_user_id = request_id";
    for _ in 0..9 {
        world.tamper(&[strangers]).await;
        let mut tx = world.begin().await;
        for _ in 0..50 {
            let request = tx.create_disclosure_request(people.request()).await.unwrap();
            tx.approve_disclosure(request.id, people.owner, &approval, limits, &cipher())
                .await
                .unwrap();
        }
        tx.commit().await.unwrap();
    }
    world.tamper(&[strangers]).await;
    let mut tx = world.begin().await;
    let request = tx.create_disclosure_request(people.request()).await.unwrap();
    tx.commit().await.unwrap();
    let refused = approve(world, request.id, people.owner, &approval).await.unwrap_err();
    assert!(matches!(refused, DisclosureError::TooManyGrants));
    assert_eq!(refused.http_status(), Some(400));
    let other_org = "UPDATE disclosure_grants SET org_id = request_id";
    world.tamper(&[other_org]).await;
    approve(world, request.id, people.owner, &approval).await.unwrap();
    // All 500 are the owner's again, and ended: they count until their secrets are destroyed.
    let ended = "UPDATE disclosure_grants SET expires_at = granted_at";
    let of_owner = "UPDATE disclosure_grants SET owner_user_id = \
                    (SELECT target_user_id FROM disclosure_requests LIMIT 1)";
    world.tamper(&[ended, of_owner]).await;
    let mut tx = world.begin().await;
    let request = tx.create_disclosure_request(people.request()).await.unwrap();
    tx.commit().await.unwrap();
    let refused = approve(world, request.id, people.owner, &approval).await.unwrap_err();
    assert!(matches!(refused, DisclosureError::TooManyKeptGrants), "{refused:?}");
    assert_eq!(refused.http_status(), Some(400));
    world.tamper(&["UPDATE disclosure_grants SET secret = NULL"]).await;
    approve(world, request.id, people.owner, &approval).await.unwrap();
}
