//! The machine's time and chance: the one place where either enters the workspace.

use gw_types::{Clock, Entropy, Timestamp};
use std::{
    sync::atomic::{AtomicI64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};

/// The local clock, never decreasing (HD23 E-5). The feed raises it to the database's where that is later.
#[derive(Debug, Default)]
pub struct SystemClock {
    latest: AtomicI64,
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        self.not_before(micros_since_1970())
    }
}

impl SystemClock {
    fn not_before(&self, local: i64) -> Timestamp {
        let latest = self.latest.fetch_max(local, Ordering::Relaxed);
        Timestamp::from_micros(latest.max(local))
    }
}

#[expect(clippy::disallowed_methods, reason = "the one home of the ambient clock")]
fn micros_since_1970() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// The operating system's random source.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        #[expect(clippy::disallowed_methods, reason = "the one home of chance")]
        let filled = getrandom::fill(bytes);
        if filled.is_err() {
            // Going on would mean guessable tokens. No answer is better than such a one.
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HD23 E-5.
    #[test]
    fn the_clock_never_goes_back() {
        let clock = SystemClock::default();
        assert_eq!(clock.not_before(100), Timestamp::from_micros(100));
        assert_eq!(clock.not_before(70), Timestamp::from_micros(100));
        assert_eq!(clock.not_before(101), Timestamp::from_micros(101));
        assert!(clock.now() > Timestamp::from_secs(1_700_000_000));
    }

    #[test]
    fn chance_fills_the_buffer() {
        let (mut one, mut other) = ([0u8; 32], [0u8; 32]);
        SystemEntropy.fill(&mut one);
        SystemEntropy.fill(&mut other);
        assert_ne!(one, other);
    }
}
