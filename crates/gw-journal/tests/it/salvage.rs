//! RL5: what is whole in a damaged journal goes on in a new shard, what is lost is said, and nothing is deleted.

use crate::support::{Counting, TestClock, open, open_with, options, record};
use gw_audit::{Content, Entry, Outcome, Record, SecurityKind, SendIntent, SendOutcome, Stream};
use gw_journal::{Journal, OpenError, Options, Salvage, Salvaged, StreamState};
use gw_types::{B256, Claims, OrgId};
use std::fs::OpenOptions;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, atomic::AtomicI64};

fn small(dir: &Path) -> Options {
    Options {
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

/// Three thousand records over some segments, a thousand of them sealed, and two sends, one of them sealed; the
/// directory of the files.
fn written(dir: &Path) -> PathBuf {
    let (journal, _) = open_with(small(dir)).unwrap();
    journal.append(send(1)).unwrap();
    (0..2000).for_each(|n| assert!(journal.append(record(n)).is_ok()));
    journal.append(send(2)).unwrap();
    journal.append(send(3)).unwrap();
    let done = SendOutcome {
        hash: send(3).hash,
        org_id: OrgId::fixed(5),
        outcome: Outcome::Accepted,
        node_code: None,
    };
    journal.append(done).unwrap();
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

fn refused(dir: &Path) {
    let error = open_with(small(dir)).unwrap_err();
    assert!(matches!(error, OpenError::Corrupt { .. }), "{error}");
}

fn confirm(salvage: Salvage, dir: &Path) -> Salvaged {
    let clock = Arc::new(TestClock(AtomicI64::new(1_700_000_500)));
    salvage
        .confirm(small(dir), clock, Arc::new(Counting::from(1 << 40)))
        .unwrap()
}

/// The methods' numbers of what goes on, and what is noted as lost.
fn after(journal: &Journal) -> (Vec<u32>, Vec<(String, u64)>) {
    let content = |stream| {
        let entries = journal.unsealed(stream, 10_000).unwrap();
        entries
            .into_iter()
            .map(|one| Entry::decode(&one.bytes, &one.openings).unwrap().content)
    };
    let calls = content(Stream::Access).filter_map(|content| match content {
        Content::Record(Record::Access(call)) => Some(call.method.strip_prefix("eth_call_")?.parse().unwrap()),
        _ => None,
    });
    let notes = content(Stream::Security).filter_map(|content| match content {
        Content::Record(Record::Security(event)) => {
            assert_eq!(event.kind, SecurityKind::JournalLost);
            Some((event.reason.unwrap().into_owned(), event.count.unwrap()))
        }
        _ => None,
    });
    (calls.collect(), notes.collect())
}

/// The calls with these entry numbers: the genesis and the first send stand before them.
fn calls(seqs: Range<u64>) -> Vec<u32> {
    let numbers = seqs.filter(|seq| *seq > 1 && !(2002..=2004).contains(seq));
    numbers
        .map(|seq| u32::try_from(if seq > 2004 { seq - 5 } else { seq - 2 }).unwrap())
        .collect()
}

fn access(salvage: &Salvage) -> &StreamState {
    salvage
        .findings()
        .streams
        .iter()
        .find(|state| state.stream == Stream::Access)
        .unwrap()
}

/// Whatever was lost, the rest goes on, and the damaged files are where they were told to be.
fn goes_on(dir: &Path, salvage: Salvage, sealed: u64) {
    let state = access(&salvage).clone();
    let before = salvage.findings().shard.unwrap();
    assert_eq!(state.sealed, sealed);
    let damaged = std::fs::read_dir(dir.join(before.to_string())).unwrap().count();
    let salvaged = confirm(salvage, dir);
    assert_eq!(salvaged.records, state.unsealed);
    let aside = dir.join(format!("{before}.damaged-20231114T222140Z"));
    assert_eq!(salvaged.aside, std::slice::from_ref(&aside));
    assert!(
        std::fs::read_dir(&aside).unwrap().count() >= damaged,
        "nothing is deleted"
    );
    let (journal, recovery) = open_with(small(dir)).unwrap();
    assert_eq!((journal.shard(), recovery.torn), (salvaged.shard, 0));
    let (found, notes) = after(&journal);
    let mut expected: Vec<u32> = calls(sealed..3005);
    let lost: Vec<u32> = state.lost.iter().cloned().flat_map(calls).collect();
    expected.retain(|call| !lost.contains(call));
    assert_eq!(found, expected);
    let told = state.lost.iter().map(|range| {
        (
            format!("access:{}..{}", range.start, range.end),
            range.end - range.start,
        )
    });
    assert_eq!(notes, told.collect::<Vec<_>>());
    assert!(aside.is_dir(), "the next start leaves it alone");
    drop(journal);
    open_with(small(dir)).unwrap();
    assert!(aside.is_dir());
}

#[test]
fn rl5_a_damaged_middle_costs_what_it_hit() {
    let dir = tempfile::tempdir().unwrap();
    let files = written(dir.path());
    let hit = &segments(&files)[2];
    spoil(hit, 60_000);
    spoil(hit, 160_000);
    refused(dir.path());
    let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
    assert!(matches!(salvage.refusal(), Some(OpenError::Corrupt { .. })));
    let findings = salvage.findings();
    assert!(findings.header && findings.base);
    assert_eq!(findings.open_intents, 2);
    let damaged: Vec<_> = findings
        .segments
        .iter()
        .filter(|segment| segment.damaged_at.is_some())
        .collect();
    assert_eq!((damaged.len(), &damaged[0].path), (1, hit));
    assert!(damaged[0].damaged_at.is_some_and(|at| (59_000..=60_000).contains(&at)));
    let state = access(&salvage);
    assert_eq!((state.missing.len(), state.lost.len()), (2, 2), "{state:?}");
    assert!(findings.lost() <= 4);
    goes_on(dir.path(), salvage, 1000);
    assert_eq!(open(dir.path()).1.open_intents.len(), 2);
}

#[test]
fn rl5_damage_to_what_is_sealed_costs_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let files = written(dir.path());
    spoil(&segments(&files)[0], 20_000);
    refused(dir.path());
    let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
    assert_eq!((access(&salvage).missing.len(), salvage.findings().lost()), (1, 0));
    goes_on(dir.path(), salvage, 1000);
}

#[test]
fn rl5_two_missing_segments_are_one_range() {
    let dir = tempfile::tempdir().unwrap();
    let files = written(dir.path());
    let paths = segments(&files);
    assert!(paths.len() >= 4, "{}", paths.len());
    std::fs::remove_file(&paths[1]).unwrap();
    std::fs::remove_file(&paths[2]).unwrap();
    refused(dir.path());
    let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
    let state = access(&salvage);
    assert_eq!(state.lost.len(), 1);
    assert!(salvage.findings().lost() > 300);
    goes_on(dir.path(), salvage, 1000);
}

/// The last segment: only the header knows that there were more.
#[test]
fn rl5_a_missing_end_is_known_by_the_header() {
    let dir = tempfile::tempdir().unwrap();
    let files = written(dir.path());
    std::fs::remove_file(segments(&files).last().unwrap()).unwrap();
    refused(dir.path());
    let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
    assert_eq!(
        access(&salvage).lost.last().unwrap().end,
        3005,
        "the genesis and 3004 records"
    );
    goes_on(dir.path(), salvage, 1000);
}

#[test]
fn rl5_without_the_header_all_whole_records_go_on() {
    for remove in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let files = written(dir.path());
        if remove {
            std::fs::remove_file(files.join("header")).unwrap();
        } else {
            std::fs::write(files.join("header"), [0xee; 5000]).unwrap();
        }
        refused(dir.path());
        let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
        assert!(!salvage.findings().header);
        assert_eq!((access(&salvage).unsealed, salvage.findings().lost()), (3004, 0));
        goes_on(dir.path(), salvage, 0);
    }
}

#[test]
fn rl5_without_the_base_the_rest_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let files = written(dir.path());
    std::fs::remove_file(files.join("base")).unwrap();
    refused(dir.path());
    let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
    assert!(!salvage.findings().base && salvage.findings().header);
    assert_eq!((access(&salvage).unsealed, salvage.findings().lost()), (2005, 0));
    goes_on(dir.path(), salvage, 1000);
}

/// Without the name of the shard the files are found all the same.
#[test]
fn rl5_a_missing_name_is_no_loss() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path());
    std::fs::remove_file(dir.path().join("shard")).unwrap();
    refused(dir.path());
    let salvage = Salvage::inspect(dir.path(), "a test").unwrap();
    assert_eq!(salvage.findings().lost(), 0);
    goes_on(dir.path(), salvage, 1000);
}

#[test]
fn rl5_a_directory_in_use_is_left_alone() {
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
