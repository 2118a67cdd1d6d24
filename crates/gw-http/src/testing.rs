//! Time and chance for unit tests.

use gw_types::{Clock, Entropy, Seconds, Timestamp};
use std::sync::atomic::{AtomicI64, Ordering};

#[derive(Debug)]
pub(crate) struct ManualClock(AtomicI64);

impl ManualClock {
    pub(crate) fn new() -> Self {
        Self(AtomicI64::new(1_700_000_000_000_000))
    }

    pub(crate) fn advance(&self, span: Seconds) {
        self.0.fetch_add(i64::from(span.0) * 1_000_000, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

#[derive(Debug)]
pub(crate) struct FixedEntropy(pub u8);

impl Entropy for FixedEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(self.0);
    }
}
