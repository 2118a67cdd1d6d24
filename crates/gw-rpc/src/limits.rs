//! How much at once and how often (spec/20 J8, spec/85 section 5): calls in flight and per minute, and the pause after the node said "too many".

use gw_http::{AddressKey, ClientAddress, RateLimit};
use gw_node::KeyId;
use gw_types::{Clock, ExternalId, Seconds, Timestamp, UserId};
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
        Arc::new(Self { users, addresses, counts: Mutex::default() })
    }

    /// Takes a slot, given back when dropped; nothing if all are taken.
    pub(crate) fn take(self: &Arc<Self>, party: Party) -> Option<Slot> {
        let max = match party {
            Party::User(_) => self.users,
            Party::Address(_) => self.addresses,
        };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = counts.get(&party).copied().unwrap_or(0);
        if taken >= max {
            return None;
        }
        counts.insert(party, taken + 1);
        drop(counts);
        Some(Slot { of: Arc::clone(self), party })
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
            Some(subject) => self.subjects.as_ref().is_some_and(|limit| limit.check(subject).is_err()),
            None => self.addresses.as_ref().is_some_and(|limit| limit.check(&client.into()).is_err()),
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
    of: HashMap<Party, (u32, Timestamp)>,
}

/// The first pause, and the longest one.
const FIRST_PAUSE: u32 = 10;
const DOUBLINGS: u32 = 8;
const FORGOTTEN: Seconds = Seconds(3600);

impl Pauses {
    /// Whether the party has to wait.
    pub(crate) fn is_paused(&self, party: Party, now: Timestamp) -> bool {
        self.any.load(Ordering::Relaxed) && self.lock().of.get(&party).is_some_and(|(_, ends)| now < *ends)
    }

    /// An execution that began then came back.
    pub(crate) fn came_back(&self, began: Timestamp) {
        if self.any.load(Ordering::Relaxed) {
            let mut paused = self.lock();
            paused.busy_since = paused.busy_since.filter(|since| began <= *since);
        }
    }

    /// An execution of the party did not come back in time.
    pub(crate) fn timed_out(&self, party: Party, now: Timestamp) {
        let mut paused = self.lock();
        if paused.busy_since.is_none() {
            paused.busy_since = Some(now);
            self.count(&mut paused, party, now);
        }
    }

    /// The trace of an execution of the party was too much to read.
    pub(crate) fn too_large(&self, party: Party, now: Timestamp) {
        self.count(&mut self.lock(), party, now);
    }

    fn count(&self, paused: &mut Paused, party: Party, now: Timestamp) {
        paused.of.retain(|_, (_, ends)| now < ends.plus(FORGOTTEN));
        let (times, ends) = paused.of.entry(party).or_insert((0, now));
        let pause = FIRST_PAUSE.saturating_mul(1 << (*times).min(DOUBLINGS));
        (*times, *ends) = (times.saturating_add(1), now.plus(Seconds(pause)));
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

    #[test]
    fn hd36_who_keeps_the_node_busy_waits_longer_each_time_and_nobody_else_does() {
        let pauses = Pauses::default();
        let (one, other) = (Party::User(UserId::fixed(1)), Party::User(UserId::fixed(2)));
        let at = |second: i64| Timestamp::from_secs(second);
        pauses.timed_out(one, at(5));
        // Held up by the first one.
        pauses.timed_out(other, at(6));
        assert!(pauses.is_paused(one, at(14)) && !pauses.is_paused(other, at(6)) && !pauses.is_paused(one, at(15)));
        // One that began before says nothing of now.
        pauses.came_back(at(4));
        pauses.timed_out(other, at(16));
        assert!(!pauses.is_paused(other, at(16)));
        pauses.came_back(at(17));
        pauses.timed_out(one, at(20));
        assert!(pauses.is_paused(one, at(39)) && !pauses.is_paused(one, at(40)));
        pauses.too_large(other, at(21));
        assert!(pauses.is_paused(other, at(30)) && !pauses.is_paused(other, at(31)));
        for _ in 0..40 {
            pauses.too_large(one, at(40));
        }
        assert!(pauses.is_paused(one, at(40 + 2559)) && !pauses.is_paused(one, at(40 + 2560)));
        pauses.too_large(other, at(20_000));
        assert_eq!(pauses.lock().of.len(), 1, "forgotten");
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
        assert_eq!([one, one, one, other].map(|client| rates.refuse(None, client)), [false, false, true, false]);
        assert!(!rates.refuse(Some(&subject), one), "no limit for those who say who they are");
    }
}
