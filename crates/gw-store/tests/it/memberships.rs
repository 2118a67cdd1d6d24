//! What a membership is until its member agreed to it, and what organizations keep about a person (HD32, RT11, RT24).

use crate::world::{World, did, on_both_engines};
use gw_policy::snapshot::{Group, MembershipState};
use gw_store::{
    Missing, StoreError, Tx,
    read::Scope,
    record::{NewGroup, NewMembership, NewOrganization, NewUser, User, UserPatch},
};
use gw_types::{Clock as _, GroupId, OrgId, Seconds};

on_both_engines! {
    hd32_an_offer_waits_for_whoever_agreed_to_another_organization,
    hd32_agreeing_confirming_and_leaving,
    rt11_an_ended_or_pending_membership_is_no_scope,
    rt24_records_of_organizations_are_apart_and_outlive_the_account,
}

async fn bank(tx: &mut Tx, slug: &str) -> (OrgId, GroupId) {
    let new = NewOrganization { slug: slug.to_owned(), name: slug.to_uppercase(), ..Default::default() };
    let org = tx.create_organization(new).await.unwrap().id;
    (org, tx.create_group(NewGroup::plain(org, "clients", "Clients")).await.unwrap().id)
}

async fn person(tx: &mut Tx, name: &str) -> User {
    let groups = vec![Group::DEFAULT];
    tx.create_user(NewUser { external_id: did(name), kyc: false, auth_tenant_id: None, groups }).await.unwrap()
}

fn of(user: &User, group: GroupId) -> NewMembership {
    NewMembership { user: user.id, group, expires_at: None }
}

async fn hd32_an_offer_waits_for_whoever_agreed_to_another_organization(world: &World) {
    let mut tx = world.begin().await;
    let (left, lefts) = bank(&mut tx, "left").await;
    let (right, rights) = bank(&mut tx, "right").await;
    let more = tx.create_group(NewGroup::plain(left, "more", "More")).await.unwrap().id;
    let carol = person(&mut tx, "carol").await;
    // The default organization, which everybody is in, is no other one.
    let first = tx.offer_membership(of(&carol, lefts)).await.unwrap();
    assert_eq!((first.state, first.status()), (MembershipState::Provisional, "pending"));
    tx.accept_only_offer(carol.id).await.unwrap();
    let second = tx.offer_membership(of(&carol, more)).await.unwrap();
    assert_eq!(second.state, MembershipState::Accepted, "she is a member there already");
    let elsewhere = tx.offer_membership(of(&carol, rights)).await.unwrap();
    assert_eq!((elsewhere.state, elsewhere.status()), (MembershipState::Invited, "pending"));
    // A login agrees to nothing that somebody with an organization was invited to.
    tx.accept_only_offer(carol.id).await.unwrap();
    assert_eq!(tx.read().find_membership(elsewhere.id).await.unwrap().unwrap().membership.state, elsewhere.state);
    // Nor to one of two.
    let dave = person(&mut tx, "dave").await;
    for group in [lefts, rights] {
        assert_eq!(tx.offer_membership(of(&dave, group)).await.unwrap().state, MembershipState::Provisional);
    }
    tx.accept_only_offer(dave.id).await.unwrap();
    assert!(tx.read().organizations_of(dave.id).await.unwrap().iter().all(|org| ![left, right].contains(org)));
    let epoch = tx.commit().await.unwrap();
    let loaded = world.store.load().await.unwrap();
    assert_eq!(loaded.epoch(), epoch);
    let states: Vec<_> = loaded.memberships(carol.id).iter().map(|held| held.state).collect();
    assert_eq!(states.iter().filter(|state| **state == MembershipState::Invited).count(), 1);
}

async fn hd32_agreeing_confirming_and_leaving(world: &World) {
    let mut tx = world.begin().await;
    let (left, lefts) = bank(&mut tx, "left").await;
    let (right, rights) = bank(&mut tx, "right").await;
    let carol = person(&mut tx, "carol").await;
    tx.add_membership(of(&carol, lefts)).await.unwrap();
    let none = tx.accept_memberships(carol.id, right).await;
    assert!(matches!(none, Err(StoreError::NotFound(Missing::Membership))), "{none:?}");
    tx.offer_membership(of(&carol, rights)).await.unwrap();
    tx.accept_memberships(carol.id, right).await.unwrap();
    let again = tx.accept_memberships(carol.id, right).await;
    assert!(matches!(again, Err(StoreError::NotFound(Missing::Membership))), "nothing waits any more");
    assert!(tx.read().organizations_of(carol.id).await.unwrap().contains(&right));
    tx.leave_organization(carol.id, right).await.unwrap();
    let offer = tx.offer_membership(of(&carol, rights)).await.unwrap();
    assert_eq!(tx.confirm_membership(offer.id).await.unwrap().state, MembershipState::Accepted);
    // An administrator does not leave by the way.
    let admins = NewGroup { is_org_admin: true, ..NewGroup::plain(left, "admins", "Admins") };
    let admins = tx.create_group(admins).await.unwrap().id;
    tx.add_membership(of(&carol, admins)).await.unwrap();
    let refused = tx.leave_organization(carol.id, left).await;
    assert!(matches!(refused, Err(StoreError::Rule("administers_organization"))), "{refused:?}");
}

async fn rt11_an_ended_or_pending_membership_is_no_scope(world: &World) {
    let mut tx = world.begin().await;
    let (left, lefts) = bank(&mut tx, "left").await;
    let (right, rights) = bank(&mut tx, "right").await;
    let carol = person(&mut tx, "carol").await;
    let end = Some(tx.now().plus(Seconds(60)));
    tx.add_membership(NewMembership { expires_at: end, ..of(&carol, lefts) }).await.unwrap();
    tx.offer_membership(of(&carol, rights)).await.unwrap();
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
    // Made again, it takes the place of the one that ended.
    let mut tx = world.begin().await;
    assert_eq!(tx.offer_membership(of(&carol, lefts)).await.unwrap().state, MembershipState::Provisional);
    tx.commit().await.unwrap();
    let now = world.clock.now();
    let loaded = world.store.load().await.unwrap();
    assert_eq!(loaded.memberships(carol.id).iter().filter(|held| !held.has_ended(now)).count(), 3);
}

async fn rt24_records_of_organizations_are_apart_and_outlive_the_account(world: &World) {
    let mut tx = world.begin().await;
    let (left, lefts) = bank(&mut tx, "left").await;
    let (right, _) = bank(&mut tx, "right").await;
    let carol = person(&mut tx, "carol").await;
    tx.add_membership(of(&carol, lefts)).await.unwrap();
    let note = |text: &str| UserPatch { note: Some(text.to_owned()), ..UserPatch::default() };
    tx.update_org_user(left, &carol, note("of the left")).await.unwrap();
    tx.update_org_user(right, &carol, UserPatch { banned: Some(true), ..note("of the right") }).await.unwrap();
    let kept = tx.update_org_user(left, &carol, UserPatch { kyc: Some(true), ..UserPatch::default() }).await.unwrap();
    assert_eq!((kept.note.as_str(), kept.kyc, kept.banned), ("of the left", true, false));
    tx.commit().await.unwrap();
    let loaded = world.store.load().await.unwrap();
    assert!(loaded.is_banned_in(carol.id, right) && !loaded.is_banned_in(carol.id, left));
    assert!(loaded.is_verified_in(carol.id, left) && !loaded.is_verified_in(carol.id, right));
    assert!(!loaded.user(carol.id).unwrap().banned, "the account is not theirs to ban");
    let read = world.store.read();
    assert_eq!(read.org_user_records(&carol.external_id, &[left]).await.unwrap(), [kept]);
    assert_eq!(read.list_memberships(carol.id, &Scope::Orgs(vec![right])).await.unwrap(), []);

    let mut tx = world.begin().await;
    tx.delete_user(carol.id).await.unwrap();
    let again = person(&mut tx, "carol").await;
    tx.commit().await.unwrap();
    let loaded = world.store.load().await.unwrap();
    assert!(loaded.is_banned_in(again.id, right), "HD37: it stands by the name");
}
