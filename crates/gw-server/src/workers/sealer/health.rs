//! The state of sealing for each chain: for readiness, and to decide when to report a stall (RL4).

use gw_audit::Stream;
use gw_store::StoreError;
use gw_types::Timestamp;
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// After this time, a chain that is out of step will not recover by itself.
const OUT_OF_STEP: Duration = Duration::from_secs(10);
/// How long the store may be unreachable, for example during a failover, before it is reported.
const UNREACHABLE: Duration = Duration::from_secs(60);

/// Why the records of a chain are not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StallReason {
    /// The audit store does not answer, or not in time.
    Unreachable,
    /// The store has entries that the chain's writer did not write.
    Foreign,
    /// The store lacks entries that the journal no longer has.
    Missing,
    /// Another writer took over the chain.
    Fenced,
    /// Another instance holds the claim on the chain and does not seal.
    HeldElsewhere,
    /// The store accepted entries but does not have them.
    Unconfirmed,
    /// Records, rows or stored entries cannot be read or encoded.
    Unreadable,
    /// The chain's worker waits for an answer that does not come.
    Hanging,
}

impl StallReason {
    /// The stable code in events and metrics.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Foreign => "foreign",
            Self::Missing => "missing",
            Self::Fenced => "fenced",
            Self::HeldElsewhere => "held_elsewhere",
            Self::Unconfirmed => "unconfirmed",
            Self::Unreadable => "unreadable",
            Self::Hanging => "hanging",
        }
    }

    /// How long the stall may last before it is reported.
    const fn report_after(self) -> Duration {
        match self {
            Self::Unreachable => UNREACHABLE,
            Self::Foreign
            | Self::Missing
            | Self::Fenced
            | Self::HeldElsewhere
            | Self::Unconfirmed
            | Self::Unreadable
            | Self::Hanging => OUT_OF_STEP,
        }
    }

    /// Whether the service stays ready: it tolerates an unreachable store (spec/70 rule 14).
    const fn is_tolerated(self) -> bool {
        matches!(self, Self::Unreachable)
    }

    /// The reason that an error of a chain's step indicates.
    pub(super) fn from_error(error: &anyhow::Error) -> Self {
        if let Some(OutOfStep(reason)) = error.downcast_ref() {
            return *reason;
        }
        match error.chain().find_map(|cause| cause.downcast_ref::<StoreError>()) {
            Some(StoreError::Fenced) => Self::Fenced,
            Some(StoreError::ChainMoved { .. }) => Self::Foreign,
            Some(StoreError::NotKept(_)) => Self::Unconfirmed,
            // A commit that was not answered: the next step reads the chain's head from the store.
            Some(StoreError::Database(_) | StoreError::Unconfirmed(_)) => Self::Unreachable,
            Some(_) | None => Self::Unreadable,
        }
    }
}

/// The chain and its writer contradict each other.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the chain is out of step: {}", .0.as_str())]
pub(super) struct OutOfStep(pub(super) StallReason);

/// The current stall of a chain.
#[derive(Clone, Copy, Debug)]
struct Stall {
    reason: StallReason,
    since: Instant,
    reported: bool,
}

/// What is seen of a chain from beside its worker, which may hang.
#[derive(Clone, Copy, Debug)]
struct Watched {
    /// When the worker last ended a step, successful or not.
    stepped: Instant,
    /// The oldest record that waits, and when it was first seen as the oldest.
    oldest: Option<(Timestamp, Instant)>,
    reported: bool,
}

impl Watched {
    fn new() -> Self {
        Self {
            stepped: Instant::now(),
            oldest: None,
            reported: false,
        }
    }

    /// Since when the oldest record waits while the worker ends no step; `None` if no record waits.
    fn hanging_since(&self) -> Option<Instant> {
        self.oldest.map(|(_, since)| since.max(self.stepped))
    }

    fn hangs(&self) -> bool {
        self.hanging_since().is_some_and(|since| since.elapsed() >= OUT_OF_STEP)
    }
}

impl Stall {
    /// Whether the chain has been out of step for so long that it does not recover by itself.
    fn is_overdue(&self) -> bool {
        !self.reason.is_tolerated() && self.since.elapsed() >= OUT_OF_STEP
    }
}

/// The stalled chains, shared with the readiness check.
#[derive(Debug, Default)]
pub(crate) struct SealingHealth {
    stalls: Mutex<BTreeMap<Stream, Stall>>,
    watched: Mutex<BTreeMap<Stream, Watched>>,
}

impl SealingHealth {
    /// Whether no chain has been out of step for too long.
    pub(crate) fn is_in_step(&self) -> bool {
        !self.stalls().values().any(Stall::is_overdue) && !self.watched().values().any(Watched::hangs)
    }

    /// Whether a chain has been out of step for too long, and the service must not be ready because of it. If somebody
    /// rewrote a chain of the journal, the service stays ready: the journal keeps the records while it has room, and
    /// other instances may be attacked in the same way.
    pub(crate) fn must_stop(&self) -> bool {
        let is_kept = |stream: Stream, stall: &Stall| stall.reason == StallReason::Foreign && stream != Stream::Admin;
        self.stalls()
            .iter()
            .any(|(stream, stall)| stall.is_overdue() && !is_kept(*stream, stall))
            || self.watched().values().any(Watched::hangs)
    }

    /// Whether the last attempts to reach the audit store succeeded.
    pub(crate) fn is_store_reachable(&self) -> bool {
        !self.stalls().values().any(|stall| stall.reason.is_tolerated())
    }

    /// The reason of a chain's stall, if it is stalled.
    #[cfg(test)]
    pub(super) fn stall(&self, stream: Stream) -> Option<StallReason> {
        self.stalls().get(&stream).map(|stall| stall.reason)
    }

    /// Notes the oldest record of a chain that waits to be sealed. Returns `true` once per stall, when the chain's
    /// worker hangs: the same record has waited, and the worker has ended no step, for too long. Called from beside the
    /// workers.
    pub(super) fn observe(&self, stream: Stream, oldest: Option<Timestamp>) -> bool {
        let mut watched = self.watched();
        let watched = watched.entry(stream).or_insert_with(Watched::new);
        watched.oldest = oldest.map(|time| match watched.oldest {
            Some((seen, since)) if seen == time => (seen, since),
            _ => (time, Instant::now()),
        });
        let due = watched.hangs() && !watched.reported;
        watched.reported = watched.hangs();
        due
    }

    /// Notes that a chain's worker begins to run or has ended a step.
    fn note_step(&self, stream: Stream) {
        self.watched().entry(stream).or_insert_with(Watched::new).stepped = Instant::now();
    }

    /// Notes a failed step. Returns `true` once per stall, when the stall must be reported.
    pub(super) fn note_failure(&self, stream: Stream, reason: StallReason) -> bool {
        self.note_step(stream);
        let mut stalls = self.stalls();
        let stall = stalls.entry(stream).or_insert(Stall {
            reason,
            since: Instant::now(),
            reported: false,
        });
        if stall.reason.is_tolerated() != reason.is_tolerated() {
            (stall.since, stall.reported) = (Instant::now(), false);
        }
        stall.reason = reason;
        let due = !stall.reported && stall.since.elapsed() >= reason.report_after();
        stall.reported |= due;
        due
    }

    /// Notes a successful step. Returns the duration of the stall that ended, if it was reported.
    pub(super) fn note_success(&self, stream: Stream) -> Option<Duration> {
        self.note_step(stream);
        let stall = self.stalls().remove(&stream)?;
        stall.reported.then(|| stall.since.elapsed())
    }

    fn stalls(&self) -> MutexGuard<'_, BTreeMap<Stream, Stall>> {
        self.stalls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watched(&self) -> MutexGuard<'_, BTreeMap<Stream, Watched>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rl4_a_chain_out_of_step_is_reported_once_and_ends_readiness() {
        let health = SealingHealth::default();
        assert!(
            !health.note_failure(Stream::Access, StallReason::Foreign),
            "a short stall is not reported"
        );
        assert!(health.is_in_step());
        tokio::time::advance(OUT_OF_STEP).await;
        assert!(health.note_failure(Stream::Access, StallReason::Foreign));
        assert!(
            !health.note_failure(Stream::Access, StallReason::Missing),
            "reported once"
        );
        assert!(!health.is_in_step() && health.must_stop() && health.is_store_reachable());
        health.note_failure(Stream::Access, StallReason::Foreign);
        assert!(
            !health.is_in_step() && !health.must_stop(),
            "the journal keeps the records of a chain with foreign entries"
        );
        health.note_failure(Stream::Admin, StallReason::Foreign);
        tokio::time::advance(OUT_OF_STEP).await;
        assert!(health.must_stop(), "the outbox has no journal");
        health.note_success(Stream::Admin);
        assert!(health.note_success(Stream::Access).is_some());
        assert!(health.is_in_step());
    }

    #[tokio::test(start_paused = true)]
    async fn rl4_a_worker_that_hangs_is_reported_once_and_ends_readiness() {
        let health = SealingHealth::default();
        let record = |seconds: i64| Some(Timestamp::from_micros(seconds * 1_000_000));
        assert!(health.note_success(Stream::Security).is_none());
        tokio::time::advance(OUT_OF_STEP).await;
        assert!(!health.observe(Stream::Security, None) && health.is_in_step());
        // The worker has ended no step for long, but had nothing to do.
        assert!(!health.observe(Stream::Security, record(1)) && health.is_in_step());
        tokio::time::advance(OUT_OF_STEP / 2).await;
        assert!(
            !health.observe(Stream::Security, record(2)),
            "another record was sealed"
        );
        tokio::time::advance(OUT_OF_STEP / 2).await;
        assert!(!health.observe(Stream::Security, record(2)) && health.is_in_step());
        tokio::time::advance(OUT_OF_STEP / 2).await;
        assert!(health.observe(Stream::Security, record(2)) && !health.is_in_step());
        assert!(!health.observe(Stream::Security, record(2)), "reported once");
        assert!(health.note_success(Stream::Security).is_none());
        assert!(!health.observe(Stream::Security, record(2)) && health.is_in_step());
    }

    #[tokio::test(start_paused = true)]
    async fn au14_an_unreachable_store_is_reported_and_the_service_stays_ready() {
        let health = SealingHealth::default();
        assert!(!health.note_failure(Stream::Access, StallReason::Unreachable));
        tokio::time::advance(UNREACHABLE).await;
        assert!(health.is_in_step() && !health.is_store_reachable());
        assert!(health.note_failure(Stream::Access, StallReason::Unreachable));
        assert!(
            !health.note_failure(Stream::Access, StallReason::Foreign),
            "a different kind of stall starts a new period"
        );
        tokio::time::advance(OUT_OF_STEP).await;
        assert!(!health.is_in_step());
        assert!(health.note_success(Stream::Security).is_none());
    }
}
