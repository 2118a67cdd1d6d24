//! Whoever can insert rows cannot make a reader run out of memory: a value over its limit is not transferred, its row
//! is a finding, and the rest is read.

use super::{F, World, admin, pass};
use crate::{
    verification::{ChainReport, Known, verify_all},
    workers::Outcome,
};
use gw_audit::verify::Finding;
use gw_store::{
    audit::{AccessFilter, LogRow},
    read::{Paging, Scope},
};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::timeout;

/// Bytes of an inserted value.
const LONG: usize = 30_000_000;

struct Insert {
    sql: &'static str,
    kind: F,
    table: &'static str,
}

/// `{text}` and `{blob}` stand for a long value, `{uuid}` for a new one, `{n}` for the numbers 1 to 4.
const INSERTS: [Insert; 6] = [
    Insert {
        sql: "INSERT INTO discontinuities (stream, shard, note) SELECT 'admin', {uuid}, {text} FROM {n}",
        kind: F::RowReadFailed,
        table: "discontinuities",
    },
    Insert {
        sql: "INSERT INTO checkpoints (chain_id, size, note, era) SELECT c.id, 1000 + i, {text}, 0 FROM chains c, {n}",
        kind: F::CheckpointReadFailed,
        table: "checkpoints",
    },
    Insert {
        sql: "INSERT INTO anchors (chain_id, size, bytes, note, checkpoint_size, reason, bound, first_seq, lowest_id, \
              highest_id, created_at, logged) SELECT c.id, i, {blob}, {text}, 5, 'ttl', '1h', 0, 1, 5, 0, TRUE \
              FROM chains c, {n}",
        kind: F::RowReadFailed,
        table: "anchors",
    },
    Insert {
        sql: "INSERT INTO chains (stream, shard, fence, holder, leased_until, issued, size, head_hash, head_time) \
              SELECT 'access', {uuid}, 1, {text}, 0, -1, 0, {blob}, 0 FROM {n}",
        kind: F::RowReadFailed,
        table: "chains",
    },
    Insert {
        sql: "UPDATE entries SET openings = {blob} WHERE seq IN (2, 3)",
        kind: F::HashMismatch,
        table: "entries",
    },
    Insert {
        sql: "UPDATE entries SET bytes = {blob}, method = {text} WHERE seq IN (2, 3)",
        kind: F::HashMismatch,
        table: "entries",
    },
];

fn statement(engine: &str, sql: &str) -> String {
    let numbers = "(SELECT 1 AS i UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4) n";
    let (text, blob, uuid) = match engine {
        "sqlite" => (
            format!("replace(hex(zeroblob({})), '0', 'x')", LONG / 2),
            format!("zeroblob({LONG})"),
            "randomblob(16)",
        ),
        _ => (
            format!("repeat('x', {LONG})"),
            format!("convert_to(repeat('x', {LONG}), 'UTF8')"),
            "gen_random_uuid()",
        ),
    };
    sql.replace("{text}", &text)
        .replace("{blob}", &blob)
        .replace("{uuid}", uuid)
        .replace("{n}", numbers)
}

async fn findings(world: &World) -> Vec<Finding> {
    let known = Known {
        keys: vec![super::key().public()],
        heads: world.heads.clone(),
        ..Known::default()
    };
    let (pass, mut findings) = (pass(), Vec::new());
    let collect = |report: ChainReport| findings.extend(report.report.findings);
    timeout(
        Duration::from_secs(120),
        verify_all(&world.audit, &known, &pass, &BTreeMap::new(), |_| true, collect),
    )
    .await
    .expect("it ends")
    .expect("the database answers");
    findings
}

async fn check_oversized_rows(engine: &str) {
    for Insert { sql, kind, table } in INSERTS {
        let Some(world) = World::new(engine).await else { return };
        world.sql(&statement(engine, sql)).await;
        world.sql("DELETE FROM entries WHERE kind = 'admin' AND seq = 5").await;
        let findings = findings(&world).await;
        assert!(
            findings.iter().any(|finding| finding.kind == kind
                && (kind == F::HashMismatch
                    || finding
                        .place
                        .is_some_and(|place| place.table == table && place.id.is_some()))),
            "{engine}, {sql}: {findings:?}"
        );
        assert!(
            findings
                .iter()
                .any(|finding| finding.kind == F::SeqGap && finding.seq == Some(5)),
            "the rest is verified: {engine}, {sql}: {findings:?}"
        );
        let rows = world.audit.rows(admin(), 0, 100).await.expect("readable");
        assert!(
            rows.iter().all(|row| row.bytes.len() + row.openings.len() < 1 << 20),
            "{engine}, {sql}: no long value is transferred"
        );
        let page = Paging { limit: 50, offset: 0 };
        let logs = world
            .audit
            .list_access_logs(&AccessFilter::all(Scope::All), page)
            .await
            .expect("listed");
        assert!(
            logs.rows.iter().any(|row| matches!(row, LogRow::Entry(_))),
            "{engine}, {sql}"
        );
        let (_journal, worker) = world.worker();
        let mut verified = BTreeMap::new();
        for _ in 0..2 {
            let outcome = worker.pass(&mut verified).await.expect("answers");
            assert!(matches!(outcome, Outcome::Complete | Outcome::Incomplete));
        }
        assert!(worker.trust.alarm.is_raised(), "{engine}, {sql}");
        assert_eq!(world.start().await, "", "{engine}, {sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_a_value_over_its_limit_is_not_read_on_sqlite() {
    check_oversized_rows("sqlite").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_a_value_over_its_limit_is_not_read_on_postgres() {
    check_oversized_rows("postgres").await;
}
