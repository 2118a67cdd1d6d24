//! HD2: what is watched until its block was looked at, who lost the right to send, what nobody reads.

use crate::world::{World, did, on_both_engines};
use gw_audit::{Action, ResourceType};
use gw_store::{
    Missing, StoreError,
    record::{Finding, NewContract, NewOrganization, NewUser, NewWatch, SendAccepted, SendRows, SendStart},
};
use gw_types::{Address, B256, OrgId, UserId};

on_both_engines! {
    hd2_a_send_is_watched_from_before_it_is_forwarded,
    hd2_a_finding_suspends_and_closes_once_and_is_cleared_with_a_reason,
}

const TX: B256 = B256::repeat_byte(0xaa);
const BLOCK: B256 = B256::repeat_byte(0xbb);
const WALLET: Address = Address::repeat_byte(0x11);
const LATCH: Address = Address::repeat_byte(0x22);

async fn cast(world: &World) -> (OrgId, UserId) {
    let mut tx = world.begin().await;
    let org = tx.create_organization(NewOrganization { slug: "bank".into(), ..Default::default() }).await.unwrap().id;
    let new = NewUser { external_id: did("a"), kyc: true, auth_tenant_id: None, groups: Vec::new() };
    let user = tx.create_user(new).await.unwrap().id;
    tx.commit().await.unwrap();
    (org, user)
}

async fn start(world: &World, (org, user): (OrgId, UserId), tx_hash: Option<B256>, nonce: u64) -> SendRows {
    let mut tx = world.begin().await;
    let watch = Some(NewWatch { sender: WALLET, nonce });
    let (visible_to, reservations) = (Vec::new(), Vec::new());
    let rows = tx.start_send(SendStart { user, org, tx_hash, visible_to, reservations, watch }).await.unwrap();
    tx.commit().await.unwrap();
    rows
}

async fn watched(world: &World, above: u64) -> Vec<(Option<B256>, u64)> {
    let rows = world.store.read().watched_sends(above).await.unwrap();
    rows.into_iter().map(|row| (row.tx_hash, row.nonce)).collect()
}

async fn hd2_a_send_is_watched_from_before_it_is_forwarded(world: &World) {
    let cast = cast(world).await;
    let epoch = world.store.load().await.unwrap().epoch();
    let refused = start(world, cast, Some(TX), 1).await;
    assert_eq!(watched(world, u64::MAX).await, [(Some(TX), 1)]);
    let mut tx = world.begin().await;
    tx.refuse_send(refused).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(watched(world, 0).await, []);
    // Signed by the node: the hash comes with its answer.
    let rows = start(world, cast, None, u64::MAX).await;
    assert_eq!(watched(world, u64::MAX).await, [(None, u64::MAX)]);
    let mut tx = world.begin().await;
    tx.accept_send(SendAccepted { rows, tx_hash: TX, link: None }).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(watched(world, u64::MAX).await, [(Some(TX), u64::MAX)]);
    let found = world.store.read().watched_sends(u64::MAX).await.unwrap();
    let mut tx = world.begin().await;
    tx.settle_watched(&[found[0].id], 7).await.unwrap();
    tx.commit().await.unwrap();
    // Another instance may not have looked at block 7 yet.
    assert_eq!((watched(world, 7).await.len(), watched(world, 6).await.len()), (0, 1));
    assert_eq!(world.store.load().await.unwrap().epoch(), epoch, "a watch is no policy");
    world.clock.pass(2 * 86_400);
    world.store.tidy().await.unwrap();
    assert_eq!(watched(world, 0).await, []);
}

async fn hd2_a_finding_suspends_and_closes_once_and_is_cleared_with_a_reason(world: &World) {
    let (org, user) = cast(world).await;
    let mut tx = world.begin().await;
    let other =
        tx.create_organization(NewOrganization { slug: "other".into(), name: "other".into(), ..Default::default() });
    let other = other.await.unwrap().id;
    tx.create_contract(NewContract::plain(other, LATCH, "latch".to_owned())).await.unwrap();
    tx.commit().await.unwrap();
    let before = world.store.outbox(0, 1000).await.unwrap().len();
    let tainted = vec![LATCH, WALLET];
    let finding = Finding { user, org, tx_hash: TX, block_hash: BLOCK, reason: "cross_org", tainted };
    for _ in 0..2 {
        let mut tx = world.begin().await;
        tx.record_finding(&finding).await.unwrap();
        tx.commit().await.unwrap();
    }
    let reads = world.store.read();
    let (suspended, closed) = (reads.list_suspensions().await.unwrap(), reads.list_quarantines().await.unwrap());
    assert_eq!((suspended.len(), closed.len(), suspended[0].user), (1, 2, user));
    let latch = closed.iter().find(|row| row.address == LATCH).unwrap();
    assert_eq!((latch.org, latch.tx_hash, latch.block_hash), (Some(other), TX, BLOCK));
    let mut tx = world.begin().await;
    tx.lift_suspension(suspended[0].id, "looked at").await.unwrap();
    tx.lift_quarantine(latch.id, "looked at").await.unwrap();
    let again = tx.lift_quarantine(latch.id, "looked at").await;
    assert!(matches!(again, Err(StoreError::NotFound(Missing::Quarantine))), "{again:?}");
    tx.commit().await.unwrap();
    let reads = world.store.read();
    assert_eq!((reads.list_suspensions().await.unwrap().len(), reads.list_quarantines().await.unwrap().len()), (0, 1));
    let entries = world.store.outbox(0, 1000).await.unwrap().split_off(before);
    let said: Vec<_> = entries.iter().map(|row| (row.entry.action, row.entry.resource_type)).collect();
    let (suspension, quarantine) = (ResourceType::Suspension, ResourceType::Quarantine);
    assert_eq!(
        said,
        [
            (Action::Create, suspension),
            (Action::Create, quarantine),
            (Action::Create, quarantine),
            (Action::Delete, suspension),
            (Action::Delete, quarantine),
        ]
    );
    let old = entries.last().and_then(|row| row.entry.old_value.clone()).unwrap();
    assert!(old.contains("looked at") && old.contains("cross_org"), "{old}");
}
