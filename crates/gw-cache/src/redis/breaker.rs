//! Stops asking a server that does not answer, so that an outage costs each caller nothing (spec/85 section 2).

use gw_types::{Clock, Seconds, Timestamp};
use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicU32, Ordering},
};

/// So many failures in a row open it.
const FAILURES: u32 = 5;
/// For so long; then one call at a time finds out.
const REST: Seconds = Seconds(10);

/// Open while the server is thought to be away.
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
        // The one who moves the end tries; the others wait for what it finds.
        let next = now.plus(REST).micros();
        now >= Timestamp::from_micros(until)
            && self
                .open_until
                .compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Notes an answer, or a new connection.
    pub(super) fn close(&self) {
        if self.failures.swap(0, Ordering::Relaxed) >= FAILURES {
            tracing::info!("the shared cache answers again");
        }
    }

    /// Notes that there was no answer.
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

    #[derive(Debug)]
    struct At(AtomicI64);

    impl Clock for At {
        fn now(&self) -> Timestamp {
            Timestamp::from_secs(self.0.load(Ordering::SeqCst))
        }
    }

    #[test]
    fn five_failures_open_it_for_ten_seconds_and_then_one_tries() {
        let clock = Arc::new(At(AtomicI64::new(1000)));
        let breaker = Breaker::new(clock.clone());
        for _ in 0..FAILURES {
            assert!(breaker.admits());
            breaker.fail();
        }
        assert!(!breaker.admits() && !breaker.is_closed());
        clock.0.store(1009, Ordering::SeqCst);
        assert!(!breaker.admits());
        clock.0.store(1010, Ordering::SeqCst);
        assert!(breaker.admits());
        assert!(!breaker.admits(), "one tries");
        breaker.fail();
        assert!(!breaker.admits());
        breaker.close();
        assert!(breaker.admits() && breaker.is_closed());
    }
}
