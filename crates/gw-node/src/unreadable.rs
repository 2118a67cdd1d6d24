//! Decides whether a mined transaction that could not be traced is unreadable by its own content (HD36), or whether the
//! node, or a proxy in front of it, failed.
//!
//! Invariant: a fault of the connection to the node convicts nobody. A transaction is unreadable only after several
//! attempts that failed in the same way, while the node answered every other query before, between and after them. A
//! failure that shows nothing of the transaction needs so many attempts over so long a time that only the content of
//! the transaction can cause them; otherwise one such transaction would hold back the head for ever.

use crate::error::NodeError;
use gw_evm::trace::TraceError;
use gw_types::B256;
use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// The pauses between attempts, in order; the last one repeats.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];
/// The least number of attempts, and the least time between the first and the last of them, after which a failure that
/// shows nothing of the transaction counts as caused by it.
const UNEXPLAINED_ATTEMPTS: u32 = 30;
const UNEXPLAINED_TIME: Duration = Duration::from_secs(300);

/// How the trace of a mined transaction failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    /// The answer is larger than any trace may be.
    TooLarge,
    /// The answer is complete, and its call tree is too deep, too long, or has a frame of an unknown type.
    Content,
    /// The answer is complete JSON-RPC, and no trace.
    NoTrace,
    /// The node needed more time than the gas of the transaction explains.
    Slow,
    /// The node answered with a JSON-RPC error.
    Rejected,
    /// The connection failed, or the answer is missing, cut off or no JSON-RPC.
    Unexplained,
}

impl FailureKind {
    /// How many attempts in a row have to fail in this way; `None` if attempts in a row prove nothing.
    pub(crate) const fn attempts(self) -> Option<u32> {
        match self {
            Self::TooLarge | Self::Content => Some(3),
            Self::Slow => Some(4),
            Self::NoTrace | Self::Rejected => Some(5),
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

    /// The node answered the trace request with a JSON-RPC error.
    pub(crate) const fn rejected() -> Self {
        Self {
            kind: FailureKind::Rejected,
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
            | NodeError::NotValidated(_) => FailureKind::Unexplained,
        };
        Self { kind, error }
    }
}

impl From<TraceError> for TraceFailure {
    fn from(error: TraceError) -> Self {
        let kind = match error {
            TraceError::TooDeep | TraceError::TooManyFrames | TraceError::UnknownFrame => FailureKind::Content,
            TraceError::Malformed => FailureKind::NoTrace,
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

/// The transaction that holds back the head because its trace fails and nothing shows why. One is enough: no further
/// transaction is traced until this one is decided.
#[derive(Debug, Default)]
pub(crate) struct UnexplainedFailures(Mutex<Option<FailureCount>>);

#[derive(Clone, Copy, Debug)]
struct FailureCount {
    hash: B256,
    count: u32,
    since: Instant,
}

impl UnexplainedFailures {
    /// Records an unexplained failure next to which the node answered every other query. Returns whether it is one of
    /// so many, over so long a time, that the transaction causes them.
    pub(crate) fn record(&self, hash: B256) -> bool {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let failures = match *slot {
            Some(failures) if failures.hash == hash => FailureCount {
                count: failures.count.saturating_add(1),
                ..failures
            },
            Some(_) | None => FailureCount {
                hash,
                count: 1,
                since: Instant::now(),
            },
        };
        *slot = Some(failures);
        failures.count >= UNEXPLAINED_ATTEMPTS && failures.since.elapsed() >= UNEXPLAINED_TIME
    }

    /// Forgets the failures: the transaction could be traced, failed in another way, or the node failed, too.
    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HD36: neither many failures in a short time nor few over a long time convict.
    #[tokio::test(start_paused = true)]
    async fn hd36_unexplained_failures_need_many_attempts_over_a_long_time() {
        let (failures, hash) = (UnexplainedFailures::default(), B256::repeat_byte(1));
        for _ in 0..UNEXPLAINED_ATTEMPTS * 2 {
            assert!(!failures.record(hash), "too soon");
        }
        failures.clear();
        assert!(!failures.record(hash));
        tokio::time::sleep(UNEXPLAINED_TIME).await;
        assert!(!failures.record(hash), "too few");
        for _ in 3..UNEXPLAINED_ATTEMPTS {
            assert!(!failures.record(hash), "too few");
        }
        assert!(failures.record(hash));
        assert!(!failures.record(B256::repeat_byte(2)), "another transaction");
    }
}
