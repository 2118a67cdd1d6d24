//! TK-3 and TK-5: stored refresh tokens.

use crate::world::{World, did, on_both_engines};
use gw_store::record::{NewRefreshToken, NewUser, Rotation, TokenHash, UserPatch};
use gw_types::{Seconds, SessionId, TokenId, UserId};

on_both_engines! {
    tk5_of_two_parallel_refreshes_one_succeeds,
    tk5_a_used_token_shown_late_kills_its_family,
    tk5_a_family_ends_after_thirty_days,
    a10_a_ban_ends_every_token,
    tk6_revocation_is_policy,
}

const FAMILY: SessionId = SessionId::fixed(50);

async fn login(world: &World) -> UserId {
    let mut tx = world.begin().await;
    let new = NewUser {
        external_id: did("a"),
        kyc: false,
        auth_tenant_id: None,
        groups: Vec::new(),
    };
    let user = tx.create_user(new).await.unwrap().id;
    let first = NewRefreshToken {
        user,
        ..token(world, 1)
    };
    tx.store_refresh_token(first).await.unwrap();
    tx.commit().await.unwrap();
    user
}

fn token(world: &World, n: u8) -> NewRefreshToken {
    use gw_types::Clock;
    NewRefreshToken {
        hash: TokenHash([n; 32]),
        id: TokenId::fixed(u128::from(n)),
        family: FAMILY,
        login: FAMILY,
        user: UserId::fixed(0),
        amr: "zk".to_owned(),
        family_started: world.clock.now(),
        expires_at: world.clock.now().plus(Seconds(7 * 86_400)),
    }
}

async fn rotate(world: &World, old: u8, new: u8) -> Rotation {
    let mut tx = world.begin().await;
    let rotation = tx
        .rotate_refresh_token(TokenHash([old; 32]), token(world, new))
        .await
        .unwrap();
    tx.commit().await.unwrap();
    rotation
}

async fn tk5_of_two_parallel_refreshes_one_succeeds(world: &World) {
    let user = login(world).await;
    let (left, right) = tokio::join!(rotate(world, 1, 2), rotate(world, 1, 3));
    let mut outcomes = [left, right];
    outcomes.sort_by_key(|outcome| *outcome != Rotation::Done);
    assert_eq!(outcomes, [Rotation::Done, Rotation::JustUsed]);
    let families = world
        .store
        .read()
        .list_families(user, gw_types::Clock::now(&*world.clock))
        .await
        .unwrap();
    assert_eq!(families.len(), 1, "one live successor, of the same user and family");
    assert_eq!(families[0].id, FAMILY);
}

async fn tk5_a_used_token_shown_late_kills_its_family(world: &World) {
    login(world).await;
    assert_eq!(rotate(world, 1, 2).await, Rotation::Done);
    world.clock.pass(11);
    assert_eq!(rotate(world, 1, 3).await, Rotation::Reused);
    assert_eq!(
        rotate(world, 2, 4).await,
        Rotation::Unknown,
        "the thief's or the owner's: both are out"
    );
    let snapshot = world.store.load().await.unwrap();
    assert!(
        snapshot.revocation(TokenId::from(FAMILY.0)).is_some(),
        "access tokens of the family are dead too"
    );
}

async fn tk5_a_family_ends_after_thirty_days(world: &World) {
    login(world).await;
    for n in 1..5 {
        world.clock.pass(6 * 86_400);
        assert_eq!(rotate(world, n, n + 1).await, Rotation::Done, "refresh {n}");
    }
    world.clock.pass(6 * 86_400);
    assert_eq!(
        rotate(world, 5, 6).await,
        Rotation::Expired,
        "whatever the successors claimed to have started"
    );
}

async fn a10_a_ban_ends_every_token(world: &World) {
    let user = login(world).await;
    let mut tx = world.begin().await;
    tx.update_user(
        user,
        UserPatch {
            banned: Some(true),
            ..Default::default()
        },
    )
    .await
    .unwrap();
    let now = tx.now();
    tx.commit().await.unwrap();
    assert_eq!(rotate(world, 1, 2).await, Rotation::Unknown);
    assert_eq!(
        world.store.load().await.unwrap().user(user).unwrap().tokens_valid_from,
        Some(now)
    );
}

async fn tk6_revocation_is_policy(world: &World) {
    login(world).await;
    let mut tx = world.begin().await;
    let until = tx.now().plus(Seconds(300));
    tx.revoke_access_token(TokenId::fixed(9), until).await.unwrap();
    tx.revoke_access_token(TokenId::fixed(9), tx.now()).await.unwrap();
    assert!(tx.revoke_family(FAMILY, until).await.unwrap());
    assert!(!tx.revoke_family(FAMILY, until).await.unwrap(), "it is over");
    tx.commit().await.unwrap();
    let snapshot = world.store.load().await.unwrap();
    assert_eq!(
        snapshot.revocation(TokenId::fixed(9)).unwrap().until,
        until,
        "never shortened"
    );

    world.clock.pass(301);
    world.store.purge_expired().await.unwrap();
    assert!(
        world
            .store
            .load()
            .await
            .unwrap()
            .revocation(TokenId::fixed(9))
            .is_none(),
        "expired by itself"
    );
}
