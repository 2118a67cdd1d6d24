//! The table of rule 18: what a verification finds with the database and the public key alone, and what it finds with a
//! note that was kept outside the database.

use super::{Database, checkpoint, continued, edge, entries, key, other_key, records};
use crate::world::{Counter, at, chain_id};
use gw_audit::{
    Chain, Checkpoint, EncodedRecord, Hash, SigningGuard, StoredEntry, Stream, TrustedHead, erased, verify::FindingKind,
};

/// The sizes at which the untampered chain was signed.
const SIGNED: [usize; 3] = [4, 8, 20];

/// Changes the database; gets the entries of the untampered chain too.
type Tamper = fn(&mut Database, &[StoredEntry]);

/// Removes a row, and moves the recorded end to the last one.
fn remove(database: &mut Database, at: usize) {
    database.rows.remove(at);
    database.set_head();
}

/// An insider rewrites the chain from one row on, with valid links, hashes, columns and end.
fn rehash(database: &mut Database, entries: &[StoredEntry], from: usize) {
    let forged = match from {
        0 => self::entries(&key(), &records(100, entries.len() as u64 - 1)),
        from => continued(&entries[..from], &records(100, (entries.len() - from) as u64)),
    };
    let notes = core::mem::take(&mut database.notes);
    *database = Database::new(&forged, &[], &key());
    database.notes = notes;
}

/// Rule 18. Each row has a name, the tampering, a finding from the database and the public key alone, and a finding
/// with a note that was kept outside. `None` if the database alone is not enough; then the note outside must be.
const TABLE: &[(&str, Tamper, Option<FindingKind>, FindingKind)] = {
    use FindingKind as F;
    &[
        (
            "changed bytes",
            |d, _| d.rows[5].bytes[40] ^= 1,
            Some(F::HashMismatch),
            F::HashMismatch,
        ),
        (
            "changed column",
            |d, _| d.rows[5].columns_agree = false,
            Some(F::HashMismatch),
            F::HashMismatch,
        ),
        (
            "changed hash",
            |d, _| d.rows[5].hash = Some(Hash::ZERO),
            Some(F::HashMismatch),
            F::HashMismatch,
        ),
        (
            "removed hash",
            |d, _| d.rows[5].hash = None,
            Some(F::NullEntryHash),
            F::NullEntryHash,
        ),
        ("removed first", |d, _| remove(d, 0), Some(F::SeqGap), F::SeqGap),
        ("removed middle", |d, _| remove(d, 9), Some(F::SeqGap), F::SeqGap),
        (
            "removed last",
            |d, _| remove(d, 19),
            Some(F::ChainTruncated),
            F::ChainTruncated,
        ),
        (
            "inserted",
            |d, _| {
                let mut row = d.rows[6].clone();
                row.id = 100;
                d.rows.insert(7, row);
            },
            Some(F::Fork),
            F::Fork,
        ),
        (
            "swapped",
            |d, _| {
                let (first, second) = (d.rows[6].clone(), d.rows[7].clone());
                (d.rows[6].bytes, d.rows[6].hash) = (second.bytes, second.hash);
                (d.rows[7].bytes, d.rows[7].hash) = (first.bytes, first.hash);
            },
            Some(F::HashMismatch),
            F::HashMismatch,
        ),
        (
            "permuted ids",
            |d, _| {
                let id = d.rows[6].id;
                d.rows[6].id = d.rows[7].id;
                d.rows[7].id = id;
            },
            Some(F::Fork),
            F::Fork,
        ),
        (
            "re-hashed suffix",
            |d, e| rehash(d, e, 10),
            Some(F::RootMismatch),
            F::RootMismatch,
        ),
        (
            "re-hashed suffix and its notes",
            |d, e| {
                rehash(d, e, 10);
                d.notes.pop();
            },
            Some(F::CheckpointMissing),
            F::AnchorMismatch,
        ),
        (
            "re-hashed history",
            |d, e| rehash(d, e, 0),
            Some(F::RootMismatch),
            F::RootMismatch,
        ),
        (
            "re-hashed history without notes",
            |d, e| {
                rehash(d, e, 0);
                d.notes.clear();
            },
            Some(F::CheckpointMissing),
            F::AnchorMismatch,
        ),
        (
            "tail deleted",
            |d, _| {
                d.rows.truncate(8);
                d.set_head();
            },
            Some(F::ChainTruncated),
            F::ChainTruncated,
        ),
        (
            "tail and its notes deleted",
            |d, _| {
                d.rows.truncate(8);
                d.notes.truncate(2);
                d.set_head();
            },
            None,
            F::ChainTruncated,
        ),
        (
            "tail deleted and regrown",
            |d, e| {
                let notes = d.notes[..2].to_vec();
                *d = Database::new(&continued(&e[..8], &records(50, 20)), &[28], &key());
                d.notes.splice(0..0, notes);
            },
            None,
            F::AnchorMismatch,
        ),
        (
            "all notes removed",
            |d, _| d.notes.clear(),
            Some(F::CheckpointMissing),
            F::CheckpointMissing,
        ),
        (
            "forged note",
            |d, e| d.notes[1] = checkpoint(&e[..7]).sign(&other_key()),
            Some(F::CheckpointSignatureInvalid),
            F::CheckpointSignatureInvalid,
        ),
        (
            "replayed note",
            |d, _| d.notes.push(d.notes[0].clone()),
            Some(F::InconsistentCheckpoints),
            F::InconsistentCheckpoints,
        ),
        (
            "swapped key",
            |d, e| {
                let entries = entries(&other_key(), &records(0, e.len() as u64 - 1));
                *d = Database::new(&entries, &SIGNED, &other_key());
            },
            Some(F::CheckpointSignatureInvalid),
            F::CheckpointSignatureInvalid,
        ),
        (
            "erased openings",
            |d, _| d.rows[5].openings = erased(&d.rows[5].openings).unwrap(),
            Some(F::OpeningMissing),
            F::OpeningMissing,
        ),
        (
            "changed openings",
            |d, _| d.rows[5].openings[20] ^= 1,
            Some(F::CommitmentMismatch),
            F::CommitmentMismatch,
        ),
    ]
};

/// RL2, AU-18: the findings of the table are among those reported. With the note kept outside, no tampering is clean.
#[test]
fn rl2_18_every_kind_of_tampering_is_found() {
    let entries = entries(&key(), &records(0, 19));
    let honest = Database::new(&entries, &SIGNED, &key());
    let now = at(3_600_000_000);
    let outside = [checkpoint(&entries)];
    assert_eq!(honest.verify(&outside, now).findings, [], "an unchanged chain");
    for (name, tamper, alone, with_note) in TABLE {
        let mut database = honest.clone();
        tamper(&mut database, &entries);
        let kinds = |anchors: &[Checkpoint]| -> Vec<FindingKind> {
            database
                .verify(anchors, now)
                .findings
                .iter()
                .map(|finding| finding.kind)
                .collect()
        };
        let findings = kinds(&[]);
        match alone {
            Some(kind) => assert!(findings.contains(kind), "{name}, the database alone: {findings:?}"),
            None => assert!(
                findings.is_empty(),
                "{name}: the table expects no finding from the database alone: {findings:?}"
            ),
        }
        let findings = kinds(&outside);
        assert!(
            findings.contains(with_note),
            "{name}, with a note kept outside: {findings:?}"
        );
        let mut guard = SigningGuard::from_trusted(&TrustedHead::new(None, &edge(&entries), 0)).unwrap();
        let appended = match database.rows.len() {
            20 => next_sealed(&database, &entries),
            _ => Vec::new(),
        };
        // An entry appended to a forged end does not continue the trusted head.
        for row in appended {
            assert!(
                guard.push(row.header.seq, row.hash, &row.bytes).is_err(),
                "{name}: the forged chain would be signed"
            );
        }
    }
}

/// The entry that the sealer would append to the database's end, if that end is not the trusted one.
fn next_sealed(database: &Database, entries: &[StoredEntry]) -> Vec<StoredEntry> {
    let head = database.head.unwrap();
    if head.hash == entries.last().unwrap().hash {
        return Vec::new();
    }
    let salts = Counter::default();
    let mut chain = Chain::resume(chain_id(Stream::Access), head, []);
    vec![
        chain
            .entry(EncodedRecord::new(&records(7, 1)[0], &salts), at(9_000_000))
            .unwrap(),
    ]
}
