//! Secrets of grants: encrypted, encrypted anew with a new key, and destroyed by a sweep.

use super::{cipher, grants, people};
use crate::world::{World, on_both_engines};
use gw_crypto::KeyCipher;
use gw_types::{DisclosureGrantId, GrantSecret, Seconds, Secret};

on_both_engines! {
    ds29_secrets_rest_encrypted_and_are_destroyed,
    ds29_secrets_are_encrypted_anew_with_a_new_key,
}

/// How long the secret of an ended grant is kept.
const MONTH: Seconds = Seconds(30 * 86_400);

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
