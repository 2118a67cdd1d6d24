//! Values that live for a while in this process: login sessions, link challenges, counters.
//!
//! Time is the caller's, so that expiry is exact and testable; a full map refuses rather than evicts, so that nobody
//! can push out another's login. A shared cache takes this place when there are several instances.

use gw_types::Timestamp;
use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// No room for another value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room for another entry")]
pub(crate) struct Full;

/// A bounded map whose entries end.
#[derive(Debug)]
pub(crate) struct Expiring<K, V> {
    capacity: usize,
    entries: Mutex<HashMap<K, Held<V>>>,
}

#[derive(Debug)]
struct Held<V> {
    until: Timestamp,
    value: V,
}

impl<K: Eq + Hash, V> Expiring<K, V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity, entries: Mutex::default() }
    }

    /// Keeps `value` until `until`, if there is room and the other values, looked at by `admits`, let it in.
    pub(crate) fn insert_if<E: From<Full>>(
        &self,
        now: Timestamp,
        (key, value): (K, V),
        until: Timestamp,
        admits: impl FnOnce(&mut dyn Iterator<Item = &V>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut entries = self.lock();
        entries.retain(|_, held| held.until > now);
        if entries.len() >= self.capacity {
            return Err(Full.into());
        }
        admits(&mut entries.values().map(|held| &held.value))?;
        entries.insert(key, Held { until, value });
        Ok(())
    }

    /// Keeps `value` until `until`, if there is room.
    pub(crate) fn insert(&self, now: Timestamp, key: K, value: V, until: Timestamp) -> Result<(), Full> {
        self.insert_if(now, (key, value), until, |_| Ok(()))
    }

    /// Looks at a live value, or changes it, while nobody else does.
    pub(crate) fn with<R>(&self, now: Timestamp, key: &K, work: impl FnOnce(&mut V) -> R) -> Option<R> {
        let mut entries = self.lock();
        let held = entries.get_mut(key).filter(|held| held.until > now)?;
        Some(work(&mut held.value))
    }

    /// Takes a live value out if `fits`, together with its end.
    pub(crate) fn take_if(&self, now: Timestamp, key: K, fits: impl FnOnce(&V) -> bool) -> Option<(V, Timestamp)> {
        match self.lock().entry(key) {
            Entry::Occupied(found) if found.get().until > now && fits(&found.get().value) => {
                let held = found.remove();
                Some((held.value, held.until))
            }
            Entry::Occupied(_) | Entry::Vacant(_) => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<K, Held<V>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_secs(1_000);
    const LATER: Timestamp = Timestamp::from_secs(1_010);

    #[test]
    fn values_end_exactly_on_time() {
        let map = Expiring::new(2);
        map.insert(NOW, "a", 1, LATER).unwrap();
        assert_eq!(map.with(Timestamp::from_micros(LATER.micros() - 1), &"a", |v| *v), Some(1));
        assert_eq!(map.with(LATER, &"a", |v| *v), None);
        assert_eq!(map.take_if(LATER, "a", |_| true), None);
    }

    #[test]
    fn a_full_map_refuses_and_room_comes_back_with_time() {
        let map = Expiring::new(1);
        map.insert(NOW, "a", 1, LATER).unwrap();
        assert_eq!(map.insert(NOW, "b", 2, LATER), Err(Full));
        assert_eq!(map.with(NOW, &"a", |v| *v), Some(1), "nobody is pushed out");
        assert_eq!(map.insert(LATER, "b", 2, Timestamp::from_secs(1_020)), Ok(()));
    }

    #[test]
    fn a_value_is_taken_once() {
        let map = Expiring::new(1);
        map.insert(NOW, "a", 1, LATER).unwrap();
        assert_eq!(map.take_if(NOW, "a", |v| *v == 2), None);
        assert_eq!(map.take_if(NOW, "a", |v| *v == 1), Some((1, LATER)));
        assert_eq!(map.take_if(NOW, "a", |v| *v == 1), None);
    }
}
