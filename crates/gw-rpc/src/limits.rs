//! How much at once and how often (spec/20 J8, spec/85 section 5): calls in flight and per minute, and the pause after the node said "too many".

use gw_http::{AddressKey, ClientAddress, RateLimit};
use gw_types::{Clock, ExternalId, Seconds, Timestamp, UserId};
use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, Ordering},
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

/// After HTTP 429 from the node nothing is forwarded for a second.
#[derive(Debug, Default)]
pub(crate) struct Breaker(AtomicI64);

impl Breaker {
    pub(crate) fn is_open(&self, now: Timestamp) -> bool {
        now.micros() < self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn open(&self, now: Timestamp) {
        self.0.fetch_max(now.plus(Seconds(1)).micros(), Ordering::Relaxed);
        metrics::counter!("ledger_gateway_circuit_breaker_trips_total").increment(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn j8_the_breaker_closes_after_a_second() {
        let breaker = Breaker::default();
        let now = Timestamp::from_secs(10);
        assert!(!breaker.is_open(now));
        breaker.open(now);
        assert!(breaker.is_open(now) && !breaker.is_open(now.plus(Seconds(1))));
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
