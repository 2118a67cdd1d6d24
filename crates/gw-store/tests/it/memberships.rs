//! Memberships before their members agree, and organizations' records about people (HD32, RT11, RT24).

use crate::world::{World, did, on_both_engines};
use gw_policy::snapshot::{Group, MembershipState, UrlReach};
use gw_store::{
    Missing, StoreError, Tx,
    read::Scope,
    record::{NewGroup, NewMembership, NewOrganization, NewPersonalUrl, NewUser, User, UserPatch},
};
use gw_types::{B256, Clock as _, GroupId, OrgId, Seconds};

on_both_engines! {
    hd32_an_offer_waits_for_whoever_agreed_to_another_organization,
    hd32_agreeing_confirming_and_leaving,
    rt11_an_ended_or_pending_membership_is_no_scope,
    rt24_records_of_organizations_are_apart_and_outlive_the_account,
    hd35_a_ban_or_the_end_of_a_membership_ends_its_urls_for_good,
    hd35_a_membership_that_goes_on_keeps_its_urls,
    hd32_who_declined_or_left_comes_back_by_their_own_act_only,
    hd32_a_login_accepts_one_offer_and_no_void_one,
    hd32_a_second_offer_waits_for_the_persons_own_act,
}

async fn bank(tx: &mut Tx, slug: &str) -> (OrgId, GroupId) {
    let new = NewOrganization {
        slug: slug.to_owned(),
        name: slug.to_uppercase(),
        ..Default::default()
    };
    let org = tx.create_organization(new).await.unwrap().id;
    (
        org,
        tx.create_group(NewGroup::plain(org, "clients", "Clients"))
            .await
            .unwrap()
            .id,
    )
}

async fn person(tx: &mut Tx, name: &str) -> User {
    let groups = vec![Group::DEFAULT];
    tx.create_user(NewUser {
        external_id: did(name),
        kyc: false,
        auth_tenant_id: None,
        groups,
    })
    .await
    .unwrap()
}

fn membership_in(user: &User, group: GroupId) -> NewMembership {
    NewMembership {
        user: user.id,
        group,
        expires_at: None,
    }
}

async fn hd32_an_offer_waits_for_whoever_agreed_to_another_organization(world: &World) {
    let mut tx = world.begin().await;
    let (left, lefts) = bank(&mut tx, "left").await;
    let (right, rights) = bank(&mut tx, "right").await;
    let more = tx.create_group(NewGroup::plain(left, "more", "More")).await.unwrap().id;
    let carol = person(&mut tx, "carol").await;
    // The default organization, of which everybody is a member, does not count as another one.
    let first = tx.offer_membership(membership_in(&carol, lefts)).await.unwrap();
    assert_eq!((first.state, first.status()), (MembershipState::Provisional, "pending"));
    tx.accept_only_offer(carol.id).await.unwrap();
    let second = tx.offer_membership(membership_in(&carol, more)).await.unwrap();
    assert_eq!(second.state, MembershipState::Accepted, "she is a member there already");
    let elsewhere = tx.offer_membership(membership_in(&carol, rights)).await.unwrap();
    assert_eq!(
        (elsewhere.state, elsewhere.status()),
        (MembershipState::Invited, "pending")
    );
    // A login does not accept an invitation for a user who already has an organization.
    tx.accept_only_offer(carol.id).await.unwrap();
    assert_eq!(
        tx.read()
            .find_membership(elsewhere.id)
            .await
            .unwrap()
            .unwrap()
            .membership
            .state,
        elsewhere.state
    );
    // A login does not choose between two organizations.
    let dave = person(&mut tx, "dave").await;
    for (group, state) in [
        (lefts, MembershipState::Provisional),
        (rights, MembershipState::Invited),
    ] {
        assert_eq!(
            tx.offer_membership(membership_in(&dave, group)).await.unwrap().state,
            state
        );
    }
    tx.accept_only_offer(dave.id).await.unwrap();
    assert!(
        tx.read()
            .organizations_of(dave.id)
            .await
            .unwrap()
            .iter()
            .all(|org| ![left, right].contains(org))
    );
    let epoch = tx.commit().await.unwrap();
    let loaded = world.store.load().await.unwrap();
    assert_eq!(loaded.epoch(), epoch);
    let states: Vec<_> = loaded.memberships(carol.id).iter().map(|held| held.state).collect();
    assert_eq!(
        states
            .iter()
            .filter(|state| **state == MembershipState::Invited)
            .count(),
        1
    );
}

async fn hd32_agreeing_confirming_and_leaving(world: &World) {
    let mut tx = world.begin().await;
    let (left, lefts) = bank(&mut tx, "left").await;
    let (right, rights) = bank(&mut tx, "right").await;
    let carol = person(&mut tx, "carol").await;
    tx.add_membership(membership_in(&carol, lefts)).await.unwrap();
    let none = tx.accept_memberships(carol.id, right).await;
    assert!(
        matches!(none, Err(StoreError::NotFound(Missing::Membership))),
        "{none:?}"
    );
    tx.offer_membership(membership_in(&carol, rights)).await.unwrap();
    tx.accept_memberships(carol.id, right).await.unwrap();
    let again = tx.accept_memberships(carol.id, right).await;
    assert!(
        matches!(again, Err(StoreError::NotFound(Missing::Membership))),
        "nothing waits any more"
    );
    assert!(tx.read().organizations_of(carol.id).await.unwrap().contains(&right));
    tx.leave_organization(carol.id, right).await.unwrap();
    let offer = tx.offer_membership(membership_in(&carol, rights)).await.unwrap();
    assert_eq!(
        tx.confirm_membership(offer.id).await.unwrap().state,
        MembershipState::Accepted
    );
    // An administrator cannot leave this way.
    let admins = NewGroup {
        is_org_admin: true,
        ..NewGroup::plain(left, "admins", "Admins")
    };
    let admins = tx.create_group(admins).await.unwrap().id;
    tx.add_membership(membership_in(&carol, admins)).await.unwrap();
    let refused = tx.leave_organization(carol.id, left).await;
    assert!(
        matches!(refused, Err(StoreError::Rule("administers_organization"))),
        "{refused:?}"
    );
}

async fn rt11_an_ended_or_pending_membership_is_no_scope(world: &World) {
    let mut tx = world.begin().await;
    let (left, lefts) = bank(&mut tx, "left").await;
    let (right, rights) = bank(&mut tx, "right").await;
    let carol = person(&mut tx, "carol").await;
    let end = Some(tx.now().plus(Seconds(60)));
    tx.add_membership(NewMembership {
        expires_at: end,
        ..membership_in(&carol, lefts)
    })
    .await
    .unwrap();
    tx.offer_membership(membership_in(&carol, rights)).await.unwrap();
    tx.commit().await.unwrap();
    let scopes = async || {
        let read = world.store.read();
        let own = read.organizations_of(carol.id).await.unwrap();
        let known = read.organizations_knowing(carol.id).await.unwrap();
        [left, right].map(|org| (own.contains(&org), known.contains(&org)))
    };
    assert_eq!(scopes().await, [(true, true), (false, true)]);
    world.clock.pass(60);
    assert_eq!(scopes().await, [(false, false), (false, true)]);
    // A new membership replaces the ended one.
    let mut tx = world.begin().await;
    assert_eq!(
        tx.offer_membership(membership_in(&carol, lefts)).await.unwrap().state,
        MembershipState::Provisional
    );
    tx.commit().await.unwrap();
    let now = world.clock.now();
    let loaded = world.store.load().await.unwrap();
    assert_eq!(
        loaded
            .memberships(carol.id)
            .iter()
            .filter(|held| !held.has_ended(now))
            .count(),
        3
    );
}

async fn rt24_records_of_organizations_are_apart_and_outlive_the_account(world: &World) {
    let mut tx = world.begin().await;
    let (left, lefts) = bank(&mut tx, "left").await;
    let (right, _) = bank(&mut tx, "right").await;
    let carol = person(&mut tx, "carol").await;
    tx.add_membership(membership_in(&carol, lefts)).await.unwrap();
    let note = |text: &str| UserPatch {
        note: Some(text.to_owned()),
        ..UserPatch::default()
    };
    tx.update_org_user(left, &carol, note("of the left")).await.unwrap();
    tx.update_org_user(
        right,
        &carol,
        UserPatch {
            banned: Some(true),
            ..note("of the right")
        },
    )
    .await
    .unwrap();
    let kept = tx
        .update_org_user(
            left,
            &carol,
            UserPatch {
                kyc: Some(true),
                ..UserPatch::default()
            },
        )
        .await
        .unwrap();
    assert_eq!(
        (kept.note.as_str(), kept.kyc, kept.banned),
        ("of the left", true, false)
    );
    tx.commit().await.unwrap();
    let loaded = world.store.load().await.unwrap();
    assert!(loaded.is_banned_in(carol.id, right) && !loaded.is_banned_in(carol.id, left));
    assert!(loaded.is_verified_in(carol.id, left) && !loaded.is_verified_in(carol.id, right));
    assert!(
        !loaded.user(carol.id).unwrap().banned,
        "the account is not theirs to ban"
    );
    let read = world.store.read();
    assert_eq!(
        read.org_user_records(&carol.external_id, &[left]).await.unwrap(),
        [kept]
    );
    assert_eq!(
        read.list_memberships(carol.id, &Scope::Orgs(vec![right]))
            .await
            .unwrap(),
        []
    );

    let mut tx = world.begin().await;
    tx.delete_user(carol.id).await.unwrap();
    let again = person(&mut tx, "carol").await;
    tx.commit().await.unwrap();
    let loaded = world.store.load().await.unwrap();
    assert!(loaded.is_banned_in(again.id, right), "HD37: it stands by the name");
}

async fn url(tx: &mut Tx, user: &User, org: OrgId, n: u8) {
    let new = NewPersonalUrl {
        secret: B256::repeat_byte(n),
        user: user.id,
        org,
        name: String::new(),
        reach: UrlReach::Wallet,
        expires_at: tx.now().plus(Seconds(3600)),
        login: None,
    };
    tx.create_personal_url(new).await.unwrap();
}

async fn url_orgs(world: &World, user: &User) -> Vec<OrgId> {
    let urls = world
        .store
        .read()
        .list_personal_urls(user.id, world.clock.now())
        .await
        .unwrap();
    urls.into_iter().map(|url| url.org).collect()
}

/// HD35: when the basis of a URL ends, the URL ends in the same transaction, with an audit entry; nothing restores it.
async fn hd35_a_ban_or_the_end_of_a_membership_ends_its_urls_for_good(world: &World) {
    let mut tx = world.begin().await;
    let (left, lefts) = bank(&mut tx, "left").await;
    let (right, rights) = bank(&mut tx, "right").await;
    tx.commit().await.unwrap();
    for (n, way) in [
        "ban",
        "removal",
        "leaving",
        "group",
        "time",
        "time, another group",
        "another bank",
    ]
    .into_iter()
    .enumerate()
    {
        let n = u8::try_from(n).unwrap();
        let mut tx = world.begin().await;
        let carol = person(&mut tx, &format!("carol{n}")).await;
        let group = tx
            .create_group(NewGroup::plain(left, format!("g{n}"), format!("G{n}")))
            .await
            .unwrap()
            .id;
        let end = way.starts_with("time").then(|| tx.now().plus(Seconds(60)));
        let new = NewMembership {
            expires_at: end,
            ..membership_in(&carol, group)
        };
        let membership = match way {
            "another bank" => tx.offer_membership(new).await.unwrap(),
            _ => tx.add_membership(new).await.unwrap(),
        };
        if way != "another bank" {
            tx.add_membership(membership_in(&carol, rights)).await.unwrap();
            url(&mut tx, &carol, right, 100 + n).await;
        }
        url(&mut tx, &carol, left, n).await;
        tx.commit().await.unwrap();
        let revoked = "SELECT count(*) AS n FROM audit_outbox WHERE resource_type = 'rpc_url' AND action = 'revoke'";
        let before = world.rows(revoked, "n").await[0];
        if way.starts_with("time") {
            world.clock.pass(61);
        }
        let mut tx = world.begin().await;
        match way {
            "ban" => {
                let ban = |banned| UserPatch {
                    banned: Some(banned),
                    ..UserPatch::default()
                };
                tx.update_org_user(left, &carol, ban(true)).await.unwrap();
                tx.update_org_user(left, &carol, ban(false)).await.unwrap();
            }
            "removal" => drop(tx.remove_membership(membership.id).await.unwrap()),
            "leaving" => tx.leave_organization(carol.id, left).await.unwrap(),
            "group" => drop(tx.delete_group(group).await.unwrap()),
            // Added again after the membership had expired.
            "time" => drop(tx.offer_membership(membership_in(&carol, group)).await.unwrap()),
            "time, another group" => drop(tx.offer_membership(membership_in(&carol, lefts)).await.unwrap()),
            _ => {
                tx.offer_membership(membership_in(&carol, rights)).await.unwrap();
                tx.accept_memberships(carol.id, right).await.unwrap();
            }
        }
        tx.commit().await.unwrap();
        let kept: &[OrgId] = if way == "another bank" { &[] } else { &[right] };
        assert_eq!(url_orgs(world, &carol).await, kept, "{way}");
        assert_eq!(world.rows(revoked, "n").await[0], before + 1, "{way}: on record");
        let mut tx = world.begin().await;
        if way != "time, another group" {
            tx.add_membership(membership_in(&carol, lefts)).await.unwrap();
        }
        tx.commit().await.unwrap();
        assert_eq!(url_orgs(world, &carol).await, kept, "{way}: taken in again");
    }
}

async fn hd35_a_membership_that_goes_on_keeps_its_urls(world: &World) {
    let mut tx = world.begin().await;
    let (left, lefts) = bank(&mut tx, "left").await;
    let more = tx.create_group(NewGroup::plain(left, "more", "More")).await.unwrap().id;
    let carol = person(&mut tx, "carol").await;
    tx.offer_membership(membership_in(&carol, lefts)).await.unwrap();
    let other = tx.offer_membership(membership_in(&carol, more)).await.unwrap();
    url(&mut tx, &carol, left, 1).await;
    // The default organization counts too.
    url(&mut tx, &carol, gw_policy::snapshot::Organization::DEFAULT, 2).await;
    tx.remove_membership(other.id).await.unwrap();
    tx.accept_only_offer(carol.id).await.unwrap();
    tx.update_org_user(
        left,
        &carol,
        UserPatch {
            kyc: Some(true),
            ..UserPatch::default()
        },
    )
    .await
    .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(url_orgs(world, &carol).await.len(), 2);
}

/// HD32, decision 62: a decline is stored by name, and only the person's own decision ends it.
async fn hd32_who_declined_or_left_comes_back_by_their_own_act_only(world: &World) {
    let mut tx = world.begin().await;
    let (left, lefts) = bank(&mut tx, "left").await;
    let (right, rights) = bank(&mut tx, "right").await;
    let carol = person(&mut tx, "carol").await;
    let is_in = async |tx: &Tx, user: &User| tx.read().organizations_of(user.id).await.unwrap().contains(&left);

    // Removal by an administrator is not a decline.
    let offer = tx.offer_membership(membership_in(&carol, lefts)).await.unwrap();
    tx.remove_membership(offer.id).await.unwrap();
    let offer = tx.offer_membership(membership_in(&carol, lefts)).await.unwrap();
    assert_eq!(offer.state, MembershipState::Provisional);
    // The user declines.
    tx.leave_organization(carol.id, left).await.unwrap();
    let again = tx.offer_membership(membership_in(&carol, lefts)).await.unwrap();
    assert_eq!(
        (again.state, again.status()),
        (MembershipState::Invited, "pending"),
        "never in force by itself"
    );
    tx.accept_only_offer(carol.id).await.unwrap();
    assert!(!is_in(&tx, &carol).await, "nor by a login");
    // A declined offer does not block another organization's.
    let other = tx.offer_membership(membership_in(&carol, rights)).await.unwrap();
    assert_eq!(other.state, MembershipState::Provisional);
    tx.accept_only_offer(carol.id).await.unwrap();
    assert!(tx.read().organizations_of(carol.id).await.unwrap().contains(&right));
    tx.remove_membership(other.id).await.unwrap();
    // Her own acceptance ends the decline.
    tx.accept_memberships(carol.id, left).await.unwrap();
    assert!(is_in(&tx, &carol).await);
    tx.remove_membership(again.id).await.unwrap();
    let offer = tx.offer_membership(membership_in(&carol, lefts)).await.unwrap();
    assert_eq!(offer.state, MembershipState::Provisional, "removed by an administrator");
    // She leaves after having agreed; then the account is created again, for instance by the directory.
    tx.accept_only_offer(carol.id).await.unwrap();
    assert!(is_in(&tx, &carol).await);
    tx.leave_organization(carol.id, left).await.unwrap();
    assert_eq!(
        tx.offer_membership(membership_in(&carol, lefts)).await.unwrap().state,
        MembershipState::Invited
    );
    tx.delete_user(carol.id).await.unwrap();
    let groups = vec![lefts];
    let new = NewUser {
        external_id: did("carol"),
        kyc: false,
        auth_tenant_id: None,
        groups,
    };
    let anew = tx.create_user(new).await.unwrap();
    tx.accept_only_offer(anew.id).await.unwrap();
    assert!(!is_in(&tx, &anew).await);
    let dave = person(&mut tx, "dave").await;
    assert_eq!(
        tx.offer_membership(membership_in(&dave, lefts)).await.unwrap().state,
        MembershipState::Provisional
    );
    tx.commit().await.unwrap();
}

/// HD32: a login accepts neither of two waiting offers; an offer voided by a ban is not accepted and does not count as
/// the second one.
async fn hd32_a_login_accepts_one_offer_and_no_void_one(world: &World) {
    let mut tx = world.begin().await;
    let (left, lefts) = bank(&mut tx, "left").await;
    let (right, rights) = bank(&mut tx, "right").await;
    let carol = person(&mut tx, "carol").await;
    let own = async |tx: &Tx| {
        let orgs = tx.read().organizations_of(carol.id).await.unwrap();
        [left, right].map(|org| orgs.contains(&org))
    };
    tx.offer_membership(membership_in(&carol, lefts)).await.unwrap();
    let ban = |banned| UserPatch {
        banned: Some(banned),
        ..UserPatch::default()
    };
    tx.update_org_user(left, &carol, ban(true)).await.unwrap();
    tx.accept_only_offer(carol.id).await.unwrap();
    assert_eq!(own(&tx).await, [false, false], "banned there");
    tx.offer_membership(membership_in(&carol, rights)).await.unwrap();
    tx.update_org_user(left, &carol, ban(false)).await.unwrap();
    tx.accept_only_offer(carol.id).await.unwrap();
    assert_eq!(own(&tx).await, [false, false], "two wait");
    tx.update_org_user(left, &carol, ban(true)).await.unwrap();
    tx.accept_only_offer(carol.id).await.unwrap();
    assert_eq!(own(&tx).await, [false, true]);
    tx.commit().await.unwrap();
}

/// HD32: an invitation of a person who has another organization has no effect without the person's own decision: not
/// when they are moved between groups there, not when that membership ends, and not by a later login.
async fn hd32_a_second_offer_waits_for_the_persons_own_act(world: &World) {
    let mut tx = world.begin().await;
    let (left, lefts) = bank(&mut tx, "left").await;
    let (right, rights) = bank(&mut tx, "right").await;
    let more = tx.create_group(NewGroup::plain(left, "more", "More")).await.unwrap().id;
    let carol = person(&mut tx, "carol").await;
    let own = async |tx: &Tx| {
        let orgs = tx.read().organizations_of(carol.id).await.unwrap();
        [left, right].map(|org| orgs.contains(&org))
    };
    let first = tx.offer_membership(membership_in(&carol, lefts)).await.unwrap();
    let second = tx.offer_membership(membership_in(&carol, rights)).await.unwrap();
    assert_eq!(
        [first.state, second.state],
        [MembershipState::Provisional, MembershipState::Invited]
    );
    let moved = tx.offer_membership(membership_in(&carol, more)).await.unwrap();
    assert_eq!(moved.state, MembershipState::Provisional, "the same organization's");
    tx.remove_membership(first.id).await.unwrap();
    tx.remove_membership(moved.id).await.unwrap();
    tx.accept_only_offer(carol.id).await.unwrap();
    assert_eq!(own(&tx).await, [false, false], "no login agrees to it");
    let back = tx.offer_membership(membership_in(&carol, lefts)).await.unwrap();
    assert_eq!(
        back.state,
        MembershipState::Provisional,
        "nor does it keep the first one out"
    );
    tx.accept_memberships(carol.id, right).await.unwrap();
    assert_eq!(own(&tx).await, [false, true]);
    tx.commit().await.unwrap();
}
