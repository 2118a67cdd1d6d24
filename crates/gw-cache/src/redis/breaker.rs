//! Circuit breaker: stops calls to a server that does not answer, so that callers do not wait during an outage (spec/85
//! section 2).

use gw_types::{Clock, Seconds, Timestamp};
use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicU32, Ordering},
};

/// Failures in a row that open it.
const FAILURES: u32 = 5;
/// How long it stays open; then one call at a time tries the server.
const REST: Seconds = Seconds(10);

/// Open while the server is assumed to be unreachable.
#[derive(Debug)]
pub(super) struct Breaker {
    clock: Arc<dyn Clock>,
    failures: AtomicU32,
    open_until: AtomicI64,
}

impl Breaker {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            failures: AtomicU32::new(0),
            open_until: AtomicI64::new(i64::MIN),
        }
    }

    /// Whether a call may be made.
    pub(super) fn admits(&self) -> bool {
        if self.failures.load(Ordering::Relaxed) < FAILURES {
            return true;
        }
        let now = self.clock.now();
        let until = self.open_until.load(Ordering::Relaxed);
        // The caller that extends the time tries; the others wait for its result.
        let next = now.plus(REST).micros();
        now >= Timestamp::from_micros(until)
            && self
                .open_until
                .compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Records an answer, or a new connection.
    pub(super) fn close(&self) {
        if self.failures.swap(0, Ordering::Relaxed) >= FAILURES {
            tracing::info!("the shared cache answers again");
        }
    }

    /// Records a missing answer.
    pub(super) fn fail(&self) {
        let failures = self.failures.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if failures >= FAILURES {
            self.open_until
                .fetch_max(self.clock.now().plus(REST).micros(), Ordering::Relaxed);
        }
        if failures == FAILURES {
            tracing::warn!("the shared cache does not answer; logins wait for it");
        }
    }

    /// Whether it is closed.
    pub(super) fn is_closed(&self) -> bool {
        self.failures.load(Ordering::Relaxed) < FAILURES
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::testing::ManualClock;

    #[test]
    fn five_failures_open_it_for_ten_seconds_and_then_one_tries() {
        let clock = Arc::new(ManualClock::at(Timestamp::from_secs(1000)));
        let breaker = Breaker::new(clock.clone());
        for _ in 0..FAILURES {
            assert!(breaker.admits());
            breaker.fail();
        }
        assert!(!breaker.admits() && !breaker.is_closed());
        clock.set(Timestamp::from_secs(1009));
        assert!(!breaker.admits());
        clock.set(Timestamp::from_secs(1010));
        assert!(breaker.admits());
        assert!(!breaker.admits(), "one tries");
        breaker.fail();
        assert!(!breaker.admits());
        breaker.close();
        assert!(breaker.admits() && breaker.is_closed());
    }
}
