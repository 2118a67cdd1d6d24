//! Directory tenants: the list, its audit entries, and the effects of removing a tenant.

use crate::world::{World, did, on_both_engines};
use gw_audit::{Action, AdminEntry, ResourceType};
use gw_policy::snapshot::Organization;
use gw_store::{
    BootClock, Conflict, Feed, FeedTiming, Missing, StoreError,
    read::Scope,
    record::{
        AccessInput, NewGroup, NewMembership, NewOrganization, NewRefreshToken, NewTenant, NewUser, TenantPatch,
        TokenHash,
    },
};
use gw_types::{AllowedTenantId, Claim, Claims, GroupId, OrgId, Seconds, SessionId, TenantId, TokenId, UserId};
use std::{sync::Arc, time::Duration};

on_both_engines! {
    ds7_a_tenant_is_on_the_list_once,
    ds8_a_default_group_belongs_to_the_organization_and_makes_no_administrator,
    ds9_the_end_of_a_tenant_bans_its_users_and_ends_their_tokens,
    tk8_the_list_binds_at_the_next_snapshot,
    spec80_5_6_groups_and_organizations_that_go_leave_tenants_without_them,
    hd32_an_invitation_of_an_organization_with_a_directory_is_for_its_own_tenant,
    hd32_a_newcomer_joins_the_group_of_their_directory_whoever_named_them_first,
}

const TENANT: TenantId = TenantId::fixed(0x1111);
const OTHER: TenantId = TenantId::fixed(0x2222);

fn tenant(tenant: TenantId) -> NewTenant {
    NewTenant {
        tenant,
        label: "bank".into(),
        auto_provision: true,
        disabled: false,
        default_org: None,
        default_group: None,
    }
}

async fn feed(world: &World) -> Feed {
    let timing = FeedTiming {
        max_skew: Duration::MAX,
        stale_after: Duration::from_secs(30),
        ..FeedTiming::default()
    };
    Feed::start(&world.store, timing, Arc::new(BootClock)).await.unwrap()
}

async fn entries(world: &World) -> Vec<AdminEntry> {
    world
        .store
        .outbox(0, 1000)
        .await
        .unwrap()
        .into_iter()
        .map(|row| row.entry)
        .collect()
}

async fn bank(world: &World) -> (OrgId, GroupId) {
    let mut tx = world.begin().await;
    let org = NewOrganization {
        slug: "bank".into(),
        name: "Bank".into(),
        ..Default::default()
    };
    let org = tx.create_organization(org).await.unwrap().id;
    let group = tx
        .create_group(NewGroup::plain(org, "staff", "Staff"))
        .await
        .unwrap()
        .id;
    tx.commit().await.unwrap();
    (org, group)
}

/// A user of a tenant with a token.
async fn person(world: &World, name: &str, tenant: Option<TenantId>, n: u128) -> UserId {
    let mut tx = world.begin().await;
    let new = NewUser {
        external_id: did(name),
        kyc: false,
        auth_tenant_id: tenant,
        groups: Vec::new(),
    };
    let user = tx.create_user(new).await.unwrap().id;
    let token = NewRefreshToken {
        hash: TokenHash([u8::try_from(n).unwrap(); 32]),
        id: TokenId::fixed(n),
        family: SessionId::fixed(n),
        login: SessionId::fixed(n),
        user,
        amr: "directory".into(),
        family_started: tx.now(),
        expires_at: tx.now().plus(Seconds(3600)),
    };
    tx.store_refresh_token(token).await.unwrap();
    tx.commit().await.unwrap();
    user
}

async fn ds7_a_tenant_is_on_the_list_once(world: &World) {
    let mut tx = world.begin().await;
    let allowed = tx.create_tenant(tenant(TENANT)).await.unwrap();
    tx.commit().await.unwrap();
    let reads = world.store.read();
    assert_eq!(reads.find_tenant(TENANT).await.unwrap(), Some(allowed.clone()));
    assert_eq!(
        reads.find_allowed_tenant(allowed.id).await.unwrap(),
        Some(allowed.clone())
    );
    assert_eq!(reads.list_tenants().await.unwrap(), std::slice::from_ref(&allowed));
    assert_eq!(reads.find_tenant(OTHER).await.unwrap(), None);

    let mut tx = world.begin().await;
    let twice = tx.create_tenant(tenant(TENANT)).await;
    assert!(
        matches!(twice, Err(StoreError::Conflict(Conflict::Tenant))),
        "{twice:?}"
    );
    tx.rollback().await.unwrap();

    let mut tx = world.begin().await;
    let patch = TenantPatch {
        label: Some("fund".into()),
        auto_provision: Some(false),
        ..Default::default()
    };
    let changed = tx.update_tenant(allowed.id, patch).await.unwrap();
    assert_eq!(
        (changed.label.as_str(), changed.auto_provision, changed.tenant),
        ("fund", false, TENANT)
    );
    let missing = tx
        .update_tenant(AllowedTenantId::fixed(9), TenantPatch::default())
        .await;
    assert!(matches!(missing, Err(StoreError::NotFound(Missing::Tenant))));
    tx.commit().await.unwrap();
    let changes: Vec<_> = entries(world)
        .await
        .iter()
        .map(|entry| (entry.action, entry.resource_type))
        .collect();
    assert_eq!(
        changes,
        [
            (Action::Create, ResourceType::DirectoryTenant),
            (Action::Update, ResourceType::DirectoryTenant)
        ]
    );
}

async fn ds8_a_default_group_belongs_to_the_organization_and_makes_no_administrator(world: &World) {
    let (org, group) = bank(world).await;
    let mut tx = world.begin().await;
    let flagged = NewGroup {
        is_org_admin: true,
        ..NewGroup::plain(org, "admins", "Admins")
    };
    let readers = NewGroup {
        is_org_readonly_admin: true,
        ..NewGroup::plain(org, "readers", "Readers")
    };
    let (flagged, readers) = (
        tx.create_group(flagged).await.unwrap().id,
        tx.create_group(readers).await.unwrap().id,
    );
    let claimed = tx
        .create_group(NewGroup::plain(org, "chiefs", "Chiefs"))
        .await
        .unwrap()
        .id;
    let access = AccessInput {
        claims: Claims::NONE.with(Claim::Admin),
        ..Default::default()
    };
    tx.set_access(claimed, access).await.unwrap();
    let tenant_with_defaults = |org, group| NewTenant {
        default_org: org,
        default_group: group,
        ..tenant(TENANT)
    };
    for (org, group, rule) in [
        (None, Some(group), "default_group_without_org"),
        (Some(Organization::DEFAULT), Some(group), "default_group_organization"),
        (Some(org), Some(GroupId::fixed(9)), "default_group_organization"),
        (Some(OrgId::fixed(9)), None, "default_org_unknown"),
        (Some(Organization::ANONYMOUS), None, "default_org_unknown"),
        (Some(org), Some(flagged), "default_group_admin"),
        (Some(org), Some(readers), "default_group_admin"),
        (Some(org), Some(claimed), "default_group_admin"),
    ] {
        let refused = tx.create_tenant(tenant_with_defaults(org, group)).await;
        assert!(
            matches!(refused, Err(StoreError::Rule(violated)) if violated == rule),
            "{refused:?}"
        );
    }
    let allowed = tx
        .create_tenant(tenant_with_defaults(Some(org), Some(group)))
        .await
        .unwrap();
    // The merged state is validated: neither can the organization be cleared alone, nor the group changed to an
    // administrator group.
    for patch in [
        TenantPatch {
            default_org: Some(None),
            ..Default::default()
        },
        TenantPatch {
            default_group: Some(Some(flagged)),
            ..Default::default()
        },
    ] {
        assert!(matches!(
            tx.update_tenant(allowed.id, patch).await,
            Err(StoreError::Rule(_))
        ));
    }
    let cleared = TenantPatch {
        default_org: Some(None),
        default_group: Some(None),
        ..Default::default()
    };
    let cleared = tx.update_tenant(allowed.id, cleared).await.unwrap();
    assert_eq!((cleared.default_org, cleared.default_group), (None, None));
}

async fn ds9_the_end_of_a_tenant_bans_its_users_and_ends_their_tokens(world: &World) {
    let feed = feed(world).await;
    let mut tx = world.begin().await;
    let (list, other) = (
        tx.create_tenant(tenant(TENANT)).await.unwrap(),
        tx.create_tenant(tenant(OTHER)).await.unwrap(),
    );
    tx.commit().await.unwrap();
    let users = [
        person(world, "a", Some(TENANT), 1).await,
        person(world, "b", Some(TENANT), 2).await,
    ];
    let others = [
        person(world, "c", Some(OTHER), 3).await,
        person(world, "d", None, 4).await,
    ];
    let before = entries(world).await.len();

    world.clock.pass(60);
    let mut tx = world.begin().await;
    let end = tx.delete_tenant(list.id).await.unwrap();
    assert_eq!((end.users, end.refresh_tokens), (2, 2));
    tx.commit().await.unwrap();

    let snapshot = feed.pin().snapshot;
    assert!(!snapshot.allows_tenant(TENANT) && snapshot.allows_tenant(OTHER));
    for user in users {
        let row = world.store.read().find_user(user).await.unwrap().unwrap();
        assert!(row.banned && row.tokens_valid_from == Some(row.updated_at));
        let known = snapshot.user(user).unwrap();
        assert!(known.banned && known.tokens_valid_from == row.tokens_valid_from);
    }
    for user in others {
        assert!(!snapshot.is_excluded(snapshot.user(user).unwrap()));
    }
    for (n, left) in [(1, false), (2, false), (3, true), (4, true)] {
        let token = world.store.read().find_refresh_token(TokenHash([n; 32])).await.unwrap();
        assert_eq!(token.is_some(), left, "token {n}");
    }
    let left = entries(world).await.split_off(before);
    let changes: Vec<_> = left.iter().map(|entry| (entry.action, entry.resource_type)).collect();
    use {Action::*, ResourceType as R};
    assert_eq!(
        changes,
        [(Update, R::User), (Update, R::User), (Delete, R::DirectoryTenant)]
    );
    let counts: serde_json::Value = serde_json::from_str(left[2].old_value.as_deref().unwrap()).unwrap();
    assert_eq!(
        (&counts["banned_users"], &counts["ended_refresh_tokens"]),
        (&2.into(), &2.into())
    );

    // After the tenant is added again, its users stay banned.
    let mut tx = world.begin().await;
    tx.create_tenant(tenant(TENANT)).await.unwrap();
    tx.delete_tenant(other.id).await.unwrap();
    tx.commit().await.unwrap();
    let snapshot = feed.pin().snapshot;
    assert!(snapshot.allows_tenant(TENANT) && snapshot.is_excluded(snapshot.user(users[0]).unwrap()));
    assert!(snapshot.same_rows(&world.store.load().await.unwrap()));
}

/// A disabled tenant locks its users out until it is enabled again.
async fn tk8_the_list_binds_at_the_next_snapshot(world: &World) {
    let feed = feed(world).await;
    let user = person(world, "a", Some(TENANT), 1).await;
    let shut_out = || {
        let snapshot = feed.pin().snapshot;
        assert!(!snapshot.user(user).unwrap().banned);
        snapshot.is_excluded(snapshot.user(user).unwrap())
    };
    assert!(shut_out(), "never on the list");
    let mut tx = world.begin().await;
    let list = tx.create_tenant(tenant(TENANT)).await.unwrap();
    tx.commit().await.unwrap();
    assert!(!shut_out());
    for (patch, expected) in [
        (
            TenantPatch {
                disabled: Some(true),
                ..Default::default()
            },
            true,
        ),
        (
            TenantPatch {
                disabled: Some(false),
                ..Default::default()
            },
            false,
        ),
        (
            TenantPatch {
                tenant: Some(OTHER),
                ..Default::default()
            },
            true,
        ),
        (
            TenantPatch {
                tenant: Some(TENANT),
                ..Default::default()
            },
            false,
        ),
    ] {
        let mut tx = world.begin().await;
        tx.update_tenant(list.id, patch).await.unwrap();
        tx.commit().await.unwrap();
        assert_eq!(shut_out(), expected);
        assert!(feed.pin().snapshot.same_rows(&world.store.load().await.unwrap()));
    }
}

async fn spec80_5_6_groups_and_organizations_that_go_leave_tenants_without_them(world: &World) {
    let (org, group) = bank(world).await;
    let mut tx = world.begin().await;
    let new = NewTenant {
        default_org: Some(org),
        default_group: Some(group),
        ..tenant(TENANT)
    };
    let list = tx.create_tenant(new).await.unwrap();
    tx.commit().await.unwrap();
    let before = entries(world).await.len();
    let mut tx = world.begin().await;
    tx.delete_group(group).await.unwrap();
    let now = tx.read().find_allowed_tenant(list.id).await.unwrap().unwrap();
    assert_eq!((now.default_org, now.default_group), (Some(org), None));
    tx.delete_organization(org).await.unwrap();
    let now = tx.read().find_allowed_tenant(list.id).await.unwrap().unwrap();
    assert_eq!((now.default_org, now.default_group), (None, None));
    tx.commit().await.unwrap();
    let changes: Vec<_> = entries(world)
        .await
        .split_off(before)
        .iter()
        .map(|entry| (entry.action, entry.resource_type))
        .collect();
    use {Action::*, ResourceType as R};
    assert_eq!(
        changes,
        [
            (Delete, R::Group),
            (Update, R::DirectoryTenant),
            (Update, R::DirectoryTenant),
            (Delete, R::Organization)
        ]
    );
}

/// An account that was invited by its directory name belongs to the first allowed tenant that vouches for it. An
/// organization with its own directory invited a person of that directory only.
async fn hd32_an_invitation_of_an_organization_with_a_directory_is_for_its_own_tenant(world: &World) {
    let (org, group) = bank(world).await;
    let mut tx = world.begin().await;
    let plain = NewOrganization {
        slug: "plain".into(),
        name: "Plain".into(),
        ..Default::default()
    };
    let plain = tx.create_organization(plain).await.unwrap().id;
    let plains = tx
        .create_group(NewGroup::plain(plain, "staff", "Staff"))
        .await
        .unwrap()
        .id;
    tx.create_tenant(NewTenant {
        default_org: Some(org),
        default_group: Some(group),
        ..tenant(TENANT)
    })
    .await
    .unwrap();
    tx.create_tenant(NewTenant {
        label: "other".into(),
        ..tenant(OTHER)
    })
    .await
    .unwrap();
    tx.commit().await.unwrap();
    for (n, vouching, kept) in [(1, TENANT, vec![org, plain]), (2, OTHER, vec![plain])] {
        let mut tx = world.begin().await;
        let name = gw_types::ExternalId::new(&format!("directory:00000000-0000-4000-8000-00000000000{n}")).unwrap();
        let new = NewUser {
            external_id: name,
            kyc: false,
            auth_tenant_id: None,
            groups: Vec::new(),
        };
        let user = tx.create_user(new).await.unwrap().id;
        for group in [group, plains] {
            tx.add_membership(NewMembership {
                user,
                group,
                expires_at: None,
            })
            .await
            .unwrap();
        }
        tx.pin_tenant(user, vouching).await.unwrap();
        let mut left = tx.read().organizations_of(user).await.unwrap();
        tx.commit().await.unwrap();
        let mut kept = kept;
        kept.sort_unstable();
        left.sort_unstable();
        assert_eq!(left, kept, "vouched for by {vouching}");
    }
}

/// HD32: an organization that knows directory names of another organization's people does not get them by inviting them
/// first.
async fn hd32_a_newcomer_joins_the_group_of_their_directory_whoever_named_them_first(world: &World) {
    let (org, group) = bank(world).await;
    let mut tx = world.begin().await;
    let rival = NewOrganization {
        slug: "rival".into(),
        name: "Rival".into(),
        ..Default::default()
    };
    let rival = tx.create_organization(rival).await.unwrap().id;
    let rivals = tx
        .create_group(NewGroup::plain(rival, "staff", "Staff"))
        .await
        .unwrap()
        .id;
    let special = tx
        .create_group(NewGroup::plain(org, "special", "Special"))
        .await
        .unwrap()
        .id;
    tx.create_tenant(NewTenant {
        default_org: Some(org),
        default_group: Some(group),
        ..tenant(TENANT)
    })
    .await
    .unwrap();
    for (n, named, placed) in [
        (1, vec![rivals], vec![group]),
        (2, vec![], vec![group]),
        (3, vec![special], vec![special]),
    ] {
        let name = gw_types::ExternalId::new(&format!("directory:00000000-0000-4000-8000-00000000000{n}")).unwrap();
        let new = NewUser {
            external_id: name,
            kyc: false,
            auth_tenant_id: None,
            groups: Vec::new(),
        };
        let user = tx.create_user(new).await.unwrap();
        for group in named {
            tx.offer_membership(NewMembership {
                user: user.id,
                group,
                expires_at: None,
            })
            .await
            .unwrap();
        }
        tx.pin_tenant(user.id, TENANT).await.unwrap();
        tx.place_newcomer(&user, group).await.unwrap();
        tx.accept_only_offer(user.id).await.unwrap();
        assert_eq!(tx.read().organizations_of(user.id).await.unwrap(), [org], "{n}");
        let held = tx
            .read()
            .list_memberships(user.id, &Scope::Orgs(vec![org]))
            .await
            .unwrap();
        assert_eq!(held.iter().map(|item| item.group.id).collect::<Vec<_>>(), placed, "{n}");
    }
    tx.commit().await.unwrap();
}
