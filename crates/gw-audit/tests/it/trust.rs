//! RL2: trusted heads outside the database, and the table of rule 18 with and without them.

use crate::world::{CLUSTER, at, chain, chain_id, full_access};
use gw_audit::verify::{ChainVerifier, Finding, FindingKind, Report, Row, TrustedKeys};
use gw_audit::{
    Action, AdminEntry, Chain, ChainEdge, ChainId, ChainList, Checkpoint, CheckpointKey, Discontinuity, EncodedRecord,
    Hash, Head, Record, ResourceType, SecurityEvent, SecurityKind, SigningGuard, StoreId, StoredChain, StoredEntry,
    Stream, TrustedHead, TrustedHeads, erased, outbox::gap_entry, tree,
};
use gw_types::Timestamp;

fn key() -> CheckpointKey {
    CheckpointKey::from_seed(&[3; 32])
}

fn other_key() -> CheckpointKey {
    CheckpointKey::from_seed(&[4; 32])
}

fn records(from: u64, count: u64) -> Vec<Record> {
    (from..from + count)
        .map(|n| {
            gw_audit::AccessRecord {
                duration_us: n,
                ..full_access()
            }
            .into()
        })
        .collect()
}

fn entries(key: &CheckpointKey, records: &[Record]) -> Vec<StoredEntry> {
    chain(Stream::Access, key.public().to_bytes(), records)
}

fn continued(before: &[StoredEntry], records: &[Record]) -> Vec<StoredEntry> {
    let id = chain_id(Stream::Access);
    let (mut chain, ..) = Chain::replay(id, &before[0].bytes).unwrap();
    before[1..]
        .iter()
        .for_each(|entry| assert!(chain.accept(&entry.bytes).is_ok()));
    let salts = crate::world::Counter::default();
    let more = records
        .iter()
        .map(|record| chain.entry(EncodedRecord::new(record, &salts), at(1_000_000)).unwrap());
    before.iter().cloned().chain(more.collect::<Vec<_>>()).collect()
}

fn checkpoint(entries: &[StoredEntry]) -> Checkpoint {
    let leaves: Vec<Hash> = entries.iter().map(|entry| entry.hash).collect();
    Checkpoint::new(
        chain_id(Stream::Access).origin(CLUSTER),
        entries.len() as u64,
        tree::root(&leaves),
    )
}

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

/// One chain in the database.
#[derive(Clone)]
struct Database {
    rows: Vec<StoredRow>,
    notes: Vec<String>,
    discontinuities: Vec<String>,
    head: Option<Head>,
}

impl Database {
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
            let time = gw_audit::Header::read(&row.bytes).unwrap().0.time;
            Head {
                size: row.seq + 1,
                hash: tree::leaf(&row.bytes),
                time,
            }
        });
    }

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

/// The checkpoint interval, one microsecond: every record of these chains is overdue.
const INTERVAL: i64 = 1;
const SIGNED: [usize; 3] = [4, 8, 20];

type Tamper = fn(&mut Database, &[StoredEntry]);

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
    let salts = crate::world::Counter::default();
    let mut chain = Chain::resume(chain_id(Stream::Access), head, []);
    vec![
        chain
            .entry(EncodedRecord::new(&records(7, 1)[0], &salts), at(9_000_000))
            .unwrap(),
    ]
}

fn stored(entries: &[StoredEntry], trusted: u64) -> StoredChain {
    let head = entries.last().map(|last| Head {
        size: last.header.seq + 1,
        hash: last.hash,
        time: last.header.time,
    });
    let at_trusted = entries
        .iter()
        .find(|entry| entry.header.seq + 1 == trusted)
        .map(|entry| entry.hash);
    StoredChain {
        chain: chain_id(Stream::Access),
        head,
        at_trusted,
    }
}

/// RL2, spec/85 section 3 step 4.
#[test]
fn rl2_a_start_compares_the_store_with_the_trusted_heads() {
    let entries = entries(&key(), &records(0, 19));
    let id = chain_id(Stream::Access);
    let mut heads = TrustedHeads::default();
    assert!(heads.advance(id, TrustedHead::new(None, &edge(&entries[..12]), 0)));
    assert!(
        !heads.advance(id, TrustedHead::new(None, &edge(&entries[..8]), 0)),
        "a head never goes back"
    );
    let kinds = |stored: &[StoredChain], restorable: u64| -> Vec<FindingKind> {
        heads
            .missing_from(stored, |_| restorable)
            .iter()
            .map(|(_, finding)| finding.kind)
            .collect()
    };
    assert_eq!(kinds(&[stored(&entries, 12)], 0), []);
    assert_eq!(kinds(&[stored(&entries[..12], 12)], 0), []);
    assert_eq!(kinds(&[stored(&entries[..11], 12)], 0), [FindingKind::ChainTruncated]);
    assert_eq!(
        kinds(&[stored(&entries[..11], 12)], 12),
        [],
        "the journal restores the missing entry"
    );
    assert_eq!(kinds(&[], 0), [FindingKind::ShardMissing]);
    let forged = continued(&entries[..6], &records(60, 14));
    assert_eq!(kinds(&[stored(&forged, 12)], 0), [FindingKind::AnchorMismatch]);
}

/// RL2: entries that only the journal knows are not needed for a start, but the signed ones below them are.
#[test]
fn rl2_a_start_needs_only_the_signed_entries() {
    let entries = entries(&key(), &records(0, 19));
    let forged = continued(&entries[..10], &records(60, 10));
    let id = chain_id(Stream::Access);
    let signed = TrustedHead::new(Some("note".to_owned()), &edge(&entries[..8]), 0);
    for (trusted, size) in [(None, 0), (Some(&signed), 8)] {
        let head = TrustedHead::unsigned(&edge(&entries[..12]), trusted);
        // A later edge of the journal extends the unsigned head, not the signed part.
        let later = TrustedHead::unsigned(&edge(&entries[..14]), Some(&head));
        assert_eq!((head.signed_part().size, later.signed_part().size), (size, size));
        let mut heads = TrustedHeads::default();
        assert!(heads.advance(id, head) && heads.advance(id, later));
        let text = serde_json::to_string(&heads).unwrap();
        let heads: TrustedHeads = serde_json::from_str(&text).unwrap();
        let missing = |entries: &[StoredEntry], trusted| heads.missing_from(&[stored(entries, trusted)], |_| 0).len();
        assert_eq!(missing(&forged, size), 0, "only unsigned entries were rewritten");
        assert_eq!(missing(&entries[..9], size), 0);
        if size > 0 {
            let forged = continued(&entries[..6], &records(60, 14));
            assert_eq!(missing(&forged, size), 1);
            assert_eq!(missing(&entries[..7], size), 1);
        }
    }
}

/// RL2: the sealer signs only a chain that continues the trusted head; entries that the journal restores are signed
/// again.
#[test]
fn rl2_only_a_chain_that_continues_the_trusted_head_is_signed() {
    let entries = entries(&key(), &records(0, 19));
    let origin = chain_id(Stream::Access).origin(CLUSTER);
    #[expect(clippy::result_large_err, reason = "it is that of the function under test")]
    let push = |guard: &mut SigningGuard, entry: &StoredEntry| guard.push(entry.header.seq, entry.hash, &entry.bytes);
    let trusted = || SigningGuard::from_trusted(&TrustedHead::new(None, &edge(&entries[..10]), 0)).unwrap();
    let mut guard = trusted();
    entries[10..].iter().for_each(|entry| push(&mut guard, entry).unwrap());
    assert_eq!(guard.checkpoint(&origin).unwrap(), checkpoint(&entries));
    let forged = continued(&entries[..6], &records(60, 14));
    assert_eq!(
        push(&mut trusted(), &forged[10]).unwrap_err().kind,
        FindingKind::AnchorMismatch
    );
    let mut short = trusted();
    short.rewind();
    entries[..7].iter().for_each(|entry| push(&mut short, entry).unwrap());
    assert_eq!(
        short.checkpoint(&origin).unwrap_err().kind,
        FindingKind::ChainTruncated,
        "shorter than the signed size"
    );
    let mut regrown = short.clone();
    let finding = forged[7..10].iter().find_map(|entry| push(&mut regrown, entry).err());
    assert!(finding.is_some(), "a tail that grew again differs from the signed one");
    entries[7..].iter().for_each(|entry| push(&mut short, entry).unwrap());
    assert_eq!(
        short.checkpoint(&origin).unwrap(),
        checkpoint(&entries),
        "the journal restored the tail"
    );
    let mut guard = SigningGuard::from_checkpoint(&checkpoint(&entries[..8]));
    entries[..8].iter().for_each(|entry| push(&mut guard, entry).unwrap());
    assert!(guard.checkpoint(&origin).is_ok());
    let mut guard = SigningGuard::from_checkpoint(&checkpoint(&entries[..8]));
    assert!(forged[..8].iter().any(|entry| push(&mut guard, entry).is_err()));
}

/// Rule 8: the signed list of chains.
#[test]
fn rl2_8_a_list_of_chains_is_signed_and_strict() {
    let (access, admin) = (chain_id(Stream::Access), chain_id(Stream::Admin));
    let entries = entries(&key(), &records(0, 4));
    let mut heads = TrustedHeads::default();
    heads.advance(access, TrustedHead::new(None, &edge(&entries), 0));
    heads.advance(admin, TrustedHead::new(None, &edge(&entries[..2]), 2));
    let note = heads.sign_list(CLUSTER, 77, &key());
    let opened = Checkpoint::open(&note, &[key().public()]).unwrap();
    let list = ChainList::read(&opened, CLUSTER).unwrap();
    let listed: Vec<_> = list
        .heads
        .iter()
        .map(|head| (head.origin.clone(), head.size, head.era()))
        .collect();
    assert_eq!(listed, [(access.origin(CLUSTER), 5, 0), (admin.origin(CLUSTER), 2, 2)]);
    assert_eq!((opened.size, opened.origin.as_str()), (77, "test/chains"));
    let mut shorter = opened.clone();
    shorter.extensions.pop();
    assert_eq!(ChainList::read(&shorter, CLUSTER), None, "the root is over all lines");
    assert_eq!(ChainList::read(&checkpoint(&entries), CLUSTER), None);
}

fn re_anchored(from: &[StoredEntry], to: &[StoredEntry], intact: u64) -> Discontinuity {
    let edge = edge(to);
    Discontinuity {
        chain: chain_id(Stream::Access),
        era: 1,
        from: (from.len() as u64, checkpoint(from).root),
        to: (edge.size(), edge.frontier().root()),
        peaks: edge.frontier().peaks().to_vec(),
        last: edge.last(),
        intact,
        issued: from.len() as u64,
        time: at(0),
        actor: "ops".to_owned(),
        reason: "restored from the backup of Monday".to_owned(),
    }
}

/// A verification that continues behind a re-anchoring accepts the notes of the new era, and refuses those of an
/// unknown one.
fn assert_resumed(grown: &[StoredEntry], earlier: &Report) {
    let head = earlier.head.expect("entries");
    let chain = Chain::resume(chain_id(Stream::Access), head, earlier.orgs.iter().copied());
    let longer = continued(grown, &records(90, 5));
    let keys = [key().public()];
    let trust = TrustedKeys {
        cluster: CLUSTER,
        keys: &keys,
    };
    for (era, expected) in [(1, vec![]), (2, vec![FindingKind::InconsistentCheckpoints])] {
        let note = checkpoint(&longer).in_era(era).sign(&key());
        let mut verifier = ChainVerifier::resume_report(&chain, earlier, trust, [note.as_str()]);
        for (seq, entry) in longer.iter().enumerate().skip(grown.len()) {
            verifier.row(&Row::new(seq as u64, Some(entry.hash), &entry.bytes, &entry.openings));
        }
        let last = longer.last().expect("entries");
        let report = verifier.finish(Some(Head {
            size: longer.len() as u64,
            hash: last.hash,
            time: last.header.time,
        }));
        let kinds: Vec<_> = report.findings.iter().map(|finding| finding.kind).collect();
        assert_eq!(kinds, expected, "era {era}");
    }
}

/// Rule 22: a re-anchored chain verifies, always lists its re-anchoring, and only what was decided is covered.
#[test]
fn rl2_22_a_re_anchored_chain_continues_and_its_gap_stays_listed() {
    let entries = entries(&key(), &records(0, 19));
    let restored = &entries[..10];
    let decision = re_anchored(&entries, restored, 8);
    let note = decision.sign(CLUSTER, &key());
    assert_eq!(
        Discontinuity::open(&note, CLUSTER, &[key().public()]),
        Ok(decision.clone())
    );
    assert!(Discontinuity::open(&note, CLUSTER, &[other_key().public()]).is_err());
    assert!(Discontinuity::open(&note.replace("Monday", "Sunday"), CLUSTER, &[key().public()]).is_err());

    let now = at(1_000_000);
    let grown = continued(restored, &records(70, 20));
    let mut database = Database::new(&grown, &[4, 8], &key());
    database.notes.push(checkpoint(&entries).sign(&key()));
    let outside = [checkpoint(&entries)];
    assert!(!database.verify(&outside, now).is_clean(), "not re-anchored yet");
    database.discontinuities.push(note.clone());
    database.notes.push(checkpoint(restored).in_era(1).sign(&key()));
    database.notes.push(checkpoint(&grown).in_era(1).sign(&key()));
    let report = database.verify(&outside, now);
    assert_eq!(report.findings, []);
    assert_eq!(report.discontinuities, std::slice::from_ref(&decision));
    assert_resumed(&grown, &report);
    let mut forged = database.clone();
    forged.rows[3].bytes[40] ^= 1;
    assert!(
        !forged.verify(&outside, now).is_clean(),
        "a change below the re-anchoring is not covered"
    );
    let mut cut = database.clone();
    cut.rows.truncate(20);
    cut.set_head();
    assert!(
        !cut.verify(&outside, now).is_clean(),
        "a truncation behind the re-anchoring is not covered"
    );
    let mut forged = database;
    forged.discontinuities[0] = decision.sign(CLUSTER, &other_key());
    assert!(!forged.verify(&outside, now).is_clean());

    let mut heads = TrustedHeads::default();
    let id: ChainId = chain_id(Stream::Access);
    heads.advance(id, TrustedHead::new(None, &edge(&entries), 0));
    assert!(heads.re_anchor(&note, &decision));
    assert_eq!(heads.head(id).map(|head| (head.size, head.era)), Some((10, 1)));
    assert!(
        !heads.re_anchor(&note, &decision),
        "a re-anchoring is applied only once"
    );
    let mut further = TrustedHeads::default();
    let longer = continued(&entries, &records(90, 3));
    further.advance(id, TrustedHead::new(None, &edge(&longer), 0));
    further.re_anchor(&note, &decision);
    assert_eq!(
        further.head(id).map(|head| head.size),
        Some(23),
        "an old re-anchoring does not replace a head signed after it"
    );
}

/// Rule 22: rows that were lost or changed in the middle of the chain are listed as authorized.
#[test]
fn rl2_22_missing_and_changed_rows_are_listed_as_authorized() {
    let entries = entries(&key(), &records(0, 19));
    let mut database = Database::new(&entries, &[4], &key());
    database.rows.remove(9);
    database.rows[12].columns_agree = false;
    let mut frontier = tree::Frontier::default();
    for seq in 0..20 {
        let row = database.rows.iter().find(|row| row.seq == seq);
        frontier.push(row.map_or(Hash::ZERO, |row| tree::leaf(&row.bytes)));
    }
    let decision = Discontinuity {
        to: (20, frontier.root()),
        peaks: frontier.peaks().to_vec(),
        ..re_anchored(&entries, &entries, 4)
    };
    database.discontinuities.push(decision.sign(CLUSTER, &key()));
    let report = database.verify(&[checkpoint(&entries)], at(1_000_000));
    assert_eq!(report.findings, []);
    let kinds: Vec<_> = report
        .authorized
        .iter()
        .map(|finding| (finding.kind, finding.seq))
        .collect();
    assert!(kinds.contains(&(FindingKind::SeqGap, Some(9))), "{kinds:?}");
    assert!(kinds.contains(&(FindingKind::HashMismatch, Some(13))), "{kinds:?}");
}

/// RL5, HD25.
#[test]
fn rl5_issued_numbers_that_were_never_sealed_are_reported() {
    let entries = entries(&key(), &records(0, 5));
    let database = Database::new(&entries, &[6], &key());
    let lost = |issued: u64| {
        let mut report = database.verify(&[], at(0));
        report.add_lost(issued);
        report.findings
    };
    assert_eq!(lost(6), []);
    assert_eq!(lost(9), [Finding::new(FindingKind::JournalLost, Some(6))]);
}

/// A running writer compares and signs the tail behind the last note, even if it is late. Without the writer, the tail
/// is a finding.
#[test]
fn rl2_a_tail_without_note_is_reported_when_its_writer_is_gone() {
    let entries = entries(&key(), &records(0, 5));
    let database = Database::new(&entries, &[4], &key());
    let findings = |now: Timestamp, is_gone: bool| {
        let mut report = database.verify(&[], at(0));
        assert_eq!(report.signed, 4);
        report.findings.clear();
        report.add_unsigned(60_000_000, now, is_gone);
        report
            .findings
            .iter()
            .map(|finding| (finding.kind, finding.seq))
            .collect::<Vec<_>>()
    };
    assert_eq!(findings(at(6_000_000_000), false), []);
    assert_eq!(findings(at(60_000_000), true), []);
    assert_eq!(
        findings(at(6_000_000_000), true),
        [(FindingKind::CheckpointMissing, Some(4))]
    );
}

/// A chain in its first minute and a chain whose writer stopped right after the start are clean without a note.
#[test]
fn rl2_a_fresh_chain_without_note_is_clean() {
    let entries = entries(&key(), &records(0, 5));
    let database = Database::new(&entries, &[], &key());
    let kinds = |interval: i64, now: Timestamp| {
        let mut report = database.verify(&[], at(0));
        report.findings.clear();
        report.add_unsigned(interval, now, false);
        report.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(60_000_000, at(60_000_000)), []);
    assert_eq!(kinds(60_000_000, at(600_000_000)), [FindingKind::CheckpointMissing]);
}

fn admin(store: u128, id: u64, fault: Option<gw_audit::OutboxFault>) -> Record {
    gw_audit::AdminEntry {
        action: gw_audit::Action::Create,
        actor_id: None,
        actor_external_id: None,
        ip_address: None,
        correlation_id: None,
        org_id: None,
        resource_type: gw_audit::ResourceType::User,
        resource_id: None,
        resource_name: None,
        old_value: None,
        new_value: None,
        store_id: Some(uuid::Uuid::from_u128(store).into()),
        outbox_id: Some(id),
        outbox_fault: fault,
    }
    .into()
}

/// RL3, RL9: the outbox rows of a policy store must have no gap, and a fault of a row is a finding.
#[test]
fn rl3_gaps_and_faults_of_outbox_rows_are_found() {
    let findings = |rows: &[(u128, u64)], fault: Option<usize>| {
        let fault = |n: usize| (fault == Some(n)).then_some(gw_audit::OutboxFault::Unauthenticated);
        let records: Vec<_> = rows
            .iter()
            .enumerate()
            .map(|(n, (store, id))| admin(*store, *id, fault(n)))
            .collect();
        let entries = chain(Stream::Admin, key().public().to_bytes(), &records);
        let keys = [key().public()];
        let mut verifier = ChainVerifier::new(
            chain_id(Stream::Admin),
            TrustedKeys {
                cluster: CLUSTER,
                keys: &keys,
            },
            [],
        );
        for entry in &entries {
            verifier.row(&Row::new(
                entry.header.seq,
                Some(entry.hash),
                &entry.bytes,
                &entry.openings,
            ));
        }
        verifier
            .finish(None)
            .findings
            .iter()
            .map(|finding| (finding.kind, finding.seq.unwrap()))
            .collect::<Vec<_>>()
    };
    assert_eq!(findings(&[(1, 5), (1, 6), (1, 7)], None), []);
    assert_eq!(findings(&[(1, 5), (1, 7)], None), [(FindingKind::OutboxGap, 2)]);
    assert_eq!(
        findings(&[(1, 5), (1, 7), (1, 6)], None),
        [],
        "a late row fills its gap"
    );
    assert_eq!(
        findings(&[(1, 5), (2, 1), (1, 6), (2, 2)], None),
        [],
        "each store has its own ids"
    );
    assert_eq!(findings(&[(1, 5), (1, 5)], None), [(FindingKind::OutboxFault, 2)]);
    assert_eq!(findings(&[(1, 5), (1, 6)], Some(1)), [(FindingKind::OutboxFault, 2)]);
}

/// RL9, HD24: entries and events about the outbox or the journal directory stay findings, regardless of later entries,
/// until the chain is re-anchored.
#[test]
fn rl9_entries_about_the_outbox_stay_findings_until_the_chain_is_re_anchored() {
    let store = StoreId(uuid::Uuid::from_u128(7));
    let row = |id: u64| AdminEntry {
        store_id: Some(store),
        outbox_id: Some(id),
        ..AdminEntry::new(Action::Create, ResourceType::User)
    };
    let admin = [row(1), gap_entry(store, &(2..=4), 3), row(5), row(6)].map(Record::from);
    let event = |reason: &'static str| SecurityEvent {
        reason: Some(reason.into()),
        ..SecurityEvent::new(SecurityKind::TamperDetected)
    };
    // The first and the last event only repeat a finding of a verification, so they are not findings themselves.
    let events = [
        "outbox_gap admin/0",
        "outbox_row:altered:2",
        "outbox_ids:lowered:0:3",
        "policy_store_rewound:1..4",
        "journal_rewound:access:3..5",
        "journal_copied:00000000-0000-0000-0000-000000000001",
        "outbox_gap:2..5",
    ];
    let security = events.map(|reason| Record::from(event(reason)));
    for (stream, records, expected) in [
        (Stream::Admin, admin.to_vec(), vec![(FindingKind::OutboxGap, 2)]),
        (
            Stream::Security,
            security.to_vec(),
            vec![
                (FindingKind::OutboxFault, 2),
                (FindingKind::OutboxFault, 3),
                (FindingKind::OutboxFault, 4),
                (FindingKind::JournalLost, 5),
                (FindingKind::Fork, 6),
            ],
        ),
    ] {
        let key = key();
        let entries = chain(stream, key.public().to_bytes(), &records);
        let leaves: Vec<Hash> = entries.iter().map(|entry| entry.hash).collect();
        let size = entries.len() as u64;
        let note = Checkpoint::new(chain_id(stream).origin(CLUSTER), size, tree::root(&leaves)).sign(&key);
        let frontier: tree::Frontier = leaves.iter().copied().collect();
        let re_anchored = Discontinuity {
            chain: chain_id(stream),
            era: 1,
            from: (size, tree::root(&leaves)),
            to: (size, tree::root(&leaves)),
            peaks: frontier.peaks().to_vec(),
            last: leaves.last().copied(),
            intact: size,
            issued: size,
            time: at(5),
            actor: "jane".to_owned(),
            reason: "looked into".to_owned(),
        };
        let verify = |discontinuities: &[String]| {
            let keys = [key.public()];
            let trust = TrustedKeys {
                cluster: CLUSTER,
                keys: &keys,
            };
            let discontinuities = discontinuities.iter().map(String::as_str);
            let notes = [note.as_str()];
            let mut verifier = ChainVerifier::with_discontinuities(chain_id(stream), trust, discontinuities, notes);
            for entry in &entries {
                verifier.row(&Row::new(
                    entry.header.seq,
                    Some(entry.hash),
                    &entry.bytes,
                    &entry.openings,
                ));
            }
            verifier.finish(None)
        };
        let kinds = |findings: &[Finding]| -> Vec<_> {
            findings
                .iter()
                .map(|finding| (finding.kind, finding.seq.unwrap()))
                .collect()
        };
        assert_eq!(kinds(&verify(&[]).findings), expected);
        let accepted = verify(&[re_anchored.sign(CLUSTER, &key)]);
        assert_eq!(
            (accepted.findings.len(), kinds(&accepted.authorized)),
            (0, expected),
            "{:?}",
            accepted.findings
        );
    }
}

/// Rule 19: the age of unsigned entries starts when they are seen first, and ends with a signature.
#[test]
fn the_age_of_unsigned_entries_starts_when_they_are_seen_first() {
    let chain: ChainId = chain_id(Stream::Access);
    let mut heads = TrustedHeads::default();
    assert!(heads.note_unsigned([(chain, 5)], at(10)));
    assert!(!heads.note_unsigned([(chain, 5)], at(20)));
    assert_eq!(heads.unsigned_since(chain, 5), Some(at(10)));
    assert_eq!(
        heads.unsigned_since(chain, 3),
        Some(at(10)),
        "signed notes were removed"
    );
    assert_eq!(heads.unsigned_since(chain, 6), None, "signed since");
    heads.note_unsigned([(chain, 3)], at(30));
    assert_eq!(heads.unsigned_since(chain, 5), Some(at(10)));
    let text = serde_json::to_string(&heads).expect("text");
    assert_eq!(serde_json::from_str::<TrustedHeads>(&text).expect("heads"), heads);
    heads.note_unsigned([(chain, 6)], at(40));
    assert_eq!(heads.unsigned_since(chain, 6), Some(at(40)));
    assert!(heads.note_unsigned([], at(50)));
    assert_eq!(heads.unsigned_since(chain, 6), None);
}
