//! An attacker who can write only to the policy database can neither hide nor forge a mutation (RL3, RL9).

use super::{SEED, TAMPERED, World, clock, mutate, sign};
use crate::{serve::outbox_mark::OutboxMarkFile, system::SystemEntropy, workers::ADMIN_CHAIN};
use gw_audit::{CheckpointKey, OutboxFault, SecurityKind};
use gw_store::{
    Actor, OutboxGuard, OutboxWitness, Store, StoreConfig,
    audit::{AuditStore, OutboxKey, PruneBatch},
    record::{Holds, NewOrganization, PruneReason},
};
use gw_types::{Entropy, Seconds, testing::ManualClock};
use std::sync::Arc;

on_both_engines! {
    rl9_rows_changed_while_no_sealer_ran_are_sealed_with_a_fault,
    rl9_rows_deleted_while_no_sealer_ran_are_reported,
    rl9_a_gap_stays_in_the_chain_and_is_reported_once,
    rl9_a_row_exchanged_after_its_commit_is_sealed_with_a_fault,
    rl9_an_id_that_was_never_issued_makes_no_gap,
    rl9_an_exchanged_identity_does_not_hide_deleted_rows,
    rl9_genuine_rows_of_an_exchanged_identity_are_sealed_without_a_fault,
    rl3_an_empty_policy_store_with_an_existing_log_is_reported,
    rl9_a_row_of_a_rolled_back_mutation_is_reported,
    rl13_pruned_entries_are_neither_lost_nor_missing,
    rl9_waiting_rows_survive_a_change_of_the_key,
    rl9_a_row_with_an_impossible_id_is_reported,
}

/// The SQL that gives the policy store another identity.
fn exchange(world: &World) -> String {
    let id = if world.policy_url.starts_with("sqlite") {
        "randomblob(16)"
    } else {
        "gen_random_uuid()"
    };
    format!("UPDATE policy_store SET store_id = {id}, last_outbox_id = 0")
}

/// Restarts the process: it remembers only the content of its directory.
async fn restarted(mut world: World, seed: &[u8; 32]) -> World {
    let mark = Arc::new(OutboxMarkFile::open(world.dir.path()).unwrap());
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

async fn rl9_rows_changed_while_no_sealer_ran_are_sealed_with_a_fault(world: World) {
    world.mutate("one").await;
    world.mutate("two").await;
    world
        .in_policy(&[
            "UPDATE audit_outbox SET actor_external_id = 'did:test:somebody else' WHERE id = 1",
            "INSERT INTO audit_outbox (id, action, actor_external_id, created_at, resource_type) \
             VALUES (3, 'delete', 'did:test:nobody', 1, 'user')",
            "UPDATE policy_store SET last_outbox_id = 3",
        ])
        .await;
    let mut sealer = world.sealer();
    world.seal(&mut sealer).await;
    let bad = Some(OutboxFault::Unauthenticated);
    assert_eq!(world.listed().await, [(1, bad), (2, None), (3, bad)]);
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert_eq!(
        findings,
        ["outbox_fault:unauthenticated:1", "outbox_fault:unauthenticated:3"]
    );
}

async fn rl9_rows_deleted_while_no_sealer_ran_are_reported(world: World) {
    for slug in ["one", "two", "three", "four"] {
        world.mutate(slug).await;
    }
    // The attacker deletes the last row and lowers the database's mark, but cannot change the mark in the journal's
    // directory.
    world
        .in_policy(&[
            "DELETE FROM audit_outbox WHERE id IN (2, 4)",
            "UPDATE policy_store SET last_outbox_id = 3",
        ])
        .await;
    let trust = world.trust();
    let mut sealer = world.sealer_with(Arc::clone(&trust));
    assert!(!trust.alarm.is_raised());
    world.seal(&mut sealer).await;
    assert!(trust.alarm.is_raised(), "readiness shows it at once");
    let missing = Some(OutboxFault::Missing);
    assert_eq!(
        world.listed().await,
        [(1, None), (2, missing), (3, None), (4, missing)],
        "the chain records the gaps"
    );
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert!(findings.contains(&"outbox_gap:2..3".to_owned()), "{findings:?}");
    assert!(findings.contains(&"outbox_gap:4..5".to_owned()), "{findings:?}");
}

/// Verification reports the entry of a gap as a finding (`gw_audit::verify`), so the gap is reported after a restart
/// too.
async fn rl9_a_gap_stays_in_the_chain_and_is_reported_once(world: World) {
    let mut sealer = world.sealer();
    world.mutate("one").await;
    world.seal(&mut sealer).await;
    world.mutate("hidden").await;
    world
        .in_policy(&[
            "DELETE FROM audit_outbox WHERE id = 2",
            "UPDATE policy_store SET last_outbox_id = 1",
        ])
        .await;
    world.seal(&mut sealer).await;
    let missing = Some(OutboxFault::Missing);
    assert_eq!(world.listed().await, [(1, None), (2, missing)]);
    let mut sealer = world.sealer();
    world.mutate("next").await;
    world.seal(&mut sealer).await;
    sign(&mut sealer).await;
    assert_eq!(
        world.listed().await,
        [(1, None), (2, missing), (3, None)],
        "no id is issued twice"
    );
    let admin = ADMIN_CHAIN;
    let signed = world.audit.last_checkpoint(admin).await.unwrap().expect("signed");
    assert_eq!(signed.lines().nth(1), Some("4"), "the gap does not prevent signing");
    let findings = world.findings(SecurityKind::TamperDetected).await;
    let gaps: Vec<_> = findings
        .iter()
        .filter(|reason| reason.starts_with("outbox_gap"))
        .collect();
    assert_eq!(gaps, ["outbox_gap:2..3"], "{findings:?}");
}

/// The attacker replaces a row by a genuine row of a rolled-back mutation with the same id, whose authentication code
/// is valid.
async fn rl9_a_row_exchanged_after_its_commit_is_sealed_with_a_fault(world: World) {
    mutate(&world.another_store().await, "rolled-back").await;
    world
        .in_policy(&[
            "CREATE TABLE captured AS SELECT * FROM audit_outbox",
            "DELETE FROM audit_outbox",
            "DELETE FROM organizations WHERE slug = 'rolled-back'",
            "UPDATE policy_store SET last_outbox_id = 0",
        ])
        .await;
    world.mutate("hidden").await;
    world
        .in_policy(&[
            "DELETE FROM audit_outbox",
            "INSERT INTO audit_outbox SELECT * FROM captured",
        ])
        .await;
    let mut sealer = world.sealer();
    world.seal(&mut sealer).await;
    assert_eq!(world.listed().await, [(1, Some(OutboxFault::Replaced))]);
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert_eq!(findings, ["outbox_row:lost:1", "outbox_fault:replaced:1"]);
}

async fn rl9_an_id_that_was_never_issued_makes_no_gap(world: World) {
    let mut sealer = world.sealer();
    world.mutate("one").await;
    let forged = "INSERT INTO audit_outbox (id, action, actor_external_id, created_at, resource_type) \
                  VALUES (9223372036854775807, 'delete', 'did:test:nobody', 1, 'user')";
    world.in_policy(&[forged]).await;
    world.seal(&mut sealer).await;
    // Neither the running sealer nor the next one uses it as the highest id.
    for slug in ["two", "three"] {
        world.mutate(slug).await;
        sealer = world.sealer();
        world.seal(&mut sealer).await;
    }
    let bad = Some(OutboxFault::Unauthenticated);
    assert_eq!(world.listed().await, [(1, None), (i64::MAX, bad), (2, None), (3, None)]);
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert_eq!(findings, [format!("outbox_fault:unauthenticated:{}", i64::MAX)]);
}

async fn rl9_an_exchanged_identity_does_not_hide_deleted_rows(world: World) {
    let mut sealer = world.sealer();
    world.mutate("one").await;
    world.seal(&mut sealer).await;
    world.mutate("evil").await;
    let former = world.store.outbox_mark().await.unwrap().store;
    world.in_policy(&["DELETE FROM audit_outbox", &exchange(&world)]).await;
    let world = restarted(world, &SEED).await;
    // This also works if a mutation comes before the sealer's first step.
    world.mutate("next").await;
    let mut sealer = world.sealer();
    world.seal(&mut sealer).await;
    let missing = Some(OutboxFault::Missing);
    assert_eq!(
        world.listed().await,
        [(1, None), (1, None), (2, missing)],
        "entries of the former store and of this one"
    );
    let expected = [
        format!("outbox_ids:replaced:{}:2", former.0),
        "outbox_gap:2..3".to_owned(),
    ];
    assert_eq!(
        world.findings(SecurityKind::TamperDetected).await,
        expected,
        "no genuine entry is reported"
    );
    let world = restarted(world, &SEED).await;
    assert_eq!(
        world.findings(SecurityKind::TamperDetected).await,
        expected,
        "reported once"
    );
}

async fn rl9_genuine_rows_of_an_exchanged_identity_are_sealed_without_a_fault(world: World) {
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
    // Without a restart.
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

async fn rl3_an_empty_policy_store_with_an_existing_log_is_reported(world: World) {
    let mut sealer = world.sealer();
    world.mutate("one").await;
    world.seal(&mut sealer).await;
    let former = world.store.outbox_mark().await.unwrap().store;
    world.in_policy(&["DELETE FROM audit_outbox", &exchange(&world)]).await;
    // On a machine without the mark file.
    std::fs::remove_file(world.dir.path().join("outbox-mark")).unwrap();
    let world = restarted(world, &SEED).await;
    let mut sealer = world.sealer();
    world.seal(&mut sealer).await;
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert_eq!(findings, [format!("outbox_ids:replaced:{}:1", former.0)]);
}

/// The authentication code of the row is genuine, and its id is the next one.
async fn rl9_a_row_of_a_rolled_back_mutation_is_reported(world: World) {
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
    let error = tx.commit().await.unwrap_err();
    assert!(error.is_unavailable(), "{error:?}");
    let store_id = world.store.outbox_mark().await.unwrap().store;
    assert_eq!(
        world
            .mark
            .undone(store_id)
            .iter()
            .map(|(id, _)| *id)
            .collect::<Vec<_>>(),
        [2],
        "the code of the rolled-back row is remembered"
    );
    world
        .in_policy(&[if sqlite {
            "DROP TRIGGER evil"
        } else {
            "DROP TRIGGER evil ON audit_outbox"
        }])
        .await;

    // Insert a row whose code this process revoked, in the way of a copy of the rolled-back row.
    mutate(&world.another_store().await, "invented").await;
    let row = world.store.outbox(2, 1).await.unwrap().remove(0);
    assert_eq!((row.id, row.entry.outbox_fault), (2, None));
    world.mark.note_undone(store_id, &[(2, code(&world, 2).await)]);
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

/// The authentication code of an outbox row.
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

/// Rows are kept for a day after they were sealed. If the sealer did not run for a while, their entries may be pruned
/// before the rows are deleted.
async fn rl13_pruned_entries_are_neither_lost_nor_missing(world: World) {
    let mut sealer = world.sealer();
    for slug in ["one", "two", "three"] {
        world.mutate(slug).await;
    }
    world.seal(&mut sealer).await;
    sign(&mut sealer).await;
    let later = clock().now().plus(Seconds(3 * 86_400));
    let audit = StoreConfig {
        location: world.audit_location.clone(),
        connections: 2,
        clock: Arc::new(ManualClock::at(later)),
        entropy: Arc::new(SystemEntropy) as Arc<dyn Entropy>,
        outbox: OutboxGuard::default(),
    };
    let audit = AuditStore::open(audit).await.unwrap();
    let key = CheckpointKey::from_seed(&SEED);
    let batch = PruneBatch {
        reason: PruneReason::Ttl,
        bound: "24h",
        before: later,
        limit: 100,
        holds: &Holds::default(),
        cluster: "test",
        keys: &[key.public()],
        key: &key,
    };
    let pruned = audit.prune(ADMIN_CHAIN, &batch).await.unwrap();
    assert_eq!(
        pruned.count, 3,
        "the newest entry is kept, because it has the highest sealed id"
    );
    let mut sealer = world.sealer();
    world.mutate("four").await;
    world.seal(&mut sealer).await;
    assert_eq!(world.listed().await, [(3, None), (4, None)], "no entry is sealed again");
    assert_eq!(world.findings(SecurityKind::TamperDetected).await, [""; 0]);
}

/// Genuine waiting rows are accepted after a change of the key; a row that was changed meanwhile is not.
async fn rl9_waiting_rows_survive_a_change_of_the_key(world: World) {
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

async fn rl9_a_row_with_an_impossible_id_is_reported(world: World) {
    world.mutate("one").await;
    let row = |id| {
        format!(
            "INSERT INTO audit_outbox (id, action, actor_external_id, created_at, resource_type) \
             VALUES ({id}, 'create', 'did:test:nobody', 1, 'user')"
        )
    };
    world.in_policy(&[&row(-7), &row(0)]).await;
    for _ in 0..2 {
        // The second sealer, after a restart, finds nothing new.
        let mut sealer = world.sealer();
        world.seal(&mut sealer).await;
    }
    assert!(world.store.outbox(i64::MIN, 10).await.unwrap().is_empty());
    assert_eq!(
        world.listed().await,
        [(TAMPERED, None), (TAMPERED, None), (1, None)],
        "the forged rows get no id"
    );
    assert!(
        world
            .rows(gw_audit::Stream::Admin)
            .await
            .iter()
            .all(|row| row.columns_agree),
        "their entries are intact"
    );
    let findings = world.findings(SecurityKind::TamperDetected).await;
    assert_eq!(
        findings,
        ["outbox_fault:unauthenticated:-7", "outbox_fault:unauthenticated:0"]
    );
}
