//! A1, A2: whoever can write the audit database cannot keep the verification from ending, or from looking at the rest.

use super::{F, World, access, admin, key, pass};
use crate::{
    verification::{ChainReport, Known, verify_all},
    workers::Outcome,
};
use gw_audit::verify::Finding;
use sea_orm::{ConnectionTrait as _, TransactionTrait as _};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::timeout;

/// The findings of a verification of all chains, which must end soon.
async fn findings(world: &World) -> Vec<Finding> {
    let known = Known {
        keys: vec![key().public()],
        heads: world.heads.clone(),
        ..Known::default()
    };
    let (pass, mut findings) = (pass(), Vec::new());
    let collect = |report: ChainReport| findings.extend(report.report.findings);
    timeout(
        Duration::from_secs(60),
        verify_all(&world.audit, &known, &pass, &BTreeMap::new(), |_| true, collect),
    )
    .await
    .expect("it ends")
    .expect("the database answers");
    findings
}

fn has(findings: &[Finding], kind: F, table: &str, row: bool) -> bool {
    findings.iter().any(|finding| {
        finding.kind == kind
            && finding
                .place
                .is_some_and(|place| place.table == table && place.id.is_some() == row)
    })
}

const DELETED: &str = "DELETE FROM entries WHERE kind = 'admin' AND seq = 2";

async fn check_stray_numbers(engine: &str) {
    for seq in [i64::MAX, i64::MAX - 1, 1_000_000_000, -1] {
        for chain in [access(), admin()] {
            let Some(world) = World::new(engine).await else { return };
            let stream = chain.stream.as_str();
            world
                .sql(&format!(
                    "INSERT INTO entries (chain_id, seq, hash, bytes, openings, kind, created_at) \
                     SELECT c.id, {seq}, e.hash, e.bytes, e.openings, e.kind, 1 \
                     FROM entries e, chains c WHERE c.stream = '{stream}' AND e.seq = 3 AND e.kind = 'admin'"
                ))
                .await;
            world.sql(DELETED).await;
            let findings = findings(&world).await;
            assert!(
                has(&findings, F::HashMismatch, "entries", true),
                "{engine}, {seq}: {findings:?}"
            );
            assert!(
                findings.iter().any(|finding| finding.kind == F::SeqGap),
                "{engine}, {seq}: {findings:?}"
            );
            let work = timeout(Duration::from_secs(60), world.work());
            assert!(
                work.await
                    .expect("it ends")
                    .iter()
                    .any(|reason| reason.starts_with("seq_gap"))
            );
            assert_eq!(world.start().await, "");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_a_row_with_an_impossible_number_is_found_on_sqlite() {
    check_stray_numbers("sqlite").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_a_row_with_an_impossible_number_is_found_on_postgres() {
    check_stray_numbers("postgres").await;
}

/// SQLite stores a value of any type in any column.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_a_row_with_a_value_of_a_wrong_type_hides_nothing() {
    for (sql, kind, table) in [
        (
            "UPDATE checkpoints SET era = x'ff' WHERE id = 1",
            F::CheckpointReadFailed,
            "checkpoints",
        ),
        (
            "UPDATE checkpoints SET note = x'ff' WHERE id = 1",
            F::CheckpointReadFailed,
            "checkpoints",
        ),
        (
            "INSERT INTO chains (stream, shard, fence, holder, leased_until, issued, size, head_hash, head_time) \
             VALUES ('access', x'00', 1, 'x', 0, 0, 5, x'00', 0)",
            F::RowReadFailed,
            "chains",
        ),
        (
            "INSERT INTO discontinuities (stream, shard, note) VALUES ('admin', x'00', x'ff')",
            F::RowReadFailed,
            "discontinuities",
        ),
    ] {
        let world = World::new("sqlite").await.expect("a world");
        world.sql(sql).await;
        world.sql(DELETED).await;
        let findings = findings(&world).await;
        assert!(has(&findings, kind, table, true), "{sql}: {findings:?}");
        assert!(
            findings.iter().any(|finding| finding.kind == F::SeqGap),
            "{sql}: {findings:?}"
        );
        let reasons = world.work().await;
        for kind in [kind, F::SeqGap] {
            assert!(
                reasons.iter().any(|reason| reason.starts_with(kind.as_str())),
                "{sql}: {reasons:?}"
            );
        }
        assert_eq!(world.start().await, "", "{sql}");
    }
}

async fn check_missing_tables(engine: &str) {
    for (sql, table) in [
        ("ALTER TABLE anchors RENAME TO anchors_", "anchors"),
        ("ALTER TABLE anchors DROP COLUMN bound", "anchors"),
        ("DROP TABLE hash_tiles", "hash_tiles"),
        ("DROP TABLE discontinuities", "discontinuities"),
        ("DROP TABLE checkpoints", "checkpoints"),
    ] {
        let Some(world) = World::new(engine).await else { return };
        world.sql(sql).await;
        world.sql(DELETED).await;
        let findings = findings(&world).await;
        let kind = if table == "checkpoints" {
            F::CheckpointReadFailed
        } else {
            F::RowReadFailed
        };
        assert!(has(&findings, kind, table, false), "{engine}, {sql}: {findings:?}");
        assert!(
            findings.iter().any(|finding| finding.kind == F::SeqGap),
            "{engine}, {sql}: {findings:?}"
        );
        let (_journal, worker) = world.worker();
        let mut verified = BTreeMap::new();
        assert_eq!(worker.pass(&mut verified).await.expect("answers"), Outcome::Incomplete);
        assert!(!worker.trust.alarm.is_raised(), "a second try comes first");
        assert!(!worker.trust.alarm.is_verified());
        assert_eq!(worker.pass(&mut verified).await.expect("answers"), Outcome::Incomplete);
        assert!(worker.trust.alarm.is_raised(), "{engine}, {sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_a_missing_table_is_a_finding_on_sqlite() {
    check_missing_tables("sqlite").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_a_missing_table_is_a_finding_on_postgres() {
    check_missing_tables("postgres").await;
}

/// A lock that is gone at the second try is no finding; one that stays is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_a_lock_that_stays_is_a_finding() {
    let Some(world) = World::new("postgres").await else {
        return;
    };
    let (_journal, worker) = world.worker();
    let mut verified = BTreeMap::new();
    let lock = async || {
        let lock = world.raw.begin().await.expect("begun");
        lock.execute_unprepared("LOCK TABLE anchors IN ACCESS EXCLUSIVE MODE")
            .await
            .expect("locked");
        lock
    };
    assert!(!worker.trust.alarm.is_verified(), "nothing was read yet");
    let held = lock().await;
    assert_eq!(worker.pass(&mut verified).await.expect("answers"), Outcome::Incomplete);
    held.rollback().await.expect("released");
    assert_eq!(worker.pass(&mut verified).await.expect("answers"), Outcome::Complete);
    assert!(!worker.trust.alarm.is_raised() && worker.trust.alarm.is_verified());
    let held = lock().await;
    for _ in 0..2 {
        assert_eq!(worker.pass(&mut verified).await.expect("answers"), Outcome::Incomplete);
    }
    assert!(worker.trust.alarm.is_raised());
    held.rollback().await.expect("released");
}

/// A number that no writer can have issued is not a loss of records.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_an_impossible_issued_number_is_no_loss() {
    let world = World::new("sqlite").await.expect("a world");
    world
        .sql("UPDATE chains SET issued = 9223372036854775807, leased_until = 0 WHERE stream = 'access'")
        .await;
    let findings = findings(&world).await;
    assert!(
        findings.iter().any(|finding| finding.kind == F::ColumnMismatch),
        "{findings:?}"
    );
    assert!(
        !findings.iter().any(|finding| finding.kind == F::JournalLost),
        "{findings:?}"
    );
}

/// Inserted chains neither delay the verification of the others nor pass without a finding.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_many_inserted_chains_are_a_finding() {
    let world = World::new("sqlite").await.expect("a world");
    world
        .sql(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) \
             INSERT INTO chains (stream, shard, fence, holder, leased_until, issued, size, head_hash, head_time) \
             SELECT 'access', randomblob(16), 1, 'x', 0, -1, 0, zeroblob(32), 0 FROM n",
        )
        .await;
    world.sql(DELETED).await;
    let findings = findings(&world).await;
    assert!(has(&findings, F::Fork, "chains", false), "{findings:?}");
    assert!(findings.iter().any(|finding| finding.kind == F::SeqGap), "{findings:?}");
}
