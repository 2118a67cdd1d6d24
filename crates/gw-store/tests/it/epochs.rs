//! HD23 E-1 and E-2: epochs without gaps in the order of commits, and a change row for every changed row.

use crate::world::{World, did, on_both_engines};
use gw_policy::snapshot::Group;
use gw_store::{
    Actor, Store,
    record::{AccessInput, NewContract, NewGrant, NewGroup, NewMembership, NewOrganization, NewUser},
};
use gw_types::{Address, Epoch};

on_both_engines! {
    hd23_e1_concurrent_writers_make_epochs_without_gaps_in_commit_order,
    hd23_e1_a_mutation_that_changes_no_policy_raises_no_epoch,
    hd23_e2_a_cascade_names_every_row_it_removes,
}

/// On SQLite both stores queue for the file, on PostgreSQL for the epoch row.
async fn hd23_e1_concurrent_writers_make_epochs_without_gaps_in_commit_order(world: &World) {
    const EACH: u64 = 12;
    let other = world.another_store(2).await;
    let writers = [(&world.store, "left"), (&other, "right")].map(|(store, side)| {
        let store = store.clone();
        tokio::spawn(async move {
            let mut epochs = Vec::new();
            for n in 0..EACH {
                epochs.push(make_user(&store, &format!("{side}{n}")).await);
            }
            epochs
        })
    });
    let mut all = Vec::new();
    for writer in writers {
        let epochs = writer.await.unwrap();
        assert!(epochs.is_sorted(), "a writer's own commits are in order");
        all.extend(epochs);
    }
    all.sort_unstable();
    let expected: Vec<_> = (2..2 + 2 * EACH).map(Epoch).collect();
    assert_eq!(all, expected, "contiguous after the seed's epoch, each given once");
    let changes = world
        .rows(
            "SELECT epoch FROM policy_changes WHERE entity = 'user' ORDER BY epoch",
            "epoch",
        )
        .await;
    assert_eq!(
        changes,
        expected
            .iter()
            .map(|epoch| i64::try_from(epoch.0).unwrap())
            .collect::<Vec<_>>()
    );
}

async fn make_user(store: &Store, name: &str) -> Epoch {
    let mut tx = store.begin(&Actor::system()).await.unwrap();
    let new = NewUser {
        external_id: did(name),
        kyc: false,
        auth_tenant_id: None,
        groups: Vec::new(),
    };
    tx.create_user(new).await.unwrap();
    tx.commit().await.unwrap()
}

async fn hd23_e1_a_mutation_that_changes_no_policy_raises_no_epoch(world: &World) {
    let before = world.store.load().await.unwrap().epoch();
    assert_eq!(world.begin().await.commit().await.unwrap(), before);
    let mut tx = world.begin().await;
    tx.create_organization(NewOrganization {
        slug: "gone".into(),
        ..Default::default()
    })
    .await
    .unwrap();
    drop(tx);
    assert_eq!(
        world.store.load().await.unwrap().epoch(),
        before,
        "rolled back with its change rows"
    );
    assert_eq!(
        make_user(&world.store, "next").await,
        Epoch(before.0 + 1),
        "and the next epoch follows without a gap"
    );
}

async fn hd23_e2_a_cascade_names_every_row_it_removes(world: &World) {
    let mut tx = world.begin().await;
    let org = tx
        .create_organization(NewOrganization {
            slug: "bank".into(),
            ..Default::default()
        })
        .await
        .unwrap();
    let group = tx
        .create_group(NewGroup::plain(org.id, "traders", "Traders"))
        .await
        .unwrap();
    tx.set_access(
        group.id,
        AccessInput {
            allowed_methods: vec!["*".into()],
            ..Default::default()
        },
    )
    .await
    .unwrap();
    let new = NewUser {
        external_id: did("a"),
        kyc: true,
        auth_tenant_id: None,
        groups: vec![Group::DEFAULT],
    };
    let user = tx.create_user(new).await.unwrap();
    let member = tx
        .add_membership(NewMembership {
            user: user.id,
            group: group.id,
            expires_at: None,
        })
        .await
        .unwrap();
    let contract = tx
        .create_contract(NewContract::plain(org.id, Address::repeat_byte(7), "token"))
        .await
        .unwrap();
    let grant = tx.create_grant(NewGrant::full(contract.id, group.id)).await.unwrap();
    tx.commit().await.unwrap();

    let mut tx = world.begin().await;
    tx.delete_organization(org.id).await.unwrap();
    let epoch = tx.commit().await.unwrap();

    let sql = format!("SELECT entity FROM policy_changes WHERE epoch = {epoch} ORDER BY entity");
    let named = world.texts(&sql, "entity").await;
    assert_eq!(
        named,
        [
            "contract",
            "grant",
            "group",
            "group_access",
            "membership",
            "organization",
            "past_contract",
            "retired_contract"
        ]
    );
    let snapshot = world.store.load().await.unwrap();
    assert!(snapshot.user(user.id).is_some(), "users stay");
    assert_eq!(snapshot.memberships(user.id).len(), 1, "in the default group");
    assert!(snapshot.memberships(user.id).iter().all(|left| left.id != member.id));
    assert!(snapshot.grants(contract.id).iter().all(|left| left.id != grant.id));
}
