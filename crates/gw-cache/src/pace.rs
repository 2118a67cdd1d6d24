//! How often somebody may come: so many at once, then as many per minute, evenly (the generic cell rate algorithm).
//!
//! One number per key is kept: when all that was asked for so far would have been due at an even pace.

use gw_types::Seconds;
use std::num::NonZeroU32;

const MINUTE: u64 = 60_000_000;

/// At most so many requests per minute and key, in a burst or spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub(crate) name: &'static str,
    max: NonZeroU32,
}

/// Whether one more request fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It does; kept for the key from now on.
    Allowed(u64),
    /// Not before so many microseconds.
    Wait(u64),
}

impl Rate {
    /// `max` requests per minute and key, counted under `name`.
    pub const fn per_minute(name: &'static str, max: NonZeroU32) -> Self {
        Self { name, max }
    }

    /// Microseconds between two requests at an even pace.
    pub(crate) const fn interval(self) -> u64 {
        let even = MINUTE / self.max.get() as u64;
        if even == 0 { 1 } else { even }
    }

    /// How far ahead of the even pace a key may be, in microseconds.
    pub(crate) const fn ahead(self) -> u64 {
        self.interval() * (self.max.get() as u64 - 1)
    }

    /// Judges one request at `now`, given when all before it would have been due.
    pub(crate) fn judge(self, due: u64, now: u64) -> Verdict {
        let due = due.max(now);
        match (due - now).checked_sub(self.ahead()) {
            None | Some(0) => Verdict::Allowed(due.saturating_add(self.interval())),
            Some(wait) => Verdict::Wait(wait),
        }
    }
}

/// Whole seconds to wait, at least one.
pub(crate) fn wait(micros: u64) -> Seconds {
    Seconds(u32::try_from(micros.div_ceil(1_000_000)).unwrap_or(u32::MAX).max(1))
}
