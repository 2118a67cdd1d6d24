//! The operating system's clocks and random source. No other module of the workspace reads them.

use gw_store::{BootClock, Uptime as _};
use gw_types::{Clock, Entropy, Timestamp};
use std::time::{SystemTime, UNIX_EPOCH};

/// The local wall clock, including its jumps.
///
/// This clock may go back. Decisions use the feed's clock, which never decreases (HD23 E-5), and the times of a chain's
/// entries never decrease either. If this clock kept its highest reading, a jump of one hour forward and back would
/// leave the instance one hour ahead of the database, and therefore closed (RL11).
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(micros_since_1970())
    }
}

/// A clock that jumps of the local clock do not affect. Use it for lifetimes, not for points in time. It starts at the
/// local time of the process start and then follows the time since boot.
#[derive(Clone, Copy, Debug)]
pub struct SteadyClock {
    /// Local time minus time since boot at the process start, in microseconds.
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

#[expect(clippy::disallowed_methods, reason = "the only place that reads the system clock")]
fn micros_since_1970() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX)
}

/// This process, as other processes on its database show it.
pub(crate) fn process_name() -> String {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    format!("process {} on {host}", std::process::id())
}

/// The operating system's random source.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        #[expect(clippy::disallowed_methods, reason = "the only place that reads the random source")]
        let filled = getrandom::fill(bytes);
        if filled.is_err() {
            // Without randomness, tokens would be guessable. It is safer to end the process.
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steady_clock_starts_at_the_local_time_and_never_decreases() {
        let (local, steady) = (SystemClock, SteadyClock::default());
        assert!(local.now() > Timestamp::from_secs(1_700_000_000));
        let first = steady.now();
        assert!(first > Timestamp::from_secs(1_700_000_000));
        assert!((0..1000).map(|_| steady.now()).is_sorted());
    }

    #[test]
    fn entropy_fills_the_buffer() {
        let (mut first, mut second) = ([0u8; 32], [0u8; 32]);
        SystemEntropy.fill(&mut first);
        SystemEntropy.fill(&mut second);
        assert_ne!(first, second);
    }
}
