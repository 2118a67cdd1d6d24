//! How much at once and how often (spec/20 J8, spec/85 section 5): calls in flight and per minute, and the pause after the node said "too many".

use gw_http::{AddressKey, ClientAddress, RateLimit};
use gw_node::KeyId;
use gw_types::{Address, Clock, ExternalId, PersonalUrlId, Seconds, Timestamp, UserId};
use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
};

/// Whose calls are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Party {
    /// A known user, from wherever.
    User(UserId),
    /// A personal URL: what pages do by it is not its owner's doing (HD17).
    Url(PersonalUrlId),
    /// Anonymous callers of one address (decision 54).
    Address(AddressKey),
}

/// Calls in flight. A party without any leaves no trace.
#[derive(Debug)]
pub(crate) struct InFlight {
    users: usize,
    addresses: usize,
    counts: Mutex<HashMap<Party, usize>>,
}

impl InFlight {
    /// So many per user, so many per address without one.
    pub(crate) fn new(users: usize, addresses: usize) -> Arc<Self> {
        Arc::new(Self {
            users,
            addresses,
            counts: Mutex::default(),
        })
    }

    /// Takes a slot, given back when dropped; nothing if all are taken.
    pub(crate) fn take(self: &Arc<Self>, party: Party) -> Option<Slot> {
        let max = match party {
            Party::User(_) | Party::Url(_) => self.users,
            Party::Address(_) => self.addresses,
        };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = counts.get(&party).copied().unwrap_or(0);
        if taken >= max {
            return None;
        }
        counts.insert(party, taken + 1);
        drop(counts);
        Some(Slot {
            of: Arc::clone(self),
            party,
        })
    }
}

/// One call's place.
#[derive(Debug)]
pub(crate) struct Slot {
    of: Arc<InFlight>,
    party: Party,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut counts = self.of.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.party) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.party);
            }
        }
    }
}

/// Calls per minute, batch elements counted one by one. A kind of caller without a limit is not counted.
#[derive(Debug)]
pub(crate) struct Rates {
    subjects: Option<RateLimit<ExternalId>>,
    addresses: Option<RateLimit<AddressKey>>,
}

impl Rates {
    /// So many per subject of a token, so many per address without one.
    pub(crate) fn new(subjects: Option<NonZeroU32>, addresses: Option<NonZeroU32>, clock: &Arc<dyn Clock>) -> Self {
        Self {
            subjects: subjects.map(|most| RateLimit::per_minute(most, Arc::clone(clock))),
            addresses: addresses.map(|most| RateLimit::per_minute(most, Arc::clone(clock))),
        }
    }

    /// Counts one call; whether it is one too many.
    pub(crate) fn refuse(&self, subject: Option<&ExternalId>, client: ClientAddress) -> bool {
        match subject {
            Some(subject) => self
                .subjects
                .as_ref()
                .is_some_and(|limit| limit.check(subject).is_err()),
            None => self
                .addresses
                .as_ref()
                .is_some_and(|limit| limit.check(&client.into()).is_err()),
        }
    }
}

/// How often one party may have executions shown (J8): once a second, a hundred times a day.
#[derive(Debug, Default)]
pub(crate) struct TraceQuota(Mutex<Traces>);

#[derive(Debug, Default)]
struct Traces {
    day: i64,
    of: HashMap<Party, (Timestamp, u32)>,
}

const TRACES_A_DAY: u32 = 100;
const DAY: i64 = 86_400_000_000;

impl TraceQuota {
    /// Charges one; whether it is one too many, which is not charged.
    pub(crate) fn refuse(&self, party: Party, now: Timestamp) -> bool {
        let mut traces = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let day = now.micros().div_euclid(DAY);
        if day != traces.day {
            (traces.day, traces.of) = (day, HashMap::new());
        }
        match traces.of.get_mut(&party) {
            Some((last, used)) => {
                if *used >= TRACES_A_DAY || now < last.plus(Seconds(1)) {
                    return true;
                }
                (*last, *used) = (now, used.saturating_add(1));
            }
            None => {
                traces.of.insert(party, (now, 1));
            }
        }
        false
    }
}

/// A pause for whose executions the node could not finish, or whose traces were too large to read: the node works on for a
/// while when the gateway has long given up (HD36). Doubled each time, and forgotten an hour after the last.
///
/// What one contract does may be somebody else's doing, so the first one is paused alone: everything is, once two were too much
/// (HD38).
///
/// While a node is busy with one such execution everybody else's time out, too. So of those that did not come back in
/// time only the one that began first is counted, until an execution that began later comes back.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    any: AtomicBool,
    inner: Mutex<Paused>,
}

#[derive(Debug, Default)]
struct Paused {
    /// Since when the node is busy with an execution that was counted.
    busy_since: Option<Timestamp>,
    of: HashMap<Party, Pause>,
}

#[derive(Debug)]
struct Pause {
    times: u32,
    ends: Timestamp,
    /// The target that alone is paused; nothing if everything is.
    target: Option<Address>,
}

/// The first pause, and the longest one.
const FIRST_PAUSE: u32 = 10;
const DOUBLINGS: u32 = 8;
const FORGOTTEN: Seconds = Seconds(3600);

/// A run of at most so much gas is never paused: nodes do it at once, whatever it does.
const LIGHT: u64 = 100_000;

/// An execution, as pauses go by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Execution {
    /// What it calls; nothing for a creation.
    pub(crate) target: Option<Address>,
    /// The gas it names.
    pub(crate) gas: Option<u64>,
}

impl Pauses {
    /// Whether the party has to wait with this execution.
    pub(crate) fn is_paused(&self, party: Party, execution: Execution, now: Timestamp) -> bool {
        if !self.any.load(Ordering::Relaxed) || execution.gas.is_some_and(|gas| gas <= LIGHT) {
            return false;
        }
        let paused = self.lock();
        let pause = paused.of.get(&party).filter(|pause| now < pause.ends);
        pause.is_some_and(|pause| pause.target.is_none() || pause.target == execution.target)
    }

    /// An execution that began then came back.
    pub(crate) fn came_back(&self, began: Timestamp) {
        if self.any.load(Ordering::Relaxed) {
            let mut paused = self.lock();
            paused.busy_since = paused.busy_since.filter(|since| began <= *since);
        }
    }

    /// An execution of the party did not come back in time.
    pub(crate) fn timed_out(&self, party: Party, execution: Execution, now: Timestamp) {
        let mut paused = self.lock();
        if paused.busy_since.is_none() {
            paused.busy_since = Some(now);
            self.count(&mut paused, party, execution, now);
        }
    }

    /// The trace of an execution of the party was too much to read.
    pub(crate) fn too_large(&self, party: Party, execution: Execution, now: Timestamp) {
        self.count(&mut self.lock(), party, execution, now);
    }

    fn count(&self, paused: &mut Paused, party: Party, execution: Execution, now: Timestamp) {
        paused.of.retain(|_, pause| now < pause.ends.plus(FORGOTTEN));
        let first = Pause {
            times: 0,
            ends: now,
            target: execution.target,
        };
        let pause = paused.of.entry(party).or_insert(first);
        if pause.target != execution.target {
            pause.target = None;
        }
        let length = FIRST_PAUSE.saturating_mul(1 << pause.times.min(DOUBLINGS));
        (pause.times, pause.ends) = (pause.times.saturating_add(1), now.plus(Seconds(length)));
        self.any.store(true, Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Paused> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// After HTTP 429 from the node nothing is forwarded by the same key for a second: it is that key's calls the node counts.
#[derive(Debug, Default)]
pub(crate) struct Breakers {
    /// When the last of them closes; mostly long ago, and then there is nothing to look up.
    last: AtomicI64,
    closes: Mutex<HashMap<KeyId, i64>>,
}

impl Breakers {
    pub(crate) fn is_open(&self, key: KeyId, now: Timestamp) -> bool {
        self.any_open(now) && self.closes().get(&key).is_some_and(|closes| now.micros() < *closes)
    }

    /// Whether it is worth asking by which key.
    pub(crate) fn any_open(&self, now: Timestamp) -> bool {
        now.micros() < self.last.load(Ordering::Relaxed)
    }

    pub(crate) fn open(&self, key: KeyId, now: Timestamp) {
        let at = now.plus(Seconds(1)).micros();
        let mut closes = self.closes();
        closes.retain(|_, closes| now.micros() < *closes);
        closes.insert(key, at);
        self.last.fetch_max(at, Ordering::Relaxed);
        metrics::counter!("ledger_gateway_circuit_breaker_trips_total").increment(1);
    }

    fn closes(&self) -> MutexGuard<'_, HashMap<KeyId, i64>> {
        self.closes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gw_types::Secret;

    #[test]
    fn j8_slots_are_counted_per_party_and_come_back() {
        let limits = InFlight::new(2, 1);
        let (one, other) = (Party::User(UserId::fixed(1)), Party::User(UserId::fixed(2)));
        let held = (limits.take(one).unwrap(), limits.take(one).unwrap());
        assert!(limits.take(one).is_none() && limits.take(other).is_some());
        drop(held.0);
        assert!(limits.take(one).is_some());
        drop(held.1);
        assert!(limits.counts.lock().unwrap().is_empty());
    }

    #[test]
    fn j8_a_breaker_is_one_keys_and_closes_after_a_second() {
        let breakers = Breakers::default();
        let (now, later) = (Timestamp::from_secs(10), Timestamp::from_secs(11));
        let [one, other] = ["one", "other"].map(|key| KeyId::of(&Secret::new(key)));
        assert!(!breakers.is_open(one, now));
        breakers.open(one, now);
        assert!(breakers.is_open(one, now) && !breakers.is_open(other, now) && !breakers.is_open(one, later));
        breakers.open(other, later);
        assert!(breakers.is_open(other, later) && !breakers.is_open(one, later));
        assert_eq!(breakers.closes().len(), 1, "closed ones are forgotten");
    }

    #[test]
    fn j8_traces_are_one_a_second_and_a_hundred_a_day() {
        let quota = TraceQuota::default();
        let (one, other) = (Party::User(UserId::fixed(1)), Party::User(UserId::fixed(2)));
        let at = |second: i64| Timestamp::from_secs(second);
        assert!(!quota.refuse(one, at(0)) && quota.refuse(one, at(0)) && !quota.refuse(other, at(0)));
        let passed = (1..200).filter(|second| !quota.refuse(one, at(*second))).count();
        assert_eq!(passed, 99);
        assert!(quota.refuse(one, at(86_399)) && !quota.refuse(one, at(86_400)));
    }

    const CALL: Execution = Execution {
        target: Some(Address::ZERO),
        gas: None,
    };

    #[test]
    fn hd36_who_keeps_the_node_busy_waits_longer_each_time_and_nobody_else_does() {
        let pauses = Pauses::default();
        let (one, other) = (Party::User(UserId::fixed(1)), Party::User(UserId::fixed(2)));
        let at = |second: i64| Timestamp::from_secs(second);
        let is_paused = |party, second| pauses.is_paused(party, CALL, at(second));
        pauses.timed_out(one, CALL, at(5));
        // Held up by the first one.
        pauses.timed_out(other, CALL, at(6));
        assert!(is_paused(one, 14) && !is_paused(other, 6) && !is_paused(one, 15));
        // One that began before says nothing of now.
        pauses.came_back(at(4));
        pauses.timed_out(other, CALL, at(16));
        assert!(!is_paused(other, 16));
        pauses.came_back(at(17));
        pauses.timed_out(one, CALL, at(20));
        assert!(is_paused(one, 39) && !is_paused(one, 40));
        pauses.too_large(other, CALL, at(21));
        assert!(is_paused(other, 30) && !is_paused(other, 31));
        for _ in 0..40 {
            pauses.too_large(one, CALL, at(40));
        }
        assert!(is_paused(one, 40 + 2559) && !is_paused(one, 40 + 2560));
        pauses.too_large(other, CALL, at(20_000));
        assert_eq!(pauses.lock().of.len(), 1, "forgotten");
    }

    #[test]
    fn hd38_one_heavy_contract_is_paused_alone_and_light_runs_never() {
        let pauses = Pauses::default();
        let (one, url) = (Party::User(UserId::fixed(1)), Party::Url(PersonalUrlId::fixed(1)));
        let now = Timestamp::from_secs(5);
        let call = |byte, gas| Execution {
            target: Some(Address::repeat_byte(byte)),
            gas,
        };
        let is_paused = |byte, gas| pauses.is_paused(one, call(byte, gas), now);
        pauses.too_large(one, call(1, None), now);
        assert!(
            is_paused(1, None) && is_paused(1, Some(100_001)) && !is_paused(1, Some(100_000)) && !is_paused(2, None)
        );
        assert!(
            !pauses.is_paused(url, call(1, None), now),
            "a personal URL has pauses of its own"
        );
        pauses.too_large(one, call(2, None), now);
        assert!(is_paused(1, None) && is_paused(3, None) && !is_paused(3, Some(21_000)));
        assert!(pauses.is_paused(
            one,
            Execution {
                target: None,
                gas: None
            },
            now
        ));
        // Creations are heavy together.
        pauses.too_large(
            url,
            Execution {
                target: None,
                gas: None,
            },
            now,
        );
        assert!(pauses.is_paused(url, call(1, None), now));
    }

    #[derive(Debug)]
    struct Still;

    impl Clock for Still {
        fn now(&self) -> Timestamp {
            Timestamp::from_secs(10)
        }
    }

    #[test]
    fn edge_rates_count_subjects_and_anonymous_addresses_apart() {
        let clock: Arc<dyn Clock> = Arc::new(Still);
        let rates = Rates::new(None, NonZeroU32::new(2), &clock);
        let [one, other] = ["198.51.100.1", "198.51.100.2"].map(|text| ClientAddress(text.parse().unwrap()));
        let subject = ExternalId::new("did:test:one").unwrap();
        assert_eq!(
            [one, one, one, other].map(|client| rates.refuse(None, client)),
            [false, false, true, false]
        );
        assert!(
            !rates.refuse(Some(&subject), one),
            "no limit for those who say who they are"
        );
    }
}
