//! Limits of callers (spec/20 J8, spec/85 section 5): concurrent calls, calls per minute, traces, the pauses of heavy
//! executions, and the circuit breakers of upstream keys.

use gw_http::{AddressKey, ClientAddress, RateLimit};
pub(crate) use gw_http::{ConcurrencyLimiter, ConcurrencyPermit, LimitKey};
use gw_node::KeyId;
use gw_types::{Address, Clock, ExternalId, Seconds, Timestamp};
use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

/// The caller has reached a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LimitExceeded;

/// Limits the calls per minute. Each element of a batch counts as a call. Callers without a limit are not counted.
#[derive(Debug)]
pub(crate) struct RateLimits {
    subjects: Option<RateLimit<ExternalId>>,
    addresses: Option<RateLimit<AddressKey>>,
}

impl RateLimits {
    /// `subjects` calls per minute of one token subject, `addresses` of one anonymous address; `None` for no limit.
    pub(crate) fn new(subjects: Option<NonZeroU32>, addresses: Option<NonZeroU32>, clock: &Arc<dyn Clock>) -> Self {
        Self {
            subjects: subjects.map(|limit| RateLimit::per_minute(limit, Arc::clone(clock))),
            addresses: addresses.map(|limit| RateLimit::per_minute(limit, Arc::clone(clock))),
        }
    }

    /// Counts one call.
    ///
    /// # Errors
    /// [`LimitExceeded`] if the caller has made as many calls as the limit allows.
    pub(crate) fn try_acquire(&self, subject: Option<&ExternalId>, client: ClientAddress) -> Result<(), LimitExceeded> {
        let is_within_limit = match subject {
            Some(subject) => self.subjects.as_ref().is_none_or(|limit| limit.check(subject).is_ok()),
            None => self
                .addresses
                .as_ref()
                .is_none_or(|limit| limit.check(&client.into()).is_ok()),
        };
        if is_within_limit { Ok(()) } else { Err(LimitExceeded) }
    }
}

/// Limits the methods that show traces (J8): one call a second and a hundred calls a day for each key.
#[derive(Debug, Default)]
pub(crate) struct TraceQuota(Mutex<TraceCounts>);

#[derive(Debug, Default)]
struct TraceCounts {
    day: i64,
    last_and_count: HashMap<LimitKey, (Timestamp, u32)>,
}

const TRACES_A_DAY: u32 = 100;
const DAY: i64 = 86_400_000_000;

impl TraceQuota {
    /// Counts one call.
    ///
    /// # Errors
    /// [`LimitExceeded`] if the key has reached a limit; the call is not counted then.
    pub(crate) fn try_acquire(&self, key: LimitKey, now: Timestamp) -> Result<(), LimitExceeded> {
        let mut traces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let day = now.micros().div_euclid(DAY);
        if day != traces.day {
            (traces.day, traces.last_and_count) = (day, HashMap::new());
        }
        match traces.last_and_count.get_mut(&key) {
            Some((last, used)) => {
                if *used >= TRACES_A_DAY || now < last.plus(Seconds(1)) {
                    return Err(LimitExceeded);
                }
                (*last, *used) = (now, used.saturating_add(1));
            }
            None => {
                traces.last_and_count.insert(key, (now, 1));
            }
        }
        Ok(())
    }
}

/// Pauses the callers of executions that the node could not finish, or whose traces were too large to read: the node
/// continues such an execution for a while after the gateway has given up (HD36). A pause doubles each time, and is
/// forgotten an hour after the last one.
///
/// The caller may not be to blame for the behaviour of a contract, so only the calls of the first heavy contract are
/// paused; with a second contract all executions of the caller are (HD38).
///
/// While the node is busy with one heavy execution, executions of other callers time out, too. So only the execution
/// that began first is counted, until an execution that began later returns.
#[derive(Debug, Default)]
pub(crate) struct ExecutionPauses {
    any: AtomicBool,
    inner: Mutex<PauseState>,
}

#[derive(Debug, Default)]
struct PauseState {
    /// The time since which a counted execution keeps the node busy.
    busy_since: Option<Timestamp>,
    by_key: HashMap<LimitKey, Pause>,
}

#[derive(Debug)]
struct Pause {
    times: u32,
    ends: Timestamp,
    /// The contract whose calls are paused; `None` if all executions of the caller are.
    target: Option<Address>,
}

/// The seconds of the first pause, how often a pause doubles, and the time after which it is forgotten.
const FIRST_PAUSE: u32 = 10;
const DOUBLINGS: u32 = 8;
const FORGOTTEN: Seconds = Seconds(3600);

/// Executions with at most this much gas are never paused, because nodes finish them at once.
const LIGHT: u64 = 100_000;

/// Target and gas of an execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution {
    /// The called contract; `None` for a creation.
    pub(crate) target: Option<Address>,
    /// The gas that the caller names.
    pub(crate) gas: Option<u64>,
}

impl ExecutionPauses {
    /// Whether this execution is paused.
    pub(crate) fn is_paused(&self, key: LimitKey, execution: Execution, now: Timestamp) -> bool {
        if !self.any.load(Ordering::Relaxed) || execution.gas.is_some_and(|gas| gas <= LIGHT) {
            return false;
        }
        let state = self.lock();
        let pause = state.by_key.get(&key).filter(|pause| now < pause.ends);
        pause.is_some_and(|pause| pause.target.is_none() || pause.target == execution.target)
    }

    /// Notes that an execution that began at `started_at` has returned.
    pub(crate) fn record_return(&self, started_at: Timestamp) {
        if self.any.load(Ordering::Relaxed) {
            let mut state = self.lock();
            state.busy_since = state.busy_since.filter(|since| started_at <= *since);
        }
    }

    /// Notes that an execution did not return in time.
    pub(crate) fn record_timeout(&self, key: LimitKey, execution: Execution, now: Timestamp) {
        let mut state = self.lock();
        if state.busy_since.is_none() {
            state.busy_since = Some(now);
            self.count(&mut state, key, execution, now);
        }
    }

    /// Notes that the trace of an execution was too large.
    pub(crate) fn record_oversized_trace(&self, key: LimitKey, execution: Execution, now: Timestamp) {
        self.count(&mut self.lock(), key, execution, now);
    }

    fn count(&self, state: &mut PauseState, key: LimitKey, execution: Execution, now: Timestamp) {
        state.by_key.retain(|_, pause| now < pause.ends.plus(FORGOTTEN));
        let first = Pause {
            times: 0,
            ends: now,
            target: execution.target,
        };
        let pause = state.by_key.entry(key).or_insert(first);
        if pause.target != execution.target {
            pause.target = None;
        }
        let length = FIRST_PAUSE.saturating_mul(1 << pause.times.min(DOUBLINGS));
        (pause.times, pause.ends) = (pause.times.saturating_add(1), now.plus(Seconds(length)));
        self.any.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, PauseState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forwards nothing with a key for a second after the node has answered HTTP 429 for that key: the node counts calls by
/// key.
#[derive(Debug, Default)]
pub(crate) struct CircuitBreakers {
    /// The time at which the last open breaker closes, in microseconds, so that the map is not locked while none is
    /// open.
    last: AtomicI64,
    closes: Mutex<HashMap<KeyId, i64>>,
}

impl CircuitBreakers {
    pub(crate) fn is_open(&self, key: KeyId, now: Timestamp) -> bool {
        self.any_open(now) && self.closes().get(&key).is_some_and(|closes| now.micros() < *closes)
    }

    /// Whether any breaker is open.
    pub(crate) fn any_open(&self, now: Timestamp) -> bool {
        now.micros() < self.last.load(Ordering::Relaxed)
    }

    pub(crate) fn open(&self, key: KeyId, now: Timestamp) {
        let closes_at = now.plus(Seconds(1)).micros();
        let mut closes = self.closes();
        closes.retain(|_, closes| now.micros() < *closes);
        closes.insert(key, closes_at);
        self.last.fetch_max(closes_at, Ordering::Relaxed);
        metrics::counter!("ledger_gateway_circuit_breaker_trips_total").increment(1);
    }

    fn closes(&self) -> MutexGuard<'_, HashMap<KeyId, i64>> {
        self.closes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::{PersonalUrlId, Secret, UserId, testing::ManualClock};

    #[test]
    fn j8_a_breaker_belongs_to_one_key_and_closes_after_a_second() {
        let breakers = CircuitBreakers::default();
        let (now, later) = (Timestamp::from_secs(10), Timestamp::from_secs(11));
        let [first, second] = ["first", "second"].map(|key| KeyId::from_secret(&Secret::new(key)));
        assert!(!breakers.is_open(first, now));
        breakers.open(first, now);
        assert!(breakers.is_open(first, now) && !breakers.is_open(second, now) && !breakers.is_open(first, later));
        breakers.open(second, later);
        assert!(breakers.is_open(second, later) && !breakers.is_open(first, later));
        assert_eq!(breakers.closes().len(), 1, "closed breakers are forgotten");
    }

    #[test]
    fn j8_traces_are_one_a_second_and_a_hundred_a_day() {
        let quota = TraceQuota::default();
        let (first, second) = (LimitKey::User(UserId::fixed(1)), LimitKey::User(UserId::fixed(2)));
        let at = |seconds: i64| Timestamp::from_secs(seconds);
        let is_allowed = |key, seconds| quota.try_acquire(key, at(seconds)).is_ok();
        assert!(is_allowed(first, 0) && !is_allowed(first, 0) && is_allowed(second, 0));
        let passed = (1..200).filter(|seconds| is_allowed(first, *seconds)).count();
        assert_eq!(passed, 99);
        assert!(!is_allowed(first, 86_399) && is_allowed(first, 86_400));
    }

    const CALL: Execution = Execution {
        target: Some(Address::ZERO),
        gas: None,
    };

    #[test]
    fn hd36_pauses_double_for_the_caller_who_keeps_the_node_busy_and_spare_others() {
        let pauses = ExecutionPauses::default();
        let (first, second) = (LimitKey::User(UserId::fixed(1)), LimitKey::User(UserId::fixed(2)));
        let at = |seconds: i64| Timestamp::from_secs(seconds);
        let is_paused = |key, seconds| pauses.is_paused(key, CALL, at(seconds));
        pauses.record_timeout(first, CALL, at(5));
        // The first caller's execution delays this one.
        pauses.record_timeout(second, CALL, at(6));
        assert!(is_paused(first, 14) && !is_paused(second, 6) && !is_paused(first, 15));
        // An execution that began before the busy time does not end it.
        pauses.record_return(at(4));
        pauses.record_timeout(second, CALL, at(16));
        assert!(!is_paused(second, 16));
        pauses.record_return(at(17));
        pauses.record_timeout(first, CALL, at(20));
        assert!(is_paused(first, 39) && !is_paused(first, 40));
        pauses.record_oversized_trace(second, CALL, at(21));
        assert!(is_paused(second, 30) && !is_paused(second, 31));
        for _ in 0..40 {
            pauses.record_oversized_trace(first, CALL, at(40));
        }
        assert!(is_paused(first, 40 + 2559) && !is_paused(first, 40 + 2560));
        pauses.record_oversized_trace(second, CALL, at(20_000));
        assert_eq!(pauses.lock().by_key.len(), 1, "forgotten");
    }

    #[test]
    fn hd38_a_first_heavy_contract_is_paused_alone_and_light_executions_never() {
        let pauses = ExecutionPauses::default();
        let (user, url) = (LimitKey::User(UserId::fixed(1)), LimitKey::Url(PersonalUrlId::fixed(1)));
        let now = Timestamp::from_secs(5);
        let call = |byte, gas| Execution {
            target: Some(Address::repeat_byte(byte)),
            gas,
        };
        let is_paused = |byte, gas| pauses.is_paused(user, call(byte, gas), now);
        pauses.record_oversized_trace(user, call(1, None), now);
        assert!(
            is_paused(1, None) && is_paused(1, Some(100_001)) && !is_paused(1, Some(100_000)) && !is_paused(2, None)
        );
        assert!(
            !pauses.is_paused(url, call(1, None), now),
            "a personal URL has pauses of its own"
        );
        pauses.record_oversized_trace(user, call(2, None), now);
        assert!(is_paused(1, None) && is_paused(3, None) && !is_paused(3, Some(21_000)));
        assert!(pauses.is_paused(
            user,
            Execution {
                target: None,
                gas: None
            },
            now
        ));
        // Creations count as one target.
        pauses.record_oversized_trace(
            url,
            Execution {
                target: None,
                gas: None,
            },
            now,
        );
        assert!(pauses.is_paused(url, call(1, None), now));
    }

    #[test]
    fn edge_rates_count_subjects_and_anonymous_addresses_apart() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let rates = RateLimits::new(None, NonZeroU32::new(2), &clock);
        let [first, second] = ["198.51.100.1", "198.51.100.2"].map(|text| ClientAddress(text.parse().unwrap()));
        let subject = ExternalId::new("did:test:one").unwrap();
        assert_eq!(
            [first, first, first, second].map(|client| rates.try_acquire(None, client).is_ok()),
            [true, true, false, true]
        );
        assert!(
            rates.try_acquire(Some(&subject), first).is_ok(),
            "authenticated callers have no limit here"
        );
    }
}
