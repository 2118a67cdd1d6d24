//! A clock that stands still until a test moves it, and that jumps.

use gw_types::{Clock, Timestamp};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

/// A wall clock in the hands of a test; clones are one clock. Unlike the clock of decisions it may go back, as a machine's
/// does when it is set.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicI64>);

/// In which direction a clock jumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// Into the future.
    Ahead(Duration),
    /// Into the past.
    Back(Duration),
}

impl ManualClock {
    /// A clock that shows this time.
    pub fn at(time: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(time.micros())))
    }

    /// Shows this time from now on.
    pub fn set(&self, time: Timestamp) {
        self.0.store(time.micros(), Ordering::SeqCst);
    }

    /// Jumps.
    pub fn jump(&self, jump: Jump) {
        let micros = |by: Duration| i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        let by = match jump {
            Jump::Ahead(by) => micros(by),
            Jump::Back(by) => -micros(by),
        };
        self.0.fetch_add(by, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_jumps_both_ways() {
        let clock = ManualClock::at(Timestamp::from_secs(10_000));
        let same = clock.clone();
        clock.jump(Jump::Ahead(Duration::from_secs(3600)));
        assert_eq!(same.now(), Timestamp::from_secs(13_600));
        clock.jump(Jump::Back(Duration::from_secs(7200)));
        assert_eq!(same.now(), Timestamp::from_secs(6_400));
    }
}
