//! Tests of power cuts and failing disks, which need access to the crate's internals.

pub(crate) mod disk;
mod faults;
mod points;
mod power;
mod salvage;

use crate::journal::{Journal, JournalConfig, Recovery};
use crate::{OpenError, Position, Unsealed};
use gw_audit::{AccessRecord, Chain, Content, Entry, Record, Stream};
use gw_types::{
    Seconds,
    testing::{ManualClock, SeededEntropy},
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The clock and the entropy of a journal. Different seeds give different salts and shard ids.
fn sources(seed: u64) -> (Arc<ManualClock>, Arc<SeededEntropy>) {
    (Arc::new(ManualClock::default()), Arc::new(SeededEntropy::new(seed)))
}

fn options(dir: &Path) -> JournalConfig {
    JournalConfig {
        dir: dir.to_owned(),
        holder: "a test".to_owned(),
        cluster: "test".to_owned(),
        checkpoint_key: [9; 32],
        max_bytes: 8 << 20,
        segment_bytes: 256 << 10,
        retain_bytes: 1 << 30,
        retain_for: Seconds(3600),
    }
}

fn open(dir: &Path) -> Result<(Journal, Recovery), OpenError> {
    // Salts and shard ids differ each time the journal is opened.
    let entries = std::fs::read_dir(dir).map_or(0, Iterator::count) as u64;
    let (clock, entropy) = sources(entries << 32);
    Journal::open(options(dir), clock, entropy)
}

/// A journal without a flush thread: records become durable only when the test syncs.
fn open_still(dir: &Path) -> Journal {
    let (mut journal, _) = open(dir).unwrap();
    journal.shared.signal.stop();
    journal.flusher.take().unwrap().join().unwrap();
    journal
}

fn record(n: u64) -> AccessRecord {
    AccessRecord {
        duration_us: n,
        ..AccessRecord::new("eth_call", 200)
    }
}

/// Appends records with these numbers; returns the position of the last one.
fn append(journal: &Journal, numbers: std::ops::Range<u64>) -> Position {
    let positions: Vec<_> = numbers.map(|n| journal.append(record(n)).unwrap()).collect();
    *positions.last().unwrap()
}

/// The numbers of the unsealed access records, in order. Checks the chain as well.
fn numbers(journal: &Journal) -> Vec<u64> {
    let mut chain = None;
    journal
        .unsealed(Stream::Access, 1000)
        .unwrap()
        .iter()
        .filter_map(|record| number(&mut chain, record))
        .collect()
}

fn number(chain: &mut Option<Chain>, record: &Unsealed) -> Option<u64> {
    let entry = Entry::decode(&record.bytes, &record.openings).unwrap();
    match chain {
        None => *chain = Some(Chain::replay(entry.header.chain, &record.bytes).unwrap().0),
        Some(chain) => {
            chain.accept(&record.bytes).unwrap();
        }
    }
    match entry.content {
        Content::Record(Record::Access(record)) => Some(record.duration_us),
        Content::Genesis(_) | Content::Record(_) => None,
    }
}

/// The directory of the current shard.
fn files(dir: &Path) -> PathBuf {
    let shard = std::fs::read_to_string(dir.join("shard")).unwrap();
    dir.join(shard)
}

/// The newest segment with a head.
fn segment(dir: &Path) -> PathBuf {
    let files = files(dir);
    let numbers = crate::segment::list(&files).unwrap();
    let has_head = |path: &PathBuf| crate::segment::read_head(&std::fs::read(path).unwrap()).is_some();
    numbers
        .into_iter()
        .rev()
        .map(|number| crate::segment::path(&files, number))
        .find(has_head)
        .unwrap()
}
