//! The time of decisions (HD23 E-5).

use gw_types::{Clock, Timestamp};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

/// The later of the local and the database's clock; clones share their state.
///
/// The time decreases in one case only: both clocks agree on a time that is further than the allowed skew behind the
/// last time returned. Then the returned time was wrong, and time continues from where both clocks are: a clock that
/// was an hour ahead for a moment must not keep decisions an hour ahead (RL11). [`ClockJump::Confirmed`] reports the
/// case.
#[derive(Clone, Debug)]
pub struct FeedClock {
    seen: Arc<ClockState>,
}

#[derive(Debug)]
struct ClockState {
    local: Arc<dyn Clock>,
    /// How far the database's clock is ahead of ours, in microseconds; never negative.
    ahead: AtomicI64,
    /// The latest time returned.
    latest: AtomicI64,
}

/// Change in the agreement between our clock and the database's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockJump {
    /// The clocks are further apart than the allowed skew: only metadata is served from now on.
    Apart {
        /// Whether our clock is ahead.
        ahead: bool,
        /// Lower bound of the distance.
        by: Duration,
    },
    /// The clocks agree again, and decisions use them.
    Confirmed {
        /// How far the returned time was set back; zero if it was not.
        taken_back: Duration,
    },
}

/// Result of one comparison of both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Skew {
    /// Lower bound of the distance.
    pub(super) by: Duration,
    /// Whether our clock is ahead.
    pub(super) ahead: bool,
    /// How far the returned time was set back.
    pub(super) taken_back: Duration,
}

impl FeedClock {
    pub(super) fn new(local: Arc<dyn Clock>) -> Self {
        let seen = ClockState {
            local,
            ahead: AtomicI64::new(0),
            latest: AtomicI64::new(i64::MIN),
        };
        Self { seen: Arc::new(seen) }
    }

    /// Records the database's time, read by a query that took `waited`.
    pub(super) fn observe(&self, database: Option<Timestamp>, waited: Duration, max_skew: Duration) -> Skew {
        let Some(database) = database else {
            return Skew {
                by: Duration::ZERO,
                ahead: false,
                taken_back: Duration::ZERO,
            };
        };
        let local = self.seen.local.now().micros();
        // The answer was computed at some moment of the wait: only bounds of the distance are known.
        let ahead_at_least = database.micros().saturating_sub(local);
        let behind_at_least = local.saturating_sub(micros(waited)).saturating_sub(database.micros());
        self.seen.ahead.store(ahead_at_least.max(0), Ordering::Relaxed);
        let by = duration(ahead_at_least.max(behind_at_least));
        let taken_back = if by > max_skew {
            Duration::ZERO
        } else {
            self.take_back(local.max(database.micros()), max_skew)
        };
        Skew {
            by,
            ahead: behind_at_least > ahead_at_least,
            taken_back,
        }
    }

    /// Sets the time back to `now`, on which both clocks agree, if the returned time is too far ahead of it.
    fn take_back(&self, now: i64, max_skew: Duration) -> Duration {
        let latest = self.seen.latest.load(Ordering::Relaxed);
        if latest <= now.saturating_add(micros(max_skew)) {
            return Duration::ZERO;
        }
        // A caller that read the clocks before this may raise it once more; the next comparison sets it back again.
        self.seen.latest.store(now, Ordering::Relaxed);
        duration(latest.saturating_sub(now))
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

fn duration(micros: i64) -> Duration {
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

impl Clock for FeedClock {
    fn now(&self) -> Timestamp {
        let now = self
            .seen
            .local
            .now()
            .micros()
            .saturating_add(self.seen.ahead.load(Ordering::Relaxed));
        Timestamp::from_micros(self.seen.latest.fetch_max(now, Ordering::Relaxed).max(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3600);

    #[derive(Debug)]
    struct Wall(AtomicI64);

    impl Wall {
        fn set(&self, seconds: i64) {
            self.0.store(seconds * 1_000_000, Ordering::Relaxed);
        }
    }

    impl Clock for Wall {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(self.0.load(Ordering::Relaxed))
        }
    }

    fn clock() -> (FeedClock, Arc<Wall>) {
        let wall = Arc::new(Wall(AtomicI64::new(10_000_000)));
        (FeedClock::new(Arc::clone(&wall) as Arc<dyn Clock>), wall)
    }

    #[test]
    fn hd23_e5_time_is_the_later_of_both_and_never_goes_back() {
        let (clock, wall) = clock();
        let apart = |database: i64, waited| clock.observe(Some(Timestamp::from_secs(database)), waited, SECOND).by;
        assert_eq!(clock.now(), Timestamp::from_secs(10));

        assert_eq!(apart(13, Duration::ZERO), 3 * SECOND, "the database is ahead");
        assert_eq!(clock.now(), Timestamp::from_secs(13));

        wall.set(5);
        assert_eq!(apart(1, Duration::ZERO), 4 * SECOND, "we are ahead");
        assert_eq!(
            clock.now(),
            Timestamp::from_secs(13),
            "what was given out is not taken back while they disagree"
        );

        assert_eq!(apart(13, Duration::from_secs(4)), 8 * SECOND);
        let none = clock.observe(None, Duration::ZERO, SECOND);
        assert_eq!(
            (none.by, none.taken_back),
            (Duration::ZERO, Duration::ZERO),
            "sqlite has no clock of its own"
        );
        assert_eq!(clock.now(), Timestamp::from_secs(13));
    }

    #[test]
    fn hd23_e5_a_slow_answer_is_no_skew() {
        let (clock, _) = clock();
        assert_eq!(
            clock.observe(Some(Timestamp::from_secs(6)), 4 * SECOND, SECOND).by,
            Duration::ZERO
        );
        assert_eq!(clock.now(), Timestamp::from_secs(10));
    }

    /// RL11: the clock jumps an hour ahead and back. Time continues from both clocks as soon as they agree, not before.
    #[test]
    fn rl11_time_that_was_given_out_by_a_wrong_clock_is_taken_back_once_the_database_confirms() {
        let (clock, wall) = clock();
        let at = |seconds| Some(Timestamp::from_secs(seconds));
        wall.set(3611);
        let skew = clock.observe(at(11), Duration::ZERO, SECOND);
        assert_eq!((skew.by, skew.ahead, skew.taken_back), (HOUR, true, Duration::ZERO));
        assert_eq!(clock.now(), Timestamp::from_secs(3611));

        wall.set(12);
        assert_eq!(clock.now(), Timestamp::from_secs(3611), "our own word is not enough");
        let skew = clock.observe(at(12), Duration::ZERO, SECOND);
        assert_eq!((skew.by, skew.taken_back), (Duration::ZERO, HOUR - SECOND));
        assert_eq!(clock.now(), Timestamp::from_secs(12));
        assert_eq!(
            clock.observe(at(12), Duration::ZERO, SECOND).taken_back,
            Duration::ZERO,
            "once"
        );

        // A difference within the allowed skew stays: two clocks never agree to the microsecond.
        assert_eq!(clock.observe(at(13), Duration::ZERO, SECOND).by, SECOND);
        assert_eq!(clock.now(), Timestamp::from_secs(13));
        assert_eq!(clock.observe(at(12), Duration::ZERO, SECOND).taken_back, Duration::ZERO);
        assert_eq!(clock.now(), Timestamp::from_secs(13));
    }
}
