//! Rule 18: the kinds of tampering with a stored chain that verification must detect.

use crate::world::{CLUSTER, access_records, at, chain, chain_id, full_access};
use gw_audit::verify::{ChainVerifier, Finding, FindingKind, Report, Row, TrustedKeys};
use gw_audit::{Checkpoint, CheckpointKey, Entry, Hash, Head, Record, StoredEntry, Stream, tree};
use proptest::prelude::*;

type StoredRow = (u64, Option<Hash>, Vec<u8>, Vec<u8>);

/// A stored chain with a checkpoint after every fourth entry and at the end.
#[derive(Clone)]
struct Stored {
    rows: Vec<StoredRow>,
    notes: Vec<String>,
    head: Option<Head>,
}

fn key() -> CheckpointKey {
    CheckpointKey::from_seed(&[3; 32])
}

fn stored(entries: &[StoredEntry]) -> Stored {
    let rows = entries
        .iter()
        .map(|e| (e.header.seq, Some(e.hash), e.bytes.clone(), e.openings.clone()))
        .collect();
    let mut stored = Stored {
        rows,
        notes: Vec::new(),
        head: None,
    };
    for size in (4..entries.len()).step_by(4).chain([entries.len()]) {
        stored.notes.push(note(entries, size));
    }
    let last = entries.last().unwrap();
    stored.head = Some(Head {
        size: entries.len() as u64,
        hash: last.hash,
        time: last.header.time,
    });
    stored
}

fn note(entries: &[StoredEntry], size: usize) -> String {
    let leaves: Vec<Hash> = entries[..size].iter().map(|entry| entry.hash).collect();
    let origin = chain_id(Stream::Access).origin(CLUSTER);
    Checkpoint::new(origin, size as u64, tree::root(&leaves)).sign(&key())
}

fn records(count: usize) -> Vec<Record> {
    (0..count)
        .map(|n| {
            let mut record = full_access();
            record.duration_us = n as u64;
            record.into()
        })
        .collect()
}

fn entries(count: usize) -> Vec<StoredEntry> {
    chain(Stream::Access, key().public().to_bytes(), &records(count))
}

fn verify(stored: &Stored) -> Report {
    let keys = [key().public()];
    let trust = TrustedKeys {
        cluster: CLUSTER,
        keys: &keys,
    };
    let mut verifier = ChainVerifier::new(chain_id(Stream::Access), trust, stored.notes.iter().map(String::as_str));
    for (seq, hash, bytes, openings) in &stored.rows {
        verifier.row(&Row::new(*seq, *hash, bytes, openings));
    }
    verifier.finish(stored.head)
}

fn kinds(stored: &Stored) -> Vec<FindingKind> {
    verify(stored).findings.iter().map(|finding| finding.kind).collect()
}

#[test]
fn an_untouched_chain_is_clean() {
    let entries = entries(10);
    let report = verify(&stored(&entries));
    assert_eq!(report.findings, []);
    assert_eq!(report.scanned, 11);
    assert_eq!(report.head.unwrap().hash, entries[10].hash);
}

#[test]
fn rule_18_a_changed_row_is_reported_with_both_hashes() {
    let mut stored = stored(&entries(10));
    let at = stored.rows[5]
        .2
        .windows(8)
        .position(|window| window == b"eth_call")
        .unwrap();
    stored.rows[5].2[at..at + 8].copy_from_slice(b"eth_gall");
    let first = verify(&stored).findings[0];
    let expected = tree::leaf(&stored.rows[5].2);
    assert_eq!(
        first,
        Finding {
            kind: FindingKind::HashMismatch,
            seq: Some(5),
            time: Some(gw_audit::Header::read(&stored.rows[5].2).unwrap().0.time),
            stored: stored.rows[5].1,
            expected: Some(expected),
            place: None,
        }
    );
}

#[test]
fn rule_18_removed_rows_are_found_at_every_position() {
    for at in 0..10 {
        let mut stored = stored(&entries(10));
        stored.rows.remove(at);
        let findings = kinds(&stored);
        assert_eq!(findings[0], FindingKind::SeqGap, "row {at}");
        assert!(
            findings.contains(&FindingKind::OrgGap) == (at > 0),
            "row {at}: {findings:?}"
        );
    }
    let mut stored = stored(&entries(10));
    stored.rows.pop();
    assert_eq!(kinds(&stored), [FindingKind::ChainTruncated]);
    stored.head = None;
    assert_eq!(
        kinds(&stored),
        [FindingKind::ChainTruncated],
        "the checkpoint alone is enough"
    );
}

#[test]
fn rule_18_a_tail_deleted_and_grown_again_contradicts_the_signed_roots() {
    let honest = entries(10);
    let mut regrown = chain(Stream::Access, key().public().to_bytes(), &records(6));
    let mut tail = records(4);
    tail.reverse();
    regrown = [regrown, chain_after(&entries(6), &tail)].concat();
    let mut stored = stored(&regrown);
    stored.notes = self::stored(&honest).notes;
    assert_eq!(kinds(&stored), [FindingKind::RootMismatch, FindingKind::RootMismatch]);
}

/// Further entries at the end of a chain.
fn chain_after(entries: &[StoredEntry], records: &[Record]) -> Vec<StoredEntry> {
    let (mut chain, ..) = gw_audit::Chain::replay(chain_id(Stream::Access), &entries[0].bytes).unwrap();
    entries[1..]
        .iter()
        .for_each(|entry| assert!(chain.accept(&entry.bytes).is_ok()));
    let salts = crate::world::Counter::default();
    let encode = |record| gw_audit::EncodedRecord::new(record, &salts);
    records
        .iter()
        .map(|record| chain.entry(encode(record), at(1_000)).unwrap())
        .collect()
}

#[test]
fn rule_18_a_rewritten_history_and_a_rewritten_suffix_contradict_the_signed_roots() {
    for kept in [1, 5, 9] {
        let honest = entries(10);
        let mut forged_records = records(10 - (kept - 1));
        forged_records.rotate_left(1);
        let forged = [&honest[..kept], &chain_after(&honest[..kept], &forged_records)].concat();
        let mut stored = stored(&forged);
        stored.notes = self::stored(&honest).notes;
        let findings = kinds(&stored);
        assert!(
            !findings.is_empty() && findings.iter().all(|kind| *kind == FindingKind::RootMismatch),
            "{findings:?}"
        );
    }
}

#[test]
fn rule_18_inserted_swapped_doubled_and_forked_rows_are_found() {
    let honest = stored(&entries(10));
    let mut swapped = honest.clone();
    swapped.rows.swap(4, 5);
    let findings = kinds(&swapped);
    assert_eq!(findings[0], FindingKind::SeqGap);
    assert!(findings.contains(&FindingKind::SeqDuplicate));
    let mut renumbered = swapped.clone();
    (renumbered.rows[4].0, renumbered.rows[5].0) = (4, 5);
    assert!(kinds(&renumbered).contains(&FindingKind::HashMismatch));
    let mut doubled = honest.clone();
    doubled.rows.insert(5, honest.rows[4].clone());
    assert_eq!(kinds(&doubled), [FindingKind::SeqDuplicate]);
    let forged = &chain_after(&entries(4), &records(2)[1..])[0];
    let mut forked = honest.clone();
    forked
        .rows
        .insert(6, (5, Some(forged.hash), forged.bytes.clone(), forged.openings.clone()));
    assert_eq!(kinds(&forked), [FindingKind::Fork]);
    let mut inserted = honest;
    inserted
        .rows
        .push((11, Some(forged.hash), forged.bytes.clone(), forged.openings.clone()));
    assert!(kinds(&inserted).contains(&FindingKind::HashMismatch));
}

#[test]
fn rule_18_forged_replayed_and_foreign_checkpoints_are_found() {
    let entries = entries(10);
    let honest = stored(&entries);
    let mut replayed = honest.clone();
    replayed.notes.push(honest.notes[0].clone());
    assert_eq!(kinds(&replayed), [FindingKind::InconsistentCheckpoints]);
    let mut forged = honest.clone();
    forged.notes[1] = forged.notes[1].replace("\n8\n", "\n9\n");
    assert_eq!(kinds(&forged), [FindingKind::CheckpointSignatureInvalid]);
    let mut contradicting = honest.clone();
    let other_tail = chain_after(&entries[..9], &records(2));
    contradicting
        .notes
        .push(note(&[&entries[..9], &other_tail].concat(), 11));
    let findings = kinds(&contradicting);
    assert_eq!(findings, [FindingKind::InconsistentCheckpoints]);
}

/// Rule 18, "swapped key": chain and checkpoints are rewritten under another key.
#[test]
fn rule_18_a_swapped_key_is_found() {
    let other_key = CheckpointKey::from_seed(&[4; 32]);
    let entries = chain(Stream::Access, other_key.public().to_bytes(), &records(3));
    let mut stored = stored(&entries);
    let leaves: Vec<Hash> = entries.iter().map(|entry| entry.hash).collect();
    let origin = chain_id(Stream::Access).origin(CLUSTER);
    stored.notes = vec![Checkpoint::new(origin, 4, tree::root(&leaves)).sign(&other_key)];
    assert_eq!(
        kinds(&stored),
        [FindingKind::CheckpointSignatureInvalid; 2],
        "the note and the genesis"
    );
}

#[test]
fn rule_18_changed_columns_are_found() {
    let entries = entries(1);
    let mut columns = Entry::decode(&entries[1].bytes, &entries[1].openings).unwrap();
    let keys = [key().public()];
    let trust = TrustedKeys {
        cluster: CLUSTER,
        keys: &keys,
    };
    let verify = |columns: &Entry| {
        let mut verifier = ChainVerifier::new(chain_id(Stream::Access), trust, []);
        for (entry, columns) in entries.iter().zip([None, Some(columns)]) {
            let (seq, hash) = (entry.header.seq, Some(entry.hash));
            verifier.row(&Row {
                columns,
                ..Row::new(seq, hash, &entry.bytes, &entry.openings)
            });
        }
        verifier.finish(None).findings
    };
    assert_eq!(verify(&columns), []);
    if let gw_audit::Content::Record(Record::Access(record)) = &mut columns.content {
        record.status_code = 200;
    }
    assert_eq!(verify(&columns)[0].kind, FindingKind::HashMismatch);
}

#[test]
fn rule_18_a_row_without_hash_and_a_row_back_in_time_are_found() {
    let mut without_hash = stored(&entries(4));
    without_hash.rows[2].1 = None;
    assert_eq!(kinds(&without_hash), [FindingKind::NullEntryHash]);
    let base = entries(2);
    let (chain, ..) = gw_audit::Chain::replay(chain_id(Stream::Access), &base[0].bytes).unwrap();
    let head = Head {
        time: at(-1_000_000),
        ..chain.head()
    };
    let mut earlier = gw_audit::Chain::resume(chain.id(), head, chain.orgs());
    let salts = crate::world::Counter::default();
    let entry = earlier
        .entry(gw_audit::EncodedRecord::new(&records(1)[0], &salts), at(-900_000))
        .unwrap();
    assert_eq!(kinds(&stored(&[base[0].clone(), entry])), [FindingKind::TimeRegression]);
}

/// Rule 24: the hashes of pruned rows stay, so roots and proofs of the later rows still verify.
#[test]
fn rule_24_a_pruned_prefix_still_verifies() {
    let entries = entries(10);
    let honest = stored(&entries);
    let keys = [key().public()];
    let trust = TrustedKeys {
        cluster: CLUSTER,
        keys: &keys,
    };
    let prune = |hashes: &[Hash]| {
        let mut verifier = ChainVerifier::new(chain_id(Stream::Access), trust, honest.notes.iter().map(String::as_str));
        (0..).zip(hashes).for_each(|(seq, hash)| verifier.pruned(seq, *hash));
        let mut kinds = Vec::new();
        for (seq, hash, bytes, openings) in &honest.rows[hashes.len()..] {
            verifier.row(&Row::new(*seq, *hash, bytes, openings));
        }
        kinds.extend(verifier.finish(honest.head).findings.iter().map(|finding| finding.kind));
        kinds
    };
    let hashes: Vec<Hash> = entries[..6].iter().map(|entry| entry.hash).collect();
    assert_eq!(
        prune(&hashes),
        [],
        "the entries of an organization in the removed rows are unknown"
    );
    let mut forged = hashes;
    forged[2] = Hash::ZERO;
    assert!(prune(&forged).contains(&FindingKind::RootMismatch));
}

#[test]
fn rule_19_a_verification_resumes_where_the_last_one_ended() {
    let entries = entries(10);
    let keys = [key().public()];
    let trust = TrustedKeys {
        cluster: CLUSTER,
        keys: &keys,
    };
    let first = verify(&stored(&entries[..7]));
    let id = chain_id(Stream::Access);
    let chain = gw_audit::Chain::resume(id, first.head.unwrap(), first.orgs);
    let honest = stored(&entries);
    let mut verifier = ChainVerifier::resume(&chain, first.frontier, trust, honest.notes.iter().map(String::as_str));
    for (seq, hash, bytes, openings) in &honest.rows[7..] {
        verifier.row(&Row::new(*seq, *hash, bytes, openings));
    }
    let report = verifier.finish(honest.head);
    assert_eq!((report.findings, report.scanned), (Vec::new(), 4));
}

proptest! {
    /// Rule 18: a change of any stored byte is a finding.
    #[test]
    fn rule_18_every_single_byte_mutation_is_detected(
        records in access_records(),
        row in any::<prop::sample::Index>(),
        part in 0..4,
        at in any::<prop::sample::Index>(),
        flip in 1_u8..=255,
    ) {
        let mut stored = stored(&chain(Stream::Access, key().public().to_bytes(), &records));
        prop_assert_eq!(&verify(&stored).findings, &[]);
        let row = row.index(stored.rows.len());
        let (seq, hash, bytes, openings) = &mut stored.rows[row];
        match part {
            0 => *seq ^= u64::from(flip) << (8 * at.index(8)),
            1 => hash.as_mut().unwrap().0[at.index(32)] ^= flip,
            2 => { let at = at.index(bytes.len()); bytes[at] ^= flip; }
            _ if openings.is_empty() => openings.push(flip),
            _ => { let at = at.index(openings.len()); openings[at] ^= flip; }
        }
        prop_assert!(!verify(&stored).findings.is_empty());
    }
}
