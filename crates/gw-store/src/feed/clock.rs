//! The time of decisions (HD23 E-5).

use gw_types::{Clock, Timestamp};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

/// The later of our clock and the database's, never decreasing; clones share what was seen.
#[derive(Clone, Debug)]
pub struct FeedClock {
    seen: Arc<Seen>,
}

#[derive(Debug)]
struct Seen {
    local: Arc<dyn Clock>,
    /// How far the database is ahead of us, in microseconds; never negative.
    ahead: AtomicI64,
    /// The latest time given out.
    latest: AtomicI64,
}

impl FeedClock {
    pub(super) fn new(local: Arc<dyn Clock>) -> Self {
        let seen = Seen { local, ahead: AtomicI64::new(0), latest: AtomicI64::new(i64::MIN) };
        Self { seen: Arc::new(seen) }
    }

    /// Takes note of the database's time, told by a query that took `waited`; how far apart the clocks are at least.
    pub(super) fn observe(&self, database: Option<Timestamp>, waited: Duration) -> Duration {
        let Some(database) = database else { return Duration::ZERO };
        let local = self.seen.local.now().micros();
        let waited = i64::try_from(waited.as_micros()).unwrap_or(i64::MAX);
        // The answer was made at some moment of the wait: both bounds of the distance are known, not the distance.
        let ahead_at_least = database.micros().saturating_sub(local);
        let behind_at_least = local.saturating_sub(waited).saturating_sub(database.micros());
        self.seen.ahead.store(ahead_at_least.max(0), Ordering::Relaxed);
        Duration::from_micros(u64::try_from(ahead_at_least.max(behind_at_least)).unwrap_or(0))
    }
}

impl Clock for FeedClock {
    fn now(&self) -> Timestamp {
        let now = self.seen.local.now().micros().saturating_add(self.seen.ahead.load(Ordering::Relaxed));
        Timestamp::from_micros(self.seen.latest.fetch_max(now, Ordering::Relaxed).max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Wall(AtomicI64);

    impl Clock for Wall {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(self.0.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn hd23_e5_time_is_the_later_of_both_and_never_goes_back() {
        let wall = Arc::new(Wall(AtomicI64::new(10_000_000)));
        let clock = FeedClock::new(Arc::clone(&wall) as Arc<dyn Clock>);
        let at = |seconds| Some(Timestamp::from_secs(seconds));
        assert_eq!(clock.now(), Timestamp::from_secs(10));

        assert_eq!(clock.observe(at(13), Duration::ZERO), Duration::from_secs(3), "the database is ahead");
        assert_eq!(clock.now(), Timestamp::from_secs(13));

        wall.0.store(5_000_000, Ordering::Relaxed);
        assert_eq!(clock.observe(at(1), Duration::ZERO), Duration::from_secs(4), "we are ahead");
        assert_eq!(clock.now(), Timestamp::from_secs(13), "what was given out is not taken back");

        assert_eq!(clock.observe(at(1), Duration::from_secs(4)), Duration::ZERO, "a slow answer is no skew");
        assert_eq!(clock.observe(None, Duration::ZERO), Duration::ZERO, "sqlite has no clock of its own");
    }
}
