//! A clock and a source of entropy that tests control (feature `testing`).

use crate::{Clock, Entropy, Seconds, Timestamp};
use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::Duration,
};

/// A wall clock that stands still unless a test sets it or makes it jump; clones share one time. It may go back, as the
/// clock of a machine does when it is set.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<AtomicI64>);

/// A jump of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// Forward.
    Ahead(Duration),
    /// Back.
    Back(Duration),
}

impl Default for ManualClock {
    /// Some time in November 2023.
    fn default() -> Self {
        Self::at(Timestamp::from_secs(1_700_000_000))
    }
}

impl ManualClock {
    /// Creates a clock with this time.
    pub fn at(time: Timestamp) -> Self {
        Self(Arc::new(AtomicI64::new(time.micros())))
    }

    /// Sets the time.
    pub fn set(&self, time: Timestamp) {
        self.0.store(time.micros(), Ordering::SeqCst);
    }

    /// Adds seconds to the time.
    pub fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }

    /// Adds milliseconds to the time.
    pub fn pass_millis(&self, millis: i64) {
        self.0.fetch_add(millis * 1_000, Ordering::SeqCst);
    }

    /// Adds microseconds to the time.
    pub fn pass_micros(&self, micros: i64) {
        self.0.fetch_add(micros, Ordering::SeqCst);
    }

    /// The time after `span`.
    pub fn now_plus(&self, span: Seconds) -> Timestamp {
        self.now().plus(span)
    }

    /// Adds the jump to the time.
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

/// Entropy that is the same in every run: a mixed counter (splitmix64). Two of one seed give the same bytes.
#[derive(Debug)]
pub struct SeededEntropy(AtomicU64);

impl SeededEntropy {
    /// Creates a source of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

/// Entropy that is one byte, repeated: for tests that compare the bytes themselves.
#[derive(Clone, Copy, Debug)]
pub struct FixedEntropy(pub u8);

impl Entropy for FixedEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(self.0);
    }
}

impl Default for SeededEntropy {
    fn default() -> Self {
        Self::new(1)
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            let mut word = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst);
            word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            let word = (word ^ (word >> 31)).to_le_bytes();
            chunk.iter_mut().zip(word).for_each(|(byte, random)| *byte = random);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_jumps_both_ways() {
        let clock = ManualClock::at(Timestamp::from_secs(10_000));
        let same = clock.clone();
        clock.jump(Jump::Ahead(Duration::from_secs(3600)));
        assert_eq!(same.now(), Timestamp::from_secs(13_600));
        clock.jump(Jump::Back(Duration::from_secs(7200)));
        assert_eq!(same.now(), Timestamp::from_secs(6_400));
        clock.pass(1);
        clock.pass_millis(-2_000);
        assert_eq!(same.now_plus(Seconds(5)), Timestamp::from_secs(6_404));
    }

    #[test]
    fn entropy_repeats_by_seed_and_goes_on() {
        let bytes = |entropy: &SeededEntropy| {
            let mut bytes = [0; 20];
            entropy.fill(&mut bytes);
            bytes
        };
        let (one, same, other) = (SeededEntropy::new(7), SeededEntropy::new(7), SeededEntropy::new(8));
        let first = bytes(&one);
        assert_eq!(first, bytes(&same));
        assert_ne!(first, bytes(&one));
        assert_ne!(first, bytes(&other));
    }
}
