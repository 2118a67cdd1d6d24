//! RL2: trusted heads outside the database. This module holds the chain in a database that the tests tamper with.

mod heads;
mod outbox;
mod re_anchoring;
mod tampering;
mod unsigned;

use crate::world::{CLUSTER, Counter, at, chain, chain_id, full_access};
use gw_audit::{
    AccessRecord, Chain, ChainEdge, Checkpoint, CheckpointKey, EncodedRecord, Hash, Head, Header, Record, StoredEntry,
    Stream, tree,
    verify::{ChainVerifier, Report, Row, TrustedKeys},
};
use gw_types::Timestamp;

/// The checkpoint interval, one microsecond: every record of these chains is overdue.
const INTERVAL: i64 = 1;

/// The key that signs the notes of these chains.
fn key() -> CheckpointKey {
    CheckpointKey::from_seed(&[3; 32])
}

/// A key that no verification knows.
fn other_key() -> CheckpointKey {
    CheckpointKey::from_seed(&[4; 32])
}

/// Access records that differ in their duration.
fn records(from: u64, count: u64) -> Vec<Record> {
    (from..from + count)
        .map(|n| {
            AccessRecord {
                duration_us: n,
                ..full_access()
            }
            .into()
        })
        .collect()
}

/// The genesis of an access chain that names `key`, and these records.
fn entries(key: &CheckpointKey, records: &[Record]) -> Vec<StoredEntry> {
    chain(Stream::Access, key.public().to_bytes(), records)
}

/// The chain, continued by these records.
fn continued(before: &[StoredEntry], records: &[Record]) -> Vec<StoredEntry> {
    let id = chain_id(Stream::Access);
    let (mut chain, ..) = Chain::replay(id, &before[0].bytes).unwrap();
    before[1..]
        .iter()
        .for_each(|entry| assert!(chain.accept(&entry.bytes).is_ok()));
    let salts = Counter::default();
    let more = records
        .iter()
        .map(|record| chain.entry(EncodedRecord::new(record, &salts), at(1_000_000)).unwrap());
    before.iter().cloned().chain(more.collect::<Vec<_>>()).collect()
}

/// The checkpoint of a chain of these entries.
fn checkpoint(entries: &[StoredEntry]) -> Checkpoint {
    let leaves: Vec<Hash> = entries.iter().map(|entry| entry.hash).collect();
    Checkpoint::new(
        chain_id(Stream::Access).origin(CLUSTER),
        entries.len() as u64,
        tree::root(&leaves),
    )
}

/// The edge of a chain of these entries.
fn edge(entries: &[StoredEntry]) -> ChainEdge {
    let mut edge = ChainEdge::default();
    entries
        .iter()
        .for_each(|entry| edge.push(entry.header.seq, entry.hash, &entry.bytes).unwrap());
    edge
}

#[derive(Clone)]
struct StoredRow {
    id: i64,
    seq: u64,
    hash: Option<Hash>,
    bytes: Vec<u8>,
    openings: Vec<u8>,
    columns_agree: bool,
}

/// One chain in the database, with its signed notes and its recorded end.
#[derive(Clone)]
struct Database {
    rows: Vec<StoredRow>,
    notes: Vec<String>,
    discontinuities: Vec<String>,
    head: Option<Head>,
}

impl Database {
    /// A database of these entries, with a note of `key` for each size in `signed`.
    fn new(entries: &[StoredEntry], signed: &[usize], key: &CheckpointKey) -> Self {
        let rows = entries.iter().map(|entry| StoredRow {
            id: entry.header.seq as i64 + 1,
            seq: entry.header.seq,
            hash: Some(entry.hash),
            bytes: entry.bytes.clone(),
            openings: entry.openings.clone(),
            columns_agree: true,
        });
        let mut database = Self {
            rows: rows.collect(),
            notes: Vec::new(),
            discontinuities: Vec::new(),
            head: None,
        };
        database.notes = signed
            .iter()
            .map(|size| checkpoint(&entries[..*size]).sign(key))
            .collect();
        database.set_head();
        database
    }

    /// Sets the recorded end of the chain to the last row, as an attacker does.
    fn set_head(&mut self) {
        self.head = self.rows.last().map(|row| {
            let time = Header::read(&row.bytes).unwrap().0.time;
            Head {
                size: row.seq + 1,
                hash: tree::leaf(&row.bytes),
                time,
            }
        });
    }

    /// Verifies the chain. `anchors` are the checkpoints that were kept outside the database.
    fn verify(&self, anchors: &[Checkpoint], now: Timestamp) -> Report {
        let keys = [key().public()];
        let trust = TrustedKeys {
            cluster: CLUSTER,
            keys: &keys,
        };
        let (discontinuities, notes) = (self.discontinuities.iter(), self.notes.iter());
        let id = chain_id(Stream::Access);
        let mut verifier = ChainVerifier::with_discontinuities(
            id,
            trust,
            discontinuities.map(String::as_str),
            notes.map(String::as_str),
        );
        for anchor in anchors {
            verifier.anchor(anchor);
            verifier.expect_note(anchor);
        }
        for row in &self.rows {
            let columns_agree = row.columns_agree;
            let id = Some(row.id);
            verifier.row(&Row {
                id,
                columns_agree,
                ..Row::new(row.seq, row.hash, &row.bytes, &row.openings)
            });
        }
        let mut report = verifier.finish(self.head);
        report.add_unsigned(INTERVAL, now, false);
        report
    }
}
