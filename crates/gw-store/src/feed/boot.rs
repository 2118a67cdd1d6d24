//! Time since boot, including suspension (HD23 E-4): a snapshot must not count as fresh after the machine slept.

use std::time::Duration;

/// A monotonic clock that also runs while the machine sleeps.
pub trait Uptime: Send + Sync + core::fmt::Debug {
    /// Returns the time since a fixed moment before the process started.
    fn now(&self) -> Duration;
}

/// The kernel's boot-time clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct BootClock;

impl Uptime for BootClock {
    fn now(&self) -> Duration {
        let at = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::new(
            u64::try_from(at.tv_sec).unwrap_or(0),
            u32::try_from(at.tv_nsec).unwrap_or(0),
        )
    }
}
