use gw_audit::AccessRecord;
use gw_journal::{Journal, JournalConfig, OpenError, Recovery};
use gw_types::{
    Seconds,
    testing::{ManualClock, SeededEntropy},
};
use std::{path::Path, sync::Arc};

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
        Arc::new(ManualClock::default()),
        Arc::new(SeededEntropy::default()),
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
