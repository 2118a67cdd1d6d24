//! Tests of tokens, permissions and admin status.

use gw_evm::Method;
use gw_policy::{
    Change, Snapshot,
    access::{self, IdentityError, TokenFacts, admin, identify},
    snapshot::{AllowedTenant, User},
    testing::{FUTURE, NOW, PAST, did, org_id, user_id, world},
};
use gw_types::{AllowedTenantId, Claim, Seconds, TenantId, Timestamp, TokenId};

const TOKEN: TokenId = TokenId::fixed(71);
const FAMILY: TokenId = TokenId::fixed(72);

fn identify_user(snapshot: &Snapshot, user: &str, issued_at: Timestamp) -> Result<(), IdentityError> {
    let facts = TokenFacts {
        subject: did(user),
        token: TOKEN,
        session: FAMILY,
        issued_at,
    };
    identify(snapshot, &facts).map(|user_row| assert_eq!(user_row.id, user_id(user)))
}

#[test]
fn a9_a_subject_without_a_row_is_unknown() {
    let snapshot = world().user("known").snapshot();
    assert_eq!(identify_user(&snapshot, "known", NOW), Ok(()));
    assert_eq!(
        identify_user(&snapshot, "stranger", NOW),
        Err(IdentityError::UnknownUser)
    );
}

#[test]
fn a10_a_ban_is_reported_before_the_revocation() {
    let snapshot = world()
        .user("fraud")
        .banned()
        .tokens_valid_from(NOW)
        .revoked(FAMILY)
        .snapshot();
    assert_eq!(identify_user(&snapshot, "fraud", PAST), Err(IdentityError::Banned));
}

#[test]
fn j1_revoked_tokens_families_and_older_tokens_are_rejected() {
    let snapshot = world().user("user").revoked(TOKEN).snapshot();
    assert_eq!(identify_user(&snapshot, "user", NOW), Err(IdentityError::Revoked));
    let snapshot = world().user("user").revoked(FAMILY).snapshot();
    assert_eq!(identify_user(&snapshot, "user", NOW), Err(IdentityError::Revoked));
    let snapshot = world().user("user").tokens_valid_from(NOW).snapshot();
    assert_eq!(
        identify_user(&snapshot, "user", NOW.minus(Seconds(1))),
        Err(IdentityError::Revoked)
    );
    assert_eq!(identify_user(&snapshot, "user", NOW), Ok(()));
}

/// TK-8: the list of allowed tenants takes effect with the next snapshot, for tokens, administration and running
/// calls.
#[test]
fn tk8_a_user_whose_tenant_is_not_allowed_is_rejected() {
    let (tenant, row) = (TenantId::fixed(7), AllowedTenantId::fixed(1));
    let snapshot = world()
        .org("bank")
        .group("admins")
        .org_admin()
        .user("clerk")
        .member("admins")
        .snapshot();
    let clerk = User {
        tenant: Some(tenant),
        ..User::clone(snapshot.user(user_id("clerk")).unwrap())
    };
    let status_with = |list: Option<AllowedTenant>| {
        let changes = [Change::User(clerk.id, Some(clerk.clone())), Change::Tenant(row, list)];
        let snapshot = snapshot.apply(gw_types::Epoch(2), changes);
        let is_admin = admin::status(&snapshot, clerk.id, NOW).is_admin();
        (identify_user(&snapshot, "clerk", NOW), is_admin)
    };
    let allowed = AllowedTenant {
        id: row,
        tenant,
        disabled: false,
    };
    assert_eq!(status_with(Some(allowed)), (Ok(()), true));
    for list in [
        None,
        Some(AllowedTenant {
            disabled: true,
            ..allowed
        }),
        Some(AllowedTenant {
            tenant: TenantId::fixed(8),
            ..allowed
        }),
    ] {
        assert_eq!(
            status_with(list),
            (Err(IdentityError::TenantNotAllowed), false),
            "{list:?}"
        );
    }
}

#[test]
fn g6_permissions_are_the_union_over_active_memberships() {
    let snapshot = world()
        .org("bank")
        .group("readers")
        .methods([Method::Call])
        .group("deployers")
        .methods([Method::SendRawTransaction])
        .claim(Claim::Deploy)
        .group("leavers")
        .methods([Method::GetLogs])
        .claim(Claim::Upgrade)
        .user("ops")
        .member("readers")
        .member_until("deployers", FUTURE)
        .member_until("leavers", PAST)
        .snapshot();
    let permissions_at = |now| access::permissions(&snapshot, user_id("ops"), org_id("bank"), now);
    let current = permissions_at(NOW);
    assert!(
        current.allows(Method::Call) && current.allows(Method::SendRawTransaction) && !current.allows(Method::GetLogs)
    );
    assert!(current.claims.has(Claim::Deploy) && !current.claims.has(Claim::Upgrade) && !current.is_org_admin);
    // A8: expiry is checked at use, not by a cleanup job. At the time of expiry, a membership is already expired.
    let later = permissions_at(FUTURE);
    assert!(later.allows(Method::Call) && !later.allows(Method::SendRawTransaction) && later.claims.is_empty());
}

#[test]
fn a_membership_without_its_group_or_organization_has_no_effect() {
    let world = world()
        .org("bank")
        .group("readers")
        .every_method()
        .user("user")
        .member("readers");
    let is_without_org_after = |deletion: gw_policy::Change| {
        let snapshot = world.snapshot().apply(gw_types::Epoch(2), [deletion]);
        access::active_orgs(&snapshot, user_id("user"), NOW).is_empty()
    };
    assert_eq!(
        access::active_orgs(&world.snapshot(), user_id("user"), NOW),
        [org_id("bank")]
    );
    assert!(is_without_org_after(gw_policy::Change::Organization(
        org_id("bank"),
        None
    )));
    assert!(is_without_org_after(gw_policy::Change::Group(
        gw_policy::testing::group_id("bank/readers"),
        None
    )));
}

#[test]
fn the_default_organization_comes_last_and_the_anonymous_one_never() {
    let snapshot = world()
        .org("bank")
        .group("readers")
        .user("user")
        .member("default/default")
        .member("anonymous/anonymous")
        .member("readers")
        .snapshot();
    assert_eq!(
        access::active_orgs(&snapshot, user_id("user"), NOW),
        [org_id("bank"), org_id("default")]
    );
}

/// Spec/80 §2: D2 by flag or claim. Full admins are not listed as read-only, and expiry and ban take effect
/// immediately.
#[test]
fn admin_status_is_one_function_for_flag_and_claim() {
    let snapshot = world()
        .org("bank")
        .group("admins")
        .org_admin()
        .group("auditors")
        .readonly_admin()
        .org("fund")
        .group("chiefs")
        .claim(Claim::Admin)
        .org("audited")
        .group("auditors")
        .readonly_admin()
        .user("flagged")
        .member("bank/admins")
        .member("bank/auditors")
        .member("audited/auditors")
        .user("claimed")
        .member("fund/chiefs")
        .user("former")
        .member_until("bank/admins", NOW)
        .user("banned")
        .member("bank/admins")
        .banned()
        .snapshot();
    let status = |name: &str| admin::status(&snapshot, user_id(name), NOW);
    assert_eq!(status("flagged").full, [org_id("bank")]);
    assert_eq!(status("flagged").readonly, [org_id("audited")]);
    assert_eq!(status("claimed").full, [org_id("fund")]);
    // ADMIN_REQUIRE_ORG_ADMIN_GROUP: the claim alone is not enough.
    let status_by_group = |name: &str| admin::status_by(&snapshot, user_id(name), NOW, admin::AdminCriteria::Group);
    assert_eq!(
        (status_by_group("flagged").full, status_by_group("claimed").full),
        (vec![org_id("bank")], vec![])
    );
    for name in ["former", "banned", "stranger"] {
        assert_eq!(status(name), admin::AdminStatus::default(), "{name}");
    }
}
