//! The machine's time and chance: the one place where either enters the workspace.

use gw_store::{BootClock, Uptime as _};
use gw_types::{Clock, Entropy, Timestamp};
use std::time::{SystemTime, UNIX_EPOCH};

/// The local clock as it is, jumps included. Decisions go by the feed's clock, which never decreases (HD23 E-5), and a
/// chain's entries never go back in time either; a clock that remembered its highest reading would keep the instance an
/// hour ahead of the database, and closed, after a jump of an hour and back (RL11).
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(micros_since_1970())
    }
}

/// Time that passes evenly, whatever becomes of the local clock: for what lives for so long, not until then. It begins
/// with the local time at the start of the process.
#[derive(Clone, Copy, Debug)]
pub struct SteadyClock {
    /// What the local clock was ahead of the time since boot, in microseconds.
    offset: i64,
}

impl Default for SteadyClock {
    fn default() -> Self {
        Self {
            offset: micros_since_1970().saturating_sub(micros_since_boot()),
        }
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(micros_since_boot().saturating_add(self.offset))
    }
}

fn micros_since_boot() -> i64 {
    i64::try_from(BootClock.now().as_micros()).unwrap_or(i64::MAX)
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

    #[test]
    fn the_steady_clock_begins_with_the_local_time_and_never_goes_back() {
        let (local, steady) = (SystemClock, SteadyClock::default());
        assert!(local.now() > Timestamp::from_secs(1_700_000_000));
        let first = steady.now();
        assert!(first > Timestamp::from_secs(1_700_000_000));
        assert!((0..1000).map(|_| steady.now()).is_sorted());
    }

    #[test]
    fn chance_fills_the_buffer() {
        let (mut one, mut other) = ([0u8; 32], [0u8; 32]);
        SystemEntropy.fill(&mut one);
        SystemEntropy.fill(&mut other);
        assert_ne!(one, other);
    }
}
