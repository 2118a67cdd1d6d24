//! Tokens, permissions, admin status.

use gw_evm::Method;
use gw_policy::{
    Change, Snapshot,
    access::{self, Refused, TokenFacts, admin, identify},
    snapshot::{AllowedTenant, User},
    testing::{FUTURE, NOW, PAST, did, org_id, user_id, world},
};
use gw_types::{AllowedTenantId, Claim, Seconds, TenantId, Timestamp, TokenId};

const TOKEN: TokenId = TokenId::fixed(71);
const FAMILY: TokenId = TokenId::fixed(72);

fn present(snapshot: &Snapshot, user: &str, issued_at: Timestamp) -> Result<(), Refused> {
    let facts = TokenFacts {
        subject: did(user),
        token: TOKEN,
        session: FAMILY,
        issued_at,
    };
    identify(snapshot, &facts).map(|found| assert_eq!(found.id, user_id(user)))
}

#[test]
fn a9_a_subject_without_a_row_is_nobody() {
    let snapshot = world().user("known").snapshot();
    assert_eq!(present(&snapshot, "known", NOW), Ok(()));
    assert_eq!(present(&snapshot, "stranger", NOW), Err(Refused::UnknownUser));
}

#[test]
fn a10_a_ban_counts_before_the_revocation_that_comes_with_it() {
    let snapshot = world()
        .user("fraud")
        .banned()
        .tokens_valid_from(NOW)
        .revoked(FAMILY)
        .snapshot();
    assert_eq!(present(&snapshot, "fraud", PAST), Err(Refused::Banned));
}

#[test]
fn j1_a_revoked_token_family_or_an_older_token_is_dead() {
    let snapshot = world().user("user").revoked(TOKEN).snapshot();
    assert_eq!(present(&snapshot, "user", NOW), Err(Refused::Revoked));
    let snapshot = world().user("user").revoked(FAMILY).snapshot();
    assert_eq!(present(&snapshot, "user", NOW), Err(Refused::Revoked));
    let snapshot = world().user("user").tokens_valid_from(NOW).snapshot();
    assert_eq!(present(&snapshot, "user", NOW.minus(Seconds(1))), Err(Refused::Revoked));
    assert_eq!(present(&snapshot, "user", NOW), Ok(()));
}

/// TK-8: the list of tenants binds at the next snapshot, for tokens, administration and calls under way.
#[test]
fn tk8_a_user_whose_tenant_is_not_allowed_is_shut_out() {
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
    let at = |list: Option<AllowedTenant>| {
        let changes = [Change::User(clerk.id, Some(clerk.clone())), Change::Tenant(row, list)];
        let snapshot = snapshot.apply(gw_types::Epoch(2), changes);
        let administers = admin::status(&snapshot, clerk.id, NOW).is_admin();
        (present(&snapshot, "clerk", NOW), administers)
    };
    let allowed = AllowedTenant {
        id: row,
        tenant,
        disabled: false,
    };
    assert_eq!(at(Some(allowed)), (Ok(()), true));
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
        assert_eq!(at(list), (Err(Refused::TenantNotAllowed), false), "{list:?}");
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
    let at = |now| access::permissions(&snapshot, user_id("ops"), org_id("bank"), now);
    let held = at(NOW);
    assert!(held.allows(Method::Call) && held.allows(Method::SendRawTransaction) && !held.allows(Method::GetLogs));
    assert!(held.claims.has(Claim::Deploy) && !held.claims.has(Claim::Upgrade) && !held.is_org_admin);
    // A8: judged at use, not when a sweeper comes by; the last moment is already over.
    let later = at(FUTURE);
    assert!(later.allows(Method::Call) && !later.allows(Method::SendRawTransaction) && later.claims.is_empty());
}

#[test]
fn a_membership_without_its_group_or_organization_is_none() {
    let world = world()
        .org("bank")
        .group("readers")
        .every_method()
        .user("user")
        .member("readers");
    let gone = |drop: gw_policy::Change| {
        let snapshot = world.snapshot().apply(gw_types::Epoch(2), [drop]);
        access::active_orgs(&snapshot, user_id("user"), NOW).is_empty()
    };
    assert_eq!(
        access::active_orgs(&world.snapshot(), user_id("user"), NOW),
        [org_id("bank")]
    );
    assert!(gone(gw_policy::Change::Organization(org_id("bank"), None)));
    assert!(gone(gw_policy::Change::Group(
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

/// Spec/80 §2: D2 by flag or claim, read-only not repeated, expiry and ban at once.
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
    let by_group = |name: &str| admin::status_by(&snapshot, user_id(name), NOW, admin::Qualifies::Group);
    assert_eq!(
        (by_group("flagged").full, by_group("claimed").full),
        (vec![org_id("bank")], vec![])
    );
    for nobody in ["former", "banned", "stranger"] {
        assert_eq!(status(nobody), admin::AdminStatus::default(), "{nobody}");
    }
}
