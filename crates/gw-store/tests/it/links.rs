//! Links of an address when its owner proves it, ends the link, or deletes the account (LK-2, LK-5, LK-7, HD13, HD37).

use crate::world::{World, did, on_both_engines};
use gw_policy::snapshot::LinkKind;
use gw_store::{
    StoreError, Tx,
    record::{LinkProof, NewUser, SenderLink, User},
};
use gw_types::Address;

on_both_engines! {
    hd37_what_is_decided_about_a_link_outlives_the_account,
    lk5_what_was_inferred_ends_for_good_when_somebody_proves_the_address,
}

const WALLET: Address = Address::repeat_byte(0x77);

async fn person(tx: &mut Tx, name: &str) -> User {
    let groups = Vec::new();
    tx.create_user(NewUser {
        external_id: did(name),
        kyc: true,
        auth_tenant_id: None,
        groups,
    })
    .await
    .unwrap()
}

/// HD13, HD37: the address of a deleted account still counts as once linked, and a link revoked as compromised stays
/// revoked for an account of the same name, however often it is deleted and created again.
async fn hd37_what_is_decided_about_a_link_outlives_the_account(world: &World) {
    let was_ever_linked = async || world.store.load().await.unwrap().was_ever_linked(WALLET);
    let mut tx = world.begin().await;
    let ann = person(&mut tx, "ann").await;
    tx.link_address(ann.id, WALLET, LinkProof::Challenge).await.unwrap();
    tx.delete_user(ann.id).await.unwrap();
    tx.commit().await.unwrap();
    assert!(was_ever_linked().await, "though nobody is left who has it");
    // A proof by key links it again.
    let mut tx = world.begin().await;
    let ann = person(&mut tx, "ann").await;
    tx.link_address(ann.id, WALLET, LinkProof::Challenge).await.unwrap();
    tx.revoke_link(ann.id, WALLET, "the key was stolen").await.unwrap();
    tx.delete_user(ann.id).await.unwrap();
    tx.commit().await.unwrap();
    for _ in 0..2 {
        let mut tx = world.begin().await;
        let ann = person(&mut tx, "ann").await;
        let again = tx.link_address(ann.id, WALLET, LinkProof::Challenge).await;
        assert!(matches!(again, Err(StoreError::LinkRevoked)), "{again:?}");
        assert!(matches!(
            tx.link_sender(ann.id, WALLET).await.unwrap(),
            SenderLink::Unchanged
        ));
        tx.delete_user(ann.id).await.unwrap();
        tx.commit().await.unwrap();
    }
    assert!(was_ever_linked().await);
    let mut tx = world.begin().await;
    let bob = person(&mut tx, "bob").await;
    tx.link_address(bob.id, WALLET, LinkProof::Challenge).await.unwrap();
    tx.commit().await.unwrap();
}

/// LK-5, LK-7: a user who relayed a wallet's payment before its owner proved it no longer sees its data afterwards, and
/// neither does a user who relays one later.
async fn lk5_what_was_inferred_ends_for_good_when_somebody_proves_the_address(world: &World) {
    let mut tx = world.begin().await;
    let [ann, carl, dan] = [
        person(&mut tx, "ann").await,
        person(&mut tx, "carl").await,
        person(&mut tx, "dan").await,
    ];
    let inferred = tx.link_sender(carl.id, WALLET).await.unwrap();
    assert!(matches!(inferred, SenderLink::Linked(_)), "{inferred:?}");
    tx.link_address(ann.id, WALLET, LinkProof::Challenge).await.unwrap();
    tx.commit().await.unwrap();
    let wallet_links = async || {
        let snapshot = world.store.load().await.unwrap();
        snapshot
            .links_at(WALLET)
            .iter()
            .map(|link| (link.user, link.kind))
            .collect::<Vec<_>>()
    };
    assert_eq!(wallet_links().await, [(ann.id, LinkKind::User)]);
    let mut tx = world.begin().await;
    tx.unlink_address(ann.id, WALLET).await.unwrap();
    tx.commit().await.unwrap();
    world.clock.pass(40 * 86_400);
    for deleted in [false, true] {
        let mut tx = world.begin().await;
        if deleted {
            tx.delete_user(ann.id).await.unwrap();
        }
        for user in [carl.id, dan.id] {
            let relayed = tx.link_sender(user, WALLET).await.unwrap();
            assert!(matches!(relayed, SenderLink::Unchanged), "{relayed:?}");
        }
        tx.commit().await.unwrap();
        assert_eq!(wallet_links().await, []);
    }
    // Carl himself may prove it.
    let mut tx = world.begin().await;
    assert_eq!(
        tx.link_address(carl.id, WALLET, LinkProof::Challenge)
            .await
            .unwrap()
            .link
            .kind,
        LinkKind::User
    );
    tx.commit().await.unwrap();
}
