//! Rule 22: a re-anchored chain continues, and what the re-anchoring accepted stays listed.

use super::{Database, checkpoint, continued, edge, entries, key, other_key, records};
use crate::world::{CLUSTER, at, chain_id};
use gw_audit::{
    Chain, ChainId, Discontinuity, Hash, Head, StoredEntry, Stream, TrustedHead, TrustedHeads, tree,
    verify::{ChainVerifier, FindingKind, Report, Row, TrustedKeys},
};

/// The decision that the chain `to` replaces the chain `from`, whose first `intact` entries it kept.
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
