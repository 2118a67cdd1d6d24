//! Chance for unit tests.

use gw_types::Entropy;
use std::sync::atomic::{AtomicU8, Ordering};

/// Different bytes each time, the same in each run.
#[derive(Debug, Default)]
pub(crate) struct CountingEntropy(AtomicU8);

impl Entropy for CountingEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}
