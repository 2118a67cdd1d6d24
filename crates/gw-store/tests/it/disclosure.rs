//! Requests and grants of disclosure (spec/50 sections 2, 3, 6 and 8).

use crate::{
    audit::writer,
    world::{World, did, on_both_engines},
};
use gw_audit::{DisclosureAction, DisclosureData, DisclosureRead, Stream};
use gw_crypto::KeyCipher;
use gw_policy::{
    disclosure::{GrantLimits, GrantStatus, RequestStatus, ScopeError, ScopeInput, TransitionError},
    snapshot::DisclosureScope,
};
use gw_store::{
    DisclosureError, Store,
    audit::LogRow,
    read::{DisclosureFilter, Paging, RequesterFilter, Scope},
    record::{
        DisclosureApproval, GrantWithRequest, NewDisclosureRequest, NewGroup, NewMembership, NewOrganization, NewUser,
    },
};
use gw_types::{
    Clock, DisclosureGrantId, DisclosureRequestId, GrantSecret, GroupId, Level, OrgId, Seconds, Secret, UserId,
};

on_both_engines! {
    ds10_two_approvals_at_once_give_one_grant,
    ds10_decisions_are_never_overwritten,
    ds11_ds14_an_approval_narrows_the_scope,
    ds15_a_transition_and_its_entries_are_one_transaction,
    ds16_lists_filter_order_and_page,
    ds29_secrets_rest_encrypted_and_are_destroyed,
    ds29_secrets_are_encrypted_anew_with_a_new_key,
    ds5_ds8_requests_that_break_a_rule_are_refused,
    ds8_active_grants_to_a_grantee_are_limited_by_owner_and_organization,
    ds39_events_are_reads_and_transitions_in_order,
    ds39_requests_outlive_their_users_and_organization,
    r1_a_scope_that_cannot_be_parsed_covers_nothing,
}

pub(crate) const ALL: Paging = Paging { limit: 1000, offset: 0 };
const MONTH: Seconds = Seconds(30 * 86_400);

pub(crate) fn cipher() -> KeyCipher {
    KeyCipher::new(&Secret::new("11".repeat(32))).unwrap()
}

/// An organization with a group, whose members are the owners of data.
pub(crate) struct People {
    pub(crate) org: OrgId,
    pub(crate) group: GroupId,
    pub(crate) owner: UserId,
    pub(crate) auditor: UserId,
}

pub(crate) async fn people(world: &World) -> People {
    let mut tx = world.begin().await;
    let org = tx
        .create_organization(NewOrganization {
            slug: "bank".into(),
            ..NewOrganization::default()
        })
        .await
        .unwrap();
    let group = tx
        .create_group(NewGroup::plain(org.id, "members", "members"))
        .await
        .unwrap();
    let mut users = Vec::new();
    for name in ["owner", "auditor"] {
        let new = NewUser {
            external_id: did(name),
            kyc: true,
            auth_tenant_id: None,
            groups: Vec::new(),
        };
        users.push(tx.create_user(new).await.unwrap().id);
    }
    tx.add_membership(NewMembership {
        user: users[0],
        group: group.id,
        expires_at: None,
    })
    .await
    .unwrap();
    tx.commit().await.unwrap();
    People {
        org: org.id,
        group: group.id,
        owner: users[0],
        auditor: users[1],
    }
}

impl People {
    pub(crate) fn request(&self) -> NewDisclosureRequest {
        NewDisclosureRequest {
            requester: None,
            requester_did: Some(did("auditor")),
            target: self.owner,
            org: self.org,
            scope: ScopeInput {
                level: Some("full".to_owned()),
                ..ScopeInput::default()
            },
            reason: "yearly audit".to_owned(),
            legal_basis: None,
            expires_in_hours: None,
            requires_legal_basis_for_full: false,
        }
    }

    async fn pending(&self, world: &World, change: impl FnOnce(&mut NewDisclosureRequest)) -> DisclosureRequestId {
        let mut new = self.request();
        change(&mut new);
        let mut tx = world.begin().await;
        let request = tx.create_disclosure_request(new).await.unwrap();
        tx.commit().await.unwrap();
        request.id
    }

    async fn approved(&self, world: &World) -> GrantWithRequest {
        let id = self.pending(world, |_| {}).await;
        approve(world, id, self.owner, &DisclosureApproval::default())
            .await
            .unwrap()
    }
}

pub(crate) async fn approve(
    world: &World,
    id: DisclosureRequestId,
    owner: UserId,
    approval: &DisclosureApproval,
) -> Result<GrantWithRequest, DisclosureError> {
    approve_in(&world.store, id, owner, approval).await
}

pub(crate) async fn approve_in(
    store: &Store,
    id: DisclosureRequestId,
    owner: UserId,
    approval: &DisclosureApproval,
) -> Result<GrantWithRequest, DisclosureError> {
    let actor = gw_store::Actor::named("did:test:owner");
    let mut tx = store.begin(&actor).await.unwrap();
    let limits = GrantLimits::default();
    let granted = tx.approve_disclosure(id, owner, approval, limits, &cipher()).await;
    match granted {
        Ok(_) => drop(tx.commit().await.unwrap()),
        Err(_) => tx.rollback().await.unwrap(),
    }
    granted
}

async fn status(world: &World, id: DisclosureRequestId) -> RequestStatus {
    let details = world.store.read().find_disclosure_request(id).await.unwrap();
    details.unwrap().request.status
}

async fn grants(world: &World) -> Vec<GrantWithRequest> {
    let filter = DisclosureFilter::all(Scope::All);
    world
        .store
        .read()
        .list_disclosure_grants(&filter, ALL)
        .await
        .unwrap()
        .rows
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

/// Rule 16: lists of administrators, owners and grantees.
async fn ds16_lists_filter_order_and_page(world: &World) {
    let people = people(world).await;
    let mut tx = world.begin().await;
    let odd = tx
        .create_user(NewUser {
            external_id: did("odd_name%"),
            kyc: true,
            auth_tenant_id: None,
            groups: Vec::new(),
        })
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let start = world.clock.now();
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(
            people
                .pending(world, |new| {
                    new.expires_in_hours = (n == 0).then_some(1);
                    if n == 4 {
                        new.requester = Some(odd.id);
                        new.requester_did = None;
                        new.scope.level = None;
                    }
                })
                .await,
        );
        world.clock.pass(1);
    }
    let granted = approve(world, ids[1], people.owner, &DisclosureApproval::default())
        .await
        .unwrap();
    world.clock.pass(3600);
    let list = async |change: &dyn Fn(&mut DisclosureFilter), paging: Paging| {
        let mut filter = DisclosureFilter::all(Scope::All);
        change(&mut filter);
        let page = world
            .store
            .read()
            .list_disclosure_requests(&filter, paging)
            .await
            .unwrap();
        let index = |id: DisclosureRequestId| ids.iter().position(|known| *known == id).unwrap();
        let rows: Vec<usize> = page.rows.iter().map(|details| index(details.request.id)).collect();
        (rows, page.total)
    };
    assert_eq!(list(&|_| {}, ALL).await, (vec![4, 3, 2, 1, 0], 5));
    assert_eq!(list(&|_| {}, Paging { limit: 2, offset: 1 }).await, (vec![3, 2], 5));
    let with_status = |status| move |filter: &mut DisclosureFilter| filter.request_status = Some(status);
    assert_eq!(list(&with_status(RequestStatus::Pending), ALL).await.0, [4, 3, 2]);
    assert_eq!(list(&with_status(RequestStatus::Expired), ALL).await.0, [0]);
    assert_eq!(list(&with_status(RequestStatus::Approved), ALL).await.0, [1]);
    assert_eq!(list(&|filter| filter.level = Some(Level::Redacted), ALL).await.0, [4]);
    assert_eq!(
        list(&|filter| filter.from = Some(start.plus(Seconds(3))), ALL).await.0,
        [4, 3]
    );
    assert_eq!(
        list(&|filter| filter.to = Some(start.plus(Seconds(1))), ALL).await.0,
        [1, 0]
    );
    let contains = |text: &'static str| {
        move |filter: &mut DisclosureFilter| filter.requester = Some(RequesterFilter::Contains(text.to_owned()))
    };
    assert_eq!(list(&contains("AUDIT"), ALL).await.0, [3, 2, 1, 0]);
    assert_eq!(
        list(&contains("_name%"), ALL).await.0,
        [4],
        "LIKE characters stand for themselves"
    );
    assert_eq!(list(&contains("%"), ALL).await.0, [4]);
    assert_eq!(
        list(&|filter| filter.scope = Scope::Orgs(Vec::new()), ALL).await,
        (vec![], 0)
    );
    assert_eq!(
        list(&|filter| filter.scope = Scope::Orgs(vec![people.org]), ALL)
            .await
            .1,
        5
    );
    assert_eq!(list(&|filter| filter.target = Some(people.auditor), ALL).await.1, 0);
    let details = world
        .store
        .read()
        .find_disclosure_request(ids[1])
        .await
        .unwrap()
        .unwrap();
    assert_eq!(details.active_grant, Some(granted.grant.id));
    assert_eq!(details.target_did, Some(did("owner")));
    assert_eq!(details.decided_by_did, Some(did("owner")));
    assert_eq!(details.request.requester_did, Some(did("auditor")), "rule 9");

    let granted_to = async |grantee: &str, status: Option<GrantStatus>| {
        let filter = DisclosureFilter {
            grant_status: status,
            ..DisclosureFilter::for_grantee(did(grantee))
        };
        world
            .store
            .read()
            .list_disclosure_grants(&filter, ALL)
            .await
            .unwrap()
            .total
    };
    assert_eq!(granted_to("auditor", Some(GrantStatus::Active)).await, 1);
    assert_eq!(granted_to("owner", None).await, 0);
    world.clock.pass(86_400);
    assert_eq!(granted_to("auditor", Some(GrantStatus::Active)).await, 0);
    assert_eq!(granted_to("auditor", Some(GrantStatus::Expired)).await, 1);
    assert_eq!(granted_to("auditor", Some(GrantStatus::Revoked)).await, 0);
}

/// Rule 29: a secret of its own per grant, encrypted, and destroyed when the grant has ended for long enough. Then the
/// grant leaves the snapshot.
async fn ds29_secrets_rest_encrypted_and_are_destroyed(world: &World) {
    let people = people(world).await;
    let (first, second) = (people.approved(world).await.grant, people.approved(world).await.grant);
    let secret = async |id: DisclosureGrantId| -> Option<GrantSecret> {
        let snapshot = world.store.load().await.unwrap();
        let grant = snapshot.find_disclosure(id)?;
        Some(cipher().open_grant_secret(id, &grant.secret).unwrap())
    };
    let (one, another) = (secret(first.id).await.unwrap(), secret(second.id).await.unwrap());
    assert_ne!(one.expose(), another.expose());
    let plain = world.rows(
        "SELECT count(*) AS n FROM disclosure_grants WHERE length(secret) = 60",
        "n",
    );
    assert_eq!(plain.await, [2]);

    let mut tx = world.begin().await;
    tx.revoke_disclosure_grant(first.id, None).await.unwrap();
    tx.commit().await.unwrap();
    let has_work = async || world.store.read().has_overdue_disclosures(MONTH).await.unwrap();
    let sweep = async || {
        let mut tx = world.begin().await;
        let swept = tx.sweep_disclosures(MONTH, 10).await.unwrap();
        tx.commit().await.unwrap();
        (swept.requests, swept.grants, swept.destroyed_secrets)
    };
    assert!(!has_work().await);
    assert_eq!(sweep().await, (0, 0, 0));
    world.clock.pass(86_400);
    assert!(has_work().await);
    assert_eq!(sweep().await, (0, 1, 0), "the second grant has expired");
    assert!(!has_work().await);
    world.clock.pass(29 * 86_400 - 1);
    assert_eq!(sweep().await, (0, 0, 0));
    assert!(secret(first.id).await.is_some());
    world.clock.pass(1);
    assert!(has_work().await);
    assert_eq!(sweep().await, (0, 0, 1));
    assert!(secret(first.id).await.is_none() && secret(second.id).await.is_some());
    world.clock.pass(86_400);
    assert_eq!(sweep().await, (0, 0, 1));
    let snapshot = world.store.load().await.unwrap();
    assert_eq!(snapshot.disclosures().count(), 0);
    let rows = grants(world).await;
    assert!(
        rows.len() == 2 && rows.iter().all(|row| !row.grant.has_secret),
        "the rows stay"
    );
    assert!(!has_work().await);
}

/// Rule 29: at a rotation of the encryption key every secret is encrypted anew.
async fn ds29_secrets_are_encrypted_anew_with_a_new_key(world: &World) {
    let people = people(world).await;
    let grant = people.approved(world).await.grant;
    let key = |digits: &str| Secret::new(digits.repeat(32));
    let rotated = KeyCipher::new(&key("22")).unwrap().with_previous(&key("11")).unwrap();
    let only_new = KeyCipher::new(&key("22")).unwrap();
    let stored = async || {
        let snapshot = world.store.load().await.unwrap();
        snapshot.find_disclosure(grant.id).unwrap().secret
    };
    let before = cipher().open_grant_secret(grant.id, &stored().await).unwrap();
    for (with, expected) in [(&only_new, 0), (&rotated, 1), (&rotated, 0)] {
        let mut tx = world.begin().await;
        assert_eq!(tx.renew_grant_secrets(&[grant.id], with).await.unwrap(), expected);
        tx.commit().await.unwrap();
    }
    let after = only_new.open_grant_secret(grant.id, &stored().await).unwrap();
    assert_eq!(after.expose(), before.expose());
    let changed = "SELECT count(*) AS n FROM audit_outbox WHERE resource_type = 'disclosure_grant' AND new_value LIKE \
                   '%\"changed\":true%'";
    assert_eq!(world.rows(changed, "n").await, [1]);
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
}

/// Rule 39, spec/70 section 1: the events of a grant are its reads and the transitions of its request and of itself,
/// newest first, on pages by limit and offset.
async fn ds39_events_are_reads_and_transitions_in_order(world: &World) {
    let people = people(world).await;
    let granted = people.approved(world).await;
    let other = people.approved(world).await;
    let mut writer = writer(world, Stream::Disclosure).await;
    let read = |grant: DisclosureGrantId, action, count| DisclosureRead {
        grant_id: grant,
        org_id: Some(people.org),
        owner_id: people.owner,
        viewer_id: Some(people.auditor),
        viewer_external_id: Some(did("auditor")),
        action,
        data: DisclosureData::Transactions,
        record_count: Some(count),
        first: None,
        last: None,
        methods: None,
        addresses: Vec::new(),
        ip_address: None,
        correlation_id: None,
    };
    for count in 0..3 {
        world.clock.pass(10);
        writer.append(world, read(granted.grant.id, DisclosureAction::ViewTransactions, count));
        writer.append(world, read(other.grant.id, DisclosureAction::Resolve, 1));
    }
    writer.seal().await;
    world.clock.pass(10);
    let mut tx = world.begin().await;
    tx.revoke_disclosure(granted.request.id, people.owner, None)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    let events = async |paging: Paging| {
        let (request, grant) = (granted.request.id, granted.grant.id);
        let page = writer
            .audit
            .list_disclosure_events(&world.store, request, grant, paging);
        let page = page.await.unwrap();
        assert_eq!(page.total, 6);
        page.rows
            .into_iter()
            .map(|row| {
                let LogRow::Entry(event) = row else { panic!("tampered") };
                let count = event.read.and_then(|read| read.record_count);
                count.map_or_else(|| event.action.to_string(), |count| format!("{} {count}", event.action))
            })
            .collect::<Vec<_>>()
    };
    let all = [
        "revoked",
        "view_transactions 2",
        "view_transactions 1",
        "view_transactions 0",
        "approved",
        "requested",
    ];
    assert_eq!(events(ALL).await, all);
    for limit in 1..7 {
        let mut walked = Vec::new();
        for offset in (0..6_u64).step_by(limit) {
            let paging = Paging {
                limit: limit as u64,
                offset,
            };
            walked.extend(events(paging).await);
        }
        assert_eq!(walked, all, "pages of {limit}");
    }
    assert_eq!(events(Paging { limit: 5, offset: 6 }).await, Vec::<String>::new());
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

/// R1, rule 6: what a later version or somebody else wrote into a scope never discloses more.
async fn r1_a_scope_that_cannot_be_parsed_covers_nothing(world: &World) {
    let people = people(world).await;
    let granted = people.approved(world).await;
    let scope = async || {
        let stored = world
            .store
            .read()
            .find_disclosure_grant(granted.grant.id)
            .await
            .unwrap();
        let stored = stored.unwrap().grant.scope;
        let snapshot = world.store.load().await.unwrap();
        assert_eq!(snapshot.find_disclosure(granted.grant.id).unwrap().scope, stored);
        stored
    };
    assert!(scope().await.is_unrestricted());
    for broken in [
        r#"{"weekdays":["monday"]}"#,
        r#"{"dates":[1]}"#,
        r#"{"addresses":["0x1"]}"#,
        "[]",
        "null",
        "7",
    ] {
        world
            .tamper(&[&format!("UPDATE disclosure_grants SET scope = '{broken}'")])
            .await;
        assert_eq!(scope().await, DisclosureScope::nothing(), "{broken}");
    }
    world
        .tamper(&["UPDATE disclosure_grants SET scope = '{}', disclosure_level = 'everything'"])
        .await;
    assert_eq!(scope().await.level, Level::Redacted);
}
