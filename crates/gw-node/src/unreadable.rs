//! Decides whether a mined transaction that could not be traced is unreadable by its own content (HD36), or whether the
//! node, or a proxy in front of it, failed.
//!
//! Invariant: a fault of the node convicts nobody. A transaction is unreadable only after several attempts that failed
//! in the same way, while the node answered every other query before, between and after them, and traced another mined
//! transaction by the same method ([`crate::control`]). A failure that shows nothing of the transaction needs so many
//! attempts over so long a time that only the content of the transaction can cause them; otherwise one such transaction
//! would hold back the head for ever.

use crate::error::NodeError;
use gw_evm::trace::TraceError;
use gw_types::B256;
use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// The pauses between attempts, in order; the last one repeats. An attempt is several requests to a node that may be
/// overloaded.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(5),
];
/// The least number of attempts, and the least time between the first and the last of them, after which a failure that
/// shows nothing of the transaction counts as caused by it.
const UNEXPLAINED_ATTEMPTS: u32 = 30;
const UNEXPLAINED_TIME: Duration = Duration::from_secs(300);
/// The time without an attempt after which the failures of a transaction are forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(900);

/// How the trace of a mined transaction failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The answer is larger than any trace may be.
    TooLarge,
    /// The answer is complete, and its call tree is too deep, too long, or has a frame of an unknown type.
    Content,
    /// The node needed more time than the gas of the transaction explains.
    Slow,
    /// The node answered with an error that names a limit on the time, depth or size of an execution.
    Limit,
    /// The connection failed; or the answer is missing, cut off, another error, or no trace.
    Unexplained,
}

impl FailureKind {
    /// How many attempts in a row have to fail in this way; `None` if attempts in a row prove nothing.
    pub(crate) const fn attempts(self) -> Option<u32> {
        match self {
            Self::TooLarge | Self::Content => Some(3),
            Self::Slow => Some(4),
            Self::Limit => Some(5),
            Self::Unexplained => None,
        }
    }
}

/// A failed attempt to trace mined transactions.
#[derive(Debug)]
pub(crate) struct TraceFailure {
    pub(crate) kind: FailureKind,
    /// The error of the exchange, if it failed.
    pub(crate) error: NodeError,
}

impl TraceFailure {
    /// The answer lacks a part, or a part belongs to another transaction.
    pub(crate) const fn missing_part() -> Self {
        Self {
            kind: FailureKind::Unexplained,
            error: NodeError::Unparsable,
        }
    }

    /// The node answered the trace request with a JSON-RPC error. `names_limit`: it names a limit that the content of a
    /// transaction can reach.
    pub(crate) const fn rejected(names_limit: bool) -> Self {
        Self {
            kind: if names_limit {
                FailureKind::Limit
            } else {
                FailureKind::Unexplained
            },
            error: NodeError::NoAnswer,
        }
    }
}

impl From<NodeError> for TraceFailure {
    fn from(error: NodeError) -> Self {
        let kind = match error {
            NodeError::TooLarge => FailureKind::TooLarge,
            NodeError::Timeout => FailureKind::Slow,
            NodeError::Unreachable(_)
            | NodeError::Broken(_)
            | NodeError::Unavailable
            | NodeError::GivenUp
            | NodeError::NoRoom(_)
            | NodeError::Unparsable
            | NodeError::NoAnswer
            | NodeError::RateLimited(_)
            | NodeError::Tls(_)
            | NodeError::Unjudged
            | NodeError::NoHead
            | NodeError::Behind
            | NodeError::OtherChain
            | NodeError::ChainsDiffer { .. }
            | NodeError::TraceDeferred
            | NodeError::StateUnavailable
            | NodeError::LookupDeferred
            | NodeError::NotValidated(_) => FailureKind::Unexplained,
        };
        Self { kind, error }
    }
}

impl From<TraceError> for TraceFailure {
    fn from(error: TraceError) -> Self {
        let kind = match error {
            TraceError::TooDeep | TraceError::TooManyFrames | TraceError::UnknownFrame => FailureKind::Content,
            TraceError::Malformed => FailureKind::Unexplained,
        };
        Self {
            kind,
            error: NodeError::Unparsable,
        }
    }
}

/// The pause before the attempt with this number, counted from zero.
pub(crate) fn pause_before(attempt: u32) -> Duration {
    let index = usize::try_from(attempt.saturating_sub(1)).unwrap_or(usize::MAX);
    PAUSES.get(index).or(PAUSES.last()).copied().unwrap_or_default()
}

/// The failures that hold back the head, by the index of the node and a key: for a trace the transaction hash.
#[derive(Debug)]
pub(crate) struct FailureCounts {
    counts: Mutex<BTreeMap<(usize, B256), FailureCount>>,
    /// The log line of the first failure.
    first_failure: &'static str,
}

#[derive(Clone, Copy, Debug)]
struct FailureCount {
    /// All failed attempts; they determine the pause.
    attempts: u32,
    last: Instant,
    /// The attempts beside which the node answered everything else, and the time of the first of them.
    count: u32,
    since: Option<Instant>,
}

impl FailureCounts {
    /// Of traces of mined transactions.
    pub(crate) const fn of_traces() -> Self {
        Self {
            counts: Mutex::new(BTreeMap::new()),
            first_failure: "a mined transaction could not be traced: its block waits, and the trace is repeated",
        }
    }

    /// Of other queries about mined transactions.
    pub(crate) const fn of_lookups() -> Self {
        Self {
            counts: Mutex::new(BTreeMap::new()),
            first_failure: "the node did not show a fact about a mined transaction: its block waits, and the query is \
                            repeated",
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<(usize, B256), FailureCount>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the pause after the last failure of this transaction on this node has not ended yet.
    pub(crate) fn is_deferred(&self, key: (usize, B256)) -> bool {
        self.lock()
            .get(&key)
            .is_some_and(|failure| failure.last.elapsed() < pause_before(failure.attempts))
    }

    /// Whether no failure of this transaction on this node is known.
    pub(crate) fn is_first(&self, key: (usize, B256)) -> bool {
        !self.lock().contains_key(&key)
    }

    /// Records a failure. `is_node_healthy`: the node answered everything else, a trace of another mined transaction
    /// included. Returns whether this is one of so many failures, over so long a time, that the node does not cause
    /// them by chance.
    pub(crate) fn record(&self, key: (usize, B256), is_node_healthy: bool) -> bool {
        let now = Instant::now();
        let mut failures = self.lock();
        failures.retain(|_, failure| failure.last.elapsed() < FORGOTTEN_AFTER);
        if !failures.contains_key(&key) {
            tracing::warn!(
                tx.hash = %key.1,
                is_node_healthy,
                "{}",
                self.first_failure
            );
        }
        let failure = failures.entry(key).or_insert(FailureCount {
            attempts: 0,
            last: now,
            count: 0,
            since: None,
        });
        failure.attempts = failure.attempts.saturating_add(1);
        failure.last = now;
        if is_node_healthy {
            failure.count = failure.count.saturating_add(1);
        } else {
            (failure.count, failure.since) = (0, None);
            return false;
        }
        let since = *failure.since.get_or_insert(now);
        failure.count >= UNEXPLAINED_ATTEMPTS && since.elapsed() >= UNEXPLAINED_TIME
    }

    /// Forgets the failures of a transaction that was traced.
    pub(crate) fn clear(&self, key: (usize, B256)) {
        self.lock().remove(&key);
    }
}

/// The transaction that was traced last, and the gas that it used.
#[derive(Debug, Default)]
pub(crate) struct ControlTransaction(Mutex<Option<(B256, u64)>>);

impl ControlTransaction {
    /// Remembers the transaction of these that used the least gas.
    pub(crate) fn remember(&self, traced: &[(B256, u64)]) {
        if let Some(control) = traced.iter().min_by_key(|(_, gas)| *gas) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(*control);
        }
    }

    pub(crate) fn load(&self) -> Option<(B256, u64)> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HD36: neither many failures in a short time nor few over a long time convict, nor failures while the node fails
    /// in other ways, too.
    #[tokio::test(start_paused = true)]
    async fn hd36_unexplained_failures_need_many_attempts_over_a_long_time() {
        let (failures, key) = (FailureCounts::of_traces(), (0, B256::repeat_byte(1)));
        for _ in 0..UNEXPLAINED_ATTEMPTS * 2 {
            assert!(!failures.record(key, true), "too soon");
        }
        assert!(!failures.record(key, false), "the node failed");
        assert!(!failures.record(key, true));
        tokio::time::sleep(UNEXPLAINED_TIME).await;
        assert!(!failures.record(key, true), "too few");
        for _ in 3..UNEXPLAINED_ATTEMPTS {
            assert!(!failures.record(key, true), "too few");
        }
        assert!(failures.record(key, true));
        assert!(!failures.record((0, B256::repeat_byte(2)), true), "another transaction");
        assert!(!failures.record((1, key.1), true), "another node");
        assert!(failures.record(key, true), "its own failures still count");
        failures.clear(key);
        assert!(!failures.record(key, true));
    }

    #[tokio::test(start_paused = true)]
    async fn the_pause_between_attempts_grows_to_a_few_seconds() {
        let (failures, key) = (FailureCounts::of_traces(), (0, B256::repeat_byte(1)));
        for pause in [500, 1000, 2000, 4000, 5000, 5000] {
            failures.record(key, false);
            tokio::time::sleep(Duration::from_millis(pause - 1)).await;
            assert!(failures.is_deferred(key), "{pause}");
            tokio::time::sleep(Duration::from_millis(1)).await;
            assert!(!failures.is_deferred(key), "{pause}");
        }
    }
}
