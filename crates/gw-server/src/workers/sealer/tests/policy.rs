//! Who writes to the policy database alone hides no mutation and invents none (RL3, RL9).

use super::{SEED, TAMPERED, World, clock, mutate, sign};
use crate::{ambient::SystemEntropy, serve::outbox_mark::OutboxMarkFile};
use gw_audit::{CheckpointKey, OutboxFault, SecurityKind};
use gw_store::{
    Actor, OutboxGuard, OutboxWitness, Store, StoreConfig,
    audit::{AuditStore, OutboxKey, PruneBatch},
    record::{Holds, NewOrganization, PruneReason},
};
use gw_types::{Clock, Entropy, Seconds, Timestamp};
use std::sync::Arc;

on_both_engines! {
    rl9_another_identity_hides_no_entry_that_waited,
    rl9_rows_of_an_exchanged_identity_are_sealed_as_what_they_are,
    rl3_an_empty_policy_store_beside_a_log_is_told,
    rl9_a_row_of_a_mutation_that_was_undone_is_told,
    rl13_what_was_pruned_is_neither_lost_nor_missing,
    rl9_rows_that_wait_outlive_a_change_of_the_key,
    rl9_a_row_under_a_number_that_is_no_id_is_told,
}

fn exchange(world: &World) -> String {
    let id = if world.policy_url.starts_with("sqlite") {
        "randomblob(16)"
    } else {
        "gen_random_uuid()"
    };
    format!("UPDATE policy_store SET store_id = {id}, last_outbox_id = 0")
}

/// As of a new process: what the directory has is all it remembers.
async fn restarted(mut world: World, seed: &[u8; 32]) -> World {
    let mark = Arc::new(OutboxMarkFile::open(world.place.path()).unwrap());
    let witness = Some(Arc::clone(&mark) as Arc<dyn OutboxWitness>);
    let config = StoreConfig {
        location: world.policy.clone(),
        connections: 3,
        clock: clock(),
        entropy: Arc::new(SystemEntropy) as Arc<dyn Entropy>,
        outbox: OutboxGuard {
            key: Some(OutboxKey::derive(seed)),
            witness,
        },
    };
    world.store = Store::open(config).await.unwrap();
    world.mark = mark;
    world
}

async fn rl9_another_identity_hides_no_entry_that_waited(world: World) {
    let mut sealer = world.sealer();
    world.mutate("one").await;
    world.seal(&mut sealer).await;
    world.mutate("evil").await;
    let former = world.store.outbox_mark().await.unwrap().store;
    world.in_policy(&["DELETE FROM audit_outbox", &exchange(&world)]).await;
    let world = restarted(world, &SEED).await;
    // Even where a mutation comes before the first look.
    world.mutate("next").await;
    let mut sealer = world.sealer();
    world.seal(&mut sealer).await;
    let gone = Some(OutboxFault::Missing);
    assert_eq!(
        world.listed().await,
        [(1, None), (1, None), (2, gone)],
        "of the store of before and of this one"
    );
    let told = [
        format!("outbox_ids:replaced:{}:2", former.0),
        "outbox_gap:2..3".to_owned(),
    ];
    assert_eq!(
        world.findings(SecurityKind::TamperDetected).await,
        told,
        "and no genuine entry is blamed"
    );
    let world = restarted(world, &SEED).await;
    assert_eq!(world.findings(SecurityKind::TamperDetected).await, told, "once");
}

async fn rl9_rows_of_an_exchanged_identity_are_sealed_as_what_they_are(world: World) {
    let mut sealer = world.sealer();
    world.mutate("one").await;
    world.mutate("two").await;
    world.seal(&mut sealer).await;
    for slug in ["three", "four"] {
        world.mutate(slug).await;
    }
    world
        .in_policy(&["DELETE FROM audit_outbox WHERE id = 3", &exchange(&world)])
        .await;
    // Live.
    world.seal(&mut sealer).await;
    assert_eq!(
        world.listed().await,
        [(1, None), (2, None), (3, Some(OutboxFault::Missing)), (4, None)]
    );
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert!(findings.contains(&"outbox_gap:3..4".to_owned()), "{findings:?}");
    assert!(
        !findings
            .iter()
            .any(|reason| reason.starts_with("foreign") || reason.contains("unauth")),
        "{findings:?}"
    );
}

async fn rl3_an_empty_policy_store_beside_a_log_is_told(world: World) {
    let mut sealer = world.sealer();
    world.mutate("one").await;
    world.seal(&mut sealer).await;
    let former = world.store.outbox_mark().await.unwrap().store;
    world.in_policy(&["DELETE FROM audit_outbox", &exchange(&world)]).await;
    // On a machine that knows neither.
    std::fs::remove_file(world.place.path().join("outbox-mark")).unwrap();
    let world = restarted(world, &SEED).await;
    let mut sealer = world.sealer();
    world.seal(&mut sealer).await;
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert_eq!(findings, [format!("outbox_ids:replaced:{}:1", former.0)]);
}

/// The code is genuine, and the id the next one.
async fn rl9_a_row_of_a_mutation_that_was_undone_is_told(world: World) {
    world.mutate("one").await;
    let sqlite = world.policy_url.starts_with("sqlite");
    let refuse: &[&str] = if sqlite {
        &["CREATE TRIGGER evil AFTER INSERT ON audit_outbox BEGIN SELECT RAISE(ABORT, 'no'); END"]
    } else {
        &[
            "CREATE FUNCTION evil() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN \
             RAISE EXCEPTION 'no' USING ERRCODE = 'serialization_failure'; END $$",
            "CREATE TRIGGER evil AFTER INSERT ON audit_outbox FOR EACH ROW EXECUTE FUNCTION evil()",
        ]
    };
    world.in_policy(refuse).await;
    let mut tx = world.store.begin(&Actor::system()).await.unwrap();
    tx.create_organization(NewOrganization {
        slug: "victim".into(),
        ..Default::default()
    })
    .await
    .unwrap();
    let refused = tx.commit().await.unwrap_err();
    assert!(refused.is_unavailable(), "{refused:?}");
    let of = world.store.outbox_mark().await.unwrap().store;
    assert_eq!(
        world.mark.undone(of).iter().map(|(id, _)| *id).collect::<Vec<_>>(),
        [2],
        "its code is remembered"
    );
    world
        .in_policy(&[if sqlite {
            "DROP TRIGGER evil"
        } else {
            "DROP TRIGGER evil ON audit_outbox"
        }])
        .await;

    // A row whose code this process took back, as a copy made on its way would be.
    mutate(&world.another_store().await, "invented").await;
    let row = world.store.outbox(2, 1).await.unwrap().remove(0);
    assert_eq!((row.id, row.entry.outbox_fault), (2, None));
    world.mark.note_undone(of, &[(2, code(&world, 2).await)]);
    let world = restarted(world, &SEED).await;
    let mut sealer = world.sealer();
    world.seal(&mut sealer).await;
    assert_eq!(
        world.listed().await,
        [(1, None), (2, Some(OutboxFault::Unauthenticated))]
    );
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert_eq!(findings, ["outbox_row:undone:2", "outbox_fault:unauthenticated:2"]);
}

async fn code(world: &World, id: i64) -> [u8; 32] {
    use sea_orm::{ConnectionTrait as _, Database, Statement};
    let db = Database::connect(&world.policy_url).await.unwrap();
    let sql = format!("SELECT mac FROM audit_outbox WHERE id = {id}");
    let row = db
        .query_one_raw(Statement::from_string(db.get_database_backend(), sql))
        .await
        .unwrap()
        .unwrap();
    row.try_get::<Vec<u8>>("", "mac").unwrap().try_into().unwrap()
}

#[derive(Debug)]
struct Later;

impl Clock for Later {
    fn now(&self) -> Timestamp {
        clock().now().plus(Seconds(3 * 86_400))
    }
}

/// Rows are kept for a day after they were sealed, and a service that stood still may prune their entries first.
async fn rl13_what_was_pruned_is_neither_lost_nor_missing(world: World) {
    let mut sealer = world.sealer();
    for slug in ["one", "two", "three"] {
        world.mutate(slug).await;
    }
    world.seal(&mut sealer).await;
    sign(&mut sealer).await;
    let audit = StoreConfig {
        location: world.audit_location.clone(),
        connections: 2,
        clock: Arc::new(Later),
        entropy: Arc::new(SystemEntropy) as Arc<dyn Entropy>,
        outbox: OutboxGuard::default(),
    };
    let audit = AuditStore::open(audit).await.unwrap();
    let key = CheckpointKey::from_seed(&SEED);
    let batch = PruneBatch {
        reason: PruneReason::Ttl,
        bound: "24h",
        before: Later.now(),
        limit: 100,
        holds: &Holds::default(),
        cluster: "test",
        keys: &[key.public()],
        key: &key,
    };
    let pruned = audit.prune(super::super::ADMIN_CHAIN, &batch).await.unwrap();
    assert_eq!(pruned.count, 3, "the newest entry tells how far the outbox got");
    let mut sealer = world.sealer();
    world.mutate("four").await;
    world.seal(&mut sealer).await;
    assert_eq!(
        world.listed().await,
        [(3, None), (4, None)],
        "nothing is sealed a second time"
    );
    assert_eq!(world.findings(SecurityKind::TamperDetected).await, [""; 0]);
}

/// A row that was changed meanwhile is no such row.
async fn rl9_rows_that_wait_outlive_a_change_of_the_key(world: World) {
    world.mutate("one").await;
    world.mutate("two").await;
    world
        .in_policy(&["UPDATE audit_outbox SET actor_external_id = 'did:test:nobody' WHERE id = 2"])
        .await;
    let world = restarted(world, &[8; 32]).await;
    let mut sealer = world.sealer();
    world.seal(&mut sealer).await;
    assert_eq!(
        world.listed().await,
        [(1, None), (2, Some(OutboxFault::Unauthenticated))]
    );
}

async fn rl9_a_row_under_a_number_that_is_no_id_is_told(world: World) {
    world.mutate("one").await;
    let row = |id| {
        format!(
            "INSERT INTO audit_outbox (id, action, actor_external_id, created_at, resource_type) \
             VALUES ({id}, 'create', 'did:test:nobody', 1, 'user')"
        )
    };
    world.in_policy(&[&row(-7), &row(0)]).await;
    for _ in 0..2 {
        // A restart finds nothing new.
        let mut sealer = world.sealer();
        world.seal(&mut sealer).await;
    }
    assert!(world.store.outbox(i64::MIN, 10).await.unwrap().is_empty());
    assert_eq!(
        world.listed().await,
        [(TAMPERED, None), (TAMPERED, None), (1, None)],
        "under no id of their own"
    );
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert_eq!(
        findings,
        ["outbox_fault:unauthenticated:-7", "outbox_fault:unauthenticated:0"]
    );
}
