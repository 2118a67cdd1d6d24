//! How sealing does, chain by chain: what readiness tells, and when somebody must be told (RL4).

use gw_audit::Stream;
use gw_store::StoreError;
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// A chain that is out of step for so long does not come right by itself.
const OUT_OF_STEP: Duration = Duration::from_secs(10);
/// A store may be away for so long, for instance while another takes over, before it is an event.
const UNREACHABLE: Duration = Duration::from_secs(60);

/// Why the records of a chain are not sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StallReason {
    /// The audit store does not answer, or not in time.
    Unreachable,
    /// The store has entries of the chain that its writer did not write.
    Foreign,
    /// The store lacks entries that are not kept here any more.
    Missing,
    /// Another writer took the chain over.
    Fenced,
    /// Another holder has the chain and does not seal.
    HeldElsewhere,
    /// The store did not keep what it said it took.
    Unconfirmed,
    /// Records, rows or stored entries cannot be read or placed.
    Unreadable,
}

impl StallReason {
    /// The stable text in events and metrics.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Unreachable => "unreachable",
            Self::Foreign => "foreign",
            Self::Missing => "missing",
            Self::Fenced => "fenced",
            Self::HeldElsewhere => "held_elsewhere",
            Self::Unconfirmed => "unconfirmed",
            Self::Unreadable => "unreadable",
        }
    }

    /// How long it may last before it is reported.
    const fn patience(self) -> Duration {
        match self {
            Self::Unreachable => UNREACHABLE,
            Self::Foreign
            | Self::Missing
            | Self::Fenced
            | Self::HeldElsewhere
            | Self::Unconfirmed
            | Self::Unreadable => OUT_OF_STEP,
        }
    }

    /// Whether the service goes on as it was promised: a store that is away is waited for (spec/70 rule 14).
    const fn is_waited_for(self) -> bool {
        matches!(self, Self::Unreachable)
    }

    /// What an error of a chain's step says of the chain.
    pub(super) fn of(error: &anyhow::Error) -> Self {
        if let Some(OutOfStep(reason)) = error.downcast_ref() {
            return *reason;
        }
        match error.chain().find_map(|cause| cause.downcast_ref::<StoreError>()) {
            Some(StoreError::Fenced) => Self::Fenced,
            Some(StoreError::ChainMoved { .. }) => Self::Foreign,
            Some(StoreError::NotKept(_)) => Self::Unconfirmed,
            Some(StoreError::Database(_)) => Self::Unreachable,
            Some(_) | None => Self::Unreadable,
        }
    }
}

/// The chain and its writer contradict each other.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the chain is out of step: {}", .0.as_str())]
pub(super) struct OutOfStep(pub(super) StallReason);

/// A chain whose records wait.
#[derive(Clone, Copy, Debug)]
struct Stall {
    reason: StallReason,
    since: Instant,
    reported: bool,
}

/// The chains whose records wait, shared with readiness.
#[derive(Debug, Default)]
pub(crate) struct SealingHealth(Mutex<BTreeMap<Stream, Stall>>);

impl SealingHealth {
    /// Whether no chain has been out of step for long.
    pub(crate) fn is_in_step(&self) -> bool {
        let overdue = |stall: &Stall| !stall.reason.is_waited_for() && stall.since.elapsed() >= OUT_OF_STEP;
        !self.stalls().values().any(overdue)
    }

    /// Whether the audit store takes records, as far as was tried.
    pub(crate) fn is_store_reachable(&self) -> bool {
        !self.stalls().values().any(|stall| stall.reason.is_waited_for())
    }

    /// Why the records of a chain wait, if they do.
    #[cfg(test)]
    pub(super) fn stall(&self, stream: Stream) -> Option<StallReason> {
        self.stalls().get(&stream).map(|stall| stall.reason)
    }

    /// Notes a step that failed; true once per stall, when it is time to tell somebody.
    pub(super) fn note_failure(&self, stream: Stream, reason: StallReason) -> bool {
        let mut stalls = self.stalls();
        let stall = stalls.entry(stream).or_insert(Stall {
            reason,
            since: Instant::now(),
            reported: false,
        });
        if stall.reason.is_waited_for() != reason.is_waited_for() {
            (stall.since, stall.reported) = (Instant::now(), false);
        }
        stall.reason = reason;
        let due = !stall.reported && stall.since.elapsed() >= reason.patience();
        stall.reported |= due;
        due
    }

    /// Notes that the chain's records are sealed; how long they waited, if that was reported.
    pub(super) fn note_success(&self, stream: Stream) -> Option<Duration> {
        let ended = self.stalls().remove(&stream)?;
        ended.reported.then(|| ended.since.elapsed())
    }

    fn stalls(&self) -> MutexGuard<'_, BTreeMap<Stream, Stall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rl4_a_chain_out_of_step_is_told_once_and_ends_readiness() {
        let health = SealingHealth::default();
        assert!(
            !health.note_failure(Stream::Access, StallReason::Foreign),
            "a moment is nothing"
        );
        assert!(health.is_in_step());
        tokio::time::advance(OUT_OF_STEP).await;
        assert!(health.note_failure(Stream::Access, StallReason::Foreign));
        assert!(!health.note_failure(Stream::Access, StallReason::Missing), "once");
        assert!(!health.is_in_step() && health.is_store_reachable());
        assert!(health.note_success(Stream::Access).is_some());
        assert!(health.is_in_step());
    }

    #[tokio::test(start_paused = true)]
    async fn au14_a_store_that_is_away_is_told_and_the_service_stays_ready() {
        let health = SealingHealth::default();
        assert!(!health.note_failure(Stream::Access, StallReason::Unreachable));
        tokio::time::advance(UNREACHABLE).await;
        assert!(health.is_in_step() && !health.is_store_reachable());
        assert!(health.note_failure(Stream::Access, StallReason::Unreachable));
        assert!(
            !health.note_failure(Stream::Access, StallReason::Foreign),
            "another trouble begins anew"
        );
        tokio::time::advance(OUT_OF_STEP).await;
        assert!(!health.is_in_step());
        assert!(health.note_success(Stream::Security).is_none());
    }
}
