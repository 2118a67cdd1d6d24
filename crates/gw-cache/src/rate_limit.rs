//! Rate limits: a burst, then a number of requests per minute at an even pace (the generic cell rate algorithm).
//!
//! One number per key is stored: the time at which all previous requests would have been due at an even pace.

use gw_types::Seconds;
use std::num::NonZeroU32;

const MINUTE: u64 = 60_000_000;

/// A maximum number of requests per minute and key, in a burst or spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub(crate) name: &'static str,
    max: NonZeroU32,
}

/// Decision about one more request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The request is allowed; the value is the key's new due time.
    Allowed(u64),
    /// The request is allowed after this many microseconds.
    Wait(u64),
}

impl Rate {
    /// Creates a limit of `max` requests per minute and key, counted under `name`.
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

    /// Decides about one request at `now`; `due` is when all previous requests would have been due.
    pub(crate) fn judge(self, due: u64, now: u64) -> Verdict {
        let due = due.max(now);
        match (due - now).checked_sub(self.ahead()) {
            None | Some(0) => Verdict::Allowed(due.saturating_add(self.interval())),
            Some(wait) => Verdict::Wait(wait),
        }
    }
}

/// Converts a wait to whole seconds, at least one.
pub(crate) fn wait(micros: u64) -> Seconds {
    Seconds(u32::try_from(micros.div_ceil(1_000_000)).unwrap_or(u32::MAX).max(1))
}
