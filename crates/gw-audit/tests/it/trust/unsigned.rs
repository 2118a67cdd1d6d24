//! Records that were issued and never sealed, and entries that were sealed and never signed.

use super::{Database, entries, key, records};
use crate::world::at;
use gw_audit::verify::{Finding, FindingKind};
use gw_types::Timestamp;

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
