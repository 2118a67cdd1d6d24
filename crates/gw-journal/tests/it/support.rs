use gw_audit::AccessRecord;
use gw_journal::{Journal, JournalConfig, OpenError, Recovery};
use gw_types::{Clock, Entropy, Seconds, Timestamp};
use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
};

/// A clock with a fixed time that a test can change.
#[derive(Debug)]
pub(crate) struct TestClock(pub(crate) AtomicI64);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_secs(self.0.load(Ordering::Relaxed))
    }
}

#[derive(Debug, Default)]
pub(crate) struct Counting(AtomicU64);

impl From<u64> for Counting {
    fn from(first: u64) -> Self {
        Self(AtomicU64::new(first))
    }
}

impl Entropy for Counting {
    fn fill(&self, bytes: &mut [u8]) {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        bytes
            .iter_mut()
            .zip(n.to_le_bytes().iter().cycle())
            .for_each(|(byte, value)| *byte = *value);
    }
}

pub(crate) fn options(dir: &Path) -> JournalConfig {
    JournalConfig {
        dir: dir.to_owned(),
        holder: "the test".to_owned(),
        cluster: "test".to_owned(),
        checkpoint_key: [7; 32],
        max_bytes: 64 << 20,
        segment_bytes: 1 << 20,
        retain_bytes: 64 << 20,
        retain_for: Seconds(3600),
    }
}

pub(crate) fn open_with(options: JournalConfig) -> Result<(Journal, Recovery), OpenError> {
    Journal::open(
        options,
        Arc::new(TestClock(AtomicI64::new(1_700_000_000))),
        Arc::new(Counting::default()),
    )
}

pub(crate) fn open(dir: &Path) -> (Journal, Recovery) {
    open_with(options(dir)).unwrap()
}

pub(crate) fn record(n: u32) -> AccessRecord {
    let mut record = AccessRecord::new(format!("eth_call_{n}"), 200);
    record.external_id = Some("did:test:somebody".parse().unwrap());
    record
}
