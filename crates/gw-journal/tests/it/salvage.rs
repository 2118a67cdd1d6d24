//! RL5: the intact records of a damaged journal are moved to a new shard, losses are recorded, and nothing is deleted.

use crate::support::{open, open_with, options, record};
use gw_audit::{Content, Entry, Outcome, Record, SecurityKind, SendIntent, SendOutcome, Stream};
use gw_journal::{Findings, Journal, JournalConfig, OpenError, Salvage, Salvaged, StreamState};
use gw_types::{
    B256, Claims, OrgId, Timestamp,
    testing::{ManualClock, SeededEntropy},
};
use std::fs::OpenOptions;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn small(dir: &Path) -> JournalConfig {
    JournalConfig {
        segment_bytes: 256 << 10,
        ..options(dir)
    }
}

fn send(n: u8) -> SendIntent {
    SendIntent {
        hash: B256::repeat_byte(n),
        subject: None,
        org_id: OrgId::fixed(5),
        sender: None,
        nonce: 1,
        visible_to: Vec::new(),
        claims: Claims::NONE,
        creates: Vec::new(),
    }
}

/// Writes three thousand records in several segments, of which the first thousand entries are sealed, and three sends:
/// one sealed, one open, one with an outcome. Returns the directory of the shard.
fn written(dir: &Path) -> PathBuf {
    let (journal, _) = open_with(small(dir)).unwrap();
    journal.append(send(1)).unwrap();
    (0..2000).for_each(|n| assert!(journal.append(record(n)).is_ok()));
    journal.append(send(2)).unwrap();
    journal.append(send(3)).unwrap();
    let outcome = SendOutcome {
        hash: send(3).hash,
        org_id: OrgId::fixed(5),
        outcome: Outcome::Accepted,
        node_code: None,
    };
    journal.append(outcome).unwrap();
    (2000..3000).for_each(|n| assert!(journal.append(record(n)).is_ok()));
    journal.sync().unwrap();
    journal.unsealed(Stream::Access, 5000).unwrap();
    journal.mark_sealed(Stream::Access, 1000).unwrap();
    dir.join(journal.shard().to_string())
}

fn segments(files: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(files)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "segment"))
        .filter(|path| std::fs::read(path).unwrap().iter().any(|byte| *byte != 0))
        .collect();
    paths.sort();
    paths
}

fn spoil(path: &Path, offset: u64) {
    OpenOptions::new()
        .write(true)
        .open(path)
        .unwrap()
        .write_all_at(&[0xee; 40], offset)
        .unwrap();
}

fn assert_corrupt(dir: &Path) {
    let error = open_with(small(dir)).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
}

fn confirm(salvage: Salvage, dir: &Path) -> Salvaged {
    let clock = Arc::new(ManualClock::at(Timestamp::from_secs(1_700_000_500)));
    salvage
        .confirm(small(dir), clock, Arc::new(SeededEntropy::new(1 << 40)))
        .unwrap()
}

/// The numbers of the moved calls, and the reasons and counts of the recorded losses.
fn moved_calls(journal: &Journal) -> (Vec<u32>, Vec<(String, u64)>) {
    let content = |stream| {
        let entries = journal.unsealed(stream, 10_000).unwrap();
        entries
            .into_iter()
            .map(|entry| Entry::decode(&entry.bytes, &entry.openings).unwrap().content)
    };
    let calls = content(Stream::Access).filter_map(|content| match content {
        Content::Record(Record::Access(call)) => Some(call.method.strip_prefix("eth_call_")?.parse().unwrap()),
        _ => None,
    });
    let losses = content(Stream::Security).filter_map(|content| match content {
        Content::Record(Record::Security(event)) => {
            assert_eq!(event.kind, SecurityKind::JournalLost);
            Some((event.reason.unwrap().into_owned(), event.count.unwrap()))
        }
        _ => None,
    });
    (calls.collect(), losses.collect())
}

/// The numbers of the calls with these entry numbers. Entries 0 and 1 are the genesis and the first send; entries 2002
/// to 2004 are the other sends.
fn calls(seqs: Range<u64>) -> Vec<u32> {
    let numbers = seqs.filter(|seq| *seq > 1 && !(2002..=2004).contains(seq));
    numbers
        .map(|seq| u32::try_from(if seq > 2004 { seq - 5 } else { seq - 2 }).unwrap())
        .collect()
}

/// The findings of the one shard.
fn only(salvage: &Salvage) -> &Findings {
    let mut findings = salvage.findings();
    let first = findings.next().unwrap();
    assert!(findings.next().is_none() && salvage.leftovers().is_empty());
    first
}

fn access(salvage: &Salvage) -> &StreamState {
    only(salvage)
        .streams
        .iter()
        .find(|state| state.stream == Stream::Access)
        .unwrap()
}

/// Confirms a salvage and checks that all records that are not lost are moved, and that the damaged files are set
/// aside.
fn check_salvage(dir: &Path, salvage: Salvage, sealed: u64) {
    let state = access(&salvage).clone();
    let old_shard = only(&salvage).shard;
    assert_eq!(state.sealed, sealed);
    let files = std::fs::read_dir(dir.join(old_shard.to_string())).unwrap().count();
    let salvaged = confirm(salvage, dir);
    assert_eq!(salvaged.records, state.unsealed);
    let aside = dir.join(format!("{old_shard}.damaged-20231114T222140Z"));
    assert_eq!(salvaged.aside, std::slice::from_ref(&aside));
    assert!(
        std::fs::read_dir(&aside).unwrap().count() >= files,
        "nothing is deleted"
    );
    let (journal, recovery) = open_with(small(dir)).unwrap();
    assert_eq!((journal.shard(), recovery.torn), (salvaged.shard, 0));
    let (moved, losses) = moved_calls(&journal);
    let mut expected: Vec<u32> = calls(sealed..3005);
    let lost: Vec<u32> = state.lost.iter().cloned().flat_map(calls).collect();
    expected.retain(|call| !lost.contains(call));
    assert_eq!(moved, expected);
    let expected_losses = state.lost.iter().map(|range| {
        (
            format!("access:{}..{}", range.start, range.end),
            range.end - range.start,
        )
    });
    assert_eq!(losses, expected_losses.collect::<Vec<_>>());
    assert!(aside.is_dir(), "the next start does not change it");
    drop(journal);
    open_with(small(dir)).unwrap();
    assert!(aside.is_dir());
}

#[test]
fn rl5_damage_in_the_middle_loses_only_the_damaged_records() {
    let dir = tempfile::tempdir().unwrap();
    let files = written(dir.path());
    let damaged_path = &segments(&files)[2];
    spoil(damaged_path, 60_000);
    spoil(damaged_path, 160_000);
    assert_corrupt(dir.path());
    let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
    assert!(matches!(salvage.refusal(), Some(OpenError::Corrupt { .. })));
    let findings = only(&salvage);
    assert!(findings.header && findings.base);
    assert_eq!(findings.open_intents, 2);
    let damaged: Vec<_> = findings
        .segments
        .iter()
        .filter(|segment| segment.damaged_at.is_some())
        .collect();
    assert_eq!((damaged.len(), &damaged[0].path), (1, damaged_path));
    assert!(damaged[0].damaged_at.is_some_and(|at| (59_000..=60_000).contains(&at)));
    let state = access(&salvage);
    assert_eq!((state.missing.len(), state.lost.len()), (2, 2), "{state:?}");
    assert!(findings.lost() <= 4);
    check_salvage(dir.path(), salvage, 1000);
    assert_eq!(open(dir.path()).1.open_intents.len(), 2);
}

#[test]
fn rl5_damage_to_sealed_records_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let files = written(dir.path());
    spoil(&segments(&files)[0], 20_000);
    assert_corrupt(dir.path());
    let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
    assert_eq!((access(&salvage).missing.len(), only(&salvage).lost()), (1, 0));
    check_salvage(dir.path(), salvage, 1000);
}

#[test]
fn rl5_two_missing_segments_are_one_range() {
    let dir = tempfile::tempdir().unwrap();
    let files = written(dir.path());
    let paths = segments(&files);
    assert!(paths.len() >= 4, "{}", paths.len());
    std::fs::remove_file(&paths[1]).unwrap();
    std::fs::remove_file(&paths[2]).unwrap();
    assert_corrupt(dir.path());
    let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
    let state = access(&salvage);
    assert_eq!(state.lost.len(), 1);
    assert!(only(&salvage).lost() > 300);
    check_salvage(dir.path(), salvage, 1000);
}

/// Without the last segment, only the header shows that there were more records.
#[test]
fn rl5_a_missing_end_is_detected_by_the_header() {
    let dir = tempfile::tempdir().unwrap();
    let files = written(dir.path());
    std::fs::remove_file(segments(&files).last().unwrap()).unwrap();
    assert_corrupt(dir.path());
    let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
    assert_eq!(
        access(&salvage).lost.last().unwrap().end,
        3005,
        "the genesis and 3004 records"
    );
    check_salvage(dir.path(), salvage, 1000);
}

#[test]
fn rl5_without_the_header_all_intact_records_are_moved() {
    for remove in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let files = written(dir.path());
        if remove {
            std::fs::remove_file(files.join("header")).unwrap();
        } else {
            std::fs::write(files.join("header"), [0xee; 5000]).unwrap();
        }
        assert_corrupt(dir.path());
        let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
        assert!(!only(&salvage).header);
        assert_eq!((access(&salvage).unsealed, only(&salvage).lost()), (3004, 0));
        check_salvage(dir.path(), salvage, 0);
    }
}

#[test]
fn rl5_without_the_base_the_unsealed_records_are_moved() {
    let dir = tempfile::tempdir().unwrap();
    let files = written(dir.path());
    std::fs::remove_file(files.join("base")).unwrap();
    assert_corrupt(dir.path());
    let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
    assert!(!only(&salvage).base && only(&salvage).header);
    assert_eq!((access(&salvage).unsealed, only(&salvage).lost()), (2005, 0));
    check_salvage(dir.path(), salvage, 1000);
}

/// The files are found even without the file that names the shard.
#[test]
fn rl5_a_missing_shard_name_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path());
    std::fs::remove_file(dir.path().join("shard")).unwrap();
    assert_corrupt(dir.path());
    let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
    assert_eq!(only(&salvage).lost(), 0);
    check_salvage(dir.path(), salvage, 1000);
}

#[test]
fn rl5_a_directory_in_use_is_not_inspected() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, _) = open(dir.path());
    journal.append(record(1)).unwrap();
    let error = Salvage::inspect(dir.path(), "a test").unwrap_err();
    assert!(matches!(error, OpenError::Held { .. }), "{error}");
    drop(journal);
    let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
    assert!(salvage.refusal().is_none(), "there is nothing to salvage");
    assert_eq!(access(&salvage).unsealed, 1);
    drop(salvage);
    assert!(open_with(options(dir.path())).is_ok());
    assert!(Salvage::inspect(&dir.path().join("nowhere"), "a test").is_err());
    assert!(!dir.path().join("nowhere").exists());
}

/// A removed segment whose records are all sealed is no loss, and the error says so.
#[test]
fn rl5_a_missing_segment_without_unsealed_records_is_no_loss() {
    let dir = tempfile::tempdir().unwrap();
    let files = written(dir.path());
    let (journal, _) = open_with(small(dir.path())).unwrap();
    journal.unsealed(Stream::Access, 5000).unwrap();
    journal.mark_sealed(Stream::Access, 2000).unwrap();
    drop(journal);
    std::fs::remove_file(&segments(&files)[0]).unwrap();
    let error = open_with(small(dir.path())).unwrap_err();
    assert!(matches!(error, OpenError::SealedMissing { .. }), "{error}");
    let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
    assert_eq!(only(&salvage).lost(), 0);
}

/// RL5: a damaged file `start` keeps the service from starting, so it is damage that a salvage repairs.
#[test]
fn rl5_a_damaged_start_is_repaired() {
    for content in [&b"7"[..], b"", b"\xff\xfe 1"] {
        let dir = tempfile::tempdir().unwrap();
        let files = written(dir.path());
        std::fs::write(files.join("start"), content).unwrap();
        let (journal, _) = open_with(small(dir.path())).unwrap();
        assert!(matches!(journal.newest_start(), Err(OpenError::Corrupt { .. })));
        drop(journal);
        let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
        let refusal = salvage.refusal().unwrap().to_string();
        assert!(refusal.contains("newest start cannot be read"), "{refusal}");
        assert_eq!((access(&salvage).unsealed, only(&salvage).lost()), (2005, 0));
        check_salvage(dir.path(), salvage, 1000);
        let (journal, _) = open_with(small(dir.path())).unwrap();
        assert_eq!(journal.newest_start().unwrap(), None);
        journal.note_start().unwrap();
        drop(journal);
        let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
        assert!(salvage.refusal().is_none(), "{:?}", salvage.refusal());
    }
}

/// RL5: the directory names a shard that is not there. All shards that are there are named and saved, whatever their
/// directories are called, except for one that no record was ever written to alone.
#[test]
fn rl5_all_shards_of_a_directory_without_its_shard_are_saved() {
    let dir = tempfile::tempdir().unwrap();
    let files = written(dir.path());
    let other = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::default());
    let entropy = Arc::new(SeededEntropy::new(77 << 32));
    let (journal, _) = Journal::open(small(other.path()), clock, entropy).unwrap();
    (7000..7003).for_each(|n| assert!(journal.append(record(n)).is_ok()));
    journal.append(send(9)).unwrap();
    journal.sync().unwrap();
    let other_shard = journal.shard();
    drop(journal);
    let other_name = "00000000-0000-0000-0000-0000000000aa";
    std::fs::rename(other.path().join(other_shard.to_string()), dir.path().join(other_name)).unwrap();
    // An interrupted move, whose records are in the other shard.
    let unfinished = dir.path().join("00000000-0000-0000-0000-0000000000bb");
    std::fs::create_dir(&unfinished).unwrap();
    std::fs::write(unfinished.join("unfinished"), "").unwrap();
    let missing = "00000000-0000-0000-0000-0000000000cc";
    std::fs::write(dir.path().join("shard"), missing).unwrap();
    assert_corrupt(dir.path());

    let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
    assert!(salvage.refusal().unwrap().to_string().contains(missing));
    let findings: Vec<_> = salvage
        .findings()
        .map(|findings| (findings.shard, findings.lost()))
        .collect();
    assert!(
        findings.contains(&(other_shard, 0)) && findings.len() == 2,
        "{findings:?}"
    );
    assert_eq!(salvage.leftovers(), std::slice::from_ref(&unfinished));
    let salvaged = confirm(salvage, dir.path());
    assert_eq!(salvaged.records, 2005 + 4);
    assert_eq!(salvaged.aside.len(), 3, "{:?}", salvaged.aside);
    assert!(!files.exists());
    let (journal, recovery) = open_with(small(dir.path())).unwrap();
    let (mut moved, losses) = moved_calls(&journal);
    moved.sort_unstable();
    let expected: Vec<u32> = calls(1000..3005).into_iter().chain(7000..7003).collect();
    assert_eq!((moved, losses), (expected, Vec::new()));
    let mut open_sends: Vec<_> = recovery.open_intents.iter().map(|intent| intent.hash).collect();
    open_sends.sort_unstable();
    assert_eq!(open_sends, [send(1).hash, send(2).hash, send(9).hash]);
}

/// RL5: without any shard, the error says what to do instead of pointing to the salvage again.
#[test]
fn rl5_a_directory_without_any_shard_names_the_way_out() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("shard"), "00000000-0000-0000-0000-0000000000cc").unwrap();
    assert_corrupt(dir.path());
    let error = Salvage::inspect(dir.path(), "a test").unwrap_err().to_string();
    assert!(
        error.contains("bring the directory back, or remove this file"),
        "{error}"
    );
}
