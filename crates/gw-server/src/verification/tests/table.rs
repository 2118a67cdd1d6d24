//! AU-18, RL2: the tamper table. Each row is an attack by an insider who controls only the audit database. It lists the
//! findings of start-up, of the worker and of `audit verify`: with the trusted heads of an instance, on another machine
//! with notes that were kept there, and without any key.

use super::{F, Known, Tamper, TrustedHeads, World};
use std::collections::BTreeSet;

/// A description; the manipulation; the error at start-up, if start-up checks for it; the finding of the worker and of
/// `audit verify` with the trusted heads; the finding of `audit verify` on another machine with the notes that were
/// kept there; and the finding without any key, heads or notes, which exists while anything is left to verify.
type Row = (&'static str, Tamper, Option<&'static str>, F, F, Option<F>);

/// Changes of one column in row 5 of the access chain, and the finding for each.
const COLUMNS: &[(&str, F)] = &[
    ("kind = 'security'", F::HashMismatch),
    ("created_at = 1", F::HashMismatch),
    ("org_id = NULL", F::HashMismatch),
    ("external_id = 'did:test:b'", F::HashMismatch),
    ("correlation_id = 'other'", F::HashMismatch),
    ("method = 'eth_chainId'", F::HashMismatch),
    ("status_code = 200", F::HashMismatch),
    ("denial_reason = 'banned'", F::HashMismatch),
    ("action = 'update'", F::HashMismatch),
    ("resource_type = 'user'", F::HashMismatch),
    ("resource_id = 'other'", F::HashMismatch),
    ("tx_hash = '0x00'", F::HashMismatch),
    ("outbox_id = 9000", F::HashMismatch),
    (
        "hash = (SELECT e.hash FROM entries e WHERE e.seq = 6 AND e.kind = 'access')",
        F::HashMismatch,
    ),
    (
        "bytes = (SELECT e.bytes FROM entries e WHERE e.seq = 6 AND e.kind = 'access')",
        F::HashMismatch,
    ),
    (
        "openings = (SELECT e.openings FROM entries e WHERE e.seq = 6 AND e.kind = 'access')",
        F::CommitmentMismatch,
    ),
    (
        "chain_id = (SELECT id FROM chains WHERE stream = 'admin'), seq = 5000",
        F::SeqGap,
    ),
    ("seq = 5000", F::SeqGap),
    ("id = 5000", F::Fork),
    ("id = 9223372036854775807", F::IdsExhausted),
];

/// Changes of columns in other tables than `entries`, and the finding for each.
const OTHER_TABLES: &[(&str, F)] = &[
    ("checkpoints SET size = 9 WHERE size = 8", F::ColumnMismatch),
    ("checkpoints SET era = 1 WHERE size = 8", F::ColumnMismatch),
    ("chains SET issued = 3 WHERE stream = 'access'", F::ColumnMismatch),
    // The writer is silent.
    (
        "chains SET issued = 5000, leased_until = 0 WHERE stream = 'access'",
        F::JournalLost,
    ),
    (
        "chains SET head_time = head_time + 1 WHERE stream = 'access'",
        F::ColumnMismatch,
    ),
    (
        "chains SET head_time = 9000000000000000000 WHERE stream = 'admin'",
        F::ColumnMismatch,
    ),
];

const TABLE: &[Row] = &[
    (
        "removed first row",
        Tamper::Sql(&["DELETE FROM entries WHERE kind = 'genesis' AND created_at > 0"]),
        None,
        F::SeqGap,
        F::SeqGap,
        Some(F::SeqGap),
    ),
    (
        "removed middle row",
        Tamper::Sql(&["DELETE FROM entries WHERE kind = 'access' AND seq = 9"]),
        None,
        F::SeqGap,
        F::SeqGap,
        Some(F::SeqGap),
    ),
    (
        "removed last row",
        Tamper::Sql(&["DELETE FROM entries WHERE kind = 'access' AND seq = 29"]),
        Some("is not as it was signed"),
        F::ChainTruncated,
        F::ChainTruncated,
        Some(F::ChainTruncated),
    ),
    (
        "inserted row",
        Tamper::Sql(&["INSERT"]),
        None,
        F::HashMismatch,
        F::HashMismatch,
        Some(F::HashMismatch),
    ),
    (
        "swapped rows",
        Tamper::Sql(&[
            "UPDATE entries SET seq = 5000 WHERE kind = 'access' AND seq = 5",
            "UPDATE entries SET seq = 5 WHERE kind = 'access' AND seq = 6",
            "UPDATE entries SET seq = 6 WHERE kind = 'access' AND seq = 5000",
        ]),
        None,
        F::HashMismatch,
        F::HashMismatch,
        Some(F::HashMismatch),
    ),
    (
        "permuted ids",
        Tamper::Sql(&[
            "UPDATE entries SET id = -1 WHERE kind = 'access' AND seq = 5",
            "UPDATE entries SET id = id - 1 WHERE kind = 'access' AND seq = 6",
            "UPDATE entries SET id = (SELECT id + 1 FROM entries WHERE kind = 'access' AND seq = 6) WHERE id = -1",
        ]),
        None,
        F::Fork,
        F::Fork,
        Some(F::Fork),
    ),
    (
        "re-hashed suffix",
        Tamper::Rewrite {
            from: 20,
            notes: 3,
            seed: None,
        },
        Some("is not as it was signed"),
        F::RootMismatch,
        F::RootMismatch,
        Some(F::CheckpointSignatureInvalid),
    ),
    (
        "re-hashed suffix, its note gone",
        Tamper::Rewrite {
            from: 20,
            notes: 2,
            seed: None,
        },
        Some("is not as it was signed"),
        F::AnchorMismatch,
        F::AnchorMismatch,
        Some(F::CheckpointSignatureInvalid),
    ),
    (
        "re-hashed history",
        Tamper::Rewrite {
            from: 1,
            notes: 3,
            seed: None,
        },
        Some("is not as it was signed"),
        F::RootMismatch,
        F::RootMismatch,
        Some(F::CheckpointSignatureInvalid),
    ),
    (
        "re-hashed history, signed with our own key",
        Tamper::Rewrite {
            from: 1,
            notes: 0,
            seed: Some(3),
        },
        Some("is not as it was signed"),
        F::AnchorMismatch,
        F::AnchorMismatch,
        Some(F::CheckpointSignatureInvalid),
    ),
    (
        "tail deleted",
        Tamper::Sql(&[
            "DELETE FROM entries WHERE kind = 'access' AND seq >= 16",
            "UPDATE chains SET size = 16, head_hash = (SELECT hash FROM entries WHERE kind = 'access' AND seq = 15) \
             WHERE stream = 'access'",
            "DELETE FROM checkpoints WHERE size > 16",
        ]),
        Some("entries are missing"),
        F::ChainTruncated,
        F::ChainTruncated,
        Some(F::CheckpointSignatureInvalid),
    ),
    (
        "tail deleted, its note left",
        Tamper::Sql(&[
            "DELETE FROM entries WHERE kind = 'access' AND seq >= 16",
            "UPDATE chains SET size = 16, head_hash = (SELECT hash FROM entries WHERE kind = 'access' AND seq = 15) \
             WHERE stream = 'access'",
        ]),
        Some("entries are missing"),
        F::ChainTruncated,
        F::ChainTruncated,
        Some(F::CheckpointSignatureInvalid),
    ),
    (
        "tail deleted and regrown, signed with our own key",
        Tamper::Rewrite {
            from: 16,
            notes: 2,
            seed: Some(3),
        },
        Some("is not as it was signed"),
        F::AnchorMismatch,
        F::AnchorMismatch,
        Some(F::CheckpointSignatureInvalid),
    ),
    (
        "whole shard dropped",
        Tamper::Sql(&[
            "DELETE FROM checkpoints WHERE chain_id = (SELECT id FROM chains WHERE stream = 'access')",
            "DELETE FROM entries WHERE chain_id = (SELECT id FROM chains WHERE stream = 'access')",
            "DELETE FROM chains WHERE stream = 'access'",
        ]),
        Some("missing as a whole"),
        F::ShardMissing,
        F::ShardMissing,
        Some(F::CheckpointSignatureInvalid),
    ),
    (
        "everything dropped",
        Tamper::Sql(&["DELETE FROM checkpoints", "DELETE FROM entries", "DELETE FROM chains"]),
        Some("missing as a whole"),
        F::ShardMissing,
        F::ShardMissing,
        None,
    ),
    (
        "all notes removed",
        Tamper::Sql(&["DELETE FROM checkpoints"]),
        None,
        F::CheckpointMissing,
        F::CheckpointMissing,
        Some(F::CheckpointMissing),
    ),
    (
        "forged note",
        Tamper::Sql(&["UPDATE checkpoints SET note = replace(note, 'access', 'admin')"]),
        None,
        F::CheckpointSignatureInvalid,
        F::CheckpointSignatureInvalid,
        Some(F::CheckpointSignatureInvalid),
    ),
    (
        "replayed older note",
        Tamper::Sql(&["INSERT INTO checkpoints (chain_id, size, note, era) \
                       SELECT chain_id, 9999, note, 0 FROM checkpoints WHERE size = 8"]),
        None,
        F::InconsistentCheckpoints,
        F::InconsistentCheckpoints,
        Some(F::CheckpointSignatureInvalid),
    ),
    (
        "swapped key",
        Tamper::Rewrite {
            from: 0,
            notes: 0,
            seed: Some(4),
        },
        Some("is not as it was signed"),
        F::CheckpointSignatureInvalid,
        F::CheckpointSignatureInvalid,
        Some(F::CheckpointSignatureInvalid),
    ),
    (
        "erased openings",
        Tamper::Erase,
        None,
        F::OpeningMissing,
        F::OpeningMissing,
        Some(F::OpeningMissing),
    ),
    (
        "admin tail cut",
        Tamper::Sql(&[
            "DELETE FROM entries WHERE kind = 'admin' AND seq >= 5",
            "UPDATE chains SET size = 5, head_hash = (SELECT hash FROM entries WHERE kind = 'admin' AND seq = 4) \
             WHERE stream = 'admin'",
            "DELETE FROM checkpoints WHERE chain_id = (SELECT id FROM chains WHERE stream = 'admin')",
        ]),
        Some("entries are missing"),
        F::ChainTruncated,
        F::ChainTruncated,
        Some(F::CheckpointSignatureInvalid),
    ),
    (
        "admin chain dropped",
        Tamper::Sql(&[
            "DELETE FROM checkpoints WHERE chain_id = (SELECT id FROM chains WHERE stream = 'admin')",
            "DELETE FROM entries WHERE chain_id = (SELECT id FROM chains WHERE stream = 'admin')",
            "DELETE FROM chains WHERE stream = 'admin'",
        ]),
        Some("missing as a whole"),
        F::ShardMissing,
        F::ShardMissing,
        Some(F::CheckpointSignatureInvalid),
    ),
];

/// Applies one row of the table and checks every finding.
async fn check_row(engine: &str, row: Row) {
    // On the heap, because of the size of its state.
    Box::pin(check_boxed_row(engine, row)).await;
}

async fn check_boxed_row(engine: &str, (title, tamper, start, trusted, elsewhere, keyless): Row) {
    let Some(world) = World::new(engine).await else { return };
    world.tamper(tamper).await;
    let start_error = world.start().await;
    match start {
        Some(expected) => {
            assert!(
                start_error.contains(expected),
                "{engine}, {title}, start: {start_error}"
            );
            assert!(
                start_error.contains("audit verify") && start_error.contains("audit re-anchor"),
                "{start_error}"
            );
        }
        None => assert_eq!(
            start_error, "",
            "{engine}, {title}: the worker finds this, not start-up"
        ),
    }
    let findings = world.verify(&world.heads, &[]).await;
    assert!(
        findings.contains(&trusted),
        "{engine}, {title}, verify with the trusted heads: {findings:?}"
    );
    let findings = world.verify(&TrustedHeads::default(), &world.notes).await;
    assert!(
        findings.contains(&elsewhere),
        "{engine}, {title}, verify on another machine: {findings:?}"
    );
    let findings = world.verify_known(Known::default()).await;
    match keyless {
        Some(expected) => {
            assert!(
                findings.contains(&expected),
                "{engine}, {title}, verify without a key: {findings:?}"
            );
        }
        None => assert_eq!(
            findings,
            BTreeSet::new(),
            "{engine}, {title}: nothing is left to compare"
        ),
    }
    let reasons = world.work().await;
    let expected = trusted.as_str();
    assert!(
        reasons.iter().any(|reason| reason.starts_with(expected)),
        "{engine}, {title}, worker: {reasons:?}"
    );
    let distinct: BTreeSet<_> = reasons.iter().collect();
    assert_eq!(
        distinct.len(),
        reasons.len(),
        "{engine}, {title}: each finding once: {reasons:?}"
    );
}

async fn check_table(engine: &str) {
    if let Some(world) = World::new(engine).await {
        assert_eq!(world.start().await, "");
        assert_eq!(
            world.verify(&world.heads, &world.notes).await,
            BTreeSet::new(),
            "an unchanged database has no finding"
        );
        assert_eq!(world.verify(&TrustedHeads::default(), &[]).await, BTreeSet::new());
        assert_eq!(world.work().await, Vec::<String>::new());
    }
    for row in TABLE {
        check_row(engine, *row).await;
    }
    for (change, kind) in OTHER_TABLES {
        let sql: &'static str = Box::leak(format!("UPDATE {change}").into_boxed_str());
        let statements: &'static [&'static str] = Box::leak(Box::new([sql]));
        check_row(
            engine,
            (*change, Tamper::Sql(statements), None, *kind, *kind, Some(*kind)),
        )
        .await;
    }
    let numbering: &'static [&'static str] = match engine {
        "sqlite" => &["UPDATE sqlite_sequence SET seq = 9223372036854775807 WHERE name = 'entries'"],
        _ => &["SELECT setval('entries_id_seq', 9223372036854775807)"],
    };
    check_row(
        engine,
        (
            "numbering used up",
            Tamper::Sql(numbering),
            None,
            F::IdsExhausted,
            F::IdsExhausted,
            Some(F::IdsExhausted),
        ),
    )
    .await;
    for (change, kind) in COLUMNS {
        let sql: &'static str = Box::leak(
            format!(
                "UPDATE entries SET {change} WHERE seq = 5 AND chain_id = (SELECT id FROM chains WHERE stream = \
                 'access')"
            )
            .into_boxed_str(),
        );
        let statements: &'static [&'static str] = Box::leak(Box::new([sql]));
        check_row(
            engine,
            (*change, Tamper::Sql(statements), None, *kind, *kind, Some(*kind)),
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_au18_every_kind_of_tampering_is_found_on_sqlite() {
    check_table("sqlite").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rl2_au18_every_kind_of_tampering_is_found_on_postgres() {
    check_table("postgres").await;
}
