//! HD23 E-1 and E-2: epochs without gaps in commit order, and a change row for every changed row.

use crate::world::{World, did, on_both_engines};
use gw_policy::snapshot::Group;
use gw_store::{
    Actor, BootClock, Feed, FeedTiming, Store,
    record::{AccessInput, NewContract, NewGrant, NewGroup, NewMembership, NewOrganization, NewUser},
};
use gw_types::{Address, Epoch};
use std::sync::Arc;
use tokio::runtime::Builder;

on_both_engines! {
    hd23_e1_concurrent_writers_make_epochs_without_gaps_in_commit_order,
    hd23_e1_a_mutation_that_changes_no_policy_raises_no_epoch,
    hd23_e2_a_cascade_names_every_row_it_removes,
    rl1_a_mutation_killed_anywhere_is_whole_or_not_there,
}

/// Creates an organization on a runtime that yields after every task step, and drops everything after `steps` yields;
/// returns the yields taken and whether the mutation was committed by then.
fn killed_after(steps: usize, world: &World, seed: u64, slug: &str) -> (usize, bool) {
    let runtime = Builder::new_current_thread()
        .event_interval(1)
        .enable_all()
        .build()
        .unwrap();
    let new = NewOrganization {
        slug: slug.into(),
        name: slug.into(),
        ..Default::default()
    };
    runtime.block_on(async {
        let store = world.another_store(seed).await;
        let making = tokio::spawn(async move {
            let mut tx = store.begin(&Actor::system()).await.unwrap();
            tx.create_organization(new).await.unwrap();
            tx.commit().await.unwrap();
        });
        for step in 0..steps {
            if making.is_finished() {
                making.await.unwrap();
                return (step, true);
            }
            tokio::task::yield_now().await;
        }
        (steps, false)
    })
}

/// RL1, E-1, 70 rule 13: the rows of a mutation, its epoch and its outbox row exist together or not at all, a running
/// feed applies it, and the next mutation succeeds.
async fn rl1_a_mutation_killed_anywhere_is_whole_or_not_there(world: &World) {
    const KILLS: u64 = 40;
    let feed = Feed::start(&world.store, FeedTiming::default(), Arc::new(BootClock))
        .await
        .unwrap();
    let mut epoch = world.store.load().await.unwrap().epoch();
    let (mut all, mut there) = (usize::MAX, 0);
    for kill in 0..=KILLS {
        // The first run completes and measures the number of steps.
        let steps = if kill == 0 {
            all
        } else {
            all * usize::try_from(kill).unwrap() / usize::try_from(KILLS).unwrap()
        };
        let slug = format!("org-{kill}");
        let (took, committed) = std::thread::scope(|threads| {
            threads
                .spawn(|| killed_after(steps, world, 100 + kill, &slug))
                .join()
                .unwrap()
        });
        if kill == 0 {
            all = took;
        }
        let next = make_user(&world.store, &format!("user-{kill}")).await;
        let count = |table, column| format!("SELECT COUNT(*) AS n FROM {table} WHERE {column} = '{slug}'");
        let is_there = world.rows(&count("organizations", "slug"), "n").await;
        assert_eq!(
            world.rows(&count("audit_outbox", "resource_name"), "n").await,
            is_there,
            "kill {kill}"
        );
        assert_eq!(next.0, epoch.0 + 1 + u64::from(is_there == [1]), "kill {kill}");
        assert!(!committed || is_there == [1], "kill {kill}");
        assert!(feed.catch_up_to(next).await, "kill {kill}");
        epoch = next;
        there += u64::from(is_there == [1]);
    }
    assert!(1 < there && there < KILLS, "{there} of {KILLS} are there");
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
